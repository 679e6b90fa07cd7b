"""Metrics of translations, an entry each; sacrebleu computes them, and is loaded at the first use."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from nmt.errors import NmtError
from nmt.message import Argument
from nmt.storage.names import did_you_mean

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric


class MetricEntry(NamedTuple):
    """A metric of translations."""

    kind: str
    """Class of ``sacrebleu.metrics``; results bear its name."""
    settings: Mapping[str, Any] = {}
    """Arguments of the class."""
    less: bool = False
    """Whether less is better."""
    usual: bool = True
    """Whether it is computed unless metrics are asked for."""
    cased: bool = True
    """Whether upper and lower case differ for it, unless ``lowercase`` is asked for."""


METRICS: dict[str, MetricEntry] = {
    "bleu": MetricEntry("BLEU"),  # Papineni et al. 2002
    "chrf": MetricEntry("CHRF"),  # Popović 2015
    "chrf++": MetricEntry("CHRF", {"word_order": 2}, usual=False),  # Popović 2017
    "ter": MetricEntry("TER", less=True, cased=False),  # Snover et al. 2006
}
USUAL_METRICS = [name for name, entry in METRICS.items() if entry.usual]
TOKENIZATIONS = ("13a", "intl", "zh", "char", "none")  # of BLEU: those of sacrebleu that need no further package
DEFAULT_TOKENIZATION = "13a"


def make_metric(
    name: str, tokenization: str = DEFAULT_TOKENIZATION, *, lowercase: bool = False, quiet: bool = False
) -> "Metric":
    """Return the metric of that name in ``METRICS``; a quiet BLEU does not warn of text that looks tokenized."""
    from sacrebleu import metrics  # noqa: PLC0415 - the help of nmt evaluate names the metrics, and is there at once

    entry = METRICS[name]
    settings = {"tokenize": tokenization, "force": quiet} if entry.kind == "BLEU" else {}
    if entry.cased:
        settings["lowercase"] = lowercase
    return getattr(metrics, entry.kind)(**entry.settings, **settings)


def metric_heading(result: str) -> str:
    """Return the name that sacrebleu gives a metric, such as "chrF2", with an arrow towards better scores."""
    less = any(entry.less and result.startswith(entry.kind) for entry in METRICS.values())
    return f"{result} {'↓' if less else '↑'}"


def check_metrics(metrics: Sequence[str], tokenization: str) -> list[str]:
    """Return the names of metrics in lower case, each once; the usual ones for none.

    Raises:
        NmtError: for an unknown metric or tokenization, and for a tokenization of BLEU without BLEU.
    """
    metrics = list(dict.fromkeys(metric.lower() for metric in metrics or USUAL_METRICS))
    for what, names, known in (("metric", metrics, METRICS), ("tokenization", [tokenization], TOKENIZATIONS)):
        for name in names:
            if name not in known:
                raise NmtError(f"There is no {what} {name!r}{did_you_mean(name, known)}. Known: {', '.join(known)}.")
    if tokenization != DEFAULT_TOKENIZATION and "bleu" not in metrics:
        raise NmtError(
            Argument("tokenization", tokenization),
            f" has no effect on {', '.join(metrics)}: it is the tokenization of BLEU. Add ",
            Argument("metrics", ["bleu"]),
            ", or leave ",
            Argument("tokenization"),
            " out.",
        )
    return metrics
