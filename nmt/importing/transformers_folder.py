"""Reader of Marian models in the folder format of transformers, such as OPUS-MT's. It runs no code of a folder."""

from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from nmt.config.schema import DecodingConfig
from nmt.config.transformer import TransformerConfig
from nmt.data.manifest import SIDES
from nmt.errors import DataError
from nmt.export import process
from nmt.export.huggingface import EPSILON, HuggingFaceExporter
from nmt.export.marian import DECODER, ENCODER, SHARED
from nmt.extras import require
from nmt.importing.answers import convert_pickle
from nmt.importing.original import Original, section, sides_of, supported_value
from nmt.models.layers.positions import sinusoidal_encoding
from nmt.storage.arrays import Arrays
from nmt.storage.atomic import scratch_folder
from nmt.storage.json_file import read_json
from nmt.tokenizers.base import BOS, EOS, PAD

KEYS = {
    "d_model": "d_model", "encoder_layers": "encoder_layers", "decoder_layers": "decoder_layers",
    "encoder_ffn_dim": "d_ff", "encoder_attention_heads": "heads", "dropout": "dropout",
    "attention_dropout": "attention_dropout", "activation_dropout": "feed_forward_dropout",
    "scale_embedding": "scale_embeddings",
}  # fmt: skip
"""Keys of section model by the keys of config.json."""
DEFAULTS = {
    "tie_word_embeddings": True, "share_encoder_decoder_embeddings": True, "scale_embedding": False, "num_beams": 1,
    "length_penalty": 1.0,
}  # fmt: skip
"""Values of transformers for keys that a folder leaves out."""
SPECIAL = {"pad": "<pad>", "unk": "<unk>", "eos": "</s>"}
"""Pieces of special tokens, unless tokenizer_config.json names other pieces."""
ACTIVATIONS = {"relu": "relu", "swish": "swish", "silu": "swish"}
"""Activations of nmt by the names of transformers."""
POSITION_TOLERANCE = 1e-3
"""Largest difference of a stored table of position vectors from sinusoids."""


def read_folder(folder: Path) -> Original:
    """Return the model in a folder; raises NotFoundError or DataError for files or models that cannot be read."""
    path, settings = folder / "config.json", _object(folder / "tokenizer_config.json", required=False)
    values = DEFAULTS | _object(path) | _object(folder / "generation_config.json", required=False)
    supported_value(values, "model_type", {"marian": ""}, path)
    supported_value(values, "decoder_attention_heads", {str(values.get("encoder_attention_heads")): ""}, path)
    tied = bool(values["tie_word_embeddings"])
    shared = tied and bool(values["share_encoder_decoder_embeddings"])
    arrays, file = _arrays(folder)
    if shared and SHARED in arrays:
        arrays = dict.fromkeys((ENCODER, DECODER), arrays[SHARED]) | arrays
    if DECODER not in arrays:
        raise DataError(f"{file} has no array {DECODER}, unlike a Marian model. Choose another model.")
    arrays = {SHARED: arrays[DECODER], "final_logits_bias": np.zeros(arrays[DECODER].shape[:1], np.float32)} | arrays
    names = ["vocab.json", "target_vocab.json" if settings.get("separate_vocabs") is True else "vocab.json"]
    source_bos = settings.get("sp_model_kwargs") == {"add_bos": True}
    pad, unk, eos = (str(settings.get(f"{name}_token") or piece) for name, piece in SPECIAL.items())
    special = [pad, unk, values.get("decoder_start_token_id"), eos]
    models = [folder / f"{side}.spm" for side in SIDES]
    source, target = sides_of(models, names, [_object(folder / name) for name in names], special)
    if [values.get("pad_token_id"), values.get("eos_token_id")] != [target.special[PAD], target.special[EOS]]:
        raise DataError(f"{path} has other pad_token_id or eos_token_id than {names[1]}. Restore a copy.")
    pad_starts = target.special[PAD] == target.special[BOS]  # then a bias keeps search from one of the two
    has_bias = pad_starts or bool(target.extra_pieces) or bool(arrays["final_logits_bias"].any())
    tables = [array for name, array in arrays.items() if "embed_positions" in name and array.ndim == 2]
    config = section(TransformerConfig, {
        **{key: values[their_key] for their_key, key in KEYS.items() if their_key in values},
        "activation": supported_value(values, "activation_function", ACTIVATIONS, path),
        "layer_norm_epsilon": EPSILON, "source_bos": source_bos,
        "tie_embeddings": "none" if not tied else "all" if shared else "output", "output_bias": tied and has_bias,
        **_positions(tables),
    }, path)  # fmt: skip
    files = [file, path, *(folder / name for name in dict.fromkeys(names)), *models]
    search = {"beam_size": values["num_beams"], "length_penalty": values["length_penalty"]}
    return Original("transformers", config, section(DecodingConfig, search, path), arrays, source, target, files)


def _object(path: Path, *, required: bool = True) -> dict[str, Any]:
    """Return the keys of a JSON file; without a file that is not required, none. Raises DataError if it is damaged."""
    values = read_json(path, "A part of a model of transformers") if required or path.is_file() else {}
    if not isinstance(values, dict):
        raise DataError(f"{path} is damaged: it holds no keys. Restore a copy.")
    return values


def _arrays(folder: Path) -> tuple[Arrays, Path]:
    """Return the arrays and their file. A PyTorch file is a pickle, so its arrays are converted in a process."""
    path = folder / "model.safetensors"
    if not path.is_file():
        path = folder / "pytorch_model.bin"
        if not path.is_file():
            raise DataError(f"{folder} has no weights: neither model.safetensors nor {path.name}. Restore a copy.")
        require("huggingface", "torch")
        with scratch_folder() as scratch:
            converted = scratch / "model.safetensors"
            process.call(HuggingFaceExporter, convert_pickle, str(path), str(converted))
            return load_file(converted), path
    try:
        return load_file(path), path
    except Exception as error:  # a forged file fails in many ways
        reason = str(error).strip().partition("\n")[0][:200] or type(error).__name__
        raise DataError(f"{path} cannot be read, or holds more than weights: {reason}. Restore a copy.") from None


def _positions(tables: list[np.ndarray]) -> dict[str, Any]:
    """Return the keys of section model for stored tables of position vectors: none if all of them are sinusoids."""
    for table in tables:
        sinusoids = sinusoidal_encoding(len(table), table.shape[-1] // 2 * 2)
        sinusoids = np.concatenate([sinusoids[:, ::2], sinusoids[:, 1::2]], axis=1)
        if sinusoids.shape != table.shape or np.abs(sinusoids - table).max(initial=0) > POSITION_TOLERANCE:
            return {"positions": "learned", "max_positions": len(table)}
    return {}
