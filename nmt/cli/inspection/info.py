"""``nmt info``: description of a run, or of the model of a configuration."""

import contextlib
import json
import math
import re
from typing import TYPE_CHECKING, Any

import typer

from nmt.cli.endings import gpu_notes
from nmt.cli.options import JsonOption, NoConfigOption, RunOption, SetOption
from nmt.errors import NmtError, NotFoundError

if TYPE_CHECKING:
    from nmt.config.schema import Config
    from nmt.runs.directory import Run

STAGES = ("embedding", "source", "encoder", "first_state", "target", "decoder")
"""First words of weight names, in the order in which data passes through a model."""


def info(
    run: RunOption = None,
    config: NoConfigOption = None,
    overrides: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Describe a run: model, dataset, epochs and configuration.

    The table of the model shows parameters and matrix shapes by layer and sublayer. With --config, nmt describes the
    model that training on data.dataset would create.

    Examples:
        nmt info
        nmt info --run base --json
        nmt info --config book.yaml --set model.encoder_layers=2
    """
    if config is None and overrides:
        raise NmtError(
            "--set changes the model of a configuration; received it without --config. Add --config FILE, or leave "
            "it out."
        )
    if config is not None and run is not None:
        raise NmtError(
            f"nmt info describes either a run or a configuration; received --run {run} and --config {config}. Leave "
            "one of them out."
        )
    from nmt.cli.commands.prepare import describe
    from nmt.config.loading import find_config, load_config
    from nmt.data.dataset import find_dataset
    from nmt.data.manifest import read_manifest
    from nmt.runs.directory import find_run

    chosen = find_run(run) if config is None else None
    if chosen is not None:
        settings, manifest = chosen.config(), read_manifest(chosen.dataset_path)
        dataset = manifest.settings.dataset
        heading = f"Run {chosen.name} in {chosen.folder}, trained on dataset {dataset}"
    else:
        settings = load_config(find_config(str(config)), overrides)
        prepared = find_dataset(settings.data.dataset)
        manifest, dataset = prepared.manifest, prepared.name
        heading = f"Model of {config}, for the vocabularies of dataset {dataset}"
    shapes = _weight_shapes(chosen, settings, manifest.vocabulary)
    described = {
        "dataset": dataset, "corpora": manifest.pairs_by_corpus, "vocabulary": manifest.vocabulary,
        "weights": _count(shapes), "shapes": shapes, "configuration": settings.model_dump(mode="json"),
    }  # fmt: skip
    lines = [heading, f"Model: {settings.model.description}", "", weights_table(shapes)]
    if chosen is not None:
        progress, words = _progress(chosen, settings)
        described = {"run": chosen.name, "folder": str(chosen.folder), **described, **progress}
        lines += ["", describe(manifest), "", *words, ""]
        lines += ["Configuration:", settings.to_yaml().rstrip()]
    for note in gpu_notes():
        typer.echo(note, err=True)
    typer.echo(json.dumps(described, indent=2, ensure_ascii=False) if as_json else "\n".join(lines))


def _progress(run: "Run", config: "Config") -> tuple[dict[str, Any], list[str]]:
    """Return epochs, best validation and average of a run, as JSON values and as lines. A missing value is None."""
    from nmt.runs.metrics import best_of, in_words, weights_id, weights_in_words

    def scores(record: Any) -> dict[str, Any]:
        return {"loss": record.validation_loss, "accuracy": record.validation_accuracy}

    epochs, best, mean = len(run.epochs()), best_of(run.validations(), config.training.best_by), run.average()
    values = {
        "epochs": epochs,
        "best": best and {"weights": weights_id(best), **scores(best)},
        "average": mean and {"epochs": mean.epochs, **scores(mean)},
    }
    lines = [f"Epochs trained: {epochs} of {config.training.epochs}"]
    if best:
        lines.append(f"Best: {weights_in_words(weights_id(best))}, {in_words(best)}")
    if mean:
        validated = in_words(mean) or "not validated"
        lines.append(f"Average of {mean.parts}: {validated}; nmt translate uses it")
    return values, lines


def _weight_shapes(run: "Run | None", config: "Config", vocabulary: dict[str, int]) -> dict[str, list[int]]:
    """Return the shapes of weights by name, from the run's weights file, or from the model if there is no file."""
    from nmt.runs.weights import choose_epoch
    from nmt.storage.arrays import read_shapes

    if run is not None:
        with contextlib.suppress(NotFoundError):  # before the first epoch
            return read_shapes(run.weights_path(choose_epoch(run, None)))
    from nmt.models.build import weight_shapes

    return weight_shapes(config.model, vocabulary["source"], vocabulary["target"])


def _sort_key(name: str) -> tuple[int, list[int | str]]:
    """Return a sort key for weight names: the order in which data passes through the model, then the name."""
    stage = next((number for number, word in enumerate(STAGES) if name.startswith(word)), len(STAGES))
    return stage, [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name.replace("self_", ""))]


def weights_table(shapes: dict[str, list[int]]) -> str:
    """Return a table of a model's weights: parameters and matrices of layers and sublayers, and the total.

    For equal layers, only the first is shown with its sublayers.
    """
    layers: dict[str, dict[str, dict[str, list[int]]]] = {}
    for path, shape in sorted(shapes.items(), key=lambda item: _sort_key(item[0])):
        layer, *within, name = path.split("/")
        sublayer = within[0] if within else ""
        layers.setdefault(layer, {}).setdefault(sublayer, {})["/".join([*within[1:], name])] = shape
    rows, known = [("part", "parameters", "matrices")], dict[str, str]()
    for layer, sublayers in layers.items():
        total = sum(map(_count, sublayers.values()))
        first = known.setdefault(str(sublayers), layer) if set(sublayers) - {""} else layer
        if first != layer:
            rows.append((layer, f"{total:,}", f"as {first}"))
            continue
        rows.append((layer, f"{total:,}", _matrices(sublayers.pop("", {}))))
        rows += [(f"  {name}", f"{_count(part):,}", _matrices(part)) for name, part in sublayers.items()]
    weights = _count(shapes)
    rows.append(("all", f"{weights:,}", f"{weights * 4 / 2**20:,.1f} MiB in float32"))
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    return "\n".join(
        f"{name:<{widths[0]}}  {count:>{widths[1]}}  {matrices}".rstrip() for name, count, matrices in rows
    )


def _count(shapes: dict[str, list[int]]) -> int:
    return sum(map(math.prod, shapes.values()))


def _matrices(shapes: dict[str, list[int]]) -> str:
    """Return names and shapes of a part's matrices, or of its vectors if it has no matrices."""
    matrices = {name: shape for name, shape in shapes.items() if len(shape) > 1} or shapes
    return ", ".join(f"{name.removesuffix('/kernel')} {shape}" for name, shape in matrices.items())
