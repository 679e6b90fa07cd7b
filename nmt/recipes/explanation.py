"""A recipe in words: what was chosen, and why."""

from collections.abc import Mapping, Sequence
from typing import Any

from nmt.config.model import TransformerConfig
from nmt.config.schema import Config
from nmt.models.registry import count_weights
from nmt.recipes.choice import Choice, steps_for
from nmt.recipes.facts import Facts
from nmt.recipes.sizes import SIZES, Size


def explain(
    facts: Facts, choice: Choice, config: Config, given: Mapping[str, Any], budget: Sequence[str] = ()
) -> list[str]:
    """Return the reasons of a recipe, a line each: data, model, length of the run, batches and learning rate.

    Args:
        facts: facts of the dataset.
        choice: chosen settings.
        config: configuration in force, which may differ from them.
        given: values that the user has set, by "section.key".
        budget: lines about the budget of time.
    """
    lines = [_data(facts), _model(facts, choice, config), _length(facts, config), _learning(config), *budget]
    if given:
        lines.append(f"Set by you: {', '.join(f'{key} {value_in(config, key)!r}' for key in given)}.")
    return lines


def value_in(config: Config, key: str) -> Any:
    """Return the value of "section.key"."""
    section, _, name = key.partition(".")
    return getattr(getattr(config, section), name)


def _data(facts: Facts) -> str:
    sides = (
        f"{facts.source_vocabulary:,} {facts.unit} for both sides"
        if facts.is_joint
        else f"{facts.source_vocabulary:,} source and {facts.target_vocabulary:,} target {facts.unit}"
    )
    return (
        f"Recipe for dataset {facts.dataset}: {facts.pairs:,} training pairs, {facts.target_tokens:,} target tokens "
        f"(median sentence: {facts.target_length}), a vocabulary of {sides}."
    )


def _model(facts: Facts, choice: Choice, config: Config) -> str:
    weights = count_weights(config.model, facts.vocabulary)
    described = f"Model: {config.model.description}; {_millions(weights)} weights"
    if config.training.start_from:
        return f"{described}, those of run {config.training.start_from}, from which it starts."
    if not isinstance(config.model, TransformerConfig):
        return f"{described}. The size is the default, since recipes choose sizes of the Transformer alone."
    tied = " One matrix serves both embeddings and the output layer." if config.model.tie_embeddings == "all" else ""
    return f"{described}{_pairs_of_size(choice.size, config.model)}.{tied}"


def _pairs_of_size(size: Size, model: TransformerConfig) -> str:
    """Return for which corpora a model of this size is; nothing for another size than that of the row."""
    if (size.layers, size.layers, size.width) != (model.encoder_layers, model.decoder_layers, model.d_model):
        return ""
    same = [number for number, row in enumerate(SIZES) if (row.layers, row.width) == (size.layers, size.width)]
    least = SIZES[same[0]].pairs
    if same[-1] + 1 == len(SIZES):
        return f", the size from {least:,} pairs on"
    most = SIZES[same[-1] + 1].pairs
    return f", the size for {least:,} to {most:,} pairs" if least else f", the size for fewer than {most:,} pairs"


def _length(facts: Facts, config: Config) -> str:
    training = config.training
    about = ""
    if training.batch_type == "tokens":
        steps = -(-steps_for(facts, training.batch_size) // training.micro_batches) * training.epochs
        about = f", about {steps:,} steps"
    dropout = getattr(config.model, "dropout", None)
    against = f" Dropout is {dropout:g}, since each pair is seen {training.epochs} times." if dropout else ""
    return f"Length: {training.epochs} epochs{about}; the fewer pairs, the more epochs.{against}"


def _learning(config: Config) -> str:
    training = config.training
    together = f"{training.micro_batches} x " if training.micro_batches > 1 else ""
    unit = "target tokens" if training.batch_type == "tokens" else "sentences"
    batches = f"Learning: batches of {together}{training.batch_size:,} {unit}"
    optimizer = training.optimizer.capitalize()
    if training.schedule != "linear":
        return f"{batches}; {optimizer}, schedule {training.schedule}."
    return (
        f"{batches}; {optimizer}, whose rate rises to {training.peak_learning_rate:g} in {training.warmup_steps:,} "
        f"steps and falls to {training.final_learning_rate:g} at the end, so no average of epochs is needed."
    )


def _millions(weights: int) -> str:
    return f"{weights / 1e6:.1f} million" if weights >= 1e5 else f"{weights:,}"
