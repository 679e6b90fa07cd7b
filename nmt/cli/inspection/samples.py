"""``nmt samples``: translations of the sample sentences at each validation."""

from collections.abc import Iterator
from itertools import groupby

import typer

from nmt.cli.options import RunOption
from nmt.errors import NotFoundError


def samples(run: RunOption = None) -> None:
    """Show how translations of sample sentences changed in training.

    The sentences are the first of the validation split. The setting training.samples is their number.

    Examples:
        nmt samples
        nmt samples --run base
    """
    from nmt.runs.directory import find_run
    from nmt.runs.metrics import EpochMetrics, SampleMetrics

    chosen = find_run(run)
    records = chosen.metrics()
    steps_of_epochs = {record.step for record in records if isinstance(record, EpochMetrics)}
    # Key: number of the sentence, source and reference. Value: translations with their times, an epoch or "step 1,500".
    history: dict[tuple[int, str, str], list[tuple[int | str, str]]] = {}
    for record in records:
        if isinstance(record, SampleMetrics):
            time = record.epoch if record.step in steps_of_epochs else f"step {record.step:,}"
            for number, sample in enumerate(record.samples, start=1):
                history.setdefault((number, sample.source, sample.reference), []).append((time, sample.translation))
    if not history:
        raise NotFoundError(
            f"Run {chosen.name!r} has no sample translations. Training makes them at each validation if "
            "training.samples is not 0. Train with --set training.samples=3"
        )
    for number, source, reference in sorted(history):
        rows = [*_merged(history[number, source, reference])]
        width = max(len(times) for times, _ in rows)
        typer.echo(f"{number}. {source}\n   reference: {reference}")
        for times, translation in rows:
            typer.echo(f"   {times:{width}}  ->  {translation}")


def _merged(translations: list[tuple[int | str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the times of each translation and the translation, equal neighbours merged."""
    for translation, group in groupby(translations, key=lambda entry: entry[1]):
        times = [time for time, _ in group]
        epochs = [time for time in times if isinstance(time, int)]
        if len(epochs) == len(times):
            from nmt.runs.metrics import in_ranges

            yield f"epoch{'s' if len(times) > 1 else ''} {in_ranges(epochs)}", translation
        else:
            first, last = (time if isinstance(time, str) else f"epoch {time}" for time in (times[0], times[-1]))
            yield first if len(times) == 1 else f"{first} to {last}", translation
