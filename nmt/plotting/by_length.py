"""Scores against source length, a curve for each system."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from nmt.plotting.style import INK, SMALL, TEXT, add_legend, add_title, curve, make_room_for_legend, style_curves


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
        title: test set and date.
        lengths: range of words of each bucket, such as "4-8", in rising order [G].
        sentences: number of sentences of each bucket [G].
        scores: score in each bucket [G], by name of the metric, then by name of the system.
    """
    make_room_for_legend(figure, list(next(iter(scores.values()))))
    add_title(figure, "Scores by source length", title)
    ticks = [f"{length}\n({count:,})" for length, count in zip(lengths, sentences, strict=True)]
    panels = figure.subplots(1, len(scores), squeeze=False)[0]
    for axes, (metric, by_system) in zip(panels, scores.items(), strict=True):
        for number, values in enumerate(by_system.values()):
            axes.plot(range(len(ticks)), values, **curve(number, len(ticks)))
        axes.set_title(metric, loc="left", fontsize=TEXT, color=INK)
        axes.set_xlabel("source length in words (number of sentences)", fontsize=SMALL, color=INK)
        axes.set_xticks(range(len(ticks)), ticks)
        axes.margins(x=0.08)
        axes.yaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
        style_curves(axes)
    add_legend(figure, panels[0].get_lines(), list(next(iter(scores.values()))))
