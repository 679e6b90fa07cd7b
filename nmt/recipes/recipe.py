"""Recipe: the configuration that ``nmt train`` chooses for a dataset."""

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import yaml

from nmt import gpu
from nmt.config.data import SAMPLED_PAIRS
from nmt.config.loading import CURRENT_FORMAT, FORMAT, config_of, read_overrides
from nmt.config.schema import Config, ModelConfig
from nmt.config.training import BATCH_SIZES
from nmt.config.yaml_io import Dumper
from nmt.data.dataset import Dataset
from nmt.errors import counted
from nmt.message import Argument, Command
from nmt.recipes import sizes
from nmt.recipes.sizes import Size, size_for
from nmt.runs.directory import find_run

COLUMNS = 118

CHANGE = Command("train", Argument("config", "PATH-OF-THIS-FILE"), Argument("run", "NEW-NAME"))


class Facts(NamedTuple):
    """Facts of a dataset that determine its recipe. Token counts leave out bos and eos."""

    dataset: str
    """Name of the dataset."""
    pairs: int
    """Number of training pairs N."""
    source_tokens: int
    target_tokens: int
    """Number of tokens of a side of the training split."""
    target_length: int
    """Median length of a target sentence in tokens; the mean if the manifest has no percentiles."""
    validation_pairs: int
    """Number of validation pairs."""
    is_joint: bool
    """Whether both sides share a vocabulary."""
    directions: int = 1
    """Number of language pairs that the model translates, with each direction counted."""
    has_text: bool = False
    """Whether the dataset has its training text, so that subwords can be sampled."""
    has_repeats: bool = False
    """Whether repeated phrases are ordinary in the targets."""

    @classmethod
    def of(cls, dataset: Dataset) -> Self:
        """Return the facts in the manifest of a dataset."""
        manifest = dataset.manifest
        train, vocabulary = manifest.splits["train"], manifest.vocabulary
        tokens, pairs = train.tokens, train.pairs
        length = train.percentiles["target"]["50"] if train.percentiles else round(tokens["target"] / max(1, pairs))
        is_joint = manifest.settings.joint_vocabulary is True and vocabulary["source"] == vocabulary["target"]
        validation_pairs = manifest.splits["validation"].pairs
        directions = len(manifest.all_directions)
        return cls(
            dataset.name, pairs, tokens["source"], tokens["target"], length, validation_pairs, is_joint, directions,
            manifest.keeps_training_text, manifest.has_ordinary_repeats,
        )  # fmt: skip

    @property
    def is_small(self) -> bool:
        """Whether subwords are to be sampled, and what goes with it: few pairs, and a dataset that allows it."""
        return self.has_text and self.pairs / self.directions < SAMPLED_PAIRS


class Recipe(NamedTuple):
    """Configuration chosen for a dataset, with the reasons."""

    facts: Facts
    """Facts of the dataset."""
    size: Size
    """Row of the table that the configuration follows."""
    overrides: Sequence[str]
    """Settings ``section.key=value`` of the user, which the configuration contains."""
    config: Config
    """The chosen configuration."""
    lines: list[str]
    """Lines about what was chosen and why."""
    yaml: str
    """Configuration file with these lines as a comment; ``load_config`` gives ``config``."""


def compose(
    facts: Facts, overrides: Sequence[str] = (), *, size: Size | None = None, epochs: int | None = None,
    budget: Sequence[str] = (),
) -> Recipe:  # fmt: skip
    """Return the recipe for the facts of a dataset.

    Args:
        facts: the facts.
        overrides: settings ``section.key=value`` of the user. Values that depend on them follow them.
        size: row of the table; None: the row for the number of pairs.
        epochs: number of epochs; None: as in the row.
        budget: lines that say why ``size`` and ``epochs`` were chosen.

    Raises:
        ConfigError: for an override that breaks the schema.
        NotFoundError: if the run that ``training.start_from`` names does not exist.
    """
    given, size = read_overrides(overrides), size or size_for(facts.pairs)
    name = given.get("training.start_from")
    start = find_run(name.partition(":")[0]).config().model if isinstance(name, str) else None
    settings = choose(facts, size, given, epochs=epochs, start=start)
    config = config_of(settings, "The recipe", overrides)
    lines = [*_explained(facts, config, given), *budget]
    comment = [
        *lines,
        f"To change it: {CHANGE}",
        "configs/base.yaml explains every key. A key that is missing here has its default.",
    ]
    wrapped = [part for line in comment for part in textwrap.wrap(line, COLUMNS, subsequent_indent="  ")]
    parts = [{FORMAT: CURRENT_FORMAT}, *({name: keys} for name, keys in config.model_dump(exclude_unset=True).items())]
    texts = [yaml.dump(part, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=10_000) for part in parts]
    text = "\n".join(["".join(f"# {line}\n" for line in wrapped), *texts])
    return Recipe(facts, size, overrides, config, lines, text)


def choose(
    facts: Facts, size: Size, given: Mapping[str, Any], *, epochs: int | None = None, start: ModelConfig | None = None
) -> dict[str, dict[str, Any]]:
    """Return the settings for a dataset by section and key: a pure function of its arguments.

    Args:
        facts: facts of the dataset.
        size: row of the table.
        given: values set by the user, by "section.key"; they need not be valid. Settings that depend on them follow
            them: the peak learning rate follows the width, the warm-up the number of steps. The keys themselves get the
            chosen values.
        epochs: number of epochs; None: see ``epochs_for``.
        start: model section of the run from whose weights this run starts; None: random weights.
    """
    if epochs is None:
        epochs = epochs_for(facts, size)
        epochs = max(1, round(epochs * sizes.FINE_TUNING_EPOCHS)) if start else epochs
    planned = _positive(given, "training.epochs", epochs)
    micro_batches = _positive(given, "training.micro_batches", 1)
    by_tokens = given.get("training.batch_type") != "sentences"
    batch = max(1, (_step_tokens(facts, size) if by_tokens else BATCH_SIZES["sentences"]) // micro_batches)
    received = _positive(given, "training.batch_size", batch)
    batches = steps_for(facts, received) if by_tokens else math.ceil(facts.pairs / received)
    steps = planned * math.ceil(batches / micro_batches)
    is_transformer = start is None and given.get("model.architecture") in (None, "transformer")
    model = _transformer(facts, size, planned, given) if is_transformer else start.model_dump() if start else {}
    width = start.schedule_width if start else model["d_model"] if is_transformer else size.width
    optimizer = "muon" if is_transformer else "adam"
    peak = next(peak for least, peak in sizes.PEAKS if width >= least) * (sizes.FINE_TUNING_PEAK if start else 1)
    peak *= sizes.MUON_PEAK if given.get("training.optimizer", optimizer) == "muon" else 1
    has_words = is_transformer and given.get("model.word_embedding") != "sinusoidal"
    scores = given.get("training.decode_validation") != 0 and facts.validation_pairs >= sizes.SENTENCES_FOR_BLEU
    training = {
        "epochs": epochs,
        "batch_type": "tokens",
        "batch_size": batch,
        "optimizer": optimizer,
        "schedule": "linear",
        **({} if given.get("training.schedule") == "noam" else {"peak_learning_rate": float(f"{peak:.3g}")}),
        "warmup_steps": min(sizes.WARMUP_STEPS, max(1, int(steps * sizes.WARMUP_SHARE))),
        **({"initial_embeddings": "cooccurrence"} if has_words else {}),
        **({"subword_sampling": True, "augment": {"join": sizes.JOINED_PAIRS}} if facts.is_small else {}),
        "label_smoothing": 0.1,
        "average_last": 1,  # the rate ends at zero
        "decode_validation": 200,
        "best_by": ("chrf" if facts.directions > 1 else "bleu") if scores else "accuracy",
        "max_to_keep": 5,
    }
    sections = {"data": {"dataset": facts.dataset}, "model": model, "training": training}
    return {**sections, "decoding": decoding_for(facts)}


def decoding_for(facts: Facts) -> dict[str, Any]:
    """Return the settings of decoding. Translations of a weak model end too early in beam search, and repeat phrases.

    Models are weak if they learn from few pairs, or from long sentences and not very many pairs.
    """
    has_long_sentences = facts.target_length >= sizes.LONG_SENTENCE and facts.pairs < sizes.PAIRS_OF_LONG_RUNS
    if not (facts.is_small or (facts.has_text and has_long_sentences)):
        return {"length_penalty": sizes.LENGTH_PENALTY}
    repeats = {} if facts.has_repeats else {"no_repeat_ngram_size": sizes.NO_REPEAT}
    return {"length_penalty": sizes.LARGER_LENGTH_PENALTY, **repeats}


def epochs_for(facts: Facts, size: Size) -> int:
    """Return the number of epochs of the row, or fewer for a small corpus of long sentences."""
    if size.pairs >= sizes.PAIRS_OF_LONG_RUNS:
        return size.epochs
    fitting = sizes.MOST_TOKENS // max(1, facts.target_tokens)
    return min(size.epochs, max(sizes.LEAST_EPOCHS, fitting))


def steps_for(facts: Facts, batch_tokens: int) -> int:
    """Return the approximate number of batches of an epoch, counting eos of every sentence but no padding."""
    target, source = facts.target_tokens + facts.pairs, facts.source_tokens + facts.pairs
    return max(1, math.ceil(max(target, source / 2) / batch_tokens))


def heads_for(width: int) -> int:
    """Return the number of heads of size 64, or of the next larger size that divides the width."""
    return next(heads for heads in range(max(1, width // sizes.HEAD_SIZE), 0, -1) if width % heads == 0)


def _transformer(facts: Facts, size: Size, epochs: int, given: Mapping[str, Any]) -> dict[str, Any]:
    width = _positive(given, "model.d_model", size.width)
    head_size = _positive(given, "model.head_size", width // _positive(given, "model.heads", heads_for(width)))
    rotary = head_size % 2 == 0 and given.get("model.positions", "rotary") == "rotary"
    return {
        "encoder_layers": size.layers,
        "decoder_layers": size.layers,
        "d_model": width,
        "d_ff": (4 if width >= sizes.WIDE else 2) * width,
        "heads": heads_for(width),
        "dropout": sizes.dropout_for(size, epochs),
        "initializer": "small",
        "cross_attention_initializer": "copying",
        "query_key_norm": True,
        "tie_embeddings": "all" if facts.is_joint else "output",
        **({"self_attention_initializer": "neighbors", "positions": "rotary"} if rotary else {}),
    }


def _step_tokens(facts: Facts, size: Size) -> int:
    """Return the target tokens of a step.

    The row or a GPU determines the number. Long sentences need more, and runs with few steps get fewer.
    """
    on_gpu = size.pairs >= sizes.PAIRS_FOR_GPU and gpu.driver() is not None
    batch, room = sizes.GPU_BATCH if on_gpu else size.batch_tokens, sizes.LEAST_SENTENCES * (facts.target_length + 1)
    if batch < room:
        return min(sizes.MOST_BATCH, 2 ** math.ceil(math.log2(room)))
    while batch > sizes.LEAST_BATCH and steps_for(facts, batch) * size.epochs < sizes.LEAST_STEPS:
        batch //= 2
    return batch


def _positive(given: Mapping[str, Any], key: str, chosen: int) -> int:
    """Return the value set by the user if it is a positive integer, else the chosen value."""
    value = given.get(key)
    return value if type(value) is int and value > 0 else chosen


def _explained(facts: Facts, config: Config, given: Mapping[str, Any]) -> list[str]:
    """Return a line about what was chosen, and a line about the reasons."""
    training = config.training
    unit = "target tokens" if training.batch_type == "tokens" else "sentences"
    together = f"{training.micro_batches} x " if training.micro_batches > 1 else ""
    peak = f" with a peak of {training.peak_learning_rate:g}" if training.peak_learning_rate else ""
    why = "Size, epochs and dropout follow the number of pairs: fewer pairs: a smaller model, more epochs, more dropout"
    if training.start_from:
        why = f"The run starts from the weights of {training.start_from}, so it has the same model and needs few epochs"
    elif config.model.architecture != "transformer":
        why = "Epochs follow the number of pairs. Sizes are chosen for Transformers only"
    own = f" Set by you: {', '.join(given)}." if given else ""
    return [
        f"Recipe for dataset {facts.dataset} of {counted(facts.pairs, 'training pair')}: {config.model.description}, "
        f"dropout {getattr(config.model, 'dropout', 0):g}, {counted(training.epochs, 'epoch')}, batches of {together}"
        f"{training.batch_size:,} {unit}, {training.optimizer}{peak}, schedule {training.schedule}.",
        f"{why} (table: configs/README.md).{own}",
    ]
