"""Filter a data set of chats in memory, with the Python API: no shards, no run folder.

    python examples/filter_dataset.py

The index is built here from two items; for real work open one that `unseen index` made:
`Index.open("INDEX/")`. With the package `datasets` installed the same filter also runs as
`Dataset.filter`, which splits the work over processes with `num_proc`.
"""

from __future__ import annotations

import importlib.util

from unseen import Index

ITEMS = [
    {
        "suite": "riddles",
        "split": "test",
        "item": "1",
        "question": "A ferryman carries 12 barrels across the river in 4 trips. How many barrels does "
        "he carry on each trip if every trip carries the same number?",
        "answers": ["3 barrels"],
    },
    {
        "suite": "riddles",
        "split": "test",
        "item": "2",
        "question": "Which metal, liquid at room temperature, did hatters use to turn fur into felt?",
        "answers": ["Lead", "Mercury", "Gallium"],
        "correct": [False, True, False],
    },
]

ROWS = [
    {"prompt": "Write a haiku about ferries.", "reply": "Slow boat, evening light ..."},
    {"prompt": ITEMS[0]["question"], "reply": "Each trip carries 3 barrels."},
    {"prompt": "Explain how felt is made.", "reply": "Fibres are wetted, pressed and rolled."},
    {"prompt": "Quiz! " + str(ITEMS[1]["question"]).upper(), "reply": "Mercury."},
]


def text_of(row: dict[str, object]) -> str:
    """All that a model would read of a row."""
    return f"{row['prompt']}\n\n{row['reply']}"


def main() -> None:
    """Look at the matches, then filter."""
    index = Index.build(ITEMS)

    # What was found, and where: a table with one row a match (docs/reference/schemas.md).
    matches = index.scan([text_of(row) for row in ROWS])
    for m in matches.to_pylist():
        print(f"row {m['row']}: {m['suite']}/{m['split']}/{m['item']}, {m['evidence']}, {m['verdict']}")

    # A plain list: one bool a text, True where the preset would remove it.
    flagged = index.flag([text_of(row) for row in ROWS])
    kept = [row for row, contaminated in zip(ROWS, flagged, strict=True) if not contaminated]
    print(f"{len(kept)} of {len(ROWS)} rows kept")

    if importlib.util.find_spec("datasets") is None:
        print("(pip install datasets to see the same with Dataset.filter)")
        return
    from datasets import Dataset

    def is_clean(batch: dict[str, list[object]]) -> list[bool]:
        rows = [dict(zip(batch, values, strict=True)) for values in zip(*batch.values(), strict=True)]
        return [not contaminated for contaminated in index.flag([text_of(row) for row in rows])]

    clean = Dataset.from_list(ROWS).filter(is_clean, batched=True)
    print(f"Dataset.filter: {len(clean)} of {len(ROWS)} rows kept")


if __name__ == "__main__":
    main()
