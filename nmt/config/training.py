"""Section ``training`` of the configuration: batches, optimization, validation, saving."""

import itertools
import math
from typing import Annotated, Any, ClassVar, Literal, get_args

from annotated_types import Ge, Le
from pydantic import AfterValidator, Field, ValidatorFunctionWrapHandler, field_validator, model_validator

from nmt.config.record import Contradiction, DocumentedRecord, Section
from nmt.storage.names import did_you_mean

Precision = Literal["float32", "bfloat16", "float16"]
BestBy = Literal["accuracy", "loss", "bleu", "chrf"]
VariantName = Literal["upper", "title", "join", "typos", "no_stop", "quotes"]
VARIANT_NAMES: tuple[VariantName, ...] = get_args(VariantName)

BATCH_SIZES = {"sentences": 64, "tokens": 2048}  # defaults, by ``batch_type``


Weights = dict[str, Annotated[float, Field(ge=0, le=1000)]]
"""How many times an epoch sees the pairs of each corpus. 0.3: a share of 0.3, drawn anew each epoch."""


class StageConfig(DocumentedRecord):
    """Epochs with corpora of their own."""

    until_epoch: int | None = Field(None, ge=1)
    """Last epoch; null: that of the run."""
    corpora: Weights = Field(min_length=1)
    """Weights of its corpora, as ``training.corpora``; a corpus that is not named is not seen."""


def _check_stages(stages: list[StageConfig]) -> list[StageConfig]:
    *ends, last = [stage.until_epoch for stage in stages] or [None]
    rising = all(isinstance(end, int) for end in ends) and all(a < b for a, b in itertools.pairwise(ends))  # type: ignore[operator]
    if rising and last is None:
        return stages
    raise ValueError(
        f"until_epoch is {', '.join(str(end or 'null') for end in [*ends, last])}. It rises from stage to stage, and "
        "the last stage, which goes on to the end of the run, has none. Correct the epochs"
    )


class TrainingConfig(Section):
    """Training loop of ``nmt train``."""

    section: ClassVar = "training"

    epochs: int = Field(20, ge=1, le=1_000_000)
    """Passes over the training pairs. A larger number continues a finished run."""
    corpora: Weights = Field({})
    """How many times an epoch sees the pairs of each corpus of the dataset. 0.3: a share of 0.3, drawn anew each epoch;
    0: none. A corpus that is not named has 1."""
    stages: Annotated[list[StageConfig], AfterValidator(_check_stages)] = Field([])
    """Stages of training in place of ``corpora``: each has corpora with weights, until an epoch."""
    batch_type: Literal["sentences", "tokens"] = "sentences"
    """Unit of ``batch_size``: sentence pairs, or target tokens in batches of pairs of similar length."""
    batch_size: int = Field(64, ge=1, le=2**24)
    """Size of a batch: sentence pairs; or most target tokens, with eos and padding, and half the most source tokens.
    null: 64 sentences or 2,048 tokens, by ``batch_type``."""
    micro_batches: int = Field(1, ge=1, le=65_536)
    """Batches whose gradients are summed for one optimizer step, as if they were one batch: one after another on one
    machine, or shared among hosts, with the same result to the bit. At least the number of hosts."""
    remove_padding: bool = True
    """Compute all layers but attention on the real tokens alone, without padding. The result is the same; false is
    slower, and serves comparisons."""
    eager: bool = False
    """Run each operation of the training step by itself, from Python, instead of tracing the step into a graph. Slower;
    for debugging and comparisons."""
    reshuffle: bool = True
    """New batches in a new order each epoch; false: the batches of the first epoch again."""
    augment: dict[VariantName, Annotated[float, Ge(0), Le(1)]] = Field({})
    """Share of the training pairs that each epoch, drawn anew, replaces by a variant, by its name: both sides in
    capitals (``upper``), a source with Capitals Of Titles (``title``), two pairs in one (``join``), a source with
    typing errors (``typos``) or without full stop (``no_stop``), both sides in quotes (``quotes``)."""
    seed: int = Field(1, ge=0, lt=2**32)
    """Seed of the initial weights, of dropout, of the order of batches, of sampled subwords and of variants."""
    precision: Precision | Literal["auto"] = "auto"
    """Floating-point type of the layers. ``bfloat16`` is about twice as fast on hardware made for it; weights, norms,
    loss and optimizer stay float32. ``auto``: bfloat16 on such hardware, else float32. ``float16`` is for GPUs without
    bfloat16; a scaled loss preserves its small gradients. No product is shortened to TF32."""
    label_smoothing: float = Field(0.1, ge=0, lt=1)
    """Share of the target probability that the objective spreads evenly over the vocabulary (0.1 in the paper,
    section 5.4). Reported losses are without it."""
    r_drop: float = Field(0.0, ge=0, le=100)
    """Weight of the divergence between two passes with different dropout in the objective (R-Drop, Liang et al. 2021;
    they take 5). A step costs twice as much; many epochs end at a better model. 0: a single pass."""
    schedule: Literal["noam", "inverse_sqrt", "cosine", "linear"] = "noam"
    """Fall of the learning rate after its linear warm-up. ``noam``: with 1/sqrt(step), from a peak that ``d_model`` and
    ``warmup_steps`` determine (equation 3 of the paper). ``inverse_sqrt``: likewise, from ``peak_learning_rate``.
    ``cosine``: half a cosine (Loshchilov and Hutter 2017). ``linear``: a straight line."""
    peak_learning_rate: float | None = Field(None, gt=0)
    """Learning rate at the end of the warm-up. All schedules but ``noam`` need it; ``noam`` computes its own."""
    warmup_steps: int = Field(4000, ge=1, le=2**40)
    """Steps in which the learning rate rises from zero to its peak."""
    final_learning_rate: float = Field(0.0, ge=0)
    """Learning rate at the last step of ``cosine`` and ``linear``, which fix the number of ``epochs`` of a run."""
    learning_rate_scale: float = Field(1.0, gt=0)
    """Factor on schedule ``noam``; 1 for the others, whose peak is ``peak_learning_rate``."""
    optimizer: Literal["adam", "muon"] = "adam"
    """``adam`` (Kingma and Ba 2015), as in the paper; ``muon`` (Jordan et al. 2024): Adam for embeddings, output layer
    and vectors, and for the other matrices, each head of attention apart, steps that change all directions alike. An
    epoch teaches more, and costs more arithmetic, which large batches share. Its peak is about twice Adam's."""
    adam_beta_1: float = Field(0.9, ge=0, lt=1)
    """Decay of Adam's mean of gradients."""
    adam_beta_2: float = Field(0.98, ge=0, lt=1)
    """Decay of Adam's mean of squared gradients."""
    adam_epsilon: float = Field(1e-9, gt=0)
    """Addend to the root of Adam's mean of squared gradients."""
    weight_decay: float = Field(0.0, ge=0)
    """Decoupled weight decay (Loshchilov and Hutter 2019): each step shrinks matrices, with embeddings, by the learning
    rate times this factor. Biases and layer norms do not decay."""
    clip_norm: float | None = Field(None, gt=0)
    """Largest norm of the gradients of all weights together; larger gradients are scaled down to it (Pascanu et al.
    2013). null: no clipping."""
    ema_decay: float | None = Field(None, gt=0, lt=1)
    """Decay of an exponential moving average of the weights, which validation and translation use. The decay is smaller
    in the first steps, so that the average forgets the initial weights. null: no average."""
    skip_nonfinite: int = Field(0, ge=0, le=2**40)
    """Number of steps per run that may be skipped because loss or gradients are not finite, before training stops."""
    start_from: str | None = None
    """Weights of another run to start from, ``RUN`` or ``RUN:EPOCH``. The dataset must have the vocabulary of that run:
    prepare it with ``--tokenizer-of RUN``. null: random initial weights."""
    initial_embeddings: Literal["random", "cooccurrence"] = "random"
    """Initial word embeddings: ``random``; ``cooccurrence``, singular vectors of the words by the sentence pairs that
    they stand in, in which words and their translations lie side by side (after Levy et al. 2017). ``start_from``
    comes before them."""
    validate_every: int | None = Field(None, ge=1, le=2**40)
    """Steps between validations within an epoch; null: only at the end of each epoch."""
    decode_validation: int = Field(0, ge=0, le=2**40)
    """Number of validation sentences, the first of the split, that each validation translates greedily and scores with
    BLEU and chrF; 0: none."""
    samples: int = Field(3, ge=0, le=1000)
    """Number of validation sentences, the first of the split, whose translations each validation shows."""
    best_by: BestBy = "accuracy"
    """Measure of the best validation: highest ``accuracy`` of tokens, ``bleu`` or ``chrf``, or lowest ``loss``."""
    patience: int | None = Field(None, ge=1, le=1_000_000)
    """Early stopping: number of validations in a row without a new best; null: train all epochs."""
    save_every: int | None = Field(None, ge=1, le=2**40)
    """Steps between checkpoints within an epoch; null: none by steps. Each epoch ends with a checkpoint."""
    save_every_minutes: float | None = Field(10.0, gt=0)
    """Minutes between checkpoints within an epoch; null: none by time."""
    max_to_keep: int | None = Field(None, ge=1, le=1_000_000)
    """Number of last epochs whose weights are kept; those of the best validation are always kept. null: all epochs."""
    average_last: int = Field(5, ge=1, le=1_000_000)
    """Number of last epochs, at most a quarter of all, whose weights are averaged at the end (section 6.1 of the
    paper). Translation uses the average. 1: no average, translation uses the best epoch."""
    log_every: int = Field(50, ge=1, le=2**40)
    """Steps between two records in the metrics file, and between two lines of output without a terminal."""
    tensorboard: bool = False
    """Record the run in event files for TensorBoard, in ``events/`` of the run: scalars, samples, configuration."""

    @model_validator(mode="before")
    @classmethod
    def _choose_batch_size(cls, values: Any) -> Any:
        if not isinstance(values, dict) or values.get("batch_size") is not None:
            return values
        return {**values, "batch_size": BATCH_SIZES["tokens" if values.get("batch_type") == "tokens" else "sentences"]}

    @field_validator("augment", mode="wrap")
    @classmethod
    def _order_variants(cls, shares: Any, check: ValidatorFunctionWrapHandler) -> dict[VariantName, float]:
        for name in shares if isinstance(shares, dict) else ():
            if name not in VARIANT_NAMES:
                nearest = did_you_mean(str(name), VARIANT_NAMES) or f" (known: {', '.join(VARIANT_NAMES)})"
                raise ValueError(f"unknown variant {str(name)[:60]!r}{nearest}")
        checked = check(shares)
        return {name: checked[name] for name in VARIANT_NAMES if checked.get(name)}  # equal settings, equal maps

    def weight(self, corpus: str, epoch: int) -> float:
        """Return how many times an epoch sees the pairs of a corpus."""
        for stage in self.stages:
            if stage.until_epoch is None or epoch <= stage.until_epoch:
                return stage.corpora.get(corpus, 0.0)
        return self.corpora.get(corpus, 1.0)

    @property
    def spans(self) -> list[range]:
        """The epochs of each stage that the run comes to; of the whole run without stages."""
        ends = [min(stage.until_epoch or self.epochs, self.epochs) for stage in self.stages] or [self.epochs]
        return [range(start + 1, end + 1) for start, end in itertools.pairwise([0, *ends]) if end > start]

    def contradictions(self) -> list[Contradiction]:
        """Return the rules about several keys."""
        peak, last = self.peak_learning_rate, self.final_learning_rate
        is_noam, falls_to_end = self.schedule == "noam", self.schedule in {"cosine", "linear"}
        variants = math.fsum(self.augment.values())
        return [
            (self.best_by in {"bleu", "chrf"} and not self.decode_validation, "best_by decode_validation",
             "A score needs translations of validation sentences. Set training.decode_validation=500"),
            (is_noam and peak is not None, "schedule peak_learning_rate",
             "noam computes its peak from d_model and warmup_steps. Scale it with learning_rate_scale, or set schedule "
             "to inverse_sqrt, which falls likewise"),
            (not is_noam and peak is None, "schedule peak_learning_rate",
             "All schedules but noam need a peak. Set it, for example to 0.0005, or set schedule to noam"),
            (not is_noam and self.learning_rate_scale != 1, "schedule learning_rate_scale",
             "Only noam has a scale. Set training.learning_rate_scale=1, and the intended peak as peak_learning_rate"),
            (last > 0 and not falls_to_end, "schedule final_learning_rate",
             "Only cosine and linear fall to a final value. Leave the key out, or set schedule to cosine or linear"),
            (falls_to_end and peak is not None and last > peak, "final_learning_rate peak_learning_rate",
             "The learning rate falls from the peak to the final value. Lower final_learning_rate"),
            (variants > 1, "augment",
             f"The shares of variants add up to 1 at most, and these to {variants:g}. Lower some of them"),
            (bool(self.corpora and self.stages), "corpora stages", "Stages have corpora of their own. Leave out one"),
        ]  # fmt: skip
