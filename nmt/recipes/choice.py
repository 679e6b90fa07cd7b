"""Choice of a configuration: a pure function of the facts of a dataset."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

from nmt.config.model import ModelConfig
from nmt.config.training import BATCH_SIZES
from nmt.recipes.facts import Facts
from nmt.recipes.sizes import (
    DECODED_SENTENCES,
    FINE_TUNING_EPOCHS,
    FINE_TUNING_PEAK,
    HEAD_SIZE,
    KEPT_EPOCHS,
    LABEL_SMOOTHING,
    LEAST_BATCH,
    LEAST_SENTENCES,
    LEAST_STEPS,
    LENGTH_PENALTY,
    MOST_BATCH,
    SENTENCES_FOR_BLEU,
    WARMUP_SHARE,
    WARMUP_STEPS,
    Size,
    dropout_for,
    feed_forward_factor_for,
    peak_for,
    size_for,
)

Number = TypeVar("Number", int, float)


class Setting(NamedTuple):
    """A key of the configuration."""

    key: str
    """Section and key, as "model.dropout"."""
    value: Any
    why: str
    """Reason, as a comment of a few words; "" for none."""


class Choice(NamedTuple):
    """Chosen settings."""

    size: Size
    """Row of the table that they follow."""
    settings: list[Setting]
    """Keys in their order."""

    def value(self, key: str) -> Any:
        """Return the value of "section.key"; None if it is not chosen."""
        return next((setting.value for setting in self.settings if setting.key == key), None)


def choose(
    facts: Facts,
    given: Mapping[str, Any] | None = None,
    *,
    size: Size | None = None,
    epochs: int | None = None,
    start: ModelConfig | None = None,
) -> Choice:
    """Return the settings for a dataset.

    Args:
        facts: facts of the dataset.
        given: values that the user has set, by "section.key". What depends on them follows them: the peak the width,
            the warm-up the number of steps. They need not be valid, and the settings of these keys are those chosen.
        size: row of the table; None: that of the number of training pairs.
        epochs: number of epochs; None: that of the row.
        start: model section of the run from whose weights this run starts; None: random initial weights.
    """
    given = given or {}
    size = size or size_for(facts.pairs)
    if epochs is None:
        epochs = max(1, round(size.epochs * FINE_TUNING_EPOCHS)) if start else size.epochs
    planned = _positive(given, "training.epochs", epochs)
    micro_batches = _positive(given, "training.micro_batches", 1)
    by_tokens = given.get("training.batch_type") != "sentences"
    whole = _step_tokens(facts, size) if by_tokens else BATCH_SIZES["sentences"]
    batch = max(1, whole // micro_batches)
    received = _positive(given, "training.batch_size", batch)
    batches = steps_for(facts, received) if by_tokens else math.ceil(facts.pairs / received)
    steps = planned * math.ceil(batches / micro_batches)
    architecture = given.get("model.architecture")
    if start is not None:
        model, width = _same_model(start), start.schedule_width
    elif architecture in (None, "transformer"):
        width = _positive(given, "model.d_model", size.width)
        model = _model(facts, size, width, planned, given)
    else:
        model, width = [], size.width
    chosen_optimizer = _optimizer(start, architecture)
    optimizer = given.get("training.optimizer", chosen_optimizer.value)
    peak = peak_for(width, optimizer) * (FINE_TUNING_PEAK if start else 1)
    return Choice(size, [
        Setting("data.dataset", facts.dataset, ""),
        *model,
        Setting("training.epochs", epochs, f"about {steps:,} steps"),
        Setting("training.batch_type", "tokens", "sentences of similar length, so little padding"),
        Setting("training.batch_size", batch, _why_batch(facts, size, whole) if by_tokens else "sentences"),
        chosen_optimizer,
        Setting("training.schedule", "linear", "to zero at the end: needs no average of epochs"),
        *([] if given.get("training.schedule") in ("noam", "paper") else
          [Setting("training.peak_learning_rate", float(f"{peak:.3g}"), f"for width {width} and {optimizer}")]),
        Setting("training.warmup_steps", min(WARMUP_STEPS, max(1, int(steps * WARMUP_SHARE))),
                f"at most {WARMUP_SHARE:.0%} of the steps"),
        *([] if start or architecture not in (None, "transformer") or given.get("model.word_embedding") == "sinusoidal"
          else [Setting("training.initial_embeddings", "cooccurrence", "words begin beside their translations")]),
        Setting("training.label_smoothing", LABEL_SMOOTHING, ""),
        Setting("training.average_last", 1, "translates with the best epoch"),
        Setting("training.decode_validation", DECODED_SENTENCES, "for curves of BLEU and chrF"),
        Setting("training.best_by", *_best_by(facts, given)),
        Setting("training.max_to_keep", KEPT_EPOCHS, "weights of the last epochs on disk, besides the best"),
        Setting("decoding.length_penalty", LENGTH_PENALTY, "of beam search; greedy search has none"),
    ])  # fmt: skip


def steps_for(facts: Facts, batch_tokens: int) -> int:
    """Return about how many batches an epoch has, eos of each sentence included, padding left out."""
    target, source = facts.target_tokens + facts.pairs, facts.source_tokens + facts.pairs
    return max(1, math.ceil(max(target, source / 2) / batch_tokens))


def heads_for(width: int) -> int:
    """Return the number of heads of size 64, or of the nearest size that divides the width."""
    return next(heads for heads in range(max(1, width // HEAD_SIZE), 0, -1) if width % heads == 0)


def _model(facts: Facts, size: Size, width: int, epochs: int, given: Mapping[str, Any]) -> list[Setting]:
    layers, factor = f"for {facts.pairs:,} training pairs", feed_forward_factor_for(width)
    tied = "all" if facts.is_joint else "output"
    head_size = _positive(given, "model.head_size", width // _positive(given, "model.heads", heads_for(width)))
    why_tied = "one vocabulary: both embeddings and output layer" if facts.is_joint else "each side has its vocabulary"
    return [
        Setting("model.encoder_layers", size.layers, layers),
        Setting("model.decoder_layers", size.layers, layers),
        Setting("model.d_model", width, layers),
        Setting("model.d_ff", factor * width, f"{factor} x d_model"),
        Setting("model.heads", heads_for(width), f"of size {width // heads_for(width)}"),
        Setting("model.dropout", dropout_for(size, epochs), f"each pair is seen {epochs} times"),
        Setting("model.initializer", "small", "learns sooner than glorot"),
        Setting("model.cross_attention_initializer", "copying", "learns sooner"),
        Setting("model.tie_embeddings", tied, why_tied),
        *([] if head_size % 2 else [Setting("model.positions", "rotary", "learns sooner than sinusoidal")]),
    ]


def _same_model(start: ModelConfig) -> list[Setting]:
    return [
        Setting(f"model.{key}", value, "as in the run that it starts from" if key == "architecture" else "")
        for key, value in start.model_dump().items()
    ]


def _optimizer(start: ModelConfig | None, architecture: Any) -> Setting:
    if start or architecture not in (None, "transformer"):
        return Setting("training.optimizer", "adam", "")
    return Setting("training.optimizer", "muon", "an epoch teaches more than with adam")


def _step_tokens(facts: Facts, size: Size) -> int:
    """Return the target tokens of a step: those of the row, more for long sentences, fewer where steps are few."""
    batch, room = size.batch_tokens, LEAST_SENTENCES * (facts.target_length + 1)
    if batch < room:
        return min(MOST_BATCH, 2 ** math.ceil(math.log2(room)))
    while batch > LEAST_BATCH and steps_for(facts, batch) * size.epochs < LEAST_STEPS:
        batch //= 2
    return batch


def _why_batch(facts: Facts, size: Size, batch: int) -> str:
    if batch > size.batch_tokens:
        return f"has room for {LEAST_SENTENCES} sentences of {facts.target_length} {facts.unit}"
    if batch < size.batch_tokens:
        return f"smaller than usual, for enough steps: the corpus has {facts.target_tokens:,} target tokens"
    return f"target tokens; for {facts.pairs:,} training pairs"


def _best_by(facts: Facts, given: Mapping[str, Any]) -> tuple[str, str]:
    if given.get("training.decode_validation") == 0:
        return "accuracy", "no validation sentences are translated"
    if facts.validation_pairs < SENTENCES_FOR_BLEU:
        return "accuracy", f"{facts.validation_pairs:,} validation pairs are too few for BLEU"
    return "bleu", f"of the first {min(DECODED_SENTENCES, facts.validation_pairs)} validation sentences"


def _positive(given: Mapping[str, Any], key: str, chosen: Number) -> Number:
    """Return the value that the user has set, if it is a positive number of the same type; else the chosen value."""
    value = given.get(key)
    return value if type(value) is type(chosen) and value > 0 else chosen
