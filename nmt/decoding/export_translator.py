"""Translator of an export to CTranslate2: what commands and the Python interface load. Loads no TensorFlow."""

from collections.abc import Mapping
from typing import Any

from nmt.config.decoding import DecodingConfig
from nmt.config.loading import change_decoding
from nmt.decoding.exported import choose_export
from nmt.decoding.run_translator import RunTranslator
from nmt.extras import require


def load_export(
    run: str | None, epoch: str | None, decoding: Mapping[str, Any] | DecodingConfig, export: str | None
) -> RunTranslator:
    """Return the translator of an export.

    Args:
        run: name of the run; None: the run that trained last.
        epoch: weights that the export must have; None: any.
        decoding: settings of decoding, or values for keys of the run's own; a value of None leaves its key as it is.
        export: name of the export in the run, or a folder; None: the export written last.

    Raises:
        NmtError: as of ``choose_export``.
        NotFoundError: if the run, the export or CTranslate2 is missing.
        ConfigError: if a value of ``decoding`` breaks the schema.
        DataError: if the export is damaged.
    """
    require("fast", "ctranslate2")
    chosen, exported = choose_export(run, epoch, export)
    if not isinstance(decoding, DecodingConfig):
        decoding = change_decoding(exported.run.config().decoding, dict(decoding))

    from nmt.decoding.ctranslate2_translator import CTranslate2Translator  # noqa: PLC0415 - an extra

    return RunTranslator(chosen, CTranslate2Translator.load(exported, decoding))
