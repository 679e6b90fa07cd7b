"""An evaluation as a page to publish, Markdown or HTML: scores, settings, and every translation."""

import html
import re
from collections.abc import Iterable, Iterator

from nmt.errors import NmtError
from nmt.evaluation.reports.text import (
    EMPTY,
    Texts,
    direction,
    figures,
    notes,
    overlap_lines,
    p_value,
    set_line,
    settings_lines,
    system_line,
    without_line,
)
from nmt.evaluation.scoring import Evaluation, Score, Scores

FORMATS = (".md", ".html")


def check_format(suffix: str) -> None:
    """Refuse a report whose suffix names no format.

    Raises:
        NmtError: naming the formats.
    """
    if suffix not in FORMATS:
        raise NmtError(
            f"The suffix of a report names its format, {' or '.join(FORMATS)}; received {suffix!r}. Choose one."
        )


def write_report(evaluation: Evaluation, texts: Texts, suffix: str) -> str:
    """Return the report in the format of a suffix in ``FORMATS``."""
    return markdown(evaluation, texts) if suffix == ".md" else page(evaluation, texts)


def _title(evaluation: Evaluation) -> str:
    return "Evaluation of " + ", ".join(system.name for system in evaluation.systems)


def _columns(texts: Texts) -> list[str]:
    references = (
        ["reference"] if len(texts.references) == 1 else [f"reference {n + 1}" for n in range(len(texts.references))]
    )
    return [*([] if texts.sources is None else ["source"]), *references]


def _sentence(texts: Texts, place: int) -> list[str]:
    """Source and references of a sentence, in the order of ``_columns``."""
    source = [] if texts.sources is None else [texts.sources[place]]
    return [*source, *(reference[place] for reference in texts.references)]


# What means something to Markdown anywhere in a line; a line here never begins with another's text.
_MARKDOWN = re.compile(r"([\\`*_\[\]<>#|~$&])")


def _escaped(text: str) -> str:
    """Text as Markdown shows it, in one line."""
    return _MARKDOWN.sub(r"\\\1", " ".join(text.split()))


def _markdown_table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    header = list(header)
    yield f"| {' | '.join(header)} |"
    yield f"|{'---|' * len(header)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _markdown_scores(scores: Scores) -> Iterator[str]:
    def cell(score: Score) -> str:
        return _escaped(" ".join(filter(None, [figures(score), p_value(score)])))

    return _markdown_table(
        ["system", *map(direction, scores.signatures)],
        (
            [_escaped(name), *(cell(by_metric[one]) for one in scores.signatures)]
            for name, by_metric in scores.systems.items()
        ),
    )


def markdown(evaluation: Evaluation, texts: Texts) -> str:
    """Return the report in Markdown, tables as GitHub has them."""

    def blocks() -> Iterator[str]:
        yield f"# {_escaped(_title(evaluation))}"
        yield _escaped(set_line(evaluation))
        yield "\n".join(f"- **{_escaped(one.name)}**: {_escaped(system_line(one))}" for one in evaluation.systems)
        yield "## Scores"
        yield "\n".join(_markdown_scores(evaluation.scores))
        yield "\n".join(map(_escaped, notes(evaluation)))
        yield "\n".join(f"- {name}: `{signature}`" for name, signature in evaluation.scores.signatures.items())
        yield "## Overlap with training"
        yield "\n\n".join(map(_escaped, overlap_lines(evaluation)))
        if evaluation.without_overlap:
            yield without_line(evaluation.without_overlap) + ":"
            yield "\n".join(_markdown_scores(evaluation.without_overlap))
        columns = _columns(texts)
        for name, examples in evaluation.examples.items():
            for title, chosen in (("Worst", examples.worst), ("Best", examples.best)):
                if chosen:
                    yield f"## {title} of {_escaped(name)} by sentence chrF"
                    yield "\n".join(_markdown_table(
                        ["line", "chrF", *columns, "translation"],
                        (
                            [str(one.number), f"{one.chrf:.1f}", *map(_escaped, _sentence(texts, one.number - 1)),
                             _escaped(one.translation or EMPTY)]
                            for one in chosen
                        ),
                    ))  # fmt: skip
        yield "## All translations"
        trained_on = set(evaluation.overlap.numbers)
        if trained_on:
            yield "† in training"
        yield "\n".join(_markdown_table(
            ["line", *columns, *(f"{_escaped(name)} (chrF)" for name in texts.translations)],
            (
                [
                    f"{place + 1}{'†' if place + 1 in trained_on else ''}",
                    *map(_escaped, _sentence(texts, place)),
                    *(
                        f"{_escaped(translations[place] or EMPTY)} ({texts.chrf[name][place]:.1f})"
                        for name, translations in texts.translations.items()
                    ),
                ]
                for place in range(evaluation.test_set.sentences)
            ),
        ))  # fmt: skip
        yield "## Settings"
        yield "\n".join(f"- {_escaped(line)}" for line in settings_lines(evaluation))

    return "\n\n".join(block for block in blocks() if block) + "\n"


STYLE = """
:root {
  color-scheme: light dark;
  --line: #d5d8dd; --soft: #f3f4f6; --faint: #666d78; --warn: #8a4b00; --back: #fff3df;
}
@media (prefers-color-scheme: dark) {
  :root { --line: #3a3f47; --soft: #1f2227; --faint: #9aa1ac; --warn: #ffc98a; --back: #3a2a12; }
}
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid var(--line); padding: .35rem .6rem; text-align: left; vertical-align: top; }
th { background: var(--soft); }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.scores { width: auto; }
.faint, small { color: var(--faint); }
.empty { color: var(--faint); font-style: italic; }
.warning { background: var(--back); color: var(--warn); padding: .6rem .9rem; border-radius: .3rem; }
code { background: var(--soft); padding: .1rem .3rem; border-radius: .2rem; overflow-wrap: anywhere; }
tr:target { background: var(--soft); }
"""


NUMBER = ' class="number"'


def _cell(text: str) -> str:
    shown = html.escape(text) if text.strip() else f'<span class="empty">{EMPTY}</span>'
    return f'<td dir="auto">{shown}</td>'


def _heads(header: Iterable[str], *, numbers: int) -> str:
    """Heads of columns, the first ``numbers`` of which hold numbers."""
    return "".join(
        f'<th scope="col"{NUMBER if place < numbers else ""}>{html.escape(head)}</th>'
        for place, head in enumerate(header)
    )


def _html_table(heads: str, rows: Iterable[str], kind: str = "") -> Iterator[str]:
    yield f'<div class="scroll"><table{kind}><thead><tr>{heads}</tr></thead><tbody>'
    yield from rows
    yield "</tbody></table></div>"


def _html_scores(scores: Scores) -> Iterator[str]:
    heads = '<th scope="col">system</th>' + "".join(
        f'<th scope="col" class="number">{html.escape(direction(metric))}</th>' for metric in scores.signatures
    )

    def cell(score: Score) -> str:
        test = p_value(score)
        return f'<td class="number">{figures(score)}{f"<br><small>{test}</small>" if test else ""}</td>'

    rows = (
        f'<tr><th scope="row">{html.escape(name)}</th>{"".join(cell(by_metric[one]) for one in scores.signatures)}</tr>'
        for name, by_metric in scores.systems.items()
    )
    return _html_table(heads, rows, ' class="scores"')


def page(evaluation: Evaluation, texts: Texts) -> str:
    """Return the report as a page of HTML that needs nothing else, light or dark as the reader has it."""

    def paragraphs(lines: Iterable[str], kind: str = "") -> Iterator[str]:
        for line in lines:
            yield f"<p{kind}>{html.escape(line)}</p>"

    def parts() -> Iterator[str]:
        title = html.escape(_title(evaluation))
        yield f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>'
        yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
        yield f"<style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>"
        yield from paragraphs([set_line(evaluation)])
        yield "<ul>"
        for one in evaluation.systems:
            yield f"<li><strong>{html.escape(one.name)}</strong>: {html.escape(system_line(one))}</li>"
        yield "</ul>\n<h2>Scores</h2>"
        yield from _html_scores(evaluation.scores)
        yield from paragraphs(notes(evaluation), ' class="faint"')
        yield "<ul>"
        for name, signature in evaluation.scores.signatures.items():
            yield f"<li>{html.escape(name)} <code>{html.escape(signature)}</code></li>"
        yield "</ul>\n<h2>Overlap with training</h2>"
        trained_on = set(evaluation.overlap.numbers)
        yield from paragraphs(overlap_lines(evaluation), ' class="warning"' if trained_on else "")
        if evaluation.without_overlap:
            yield from paragraphs([without_line(evaluation.without_overlap) + ":"])
            yield from _html_scores(evaluation.without_overlap)
        columns = _columns(texts)
        for name, examples in evaluation.examples.items():
            for heading, chosen in (("Worst", examples.worst), ("Best", examples.best)):
                if chosen:
                    yield f"<h2>{heading} of {html.escape(name)} by sentence chrF</h2>"
                    yield from _html_table(
                        _heads(["line", "chrF", *columns, "translation"], numbers=2),
                        (
                            f'<tr><td class="number"><a href="#line-{one.number}">{one.number}</a></td>'
                            f'<td class="number">{one.chrf:.1f}</td>'
                            f"{''.join(map(_cell, _sentence(texts, one.number - 1)))}{_cell(one.translation)}</tr>"
                            for one in chosen
                        ),
                    )
        yield "<h2>All translations</h2>"
        if trained_on:
            yield '<p class="faint">† in training</p>'
        heads = _heads(["line", *columns], numbers=1) + "".join(
            f'<th scope="col">{html.escape(name)}</th><th scope="col" class="number">chrF</th>'
            for name in texts.translations
        )
        yield from _html_table(heads, (
            f'<tr id="line-{place + 1}"><td class="number">{place + 1}{"†" if place + 1 in trained_on else ""}</td>'
            f"{''.join(map(_cell, _sentence(texts, place)))}"
            + "".join(
                f'{_cell(translations[place])}<td class="number">{texts.chrf[name][place]:.1f}</td>'
                for name, translations in texts.translations.items()
            )
            + "</tr>"
            for place in range(evaluation.test_set.sentences)
        ))  # fmt: skip
        yield "<h2>Settings</h2>\n<ul>"
        for line in settings_lines(evaluation):
            yield f"<li>{html.escape(line)}</li>"
        yield "</ul>\n</body>\n</html>"

    return "\n".join(parts()) + "\n"
