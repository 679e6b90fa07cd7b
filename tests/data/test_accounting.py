"""The pairs of every reader add up: each pair that is read is kept, or dropped for a reason with the first places."""

import csv
import io
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nmt.config.data import DataConfig
from nmt.data.cleaning import EXAMPLES, Sources
from nmt.data.manifest import Manifest
from nmt.data.prepare import prepare
from nmt.data.sources.corpus_files import find_corpus
from nmt.errors import NmtError

QUICK = settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
SENTENCES = [
    "Zwei junge Männer", "فتاتان صغيرتان", "两个年轻人在外面", "दो युवा लड़के", "İki genç adam", "It's \"big\", he said",
    "", " ", "\ufeffgo", "a\0b", "a\u2028b", "12", "x" * 40, "ein\tTab", "<b>&amp;</b>", "same", "same",
]  # fmt: skip
PAIRS = st.lists(st.tuples(st.sampled_from(SENTENCES), st.sampled_from(SENTENCES)), max_size=20)

GOOD = [(f"good {letter}", f"gut {letter * 2}") for letter in "abcdefghijkl"]  # enough for all splits


def in_csv(pairs: list[tuple[str, str]], delimiter: str) -> bytes:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter).writerows(pairs)
    return text.getvalue().encode()


def in_tsv(pairs: list[tuple[str, str]]) -> bytes:
    return "".join(f"{source}\t{target}\n" for source, target in pairs).encode()


def in_tmx(pairs: list[tuple[str, str]]) -> bytes:
    units = (
        f'<tu><tuv xml:lang="en"><seg>{escape(source)}</seg></tuv><tuv xml:lang="de"><seg>{escape(target)}</seg></tuv>'
        "</tu>" for source, target in pairs if "\0" not in source + target
    )  # fmt: skip
    return f'<tmx version="1.4"><header srclang="en"/><body>{"".join(units)}</body></tmx>'.encode()


def in_json_lines(pairs: list[tuple[str, str]]) -> bytes:
    objects = ({"translation": {"en": source, "de": target}} for source, target in pairs)
    return "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in objects).encode()


Files = dict[str, bytes]
WRITERS: dict[str, Callable[[list[tuple[str, str]]], Files]] = {
    "tsv": lambda pairs: {"a.tsv": in_tsv(pairs)},
    "tsv in utf-16": lambda pairs: {"a.tsv": in_tsv(pairs).decode().encode("utf-16")},
    "tsv with header": lambda pairs: {"a.tsv": b"German\tEnglish\n" + in_tsv(pairs)},
    "csv": lambda pairs: {"a.csv": in_csv(pairs, ",")},
    "csv of excel": lambda pairs: {"a.csv": b"\xef\xbb\xbf" + in_csv([("source", "target"), *pairs], ";")},
    "json lines": lambda pairs: {"a.jsonl": in_json_lines(pairs)},
    "json": lambda pairs: {"a.json": json.dumps([{"src": a, "tgt": b} for a, b in pairs]).encode()},
    "pickle": lambda pairs: {"a.pkl": pickle.dumps(np.array(pairs, dtype=str))},
    "tmx": lambda pairs: {"a.tmx": in_tmx(pairs)},
    "two files": lambda pairs: {
        name: "".join(f"{pair[side]}\n" for pair in pairs).encode() for side, name in enumerate(("a.en", "a.de"))
    },
    "shards": lambda pairs: {"1.jsonl": in_json_lines(pairs[::2]), "2.jsonl": in_json_lines(pairs[1::2])},
}
DAMAGES: dict[str, Callable[[bytes, int], bytes]] = {
    "none": lambda content, place: content,
    "cut": lambda content, place: content[:place],
    "byte": lambda content, place: content[:place] + b"\xff" + content[place + 1 :],
    "tab": lambda content, place: content[:place] + b"\t" + content[place:],
    "quote": lambda content, place: content[:place] + b'"' + content[place:],
    "line ends": lambda content, place: content[:place] + b"\n\r\n \n" + content[place:],
    "twice": lambda content, place: content + content,
    "blank at the end": lambda content, place: content + b"\n\n",
}
CONFIGS = st.fixed_dictionaries({
    "drop_duplicates": st.booleans(),
    "drop_empty": st.booleans(),
    "drop_identical": st.booleans(),
    "split": st.sampled_from(["random", "by_source"]),
    "max_tokens": st.sampled_from([20, 500]),
    "filters": st.sampled_from([{}, {"near_duplicates": 1, "copies": 0.8}]),
    "repair": st.sampled_from([[], ["entities"]]),
})  # fmt: skip


def check_sums(manifest: Manifest) -> None:
    kept = sum(split.pairs for split in manifest.splits.values())
    assert manifest.read == kept + sum(manifest.dropped.values())
    for reason, count in manifest.dropped.items():
        assert count > 0
        # A reason that applies in several steps has the first places of each.
        assert len(manifest.report.places[reason]) >= min(count, EXAMPLES)


@pytest.mark.parametrize("name", WRITERS)
@QUICK
@given(pairs=PAIRS, damage=st.sampled_from(sorted(DAMAGES)), share=st.floats(0, 1), config=CONFIGS)
def test_pairs_that_are_read_are_kept_or_dropped_for_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, pairs: list[tuple[str, str]], damage: str,
    share: float, config: dict[str, object],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    pairs = [(f"{number} {source}" if number % 3 else source, target) for number, (source, target) in enumerate(pairs)]
    pairs = [*GOOD, *pairs]
    written = WRITERS[name](pairs)
    for file, content in written.items():
        Path(file).write_bytes(content)
    last = list(written)[-1]
    Path(last).write_bytes(DAMAGES[damage](written[last], int(share * len(written[last]))))
    data = DataConfig.model_validate({"tokenizer": "char", "normalization": "nfc", "drop_unreadable": True, **config})
    files = find_corpus(list(written), [], "files", data)
    for sources, split in ((Sources(files), data.split), (Sources(files, test=files), "random")):
        try:
            dataset = prepare(sources, data.model_copy(update={"split": split}), "checked", overwrite=True)
        except NmtError as error:
            assert "\n" not in str(error)
            continue
        check_sums(dataset.manifest)
        if damage == "none" and name not in {"tmx", "shards"}:
            assert dataset.manifest.read == len(pairs) * len(sources.roles)
