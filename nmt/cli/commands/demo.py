"""``nmt demo``: the main commands one after the other, on a bundled corpus or as in the lesson."""

import shlex
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

CORPUS = files("nmt.data") / "demo.en-de.tsv"
"""Generated English-German sentences without capitals, punctuation and umlauts. Each English sentence occurs once."""
DEMO_COMMANDS = f"""
prepare data/{CORPUS.name} --name demo --config tiny.yaml
train --config tiny.yaml --run demo --dataset demo
samples --run demo
evaluate --run demo
translate --run demo "im thirsty"
plot losses --run demo
"""

LESSON_CORPUS = "english-german-both"
"""Public corpus of the lesson."""
# The second experiment of the lesson. It translates two sentences with the weights of two epochs.
LESSON_COMMANDS = f"""
prepare {LESSON_CORPUS}.pkl --config book-curves.yaml
train --config book-curves.yaml
translate --run book-curves --epoch 4 "im thirsty" "are we done"
translate --run book-curves --epoch 16 "im thirsty" "are we done"
plot losses --run book-curves
"""


def demo(
    context: typer.Context,
    lesson: Annotated[
        bool,
        typer.Option(
            "--lesson",
            help="Repeat the lesson's second experiment instead, in about 7 minutes on two free cores: train 20 "
            "epochs, draw the loss curves, and translate two sentences with the weights of epochs 4 and 16.",
        ),
    ] = False,
) -> None:
    """Prepare, train, translate and score a bundled corpus in minutes.

    The command writes data/demo, data/demo.en-de.tsv and checkpoints/demo. With --lesson it writes
    data/english-german-curves and checkpoints/book-curves, and first downloads english-german-both.pkl if it is
    missing. The same command resumes an interrupted demo.

    Examples:
        nmt demo
        nmt translate --run demo "im thirsty"
        nmt demo --lesson
    """
    from nmt.data.dataset import DATASETS
    from nmt.storage.outputs import OutputFile

    commands = (LESSON_COMMANDS if lesson else DEMO_COMMANDS).strip().splitlines()
    if lesson and not any((folder / f"{LESSON_CORPUS}.pkl").is_file() for folder in (Path(), DATASETS)):
        commands = [f"fetch {LESSON_CORPUS}", *commands]
    if not lesson and not (DATASETS / CORPUS.name).exists():
        OutputFile(DATASETS / CORPUS.name).write(CORPUS.read_bytes())
    for command in commands:
        typer.echo(f"\n$ nmt {command}")
        if code := context.find_root().command(shlex.split(command), prog_name="nmt", standalone_mode=False):
            raise typer.Exit(code)
