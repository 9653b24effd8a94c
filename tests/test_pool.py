"""pool: shards to batches; nothing that cannot be read is passed over."""

from __future__ import annotations

import bz2
import gzip
import itertools
import json
import lzma
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xxhash
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from unseen.errors import BadInput, BadSetting
from unseen.files import list_shards
from unseen.pool import PADDING, Batch, ShardReader, TextField, get_text, read_batches

COMPRESS = {
    "": lambda data: data,
    ".gz": gzip.compress,
    ".zst": zstandard.ZstdCompressor(level=3).compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
}
TEXT = TextField.parse("text")
WORDS = ["plain", 'quo"te\\n', "größer", "数学题", "😀 tail", "", "\x00\x7f", "line\nbreak\r\n"]
ROWS = [{"id": f"d{n}", "text": WORDS[n % 8] * (n % 5 + 1), "n": n} for n in range(600)]


def shard_at(path: Path, data: bytes | None = None):
    if data is not None:
        path.write_bytes(data)
    return list_shards([str(path)]).shards[0]


def lines_of(rows: list[dict], end: str = "\n", ascii_only: bool = False) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=ascii_only) + end for row in rows).encode()


def reader_of(shard, text="text", **options) -> ShardReader:
    return read_batches(shard, text_field=TextField.parse(text), **options)


def texts_of(batch: Batch) -> list[str]:
    ends = batch.offsets.tolist()
    raw = batch.data.tobytes()
    return [raw[a:b].decode() for a, b in itertools.pairwise(ends)]


def read(shard, text="text", **options) -> dict[int, str]:
    """Row number to text."""
    found = {}
    for batch in reader_of(shard, text, **options):
        check_batch(batch)
        found |= dict(zip(batch.rows.tolist(), texts_of(batch), strict=True))
    return found


def check_batch(batch: Batch) -> None:
    n_texts = len(batch.rows)
    assert batch.data.dtype == np.uint8
    assert batch.offsets.dtype == batch.rows.dtype == np.int64
    assert len(batch.offsets) == n_texts + 1 == len(batch.ids) + 1
    assert batch.offsets[0] == 0
    assert len(batch.data) == batch.offsets[-1] + PADDING
    assert not batch.data[batch.offsets[-1] :].any()
    assert batch.n_rows == n_texts + len(batch.bad) > 0
    everything = sorted([*batch.rows.tolist(), *(bad.row for bad in batch.bad)])
    assert everything == list(range(batch.first_row, batch.first_row + batch.n_rows))
    for array in (batch.data, batch.offsets, batch.rows):
        assert not array.flags.writeable


def bad_of(shard, text="text", **options) -> list:
    reader = reader_of(shard, text, on_bad_row="quarantine", **options)
    return [bad for batch in reader for bad in batch.bad]


def fails(shard, words: str, text="text", **options) -> BadInput:
    with pytest.raises(BadInput, match=words) as caught:
        read(shard, text, **options)
    assert shard.path in caught.value.message
    assert caught.value.hint
    return caught.value


# ---- text fields ---------------------------------------------------------------------------------


def test_text_fields_are_parsed():
    assert TextField.parse("text").single == ("text",)
    assert TextField.parse("meta.body").single == ("meta", "body")
    assert TextField.parse("title, text").columns == ["title", "text"]
    assert TextField.parse("messages[].content").columns == ["messages"]
    assert TextField.parse("a[].b[].c,a[].d").columns == ["a"]
    assert TextField.parse("title,text").single is None
    assert TextField.parse("messages[].content").single is None


@pytest.mark.parametrize("spec", ["", "a,,b", "a..b", ".a", "[]", "a[0].b", "a[", "a][].b"])
def test_text_fields_that_make_no_sense_are_refused(spec):
    with pytest.raises(BadSetting, match="cannot be read"):
        TextField.parse(spec)


CHAT = {
    "title": "T",
    "meta": {"body": "B", "none": None},
    "texts": ["a", None, "b"],
    "messages": [
        {"role": "user", "content": "hi"},
        {"role": "tool", "content": None},
        {"role": "assistant", "tool_calls": []},
        {
            "role": "user",
            "content": [
                "s",
                {"type": "image", "url": "x"},
                {"type": "text", "text": "p"},
                {"type": "text", "text": None},
            ],
        },
    ],
    "turns": [{"parts": [{"t": "1"}, {"t": "2"}]}, {"parts": [{"t": "3"}]}],
    "empty": [],
}


@pytest.mark.parametrize("as_row", [dict, lambda row: row], ids=["python", "simdjson"])
@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ("title", "T"),
        ("meta.body", "B"),
        ("title,meta.body", "T\n\nB"),
        ("meta.none", None),
        ("title,meta.none", "T"),
        ("texts[]", "a\n\nb"),
        ("messages[].content", "hi\n\ns\n\np"),
        ("title,messages[].content,meta.body", "T\n\nhi\n\ns\n\np\n\nB"),
        ("turns[].parts[].t", "1\n\n2\n\n3"),
        ("empty[].content", None),
    ],
)
def test_what_text_fields_find(tmp_path, as_row, spec, text):
    row = dict(CHAT)
    if as_row is dict:
        assert TextField.parse(spec).text_of(row) == text
    shard = shard_at(tmp_path / "a.jsonl", lines_of([row, row]))
    assert read(shard, spec) == {0: text or "", 1: text or ""}


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("txt", r"no field 'txt' \(see --text-field\); there are: title, meta, texts"),
        ("meta.x", "no field 'x'"),
        ("title.x", "expected an object with 'x', found a string"),
        ("meta", "'meta' is an object, not a string"),
        ("texts", r"'texts' is a list, not a string; for lists of texts write texts\[\]"),
        ("title[]", "'title' is a string, not a list"),
        ("messages[].contents", "no field 'contents'"),
        ("messages[]", "expected text or a list of parts, found an object"),
    ],
)
def test_what_is_not_text_is_a_bad_row(tmp_path, spec, reason):
    shard = shard_at(tmp_path / "a.jsonl", lines_of([CHAT]))
    fails(shard, reason, spec)


# ---- JSON lines ----------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", COMPRESS)
@pytest.mark.parametrize("batch_bytes", [1, 700, 2 << 20])
def test_every_compression_and_batch_size_reads_the_same(tmp_path, suffix, batch_bytes):
    data = COMPRESS[suffix](lines_of(ROWS))
    shard = shard_at(tmp_path / f"a.jsonl{suffix}", data)
    reader = reader_of(shard, id_field="id", batch_bytes=batch_bytes)
    found, ids, last = {}, [], 0
    for batch in reader:
        check_batch(batch)
        assert batch.first_row == len(found)
        assert last <= batch.read_bytes <= len(data)
        last = batch.read_bytes
        found |= dict(zip(batch.rows.tolist(), texts_of(batch), strict=True))
        ids += batch.ids
    assert found == {n: row["text"] for n, row in enumerate(ROWS)}
    assert ids == [row["id"] for row in ROWS]
    assert last == len(data)
    assert reader.facts == (len(data), xxhash.xxh3_128(data).hexdigest(), len(ROWS))


def test_escapes_line_ends_and_blank_lines(tmp_path):
    data = (
        b"\n" + lines_of(ROWS[:3], "\r\n", ascii_only=True) + b" \t\r\n\n" + lines_of(ROWS[3:9]).strip()
    )
    found = read(shard_at(tmp_path / "a.jsonl", data))
    assert found == {n: row["text"] for n, row in enumerate(ROWS[:9])}


def test_an_empty_file_has_no_rows(tmp_path):
    for data in (b"", b"\n \n"):
        reader = reader_of(shard_at(tmp_path / "a.jsonl", data))
        assert list(reader) == []
        assert reader.facts.rows == 0


def test_facts_are_there_only_at_the_end(tmp_path):
    reader = reader_of(shard_at(tmp_path / "a.jsonl", lines_of(ROWS)), batch_bytes=100)
    next(reader)
    with pytest.raises(RuntimeError, match="not read to its end"):
        _ = reader.facts


def test_null_texts_are_kept_as_empty_and_counted(tmp_path):
    rows = [{"text": "a"}, {"text": None}, {"text": ""}, {"text": None}]
    (batch,) = reader_of(shard_at(tmp_path / "a.jsonl", lines_of(rows)))
    assert texts_of(batch) == ["a", "", "", ""]
    assert batch.null_rows == 2


def test_ids_of_every_kind(tmp_path):
    ids = ["x", 5, 2.5, True, None, {"a": ["ö"]}, [1]]
    rows = [{"text": "t", "id": ident} for ident in ids] + [{"text": "t"}]
    shard = shard_at(tmp_path / "a.jsonl", lines_of(rows * 2))
    (batch,) = reader_of(shard, id_field="id")
    assert batch.ids == ["x", "5", "2.5", "true", None, '{"a": ["ö"]}', "[1]", None] * 2
    (batch,) = reader_of(shard)
    assert batch.ids == [None] * 16
    (batch,) = reader_of(
        shard_at(tmp_path / "b.jsonl", b'{"text": "", "m": {"id": 1}}'), id_field="m.id"
    )
    assert batch.ids == ["1"]


def test_what_only_the_slow_parser_takes_is_read(tmp_path):
    lines = [
        b'{"text": "a\\ud800b\\udc00\\ud83d\\ude00", "id": "\\udfff"}',
        b'{"text": "nan", "x": NaN, "id": "1"}',
        b'{"text": "long", "x": 123456789012345678901234567890, "id": "2"}',
    ]
    (batch,) = reader_of(shard_at(tmp_path / "a.jsonl", b"\n".join(lines * 2)), id_field="id")
    assert texts_of(batch) == ["a\ufffdb\ufffd😀", "nan", "long"] * 2
    assert batch.ids == ["\ufffd", "1", "2"] * 2


BAD_LINES = [
    (b'{"text": "caf\xe9"}', "byte 0xe9 at byte 13 of the row is not UTF-8"),
    (b'{"text": "x", "other": "\xff"}', "byte 0xff at byte 24"),
    (b'{"text": "x"', "not JSON"),
    (b'{"text": "x"} {"text": "y"}', "not JSON"),
    (b'{"text": "tab\there"}', "not JSON"),
    (b"x" * 100, "not JSON"),
    (b"\x00", "not JSON"),
    (b"[1, 2]", "the line is a list, not a JSON object; turn a JSON array into lines"),
    (b"[", "not JSON.*turn a JSON array into lines"),
    (b'"text"', "the line is a string"),
    (b"5", "the line is a number"),
    (b"null", "the line is null"),
    (b"true", "the line is true or false"),
    (b'{"body": "x", "id": 1}', "no field 'text' .*there are: body, id"),
    (b"{}", "no field 'text' .*there are: none"),
    (b'{"text": 5}', "'text' is a number, not a string"),
    (b'{"text": ["x"]}', "'text' is a list"),
    (b'{"text": {"text": "x"}}', "'text' is an object"),
    (b'{"text": "x", "text": "y"}', "'text' is there twice"),
    (b'{"text": "x", "text": "y", "n": NaN}', "'text' is there twice"),
    (b'{"text": "x", "n": ' + b"[" * 90_000 + b"]" * 90_000 + b"}", "nested too deeply"),
    (b"[" * 90_000, "nested too deeply"),
]


@pytest.mark.parametrize(("line", "reason"), BAD_LINES)
def test_bad_rows(tmp_path, line, reason):
    good = b'{"text": "good"}\n'
    shard = shard_at(tmp_path / "a.jsonl", good + b"\n" + line + b"\n" + good * 2)
    error = fails(shard, reason)
    assert "row 1 (line 3)" in error.message
    assert "quarantine" in error.hint
    (bad,) = bad_of(shard)
    assert (bad.row, bad.raw) == (1, line)
    assert list(read(shard, on_bad_row="quarantine")) == [0, 2, 3]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\xef\xbb\xbf" + lines_of(ROWS), "UTF-8 byte order mark; strip it: sed"),
        ('{"text": "x"}\n'.encode("utf-16"), "UTF-16 byte order mark; strip it: iconv"),
        (b"\xfe\xff" + '{"text": "x"}\n'.encode("utf-16-be"), "UTF-16 byte order mark"),
    ],
)
def test_a_byte_order_mark_is_a_bad_row(tmp_path, data, reason):
    shard = shard_at(tmp_path / "a.jsonl", data)
    assert "row 0 (line 1)" in fails(shard, reason).message
    assert bad_of(shard)[0].row == 0


@pytest.mark.parametrize("suffix", [".gz", ".zst", ".bz2", ".xz"])
@pytest.mark.parametrize("on_bad_row", ["fail", "quarantine"])
def test_a_file_cut_short_is_never_quarantined(tmp_path, suffix, on_bad_row):
    data = COMPRESS[suffix](lines_of(ROWS * 30))
    shard = shard_at(tmp_path / f"a.jsonl{suffix}", data[: len(data) * 2 // 3])
    error = fails(shard, "cut short or damaged", on_bad_row=on_bad_row)
    assert "rows were read before" in error.message
    assert "fetch the file again" in error.hint


def test_a_row_of_20_mb_is_read_whole(tmp_path):
    text = "0123456789" * (2 << 20)
    data = lines_of([{"text": "a"}, {"text": text}, {"text": "b"}])
    for suffix in ("", ".gz"):
        shard = shard_at(tmp_path / f"a.jsonl{suffix}", COMPRESS[suffix](data))
        assert read(shard) == {0: "a", 1: text, 2: "b"}


@pytest.mark.parametrize("limit", [0, 1, 3, 5, 8, 99])
def test_limit_counts_bad_rows_and_not_blank_lines(tmp_path, limit):
    data = b"\n" + lines_of(ROWS[:3]) + b"nonsense\n\n\n" + lines_of(ROWS[4:8])
    reader = reader_of(
        shard_at(tmp_path / "a.jsonl", data), limit=limit, on_bad_row="quarantine", batch_bytes=50
    )
    rows = sorted(row for b in reader for row in [*b.rows.tolist(), *(bad.row for bad in b.bad)])
    assert rows == list(range(min(limit, 8)))
    assert reader.facts == (len(data), None, min(limit, 8))


def test_one_text_can_be_fetched(tmp_path):
    shard = shard_at(tmp_path / "a.jsonl", b"bad\n" + lines_of(ROWS))
    assert get_text(shard, 1 + 555, TEXT) == ROWS[555]["text"]
    with pytest.raises(BadInput, match="no readable row 0"):
        get_text(shard, 0, TEXT)
    with pytest.raises(BadInput, match="no readable row 601"):
        get_text(shard, 601, TEXT)


def test_options_that_make_no_sense_are_refused(tmp_path):
    shard = shard_at(tmp_path / "a.jsonl", lines_of(ROWS))
    for options in ({"on_bad_row": "skip"}, {"batch_bytes": 0}, {"limit": -1}, {"id_field": "a,b"}):
        with pytest.raises(BadSetting):
            reader_of(shard, **options)


VALUES = st.one_of(st.none(), st.text(max_size=40), st.integers(), st.booleans())


@settings(deadline=None, max_examples=60)
@given(
    rows=st.lists(st.fixed_dictionaries({"text": VALUES, "id": VALUES}), max_size=40),
    ends=st.lists(st.sampled_from(["\n", "\r\n", "\n\n", "\n \n"]), min_size=40, max_size=40),
    ascii_only=st.booleans(),
    batch_bytes=st.integers(1, 400),
)
def test_reading_agrees_with_json(tmp_path_factory, rows, ends, ascii_only, batch_bytes):
    lines = [json.dumps(row, ensure_ascii=ascii_only).encode("utf-8", "replace") for row in rows]
    data = b"".join(line + end.encode() for line, end in zip(lines, ends, strict=False))
    shard = shard_at(tmp_path_factory.mktemp("agree") / "a.jsonl", data)
    batches = list(reader_of(shard, id_field="id", on_bad_row="quarantine", batch_bytes=batch_bytes))
    texts = dict(pair for b in batches for pair in zip(b.rows.tolist(), texts_of(b), strict=True))
    ids = dict(pair for b in batches for pair in zip(b.rows.tolist(), b.ids, strict=True))
    good = {n: row for n, row in enumerate(rows) if isinstance(row["text"], str | None)}
    assert texts == {n: row["text"] or "" for n, row in good.items()}
    assert {n for b in batches for n in (bad.row for bad in b.bad)} == set(range(len(rows))) - set(good)
    assert ids == {
        n: i if (i := row["id"]) is None or isinstance(i, str) else json.dumps(i)
        for n, row in good.items()
    }


# ---- tables --------------------------------------------------------------------------------------


def write_table(path: Path, table: pa.Table) -> None:
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=170)
    else:
        opener = pa.ipc.new_file if path.suffix == ".arrow" else pa.ipc.new_stream
        with opener(str(path), table.schema) as writer:
            writer.write_table(table, max_chunksize=170)


KINDS = [".parquet", ".arrow", ".ipc"]  # .ipc: a stream
TEXT_TYPES = {
    "string": pa.string(),
    "large_string": pa.large_string(),
    "string_view": pa.string_view(),
    "binary": pa.binary(),
    "large_binary": pa.large_binary(),
    "dictionary": pa.dictionary(pa.int32(), pa.string()),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text_type", TEXT_TYPES)
@pytest.mark.parametrize("batch_bytes", [1, 2 << 20])
def test_tables_read_like_json_lines(tmp_path, kind, text_type, batch_bytes):
    texts = [None if n % 7 == 3 else row["text"] for n, row in enumerate(ROWS)]
    column = pa.array(texts, pa.string())
    if text_type == "dictionary":
        column = column.dictionary_encode()
    column = column.cast(TEXT_TYPES[text_type])
    path = tmp_path / f"a{kind}"
    write_table(path, pa.table({"n": range(len(texts)), "text": column, "id": [r["id"] for r in ROWS]}))
    reader = reader_of(shard_at(path), id_field="id", batch_bytes=batch_bytes)
    batches = list(reader)
    for batch in batches:
        check_batch(batch)
    assert [t for b in batches for t in texts_of(b)] == [text or "" for text in texts]
    assert [i for b in batches for i in b.ids] == [row["id"] for row in ROWS]
    assert sum(b.null_rows for b in batches) == texts.count(None)
    assert (len(batches) > 1) == (batch_bytes == 1)
    data = path.read_bytes()
    assert reader.facts == (len(data), xxhash.xxh3_128(data).hexdigest(), len(ROWS))
    assert batches[-1].read_bytes == len(data)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "spec",
    ["title", "meta.body", "title,meta.body", "texts[]", "messages[].content", "turns[].parts[].t"],
)
def test_paths_in_tables(tmp_path, kind, spec):
    row = {name: value for name, value in CHAT.items() if name != "empty"}
    row["messages"] = [{"role": "u", "content": "hi"}, {"role": "t", "content": None}]
    path = tmp_path / f"a{kind}"
    write_table(path, pa.Table.from_pylist([row, {"title": None}, row]))  # the second: all null
    text = TextField.parse(spec).text_of(row)
    assert read(shard_at(path), spec) == {0: text, 1: "", 2: text}


@pytest.mark.parametrize("kind", KINDS)
def test_limit_and_odd_ids_of_tables(tmp_path, kind):
    path = tmp_path / f"a{kind}"
    ids = [{"a": n} for n in range(600)]
    write_table(path, pa.table({"text": [r["text"] for r in ROWS], "id": ids}))
    for limit in (0, 1, 255, 256, 300, 9999):
        reader = reader_of(shard_at(path), limit=limit, id_field="id")
        batches = list(reader)
        rows = min(limit, 600)
        assert [i for b in batches for i in b.ids] == [json.dumps(i) for i in ids[:rows]]
        assert reader.facts == (path.stat().st_size, None, rows)
    (batch,) = reader_of(shard_at(path), id_field="id.a", limit=3)
    assert batch.ids == ["0", "1", "2"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text_type", [pa.string(), pa.large_binary()])
def test_invalid_utf8_in_a_table_is_a_bad_row(tmp_path, kind, text_type):
    raw = [row["text"].encode() for row in ROWS]
    raw[300], raw[301] = b"caf\xe9", None
    column = pa.array(raw, pa.large_binary() if text_type == pa.large_binary() else pa.binary())
    if text_type == pa.string():
        column = pa.Array.from_buffers(text_type, len(column), column.buffers(), 1)
    path = tmp_path / f"a{kind}"
    write_table(path, pa.table({"text": column, "id": [row["id"] for row in ROWS]}))
    shard = shard_at(path)
    error = fails(shard, "byte 0xe9 at byte 3 of the text is not UTF-8")
    assert "row 300:" in error.message
    (bad,) = bad_of(shard)
    assert (bad.row, bad.raw) == (300, b"caf\xe9")
    batches = list(reader_of(shard, on_bad_row="quarantine", id_field="id"))
    assert "d300" not in batches[0].ids
    assert sum(batch.n_rows for batch in batches) == 600


@pytest.mark.parametrize("kind", KINDS)
def test_invalid_utf8_inside_a_list_is_a_bad_row(tmp_path, kind):
    raw = pa.array([b"a", b"caf\xe9", b"b"], pa.binary())
    strings = pa.Array.from_buffers(pa.string(), 3, raw.buffers())
    path = tmp_path / f"a{kind}"
    write_table(path, pa.table({"texts": pa.ListArray.from_arrays([0, 1, 2, 3], strings)}))
    shard = shard_at(path)
    fails(shard, "row 1: a string of the row is not UTF-8", "texts[]")
    assert [bad.row for bad in bad_of(shard, "texts[]")] == [1]
    assert read(shard, "texts[]", on_bad_row="quarantine") == {0: "a", 2: "b"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_or_wrong_column_is_an_error_of_the_file(tmp_path, kind):
    path = tmp_path / f"a{kind}"
    write_table(path, pa.table({"body": ["x"], "n": [1], "l": [["x"]]}))
    shard = shard_at(path)
    for on_bad_row in ("fail", "quarantine"):
        error = fails(shard, "no column 'text'; its columns are: body, n, l", on_bad_row=on_bad_row)
        assert "--text-field" in error.hint
        fails(shard, "n does not lead to text there, but to int64", "n", on_bad_row=on_bad_row)
        fails(shard, "l does not lead to text", "l", on_bad_row=on_bad_row)
        fails(shard, "body.x does not lead to text", "body.x", on_bad_row=on_bad_row)
        fails(shard, "no column 'id'", "body", on_bad_row=on_bad_row, id_field="id")


@pytest.mark.parametrize("kind", KINDS)
def test_batches_of_empty_texts_end_too(tmp_path, kind):
    path = tmp_path / f"a{kind}"
    write_table(path, pa.table({"text": pa.nulls(50_000, pa.string())}))
    batches = list(reader_of(shard_at(path), batch_bytes=1 << 20))
    assert len(batches) > 2
    assert sum(batch.null_rows for batch in batches) == 50_000


def test_a_reader_can_be_left_early(tmp_path):
    reader = reader_of(shard_at(tmp_path / "a.jsonl", lines_of(ROWS)), batch_bytes=100)
    next(reader)
    reader.close()
    assert list(reader) == []
    with pytest.raises(RuntimeError):
        _ = reader.facts


@pytest.mark.parametrize("kind", KINDS)
def test_tables_without_rows(tmp_path, kind):
    path = tmp_path / f"a{kind}"
    write_table(path, pa.table({"text": pa.array([], pa.string())}))
    reader = reader_of(shard_at(path))
    assert list(reader) == []
    assert reader.facts.rows == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[: len(data) // 2],
        lambda data: data[:-1],
        lambda data: data[:-8],
        lambda data: data[:5],
        lambda data: b"",
        lambda data: b"<html>not found</html>",
    ],
    ids=["half", "last", "eight", "head", "empty", "html"],
)
def test_a_damaged_table_names_itself(tmp_path, kind, damage):
    path = tmp_path / f"a{kind}"
    write_table(path, pa.table({"text": [row["text"] * 9 for row in ROWS]}))
    shard = shard_at(path, damage(path.read_bytes()))
    for on_bad_row in ("fail", "quarantine"):
        error = fails(shard, "cut short or damaged", on_bad_row=on_bad_row)
        assert "fetch the file again" in error.hint


def test_a_page_that_was_changed_is_damaged(tmp_path):
    path = tmp_path / "a.parquet"
    table = pa.table({"text": ["needle in the text"]})
    options = {"compression": "none", "use_dictionary": False, "write_statistics": False}
    pq.write_table(table, path, write_page_checksum=True, **options)
    data = path.read_bytes()
    at = data.index(b"needle in")
    fails(shard_at(path, data[:at] + b"noodle" + data[at + 6 :]), "damaged")


def test_a_stream_with_more_after_its_end_is_damaged(tmp_path):
    path = tmp_path / "a.ipc"
    write_table(path, pa.table({"text": ["x"]}))
    fails(shard_at(path, path.read_bytes() * 2), "end marker")


@pytest.mark.parametrize("seed", range(40))
def test_flipped_bytes_never_crash(tmp_path, seed):
    """Damage that the format cannot see may change a text; it may not do worse."""
    kind = KINDS[seed % 3]
    path = tmp_path / f"a{kind}"
    write_table(path, pa.table({"text": [row["text"] for row in ROWS]}))
    data = bytearray(path.read_bytes())
    spots = np.random.default_rng(seed).integers(0, len(data), 20)
    for spot in spots:
        data[spot] ^= 1 << (spot % 8)
    shard = shard_at(path, bytes(data))
    try:
        rows = sum(batch.n_rows for batch in reader_of(shard, on_bad_row="quarantine"))
    except BadInput as error:
        assert shard.path in error.message  # noqa: PT017
    else:
        assert rows == 600


# ---- memory --------------------------------------------------------------------------------------


def peak_kb(script: str, *arguments: str) -> int:
    """Peak memory of a process, above what it holds before it reads."""
    start = "import resource, sys; from unseen.files import *; from unseen.pool import *\n"
    usage = "resource.getrusage(resource.RUSAGE_SELF).ru_maxrss"
    code = f"{start}before = {usage}\n{textwrap.dedent(script)}\nprint({usage} - before)"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1] / "src")}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True, text=True, check=True, env=environment,
    )  # fmt: skip
    return int(done.stdout)


READ = """
for batch in read_batches(list_shards([sys.argv[1]]).shards[0], text_field=TextField.parse("text")):
    pass
"""


@pytest.mark.parametrize("suffix", ["", ".zst", ".parquet"])
def test_a_large_shard_streams(tmp_path, suffix):
    text = "lorem ipsum " * 400
    lines = lines_of([{"text": text}] * 200)
    if suffix == ".parquet":
        path = tmp_path / "a.parquet"
        pq.write_table(pa.table({"text": [text] * 60_000}), path, use_dictionary=False)
    else:
        path = tmp_path / f"a.jsonl{suffix}"
        with zstandard.open(path, "wb") if suffix else path.open("wb") as file:
            for _ in range(300):
                file.write(lines)
    assert peak_kb(READ, str(path)) < 60 << 10


@pytest.mark.parametrize("data", [b"", b'{"text": "'], ids=["zeros", "one string"])
def test_a_bomb_does_not_fill_memory(tmp_path, data):
    """A row that never ends, in a small file."""
    path = tmp_path / "a.jsonl.gz"
    with gzip.open(path, "wb", 1) as file:
        file.write(data)
        for _ in range(64):
            file.write(bytes(1 << 20))
    script = """
    import unseen.files
    unseen.files.MAX_ROW_BYTES = 16 << 20
    try:
        for _ in read_batches(list_shards([sys.argv[1]]).shards[0], text_field=TextField.parse("text")):
            pass
    except Exception as error:
        assert "longer than 16 MiB" in str(error), error
    """
    assert peak_kb(script, str(path)) < 80 << 10
