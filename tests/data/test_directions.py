"""Datasets of several language pairs: their splits, tags and order, and no sentence of a test split in training."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import write_tsv
from hypothesis import given
from hypothesis import strategies as st

import nmt
from nmt.config.data import DataConfig
from nmt.config.training import TrainingConfig
from nmt.data.batch_plan import pairs_seen
from nmt.data.dataset import Dataset
from nmt.data.manifest import SIDES, SplitName
from nmt.errors import ConfigError, DataError, NmtError
from nmt.tokenizers.base import tag_id
from nmt.training.augmentation import augment_split

pytestmark = pytest.mark.usefixtures("folder")
WORDS = {"data.tokenizer": "word", "data.normalization": "none", "data.joint_vocabulary": True}
BOTH = WORDS | {"data.both_directions": True}
Pairs = list[tuple[str, str]]


def pairs_of(language: str, count: int = 30, first: int = 0) -> Pairs:
    """Return Spanish sentences with translations, which name their language."""
    return [(f"es {n} frase", f"{language} {n} {language}") for n in range(first, first + count)]


def prepared(
    corpora: dict[str, Pairs], name: str = "all", settings: dict[str, Any] = BOTH, **arguments: Any
) -> Dataset:
    """Prepare corpora without a main corpus."""
    files = {corpus: write_tsv(f"{corpus}.tsv", pairs) for corpus, pairs in corpora.items()}
    return nmt.prepare(name=name, corpora=files, set=settings, overwrite=True, **arguments)


def raw(dataset: Dataset, split: SplitName) -> Pairs:
    """Return the raw pairs of validation or test."""
    source, target = (dataset.text(split, side).read_text().splitlines() for side in SIDES)
    return list(zip(source, target, strict=True))


def training(dataset: Dataset) -> Pairs:
    """Return the training pairs as text. Their tags are left out."""
    split, (source, target) = dataset.split("train"), dataset.tokenizers()
    sides = [
        [tokenizer.decode(row) for row in side] for side, tokenizer in ((split.source, source), (split.target, target))
    ]
    return list(zip(*sides, strict=True))


def test_each_direction_has_its_splits_in_order_and_its_tag_before_each_source() -> None:
    dataset = prepared({"es-gn": pairs_of("gn"), "es-shp": pairs_of("shp", 40)})
    manifest, tokenizer = dataset.manifest, dataset.tokenizers()[0]
    names = ["es-gn", "es-shp", "gn-es", "shp-es"]
    assert [direction.name for direction in manifest.directions] == names == list(manifest.corpora)
    assert [direction.tag for direction in manifest.directions] == ["2gn", "2shp", "2es", "2es"]
    assert manifest.languages == {"source": "mul", "target": "mul"}
    for split in ("validation", "test"):
        texts = raw(dataset, split)  # type: ignore[arg-type]
        of_direction = {direction.name: texts[rows.start : rows.stop] for direction, rows in manifest.rows(split)}
        for name in names:
            source, target = name.split("-")
            assert of_direction[name]
            assert all(pair[0].startswith(source) and pair[1].startswith(target) for pair in of_direction[name])
        for forward, backward in (("es-gn", "gn-es"), ("es-shp", "shp-es")):
            assert [(b, a) for a, b in of_direction[forward]] == of_direction[backward]
        ids = dataset.split(split)  # type: ignore[arg-type]
        for direction, rows in manifest.rows(split):
            tags = {int(ids.source[row][0]) for row in rows}
            assert tags == {tag_id(tokenizer, direction.tag or "")}
    train = training(dataset)
    for (rows, (source, target)), name in zip(manifest.training_parts, names, strict=True):
        assert f"{source}-{target}" == name
        assert all(pair[0].startswith(source) and pair[1].startswith(target) for pair in train[rows.start : rows.stop])


@st.composite
def corpora(draw: st.DrawFn) -> dict[str, Pairs]:
    """Draw corpora whose Spanish sentences overlap, and whose translations are sometimes the same sentence."""
    names = draw(
        st.lists(st.sampled_from(["es-gn", "es-shp", "gn-es", "es-gn_news"]), min_size=2, max_size=4, unique=True)
    )
    drawn = {}
    for name in names:
        source, target = name.partition("_")[0].split("-")
        numbers = draw(st.lists(st.tuples(st.integers(0, 25), st.integers(0, 25)), min_size=15, max_size=40))
        drawn[name] = [(f"{source} {a}", f"{target} {b}") for a, b in numbers]
    return drawn


@given(corpora(), st.booleans())
def test_no_held_out_sentence_is_in_training_on_either_side(drawn: dict[str, Pairs], both: bool) -> None:
    if both:
        drawn = {name: pairs for name, pairs in drawn.items() if name != "gn-es"}
    try:
        dataset = prepared(drawn, settings=WORDS | {"data.both_directions": both})
    except DataError:  # too few sentences for three splits
        return
    held_out = {source for split in ("validation", "test") for source, _ in raw(dataset, split)}  # type: ignore[arg-type]
    seen = {text for pair in training(dataset) for text in pair}
    if len(dataset.manifest.directions) > 1:
        assert not seen & held_out
    assert sum(corpus.pairs for corpus in dataset.manifest.corpora.values()) in (0, len(training(dataset)))


def test_a_corpus_has_validation_and_test_files_of_its_own() -> None:
    files = {
        split: {"es-gn": write_tsv(f"{split}.tsv", pairs_of("gn", 5, first))}
        for split, first in (("validation", 100), ("test", 200))
    }
    dataset = prepared({"es-gn": pairs_of("gn"), "es-shp": pairs_of("shp", 30, 300)}, **files)
    for split, first in (("validation", 100), ("test", 200)):
        rows = {direction.name: rows for direction, rows in dataset.manifest.rows(split)}  # type: ignore[arg-type]
        chosen = raw(dataset, split)[rows["es-gn"].start : rows["es-gn"].stop]  # type: ignore[arg-type]
        assert sorted(chosen) == sorted(pairs_of("gn", 5, first))
        assert len(rows["es-shp"]) == 3
    assert dataset.manifest.corpora["es-gn"].pairs == 30
    with pytest.raises(NmtError, match=r"has files for corpus 'es-g', which does not exist .did you mean 'es-gn'"):
        prepared({"es-gn": pairs_of("gn")}, test={"es-g": ["test.tsv"]})


def test_a_second_corpus_of_a_pair_is_for_training_only() -> None:
    dataset = prepared({"es-gn": pairs_of("gn"), "es-gn_news": pairs_of("gn", 20, 500), "es-shp": pairs_of("shp")})
    held_out = raw(dataset, "validation") + raw(dataset, "test")
    assert not {*pairs_of("gn", 20, 500)} & {*held_out}
    assert dataset.manifest.corpora["es-gn_news"].pairs == 20
    assert [direction.name for direction in dataset.manifest.directions] == ["es-gn", "es-shp", "gn-es", "shp-es"]


def test_synthetic_sources_are_not_learned_as_targets() -> None:
    """A corpus with a tag has only the direction of its files, also with validation pairs of its own."""
    corpora = {"es-gn": pairs_of("gn"), "es-gn_bt": pairs_of("gn", 20, 500)}
    files = {"es-gn_bt": [write_tsv("v.tsv", pairs_of("gn", 5, 900))]}
    dataset = prepared(corpora, tags=["es-gn_bt"], validation=files)
    assert list(dataset.manifest.corpora) == ["es-gn", "es-gn_bt", "gn-es"]
    assert {(b, a) for a, b in corpora["es-gn_bt"]}.isdisjoint(training(dataset))
    rows = {direction.name: len(rows) for direction, rows in dataset.manifest.rows("validation")}
    assert rows == {"es-gn": 5, "gn-es": 0}, "the pair has validation files, and no share of a corpus besides"
    tokenizer, source = dataset.tokenizers()[0], dataset.split("train").source
    synthetic = dataset.manifest.training_parts[1][0]
    tags = [tag_id(tokenizer, "es-gn_bt"), tag_id(tokenizer, "2gn")]
    assert all(source[row][:2].tolist() == tags for row in synthetic)


def test_one_target_language_needs_no_tags() -> None:
    dataset = prepared(
        {"gn-es": [(b, a) for a, b in pairs_of("gn")], "shp-es": [(b, a) for a, b in pairs_of("shp")]}, settings=WORDS
    )
    assert [direction.tag for direction in dataset.manifest.directions] == [None, None]
    assert not dataset.tokenizers()[0].tags
    assert dataset.manifest.languages == {"source": "mul", "target": "es"}


def test_both_directions_of_the_main_corpus() -> None:
    dataset = nmt.prepare(write_tsv("pairs.tsv", pairs_of("gn")), languages="es-gn", set=BOTH, name="both")
    assert [direction.name for direction in dataset.manifest.directions] == ["es-gn", "gn-es"]
    assert list(dataset.manifest.corpora) == ["original", "original-reversed"]
    alone = nmt.prepare("pairs.tsv", languages="es-gn", set=WORDS, name="alone")
    middle = alone.manifest.splits["train"].pairs
    assert training(dataset)[:middle] == training(alone)
    assert training(dataset)[middle:] == [(target, source) for source, target in training(alone)]
    assert not nmt.prepare("pairs.tsv", languages="es-gn", set=BOTH, name="both").is_new


def test_a_corpus_of_the_dataset_s_own_languages_changes_nothing() -> None:
    """A name that is the language pair of the dataset makes no dataset of several pairs."""
    write_tsv("main.tsv", pairs_of("gn"))
    write_tsv("more.tsv", pairs_of("gn", 20, 100))
    first, second = (
        nmt.prepare("main.tsv", languages="es-gn", corpora={name: "more.tsv"}, set=WORDS, name=f"d{number}")
        for number, name in enumerate(["es-gn_more", "more"])
    )
    assert not first.manifest.directions
    assert first.manifest.files == second.manifest.files


def test_a_reversed_corpus_is_of_the_opposite_pair() -> None:
    write_tsv("x.tsv", [(b, a) for a, b in pairs_of("gn")])
    keys = {"gn-es": {"files": ["x.tsv"], "reverse": True}}
    dataset = prepared({"es-shp": pairs_of("shp")}, settings=WORDS | {"data.corpora": keys})
    assert {direction.name for direction in dataset.manifest.directions} == {"es-gn", "es-shp"}


def test_refusals() -> None:
    with pytest.raises(DataError, match=r"languages of corpus 'news' are unknown.*corpora="):
        prepared({"es-gn": pairs_of("gn"), "news": pairs_of("shp")})
    with pytest.raises(ConfigError, match=r"trains corpus 'es-gn' in the opposite direction too, as 'gn-es'"):
        prepared({"es-gn": pairs_of("gn"), "gn-es": pairs_of("gn")})
    with pytest.raises(ConfigError, match=r"n_sentences.* only further corpora"):
        prepared({"es-gn": pairs_of("gn")}, settings=BOTH | {"data.n_sentences": 5})
    with pytest.raises(NmtError, match="No files were given"):
        nmt.prepare()
    with pytest.raises(ConfigError, match="'es' is not a pair of language codes"):
        nmt.prepare(write_tsv("p.tsv", pairs_of("gn")), set={"data.corpora": {"a": {"languages": "es"}}})
    assert not list(Path("data").glob("*"))


def test_the_languages_of_a_corpus_are_in_its_name_or_its_configuration() -> None:
    config = DataConfig.model_validate({
        "source_language": "en", "target_language": "de",
        "corpora": {"bt": {"languages": "spa-quy"}, "web": {}, "es-gn": {}, "es-gn_news": {}, "raw-all": {}},
    })  # fmt: skip
    found = {name: config.languages_of(name) for name in config.corpora}
    assert found == {
        "bt": ("es", "quy"), "web": ("en", "de"), "es-gn": ("es", "gn"), "es-gn_news": ("es", "gn"),
        "raw-all": ("en", "de"),
    }  # fmt: skip


def test_a_direction_is_chosen_by_its_languages() -> None:
    manifest = prepared({"es-gn": pairs_of("gn"), "es-shp": pairs_of("shp")}).manifest
    assert manifest.direction(None, "gn").name == "es-gn"
    assert manifest.direction(None, "grn").tag == "2gn"
    assert manifest.direction(None, "es").languages == ("mul", "es")
    assert manifest.direction("gn", "shp").languages == ("gn", "shp"), "a pair that was never seen together"
    assert manifest.direction("gn", "shp").tag == "2shp"
    with pytest.raises(NmtError, match="translates into several languages: gn, shp, es"):
        manifest.direction(None, None)
    with pytest.raises(NmtError, match=r"does not know this language.*gn, shp, es"):
        manifest.direction(None, "qu")


@given(st.dictionaries(st.text("abc", min_size=1, max_size=3), st.integers(1, 10_000), min_size=1, max_size=6),
       st.floats(1, 100))  # fmt: skip
def test_temperature_keeps_the_size_of_an_epoch_and_evens_out_shares(pairs: dict[str, int], temperature: float) -> None:
    weights = TrainingConfig(corpus_temperature=temperature).weights(pairs, 1)
    drawn = {name: weights[name] * count for name, count in pairs.items()}
    total = sum(pairs.values())
    assert sum(drawn.values()) == pytest.approx(total)
    shares = {name: (count / total) ** (1 / temperature) for name, count in pairs.items()}
    for name, count in drawn.items():
        assert count / total == pytest.approx(shares[name] / sum(shares.values()))
    seen = sum(pairs_seen(count, weights[name]) for name, count in pairs.items())
    assert abs(seen - total) <= len(pairs)


def test_pairs_are_joined_within_their_direction() -> None:
    dataset = prepared({"es-gn": pairs_of("gn", 60), "es-shp": pairs_of("shp", 60)})
    tokenizers = dataset.tokenizers()
    parts = dataset.manifest.training_parts
    joined = augment_split(dataset.split("train"), tokenizers, {"join": 1.0}, 1, 1, parts)
    changed = 0
    for rows, languages in parts:
        for row in rows:
            for side, tokenizer, language in zip((joined.source, joined.target), tokenizers, languages, strict=True):
                words = tokenizer.decode(side[row]).split()
                assert {word for word in words if word in {"es", "gn", "shp"}} == {language}
            changed += len(joined.source[row]) > 4
            assert int(joined.source[row][0]) >= tokenizers[0].size - len(tokenizers[0].tags)
    assert changed > 0 or max(np.diff(dataset.split("train").source.offsets)) == 4
