"""The package works without features of Linux, which are hidden: it imports, prepares, trains and serves.

Each test runs processes of its own, with ``without_linux.py``.
"""

import os
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from conftest import ENVIRONMENT, SMALLEST, small_pairs, write_tsv

HIDDEN = Path(__file__).with_name("without_linux.py")

IMPORTS = """
import without_linux
without_linux.hide()
import importlib, pkgutil
import nmt
names = [module.name for module in pkgutil.walk_packages(nmt.__path__, "nmt.") if module.name != "nmt.__main__"]
for name in names:
    importlib.import_module(name)
print(len(names))
"""

PARALLEL = """
import without_linux
without_linux.hide()
if __name__ == "__main__":
    import nmt, nmt.data.encoding
    nmt.data.encoding.PARALLEL_PAIRS = 0
    nmt.data.encoding.available_processors = lambda: 2
    print(nmt.prepare("pairs.tsv", name="parallel").is_new)
"""

KILLED = """
import without_linux
without_linux.hide()
import sys
from pathlib import Path
from nmt.storage.atomic import atomic_folder
from nmt.storage.file_lock import locked
with atomic_folder(Path("data/killed")) as folder, locked(Path("checkpoints/base/lock"), "Run 'base'"):
    (folder / "half").touch()
    print("writing", flush=True)
    sys.stdin.read()
"""

SERVICE = """
import without_linux
without_linux.hide()
import sys
import uvicorn
import nmt.serving.server
from nmt.documents.isolation import main
sys.exit(main())
"""


def python(*arguments: str, folder: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run Python in a folder, in which ``without_linux`` can be imported."""
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, input=stdin, capture_output=True, encoding="utf-8", timeout=280,
        check=False, env=environment(),
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    return done


def environment() -> dict[str, str]:
    paths = [str(HIDDEN.parent), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    return {**os.environ, **ENVIRONMENT, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a prepared corpus and a trained run."""
    folder = tmp_path_factory.mktemp("project")
    write_tsv(folder / "pairs.tsv", small_pairs())
    (folder / "base.yaml").write_text(SMALLEST)
    for command in ("prepare pairs.tsv --name pairs", "train --config base.yaml"):
        done = python(str(HIDDEN), *command.split(), folder=folder)
        assert done.returncode == 0, done.stderr
    return folder


def test_every_module_is_imported(tmp_path: Path) -> None:
    done = python("-c", IMPORTS, folder=tmp_path)
    assert done.returncode == 0 and int(done.stdout) > 150


@pytest.mark.slow
def test_a_run_is_trained_and_translates_standard_input(project: Path) -> None:
    assert len((project / "checkpoints/base/metrics.jsonl").read_text().splitlines()) >= 2
    assert not [path for path in project.rglob(".*-*") if not path.name.startswith(".git")]
    done = python(str(HIDDEN), "translate", folder=project, stdin="im one two three\nim thirsty\n")
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 2


@pytest.mark.parametrize("words", ["größer", "更大", "أكبر", "बड़ा", "büyük ğışö"])
def test_output_is_utf8_whatever_the_encoding_of_the_system(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "cp1252")  # of Windows in Western Europe
    write_tsv(tmp_path / "pairs.tsv", [(f"{source} {words}", target) for source, target in small_pairs(20)])
    assert python("-m", "nmt", "prepare", "pairs.tsv", "--name", "pairs", folder=tmp_path).returncode == 0
    done = python("-m", "nmt", "tokens", "--dataset", "pairs", folder=tmp_path, stdin=f"im one {words}\n")
    assert done.returncode == 0
    assert not set(unicodedata.normalize("NFKC", words)) - set(done.stdout)


def test_processes_share_the_encoding(project: Path) -> None:
    script = project / "parallel.py"
    script.write_text(PARALLEL)
    done = python(str(script), folder=project)
    assert (done.returncode, done.stdout) == (0, "True\n")


@pytest.mark.slow
def test_locks_hold_and_are_free_at_once_when_their_process_is_killed(project: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED], cwd=project, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()
    )
    assert process.stdout and process.stdout.readline() == b"writing\n"
    prepare = [str(HIDDEN), "prepare", "pairs.tsv", "--name", "others"]
    refused = python(str(HIDDEN), "train", "--run", "base", "--set", "training.epochs=3", folder=project)
    assert refused.returncode == 2
    assert f"Run 'base' is in use by process {process.pid} on " in refused.stderr
    assert python(*prepare, folder=project).returncode == 0
    assert len(list(project.glob("data/.writing-killed-*/half"))) == 1
    process.kill()
    process.communicate()
    assert python(*prepare, "--overwrite", folder=project).returncode == 0
    assert not list(project.glob("data/.*-*"))
    resumed = python(str(HIDDEN), "train", "--run", "base", "--set", "training.epochs=3", folder=project)
    assert resumed.returncode == 0


def test_a_service_and_the_reader_of_documents_start(tmp_path: Path) -> None:
    pytest.importorskip("fastapi")
    request = '{"name": "a.html", "max_characters": 100}\n<p>one</p><p>two</p>'
    done = python("-c", SERVICE, folder=tmp_path, stdin=request)
    assert done.returncode == 0 and '"texts": ["one", "two"]' in done.stdout
