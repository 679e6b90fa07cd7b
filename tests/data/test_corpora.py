"""Several corpora in a dataset: the origin of pairs, no leaks, and a single corpus as in earlier versions."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import small_pairs, write_tsv

import nmt
from nmt.cli.commands.prepare import describe
from nmt.config.data import CorpusConfig
from nmt.data.dataset import Dataset
from nmt.data.manifest import MANIFEST_FORMAT, SIDES, read_manifest
from nmt.errors import DataError, NmtError, NotFoundError
from nmt.evaluation.test_set import find_overlap
from nmt.tokenizers.base import tag_id

pytestmark = pytest.mark.usefixtures("folder")
WORDS = {"data.tokenizer": "word", "data.normalization": "nfkc"}
ORIGINAL = small_pairs(100)
FURTHER = [(f"{source} again", f"{target} wieder") for source, target in small_pairs(60)]
SYNTHETIC = [(f"{source} made", f"{target} gemacht") for source, target in small_pairs(40)]


def prepared(name: str = "all", **arguments: Any) -> Dataset:
    """Prepare the original corpus in the working directory."""
    return nmt.prepare(write_tsv("pairs.tsv", ORIGINAL), name=name, **{"set": WORDS, **arguments})


def texts(dataset: Dataset, split: Any) -> list[tuple[str, str]]:
    """Return the pairs of a split as text decoded from ids, with pieces of tags."""
    sides = zip((dataset.split(split).source, dataset.split(split).target), dataset.tokenizers(), strict=True)
    lines = [[" ".join(tokenizer.pieces(side[index])) for index in range(len(side))] for side, tokenizer in sides]
    return list(zip(*lines, strict=True))


def raw(dataset: Dataset, split: Any) -> list[tuple[str, str]]:
    """Return the raw pairs of validation or test."""
    source, target = (dataset.text(split, side).read_text().splitlines() for side in SIDES)
    return list(zip(source, target, strict=True))


@pytest.mark.parametrize("given", [False, True], ids=["share", "files"])
def test_further_corpora_follow_in_training_and_no_held_out_sentence_is_in_it(given: bool) -> None:
    """A synthetic source differs from the original one, so a target can be a leak too; targets may repeat otherwise."""
    files = {"validation": write_tsv("v.tsv", small_pairs(7)), "test": write_tsv("t.tsv", small_pairs(12)[7:])}
    alone = prepared("alone", **(files if given else {}))
    held_out = [pair for split in ("validation", "test") for pair in raw(alone, split)]
    sources = [(source, "neu") for source, _ in held_out]
    targets = [(f"new {number}", target) for number, (_, target) in enumerate(held_out)]
    web, bt = (write_tsv(f"{name}.tsv", [*own, *sources, *targets])
               for name, own in (("web", FURTHER), ("bt", SYNTHETIC)))  # fmt: skip
    dataset = prepared(corpora={"web": web, "bt": bt}, tags=["bt"], **(files if given else {}))
    train = texts(dataset, "train")
    middle, last = len(texts(alone, "train")), len(train) - len(SYNTHETIC)
    first, second, third = train[:middle], train[middle:last], train[last:]
    assert first == texts(alone, "train")
    assert sorted(second) == sorted([*FURTHER, *targets])
    assert sorted(third) == sorted((f"<bt> {source}", target) for source, target in SYNTHETIC)
    assert second != [*FURTHER, *targets], "shuffled"
    assert [raw(dataset, split) for split in ("validation", "test")] == [raw(alone, "validation"), raw(alone, "test")]
    manifest = read_manifest(dataset.folder / "manifest.json")
    assert manifest.pairs_by_corpus == {"original": len(first), "web": len(second), "bt": len(third)}
    assert [name for name, corpus in manifest.corpora.items() if corpus.tag] == ["bt"]
    assert f", bt {len(third)} ({len(third) / len(train):.0%}, tag <bt>)" in describe(manifest)
    dropped = sum(count for reason, count in manifest.dropped.items() if "corpus" in reason)
    assert dropped == 2 * len(sources) + len(targets)
    assert manifest.read - sum(manifest.dropped.values()) == sum(split.pairs for split in manifest.splits.values())
    assert all(split.sources_in_training == 0 for split in manifest.splits.values())


@pytest.mark.parametrize("reverse", [False, True])
def test_names_of_languages_tell_the_sides_of_further_corpora_too(reverse: bool) -> None:
    """In a folder, sides stand in the order of the main corpus. With "reverse" they are exchanged as they stand."""
    main = write_tsv("pairs.en-de.tsv", ORIGINAL)
    Path("web").mkdir()
    for side, code in enumerate(("en", "de")):
        Path(f"web/web.de-en.{code}").write_text("".join(f"{pair[side]}\n" for pair in FURTHER))
    Path("records.jsonl").write_text("".join(
        json.dumps({"de": target, "en": source}) + "\n" for source, target in SYNTHETIC
    ))  # fmt: skip
    settings = {"data.corpora": {
        "web": {"files": ["web"], "reverse": reverse}, "records": {"files": ["records.jsonl"], "reverse": reverse},
    }}  # fmt: skip
    dataset = nmt.prepare(main, name="all", set=WORDS | settings)
    train = texts(dataset, "train")
    assert set(FURTHER) | set(SYNTHETIC) <= set(train)


@pytest.mark.parametrize("given", [False, True], ids=["share", "files"])
def test_many_repeats_are_said_with_their_share_and_the_remedy(given: bool) -> None:
    pairs = [*small_pairs(80), *small_pairs(20)]
    for side, name in enumerate(("a.en", "a.de")):
        Path(name).write_text("".join(f"{pair[side]}\n" for pair in pairs))
    held_out = [(f"{source} once", f"{target} einmal") for source, target in small_pairs(20)]
    files = {"validation": write_tsv("v.tsv", held_out[:10]), "test": write_tsv("t.tsv", held_out[10:])}
    dataset = nmt.prepare(["a.en", "a.de"], set=WORDS, **(files if given else {}))
    assert "20 x duplicates, 20% of the pairs (to drop them: --set data.drop_duplicates=true)" in describe(
        dataset.manifest
    )


def test_one_corpus_is_prepared_to_the_same_bytes_as_before_there_were_several() -> None:
    dataset = prepared("pairs", set={"data.tokenizer": "word"})
    assert dataset.manifest.fingerprint == "429d56b9a52705670272f10d1b93b0db99381c60c110af2845ec44b47df0919e"
    values = json.loads((dataset.folder / "manifest.json").read_text())
    assert values["format"] == MANIFEST_FORMAT and not values["corpora"] and not values["settings"]["corpora"]
    assert dataset.manifest.pairs_by_corpus == {"original": dataset.manifest.splits["train"].pairs}


def test_options_and_configuration_meet_in_one_record() -> None:
    write_tsv("web.tsv", FURTHER)
    Path("data").mkdir()
    lines = [json.dumps({"source": source, "target": target, "score": 1}) for source, target in SYNTHETIC]
    Path("data/bt.jsonl").write_text("\n".join(lines))
    keys = {"web": {"files": ["web.tsv"], "reverse": True}, "bt": {"files": ["bt.jsonl"], "tag": True}}
    first = prepared("first", set=WORDS | {"data.corpora": keys})  # type: ignore[operator]
    second = prepared("second", corpora={"bt": "bt.jsonl", "web": []}, tags=["bt"],
                      set=WORDS | {"data.corpora": {"web": keys["web"]}})  # fmt: skip
    for dataset in (first, second):
        assert dataset.manifest.settings.corpora == {name: CorpusConfig(**corpus) for name, corpus in keys.items()}
        assert {*texts(dataset, "train")} >= {(target, source) for source, target in FURTHER}
    assert {*texts(first, "train")} == {*texts(second, "train")}
    assert not prepared("first", set=WORDS | {"data.corpora": keys}).is_new  # type: ignore[operator]
    with pytest.raises(NmtError, match=r"corpora .*'reverse': True.* before"):
        prepared("first", corpora={"web": "web.tsv", "bt": "bt.jsonl"}, tags=["bt"])


@pytest.mark.parametrize("settings", [
    {"tokenizer": "word", "joint_vocabulary": True}, {"tokenizer": "char", "joint_vocabulary": False},
    {"tokenizer": "subword", "vocabulary_size": 320, "subword_sampling": True},
], ids=lambda settings: settings["tokenizer"])  # fmt: skip
def test_a_tag_begins_the_sources_of_its_corpus_alone_and_no_text_is_a_tag(settings: dict[str, Any]) -> None:
    keys = {f"data.{key}": value for key, value in settings.items()}
    spelled = [(f"<bt> <bt> {source}", f"<bt> {target}") for source, target in FURTHER]
    dataset = prepared(corpora={"bt": write_tsv("bt.tsv", SYNTHETIC), "web": write_tsv("web.tsv", spelled)},
                       tags=["bt"], set=keys)  # fmt: skip
    source, target = dataset.tokenizers()
    tag, size = tag_id(source, "bt"), source.size
    assert tag == size - 1 and dataset.manifest.vocabulary["source"] == size
    assert source.pieces([tag]) == ["<bt>"] and source.decode([tag, *source.encode("im one"), tag]) == "im one"
    assert (target.size == size) == (dataset.manifest.settings.joint_vocabulary is True)
    splits = [dataset.split("train"), *([dataset.resample_subwords(1, 1)] if "subword_sampling" in settings else [])]
    for split in splits:
        places = np.flatnonzero(split.source.tokens == tag)
        bt = dataset.manifest.pairs_by_corpus["original"] + np.arange(len(SYNTHETIC))
        assert places.tolist() == split.source.offsets[bt].tolist()
        assert (split.target.tokens < len(target.pieces(range(target.size))) - len(target.tags)).all()


def test_a_dataset_without_a_tag_has_a_tokenizer_file_of_the_earlier_format() -> None:
    bt = write_tsv("bt.tsv", SYNTHETIC)
    formats = {}
    for normalization in ("nfkc", "nfc"):
        keys = {"data.normalization": normalization}
        with_tag = prepared(f"{normalization}-tag", corpora={"bt": bt}, tags=["bt"], set=keys)
        without = prepared(normalization, corpora={"bt": bt}, set=keys)
        files = [file for dataset in (with_tag, without) for file in dataset.tokenizer_files]
        formats[normalization] = [json.loads(file.read_text())["format"] for file in files]
    assert formats == {"nfkc": [3, 2, 2, 2], "nfc": [4, 4, 4, 4]}


def test_a_vocabulary_is_fitted_on_all_corpora(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.data.prepare.FIT_CHARACTERS", 2000)
    web = write_tsv("web.tsv", [(f"zzz {source}", target) for source, target in small_pairs(300)])
    dataset = prepared(corpora={"web": web}, set={"data.tokenizer": "subword", "data.vocabulary_size": 320})
    source, _ = dataset.tokenizers()
    assert any("zz" in piece for piece in source.pieces(range(source.size)))
    assert dataset.manifest.format == MANIFEST_FORMAT


def test_random_splits_ignore_sources_of_further_corpora_and_an_overlap_is_found_behind_a_tag() -> None:
    arguments: Any = {"corpora": {"web": write_tsv("web.tsv", ORIGINAL)}, "set": WORDS | {"data.split": "random"}}
    for tags in ([], ["web"]):
        dataset = prepared(f"tags-{len(tags)}", tags=tags, **arguments)
        assert dataset.manifest.pairs_by_corpus["web"] == len(ORIGINAL)
        assert find_overlap(["", *(source for source, _ in raw(dataset, "test"))], dataset).tolist() == [
            False,
            *[True] * 10,
        ]


def test_what_cannot_be_a_further_corpus_is_refused_and_nothing_is_written(folder: Path) -> None:
    for error, message, arguments in (
        (NmtError, "'train' cannot be the name", {"corpora": {"train": "pairs.tsv"}}),
        (NmtError, r"There is no further corpus for tag 'bt'", {"tags": ["bt"]}),
        (NotFoundError, r"neither data/bt\.jsonl\.gz nor data/bt\.tsv\.gz", {"corpora": {"bt": []}}),
        (NotFoundError, "There is no file 'a'", {"corpora": {"bt": ["a", "b", "c"]}}),
        (DataError, "Corpus 'bt' has no usable pair", {"corpora": {"bt": write_tsv("empty.tsv", [])}}),
    ):
        with pytest.raises(error, match=message):
            prepared(**arguments)
    assert not list(folder.glob("data/*/manifest.json"))


def test_a_manifest_whose_corpora_are_not_the_training_split_is_damaged() -> None:
    file = prepared(corpora={"bt": write_tsv("bt.tsv", SYNTHETIC)}).folder / "manifest.json"
    values = json.loads(file.read_text())
    values["corpora"]["bt"]["pairs"] += 1
    file.write_text(json.dumps(values))
    with pytest.raises(DataError, match="is damaged"):
        read_manifest(file)
