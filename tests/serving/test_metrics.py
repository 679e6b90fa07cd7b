"""Metrics of the service leave those of other programs in the process as they are."""

import prometheus_client
from prometheus_client.exposition import generate_latest

from nmt.serving.metrics import Metrics


def test_metrics_have_no_time_of_creation_and_others_in_the_process_keep_theirs() -> None:
    metrics = Metrics()
    metrics.requests.labels("/translate", "200").inc()
    text = generate_latest(metrics.registry).decode()
    assert 'nmt_requests_total{endpoint="/translate",status="200"} 1.0' in text and "_created" not in text
    others = prometheus_client.CollectorRegistry()
    prometheus_client.Counter("mine", "Of another program.", registry=others)
    assert b"mine_created" in generate_latest(others)
