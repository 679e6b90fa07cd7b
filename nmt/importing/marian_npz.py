"""Reader of Marian's own files: an npz file with arrays and the model's options, and vocabularies in YAML."""

import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from nmt.config.schema import DecodingConfig
from nmt.config.transformer import TransformerConfig
from nmt.config.yaml_io import load_strings
from nmt.data.manifest import SIDES
from nmt.errors import DataError, counted
from nmt.export.marian import BIAS, EPSILON, marian_names, position_base
from nmt.importing.original import NO_ROW, Original, read_sentencepiece, section, sides_of, supported_value
from nmt.storage.arrays import Arrays
from nmt.storage.json_file import MAX_JSON

MOST_TIMES = 20
"""Largest size of the unpacked arrays, as a multiple of the size of the file."""
NO = {"false": False, "None": False}
YES_OR_NO = {"true": True, "false": False, "None": False}
SUPPORTED: dict[str, dict[str, Any]] = {
    "type": {"transformer": ""}, "transformer-preprocess": {"": ""}, "transformer-postprocess": {"dan": ""},
    "transformer-postprocess-emb": {"d": "", "": ""}, "transformer-postprocess-top": {"": "", "None": ""},
    "transformer-no-projection": NO, "transformer-rnn-projection": NO, "right-left": NO, "output-omit-bias": NO,
    "transformer-train-position-embeddings": NO, "transformer-tied-layers": {"[]": "", "None": ""},
}  # fmt: skip
"""Options of Marian with the values that an import supports, which are the values of OPUS-MT's models."""
NUMBERS = {
    "d_model": "dim-emb", "encoder_layers": "enc-depth", "decoder_layers": "dec-depth", "heads": "transformer-heads",
    "d_ff": "transformer-dim-ffn",
}  # fmt: skip
"""Marian's options by the keys of section model."""


def read_npz(folder: Path) -> Original:
    """Return the model in a folder with ``*.npz`` and its vocabularies.

    The vocabularies are sentencepiece models ``*vocab*.spm`` with the ids of the model, as students have them, or as in
    a release of OPUS-MT ``*vocab*.yml`` with the ids, ``source.spm`` and ``target.spm``.

    Raises:
        DataError: for options that an import does not support, and for damaged or missing files.
    """
    files, vocabularies = sorted(folder.glob("*.npz")), sorted(folder.glob("*vocab*.yml"))
    vocabularies = vocabularies or sorted(folder.glob("*vocab*.spm"))
    if len(files) != 1 or len(vocabularies) not in (1, 2):
        raise DataError(
            f"{folder} has {counted(len(files), 'file')} *.npz and {counted(len(vocabularies), 'file')} *vocab*.yml or "
            "*vocab*.spm. A model has one *.npz, and one or two vocabularies. Remove or restore files."
        )
    file = files[0]
    raw = _arrays(file)
    options = _yaml(raw.pop("special:model.yml", np.zeros(0)).tobytes().rstrip(b"\0"), file)
    for key, allowed in SUPPORTED.items():
        supported_value(options, key, allowed, file)
    shared = supported_value(options, "tied-embeddings-all", YES_OR_NO, file)
    tied = supported_value(options, "tied-embeddings", YES_OR_NO, file)
    reader = {"self-attention": "attention", "rnn": "ssru"}
    decoder = supported_value(options, "transformer-decoder-autoreg", reader, file)
    if decoder == "ssru":
        supported_value(options, "dec-cell", {"ssru": ""}, file)
    config = section(TransformerConfig, {
        **{key: _number(options.get(option)) for key, option in NUMBERS.items()},
        "activation": supported_value(options, "transformer-ffn-activation", {"relu": "relu", "swish": "swish"}, file),
        "tie_embeddings": "all" if shared else "output" if tied else "none", "output_bias": shared or tied,
        "layer_norm_epsilon": EPSILON, "source_bos": False, "decoder": decoder, "target_bos": decoder != "ssru",
    }, file)  # fmt: skip
    config = config.model_copy(update={"position_base": position_base(config.d_model)})
    # Two vocabularies are named by their side, such as vocab.src.yml and vocab.trg.yml, so they sort as source, target.
    paths = [vocabularies[0], vocabularies[-1]]
    models, others = paths, list[Path]()
    if paths[0].suffix == ".spm":
        pieces = [{piece.piece: id_ for id_, piece in enumerate(read_sentencepiece(path).pieces)} for path in paths]
    else:
        pieces = [{piece: _number(id_) for piece, id_ in _yaml(path.read_bytes(), path).items()} for path in paths]
        models = others = [folder / f"{side}.spm" for side in SIDES]
    special = [NO_ROW, "<unk>", NO_ROW, "</s>"]
    source, target = sides_of(models, [path.name for path in paths], pieces, special)
    decoding = DecodingConfig.model_validate({"beam_size": 6, "length_penalty": 1.0})
    arrays = _arrays_by_transformers_names(raw, config, file)
    return Original("marian", config, decoding, arrays, source, target, [file, *vocabularies, *others])


def _arrays(file: Path) -> Arrays:
    try:
        with zipfile.ZipFile(file) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > MOST_TIMES * file.stat().st_size:
                raise ValueError(f"its arrays have over {MOST_TIMES} times its bytes")
        with np.load(file, allow_pickle=False) as content:
            return {name: content[name] for name in content.files}
    except Exception as error:  # a forged header, a Python literal, fails in many ways
        raise DataError(f"{file} is damaged: {str(error)[:200] or type(error).__name__}. Restore a copy.") from None


def _yaml(content: bytes, file: Path) -> dict[str, Any]:
    """Return the keys of a YAML file, with values that are strings and lists: the pieces "yes" and "1" stay text."""
    try:
        if len(content) > MAX_JSON:
            raise ValueError(f"it has {len(content):,} bytes, over {MAX_JSON:,}")
        values = load_strings(content.decode())
        if isinstance(values, dict):
            return values
        problem = "it holds no keys"
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        problem = " ".join(str(error).split())[:200]
    raise DataError(f"{file} is damaged: {problem}. Restore a copy.")


def _number(value: object) -> Any:
    return int(value) if isinstance(value, str) and re.fullmatch("[0-9]{1,9}", value) else value


def _arrays_by_transformers_names(raw: Arrays, config: TransformerConfig, file: Path) -> Arrays:
    """Return the arrays by the names of transformers, with matrices transposed.

    Raises:
        DataError: for an array that the described model does not have.
    """
    names = {theirs: ours for ours, theirs in marian_names(config).items()}
    arrays = Arrays()
    for marian_name, array in raw.items():
        if marian_name not in names:
            raise DataError(
                f"{file} has an array {marian_name[:80]!r}, which the model that it describes does not have in nmt. "
                "Restore a copy, or choose another model."
            )
        name, kind = names[marian_name], marian_name.rpartition("_")[2]
        if kind == "Wemb" or name == BIAS:
            arrays[name] = array
        else:
            arrays[name] = array.T if kind.startswith("W") else array.reshape(-1)
    return arrays
