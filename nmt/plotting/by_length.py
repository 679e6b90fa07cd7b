"""Scores against source length, a curve for each system."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from nmt.plotting.style import style_curves

# Markers and lines tell the systems apart in grey. Their numbers have no common factor, so 36 systems differ.
MARKERS = ("o", "s", "^", "D", "v", "X", "P", "<", ">")
LINES = ("-", "--", ":", "-.")
# Colours of Okabe and Ito 2008 without yellow, for colour-blind readers.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#000000", "#cc79a7", "#56b4e9", "#e69f00")
LEGEND_WIDTH, HANDLE_WIDTH = 105, 9  # in characters: a row of the legend, the line before a name


def draw_by_length(
    figure: Figure,
    title: str,
    lengths: Sequence[str],
    sentences: Sequence[int],
    scores: Mapping[str, Mapping[str, Sequence[float]]],
) -> None:
    """Draw the scores of systems in G buckets of source length, a panel for each metric.

    Args:
        figure: empty figure.
        title: text above the panels.
        lengths: range of words of each bucket, such as "4-8", in rising order [G].
        sentences: number of sentences of each bucket [G].
        scores: score in each bucket [G], by name of the metric, then by name of the system.
    """
    figure.suptitle(title, x=0.01, horizontalalignment="left", fontsize="large", wrap=True, parse_math=False)
    ticks = [f"{length}\n({count:,})" for length, count in zip(lengths, sentences, strict=True)]
    panels = figure.subplots(1, len(scores), squeeze=False)[0]
    for axes, (metric, by_system) in zip(panels, scores.items(), strict=True):
        for number, values in enumerate(by_system.values()):
            marker, line, color = (styles[number % len(styles)] for styles in (MARKERS, LINES, COLORS))
            axes.plot(
                range(len(ticks)), values, marker=marker, linestyle=line, color=color, markersize=8,
                markeredgecolor="white", linewidth=1.6,
            )  # fmt: skip
        axes.set_title(metric, loc="left")
        axes.set_xlabel("source length in words (number of sentences)")
        axes.set_xticks(range(len(ticks)), ticks)
        axes.margins(x=0.08)
        axes.yaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
        style_curves(axes)
    names = list(next(iter(scores.values())))
    columns = max(1, LEGEND_WIDTH // (HANDLE_WIDTH + max(map(len, names))))
    legend = figure.legend(
        panels[0].get_lines(), names, loc="outside lower center", ncols=min(columns, len(names)), frameon=False,
        fontsize="small", handlelength=3.5,
    )  # fmt: skip
    for text in legend.get_texts():
        text.set_parse_math(False)  # a path may hold dollar signs
