"""engines: every task ends with its result or its error, whoever runs it and in whatever order."""

from __future__ import annotations

import functools
import itertools
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from unseen import engines
from unseen.errors import BadInput, BadRun, UnseenError

WORKERS = [1, 2]


# What the workers run: functions of this module, so that another process can import them.


def square(number: int) -> int:
    engines.tick(1, number, number * number)
    return number * number


def slow_first(number: int) -> int:
    """The first task ends last."""
    time.sleep(0.4 if number == 0 else 0)
    return number


def fails_at_three(number: int) -> int:
    if number == 3:
        raise BadInput("a.jsonl, row 3: it is odd", "make it even")
    return number


def breaks_at_one(folder: str, number: int) -> int:
    """A fault of the program, not of its input; leaves a mark of each task that was begun."""
    Path(folder, str(number)).touch()
    if number == 1:
        raise ZeroDivisionError("one")
    time.sleep(0.05)
    return number


def dies_at_two(number: int) -> int:
    if number == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def ticks_then_fails(number: int) -> int:
    engines.tick(10)
    engines.tick(0, 1)
    if number % 2:
        raise BadInput("odd", "even")
    return number


def process_id(number: int) -> int:
    time.sleep(0.05)
    return os.getpid()


def outcomes(
    function: Callable[[Any], Any], n_tasks: int, workers: int, **options: Any
) -> list[engines.Outcome]:
    return list(engines.local(function, range(n_tasks), workers=workers, **options))


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("n_tasks", [0, 1, 2, 9])
def test_every_task_ends_once_with_its_result(n_tasks: int, workers: int) -> None:
    ended = outcomes(square, n_tasks, workers)
    assert sorted(o.task for o in ended) == list(range(n_tasks))
    assert all(o.result == o.task**2 and o.error is None for o in ended)


@pytest.mark.parametrize("workers", WORKERS)
def test_an_error_of_one_task_lets_the_others_go_on(workers: int) -> None:
    """Class, sentence and hint come through from the other process."""
    ended = {o.task: o for o in outcomes(fails_at_three, 7, workers)}
    assert sorted(ended) == list(range(7))
    assert [o.result for n, o in sorted(ended.items()) if n != 3] == [0, 1, 2, 4, 5, 6]
    failed = ended[3].error
    assert type(failed) is BadInput
    assert (failed.message, failed.hint) == ("a.jsonl, row 3: it is odd", "make it even")
    assert ended[3].result is None


@pytest.mark.parametrize("workers", WORKERS)
def test_another_exception_ends_the_run(tmp_path: Path, workers: int) -> None:
    """It is raised as it is, and what was not begun never is."""
    function = functools.partial(breaks_at_one, str(tmp_path))
    with pytest.raises(ZeroDivisionError, match="one"):
        outcomes(function, 200, workers)
    begun = len(list(tmp_path.iterdir()))
    assert 2 <= begun < 100
    time.sleep(0.3)
    assert len(list(tmp_path.iterdir())) == begun, "a worker still runs"


@pytest.mark.parametrize("workers", [2, 3])
def test_a_killed_worker_is_a_bad_run_with_a_remedy(workers: int) -> None:
    started = time.monotonic()
    with pytest.raises(BadRun) as caught:
        outcomes(dies_at_two, 8, workers)
    assert "worker process died" in caught.value.message
    assert "run the same command again" in caught.value.hint
    assert time.monotonic() - started < 30
    assert len(outcomes(square, 3, 2)) == 3  # the next run has workers of its own


@pytest.mark.parametrize("workers", WORKERS)
def test_progress_adds_up(workers: int) -> None:
    """The last report holds what all tasks added, and no number ever falls."""
    seen: list[list[int]] = []
    outcomes(square, 9, workers, on_tick=lambda counts: seen.append(list(counts)))
    assert seen[-1] == [9, sum(range(9)), sum(n * n for n in range(9)), 0]
    for before, after in itertools.pairwise(seen):
        assert all(a <= b for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize("workers", [1, 2])
def test_progress_counts_what_a_failed_task_did(workers: int) -> None:
    seen: list[list[int]] = []
    outcomes(ticks_then_fails, 6, workers, on_tick=lambda counts: seen.append(list(counts)))
    assert seen[-1] == [60, 6, 0, 0]


def test_a_second_run_counts_from_zero() -> None:
    for workers in (1, 2, 1):
        seen: list[list[int]] = []
        outcomes(square, 4, workers, on_tick=lambda counts, seen=seen: seen.append(list(counts)))
        assert seen[-1][0] == 4


def test_a_tick_outside_a_run_is_harmless() -> None:
    engines.tick(1, 2, 3)


def test_results_do_not_depend_on_the_order() -> None:
    """With two workers the first task ends last; the results are those of one."""
    alone, together = outcomes(slow_first, 6, 1), outcomes(slow_first, 6, 2)
    assert [o.task for o in alone] == list(range(6))
    assert [o.task for o in together][-1] == 0
    assert sorted(together) == sorted(alone)


def test_one_worker_is_this_process_and_more_are_others() -> None:
    assert {o.result for o in outcomes(process_id, 3, 1)} == {os.getpid()}
    others = {o.result for o in outcomes(process_id, 6, 2)}
    assert os.getpid() not in others
    assert len(others) == 2
    assert {o.result for o in outcomes(process_id, 1, 4)} == {os.getpid()}  # one task needs no other


@pytest.mark.parametrize("workers", [1, 2])
def test_whoever_stops_listening_ends_the_run(tmp_path: Path, workers: int) -> None:
    """The caller may leave the loop: nothing new is begun, and no worker stays."""
    function = functools.partial(breaks_at_one, str(tmp_path))
    running = engines.local(function, range(2, 200), workers=workers)
    next(running)
    running.close()
    begun = len(list(tmp_path.iterdir()))
    assert 1 <= begun < 100
    time.sleep(0.3)
    assert len(list(tmp_path.iterdir())) == begun


def test_an_attempt_catches_what_the_package_raises_and_nothing_else(tmp_path: Path) -> None:
    outcome = engines.attempt(fails_at_three, 3)
    assert isinstance(outcome.error, UnseenError)
    with pytest.raises(ZeroDivisionError):
        engines.attempt(functools.partial(breaks_at_one, str(tmp_path)), 1)


def test_default_workers_are_the_cores_of_this_process() -> None:
    assert engines.default_workers() >= 1
    if hasattr(os, "sched_getaffinity"):
        cores = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(cores)})
        try:
            assert engines.default_workers() == 1
        finally:
            os.sched_setaffinity(0, cores)
