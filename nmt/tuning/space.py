"""Search space around a base configuration: changes of a key or of a few, and pairs of such changes.

A candidate is the base with some keys set to other values. Candidate 0 is the base itself.
"""

import itertools
import random
from collections.abc import Iterator, Mapping
from typing import Any

import yaml
from pydantic import ValidationError

from nmt.config.record import Record
from nmt.config.recurrent import RecurrentConfig
from nmt.config.schema import Config
from nmt.config.transformer import TransformerConfig
from nmt.recipes.sizes import MUON_PEAK

Changes = dict[str, Any]
"""Values by full key, such as "model.dropout"."""

BASE = 0
"""Number of the candidate that is the base."""
LAYERS = (1, 2, 3, 4, 6, 8, 12, 16, 24)
WIDTHS = (16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048)
RECURRENT_WIDTHS = ("width", "encoder_width", "embedding_width", "attention_width", "maxout_width")
MOST_DROPOUT = 0.6
WITHOUT_COST = {
    "training.peak_learning_rate", "training.learning_rate_scale", "training.warmup_steps", "training.label_smoothing",
    "model.initializer", "model.cross_attention_initializer", "training.initial_embeddings",
}  # fmt: skip
"""Keys that do not change the time of a step."""


class Candidate(Record):
    """A configuration to try."""

    number: int
    """Number of the candidate; 0 is the base."""
    changes: Changes
    """Values that differ from the base, by full key."""

    @property
    def text(self) -> str:
        """The changes in words."""
        if not self.changes:
            return "the recipe"
        return ", ".join(f"{key.partition('.')[2]}={_value(value)}" for key, value in self.changes.items())


def _value(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(yaml.safe_dump(value)).partition("\n")[0]


def with_changes(base: Config, changes: Mapping[str, Any]) -> Config:
    """Return the base with other values.

    Raises:
        ValidationError: if the values break the schema.
    """
    values = base.model_dump()
    for key, value in changes.items():
        section, _, name = key.partition(".")
        values[section][name] = value
    return Config.model_validate(values)


def costs_as_base(base: Config, changes: Mapping[str, Any]) -> bool:
    """Return whether a step takes the same time as a step of the base."""
    rest = changes.keys() - WITHOUT_COST
    return not rest or (
        rest == {"model.dropout"} and bool(changes["model.dropout"] and base.model.model_dump()["dropout"])
    )


def candidates(base: Config, count: int, seed: int) -> list[Candidate]:
    """Return the base and the first N others: single changes, the weighty ones first, then pairs of changes.

    The order is a function of the seed. Each candidate is a valid configuration, and no two are equal.

    Args:
        base: the base configuration.
        count: largest number N of candidates besides the base.
        seed: seed of the order.
    """
    order = random.Random(seed)
    weighty, fine = list(weighty_changes(base)), list(fine_changes(base))
    order.shuffle(weighty)
    order.shuffle(fine)
    pairs = list(itertools.combinations([*weighty, *fine], 2))
    order.shuffle(pairs)
    merged = (combined(*pair) for pair in pairs)
    found, known = [Candidate(number=BASE, changes={})], [base]
    for changes in itertools.chain(weighty, fine, merged):
        if len(found) > count:
            break
        config = valid(base, changes) if changes and _fits_start(base, changes) else None
        if changes and config and config not in known:
            found.append(Candidate(number=len(found), changes=changes))
            known.append(config)
    return found


def _fits_start(base: Config, changes: Mapping[str, Any]) -> bool:
    """Return whether the model can start from the weights that the base starts from."""
    kept = (key for key in changes if key.startswith("model.") and not key.endswith("dropout"))
    return base.training.start_from is None or not any(kept)


def valid(base: Config, changes: Mapping[str, Any]) -> Config | None:
    """Return the changed base; None if the schema refuses it."""
    try:
        return with_changes(base, changes)
    except ValidationError:
        return None


def combined(first: Changes, second: Changes) -> Changes | None:
    """Return both changes together; None if they set the same key."""
    return None if first.keys() & second.keys() else {**first, **second}


# --- single changes


def weighty_changes(base: Config) -> Iterator[Changes]:
    """Yield changes of what usually matters most: learning rate, batch size, optimizer, dropout, depth and width."""
    training = base.training
    rate = "learning_rate_scale" if training.schedule == "noam" else "peak_learning_rate"
    for factor in (2.0, 0.5):
        yield {f"training.{rate}": _rounded(getattr(training, rate) * factor)}
        if isinstance(training.batch_size, int):
            yield {"training.batch_size": max(1, int(training.batch_size * factor))}
    other, factor = ("adam", 1 / MUON_PEAK) if training.optimizer == "muon" else ("muon", MUON_PEAK)
    yield {"training.optimizer": other, f"training.{rate}": _rounded(getattr(training, rate) * factor)}
    yield from _dropouts(base.model.model_dump()["dropout"]) if "dropout" in type(base.model).model_fields else ()
    yield from _sizes(base)


def fine_changes(base: Config) -> Iterator[Changes]:
    """Yield changes of what usually matters less."""
    training, model = base.training, base.model
    for factor in (2.0, 0.5):
        yield {"training.warmup_steps": max(1, int(training.warmup_steps * factor))}
    for smoothing in {0.0, 0.1, _rounded(training.label_smoothing + 0.1)} - {training.label_smoothing}:
        yield {"training.label_smoothing": smoothing}
    if isinstance(model, TransformerConfig):
        inner = 0.0 if model.attention_dropout or model.feed_forward_dropout else 0.1
        yield {"model.attention_dropout": inner, "model.feed_forward_dropout": inner}
        yield {"model.initializer": "small" if model.initializer == "glorot" else "glorot"}
        copies = model.cross_attention_initializer == "copying"
        yield {"model.cross_attention_initializer": "same" if copies else "copying"}
        yield {"model.positions": "sinusoidal" if model.positions == "rotary" else "rotary"}
        yield (
            {"model.norm": "post"} if model.norm == "pre" else {"model.norm": "pre", "model.share_decoder_norm": False}
        )
        deeper, shallower = _next(LAYERS, model.encoder_layers), _next(LAYERS, model.decoder_layers, down=True)
        if deeper and shallower:  # Kasai et al. 2021, "Deep Encoder, Shallow Decoder"
            yield {"model.encoder_layers": deeper, "model.decoder_layers": shallower}
    if isinstance(model, RecurrentConfig):
        yield {"model.initializer": "uniform" if model.initializer == "glorot" else "glorot"}
        if model.step == "luong" and model.attention != "none":
            yield {"model.input_feeding": not model.input_feeding}
    if training.start_from is None and model.trains_embeddings:
        counted = training.initial_embeddings == "cooccurrence"
        yield {"training.initial_embeddings": "random" if counted else "cooccurrence"}
    if isinstance(model, TransformerConfig | RecurrentConfig):
        yield {"model.word_dropout": 0.0 if model.word_dropout else 0.1}


def _dropouts(dropout: float) -> Iterator[Changes]:
    if dropout + 0.1 <= MOST_DROPOUT:
        yield {"model.dropout": _rounded(dropout + 0.1)}
    if dropout > 0:
        lower = dropout - 0.1 if dropout > 0.15 else dropout / 2 if dropout > 0.05 else 0.0
        yield {"model.dropout": _rounded(lower)}


def _sizes(base: Config) -> Iterator[Changes]:
    """Yield the model a step deeper, shallower, wider and narrower."""
    model = base.model
    for down in (False, True):
        if isinstance(model, TransformerConfig):
            encoder, decoder = (_next(LAYERS, side, down=down) for side in (model.encoder_layers, model.decoder_layers))
            if encoder or decoder:
                yield {
                    "model.encoder_layers": encoder or model.encoder_layers,
                    "model.decoder_layers": decoder or model.decoder_layers,
                }
            if width := _next(WIDTHS, model.d_model, down=down):
                yield _transformer_width(model, width)
        elif isinstance(model, RecurrentConfig):
            if layers := _next(LAYERS, model.layers, down=down):
                yield {"model.layers": layers}
            if width := _next(WIDTHS, model.width, down=down):
                set_widths = {name: getattr(model, name) for name in RECURRENT_WIDTHS}
                yield {
                    f"model.{name}": max(1, round(value * width / model.width))
                    for name, value in set_widths.items() if value is not None
                }  # fmt: skip


def _transformer_width(model: TransformerConfig, width: int) -> Changes:
    """Return the changes that make a Transformer of width D: heads keep their size, as far as it divides D."""
    changes: Changes = {"model.d_model": width, "model.d_ff": max(1, round(model.d_ff * width / model.d_model))}
    if model.head_size is None:
        dividing = [heads for heads in range(1, width + 1) if width % heads == 0]
        heads = min(dividing, key=lambda heads: abs(heads - width / model.size_per_head))
        if heads != model.heads:
            changes["model.heads"] = heads
    return changes


def _next(ladder: tuple[int, ...], value: int, *, down: bool = False) -> int | None:
    """Return the nearest number of a ladder above the value, or below it; None if there is none."""
    if down:
        return max((step for step in ladder if step < value), default=None)
    return min((step for step in ladder if step > value), default=None)


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
