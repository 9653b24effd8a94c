"""Reference files to items.

In: JSONL (plain or compressed) or Parquet files, in one of two schemas, told apart by their fields:

* ours: `suite, split, item, language, question, answers, correct, passage` (`records.ITEM_FIELDS`);
* `decon`'s: `eval_key, eval_instance_index, split, question, answer, passage, is_correct, config`, one
  row an option; the options of one instance become one item.

Out: a table with `records.item_schema`. Reference files are only ever read.
"""

from __future__ import annotations

import glob
import itertools
import json
import os
import pathlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from unseen import records
from unseen.errors import BadInput, BadSetting
from unseen.files import Shard, hash_file, line_blocks, list_shards, open_bytes, reading_arrow

BATCH_ITEMS = 1 << 14  # rows that are Python objects at a time

BUILD_AGAIN = "build the set again with `unseen refs build`"
SCHEMA_HINT = (
    "a row needs suite, split, item and question (and language, answers, correct, passage where it has "
    "them), or decon's eval_key, eval_instance_index, split and question"
)


def read_items(paths: Sequence[str]) -> pa.Table:
    """All items of the given files, folders and reference sets, with `records.item_schema`.

    Raises BadInput naming file and row for a row that is no item, and for a reference set whose files
    are not those that its refs.json lists; BadSetting for a part of a reference set.
    """
    headers = {path: set_header(path) for path in paths}
    plain = [path for path in paths if headers[path] is None]
    for path in plain:
        refuse_part(path)
    tables = [read_set(path, header) for path, header in headers.items() if header is not None]
    if plain or not tables:
        tables.append(read_files(plain))
    return pa.concat_tables(tables)


def read_files(paths: Sequence[str]) -> pa.Table:
    """All items of files and folders."""
    tables = [table for shard in list_shards(paths).shards for table in item_tables(shard)]
    return pa.concat_tables([records.item_schema().empty_table(), *tables])


def read_set(path: str, header: Mapping[str, Any]) -> pa.Table:
    """The items of a reference set (see `collect`): the files that it lists, no more and no less."""
    tables = [records.item_schema().empty_table()]
    listed = {os.path.normpath(part["file"]) for part in header["suites"]}
    there = {str(p.relative_to(path)) for p in pathlib.Path(path, "items").rglob("*") if p.is_file()}
    if len(listed) < len(header["suites"]) or there - listed:
        what = (
            f"{sorted(there - listed)[0]} is not in it" if there - listed else "a file is in it twice"
        )
        raise BadInput(f"{path}/refs.json does not fit the files: {what}", BUILD_AGAIN)
    for part in header["suites"]:
        file = os.path.join(path, part["file"])
        name = f"{part['suite']}/{part['split']}"
        if not os.path.isfile(file):
            raise BadInput(f"{file} is not there, and {path}/refs.json lists it ({name})", BUILD_AGAIN)
        table = read_files([file])
        others = {*table["suite"].unique().to_pylist()} - {part["suite"]}
        others |= {*table["split"].unique().to_pylist()} - {part["split"]}
        if others:
            raise BadInput(
                f"{file} holds items of {sorted(others)[0]}, and {path}/refs.json says {name}",
                BUILD_AGAIN,
            )
        if len(table) != part["items"]:
            raise BadInput(
                f"{file} holds {len(table):,} items, and {path}/refs.json lists {part['items']:,}"
                f" ({name})",
                BUILD_AGAIN,
            )
        if hash_file(file).xxh3_128 != part.get("xxh3_128"):
            raise BadInput(
                f"{file} was changed since {path}/refs.json was written ({name})", BUILD_AGAIN
            )
        tables.append(table)
    return pa.concat_tables(tables)


def set_header(path: str) -> dict[str, Any] | None:
    """refs.json of a reference set; None for anything else. Raises BadInput when it is damaged."""
    file = os.path.join(path, "refs.json")
    if not os.path.isfile(file):
        return None
    try:
        with open(file, encoding="utf-8") as text:
            header = json.load(text)
        if header["format"] != 1:
            raise ValueError(f"format {header['format']} is another version's")
        for part in header["suites"]:
            if not isinstance(part["items"], int) or not isinstance(part["facts"], dict):
                raise TypeError("a suite has no number of items, or no facts")
            if not all(isinstance(note, str) for note in [*part["notes"]]):
                raise TypeError("a note is no text")
            for name in ("suite", "split", "file"):
                if not isinstance(part[name], str):
                    raise TypeError(f"a suite has no {name}")
            if os.path.isabs(part["file"]) or ".." in part["file"].split("/"):
                raise ValueError(f"{part['file']} lies outside")
        for one in header["missing"]:
            if not all(isinstance(one[name], str) for name in ("suite", "reason", "hint")):
                raise TypeError("a missing benchmark has no name")
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise BadInput(
            f"{file} cannot be read: {type(error).__name__}: {error}", BUILD_AGAIN
        ) from error
    return dict(header)


def refuse_part(path: str) -> None:
    """Raise BadSetting for a part of a reference set: it does not say what is missing."""
    for one in sorted(glob.glob(path, recursive=True)) or [path]:
        whole = os.path.realpath(one)
        for folder in pathlib.Path(whole, "x").parents:
            inside = os.path.relpath(whole, folder).split(os.sep)[0] in ("items", "refs.json")
            if inside and (folder / "refs.json").is_file():
                raise BadSetting(
                    f"{path} is a part of the reference set {folder}", f"name {folder} itself"
                )
        if os.path.isfile(os.path.join(whole, "refs.json")) and one != path:
            raise BadSetting(f"{path} takes in the reference set {one}", f"name {one} itself")


def item_tables(shard: Shard) -> Iterator[pa.Table]:
    """The items of a reference file, in its order. The first row tells the schema of all."""
    if shard.format != "jsonl":
        table = whole_table(shard)
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


def whole_table(shard: Shard) -> pa.Table:
    """A Parquet or Arrow file. Raises BadInput when it is damaged."""
    with reading_arrow(shard.path):
        if shard.format == "parquet":
            return pq.read_table(shard.path, partitioning=None)
        return pa.ipc.open_file(shard.path).read_all()


def numbered_rows(shard: Shard) -> Iterator[tuple[int, dict[str, Any]]]:
    """Rows of a file with their 0-based numbers."""
    return json_rows(shard) if shard.format == "jsonl" else table_rows(shard, whole_table(shard))


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
