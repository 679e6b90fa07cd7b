"""The Python interface: examples in docstrings work, wrong arguments are refused, and importing it is fast."""

import doctest
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import SMALLEST, nmt, small_pairs, write_tsv

import nmt as package
from nmt import api
from nmt.decoding.sentence_translator import SentenceTranslator
from nmt.text.translator import Translator

# --- examples ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def learnt_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with pairs.tsv and the run "base", which has learnt these pairs."""
    folder = tmp_path_factory.mktemp("learnt")
    write_tsv(folder / "pairs.tsv", small_pairs())
    (folder / "mono.de").write_text("im one two six\nim seven\n")
    (folder / "small.yaml").write_text(SMALLEST.replace("epochs: 2", "epochs: 60").replace("30", "200"))
    nmt("prepare", "pairs.tsv", "--set", "data.normalization=ascii-words", cwd=folder)
    silent = ("--set", "training.decode_validation=0", "--set", "training.samples=0")
    nmt("train", "--config", "small.yaml", "--run", "base", *silent, cwd=folder)
    return folder


@pytest.mark.slow
def test_the_examples_of_the_docstrings(learnt_project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(learnt_project)
    finder = doctest.DocTestFinder()
    runner = doctest.DocTestRunner()
    with_examples = set()
    failures: list[str] = []
    documented = [
        ("prepare", api.prepare), ("train", api.train), ("load", api.load), ("synthesize", package.synthesize),
        ("translate_document", api.translate_document),
        ("Translator", Translator), ("Translator", SentenceTranslator),  # whose methods a translator inherits
    ]  # fmt: skip
    found = [
        test for name, item in documented
        for test in finder.find(item, name, module=False, extraglobs={"nmt": package})
    ]  # fmt: skip
    for test in found:
        if test.examples:
            with_examples.add(test.name)
            runner.run(test, out=failures.append)
    assert not runner.failures, "".join(failures)
    translations = ("translate", "translate_details", "translate_n_best", "glossary", "score", "attention")
    public = {
        "prepare",
        "load",
        "train",
        "synthesize",
        "translate_document",
        *(f"Translator.{name}" for name in translations),
    }
    assert public <= with_examples


# --- the package ------------------------------------------------------------------------------------------------------


def test_importing_the_package_loads_nothing_else_and_gives_the_names_of_the_interface(tmp_path: Path) -> None:
    code = (
        "import sys, nmt\n"
        "assert not [name for name in sys.modules if name.startswith(('nmt.', 'numpy', 'typer'))]\n"
        "assert set(nmt.__all__) == set(nmt._MODULES) <= set(dir(nmt))\n"
        "for name in nmt.__all__: assert getattr(nmt, name).__name__ == name\n"
        "assert nmt.__version__ and 'tensorflow' not in sys.modules\n"
        "from nmt import load, NmtError\n"
        "try: nmt.nothing\n"
        "except AttributeError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "module 'nmt' has no attribute 'nothing'\n", done.stderr


# --- prepare ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def pairs(folder: Path) -> None:
    write_tsv("pairs.tsv", small_pairs(60))


def test_a_dataset_is_that_of_the_command(pairs: None, folder: Path) -> None:
    calls: list[tuple[str, int, int | None]] = []
    dataset = package.prepare(
        Path("pairs.tsv"), name="mine", set={"data.seed": 7}, progress=lambda *step: calls.append(step)
    )
    assert calls
    assert (dataset.name, dataset.manifest.settings.seed, dataset.manifest.read) == ("mine", 7, 60)
    again = nmt("prepare", "pairs.tsv", "--name", "mine", "--set", "data.seed=7", cwd=folder)
    assert "Already prepared with these settings: data/mine" in again.stdout
    assert package.prepare(["pairs.tsv"], name="mine", set=["data.seed=7"]).manifest == dataset.manifest


def test_two_files_and_files_for_splits_are_taken(folder: Path) -> None:
    for name, pairs in (("a", small_pairs(40)), ("b", small_pairs(60)[40:])):
        for column, side in enumerate(("en", "de")):
            (folder / f"{name}.{side}").write_text("".join(f"{pair[column]}\n" for pair in pairs))
    dataset = package.prepare(["a.en", "a.de"], test=["b.en", "b.de"])
    assert dataset.name == "a"
    assert dataset.manifest.splits["test"].pairs == 20


def test_what_the_command_refuses_is_an_exception(pairs: None) -> None:
    package.prepare("pairs.tsv")
    with pytest.raises(package.ConflictError, match="not overwritten unless you ask"):
        package.prepare("pairs.tsv", set={"data.seed": 7})
    with pytest.raises(package.NotFoundError, match=r"There is no file 'ghost.tsv'"):
        package.prepare("ghost.tsv")
    with pytest.raises(package.ConfigError, match=r"data\.sed"):
        package.prepare("pairs.tsv", set={"data.sed": 7})
    with pytest.raises(package.NmtError, match=r"^files names pairs.tsv 3 times"):
        package.prepare(["pairs.tsv"] * 3)
    with pytest.raises(package.NotFoundError, match="No run is in checkpoints/ yet"):
        package.load()


def test_values_of_every_type_override_a_key(pairs: None) -> None:
    values = {
        "data.min_count": 2, "data.tokenizer": "word", "data.train_share": 0.7, "data.test_share": 0.2,
        "data.drop_empty": True, "data.source_column": None,
    }  # fmt: skip
    settings = package.prepare("pairs.tsv", set=values).manifest.settings.model_dump()
    assert {f"data.{key}": value for key, value in settings.items() if f"data.{key}" in values} == values


# --- load -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_document_is_that_of_the_command(trained_project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(trained_project)
    Path("page.htm").write_text("<p title='im one'>im <b>thirsty</b><script>a</script>", encoding="utf-8")
    nmt("translate", "--run", "base", "--input", "page.htm", "--output", "expected.htm", cwd=trained_project)
    calls: list[tuple[int, int]] = []
    with pytest.warns(UserWarning, match="^Not translated: 1 script.$"):
        written = package.translate_document("page.htm", translator="base", progress=lambda *done: calls.append(done))
    assert written == Path("page.de.htm") and calls == [(2, 2)]
    assert written.read_bytes() == Path("expected.htm").read_bytes()
    with pytest.raises(package.ConflictError, match=r"page\.de\.htm"), package.load("base") as translator:
        package.translate_document("page.htm", translator=translator)
    for arguments, message in (
        (["page.pdf"], "^path is page.pdf, which is no document. Give a file of .html, "),
        (
            ["page.htm", "page.md"],
            "^output is page.md, but the document page.htm keeps its format. Give a name with .htm",
        ),
        (["ghost.md"], "ghost.md"),
    ):
        with pytest.raises(package.NmtError, match=message):
            package.translate_document(*arguments)


def test_translations_are_those_of_the_command(trained_project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(trained_project)
    sentences = ["im one two three", "", "im thirsty"]
    translator = package.load("base", 1, decoding={"beam_size": 3})
    assert translator.epoch == 1
    arguments = ("translate", "--epoch", "1", "--beam", "3")
    expected = nmt(*arguments, cwd=trained_project, stdin="\n".join(sentences)).stdout
    assert "".join(f"{text}\n" for text in translator.translate(sentences)) == expected
    details = translator.translate_details(sentences)
    assert [translation.text for translation in details] == expected.splitlines()
    rows = nmt(*arguments, "--n-best", "2", "im thirsty", cwd=trained_project).stdout.splitlines()
    [found] = translator.translate_n_best(["im thirsty"], 2)
    assert [f"1\t{translation.score:.4f}\t{translation.text}" for translation in found] == rows
    assert translator.score(["im thirsty"], [details[2].text])[0] < 0
    assert all(text.startswith("ich bin") for text in translator.translate(sentences[:1], prefix="ich bin"))
    assert translator.translate(["im one"], sample=True) == translator.translate(["im one"], sample=True)
    [attention] = translator.attention(["im thirsty"], details[2:])
    assert len(attention.alignment()) == len(details[2].text.split())


def test_what_cannot_be_translated_is_refused(trained_project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(trained_project)
    with pytest.raises(
        package.ConfigError,
        match=r'^decoding=\{"beam_size": 0\}: decoding\.beam_size must be greater than or equal to 1',
    ):
        package.load("base", decoding={"beam_size": 0})
    with pytest.raises(package.NotFoundError, match="no weights of epoch '9'"):
        package.load("base", 9)
    translator = package.load()
    with pytest.raises(package.NmtError, match=r'^n=2 needs a beam .* Give decoding=\{"beam_size": 2\} or more'):
        translator.translate_n_best(["im thirsty"], 2)
    with pytest.raises(package.NmtError, match=r"texts is 'im thirsty', but must be Sequence\[str\]"):
        translator.translate("im thirsty")
    with pytest.raises(package.NmtError, match="Received 1 source and 2 translations"):
        translator.score(["a"], ["b", "c"])
    with pytest.raises(package.DataError, match="prefix"):
        translator.translate(["im thirsty"], prefix="xyz", names=["line 7"])
    with translator:
        assert translator.translate(["im thirsty"])
    with pytest.raises(package.NmtError, match="The translator is closed"):
        translator.translate(["im thirsty"])
