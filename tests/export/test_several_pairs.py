"""Exports of a run with several language pairs: each pair is compared with its tag, and the card says the tags."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from conftest import nmt

import nmt as package
from nmt.errors import NmtError
from nmt.export.export import export_run, find_exporter
from nmt.runs.directory import Run

pytestmark = pytest.mark.slow

SENTENCES = {"en": "im one two three", "de": "ich bin eins zwei drei", "fr": "je suis un deux trois"}
PAIRS = [("en", "de"), ("en", "fr"), ("de", "en"), ("fr", "en")]


@pytest.fixture(scope="module")
def project(multilingual_project: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with an export to CTranslate2."""
    folder = Path(shutil.copytree(multilingual_project, tmp_path_factory.mktemp("several") / "project"))
    done = nmt("export", "--run", "four", "--to", "ctranslate2", cwd=folder)
    assert re.search(r"Equal to nmt: (\d+) of \1 sentences", done.stdout)
    assert re.findall("validation split, (.+): nmt", done.stdout) == [f"{a} to {b}" for a, b in PAIRS]
    return folder


def card_of(folder: Path) -> str:
    return (folder / "README.md").read_text()


def python_of(card: str) -> str:
    [code] = re.findall(r"```python\n(.*?)```", card, re.S)
    return str(code)


@pytest.mark.parametrize("pair", PAIRS)
def test_the_export_translates_each_pair_as_the_run(project: Path, pair: tuple[str, str]) -> None:
    source, target = pair
    command = ["translate", "--run", "four", "--to", target, SENTENCES[source], SENTENCES[source].upper()]
    ours = nmt(*command, cwd=project).stdout
    theirs = nmt(*command, "--export", "ctranslate2-float32", cwd=project).stdout
    assert theirs == ours
    assert ours.splitlines()[0] == SENTENCES[target]


def test_the_card_says_the_languages_and_the_tag_of_each_pair(project: Path) -> None:
    folder = project / "checkpoints" / "four" / "exports" / "ctranslate2-float32"
    card = card_of(folder)
    assert yaml.safe_load(card.split("---\n")[1])["language"] == ["en", "de", "fr"]
    assert "# 4 language pairs: run four" in card
    assert "| languages | en to de, en to fr, de to en, fr to en |" in card
    for source, target in PAIRS:
        assert f"| {source} to {target} | `<2{target}>` |" in card
        assert f"| validation, {source} to {target} |" in card
        assert f"| test, {source} to {target} |" in card
    [command] = re.findall(r"nmt (translate --export FOLDER .*) \"SENTENCE\"", card)
    arguments = command.replace("FOLDER", str(folder)).split()
    assert nmt(*arguments, SENTENCES["en"], cwd=project).stdout == f"{SENTENCES['de']}\n"
    for target in ("de", "fr"):
        code = python_of(card).replace("FOLDER", str(folder)).replace("SENTENCE", SENTENCES["en"])
        code = code.replace("<2de>", f"<2{target}>")
        done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
        assert done.stdout == f"{SENTENCES[target]}\n"


def test_one_of_the_pairs_is_exported_alone(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    run, exporter = Run(Path("checkpoints/four")), find_exporter("ctranslate2")
    export = export_run(run, exporter, output=Path("alone"), languages=("en", "fr"))
    assert list(export.comparison.scores) == ["en to fr"]
    assert "| languages | en to fr |" in card_of(export.folder)
    with pytest.raises(NmtError, match=r"no such language pair\. It has en-de, en-fr, de-en, fr-en"):
        export_run(run, exporter, output=Path("no"), languages=("de", "fr"))
    with pytest.raises(NmtError, match="reads <2fr> before each sentence, and Argos Translate does not put it there"):
        export_run(run, find_exporter("argos"), languages=("en", "fr"))


def test_an_export_without_a_tag_is_refused(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    exporter = find_exporter("ctranslate2")
    translate = type(exporter).translate
    monkeypatch.setattr(
        exporter,
        "translate",
        lambda model, folder, texts, tags: translate(exporter, model, folder, texts, [[]] * len(tags)),
    )
    with pytest.raises(NmtError, match="The export is not equal to the run"):
        export_run(Run(Path("checkpoints/four")), exporter, output=Path("untagged"))
    assert not Path("untagged").exists()


def test_a_saved_model_reads_the_id_of_the_tag(project: Path) -> None:
    nmt("export", "--run", "four", "--to", "saved-model", "--output", "saved", cwd=project)
    card = card_of(project / "saved")
    ids = dict(re.findall(r"\| en to (\w+) \| `(\d+)` \|", card))
    assert ids.keys() == {"de", "fr"}
    assert f'"source_ids": [[{ids["de"]}, 6, 5, 4], [{ids["de"]}, 4, 0, 0]]' in card
    code = python_of(card).replace(f"[{ids['de']}] + ", f"[{ids['fr']}] + ")
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, input=f"{SENTENCES['en']}\n",
        cwd=project / "saved",
    )  # fmt: skip
    assert done.stdout == f"{SENTENCES['fr']}\n"


def test_argos_holds_one_pair_of_a_run_without_tags(project: Path) -> None:
    settings = [
        word
        for key in ("tokenizer=subword", "normalization=nfc", "vocabulary_size=330", "subword_sampling=false")
        for word in ("--set", f"data.{key}")
    ]
    files = ["--corpus", "de-en=de.tsv", "--corpus", "fr-en=fr.tsv"]
    nmt("prepare", *files, *settings, "--set", "data.split=random", "--name", "into", cwd=project)
    nmt(
        "train",
        "--config",
        "four.yaml",
        "--dataset",
        "into",
        "--run",
        "into",
        "--set",
        "training.epochs=1",
        cwd=project,
    )
    refused = nmt("export", "--run", "into", "--to", "argos", cwd=project, code=2).stderr
    assert "has 2 language pairs: de-en, fr-en. A package of Argos Translate has a single one" in refused
    nmt("export", "--run", "into", "--to", "argos", "--languages", "fr-en", "--tolerance", "100", cwd=project)
    [package_file] = (project / "checkpoints" / "into" / "exports").glob("*/translate-fr_en-1_0.argosmodel")
    assert package_file.is_file()


@pytest.mark.usefixtures("transformers")
def test_transformers_reads_the_tag_as_a_word(project: Path) -> None:
    nmt("export", "--run", "four", "--to", "huggingface", "--output", "hf", cwd=project)
    card = card_of(project / "hf")
    assert "| en to fr | `<2fr>` |" in card
    code = python_of(card).replace("A first sentence.", SENTENCES["en"]).replace("A second sentence.", SENTENCES["en"])
    code = code.replace("<2de> ", "<2fr> ", 1)
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=project / "hf")
    assert json.loads(done.stdout.splitlines()[-1].replace("'", '"')) == [SENTENCES["fr"], SENTENCES["de"]]


def test_the_tag_of_a_language_chooses_it_like_the_language(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    with package.load("four", decoding={"tag": "2fr"}) as translator:
        assert translator.translate([SENTENCES["en"]]) == [SENTENCES["fr"]]
    with package.load("four", decoding={"tag": "2fr", "target_language": "de"}) as translator:
        assert translator.translate([SENTENCES["en"]]) == [SENTENCES["de"]]
