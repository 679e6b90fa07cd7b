"""The update of a run: its model with initial weights, its optimizer, and the class that takes its steps."""

import gc
from collections.abc import Callable

from nmt import runtime
from nmt.cluster.group import Group
from nmt.config.schema import Config
from nmt.config.training import TrainingConfig
from nmt.models.base import Seq2SeqModel
from nmt.models.build import build_model
from nmt.training.optimization.muon import Muon
from nmt.training.optimization.optimizer import Adam
from nmt.training.optimization.shared_update import SharedUpdate
from nmt.training.optimization.update import Update


def build_update(
    config: Config,
    vocabulary: dict[str, int],
    group: Group | None = None,
    initialize: Callable[[Seq2SeqModel], None] | None = None,
) -> Update:
    """Build a model with the initial weights of ``training.seed``, and return its update.

    Args:
        config: the configuration; this machine decides a precision "auto".
        vocabulary: number of ids by side, "source" and "target".
        group: the hosts that share the micro-batches of a step; None: this process alone.
        initialize: sets other initial weights. Moving averages start from them too.

    Raises:
        ConfigError: for a model that does not fit the vocabularies.
    """
    gc.collect()  # models are in reference cycles: this frees the memory of one trained before
    precision, seed = runtime.resolve_precision(config.training.precision), config.training.seed
    model = build_model(config.model, vocabulary["source"], vocabulary["target"], precision, seed=seed)
    if initialize:
        initialize(model)
    return make_update(model, config.training, group)


def make_update(model: Seq2SeqModel, config: TrainingConfig, group: Group | None = None) -> Update:
    """Return the update of a model: ``SharedUpdate`` if a step has several micro-batches."""
    optimizer = _optimizer(model, config)
    if config.micro_batches == 1:
        return Update(model, config, optimizer)
    return SharedUpdate(model, config, optimizer, group or Group())


def _optimizer(model: Seq2SeqModel, config: TrainingConfig) -> Adam | Muon:
    variables = model.trainable_variables
    values = [variable.value for variable in variables]
    if config.optimizer == "adam":
        return Adam(values, config)
    blocks = [variable.blocks for variable in variables]
    return Muon(values, blocks, config, "bfloat16" if model.compute_dtype == "bfloat16" else "float32")
