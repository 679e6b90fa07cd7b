"""``nmt plot`` for figures of runs and datasets with options of their own."""

import contextlib
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from nmt.cli.options import ConfigOption, DatasetOption, EpochOption, RunOption, SetOption
from nmt.errors import DataError, NmtError, NotFoundError, counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from nmt.decoding.translation import AttentionMaps
    from nmt.runs.directory import Run

SCORES = "nmt evaluate --by-length --json > scores.json"
SOURCE, READ, WRITTEN = "source", "target, as read", "target, as written"
KINDS = {
    "encoder": ("Self-attention of the encoder", SOURCE, SOURCE),
    "decoder": ("Self-attention of the decoder", READ, READ),
    "cross": ("Cross-attention", WRITTEN, SOURCE),
}
"""Name, tokens that attend, at the rows of a matrix, and tokens that are attended to, by kind of attention."""
SEPARATOR = "\N{NO-BREAK SPACE}· "  # a line of the title breaks behind the dot


def compare(
    figure: "Figure",
    runs: Annotated[list[str], typer.Argument(help="Runs in checkpoints/.", metavar="RUN")],
    metric: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Metric of the validation, such as loss or bleu, or of training, such as train-loss or learning-rate.",
        ),
    ] = "loss",
    by: Annotated[
        Literal["steps", "epochs", "tokens", "minutes"],
        typer.Option(metavar="AXIS", help="steps, epochs, tokens or minutes."),
    ] = "epochs",
) -> None:
    """Draw a metric of several runs.

    Each run has a curve, with its best value beside its name. Where the datasets of the runs differ, the names say so.

    Examples:
        nmt plot compare base wide deep
        nmt plot compare base wide --metric accuracy --by minutes
        nmt plot compare base wide --metric train-loss --by tokens -o losses.pdf
    """
    from nmt.plotting.comparison import draw_comparison
    from nmt.runs.directory import find_run

    draw_comparison(figure, [find_run(name) for name in dict.fromkeys(runs)], metric, by)


def by_length(
    figure: "Figure",
    file: Annotated[
        Path | None, typer.Argument(help="Evaluation, saved by nmt evaluate --by-length --json.", metavar="[FILE]")
    ] = None,
    run: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RUN[:EPOCH]",
            help="Run to evaluate on its test split. Default: the run trained last. Repeat to compare.",
        ),
    ] = None,
) -> None:
    """Draw BLEU and chrF by source length.

    Without FILE the runs translate the test split of their dataset, as nmt evaluate does. With FILE nothing is
    translated.

    Examples:
        nmt plot by-length --run base --run wide
        nmt evaluate --run base --beam 5 --by-length --json > scores.json
        nmt plot by-length scores.json
    """
    from nmt.cli.bars import Bar
    from nmt.evaluation.evaluate import evaluate
    from nmt.evaluation.result import EvaluationRecord
    from nmt.plotting.comparison import draw_by_length
    from nmt.storage.json_file import parse_json

    if file is None:
        settings: dict[str, Any] = {"resamples": 0, "examples": 0, "metrics": ["bleu"], "by_length": True}
        with contextlib.closing(Bar("sentences")) as bar:
            record, when = evaluate(run or [], progress=bar.show, **settings).record, datetime.now()
    elif run:
        raise NmtError(
            f"--run has no effect: {file} holds the scores, so nothing is translated. Leave out --run or the file."
        )
    else:
        try:
            record = EvaluationRecord.model_validate(parse_json(file.read_bytes()))
        except ValueError:
            raise DataError(
                f"{file} is no evaluation that nmt evaluate --json printed. Make one with: {SCORES}"
            ) from None
        if not record.by_length:
            raise DataError(f"{file} has no scores by source length. Make it with: {SCORES}")
        when = datetime.fromtimestamp(file.stat().st_mtime)
    test_set = record.test_set
    name = f"test split of {test_set.dataset}" if test_set.dataset else test_set.source
    draw_by_length(figure, f"{name} · {counted(test_set.sentences, 'sentence')} · {when.date()}", record.by_length)


def lengths(
    figure: "Figure", dataset: DatasetOption = None, config: ConfigOption = "base.yaml", overrides: SetOption = None
) -> None:
    """Draw the sentence lengths of a dataset, and tell its padding.

    The lengths are those of the training split, in tokens without marks of beginning and end. The padding is that of
    the batches of the first epoch, by training.batch_type and training.batch_size.

    Examples:
        nmt plot lengths
        nmt plot lengths --dataset multi30k --config base.yaml
        nmt plot lengths --set training.batch_size=128 -o lengths.pdf
    """
    from nmt.config.loading import find_config, load_config
    from nmt.data.batch_plan import plan_epoch
    from nmt.data.dataset import find_dataset
    from nmt.plotting.lengths import draw_lengths, padding_of

    settings = load_config(find_config(config), overrides)
    training, found = settings.training, find_dataset(dataset or settings.data.dataset)
    split, manifest = found.split("train"), found.manifest
    names = [side if code == side else f"{side} ({code})" for side, code in manifest.languages.items()]
    sides = dict(zip(names, (split.source.lengths, split.target.lengths), strict=True))
    # The decoder reads a target from bos to the last token and predicts it from the first token to eos.
    marks = dict(zip(names, (1 + settings.model.reads_bos, 1), strict=True))
    plan = plan_epoch(split, training.batch_size, seed=training.seed, epoch=1, batch_type=training.batch_type)
    padding = [f"{share:.1%} of {side}" for side, share in padding_of(plan, sides, marks).items()]
    draw_lengths(
        figure, f"data {found.name} · training split, {counted(manifest.splits['train'].pairs, 'pair')} · prepared "
        f"{manifest.prepared_at[:10]} · padding in batches of {training.batch_size:,} "
        f"{'pairs' if training.batch_type == 'sentences' else 'target tokens'}: {', '.join(padding)}",
        sides, manifest.unit,
    )  # fmt: skip


def attention(
    figure: "Figure",
    sentence: Annotated[str, typer.Argument(help="Source sentence.")],
    run: RunOption = None,
    epoch: EpochOption = None,
    kind: Annotated[
        Literal["encoder", "decoder", "cross"],
        typer.Option(
            metavar="KIND",
            help="encoder or decoder: self-attention of that side. cross: attention of the decoder to the source.",
        ),
    ] = "cross",
    layer: Annotated[
        str | None, typer.Option(metavar="N", help="Layer, from 1, or all. Default: the last layer.")
    ] = None,
    head: Annotated[
        str, typer.Option(metavar="N", help="Head, from 1, or all, or mean: the mean over the heads of a layer.")
    ] = "all",
    target: Annotated[
        str | None,
        typer.Option(help="Translation that the decoder reads, word by word. Default: the run's own translation."),
    ] = None,
) -> "Run":
    """Draw the attention of a run on a sentence, by layer and head.

    The run translates the sentence as nmt translate does, or reads the translation of --target. A row of a matrix
    belongs to a token that attends, a column to a token attended to. In cross-attention a row bears the token that is
    written next, in self-attention the token that is read. A recurrent model has cross-attention alone.

    Examples:
        nmt plot attention "im thirsty"
        nmt plot attention --head mean "im thirsty"
        nmt plot attention --kind decoder --layer all -o heads.pdf "im thirsty"
        nmt plot attention --target "ich habe durst" "im thirsty"
    """
    import numpy as np

    from nmt.plotting.attention import draw_attention
    from nmt.runs.directory import find_run

    chosen = find_run(run)
    maps, tokens, details = _attend(chosen, sentence, epoch, target)
    weights = getattr(maps, kind)  # [layers, heads, rows, columns]
    if weights is None:
        raise DataError(
            f"Run {chosen.name!r} has no self-attention: architecture {chosen.config().model.architecture!r} has "
            f"attention of the decoder to the source alone. Leave --kind {kind} out."
        )
    if kind == "decoder":
        weights = np.where(np.tri(weights.shape[-1]) > 0, weights, np.nan)  # blank where the causal mask forbids it
    count, heads = weights.shape[:2]
    layers = _numbers("layer", layer or str(count), count, chosen.name)
    part = f"all {count} layers" if len(layers) > 1 else f"layer {layers[0]} of {count}"
    if head == "mean":
        weights, shown = weights.mean(axis=1, keepdims=True), [1]
        part += f", mean of {heads} heads" if heads > 1 else ""
    else:
        shown = _numbers("head", head, heads, chosen.name)
        part += f", head {shown[0]} of {heads}" if len(shown) < heads else ""
    panels = []
    for number in layers:
        for one in shown:  # a caption says what differs between the matrices
            caption = [f"layer {number}"] * (len(layers) > 1) + [f"head {one}"] * (len(shown) > 1)
            panels.append((", ".join(caption), weights[number - 1, one - 1]))
    name, *sides = KINDS[kind]
    rows, columns = ((side, tokens[side]) for side in sides)
    row = {"across": len(shown)} if len(layers) > 1 and len(shown) > 1 else {}  # a layer has a row of its own
    draw_attention(figure, panels, rows, columns, f"{name}, {part}", details, **row)
    return chosen


def _numbers(name: str, value: str, count: int, run: str) -> list[int]:
    """Return the layers or heads, of 1 .. ``count``, that an option chooses.

    Raises:
        NotFoundError: for a value that is neither a number of one of them nor "all".
    """
    if value == "all":
        return [*range(1, count + 1)]
    if value not in map(str, range(1, count + 1)):
        raise NotFoundError(
            f"The attention of run {run!r} has no {name} {value!r}. Its {name}s: {f'1-{count}' if count > 1 else 1}. "
            f"Give one of these, or all{', or mean' if name == 'head' else ''}."
        )
    return [int(value)]


def _attend(
    run: "Run", sentence: str, epoch: str | None, target: str | None
) -> "tuple[AttentionMaps, dict[str, list[str]], str]":
    """Translate a sentence, unless its translation is given, and return the attention of the run on both.

    Returns:
        Attention, tokens of each side of a matrix, and what a title says of run, data, date, weights and translation.

    Raises:
        DataError: for a sentence or translation without words, or longer than the model reads.
        NotFoundError: if there are no such weights.
    """
    from nmt.cli.commands.translate import warn
    from nmt.decoding.translator import Translator
    from nmt.plotting.style import run_title
    from nmt.tokenizers.base import BOS

    translator = Translator.open(run, epoch)
    name = repr(sentence[:60])
    if not translator.encode([sentence], [name])[0]:
        raise DataError(
            f"Sentence {sentence[:60]!r} has no words after normalization. Attention needs a word at least. Give "
            "another sentence."
        )
    of = translator.epoch if isinstance(translator.epoch, str) else f"epoch {translator.epoch}"
    details = SEPARATOR.join([run_title(run).replace(" · ", SEPARATOR), f"weights: {of}"])
    if target is None:
        [translation] = translator.translate_details([sentence], names=[name])
    else:
        translation = translator.given_translation(target)
        details += f"{SEPARATOR}translation given"
        for text, words in (
            (sentence, translator.source.unknown(sentence)), (target, translator.target.unknown(target)),
        ):  # fmt: skip
            if words:
                typer.echo(f"nmt: {text[:60]!r}: unknown to the model: {', '.join(words)}", err=True)
    maps = translator.attention_maps(sentence, translation)
    if target is None:
        warn([translation], [name])
    written = translator.target.pieces(translation.ids)
    read = [*translator.target.pieces([BOS]), *written[:-1]]
    return maps, {SOURCE: translator.source.pieces(maps.source), READ: read, WRITTEN: written}, details
