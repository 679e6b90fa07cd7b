"""``nmt info``: description of a run."""

import typer

from nmt.cli.options import RunOption


def info(run: RunOption = None) -> None:
    """Describe a run: model, dataset, epochs and configuration.

    The model is listed layer by layer, with shapes and parameters.

    Examples:
        nmt info
        nmt info --run base
    """
    from nmt.cli.commands.prepare import describe
    from nmt.data.manifest import read_manifest
    from nmt.models.accounting import summary
    from nmt.models.registry import parts_of
    from nmt.runs.directory import find_run
    from nmt.runs.epoch_ranges import in_ranges
    from nmt.runs.metrics import best_of, weights_id

    chosen = find_run(run)
    config, manifest = chosen.config(), read_manifest(chosen.dataset_path)

    typer.echo(f"Run {chosen.name} in {chosen.folder}, trained on dataset {manifest.settings.dataset}\n")
    typer.echo(summary(parts_of(config.model, manifest.vocabulary)))
    typer.echo("\n" + describe(manifest) + "\n")
    typer.echo(f"Epochs trained: {len(chosen.epochs())} of {config.training.epochs}")
    best = best_of(chosen.validations(), config.training.best_by)
    if best:
        typer.echo(
            f"Best epoch: {weights_id(best)}, validation accuracy {best.validation_accuracy:.3f}, "
            f"loss {best.validation_loss:.3f}"
        )
    mean = chosen.average()
    if mean:
        scores = (
            "not validated"
            if mean.validation_loss is None
            else f"validation accuracy {mean.validation_accuracy:.3f}, loss {mean.validation_loss:.3f}"
        )
        typer.echo(f"Average of epochs {in_ranges(mean.epochs)}: {scores}; nmt translate uses it")
    typer.echo("\nConfiguration:\n" + config.to_yaml().rstrip())
