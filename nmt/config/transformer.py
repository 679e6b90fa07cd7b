"""Model section of the Transformer."""

from typing import Literal

from pydantic import Field

from nmt.config.architecture import BatchShape, LengthLimits, ModelConfig
from nmt.config.record import Contradiction
from nmt.errors import counted


class TransformerConfig(ModelConfig):
    """Sizes and variants of the Transformer (Vaswani et al. 2017, "Attention Is All You Need", below: the paper)."""

    architecture: Literal["transformer"] = "transformer"
    """Architecture of the model."""
    encoder_layers: int = Field(6, ge=1, le=1_000)
    """Number of encoder layers (N in the paper)."""
    decoder_layers: int = Field(6, ge=1, le=1_000)
    """Number of decoder layers (N in the paper)."""
    decoder: Literal["attention", "ssru"] = "attention"
    """Block of a decoder layer that reads the earlier target tokens: ``attention``, self-attention, as in the paper;
    ``ssru``, a simpler simple recurrent unit (Kim et al. 2019), whose state is one vector, so that translation is
    faster."""
    d_model: int = Field(512, ge=2, le=65_536, multiple_of=2)
    """Width of the residual stream. It is even, since sinusoids come in pairs of sine and cosine."""
    d_ff: int = Field(2048, ge=1, le=2**20)
    """Inner width of the feed-forward blocks."""
    activation: Literal["relu", "swish"] = "relu"
    """Activation of the feed-forward blocks: ``relu``, max(0, x), as in the paper; ``swish``, x sigmoid(x)
    (Ramachandran et al. 2017), as in Marian's models."""
    heads: int = Field(8, ge=1, le=65_536)
    """Number of attention heads (h in the paper)."""
    head_size: int | None = Field(None, ge=1, le=65_536)
    """Width of the queries, keys and values of a head (d_k in the paper); null: d_model / heads."""
    attention_scale: Literal["head", "projection"] = "head"
    """Divisor of attention scores: ``head``, sqrt(head_size), as in the paper; ``projection``, sqrt(heads x head_size),
    which flattens the softmax."""
    query_key_norm: bool = False
    """Whether attention scales queries and keys to a mean square of 1, so that it depends on their directions alone
    (after Henry et al. 2020, "Query-Key Normalization for Transformers"). Exports to CTranslate2 then need its version
    4.7: older ones ignore the norms and translate wrongly."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Dropout rate on the embeddings and on the output of each block, before the residual sum."""
    attention_dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout rate on the attention weights, after the softmax."""
    feed_forward_dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout rate within the feed-forward blocks, after the activation."""
    word_dropout: float = Field(0.0, ge=0, lt=1)
    """Share of source and target words that training replaces with unk, so that the model learns to translate sentences
    with unknown words."""
    norm_placement: Literal["post", "pre"] = "post"
    """Place of layer normalization: after each residual sum (``post``, as in the paper) or before each block
    (``pre``)."""
    initializer: Literal["glorot", "small"] = "glorot"
    """Initial values of matrices. ``glorot``: uniform with a range by their width (Glorot and Bengio 2010), and normal
    with standard deviation 1 / sqrt(d_model) for embeddings. ``small``: normal with standard deviation 0.02 (Devlin et
    al. 2019, "BERT"), so that with post-norm each residual sum starts near its input."""
    cross_attention_initializer: Literal["same", "copying"] = "same"
    """Initial values of cross-attention. ``same``: as set by ``initializer``. ``copying``: the same plus one random
    orthogonal matrix for queries, keys and values, and its transpose for the output. So the decoder starts by attending
    to source words with similar embeddings and adding them (after Trockman and Kolter 2023, "Mimetic Initialization",
    for self-attention). With ``training.initial_embeddings: cooccurrence``, translations have similar embeddings."""
    self_attention_initializer: Literal["same", "neighbors"] = "same"
    """Initial values of self-attention. ``same``: as set by ``initializer``. ``neighbors``: the same, but two heads of
    each layer start with attention to the words beside a word: in the encoder to the word before and the word after, in
    the decoder to the two words before. Needs ``positions: rotary``."""
    layer_norm_epsilon: float = Field(1e-6, gt=0, lt=1)
    """Epsilon that layer normalization adds to the variance."""
    share_decoder_norm: bool = False
    """Whether both attention blocks of a decoder layer share a layer norm; only with post-norm."""
    encoder_residual: bool = True
    """Whether encoder layers add the input of each block to its output; false is for comparisons."""
    encoder_norm: bool = True
    """Whether the encoder has layer norms; false is for comparisons."""
    encoder_feed_forward: bool = True
    """Whether encoder layers have a feed-forward block; false is for comparisons."""
    word_embedding: Literal["trained", "sinusoidal"] = "trained"
    """Word embeddings: ``trained``, as in the paper; ``sinusoidal``, fixed, with position i's encoding for id i."""
    scale_embeddings: bool = True
    """Whether word embeddings are multiplied by sqrt(d_model) (section 3.4 of the paper)."""
    tie_embeddings: Literal["none", "output", "all"] = "output"
    """Shared matrices: ``output``, target embedding and output layer; ``all``, also the source embedding (needs
    ``data.joint_vocabulary``); ``none``."""
    output_bias: bool = False
    """Whether an output layer that is tied to the target embedding has a bias, as in Marian's models. An output layer
    that is not tied always has a bias."""
    positions: Literal["sinusoidal", "learned", "rotary"] = "sinusoidal"
    """Position embeddings: ``sinusoidal``, as in the paper; ``learned``, up to ``max_positions``; ``rotary``, which
    rotate the queries and keys of self-attention, so that scores depend on distances (Su et al. 2021)."""
    position_base: float = Field(10_000.0, gt=1, le=1e12)
    """Base of the sinusoids: the wavelengths of their columns rise from 2 pi to nearly base x 2 pi positions (section
    3.5 of the paper). Sinusoidal word embeddings and rotary positions use it too."""
    max_positions: int = Field(512, ge=2, le=2**20)
    """Number of learned positions: the limit on the tokens of a sentence, including bos and eos. Longer sentences are
    refused."""
    source_bos: bool = True
    """Whether the encoder reads bos before the source sentence."""
    target_bos: bool = True
    """Whether the decoder starts from the trained vector of bos. false: from a vector of zeros, as Marian's models do,
    which an export to Bergamot needs."""

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
        """Longest source and target sentences: ``max_positions`` with learned positions, no limit with others."""
        most = self.max_positions if self.positions == "learned" else None
        return LengthLimits(most, most)

    def settings_for_length(self, tokens: int) -> str:
        """Return the settings that let the model read sentences of N tokens."""
        return f"model.max_positions={tokens}, or model.positions=sinusoidal"

    def activations(self, batch: BatchShape) -> float:
        """Return about how many values a training step keeps, with measured factors of D."""
        scores = self.heads * (3 if self.attention_dropout else 1)  # values for each pair of query and key
        encoder = batch.source_tokens * (10 * self.d_model + self.d_ff) + scores * batch.pairs * batch.source**2
        decoder = batch.target_tokens * (17 * self.d_model + self.d_ff)
        read = batch.source + (batch.target if self.decoder == "attention" else 0)
        decoder += scores * batch.pairs * batch.target * read
        return self.encoder_layers * encoder + self.decoder_layers * decoder

    def multiplications(self, source: int, target: int, vocabulary: int) -> int:
        """Return the number of multiplications in a forward pass; masked scores count too (Chowdhery et al. 2022)."""
        width = self.heads * self.size_per_head
        projection, feed_forward = self.d_model * width, 2 * self.d_model * self.d_ff
        encoder = source * (4 * projection + self.encoder_feed_forward * feed_forward) + 2 * width * source**2
        # Two of the four projections of cross-attention, keys and values, read the source.
        decoder = target * (2 * projection + feed_forward) + source * 2 * projection + 2 * width * target * source
        if self.decoder == "ssru":
            decoder += target * 2 * self.d_model**2
        else:
            decoder += target * 4 * projection + 2 * width * target**2
        return self.encoder_layers * encoder + self.decoder_layers * decoder + target * self.d_model * vocabulary

    @property
    def schedule_width(self) -> int:
        """Width D that the noam schedule divides by (the paper, equation 3)."""
        return self.d_model

    @property
    def description(self) -> str:
        """Sizes of the model in a phrase."""
        decoder = " with SSRU" if self.decoder == "ssru" else ""
        return (
            f"transformer, {self.encoder_layers} + {self.decoder_layers} layers{decoder}, d_model {self.d_model:,}, "
            f"d_ff {self.d_ff:,}, {counted(self.heads, 'head')}"
        )

    @property
    def size_per_head(self) -> int:
        """Width of a head: ``head_size``, or its default."""
        return self.head_size if self.head_size is not None else self.d_model // self.heads

    def contradictions(self) -> list[Contradiction]:
        """Return the rules about several keys."""
        fitting = [heads for heads in range(1, min(self.d_model, 2 * self.heads) + 1) if self.d_model % heads == 0]
        nearest = min(fitting, key=lambda heads: abs(heads - self.heads))
        return [
            (self.head_size is None and self.d_model % self.heads > 0, "heads d_model",
             f"heads must divide d_model unless head_size is set. Nearest: heads {nearest}"),
            (self.positions == "rotary" and self.size_per_head % 2 > 0, "positions heads d_model head_size",
             f"Rotary positions rotate pairs of channels, so the size of a head, {self.size_per_head}, must be even. "
             "Set an even head_size, or positions: sinusoidal"),
            (self.self_attention_initializer == "neighbors" and self.positions != "rotary",
             "self_attention_initializer positions",
             "Heads find neighbors by rotary positions. Set positions: rotary, or self_attention_initializer: same"),
            (self.word_embedding == "sinusoidal" and self.tie_embeddings != "none", "word_embedding tie_embeddings",
             "A fixed embedding cannot be tied to a trained output layer. Set tie_embeddings: none"),
            (self.output_bias and self.tie_embeddings == "none", "output_bias tie_embeddings",
             "An output layer that is not tied always has a bias. Set output_bias: false"),
            (self.share_decoder_norm and self.norm_placement == "pre", "share_decoder_norm norm_placement",
             "Only norms after blocks can be shared. Set norm_placement: post, or share_decoder_norm: false"),
        ]  # fmt: skip
