"""``nmt samples``: what training made of the same sentences, validation by validation."""

from collections.abc import Iterator
from itertools import groupby
from typing import Annotated

import typer

from nmt.errors import NotFoundError
from nmt.runs.epoch_ranges import in_ranges


def samples(
    run: Annotated[str | None, typer.Option("--run", help="A run in checkpoints/; by default the latest.")] = None,
) -> None:
    """Show how the translations of the sample sentences changed while a run was trained."""
    from nmt.runs.directory import find_run
    from nmt.runs.metrics import EpochMetrics, SampleMetrics

    chosen = find_run(run)
    records = chosen.metrics()
    after_epochs = {record.step for record in records if isinstance(record, EpochMetrics)}
    # Sentence by sentence, in the order of the validation split: when it was translated, and how.
    history: dict[tuple[int, str, str], list[tuple[int | str, str]]] = {}
    for record in records:
        if isinstance(record, SampleMetrics):
            when = record.epoch if record.step in after_epochs else f"step {record.step:,}"
            for number, one in enumerate(record.samples, start=1):
                history.setdefault((number, one.source, one.reference), []).append((when, one.translation))
    if not history:
        raise NotFoundError(
            f"Sample translations are made in training, at each validation, if training.samples is not 0; run "
            f"{chosen.name!r} has none. Train with --set training.samples=3"
        )
    for number, source, reference in sorted(history):
        rows = [*_folded(history[number, source, reference])]
        width = max(len(when) for when, _ in rows)
        typer.echo(f"{number}. {source}\n   reference: {reference}")
        for when, translation in rows:
            typer.echo(f"   {when:{width}}  ->  {translation}")


def _folded(translations: list[tuple[int | str, str]]) -> Iterator[tuple[str, str]]:
    """Yield each translation with when it was made, the same several times in a row as one."""
    for translation, group in groupby(translations, key=lambda one: one[1]):
        times = [when for when, _ in group]
        epochs = [when for when in times if isinstance(when, int)]
        if len(epochs) == len(times):
            yield f"epoch{'s' if len(times) > 1 else ''} {in_ranges(epochs)}", translation
        else:
            first, last = (when if isinstance(when, str) else f"epoch {when}" for when in (times[0], times[-1]))
            yield first if len(times) == 1 else f"{first} to {last}", translation
