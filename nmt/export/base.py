"""The trained model that is exported, and the interface of an export format."""

import abc
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

from nmt.config.decoding import KEYS
from nmt.config.schema import Config, DecodingConfig
from nmt.data.manifest import SIDES, Manifest, read_manifest
from nmt.runs.directory import Run
from nmt.runs.metrics import WeightsId
from nmt.runs.weights import choose_epoch
from nmt.storage.arrays import Arrays, read_arrays, read_checksum
from nmt.tokenizers.base import Tokenizer
from nmt.tokenizers.registry import load_tokenizer


@dataclass(frozen=True)
class TrainedModel:
    """All that an export is made of."""

    run: Run
    """Run directory."""
    epoch: WeightsId
    """Weights: an epoch number, "average", or such as "step-1500"."""
    config: Config
    """Configuration of the run."""
    manifest: Manifest
    """Manifest of the dataset that the run was trained on. ``manifest.languages`` has the language codes."""
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
            languages: codes of source and target; None: those that the dataset was prepared with.

        Raises:
            NotFoundError: if there are no such weights.
            DataError: if a part of the run is damaged.
        """
        source, target = (load_tokenizer(run.tokenizer_path(side)) for side in SIDES)
        manifest = read_manifest(run.dataset_path)
        if languages is not None:
            codes = {"source_language": languages[0], "target_language": languages[1]}
            manifest = manifest.model_copy(update={"settings": manifest.settings.model_copy(update=codes)})
        chosen = choose_epoch(run, epoch)
        return cls(run, chosen, run.config(), manifest, source, target, read_checksum(run.weights_path(chosen)))

    def weights(self) -> Arrays:
        """Return the weights by name, float32 each.

        Raises:
            DataError: if the file is damaged.
        """
        return read_arrays(self.run.weights_path(self.epoch), self.checksum)


class Exporter(abc.ABC):
    """An export format: what it can carry, how it is written, and how its consumer translates with it."""

    name: ClassVar[str]
    """Name of the format, as in ``nmt export --to``."""
    consumer: ClassVar[str]
    """Program that uses the export, for messages and the model card, such as "CTranslate2"."""
    extra: ClassVar[str | None] = None
    """Extra of nmt that installs the consumer; None where nothing more is needed."""
    modules: ClassVar[tuple[str, ...]] = ()
    """Python modules of the consumer."""
    quantizations: ClassVar[tuple[str, ...]] = ("float32",)
    """Number formats of the exported matrices."""
    default: ClassVar[str] = "float32"
    """Number format unless another is asked for."""
    settings: ClassVar[str] = "the export"
    """What of the export has keys of section decoding, in words."""

    def __init__(self, quantization: str | None = None, *, with_map: bool = False) -> None:
        """Take a number format (None: the default), and whether to write a map of ``nmt.export.vocabulary``."""
        self.quantization = quantization or self.default
        self.with_map = with_map

    def carried(self, decoding: DecodingConfig) -> dict[str, str]:
        """Return the keys of section decoding that the export has, each with its name there."""
        found = {name: key for name, key in KEYS.items() if decoding.search() in key.searches}
        return {name: key.names[self.name] for name, key in found.items() if self.name in key.names}

    @property
    def is_exact(self) -> bool:
        """Whether greedy translations have to be those of the run; otherwise a loss of BLEU is bounded."""
        return self.quantization == "float32" and not self.with_map

    def positions(self, model: TrainedModel) -> int | None:
        """Return the most tokens of a sentence that the export reads, bos and eos included; None: no limit."""
        return model.config.model.limits.source

    @abc.abstractmethod
    def check(self, model: TrainedModel) -> None:
        """Refuse in words what the format cannot carry, before any work.

        Raises:
            NmtError: names the part of the model, the rule of the format, and the remedy.
        """

    @abc.abstractmethod
    def write(self, model: TrainedModel, folder: Path) -> None:
        """Write the exported model into an empty folder."""

    @abc.abstractmethod
    def translate(self, model: TrainedModel, folder: Path, texts: list[str]) -> list[str]:
        """Return greedy translations of raw sentences in float32, by the consumer with the exported files.

        The consumer runs in a process of its own, which ``nmt.export.process.call`` starts.
        Each is at most as long as the section decoding allows (see ``nmt.decoding.lengths.max_lengths``).
        """

    def translate_with_beams(self, model: TrainedModel, folder: Path, texts: list[str]) -> tuple[int, list[str]] | None:
        """Return the beams and the best translations of a beam search that the files hold; None: they hold none."""
        return None

    @abc.abstractmethod
    def usage(self, model: TrainedModel) -> str:
        """Return how to use the export: paragraphs and code blocks in Markdown, for the model card."""
