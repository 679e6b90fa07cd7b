"""Synthetic pairs: a killed command gives the same file; both directions; dropped lines and refused arguments."""

import gzip
import json
import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import nmt, small_pairs

import nmt as package
from nmt.config.schema import DecodingConfig
from nmt.data.sources.text_file import TextFile, numbered_lines
from nmt.decoding.translation import Translation
from nmt.errors import NmtError
from nmt.runs.directory import Run
from nmt.runs.weights import save_weights
from nmt.storage.arrays import read_arrays
from nmt.synthesis import job
from nmt.synthesis.pairs import Task, pairs_of
from nmt.teachers.model_teachers import TranslatorTeacher
from nmt.tokenizers.base import EOS

LINES = [source for source, _ in small_pairs(40)]
SAMPLED = {"sample": True, "decoding": {"temperature": 0.5, "top_k": 3}}
ENGINES = pytest.mark.parametrize("export", [None, pytest.param("none", marks=pytest.mark.slow)], ids=["export", "run"])


@pytest.fixture(scope="module")
def exported_project(trained_project: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the trained project with an export and a text of six blocks."""
    folder = Path(shutil.copytree(trained_project, tmp_path_factory.mktemp("synthesis") / "project"))
    (folder / "mono.en").write_text("".join(f"{line}\n" for line in LINES))
    # After two epochs a word more or less is much of BLEU.
    nmt("export", "--to", "ctranslate2", "--quantization", "int8", "--tolerance", "100", cwd=folder)
    return folder


@pytest.fixture
def here(exported_project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = Path(shutil.copytree(exported_project, tmp_path / "project"))
    monkeypatch.chdir(folder)
    monkeypatch.setattr(job, "BLOCK", 7)
    return folder


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


class Killed(BaseException):
    """Raised in place of the end of the process."""


@pytest.mark.parametrize("how", [{}, {"decoding": {"beam_size": 2}}, SAMPLED], ids=["greedy", "beam", "sampled"])
@ENGINES
def test_a_killed_command_ends_in_the_same_file(
    here: Path, monkeypatch: pytest.MonkeyPatch, how: dict[str, Any], export: str | None
) -> None:
    whole = package.synthesize("mono.en", "whole", export=export, **how)
    assert 0 < len(rows(whole.path)) == len(LINES) - whole.dropped.counts.total()
    real = job.write_bytes
    for allowed in (0, 1, 4):
        left = [allowed]

        def write(path: Path, content: bytes, left: list[int] = left) -> None:
            if path.name.startswith("part-"):
                left[0] -= 1
                if left[0] < 0:
                    raise Killed
            real(path, content)

        monkeypatch.setattr(job, "write_bytes", write)
        with pytest.raises(Killed):
            package.synthesize("mono.en", "killed", export=export, **how)
        assert not Path("data/killed.jsonl.gz").exists()
    monkeypatch.setattr(job, "write_bytes", real)
    notes: list[str] = []
    again = package.synthesize("mono.en", "killed", export=export, **how, note=notes.append)
    assert notes and "of 40 lines were translated before" in notes[0]
    assert again.path.read_bytes() == whole.path.read_bytes()
    assert again.dropped == whole.dropped
    assert not list(Path("data").glob(".*.synthesis"))


@pytest.mark.slow
def test_a_command_begun_before_a_decoding_key_existed_goes_on(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The state of an older job lacks a key, which had its default then. The test leaves out all keys with defaults."""
    whole = package.synthesize("mono.en", "whole", export="none")
    real = job.write_bytes

    def write(path: Path, content: bytes) -> None:
        if path.name == "part-000000000014":
            raise Killed
        real(path, content)

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(job, "write_bytes", write)
        package.synthesize("mono.en", "killed", export="none")
    state = Path("data/.killed.synthesis/state.json")
    before, defaults = json.loads(state.read_text()), DecodingConfig().model_dump()
    lacking = {key: value for key, value in before.items() if key not in defaults or value != defaults[key]}
    assert len(before) - len(lacking) > 5
    state.write_text(json.dumps(lacking))
    with pytest.raises(package.ConflictError, match="top_k 0 before, 3 now"):
        package.synthesize("mono.en", "killed", export="none", sample=True, decoding={"top_k": 3})
    notes: list[str] = []
    again = package.synthesize("mono.en", "killed", export="none", note=notes.append)
    assert notes and "of 40 lines were translated before" in notes[0]
    assert again.path.read_bytes() == whole.path.read_bytes()


@pytest.mark.slow
def test_lines_are_varied_before_they_are_translated(here: Path) -> None:
    how: dict[str, Any] = {"forward": True, "export": "none", "overwrite": True}
    made = package.synthesize("mono.en", "varied", augment={"upper": 0.3, "join": 0.3}, **how)
    varied = rows(made.path)
    capitals = [row for row in varied if row["source"].isupper()]
    joined = [row for row in varied if row["source"].count("im ") == 2]
    assert 5 < len(capitals) < 20 and 5 < len(joined) < 20
    with package.load() as translator:
        assert translator.translate([row["source"] for row in varied]) == [row["target"] for row in varied]
    assert rows(package.synthesize("mono.en", "again", augment={"join": 0.3, "upper": 0.3}, **how).path) == varied
    for forward, shares, problem in [
        (False, {"typos": 0.1}, "changes sources"),
        (True, {"typo": 0.1}, "variant 'typo'"),
        (True, {"typos": 1.5}, "typos the share 1.5"),
        (True, {"typos": 0.6, "upper": 0.6}, "add up to 1.2"),
    ]:
        with pytest.raises(NmtError, match=problem):
            package.synthesize("mono.en", "refused", forward=forward, augment=shares)


def test_lines_are_the_targets_or_with_forward_the_sources(here: Path) -> None:
    back, forward = (rows(package.synthesize("mono.en", str(way), forward=way).path) for way in (False, True))
    assert [(row["source"], row["target"]) for row in back] == [(row["target"], row["source"]) for row in forward]
    assert {row["target"] for row in back} <= {*LINES}
    assert package.prepare("data/True.jsonl.gz", name="made").manifest.read == len(forward)


@pytest.mark.parametrize("how", [{}, {"decoding": {"beam_size": 3, "coverage_penalty": 0.2}}, SAMPLED], ids=str)
@ENGINES
def test_a_score_is_the_mean_log_probability_of_the_tokens(here: Path, how: Any, export: str | None) -> None:
    made = rows(package.synthesize("mono.en", "scored", forward=True, export=export, **how).path)
    translator = package.load("base", export=None if export else "ctranslate2-int8")
    expected = translator.score([row["source"] for row in made], [row["target"] for row in made])
    tokens = [len(translator.target.encode(row["target"])) + 1 for row in made]
    off = [abs(row["score"] - value / count) for row, value, count in zip(made, expected, tokens, strict=True)]
    assert max(off) < 1e-3
    kept = package.synthesize("mono.en", "likely", forward=True, export=export, **how, min_score=made[0]["score"])
    assert rows(kept.path) == [row for row in made if row["score"] >= made[0]["score"]]


def test_other_settings_and_texts_are_refused(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(job, "write_bytes", lambda path, content: (_ for _ in ()).throw(Killed))
        package.synthesize("mono.en", "bt")
    Path("other.en").write_text("im one\n")
    for arguments, difference in (
        ({"forward": True}, "forward False before, True now"), ({"decoding": {"beam_size": 2}}, "beam_size 1 before"),
        ({"file": "other.en"}, "other settings: input"), ({"export": "none"}, "; model"),
        ({"min_score": -1.0}, "min_score None"),
    ):  # fmt: skip
        with pytest.raises(package.ConflictError, match=difference):
            package.synthesize(**{"file": "mono.en", "name": "bt", **arguments})
    made = package.synthesize("other.en", "bt", overwrite=True)
    assert made.lines == 1
    with pytest.raises(package.ConflictError, match="exists already"):
        package.synthesize("other.en", "bt")


def task_of(translator: Any, file: TextFile, *, forward: bool, median: float | None) -> Task:
    translator.engine = SimpleNamespace(only_greedy=False)
    translator.languages = ("source", "target")
    teacher = TranslatorTeacher("base", translator, {}, sampled=False, candidates=1)
    return Task([teacher], None, file, forward, None, lambda *_: None, {}, ("source", "target"), median)


def test_what_looks_wrong_is_dropped_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = {"good": ("gut", True), "cut": ("ab", False), "copy": ("copy", True), "short": ("x " * 24, True),
            "mute": ("", True), "": ("", True), "long": ("", False)}  # fmt: skip

    def find(texts: list[str], options: Any, *, skip_too_long: bool) -> list[list[Translation]]:
        assert skip_too_long
        ids = {text: [7] * len(said[text][0].split()) + [EOS] * said[text][1] for text in texts}
        return [[Translation(said[text][0], [], said[text][1], ids[text], -1.0)] for text in texts]

    search = SimpleNamespace(search=lambda sampled: "greedy")
    source = SimpleNamespace(encode=lambda text: [7] * len(text.split()))
    translator: Any = SimpleNamespace(find=find, source=source, config=SimpleNamespace(decoding=search))
    (tmp_path / "mono").write_bytes(b"good\ncut\ncopy\nshort\nmute\n\nlong\n\xff\n")
    file = TextFile(tmp_path / "mono")
    block = list(numbered_lines(file))
    task = task_of(translator, file, forward=False, median=1.0)
    kept, *dropped = pairs_of(task, block, 0, [tmp_path])
    assert kept == {"source": "gut", "target": "good", "score": -0.5}
    assert [row["dropped"] for row in dropped] == [
        "cut off by the limit on its length", "translation equals the line", "length ratio", "empty translation",
        "empty line", "longer than the model reads", "not UTF-8",
    ]  # fmt: skip
    assert dropped[2]["place"].startswith("mono, line 4: 'short'")
    [low, *_] = pairs_of(task._replace(min_score=-0.4), block, 0, [tmp_path])
    assert low["dropped"] == "low score"


TEXTS = {
    "de": "Wörterbuch", "zh": "词", "ja": "ことば", "th": "คำศัพท์", "ar": "الكلمات", "hi": "शब्दकोश", "tr": "sözcükler",
}  # fmt: skip


@pytest.mark.parametrize("language", TEXTS)
@pytest.mark.parametrize("into_english", [False, True])
def test_lengths_are_relative_to_the_corpus_of_the_model(tmp_path: Path, language: str, into_english: bool) -> None:
    english, other = (["vocabulary " * n for n in range(1, 30)], [TEXTS[language] * n for n in range(1, 30)])
    lines, said = (other, english) if into_english else (english, other)
    said = [*said[:-1], said[-1] * 4]  # the last translation repeats itself

    def find(texts: list[str], options: Any, *, skip_too_long: bool) -> list[list[Translation]]:
        return [[Translation(text, [], True, [7, EOS], -1.0)] for text in said]

    translator: Any = SimpleNamespace(
        find=find, config=SimpleNamespace(decoding=SimpleNamespace(search=lambda sampled: "greedy"))
    )
    file = TextFile(tmp_path / "mono")
    block = list(enumerate(lines, start=1))
    median = len(said[0]) / len(lines[0])
    for known in (median, None):  # without a corpus, the block shows the ratio
        rows = [*pairs_of(task_of(translator, file, forward=True, median=known), block, 0, [tmp_path])]
        assert [row.get("dropped") for row in rows] == [None] * 28 + ["length ratio"]
        assert rows[-1]["place"].startswith("mono, line 29: ")


def test_a_job_of_an_older_version_with_another_rule_of_length_is_refused(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(job, "write_bytes", lambda path, content: (_ for _ in ()).throw(Killed))
        package.synthesize("mono.en", "bt")
    state = Path("data/.bt.synthesis/state.json")
    state.write_text(json.dumps(json.loads(state.read_text()) | {"format": 1}))
    with pytest.raises(package.ConflictError, match="length ratios in tokens before, in characters now"):
        package.synthesize("mono.en", "bt")
    assert package.synthesize("mono.en", "bt", overwrite=True).lines == 40


@pytest.mark.slow
def test_an_export_of_other_weights_is_not_used(here: Path) -> None:
    assert nmt("synthesize", "mono.en", "--name", "a", cwd=here).stderr == ""
    run = Run(Path("checkpoints/base"))
    before = run.weights_path(2).stat()

    def restore(factor: float) -> None:
        """Replace the weights with weights that are older than the export, as if from a backup."""
        arrays = read_arrays(run.weights_path(2))
        save_weights(run, {name: factor * array for name, array in arrays.items()}, 2)
        os.utime(run.weights_path(2), ns=(before.st_atime_ns, before.st_mtime_ns))

    os.utime(run.weights_path(2))  # a new time alone is no other weights
    assert nmt("synthesize", "mono.en", "--name", "touched", cwd=here).stderr == ""
    restore(1.01)
    done = nmt("synthesize", "mono.en", "--name", "b", cwd=here)
    assert "exporting run base to checkpoints/base/exports/ctranslate2-int8-2" in done.stderr
    assert "pairs of 40 lines written to data/b.jsonl.gz" in done.stdout
    shutil.rmtree("data/english-german-both")  # which an export is compared on
    restore(1.01)
    done = nmt("synthesize", "mono.en", "--name", "c", cwd=here)
    assert "TensorFlow translates, since the run is not exported" in done.stderr
