"""Systems to score: runs that translate a test set, and files of translations."""

import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from nmt.config.loading import change_decoding
from nmt.config.schema import DecodingConfig
from nmt.data.manifest import Manifest, read_manifest
from nmt.decoding.exported import ExportedModel, choose_export
from nmt.decoding.translation import Translation
from nmt.decoding.translator import Translator
from nmt.evaluation.result import System
from nmt.evaluation.test_set import EvaluationSet
from nmt.extras import require
from nmt.runs.directory import Run, find_run

_LINE_BREAK = re.compile(r"[\r\n]+")  # a model that falls back to bytes could write a line break
BATCHES_PER_CALL = 2  # between two reports of progress; a single batch may be too few tokens to be worth compiling


@dataclass(frozen=True)
class RunSystem:
    """A run with the weights and the settings that it translates with."""

    name: str
    """Name as it was given: RUN or RUN:EPOCH."""
    run: Run
    """Run directory."""
    manifest: Manifest
    """Manifest of the dataset that the run was trained on."""
    epoch: str | None
    """Weights: a number, "best", "last" or "average"; None for the run's default."""
    decoding: DecodingConfig
    """Settings of decoding."""
    exported: ExportedModel | None = None
    """Export that translates instead of the run's weights; None for these weights."""


def find_run_system(name: str | None, epoch: str | None, decoding: Mapping[str, Any]) -> RunSystem:
    """Return the system of a run.

    Args:
        name: RUN or RUN:EPOCH; None for the run that trained last.
        epoch: the epoch, if ``name`` has none.
        decoding: values for keys of the run's section decoding; a value of None leaves the key as it is.

    Raises:
        NotFoundError: if there is no such run.
        ConfigError: for a value that the section decoding does not allow.
        DataError: if the run is damaged.
    """
    run_name, _, own_epoch = (name or "").partition(":")
    run = find_run(run_name if name is not None else None)
    return RunSystem(
        name=name or run.name,
        run=run,
        manifest=read_manifest(run.dataset_path),
        epoch=own_epoch or epoch,
        decoding=change_decoding(run.config().decoding, decoding),
    )


def find_exported_system(
    name: str | None, epoch: str | None, export: str | None, decoding: Mapping[str, Any]
) -> RunSystem:
    """Return the system of an export to CTranslate2.

    Args:
        name: RUN or RUN:EPOCH; None for the run that trained last.
        epoch: the epoch that the export must have, if ``name`` has none; None for any.
        export: name of the export in the run, or a folder; None for the export written last.
        decoding: as of ``find_run_system``.

    Raises:
        NotFoundError: if there is no such run or export, or CTranslate2 is not installed.
        NmtError: if the export has other weights.
        ConfigError: for a value that the section decoding does not allow.
        DataError: if the export is damaged.
    """
    require("fast", "ctranslate2")
    run_name, _, own_epoch = (name or "").partition(":")
    run, exported = choose_export(run_name if name is not None else None, own_epoch or epoch, export)
    return RunSystem(
        name=f"{exported.description.run}/{exported.folder.name}",
        run=run,
        manifest=read_manifest(exported.run.dataset_path),
        epoch=str(exported.description.epoch),
        decoding=change_decoding(exported.run.config().decoding, decoding, exported=True),
        exported=exported,
    )


def translate(system: RunSystem, test_set: EvaluationSet, report: Callable[[int], None]) -> tuple[System, list[str]]:
    """Translate the sources of a test set with a run.

    Args:
        system: the run.
        test_set: N sentences with their sources.
        report: called with the number of sentences translated so far, from 0 to N.

    Returns:
        A description of the system with its speed, and N translations without line breaks.

    Raises:
        NotFoundError: if the weights are missing.
        DataError: if the run is damaged, or a sentence is longer than learned positions reach.
    """
    if system.exported is not None:
        batches = BATCHES_PER_CALL * (os.cpu_count() or 1)  # CTranslate2 has a batch on each core
        translator = Translator.open(system.exported, decoding=system.decoding)
        decoding = system.decoding
    else:
        batches = BATCHES_PER_CALL
        translator = Translator.open(system.run, system.epoch, system.decoding)
        decoding = system.decoding.model_copy(update={"precision": translator.precision})
    started = time.perf_counter()
    translations = _translate_all(translator, test_set, report, batches)
    seconds = time.perf_counter() - started
    description = System(
        name=system.name,
        run=system.run.name,
        epoch=translator.epoch,
        dataset=system.manifest.settings.dataset,
        decoding=decoding,
        export=str(system.exported.folder) if system.exported else None,
        computed_in=translator.precision if system.exported else None,
        seconds=seconds,
        sentences_per_second=len(translations) / seconds,
        with_unknown_words=sum(bool(translation.unknown) for translation in translations),
        cut_off=sum(not translation.finished for translation in translations),
    )
    return description, [_LINE_BREAK.sub(" ", translation.text) for translation in translations]


def _translate_all(
    translator: Translator, test_set: EvaluationSet, report: Callable[[int], None], batches: int
) -> list[Translation]:
    """Translate all sources, a number of batches a call, shortest first: batches of like length have least padding."""
    sources = test_set.sources or []
    lengths = [len(translator.source.encode(text)) for text in sources]
    empty = [index for index, length in enumerate(lengths) if not length]
    order = sorted((index for index, length in enumerate(lengths) if length), key=lambda index: lengths[index])
    size = batches * translator.config.decoding.batch_size
    translations: dict[int, Translation] = {}
    report(0)
    for indices in [empty, *(order[start : start + size] for start in range(0, len(order), size))]:
        names = [f"{test_set.source_file}, line {index + 1}" for index in indices]
        texts = [sources[index] for index in indices]
        translated = translator.translate_details(texts, names=names, scored=False)
        translations |= dict(zip(indices, translated, strict=True))
        report(len(translations))
    return [translations[index] for index in range(len(sources))]
