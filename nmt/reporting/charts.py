"""Small versions of the ``nmt plot`` figures for HTML reports, as SVG in the colours and the font of the page."""

import contextlib
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import matplotlib as mpl
import numpy as np
from markupsafe import Markup
from matplotlib.figure import Figure

from nmt.errors import NotFoundError
from nmt.evaluation.result import StressRow
from nmt.evaluation.scoring import LengthBucket
from nmt.plotting import style
from nmt.plotting.attention import draw_attention
from nmt.plotting.comparison import METRICS, draw_by_length, draw_comparison
from nmt.plotting.curves import draw_accuracy, draw_bleu, draw_corpora, draw_losses, draw_schedule, draw_speed
from nmt.plotting.fonts import missing_characters_as_boxes
from nmt.plotting.style import COLORS, FAINT_INK, INK, empty_figure
from nmt.runs.calibration import Calibration
from nmt.runs.directory import Run
from nmt.runs.metrics import StepValidation

DRAWN_BY_EPOCH = {"loss", "accuracy", "bleu", "chrf", "train-loss", "train-accuracy", "learning-rate"}
SIZE = 4.6, 3.8  # inches, with the title; text in a figure is then about as large as on the page
# Style sheet variables that replace the colours of figures, so that figures follow the light or dark page.
VARIABLES = {
    **{color.lower(): f"--s{number}" for number, color in enumerate(COLORS)},
    **dict.fromkeys((INK, "#000000"), "--ink"), **dict.fromkeys((FAINT_INK, "#b0b0b0", "#8a929a"), "--muted"),
    "#ffffff": "--sheet",
}  # fmt: skip


def curve_figures(runs: Sequence[Run]) -> Iterator[tuple[str, Markup]]:
    """Yield title and figure of each curve of a run, or of several compared runs. Curves without points are left out.

    A single run with several epochs is drawn by epoch if it was validated only at their ends. Otherwise, curves are by
    step.
    """
    run, several = runs[0], len(runs) > 1
    has_step_validations = any(isinstance(record, StepValidation) for record in run.metrics())
    draws: list[Callable[[Figure], None]] = []
    by_epoch = not several and not has_step_validations and len(run.epochs()) > 1
    if by_epoch:
        draws += [partial(draw, run=run) for draw in (draw_losses, draw_accuracy, draw_bleu, draw_schedule)]
    for name, metric in METRICS.items():
        field = metric.step_field or metric.epoch_field or ""
        measured = [run for run in runs if any(getattr(record, field, None) is not None for record in run.metrics())]
        if measured and not (by_epoch and name in DRAWN_BY_EPOCH):
            draws.append(partial(draw_comparison, runs=measured, metric=name, by="steps"))
    if not several:
        draws += [partial(draw_corpora, run=run), partial(draw_speed, run=run)]
    for draw in draws:
        figure = _small_figure()
        with contextlib.suppress(NotFoundError):  # no points yet
            draw(figure)
            title = figure.texts[0].get_text().replace("\n", " ")
            yield title, as_svg(figure, f"{title}: {', '.join(run.name for run in runs)}")


def length_figures(buckets: Sequence[LengthBucket]) -> Iterator[tuple[str, Markup]]:
    """Yield title and figure of each metric by source length."""
    for metric in buckets[0].scores.signatures if len(buckets) > 1 else ():
        figure, title = _small_figure(), f"{metric} by source length"
        draw_by_length(figure, "", buckets, [metric])
        figure.axes[0].set_title("", loc="left")  # the page shows the title above the figure
        yield title, as_svg(figure, f"{title}: {', '.join(buckets[0].scores.systems)}")


def stress_figures(stress: Mapping[str, Sequence[StressRow]]) -> Iterator[tuple[str, Markup]]:
    """Yield title and figure for each system: BLEU of each variant in percent of plain BLEU, as bars."""
    for name, rows in stress.items():
        shares = {row.variant: row.share for row in rows if row.share is not None}
        if not shares:
            continue
        figure, title = _small_figure(), f"BLEU of {name} in % of plain"
        figure.set_figheight(0.7 + 0.23 * len(shares))
        axes = style.add_axes(figure, "% of plain", "")
        axes.barh([*shares], [*shares.values()], color=COLORS[0])
        for place, share in enumerate(shares.values()):
            end = 100 if 85 < share < 100 else share  # next to the line at 100, not on it
            axes.text(end + 1.5, place, f"{share:.0f}", va="center", fontsize=style.SMALL, color=INK)
        axes.axvline(100, color=FAINT_INK, linewidth=1)
        axes.grid(visible=False, axis="y")
        axes.invert_yaxis()
        axes.margins(x=0.1, y=0.01)
        yield title, as_svg(figure, title)


def reliability_figures(name: str, calibration: Calibration) -> Iterator[tuple[str, Markup]]:
    """Yield title and figure of a run's reliability diagrams: observed against predicted probability."""
    for unit, reliability in (("sentences", calibration.sentences), ("words", calibration.words)):
        figure, title = _small_figure(), f"Confidence of {unit} of {name}"
        axes = style.add_axes(figure, "probability", "share that is true")
        axes.plot([0, 1], [0, 1], color=FAINT_INK, linewidth=1)
        axes.plot(reliability.predicted, reliability.observed, color=COLORS[0], marker="o")
        yield title, as_svg(figure, title)


def attention_figure(weights: np.ndarray, source: Sequence[str], target: Sequence[str]) -> Markup:
    """Return the attention map of T target tokens to S source tokens; empty without target tokens.

    Args:
        weights: attention weights, float [T, S].
        source: S tokens, the columns.
        target: T tokens, the rows.
    """
    if not weights.size:
        return Markup("")
    figure = empty_figure()
    draw_attention(figure, [("", weights)], ("target", target), ("source", source), "", "")
    return as_svg(figure, f"Attention of {' '.join(target)} to {' '.join(source)}")


def _small_figure() -> Figure:
    figure = empty_figure()
    figure.set_size_inches(*SIZE)
    return figure


def as_svg(figure: Figure, label: str) -> Markup:
    """Return a figure without its title as an SVG element.

    The security policy of the page forbids inline styles, so they become SVG attributes.

    Args:
        figure: the figure.
        label: description for screen readers. It also makes the ids of the figure's parts unique on the page.
    """
    for title in figure.texts:
        title.set_visible(False)
    file = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": label}), missing_characters_as_boxes():
        figure.savefig(file, format="svg", transparent=True, bbox_inches="tight", pad_inches=0.03)
    drawing = "<svg" + file.getvalue().partition("<svg")[2]
    drawing = re.sub(r"<(metadata|style)\b(?:(?!<\1).)*?</\1>", "", drawing, flags=re.DOTALL)
    drawing = re.sub(r"<[^<>]*>", lambda tag: _in_colours_of_page(tag[0]), drawing)  # matplotlib escapes > in text
    return Markup(drawing.replace("<svg", Markup('<svg role="img" aria-label="{}"').format(label), 1))


def _in_colours_of_page(tag: str) -> str:
    """Return an SVG tag with attributes instead of styles, and with the colours of the style sheet."""
    tag = re.sub(r' id="[\w.]+_\d+"| xmlns\S+', "", tag)
    tag = re.sub(
        r'style="([^"]*)"',
        lambda style: " ".join(
            f'{name}="{value}"' for name, _, value in (part.partition(": ") for part in style[1].split("; "))
            if name != "font-family"
        ),
        tag,
    )  # fmt: skip
    return re.sub(
        '#[0-9a-f]{6}(?=")', lambda color: f"var({VARIABLES[color[0]]})" if color[0] in VARIABLES else color[0], tag
    )
