"""Language codes: detection from file names, columns and TMX files, and their place in manifests."""

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import nmt, small_pairs, write_tsv
from hypothesis import given
from hypothesis import strategies as st

import nmt as package
from nmt.config.data import DataConfig
from nmt.config.loading import load_config
from nmt.config.schema import Config
from nmt.data.dataset import Dataset
from nmt.data.languages import language_pair, languages_differ, resolve_languages
from nmt.data.manifest import read_manifest
from nmt.data.sources.language_codes import NAMES, language_code
from nmt.data.sources.text_file import TextFile
from nmt.errors import ConfigError, ConflictError, NmtError
from nmt.runs.directory import create_run

ISO_CODES = Path("/usr/share/iso-codes/json/iso_639-3.json")
ISO_639_1 = {code for code in NAMES if len(code) == 2}
CODES = st.sampled_from(sorted(ISO_639_1))


def detect_languages(*names: str, **settings: Any) -> tuple[str | None, str | None]:
    """Return the codes detected from file names; "a.zip/b" is a member. The files need not exist."""
    files = [
        TextFile(Path(f"{archive}.zip"), member) if archive else TextFile(Path(f"some/folder/{member}"))
        for archive, member in (name.split(".zip/") if ".zip/" in name else ("", name) for name in names)
    ]
    config = resolve_languages(files, DataConfig.model_validate(settings))
    return config.source_language, config.target_language


# --- codes


@pytest.mark.skipif(not ISO_CODES.exists(), reason="Debian's package iso-codes is not installed")
def test_codes_are_those_of_the_standard() -> None:
    standard = {entry["alpha_2"]: entry["alpha_3"] for entry in json.loads(ISO_CODES.read_text())["639-3"]
                if "alpha_2" in entry}  # fmt: skip
    assert standard.keys() == ISO_639_1
    assert all(language_code(long) == short for short, long in standard.items())


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("en", "en"), ("EN", "en"), ("deu", "de"), ("German", "de"), ("pt_br", "pt-BR"), ("zh-hant-tw", "zh-Hant-TW"),
        ("es-419", "es-419"), ("hsb", "hsb"), ("src", None), ("old", None), ("raw", None), ("", None), ("en-", None),
        ("xx", None), ("en-de-fr", None), ("tsv", None), ("gz", None),
    ],
)  # fmt: skip
def test_a_code_has_the_form_of_bcp_47(text: str, code: str | None) -> None:
    assert language_code(text) == code


@given(CODES, CODES, st.sampled_from(["", "-BR", "-Hans"]))
def test_what_is_typed_is_two_codes(source: str, target: str, variety: str) -> None:
    assert language_pair(f"{source}-{target}") == language_pair(f" {source.upper()}, {target}") == (source, target)
    assert language_pair(f"{source},{target}{variety}") == (source, f"{target}{variety}")


@pytest.mark.parametrize("text", ["", "en", "en-", "english-german", "en-pt-BR", "en,de,fr", "e-d", "en_de", "en-ü"])
def test_what_is_typed_is_refused_otherwise(text: str) -> None:
    with pytest.raises(NmtError):
        language_pair(text)


# --- names of files


@given(CODES, CODES, st.sampled_from(["train.{}", "train.{}.gz", "{}.txt", "train-{}.txt", "a.tok.{}.bpe", "A_{}.txt"]))
def test_two_files_are_told_apart_by_their_codes(source: str, target: str, template: str) -> None:
    expected = (source, target) if source != target else (None, None)
    assert detect_languages(template.format(source), template.format(target)) == expected


@pytest.mark.parametrize(
    ("first", "second", "codes"),
    [
        ("letters.en", "briefe.de", ("en", "de")), ("corpus.en-de.en.txt", "corpus.en-de.de.txt", ("en", "de")),
        ("train.eng", "train.deu", ("en", "de")), ("english.txt", "german.txt", ("en", "de")),
        ("train.en", "train.pt-BR", ("en", "pt-BR")), ("train.en-us.gz", "train.zh_CN.gz", ("en-US", "zh-CN")),
        ("de-en.txt.zip/Tatoeba.de-en.de", "de-en.txt.zip/Tatoeba.de-en.en", ("de", "en")),
        ("train.en.zip/part/train.txt", "train.de.zip/part/train.txt", ("en", "de")),
        ("train-en.no-tags.txt", "train-pt-br.no-tags.txt", ("en", "pt-BR")), ("train.en", "train.de.gz", ("en", "de")),
        *((first, second, (None, None)) for first, second in (
            ("train.old", "train.new"), ("my.raw", "my.txt"), ("train.src", "train.tgt"), ("train.en", "train.txt"),
            ("corpus.en-de.src", "corpus.en-de.tgt"), ("train.en", "valid.en"),
        )),
    ],
)  # fmt: skip
def test_names_of_two_files(first: str, second: str, codes: tuple[str | None, str | None]) -> None:
    assert detect_languages(first, second) == codes
    assert detect_languages(second, first) == codes[::-1]


@pytest.mark.parametrize(
    ("name", "codes"),
    [
        ("en-de.tsv", ("en", "de")), ("de_en.txt.gz", ("de", "en")), ("DE-EN.tsv", ("de", "en")),
        ("europarl-v10.de-en.tsv.gz", ("de", "en")), ("archive.zip/europarl.de-en.tsv.gz", ("de", "en")),
        ("wmt14-en-de.tsv", ("en", "de")), ("en-de-train.jsonl", ("en", "de")), ("demo.en-de.tsv", ("en", "de")),
        ("wmt-en-de-v2.tsv", ("en", "de")), ("en-pt-br.tsv", (None, None)),
        ("english-german-both.pkl", ("en", "de")), ("English_French.tsv", ("en", "fr")),
        ("hebrew-italian.tsv", ("he", "it")),
        *((name, (None, None)) for name in (
            "deu-eng.zip/deu.txt", "deu-eng.tsv", "en-de.zip/pairs.txt", "pt-BR.tsv", "pt-br.tsv", "en-de-fr.tsv",
            "my-data.tsv", "is-it-so.tsv", "how-to-be.tsv", "en-en.tsv", "pairs.en.tsv", "english.tsv", "pairs.tsv",
            "en-the-de.tsv",
        )),
    ],
)  # fmt: skip
def test_names_of_one_file(name: str, codes: tuple[str | None, str | None]) -> None:
    assert detect_languages(name) == codes


@given(CODES, CODES)
def test_columns_in_the_other_order_turn_the_codes_of_a_name(source: str, target: str) -> None:
    name = f"{source}-{target}.tsv"
    assert detect_languages(name, source_column=2, target_column=1) == detect_languages(name)[::-1]
    assert detect_languages(name, source_column=3, target_column=5) == detect_languages(name)


@pytest.mark.parametrize(("columns", "codes"), [
    (("deu", "pt-br"), ("de", "pt-BR")), (("english", "german"), ("en", "de")), (("en", "text"), ("en", None)),
    (("from", "into"), (None, None)),
])  # fmt: skip
@pytest.mark.parametrize("suffix", ["tsv", "jsonl"])
def test_names_of_columns_come_before_those_of_files(columns: tuple[str, str], codes: object, suffix: str) -> None:
    assert detect_languages(f"fr-it.{suffix}", source_column=columns[0], target_column=columns[1]) == codes


@pytest.mark.parametrize(("source", "target", "codes"), [
    ("en", "auto", ("en", "de")), ("de", "auto", ("de", None)), ("auto", "deu", ("en", "deu")),
    ("fr", "auto", ("fr", None)), (None, "auto", (None, "de")), ("fr", "it", ("fr", "it")), (None, None, (None, None)),
])  # fmt: skip
def test_a_configured_code_stands_and_names_tell_the_other(source: str, target: str, codes: object) -> None:
    assert detect_languages("en-de.tsv", source_language=source, target_language=target) == codes


@pytest.mark.parametrize(("languages", "codes"), [
    (("EN-us", "deu"), ("en-US", "de")), (("nap", "x-any"), ("nap", None)), ((), (None, None)),
])  # fmt: skip
def test_languages_of_a_tmx(tmp_path: Path, languages: tuple[str, ...], codes: tuple[str | None, str | None]) -> None:
    path = tmp_path / "fr-it.tmx"
    segments = [f'<tuv xml:lang="{language}"><seg>{language}</seg></tuv>' for language in languages]
    path.write_text(f"<tmx><body>{f'<tu>{chr(10).join(segments)}</tu>' if languages else ''}</body></tmx>")
    turned = DataConfig(source_column=languages[1], target_column=languages[0]) if languages else DataConfig()
    for config, expected in ((DataConfig(), codes), (turned, codes[::-1])):
        read = resolve_languages([TextFile(path)], config)
        assert (read.source_language, read.target_language) == expected


@given(*(st.sampled_from(["en", "en-US", "eng", "de", "source"]) for _ in range(2)))
def test_only_known_languages_differ(first: str, second: str) -> None:
    same = {"en": 0, "en-US": 0, "eng": 0, "de": 1}
    expected = first in same and second in same and same[first] != same[second]
    assert languages_differ({"source": first, "target": "de"}, {"source": second, "target": "de"}) == expected


# --- datasets


@pytest.fixture
def pairs(folder: Path) -> None:
    for name in ("pairs.tsv", "en-de.tsv"):
        write_tsv(name, small_pairs(40))


def languages(dataset: Dataset) -> tuple[str, str]:
    stored = read_manifest(dataset.folder / "manifest.json")
    assert stored == dataset.manifest
    return stored.languages["source"], stored.languages["target"]


def test_the_manifest_has_the_codes_and_the_same_command_prepares_nothing(pairs: None) -> None:
    assert languages(package.prepare("pairs.tsv")) == ("source", "target")
    assert languages(package.prepare("en-de.tsv")) == ("en", "de")
    given = package.prepare("pairs.tsv", name="given", languages="en-pt")
    assert languages(given) == ("en", "pt")
    for options in ({}, {"languages": ("en", "pt")}, {"set": {"data.target_language": "pt"}}):
        again = package.prepare("pairs.tsv", name="given", **options)  # type: ignore[arg-type]
        assert not again.is_new
        assert languages(again) == ("en", "pt")
    for code in ("fr", None):  # the option and a key that contradict, and other codes than before
        with pytest.raises(ConflictError):
            package.prepare("pairs.tsv", name="new", languages="en-de", set={"data.target_language": code})
    with pytest.raises(ConflictError):
        package.prepare("pairs.tsv", name="given", languages="en-fr")
    overwritten = package.prepare("pairs.tsv", name="given", languages="en-fr", overwrite=True)
    assert languages(overwritten) == ("en", "fr") and overwritten.manifest.fingerprint == given.manifest.fingerprint


def test_norwegian_is_not_false_in_yaml(pairs: None) -> None:
    """An unquoted "no" is false in YAML 1.1."""
    dataset = package.prepare("pairs.tsv", languages="no-en")
    assert languages(dataset) == ("no", "en")
    Path("written.yaml").write_text(Config(data=dataset.manifest.settings).to_yaml())
    assert load_config(Path("written.yaml")).data == dataset.manifest.settings
    with pytest.raises(ConfigError, match="is False, but must be a valid string, in quotes where it looks like"):
        package.prepare("pairs.tsv", set=["data.source_language=no"])
    assert not package.prepare("pairs.tsv", set=["data.source_language='no'"]).is_new


def test_codes_are_shown_and_kept_by_a_run_and_its_successors(pairs: None, folder: Path) -> None:
    dataset = package.prepare("en-de.tsv")
    run = create_run("base", Config(), [dataset.folder / "manifest.json", *dataset.tokenizer_files])
    assert read_manifest(run.dataset_path).languages == {"source": "en", "target": "de"}
    options = ["prepare", "pairs.tsv", "--tokenizer-of", "base"]
    mine = nmt(*options, cwd=folder).stdout
    for shown in (nmt("info", "--run", "base", cwd=folder).stdout, mine):
        assert "; languages en to de\n" in shown
    assert "Note:" not in mine
    turned = nmt(*options, "--languages", "de-en", "--name", "turned", cwd=folder).stdout
    assert "Note: this dataset is de to en, but run base translates en to de." in turned
