"""Start of workers: from the command line and the environment to the place of this process among them."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from nmt.cluster.launch import CORES, PARENT, LocalWorkers, follow_parent, stay_on
from nmt.cluster.layout import Layout, layout_of_environment, layout_of_hosts
from nmt.cluster.options import TeamOptions
from nmt.errors import ConfigError


@dataclass(frozen=True)
class Place:
    """Place of this process."""

    layout: Layout | None
    """It among the workers; None: it works alone."""
    check: Callable[[], None]
    """Raises NmtError if a worker that it has started has ended."""


@contextlib.contextmanager
def started(options: TeamOptions, micro_batches: int) -> Iterator[Place]:
    """Start the other workers of this machine, if asked to, and yield the place of this one; at the end wait for them.

    Raises:
        ConfigError: for options and variables that contradict each other, and for more workers than micro-batches.
    """
    layout = _layout(options)
    workers = layout.workers if layout else options.workers or 1
    if workers > micro_batches:
        raise ConfigError(
            f"There are {workers} workers, and training.micro_batches is {micro_batches}. A step is shared by its "
            f"micro-batches, so it needs one for each worker. Start at most {micro_batches}, or another run with --set "
            f"training.micro_batches={workers}, whose batches may be smaller by that factor."
        )
    if PARENT in os.environ:
        follow_parent()
        stay_on([int(core) for core in os.environ[CORES].split(",")])
    if layout or workers == 1:
        yield Place(layout, _nothing_started)
        return
    with LocalWorkers(workers, sys.argv[1:]) as others:
        yield Place(others.layout, others.check)


def is_shared(options: TeamOptions) -> bool:
    """Return whether several workers are asked for. Raises as ``started``."""
    layout = _layout(options)
    return (layout.workers if layout else options.workers or 1) > 1


def _nothing_started() -> None:
    """Return: the check of a process that has started no other."""


def _layout(options: TeamOptions) -> Layout | None:
    if options.hosts is not None:
        if options.workers is not None:
            raise ConfigError(
                "--workers starts processes on this machine, --hosts names those of a cluster; received both. Leave "
                "one of them out."
            )
        return layout_of_hosts(options.hosts, options.index)
    if options.index is not None:
        raise ConfigError(
            f"--index {options.index} is the number of a worker in --hosts; received it without --hosts. Add --hosts, "
            "or leave it out."
        )
    layout = layout_of_environment(os.environ)
    if layout and options.workers not in (None, layout.workers):
        raise ConfigError(
            f"--workers is {options.workers}, and this process belongs to a cluster of {layout.workers} workers, by "
            "TF_CONFIG or the variables of SLURM. Leave --workers out."
        )
    return layout
