"""The command line as a user types it: results, standard output, standard error, exit codes."""

import json
import os
import pty
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from conftest import ROOT, MakeRun, an_epoch, nmt, nmt_process, run_nmt, small_pairs, write_pickle

from nmt.config.schema import Config
from nmt.runs.directory import create_run
from nmt.runs.metrics import Sample, SampleMetrics


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.slow
def test_everything_works_from_a_wheel_in_an_empty_folder(tmp_path: Path) -> None:
    """The wheel contains the configurations and py.typed, so the commands need no checkout."""
    wheels = tmp_path / "wheels"
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(wheels), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    installed = tmp_path / "installed"
    shutil.unpack_archive(next(wheels.glob("nmt-*.whl")), installed, "zip")
    assert (installed / "nmt" / "py.typed").is_file()
    empty = tmp_path / "empty"
    empty.mkdir()
    write_pickle(empty / "pairs.pkl", small_pairs(100))
    code = f"import nmt.cli.app; assert nmt.__file__.startswith({str(installed)!r}); nmt.cli.app.main()"
    for arguments in (["prepare", "pairs.pkl"], ["info", "--config", "tiny.yaml"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments], cwd=empty, capture_output=True, text=True, check=False,
            env={**os.environ, "PYTHONPATH": str(installed)},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    assert (empty / "data" / "pairs" / "manifest.json").is_file()


# --- prepare ----------------------------------------------------------------------------------------------------------


RAW = [("I'm thirsty.", "Ich bin durstig.")] + [
    (f"Is {a} {b}, or not?", f"Ist {a} {b}, oder nicht?") for a in "ABCDEFGHIJ" for b in ("big", "small", "5 years old")
]


def test_validation_and_test_can_be_given_apart(tmp_path: Path) -> None:
    for name, pairs in [("train", RAW[:25]), ("val", RAW[24:28]), ("test", RAW[28:])]:
        for column, side in enumerate(("en", "de")):
            (tmp_path / f"{name}.{side}").write_text("".join(f"{pair[column]}\n" for pair in pairs))
    files = ("train.en", "train.de", "--validation", "val.en", "--validation", "val.de")
    out = nmt("prepare", *files, "--test", "test.en", "--test", "test.de", "--name", "apart", cwd=tmp_path).stdout
    assert re.search(r"^pairs +24 +4 +3$", out, re.M)
    assert "1 dropped (training source that is in validation or test)" in out
    assert "train.en and train.de, line 25: " in out
    for side in ("source", "target"):
        texts = (tmp_path / "data" / "apart" / f"test.{side}.txt").read_text().splitlines()
        assert texts == [pair[side == "target"] for pair in RAW[28:]]
    leaky = ("--set", "data.split=random", "--name", "leaky")
    assert re.search(r"in training +- +1 +0\n", nmt("prepare", *files, "--test", "test.en", "--test", "test.de", *leaky,
                                                    cwd=tmp_path).stdout)  # fmt: skip


def test_what_is_odd_is_printed_with_its_lines_and_kept_in_the_manifest(tmp_path: Path) -> None:
    rows = [*RAW[:12], ("Boston", "Boston"), RAW[3], ("only one", " "), ("odd\x07", "seltsam")]
    (tmp_path / "odd.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in rows))
    every = [f"--set=data.drop_{rule}=true" for rule in ("empty", "identical", "duplicates")]
    out = nmt("prepare", "odd.tsv", *every, "--set", "data.test_share=0.05", "--set", "data.train_share=0.85",
              "--set", "data.normalization=nfkc", cwd=tmp_path).stdout  # fmt: skip
    for reason, line in [("identical sides", 13), ("duplicates", 14), ("empty side", 15), ("control characters", 16)]:
        assert f"Dropped: 1 x {reason}\n    odd.tsv, line {line}: " in out
    manifest = json.loads((tmp_path / "data" / "odd" / "manifest.json").read_text())
    kept = sum(split["pairs"] for split in manifest["splits"].values())
    assert manifest["read"] == kept + sum(manifest["dropped"].values()) == 16
    again = nmt("prepare", "odd.tsv", "--name", "kept", "--set", "data.drop_empty=true",
                "--set", "data.drop_control=false", cwd=tmp_path).stdout  # fmt: skip
    for reason in ("identical sides", "duplicates", "control characters"):
        assert f"Kept, but suspicious: 1 x {reason}\n" in again


@pytest.mark.corpora
def test_the_lessons_corpus_leaks_when_split_at_random_and_not_by_source(corpora: Path, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    shutil.copy(corpora / "english-german-both.pkl", tmp_path / "data")
    by_source = nmt("prepare", "english-german-both.pkl", cwd=tmp_path).stdout
    assert "10,000 pairs read" in by_source
    assert re.search(r"longest source +5 words", by_source)
    assert re.search(r"pairs +8,000 +1,000 +1,000\n", by_source)
    assert "words, normalization ascii-words; vocabulary: 2,072 source and 3,312 target ids" in by_source
    for name in ("validation", "test"):  # the README's sentence is trained on
        assert "im thirsty" not in (tmp_path / f"data/english-german-both/{name}.source.txt").read_text().splitlines()
    assert re.search(r"in training +- +0 +0\n", by_source)
    book = nmt("prepare", "english-german-both.pkl", "--config", "book.yaml", cwd=tmp_path).stdout
    assert re.search(r"pairs +9,000 +500 +500\n", book)
    assert re.search(r"in training +- +[1-9]\d\d +[1-9]\d\d\n", book)
    assert (tmp_path / "data" / "english-german-book" / "manifest.json").is_file()


# --- train ------------------------------------------------------------------------------------------------------------


def test_training_again_says_that_the_run_is_finished_and_changes_nothing(project: Path) -> None:
    before = files_in(project)
    again = nmt("train", "--config", "base.yaml", cwd=project)
    assert "Run base is finished: 2 epochs" in again.stdout
    assert files_in(project) == before


@pytest.mark.slow
def test_train_takes_the_dataset_prepared_last_and_says_which(project: Path) -> None:
    write_pickle(project / "newer.pkl", small_pairs(60))
    nmt("prepare", "newer.pkl", cwd=project)
    train = ("train", "--config", "base.yaml")
    for options, said in (
        (["--run", "other", "--dry-run"], " 48 training pairs"),
        (["--run", "named", "--dataset", "english-german-both", "--dry-run"], " 240 training pairs"),
        ([], "Run base is finished"),  # a run keeps to its own dataset
        (["--set", "data.min_count=2"], "min_count 1 there, 2 here"),  # which only prepare can apply
    ):
        assert said in nmt(*train, *options, cwd=project).stdout


# --- translate --------------------------------------------------------------------------------------------------------


def test_translate_takes_sentences_a_file_or_standard_input(trained_project: Path, tmp_path: Path) -> None:
    sentences = ["im one two three", "I'm ONE, two three!", "", "im thirsty", "im four five six"]
    (tmp_path / "in.txt").write_text("".join(f"{sentence}\n" for sentence in sentences))
    by_argument = nmt("translate", *sentences, cwd=trained_project).stdout
    first, normalized, *others = by_argument.splitlines()
    assert first == normalized and [bool(text) for text in others] == [False, True, True]
    assert nmt("translate", "--input", str(tmp_path / "in.txt"), cwd=trained_project).stdout == by_argument
    assert nmt("translate", cwd=trained_project, stdin="\r\n".join(sentences)).stdout == by_argument


def test_n_best_are_columns_and_json_has_all(trained_project: Path) -> None:
    beam = ("translate", "--beam", "3", "im one two three", "im thirsty")
    out = nmt(*beam, "--n-best", "2", cwd=trained_project).stdout
    rows = [line.split("\t") for line in out.splitlines()]
    assert [number for number, *_ in rows] == ["1", "1", "2", "2"]
    assert 0 >= float(rows[0][1]) >= float(rows[1][1])
    objects = [
        json.loads(line) for line in nmt(*beam, "--n-best", "2", "--json", cwd=trained_project).stdout.splitlines()
    ]
    assert [item["source"] for item in objects] == ["im one two three", "im thirsty"]
    translations = [translation for item in objects for translation in item["translations"]]
    assert [(translation["text"], f"{translation['score']:.4f}") for translation in translations] == [
        (text, score) for _, score, text in rows
    ]
    for translation in translations:
        assert translation["finished"] and "confidence" not in translation  # the run is not calibrated
        assert [j for _, j in translation["alignment"]] == list(range(len(translation["text"].split())))
    assert nmt(*beam, cwd=trained_project).stdout.splitlines() == [rows[0][2], rows[2][2]]


def test_lines_that_are_too_long_are_skipped_if_asked(make_run: MakeRun) -> None:
    run = make_run("word", positions="learned", max_positions=6)
    lines = "im one\n" + "im one two three four\n" * 7 + "one\n"
    done = run_nmt("translate", "--run", run.name, "--skip-too-long", stdin=lines.encode())
    texts = [line.split("\t")[0] for line in done.out.splitlines()]
    assert [bool(text) for text in texts] == [True, *[False] * 7, True]
    names = "; ".join(f"standard input, line {number}" for number in range(2, 7))
    assert done.err.splitlines()[-1] == (
        f"nmt: 7 of 9 sentences are longer than the model reads, and their translations are empty: {names} and 2 more"
    )


def test_score_is_of_the_pairs_given(trained_project: Path) -> None:
    lines = "im one two three\tich bin eins zwei drei\nim one two three\tsieben\n"
    right, wrong = map(float, nmt("translate", "--score", cwd=trained_project, stdin=lines).stdout.splitlines())
    assert wrong < right < 0


def test_a_run_translates_without_its_data(trained_project: Path, tmp_path: Path) -> None:
    expected = nmt("translate", "im one two three", cwd=trained_project).stdout
    shutil.copytree(trained_project / "checkpoints" / "base", tmp_path / "checkpoints" / "base")
    assert nmt("translate", "im one two three", cwd=tmp_path).stdout == expected


# --- a process of its own ---------------------------------------------------------------------------------------------


FILES = "data/english-german-both/test."


@pytest.mark.parametrize("command", [
    "translate im", "info --run base", "runs --json", "samples", "tokens --json im", "fetch english-german",
    "demo tiny", f"evaluate --hypothesis {FILES}source.txt --reference {FILES}target.txt",
    "report --no-scores --no-attention", pytest.param("average --last 2", marks=pytest.mark.slow),
])  # fmt: skip
def test_a_process_prints_what_these_tests_read(command: str, project: Path, tmp_path: Path) -> None:
    """Run every command except prepare, train, plot, export, serve and bench, which have tests of their own."""
    again = Path(shutil.copytree(project, tmp_path / "again"))
    here = run_nmt(*command.split(), cwd=project)
    process = nmt_process(*command.split(), cwd=again, code=here.code)
    assert (process.stdout, process.stderr) == (here.out, here.err), "nothing from TensorFlow"


# --- the program ----------------------------------------------------------------------------------------------------


def test_help_imports_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import sys, nmt.cli.app\n"
        "try: nmt.cli.app.app(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = 'tensorflow', 'keras', 'numpy', 'matplotlib', 'pydantic', 'sentencepiece', 'tqdm'\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.rstrip().endswith("[]")
    assert list(tmp_path.iterdir()) == []


HOSTILE = "a\x1b[2J\rb\x9b1A\x08\u202e\tü\u200d"


def test_no_text_moves_the_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = create_run("first", Config(), [])
    sample = Sample(source=HOSTILE, reference="", translation=HOSTILE)
    run.append_metrics(an_epoch(1, step=1))
    run.append_metrics(SampleMetrics(epoch=1, step=1, samples=[sample]))
    assert "\x9b1A\x08\u202e\tü" in nmt("samples", cwd=tmp_path).stdout, "a file gets the text as it is"
    terminal, end = pty.openpty()
    subprocess.run([sys.executable, "-m", "nmt", "samples"], stdout=end, check=True)
    os.close(end)
    shown = os.read(terminal, 10_000).decode()
    assert shown.count(r"a\x1b[2J\rb\x9b1A\x08\u202e" + "\tü\u200d") == 2
    assert not set(shown.replace("\r\n", "")) & set("\x1b\r\x9b\x08\u202e")


def test_unknown_words_of_a_warning_do_not_move_the_terminal(make_run: MakeRun) -> None:
    run = make_run("joint-words")
    done = run_nmt("translate", "--run", run.name, "\x9b2Jxylophone")
    assert r"unknown to the model: \x9b2Jxylophone" in done.err
    assert len(done.out.splitlines()) == 1


def test_the_version_is_that_of_the_package(tmp_path: Path) -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert nmt("--version", cwd=tmp_path).stdout == f"nmt {declared}\n"
