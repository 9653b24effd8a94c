"""Writing: one shard to a clean, a removed and a bad one, without losing a row.

In:   a `Shard`, the rows to remove, the rows that could not be read, and texts to replace.
Out:  clean: the input without them, in the same format and compression; removed: the rows taken out,
      likewise; bad: JSON lines that say why.

    clean/cc/a.jsonl.zst      removed/cc/a.jsonl.zst      bad/cc/a.jsonl.zst.jsonl

    {"row": 17, "reason": "not JSON: ...", "raw": "{\\"text\\": ...\\n"}

A kept row of JSON lines is byte for byte the input's, its line end included; blank lines stay with the
kept rows. Of a Parquet or Arrow file the values, the schema with its metadata and the compression
stay. Files for removed and bad rows exist only if there is such a row. The input is read again here,
and must be the one that was scanned.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from json.decoder import scanstring  # type: ignore[attr-defined]
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from unseen import kernels
from unseen.errors import BadInput, BadSetting
from unseen.files import (
    BadRow,
    FileFacts,
    HashingReader,
    OutputFile,
    Shard,
    atomic_write,
    hash_file,
    is_blank,
    line_blocks,
    open_bytes,
    open_ipc,
    open_parquet,
    reading_arrow,
    unreadable,
)

Ints = npt.NDArray[np.int64]

_GROUP_BYTES = 64 << 20  # a row group larger than this when decoded is written as several
_MANY_RUNS = 200
_REMOVED_BYTES = 16 << 20  # removed rows of a Parquet file are gathered into row groups of this size
_COPY_BYTES = 1 << 20
_SPACE = re.compile(r"[ \t\r\n\ufeff]*")


class SplitResult(NamedTuple):
    """rows = kept + removed + bad. Hashes are xxh3_128 of the written files, None where there is none;
    sizes are theirs, in bytes."""

    rows: int
    kept: int
    removed: int
    bad: int
    clean_hash: str
    removed_hash: str | None
    bad_hash: str | None
    clean_bytes: int
    removed_bytes: int
    bad_bytes: int


@dataclass(frozen=True)
class _Job:
    shard: Shard
    removed: Ints  # row numbers, ascending
    bad: Mapping[int, str]  # row: reason
    edits: Mapping[int, str]  # row: its new text
    keys: tuple[str, ...]  # path of the text that edits replace
    special: Ints  # all of the above, ascending
    limit: int | None


def split_shard(
    shard: Shard,
    *,
    removed: Ints,
    bad: Sequence[BadRow],
    edits: Mapping[int, str] | None,
    text_keys: tuple[str, ...] | None,
    clean_path: str,
    removed_path: str,
    bad_path: str,
    expected: FileFacts | None,
    limit: int | None = None,
) -> SplitResult:
    """Writes a shard's clean, removed and bad rows to three files, each whole or not at all.

    removed: int64[n] row numbers, ascending.  bad: rows set aside when the shard was read; only `row`
    and `reason` are used.  edits: row number to the text that takes the place of its own.
    text_keys: `TextField.single`, the path of that text.  expected: what the reader found; None skips
    the comparison.  limit: only the first so many rows are the shard, as in `read_batches`.

    Raises:
        BadInput: the file is not the one that was scanned, or is damaged.
        BadSetting: edits were asked for, but the text field is not a single one.
        BadRun: an output cannot be written.
    """
    job = _job(shard, removed, bad, edits or {}, text_keys, limit)
    if limit is None and not len(job.special):
        return _copy(shard, clean_path, expected or _count_rows(shard))
    with ExitStack() as stack:
        outputs = _Outputs(stack, shard, clean_path, removed_path, bad_path)
        facts = _SPLITTERS[shard.format](job, outputs)
        _check_same(shard, facts, expected if limit is None else None)
        _check_rows(job, facts.rows, outputs)
    return outputs.result(facts.rows)


def write_bad(bad: Sequence[BadRow], path: Path) -> None:
    """Bad rows alone, as `split_shard` writes them: for a run without copies."""
    with atomic_write(str(path)) as file:
        for row in bad:
            file.write(_bad_line(row.row, row.reason, row.raw))


def _bad_line(row: int, reason: str, raw: bytes) -> bytes:
    """A bad row as a JSON line; bytes that are no UTF-8 as base64."""
    record: dict[str, Any] = {"row": row, "reason": reason}
    try:
        record["raw"] = raw.decode()
    except UnicodeDecodeError:
        record["raw_base64"] = base64.b64encode(raw).decode()
    return json.dumps(record, ensure_ascii=False).encode() + b"\n"


def _job(
    shard: Shard,
    removed: Ints,
    bad: Sequence[BadRow],
    edits: Mapping[int, str],
    keys: tuple[str, ...] | None,
    limit: int | None,
) -> _Job:
    if edits and keys is None:
        raise BadSetting(
            "cutting spans out of a text needs a text field that is one field, without lists",
            "use --remove document, or name one text field",
        )
    removed = np.asarray(removed, np.int64)
    bad_rows = {row.row: row.reason for row in bad}
    special = np.concatenate([removed, np.array([*bad_rows, *edits], np.int64)])
    special.sort()
    if len(np.unique(special)) < len(special):
        raise ValueError("a row is named twice among the removed, bad and edited rows")
    return _Job(shard, removed, bad_rows, edits, keys or (), special, limit)


# ---- outputs and checks --------------------------------------------------------------------------


class _Outputs:
    """The output files of a shard. Removed and bad files are opened when first needed."""

    def __init__(
        self, stack: ExitStack, shard: Shard, clean_path: str, removed_path: str, bad_path: str
    ) -> None:
        self._stack = stack
        self._shard = shard
        self._paths = {"clean": clean_path, "removed": removed_path, "bad": bad_path}
        self._files: dict[str, OutputFile] = {}
        self.kept = self.removed_count = self.bad_count = 0
        _ = self.clean

    def _file(self, kind: str) -> OutputFile:
        if kind not in self._files:
            compression = None if kind == "bad" else self._shard.compression
            opened = atomic_write(self._paths[kind], compression)
            self._files[kind] = self._stack.enter_context(opened)
        return self._files[kind]

    @property
    def clean(self) -> OutputFile:
        """Where kept rows go."""
        return self._file("clean")

    @property
    def removed(self) -> OutputFile:
        """Where removed rows go; asking for it makes the file."""
        return self._file("removed")

    def closing(self, close: Callable[[], None]) -> None:
        """`close` is called before the files are finished."""
        self._stack.callback(close)

    def write_bad(self, row: int, reason: str, raw: bytes) -> None:
        """A bad row as a JSON line."""
        self._file("bad").write(_bad_line(row, reason, raw))
        self.bad_count += 1

    def result(self, rows: int) -> SplitResult:
        """Counts, hashes and sizes, once the files are finished."""
        files = [self._files.get(kind) for kind in ("clean", "removed", "bad")]
        hashes = [file.xxh3_128 if file else None for file in files]
        sizes = [file.size_bytes if file else 0 for file in files]
        return SplitResult(
            rows, self.kept, self.removed_count, self.bad_count,
            hashes[0] or "", hashes[1], hashes[2], *sizes,
        )  # fmt: skip


def _check_same(shard: Shard, facts: FileFacts, expected: FileFacts | None) -> None:
    if expected is not None and facts != expected:
        raise BadInput(
            f"{shard.path} was changed while it was being scanned: {_shown(expected)} then, "
            f"{_shown(facts)} now",
            "leave the pool alone while it is scanned, and run the same command again",
        )


def _shown(facts: FileFacts) -> str:
    return f"{facts.size_bytes:,} bytes, {facts.rows:,} rows, hash {(facts.xxh3_128 or '-')[:12]}"


def _check_rows(job: _Job, rows: int, outputs: _Outputs) -> None:
    """Rows in = kept + removed + bad, and every row named was met."""
    counts = (outputs.removed_count, outputs.bad_count, outputs.kept)
    if counts != (len(job.removed), len(job.bad), rows - len(job.removed) - len(job.bad)):
        raise BadInput(
            f"{job.shard.path} has {rows:,} rows, of which {len(job.removed):,} are to be removed and "
            f"{len(job.bad):,} are bad, but {counts[0]:,}, {counts[1]:,} and {counts[2]:,} others were "
            "met: it is not the file that was scanned",
            "scan the file again",
        )


def _copy(shard: Shard, clean_path: str, expected: FileFacts) -> SplitResult:
    """The clean file of a shard in which nothing was found: a copy, hashed on its way."""
    with atomic_write(clean_path) as out:
        try:
            with HashingReader(shard.path) as reader:
                while data := reader.read(_COPY_BYTES):
                    out.write(data)
                facts = FileFacts(reader.size_bytes, reader.digest(), expected.rows)
        except OSError as error:
            raise unreadable(shard.path, error) from error
        _check_same(shard, facts, expected)
    rows = expected.rows
    return SplitResult(rows, rows, 0, 0, out.xxh3_128, None, None, out.size_bytes, 0, 0)


def _count_rows(shard: Shard) -> FileFacts:
    if shard.format == "jsonl":
        with open_bytes(shard) as reader:
            rows = sum(len(_row_spans(block)[0]) for block in line_blocks(reader))
            return reader.facts(rows)
    with reading_arrow(shard.path):
        if shard.format == "parquet":
            rows = pq.read_metadata(shard.path).num_rows
        else:
            rows = sum(batch.num_rows for batch, _ in open_ipc(shard.path).batches)
    return hash_file(shard.path)._replace(rows=rows)


# ---- JSON lines ----------------------------------------------------------------------------------


def _split_json(job: _Job, outputs: _Outputs) -> FileFacts:
    row = 0
    with open_bytes(job.shard) as reader:
        for block in line_blocks(reader):
            if row == job.limit:
                break
            row = _split_block(job, outputs, block, row)
        if job.limit is not None:
            return FileFacts(job.shard.size_bytes, None, row)
        return reader.facts(row)


def _split_block(job: _Job, outputs: _Outputs, block: memoryview, first_row: int) -> int:
    """Puts the lines of a block where they belong; what lies between special rows is copied as one
    piece. Returns the row number after the block."""
    starts, ends = _row_spans(block)
    count, stop = len(starts), len(block)
    if job.limit is not None and first_row + count >= job.limit:
        count = job.limit - first_row
        stop = int(ends[count - 1])
    low, high = np.searchsorted(job.special, [first_row, first_row + count])
    copied = 0
    for row in job.special[low:high].tolist():
        start, end = int(starts[row - first_row]), int(ends[row - first_row])
        outputs.clean.write(block[copied:start])
        _place_line(job, outputs, row, bytes(block[start:end]))
        copied = end
    outputs.clean.write(block[copied:stop])
    outputs.kept += count - int(high - low)
    return first_row + count


def _row_spans(block: memoryview) -> tuple[Ints, Ints]:
    """int64[rows] start and end of the lines that are not blank, in bytes; ends include the line
    feed."""
    data = np.frombuffer(block, np.uint8)
    ends = np.empty(len(data) // 64, np.int64)
    count = kernels.line_ends(data, ends)
    if count > len(ends):
        ends = np.empty(count, np.int64)
        kernels.line_ends(data, ends)
    ends = ends[:count]
    if not len(ends) or ends[-1] != len(data):
        ends = np.append(ends, len(data))
    starts = np.concatenate([np.zeros(1, np.int64), ends[:-1]])
    doubtful = np.flatnonzero(data[starts] <= ord(" ")).tolist()
    blank = [at for at in doubtful if is_blank(bytes(block[starts[at] : ends[at]]))]
    return (np.delete(starts, blank), np.delete(ends, blank)) if blank else (starts, ends)


def _place_line(job: _Job, outputs: _Outputs, row: int, line: bytes) -> None:
    if row in job.bad:
        outputs.write_bad(row, job.bad[row], line)
    elif row in job.edits:
        outputs.clean.write(_with_text(job, row, line))
        outputs.kept += 1
    else:
        outputs.removed.write(line)
        outputs.removed_count += 1


def _with_text(job: _Job, row: int, line: bytes) -> bytes:
    """The line with another text; every other byte stays."""
    try:
        whole = line.decode()
        start, end = _value_span(whole, 0, job.keys)
    except (ValueError, IndexError, RecursionError) as error:
        raise BadInput(
            f"{job.shard.path}, row {row}: its text cannot be replaced ({error})",
            "use --remove document",
        ) from error
    new = json.dumps(job.edits[row], ensure_ascii=False)
    return (whole[:start] + new + whole[end:]).encode()


def _value_span(text: str, at: int, keys: tuple[str, ...]) -> tuple[int, int]:
    """Start and end (characters) of the value that `keys` lead to, in the JSON object at `at`."""
    decode = json.JSONDecoder().raw_decode
    at = _after_space(text, at)
    while text[at] != "}":
        key, at = scanstring(text, text.index('"', at) + 1, True)
        at = _after_space(text, text.index(":", at) + 1)
        if key == keys[0] and len(keys) > 1:
            return _value_span(text, at, keys[1:])
        start, (_, at) = at, decode(text, at)
        if key == keys[0]:
            return start, at
        at = _after_space(text, at)
    raise ValueError(f"no field {keys[0]!r}")


def _after_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


# ---- tables --------------------------------------------------------------------------------------


def _split_parquet(job: _Job, outputs: _Outputs) -> FileFacts:
    with reading_arrow(job.shard.path), open_parquet(job.shard.path) as file:
        schema, options = file.schema_arrow, _parquet_options(file)

        def new_writer(out: OutputFile) -> _ParquetWriter:
            return _ParquetWriter(out, schema, options)

        return _split_tables(job, outputs, _row_groups(file), new_writer)


def _row_groups(file: Any) -> Iterator[Any]:
    """The row groups as tables; one that is too large for memory comes in pieces."""
    for number in range(file.num_row_groups):
        group = file.metadata.row_group(number)
        if group.total_byte_size <= _GROUP_BYTES:
            yield file.read_row_group(number, use_threads=False)
            continue
        rows = max(1, group.num_rows * _GROUP_BYTES // group.total_byte_size)
        for batch in file.iter_batches(rows, row_groups=[number], use_threads=False):
            yield pa.Table.from_batches([batch])


def _parquet_options(file: Any) -> dict[str, Any]:
    """Writer settings that give the file's own codecs, encodings and metadata again."""
    metadata = file.metadata
    options: dict[str, Any] = {
        "version": metadata.format_version,
        "store_schema": b"ARROW:schema" in (metadata.metadata or {}),
    }
    if metadata.num_row_groups:
        group = metadata.row_group(0)
        columns = [group.column(number) for number in range(group.num_columns)]
        options["compression"] = {
            c.path_in_schema: "NONE" if c.compression == "UNCOMPRESSED" else c.compression
            for c in columns
        }
        options["use_dictionary"] = [c.path_in_schema for c in columns if c.has_dictionary_page]
        options["use_deprecated_int96_timestamps"] = any(c.physical_type == "INT96" for c in columns)
        options["use_compliant_nested_type"] = not any(
            ".list.item" in c.path_in_schema for c in columns
        )
    return options


class _ParquetWriter:
    """Writes each table as a row group; small ones may wait for the next (`gather`)."""

    def __init__(self, out: OutputFile, schema: Any, options: dict[str, Any]) -> None:
        self._writer = pq.ParquetWriter(out, schema, **options)
        self._waiting: list[Any] = []

    def write(self, table: Any) -> None:
        """Writes a row group."""
        self._writer.write_table(table, row_group_size=max(1, table.num_rows))

    def gather(self, table: Any) -> None:
        """Keeps a small table until there are enough for a row group."""
        self._waiting.append(table)
        if sum(waiting.nbytes for waiting in self._waiting) >= _REMOVED_BYTES:
            self._write_waiting()

    def _write_waiting(self) -> None:
        if self._waiting:
            self.write(pa.concat_tables(self._waiting))
            self._waiting.clear()

    def close(self) -> None:
        """Writes what waits, and the footer."""
        self._write_waiting()
        self._writer.close()


def _split_ipc(job: _Job, outputs: _Outputs) -> FileFacts:
    with reading_arrow(job.shard.path):
        ipc = open_ipc(job.shard.path)
        options = pa.ipc.IpcWriteOptions(compression=_ipc_codec(job.shard.path))
        opener = pa.ipc.new_file if ipc.kind == "file" else pa.ipc.new_stream

        def new_writer(out: OutputFile) -> _IpcWriter:
            return _IpcWriter(opener(out, ipc.schema, options=options))

        tables = (pa.Table.from_batches([batch]) for batch, _ in ipc.batches)
        return _split_tables(job, outputs, tables, new_writer)


class _IpcWriter:
    """Writes tables as record batches."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def write(self, table: Any) -> None:
        """Writes a record batch."""
        self._writer.write_table(table.combine_chunks())

    gather = write

    def close(self) -> None:
        """Writes the end marker, or the footer."""
        self._writer.close()


def _split_tables(
    job: _Job,
    outputs: _Outputs,
    tables: Iterator[Any],
    new_writer: Callable[[OutputFile], _ParquetWriter | _IpcWriter],
) -> FileFacts:
    clean = new_writer(outputs.clean)
    outputs.closing(clean.close)
    removed: _ParquetWriter | _IpcWriter | None = None
    row = 0
    for table in tables:
        if job.limit is not None:
            table = table.slice(0, job.limit - row)
        kept, gone = _split_table(job, outputs, table, row)
        row += table.num_rows
        if kept.num_rows:
            clean.write(kept)
            outputs.kept += kept.num_rows
        if gone.num_rows:
            if removed is None:
                removed = new_writer(outputs.removed)
                outputs.closing(removed.close)
            removed.gather(gone)
            outputs.removed_count += gone.num_rows
        if row == job.limit:
            break
    if job.limit is not None:
        return FileFacts(job.shard.size_bytes, None, row)
    return hash_file(job.shard.path)._replace(rows=row)


def _split_table(job: _Job, outputs: _Outputs, table: Any, first_row: int) -> tuple[Any, Any]:
    """(kept rows, with edited texts; removed rows) of a table; bad rows are written."""
    low, high = np.searchsorted(job.special, [first_row, first_row + table.num_rows])
    special = job.special[low:high].tolist()
    if not special:
        return table, table.slice(0, 0)
    fate = np.full(table.num_rows, "k")
    for row in special:
        if row in job.bad:
            fate[row - first_row] = "b"
            one = table.slice(row - first_row, 1)
            outputs.write_bad(row, job.bad[row], _as_stream(one))
        elif row not in job.edits:
            fate[row - first_row] = "r"
    kept = _where(table, fate == "k")
    new_row = np.cumsum(fate == "k") - 1  # place of each row among those kept
    texts = {int(new_row[row - first_row]): job.edits[row] for row in special if row in job.edits}
    if texts:
        kept = _with_texts(kept, job.keys, texts)
    return kept, _where(table, fate == "r")


def _where(table: Any, mask: npt.NDArray[np.bool_]) -> Any:
    """The rows under a mask, copied only if they are in many pieces. (Arrow's own filter copies, and
    does not take every type, string_view for one.)"""
    edges = np.flatnonzero(np.diff(mask, prepend=False, append=False)).tolist()
    runs = [table.slice(a, b - a) for a, b in zip(edges[::2], edges[1::2], strict=True)]
    found = pa.concat_tables(runs) if runs else table.slice(0, 0)
    return found if len(runs) < _MANY_RUNS else found.combine_chunks()


def _as_stream(table: Any) -> bytes:
    """An Arrow IPC stream: it holds what JSON cannot."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _with_texts(table: Any, keys: tuple[str, ...], texts: Mapping[int, str]) -> Any:
    """The table with other texts in some rows."""
    at = table.schema.get_field_index(keys[0])
    column = table.column(at).combine_chunks()
    column = pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
    return table.set_column(at, table.schema.field(at), _replaced(column, keys[1:], texts))


def _replaced(column: Any, keys: tuple[str, ...], texts: Mapping[int, str]) -> Any:
    kind = column.type
    if keys:
        children = [column.field(number) for number in range(kind.num_fields)]
        at = kind.get_field_index(keys[0])
        children[at] = _replaced(children[at], keys[1:], texts)
        fields = [kind.field(number) for number in range(kind.num_fields)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=column.is_null())
    plain = column.dictionary_decode() if pa.types.is_dictionary(kind) else column
    mask = np.zeros(len(column), bool)
    mask[list(texts)] = True
    new = pa.array([texts[row].encode() for row in sorted(texts)], pa.large_binary())
    replaced = pc.replace_with_mask(plain.cast(pa.large_binary()), pa.array(mask), new)
    if not pa.types.is_dictionary(kind):
        return replaced.cast(kind)
    return replaced.cast(kind.value_type).dictionary_encode().cast(kind)


def _ipc_codec(path: str) -> str | None:
    """Codec of the first record batch of an Arrow file or stream: None, "lz4" or "zstd". pyarrow does
    not tell, so it is looked up in the message, a flatbuffer (Arrow's Message.fbs)."""
    with pa.memory_map(path) as source:
        source.seek(8 if source.read(6) == b"ARROW1" else 0)
        try:
            while (message := pa.ipc.read_message(source)).type != "record batch":
                pass
        except EOFError:
            return None
        meta = message.metadata.to_pybytes()
    batch = _followed(meta, _field_at(meta, _followed(meta, 0), 2))
    compression = _field_at(meta, batch, 3)
    if not compression:
        return None
    codec = _field_at(meta, _followed(meta, compression), 0)
    return "zstd" if codec and meta[codec] == 1 else "lz4"


def _followed(meta: bytes, at: int) -> int:
    """Where the offset at `at` leads."""
    return at + int.from_bytes(meta[at : at + 4], "little")


def _field_at(meta: bytes, table: int, number: int) -> int:
    """Place of a field of a flatbuffer table, 0 if it is left out."""
    layout = table - int.from_bytes(meta[table : table + 4], "little", signed=True)
    slot = 4 + 2 * number
    if slot >= int.from_bytes(meta[layout : layout + 2], "little"):
        return 0
    offset = int.from_bytes(meta[layout + slot : layout + slot + 2], "little")
    return table + offset if offset else 0


_SPLITTERS: dict[str, Callable[[_Job, _Outputs], FileFacts]] = {
    "jsonl": _split_json,
    "parquet": _split_parquet,
    "arrow": _split_ipc,
}
