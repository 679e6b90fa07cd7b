"""Tuner: successive halving from its plan to its verdict. Each decision is recorded before it is acted on."""

import time
from collections.abc import Callable
from typing import Any, Protocol

from nmt.config.schema import Config
from nmt.errors import NmtError
from nmt.evaluation.scoring import DEFAULT_RESAMPLES, DEFAULT_TOKENIZATION, score_systems
from nmt.tuning import plan
from nmt.tuning.record import Rung, Speed, Trial, TuningFolder, TuningRecord, Verdict
from nmt.tuning.runner import TrialFailedError, TrialPlan, TrialRunner
from nmt.tuning.space import BASE, Candidate, candidates, combined, costs_as_base, valid, with_changes

SIGNIFICANT = 0.05
"""A difference counts if its p-value is below."""
RECORD_SECONDS = 20
"""Seconds between two records of the time spent; a process that is killed loses count of as much."""
MOST_CHARACTERS = 300
"""Of the reason of a failure."""


class Observer(Protocol):
    """Observer of a tuning."""

    def on_measure(self) -> None:
        """The speed of the base is measured."""

    def on_plan(self, record: TuningRecord) -> None:
        """The plan is made."""

    def on_rung(self, record: TuningRecord) -> None:
        """A rung begins, or goes on."""

    def on_trial(self, record: TuningRecord, candidate: Candidate) -> None:
        """A trial begins, or goes on."""

    def on_step(self, step: int, steps: int, left: float) -> None:
        """N steps of a trial are taken, of all of them; ``left``: seconds of the budget."""

    def on_trial_end(self, record: TuningRecord, trial: Trial) -> None:
        """A trial has ended."""


class Tuner:
    """A tuning, new or resumed, on its way to its verdict."""

    def __init__(
        self,
        folder: TuningFolder,
        record: TuningRecord,
        runner: TrialRunner,
        observer: Observer,
        check: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the folder, its record, what runs trials and what observes them.

        Args:
            folder: folder of the tuning.
            record: its record.
            runner: runs trials.
            observer: is told of trials.
            check: is called often, and raises StopRequested to break off.
            clock: seconds from any start.
        """
        self.folder, self.record, self.runner, self.observer = folder, record, runner, observer
        self.check, self.clock = check, clock
        self.base = record.config
        self._counted = self._saved = clock()
        self._running: tuple[int, int] | None = None  # rung and place of the trial

    def tune(self) -> Verdict:
        """Run all trials that are left, and return the verdict.

        Raises:
            NmtError: if the budget is too small, or no trial succeeds.
            StopRequested: from ``check``; the record is then written.
        """
        try:
            if not self.record.shape:
                self._make_plan()
            self.observer.on_plan(self.record)
            for number in range(len(self.record.shape)):
                if number == len(self.record.rungs):
                    self._begin_rung()
                self._run_rung(number)
                if not any(trial.candidate != BASE and trial.score for trial in self.record.rungs[number].trials):
                    break  # nothing is left to compare with the base
            if self.record.verdict is None:
                self._update(verdict=self._decide())
        finally:
            self._save()
        if self.record.verdict is None:
            raise RuntimeError("the tuning has ended without a verdict")
        return self.record.verdict

    # --- the record

    def _update(self, **changes: Any) -> None:
        self._count()
        self.record = self.record.model_copy(update=changes)
        self._save()

    def _save(self) -> None:
        self._count()
        self.folder.write(self.record)
        self._saved = self._counted

    def _count(self) -> None:
        """Count the time since it was last counted, for the whole and for the running trial."""
        now = self.clock()
        passed, self._counted = now - self._counted, now
        self.record = self.record.model_copy(update={"spent": self.record.spent + passed})
        if self._running:
            number, place = self._running
            trial = self.record.rungs[number].trials[place]
            self._replace(number, place, trial.model_copy(update={"seconds": trial.seconds + passed}))

    def _replace(self, number: int, place: int, trial: Trial) -> None:
        rungs = list(self.record.rungs)
        trials = list(rungs[number].trials)
        trials[place] = trial
        rungs[number] = rungs[number].model_copy(update={"trials": trials})
        self.record = self.record.model_copy(update={"rungs": rungs})

    def _set_trial(self, number: int, place: int, **changes: Any) -> None:
        self._replace(number, place, self.record.rungs[number].trials[place].model_copy(update=changes))
        self._save()

    @property
    def left(self) -> float:
        """Seconds of the budget that are left."""
        return 60 * self.record.minutes - self.record.spent

    # --- plan and rungs

    def _make_plan(self) -> None:
        self.observer.on_measure()
        try:
            measured = self.runner.measure(
                plan.trial_config(self.base, 1, 1, 1), lambda _: self.check(), translate=True
            )
        except TrialFailedError as error:
            raise NmtError(f"The recipe cannot be trained: {error.args[0]}") from None
        speed = measured.speed
        found = candidates(self.base, max(plan.FIRST_RUNGS), self.base.training.seed)
        self._count()
        overhead = measured.seconds
        shape = plan.shape(len(found) - 1, self.left, overhead, speed.step_seconds, speed.epoch_steps)
        if not shape:
            least = (self.record.spent + plan.least_budget(overhead, speed.step_seconds)) / 60
            raise NmtError(
                f"--minutes {self.record.minutes:g} is too short: it has to hold two trials, which need about "
                f"{least:.1f} minutes here. Give --minutes {-(-least // 1):g} or more."
            )
        count = 1 + shape[0]
        self._update(
            speeds={str(BASE): speed}, overhead=overhead, shape=shape, candidates=found[:count],
        )  # fmt: skip

    def _begin_rung(self) -> None:
        """Plan the next rung: who is in it, and how long its trials are."""
        record, number = self.record, len(self.record.rungs)
        if number == 0:
            numbers = [candidate.number for candidate in record.candidates]
        else:
            numbers = self._survivors(record.rungs[-1], record.shape[number])
        self._count()
        seconds = plan.training_seconds(self.left, len(record.shape) - number, len(numbers), self._overhead())
        # A rung that is shorter than the one before would tell nothing new.
        shortest = record.rungs[-1].training_seconds if record.rungs else 0.0
        trials = [Trial(candidate=candidate) for candidate in numbers]
        rung = Rung(training_seconds=max(seconds, shortest), trials=trials)
        self._update(rungs=[*self.record.rungs, rung], overhead=self._overhead())

    def _survivors(self, rung: Rung, count: int) -> list[int]:
        """Return the candidates of the next rung; two that are better than the base enter it together too."""
        numbers = plan.going_on(rung.scores, BASE, count)
        pair = plan.worth_combining(rung.scores, BASE)
        if count < 2 or pair is None:
            return numbers
        known = self.record.candidates
        changes = combined(known[pair[0]].changes, known[pair[1]].changes)
        if changes is None or valid(self.base, changes) is None or any(old.changes == changes for old in known):
            return numbers
        together = Candidate(number=len(known), changes=changes)
        self.record = self.record.model_copy(update={"candidates": [*known, together]})
        return [*numbers[:count], together.number]  # in place of the weakest

    def _overhead(self) -> float:
        """Return the time that a trial takes besides training, by the trials so far."""
        times = [
            trial.seconds - trial.step_seconds * trial.steps
            for rung in self.record.rungs for trial in rung.trials if trial.step_seconds and trial.steps
        ]  # fmt: skip
        return max(0.0, sum(times) / len(times)) if times else self.record.overhead

    # --- trials

    def _run_rung(self, number: int) -> None:
        is_last = number == len(self.record.shape) - 1
        if not all(trial.is_done for trial in self.record.rungs[number].trials):
            self.observer.on_rung(self.record)
        for place, trial in enumerate(self.record.rungs[number].trials):
            if not trial.is_done:
                self._count()
                self._running = number, place
                self.observer.on_trial(self.record, self.record.candidates[trial.candidate])
                try:
                    self._run_trial(number, place)
                except TrialFailedError as error:
                    self._set_trial(number, place, failure=error.args[0][:MOST_CHARACTERS])
                finally:
                    self._count()
                    self._running = None
                self.observer.on_trial_end(self.record, self.record.rungs[number].trials[place])
            self.runner.clear(self.folder.trial_path(number, trial.candidate), keep_weights=is_last)

    def _run_trial(self, number: int, place: int) -> None:
        rung = self.record.rungs[number]
        candidate = self.record.candidates[rung.trials[place].candidate]
        config = with_changes(self.base, candidate.changes)
        speed, steps = self._speed(candidate, config), rung.trials[place].steps
        if steps is None:  # recorded before the first step, so that the trial resumes with the same schedule
            steps, of_base = plan.steps_in(rung.training_seconds, speed.step_seconds), rung.trials[0].steps
            if of_base and costs_as_base(self.base, candidate.changes):
                steps = of_base  # equal steps are equal time, however busy the machine was
            self._set_trial(number, place, steps=steps)
        shortened = plan.trial_config(config, steps, speed.epoch_steps, number + 1)

        def watch(step: int) -> None:
            if self.clock() - self._saved > RECORD_SECONDS:
                self._save()
            self.observer.on_step(step, steps, self.left - (self.clock() - self._counted))
            self.check()

        outcome = self.runner.run(TrialPlan(self.folder.trial_path(number, candidate.number), shortened, steps), watch)
        step_seconds = outcome.step_seconds or speed.step_seconds
        self._learn(candidate.number, speed.model_copy(update={"step_seconds": step_seconds}))
        self._set_trial(
            number, place, bleu=outcome.score.bleu, chrf=outcome.score.chrf, step_seconds=step_seconds
        )  # fmt: skip

    def _speed(self, candidate: Candidate, config: Config) -> Speed:
        """Return the speed of a candidate; it is measured once."""
        known = self.record.speeds.get(str(candidate.number))
        if known is None and costs_as_base(self.base, candidate.changes):
            known = self.record.speeds[str(BASE)]
        if known is None:
            known = self.runner.measure(plan.trial_config(config, 1, 1, 1), lambda _: self.check()).speed
            self._learn(candidate.number, known)
            self._save()
        return known

    def _learn(self, candidate: int, speed: Speed) -> None:
        self.record = self.record.model_copy(update={"speeds": {**self.record.speeds, str(candidate): speed}})

    # --- the end

    def _decide(self) -> Verdict:
        """Compare the best candidate of the last rung with the base."""
        number = len(self.record.rungs) - 1
        scores = self.record.rungs[number].scores
        if not scores:
            raise NmtError(
                f"No trial of the last rung succeeded: {self.record.rungs[number].trials[0].failure}. Nothing can be "
                "compared. Tune from another recipe: --config FILE --name NAME"
            )
        others = [candidate for candidate in plan.ranked(scores) if candidate != BASE]
        best = others[0] if others else BASE
        if BASE not in scores:  # the base failed, so whatever did not is better
            return Verdict(candidate=best, is_better=True, epochs=self._epochs(best))
        if best == BASE:
            return Verdict(candidate=BASE, is_better=False, epochs=self.base.training.epochs)
        p_value = self._p_value(number, best)
        is_better = scores[best].bleu > scores[BASE].bleu and p_value < SIGNIFICANT
        epochs = self._epochs(best) if is_better else self.base.training.epochs
        return Verdict(candidate=best, p_value=p_value, is_better=is_better, epochs=epochs)

    def _p_value(self, number: int, candidate: int) -> float:
        """Return the p-value of the difference in BLEU from the base, by paired bootstrap resampling (Koehn 2004)."""
        systems = {str(one): self.runner.translations(self.folder.trial_path(number, one)) for one in (BASE, candidate)}
        scores = score_systems(systems, [self.runner.references], ["bleu"], DEFAULT_TOKENIZATION, DEFAULT_RESAMPLES)
        p_value = scores.systems[str(candidate)]["BLEU"].p_value
        return 1.0 if p_value is None else p_value

    def _epochs(self, candidate: int) -> int:
        """Return the epochs in which a candidate trains as long as the base in its own."""
        epochs = self.base.training.epochs
        changes, speeds = self.record.candidates[candidate].changes, self.record.speeds
        if costs_as_base(self.base, changes) or str(candidate) not in speeds:
            return epochs
        base, found = speeds[str(BASE)], speeds[str(candidate)]
        return plan.full_epochs(epochs, base.step_seconds * base.epoch_steps, found.step_seconds * found.epoch_steps)
