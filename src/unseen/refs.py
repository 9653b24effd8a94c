"""Reference files to items.

In: JSONL (plain or compressed) or Parquet files, in one of two schemas, told apart by their fields:

* ours: `suite, split, item, language, question, answers, correct, passage` (`records.ITEM_FIELDS`);
* `decon`'s: `eval_key, eval_instance_index, split, question, answer, passage, is_correct, config`, one
  row an option; the options of one instance become one item.

Out: a table with `records.item_schema`. Reference files are only ever read.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from unseen import records
from unseen.errors import BadInput
from unseen.files import Shard, line_blocks, list_shards, open_bytes, reading_arrow

BATCH_ITEMS = 1 << 14  # rows that are Python objects at a time

SCHEMA_HINT = (
    "a row needs suite, split, item and question (and language, answers, correct, passage where it has "
    "them), or decon's eval_key, eval_instance_index, split and question"
)


def read_items(paths: Sequence[str]) -> pa.Table:
    """All items of the given files and folders, with `records.item_schema`.

    Raises BadInput naming file and row for a row that is no item.
    """
    shards = list_shards([items_folder(path) for path in paths]).shards
    tables = [table for shard in shards for table in item_tables(shard)]
    return pa.concat_tables([records.item_schema().empty_table(), *tables])


def items_folder(path: str) -> str:
    """Where the items of a reference set lie (see `collect`); any other path as it is."""
    return os.path.join(path, "items") if os.path.isfile(os.path.join(path, "refs.json")) else path


def item_tables(shard: Shard) -> Iterator[pa.Table]:
    """The items of a reference file, in its order. The first row tells the schema of all."""
    if shard.format != "jsonl":
        with reading_arrow(shard.path):
            table = (
                pq.read_table(shard.path, partitioning=None)
                if shard.format == "parquet"
                else pa.ipc.open_file(shard.path).read_all()
            )
        if is_whole(table):
            yield table.replace_schema_metadata(None)
            return
        rows = table_rows(shard, table)
    else:
        rows = json_rows(shard)
    head = list(itertools.islice(rows, 1))
    if any("eval_key" in row for _, row in head):
        made = decon_items(shard, itertools.chain(head, rows))
    else:
        made = own_items(shard, itertools.chain(head, rows))
    while batch := list(itertools.islice(made, BATCH_ITEMS)):
        yield pa.Table.from_pylist(batch, schema=records.item_schema())


def is_whole(table: pa.Table) -> bool:
    """Whether a table has our schema, and only rows that `own_item` would leave as they are."""
    if not table.schema.equals(records.item_schema(), check_metadata=False):
        return False
    filled = [table[name] for name in ("suite", "split", "item", "answers", "correct")]
    filled += [pc.list_flatten(table[name]) for name in ("answers", "correct")]
    if any(column.null_count for column in filled):
        return False
    sizes = [pc.list_value_length(table[name]) for name in ("answers", "correct")]
    try:
        table.validate(full=True)  # among others, that all texts are UTF-8
    except pa.ArrowInvalid:
        return False
    return bool(sizes[0].equals(sizes[1]))


def table_rows(shard: Shard, table: pa.Table) -> Iterator[tuple[int, dict[str, Any]]]:
    """Rows of a table with their 0-based numbers."""
    for first in range(0, len(table), BATCH_ITEMS):
        try:
            rows = table.slice(first, BATCH_ITEMS).to_pylist()
        except UnicodeDecodeError as error:
            raise bad_row(
                shard, first, f"it or one after it holds text that is not UTF-8 ({error})"
            ) from error
        yield from enumerate(rows, first)


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


def own_items(shard: Shard, rows: Iterable[tuple[int, Mapping[str, Any]]]) -> Iterator[dict[str, Any]]:
    for number, row in rows:
        if "eval_key" in row:
            raise bad_row(shard, number, "it has decon's eval_key, and the rows before it do not")
        yield own_item(shard, number, row)


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


def decon_items(
    shard: Shard, rows: Iterable[tuple[int, Mapping[str, Any]]]
) -> Iterator[dict[str, Any]]:
    """Rows of decon's schema; those of one instance (key, config, split, index), wherever they stand,
    are its options."""
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
    yield from items.values()
