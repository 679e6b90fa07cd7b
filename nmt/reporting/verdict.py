"""What the numbers of runs say, in a sentence."""

from collections.abc import Sequence

from nmt.evaluation.result import EvaluationRecord
from nmt.evaluation.scoring import Score
from nmt.reporting.facts import ABSENT, METRIC_NAMES, Clock, RunFacts
from nmt.runs.metrics import EpochMetrics, Validation

SIGNIFICANT = 0.05


def verdict(runs: Sequence[RunFacts], records: Sequence[EvaluationRecord]) -> str:
    """Return the result of a run, or of the comparison of runs, in a sentence."""
    if len(runs) == 1:
        return _verdict_of_run(runs[0], records)
    scored = next((record for record in records if _covers(record, runs)), None)
    return _by_scores(scored) if scored else _by_validation(runs)


def _covers(record: EvaluationRecord, runs: Sequence[RunFacts]) -> bool:
    return {facts.name for facts in runs} <= {system.run for system in record.systems}


def _verdict_of_run(facts: RunFacts, records: Sequence[EvaluationRecord]) -> str:
    best, by = facts.best, facts.config.training.best_by
    if best is None:
        return f"Run {facts.name} has not finished an epoch yet, so its quality is unknown."
    last = facts.validations[-1]
    when = f"{_place(best)}, its last" if best is last else f"{_place(best)} of {len(facts.epochs)}"
    [minutes] = Clock(facts).at("minutes", [best.step])
    sentence = (
        f"Run {facts.name} reached its best validation {METRIC_NAMES[by]}, {value_text(best, by)}, {when}"
        f"{f', after {duration(60 * minutes)} of training' if minutes else ''}"
    )
    for record in records:
        for system in record.systems:
            if system.run == facts.name:
                scores = record.scores.systems[system.name]
                metric = next(iter(scores))
                return f"{sentence}, and scores {metric} {with_interval(scores[metric])} on {_test_set(record)}."
    return f"{sentence}."


def _place(best: Validation) -> str:
    if isinstance(best, EpochMetrics):
        return f"in epoch {best.epoch}"
    return f"at step {best.step:,}"


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
    kind = "runs" if all(system.run and not system.export for system in record.systems) else "systems"
    test = ""
    if p_value is not None:
        verb = "is significant" if p_value < SIGNIFICANT else "may be chance"
        test = f": the difference {verb} (p = {p_value:.3f})"
    elif len(ranked) > 2:  # the two best were not tested against each other
        test = f"; differences are tested from {baseline}"
    return (
        f"Of {len(ranked)} {kind}, {first} has the best {metric} on {_test_set(record)}, "
        f"{with_interval(scores[first])}, before {second} with {with_interval(scores[second])}{test}."
    )


def _by_validation(runs: Sequence[RunFacts]) -> str:
    trained = [facts for facts in runs if facts.best]
    if len({facts.manifest.fingerprint for facts in runs}) > 1:
        return (
            f"The {len(runs)} runs were trained on different datasets, so their validation scores are not comparable."
        )
    if len(trained) < len(runs):
        missing = ", ".join(facts.name for facts in runs if not facts.best)
        return f"Not all of the {len(runs)} runs can be compared: {missing} has not finished an epoch yet."
    bests = {facts.name: facts.best for facts in trained if facts.best}
    ranked = sorted(bests, key=lambda name: bests[name].validation_accuracy, reverse=True)
    first, second = ranked[:2]
    return (
        f"Of {len(runs)} runs, {first} reached the best validation accuracy, {value_text(bests[first], 'accuracy')} "
        f"{_place(bests[first])}, before {second} with {value_text(bests[second], 'accuracy')} {_place(bests[second])}."
    )


def value_text(validation: Validation, by: str) -> str:
    """Return a score of a validation as text."""
    value = getattr(validation, f"validation_{by}")
    if value is None:
        return ABSENT
    return f"{value:.1%}" if by == "accuracy" else f"{value:.3f}" if by == "loss" else f"{value:.1f}"


def with_interval(score: Score) -> str:
    """Return a score with half the width of its confidence interval, if it has one."""
    return f"{score.score:.1f}" + ("" if score.ci is None else f" ± {score.ci:.1f}")


def duration(seconds: float) -> str:
    """Return a duration in words of at most two units."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return f"{hours / 24:.1f} days"
