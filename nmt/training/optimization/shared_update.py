"""One step of training from several micro-batches, which devices and hosts share.

Shapes: B batch, S source length, T target length.
"""

import contextlib
import itertools
from collections.abc import Sequence

import numpy as np

from nmt import runtime
from nmt.cluster.group import Group
from nmt.cluster.summation import additions, shares
from nmt.config.training import TrainingConfig
from nmt.models.base import Seq2SeqModel
from nmt.runtime import keras, tf
from nmt.training.optimization.accumulation import GradientAccumulator, all_reduce
from nmt.training.optimization.muon import Muon
from nmt.training.optimization.optimizer import Adam
from nmt.training.optimization.update import BATCH, RATE, SEED, Batch, Update

SLOT = tf.TensorSpec([], tf.int32)
NO_BATCH = (np.zeros([0, 0], np.int32),) * 2
"""Source and target of a device that has no micro-batch left."""


class SharedUpdate(Update):
    """Optimizer steps from micro-batches: each device of each host sums the gradients of its share.

    The sums are added in the order of one tree (see ``nmt.cluster.summation``), so the number of devices and hosts does
    not change the result.
    """

    def __init__(self, model: Seq2SeqModel, config: TrainingConfig, optimizer: Adam | Muon, group: Group) -> None:
        """Share the micro-batches of a step among the hosts, and the share of this host among its devices.

        Args:
            model, config, optimizer: as for ``Update``.
            group: the hosts. With several of them each uses its first device only.
        """
        super().__init__(model, config, optimizer)
        self._group, self._share = group, group.share(config.micro_batches)
        self.devices = runtime.devices()[: len(self._share) if group.count == 1 else 1]
        device_shares = shares(self._share, len(self.devices))
        self._additions = [additions(share) for share in device_shares]
        self._accumulators: list[GradientAccumulator] = []
        for device, share in zip(self.devices, device_shares, strict=True):
            with tf.device(device) if len(self.devices) > 1 else contextlib.nullcontext():
                self._accumulators.append(GradientAccumulator(optimizer.variables_trained, share))
        self._merges = [self._traced(accumulator.merge) for accumulator in self._accumulators]
        self._add = self._traced(self._add_batches, (*BATCH, SEED, SLOT) * len(self.devices))
        self._apply = self._traced(self._apply_sums, (RATE,))

    def take(self, batches: Sequence[Batch], learning_rate: float, step: int) -> None:
        """Take step n of a run, from 1.

        Args:
            batches: the micro-batches of this host. The last step of an epoch may have fewer than the others, even
                none on this host.
            learning_rate: learning rate of the step.
            step: n. It selects the dropout masks of the micro-batches.
        """
        first = step * self.config.micro_batches
        numbered = dict(zip(self._share, batches, strict=False))
        for device_additions in itertools.zip_longest(*self._additions):
            inputs: list[tf.Tensor] = []
            for addition in device_additions:
                number, slot, _ = addition or (self._share.stop, 0, ())
                inputs += [*numbered.get(number, NO_BATCH), self._dropout_seed(first + number), tf.constant(slot)]
            if any(addition.micro_batch in numbered for addition in device_additions if addition):
                self._add(*inputs)
            for merge, addition in zip(self._merges, device_additions, strict=True):
                for slot in addition.merged if addition else ():
                    merge(slot)
        self._apply(tf.constant(learning_rate, tf.float32))

    def _add_batches(self, *inputs: tf.Tensor) -> None:
        """Add the gradients of one micro-batch per device to a slot of the device's sums.

        Args:
            inputs: source, target, dropout seed and slot of the first device, then of the next, and so on. A device
                without a micro-batch has a source without elements.
        """

        def add(
            accumulator: GradientAccumulator, source: tf.Tensor, target: tf.Tensor, seed: tf.Tensor, slot: tf.Tensor
        ) -> None:
            gradients, sums = self._gradients(source, target, seed)
            accumulator.add(gradients, sums, seed[1], slot)

        if len(self.devices) == 1:
            add(self._accumulators[0], *inputs)
            return
        batches = (inputs[start : start + 4] for start in range(0, len(inputs), 4))
        for device, accumulator, batch in zip(self.devices, self._accumulators, batches, strict=True):
            with tf.device(device):
                variables = self.model.trainable_variables
                copies = [tf.identity(variable.value) for variable in variables]  # once, not for each use of a weight
                with keras.StatelessScope(zip(variables, copies, strict=True)):
                    tf.cond(tf.size(batch[0]) > 0, lambda: add(accumulator, *batch), lambda: None)  # noqa: B023

    def _apply_sums(self, learning_rate: tf.Tensor) -> None:
        """Take a step from the gradient sums of all devices and hosts, and clear them."""
        gradients, sums, last_batch = all_reduce(self._accumulators, self._group, self.nonfinite)
        tokens = tf.cast(sums[2], tf.float32)
        gradients = [gradient / tokens for gradient in gradients]
        self._take_or_skip(gradients, learning_rate, sums, last_batch)
        for accumulator in self._accumulators:
            accumulator.clear()
