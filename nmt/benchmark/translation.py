"""Speed of translating the test split with a run and with its exports, in turns.

Loading, tracing and compiling are over before a clock starts.
"""

import time
from collections.abc import Callable
from functools import partial

import numpy as np

from nmt.config.record import DocumentedRecord
from nmt.data.dataset import dataset_of_run
from nmt.data.manifest import read_manifest
from nmt.decoding.exported import CTRANSLATE2, ExportedModel, check_backend, find_export, find_exports, open_export
from nmt.decoding.translation import TextTranslator
from nmt.extras import require
from nmt.runs.directory import Run, find_run
from nmt.storage.text import read_lines

BEAMS = (1, 5)
PRECISIONS = ("float32", "bfloat16")


class TranslationSpeed(DocumentedRecord):
    """Rate of translating sentences by one engine with one beam size."""

    engine: str
    """Program and number format."""
    beam_size: int
    """Beam size; 1: greedy search."""
    sentences: int
    """Number of sentences."""
    runs: int
    """Number of times that all sentences were translated."""
    seconds: float
    """Median time of translating all sentences."""
    seconds_range: tuple[float, float]
    """Shortest and longest time."""
    target_tokens_per_second: float
    """Tokens of the translations a second, eos included, by the median time."""


def measure_translation(
    engines: dict[str, Callable[[int], TextTranslator]],
    texts: list[str],
    runs: int,
    report: Callable[[str], None] = lambda step: None,
) -> list[TranslationSpeed]:
    """Translate sentences with several engines in turns, greedily and with a beam of 5.

    Args:
        engines: name of each engine, and what returns its translator for a beam size.
        texts: N sentences.
        runs: number of times that each engine translates them, after a first time that does not count.
        report: called with each step.
    """
    translators = {(name, beam): load(beam) for name, load in engines.items() for beam in BEAMS}
    tokens = {}
    for (name, beam), translator in translators.items():
        report(f"warming up {name}, beam {beam}")
        tokens[name, beam] = sum(len(found[0].ids) for found in translator.translate_n_best(texts))
    times: dict[tuple[str, int], list[float]] = {key: [] for key in translators}
    for turn in range(1, runs + 1):
        report(f"turn {turn} of {runs}")
        for key, translator in translators.items():
            started = time.perf_counter()
            translator.translate_n_best(texts)
            times[key].append(time.perf_counter() - started)
    return [
        TranslationSpeed(
            engine=name,
            beam_size=beam,
            sentences=len(texts),
            runs=runs,
            seconds=float(np.median(seconds)),
            seconds_range=(min(seconds), max(seconds)),
            target_tokens_per_second=tokens[name, beam] / float(np.median(seconds)),
        )
        for (name, beam), seconds in times.items()
    ]


def measure_run(
    name: str, backends: list[str], turns: int, report: Callable[[str], None] = lambda step: None
) -> list[TranslationSpeed]:
    """Translate the test split of a run with TensorFlow in both precisions and with its exports to CTranslate2.

    Args:
        name: name of the run.
        backends: "tensorflow" or "ctranslate2"; none for both, where the run has exports.
        turns: number of times that each engine translates.
        report: called with each step.

    Raises:
        NmtError: for an unknown backend.
        NotFoundError: if run, dataset or weights are missing; with "ctranslate2" also if the run has no export.
    """
    for backend in backends:
        check_backend(backend)
    run = find_run(name)
    dataset = dataset_of_run(run.name, read_manifest(run.dataset_path))
    texts = read_lines(dataset.text("test", "source"))
    engines: dict[str, Callable[[int], TextTranslator]] = {}
    if not backends or "tensorflow" in backends:
        engines |= {f"TensorFlow {precision}": partial(_run_translator, run, precision) for precision in PRECISIONS}
    if CTRANSLATE2 in backends:
        find_export(run, CTRANSLATE2)  # or a message
    if not backends or CTRANSLATE2 in backends:
        for folder in find_exports(run, CTRANSLATE2):
            # By the folder: two exports can have the same number format, with and without a vocabulary map.
            engine = f"CTranslate2 {folder.name.removeprefix(f'{CTRANSLATE2}-')}"
            engines[engine] = partial(_export_translator, open_export(folder))
    return measure_translation(engines, texts, turns, report)


def _run_translator(run: Run, precision: str, beam: int) -> TextTranslator:
    from nmt.decoding.translator import Translator  # noqa: PLC0415 - it loads TensorFlow

    decoding = run.config().decoding.model_copy(update={"beam_size": beam, "precision": precision})
    return Translator.load(run, decoding=decoding)


def _export_translator(exported: ExportedModel, beam: int) -> TextTranslator:
    require("fast", "ctranslate2")
    from nmt.decoding.ctranslate2_translator import CTranslate2Translator  # noqa: PLC0415 - an extra

    decoding = exported.run.config().decoding.model_copy(update={"beam_size": beam})
    return CTranslate2Translator.load(exported, decoding)
