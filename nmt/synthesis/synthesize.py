"""Back-translation and forward translation of monolingual text (Sennrich et al. 2016), by runs and other teachers."""

import contextlib
import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pydantic import JsonValue

from nmt.config.data import DataConfig, with_filters
from nmt.config.languages import standard_code
from nmt.config.teacher import SERVERS, read_teacher
from nmt.config.training import VARIANT_NAMES, VariantName
from nmt.data.cleaning import Progress
from nmt.data.dataset import DATASETS
from nmt.data.filters import reason_finder
from nmt.data.manifest import SIDES
from nmt.data.sources.formats import Pair
from nmt.data.sources.text_file import find_text_file
from nmt.data.variants import Languages
from nmt.errors import ConflictError, NmtError
from nmt.interface import public
from nmt.message import Argument, Report
from nmt.storage.atomic import sha256
from nmt.storage.names import check_name, did_you_mean
from nmt.storage.outputs import OutputFile
from nmt.synthesis.job import Job, Synthesis
from nmt.synthesis.pairs import Task
from nmt.teachers.choice import AGREEMENT, chooser
from nmt.teachers.model_teachers import TranslatorTeacher
from nmt.teachers.opening import Asking, open_run, open_teacher
from nmt.teachers.teacher import Teacher

CHAT_FILTERS = ("chatter", "placeholders", "repetition", "untranslated")
"""Usual filters of translations by language models."""
OF_CORPUS = ("shifted", "score", "near_duplicates")
"""Filters that compare pairs of a corpus with each other, or have scores of their own."""
SEVERAL, MOST_CANDIDATES = 2, 100


@public
def synthesize(
    file: str | Path,
    name: str,
    *,
    run: str | None = None,
    epoch: str | int | None = None,
    teachers: Sequence[str] = (),
    candidates: int = 1,
    choose: str | None = None,
    forward: bool = False,
    sample: bool = False,
    decoding: Mapping[str, JsonValue] | None = None,
    export: str | None = None,
    min_score: float | None = None,
    filters: Sequence[str] | None = None,
    augment: Mapping[str, float] | None = None,
    overwrite: bool = False,
    progress: Progress = lambda task, done, total: None,
    note: Report = lambda text: None,
) -> Synthesis:
    """Translate text, and write ``data/<name>.jsonl.gz`` with source, target and score of each pair.

    The same call resumes a job that was interrupted. The file becomes the same as without interruption.

    Args:
        file: text with one sentence per line: plain, gzipped or in a zip archive.
        name: name of the file of pairs.
        run, epoch, decoding, export: model and search settings, as for ``load``. ``run`` may be an ensemble, RUN+RUN.
            The default of beam_size is 1, greedy search. The default of ``export`` is an int8 export, which is made if
            there is none; "none" translates with TensorFlow.
        teachers: teachers instead of ``run``: KIND:WHERE, such as "ctranslate2:nllb", or YAML files
            (configs/TEACHERS.md). The translations of several teachers are candidates.
        candidates: translations of each line by each teacher.
        choose: way to choose among candidates: "agreement", "score", "confidence", or the name of the run that learns
            (``nmt.teachers.choice``). The default is "agreement".
        forward: the lines become the sources of the pairs (self-training, distillation). Otherwise they become the
            targets (back-translation, with a run that translates from their language).
        sample: draw words by their probabilities instead of searching.
        min_score: lowest score of a pair to keep: the mean log-probability of the tokens of its translation.
        filters: names of filters of pairs, as in ``data.filters``, with their default thresholds. None: filters for
            chatter, placeholders, repetition and untranslated words if a language model is among the teachers.
        augment: with ``forward``, shares of the lines that variants replace before they are translated, by the name of
            the variant, as in ``training.augment``: {"typos": 0.1}. The run that learns from the pairs then learns what
            this model makes of such sentences.
        overwrite: replace an existing file, and the blocks of an interrupted job with other arguments.
        progress: function that is called with a step, the number of lines done, and the number of all lines.
        note: function that is called with a message when a run is exported or a job resumes.

    Raises:
        ConflictError: if the file of pairs exists, was begun with other arguments, or is being written.
        NmtError: as for ``load``, if the text cannot be read, and if a teacher fails. Its answers so far are kept.

    >>> made = nmt.synthesize("mono.de", "bt", run="base", overwrite=True)
    >>> str(made.path), made.lines
    ('data/bt.jsonl.gz', 2)
    """
    shares = _check_shares(augment or {}, forward=forward)
    path = DATASETS / f"{check_name(name, 'file of pairs')}.jsonl.gz"
    if os.path.lexists(path) and not overwrite:
        raise ConflictError(
            f"{path} exists already. Give another ",
            Argument("name"),
            ", or ",
            Argument("overwrite", True),
            ", which replaces it.",
        )
    _check_teachers(teachers, run, epoch, export, candidates, choose)
    text, weights = find_text_file(str(file), [DATASETS]), None if epoch is None else str(epoch)
    output = OutputFile(path, inputs=[text.path], overwrite=overwrite)
    settings = {key: value for key, value in (decoding or {}).items() if value is not None}
    is_choice = len(teachers) > 1 or candidates > 1
    way = choose or AGREEMENT if is_choice else None
    choice = chooser(way, forward=forward) if way else None
    asking = Asking(settings, sample, candidates, way)
    configs = [read_teacher(description) for description in teachers]
    if min_score is not None and any(config.kind in SERVERS for config in configs):
        raise NmtError(
            Argument("min_score", min_score),
            " needs scores, and servers give none. Leave it out, or drop pairs with ",
            Argument("filters"),
            ".",
        )
    with contextlib.ExitStack() as opened:
        asked: list[Teacher] = []
        for config in configs:
            asked.append(open_teacher(config, asking, note))
            opened.callback(asked[-1].close)
        if not configs:
            asked.append(open_run(run, weights, export, asking, note))
            opened.callback(asked[-1].close)
        first = next((teacher for teacher in asked if isinstance(teacher, TranslatorTeacher)), None)
        languages = _languages(first, asking)
        if filters is None:
            filters = CHAT_FILTERS if any(config.kind == "chat" for config in configs) else ()
        task = Task(
            asked, choice, text, forward, min_score,
            _pair_filter(filters, languages if forward else languages[::-1]), shares, languages,
            first.median if first else None,
        )  # fmt: skip
        made_with = {
            "input": f"{sha256(text.path)} {text.member or ''}", "sample": sample, "forward": forward,
            "min_score": min_score, "augment": shares,
        }  # fmt: skip
        # A job without these settings has none of them, as in older versions.
        made_with |= {"filters": sorted(filters)} if filters else {}
        made_with |= {"choose": way, "candidates": candidates} if is_choice else {}
        made_with |= {"teachers": [teacher.identity for teacher in asked]} if configs else asked[0].identity
        return Job(task, output, progress, note).run(made_with, overwrite=overwrite)


def _check_teachers(
    teachers: Sequence[str], run: str | None, epoch: str | int | None, export: str | None, candidates: int,
    choose: str | None,
) -> None:  # fmt: skip
    """Refuse arguments that contradict each other."""
    if not 1 <= candidates <= MOST_CANDIDATES:
        raise NmtError(
            Argument("candidates", candidates),
            f" is no number of candidates, from 1 to {MOST_CANDIDATES}. Change the value.",
        )
    of_run = {"run": run, "epoch": epoch, "export": export}
    given = [Argument(name, value) for name, value in of_run.items() if value is not None]
    if teachers and given:
        raise NmtError(
            Argument("teachers", list(teachers)),
            " replaces the run; received ",
            given[0],
            " too. Give only one of them. A run is a teacher as ",
            Argument("teachers", ["run:NAME"]),
            ".",
        )
    if choose is not None and len(teachers) < SEVERAL and candidates < SEVERAL:
        raise NmtError(
            Argument("choose", choose),
            " chooses among several translations of a line; received one teacher and one candidate. Give more ",
            Argument("teachers"),
            " or ",
            Argument("candidates"),
            ", or leave it out.",
        )


def _languages(first: TranslatorTeacher | None, asking: Asking) -> Languages:
    """Return the languages of lines and translations: those of the run, or else the user's."""
    if first is not None:
        return first.languages
    source, target = asking.languages
    return source or "source", target or "target"


def _pair_filter(names: Sequence[str], languages: Languages) -> Callable[[int, Pair], str | None]:
    """Return the function that finds the filter that drops a pair; raises ConfigError for an unknown filter."""
    codes = {f"{side}_language": standard_code(code) for side, code in zip(SIDES, languages, strict=True)}
    config = with_filters(DataConfig.model_validate(codes), names)
    if whole := [name for name in names if name in OF_CORPUS]:
        raise NmtError(
            Argument("filters"),
            f" names {whole[0]}, which needs the whole corpus. Name it when the pairs are prepared.",
        )
    return reason_finder(config, [])


def _check_shares(shares: Mapping[str, float], *, forward: bool) -> dict[VariantName, float]:
    """Return the shares of variants in their order; raises NmtError for shares that cannot be followed."""
    if shares and not forward:
        raise NmtError(
            Argument("augment"),
            " changes sources, and without ",
            Argument("forward", True),
            " the lines are targets. Leave one of the two out, or add the other.",
        )
    for name, share in shares.items():
        if name not in VARIANT_NAMES:
            nearest = did_you_mean(name, VARIANT_NAMES)
            raise NmtError(
                Argument("augment"), f" names the variant {name!r}{nearest}. Known: {', '.join(VARIANT_NAMES)}."
            )
        if not 0 < share <= 1:
            raise NmtError(
                Argument("augment"), f" gives {name} the share {share:g}. A share is above 0 and at most 1. Change it."
            )
    if (total := math.fsum(shares.values())) > 1:
        raise NmtError(Argument("augment"), f" has shares that add up to {total:g}, over 1. Lower some of them.")
    return {name: shares[name] for name in VARIANT_NAMES if name in shares}
