"""Choice among the candidates of a line: by agreement, by the teachers' own scores, or by the run that learns."""

import math
from collections.abc import Callable, Sequence

from nmt.data.sources.formats import Pair
from nmt.decoding.minimum_risk import by_expected_chrf
from nmt.decoding.pair_scores import mean_log_probabilities
from nmt.decoding.sentence_translator import SentenceTranslator
from nmt.errors import NmtError
from nmt.message import Argument
from nmt.runs.weights import find_members
from nmt.teachers.teacher import Candidate

AGREEMENT, SCORE, CONFIDENCE = "agreement", "score", "confidence"
"""Ways to choose; the name of a run is another one."""

Choose = Callable[[Sequence[str], Sequence[Sequence[Candidate]]], list[Candidate]]
"""Function of lines and their candidates that returns the chosen candidate of each line."""


def chooser(way: str, *, forward: bool) -> Choose:
    """Return the function that chooses in one of these ways.

    Args:
        way: ``AGREEMENT``: the candidate that is most like all of them (minimum Bayes risk with chrF). ``SCORE`` or
            ``CONFIDENCE``: the one to which its teacher gives the highest score. Otherwise the name of a run: the one
            with the highest mean log-probability under this run.
        forward: whether the lines are the sources of the pairs that the run learns from.

    Raises:
        NotFoundError: if there is no such run.
    """
    if way == AGREEMENT:
        return lambda lines, candidates: [_most_alike(of_line) for of_line in candidates]
    if way in (SCORE, CONFIDENCE):
        return lambda lines, candidates: [_highest(of_line, _own_scores(of_line, way)) for of_line in candidates]
    (run, epoch), *members = find_members(way, None)
    learner = SentenceTranslator.open(run, epoch, None, members)

    def choose(lines: Sequence[str], candidates: Sequence[Sequence[Candidate]]) -> list[Candidate]:
        pairs = [
            Pair(line, candidate.text) if forward else Pair(candidate.text, line)
            for line, of_line in zip(lines, candidates, strict=True)
            for candidate in of_line
        ]
        scores = iter(mean_log_probabilities(learner, *map(list, zip(*pairs, strict=True))))
        return [
            _highest(of_line, [next(scores) or -math.inf for _ in of_line])  # 0: too long for the run
            for of_line in candidates
        ]

    return choose


def _most_alike(candidates: Sequence[Candidate]) -> Candidate:
    usable = [candidate for candidate in candidates if not candidate.problem] or candidates
    [best, *_] = by_expected_chrf([candidate.text for candidate in usable])
    return usable[best]


def _highest(candidates: Sequence[Candidate], scores: Sequence[float]) -> Candidate:
    """Return the candidate without a problem that has the highest score; if all have one, the first candidate."""
    usable = [index for index, candidate in enumerate(candidates) if not candidate.problem]
    return candidates[max(usable, key=lambda index: scores[index], default=0)]


def _own_scores(candidates: Sequence[Candidate], way: str) -> list[float]:
    """Return the scores that teachers gave to candidates; raises NmtError if a teacher gives none."""
    scores = [candidate.score for candidate in candidates if not candidate.problem]
    if None in scores:
        raise NmtError(
            Argument("choose", way),
            " compares scores, and one of the teachers gives none. Leave this teacher out, or choose by ",
            Argument("choose", AGREEMENT),
            ".",
        )
    return [candidate.score or 0.0 for candidate in candidates]
