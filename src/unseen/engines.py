"""Run a function over tasks, in processes. Knows nothing of what it runs.

In: a picklable function, picklable tasks. Out: for each task its result or its error, in the order in
which they end. Results must not depend on that order.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import multiprocessing
import multiprocessing.connection
import multiprocessing.forkserver
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from unseen.errors import BadRun, UnseenError

Task = TypeVar("Task")
Tick = Callable[..., None]

TICKS = 4  # numbers a running task may add up for the progress bar
POLL_SECONDS = 0.2

_counts: Any = None  # this worker's view of the shared numbers, set by _start


# A fork of this process could inherit a lock that one of its threads holds; a fork server has none.
START_METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"


class Outcome(NamedTuple):
    """One finished task."""

    task: Any
    result: Any  # None when it failed
    error: UnseenError | None


def local(
    function: Callable[[Any], Any],
    tasks: Sequence[Any],
    *,
    workers: int,
    on_tick: Callable[[Sequence[int]], None] = lambda counts: None,
) -> Iterator[Outcome]:
    """Run `function` on every task in up to `workers` processes; one worker runs in this process.

    Inside it, `tick(a, b, ...)` adds to the shared numbers that `on_tick` gets a few times a second.
    An UnseenError of a task is its outcome and the others go on; any other error ends the run. Raises
    BadRun when a worker dies.
    """
    global _counts
    if workers == 1 or len(tasks) <= 1:
        _counts = [0] * TICKS
        for task in tasks:
            with _watched(on_tick):
                outcome = attempt(function, task)
            yield outcome
        return
    context = multiprocessing.get_context(START_METHOD)
    shared = context.Array("q", TICKS)
    with concurrent.futures.ProcessPoolExecutor(
        min(workers, len(tasks)), mp_context=context, initializer=_start, initargs=(shared,)
    ) as pool:
        try:
            with _ignoring_interrupt():
                waiting = {pool.submit(attempt, function, task): task for task in tasks}
            while waiting:
                done, _ = concurrent.futures.wait(
                    waiting, POLL_SECONDS, concurrent.futures.FIRST_COMPLETED
                )
                on_tick(shared[:])
                for future in done:
                    del waiting[future]
                    yield future.result()
        except concurrent.futures.process.BrokenProcessPool as error:
            raise BadRun(
                "a worker process died (killed, or out of memory)",
                "run the same command again, it goes on where it was; with fewer --workers if memory "
                "was short. A script of your own needs `if __name__ == '__main__':` around its call",
            ) from error
        except BaseException:
            for process in multiprocessing.active_children():
                process.terminate()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def prepare(*modules: str) -> None:
    """Begin to start workers: a process imports `modules` meanwhile, and they are forks of it."""
    if START_METHOD == "forkserver":
        multiprocessing.forkserver.set_forkserver_preload(list(modules))
        with _ignoring_interrupt():
            multiprocessing.forkserver.ensure_running()


@contextlib.contextmanager
def _ignoring_interrupt() -> Iterator[None]:
    """Workers started inside never see Ctrl-C: this process does, afterwards, and ends them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def attempt(function: Callable[[Any], Any], task: Any) -> Outcome:
    """The outcome of one task."""
    try:
        return Outcome(task, function(task), None)
    except UnseenError as error:
        return Outcome(task, None, error)


def tick(*amounts: int) -> None:
    """Called by a running task: add to the shared numbers."""
    if _counts is None:
        return
    lock = _counts.get_lock() if hasattr(_counts, "get_lock") else contextlib.nullcontext()
    with lock:
        for i, amount in enumerate(amounts):
            _counts[i] += amount
    if _watcher is not None:
        _watcher(_counts)


_watcher: Callable[[Sequence[int]], None] | None = None


@contextlib.contextmanager
def _watched(on_tick: Callable[[Sequence[int]], None]) -> Iterator[None]:
    """Tasks of this process report straight to `on_tick`."""
    global _watcher
    _watcher = on_tick
    try:
        yield
    finally:
        _watcher = None


def _start(shared: Any) -> None:
    global _counts
    _counts = shared
    threading.Thread(target=_die_with_parent, daemon=True).start()


def _die_with_parent() -> None:
    """A worker whose parent was killed would wait for tasks for ever, or write beside the next run."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)


def default_workers() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
