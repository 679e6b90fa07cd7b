"""TODO."""

from nmt.errors import NmtError
from nmt.runs.directory import RUNS, Run, find_run, run_exists


def lineage(run: Run) -> tuple[list[Run], list[str]]:
    """Return a run, the run whose weights it started from, the one that that started from and so on.

    If one of them cannot be found, the second list says so.
    """
    runs = [run]
    try:
        while start := runs[-1].config().training.start_from:
            name = start.partition(":")[0]
            if not run_exists(name) or name in {one.name for one in runs}:  # begun anew since, from its own offspring
                return runs, [
                    f"run {runs[-1].name!r} started from the weights of a run {name!r} that is not in {RUNS}/ any "
                    "more, so what these were trained on is not known. Restore it to have its training split looked at."
                ]
            runs.append(find_run(name))
    except NmtError as error:
        return runs, [str(error)]
    return runs, []
