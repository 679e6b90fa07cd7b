"""Scores by source length: buckets cover all lengths, and their scores equal those of sacrebleu on their lines."""

import json
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
import sacrebleu
from conftest import nmt
from hypothesis import given
from hypothesis import strategies as st

from nmt.evaluation.scoring import FEWEST_SENTENCES, PERCENTILES, length_buckets, score_by_length

SHORT = [*[1] * 45, *[2] * 2336, *[3] * 5483, *[4] * 2104, *[5] * 32]


# Counts of sentences by length, so that few examples have many sentences.
@given(st.dictionaries(st.integers(0, 200), st.integers(1, 60), min_size=1, max_size=40), st.randoms())
def test_buckets_are_disjoint_in_order_and_cover_all_lengths(counts: dict[int, int], random: Random) -> None:
    lengths = [length for length, count in counts.items() for _ in range(count)]
    random.shuffle(lengths)
    buckets = length_buckets(lengths)
    bounds = [bound for bucket in buckets for bound in bucket]
    assert bounds == sorted(bounds)
    assert all(longest < shortest for (_, longest), (shortest, _) in pairwise(buckets))
    assert {shortest for shortest, _ in buckets} | {longest for _, longest in buckets} <= set(lengths)
    sizes = [sum(shortest <= length <= longest for length in lengths) for shortest, longest in buckets]
    assert sum(sizes) == len(lengths)
    assert len(buckets) <= len(PERCENTILES) + 1
    assert len(buckets) == 1 or min(sizes) >= FEWEST_SENTENCES


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        (SHORT, [(1, 2), (3, 3), (4, 4), (5, 5)]),
        ([7], [(7, 7)]),  # few sentences, equal lengths
        ([0] * 1000, [(0, 0)]),
        ([1] * 19 + [50] * 19, [(1, 50)]),
        # a small bucket is merged with its neighbour
        ([1] * 30 + [2] * 19 + [3] * 30, [(1, 1), (2, 3)]),
        ([1] * 30 + [2] * 30 + [3] * 19, [(1, 1), (2, 3)]),
        ([1] * 19 + [2] * 30 + [3] * 30, [(1, 2), (3, 3)]),
        ([1] * 20 + [2] * 20 + [3] * 20, [(1, 1), (2, 2), (3, 3)]),
    ],
)
def test_buckets(lengths: list[int], expected: list[tuple[int, int]]) -> None:
    assert length_buckets(lengths) == expected


@pytest.mark.parametrize("tokenization", ["13a", "char"])
@pytest.mark.parametrize("reference_count", [1, 2])
def test_the_scores_of_a_bucket_are_those_of_sacrebleu_on_its_lines_alone(
    tokenization: str, reference_count: int
) -> None:
    sources = [" ".join(["w"] * (3 + 4 * (number % 3))) for number in range(90)]
    references = [
        [" ".join(f"{word * number % 23}" for word in range(1, len(source.split()) + 1 + extra))
         for number, source in enumerate(sources)]
        for extra in range(reference_count)
    ]  # fmt: skip
    systems = {
        "right": references[0],
        "worse": [f"{line[: len(line) // 2]} 7, 8" for line in references[0]],
        "silent": [""] * 90,
    }
    buckets = score_by_length(systems, sources, references, tokenization)
    assert [(bucket.shortest, bucket.longest, bucket.scores.sentences) for bucket in buckets] == [
        (3, 3, 30), (7, 7, 30), (11, 11, 30),
    ]  # fmt: skip
    for start, bucket in enumerate(buckets):
        of_bucket = [lines[start::3] for lines in references]
        for name, lines in systems.items():
            for metric in (sacrebleu.BLEU(tokenize=tokenization), sacrebleu.CHRF()):
                expected = metric.corpus_score(lines[start::3], of_bucket)
                score = bucket.scores.systems[name][expected.name]
                assert score.score == pytest.approx(expected.score)
                assert bucket.scores.signatures[expected.name] == str(metric.get_signature())
                assert score.ci is None and score.p_value is None


LINES = {
    "characters": [
        ("我有一只狗。", 5), ("我有 iPhone 手机。", 5), ("犬が走る。", 4), ("ฉันมีหนังสือ", 8), ("ខ្ញុំមានឆ្កែ", 4),
    ],
    "words": [
        ("Ich habe einen Hund.", 4), ("Ada köpek var", 3), ("لدي كلب كبير", 3), ("मेरे पास कुत्ता है।", 4), ("개가 뛴다", 2),
    ],
}  # fmt: skip


@pytest.mark.parametrize("unit", LINES)
def test_lengths_are_words_or_characters_and_tables_say_so(unit: str, folder: Path) -> None:
    for text, length in LINES[unit]:
        [bucket] = score_by_length({"a": [text] * 9}, [text] * 9, [[text] * 9], "char")
        assert (bucket.shortest, bucket.longest, bucket.unit) == (length, length, unit), text
    (folder / "in").write_text("".join(f"{text}\n" for text, _ in LINES[unit]))
    (folder / "out").write_text("a dog\n" * len(LINES[unit]))
    files = ["--hypothesis", "out", "--reference", "out", "--source", "in"]
    command = ["evaluate", *files, "--by-length", "--resamples", "0"]
    heading = {"characters": "(characters)", "words": "(words, split at white space)"}[unit]
    assert f"Scores by source length {heading}:" in nmt(*command, "--report", "r.html", cwd=folder).stdout
    assert f"Scores by source length {heading}" in (folder / "r.html").read_text()
    [bucket] = json.loads(nmt(*command, "--json", cwd=folder).stdout)["by_length"]
    assert bucket["unit"] == unit
