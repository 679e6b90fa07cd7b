"""Facts about a run for reports, read from its folder without TensorFlow, and its sample translations with changes."""

import difflib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Literal, NamedTuple

from nmt.data.manifest import SIDES, Manifest, read_manifest
from nmt.errors import counted
from nmt.runs import metrics
from nmt.runs.calibration import Calibration, read_calibration
from nmt.runs.directory import Run
from nmt.runs.overview import lineage
from nmt.runs.weights import count_weights
from nmt.storage.arrays import read_checksum
from nmt.tokenizers.scripts import join_words, split_words
from nmt.training.checkpoints import newest_environment


class Fact(NamedTuple):
    """A named value, with a detail as text."""

    name: str
    value: str
    detail: str = ""


class RunFacts:
    """The facts about a run that a report shows without any computation."""

    def __init__(self, run: Run) -> None:
        """Read the facts from the folder of the run.

        Raises:
            NmtError: if a file of the run is damaged.
        """
        self.run, self.name, self.config = run, run.name, run.config()
        self.manifest = read_manifest(run.dataset_path)
        self.records = run.metrics()
        self.epochs = [record for record in self.records if isinstance(record, metrics.EpochMetrics)]
        self.seconds = sum(epoch.seconds for epoch in self.epochs)  # time of training steps, without validation
        self.parameters = count_weights(run)
        self.environment = newest_environment(run)
        self.calibration = _current_calibration(run)
        runs, self.hidden_ancestors = lineage(run)
        self.ancestors = [
            f"weights of {child.config().training.start_from}, trained on "
            f"{read_manifest(ancestor.dataset_path).settings.dataset}"
            for child, ancestor in pairwise(runs)
        ]

    @property
    def summary(self) -> list[Fact]:
        """Facts for the head of the page. All runs have the same names in the same order."""
        model, epochs, path = self.config.model, self.epochs, self.run.metrics_path
        languages = " to ".join(self.manifest.languages.values())
        day = f"{datetime.fromtimestamp(path.stat().st_mtime, UTC).date()}" if path.exists() else "not yet"
        steps = counted(self.records[-1].step, "step") if self.records else ""
        by = self.config.training.best_by
        score = Fact("Best validation", "none yet", "the first comes after the first epoch")
        validations = self.run.validations()
        if best := metrics.best_of(validations, by):
            by = metrics.measure_in_force(validations, by)
            measure, value = metrics.measures(metrics.Quality)[f"validation_{by}"], getattr(best, f"validation_{by}")
            weights, loss = metrics.weights_in_words(metrics.weights_id(best)), metrics.LOSS.text(best.validation_loss)
            score = Fact("Best validation", f"{value:{measure.form}}", f"{measure.label}, {weights}, {loss}")
        return [
            Fact("Dataset", f"{self.manifest.settings.dataset}", "" if languages == "source to target" else languages),
            Fact("Trained", day, f"{len(epochs)} of {counted(self.config.training.epochs, 'epoch')}"),
            Fact("Model", model.architecture, model.description.removeprefix(model.architecture).lstrip(", ")),
            Fact("Parameters", "not saved yet" if self.parameters is None else f"{self.parameters:,}"),
            Fact("Training time", duration(self.seconds), steps),
            score,
        ]


def _current_calibration(run: Run) -> Calibration | None:
    """Return the calibration of a run, or None if it has none or only one for weights that no longer exist."""
    if not run.confidence_path.is_file():
        return None
    calibration = read_calibration(run)
    path = run.weights_path(calibration.epoch)
    is_outdated = calibration.weights and (not path.is_file() or read_checksum(path) != calibration.weights)
    return None if is_outdated else calibration


def split_rows(manifest: Manifest) -> Iterator[list[str]]:
    """Yield rows of a dataset's statistics: a name, and a value for each split."""
    splits, unit = list(manifest.splits.values()), manifest.unit
    yield ["pairs", *(f"{split.pairs:,}" for split in splits)]
    for direction in manifest.directions:
        tag = f", tag <{direction.tag}>" if direction.tag else ""
        counts = [direction.pairs.get(name, 0) for name in manifest.splits]
        yield [f"pairs {direction.name}{tag}", *(f"{count:,}" for count in counts)]
    for side in SIDES:
        yield [f"{side} {unit}", *(f"{split.tokens[side]:,}" for split in splits)]
        if all(split.percentiles for split in splits):
            lengths = ["/".join(map(str, split.percentiles[side].values())) for split in splits]
            yield [f"{side} length, {'/'.join(splits[0].percentiles[side])}%", *lengths]
        yield [f"longest {side}", *(f"{split.longest[side]:,} {unit}" for split in splits)]
        shares = [split.unknown[side] / max(1, split.tokens[side]) for split in splits]
        yield [f"unknown {side} {unit}", *(f"{share:.2%}" for share in shares)]
        if all(split.characters for split in splits):
            per_token = [split.characters[side] / max(1, split.tokens[side]) for split in splits]
            yield [f"characters per {side} token", *(f"{characters:.1f}" for characters in per_token)]
    yield ["pairs whose source is in training", "-", *(f"{split.sources_in_training:,}" for split in splits[1:])]


def duration(seconds: float) -> str:
    """Return a duration as text with at most two units."""
    minutes = round(seconds / 60)
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


class Piece(NamedTuple):
    """Part of a translation, and its change from the previous translation."""

    text: str
    change: Literal["kept", "added", "removed"]


class Stage(NamedTuple):
    """A translation of a sample sentence, and the consecutive validations with this translation."""

    times: list[metrics.WeightsId]
    translation: str
    pieces: list[Piece]

    @property
    def when(self) -> str:
        """The validations as text, such as "epoch 3", "epochs 3-5" or "step 1,500 to epoch 1"."""
        epochs = [time for time in self.times if isinstance(time, int)]
        if len(epochs) == len(self.times) > 1:
            return f"epochs {metrics.in_ranges(epochs)}"
        return " to ".join(dict.fromkeys(metrics.weights_in_words(self.times[end]) for end in (0, -1)))


def sample_stages(records: Sequence[metrics.Metrics]) -> dict[tuple[int, str, str], list[Stage]]:
    """Return the translations of each sample sentence in order. Equal consecutive translations are one stage.

    Keys are the number of the sentence, from 1, its source and its reference, in the order of the numbers.
    """
    ends = {record.step for record in records if isinstance(record, metrics.EpochMetrics)}
    by_sentence: dict[tuple[int, str, str], list[Stage]] = {}
    for record in records:
        if isinstance(record, metrics.SampleMetrics):
            time: metrics.WeightsId = record.epoch if record.step in ends else f"step-{record.step}"
            for number, sample in enumerate(record.samples, start=1):
                stages = by_sentence.setdefault((number, sample.source, sample.reference), [])
                before = stages[-1].translation if stages else None
                if before == sample.translation:
                    stages[-1].times.append(time)
                else:
                    stages.append(Stage([time], sample.translation, changes(before, sample.translation)))
    return dict(sorted(by_sentence.items()))


def sample_histories(runs: Sequence[RunFacts]) -> dict[tuple[str, str], dict[str, list[Stage]]]:
    """Return the stages of each sample sentence, by source and reference, then by run name."""
    histories: dict[tuple[str, str], dict[str, list[Stage]]] = {}
    for facts in runs:
        for (_, source, reference), stages in sample_stages(facts.records).items():
            histories.setdefault((source, reference), {})[facts.name] = stages
    return histories


def changes(before: str | None, after: str) -> list[Piece]:
    """Return ``after`` in pieces, with the differences from ``before`` marked; without ``before``, nothing is marked.

    The pieces are groups of words; in scripts without spaces, a word is a character.
    """
    if before is None:
        return [Piece(after, "kept")] if after.strip() else []
    old, new = split_words(before), split_words(after)
    matcher = difflib.SequenceMatcher(None, [word.text for word in old], [word.text for word in new], autojunk=False)
    pieces = list[Piece]()
    space = ""  # after the previous piece
    for change, old_start, old_end, new_start, new_end in matcher.get_opcodes():
        words = old[old_start:old_end] if change == "delete" else new[new_start:new_end]
        following = {text[end - 1].space for text, end in ((old, old_end), (new, new_end)) if end}
        text = f"{space}{join_words(words)}"
        space = max(following, default="")
        pieces.append(Piece(text, "removed" if change == "delete" else "kept" if change == "equal" else "added"))
    return pieces
