"""Small Marian models with random weights, in the files of transformers and in those of Marian."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece
import yaml
from conftest import small_pairs
from safetensors.numpy import save_file

TINY: dict[str, Any] = {
    "architectures": ["MarianMTModel"], "model_type": "marian", "d_model": 32, "encoder_layers": 2, "decoder_layers": 2,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48,
    "activation_function": "swish", "scale_embedding": True, "max_position_embeddings": 128, "dropout": 0.1,
    "share_encoder_decoder_embeddings": True, "tie_word_embeddings": True,
}  # fmt: skip
TAGS = [">>deu<<", ">>fra<<"]
Pairs = list[tuple[str, str]]


def write_vocabularies(folder: Path, pairs: Pairs, size: int = 400, *, separate: bool = False) -> list[str]:
    """Write source.spm, target.spm and vocab.json with permuted ids, tags and bytes. Return the source pieces."""
    folder.mkdir(exist_ok=True)
    sides, random = [], np.random.default_rng(5)
    for side, texts in zip(("source", "target"), zip(*pairs, strict=True), strict=True):
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(texts), model_writer=model, vocab_size=size, byte_fallback=True,
            hard_vocab_limit=False, minloglevel=2, num_threads=1,
        )  # fmt: skip
        (folder / f"{side}.spm").write_bytes(model.getvalue())
        pieces = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
        sides.append([pieces.id_to_piece(id_) for id_ in range(3, pieces.get_piece_size())])
    least = min(map(len, sides))
    both = [side[:least] for side in sides] if separate else [[*dict.fromkeys(sides[0] + sides[1]), *TAGS]] * 2
    both = [["</s>", "<unk>", *(side[place] for place in random.permutation(len(side))), "<pad>"] for side in both]
    (folder / "vocab.json").write_text(json.dumps({piece: id_ for id_, piece in enumerate(both[0])}))
    if separate:
        (folder / "target_vocab.json").write_text(json.dumps({piece: id_ for id_, piece in enumerate(both[1])}))
        (folder / "tokenizer_config.json").write_text(json.dumps({"separate_vocabs": True}))
    return both[0]


def random_arrays(keys: dict[str, Any]) -> dict[str, np.ndarray]:
    """Return arrays by the names of MarianMTModel, those without which transformers and nmt load the model."""
    random, width, ids, inner = np.random.default_rng(3), keys["d_model"], keys["vocab_size"], keys["encoder_ffn_dim"]
    found: dict[str, np.ndarray] = {}

    def add(name: str, *shape: int, around: float = 0.0, deviation: float | None = None) -> None:
        values = random.normal(around, shape[-1] ** -0.5 if deviation is None else deviation, shape)
        found[name] = values.astype(np.float32)

    shared, tied = keys["share_encoder_decoder_embeddings"], keys["tie_word_embeddings"]
    words = ["model.shared"] if shared and tied else [f"model.{stack}.embed_tokens" for stack in ("encoder", "decoder")]
    for name in words:
        add(f"{name}.weight", ids, width)
        found[f"{name}.weight"][-1] = 0  # pad, from which decoding starts
    if not tied:
        add("lm_head.weight", ids, width)
    add("final_logits_bias", 1, ids, deviation=0.1)
    found["final_logits_bias"][0, :2] = 3, -20  # many translations end, and text has no unk
    for stack in ("encoder", "decoder"):
        for number in range(keys[f"{stack}_layers"]):
            layer = f"model.{stack}.layers.{number}"
            for block in ("self_attn", "encoder_attn")[: 1 + (stack == "decoder")]:
                for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
                    add(f"{layer}.{block}.{part}.weight", width, width)
                    add(f"{layer}.{block}.{part}.bias", width, deviation=0.1)
                add(f"{layer}.{block}_layer_norm.weight", width, around=1, deviation=0.1)
                add(f"{layer}.{block}_layer_norm.bias", width, deviation=0.1)
            for part, rows, columns in (("fc1", inner, width), ("fc2", width, inner)):
                add(f"{layer}.{part}.weight", rows, columns)
                add(f"{layer}.{part}.bias", rows, deviation=0.1)
            add(f"{layer}.final_layer_norm.weight", width, around=1, deviation=0.1)
            add(f"{layer}.final_layer_norm.bias", width, deviation=0.1)
    return found


def safetensors_folder(folder: Path, pairs: Pairs | None = None, **changes: Any) -> Path:
    """Write a folder of transformers."""
    keys = TINY | changes
    separate = not keys["share_encoder_decoder_embeddings"]
    ids = len(write_vocabularies(folder, pairs or small_pairs(), separate=separate))
    keys |= {"vocab_size": ids, "pad_token_id": ids - 1, "decoder_start_token_id": ids - 1, "eos_token_id": 0}
    (folder / "config.json").write_text(json.dumps(keys))
    (folder / "README.md").write_text("---\nlicense: cc-by-4.0\n---\n# A model\n")
    save_file(random_arrays(keys), folder / "model.safetensors", {"format": "pt"})
    return folder


def npz_folder(folder: Path, **changes: Any) -> Path:
    """Write the folder of a release of OPUS-MT: an npz of Marian, whose vocabulary has no pad."""
    pieces = write_vocabularies(folder, small_pairs())[:-1]
    (folder / "vocab.json").unlink()
    lines = [f"{json.dumps(piece, ensure_ascii=False)}: {id_}" for id_, piece in enumerate(pieces)]
    (folder / "opus.vocab.yml").write_text("\n".join(lines))
    keys = TINY | {"vocab_size": len(pieces)}
    options = {
        "type": "transformer", "dim-emb": 32, "enc-depth": 2, "dec-depth": 2, "transformer-heads": 4,
        "transformer-dim-ffn": 48, "transformer-ffn-activation": "swish", "transformer-preprocess": "",
        "transformer-postprocess": "dan", "transformer-postprocess-emb": "d", "transformer-postprocess-top": "",
        "transformer-decoder-autoreg": "self-attention", "transformer-no-projection": False,
        "transformer-train-position-embeddings": False, "transformer-tied-layers": [], "tied-embeddings-all": True,
        "tied-embeddings": False, "transformer-guided-alignment-layer": "last", **changes,
    }  # fmt: skip
    found = {}
    for name, array in random_arrays(keys).items():
        parts = name.split(".")
        if parts[0] == "final_logits_bias":
            found["decoder_ff_logit_out_b"] = array
        elif parts[1] == "shared":
            found["Wemb"] = array
        else:
            _, stack, _, number, *of_layer, kind = parts
            layer, last = f"{stack}_l{int(number) + 1}", of_layer[-1]
            block = "context" if "encoder_attn" in of_layer[0] else "self" if "attn" in of_layer[0] else "ffn"
            if "norm" in last:
                stem = "ffn_ffn" if block == "ffn" else f"{block}_Wo"
                found[f"{layer}_{stem}_ln_{'scale' if kind == 'weight' else 'bias'}"] = array[None]
            else:
                letter = last[2] if block == "ffn" else last[0]
                is_matrix = kind == "weight"
                found[f"{layer}_{block}_{'W' if is_matrix else 'b'}{letter}"] = array.T if is_matrix else array[None]
    text = yaml.safe_dump(options).encode() + b"\0"
    np.savez(folder / "model.npz", **found, **{"special:model.yml": np.frombuffer(text, np.int8)})
    return folder
