"""write: kept, removed and bad rows together are the input, byte for byte."""

from __future__ import annotations

import base64
import bz2
import gzip
import json
import lzma
import os
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from unseen import files, write
from unseen.errors import BadInput, BadRun, BadSetting
from unseen.files import BadRow, FileFacts, Shard, hash_file, list_shards
from unseen.pool import TextField, read_batches
from unseen.write import SplitResult, split_shard

COMPRESS = {
    "": lambda data: data,
    ".gz": gzip.compress,
    ".zst": zstandard.ZstdCompressor(level=3).compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
}
DECOMPRESS = {
    "": lambda data: data,
    ".gz": gzip.decompress,
    ".zst": lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
    ".bz2": bz2.decompress,
    ".xz": lzma.decompress,
}
ROWS = [json.dumps({"text": f"row {n} " + "ä" * (n % 9), "n": n}) for n in range(500)]
DATA = "\n".join(ROWS).encode() + b"\n"


def shard_at(path: Path, data: bytes | None = None) -> Shard:
    if data is not None:
        path.write_bytes(data)
    return list_shards([str(path)]).shards[0]


def facts_of(shard: Shard, **options) -> FileFacts:
    reader = read_batches(shard, text_field=TextField.parse("text"), on_bad_row="quarantine", **options)
    for _ in reader:
        pass
    return reader.facts


def split(shard: Shard, out: Path, removed=(), bad=(), edits=None, **options) -> SplitResult:
    options = {"text_keys": ("text",), "expected": None, **options}
    return split_shard(
        shard,
        removed=np.array(removed, np.int64),
        bad=[BadRow(row, f"why {row}", b"") for row in bad],
        edits=edits,
        clean_path=str(out / "clean" / shard.name),
        removed_path=str(out / "removed" / shard.name),
        bad_path=str(out / "bad" / (shard.name + ".jsonl")),
        **options,
    )


def outputs(out: Path) -> set[str]:
    return {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}


# ---- JSON lines ----------------------------------------------------------------------------------

LINES = st.lists(
    st.tuples(
        st.sampled_from(
            [b'{"text": "a"}', b"", b" \t", b"bad", b'{"text": "\xff"}', b"\x0c", b"x" * 300]
        ),
        st.sampled_from([b"\n", b"\r\n"]),
    ),
    max_size=40,
)


@settings(deadline=None, max_examples=150)
@given(
    lines=LINES,
    ended=st.booleans(),
    fates=st.lists(st.sampled_from("kkrb"), min_size=40, max_size=40),
    block_bytes=st.integers(1, 200),
    suffix=st.sampled_from(["", "", ".gz"]),
)
def test_kept_removed_and_bad_rows_are_the_input(
    tmp_path_factory, lines, ended, fates, block_bytes, suffix
):
    whole = [line + end for line, end in lines]
    if whole and not ended:
        whole[-1] = lines[-1][0]
    rows = [line for line in whole if line.strip()]
    folder = tmp_path_factory.mktemp("split")
    shard = shard_at(folder / f"a.jsonl{suffix}", COMPRESS[suffix](b"".join(whole)))
    removed = [n for n in range(len(rows)) if fates[n] == "r"]
    bad = [n for n in range(len(rows)) if fates[n] == "b"]
    small_blocks = partial(files.line_blocks, block_bytes=block_bytes)
    with mock.patch.object(write, "line_blocks", small_blocks):
        result = split(shard, folder, removed, bad, expected=facts_of(shard, batch_bytes=block_bytes))

    def written(kind: str) -> bytes:
        path = folder / kind / shard.name
        return DECOMPRESS[suffix](path.read_bytes()) if path.exists() else b""

    fate = iter(fates)
    assert written("clean") == b"".join(line for line in whole if not line.strip() or next(fate) == "k")
    assert written("removed") == b"".join(rows[n] for n in removed)
    assert bad_rows(folder, shard) == {n: (f"why {n}", rows[n]) for n in bad}
    assert result[:4] == (len(rows), len(rows) - len(removed) - len(bad), len(removed), len(bad))
    assert (folder / "removed").exists() == bool(removed)
    assert (folder / "bad").exists() == bool(bad)


def bad_rows(folder: Path, shard: Shard) -> dict[int, tuple[str, bytes]]:
    path = folder / "bad" / (shard.name + ".jsonl")
    records = [json.loads(line) for line in path.open("rb")] if path.exists() else []
    return {
        r["row"]: (
            r["reason"],
            r["raw"].encode() if "raw" in r else base64.b64decode(r["raw_base64"]),
        )
        for r in records
    }


@pytest.mark.parametrize("suffix", COMPRESS)
def test_formats_stay_and_results_are_hashed(tmp_path, suffix):
    shard = shard_at(tmp_path / f"a.jsonl{suffix}", COMPRESS[suffix](DATA))
    results = [
        split(shard, tmp_path / str(run), [0, 7, 499], [3], expected=facts_of(shard))
        for run in range(2)
    ]
    assert results[0] == results[1]
    clean, removed = (tmp_path / "0" / kind / shard.name for kind in ("clean", "removed"))
    kept = [row for n, row in enumerate(ROWS) if n not in (0, 3, 7, 499)]
    assert DECOMPRESS[suffix](clean.read_bytes()).decode().splitlines() == kept
    assert len(DECOMPRESS[suffix](removed.read_bytes()).splitlines()) == 3
    result = results[0]
    assert (result.clean_bytes, result.clean_hash) == hash_file(str(clean))[:2]
    assert (result.removed_bytes, result.removed_hash) == hash_file(str(removed))[:2]
    bad = tmp_path / "0" / "bad" / (shard.name + ".jsonl")
    assert (result.bad_bytes, result.bad_hash) == hash_file(str(bad))[:2]


@pytest.mark.parametrize("suffix", COMPRESS)
def test_a_shard_with_nothing_to_remove_is_copied(tmp_path, suffix):
    data = COMPRESS[suffix](DATA)
    shard = shard_at(tmp_path / f"a.jsonl{suffix}", data)
    for number, expected in enumerate([facts_of(shard), None]):
        out = tmp_path / str(number)
        result = split(shard, out, expected=expected)
        assert (out / "clean" / shard.name).read_bytes() == data
        assert outputs(out) == {f"clean/{shard.name}"}
        assert result == (500, 500, 0, 0, facts_of(shard).xxh3_128, None, None, len(data), 0, 0)


def test_all_rows_may_go(tmp_path):
    shard = shard_at(tmp_path / "a.jsonl", DATA)
    result = split(shard, tmp_path, range(500))
    assert (tmp_path / "clean/a.jsonl").read_bytes() == b""
    assert (tmp_path / "removed/a.jsonl").read_bytes() == DATA
    assert result.kept == 0


@pytest.mark.parametrize("limit", [0, 1, 100, 499, 500, 501])
def test_with_a_limit_only_the_first_rows_are_the_shard(tmp_path, limit):
    shard = shard_at(tmp_path / "a.jsonl", DATA.replace(b"\n", b"\n\n"))
    removed = [n for n in (0, 99, 498) if n < limit]
    facts = facts_of(shard, limit=limit)
    result = split(shard, tmp_path, removed, limit=limit, expected=facts)
    rows = min(limit, 500)
    assert result[:4] == (rows, rows - len(removed), len(removed), 0)
    kept = (tmp_path / "clean/a.jsonl").read_text().split("\n")
    assert [line for line in kept if line] == [ROWS[n] for n in range(rows) if n not in removed]


@pytest.mark.parametrize("removed", [(), (5,)])
def test_a_file_that_changed_is_refused(tmp_path, removed):
    shard = shard_at(tmp_path / "a.jsonl", DATA)
    facts = facts_of(shard)
    for data in (DATA.replace(b"row 9", b"row 8"), DATA[:-40], DATA * 2):
        shard_at(tmp_path / "a.jsonl", data)
        with pytest.raises(BadInput, match=r"a\.jsonl was changed while it was being scanned"):
            split(shard, tmp_path / "out", removed, expected=facts)
        assert outputs(tmp_path / "out") == set()


def test_rows_that_are_not_there_are_an_error(tmp_path):
    shard = shard_at(tmp_path / "a.jsonl", DATA)
    with pytest.raises(BadInput, match="has 500 rows, of which 2 are to be removed"):
        split(shard, tmp_path / "out", [3, 500])
    with pytest.raises(ValueError, match="named twice"):
        split(shard, tmp_path / "out", [3], [3])
    assert outputs(tmp_path / "out") == set()


@pytest.mark.parametrize("removed", [(), (5,)])
def test_a_full_disk_leaves_nothing_behind(tmp_path, monkeypatch, removed):
    shard = shard_at(tmp_path / "a.jsonl.gz", gzip.compress(DATA))
    facts = facts_of(shard)
    monkeypatch.setattr(files, "_open_new", lambda path: open("/dev/full", "wb", buffering=0))  # noqa: SIM115
    with pytest.raises(BadRun, match="No space left"):
        split(shard, tmp_path / "out", removed, expected=facts)
    assert outputs(tmp_path / "out") == set()


def test_a_truncated_input_is_refused_when_written(tmp_path):
    data = gzip.compress(DATA)
    shard = shard_at(tmp_path / "a.jsonl.gz", data[:-20])
    with pytest.raises(BadInput, match="cut short or damaged"):
        split(shard, tmp_path / "out", [1])
    assert outputs(tmp_path / "out") == set()


# ---- edits ---------------------------------------------------------------------------------------


def test_an_edit_changes_the_text_and_no_other_byte(tmp_path):
    lines = [
        b'{"n": 1.50e3, "big": 12345678901234567890123, "text" : "a\\u00e9}\\"", "m": {"text": 1}}\r\n',
        b'\n  {"text":"b","x":"\\ud800"} \n',
        b'{"text": null, "l": [1, {"text": "z"}]}',
    ]
    shard = shard_at(tmp_path / "a.jsonl", b"".join(lines))
    result = split(shard, tmp_path, edits={0: 'new "ß"\n', 1: "\ufffd", 2: ""})
    assert (tmp_path / "clean/a.jsonl").read_bytes() == b"".join(
        [
            b'{"n": 1.50e3, "big": 12345678901234567890123, "text" : ',
            '"new \\"ß\\"\\n"'.encode(),
            b', "m": {"text": 1}}\r\n',
            '\n  {"text":"\ufffd","x":"\\ud800"} \n'.encode(),
            b'{"text": "", "l": [1, {"text": "z"}]}',
        ]
    )
    assert result[:4] == (3, 3, 0, 0)


def test_edits_reach_dotted_fields_and_go_with_removals(tmp_path):
    lines = [json.dumps({"a": {"x": n, "t": f"text {n}"}, "t": 0}) for n in range(6)]
    shard = shard_at(tmp_path / "a.jsonl", "\n".join(lines).encode())
    result = split(shard, tmp_path, [1], [4], {0: "A", 5: "F"}, text_keys=("a", "t"))
    texts = [json.loads(line)["a"]["t"] for line in (tmp_path / "clean/a.jsonl").open()]
    assert texts == ["A", "text 2", "text 3", "F"]
    assert result[:4] == (6, 4, 1, 1)


def test_edits_need_a_single_field(tmp_path):
    shard = shard_at(tmp_path / "a.jsonl", DATA)
    with pytest.raises(BadSetting, match="text field that is one field"):
        split(shard, tmp_path, edits={0: "x"}, text_keys=TextField.parse("a,b").single)


# ---- tables --------------------------------------------------------------------------------------

KINDS = [".parquet", ".arrow", ".ipc"]  # .ipc: a stream


def sample_table(rows: int = 500) -> pa.Table:
    columns = {
        "id": pa.array([f"d{n}" for n in range(rows)]),
        "text": pa.array([None if n % 50 == 9 else f"text {n} " + "ö" * 40 for n in range(rows)]),
        "kind": pa.array(["ab"[n % 2] for n in range(rows)]).dictionary_encode(),
        "meta": pa.array([{"x": n, "t": f"t{n}"} if n % 3 else None for n in range(rows)]),
        "list": pa.array([[n] * (n % 3) for n in range(rows)]),
        "time": pa.array(range(rows), pa.timestamp("us")),
    }
    return pa.table(columns).replace_schema_metadata({"made": "by hand"})


def write_table(path: Path, table: pa.Table, codec: str | None = None) -> Shard:
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=170, compression=codec or "none")
    else:
        opener = pa.ipc.new_file if path.suffix == ".arrow" else pa.ipc.new_stream
        options = pa.ipc.IpcWriteOptions(compression=codec)
        with opener(str(path), table.schema, options=options) as writer:
            writer.write_table(table, max_chunksize=170)
    return shard_at(path)


def read_table(path: Path, kind: str) -> pa.Table:
    if kind == ".parquet":
        return pq.ParquetFile(path).read()
    opener = pa.ipc.open_file if kind == ".arrow" else pa.ipc.open_stream
    return opener(str(path)).read_all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("codec", [None, "zstd", "lz4"])
def test_tables_keep_schema_values_and_codec(tmp_path, kind, codec):
    table = sample_table()
    shard = write_table(tmp_path / f"a{kind}", table, codec)
    results = [
        split(shard, tmp_path / str(run), [0, 3, 499], [7], expected=facts_of(shard))
        for run in range(2)
    ]
    assert results[0] == results[1]
    assert results[0][:4] == (500, 496, 3, 1)
    clean, removed = (tmp_path / "0" / part / shard.name for part in ("clean", "removed"))
    mask = np.ones(500, bool)
    mask[[0, 3, 7, 499]] = False
    schema = read_table(Path(shard.path), kind).schema
    for path, rows in [
        (clean, table.filter(pa.array(mask))),
        (removed, table.take(pa.array([0, 3, 499]))),
    ]:
        found = read_table(path, kind)
        found.validate(full=True)
        assert found.schema.equals(schema, check_metadata=True)
        assert found.to_pylist() == rows.to_pylist()
    ((reason, raw),) = bad_rows(tmp_path / "0", shard).values()
    assert reason == "why 7"
    assert pa.ipc.open_stream(raw).read_all().to_pylist() == table.slice(7, 1).to_pylist()
    assert results[0].clean_hash == hash_file(str(clean)).xxh3_128
    if kind != ".parquet":
        assert write._ipc_codec(str(clean)) == write._ipc_codec(shard.path) == codec
        return
    before, after = (pq.read_metadata(path) for path in (shard.path, clean))
    assert [before.row_group(g).num_rows for g in range(3)] == [170, 170, 160]
    assert [after.row_group(g).num_rows for g in range(3)] == [167, 170, 159]
    for number in range(before.num_columns):
        was, now = before.row_group(0).column(number), after.row_group(0).column(number)
        assert (was.path_in_schema, was.compression) == (now.path_in_schema, now.compression)
        assert was.has_dictionary_page == now.has_dictionary_page


@pytest.mark.parametrize("kind", KINDS)
def test_tables_with_nothing_to_remove_are_copied_and_all_rows_may_go(tmp_path, kind):
    table = sample_table()
    shard = write_table(tmp_path / f"a{kind}", table, "zstd")
    for expected in (facts_of(shard), None):
        assert split(shard, tmp_path, expected=expected)[:4] == (500, 500, 0, 0)
        assert (tmp_path / "clean" / shard.name).read_bytes() == Path(shard.path).read_bytes()
    assert split(shard, tmp_path, range(500))[:4] == (500, 0, 500, 0)
    clean = read_table(tmp_path / "clean" / shard.name, kind)
    assert clean.num_rows == 0
    assert clean.schema.equals(read_table(Path(shard.path), kind).schema, check_metadata=True)
    assert read_table(tmp_path / "removed" / shard.name, kind).to_pylist() == table.to_pylist()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("limit", [0, 1, 170, 171, 500, 501])
def test_tables_with_a_limit(tmp_path, kind, limit):
    table = sample_table()
    shard = write_table(tmp_path / f"a{kind}", table)
    removed = [n for n in (0, 170) if n < limit]
    result = split(shard, tmp_path, removed, limit=limit, expected=facts_of(shard, limit=limit))
    rows = min(limit, 500)
    assert result[:4] == (rows, rows - len(removed), len(removed), 0)
    kept = [row for n, row in enumerate(table.to_pylist()[:rows]) if n not in removed]
    assert read_table(tmp_path / "clean" / shard.name, kind).to_pylist() == kept


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "text_type",
    [
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.binary(),
        pa.dictionary(pa.int32(), pa.string()),
    ],
    ids=str,
)
def test_edits_of_tables(tmp_path, kind, text_type):
    column = pa.array([f"t{n}" if n != 2 else None for n in range(6)])
    column = column.dictionary_encode() if pa.types.is_dictionary(text_type) else column
    table = pa.table({"text": column.cast(text_type), "n": range(6)})
    shard = write_table(tmp_path / f"a{kind}", table)
    result = split(shard, tmp_path, [1], [4], {2: "new", 5: "größer"})
    found = read_table(tmp_path / "clean" / shard.name, kind)
    assert found.schema == table.schema
    texts = [t.decode() if isinstance(t, bytes) else t for t in found["text"].to_pylist()]
    assert texts == ["t0", "new", "t3", "größer"]
    assert found["n"].to_pylist() == [0, 2, 3, 5]
    assert result[:4] == (6, 4, 1, 1)


@pytest.mark.parametrize("kind", KINDS)
def test_edits_inside_structs_keep_nulls_and_siblings(tmp_path, kind):
    table = sample_table(20)
    shard = write_table(tmp_path / f"a{kind}", table)
    split(shard, tmp_path, edits={4: "new"}, text_keys=("meta", "t"))
    expected = table.to_pylist()
    expected[4]["meta"]["t"] = "new"
    found = read_table(tmp_path / "clean" / shard.name, kind)
    assert found.to_pylist() == expected
    assert found.schema.equals(read_table(Path(shard.path), kind).schema, check_metadata=True)


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_that_changed_or_is_cut_short_is_refused(tmp_path, kind):
    shard = write_table(tmp_path / f"a{kind}", sample_table())
    facts = facts_of(shard)
    write_table(tmp_path / f"a{kind}", sample_table(480))
    for removed in ([], [5]):
        with pytest.raises(BadInput, match="was changed while it was being scanned"):
            split(shard, tmp_path / "out", removed, expected=facts)
    shard_at(Path(shard.path), Path(shard.path).read_bytes()[:-9])
    with pytest.raises(BadInput, match="cut short or damaged"):
        split(shard, tmp_path / "out", [5])
    assert outputs(tmp_path / "out") == set()


@pytest.mark.parametrize("kind", KINDS)
def test_a_full_disk_leaves_no_table_behind(tmp_path, monkeypatch, kind):
    shard = write_table(tmp_path / f"a{kind}", sample_table())
    monkeypatch.setattr(files, "_open_new", lambda path: open("/dev/full", "wb", buffering=0))  # noqa: SIM115
    with pytest.raises(BadRun, match="No space left"):
        split(shard, tmp_path / "out", [5, 300])
    assert outputs(tmp_path / "out") == set()


def test_a_large_row_group_comes_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(write, "_GROUP_BYTES", 4000)
    monkeypatch.setattr(write, "_REMOVED_BYTES", 2000)
    table = sample_table()
    shard = write_table(tmp_path / "a.parquet", table)
    removed = list(range(0, 500, 2))
    split(shard, tmp_path, removed)
    clean, gone = (tmp_path / kind / "a.parquet" for kind in ("clean", "removed"))
    assert pq.read_metadata(clean).num_row_groups > 3
    assert 1 < pq.read_metadata(gone).num_row_groups < 100
    assert read_table(clean, ".parquet").to_pylist() == table.to_pylist()[1::2]
    assert read_table(gone, ".parquet").to_pylist() == table.to_pylist()[::2]


def test_a_bad_row_of_a_table_keeps_bytes_that_are_no_utf8(tmp_path):
    raw = pa.array([b"ok", b"caf\xe9"], pa.binary())
    table = pa.table({"text": pa.Array.from_buffers(pa.string(), 2, raw.buffers())})
    shard = write_table(tmp_path / "a.parquet", table)
    split(shard, tmp_path, bad=[1])
    ((_, stream),) = bad_rows(tmp_path, shard).values()
    kept = pa.ipc.open_stream(stream).read_all()["text"].cast(pa.binary())
    assert kept.to_pylist() == [b"caf\xe9"]
    assert os.path.exists(tmp_path / "clean/a.parquet")
