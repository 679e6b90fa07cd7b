"""Progress bars of commands."""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tqdm import tqdm


class Bar:
    """A bar on a terminal for one task after another; nothing elsewhere."""

    def __init__(self, unit: str) -> None:
        """Take the name of what is counted."""
        self.unit = unit
        self.task = ""
        self.bar: tqdm | None = None

    def show(self, task: str, done: int, total: int | None) -> None:
        """Show that ``done`` of N = ``total`` are done, None for an unknown number."""
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
