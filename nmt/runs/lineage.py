"""Ancestry of a run: the runs whose weights it started from."""

from nmt.errors import NmtError
from nmt.runs.directory import RUNS, Run, find_run, run_exists


def lineage(run: Run) -> tuple[list[Run], list[str]]:
    """Return a run and its ancestors, nearest first, and in words what hides further ancestors.

    The ancestors are the run whose weights this run started from, the run that that run started from, and so on.
    """
    runs = [run]
    try:
        while start := runs[-1].config().training.start_from:
            name = start.partition(":")[0]
            # A name that repeats belongs to a newer run: it was removed and trained again, from its own descendant.
            if not run_exists(name) or name in {ancestor.name for ancestor in runs}:
                return runs, [
                    f"run {runs[-1].name!r} started from the weights of run {name!r}, which is no longer in {RUNS}/. "
                    "The training data of those weights is unknown. Restore the run to check its training split."
                ]
            runs.append(find_run(name))
    except NmtError as error:
        return runs, [str(error)]
    return runs, []
