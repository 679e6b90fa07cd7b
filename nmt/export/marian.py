"""Marian's names of the arrays of a Transformer, which models of Marian and exports to Bergamot have."""

from nmt.config.transformer import TransformerConfig
from nmt.models.layers.positions import BASE

EPSILON = 1e-6
"""Epsilon of layer normalization in Marian."""
SHARED, ENCODER, DECODER, OUTPUT, BIAS = (
    "model.shared.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight",
    "final_logits_bias",
)  # fmt: skip
"""Names of the word vectors and of the output layer in transformers."""


def position_base(width: int) -> float:
    """Return the base of the sinusoids for a model of width D.

    Marian's exponents are i / (D/2 - 1), and the paper's i / (D/2).
    """
    return float(BASE ** (width / max(1, width - 2)))


def marian_names(config: TransformerConfig) -> dict[str, str]:
    """Return Marian's name of each array that a Transformer may have, by the name in transformers.

    The names of an SSRU, which transformers does not have, are those of ``nmt.export.huggingface.weight_map``.
    """
    names = {
        SHARED: "Wemb", ENCODER: "encoder_Wemb", DECODER: "decoder_Wemb", OUTPUT: "decoder_ff_logit_out_W",
        BIAS: "decoder_ff_logit_out_b",
    }  # fmt: skip

    def linear(ours: str, theirs: str, suffix: str) -> None:
        names[f"{ours}.weight"] = f"{theirs}_W{suffix}"
        names[f"{ours}.bias"] = f"{theirs}_b{suffix}"

    def norm(ours: str, theirs: str) -> None:
        names[f"{ours}.weight"] = f"{theirs}_ln_scale"
        names[f"{ours}.bias"] = f"{theirs}_ln_bias"

    def attention(ours: str, theirs: str) -> None:
        for part, suffix in (("q_proj", "q"), ("k_proj", "k"), ("v_proj", "v"), ("out_proj", "o")):
            linear(f"{ours}.{part}", theirs, suffix)
        norm(f"{ours}_layer_norm", f"{theirs}_Wo")

    for stack, layers in (("encoder", config.encoder_layers), ("decoder", config.decoder_layers)):
        for number in range(layers):
            ours, theirs = f"model.{stack}.layers.{number}", f"{stack}_l{number + 1}"
            if stack == "decoder" and config.decoder == "ssru":
                names[f"{ours}.ssru.weight"] = f"{theirs}_rnn_W"
                linear(f"{ours}.ssru.forget", f"{theirs}_rnn", "f")
                norm(f"{ours}.ssru_layer_norm", f"{theirs}_rnn_ffn")
            else:
                attention(f"{ours}.self_attn", f"{theirs}_self")
            if stack == "decoder":
                attention(f"{ours}.encoder_attn", f"{theirs}_context")
            linear(f"{ours}.fc1", f"{theirs}_ffn", "1")
            linear(f"{ours}.fc2", f"{theirs}_ffn", "2")
            norm(f"{ours}.final_layer_norm", f"{theirs}_ffn_ffn")
    return names
