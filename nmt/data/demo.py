"""Corpora and configurations of the demonstrations: the bundled chain, and the lesson's second experiment."""

from importlib.resources import files
from pathlib import Path

from nmt.data.dataset import DATASETS
from nmt.storage.atomic import write_text

NAME = "demo"
CORPUS = files("nmt.data") / "demo.en-de.tsv"
"""Generated English-German sentences without capitals, punctuation and umlauts. Each English sentence occurs once."""

LESSON_CORPUS = "english-german-both"
"""Public corpus of the lesson."""
LESSON_CONFIG = "book-curves.yaml"
"""Configuration of its second experiment."""
LESSON_SENTENCES = {"im thirsty": "ich bin durstig", "are we done": "sind wir dann durch"}
"""Sentences that the lesson translates, with their references."""
LESSON_EPOCHS = (4, 16)
"""Epochs with whose weights it does."""


def write_corpus() -> Path:
    """Write the bundled corpus to ``data/demo.en-de.tsv``, unless it exists, and return its path."""
    path = DATASETS / CORPUS.name
    if not path.exists():
        write_text(path, CORPUS.read_text(encoding="utf-8"))
    return path


def lesson_corpus() -> Path | None:
    """Return the file of the lesson's corpus, here or in ``data/``; None if it is in neither."""
    name = f"{LESSON_CORPUS}.pkl"
    return next((path for path in (Path(name), DATASETS / name) if path.is_file()), None)
