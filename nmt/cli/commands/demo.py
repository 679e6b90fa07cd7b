"""``nmt demo``: the commands in a row, on a bundled corpus or as in the lesson."""

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from nmt.runs.directory import Run

NAME = "demo"
CORPUS = files("nmt.data") / "demo.en-de.tsv"
"""Generated English-German sentences without capitals, punctuation and umlauts. Each English sentence occurs once."""
SHOWN = 10
"""Number of translations that are printed."""

LESSON_CORPUS = "english-german-both"
"""Public corpus of the lesson."""
LESSON_CONFIG = "book-curves.yaml"
"""Configuration of its second experiment."""
LESSON_SENTENCES = {"im thirsty": "ich bin durstig", "are we done": "sind wir dann durch"}
"""Sentences that the lesson translates, with their references."""
LESSON_EPOCHS = (4, 16)
"""Epochs with whose weights it does."""


def demo(
    lesson: Annotated[
        bool,
        typer.Option(
            "--lesson",
            help="Repeat the lesson's second experiment instead, about 7 minutes on two free cores: 20 epochs on its "
            "corpus, the loss curves, and its two sentences with the weights of epochs 4 and 16.",
        ),
    ] = False,
) -> None:
    """Prepare, train, translate and score a bundled corpus in minutes.

    Writes data/demo, data/demo.en-de.tsv and checkpoints/demo. With --lesson, downloads english-german-both.pkl unless
    it is there, and writes data/english-german-curves and checkpoints/book-curves; a second call goes on where the
    first one stopped.

    Examples:
        nmt demo
        nmt translate --run demo "im thirsty"
        nmt demo --lesson
    """
    if lesson:
        _repeat_lesson()
    else:
        _show_chain()


def _show_chain() -> None:
    from nmt.cli.commands.prepare import run_prepare
    from nmt.cli.commands.train import train_run
    from nmt.data.dataset import DATASETS
    from nmt.recipes.resolve import Request
    from nmt.storage.atomic import write_text
    from nmt.storage.text import read_lines

    corpus = DATASETS / CORPUS.name
    if not corpus.exists():
        write_text(corpus, CORPUS.read_text(encoding="utf-8"))
    dataset = run_prepare([str(corpus)], name=NAME, config="tiny.yaml")
    run = train_run(Request("tiny.yaml", run=NAME, dataset=NAME))

    from nmt.decoding.translator import Translator
    from nmt.evaluation.scoring import bleu

    sources, references = (read_lines(dataset.text("test", side)) for side in ("source", "target"))
    typer.echo(f"\nTranslating the {len(sources)} test sentences, none of which is in training. The first of them:")
    translator = Translator.open(run)
    translations = translator.translate(sources)
    width = max(len(source) for source in sources[:SHOWN])
    for source, translation, reference in list(zip(sources, translations, references, strict=True))[:SHOWN]:
        verdict = "" if translation == reference else f"   (reference: {reference})"
        typer.echo(f"  {source:{width}}  ->  {translation}{verdict}")
    correct = sum(translation == reference for translation, reference in zip(translations, references, strict=True))
    score, signature = bleu(translations, references)
    typer.echo(
        f"\n{correct} of {len(sources)} translations equal the reference word for word; BLEU {score:.1f} ({signature})"
    )
    typer.echo(f"im thirsty  ->  {translator.translate(['im thirsty'])[0]}")
    _draw_losses(run)


def _repeat_lesson() -> None:
    from nmt.cli.commands.fetch import fetch
    from nmt.cli.commands.prepare import run_prepare
    from nmt.cli.commands.train import train_run
    from nmt.data.dataset import DATASETS
    from nmt.recipes.resolve import Request

    corpus = f"{LESSON_CORPUS}.pkl"
    if not any((folder / corpus).is_file() for folder in (Path(), DATASETS)):
        fetch(LESSON_CORPUS)
    dataset = run_prepare([corpus], config=LESSON_CONFIG)
    run = train_run(Request(LESSON_CONFIG, dataset=dataset.name))

    from nmt.decoding.translator import Translator

    losses = {epoch.epoch: epoch for epoch in run.epochs()}
    for number in (epoch for epoch in LESSON_EPOCHS if epoch in run.weights_epochs):
        translator = Translator.open(run, str(number))
        typer.echo(
            f"\nEpoch {number}: training loss {losses[number].train_loss:.3f}, validation loss "
            f"{losses[number].validation_loss:.3f}"
        )
        translations = translator.translate([*LESSON_SENTENCES])
        for (sentence, reference), translation in zip(LESSON_SENTENCES.items(), translations, strict=True):
            typer.echo(f"  {sentence}  ->  {translation}   (reference: {reference})")
    _draw_losses(run)


def _draw_losses(run: "Run") -> None:
    from nmt.plotting import figures
    from nmt.plotting.curves import draw_losses

    figure, path = figures.empty_figure(), run.plots_path / "losses.png"
    draw_losses(figure, run)
    figures.save(figure, path)
    typer.echo(f"Loss curves: {path}")
