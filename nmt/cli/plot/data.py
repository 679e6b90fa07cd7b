"""``nmt plot`` for figures of several runs and of data: compare, by-length, lengths."""

import contextlib
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.options import ConfigOption, DatasetOption, SetOption
from nmt.cli.plot.drawing import OutputOption, drawing
from nmt.errors import DataError, NmtError, NotFoundError

if TYPE_CHECKING:
    from nmt.evaluation.result import EvaluationRecord

AGAIN = "Make it with: nmt evaluate --by-length --json > scores.json"


def compare(
    runs: Annotated[list[str], typer.Argument(help="Runs in checkpoints/.", metavar="RUN...")],
    metric: Annotated[
        str,
        typer.Option(
            "--metric",
            metavar="NAME",
            help="Metric of the validation, such as loss or bleu, or of training, such as train-loss or learning-rate.",
        ),
    ] = "loss",
    by: Annotated[str, typer.Option("--by", metavar="AXIS", help="steps, epochs, tokens or minutes.")] = "epochs",
    output: OutputOption = None,
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

    with drawing("compare", output) as figure:
        draw_comparison(figure, [find_run(name) for name in dict.fromkeys(runs)], metric, by)


def by_length(
    file: Annotated[
        Path | None, typer.Argument(help="Evaluation, saved by nmt evaluate --by-length --json.", metavar="[FILE]")
    ] = None,
    run: Annotated[
        list[str] | None,
        typer.Option(
            "--run",
            metavar="RUN[:EPOCH]",
            help="Run to evaluate on its test split. Default: the run trained last. Repeat to compare.",
        ),
    ] = None,
    output: OutputOption = None,
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
    from nmt.plotting.comparison import draw_by_length

    if file is not None and run:
        raise NmtError(
            f"--run has no effect: {file} holds the scores, so nothing is translated. Leave out --run or the file."
        )
    with drawing("by-length", output) as figure:
        if file is None:
            with contextlib.closing(Bar("sentences")) as bar:
                record = evaluate(
                    run or [], resamples=0, examples=0, metrics=["bleu"], by_length=True, progress=bar.show
                ).record
            when = datetime.now()
        else:
            record, when = _read_evaluation(file), datetime.fromtimestamp(file.stat().st_mtime)
        test_set, buckets = record.test_set, [bucket.scores for bucket in record.by_length]
        name = f"test split of {test_set.dataset}" if test_set.dataset else test_set.source
        scores = {
            metric: {
                system: [bucket.systems[system][metric].score for bucket in buckets] for system in buckets[0].systems
            }
            for metric in buckets[0].signatures
        }
        title = f"{name} · {test_set.sentences:,} sentences · {when.date()}"
        lengths = [bucket.lengths for bucket in record.by_length]
        draw_by_length(figure, title, lengths, [bucket.sentences for bucket in buckets], scores)


def _read_evaluation(path: Path) -> "EvaluationRecord":
    """Return the evaluation that ``nmt evaluate --json`` printed into a file.

    Raises:
        NotFoundError: if there is no such file.
        DataError: if it is none, or has no scores by length.
    """
    from pydantic import ValidationError

    from nmt.evaluation.result import EvaluationRecord

    try:
        record = EvaluationRecord.model_validate_json(path.read_bytes())
    except OSError as error:
        raise NotFoundError(f"{path} cannot be read: {error.strerror}. {AGAIN}") from None
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, problem["loc"]))[:100] or "file"
        raise DataError(f"{path} is no evaluation: {place}: {problem['msg'][:100]}. {AGAIN}") from None
    if not record.by_length:
        raise DataError(f"{path} has no scores by source length, for it was made without --by-length. {AGAIN}")
    return record


def lengths(
    dataset: DatasetOption = None,
    config: ConfigOption = "base.yaml",
    overrides: SetOption = None,
    output: OutputOption = None,
) -> None:
    """Draw the sentence lengths of a dataset and its padding.

    The lengths are those of the training split, in tokens without marks of beginning and end. The padding is that of
    the batches of the first epoch, as section training makes them by batch_type and batch_size; beside batches of
    sentences in random order stand those by length.

    Examples:
        nmt plot lengths
        nmt plot lengths --dataset multi30k --config base.yaml
        nmt plot lengths --set training.batch_size=128 -o lengths.pdf
    """
    from nmt.config.loading import find_config, load_config
    from nmt.data.batch_plan import plan_epoch
    from nmt.data.dataset import find_dataset
    from nmt.plotting.lengths import draw_lengths, padding_of

    with drawing("lengths", output) as figure:
        settings = load_config(find_config(config), overrides)
        training, found = settings.training, find_dataset(dataset or settings.data.dataset)
        split, manifest = found.split("train"), found.manifest
        names = [side if code == side else f"{side} ({code})" for side, code in manifest.languages.items()]
        sides = dict(zip(names, (split.source.lengths, split.target.lengths), strict=True))
        # The decoder reads a target from bos to the last token and predicts it from the first token to eos.
        marks = dict(zip(names, (1 + settings.model.reads_bos, 1), strict=True))
        in_sentences = training.batch_type == "sentences"
        plans = []
        for by_length in [False, True] if in_sentences else [True]:
            plan = plan_epoch(
                split, training.batch_size, seed=training.seed, epoch=1, sort_by_length=by_length,
                batch_type=training.batch_type,
            )  # fmt: skip
            size = f"{training.batch_size:,} {'pairs' if in_sentences else 'target tokens'}"
            name = f"{size}, {'by length' if by_length else 'random order'}"
            plans.append(padding_of(name, plan, sides, marks))
        pairs = f"{manifest.splits['train'].pairs:,} pairs"
        title = f"data {found.name} · training split, {pairs} · prepared {manifest.prepared_at[:10]}"
        draw_lengths(figure, title, sides, manifest.unit, plans)
