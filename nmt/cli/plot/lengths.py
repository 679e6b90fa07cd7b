"""``nmt plot lengths``: sentence lengths of a dataset, and the padding of its batches."""

from typing import TYPE_CHECKING

from nmt.cli.options import ConfigOption, DatasetOption, SetOption
from nmt.cli.plot.saving import FileOption, ShowOption, finish, path_of

if TYPE_CHECKING:
    import numpy as np

    from nmt.config.schema import Config
    from nmt.data.dataset import Dataset
    from nmt.data.token_arrays import Split
    from nmt.plotting.lengths import BatchPadding


def lengths(
    dataset: DatasetOption = None,
    config: ConfigOption = "base.yaml",
    overrides: SetOption = None,
    output: FileOption = None,
    show: ShowOption = False,
) -> None:
    """Draw the sentence lengths of a dataset and its padding.

    The lengths are those of the training split, in tokens without marks of beginning and end. The padding is that of
    the batches of the first epoch, as section training makes them by batch_type and batch_size; beside batches of
    sentences in random order stand those by length. Prints the path of the figure.

    Examples:
        nmt plot lengths
        nmt plot lengths --dataset multi30k --config base.yaml
        nmt plot lengths --set training.batch_size=128 -o lengths.pdf
    """
    from nmt.config.loading import find_config, load_config
    from nmt.data.dataset import find_dataset
    from nmt.plotting.figures import empty_figure
    from nmt.plotting.lengths import draw_lengths

    path = path_of("lengths", output)
    settings = load_config(find_config(config), overrides)
    found = find_dataset(dataset or settings.data.dataset)
    split = found.split("train")
    figure = empty_figure(6.4)
    draw_lengths(figure, _title(found), _sides(found, split), found.manifest.unit, _plans(split, settings, found))
    finish(figure, path, show=show)


def _title(dataset: "Dataset") -> str:
    pairs = dataset.manifest.splits["train"].pairs
    return f"data {dataset.name} · training split, {pairs:,} pairs · prepared {dataset.manifest.prepared_at[:10]}"


def _sides(dataset: "Dataset", split: "Split") -> "dict[str, np.ndarray]":
    """Return the lengths of each side, by its name such as "source (en)"."""
    languages = dataset.manifest.languages
    names = [side if code == side else f"{side} ({code})" for side, code in languages.items()]
    return dict(zip(names, (split.source.lengths, split.target.lengths), strict=True))


def _plans(split: "Split", config: "Config", dataset: "Dataset") -> "list[BatchPadding]":
    """Return the padding of the configured batches of epoch 1, and of batches of sentences by length."""
    from nmt.data.batch_plan import plan_epoch
    from nmt.plotting.lengths import padding_of

    training, sides = config.training, _sides(dataset, split)
    # The decoder reads a target from bos to the last token and predicts it from the first token to eos.
    marks = dict(zip(sides, (1 + config.model.reads_bos, 1), strict=True))
    in_sentences = training.batch_type == "sentences"
    orders = [False, True] if in_sentences else [True]
    plans = []
    for by_length in orders:
        plan = plan_epoch(
            split, training.batch_size, seed=training.seed, epoch=1, sort_by_length=by_length,
            batch_type=training.batch_type,
        )  # fmt: skip
        size = f"{training.batch_size:,} {'pairs' if in_sentences else 'target tokens'}"
        order = "by length" if by_length else "random order"
        plans.append(padding_of(f"{size}, {order}", plan, sides, marks))
    return plans
