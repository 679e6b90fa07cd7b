"""Hide from nmt what Windows or macOS has not: ``python without_linux.py nmt-arguments...`` runs the command line so.

Modules and functions of Linux vanish, folders cannot be opened, read-only files cannot be synced, ``select`` knows only
sockets, /proc is empty. The standard library keeps what its own modules for Linux have loaded before. Locks are those
that filelock has for systems without flock.
"""

import asyncio  # noqa: F401 - needs fcntl on Linux
import builtins
import errno
import io
import multiprocessing.connection  # noqa: F401 - likewise
import os
import select
import shutil
import signal
import stat
import subprocess  # noqa: F401
import sys
import tempfile  # noqa: F401
import warnings
from collections.abc import Callable
from typing import Any

import portalocker  # noqa: F401 - of sacrebleu, likewise

MODULES = ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog", "readline", "curses", "posix_ipc")
FUNCTIONS = (
    "sched_getaffinity", "sched_setaffinity", "fork", "forkpty", "pread", "pwrite", "preadv", "pwritev", "nice",
    "chown", "getpgid", "setsid", "killpg", "fchmod", "posix_fadvise", "posix_fallocate", "sync", "mkfifo",
    "getloadavg", "confstr", "sysconf", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_SYNC",
)  # fmt: skip
SIGNALS = ("SIGKILL", "SIGPIPE", "SIGHUP", "SIGQUIT", "SIGALRM", "SIGCHLD", "SIGUSR1", "SIGUSR2", "SIGSTOP", "SIGCONT",
           "pthread_sigmask", "pthread_kill", "alarm", "setitimer", "sigwait")  # fmt: skip
"""Attributes of os and signal that Windows lacks."""


def hide() -> None:
    """Hide what only Linux has."""
    for name in MODULES:
        sys.modules[name] = None  # type: ignore[assignment] # its import fails
    for module, names in ((os, FUNCTIONS), (signal, SIGNALS)):
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    shutil._use_fd_functions = False  # type: ignore[attr-defined] # rmtree opens folders
    for place, name in ((builtins, "open"), (io, "open"), (os, "stat"), (os, "listdir"), (os, "scandir")):
        setattr(place, name, without_proc(getattr(place, name)))
    hide_descriptors()
    warnings.filterwarnings("ignore", "only soft file lock is available")
    import nmt.storage.atomic

    nmt.storage.atomic.ON_WINDOWS = True


def without_proc(real: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that finds nothing in /proc and /sys, and else does the real thing."""

    def call(*arguments: Any, **named: Any) -> Any:
        path = arguments[0] if arguments else "."
        if isinstance(path, (str, os.PathLike)) and os.fspath(path).startswith(("/proc", "/sys")):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return real(*arguments, **named)

    return call


def hide_descriptors() -> None:
    """Let no folder be opened, no file that was opened for reading be synced, and no pipe be waited for."""
    real_open, real_sync, real_select = without_proc(os.open), os.fsync, select.select
    read_only = set()

    def open_file(path: Any, flags: int, *arguments: Any, **named: Any) -> int:
        if os.path.isdir(path):  # noqa: PTH112
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        descriptor = real_open(path, flags, *arguments, **named)
        (read_only.discard if flags & (os.O_WRONLY | os.O_RDWR) else read_only.add)(descriptor)
        return int(descriptor)

    def sync(descriptor: int) -> None:
        if descriptor in read_only:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        real_sync(descriptor)

    def wait(reading: list[Any], writing: list[Any], *rest: Any) -> Any:
        for file in (*reading, *writing):
            descriptor = file if isinstance(file, int) else file.fileno()
            if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                raise OSError(errno.ENOTSOCK, os.strerror(errno.ENOTSOCK))
        return real_select(reading, writing, *rest)

    os.open, os.fsync, select.select = open_file, sync, wait  # type: ignore[assignment]


if __name__ == "__main__":
    hide()
    from nmt.cli.app import main

    main()
