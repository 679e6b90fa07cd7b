"""Reader of Marian's own files: an npz of arrays with its description inside, and vocabularies in YAML."""

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
from nmt.importing.original import NO_ROW, Original, chosen, section, sides_of
from nmt.models.layers.positions import BASE
from nmt.storage.arrays import Arrays
from nmt.storage.json_file import MAX_JSON

EPSILON = 1e-6
"""Epsilon of layer normalization in Marian."""
MOST_TIMES = 20
"""Largest size of the arrays as a multiple of the file's."""
NO, YES = {"false": False, "None": False}, {"true": True, "false": False, "None": False}
ONLY: dict[str, dict[str, Any]] = {
    "type": {"transformer": ""}, "transformer-preprocess": {"": ""}, "transformer-postprocess": {"dan": ""},
    "transformer-postprocess-emb": {"d": "", "": ""}, "transformer-postprocess-top": {"": "", "None": ""},
    "transformer-decoder-autoreg": {"self-attention": ""}, "transformer-no-projection": NO,
    "transformer-train-position-embeddings": NO, "transformer-tied-layers": {"[]": "", "None": ""},
}  # fmt: skip
"""Options of Marian with the values that are carried: those of OPUS-MT."""
NUMBERS = {
    "d_model": "dim-emb", "encoder_layers": "enc-depth", "decoder_layers": "dec-depth", "heads": "transformer-heads",
    "d_ff": "transformer-dim-ffn",
}  # fmt: skip
NAMES = {
    "model.shared.weight": "Wemb", "model.encoder.embed_tokens.weight": "encoder_Wemb",
    "model.decoder.embed_tokens.weight": "decoder_Wemb", "lm_head.weight": "decoder_ff_logit_out_W",
    "final_logits_bias": "decoder_ff_logit_out_b",
}  # fmt: skip
"""Arrays of Marian by the names of transformers."""


def read_npz(folder: Path) -> Original:
    """Return the model in a folder of an OPUS-MT release: ``*.npz``, ``*vocab*.yml``, ``source.spm``, ``target.spm``.

    Raises DataError for options that are not carried, and for damaged or missing files.
    """
    [file, *others], vocabularies = sorted(folder.glob("*.npz")), sorted(folder.glob("*vocab*.yml"))
    if others or len(vocabularies) not in (1, 2):
        raise DataError(
            f"{folder} has {counted(1 + len(others), 'file')} *.npz and {counted(len(vocabularies), 'file')} "
            "*vocab*.yml. A model has one, and one or two vocabularies. Leave the others out."
        )
    raw = _arrays(file)
    options = _yaml(raw.pop("special:model.yml", np.zeros(0)).tobytes().rstrip(b"\0"), file)
    for key, allowed in ONLY.items():
        chosen(options, key, allowed, file)
    shared, tied = (chosen(options, f"tied-embeddings{end}", YES, file) for end in ("-all", ""))
    config = section(TransformerConfig, {
        **{ours: _number(options.get(key)) for ours, key in NUMBERS.items()},
        "activation": chosen(options, "transformer-ffn-activation", {"relu": "relu", "swish": "swish"}, file),
        "tie_embeddings": "all" if shared else "output" if tied else "none", "output_bias": shared or tied,
        "layer_norm_epsilon": EPSILON, "source_bos": False,
    }, file)  # fmt: skip
    width = config.d_model  # its exponents are i / (D/2 - 1), the paper's i / (D/2)
    config = config.model_copy(update={"position_base": float(BASE ** (width / max(1, width - 2)))})
    # Two files are named by their side, such as vocab.src.yml and vocab.trg.yml, which is also their order.
    paths, special = [vocabularies[0], vocabularies[-1]], [NO_ROW, "<unk>", NO_ROW, "</s>"]
    read = [{piece: _number(id_) for piece, id_ in _yaml(path.read_bytes(), path).items()} for path in paths]
    source, target = sides_of(folder, [path.name for path in paths], read, special)
    decoding = DecodingConfig.model_validate({"beam_size": 6, "length_penalty": 1.0})
    return Original("marian", config, decoding, _renamed(raw, file), source, target, [file, *vocabularies])


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
    """Return a map of strings and lists: no value has a type, so that the pieces "yes" and "1" stay text."""
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


def _renamed(raw: Arrays, file: Path) -> Arrays:
    """Return the arrays by the names of transformers, matrices transposed."""
    found, names = Arrays(), {marians: theirs for theirs, marians in NAMES.items()}
    layer = re.compile("(encoder|decoder)_l([0-9]+)_(self|context|ffn)_(?:(W|b)([qkvo12])|(?:Wo|ffn)_ln_(scale|bias))")
    blocks = {"self": "self_attn", "context": "encoder_attn", "ffn": "final"}
    parts = {"1": "fc1", "2": "fc2", "o": "out_proj"}
    for name, array in raw.items():
        if match := layer.fullmatch(name):
            stack, number, block, kind, part, norm = (group or "" for group in match.groups())
            inner = f"{blocks[block]}_layer_norm" if norm else parts.get(part, f"{part}_proj")
            inner = f"{blocks[block]}.{inner}" if part and block != "ffn" else inner
            end = "weight" if kind == "W" or norm == "scale" else "bias"
            theirs = f"model.{stack}.layers.{int(number) - 1}.{inner}.{end}"
            if theirs in found:
                raise DataError(
                    f"{file} has two arrays for layer {int(number)}, such as {name[:80]!r}. Restore a copy."
                )
            found[theirs] = array.T if kind == "W" else array.reshape(-1)
        elif name in names:
            found[names[name]] = array.T if name == "decoder_ff_logit_out_W" else array
        else:
            raise DataError(f"{file} has an array {name[:80]!r}, which nmt's model has not. Choose another model.")
    return found
