"""Fixtures that several test files share: a compiled index, and rows of which some hold its items."""

from __future__ import annotations

import importlib.util
import os
import random
from pathlib import Path
from typing import Any

import pytest

import samples
from unseen import refs
from unseen.scan import Index

# The frameworks have environments of their own: `make test-frameworks`.
collect_ignore = [
    f"test_{name}.py"
    for name in ("lm_eval", "eval_framework")
    if importlib.util.find_spec(name) is None
]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests on real benchmark files run only where UNSEEN_DATA names their folder."""
    if not os.environ.get("UNSEEN_DATA"):
        left_out = [item for item in items if item.get_closest_marker("data")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


VOCABULARY = [
    "".join(random.Random(n).choices("abdefgiklmnoprstuéü日本", k=2 + n % 8)) for n in range(900)
]


@pytest.fixture(scope="session")
def index_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The index of `samples.ITEMS`, as a folder. Read it only."""
    folder = tmp_path_factory.mktemp("reference")
    items = samples.write_jsonl(folder / "items.jsonl", samples.ITEMS)
    Index.build(refs.read_items([str(items)])).save(str(folder / "index"))
    return str(folder / "index")


@pytest.fixture(scope="session")
def rows() -> list[dict[str, Any]]:
    """300 rows {id, text, n}; every 15th holds an item: with its answer, alone, edited, with other
    numbers, or together with others. Texts have line breaks, quotes and characters of 1 to 4 bytes."""
    rng = random.Random(7)
    leaks = [
        samples.leaked(samples.ROBES, "15 robes"),
        samples.leaked(samples.ROBES),
        samples.leaked(samples.LOCKS.replace("wooden", "heavy").replace("barge", "small boat")),
        samples.leaked(samples.ROBES.replace("14", "25").replace(" 9 ", " 3 ")),
        samples.leaked(samples.ROBES) + samples.leaked(samples.COMETS, "Tycho Brahe") + samples.LOCKS,
    ]
    made = []
    for number in range(300):
        text = ordinary(rng, rng.randint(5, 160))
        if number % 15 == 3:
            text = f'{text}\n🙂 "{leaks[number // 15 % len(leaks)]}"\n{ordinary(rng, 20)}'
        made.append({"id": f"doc/{number}", "text": text, "n": number})
    return made


def ordinary(rng: random.Random, words: int) -> str:
    """Words that no item has."""
    return "".join(
        word + rng.choice(["  ", " ", ", ", ".\n"]) for word in rng.choices(VOCABULARY, k=words)
    )


@pytest.fixture
def pool(tmp_path: Path, rows: list[dict[str, Any]]) -> Path:
    """A pool of three shards with `rows`: a.jsonl, sub/a.jsonl and sub/b.jsonl."""
    folder = tmp_path / "pool"
    for name, part in (("a", rows[:150]), ("sub/a", rows[150:200]), ("sub/b", rows[200:])):
        samples.write_jsonl(folder / f"{name}.jsonl", part)
    return folder
