"""A few made-up items and ordinary texts, for tests that need a small reference set and pool."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROBES = (
    "A tailor in Trieste sews 14 velvet robes every fortnight and sells 9 of them at the market. "
    "How many robes are left in the cupboard after 6 weeks of work?"
)
COMETS = (
    "Which astronomer first argued that the bright comet seen above Prague in 1577 moved far beyond "
    "the orbit of the Moon, against the teaching of the schools?"
)
LOCKS = (
    "Explain why a canal lock in the hills needs two pairs of wooden gates, and what would happen to a "
    "barge if the lower pair were opened while the chamber is still full of water."
)

ITEMS: list[dict[str, Any]] = [
    {
        "suite": "arithmetic",
        "split": "test",
        "item": "7",
        "language": "en",
        "question": ROBES,
        "answers": ["15 robes"],
        "correct": [True],
        "passage": None,
    },
    {
        "suite": "history",
        "split": "validation",
        "item": "comet/1",
        "language": "en",
        "question": COMETS,
        "answers": ["Johannes Kepler", "Tycho Brahe", "Galileo Galilei"],
        "correct": [False, True, False],
        "passage": None,
    },
    {
        "suite": "history",
        "split": "test",
        "item": "lock",
        "language": "en",
        "question": LOCKS,
        "answers": [],
        "correct": [],
        "passage": None,
    },
]

ORDINARY = [
    "The ferry leaves at half past eight, and the baker on the quay opens an hour earlier.",
    "To install the pump, close the valve, drain the pipe and tighten the four bolts by hand.",
    "Every evening the choir rehearsed in the old granary until the lamps were put out.",
    "Eine kurze Notiz: die Bibliothek bleibt am Montag wegen der Inventur geschlossen.",
]


def leaked(question: str, answer: str = "") -> str:
    """The question in the middle of an ordinary text."""
    return f"{ORDINARY[0]}\n\n{question}\n{answer}\n\n{ORDINARY[1]}"


def write_jsonl(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Rows as JSON lines; returns the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return path
