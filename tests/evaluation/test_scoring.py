"""Scores, intervals and p-values equal those of the sacrebleu command line."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.errors import NmtError
from nmt.evaluation.metrics import METRICS, check_metrics
from nmt.evaluation.scoring import check_bootstrap_memory, score_systems, sentence_scores

REFERENCE = ["Der Hund läuft schnell.", "Ich mag keine Äpfel.", "Sie ist heute nicht da.", "Gut gemacht!", "Ja."]
OTHER_REFERENCE = ["Der Hund rennt.", "Äpfel mag ich nicht.", "Heute fehlt sie.", "Sehr gut!", "Doch."]
FIRST = ["Der hund läuft.", "Ich mag Äpfel nicht.", "sie ist nicht da.  ", "Gut!", ""]
SECOND = ["Ein Hund geht schnell", "Ich Äpfel.", "Sie ist heute nicht da.", "Gut gemacht!", "Ja."]
MANY = 8


def files(folder: Path, *texts: list[str]) -> list[str]:
    """Write lists of lines to files and return the paths."""
    paths = [folder / str(number) for number in range(len(texts))]
    for path, lines in zip(paths, texts, strict=True):
        path.write_text("".join(f"{line}\n" for line in lines))
    return list(map(str, paths))


def sacrebleu(*arguments: str) -> str:
    command = [sys.executable, "-m", "sacrebleu", *arguments, "-m", "bleu", "chrf", "ter", "-w", "4"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("references", [[REFERENCE], [REFERENCE, OTHER_REFERENCE]])
def test_scores_and_signatures_are_those_of_the_command_sacrebleu(
    references: list[list[str]], lowercase: bool, tmp_path: Path
) -> None:
    hypothesis, *paths = files(tmp_path, FIRST, *references)
    options = ["-lc", "--chrf-lowercase"] if lowercase else []
    expected = json.loads(sacrebleu(*paths, "-i", hypothesis, "-f", "json", *options))
    scored = score_systems({"a": FIRST}, references, ["bleu", "chrf", "ter"], "13a", 0, lowercase=lowercase)
    assert scored.sentences == 5
    assert [*scored.signatures] == (["BLEU lc", "chrF2 lc", "TER"] if lowercase else ["BLEU", "chrF2", "TER"])
    for metric, name in zip(expected, scored.signatures, strict=True):
        assert scored.systems["a"][name].score == pytest.approx(metric["score"], abs=5e-5)
        assert scored.signatures[name] == metric["signature"]
        assert ("case:lc" in metric["signature"]) == (lowercase or name == "TER")
        assert scored.systems["a"][name].ci is None


@pytest.mark.parametrize("lowercase", [False, True])
def test_intervals_and_p_values_are_those_of_the_command_sacrebleu(lowercase: bool, tmp_path: Path) -> None:
    reference, first, second = files(tmp_path, REFERENCE * MANY, FIRST * MANY, SECOND * MANY)
    options = ["-lc", "--chrf-lowercase"] if lowercase else []
    table = sacrebleu(reference, "-i", first, second, "--paired-bs", "--paired-bs-n", "200", "-f", "latex", *options)
    expected = re.findall(r"([\d.]+) \(([\d.]+) ± ([\d.]+)\)(?: \(p = ([\d.]+)\))?", table)
    scored = score_systems(
        {"a": FIRST * MANY, "b": SECOND * MANY}, [REFERENCE * MANY], ["bleu", "chrf", "ter"], "13a", 200,
        lowercase=lowercase,
    )  # fmt: skip
    assert "bs:200|seed:12345" in scored.signatures["TER"]
    assert all(signature in table for signature in scored.signatures.values())
    scores = [score for name in ("a", "b") for score in scored.systems[name].values()]
    for score, (value, mean, ci, p_value) in zip(scores, expected, strict=True):
        assert [f"{figure:.4f}" for figure in (score.score, score.mean, score.ci)] == [value, mean, ci]
        assert ("" if score.p_value is None else f"{score.p_value:.4f}") == p_value
    assert [score.p_value is None for score in scores] == [True] * 3 + [False] * 3


def test_equal_systems_do_not_differ_and_one_sentence_is_not_tested() -> None:
    same = score_systems({"a": FIRST, "b": FIRST}, [REFERENCE], list(METRICS), "13a", 100)
    assert {score.p_value for score in same.systems["b"].values()} == {1.0}
    alone = score_systems({"a": FIRST[:1], "b": SECOND[:1]}, [REFERENCE[:1]], list(METRICS), "13a", 100)
    assert {(score.ci, score.p_value) for name in "ab" for score in alone.systems[name].values()} == {(None, None)}


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.text(max_size=12), st.text(max_size=12), st.text(max_size=12)), min_size=1, max_size=4))
def test_any_text_can_be_scored(rows: list[tuple[str, str, str]]) -> None:
    first, second, references = map(list, zip(*rows, strict=True))
    scored = score_systems({"a": first, "b": second}, [references], list(METRICS), "13a", 20)
    for score in (score for by_metric in scored.systems.values() for score in by_metric.values()):
        assert score.score >= 0
        assert score.p_value is None or 0 < score.p_value <= 1


def test_bootstrap_that_needs_too_much_memory_is_refused_with_what_fits() -> None:
    check_bootstrap_memory(1000, 30_000)
    with pytest.raises(NmtError, match=r"resamples=\d+ or fewer") as refused:
        check_bootstrap_memory(1000, 1_000_000)
    fits = int(re.search(r"resamples=(\d+)", str(refused.value))[1])  # type: ignore[index]
    check_bootstrap_memory(fits, 1_000_000)
    with pytest.raises(NmtError):
        check_bootstrap_memory(fits + 1, 1_000_000)


def test_the_best_reference_counts_and_metrics_are_known_by_any_case_once() -> None:
    assert sentence_scores(OTHER_REFERENCE, [REFERENCE, OTHER_REFERENCE]).tolist() == [100.0] * 5
    assert check_metrics(["BLEU", "chrf++", "bleu"], "zh") == ["bleu", "chrf++"]
