"""Numbers agree with their nouns: "1 epoch", "2 epochs", in every message that the package can write."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from conftest import ROOT

SOURCES = sorted((ROOT / "nmt").rglob("*.py"))
RECORDED = [ROOT / "tests" / "cli" / "messages.txt", *sorted(ROOT.glob("*.md")), *sorted((ROOT / "nmt").rglob("*.md"))]
USUAL = {
    "character", "column", "dataset", "document", "file", "head", "host", "layer", "minute", "problem", "reference",
    "resample", "second", "sentence", "token", "word",
}  # fmt: skip
"""Singular nouns to check in addition to the nouns that the package passes to ``counted``."""

ADJECTIVES = "(?:attention|bootstrap|distinct|further|more|skipped|source|target|test|training|usable|validation)"


def calls_of_counted(tree: ast.AST) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "counted":
            yield node


def counted_nouns() -> set[str]:
    """Return the last word of each noun that the package counts anywhere."""
    nouns = [call.args[1] for source in SOURCES for call in calls_of_counted(ast.parse(source.read_text()))]
    return {noun.value.split()[-1] for noun in nouns if isinstance(noun, ast.Constant)} | USUAL


def guarded(tree: ast.AST) -> set[ast.AST]:
    """Return the nodes of expressions that a comparison with a number chooses, such as ``a if count > 1 else b``."""
    chosen = [node for node in ast.walk(tree) if isinstance(node, ast.IfExp) and isinstance(node.test, ast.Compare)]
    return {inner for choice in chosen for inner in [*ast.walk(choice.body), *ast.walk(choice.orelse)]}


def is_constant(value: ast.expr) -> bool:
    """Return whether a value consists of constants of a module or class, which are never 1."""
    names = [node.attr if isinstance(node, ast.Attribute) else node.id
             for node in ast.walk(value) if isinstance(node, ast.Attribute | ast.Name)]  # fmt: skip
    return all(name.isupper() or name == "self" for name in names)


def is_measured(value: ast.FormattedValue) -> bool:
    """Return whether a value is shown as a measure, such as 1.0 s, instead of a count."""
    parts = ast.walk(value.format_spec) if value.format_spec else []
    return any(re.search(r"[efg%]", str(part.value)) for part in parts if isinstance(part, ast.Constant))


def uncounted(path: Path, nouns: set[str]) -> Iterator[str]:
    """Yield the lines of a module in which a number stands before a fixed plural, although it may be 1."""
    plural = re.compile(rf" (?:{ADJECTIVES} )?(?:{'|'.join(sorted(nouns))})s\b(?!/)")
    tree = ast.parse(path.read_text())
    safe = guarded(tree)
    for text in (node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) and node not in safe):
        for before, value, after in zip([None, *text.values], text.values, text.values[1:], strict=False):
            is_sum = isinstance(before, ast.Constant) and str(before.value).endswith("+ ")
            if is_sum or not isinstance(value, ast.FormattedValue) or not isinstance(after, ast.Constant):
                continue
            if plural.match(str(after.value)) and not is_constant(value.value) and not is_measured(value):
                yield f"{path.relative_to(ROOT)}:{value.lineno}: {ast.unparse(value.value)}{str(after.value)[:30]}"


def test_every_count_of_a_message_agrees_with_its_noun() -> None:
    nouns = counted_nouns()
    wrong = [place for source in SOURCES for place in uncounted(source, nouns)]
    assert not wrong, "\n".join(["Use nmt.errors.counted:", *wrong])


def test_no_recorded_text_has_one_of_several() -> None:
    """The messages in messages.txt, and the output in the pages, never have 1 before a plural."""
    nouns = "|".join(sorted(counted_nouns()))
    wrong = [
        f"{path.relative_to(ROOT)}: {found[0]}"
        for path in RECORDED
        for found in re.finditer(rf"(?<![\d.,+x/:-])(?<!\+ )\b1 (?:{ADJECTIVES} )?(?:{nouns})s\b", path.read_text())
    ]
    assert not wrong
