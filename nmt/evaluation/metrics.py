"""Table of translation metrics. sacrebleu computes them, and is imported at the first use."""

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
    """Class name in ``sacrebleu.metrics``; names of results begin with it."""
    settings: Mapping[str, Any] = {}
    """Arguments of the class."""
    lower_is_better: bool = False
    """Whether lower scores are better."""
    usual: bool = True
    """Whether it is computed by default."""
    cased: bool = True
    """Whether it distinguishes upper and lower case, unless ``lowercase`` is set."""


METRICS: dict[str, MetricEntry] = {
    "bleu": MetricEntry("BLEU"),  # Papineni et al. 2002
    "chrf": MetricEntry("CHRF"),  # Popović 2015
    "chrf++": MetricEntry("CHRF", {"word_order": 2}, usual=False),  # Popović 2017
    "ter": MetricEntry("TER", lower_is_better=True, cased=False),  # Snover et al. 2006
}
USUAL_METRICS = [name for name, entry in METRICS.items() if entry.usual]
TOKENIZATIONS = ("13a", "intl", "zh", "char", "none")  # BLEU tokenizations of sacrebleu that need no further package
DEFAULT_TOKENIZATION = "13a"


def make_metric(
    name: str, tokenization: str = DEFAULT_TOKENIZATION, *, lowercase: bool = False, quiet: bool = False
) -> "Metric":
    """Return the metric with that name in ``METRICS``. With ``quiet``, BLEU does not warn of tokenized text."""
    from sacrebleu import metrics  # noqa: PLC0415 - slow to import, and the help of nmt evaluate needs only the names

    entry = METRICS[name]
    settings = {"tokenize": tokenization, "force": quiet} if entry.kind == "BLEU" else {}
    if entry.cased:
        settings["lowercase"] = lowercase
    return getattr(metrics, entry.kind)(**entry.settings, **settings)


def metric_heading(result: str) -> str:
    """Return sacrebleu's name of a metric, such as "chrF2", with an arrow towards better scores."""
    lower_is_better = any(entry.lower_is_better and result.startswith(entry.kind) for entry in METRICS.values())
    return f"{result} {'↓' if lower_is_better else '↑'}"


def check_metrics(metrics: Sequence[str], tokenization: str) -> list[str]:
    """Return the names of metrics in lower case without repeats, or the usual metrics if ``metrics`` is empty.

    Raises:
        NmtError: for an unknown metric or tokenization, and for a BLEU tokenization without BLEU.
    """
    metrics = list(dict.fromkeys(metric.lower() for metric in metrics or USUAL_METRICS))
    for kind, names, known in (("metric", metrics, METRICS), ("tokenization", [tokenization], TOKENIZATIONS)):
        for name in names:
            if name not in known:
                raise NmtError(f"There is no {kind} {name!r}{did_you_mean(name, known)}. Known: {', '.join(known)}.")
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
