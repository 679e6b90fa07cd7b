"""The command line: parse, compose, print. What computes is imported by the command that needs it."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from nmt.commands.bench import bench
from nmt.commands.evaluate import evaluate
from nmt.commands.options import ConfigOption, SetOption
from nmt.commands.prepare import prepare
from nmt.commands.translate import translate
from nmt.errors import NmtError

if TYPE_CHECKING:
    from nmt.config import Config
    from nmt.dataset import Dataset
    from nmt.run import Run

BAD_INPUT = 2
INTERRUPTED = 130

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="""Train translation models: prepare sentence pairs, train a Transformer, look at the curves, translate.

    nmt prepare english-german-both.pkl, then nmt train --config base.yaml, then nmt plot losses, then
    nmt translate "im thirsty". In a hurry: nmt demo does all of it on a bundled corpus.
    """,
)

RunOption = Annotated[str | None, typer.Option("--run", help="A run in checkpoints/; by default the latest.")]


def main() -> NoReturn:
    """Run the command line; what a user can mend becomes one message and exit code 2."""
    try:
        app(standalone_mode=True)
    except NmtError as error:
        typer.echo(f"nmt: {error}", err=True)
        sys.exit(BAD_INPUT)
    except OSError as error:
        if error.filename is None:
            raise
        remedy = "Check the name, the permissions and the disk."
        typer.echo(f"nmt: {error.filename} cannot be used: {error.strerror}. {remedy}", err=True)
        sys.exit(BAD_INPUT)
    except KeyboardInterrupt:
        typer.echo("nmt: interrupted.", err=True)
        sys.exit(INTERRUPTED)
    sys.exit(0)


app.command()(prepare)


@app.command()
def train(
    config: ConfigOption = "base.yaml",
    run: Annotated[str | None, typer.Option("--run", help="Name of the run; by default the config's.")] = None,
    dataset: Annotated[
        str | None, typer.Option(help="A dataset in data/; by default the config's, else the latest.")
    ] = None,
    overrides: SetOption = None,
) -> None:
    """Train a model, or go on with a run that was interrupted or is to have more epochs."""
    from nmt.config import find_config, load_config

    path = find_config(config)
    settings = load_config(path, overrides)
    _train(run or path.stem, settings, dataset or settings.data.dataset)


@app.command()
def plot(
    figure: Annotated[str, typer.Argument(help="losses, accuracy, schedule or positions.", metavar="FIGURE")],
    run: RunOption = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Another path; its suffix names the format.")
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Open a window too.")] = False,
) -> None:
    """Draw a run's curves, learning rate or position embedding, and print the path of the figure."""
    typer.echo(_plot(figure, _find_run(run), output, show=show))


app.command()(translate)
app.command()(evaluate)


@app.command()
def info(run: RunOption = None) -> None:
    """Say what a run is: its model layer by layer, data, configuration and best epoch."""
    from nmt.commands.prepare import describe
    from nmt.dataset import read_manifest

    chosen = _find_run(run)
    config, manifest = chosen.config(), read_manifest(chosen.dataset_path)

    from nmt import runtime  # noqa: F401 - starts TensorFlow without its chatter
    from nmt.models import build_model

    typer.echo(f"Run {chosen.name} in {chosen.folder}, trained on dataset {manifest.settings.dataset}\n")
    build_model(config.model, manifest.vocabulary["source"], manifest.vocabulary["target"]).summary(typer.echo)
    typer.echo("\n" + describe(manifest) + "\n")
    epochs = {one.epoch: one for one in chosen.epochs()}
    best = epochs.get(chosen.best_epoch() or 0)
    typer.echo(f"Epochs trained: {len(epochs)} of {config.training.epochs}")
    if best:
        typer.echo(
            f"Best epoch: {best.epoch}, validation accuracy {best.validation_accuracy:.3f}, "
            f"loss {best.validation_loss:.3f}"
        )
    average = chosen.average()
    if average:
        typer.echo(
            f"Average of epochs {average.epochs[0]}-{average.epochs[-1]}: validation accuracy "
            f"{average.validation_accuracy:.3f}, loss {average.validation_loss:.3f}; nmt translate uses it"
        )
    typer.echo("\nConfiguration:\n" + config.to_yaml().rstrip())


@app.command()
def fetch(
    name: Annotated[str, typer.Argument(help="Name of a public corpus, such as english-german-both.")],
) -> None:
    """Download a public corpus into data/: resumed where it stopped, checked, never half there."""
    from tqdm import tqdm

    from nmt import fetch as download
    from nmt.dataset import DATASETS

    file = download.public_file(name)
    with tqdm(desc=file.name, unit="B", unit_scale=True, disable=None, leave=False) as bar:

        def report(done: int, total: int) -> None:
            bar.total = total or None
            bar.update(done - bar.n)

        path = download.fetch(file, DATASETS, report)
    typer.echo(f"{path}: {file.credit}.\n{download.verification(file, path)}", err=True)
    typer.echo(path)


@app.command()
def demo() -> None:
    """Show the whole chain on a bundled corpus: prepare, train, translate, score and plot, in a few minutes."""
    from nmt import demo as chain
    from nmt.commands.prepare import run_prepare
    from nmt.corpus import Sources
    from nmt.files import read_lines

    config = chain.demo_config()
    dataset = run_prepare(Sources.of(chain.write_corpus()), config.data, chain.NAME)
    run = _train(chain.NAME, config, chain.NAME)

    from nmt.evaluation import bleu
    from nmt.translation import Translator

    sources, references = (read_lines(dataset.text("test", side)) for side in ("source", "target"))
    typer.echo(f"\nTranslating the {len(sources)} test sentences, none of which was trained on. The first of them:")
    translator = Translator.load(run)
    translations = [one.text for one in translator.translate(sources)]
    width = max(len(source) for source in sources[:10])
    for source, translation, reference in list(zip(sources, translations, references, strict=True))[:10]:
        verdict = "" if translation == reference else f"   (reference: {reference})"
        typer.echo(f"  {source:{width}}  ->  {translation}{verdict}")
    right = sum(translation == reference for translation, reference in zip(translations, references, strict=True))
    score, signature = bleu(translations, references)
    typer.echo(f"\n{right} of {len(sources)} are word for word the reference; BLEU {score:.1f} ({signature})")
    typer.echo(f"im thirsty  ->  {translator.translate(['im thirsty'])[0].text}")
    typer.echo(f"Loss curves: {_plot('losses', run, None, show=False)}")


app.command()(bench)


def _train(name: str, config: "Config", dataset_name: str | None) -> "Run":
    from nmt.dataset import find_dataset, read_manifest
    from nmt.progress import TrainingProgress
    from nmt.run import find_run, run_exists

    run = None
    if run_exists(name):
        run = find_run(name)
        dataset_name = dataset_name or read_manifest(run.dataset_path).settings.dataset
    dataset = find_dataset(dataset_name)
    _note_settings_not_in_force(config, dataset)

    from nmt import runtime
    from nmt.training import Trainer, resume_run, start_run

    if run is None:
        run = start_run(name, config, dataset)
        typer.echo(f"New run {run.name} in {run.folder}, on dataset {dataset.name}")
        trainer = Trainer(run, config, dataset)
    else:
        resume_run(run, config, dataset)
        trainer = Trainer(run, config, dataset)
        for damage in trainer.damaged:
            typer.echo(f"Passed over: {damage}")
        if trainer.is_finished:
            typer.echo(
                f"Run {run.name} is finished: {trainer.epoch} epochs, best {run.best_epoch()}. Nothing to do. To train "
                f"on: --set training.epochs={2 * trainer.epoch}; to start afresh: --run ANOTHER-NAME"
            )
            return run
        typer.echo(f"Going on with run {run.name} after epoch {trainer.epoch} of {config.training.epochs}")
    typer.echo(
        f"{trainer.model.count_params():,} parameters, {dataset.manifest.splits['train'].pairs:,} training pairs, "
        f"{runtime.device()}, {trainer.precision}"
    )
    progress = TrainingProgress(config.training.epochs, config.training.log_every)
    with _interrupt_in_words(run):
        try:
            trainer.train(progress)
        finally:
            progress.close()
    average = run.average()
    translated_with = f"; nmt translate uses the average of {len(average.epochs)}" if average else ""
    typer.echo(
        f"Finished: best epoch {run.best_epoch()}{translated_with}. Weights, metrics and configuration are in "
        f"{run.folder}"
    )
    return run


@contextlib.contextmanager
def _interrupt_in_words(run: "Run") -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        saved = run.state_epochs
        typer.echo(
            f"\nInterrupted. Saved so far: {f'epochs up to {saved[-1]}' if saved else 'no whole epoch'}. "
            "The same command goes on from there.",
            err=True,
        )
        raise typer.Exit(INTERRUPTED) from None


def _note_settings_not_in_force(config: "Config", dataset: "Dataset") -> None:
    prepared = dataset.manifest.settings
    different = [
        f"{key} {getattr(prepared, key)!r} there, {value!r} here"
        for key, value in config.data.model_dump(exclude_unset=True).items()
        if key != "dataset" and value not in {"auto", getattr(prepared, key)}
    ]
    if different:
        typer.echo(
            f"Note: dataset {dataset.name} was prepared with other settings than this configuration's "
            f"({'; '.join(different)}); what it was prepared with counts."
        )


def _find_run(name: str | None) -> "Run":
    from nmt.run import find_run

    return find_run(name)


def _plot(figure: str, run: "Run", output: Path | None, *, show: bool) -> Path:
    from nmt import plots

    drawn = plots.draw(figure, run)
    path = output if output is not None else run.plots_path / f"{figure}.png"
    plots.save(drawn, path)
    if show:
        plots.show(drawn)
    return path
