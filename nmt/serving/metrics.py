"""Metrics for Prometheus."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
SENTENCES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """Metrics of a service. Clients cannot create label values, so their number is bounded."""

    def __init__(self) -> None:
        """Create all metrics with the value zero."""
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "nmt_requests", "Requests answered, by endpoint and HTTP status.", ["endpoint", "status"],
            registry=self.registry,
        )  # fmt: skip
        self.seconds = Histogram(
            "nmt_request_seconds", "Time from the head of a request to its answer, in seconds.", ["endpoint"],
            buckets=SECONDS, registry=self.registry,
        )  # fmt: skip
        self.sentences = Counter(
            "nmt_sentences", "Sentences translated, by language pair.", ["source", "target"], registry=self.registry
        )
        self.characters = Counter(
            "nmt_characters", "Characters of texts received for translation.", registry=self.registry
        )
        self.batch_sentences = Histogram(
            "nmt_batch_sentences", "Sentences in a batch.", buckets=SENTENCES, registry=self.registry
        )

    def watch(self, requests: Callable[[], float], sentences: Callable[[], float]) -> None:
        """Report the length of the queue: requests in the service, and sentences that wait for a batch."""
        for name, text, function in (
            ("nmt_queue_requests", "Requests for translation in the service, waiting or in progress.", requests),
            ("nmt_queue_sentences", "Sentences that wait for a batch.", sentences),
        ):
            Gauge(name, text, registry=self.registry).set_function(function)
