"""``nmt plot`` commands for figures of runs and datasets that have further options."""

import contextlib
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from nmt.cli.options import ConfigOption, DatasetOption, EpochOption, FromOption, RunOption, SetOption, ToOption
from nmt.errors import DataError, NmtError, NotFoundError, counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from nmt.decoding.translation import AttentionMaps
    from nmt.runs.directory import Run

SCORES = "nmt evaluate --by-length --json > scores.json"
SOURCE, READ, WRITTEN = "source", "target, as read", "target, as written"
"""Names of token sequences: the source, and the target as the decoder reads it (from bos) and writes it (to eos)."""
KINDS = {
    "encoder": ("Self-attention of the encoder", SOURCE, SOURCE),
    "decoder": ("Self-attention of the decoder", READ, READ),
    "cross": ("Cross-attention", WRITTEN, SOURCE),
}
"""Name of each kind of attention, the tokens that attend (rows of a matrix), and the tokens attended to (columns)."""
SEPARATOR = "\N{NO-BREAK SPACE}· "  # lets a line of the title break only after the dot


def compare(
    figure: "Figure",
    runs: Annotated[list[str], typer.Argument(help="Runs in checkpoints/.", metavar="RUN")],
    metric: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Metric of validation, such as loss or bleu, or of training, such as train-loss or learning-rate.",
        ),
    ] = "loss",
    by: Annotated[
        Literal["steps", "epochs", "tokens", "minutes"],
        typer.Option(metavar="AXIS", help="Horizontal axis: steps, epochs, tokens or minutes."),
    ] = "epochs",
) -> None:
    """Draw a metric of several runs.

    Each run has a curve, and the legend gives its best value. If the runs have different datasets, it names these too.

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
        Path | None, typer.Argument(help="Output of nmt evaluate --by-length --json.", metavar="[FILE]")
    ] = None,
    run: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RUN[:EPOCH]",
            help="Run to evaluate on its test split. Repeatable. Default: the run trained last.",
        ),
    ] = None,
) -> None:
    """Draw BLEU and chrF by source length.

    Without FILE, the runs translate the test split of their dataset, as nmt evaluate does. With FILE, nothing is
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
            record = evaluate(run or [], progress=bar.show, **settings).record
        time = datetime.now()
    elif run:
        raise NmtError(
            f"--run has no effect: {file} holds the scores, so nothing is translated. Leave out --run or the file."
        )
    else:
        try:
            record = EvaluationRecord.model_validate(parse_json(file.read_bytes()))
        except ValueError:
            raise DataError(
                f"{file} is not an evaluation that nmt evaluate --json printed. Make one with: {SCORES}"
            ) from None
        if not record.by_length:
            raise DataError(f"{file} has no scores by source length. Make it with: {SCORES}")
        time = datetime.fromtimestamp(file.stat().st_mtime)
    test_set = record.test_set
    name = f"test split of {test_set.dataset}" if test_set.dataset else test_set.source
    details = f"{name} · {counted(test_set.sentences, 'sentence')} · {time.date()}"
    draw_by_length(figure, details, record.by_length)


def lengths(
    figure: "Figure", dataset: DatasetOption = None, config: ConfigOption = "base.yaml", overrides: SetOption = None
) -> None:
    """Draw the sentence lengths of a dataset, and give the share of padding in its batches.

    Lengths are counted on the training split, in tokens without bos and eos. Padding is counted in the batches of the
    first epoch, by training.batch_type and training.batch_size.

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
    training = settings.training
    prepared = find_dataset(dataset or settings.data.dataset)
    split, manifest = prepared.split("train"), prepared.manifest
    names = [side if code == side else f"{side} ({code})" for side, code in manifest.languages.items()]
    sides = dict(zip(names, (split.source.lengths, split.target.lengths), strict=True))
    # The decoder reads a target from bos to the last token and predicts it from the first token to eos.
    marks = dict(zip(names, (1 + settings.model.reads_bos, 1), strict=True))
    plan = plan_epoch(split, training.batch_size, seed=training.seed, epoch=1, batch_type=training.batch_type)
    padding = [f"{share:.1%} of {side}" for side, share in padding_of(plan, sides, marks).items()]
    unit = "pairs" if training.batch_type == "sentences" else "target tokens"
    details = (
        f"data {prepared.name} · training split, {counted(manifest.splits['train'].pairs, 'pair')} · prepared "
        f"{manifest.prepared_at[:10]} · padding in batches of {training.batch_size:,} {unit}: {', '.join(padding)}"
    )
    draw_lengths(figure, details, sides, manifest.unit)


def attention(
    figure: "Figure",
    sentence: Annotated[str, typer.Argument(help="Source sentence.")],
    run: RunOption = None,
    epoch: EpochOption = None,
    kind: Annotated[
        Literal["encoder", "decoder", "cross"],
        typer.Option(
            metavar="KIND",
            help="encoder or decoder: self-attention there. cross: attention of the decoder to the source.",
        ),
    ] = "cross",
    layer: Annotated[
        str | None, typer.Option(metavar="N", help="Layer, from 1, or all. Default: the last layer.")
    ] = None,
    head: Annotated[
        str, typer.Option(metavar="N", help="Head, from 1; all; or mean, the mean over the heads of a layer.")
    ] = "all",
    target: Annotated[
        str | None,
        typer.Option(help="Translation for the decoder to read. Default: the run's own translation."),
    ] = None,
    to: ToOption = None,
    from_: FromOption = None,
) -> "Run":
    """Draw the attention of a run on a sentence, by layer and head.

    The run translates the sentence as nmt translate does, or reads the translation of --target. A row of a matrix
    belongs to a token that attends, a column to a token attended to. The label of a row is the token written next in
    cross-attention, and the token read in self-attention. Recurrent models have only cross-attention.

    Examples:
        nmt plot attention "im thirsty"
        nmt plot attention --head mean "im thirsty"
        nmt plot attention --kind decoder --layer all -o heads.pdf "im thirsty"
        nmt plot attention --target "ich habe durst" "im thirsty"
    """
    import numpy as np

    from nmt.plotting.attention import ACROSS, draw_attention
    from nmt.runs.directory import find_run

    chosen = find_run(run)
    maps, tokens, details = _attend(chosen, sentence, epoch, target, to, from_)
    weights = getattr(maps, kind)  # [layers, heads, rows, columns]
    if weights is None:
        raise DataError(
            f"Run {chosen.name!r} has no self-attention of the {kind}. To see the attention of the decoder to the "
            f"source, leave --kind {kind} out."
        )
    if kind == "decoder":
        weights = np.where(np.tri(weights.shape[-1]) > 0, weights, np.nan)  # blank where the causal mask forbids it
    layer_count, head_count = weights.shape[:2]
    layers = _numbers("layer", layer or str(layer_count), layer_count, chosen.name)
    part = f"all {layer_count} layers" if len(layers) > 1 else f"layer {layers[0]} of {layer_count}"
    if head == "mean":
        weights, heads = weights.mean(axis=1, keepdims=True), [1]
        part += f", mean of {head_count} heads" if head_count > 1 else ""
    else:
        heads = _numbers("head", head, head_count, chosen.name)
        part += f", head {heads[0]} of {head_count}" if len(heads) < head_count else ""
    panels = []
    for layer_number in layers:
        for head_number in heads:  # a caption names only what differs between the matrices
            caption = [f"layer {layer_number}"] * (len(layers) > 1) + [f"head {head_number}"] * (len(heads) > 1)
            panels.append((", ".join(caption), weights[layer_number - 1, head_number - 1]))
    name, row_side, column_side = KINDS[kind]
    rows, columns = (row_side, tokens[row_side]), (column_side, tokens[column_side])
    across = len(heads) if len(layers) > 1 and len(heads) > 1 else ACROSS  # each layer gets its own row
    draw_attention(figure, panels, rows, columns, f"{name}, {part}", details, across=across)
    return chosen


def _numbers(name: str, value: str, count: int, run: str) -> list[int]:
    """Return the numbers of the layers or heads, from 1 to ``count``, that an option chooses.

    Raises:
        NotFoundError: for a value that is neither such a number nor "all".
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
    run: "Run", sentence: str, epoch: str | None, target: str | None, to: str | None, from_: str | None
) -> "tuple[AttentionMaps, dict[str, list[str]], str]":
    """Return the attention of a run on a sentence and its translation: ``target``, or the run's own if that is None.

    Returns:
        Attention; tokens by the names SOURCE, READ and WRITTEN; and details for the title: run, data, date, weights.

    Raises:
        DataError: for a sentence or translation without words, or longer than the model reads.
        NotFoundError: if there are no such weights.
    """
    from nmt.cli.commands.translate import warn
    from nmt.plotting.style import run_title
    from nmt.text.translator import Translator
    from nmt.tokenizers.base import BOS

    chosen = {"target_language": to, "source_language": from_}
    translator = Translator.open(run, epoch, {key: code for key, code in chosen.items() if code})
    name = repr(sentence[:60])
    if not translator.encode([sentence], [name])[0]:
        raise DataError(
            f"Sentence {sentence[:60]!r} has no words after normalization. Attention needs at least one word. Give "
            "another sentence."
        )
    weights = translator.epoch if isinstance(translator.epoch, str) else f"epoch {translator.epoch}"
    details = SEPARATOR.join([run_title(run).replace(" · ", SEPARATOR), f"weights: {weights}"])
    if target is None:
        [translation] = translator.translate_details([sentence], names=[name])
    else:
        translation = translator.given_translation(target)
        details += f"{SEPARATOR}translation given"
        for text, tokenizer in ((sentence, translator.source), (target, translator.target)):
            words = tokenizer.unknown(text)
            if words:
                typer.echo(f"nmt: {text[:60]!r}: unknown to the model: {', '.join(words)}", err=True)
    maps = translator.attention_maps(sentence, translation)
    if target is None:
        warn([translation], [name])
    written = translator.target.pieces(translation.ids)
    read = [*translator.target.pieces([BOS]), *written[:-1]]
    return maps, {SOURCE: translator.source.pieces(maps.source), READ: read, WRITTEN: written}, details
