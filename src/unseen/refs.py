"""Reference files to items.

In: JSONL (plain or compressed) or Parquet files, in one of two schemas, told apart by their fields:

* ours: `suite, split, item, language, question, answers, correct, passage` (`records.ITEM_FIELDS`);
* `decon`'s: `eval_key, eval_instance_index, split, question, answer, passage, is_correct, config`, one
  row an option; the options of one instance become one item.

Out: a table with `records.item_schema`. Reference files are only ever read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from unseen import records
from unseen.errors import BadInput
from unseen.files import Shard, line_blocks, list_shards, open_bytes, reading_arrow

SCHEMA_HINT = (
    "a row needs suite, split, item and question (and language, answers, correct, passage where it has "
    "them), or decon's eval_key, eval_instance_index, split and question"
)


def read_items(paths: Sequence[str]) -> pa.Table:
    """All items of the given files and folders, with `records.item_schema`.

    Raises BadInput naming file and row for a row that is no item.
    """
    items: list[dict[str, Any]] = []
    for shard in list_shards(paths).shards:
        rows = list(numbered_rows(shard))
        if any("eval_key" in row for _, row in rows):
            items += decon_items(shard, rows)
        else:
            items += [own_item(shard, number, row) for number, row in rows]
    return pa.Table.from_pylist(items, schema=records.item_schema())


def numbered_rows(shard: Shard) -> Iterator[tuple[int, dict[str, Any]]]:
    """Rows of a reference file with their 0-based numbers."""
    if shard.format == "jsonl":
        yield from json_rows(shard)
        return
    with reading_arrow(shard.path):
        table = (
            pq.read_table(shard.path)
            if shard.format == "parquet"
            else pa.ipc.open_file(shard.path).read_all()
        )
        yield from enumerate(table.to_pylist())


def json_rows(shard: Shard) -> Iterator[tuple[int, dict[str, Any]]]:
    number = 0
    with open_bytes(shard) as reader:
        for block in line_blocks(reader):
            for line in bytes(block).splitlines():
                if not line.strip():
                    continue
                try:
                    row = json.loads(line)
                except ValueError as error:
                    raise bad_row(shard, number, f"it is not JSON ({error})") from error
                if not isinstance(row, dict):
                    raise bad_row(shard, number, "it is not a JSON object")
                yield number, row
                number += 1


def bad_row(shard: Shard, number: int, reason: str) -> BadInput:
    return BadInput(f"{shard.path}, row {number}: {reason}", SCHEMA_HINT)


def own_item(shard: Shard, number: int, row: Mapping[str, Any]) -> dict[str, Any]:
    """An item of our schema, checked. Ids may be numbers; `answers` may be one string.

    A null question is kept, and counted as empty by the index.
    """
    for name in ("suite", "split", "item"):
        if row.get(name) is None:
            raise bad_row(shard, number, f"it has no {name}")
    if "question" not in row:
        raise bad_row(shard, number, "it has no question")
    answers = row.get("answers")
    answers = [answers] if isinstance(answers, str) else answers or []
    if not isinstance(answers, list):
        raise bad_row(shard, number, f"answers must be a list of texts, not {answers!r}")
    correct = row.get("correct")
    correct = [True] * len(answers) if correct is None else correct
    if not isinstance(correct, list) or not all(isinstance(c, bool | int) for c in correct):
        raise bad_row(shard, number, f"correct must be a list of true and false, not {correct!r}")
    texts = [row["question"], row.get("passage"), row.get("language"), *answers]
    if not all(t is None or isinstance(t, str) for t in texts):
        raise bad_row(shard, number, "question, answers, passage and language must be text")
    if len(correct) != len(answers):
        raise bad_row(
            shard, number, f"it has {len(answers)} answers and {len(correct)} marks in `correct`"
        )
    return {
        "suite": str(row["suite"]),
        "split": str(row["split"]),
        "item": str(row["item"]),
        "language": row.get("language"),
        "question": readable(row["question"]),
        "answers": [readable(a) or "" for a in answers],
        "correct": [bool(c) for c in correct],
        "passage": readable(row.get("passage")),
    }


def readable(text: str | None) -> str | None:
    """The text; a lone surrogate, which no UTF-8 can hold, becomes a question mark."""
    return None if text is None else text.encode(errors="replace").decode()


def decon_items(shard: Shard, rows: Sequence[tuple[int, Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Rows of decon's schema; rows of one instance (key, config, split, index) are its options."""
    items: dict[tuple[str, ...], dict[str, Any]] = {}
    for number, row in rows:
        if not isinstance(row.get("question"), str) or not row.get("eval_key"):
            raise bad_row(shard, number, "it has no question or no eval_key")
        config = row.get("config")
        index = str(row.get("eval_instance_index", number))
        key = (str(row["eval_key"]), str(config or ""), str(row.get("split") or "test"), index)
        item = items.setdefault(
            key,
            {
                "suite": key[0],
                "split": key[2],
                "item": f"{config}/{index}" if config not in (None, "", "default") else index,
                "language": row.get("language"),
                "question": row["question"],
                "answers": [],
                "correct": [],
                "passage": row.get("passage") or None,
            },
        )
        if item["question"] != row["question"]:
            raise bad_row(shard, number, f"instance {index} of {key[0]} has two questions")
        if isinstance(row.get("answer"), str) and row["answer"]:
            item["answers"].append(row["answer"])
            item["correct"].append(row.get("is_correct") is not False)
    return list(items.values())
