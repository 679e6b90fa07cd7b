"""The figure of scores by source length shows every number, and tells systems apart without colour."""

import numpy as np
import pytest
from appearance import problems

from nmt.evaluation.scoring import LengthBucket, Score, Scores
from nmt.plotting.comparison import draw_by_length
from nmt.plotting.style import empty_figure

BUCKETS = [(1, 2, 245), (3, 3, 1485), (4, 5, 270)]


@pytest.mark.parametrize(
    "systems",
    [
        ["base:best", "_out.de", "$x$/\\frac/$y$", "a/" * 20 + "long.de", "W" * 200 + ".de"],
        ["n" * 29 + str(number) for number in range(9)],
        [f"run-{number}" for number in range(36)],
    ],
)
def test_each_panel_has_the_scores_of_a_metric_over_the_buckets_with_names_as_they_are(systems: list[str]) -> None:
    scores = {
        metric: {system: [top - number, top - 2.5 * number, 1.0] for number, system in enumerate(systems)}
        for metric, top in (("BLEU", 40.0), ("chrF2", 70.0))
    }
    figure = empty_figure()
    buckets = [
        LengthBucket(shortest=shortest, longest=longest, scores=Scores(
            sentences=sentences, signatures=dict.fromkeys(scores, ""),
            systems={name: {metric: Score(score=scores[metric][name][place]) for metric in scores} for name in systems},
        ))
        for place, (shortest, longest, sentences) in enumerate(BUCKETS)
    ]  # fmt: skip
    draw_by_length(figure, "test split of pairs · 2,000 sentences · 2026-01-31", buckets)
    assert problems(figure) == []
    for axes, (metric, by_system) in zip(figure.axes, scores.items(), strict=True):
        assert axes.get_title(loc="left") == metric
        assert [label.get_text() for label in axes.get_xticklabels()] == ["1-2\n(245)", "3\n(1,485)", "4-5\n(270)"]
        assert [np.asarray(line.get_ydata()).tolist() for line in axes.get_lines()] == list(by_system.values())
        assert len({(line.get_marker(), line.get_linestyle()) for line in axes.get_lines()}) == len(systems)
        assert axes.get_window_extent().height > 200
    legend = figure.legends[0].get_texts()
    assert not any(text.get_parse_math() for text in legend)
    *shown, last = [text.get_text() for text in legend]
    assert shown == systems[:-1]
    assert last == systems[-1] or ("…" in last and last.endswith("W.de")), "a name wider than the figure is cut"
