"""Every option that reads a text file also reads it gzipped, and text files named .gz are written gzipped."""

import gzip
import os
import re
import threading
from pathlib import Path
from typing import Any

import pytest
from conftest import nmt, run_nmt, small_pairs
from typer.main import get_command

from nmt.cli.app import app
from nmt.cli.commands.translate import read_sentences
from nmt.serving.guard import read_api_keys

# Every command that reads sentences.
COMMANDS = [
    "translate --input a.en --glossary terms.tsv",
    "prepare a.en a.de --validation b.en --validation b.de --test c.en --test c.de --name texts --overwrite",
    "evaluate --resamples 0 --hypothesis b.en --source a.de --reference a.de",
]
# The other options with files. Keys of a service have a test of their own; the others hold no lines, or are written.
OTHERS = {
    "serve --api-keys", "prepare --config", "train --config", "info --config", "bench --config", "plot by-length FILE",
    "plot lengths --config", "import --expected", "report --output", "evaluate --output", "evaluate --report",
    "translate --output",
}  # fmt: skip


def files_of(command: Any, name: str) -> set[str]:
    """Return the options and arguments of a program that take a file, such as "prepare FILE"."""
    if hasattr(command, "commands"):
        return {file for key, each in command.commands.items() for file in files_of(each, f"{name} {key}".strip())}
    parameters = command.get_params(command.make_context(name, [], resilient_parsing=True))
    files = [parameter for parameter in parameters if parameter.metavar == "FILE"]
    return {f"{name} {file.opts[0] if file.param_type_name == 'option' else 'FILE'}" for file in files}


def test_every_option_with_a_file_is_here() -> None:
    words = [command.split() for command in COMMANDS]
    tried = {f"{name} {word}" for name, *others in words for word in others if word.startswith("--")}
    found = {file for file in files_of(get_command(app), "") if not re.fullmatch("plot .* --output", file)}
    alike = {"prepare FILE", "synthesize FILE", "import --sentences", "evaluate --glossary", "serve --glossary"}
    assert found - tried - alike == OTHERS


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.split()[0])
def test_a_gzipped_text_is_read_as_a_plain_one(command: str, project: Path) -> None:
    for name, pairs in (("a", small_pairs(30)), ("b", small_pairs(60)[30:]), ("c", small_pairs(90)[60:])):
        for column, side in enumerate(("en", "de")):
            content = "".join(f"{pair[column]}\n" for pair in pairs).encode()
            (project / f"{name}.{side}").write_bytes(content)
            (project / f"{name}.{side}.gz").write_bytes(gzip.compress(content))
    (project / "terms.tsv").write_text("one\tzwei\n")
    (project / "terms.tsv.gz").write_bytes(gzip.compress(b"one\tzwei\n"))
    packed = [f"{word}.gz" if word.endswith((".en", ".de", ".tsv")) else word for word in command.split()]
    plain, gzipped = (run_nmt(*words, cwd=project) for words in (command.split(), packed))
    assert plain.code == gzipped.code == 0, gzipped.err
    lines = [
        [line.replace(".gz", "").split() for line in done.out.splitlines() if not line.startswith("Written to")]
        for done in (plain, gzipped)
    ]
    assert len(lines[0]) > 10 and lines[0] == lines[1]


def test_keys_may_be_gzipped(tmp_path: Path) -> None:
    (tmp_path / "keys.gz").write_bytes(gzip.compress(b"first\nsecond\n"))
    assert len(read_api_keys(tmp_path / "keys.gz")) == 2


def test_sentences_come_from_a_file_in_data_and_from_a_pipe(folder: Path) -> None:
    (folder / "data").mkdir()
    (folder / "data" / "a.txt").write_text("one\n")
    os.mkfifo("pipe")
    threading.Thread(target=Path("pipe").write_text, args=["two\n"]).start()
    found = [list(read_sentences(None, Path(name))) for name in ("a.txt", "pipe")]
    assert found == [[(["one"], ["data/a.txt, line 1"])], [(["two"], ["pipe, line 1"])]]


def test_translations_are_written_gzipped_where_the_name_says_so(project: Path) -> None:
    nmt("evaluate", "--resamples", "0", "--output", "out.gz", cwd=project)
    source = "data/english-german-both/test.source.txt"
    translations = nmt("translate", "--input", source, cwd=project).stdout
    assert gzip.decompress((project / "out.gz").read_bytes()).decode() == translations


@pytest.mark.parametrize("command", ["evaluate --report r.gz", "report --output r.html.gz", "plot losses -o l.svg.gz"])
def test_no_other_output_is_gzipped(command: str, trained_project: Path) -> None:
    refused = run_nmt(*command.split(), cwd=trained_project)
    assert refused.code == 2 and ".gz" in refused.err
