"""The command line: parse, compose, print. What computes is imported by the command that needs it."""

import importlib.metadata
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from nmt.cli.average import average
from nmt.cli.bench import bench
from nmt.cli.evaluate import evaluate
from nmt.cli.prepare import prepare
from nmt.cli.samples import samples
from nmt.cli.train import run_training, train
from nmt.cli.translate import translate
from nmt.cli.usage import UsageError, in_words
from nmt.errors import NmtError

if TYPE_CHECKING:
    from nmt.runs.directory import Run

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


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"nmt {importlib.metadata.version('nmt')}")
        raise typer.Exit


@app.callback()
def options(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Take the options that stand before a command."""


RunOption = Annotated[str | None, typer.Option("--run", help="A run in checkpoints/; by default the latest.")]


def main() -> NoReturn:
    """Run the command line; what a user can mend becomes one message and exit code 2."""
    try:
        code = app(prog_name="nmt", standalone_mode=False)
    except UsageError as error:
        if len(sys.argv) > 1:  # without any argument typer has shown the help
            typer.echo(f"nmt: {in_words(error)}", err=True)
        sys.exit(BAD_INPUT)
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
    sys.exit(code)


app.command()(prepare)


app.command()(train)


@app.command()
def plot(
    figure: Annotated[str, typer.Argument(help="losses, accuracy, bleu, schedule or positions.", metavar="FIGURE")],
    run: RunOption = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Another path; its suffix names the format.")
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Open a window too.")] = False,
) -> None:
    """Draw a run's curves, learning rate or position embedding, and print the path of the figure."""
    typer.echo(_plot(figure, _find_run(run), output, show=show))


app.command()(samples)
app.command()(average)
app.command()(translate)
app.command()(evaluate)


@app.command()
def info(run: RunOption = None) -> None:
    """Say what a run is: its model layer by layer, data, configuration and best epoch."""
    from nmt.cli.prepare import describe
    from nmt.data.manifest import read_manifest
    from nmt.runs.epoch_ranges import in_ranges
    from nmt.runs.metrics import best_of, weights_name

    chosen = _find_run(run)
    config, manifest = chosen.config(), read_manifest(chosen.dataset_path)

    from nmt.models.build import build_model

    typer.echo(f"Run {chosen.name} in {chosen.folder}, trained on dataset {manifest.settings.dataset}\n")
    build_model(config.model, manifest.vocabulary["source"], manifest.vocabulary["target"]).summary(typer.echo)
    typer.echo("\n" + describe(manifest) + "\n")
    typer.echo(f"Epochs trained: {len(chosen.epochs())} of {config.training.epochs}")
    best = best_of(chosen.validations(), config.training.best_by)
    if best:
        typer.echo(
            f"Best epoch: {weights_name(best)}, validation accuracy {best.validation_accuracy:.3f}, "
            f"loss {best.validation_loss:.3f}"
        )
    mean = chosen.average()
    if mean:
        figures = (
            "not validated"
            if mean.validation_loss is None
            else f"validation accuracy {mean.validation_accuracy:.3f}, loss {mean.validation_loss:.3f}"
        )
        typer.echo(f"Average of epochs {in_ranges(mean.epochs)}: {figures}; nmt translate uses it")
    typer.echo("\nConfiguration:\n" + config.to_yaml().rstrip())


@app.command()
def fetch(
    name: Annotated[str, typer.Argument(help="A public corpus, such as english-german-both.", metavar="NAME")],
) -> None:
    """Download a public corpus into data/, and verify its checksum."""
    from tqdm import tqdm

    from nmt.data.dataset import DATASETS
    from nmt.data.sources import download, public

    file = public.public_file(name)
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
    from nmt.cli.prepare import run_prepare
    from nmt.data import demo as chain
    from nmt.data.cleaning import Sources
    from nmt.storage.text import read_lines

    config = chain.demo_config()
    dataset = run_prepare(Sources.of(chain.write_corpus()), config.data, chain.NAME)
    run = run_training(chain.NAME, config, chain.NAME)

    from nmt.decoding.translator import Translator
    from nmt.evaluation.scoring import bleu

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


def _find_run(name: str | None) -> "Run":
    from nmt.runs.directory import find_run

    return find_run(name)


def _plot(figure: str, run: "Run", output: Path | None, *, show: bool) -> Path:
    from nmt.plotting import figures as plots

    drawn = plots.draw(figure, run)
    path = output if output is not None else run.plots_path / f"{figure}.png"
    plots.save(drawn, path)
    if show:
        plots.show(drawn)
    return path
