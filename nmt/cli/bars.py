"""Progress bars of commands."""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tqdm import tqdm


class Bar:
    """Progress bar on a terminal for a sequence of tasks. Files and pipes get nothing."""

    def __init__(self, unit: str) -> None:
        """Store the unit of the counts, such as "pairs"."""
        self.unit = unit
        self.task = ""
        self.bar: tqdm | None = None

    def show(self, task: str, done: int, total: int | None) -> None:
        """Show the progress of a task: ``done`` of ``total`` units, None for an unknown total."""
        from tqdm import tqdm

        if self.bar is None or task != self.task:
            self.close()
            self.task = task
            self.bar = tqdm(desc=task, total=total, unit=f" {self.unit}", disable=None, leave=False, file=sys.stderr)
        self.bar.update(done - self.bar.n)

    def close(self) -> None:
        """Remove the bar."""
        if self.bar is not None:
            self.bar.close()
            self.bar = None
