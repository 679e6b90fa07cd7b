"""What the numbers of runs say, in a sentence."""

from collections.abc import Sequence

from nmt.evaluation.result import EvaluationRecord
from nmt.evaluation.scoring import Score
from nmt.evaluation.text import SIGNIFICANT
from nmt.reporting.facts import METRIC_NAMES, RunFacts, duration, value_text
from nmt.runs.metrics import EpochMetrics, Validation


def verdict(runs: Sequence[RunFacts], records: Sequence[EvaluationRecord]) -> str:
    """Return the result of a run, or of the comparison of runs, in a sentence."""
    if len(runs) == 1:
        return _verdict_of_run(runs[0], records)
    names = {facts.name for facts in runs}
    scored = next((record for record in records if names <= {system.run for system in record.systems}), None)
    return _by_scores(scored) if scored else _by_validation(runs)


def _verdict_of_run(facts: RunFacts, records: Sequence[EvaluationRecord]) -> str:
    best, by = facts.best, facts.config.training.best_by
    if best is None:
        return f"Run {facts.name} has not finished an epoch yet, so its quality is unknown."
    seconds = sum(epoch.seconds for epoch in facts.epochs if epoch.step <= best.step)
    sentence = (
        f"Run {facts.name} reached its best validation {METRIC_NAMES[by]}, {value_text(best, by)}, {_place(best)}"
        f"{', its last' if best is facts.validations[-1] else f' of {len(facts.epochs)}'}"
        f"{f', after {duration(seconds)} of training' if isinstance(best, EpochMetrics) else ''}"
    )
    for record in records:
        metric, score = next(iter(next(iter(record.scores.systems.values())).items()))
        return f"{sentence}, and scores {metric} {_with_interval(score)} on {_test_set(record)}."
    return f"{sentence}."


def _place(best: Validation) -> str:
    return f"in epoch {best.epoch}" if isinstance(best, EpochMetrics) else f"at step {best.step:,}"


def _test_set(record: EvaluationRecord) -> str:
    dataset = record.test_set.dataset
    return f"the test split of {dataset}" if dataset else f"{record.test_set.sentences:,} test sentences"


def _by_scores(record: EvaluationRecord) -> str:
    metric = next(iter(record.scores.signatures))
    scores = {name: by_metric[metric] for name, by_metric in record.scores.systems.items()}
    ranked = sorted(scores, key=lambda name: scores[name].score, reverse=metric != "TER")
    first, second = ranked[:2]
    baseline = record.systems[0].name
    p_value = scores[first].p_value if second == baseline else scores[second].p_value if first == baseline else None
    test = f"; differences are tested from {baseline}" if len(ranked) > 2 else ""
    if p_value is not None:
        verb = "is significant" if p_value < SIGNIFICANT else "may be chance"
        test = f": the difference {verb} (p = {p_value:.3f})"
    return (
        f"Of {len(ranked)} runs, {first} has the best {metric} on {_test_set(record)}, "
        f"{_with_interval(scores[first])}, before {second} with {_with_interval(scores[second])}{test}."
    )


def _by_validation(runs: Sequence[RunFacts]) -> str:
    if len({facts.manifest.fingerprint for facts in runs}) > 1:
        return (
            f"The {len(runs)} runs were trained on different datasets, so their validation scores are not comparable."
        )
    bests = {facts.name: facts.best for facts in runs if facts.best}
    if missing := [facts.name for facts in runs if facts.name not in bests]:
        return f"Not all runs can be compared: {', '.join(missing)} has not finished an epoch yet."
    first, second = sorted(bests, key=lambda name: bests[name].validation_accuracy, reverse=True)[:2]
    return (
        f"Of {len(runs)} runs, {first} reached the best validation accuracy, {value_text(bests[first], 'accuracy')} "
        f"{_place(bests[first])}, before {second} with {value_text(bests[second], 'accuracy')} {_place(bests[second])}."
    )


def _with_interval(score: Score) -> str:
    """Return a score with half the width of its confidence interval, if it has one."""
    return f"{score.score:.1f}" + ("" if score.ci is None else f" ± {score.ci:.1f}")
