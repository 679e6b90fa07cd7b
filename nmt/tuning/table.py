"""Table of a tuning: each candidate, what it changes, its score in each rung, and what became of it."""

import textwrap
from typing import Any

from nmt.config.schema import Config
from nmt.tuning.record import Trial, TuningRecord, Verdict
from nmt.tuning.space import BASE, Candidate

GAP = "  "
LONGEST_REASON = 100
LONG_ENOUGH = 0.5
"""Training time of the last rung, in times of that of the base, below which a note is due."""


def flat(config: Config) -> dict[str, Any]:
    """Return a configuration as values by full key."""
    sections = config.model_dump(mode="json")
    return {f"{section}.{key}": value for section, keys in sections.items() for key, value in keys.items()}


def table(record: TuningRecord, columns: int) -> list[str]:
    """Return the lines of the table, the candidates that came furthest first."""
    rungs = range(len(record.rungs))
    headings = ["#", *(f"rung {rung + 1}" for rung in rungs), "min", "outcome", "changes"]
    rows = [headings, *([*_cells(record, candidate), _changes(record, candidate)] for candidate in in_order(record))]
    widths = [max(len(row[column]) for row in rows) for column in range(len(headings) - 1)]
    lines = []
    for row in rows:
        cells = [f"{cell:>{width}}" for cell, width in zip(row[:-2], widths[:-1], strict=True)]
        head = GAP.join([*cells, f"{row[-2]:{widths[-1]}}"]) + GAP
        room = columns - len(head)
        if room >= 20:
            lines += textwrap.wrap(row[-1], columns, initial_indent=head, subsequent_indent=" " * len(head))
        else:
            lines += [head.rstrip(), *textwrap.wrap(row[-1], columns, initial_indent=GAP, subsequent_indent=GAP)]
    lengths = ", ".join(
        f"{_minutes(rung.training_seconds)} in rung {place + 1}" for place, rung in enumerate(record.rungs)
    )
    about = f"Scores are BLEU of {record.sentences:,} validation sentences, greedy. Each trial trained {lengths}."
    lines += textwrap.wrap(about, columns)
    return [line.rstrip() for line in lines]


def in_order(record: TuningRecord) -> list[Candidate]:
    """Return the candidates, those that came furthest first, and among these the best first."""

    def rank(candidate: Candidate) -> tuple[float, ...]:
        trials = _trials(record, candidate)
        last = max(trials, default=-1)
        score = trials[last].score if trials else None
        return -last, *((-score.bleu, -score.chrf) if score else (1.0, 1.0)), candidate.number

    return sorted(record.candidates, key=rank)


def conclusion(record: TuningRecord, verdict: Verdict) -> list[str]:
    """Return in a sentence or two whether a candidate is better than the base."""
    lines = _comparison(record, verdict)
    base, rung = record.speeds[str(BASE)], record.rungs[-1]
    whole = base.step_seconds * base.epoch_steps * record.config.training.epochs
    if rung.training_seconds < LONG_ENOUGH * whole:
        lines.append(
            f"The trials of the last rung trained for {_minutes(rung.training_seconds)}, the recipe trains for "
            f"{_minutes(whole)}. Longer training can prefer more dropout and a larger model; more --minutes tell."
        )
    return lines


def _comparison(record: TuningRecord, verdict: Verdict) -> list[str]:
    number = len(record.rungs) - 1
    scores = record.rungs[number].scores
    if verdict.candidate == BASE:
        return ["No candidate is better than the recipe: none of them was trained to the end."]
    text = record.candidates[verdict.candidate].text
    found = scores[verdict.candidate].bleu
    if BASE not in scores:
        base = record.trial(BASE, number)
        return [
            f"Better than the recipe, which failed ({base.failure if base else 'not tried'}): {text}: BLEU {found:.1f}."
        ]
    compared = f"BLEU {found:.1f} against {scores[BASE].bleu:.1f} of the recipe, p = {_p_value(verdict.p_value)}"
    about = f"(paired bootstrap on {record.sentences:,} validation sentences)"
    if verdict.is_better:
        return [f"Better than the recipe: {text}: {compared} {about}."]
    return [f"No candidate is better than the recipe. The best of them, {text}, has {compared} {about}."]


def json_of(record: TuningRecord, best: str) -> dict[str, Any]:
    """Return all of it as JSON values; ``best``: path of the best configuration."""
    verdict = record.verdict
    return {
        "dataset": record.dataset,
        "origin": record.origin,
        "minutes": record.minutes,
        "spent_minutes": record.spent / 60,
        "sentences": record.sentences,
        "rungs": [{"training_seconds": rung.training_seconds, "trials": len(rung.trials)} for rung in record.rungs],
        "candidates": [_json_of_candidate(record, candidate) for candidate in in_order(record)],
        "verdict": verdict.model_dump(mode="json") if verdict else None,
        "conclusion": conclusion(record, verdict) if verdict else None,
        "best": best,
    }


def _json_of_candidate(record: TuningRecord, candidate: Candidate) -> dict[str, Any]:
    trials = _trials(record, candidate)
    return {
        "number": candidate.number,
        "changes": candidate.changes,
        "outcome": _outcome(record, candidate),
        "trials": [{"rung": rung + 1, **trial.model_dump(mode="json")} for rung, trial in trials.items()],
    }


def _trials(record: TuningRecord, candidate: Candidate) -> dict[int, Trial]:
    """Return the trials of a candidate that have begun, by rung."""
    found = {rung: record.trial(candidate.number, rung) for rung in range(len(record.rungs))}
    return {rung: trial for rung, trial in found.items() if trial and (trial.steps or trial.is_done)}


def _cells(record: TuningRecord, candidate: Candidate) -> list[str]:
    """Return the cells of a candidate before its changes."""
    trials = _trials(record, candidate)
    scores = [_score(trials[rung]) if rung in trials else "" for rung in range(len(record.rungs))]
    minutes = sum(trial.seconds for trial in trials.values()) / 60
    return [str(candidate.number), *scores, f"{minutes:.1f}", _outcome(record, candidate)]


def _changes(record: TuningRecord, candidate: Candidate) -> str:
    """Return the changes of a candidate, and why it failed if it did."""
    failures = [trial.failure for trial in _trials(record, candidate).values() if trial.failure]
    reason = textwrap.shorten(failures[0], LONGEST_REASON, placeholder=" ...") if failures else ""
    return f"{candidate.text}: {reason}" if reason else candidate.text


def _score(trial: Trial) -> str:
    if trial.failure:
        return "failed"
    return "..." if trial.bleu is None else f"{trial.bleu:.1f}"


def _outcome(record: TuningRecord, candidate: Candidate) -> str:
    """Return what became of a candidate."""
    trials, verdict = _trials(record, candidate), record.verdict
    if any(trial.failure for trial in trials.values()) and candidate.number != BASE:
        return "failed"
    if verdict and candidate.number == verdict.candidate != BASE:
        return "better" if verdict.is_better else "best of them"
    if candidate.number == BASE or not trials:
        return ""
    last = max(trials)
    return f"out after rung {last + 1}" if last + 1 < len(record.rungs) else ""


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.1f} min"


def _p_value(value: float | None) -> str:
    return "unknown" if value is None else "0.001 or less" if value <= 0.001 else f"{value:.3f}"
