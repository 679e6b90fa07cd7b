"""Every command of every README works.

The commands of a README run in order, in a project of its own with small corpora and the real recipes on small models;
after those of ``configs/README.md`` the commands of ``configs/MEASUREMENTS.md``, which need its datasets and runs.
Each of ``GUIDES`` has a project of its own. They run in the process of the tests, which loads TensorFlow
once, or in a shell. A release check (``.ci/run``) runs the commands that install nmt. Abbreviated are models, epochs,
the time of measurements, and the choice of tests.
"""

import gzip
import itertools
import json
import os
import re
import shlex
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml
from conftest import ROOT, collect_and_freeze, nmt, small_pairs, write_pickle
from marian_models import safetensors_folder

from nmt.export.marian import position_base

README, MEASUREMENTS = "README.md", "MEASUREMENTS.md"
GUIDES = ["configs/SMALL-CORPORA.md", "configs/TEACHERS.md"]
"""Pages whose commands run in a project of their own."""
FOLDERS = ["", "configs", "data", "checkpoints", "nmt", "nmt/cluster", "nmt/serving", "tests"]
CI = (ROOT / ".ci" / "run").read_text()
SMALL_MODEL = {"encoder_layers": 1, "decoder_layers": 1, "d_model": 32, "d_ff": 64, "heads": 4}
SMALL_RECURRENT_MODEL = {"width": 16}
EPOCHS = {"nmt/cluster": 1}
SMALL = "--set model.d_model=32 --set model.encoder_layers=1 --set model.decoder_layers=1"
TINY = f"{SMALL} --set training.epochs=2"
ABBREVIATED = {
    "--epochs 24-42": "--epochs 1-2",
    **{f"training.epochs={many}": "training.epochs=2" for many in (9, 12, 14)},
    "training.epochs=30": "training.epochs=5",
    "--epochs 24-26,30": "--epochs 2-3,5",
    "training.epochs=31": "training.epochs=6",
    "--seconds 60": "--seconds 0",
    "--quality 3": "--quality 1",
    "nmt bench --run": "nmt bench --turns 1 --run",
    "--minutes 30 --run chosen": f"--minutes 30 --run chosen {SMALL}",
    "nmt train --run chosen": f"nmt train --run chosen {TINY}",
    "--dataset letters --run letters": f"--dataset letters --run letters {TINY}",
    "--minutes 60": TINY,
    "--corpus es-gn_bt": "--corpus es-gn_bt=mono.bt.tsv.gz",  # a model that has hardly learnt writes no pairs
    "--dataset three --run three": f"--dataset three --run three {TINY}",
    "--dataset tuned --from three": "--dataset tuned --from three --set training.epochs=1",
    "--dataset reversed --run reversed": f"--dataset reversed --run reversed {TINY}",
    "--dataset trusted --run trusted": f"--dataset trusted --run trusted {TINY}",
    "--corpus bt --tag bt --name with-bt": "--corpus bt=mono.bt.tsv.gz --tag bt --name with-bt",  # as the next
    "--corpus opus-pairs": "--corpus opus-pairs=mono.bt.tsv.gz",  # of a model with random weights
    "--corpus bt --corpus fwd": "--corpus bt=mono.bt.tsv.gz --corpus fwd=mono.bt.tsv.gz",
    "--filters score": "--set 'data.filters={score: -9}'",  # of a model that has hardly learnt
    "--from letters": "--from letters --set training.epochs=2",
    "--run fitted": f"--run fitted {TINY}",
    "nmt import opus-mt-en-de": "nmt import opus-mt-en-de --sentences a.en",  # few
    "tensorboard --logdir checkpoints": "tensorboard --logdir checkpoints --inspect",  # ends
    "NMT_FUZZ_MINUTES=10": "NMT_FUZZ_MINUTES=0",  # the same files in every run
    "tests/test_fuzz.py": "tests/test_fuzz.py -k yaml",
    "tests/training/test_interrupts.py": "tests/training/test_interrupts.py --collect-only",  # they run anyway
    "tests/plotting/test_gallery.py": "tests/plotting/test_gallery.py --collect-only",
    "--rewrite-messages": "--collect-only",
}
# A command of each README that a shell runs as it is typed. The other READMEs have those that need one.
IN_A_SHELL = {
    "": 'nmt translate "im thirsty"',
    "data": "nmt prepare archive.zip/europarl.de-en.tsv.gz",
    "configs": 'nmt plot position-table "I am a robot"',
}
# What a shell reads.
NEEDS_A_SHELL = re.compile(r"[$`*?~;<>&|()\\]")


def readme(folder: str) -> str:
    return (ROOT / folder / README).read_text()


def pages(place: str) -> list[Path]:
    """Return the pages of a folder, or a guide, in the order in which their commands run."""
    path = ROOT / place
    if place in GUIDES:
        return [path]
    return [path / README, path / MEASUREMENTS] if place == "configs" else [path / README]


def commands(place: str) -> list[str]:
    """Return the commands of pages: in console blocks, and in the last column of tables if it says so."""
    text = "\n".join(page.read_text() for page in pages(place))
    console, table = r"^```console\n(.*?)^```", r"^\|[^\n]+\| command \|\n((?:\|[^\n]+\n)+)"
    found = []
    for block, rows in re.findall(f"{console}|{table}", text, re.S | re.M):
        found += [line for line in block.splitlines() if line]
        found += [cell for row in rows.splitlines() for cell in re.findall(r"`(nmt .+?)`", row.split("|")[-2])]
    return found


def is_run_by_ci(command: str) -> bool:
    """Return whether the release check runs the command: named there, or at the end of an installing command."""
    installing = [command for command in commands("") if command.startswith("python3 -m venv")]
    return (
        any(line.strip('"').endswith(f".venv/bin/{command}") for line in [*installing, *CI.splitlines()])
        or command in installing
    )


# --- a project with what the READMEs name


def write_sides(folder: Path, names: tuple[str, str], pairs: list[tuple[str, str]]) -> None:
    for side, name in enumerate(names):
        text = "".join(f"{pair[side]}\n" for pair in pairs).encode()
        (folder / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)


def tsv(pairs: list[tuple[str, str]]) -> str:
    return "".join(f"{source}\t{target}\n" for source, target in pairs)


def write_corpora(folder: Path) -> None:
    """Write a small corpus under every name and in every format of the READMEs."""
    data, pairs = folder / "data", small_pairs()
    raw = [(f"{source.capitalize()}!", f"{target.capitalize()}!") for source, target in pairs]
    write_pickle(data / "english-german-both.pkl", pairs)
    parts = iter(raw)
    for name, count in (("train", 200), ("val", 40), ("test_2016_flickr", 40)):
        write_sides(data, (f"{name}.en.gz", f"{name}.de.gz"), list(itertools.islice(parts, count)))
    write_sides(data, ("test.en.gz", "test.de.gz"), raw[:40])
    write_sides(data, ("mono.en.gz", "mono.de.gz"), raw[:40])
    (data / "pairs.tsv").write_text(tsv(raw))
    (data / "mono.bt.tsv.gz").write_bytes(gzip.compress(tsv(pairs[:40]).encode()))
    write_sides(data, ("web.en.gz", "web.de.gz"), pairs[40:80])
    (data / "es-gn.tsv").write_text(tsv(pairs[:250]))
    (data / "dev.tsv").write_text(tsv(pairs[250:280]))
    write_sides(data, ("shp.es", "shp.shp"), pairs[:200])
    write_sides(folder, ("corpus.es", "corpus.gn"), raw[:200])
    write_sides(data, ("dev.es", "dev.gn"), raw[200:240])
    write_sides(data, ("stories.es", "stories.shp"), raw[:150])
    write_sides(data, ("old.es", "old.shp"), raw[150:200])
    write_sides(data, ("stories-dev.es", "stories-dev.shp"), raw[200:230])
    (data / "mono.gn").write_text("".join(f"{target}\n" for _, target in raw[240:260]))
    (data / "numbered.tsv").write_text("".join(f"{n}\t{line}" for n, line in enumerate(tsv(raw).splitlines(True))))
    (data / "named.tsv").write_text("de\ten\n" + tsv([(target, source) for source, target in raw]))
    (data / "pairs.jsonl").write_text("".join(json.dumps({"en": s, "de": t}) + "\n" for s, t in raw))
    unit = '<tu><tuv xml:lang="en"><seg>{}</seg></tuv><tuv xml:lang="de"><seg>{}</seg></tuv></tu>\n'
    units = "".join(unit.format(*pair) for pair in raw)
    (data / "memory.tmx").write_text(f'<tmx version="1.4"><header/><body>\n{units}</body></tmx>\n')
    entries = "\n".join(f'msgid "{source}"\nmsgstr "{target}"\n' for source, target in raw)
    (data / "messages.po").write_text(entries)
    with tarfile.open(data / "catalogues.tar.gz", "w:gz") as archive:
        archive.add(data / "messages.po", "messages.po")
    with zipfile.ZipFile(data / "deu-eng.zip", "w") as archive:
        archive.writestr("deu.txt", tsv(raw))
        archive.writestr("_about.txt", "notes")
    (data / "part-1.tsv").write_text(tsv(raw[:150]))
    (data / "part-2.tsv").write_text(tsv(raw[150:]))
    with zipfile.ZipFile(data / "corpus.de-en.zip", "w") as archive:
        for side, code in enumerate(("en", "de")):
            archive.writestr(f"corpus.de-en.{code}", "".join(f"{pair[side]}\n" for pair in raw))
        archive.writestr("README", "notes")
    with zipfile.ZipFile(data / "archive.zip", "w") as archive:
        archive.writestr("europarl.de-en.tsv.gz", gzip.compress(tsv(raw).encode()))
        archive.writestr("news.de-en.tsv.gz", gzip.compress(tsv(raw).encode()))
    write_sides(folder, ("letters.en", "letters.de"), pairs[:250])
    write_sides(folder, ("notices.en", "notices.de"), small_pairs(343)[250:])
    write_sides(folder, ("a.en.gz", "a.de.gz"), pairs[:30])
    write_sides(folder, ("a.en", "a.de"), pairs[:30])
    write_sides(folder, ("b.en.gz", "b.de.gz"), pairs[:30])
    (folder / "page.html").write_text("<p>im <b>thirsty</b>")
    safetensors_folder(folder / "opus-mt-en-de")
    write_sides(folder, ("theirs.en", "theirs.de"), pairs[5:35])


def write_recipes(folder: Path, epochs: int, samples: int) -> None:
    """Write the recipes of ``configs/`` with small models and at most E epochs.

    Validations translate as many sentences as they show, since translating takes half of a run of two epochs. The
    exceptions are recipes whose best epoch depends on translations. All else in the recipes is as it is.
    """
    (folder / "configs").mkdir()
    for path in (ROOT / "configs").glob("*.yaml"):
        recipe = yaml.safe_load(path.read_text())
        recurrent = recipe["model"].get("architecture") == "recurrent"
        if path.name != "finetune.yaml":  # whose model is that of another run
            recipe["model"].update(SMALL_RECURRENT_MODEL if recurrent else SMALL_MODEL)
        if path.name == "student.yaml":  # as an export to Bergamot needs it
            recipe["model"].update({"d_model": 64, "position_base": position_base(64)})
        recipe["training"]["warmup_steps"] = 30
        if "best_by" not in recipe["training"]:
            recipe["training"].update({"decode_validation": 0, "samples": samples})
        # nmt demo --lesson translates with epoch 16. A student that has hardly learned is not exported.
        most = {"book-curves.yaml": 16, "student.yaml": 10}.get(path.name, epochs)
        recipe["training"]["epochs"] = min(most, recipe["training"]["epochs"])
        (folder / "configs" / path.name).write_text(yaml.safe_dump(recipe))


def abbreviated(command: str) -> str:
    for whole, part in ABBREVIATED.items():
        command = command.replace(whole, part)
    return command


def in_a_shell(command: str, project: Path, stdin: str = "") -> None:
    """Run a command as it is typed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], cwd=ROOT if " tests/" in command else project, input=stdin,
        capture_output=True, text=True, check=False, env=environment, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


def run(command: str, project: Path) -> None:
    """Run a command: what is nmt's in this process, unless it needs another."""
    ours, _, others = command.partition(" | ")
    if NEEDS_A_SHELL.search(ours) or not ours.startswith("nmt "):
        in_a_shell(command, project)
    else:
        output = nmt(*shlex.split(ours)[1:], cwd=project).stdout
        collect_and_freeze()  # a page has dozens of commands
        if others:
            in_a_shell(others, project, output)


@pytest.mark.parametrize(
    "place", [pytest.param(place, marks=[] if place == "" else pytest.mark.slow) for place in [*FOLDERS, *GUIDES]]
)
def test_every_command_works(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if place == "configs":
        monkeypatch.setattr("nmt.benchmark.MATMUL_SIZES", (64,))
    write_corpora(tmp_path)
    shows_samples = any(command.startswith("nmt samples") for command in commands(place))
    write_recipes(tmp_path, EPOCHS.get(place, 2), samples=3 if shows_samples else 0)
    for command in commands(place):
        if command == IN_A_SHELL.get(place):
            in_a_shell(command, tmp_path)
        elif not is_run_by_ci(command):
            run(abbreviated(command), tmp_path)


# --- what the READMEs hold


def test_ci_runs_the_installing_commands() -> None:
    installing = [command for command in commands("") if command.startswith("python3 -m venv")]
    assert len(installing) == 2
    assert "demo" in installing[0] and "pytest" in installing[1]
    assert "README.md" in CI and "demo" in CI and "pytest" in CI


def test_the_front_page_has_four_commands() -> None:
    assert [command.split()[1] for command in commands("") if not is_run_by_ci(command)] == [
        "prepare", "train", "plot", "translate"
    ]  # fmt: skip


def test_the_front_page_takes_two_minutes_to_read() -> None:
    assert len(readme("").splitlines()) <= 90
    assert len(re.findall(r"^\|[ :-]*-", readme(""), re.M)) == 1, "one table"


@pytest.mark.parametrize(
    "here",
    [pytest.param(page, id=str(page.relative_to(ROOT))) for place in [*FOLDERS, *GUIDES] for page in pages(place)],
)
def test_links_lead_to_files_and_headings(here: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", here.read_text()):
        if link.startswith("https://"):
            continue
        path, _, heading = link.partition("#")
        target = (here.parent / path).resolve() if path else here
        assert target.exists(), link
        if heading:
            text = (target / README if target.is_dir() else target).read_text()
            titles = re.findall(r"^#+ (.+)$", text, re.M)
            assert heading in {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}, link


def test_every_recipe_stands_in_the_readme_of_configs_with_its_command() -> None:
    trained = "\n".join(commands("configs")).replace("nmt demo --lesson", "--config book-curves.yaml")
    for path in (ROOT / "configs").glob("*.yaml"):
        assert f"[{path.name}]({path.name})" in readme("configs"), path.name
        assert f"--config {path.name}" in trained, path.name


def test_every_test_file_at_the_top_and_every_folder_stands_in_the_readme_of_tests() -> None:
    for path in (ROOT / "tests").iterdir():
        if path.name.startswith("test_") or (path.is_dir() and any(path.rglob("test_*.py"))):
            assert f"`{path.name}" in readme("tests"), path.name


def test_pictures_are_small_and_load_nothing() -> None:
    pictures = ROOT / ".github" / "pictures"
    for name in ("losses.png", "attention.png"):
        assert (pictures / name).read_bytes().startswith(b"\x89PNG")
        assert (pictures / name).stat().st_size < 60_000
    session = (pictures / "translate.svg").read_text()
    assert len(session) < 30_000
    assert "url(http" not in session and "<script" not in session and "im&#160;thirsty" in session
