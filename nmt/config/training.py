"""Section ``training`` of the configuration: batches, optimization, validation, checkpoints."""

import itertools
import math
from collections.abc import Mapping
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
"""Number of times that an epoch uses the pairs of each corpus. With 0.3, each epoch draws 30% of the pairs anew."""


class StageConfig(DocumentedRecord):
    """A stage of training: some epochs with their own mixture of corpora."""

    until_epoch: int | None = Field(None, ge=1)
    """Last epoch of the stage; null: the last epoch of the run."""
    corpora: Weights = Field(min_length=1)
    """Weights of the corpora, as in ``training.corpora``; a corpus that is not named is not used."""


def _check_stages(stages: list[StageConfig]) -> list[StageConfig]:
    *ends, last = [stage.until_epoch for stage in stages] or [None]
    rises = all(isinstance(end, int) for end in ends) and all(a < b for a, b in itertools.pairwise(ends))  # type: ignore[operator]
    if rises and last is None:
        return stages
    raise ValueError(
        f"until_epoch is {', '.join(str(end or 'null') for end in [*ends, last])}. It must rise from stage to stage, "
        "and the last stage must have none, since it lasts to the end of the run. Correct the epochs"
    )


class TrainingConfig(Section):
    """Section ``training``: how ``nmt train`` trains."""

    section: ClassVar = "training"

    epochs: int = Field(20, ge=1, le=1_000_000)
    """Passes over the training pairs. A larger number continues a finished run."""
    corpora: Weights = Field({})
    """Number of times that an epoch uses the pairs of each corpus of the dataset; 1 for corpora that are not named.
    With 0.3, each epoch draws 30% of the pairs anew; with 0 it uses none."""
    corpus_temperature: float = Field(1.0, ge=1, le=100)
    """Temperature T at which an epoch draws from the corpora (Arivazhagan et al. 2019, "Massively Multilingual Neural
    Machine Translation in the Wild"): a corpus with a share p of the pairs gets a share proportional to p^(1/T), and
    the epoch as many pairs as before. 1: its own share. Large values: equal shares. Weights of ``corpora`` and
    ``stages`` multiply the result."""
    stages: Annotated[list[StageConfig], AfterValidator(_check_stages)] = Field([])
    """Stages of training, in place of ``corpora``. A stage lasts until an epoch and has its own weights of corpora."""
    batch_type: Literal["sentences", "tokens"] = "sentences"
    """Unit of ``batch_size``: sentence pairs (``sentences``), or target tokens (``tokens``) in batches of pairs of
    similar length."""
    batch_size: int = Field(64, ge=1, le=2**24)
    """Size of a batch: the number of sentence pairs, or the maximum number of target tokens, with eos and padding;
    of source tokens the maximum is twice as large. null: 64 sentences or 2,048 tokens, by ``batch_type``."""
    micro_batches: int = Field(1, ge=1, le=65_536)
    """Number of batches whose gradients are summed for one optimizer step, as if they were one batch. A machine takes
    them one after another, or several hosts share them, with the same result to the bit. There must be at least one for
    each host."""
    remove_padding: bool = True
    """Compute all layers but attention without padding, on real tokens only. The result is the same. false is slower,
    and serves for comparisons."""
    eager: bool = False
    """Run the training step operation by operation from Python, instead of tracing it into a graph. Slower; for
    debugging and comparisons."""
    reshuffle: bool = True
    """Make new batches in a new order each epoch; false: repeat the batches of the first epoch."""
    augment: dict[VariantName, Annotated[float, Ge(0), Le(1)]] = Field({})
    """Share of the training pairs that variants replace, by the name of the variant; each epoch draws the pairs anew.
    ``upper``: both sides in capitals. ``title``: a source with Capitals Of Titles. ``join``: two pairs in one.
    ``typos``: a source with typing errors. ``no_stop``: a source without full stop. ``quotes``: both sides in
    quotes."""
    subword_sampling: bool | None = None
    """Segment the training text into different subwords in every epoch (Kudo 2018). The dataset must have kept its
    text. null: if the dataset was prepared with ``data.subword_sampling: true``."""
    seed: int = Field(1, ge=0, lt=2**32)
    """Seed of the initial weights, dropout, the order of batches, sampled subwords and variants."""
    precision: Precision | Literal["auto"] = "auto"
    """Floating-point type of the layers. ``bfloat16`` is about twice as fast on hardware made for it; weights, norms,
    loss and optimizer stay float32. ``auto``: bfloat16 on such hardware, else float32. ``float16`` is for GPUs without
    bfloat16; loss scaling preserves its small gradients. Matrix products never use TF32."""
    label_smoothing: float = Field(0.1, ge=0, lt=1)
    """Share of the target probability that the training objective spreads evenly over the vocabulary (0.1 in the paper,
    section 5.4). Reported losses are computed without it."""
    r_drop: float = Field(0.0, ge=0, le=100)
    """Weight of the divergence between two passes with different dropout in the objective (R-Drop, Liang et al. 2021,
    who use 5). A step takes twice as long; after many epochs the model is better. 0: a single pass."""
    schedule: Literal["noam", "inverse_sqrt", "cosine", "linear"] = "noam"
    """How the learning rate falls after its linear warm-up. ``noam``: with 1/sqrt(step), from a peak that ``d_model``
    and ``warmup_steps`` determine (equation 3 of the paper). ``inverse_sqrt``: with 1/sqrt(step), from
    ``peak_learning_rate``. ``cosine``: along half a cosine (Loshchilov and Hutter 2017). ``linear``: along a straight
    line."""
    peak_learning_rate: float | None = Field(None, gt=0)
    """Learning rate at the end of the warm-up. All schedules but ``noam`` need it; ``noam`` computes its peak."""
    warmup_steps: int = Field(4000, ge=1, le=2**40)
    """Number of steps in which the learning rate rises from zero to its peak."""
    final_learning_rate: float = Field(0.0, ge=0)
    """Learning rate at the last step of ``cosine`` and ``linear``. With these the number of ``epochs`` cannot change
    later."""
    learning_rate_scale: float = Field(1.0, gt=0)
    """Factor on the learning rate of schedule ``noam``. Other schedules have ``peak_learning_rate`` instead."""
    optimizer: Literal["adam", "muon"] = "adam"
    """``adam`` (Kingma and Ba 2015), as in the paper; ``muon`` (Jordan et al. 2024): orthogonalized steps, which change
    all directions alike, for matrices (each attention head by itself), and Adam for embeddings, output layer and
    vectors. With Muon an epoch teaches more, but costs more arithmetic, which weighs less with large batches. Its peak
    learning rate is about twice Adam's."""
    adam_beta_1: float = Field(0.9, ge=0, lt=1)
    """Decay of Adam's moving average of gradients."""
    adam_beta_2: float = Field(0.98, ge=0, lt=1)
    """Decay of Adam's moving average of squared gradients."""
    adam_epsilon: float = Field(1e-9, gt=0)
    """Constant added to the root of Adam's moving average of squared gradients."""
    weight_decay: float = Field(0.0, ge=0)
    """Decoupled weight decay (Loshchilov and Hutter 2019): each step shrinks matrices, including embeddings, by the
    learning rate times this factor. Biases and layer norms do not decay."""
    clip_norm: float | None = Field(None, gt=0)
    """Largest norm of all gradients together; gradients with a larger norm are scaled down to it (Pascanu et al. 2013).
    null: no clipping."""
    ema_decay: float | None = Field(None, gt=0, lt=1)
    """Decay of an exponential moving average of the weights, which validation and translation use. The decay is smaller
    in the first steps, so that the average forgets the initial weights. null: no average."""
    skip_nonfinite: int = Field(0, ge=0, le=2**40)
    """Number of steps with a loss or gradients that are not finite that a run may skip before training stops."""
    start_from: str | None = None
    """Weights of another run to start from, ``RUN`` or ``RUN:EPOCH``. The dataset must have the vocabulary of that run:
    prepare it with ``--tokenizer-of RUN``. null: random initial weights."""
    initial_embeddings: Literal["random", "cooccurrence"] = "random"
    """Initial word embeddings: ``random``; ``cooccurrence``, singular vectors of the matrix of words by sentence pairs,
    which place words near their translations (after Levy et al. 2017). ``start_from`` overrides it."""
    validate_every: int | None = Field(None, ge=1, le=2**40)
    """Number of steps between validations within an epoch; null: validate only at the end of each epoch."""
    decode_validation: int = Field(0, ge=0, le=2**40)
    """Number of validation sentences, from the first on, that each validation translates greedily and scores with BLEU
    and chrF; 0: none. Several language pairs share the number, and the scores are the means of theirs."""
    samples: int = Field(3, ge=0, le=1000)
    """Number of validation sentences, from the first on, whose translations each validation shows."""
    best_by: BestBy = "accuracy"
    """Measure of the best validation: highest ``accuracy`` of tokens, ``bleu`` or ``chrf``, or lowest ``loss``. With
    ``bleu``, chrF decides while no BLEU reaches 5. Scores of BLEU or chrF that differ by at most 1 count as equal,
    since they come from few sentences; the accuracy then decides."""
    patience: int | None = Field(None, ge=1, le=1_000_000)
    """Early stopping: number of consecutive validations without a new best after which training stops; null: train all
    epochs."""
    save_every: int | None = Field(None, ge=1, le=2**40)
    """Number of steps between checkpoints within an epoch; null: none by steps. Every epoch ends with a checkpoint."""
    save_every_minutes: float | None = Field(10.0, gt=0)
    """Minutes between checkpoints within an epoch; null: none by time."""
    max_to_keep: int | None = Field(None, ge=1, le=1_000_000)
    """Number of last epochs whose weights are kept. The weights of the best validation are always kept. null: keep all
    epochs."""
    average_last: int = Field(5, ge=1, le=1_000_000)
    """Number of last epochs, at most a quarter of all, whose weights are averaged at the end (section 6.1 of the
    paper). Translation uses the average. 1: no average; translation uses the best epoch."""
    log_every: int = Field(50, ge=1, le=2**40)
    """Number of steps between records in the metrics file, and between lines of output without a terminal."""
    tensorboard: bool = False
    """Record the run for TensorBoard: scalars, samples and the configuration, in event files in ``events/`` of the
    run."""

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
        """Return how many times an epoch uses the pairs of a corpus."""
        for stage in self.stages:
            if stage.until_epoch is None or epoch <= stage.until_epoch:
                return stage.corpora.get(corpus, 0.0)
        return self.corpora.get(corpus, 1.0)

    def weights(self, pairs: Mapping[str, int], epoch: int) -> dict[str, float]:
        """Return how many times an epoch uses the pairs of each corpus.

        Args:
            pairs: number of pairs of each corpus, by name.
            epoch: number of the epoch, from 1.
        """
        weights = {name: self.weight(name, epoch) for name in pairs}
        if self.corpus_temperature == 1:
            return weights
        total = sum(pairs.values())
        factors = {name: (count / total) ** (1 / self.corpus_temperature - 1) for name, count in pairs.items()}
        scale = total / math.fsum(factors[name] * count for name, count in pairs.items())
        return {name: scale * factors[name] * weight for name, weight in weights.items()}

    @property
    def spans(self) -> list[range]:
        """Epochs of each stage that the run reaches; without stages, the epochs of the whole run."""
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
             "to inverse_sqrt, which falls in the same way"),
            (not is_noam and peak is None, "schedule peak_learning_rate",
             "All schedules but noam need a peak. Set it, for example to 0.0005, or set schedule to noam"),
            (not is_noam and self.learning_rate_scale != 1, "schedule learning_rate_scale",
             "Only noam has a scale. Set training.learning_rate_scale=1, and the intended peak as peak_learning_rate"),
            (last > 0 and not falls_to_end, "schedule final_learning_rate",
             "Only cosine and linear fall to a final value. Leave the key out, or set schedule to cosine or linear"),
            (falls_to_end and peak is not None and last > peak, "final_learning_rate peak_learning_rate",
             "The learning rate falls from the peak to the final value. Lower final_learning_rate"),
            (variants > 1, "augment",
             f"The shares of variants must add up to at most 1; these add up to {variants:g}. Lower some of them"),
            (bool(self.corpora and self.stages), "corpora stages",
             "Each stage has its own corpora. Leave out one of the two keys"),
        ]  # fmt: skip
