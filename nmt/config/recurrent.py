"""Model section of recurrent encoder-decoders."""

from typing import Literal

from pydantic import Field

from nmt.config.architecture import BatchShape, ModelConfig
from nmt.config.record import Contradiction

ADDITIVE = ("additive", "concat")
"""Kinds of attention with scores of the form v' tanh(...)."""


class RecurrentConfig(ModelConfig):
    """Recurrent encoder-decoders, with the attention of Bahdanau et al. (2015) or Luong et al. (2015), or without."""

    architecture: Literal["recurrent"] = "recurrent"
    """Architecture of the model."""
    cell: Literal["lstm", "gru", "simple"] = "lstm"
    """Cell of all layers."""
    reset_after: bool = False
    """Whether the reset gate of a GRU applies after the product with the state (one matrix product per step), or before
    it (Cho et al. 2014)."""
    layers: int = Field(1, ge=1, le=100)
    """Number of layers of the encoder, and of the decoder."""
    width: int = Field(512, ge=1, le=65_536)
    """Width n of the decoder's states."""
    encoder_width: int | None = Field(None, ge=1, le=65_536)
    """Width of the encoder's states in one direction; null: ``width``."""
    bidirectional: bool = False
    """Whether each encoder layer reads the source in both directions. An annotation is then the two states of a source
    token side by side."""
    reverse_source: bool = False
    """Whether the encoder reads the source from its last token to its first (Sutskever et al. 2014)."""
    embedding_width: int | None = Field(None, ge=1, le=65_536)
    """Width of word embeddings; null: ``width``."""
    tie_embeddings: Literal["none", "shared", "output", "all"] = "none"
    """Shared matrices: ``shared``, source and target embedding; ``output``, target embedding and output layer; ``all``,
    all three. ``shared`` and ``all`` need ``data.joint_vocabulary``."""
    dropout: float = Field(0.2, ge=0, lt=1)
    """Dropout rate on the inputs of each layer and of the output layer, not on states (Zaremba et al. 2014)."""
    word_dropout: float = Field(0.0, ge=0, lt=1)
    """Share of source and target words that training replaces by unk."""
    first_state: Literal["final", "linear", "backward", "zero"] = "final"
    """Initial state of the decoder: ``final``, the last state of each encoder layer, with both directions side by side;
    ``linear``, tanh of a linear map of these states; ``backward``, tanh of a linear map of the backward direction's
    states (Bahdanau et al. 2015); ``zero``."""
    attention: Literal["none", "additive", "dot", "general", "concat", "scaled-dot"] = "general"
    """Score of a decoder state s and an annotation h: v' tanh(W [s; h]) for ``additive`` (Bahdanau et al. 2015) and
    ``concat`` (Luong et al. 2015), s' h for ``dot``, s' W h for ``general``, a trained multiple of s' h for
    ``scaled-dot``."""
    attention_width: int | None = Field(None, ge=1, le=65_536)
    """Width of v in additive and concat scores, and in the predicted position of local-p; null: ``width``."""
    step: Literal["bahdanau", "luong"] = "luong"
    """Decoder step: ``bahdanau`` computes scores from the previous state, feeds the context to the cell, and has a
    maxout before the output layer; ``luong`` computes scores from the current state, then an attentional state."""
    input_feeding: bool = False
    """Whether a Luong step also reads the attentional state of the previous step."""
    maxout_width: int | None = Field(None, ge=1, le=65_536)
    """Width of the maxout in a Bahdanau step; null: ``width``."""
    window: Literal["global", "local-m", "local-p"] = "global"
    """Source tokens that attention sees: all (``global``), or 2 D + 1 tokens around the same position (``local-m``) or
    around a predicted position (``local-p``)."""
    window_half_width: int = Field(10, ge=1, le=65_536)
    """D of local windows."""
    initializer: Literal["glorot", "uniform"] = "glorot"
    """Initial values of matrices: ``glorot``, uniform with a range by their width, and orthogonal for recurrent
    matrices, as in Keras; ``uniform``, from -0.1 to 0.1 (Luong et al. 2015)."""

    @property
    def trains_embeddings(self) -> bool:
        """Whether the model trains word embeddings; it always does."""
        return True

    def activations(self, batch: BatchShape) -> float:
        """Return about how many values a training step keeps, with measured factors; padding counts too."""
        cell = self.layers * (5 if self.cell == "simple" else 16)
        readout = 4 * (self.width + (self.annotation_width if self.attention != "none" else 0))
        readout += 4 * self.input_width * (self.step == "bahdanau")
        score = 1.5 * self.score_width if self.attention in ADDITIVE else 3
        decoder = cell * self.width + readout + batch.source * score * (self.attention != "none")
        return batch.pairs * (batch.source * cell * self.annotation_width + batch.target * decoder)

    def multiplications(self, source: int, target: int, vocabulary: int) -> int:
        """Return the number of multiplications in a forward pass; annotations outside a local window count too."""
        gates = {"lstm": 4, "gru": 3, "simple": 1}[self.cell]
        width, annotation, inner = self.width, self.annotation_width, self.score_width
        attends, additive = self.attention != "none", self.attention in ADDITIVE
        # An encoder layer reads both directions of the layer below.
        encoder_inputs = self.layers * self.direction_width + self.input_width + (self.layers - 1) * annotation
        key_width = inner if additive else width if self.attention == "general" else 0
        per_source = gates * annotation * encoder_inputs + annotation * key_width
        decoder_inputs = self.input_width + (2 * self.layers - 1) * width + width * self.input_feeding
        readout = (annotation + width) * width * attends
        if self.step == "bahdanau":  # maxout of state, context and embedding
            decoder_inputs += annotation * attends
            readout = 2 * (width + annotation * attends + self.input_width) * self.output_width
        per_target = gates * width * decoder_inputs + readout + width * inner * additive
        per_target += self.output_width * vocabulary
        per_target += (width + 1) * inner * (self.window == "local-p")
        start = {"linear": annotation, "backward": self.direction_width}.get(self.first_state, 0)
        states = self.layers * (2 if self.cell == "lstm" else 1)
        per_score = ((inner if additive else width) + annotation) * attends
        return source * per_source + target * per_target + source * target * per_score + states * start * width

    @property
    def schedule_width(self) -> int:
        """Width that the noam schedule divides by."""
        return self.width

    @property
    def input_width(self) -> int:
        """Width of word embeddings."""
        return self.embedding_width or self.width

    @property
    def direction_width(self) -> int:
        """Width of the encoder's states in one direction."""
        return self.encoder_width or self.width

    @property
    def annotation_width(self) -> int:
        """Width of annotations, the outputs of the encoder's last layer."""
        return self.direction_width * (1 + self.bidirectional)

    @property
    def score_width(self) -> int:
        """Width of v in additive and concat scores."""
        return self.attention_width or self.width

    @property
    def output_width(self) -> int:
        """Width of the vector that the output layer reads."""
        return self.width if self.step == "luong" else self.maxout_width or self.width

    @property
    def description(self) -> str:
        """Sizes of the model in a phrase."""
        direction = "bidirectional " if self.bidirectional else ""
        attention = "no attention" if self.attention == "none" else f"{self.attention} attention, {self.window}"
        return f"recurrent, {direction}{self.cell} {self.layers} x {self.width:,}, {attention}, step of {self.step}"

    def contradictions(self) -> list[Contradiction]:
        """Return the rules about several keys."""
        attends, output, words = self.attention != "none", self.output_width, self.input_width
        annotations, widths = self.annotation_width, "width encoder_width bidirectional"
        fitting = "encoder_width: half of width" if self.bidirectional else "encoder_width: null"
        return [
            (self.attention in ("dot", "scaled-dot") and annotations != self.width, f"attention {widths}",
             f"Annotations are {annotations} wide, and a dot product needs the width of the decoder's states. Set "
             f"{fitting}, or attention: general"),
            (self.window != "global" and not attends, "window attention",
             "A window is the part of the source that attention sees. Set window: global, or another attention"),
            (self.input_feeding and not attends, "input_feeding attention",
             "Input feeding needs the attentional state. Set input_feeding: false, or another attention"),
            (self.input_feeding and self.step == "bahdanau", "input_feeding step",
             "This step reads the context already; input feeding belongs to step: luong. Set input_feeding: false"),
            (self.first_state == "final" and annotations != self.width, f"first_state {widths}",
             f"The encoder's last states are {annotations} wide; the decoder can only start from states as wide as its "
             f"own. Set {fitting}, or first_state: linear"),
            (self.first_state == "backward" and not self.bidirectional, "first_state bidirectional",
             "There is no backward direction. Set bidirectional: true, or first_state: linear"),
            (self.first_state == "backward" and not attends, "first_state attention",
             "Nothing would read the last layer's forward direction. Set first_state: linear, or another attention"),
            (self.first_state == "zero" and not attends, "first_state attention",
             "The decoder would know nothing of the source. Set first_state: final, or another attention"),
            (self.reverse_source and self.bidirectional, "reverse_source bidirectional",
             "A bidirectional encoder reads the source in both directions already. Set reverse_source: false"),
            (self.reset_after and self.cell != "gru", "reset_after cell",
             "Only a GRU has a reset gate. Set reset_after: false"),
            (self.tie_embeddings in ("output", "all") and output != words, "tie_embeddings embedding_width",
             f"Word embeddings are {words} wide and the input of the output layer is {output} wide. Tied matrices need "
             f"equal widths. Set embedding_width: {output}, or tie_embeddings: none"),
        ]  # fmt: skip
