"""No text makes the package stand still: 100,000 characters have an answer within two seconds of processor time.

``linear_time.py`` finds all patterns, functions of text and readers of documents by itself, so a new one is tested too.
"""

import json
import os
import re
import subprocess
import sys

import pytest
from adversarial_text import LENGTH, PatternTexts
from conftest import ROOT
from linear_time import SUBJECTS, Result, Subject, asked, built_patterns, no_texts, trials

TAKES_LONG = ("documents", "functions", "patterns", "translation")


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.slow] if kind in TAKES_LONG else []) for kind in SUBJECTS]
)
def test_no_adversarial_text_takes_long(kind: str) -> None:
    """A process of its own tries the subjects of a kind: a slow one is ended by the system."""
    command = [sys.executable, str(ROOT / "tests" / "linear_time.py"), kind]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=280)
    assert done.returncode == 0, done.stderr
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(results) > 5
    slow = {each["name"]: each["slow"] for each in results if each["slow"] is not None}
    assert not slow, f"not in linear time: {slow}"


def test_functions_build_no_patterns() -> None:
    built = built_patterns()
    assert not built, f"Compile these patterns at the level of their modules, where they are tested: {built}"


@pytest.mark.parametrize(
    "pattern",
    [r"\s+$", r"(\s+)>", r"-->.*?<--", r"<!--(?:.|\n)*?-->", r"(a|a)*b", r"\d*\d*x", r"[\w.]+@", r"(?:ab?)*abx",
     rb"<meta[^>]+charset", r"%0*\d*d"],
)  # fmt: skip
def test_a_slow_pattern_is_found(pattern: str | bytes) -> None:
    assert result_of(pattern).slow


@pytest.mark.parametrize("pattern", [r"(?<!\s)\s++$", r"a*b?", r"[a-z]{1,9}@", r"<[^<>]*>"])
def test_a_fast_pattern_is_not(pattern: str) -> None:
    result = result_of(pattern)
    texts = PatternTexts(re.compile(pattern))
    # Tried on any processor; how many pairs of fragments come besides depends on its speed.
    always = len(list(texts.pumped(LENGTH))) + 2 * len(texts.fragments())
    assert result.texts > always and result.slow is None


def result_of(pattern: str | bytes) -> Result:
    """Return how a search for a pattern answers, tried between two fast ones."""
    compiled = re.compile(pattern)
    texts = PatternTexts(compiled)
    fast = Subject("fast", str.strip, no_texts, ["a", "b"])
    searched = Subject("searched", asked(compiled, {"search"}), texts.pumped, texts.fragments())
    before, result, after = trials([fast, searched, fast], most=0.5)
    assert (before.slow, result.name, after.slow) == (None, "searched", None)
    return result
