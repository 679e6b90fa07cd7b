"""A team of workers: formed once all have come and do the same."""

from collections.abc import Callable
from dataclasses import dataclass

from nmt import runtime
from nmt.cluster.layout import CHIEF, Layout
from nmt.cluster.options import MEETING_SECONDS, STALL_SECONDS
from nmt.cluster.rendezvous import meet
from nmt.cluster.workers import Cluster, Workers


def never_break_off() -> None:
    """Return: the check of callers whom nobody can ask to stop."""


@dataclass
class Team:
    """The workers of a run before they are joined."""

    layout: Layout | None = None
    """Place of this process; None: it works alone."""
    meeting_seconds: float = MEETING_SECONDS
    """Time to wait for the others."""
    stall_seconds: float = STALL_SECONDS
    """Time after which a worker that others wait for counts as stalled."""
    report: Callable[[str], None] = print
    """Is called with words about waiting, and with notes."""
    check: Callable[[], None] = never_break_off
    """Is called while others are missing, and may raise to break off."""

    @property
    def is_chief(self) -> bool:
        """Whether this process reads and writes the run, and speaks for all."""
        return self.layout is None or self.layout.rank == CHIEF

    @property
    def is_first_of_machine(self) -> bool:
        """Whether this process checks the files that all workers of its machine read."""
        return self.layout is None or not self.layout.local_rank

    def join(self, facts: dict[str, str]) -> Workers:
        """Return the workers, joined.

        Args:
            facts: what must be equal on all, by name.

        Raises:
            ConflictError: if workers differ in a fact.
            NmtError: if a worker does not come in time.
        """
        if self.layout is None:
            return Workers()
        machine = runtime.environment()
        meeting = meet(self.layout, facts, machine, seconds=self.meeting_seconds, report=self.report, check=self.check)
        for note in meeting.notes:
            self.report(f"Note: {note}. The result may depend on which worker computes what.")
        return Cluster(self.layout, meeting.addresses, self.stall_seconds)
