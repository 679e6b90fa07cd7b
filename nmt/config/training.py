"""TODO."""

from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from nmt.config.record import DocumentedRecord

Precision = Literal["float32", "bfloat16", "float16"]


BestBy = Literal["accuracy", "loss", "bleu", "chrf"]


BATCH_SIZES = {"sentences": 64, "tokens": 2048}


class TrainingConfig(DocumentedRecord):
    """The training loop: batches, optimizer, schedule, what is kept."""

    renamed: ClassVar = {"accumulate": "accumulation_steps", "pack": "remove_padding"}
    renamed_values: ClassVar = {"schedule": {"paper": "noam"}}

    epochs: int = Field(20, ge=1, le=1_000_000)
    """Passes over the training pairs. A finished run goes on when this is raised."""
    batch_type: Literal["sentences", "tokens"] = "sentences"
    """What ``batch_size`` counts: sentence pairs, or target tokens, of pairs of like length."""
    batch_size: int = Field(64, ge=1, le=2**24)
    """Sentence pairs in a batch; or its most target tokens, eos and padding too, and half its most source tokens.
    null: 64 sentences, or 2,048 tokens, which ``batch_type`` decides."""
    sort_by_length: bool = False
    """Batches of pairs of like length, as those by tokens always are: less attention over padding, but a step that sees
    one length alone learns worse where batches are small."""
    accumulation_steps: int = Field(1, ge=1, le=1_000_000)
    """Batches whose gradients are added up before each step of the optimizer, as if they were one."""
    remove_padding: bool = True
    """Compute all but attention for the tokens that count, end to end, instead of for padded rows. The result is the
    same; false is slower, and there for comparisons."""
    xla: bool = False
    """Compile the training step with XLA, once for each shape of batch: for GPUs, with
    ``remove_padding: false``. On a processor it is slower, since XLA leaves the matrix units unused."""
    pad_to_longest: bool = False
    """Pad every batch to the longest sentence of the training split, not of the batch. Slower; for comparisons."""
    reshuffle: bool = True
    """New batches in a new order every epoch; false repeats those of the first."""
    seed: int = Field(1, ge=0, lt=2**32)
    """Seed of the first weights, of dropout and of the order of batches."""
    precision: Precision | Literal["auto"] = "auto"
    """What layers compute in. ``bfloat16`` is about twice as fast where the processor or GPU has it natively; weights,
    norms, loss and optimizer stay float32. ``auto`` takes it there and float32 elsewhere, and says so. ``float16`` is
    for GPUs without bfloat16; its loss is scaled so that small gradients survive."""
    label_smoothing: float = Field(0.1, ge=0, lt=1)
    """Share of each target's probability that the objective spreads evenly over the vocabulary (0.1 in the paper,
    section 5.4). The losses reported are without it."""
    schedule: Literal["noam", "inverse_sqrt", "cosine", "linear"] = "noam"
    """How the learning rate falls after its straight rise. ``noam``: with 1/sqrt(step) from a peak that the width of
    the model and ``warmup_steps`` decide (equation 3 of the paper); ``inverse_sqrt``: the same from
    ``peak_learning_rate``; ``cosine``: along half a cosine (Loshchilov and Hutter 2017); ``linear``: straight."""
    peak_learning_rate: float | None = Field(None, gt=0)
    """Learning rate at the end of the rise, which every schedule but ``noam`` needs and ``noam`` works out."""
    warmup_steps: int = Field(4000, ge=1, le=2**40)
    """Steps over which the learning rate rises before it falls."""
    decay_steps: int | None = Field(None, ge=1, le=2**40)
    """Steps after the rise over which ``cosine`` and ``linear`` fall, to stay at ``final_learning_rate`` from then on.
    null: so many that they get there with the last of ``epochs``, which is then fixed for the run."""
    final_learning_rate: float = Field(0.0, ge=0)
    """Learning rate to which ``cosine`` and ``linear`` fall."""
    learning_rate_scale: float = Field(1.0, gt=0)
    """Factor on schedule ``noam``; for the others it is 1, since ``peak_learning_rate`` is their peak."""
    adam_beta_1: float = Field(0.9, ge=0, lt=1)
    """Decay of Adam's mean of gradients."""
    adam_beta_2: float = Field(0.98, ge=0, lt=1)
    """Decay of Adam's mean of squared gradients."""
    adam_epsilon: float = Field(1e-9, gt=0)
    """Added to the root of the squared gradients' mean in Adam."""
    weight_decay: float = Field(0.0, ge=0)
    """Decoupled weight decay (Loshchilov and Hutter 2019): each step shrinks matrices, embeddings among them, by the
    learning rate times this share, whatever their gradients; biases and layer norms are let be."""
    clip_norm: float | None = Field(None, gt=0)
    """Gradients whose norm, over all weights together, is larger are scaled down to it (Pascanu et al. 2013); null:
    none are."""
    ema_decay: float | None = Field(None, gt=0, lt=1)
    """Share that an exponential moving average of the weights keeps of itself at each step, the rest coming from the
    new weights; in the first steps less, so that it forgets the untrained ones. null: no average is kept."""
    skip_nonfinite: int = Field(0, ge=0, le=2**40)
    """Steps of a run that may be left out because the loss or the gradients are not finite numbers, before it stops."""
    start_from: str | None = None
    """Begin with the weights of another run, ``RUN`` or ``RUN:EPOCH``, whose vocabulary the dataset must have (prepare
    it with ``--tokenizer-of RUN``); null: with fresh ones."""
    validate_every: int | None = Field(None, ge=1, le=2**40)
    """Validate every so many steps too; null: after each epoch alone."""
    decode_validation: int = Field(0, ge=0, le=2**40)
    """Translate the first so many validation sentences, greedily, at each validation and score them with BLEU and
    chrF; 0: none."""
    samples: int = Field(3, ge=0, le=1000)
    """Translate and show the first so many validation sentences at each validation."""
    best_by: BestBy = "accuracy"
    """Which validation is the best: of the highest ``accuracy`` of tokens, ``bleu`` or ``chrf``, or the lowest
    ``loss``."""
    patience: int | None = Field(None, ge=1, le=1_000_000)
    """Stop after so many validations in a row that were not the best so far; null: train all epochs."""
    save_every: int | None = Field(None, ge=1, le=2**40)
    """Save a state to go on from every so many steps, besides each epoch; null: do not."""
    save_every_minutes: float | None = Field(10.0, gt=0)
    """Save one whenever the last is so many minutes old; null: do not."""
    max_to_keep: int | None = Field(None, ge=1, le=1_000_000)
    """Keep the weights of the last so many epochs, and always of the best; null keeps those of every epoch."""
    average_last: int = Field(5, ge=1, le=1_000_000)
    """A run ends with the mean of the weights of the last so many epochs, at most a quarter of all, and translates with
    it (section 6.1 of the paper); 1: with those of the best epoch."""
    log_every: int = Field(50, ge=1, le=2**40)
    """Steps between two records in the metrics file, and two lines where there is no terminal."""

    @model_validator(mode="before")
    @classmethod
    def _choose_batch_size(cls, values: Any) -> Any:
        if not isinstance(values, dict) or values.get("batch_size") is not None:
            return values
        return {**values, "batch_size": BATCH_SIZES["tokens" if values.get("batch_type") == "tokens" else "sentences"]}

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.best_by in {"bleu", "chrf"} and not self.decode_validation:
            raise ValueError(
                f"best_by {self.best_by} needs translations of validation sentences; received decode_validation 0. Set "
                "training.decode_validation=500, or so many as shall be translated"
            )
        if self.xla and self.remove_padding:
            raise ValueError(
                "xla needs shapes that do not depend on the data, and remove_padding makes some that do; received xla "
                "true with remove_padding true. Set training.remove_padding=false"
            )
        self._check_schedule()
        return self

    def _check_schedule(self) -> None:
        falls = self.schedule in {"cosine", "linear"}
        if self.schedule == "noam" and self.peak_learning_rate is not None:
            raise ValueError(
                "schedule noam works its peak out from d_model and warmup_steps; received peak_learning_rate "
                f"{self.peak_learning_rate:g} with it. Set schedule to inverse_sqrt, which falls the same way, or to "
                "cosine or linear, or scale the peak with learning_rate_scale"
            )
        if self.schedule != "noam" and self.peak_learning_rate is None:
            raise ValueError(
                f"schedule {self.schedule} needs a peak_learning_rate; received null. Set it, for example to 0.0005, "
                "or schedule to noam, which works it out"
            )
        if self.schedule != "noam" and self.learning_rate_scale != 1:
            raise ValueError(
                "learning_rate_scale goes with schedule noam alone, the others have their peak_learning_rate as peak; "
                f"received learning_rate_scale {self.learning_rate_scale:g} with schedule {self.schedule}. Set "
                "training.learning_rate_scale=1, and the peak that is meant as peak_learning_rate"
            )
        of_fall = {"decay_steps": self.decay_steps, "final_learning_rate": self.final_learning_rate or None}
        received = " and ".join(f"{key} {value:g}" for key, value in of_fall.items() if value is not None)
        if received and not falls:
            raise ValueError(
                f"decay_steps and final_learning_rate go with schedule cosine or linear alone; received {received} "
                f"with schedule {self.schedule}. Leave them out, or set schedule to cosine or linear"
            )
        if falls and self.peak_learning_rate is not None and self.final_learning_rate > self.peak_learning_rate:
            raise ValueError(
                f"the learning rate falls from peak_learning_rate to final_learning_rate; received a peak of "
                f"{self.peak_learning_rate:g} below the final {self.final_learning_rate:g}. Lower "
                "final_learning_rate"
            )
