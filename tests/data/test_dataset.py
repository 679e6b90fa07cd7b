"""A prepared dataset has the pairs of its corpus as ids, records its origin, and is complete or absent."""

import errno
import json
import os
import pickle
import random
import re
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import write_tsv

from nmt.config.data import DataConfig
from nmt.data import prepare as prepare_module
from nmt.data.cleaning import Sources
from nmt.data.dataset import Dataset, find_dataset, open_dataset
from nmt.data.manifest import MANIFEST_FORMAT, SIDES, SPLITS, read_manifest
from nmt.data.prepare import prepare
from nmt.data.sources.formats import Pair
from nmt.data.sources.text_file import TextFile
from nmt.errors import ConflictError, DataError, NmtError, NotFoundError
from nmt.storage.atomic import sha256
from nmt.tokenizers.subword import sampler_of

pytestmark = pytest.mark.usefixtures("folder")
WORDS = [a + b for a in "abcdefghijklmnopqrst" for b in "aeiou"]
RARE = [a + word for a in "xyz" for word in WORDS]


def make_pairs(count: int = 150, seed: int = 0) -> list[Pair]:
    """Return pairs of lower-case words with punctuation, with some repeated sources and some unique words."""
    draw = random.Random(seed)

    def sentence() -> str:
        chosen = draw.choices(WORDS + RARE, weights=[20] * len(WORDS) + [1] * len(RARE), k=draw.randint(1, 7))
        return " ".join(chosen).capitalize() + "."

    pairs = [Pair(sentence(), sentence()) for _ in range(count)]
    return pairs + [Pair(pair.source.upper(), sentence()) for pair in pairs[: count // 4]]


def words_config(**changes: Any) -> DataConfig:
    """Return settings that split the texts above into words."""
    return DataConfig.model_validate(
        {"tokenizer": "word", "normalization": "ascii-words", "joint_vocabulary": False, **changes}
    )


def words(text: str) -> list[str]:
    """Return the normalized form of the texts above, computed by an independent implementation."""
    return re.sub("[^a-z ]", "", text.lower()).split()


@dataclass
class Prepared:
    """A dataset, and the raw pairs of each of its splits."""

    dataset: Dataset
    raw: dict[str, list[Pair]]


def prepare_pairs(pairs: list[Pair], **changes: Any) -> Prepared:
    """Prepare pairs, and read the split of each pair from the text files."""
    dataset = prepare(write_tsv("corpus.tsv", pairs), words_config(**changes), "small")
    raw = {}
    for name in ("validation", "test"):
        sides = [(dataset.folder / f"{name}.{side}.txt").read_text(encoding="utf-8").split("\n") for side in SIDES]
        assert [side.pop() for side in sides] == ["", ""]
        raw[name] = [Pair(*pair) for pair in zip(*sides, strict=True)]
    raw["train"] = list((Counter(pairs) - Counter(raw["validation"]) - Counter(raw["test"])).elements())
    return Prepared(dataset, raw)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with corpus.tsv and the dataset "small" prepared from it."""
    folder = tmp_path_factory.mktemp("original")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        prepare(write_tsv("corpus.tsv", make_pairs(20)), words_config(), "small")
    return folder


@pytest.fixture
def small(original: Path, folder: Path) -> Dataset:
    """The dataset "small", copied into the current folder with its corpus."""
    shutil.copytree(original, folder, dirs_exist_ok=True)
    return open_dataset("small")


def content(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Return the content and modification time of every file below a folder."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    return {str(file.relative_to(folder)): (file.read_bytes(), file.stat().st_mtime_ns) for file in files}


def decoded(dataset: Dataset, name: Any) -> list[tuple[str, str]]:
    """Return the pairs of a split as text."""
    split, (source, target) = dataset.split(name), dataset.tokenizers()
    return [(source.decode(split.source[i]), target.decode(split.target[i])) for i in range(len(split))]


# --- what is written


@pytest.mark.parametrize("split", ["by_source", "random"])
@pytest.mark.parametrize("joint", [False, True])
def test_every_pair_is_in_one_split_and_its_ids_decode_to_its_normal_form(split: str, joint: bool) -> None:
    pairs = make_pairs()
    prepared = prepare_pairs(pairs, split=split, joint_vocabulary=joint)
    assert sum(len(raw) for raw in prepared.raw.values()) == len(pairs)
    assert isinstance(prepared.dataset.split("train").source.tokens, np.memmap)
    known = [{word for pair in prepared.raw["train"] for word in words(pair[side])} for side in (0, 1)]
    if joint:
        known = [known[0] | known[1]] * 2

    def in_normal_form(pair: Pair) -> tuple[str, ...]:
        sides = zip(pair, known, strict=True)
        return tuple(" ".join(word if word in side else "<unk>" for word in words(text)) for text, side in sides)

    for name in ("validation", "test"):
        assert decoded(prepared.dataset, name) == [in_normal_form(pair) for pair in prepared.raw[name]]
    assert Counter(decoded(prepared.dataset, "train")) == Counter(map(in_normal_form, prepared.raw["train"]))
    sources = {name: {" ".join(words(pair.source)) for pair in prepared.raw[name]} for name in SPLITS}
    assert bool(sources["train"] & (sources["validation"] | sources["test"])) == (split == "random")


def test_raw_sentences_keep_everything_but_their_line_breaks() -> None:
    strange = ["A\u2028b", "C \x85 d", "  E  f ", "größer\x0c g"]
    array = np.array([[f"{text}\r\nx", f"{text}\ny"] for text in strange])
    Path("corpus.pkl").write_bytes(pickle.dumps(array))
    config = words_config(train_share=0.5, validation_share=0.25, test_share=0.25, split="random")
    dataset = prepare(Path("corpus.pkl"), config, "small")
    for name in ("validation", "test"):
        source, target = (dataset.text(name, side).read_bytes().decode() for side in SIDES)
        text = target.removesuffix(" y\n")
        assert text in strange
        assert source == f"{text} x\n"


def test_the_manifest_counts_what_is_there() -> None:
    pairs = make_pairs()
    prepared = prepare_pairs(pairs, split="random", seed=3)
    manifest, train = prepared.dataset.manifest, prepared.raw["train"]
    assert manifest == read_manifest(prepared.dataset.folder / "manifest.json")
    known = {side: {word for pair in train for word in words(getattr(pair, side))} for side in SIDES}
    assert manifest.vocabulary == {side: 4 + len(known[side]) for side in SIDES}
    assert (manifest.read, manifest.dropped) == (len(pairs), {})
    trained_sources = {" ".join(words(pair.source)) for pair in train}
    for name in SPLITS:
        raw, counts = prepared.raw[name], manifest.splits[name]
        sentences = {side: [words(getattr(pair, side)) for pair in raw] for side in SIDES}
        assert counts.pairs == len(raw) == len(prepared.dataset.split(name))
        assert counts.tokens == {side: sum(map(len, sentences[side])) for side in SIDES}
        assert counts.longest == {side: max(map(len, sentences[side])) for side in SIDES}
        assert counts.unknown == {
            side: sum(word not in known[side] for sentence in sentences[side] for word in sentence) for side in SIDES
        }
        shared = sum(" ".join(words(pair.source)) in trained_sources for pair in raw)
        assert counts.sources_in_training == (0 if name == "train" else shared)
    resolved = {"source_language": None, "target_language": None, "header": False, "subword_sampling": False}
    assert manifest.settings == words_config(dataset="small", split="random", seed=3, **resolved)
    assert (manifest.corpus.name, manifest.corpus.bytes) == ("corpus.tsv", Path("corpus.tsv").stat().st_size)
    assert set(manifest.files) == {file.name for file in Path("data/small").iterdir()} - {"manifest.json"}
    assert manifest.splits["test"].sources_in_training > 0  # or the count above was of nothing
    assert manifest.splits["test"].unknown["source"] + manifest.splits["validation"].unknown["source"] > 0


# --- preparing again


def test_the_same_file_and_settings_are_not_prepared_twice(small: Dataset) -> None:
    before = content(small.folder)
    Path("corpus.tsv").rename("renamed.tsv")
    again = prepare(Path("renamed.tsv"), words_config(dataset="other"), "small")
    assert not again.is_new
    assert (again.folder, again.manifest) == (small.folder, small.manifest)
    assert content(small.folder) == before


def test_other_settings_and_another_file_are_a_conflict_that_names_them(small: Dataset) -> None:
    before = content(small.folder)
    with pytest.raises(ConflictError, match=r"split .*seed"):
        prepare(Path("corpus.tsv"), words_config(seed=2, split="random"), "small")
    with pytest.raises(ConflictError, match="other content"):
        prepare(write_tsv("new.tsv", make_pairs(seed=1)), words_config(), "small")
    assert content(small.folder) == before


def test_overwriting_replaces_the_dataset(small: Dataset) -> None:
    expected = prepare(write_tsv("new.tsv", make_pairs(seed=1)), words_config(seed=2), "expected")
    assert expected.manifest.fingerprint != small.manifest.fingerprint
    dataset = prepare(Path("new.tsv"), words_config(seed=2), "small", overwrite=True)
    assert dataset.is_new
    assert dataset.manifest.corpus.name == "new.tsv"
    assert dataset.manifest.files == expected.manifest.files
    assert dataset.manifest.fingerprint == expected.manifest.fingerprint
    assert decoded(open_dataset("small"), "test") == decoded(expected, "test")
    assert sorted(entry.name for entry in Path("data").iterdir()) == ["expected", "small"]


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_folder_that_is_no_dataset_is_neither_taken_for_one_nor_replaced(overwrite: bool) -> None:
    Path("data/small").mkdir(parents=True)
    Path("data/small/notes.txt").write_text("mine")
    path = write_tsv("corpus.tsv", make_pairs(20))
    with pytest.raises(ConflictError):
        prepare(path, words_config(), "small", overwrite=overwrite)
    assert Path("data/small/notes.txt").read_text() == "mine"


# --- nothing half done


def refuse(*_: Any, **__: Any) -> None:
    """Behave like a disk without space."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("failing", ["write_json", "write_split"])
@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.usefixtures("small")
def test_a_disk_without_space_leaves_what_was_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch, failing: str, overwrite: bool
) -> None:
    before = content(folder)
    monkeypatch.setattr(prepare_module, failing, refuse)
    with pytest.raises(NmtError, match="cannot be written: No space left on device"):
        prepare(Path("corpus.tsv"), words_config(seed=2), "small" if overwrite else "new", overwrite=overwrite)
    assert content(folder) == before
    assert [path.name for path in Path("data").iterdir()] == ["small"]


def test_a_corpus_that_the_system_cannot_read_is_not_a_dataset_that_cannot_be_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("corpus.tsv").symlink_to("/proc/self/mem")  # opened, and not to be read at its beginning
    message = r"^corpus\.tsv cannot be read: Input/output error\. Check its permissions and its disk\.$"
    with pytest.raises(DataError, match=message):
        prepare(Path("corpus.tsv"), words_config(), "small")
    monkeypatch.setattr(prepare_module, "sha256", lambda path: "0" * 64)  # the disk fails later
    with pytest.raises(DataError, match=message):
        prepare(Path("corpus.tsv"), words_config(), "small")
    assert not Path("data").exists()


@pytest.mark.parametrize(("roles", "message"), [
    (("train", "same", "same"), "leaves the validation split empty, with 9 x validation source that is in the test"),
    (("same", "train", "same"), "has 0 usable pairs, with 9 x training source that is in validation or test"),
])  # fmt: skip
def test_a_split_that_shares_its_sources_with_another_says_so(roles: tuple[str, ...], message: str) -> None:
    write_tsv("train", [Pair(word, word + "x") for word in WORDS[10:30]])
    write_tsv("same", [Pair(word, word + "x") for word in WORDS[:9]])
    with pytest.raises(DataError, match=f"^same {message} left out.*, or set data.split=random.$"):
        prepare(Sources(*([TextFile(Path(name))] for name in roles)), words_config(), "small")


# --- finding


def test_without_a_name_the_dataset_prepared_last_is_found_and_no_interrupted_one(small: Dataset) -> None:
    for name, hour in [("a", 2), ("b", 3), (".writing-x-123", 9), ("small", 1)]:
        path = small.folder if name == "small" else shutil.copytree(small.folder, f"data/{name}")
        os.utime(f"{path}/manifest.json", (3600 * hour, 3600 * hour))
    assert (find_dataset(None).name, find_dataset("a").name) == ("b", "a")
    with pytest.raises(NotFoundError, match="a, b, small"):
        find_dataset("smal")


# --- damage


def damage_json(change: Callable[[dict[str, Any]], object]) -> None:
    """Change the manifest of the dataset "small"."""
    path = Path("data/small/manifest.json")
    values = json.loads(path.read_text(encoding="utf-8"))
    change(values)
    path.write_text(json.dumps(values))


DAMAGES: list[Callable[[dict[str, Any]], object]] = [
    lambda values: values.pop("format"),
    lambda values: values.update(format="1"),
    lambda values: values.update(format=None),
    lambda values: values["settings"].update(dataset="../x"),
    lambda values: values["settings"].update({"x" * 100_000: 1}),
    lambda values: values["splits"].update(more=values["splits"]["train"]),
    lambda values: values["splits"]["test"].update(pairs=2**70),
    lambda values: values["splits"]["test"].update(percentiles={"source": {}}),
    lambda values: values["vocabulary"].update(source=2**40),
    lambda values: values["corpus"].update(sha256="../../x"),
    lambda values: values["files"].update({"train.source.tokens.npy": "x"}),
]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("change", DAMAGES)
def test_a_damaged_manifest_is_refused_in_short(change: Callable[[dict[str, Any]], object]) -> None:
    damage_json(change)
    with pytest.raises(DataError, match=r"^Manifest data/small/manifest\.json is damaged: ") as caught:
        open_dataset("small")
    assert len(str(caught.value)) < 1000


def make_older(values: dict[str, Any], number: int) -> None:
    """Convert a current manifest to format 1, 2 or 3."""
    values["format"] = number
    del values["repeating_targets"], values["corpora"], values["settings"]["corpora"]
    for key in ("source_language", "target_language"):
        del values["settings"][key]
    if number == 3:
        values["settings"]["shard_tokens"] = 1000
    if number == 1:
        for key in ("report", "unit", "more_files"):
            del values[key]
        del values["corpus"]["role"]
        for split in values["splits"].values():
            del split["characters"], split["percentiles"]
        old = ("dataset", "n_sentences", "split", "seed", "tokenizer", "min_count", "joint_vocabulary")
        settings = values["settings"]
        values["settings"] = {key: settings[key] for key in old} | {"normalisation": settings["normalization"]}


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_manifest_says_its_format_and_older_ones_are_read(small: Dataset, number: int) -> None:
    assert json.loads(Path("data/small/manifest.json").read_text())["format"] == MANIFEST_FORMAT
    damage_json(lambda values: make_older(values, number))
    manifest = open_dataset("small").manifest
    default = {"source_language": "auto", "target_language": "auto"}
    if number == 1:
        default |= {"header": "auto", "subword_sampling": "auto"}
    settings = small.manifest.settings.model_copy(update=default)
    assert (manifest.format, manifest.settings.model_dump()) == (number, settings.model_dump())
    assert manifest.languages == {"source": "source", "target": "target"}
    assert manifest.fingerprint == small.manifest.fingerprint
    assert not prepare(Path("corpus.tsv"), words_config(), "small").is_new
    with pytest.raises(ConflictError):  # with codes that are typed
        prepare(Path("corpus.tsv"), words_config(source_language="en"), "small")


def test_a_file_whose_name_is_no_text_can_be_prepared(folder: Path) -> None:
    path = folder / os.fsdecode(b"\xff\x1b[2J.tsv")
    try:
        path.write_bytes(write_tsv("corpus.tsv", [*make_pairs(20), *make_pairs(20)]).read_bytes())
    except OSError:
        pytest.skip("this file system names files in UTF-8 alone")
    manifest = prepare(path, words_config(), "small").manifest
    assert manifest.corpus.name == r"\udcff\x1b[2J.tsv"
    assert manifest.report.places["duplicates"][0].startswith(r"\udcff\x1b[2J.tsv, line ")


@pytest.mark.parametrize("damage", ["missing", "empty", "cut in the header", "cut in the data", "no array"])
def test_a_damaged_array_is_refused_with_the_way_to_mend_it(small: Dataset, damage: str) -> None:
    for part in ("source.tokens", "source.offsets", "target.tokens", "target.offsets"):
        path = small.folder / f"train.{part}.npy"
        whole = path.read_bytes()
        damaged = {"empty": b"", "cut in the header": whole[:50], "cut in the data": whole[:-1], "no array": b"x" * 500}
        path.unlink()
        if damage != "missing":
            path.write_bytes(damaged[damage])
        with pytest.raises(DataError, match=r"^Dataset 'small' is damaged: .*nmt prepare --overwrite\.$"):
            small.split("train")
        path.write_bytes(whole)
    assert len(small.split("train")) == small.manifest.splits["train"].pairs


def test_a_dataset_in_shards_is_refused(small: Dataset) -> None:
    damage_json(lambda values: values["files"].update({"train.source.tokens.1.npy": "0" * 64}))
    with pytest.raises(DataError, match=r"^Dataset 'small' has several token files per side, .* nmt prepare --overw"):
        open_dataset("small").split("train")


class Attack:
    """Object that creates a folder when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.mkdir, (Path("ran"),)


def sign(dataset: Dataset, file: str) -> Dataset:
    """Put the checksum of a file into the manifest, as a forger of a dataset does."""
    damage_json(lambda values: values["files"].update({file: sha256(dataset.folder / file)}))
    return open_dataset(dataset.name)


HEADERS = [
    "{'descr': '<i8', 'fortran_order': False, 'shape': (99999999999999999999,)}",
    "{'descr': '<i8', 'fortran_order': False, 'shape': (-1,)}",
    "{'fortran_order': False, 'descr': '|V0', 'shape': (4,)}",
    "{'shape': (1,), 'descr': '|O', 'fortran_order': False}",
    "__import__('pathlib').Path('ran').mkdir()",
    "(" * 5000,
    "'\0'",
    "9" * 5000,
]


def with_header(header: str) -> bytes:
    text = header.encode("latin1") + b"\n"
    return b"\x93NUMPY\x01\0" + len(text).to_bytes(2, "little") + text + bytes(64)


FORGED: dict[str, tuple[str, Callable[[np.ndarray], Any], str]] = {
    "floats": ("tokens", lambda ids: ids.astype(float), "tokens are float64"),
    "wider integers": ("tokens", lambda ids: ids.astype("u8"), "tokens are uint64"),
    "other byte order": ("offsets", lambda ends: ends.astype(">i8"), "offsets are >i8"),
    "two dimensions": ("tokens", lambda ids: ids[:, None], "of shape"),
    "a scalar": ("offsets", lambda ends: ends[0], "of shape"),
    "fields": ("tokens", lambda ids: ids.astype([("a", "u1")]), "instead of one-dimensional uint8"),
    "dates": ("offsets", lambda ends: ends.astype("M8[s]"), "instead of one-dimensional int64"),
    "objects": ("tokens", lambda ids: np.array([Attack()], dtype=object), "Python objects"),
    "a pickle": ("tokens", lambda ids: pickle.dumps(Attack()), ""),
    "an archive": ("tokens", lambda ids: {"a": ids}, "magic string is not correct"),
    "an id beyond the vocabulary": ("tokens", lambda ids: np.where(ids == ids.max(), 255, ids), "an id 255"),
    "fewer tokens": ("tokens", lambda ids: ids[:-1], "tokens instead of"),
    "fewer sequences": ("offsets", lambda ends: ends[:-1], "sequences of"),
    "no first": ("offsets", lambda ends: np.r_[1, ends[1:]], "do not rise from 0"),
    "beyond the end": ("offsets", lambda ends: np.r_[ends[:-1], ends[-1] + 1], "do not rise from 0"),
    "falling": ("offsets", lambda ends: np.r_[ends[0], ends[1:-1][::-1], ends[-1]], "do not rise from 0"),
    "wrapping around": ("offsets", lambda ends: np.r_[0, 2**63 - 1, -(2**63), ends[3:]], "do not rise from 0"),
    **{f"header {text[:30]}": ("offsets", lambda ends, text=text: with_header(text), "") for text in HEADERS},
    "a longer one": ("offsets", lambda ends: np.r_[0, ends[1:-1] * 0, ends[-1]], "do not rise from 0"),
}


@pytest.mark.parametrize(("part", "forge", "reason"), FORGED.values(), ids=FORGED)
def test_an_array_that_was_forged_with_its_checksum_is_refused(
    small: Dataset, part: str, forge: Callable[[np.ndarray], Any], reason: str
) -> None:
    path = small.folder / f"train.source.{part}.npy"
    forged = forge(np.load(path))
    with path.open("wb") as file:
        if isinstance(forged, bytes):
            file.write(forged)
        else:
            np.savez(file, **forged) if isinstance(forged, dict) else np.save(file, forged, allow_pickle=True)
    with pytest.raises(DataError, match="differs from the one in its manifest"):
        small.split("train")
    with pytest.raises(DataError, match=rf"^Dataset 'small' is damaged: .* hold no sentences \(.*{reason}"):
        sign(small, path.name).split("train")
    assert not Path("ran").exists()


def test_a_changed_tokenizer_is_refused(small: Dataset) -> None:
    path = small.folder / "tokenizer.target.json"
    values = json.loads(path.read_text())
    (small.folder / "tokenizer.target.json.old").write_text("mine")
    assert small.tokenizers()[1].size == small.manifest.vocabulary["target"]
    path.write_text(json.dumps({**values, "words": values["words"][:-1]}))
    for dataset, message in ((small, "the SHA-256 of"), (sign(small, path.name), "its manifest states")):
        with pytest.raises(DataError, match=message):
            dataset.tokenizers()


# --- subwords


def test_training_text_is_cut_anew_every_epoch_and_means_the_same() -> None:
    raw = prepare_pairs(make_pairs(), tokenizer="subword", normalization="nfkc", subword_sampling=True).dataset
    epochs = [raw.resample_subwords(1, epoch) for epoch in (1, 1, 2)]
    texts = [raw.text("train", side).read_text(encoding="utf-8").split("\n")[:-1] for side in SIDES]
    for side, tokenizer, lines in zip(SIDES, raw.tokenizers(), texts, strict=True):
        first, again, second = (getattr(split, side) for split in epochs)
        assert first.tokens.tolist() == again.tokens.tolist() != second.tokens.tolist()
        prepared = getattr(raw.split("train"), side)
        for sequences in (first, second):
            assert [tokenizer.decode(sequences[index]) for index in range(len(sequences))] == lines
            assert sequences.lengths.max() <= prepared.lengths.max()
            assert sequences.tokens.dtype == prepared.tokens.dtype
        assert [tokenizer.decode(prepared[index]) for index in range(len(prepared))] == lines
    sampler_of.cache_clear()  # a resumed run has not sampled the words of epoch 1
    resumed = open_dataset(raw.name).resample_subwords(1, 2)
    assert resumed.target.tokens.tolist() == epochs[2].target.tokens.tolist()
    path = raw.text("train", "target")
    path.write_bytes(path.read_bytes().split(b"\n", 1)[1])
    for dataset, message in ((raw, "the SHA-256 of"), (sign(raw, path.name), r"ends after \d+ lines")):
        with pytest.raises(DataError, match=message):
            dataset.resample_subwords(1, 1)


@pytest.mark.parametrize("kind", ["word", "char", "subword"])
def test_every_kind_of_token_decodes_to_the_text(kind: str) -> None:
    pairs = make_pairs()
    prepared = prepare_pairs(pairs, tokenizer=kind, normalization="none", subword_sampling=False)
    expected = Counter((source, target) for source, target in prepared.raw["train"])
    assert Counter(decoded(prepared.dataset, "train")) == expected
    manifest = prepared.dataset.manifest
    assert manifest.unit == {"word": "words", "char": "characters", "subword": "subwords"}[kind]
    with pytest.raises(DataError, match="without its training text"):
        prepared.dataset.resample_subwords(1, 1)
    raw = prepared.raw["train"]
    assert manifest.splits["train"].characters == {
        side: sum(len(getattr(pair, side)) for pair in raw) for side in SIDES
    }
    assert {file.name for file in prepared.dataset.tokenizer_files} == {
        f"tokenizer.{side}.{suffix}"
        for side in SIDES
        for suffix in (["json", "model"] if kind == "subword" else ["json"])
    }


def test_dropped_pairs_are_counted_with_their_places() -> None:
    pairs = [*make_pairs(40), Pair("5", "x"), Pair("long " * 501, "lang"), Pair("word " * 30, "wort")]
    manifest = prepare(write_tsv("corpus.tsv", pairs), words_config(seed=0, drop_empty=True), "small").manifest
    assert manifest.dropped == {"empty side": 1, "too long": 1, "length ratio": 1}
    for reason, line in [("too long", len(pairs) - 1), ("length ratio", len(pairs))]:
        assert manifest.report.places[reason][0].startswith(f"corpus.tsv, line {line}: '")


@pytest.mark.parametrize(
    ("tokenizer", "text_pairs", "is_kept"),
    [("subword", 1_000, True), ("subword", 100, False), ("word", 1_000, False), ("char", 1_000, False)],
)
def test_small_corpora_of_subwords_keep_their_text_by_default(
    tokenizer: str, text_pairs: int, is_kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepare_module, "TEXT_PAIRS", text_pairs)
    dataset = prepare_pairs(make_pairs(), tokenizer=tokenizer).dataset
    assert dataset.manifest.settings.subword_sampling == ("possible" if is_kept else False)
    assert dataset.text("train", "source").is_file() == dataset.manifest.keeps_training_text == is_kept
    again = prepare(Path("corpus.tsv"), words_config(tokenizer=tokenizer), "small")
    assert not again.is_new
    without = prepare(Path("corpus.tsv"), words_config(tokenizer=tokenizer, subword_sampling=False), "without")
    assert without.manifest.fingerprint == dataset.manifest.fingerprint
