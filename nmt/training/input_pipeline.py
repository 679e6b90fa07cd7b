"""Input pipeline: the batches of each epoch, planned by (seed, epoch) and padded while the previous step runs."""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from nmt.cluster.group import Group
from nmt.config.data import ORIGINAL
from nmt.config.schema import Config, ModelConfig
from nmt.data.batch_plan import pad_rows, pairs_seen, plan_epoch
from nmt.data.dataset import Dataset
from nmt.data.manifest import Manifest
from nmt.data.token_arrays import Split
from nmt.errors import ConfigError, counted
from nmt.runtime import tf
from nmt.training.augmentation import augment_split
from nmt.training.optimization.schedules import ends_with_run, learning_rate, steps_of_run
from nmt.training.optimization.update import Batch


def batch_dataset(split: Split, plan: list[np.ndarray], *, source_bos: bool) -> tf.data.Dataset:
    """Return the batches of a plan. Each is assembled while the previous batch is trained on.

    Yields:
        (source, target), int32 [B, S] and [B, T + 1]. Source rows end with eos. Target rows begin with bos and end with
        eos: ``target[:, :-1]`` is the decoder's input, and ``target[:, 1:]`` its expected output.
    """

    def padded_batch(number: int) -> tuple[np.ndarray, np.ndarray]:
        indices = plan[number]
        return pad_rows(split.source, indices, bos=source_bos), pad_rows(split.target, indices, bos=True)

    def batch(number: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        # TensorFlow does not prefetch a stateful function where operations are deterministic.
        source, target = tf.numpy_function(padded_batch, [number], [tf.int32, tf.int32], stateful=False)
        return tf.ensure_shape(source, [None, None]), tf.ensure_shape(target, [None, None])

    # Not from_generator: that operation makes the allocator return freed memory to the system at once, so every large
    # tensor of the training step would cause page faults again.
    batches = tf.data.Dataset.range(len(plan)).map(batch).prefetch(2)
    options = tf.data.Options()
    # The thread that tunes the pipeline sleeps for longer and longer, and may miss the end of the iterator. Training
    # would wait for it: 15 seconds after most epochs of 67 seconds.
    options.autotune.enabled = False
    return batches.with_options(options)


class InputPipeline:
    """Training batches of each epoch, and the learning rate of each step.

    All hosts make the same plan of an epoch, and assemble only their share of its micro-batches.
    """

    def __init__(
        self, config: Config, split: Split, draw: Callable[[int], Split] | None = None, group: Group | None = None,
        corpora: Mapping[str, int] | None = None,
    ) -> None:  # fmt: skip
        """Make the pipeline, which counts the steps of the run if its schedule needs them.

        Args:
            config: the configuration.
            split: the training split.
            draw: function from an epoch to its split, if epochs draw subwords or variants of pairs; None: all epochs
                have ``split``.
            group: the hosts; None: this process alone.
            corpora: number of pairs of each corpus in the split, by name, in order; None: it is a single corpus.
        """
        self.config, self._split, self._draw = config, split, draw
        self._corpora = corpora or {ORIGINAL: len(split)}
        self._share = (group or Group()).share(config.training.micro_batches)
        self._drawn: tuple[int, Split] | None = None
        self._planned: tuple[int, list[np.ndarray]] | None = None
        # Counted first: token batches of epoch 1 need its split, and a resumed run then keeps the split of its epoch.
        self.total_steps = self._count_steps() if ends_with_run(config.training) else None
        """Number of steps of the run for schedules that end with the run; None for other schedules."""

    @classmethod
    def of(cls, config: Config, dataset: Dataset, group: Group | None = None) -> "InputPipeline":
        """Return the pipeline of a prepared dataset.

        Raises:
            DataError: if the dataset is damaged.
        """
        seed, shares, prepared = config.training.seed, config.training.augment, dataset.split("train")
        is_sampled = config.training.subword_sampling
        if is_sampled is None:
            is_sampled = dataset.manifest.settings.subword_sampling is True
        parts = dataset.manifest.training_parts

        def draw(epoch: int) -> Split:
            split = dataset.resample_subwords(seed, epoch) if is_sampled else prepared
            if not shares:
                return split
            return augment_split(split, dataset.tokenizers(), shares, seed, epoch, parts)

        return cls(config, prepared, draw if is_sampled or shares else None, group, dataset.manifest.pairs_by_corpus)

    @property
    def pairs(self) -> int:
        """Number of training pairs."""
        return len(self._split)

    def seen(self, epoch: int) -> dict[str, int]:
        """Return the number of pairs that an epoch trains on, by corpus."""
        weights = self.config.training.weights(self._corpora, epoch)
        return {name: pairs_seen(pairs, weights[name]) for name, pairs in self._corpora.items()}

    def split(self, epoch: int) -> Split:
        """Return the training split of an epoch, after sampling subwords and replacing pairs by variants."""
        if self._draw is None:
            return self._split
        if self._drawn is None or self._drawn[0] != epoch:
            self._drawn = epoch, self._draw(epoch)
        return self._drawn[1]

    def plan(self, epoch: int) -> list[np.ndarray]:
        """Return the batches of an epoch, each as indices of pairs. They depend on configuration, dataset and epoch."""
        if self._planned is None or self._planned[0] != epoch:  # cached: the estimate before training needs it too
            self._planned = epoch, self._plan(self.split(epoch), epoch)
        return self._planned[1]

    def _plan(self, split: Split, epoch: int) -> list[np.ndarray]:
        settings = self.config.training
        weights = settings.weights(self._corpora, epoch)
        return plan_epoch(
            split, settings.batch_size, seed=settings.seed, epoch=epoch if settings.reshuffle else 1,
            batch_type=settings.batch_type,
            corpora=[(pairs, weights[name]) for name, pairs in self._corpora.items()],
        )  # fmt: skip

    def steps(self, epoch: int) -> int:
        """Return the number of optimizer steps of an epoch."""
        return math.ceil(len(self.plan(epoch)) / self.config.training.micro_batches)

    def batches(self, epoch: int, plan: list[np.ndarray]) -> tf.data.Dataset:
        """Return the batches of a plan over the split of an epoch (see ``Batch``)."""
        return batch_dataset(self.split(epoch), plan, source_bos=self.config.model.reads_bos)

    def step_batches(self, epoch: int, start: int = 0) -> Iterator[list[Batch]]:
        """Yield this host's micro-batches of each step of an epoch, from step ``start`` on (the first is step 0).

        The last step of an epoch may have fewer micro-batches than the others, even none on this host.
        """
        count, plan = self.config.training.micro_batches, self.plan(epoch)
        shares = []
        for step in range(start, self.steps(epoch)):
            step_plan = plan[step * count : (step + 1) * count]
            shares.append(step_plan[self._share.start : self._share.stop])
        batches = iter(self.batches(epoch, list(itertools.chain(*shares))))
        return (list(itertools.islice(batches, len(share))) for share in shares)

    def learning_rate(self, step: int) -> float:
        """Return the learning rate of a step of the run, from 1."""
        return learning_rate(step, self.config.model.schedule_width, self.config.training, self.total_steps)

    def _count_steps(self) -> int:
        settings = self.config.training

        def batches(epoch: int) -> int:
            if settings.batch_type == "sentences":
                return math.ceil(sum(self.seen(epoch).values()) / settings.batch_size)
            # All epochs are planned on the split of epoch 1: sampling subwords for each would take long.
            return len(self.plan(1) if epoch == 1 else self._plan(self.split(1), epoch))

        return steps_of_run(batches, settings)


def check_lengths(config: ModelConfig, manifest: Manifest) -> None:
    """Check that the model can read the longest sentences of the dataset.

    Raises:
        ConfigError: naming split and side of a sentence that is too long.
    """
    limits = {"source": config.limits.source, "target": config.limits.target}
    most = max(longest for split in manifest.splits.values() for longest in split.longest.values()) + 2
    for name, split in manifest.splits.items():
        for side, longest in split.longest.items():
            limit, needed = limits[side], longest + 2  # bos and eos
            if limit is not None and needed > limit:
                raise ConfigError(
                    f"The longest {side} of the {name} split has {counted(needed, 'token')} with bos and eos; this "
                    f"model reads at most {limit}. Set {config.settings_for_length(most)}."
                )
