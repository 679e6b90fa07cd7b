"""Variants of the architectures, small: keys of section model by name."""

from typing import Any

SMALL: dict[str, Any] = {
    "encoder_layers": 1, "decoder_layers": 2, "d_model": 8, "d_ff": 12, "heads": 2, "dropout": 0.3, "max_positions": 12,
}  # fmt: skip
BOOK: dict[str, Any] = {  # the variants of book.yaml, all at once
    "head_size": 3, "attention_scale": "projection", "word_embedding": "sinusoidal", "scale_embeddings": False,
    "tie_embeddings": "none", "share_decoder_norm": True, "layer_norm_epsilon": 1e-3, "source_bos": False,
}  # fmt: skip
TRANSFORMERS: dict[str, dict[str, Any]] = {
    "post-norm": {},
    "pre-norm": {"norm_placement": "pre", "tie_embeddings": "none"},
    "learned": {"positions": "learned", "tie_embeddings": "all"},
    "rotary": {"positions": "rotary", "position_base": 100.0},
    "normalized queries and keys": {"positions": "rotary", "query_key_norm": True},
    "book": BOOK,
    "marian": {"activation": "swish", "output_bias": True, "tie_embeddings": "all", "feed_forward_dropout": 0.3},
    "ssru": {"decoder": "ssru", "target_bos": False, "tie_embeddings": "all"},
    "ssru, pre-norm, rotary": {"decoder": "ssru", "norm_placement": "pre", "positions": "rotary", "head_size": 6},
    "ablated": {
        "norm_placement": "pre",
        **dict.fromkeys(("encoder_residual", "encoder_norm", "encoder_feed_forward"), False),
    },
}

BIDIRECTIONAL: dict[str, Any] = {"bidirectional": True, "encoder_width": 4}
RECURRENT: dict[str, dict[str, Any]] = {
    "plain": {"attention": "none"},
    "plain of bahdanau": {"attention": "none", "step": "bahdanau", "cell": "gru"},
    "bidirectional": {"attention": "none", **BIDIRECTIONAL, "layers": 2},
    "reversed": {"attention": "none", "reverse_source": True, "cell": "gru", "layers": 2},
    "bahdanau": {
        "cell": "gru", "step": "bahdanau", "attention": "additive", "bidirectional": True, "first_state": "backward",
        "maxout_width": 5, "embedding_width": 6,
    },
    "bahdanau, reset after": {
        "cell": "gru", "step": "bahdanau", "attention": "additive", "reset_after": True, "first_state": "linear",
    },
    "bahdanau, two layers of lstm": {"step": "bahdanau", "attention": "general", "layers": 2, **BIDIRECTIONAL},
    "bahdanau, local-p": {"step": "bahdanau", "attention": "concat", "window": "local-p", "window_half_width": 2},
    # The gradient of its annotations, a loop's, has no static width.
    "bahdanau, dot, local-p": {"step": "bahdanau", "attention": "dot", "window": "local-p", "window_half_width": 1},
    "luong, dot": {"attention": "dot", "layers": 2},
    "luong, general": {"attention": "general", **BIDIRECTIONAL, "first_state": "linear"},
    "luong, concat": {"attention": "concat", "attention_width": 5, "cell": "simple"},
    "luong, scaled": {"attention": "scaled-dot", "first_state": "zero", "cell": "gru", "reset_after": True},
    "luong, local-m": {"attention": "dot", "window": "local-m", "window_half_width": 1},
    "luong, local-p": {"attention": "general", "window": "local-p", "window_half_width": 2},
    "feeding": {"attention": "general", "input_feeding": True, "layers": 2},
    "feeding, concat": {"attention": "concat", "input_feeding": True, "cell": "gru"},
    "feeding, local-m": {"attention": "dot", "input_feeding": True, "window": "local-m", "window_half_width": 1},
    "feeding, local-p": {"attention": "general", "input_feeding": True, "window": "local-p", "window_half_width": 2},
    "tied": {"attention": "dot", "tie_embeddings": "all"},
    "shared": {"attention": "dot", "tie_embeddings": "shared", "embedding_width": 3},
}  # fmt: skip
