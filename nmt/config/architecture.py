"""Base class of the model sections of all architectures, and the table of these sections.

``nmt.config.schema`` puts the section of each architecture into ``MODEL_CONFIGS``.
"""

from typing import Any, ClassVar, NamedTuple, Self

from pydantic import ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from nmt.config.record import Section

DEFAULT_ARCHITECTURE = "transformer"
MODEL_CONFIGS: dict[str, type["ModelConfig"]] = {}
"""Section of each architecture by its name."""


class LengthLimits(NamedTuple):
    """Lengths of the longest sentences that a model reads, in tokens with bos and eos; None: no limit."""

    source: int | None
    target: int | None


class BatchShape(NamedTuple):
    """Size of a batch of sentence pairs; lengths include eos."""

    pairs: int
    """Number of pairs, B."""
    source: int
    """Length of the longest source sentence, S."""
    target: int
    """Length of the longest target sentence, T."""
    source_tokens: int
    """Number of source tokens that the layers process: N without padding if it is removed, else B x S."""
    target_tokens: int
    """Number of target tokens that the layers process, likewise."""


class ModelConfig(Section):
    """Base class of the model sections. Validating a dict returns the section of the architecture that it names."""

    section: ClassVar = "model"

    architecture: str = "transformer"
    """Architecture of the model."""

    @property
    def reads_bos(self) -> bool:
        """Whether the encoder reads bos before the source sentence."""
        return False

    @property
    def trains_embeddings(self) -> bool:
        """Whether the model trains word embeddings, so that initial values can be chosen for them."""
        return False

    @property
    def has_dropout(self) -> bool:
        """Whether a key that ends in "dropout" is above 0, so that two passes over a batch differ."""
        return any(value for key, value in self if key.endswith("dropout"))

    @property
    def limits(self) -> LengthLimits:
        """Longest source and target sentences that the model reads."""
        return LengthLimits(None, None)

    def settings_for_length(self, tokens: int) -> str:
        """Return the settings that let the model read sentences of N tokens, for messages; empty without limits."""
        return ""

    def activations(self, batch: BatchShape) -> float:
        """Return about how many values a training step keeps for its gradient, without logits; 0 if unknown."""
        return 0.0

    def multiplications(self, source: int, target: int, vocabulary: int) -> int:
        """Return the number of multiplications in a forward pass over a sentence pair, for benchmarks; 0 if unknown.

        Matrix products of real tokens count. Embedding look-ups, norms, softmax, dropout and biases do not.

        Args:
            source: number of source tokens that the encoder reads.
            target: number of target tokens that the decoder reads.
            vocabulary: number of target ids.
        """
        return 0

    @property
    def schedule_width(self) -> int:
        """Width D that the noam schedule divides by."""
        raise ValueError(f"architecture {self.architecture!r} says no width for the noam schedule")

    @property
    def description(self) -> str:
        """Sizes of the model in a phrase."""
        return self.architecture

    @property
    def shares_embeddings(self) -> bool:
        """Whether source and target share an embedding matrix, which needs a joint vocabulary."""
        return getattr(self, "tie_embeddings", "none") in ("shared", "all")

    def vocabulary_problem(self, source_vocabulary: int, target_vocabulary: int) -> str | None:
        """Return why the model does not fit vocabularies of these sizes, in words; None if it fits."""
        if not self.shares_embeddings or source_vocabulary == target_vocabulary:
            return None
        return (
            f"The dataset has {source_vocabulary:,} ids on the source side and {target_vocabulary:,} on the target "
            f"side; model.tie_embeddings: {getattr(self, 'tie_embeddings', '')} needs one vocabulary for both. Prepare "
            "the dataset with data.joint_vocabulary: true, or set model.tie_embeddings=output."
        )

    @model_validator(mode="wrap")
    @classmethod
    def _choose_architecture(cls, values: Any, validate: Any) -> Self:
        if cls is not ModelConfig or not isinstance(values, dict):
            return validate(values)
        name = {"architecture": DEFAULT_ARCHITECTURE, **values}["architecture"]
        section = MODEL_CONFIGS.get(name) if isinstance(name, str) else None
        if section is None:
            known = " or ".join(map(repr, MODEL_CONFIGS))
            problem = PydanticCustomError("unknown_architecture", "Input should be {known}", {"known": known})
            details = InitErrorDetails(type=problem, loc=("architecture",), input=name)
            raise ValidationError.from_exception_data("ModelConfig", [details])
        return section.model_validate(values)  # type: ignore[return-value]
