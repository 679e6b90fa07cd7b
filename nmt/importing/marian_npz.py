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
from nmt.errors import DataError, counted
from nmt.importing.original import NO_ROW, Original, section, sides_of, supported_value
from nmt.models.layers.positions import BASE
from nmt.storage.arrays import Arrays
from nmt.storage.json_file import MAX_JSON

EPSILON = 1e-6
"""Epsilon of layer normalization in Marian."""
MOST_TIMES = 20
"""Largest size of the unpacked arrays, as a multiple of the size of the file."""
NO = {"false": False, "None": False}
YES_OR_NO = {"true": True, "false": False, "None": False}
SUPPORTED: dict[str, dict[str, Any]] = {
    "type": {"transformer": ""}, "transformer-preprocess": {"": ""}, "transformer-postprocess": {"dan": ""},
    "transformer-postprocess-emb": {"d": "", "": ""}, "transformer-postprocess-top": {"": "", "None": ""},
    "transformer-decoder-autoreg": {"self-attention": ""}, "transformer-no-projection": NO,
    "transformer-train-position-embeddings": NO, "transformer-tied-layers": {"[]": "", "None": ""},
}  # fmt: skip
"""Options of Marian with the values that an import supports, which are the values of OPUS-MT's models."""
NUMBERS = {
    "d_model": "dim-emb", "encoder_layers": "enc-depth", "decoder_layers": "dec-depth", "heads": "transformer-heads",
    "d_ff": "transformer-dim-ffn",
}  # fmt: skip
"""Marian's options by the keys of section model."""
NAMES = {
    "model.shared.weight": "Wemb", "model.encoder.embed_tokens.weight": "encoder_Wemb",
    "model.decoder.embed_tokens.weight": "decoder_Wemb", "lm_head.weight": "decoder_ff_logit_out_W",
    "final_logits_bias": "decoder_ff_logit_out_b",
}  # fmt: skip
"""Marian's names of arrays by the names of transformers."""


def read_npz(folder: Path) -> Original:
    """Return the model in a folder of an OPUS-MT release: ``*.npz``, ``*vocab*.yml``, ``source.spm``, ``target.spm``.

    Raises:
        DataError: for options that an import does not support, and for damaged or missing files.
    """
    files, vocabularies = sorted(folder.glob("*.npz")), sorted(folder.glob("*vocab*.yml"))
    if len(files) != 1 or len(vocabularies) not in (1, 2):
        raise DataError(
            f"{folder} has {counted(len(files), 'file')} *.npz and {counted(len(vocabularies), 'file')} *vocab*.yml. "
            "A model has one *.npz, and one or two vocabularies. Remove the other files."
        )
    file = files[0]
    raw = _arrays(file)
    options = _yaml(raw.pop("special:model.yml", np.zeros(0)).tobytes().rstrip(b"\0"), file)
    for key, allowed in SUPPORTED.items():
        supported_value(options, key, allowed, file)
    shared = supported_value(options, "tied-embeddings-all", YES_OR_NO, file)
    tied = supported_value(options, "tied-embeddings", YES_OR_NO, file)
    config = section(TransformerConfig, {
        **{key: _number(options.get(option)) for key, option in NUMBERS.items()},
        "activation": supported_value(options, "transformer-ffn-activation", {"relu": "relu", "swish": "swish"}, file),
        "tie_embeddings": "all" if shared else "output" if tied else "none", "output_bias": shared or tied,
        "layer_norm_epsilon": EPSILON, "source_bos": False,
    }, file)  # fmt: skip
    width = config.d_model  # Marian's exponents are i / (D/2 - 1), the paper's i / (D/2)
    config = config.model_copy(update={"position_base": float(BASE ** (width / max(1, width - 2)))})
    # Two vocabularies are named by their side, such as vocab.src.yml and vocab.trg.yml, so they sort as source, target.
    paths = [vocabularies[0], vocabularies[-1]]
    pieces = [{piece: _number(id_) for piece, id_ in _yaml(path.read_bytes(), path).items()} for path in paths]
    special = [NO_ROW, "<unk>", NO_ROW, "</s>"]
    source, target = sides_of(folder, [path.name for path in paths], pieces, special)
    decoding = DecodingConfig.model_validate({"beam_size": 6, "length_penalty": 1.0})
    arrays = _arrays_by_transformers_names(raw, file)
    return Original("marian", config, decoding, arrays, source, target, [file, *vocabularies])


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


def _arrays_by_transformers_names(raw: Arrays, file: Path) -> Arrays:
    """Return the arrays by the names of transformers, with matrices transposed."""
    names = {marian_name: name for name, marian_name in NAMES.items()}
    layer = re.compile("(encoder|decoder)_l([0-9]+)_(self|context|ffn)_(?:(W|b)([qkvo12])|(?:Wo|ffn)_ln_(scale|bias))")
    blocks = {"self": "self_attn", "context": "encoder_attn", "ffn": "final"}
    parts = {"1": "fc1", "2": "fc2", "o": "out_proj"}
    arrays = Arrays()
    for marian_name, array in raw.items():
        if match := layer.fullmatch(marian_name):
            stack, number, block, kind, part, norm = (group or "" for group in match.groups())
            inner = f"{blocks[block]}_layer_norm" if norm else parts.get(part, f"{part}_proj")
            inner = f"{blocks[block]}.{inner}" if part and block != "ffn" else inner
            end = "weight" if kind == "W" or norm == "scale" else "bias"
            name = f"model.{stack}.layers.{int(number) - 1}.{inner}.{end}"
            if name in arrays:
                raise DataError(
                    f"{file} has two arrays for layer {int(number)}, such as {marian_name[:80]!r}. Restore a copy."
                )
            arrays[name] = array.T if kind == "W" else array.reshape(-1)
        elif marian_name in names:
            arrays[names[marian_name]] = array.T if marian_name == "decoder_ff_logit_out_W" else array
        else:
            raise DataError(
                f"{file} has an array {marian_name[:80]!r}, which nmt's model does not have. Choose another model."
            )
    return arrays
