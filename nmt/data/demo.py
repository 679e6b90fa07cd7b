"""The demonstration's corpus file and configuration."""

from pathlib import Path

from nmt.config.loading import find_config, load_config
from nmt.config.schema import Config
from nmt.data.dataset import DATASETS
from nmt.data.demo_corpus import sentence_pairs
from nmt.storage.atomic import write_text

NAME = "demo"


def write_corpus() -> Path:
    """Write the generated pairs to ``data/demo.en-de.tsv``, unless it exists, and return its path."""
    path = DATASETS / f"{NAME}.en-de.tsv"
    if not path.exists():
        write_text(path, "".join(f"{source}\t{target}\n" for source, target in sentence_pairs()))
    return path


def demo_config() -> Config:
    """Return the configuration of the demonstration."""
    return load_config(find_config("tiny.yaml"))
