"""The trained model that is exported, and the interface of all export formats."""

import abc
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

from nmt.config.decoding import KEYS
from nmt.config.schema import Config, DecodingConfig
from nmt.data.manifest import SIDES, Direction, Manifest, read_manifest
from nmt.decoding.sentence_translator import tags_before
from nmt.errors import NmtError
from nmt.message import Argument
from nmt.runs.directory import Run
from nmt.runs.metrics import WeightsId
from nmt.runs.weights import choose_epoch
from nmt.storage.arrays import Arrays, read_arrays, read_checksum
from nmt.tokenizers.base import Tokenizer
from nmt.tokenizers.registry import load_tokenizer


@dataclass(frozen=True)
class TrainedModel:
    """The parts of a run from which an export is made."""

    run: Run
    """Run directory."""
    epoch: WeightsId
    """Name of the weights: an epoch number, "average", or a step such as "step-1500"."""
    config: Config
    """Configuration of the run."""
    manifest: Manifest
    """Manifest of the training dataset."""
    directions: list[Direction]
    """Language pairs of the export."""
    source: Tokenizer
    """Tokenizer of the source side."""
    target: Tokenizer
    """Tokenizer of the target side."""
    checksum: str | None
    """SHA-256 of the weights."""

    @classmethod
    def of(cls, run: Run, epoch: str | None, languages: tuple[str, str] | None = None) -> Self:
        """Return the model of a run.

        Args:
            run: run directory.
            epoch: weights, as in ``nmt.runs.weights.choose_epoch``.
            languages: codes of source and target, or of the one of several language pairs that the export is for;
                None: the codes in the manifest.

        Raises:
            NmtError: if the run has several language pairs, and not this one.
            NotFoundError: if there are no such weights.
            DataError: if a part of the run is damaged.
        """
        source, target = (load_tokenizer(run.tokenizer_path(side)) for side in SIDES)
        manifest = read_manifest(run.dataset_path)
        if languages is not None and not manifest.is_multilingual:
            codes = {"source_language": languages[0], "target_language": languages[1]}
            named = {"source": languages[0], "target": languages[1]}
            manifest = manifest.model_copy(update={
                "settings": manifest.settings.model_copy(update=codes),
                "directions": [direction.model_copy(update=named) for direction in manifest.directions],
            })  # fmt: skip
        directions = manifest.all_directions
        if languages is not None and manifest.is_multilingual:
            directions = [direction for direction in directions if direction.languages == languages]
            if not directions:
                raise NmtError(
                    Argument("languages", "-".join(languages)),
                    f": run {run.name!r} has no such language pair. It has "
                    f"{', '.join(direction.name for direction in manifest.directions)}. Give one of these.",
                )
        chosen = choose_epoch(run, epoch)
        checksum = read_checksum(run.weights_path(chosen))
        return cls(run, chosen, run.config(), manifest, directions, source, target, checksum)

    def tags(self, direction: Direction) -> list[int]:
        """Return the ids of the tags before each source of a language pair."""
        return tags_before(self.source, self.config.decoding, direction, self.manifest)

    def weights(self) -> Arrays:
        """Return the weights by name, float32.

        Raises:
            DataError: if the file is damaged.
        """
        return read_arrays(self.run.weights_path(self.epoch), self.checksum)


Tags = Sequence[Sequence[int]]
"""Ids of the tags before each of several sentences."""


class Exporter(abc.ABC):
    """An export format: it checks and writes a model, and translates with it by its consumer.

    The consumer is the program that uses the export, such as CTranslate2.
    """

    name: ClassVar[str]
    """Name of the format, as in ``nmt export --to``."""
    consumer: ClassVar[str]
    """Name of the consumer in messages and the model card."""
    extra: ClassVar[str | None] = None
    """Extra of nmt that installs the consumer; None if nmt itself does."""
    modules: ClassVar[tuple[str, ...]] = ()
    """Python modules of the consumer."""
    quantizations: ClassVar[tuple[str, ...]] = ("float32",)
    """Number formats in which the matrices can be exported."""
    default: ClassVar[str] = "float32"
    """Number format by default."""
    settings: ClassVar[str] = "the export"
    """Part of the export that holds decoding settings, as the model card names it."""

    def __init__(self, quantization: str | None = None, *, with_map: bool = False, with_demo: bool = False) -> None:
        """Take a number format (None: the default), and whether to write a vocabulary map or a page in the browser."""
        self.quantization = quantization or self.default
        self.with_map = with_map
        self.with_demo = with_demo

    def exported_keys(self, decoding: DecodingConfig) -> dict[str, str]:
        """Return the keys of section decoding that the export holds, with their names in the consumer."""
        keys = {name: key for name, key in KEYS.items() if decoding.search() in key.searches}
        return {name: key.names[self.name] for name, key in keys.items() if self.name in key.names}

    @property
    def is_exact(self) -> bool:
        """Whether greedy translations have to equal the run's. Otherwise the export may lose a little BLEU."""
        return self.quantization == "float32" and not self.with_map

    def positions(self, model: TrainedModel) -> int | None:
        """Return the most tokens that a source sentence may have, bos and eos included; None: no limit."""
        return model.config.model.limits.source

    @abc.abstractmethod
    def check(self, model: TrainedModel) -> None:
        """Refuse a model that the format cannot hold, before any work.

        Raises:
            NmtError: names the part of the model, the rule of the format, and the remedy.
        """

    @abc.abstractmethod
    def write(self, model: TrainedModel, folder: Path) -> None:
        """Write the exported model into an empty folder."""

    @abc.abstractmethod
    def translate(self, model: TrainedModel, folder: Path, texts: list[str], tags: Tags = ()) -> list[str]:
        """Return greedy translations of raw sentences in float32, by the consumer with the exported files.

        The consumer runs in a process of its own, which ``nmt.export.process.call`` starts.
        The section decoding limits the length of a translation (see ``nmt.decoding.lengths.max_lengths``).

        Args:
            model: the exported model.
            folder: folder of the export.
            texts: raw sentences.
            tags: ids of the tags before each sentence; empty: no sentence has any.
        """

    def translate_with_beams(
        self, model: TrainedModel, folder: Path, texts: list[str], tags: Tags = ()
    ) -> tuple[int, list[str]] | None:
        """Return K and the best translations of the beam search in the files; None if they hold no beam search."""
        return None

    def written_tags(self, model: TrainedModel, tags: Sequence[int]) -> str | None:
        """Return tags before a source as users of the export write them; None if the consumer takes no such tags."""
        return None

    @abc.abstractmethod
    def usage(self, model: TrainedModel) -> str:
        """Return instructions for users of the export, as paragraphs and code blocks in Markdown for the model card."""
