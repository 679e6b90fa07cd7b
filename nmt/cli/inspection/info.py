"""``nmt info``: description of a run, or of the model of a configuration."""

import json
from typing import TYPE_CHECKING, Any

import typer

from nmt.cli.options import JsonOption, NoConfigOption, RunOption, SetOption
from nmt.errors import NmtError

if TYPE_CHECKING:
    from nmt.config.schema import Config
    from nmt.models.accounting import Part
    from nmt.runs.directory import Run


def info(
    run: RunOption = None,
    config: NoConfigOption = None,
    overrides: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Describe a run: model, dataset, epochs and configuration.

    The model is listed by layer and sublayer: shapes, parameters, and what each part reads. A name in brackets is read
    as it was in the step before. With --config, describes the model that training on data.dataset would make.

    Examples:
        nmt info
        nmt info --run base --json
        nmt info --config book.yaml --set model.encoder_layers=2
    """
    if config is None:
        if overrides:
            raise NmtError(
                "--set is for the model of a configuration; received it without --config. Add --config FILE, or leave "
                "it out."
            )
        _describe_run(run, as_json=as_json)
        return
    if run is not None:
        raise NmtError(
            f"A description is that of a run or of a configuration; received --run {run} and --config {config}. Leave "
            "one of them out."
        )
    from nmt.config.loading import find_config, load_config
    from nmt.data.dataset import find_dataset
    from nmt.models.accounting import summary
    from nmt.models.registry import parts_of

    settings = load_config(find_config(config), overrides)
    prepared = find_dataset(settings.data.dataset)
    parts = parts_of(settings.model, prepared.manifest.vocabulary)
    if as_json:
        _print(_model(settings, parts, prepared.name, prepared.manifest.vocabulary))
        return
    typer.echo(f"Model of {config}, for the vocabularies of dataset {prepared.name}\n")
    typer.echo(summary(parts))


def _describe_run(name: str | None, *, as_json: bool) -> None:
    from nmt.cli.commands.prepare import describe
    from nmt.data.manifest import read_manifest
    from nmt.models.accounting import summary
    from nmt.models.registry import parts_of
    from nmt.runs.directory import find_run

    chosen = find_run(name)
    config, manifest = chosen.config(), read_manifest(chosen.dataset_path)
    parts = parts_of(config.model, manifest.vocabulary)
    if as_json:
        model = _model(config, parts, manifest.settings.dataset, manifest.vocabulary)
        _print({"run": chosen.name, "folder": str(chosen.folder), **model, **_progress(chosen, config)})
        return
    typer.echo(f"Run {chosen.name} in {chosen.folder}, trained on dataset {manifest.settings.dataset}\n")
    typer.echo(summary(parts))
    typer.echo("\n" + describe(manifest) + "\n")
    _print_progress(chosen, config)
    typer.echo("\nConfiguration:\n" + config.to_yaml().rstrip())


def _print_progress(run: "Run", config: "Config") -> None:
    from nmt.runs.epoch_ranges import in_ranges
    from nmt.runs.metrics import best_of, weights_id

    typer.echo(f"Epochs trained: {len(run.epochs())} of {config.training.epochs}")
    best = best_of(run.validations(), config.training.best_by)
    if best:
        typer.echo(
            f"Best epoch: {weights_id(best)}, validation accuracy {best.validation_accuracy:.3f}, "
            f"loss {best.validation_loss:.3f}"
        )
    mean = run.average()
    if mean:
        scores = (
            "not validated"
            if mean.validation_loss is None
            else f"validation accuracy {mean.validation_accuracy:.3f}, loss {mean.validation_loss:.3f}"
        )
        typer.echo(f"Average of epochs {in_ranges(mean.epochs)}: {scores}; nmt translate uses it")


def _progress(run: "Run", config: "Config") -> dict[str, Any]:
    """Return the epochs, the best validation and the average of a run as what JSON holds."""
    from nmt.runs.metrics import best_of, weights_id

    best, mean = best_of(run.validations(), config.training.best_by), run.average()
    return {
        "epochs": len(run.epochs()),
        "best": best
        and {"weights": weights_id(best), "loss": best.validation_loss, "accuracy": best.validation_accuracy},
        "average": mean and {"epochs": mean.epochs, "loss": mean.validation_loss, "accuracy": mean.validation_accuracy},
    }


def _model(config: "Config", parts: "list[Part]", dataset: str | None, vocabulary: dict[str, int]) -> dict[str, Any]:
    from nmt.models.accounting import as_json, count_weights

    return {
        "dataset": dataset,
        "vocabulary": vocabulary,
        "weights": count_weights(parts),
        "parts": [as_json(part) for part in parts],
        "configuration": config.model_dump(mode="json"),
    }


def _print(description: dict[str, Any]) -> None:
    typer.echo(json.dumps(description, indent=2, ensure_ascii=False))
