"""Imported models of several target languages: each is a language pair, chosen by its code."""

import json
from pathlib import Path

import pytest
from conftest import nmt, small_pairs, write_tsv
from marian_models import npz_folder

from nmt import load
from nmt.data.directions import tags_by_code, tags_of_languages
from nmt.data.manifest import read_manifest
from nmt.importing.importing import import_model
from nmt.importing.proof import sentences_to_compare
from nmt.runs.directory import Run
from nmt.tokenizers.base import tag_id
from nmt.tokenizers.registry import load_tokenizer

TEXTS = [source for source, _ in small_pairs(20)]


@pytest.fixture
def imported(folder: Path) -> Run:
    """A run with the tags "deu" and "fra"."""
    return import_model(npz_folder(folder / "model"), "opus", languages=("en", "de"))[0]


def test_each_tag_is_a_language_pair(imported: Run, folder: Path) -> None:
    manifest = read_manifest(imported.dataset_path)
    pairs = {direction.languages: direction.tag for direction in manifest.directions}
    assert pairs == {("en", "de"): "deu", ("en", "fr"): "fra"}
    scores = {}
    for target, tag in (("de", "deu"), ("fr", "fra")):
        with load("opus", decoding={"target_language": target}) as translator:
            assert translator.languages == ("en", target)
            scores[target] = translator.score(TEXTS, TEXTS)
            assert translator.encode(TEXTS)[0] == [tag_id(translator.source, tag), *translator.source.encode(TEXTS[0])]
        with load("opus", decoding={"tag": tag}) as translator:
            assert translator.languages == ("en", target)
            assert translator.score(TEXTS, TEXTS) == scores[target]
    assert scores["de"] != scores["fr"]
    with load("opus") as translator:
        assert translator.score(TEXTS, TEXTS) == scores["de"]
    nmt("translate", "--run", "opus", "--to", "fra", *TEXTS, cwd=folder)
    refused = nmt("translate", "--run", "opus", "--to", "tr", *TEXTS, cwd=folder, code=2).stderr
    assert "does not know this language" in refused


def test_without_its_languages_a_target_has_to_be_chosen(folder: Path) -> None:
    import_model(npz_folder(folder / "model"), "opus")
    refused = nmt("translate", "--run", "opus", *TEXTS, cwd=folder, code=2).stderr
    assert "The model translates into several languages" in refused
    with load("opus", decoding={"tag": "fra"}) as translator:
        assert translator.languages == ("source", "fr")


def test_a_run_that_was_imported_earlier_has_tags_alone(folder: Path) -> None:
    run, _ = import_model(npz_folder(folder / "model"), "opus")
    with load("opus", decoding={"target_language": "fr"}) as translator:
        expected = translator.score(TEXTS, TEXTS)
    manifest = json.loads(run.dataset_path.read_text())
    del manifest["directions"]
    run.dataset_path.write_text(json.dumps({**manifest, "format": 7}))
    with load("opus", decoding={"tag": "fra"}) as translator:
        assert translator.score(TEXTS, TEXTS) == expected
    with load("opus") as translator:
        assert translator.encode(TEXTS) == [translator.source.encode(text) for text in TEXTS]


def test_fine_tuning_reads_the_tag_of_its_target_language(imported: Run, folder: Path) -> None:
    write_tsv("own.tsv", small_pairs(60))
    for languages, tag in (("en-fr", "fra"), ("en-tr", None)):
        report = nmt("prepare", "own.tsv", "--tokenizer-of", "opus", "--languages", languages, "--name", languages,
                     cwd=folder).stdout  # fmt: skip
        assert ("tag <fra>" in report) == (tag == "fra")
        manifest = read_manifest(folder / "data" / languages / "manifest.json")
        assert [direction.tag for direction in manifest.directions] == [tag] * (tag is not None)


@pytest.mark.parametrize(
    ("tags", "by_code"),
    [
        (["2gn", "bt", "2pt-BR"], {"gn": "2gn", "pt-BR": "2pt-BR"}),
        (["fra", "zho_Hans", "cmn_Hans"], {"fr": "fra", "zh-Hans": "zho_Hans", "cmn_Hans": "cmn_Hans"}),
        (["xx", "nob"], {"xx": "xx", "nb": "nob"}),
        (["ara", "hin", "tur"], {"ar": "ara", "hi": "hin", "tr": "tur"}),
        ([], {}),
    ],
)  # fmt: skip
def test_tags_name_languages(tags: list[str], by_code: dict[str, str]) -> None:
    assert tags_by_code(tags) == by_code


def test_directions_find_the_tags_of_a_tokenizer() -> None:
    pairs = [("en", "zh"), ("en", "fr"), ("de", "fr"), ("en", "de")]
    assert tags_of_languages(pairs, ["fra", "zho_Hans"]) == {
        ("en", "zh"): "zho_Hans", ("en", "fr"): "fra", ("de", "fr"): "fra",
    }  # fmt: skip
    assert tags_of_languages(pairs, ["2fr", "bt"]) == {("en", "fr"): "2fr", ("de", "fr"): "2fr"}
    assert tags_of_languages([("en", "fr")], None) == {}


def test_compared_sentences_have_the_codes_in_turn(imported: Run) -> None:
    source = load_tokenizer(imported.tokenizer_path("source"))
    first, second = (f">>{tag}<<" for tag in source.tags)
    texts = sentences_to_compare(source, ["im one", "im two", f"{second} im three", "im four"])
    assert texts == [f"{first} im one", f"{second} im two", f"{second} im three", f"{first} im four"]
    counts = [sum(text.startswith(code) for text in sentences_to_compare(source, ())) for code in (">>deu", ">>fra")]
    assert min(counts) > 50
