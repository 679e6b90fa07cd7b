"""Model section of the Transformer."""

from typing import Literal

from pydantic import Field

from nmt.config.architecture import BatchShape, LengthLimits, ModelConfig
from nmt.config.record import Contradiction
from nmt.errors import counted


class TransformerConfig(ModelConfig):
    """The Transformer (Vaswani et al. 2017, "Attention Is All You Need"), sized and varied."""

    architecture: Literal["transformer"] = "transformer"
    """Architecture of the model."""
    encoder_layers: int = Field(6, ge=1, le=1_000)
    """Layers of the encoder (N in the paper)."""
    decoder_layers: int = Field(6, ge=1, le=1_000)
    """Layers of the decoder (N in the paper)."""
    d_model: int = Field(512, ge=2, le=65_536, multiple_of=2)
    """Width of the residual stream; even, since sinusoids come in pairs of sine and cosine."""
    d_ff: int = Field(2048, ge=1, le=2**20)
    """Inner width of the feed-forward blocks."""
    activation: Literal["relu", "swish"] = "relu"
    """Activation of the feed-forward blocks: ``relu``, max(0, x), as in the paper; ``swish``, x sigmoid(x)
    (Ramachandran et al. 2017), as in Marian's models."""
    heads: int = Field(8, ge=1, le=65_536)
    """Attention heads (h in the paper)."""
    head_size: int | None = Field(None, ge=1, le=65_536)
    """Size of the queries, keys and values of one head (d_k in the paper); null: d_model / heads."""
    attention_scale: Literal["head", "projection"] = "head"
    """Divisor of attention scores: ``head``, sqrt(head_size), as in the paper; ``projection``, sqrt(heads x head_size),
    which flattens the softmax."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Dropout rate on the embeddings and on the output of each block, before the residual sum."""
    attention_dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout rate on the attention weights, after the softmax."""
    feed_forward_dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout rate within the feed-forward blocks, after the activation."""
    word_dropout: float = Field(0.0, ge=0, lt=1)
    """Share of source and target words that training replaces by unk, so that the model learns to translate around
    unknown words."""
    norm_placement: Literal["post", "pre"] = "post"
    """Place of layer normalization: after each residual sum (``post``, the paper) or before each block (``pre``)."""
    initializer: Literal["glorot", "small"] = "glorot"
    """Initial values of matrices: ``glorot``, uniform by their width (Glorot and Bengio 2010), embeddings normal with
    deviation 1 / sqrt(d_model); ``small``, normal with deviation 0.02 (Devlin et al. 2019, "BERT"), so that with
    post-norm each residual sum starts near its input."""
    cross_attention_initializer: Literal["same", "copying"] = "same"
    """Initial values of cross-attention: ``same``, as ``initializer`` says; ``copying``, to which one random orthogonal
    matrix is added for queries, keys, values and, transposed, the output: the decoder starts by attending to source
    words like its own and adding what it attends to (after Trockman and Kolter 2023, "Mimetic Initialization", for
    self-attention). With ``training.initial_embeddings: cooccurrence``, words are like their translations."""
    layer_norm_epsilon: float = Field(1e-6, gt=0, lt=1)
    """Epsilon that layer normalization adds to the variance."""
    share_decoder_norm: bool = False
    """Whether both attention blocks of a decoder layer share a layer norm; post-norm only."""
    encoder_residual: bool = True
    """Whether encoder layers add the input of each block to its output; false shows what residual sums are worth."""
    encoder_norm: bool = True
    """Whether the encoder has layer norms; false shows what they are worth."""
    encoder_feed_forward: bool = True
    """Whether encoder layers have a feed-forward block; false shows what it is worth."""
    word_embedding: Literal["trained", "sinusoidal"] = "trained"
    """Word embeddings: ``trained``, as in the paper; ``sinusoidal``, fixed, row i being the encoding of position i."""
    scale_embeddings: bool = True
    """Whether word embeddings are multiplied by sqrt(d_model) (section 3.4 of the paper)."""
    tie_embeddings: Literal["none", "output", "all"] = "output"
    """Shared matrices: ``output``, target embedding and output layer; ``all``, the source embedding too (needs
    ``data.joint_vocabulary``); ``none``."""
    output_bias: bool = False
    """Whether an output layer that is the target embedding has a bias, as in Marian's models. One of its own has."""
    positions: Literal["sinusoidal", "learned", "rotary"] = "sinusoidal"
    """Position embeddings: ``sinusoidal``, the paper's; ``learned``, up to ``max_positions``; ``rotary``, which turn
    the queries and keys of self-attention, so that scores depend on distances (Su et al. 2021)."""
    position_base: float = Field(10_000.0, gt=1, le=1e12)
    """Base of the sinusoids: the wavelengths of their columns rise from 2 pi to nearly base x 2 pi positions (section
    3.5 of the paper). Sinusoidal word embeddings and the angles of rotary positions have the same base."""
    max_positions: int = Field(512, ge=2, le=2**20)
    """Number of learned positions: tokens of the longest sentence, bos and eos included. Longer ones are refused."""
    source_bos: bool = True
    """Whether the encoder reads bos before the source sentence."""

    @property
    def reads_bos(self) -> bool:
        """Whether the encoder reads bos before the source sentence."""
        return self.source_bos

    @property
    def trains_embeddings(self) -> bool:
        """Whether word embeddings are trained."""
        return self.word_embedding == "trained"

    @property
    def limits(self) -> LengthLimits:
        """Longest source and target that learned positions take; no limit with others."""
        most = self.max_positions if self.positions == "learned" else None
        return LengthLimits(most, most)

    def settings_for_length(self, tokens: int) -> str:
        """Return settings of a model that reads sentences of N tokens."""
        return f"model.max_positions={tokens}, or model.positions=sinusoidal"

    def activations(self, batch: BatchShape) -> float:
        """Return about how many numbers a training step keeps, with the factors of D that measurements gave."""
        kept = self.heads * (3 if self.attention_dropout else 1)  # of each attention weight
        encoder = batch.source_tokens * (10 * self.d_model + self.d_ff) + kept * batch.pairs * batch.source**2
        decoder = batch.target_tokens * (17 * self.d_model + self.d_ff)
        decoder += kept * batch.pairs * batch.target * (batch.target + batch.source)
        return self.encoder_layers * encoder + self.decoder_layers * decoder

    def multiplications(self, source: int, target: int, vocabulary: int) -> int:
        """Return the multiplications of a forward pass; scores behind the causal mask count (Chowdhery et al. 2022)."""
        width = self.heads * self.size_per_head
        projection, feed_forward = self.d_model * width, 2 * self.d_model * self.d_ff
        encoder = source * (4 * projection + self.encoder_feed_forward * feed_forward) + 2 * width * source**2
        # Of the four projections of cross-attention two read the source: keys and values.
        decoder = target * (6 * projection + feed_forward) + source * 2 * projection
        decoder += 2 * width * target * (target + source)
        return self.encoder_layers * encoder + self.decoder_layers * decoder + target * self.d_model * vocabulary

    @property
    def schedule_width(self) -> int:
        """D, which the noam schedule divides by (Vaswani et al. 2017, equation 3)."""
        return self.d_model

    @property
    def description(self) -> str:
        """Sizes of the model in a phrase."""
        return (
            f"transformer, {self.encoder_layers} + {self.decoder_layers} layers, d_model {self.d_model:,}, "
            f"d_ff {self.d_ff:,}, {counted(self.heads, 'head')}"
        )

    @property
    def size_per_head(self) -> int:
        """Size of one head: ``head_size``, or its default."""
        return self.head_size if self.head_size is not None else self.d_model // self.heads

    def contradictions(self) -> list[Contradiction]:
        """Return the rules about several keys."""
        fitting = [heads for heads in range(1, min(self.d_model, 2 * self.heads) + 1) if self.d_model % heads == 0]
        nearest = min(fitting, key=lambda heads: abs(heads - self.heads))
        return [
            (self.head_size is None and self.d_model % self.heads > 0, "heads d_model",
             f"heads must divide d_model unless head_size is set. Nearest: heads {nearest}"),
            (self.positions == "rotary" and self.size_per_head % 2 > 0, "positions heads d_model head_size",
             f"Rotary positions turn pairs of channels: the size of a head, {self.size_per_head}, must be even. Set an "
             "even head_size, or positions: sinusoidal"),
            (self.word_embedding == "sinusoidal" and self.tie_embeddings != "none", "word_embedding tie_embeddings",
             "A fixed embedding cannot be tied to a trained output layer. Set tie_embeddings: none"),
            (self.output_bias and self.tie_embeddings == "none", "output_bias tie_embeddings",
             "An output layer of its own has a bias in any case. Set output_bias: false"),
            (self.share_decoder_norm and self.norm_placement == "pre", "share_decoder_norm norm_placement",
             "Blocks share a norm after them. Set norm_placement: post, or share_decoder_norm: false"),
        ]  # fmt: skip
