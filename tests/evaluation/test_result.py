"""Examples of an evaluation: the sentences with the extreme scores."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nmt.evaluation.result import pick_examples


@given(st.lists(st.sampled_from([0.0, 10.0, 50.0, 100.0]), min_size=1, max_size=12), st.integers(0, 7))
def test_examples_are_the_extremes_and_none_is_shown_twice(scores: list[float], count: int) -> None:
    texts = [f"{n}" * (1 + n % 3) for n in range(len(scores))]
    examples = pick_examples(texts, texts, [texts], np.array(scores), count)
    worst, best = ([example.number for example in side] for side in (examples.worst, examples.best))
    assert not set(worst) & set(best)
    assert len(worst) + len(best) == min(2 * count, len(scores))
    unpicked = [scores[n] for n in range(len(scores)) if n + 1 not in {*worst, *best}]
    assert all(example.chrf <= score for example in examples.worst for score in unpicked)
    assert all(example.chrf >= score for example in examples.best for score in unpicked)
    for example in examples.worst:
        assert texts[example.number - 1] == example.translation == example.source == example.references[0]
