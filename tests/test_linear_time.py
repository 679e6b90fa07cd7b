"""No text makes the package stand still: 100,000 characters have an answer within two seconds of processor time.

``linear_time.py`` finds all patterns, functions of text and readers of documents by itself, so a new one is tested too.
"""

import json
import os
import re
import subprocess
import sys

import pytest
from adversarial_text import PatternTexts
from conftest import ROOT
from linear_time import SUBJECTS, Subject, asked, built_patterns, first_slow


def results(kind: str) -> list[dict[str, object]]:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "linear_time.py"), kind], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=280,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("kind", SUBJECTS)
def test_no_adversarial_text_takes_long(kind: str) -> None:
    found = results(kind)
    assert len(found) > 5
    slow = {each["name"]: each["slow"] for each in found if each["slow"] is not None}
    assert not slow, f"not in linear time: {slow}"


def test_functions_build_no_patterns() -> None:
    built = built_patterns()
    assert not built, f"Compile these patterns at the level of their modules, where they are tested: {built}"


@pytest.mark.parametrize(
    "pattern",
    [r"\s+$", r"(\s+)>", r"-->.*?<--", r"<!--(?:.|\n)*?-->", r"(a|a)*b", r"\d*\d*x", r"[\w.]+@", r"(?:ab?)*abx",
     rb"<meta[^>]+charset", r"%0*\d*d", r'"[^"]*"x'],
)  # fmt: skip
def test_a_slow_pattern_is_found(pattern: str | bytes) -> None:
    compiled = re.compile(pattern)
    texts = PatternTexts(compiled)
    assert first_slow(Subject("slow", asked(compiled, {"search"}), texts.pumped(), texts.fragments()))[1]


@pytest.mark.parametrize("pattern", [r"(?<!\s)\s++$", r"a*b?", r"[a-z]{1,9}@", r"<[^<>]*>"])
def test_a_fast_pattern_is_not(pattern: str) -> None:
    compiled = re.compile(pattern)
    texts = PatternTexts(compiled)
    count, slow = first_slow(Subject("fast", asked(compiled, {"search"}), texts.pumped(), texts.fragments()))
    assert count > 100 and slow is None
