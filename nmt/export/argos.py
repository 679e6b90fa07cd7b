"""Export to Argos Translate: a package that Argos Translate and LibreTranslate install."""

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
import sentencepiece

from nmt.decoding.lengths import max_lengths
from nmt.errors import NmtError
from nmt.export import process
from nmt.export.base import Tags, TrainedModel
from nmt.export.ctranslate2 import CTranslate2Exporter
from nmt.export.transformer_weights import transformer_section
from nmt.export.vocabulary import check_joint_vocabulary
from nmt.message import Argument
from nmt.runs.directory import Run
from nmt.storage.atomic import scratch_folder
from nmt.storage.json_file import write_json
from nmt.version import version

PACKAGE_VERSION = "1.0"
ARGOS_VERSION = "1.9"
"""Oldest version of Argos Translate that reads the package."""


class ArgosExporter(CTranslate2Exporter):
    """An ``.argosmodel`` package: a zip archive with a CTranslate2 model and a sentencepiece model for both sides."""

    name: ClassVar = "argos"
    consumer: ClassVar = "Argos Translate"
    default: ClassVar = "int8"
    settings: ClassVar = "the package"

    def check(self, model: TrainedModel) -> None:
        """Refuse models other than Transformers with a joint subword vocabulary, and several language pairs."""
        transformer_section(model, self.consumer)
        if len(model.directions) > 1:
            names = [direction.name for direction in model.directions]
            raise NmtError(
                f"Run {model.run.name!r} has {len(names)} language pairs: {', '.join(names)}. A package of "
                f"{self.consumer} has a single one. Choose it with ",
                Argument("languages", names[0]),
                ".",
            )
        check_joint_vocabulary(model, self.consumer)

    def write(self, model: TrainedModel, folder: Path) -> None:
        """Write the package."""
        stem, (source, target) = self._stem(model), model.directions[0].languages
        metadata = {
            "package_version": PACKAGE_VERSION,
            "argos_version": ARGOS_VERSION,
            "from_code": source,
            "from_name": source,
            "to_code": target,
            "to_name": target,
        }
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            package = Path(scratch) / stem
            (package / "model").mkdir(parents=True)
            super().write(model, package / "model")
            shutil.copyfile(package / "model" / "source.spm", package / "sentencepiece.model")
            write_json(package / "metadata.json", metadata)
            (package / "README.md").write_text(f"# {stem}\n\nTrained with nmt {version()}.\n", encoding="utf-8")
            archive = shutil.make_archive(str(folder / stem), "zip", scratch)
            Path(archive).rename(folder / f"{stem}.argosmodel")

    def written_tags(self, model: TrainedModel, tags: Sequence[int]) -> str | None:
        """Return None: Argos Translate gives the model a sentence alone."""
        return None

    def translate(self, model: TrainedModel, folder: Path, texts: list[str], tags: Tags = ()) -> list[str]:
        """Return greedy translations by the models of the package, which are called as Argos Translate calls them."""
        package = folder / f"{self._stem(model)}.argosmodel"
        return process.call(self, translations_by_package, str(package), str(model.run.folder), texts)

    def usage(self, model: TrainedModel) -> str:
        """Return instructions to install and use the package."""
        source, target = model.directions[0].languages
        return (
            "With Argos Translate:\n\n```python\nfrom argostranslate import package, translate\n\n"
            f'package.install_from_path("{self._stem(model)}.argosmodel")\n'
            f'print(translate.translate("SENTENCE", "{source}", "{target}"))\n```\n\n'
            "LibreTranslate offers every package that Argos Translate has installed. Argos Translate replaces each "
            "underscore of a translation by a space."
            f"{self.version_note(model)}"
        )

    @staticmethod
    def _stem(model: TrainedModel) -> str:
        source, target = model.directions[0].languages
        return f"translate-{source}_{target}-{PACKAGE_VERSION.replace('.', '_')}"


def translations_by_package(package: str, run: str, texts: list[str]) -> list[str]:
    """Return greedy translations by a package, with the length limits of the run's configuration."""
    import ctranslate2  # noqa: PLC0415 - an extra

    config, file = Run(Path(run)).config(), Path(package)
    with scratch_folder() as scratch:
        root = scratch / file.stem
        shutil.unpack_archive(file, scratch, "zip")
        pieces = sentencepiece.SentencePieceProcessor(model_file=str(root / "sentencepiece.model"))
        engine = ctranslate2.Translator(str(root / "model"))
    tokens = [pieces.encode(text, out_type=str) for text in texts]
    lengths = np.array([len(row) for row in tokens], np.int64)
    limits = max_lengths(config, lengths + 1 + int(config.model.reads_bos)).tolist()
    results = engine.translate_batch(
        tokens, beam_size=1, length_penalty=0, max_batch_size=config.decoding.batch_size,
        max_decoding_length=max(limits, default=1),
    )  # fmt: skip
    hypotheses = [result.hypotheses[0][:limit] for result, limit in zip(results, limits, strict=True)]
    return [pieces.decode(row) if source else "" for row, source in zip(hypotheses, tokens, strict=True)]
