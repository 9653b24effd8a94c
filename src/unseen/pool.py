"""Pools: shards to batches of texts, and nothing read past in silence.

In:   a `Shard` of JSON lines, Parquet or Arrow IPC, and where its rows keep their text.
Out:  `Batch`es: the texts as UTF-8 back to back, their row numbers and ids, and the rows that could
      not be read.

    >>> reader = read_batches(shard, text_field=TextField.parse("text"), id_field="id")
    >>> for batch in reader:
    ...     scan(batch.data, batch.offsets)
    >>> reader.facts
    FileFacts(size_bytes=1834, xxh3_128='8f0c...', rows=12)

A row is a line that is not blank, or a row of a table; rows are counted from 0. What cannot be read is
an error, or, where the caller asked for it, a `BadRow` that is handed on.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import simdjson

from unseen import kernels
from unseen.errors import BadInput, BadSetting
from unseen.files import (
    BLOCK_BYTES,
    BadRow,
    FileFacts,
    Shard,
    ShardBytes,
    hash_file,
    is_blank,
    line_blocks,
    open_bytes,
    open_ipc,
    open_parquet,
    reading_arrow,
)

OnBadRow = Literal["fail", "quarantine"]

BATCH_BYTES = 2 << 20
"""Default size of a batch: larger ones read no faster, and leave the processor's cache."""

PADDING = 64
"""Readable zero bytes after the last text: the kernels load 64 bytes at a time."""

_RUN_ROWS = 4096  # JSON lines that are read at once, at most
_NO_LIMIT = 1 << 62
_JOIN = "\n\n"  # between the texts of one row
_ROW_BYTES = 64  # counted for each row of a table, so that a batch of empty texts ends too
_STEP_ROWS = 256  # rows of a table decoded at a time: a page of long, repeated texts stays small
_STEP_ROWS_DICTIONARY = 4096  # each step builds the dictionary anew, so take fewer
_BOMS = {
    b"\xef\xbb\xbf": ("UTF-8", "sed -i '1s/^\\xEF\\xBB\\xBF//'"),
    b"\xff\xfe": ("UTF-16", "iconv -f UTF-16 -t UTF-8"),
    b"\xfe\xff": ("UTF-16", "iconv -f UTF-16 -t UTF-8"),
}
_OBJECT, _LIST = (dict, simdjson.Object), (list, simdjson.Array)
_SURROGATE = re.compile("[\ud800-\udfff]")


# ---- where the text is ---------------------------------------------------------------------------


class RowError(Exception):
    """Why one row cannot be read, in one line."""


class MissingFieldError(RowError):
    """The row has no such field."""


class Step(NamedTuple):
    """One key of a path; `each`: its value is a list, and the path goes on in every element."""

    key: str
    each: bool


FieldPath = tuple[Step, ...]


@dataclass(frozen=True)
class TextField:
    """Where a row keeps its text.

        text                  one field
        meta.body.text        a field inside objects
        title,text            several, joined with a blank line
        messages[].content    one of every element of a list, joined with a blank line

    The content of a list element may itself be a list of parts, as chat formats have it: strings and
    objects with a string "text" count, other objects (images) are passed over.
    """

    spec: str
    paths: tuple[FieldPath, ...]

    @classmethod
    def parse(cls, spec: str) -> TextField:
        """Reads a `--text-field` option.

        Raises:
            BadSetting: the option is not of the forms above.
        """
        return cls(spec, tuple(_parse_path(spec, part.strip()) for part in spec.split(",")))

    @property
    def columns(self) -> list[str]:
        """Top-level fields that are needed, each once."""
        return list(dict.fromkeys(path[0].key for path in self.paths))

    @property
    def has_lists(self) -> bool:
        """Some path goes through the elements of a list."""
        return any(step.each for path in self.paths for step in path)

    @property
    def single(self) -> tuple[str, ...] | None:
        """The keys of a lone path without lists, from the outside in; None for any other field. Only
        such a text can be written back."""
        if len(self.paths) > 1 or self.has_lists:
            return None
        return tuple(step.key for step in self.paths[0])

    def text_of(self, row: Any) -> str | None:
        """The text of a row (a dict or a simdjson object); None if it is null or there is none.

        Raises:
            RowError: a field is missing, is there twice, or is no text.
        """
        texts: list[str] = []
        for path in self.paths:
            _gather(row, path, texts)
        return _JOIN.join(texts) if texts else None


def _parse_path(spec: str, part: str) -> FieldPath:
    steps = tuple(Step(key.removesuffix("[]"), key.endswith("[]")) for key in part.split("."))
    if any(not step.key or "[" in step.key or "]" in step.key for step in steps):
        raise BadSetting(
            f"text field {spec!r} cannot be read",
            "write it as text, meta.text, title,text or messages[].content",
        )
    return steps


def _is_object(value: Any) -> bool:
    return isinstance(value, _OBJECT)


def _is_list(value: Any) -> bool:
    return isinstance(value, _LIST)


def _kind(value: Any) -> str:
    if _is_object(value):
        return "an object"
    if _is_list(value):
        return "a list"
    if value is None:
        return "null"
    return {str: "a string", bool: "true or false"}.get(type(value), "a number")


def _member(row: Any, key: str) -> Any:
    if not _is_object(row):
        raise RowError(f"expected an object with {key!r}, found {_kind(row)}")
    keys = list(row)
    if keys.count(key) == 1:
        return row[key]
    if key in keys:
        raise RowError(f"the field {key!r} is there twice, and readers differ in which they take")
    there = ", ".join(keys[:12]) + (", ..." if len(keys) > 12 else "")
    raise MissingFieldError(f"no field {key!r} (see --text-field); there are: {there or 'none'}")


def _gather(value: Any, path: FieldPath, texts: list[str]) -> None:
    """Adds the texts that a path leads to; nothing where it leads to null."""
    step, rest = path[0], path[1:]
    child = _member(value, step.key)
    if child is None:
        return
    if step.each:
        if not _is_list(child):
            raise RowError(f"{step.key!r} is {_kind(child)}, not a list")
        _gather_each(child, rest, texts)
    elif rest:
        _gather(child, rest, texts)
    elif isinstance(child, str):
        texts.append(child)
    else:
        hint = "; for lists of texts write " + step.key + "[]" if _is_list(child) else ""
        raise RowError(f"{step.key!r} is {_kind(child)}, not a string{hint}")


def _gather_each(elements: Any, rest: FieldPath, texts: list[str]) -> None:
    """Adds the texts of the elements of a list. One element may lack the field (a tool call has no
    content), all of them may not: that is a mistyped name."""
    found, missing = False, None
    for element in elements:
        try:
            _gather_element(element, rest, texts)
            found = True
        except MissingFieldError as error:
            missing = str(error)
    if missing and not found:
        raise MissingFieldError(missing)


def _gather_element(element: Any, rest: FieldPath, texts: list[str]) -> None:
    if element is None:
        return
    if len(rest) > 1 or (rest and rest[0].each):
        _gather(element, rest, texts)
        return
    content = _member(element, rest[0].key) if rest else element
    if isinstance(content, str):
        texts.append(content)
    elif _is_list(content):
        texts += _part_texts(content)
    elif content is not None:
        raise RowError(f"expected text or a list of parts, found {_kind(content)}")


def _part_texts(parts: Any) -> Iterator[str]:
    for part in parts:
        if isinstance(part, str):
            yield part
        elif _is_object(part):
            text = _member(part, "text") if "text" in part else None
            if isinstance(text, str):
                yield text
        elif part is not None:
            raise RowError(f"expected a part of a message, found {_kind(part)}")


# ---- what comes out ------------------------------------------------------------------------------


class Batch(NamedTuple):
    """Texts of consecutive rows. The arrays are read-only."""

    first_row: int  # row number at which the batch starts, bad rows included
    rows: npt.NDArray[np.int64]  # [texts] row number of each text in the shard, ascending
    data: npt.NDArray[np.uint8]  # [bytes + PADDING] UTF-8 of the texts back to back
    offsets: npt.NDArray[np.int64]  # [texts + 1] where each text starts in data, in bytes
    ids: list[str | None]  # [texts] the document's own id, None where there is none
    bad: list[BadRow]  # rows set aside
    read_bytes: int  # bytes of the file read since its start, or their likely number
    n_rows: int  # rows in the batch: texts and bad ones
    null_rows: int  # texts that are null: they are there, as empty texts


@dataclass(frozen=True)
class _Spec:
    shard: Shard
    text_field: TextField
    id_path: FieldPath | None
    on_bad_row: OnBadRow
    batch_bytes: int
    limit: int | None


class ShardReader:
    """Iterates over a shard's batches; made by `read_batches`."""

    def __init__(self, spec: _Spec) -> None:
        read = _read_json if spec.shard.format == "jsonl" else _read_table
        self._batches = read(spec)
        self._facts: FileFacts | None = None

    def __iter__(self) -> ShardReader:
        return self

    def __next__(self) -> Batch:
        try:
            return next(self._batches)
        except StopIteration as end:
            self._facts = self._facts or end.value
            raise

    def close(self) -> None:
        """Closes the file, for a reader that is not taken to its end."""
        self._batches.close()

    @property
    def facts(self) -> FileFacts:
        """Size, hash and row count of the file, once the last batch was taken. With a limit the hash
        is None."""
        if self._facts is None:
            raise RuntimeError("the shard was not read to its end")
        return self._facts


def read_batches(
    shard: Shard,
    *,
    text_field: TextField,
    id_field: str | None = None,
    on_bad_row: OnBadRow = "fail",
    batch_bytes: int = BATCH_BYTES,
    limit: int | None = None,
) -> ShardReader:
    """Reads a shard as batches of about `batch_bytes` of the file's text (at least one row each).

    id_field: field or dotted path of the document's id; ids that are no strings are written as JSON.
    on_bad_row: "fail" raises on the first row that cannot be read, "quarantine" puts it in
    `Batch.bad`.  limit: rows to read at most, bad ones included.

    Raises (while iterating):
        BadInput: the file is cut short or damaged, lacks the text column, or has a bad row.
        BadSetting: an option makes no sense.
    """
    if on_bad_row not in ("fail", "quarantine"):
        raise BadSetting(f"on-bad-row is {on_bad_row!r}", "use fail or quarantine")
    if batch_bytes < 1 or (limit is not None and limit < 0):
        raise BadSetting("batch size and limit must be positive", "leave them out for the defaults")
    id_path = None if id_field is None else _parse_id(id_field)
    return ShardReader(_Spec(shard, text_field, id_path, on_bad_row, batch_bytes, limit))


def _parse_id(id_field: str) -> FieldPath:
    single = TextField.parse(id_field).single
    if single is None:
        raise BadSetting(f"id field {id_field!r} is not one field", "name one, such as id or meta.id")
    return tuple(Step(key, False) for key in single)


def get_text(shard: Shard, row: int, text_field: TextField) -> str:
    """The text of one row, for showing it. Reads the shard up to that row.

    Raises:
        BadInput: there is no such row, or it cannot be read.
    """
    reader = read_batches(
        shard, text_field=text_field, on_bad_row="quarantine", limit=row + 1, batch_bytes=BLOCK_BYTES
    )
    for batch in reader:
        at = int(np.searchsorted(batch.rows, row))
        if at < len(batch.rows) and batch.rows[at] == row:
            return batch.data[batch.offsets[at] : batch.offsets[at + 1]].tobytes().decode()
    raise BadInput(f"{shard.path} has no readable row {row}", "check the row number")


@dataclass
class _Filling:
    """The batch being filled."""

    first_row: int
    lengths: list[npt.NDArray[np.int64]] = field(default_factory=list)  # bytes of each text
    ids: list[str | None] = field(default_factory=list)
    bad: list[BadRow] = field(default_factory=list)
    n_texts: int = 0
    null_rows: int = 0

    @property
    def next_row(self) -> int:
        """Number of the row that comes next."""
        return self.first_row + self.n_texts + len(self.bad)

    def add(self, lengths: npt.NDArray[np.int64], null_rows: int) -> None:
        """Counts texts: the bytes of each, and how many are null."""
        self.lengths.append(lengths)
        self.n_texts += len(lengths)
        self.null_rows += null_rows

    def batch(self, read_bytes: int, data: npt.NDArray[np.uint8]) -> Batch:
        """What was gathered, as a batch; `data`: the texts back to back, and zeros after them."""
        n_texts, n_rows = self.n_texts, self.n_texts + len(self.bad)
        rows = np.arange(self.first_row, self.first_row + n_rows, dtype=np.int64)
        if self.bad:
            rows = np.delete(rows, [bad.row - self.first_row for bad in self.bad])
        offsets = np.zeros(n_texts + 1, np.int64)
        if self.lengths:
            np.cumsum(np.concatenate(self.lengths), out=offsets[1:])
        rows.flags.writeable = offsets.flags.writeable = data.flags.writeable = False
        ids = self.ids or [None] * n_texts
        return Batch(
            self.first_row, rows, data, offsets, ids, self.bad, read_bytes, n_rows, self.null_rows
        )


def _set_aside(spec: _Spec, bad: BadRow, line: int | None = None) -> BadRow:
    """The bad row, if the caller wants bad rows set aside."""
    if spec.on_bad_row == "fail":
        where = f"row {bad.row}" if line is None else f"row {bad.row} (line {line})"
        raise BadInput(
            f"{spec.shard.path}, {where}: {bad.reason}",
            "fix the row, or pass --on-bad-row quarantine to set such rows aside",
        )
    return bad


def _encoded(text: str) -> bytes:
    """UTF-8; a lone surrogate, which JSON can escape and UTF-8 cannot hold, becomes U+FFFD."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text).encode()


def _id_text(value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        if isinstance(value, (simdjson.Object, simdjson.Array)):
            value = json.loads(value.mini)
        value = json.dumps(value, ensure_ascii=False, default=str)
    return value if value.isascii() else _encoded(value).decode()


def _id_at(row: Any, path: FieldPath) -> str | None:
    """The id that a path leads to, None if there is none."""
    for step in path:
        if not _is_object(row) or step.key not in row:
            return None
        row = row[step.key]
    return _id_text(row)


# ---- JSON lines ----------------------------------------------------------------------------------


def _read_json(spec: _Spec) -> Generator[Batch, None, FileFacts]:
    rows = _JsonRows(spec)
    filled = 0  # bytes of text since the last batch
    with open_bytes(spec.shard) as reader:
        for block in _blocks(spec, reader, rows):
            rows.feed(block)
            filled += len(block)
            if rows.room() == 0:
                break
            if filled >= spec.batch_bytes and rows.filling.next_row > rows.filling.first_row:
                yield rows.take(reader.file_bytes)
                filled = 0
        if rows.filling.next_row > rows.filling.first_row:
            yield rows.take(reader.file_bytes)
        n_rows = rows.filling.next_row
        if spec.limit is not None:
            return _sized(spec.shard)._replace(rows=n_rows)
        return reader.facts(n_rows)


def _blocks(spec: _Spec, reader: ShardBytes, rows: _JsonRows) -> Iterator[memoryview]:
    try:
        yield from line_blocks(reader, min(BLOCK_BYTES, spec.batch_bytes))
    except BadInput as error:
        n_rows = rows.filling.next_row
        raise BadInput(f"{error.message}; {n_rows:,} rows were read before", error.hint) from error


class _JsonRows:
    """Turns lines into texts. Most rows take the short way, many at once, in a kernel that takes only
    what is plainly right; whatever it leaves is looked at by `_take_careful`, line by line."""

    def __init__(self, spec: _Spec) -> None:
        self.filling = _Filling(0)
        self._spec = spec
        self._parse: Callable[[bytes], Any] = simdjson.Parser().parse
        self._line = 0  # lines seen, blank ones included
        single, id_path = spec.text_field.single, spec.id_path or ()
        self._has_short_way = single is not None and len(single) == 1 and len(id_path) < 2
        self._key = _key_bytes(spec.text_field.paths[0])
        self._id_key = _key_bytes(id_path)
        self._texts = np.empty(0, np.uint8)  # of this batch, and room for more
        self._filled = 0  # bytes of them
        self._lengths = np.empty(_RUN_ROWS, np.int64)
        self._id_spans = np.empty((_RUN_ROWS, 2), np.int64)

    def room(self) -> int:
        """Rows that the limit still allows."""
        limit = self._spec.limit
        return _NO_LIMIT if limit is None else limit - self.filling.next_row

    def feed(self, block: memoryview) -> None:
        """Reads the lines of a block of `line_blocks`, up to the limit."""
        buffer: bytearray = block.obj  # type: ignore[assignment]
        data = np.frombuffer(buffer, np.uint8)
        data.flags.writeable = False
        at, end = 0, len(block)
        while at < end and self.room() != 0:
            reached = self._take_run(block, data, at)
            if reached == at:
                stop = buffer.find(b"\n", at, end)
                stop = end if stop < 0 else stop
                self._take_careful(bytes(block[at:stop]))
                self._line += 1
                reached = stop + 1
            at = reached

    def take(self, read_bytes: int) -> Batch:
        """The batch so far; a new one is begun."""
        self._reserve(0)
        data = self._texts[: self._filled + PADDING]
        data[self._filled :] = 0
        batch = self.filling.batch(read_bytes, data)
        self.filling = _Filling(self.filling.next_row)
        self._texts, self._filled = np.empty(0, np.uint8), 0
        return batch

    def _reserve(self, n_bytes: int) -> None:
        """Makes room for texts of that many bytes, and what the kernel writes beyond them."""
        needed = self._filled + n_bytes + 2 * PADDING
        if needed > len(self._texts):
            usual = min(self._spec.batch_bytes, BATCH_BYTES) + BLOCK_BYTES
            grown = np.empty(max(needed, usual, 2 * len(self._texts)), np.uint8)
            grown[: self._filled] = self._texts[: self._filled]
            self._texts = grown

    def _take_run(self, block: memoryview, data: npt.NDArray[np.uint8], start: int) -> int:
        """Takes the rows from byte `start` of the block on that can go the short way; returns the byte
        it stopped at."""
        if not self._has_short_way or self._line == 0:
            return start
        self._reserve(len(block) - start)
        lengths, spans = self._lengths, self._id_spans
        reached, rows, self._filled, null_rows = kernels.read_json_lines(
            data, start, len(block), self._key, self._id_key, self.room(),
            self._texts, self._filled, lengths, spans,
        )  # fmt: skip
        if rows:
            self._line += rows
            self.filling.add(lengths[:rows].copy(), null_rows)
            if self._spec.id_path is not None:
                self.filling.ids += [
                    None if begin < 0 else str(block[begin:end], "utf-8")
                    for begin, end in spans[:rows].tolist()
                ]
        return reached

    def _take_careful(self, line: bytes) -> None:
        if is_blank(line):
            return
        try:
            row = self._load(line)
            text = self._spec.text_field.text_of(row)
            encoded = b"" if text is None else _encoded(text)
            ident = None if self._spec.id_path is None else _id_at(row, self._spec.id_path)
        except RowError as error:
            reason = str(error)
        else:
            self._reserve(len(encoded))
            stop = self._filled + len(encoded)
            self._texts[self._filled : stop] = np.frombuffer(encoded, np.uint8)
            self._filled = stop
            self.filling.add(np.array([len(encoded)], np.int64), text is None)
            if self._spec.id_path is not None:
                self.filling.ids.append(ident)
            return
        bad = BadRow(self.filling.next_row, reason, line)
        self.filling.bad.append(_set_aside(self._spec, bad, self._line + 1))

    def _load(self, line: bytes) -> Any:
        if self._line == 0:
            _refuse_bom(line)
        try:
            row = self._parse(line)
        except (ValueError, RuntimeError):
            row = _load_slowly(line, self._names())
        if not _is_object(row):
            raise RowError(f"the line is {_kind(row)}, not a JSON object{_array_hint(line)}")
        return row

    def _names(self) -> set[str]:
        return {step.key for path in self._spec.text_field.paths for step in path}


def compile_reader() -> None:
    """Compile the kernel that reads JSON lines, or load it from the cache."""
    data, key, most = np.frombuffer(bytes(PADDING), np.uint8), _key_bytes(()), 0
    out, lengths, spans = np.empty(0, np.uint8), np.empty(0, np.int64), np.empty((0, 2), np.int64)
    kernels.read_json_lines(data, 0, 0, key, key, most, out, 0, lengths, spans)


def _key_bytes(path: FieldPath) -> npt.NDArray[np.uint8]:
    """The first key of a path, for the kernel; empty if there is none."""
    return np.frombuffer(path[0].key.encode(errors="surrogatepass") if path else b"", np.uint8)


def _refuse_bom(line: bytes) -> None:
    for bom, (encoding, remedy) in _BOMS.items():
        if line.startswith(bom):
            raise RowError(f"the file starts with a {encoding} byte order mark; strip it: {remedy}")


def _load_slowly(line: bytes, names: set[str]) -> Any:
    """What simdjson refuses and Python's json may not: lone surrogates, NaN, very long numbers."""

    def as_dict(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = sorted(name for name in names if keys.count(name) > 1)
            if twice:
                raise RowError(
                    f"the field {twice[0]!r} is there twice, and readers differ in which they take"
                )
        return made

    try:
        return json.loads(line.decode(), object_pairs_hook=as_dict)
    except UnicodeDecodeError as error:
        byte = line[error.start]
        raise RowError(f"byte 0x{byte:02x} at byte {error.start} of the row is not UTF-8") from None
    except RecursionError:
        raise RowError("the row is nested too deeply") from None
    except ValueError as error:
        raise RowError(f"not JSON: {error}{_array_hint(line)}") from None


def _array_hint(line: bytes) -> str:
    is_array = line.lstrip()[:1] == b"["
    return "; turn a JSON array into lines with: jq -c '.[]'" if is_array else ""


# ---- tables --------------------------------------------------------------------------------------


def _read_table(spec: _Spec) -> Generator[Batch, None, FileFacts]:
    # Hashed before it is read: the writer hashes it again, so a change in between is seen.
    facts = _sized(spec.shard) if spec.limit is not None else hash_file(spec.shard.path)
    filling, filled = _Filling(0), 0  # filled: bytes of text since the last batch
    parts: list[memoryview] = []  # the texts of each step
    read_bytes = 0
    for step, step_end in _steps(spec):
        if filled >= spec.batch_bytes:
            yield filling.batch(read_bytes, _joined(parts))
            filling, filled, parts = _Filling(filling.next_row), 0, []
        room = step.num_rows if spec.limit is None else spec.limit - filling.next_row
        if room <= 0:
            break
        with reading_arrow(spec.shard.path):
            step = step.slice(0, room)
            parts.append(_take_step(spec, filling, step))
            filled += len(parts[-1]) + _ROW_BYTES * step.num_rows
        read_bytes = step_end
    else:
        read_bytes = facts.size_bytes
    if filling.next_row > filling.first_row:
        yield filling.batch(read_bytes, _joined(parts))
    return facts._replace(rows=filling.next_row)


def _joined(parts: list[memoryview]) -> npt.NDArray[np.uint8]:
    return np.frombuffer(b"".join([*parts, bytes(PADDING)]), np.uint8)


def _sized(shard: Shard) -> FileFacts:
    """The facts of a file that is not read whole."""
    return FileFacts(os.stat(shard.path).st_size, None, 0)


def _steps(spec: _Spec) -> Iterator[tuple[Any, int]]:
    """(record batch of a few hundred rows with the columns needed, bytes of the file read so far)."""
    steps = _parquet_steps(spec) if spec.shard.format == "parquet" else _ipc_steps(spec)
    with reading_arrow(spec.shard.path):
        yield from steps


def _parquet_steps(spec: _Spec) -> Iterator[tuple[Any, int]]:
    with open_parquet(spec.shard.path) as file:
        columns = _check_columns(spec, file.schema_arrow)
        text_type = file.schema_arrow.field(columns[0]).type
        rows = _STEP_ROWS_DICTIONARY if pa.types.is_dictionary(text_type) else _STEP_ROWS
        done, total = 0, max(1, file.metadata.num_rows)
        for step in file.iter_batches(rows, columns=_leaves(spec), use_threads=False):
            done += step.num_rows
            yield step, spec.shard.size_bytes * done // total


def _leaves(spec: _Spec) -> list[str]:
    """What to read of a Parquet file: of an object only the members needed, of a list all."""
    paths = [*spec.text_field.paths, *([spec.id_path] if spec.id_path is not None else [])]
    return [
        path[0].key if any(step.each for step in path) else ".".join(step.key for step in path)
        for path in paths
    ]


def _ipc_steps(spec: _Spec) -> Iterator[tuple[Any, int]]:
    ipc = open_ipc(spec.shard.path)
    columns = _check_columns(spec, ipc.schema)
    for batch, read_bytes in ipc.batches:
        needed = batch.select(columns)
        for start in range(0, needed.num_rows, _STEP_ROWS):
            step = needed.slice(start, _STEP_ROWS)
            _check_offsets(step)
            yield step, read_bytes


def _check_offsets(step: Any) -> None:
    """Offsets of a damaged file point anywhere. (What is not UTF-8 is found row by row, later.)"""
    try:
        step.validate(full=True)
    except pa.ArrowInvalid as error:
        if "UTF8" not in str(error):
            raise


def _check_columns(spec: _Spec, schema: Any) -> list[str]:
    """Columns to read. Every path must lead to text."""
    for path in spec.text_field.paths:
        _check_path(spec, schema, path)
    columns = spec.text_field.columns
    if spec.id_path is not None and spec.id_path[0].key not in columns:
        if spec.id_path[0].key not in schema.names:
            raise _no_column(spec, schema, spec.id_path[0].key, "--id-field")
        columns = [*columns, spec.id_path[0].key]
    return columns


def _no_column(spec: _Spec, schema: Any, name: str, option: str) -> BadInput:
    return BadInput(
        f"{spec.shard.path} has no column {name!r}; its columns are: {', '.join(schema.names)}",
        f"name the right one with {option}",
    )


def _check_path(spec: _Spec, schema: Any, path: FieldPath) -> None:
    if schema.names.count(path[0].key) != 1:
        raise _no_column(spec, schema, path[0].key, "--text-field")
    kind = schema.field(path[0].key).type
    for number, step in enumerate(path):
        if number:
            if not pa.types.is_struct(kind) or kind.get_field_index(step.key) < 0:
                raise _not_text(spec, path, kind)
            kind = kind.field(step.key).type
        if step.each:
            if not _is_list_type(kind):
                raise _not_text(spec, path, kind)
            kind = kind.value_type
    if not _is_text_type(kind) and not (spec.text_field.has_lists and _is_list_type(kind)):
        raise _not_text(spec, path, kind)


def _not_text(spec: _Spec, path: FieldPath, kind: Any) -> BadInput:
    name = ".".join(step.key + "[]" * step.each for step in path)
    return BadInput(
        f"{spec.shard.path}: {name} does not lead to text there, but to {kind}",
        "name the right field with --text-field",
    )


def _is_list_type(kind: Any) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _is_text_type(kind: Any) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    checks = (
        pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_binary,
        pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary,
        pa.types.is_null,
    )  # fmt: skip
    return any(check(kind) for check in checks)


def _take_step(spec: _Spec, filling: _Filling, step: Any) -> memoryview:
    """Adds the rows of a step to the batch; returns their texts back to back."""
    read = _texts_by_row if spec.text_field.has_lists else _texts_by_column
    texts, errors = read(spec.text_field, step)
    first, kept = filling.next_row, np.ones(step.num_rows, bool)
    for at, reason, raw in errors:
        kept[at] = False
        filling.bad.append(_set_aside(spec, BadRow(first + at, reason, raw)))
    if errors:
        texts = texts.filter(pa.array(kept))
    data, lengths = _packed(pc.fill_null(texts, b"") if texts.null_count else texts)
    filling.add(lengths, texts.null_count)
    if spec.id_path is not None:
        ids = _ids_of(step, spec.id_path)
        filling.ids += [ids[at] for at in np.flatnonzero(kept)] if errors else ids
    return data


_Errors = list[tuple[int, str, bytes]]  # place in the step, reason, the text's bytes


def _texts_by_column(text_field: TextField, step: Any) -> tuple[Any, _Errors]:
    """The texts of a step as a large_binary array, nulls kept, and the places that are not UTF-8."""
    columns = [_binary(_column_at(step, path)) for path in text_field.paths]
    texts, join = columns[0], pa.scalar(_JOIN.encode(), pa.large_binary())
    for column in columns[1:]:
        # Not null_handling="skip": that drops rows in which both are null (pyarrow 26).
        texts = pc.coalesce(pc.binary_join_element_wise(texts, column, join), texts, column)
    return texts, _not_utf8(texts)


def _column_at(step: Any, path: FieldPath) -> Any:
    column = step.column(step.schema.get_field_index(path[0].key))
    inner = [part.key for part in path[1:]]
    return pc.struct_field(column, inner) if inner else column


def _binary(column: Any) -> Any:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column.cast(pa.large_binary())


def _not_utf8(texts: Any) -> _Errors:
    try:
        texts.view(pa.large_string()).validate(full=True)
    except pa.ArrowInvalid:
        reasons = [_utf8_reason(raw) for raw in texts.to_pylist()]
        return [(at, why, texts[at].as_py()) for at, why in enumerate(reasons) if why]
    return []


def _utf8_reason(raw: bytes | None) -> str:
    try:
        (raw or b"").decode()
    except UnicodeDecodeError as error:
        return f"byte 0x{error.object[error.start]:02x} at byte {error.start} of the text is not UTF-8"
    return ""


def _texts_by_row(text_field: TextField, step: Any) -> tuple[Any, _Errors]:
    """As `_texts_by_column`, for paths through lists."""
    texts: list[bytes | None] = []
    errors: _Errors = []
    for at, row in enumerate(_rows_of(step)):
        text = None
        try:
            if row is None:
                raise RowError("a string of the row is not UTF-8")
            text = text_field.text_of(row)
        except RowError as error:
            errors.append((at, str(error), b""))
        texts.append(None if text is None else text.encode())
    return pa.array(texts, pa.large_binary()), errors


def _rows_of(step: Any) -> Iterator[dict[str, Any] | None]:
    """The rows as Python objects; None for one that holds a string that is not UTF-8."""
    try:
        yield from step.to_pylist()
    except UnicodeDecodeError:
        for at in range(step.num_rows):
            try:
                yield from step.slice(at, 1).to_pylist()
            except UnicodeDecodeError:
                yield None


def _packed(texts: Any) -> tuple[memoryview, npt.NDArray[np.int64]]:
    """(bytes of the texts back to back, length of each in bytes) of a large_binary array."""
    _, offset_buffer, data = texts.buffers()
    if not len(texts) or data is None:
        return memoryview(b""), np.zeros(len(texts), np.int64)
    offsets = np.frombuffer(offset_buffer, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    return memoryview(data)[offsets[0] : offsets[-1]], np.diff(offsets)


def _ids_of(step: Any, path: FieldPath) -> list[str | None]:
    column = _column_at(step, path)
    if _is_text_type(column.type):
        raw = _binary(column).to_pylist()
        return [None if value is None else value.decode(errors="replace") for value in raw]
    return [_id_text(value) for value in column.to_pylist()]
