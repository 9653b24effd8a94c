"""files: listing, opening, cutting into lines, writing whole or not at all."""

from __future__ import annotations

import bz2
import errno
import gzip
import lzma
import os
import random
import tracemalloc
from pathlib import Path

import pytest
import xxhash
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from unseen import files
from unseen.errors import BadInput, BadRun, BadSetting
from unseen.files import (
    Shard,
    atomic_write,
    hash_file,
    line_blocks,
    list_shards,
    open_bytes,
    remove_leftovers,
)

COMPRESS = {
    "gz": gzip.compress,
    "zst": zstandard.ZstdCompressor(level=3, write_checksum=True).compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
}
TEXT = "".join(f'{{"text": "row {n} {random.Random(n).random()}"}}\n' for n in range(9000)).encode()


def shard_of(path: Path, compression=None) -> Shard:
    return Shard(str(path), path.name, "jsonl", compression, path.stat().st_size)


def write(folder: Path, compression: str | None, data: bytes) -> Shard:
    path = folder / f"a.jsonl{'.' + compression if compression else ''}"
    path.write_bytes(data)
    return shard_of(path, compression)


def read_all(shard: Shard, size: int = 50_000) -> bytes:
    with open_bytes(shard) as reader:
        return b"".join(iter(lambda: reader.read(size), b""))


def touch(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b'{"text": "x"}\n')


# ---- listing -------------------------------------------------------------------------------------


def names_of(*pool: object) -> list[str]:
    return [shard.name for shard in list_shards([str(given) for given in pool]).shards]


def test_folder_is_listed_recursively_sorted_without_hidden_ones(tmp_path):
    touch(tmp_path, "b.jsonl", "a/z.jsonl.gz", "a/b/c.parquet", ".git/x.jsonl", "_tmp/x.jsonl")
    touch(tmp_path, ".h.jsonl", "_SUCCESS", "notes.txt", "x.parquet.gz")
    listing = list_shards([str(tmp_path)])
    assert [s.name for s in listing.shards] == ["a/b/c.parquet", "a/z.jsonl.gz", "b.jsonl"]
    assert [Path(path).name for path in listing.ignored] == ["notes.txt", "x.parquet.gz"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.jsonl", ("jsonl", None)),
        ("a.ndjson.zstd", ("jsonl", "zst")),
        ("a.json.gzip", ("jsonl", "gz")),
        ("A.JSONL.BZ2", ("jsonl", "bz2")),
        ("a.b.jsonl.xz", ("jsonl", "xz")),
        ("a.pq", ("parquet", None)),
        ("a.feather", ("arrow", None)),
        ("a.ipc", ("arrow", None)),
    ],
)
def test_suffixes(tmp_path, name, kind):
    touch(tmp_path, name)
    (shard,) = list_shards([str(tmp_path / name)]).shards
    assert (shard.format, shard.compression) == kind
    assert shard.name == name
    assert os.path.isabs(shard.path)
    assert shard.size_bytes == 14


def test_same_named_files_of_different_folders_keep_different_names(tmp_path):
    touch(tmp_path, "cc/2024/a.jsonl", "wiki/a.jsonl")
    both = ["cc/2024/a.jsonl", "wiki/a.jsonl"]
    assert names_of(tmp_path / "cc/2024/a.jsonl", tmp_path / "wiki/a.jsonl") == both
    assert names_of(tmp_path / "cc", tmp_path / "wiki") == both
    assert names_of(f"{tmp_path}/*/**/a.jsonl") == both
    assert names_of(tmp_path / "cc/2024") == ["a.jsonl"]


def test_globs_name_below_their_fixed_part(tmp_path):
    touch(tmp_path, "p/x/1.jsonl", "p/y/2.jsonl", "p/_y/3.jsonl", "p/z.txt")
    assert names_of(f"{tmp_path}/p/**/*.jsonl") == ["x/1.jsonl", "y/2.jsonl"]
    assert names_of(f"{tmp_path}/p/_*/*.jsonl") == ["_y/3.jsonl"]
    assert names_of(f"{tmp_path}/p/*") == ["x/1.jsonl", "y/2.jsonl"]


def test_a_file_reached_twice_is_listed_once(tmp_path):
    touch(tmp_path, "p/a.jsonl")
    (tmp_path / "p/b.jsonl").symlink_to(tmp_path / "p/a.jsonl")
    (tmp_path / "p/loop").symlink_to(tmp_path / "p")
    assert names_of(tmp_path / "p", tmp_path / "p/a.jsonl", f"{tmp_path}/p/*.jsonl") == ["a.jsonl"]


def test_linked_folders_are_entered(tmp_path):
    touch(tmp_path, "real/a.jsonl", "p/b.jsonl")
    (tmp_path / "p/link").symlink_to(tmp_path / "real")
    assert names_of(tmp_path / "p") == ["b.jsonl", "link/a.jsonl"]


def test_listing_errors_say_what_to_do(tmp_path):
    touch(tmp_path, "a.jsonl", "notes.txt", "texts/b.txt")
    for pool, kind, words in [
        ([], BadSetting, "no pool"),
        ([tmp_path / "notes.txt"], BadSetting, "notes.txt"),
        ([tmp_path / "none.jsonl"], BadInput, "does not exist"),
        ([tmp_path / "*.parquet"], BadInput, "nothing matches"),
        ([tmp_path, tmp_path / "texts"], BadInput, "no shards in"),
    ]:
        with pytest.raises(kind, match=words) as caught:
            list_shards([str(given) for given in pool])
        assert caught.value.hint


# ---- opening -------------------------------------------------------------------------------------


@pytest.mark.parametrize("compression", [None, *COMPRESS])
def test_every_compression_gives_the_plain_bytes_and_the_hash_of_the_file(tmp_path, compression):
    data = COMPRESS[compression](TEXT) if compression else TEXT
    shard = write(tmp_path, compression, data)
    with open_bytes(shard) as reader:
        assert b"".join(iter(lambda: reader.read(40_000), b"")) == TEXT
        facts = reader.facts(7)
    assert facts == (len(data), xxhash.xxh3_128(data).hexdigest(), 7)
    assert hash_file(shard.path) == (*facts[:2], 0)


@pytest.mark.parametrize("compression", list(COMPRESS))
def test_several_streams_in_one_file_are_all_read(tmp_path, compression):
    data = b"".join(COMPRESS[compression](TEXT[at : at + 90_000]) for at in range(0, len(TEXT), 90_000))
    assert read_all(write(tmp_path, compression, data)) == TEXT


def test_padding_and_skippable_frames_are_no_damage(tmp_path):
    skippable = b"\x50\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"hello"
    assert read_all(write(tmp_path, "xz", lzma.compress(TEXT) + bytes(8))) == TEXT
    assert read_all(write(tmp_path, "gz", gzip.compress(TEXT) + bytes(512))) == TEXT
    zstd = COMPRESS["zst"]
    assert read_all(write(tmp_path, "zst", skippable + zstd(TEXT) + skippable)) == TEXT


@pytest.mark.parametrize("compression", list(COMPRESS))
@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[: len(data) // 2],
        lambda data: data[:-1],
        lambda data: data[:-5],
        lambda data: data[:5],
        lambda data: b"",
        lambda data: data + data[: len(data) // 2],
        lambda data: data + data[:3],
        lambda data: data + b"trailing garbage",
        lambda data: data[: len(data) // 2] + bytes(64) + data[len(data) // 2 + 64 :],
        lambda data: b"<html>not found</html>",
    ],
    ids=[
        *["half", "last", "tail", "head", "empty", "second-half", "second-head"],
        *["garbage", "zeroed", "html"],
    ],
)
def test_a_damaged_file_never_just_ends(tmp_path, compression, damage):
    shard = write(tmp_path, compression, damage(COMPRESS[compression](TEXT)))
    with pytest.raises(BadInput, match=r"a\.jsonl\." + compression) as caught:
        read_all(shard)
    assert "bytes of text" in caught.value.message
    assert "fetch the file again" in caught.value.hint


def test_a_file_that_cannot_be_opened_names_itself(tmp_path):
    shard = write(tmp_path, None, TEXT)
    os.unlink(shard.path)
    with pytest.raises(BadInput, match=r"a\.jsonl cannot be read: No such file"):
        open_bytes(shard)


@pytest.mark.parametrize("compression", list(COMPRESS))
def test_a_bomb_is_read_in_bounded_memory(tmp_path, compression):
    shard = write(tmp_path, compression, COMPRESS[compression](bytes(40 << 20)))
    tracemalloc.start()
    with open_bytes(shard) as reader:
        size = sum(iter(lambda: len(reader.read(1 << 18)), 0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert size == 40 << 20
    assert peak < 16 << 20  # xz keeps a window of 8 MiB


# ---- lines ---------------------------------------------------------------------------------------

LINES = st.lists(st.sampled_from([b"", b"a", b"bb\r", b" ", b"c" * 30, b"d" * 5000]), max_size=30)


@settings(deadline=None, max_examples=60)
@given(lines=LINES, ended=st.booleans(), block_bytes=st.integers(1, 6000))
def test_blocks_hold_whole_lines_and_all_bytes(tmp_path_factory, lines, ended, block_bytes):
    data = b"\n".join(lines) + b"\n" * ended
    shard = write(tmp_path_factory.mktemp("lines"), None, data)
    blocks = []
    with open_bytes(shard) as reader:
        for block in line_blocks(reader, block_bytes):
            blocks.append(bytes(block))
            assert len(block.obj) >= len(block) + files.SLACK
    assert b"".join(blocks) == data
    assert all(block.endswith(b"\n") for block in blocks[:-1])


def test_a_row_that_is_too_long_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MAX_ROW_BYTES", 1 << 20)
    shard = write(tmp_path, "gz", gzip.compress(b"{}\n" + bytes(3 << 20)))
    with pytest.raises(BadInput, match=r"starts at byte 3 .*longer than 1 MiB"), open_bytes(shard) as r:
        for _ in line_blocks(r):
            pass


# ---- writing -------------------------------------------------------------------------------------


@pytest.mark.parametrize("compression", [None, *COMPRESS])
def test_written_files_read_back_and_do_not_depend_on_the_cuts(tmp_path, compression):
    data = TEXT * 4
    seen = set()
    for size in (1000, len(data)):
        path = tmp_path / str(size) / "a.jsonl"
        with atomic_write(str(path), compression) as out:
            for at in range(0, len(data), size):
                out.write(data[at : at + size])
        assert read_all(shard_of(path, compression)) == data
        assert (out.size_bytes, out.xxh3_128) == hash_file(str(path))[:2]
        seen.add(path.read_bytes())
        assert os.listdir(path.parent) == ["a.jsonl"]
    assert len(seen) == 1


def test_an_error_leaves_nothing_and_keeps_the_old_file(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"old")

    def interrupted() -> None:
        with atomic_write(str(path)) as out:
            out.write(b"new")
            assert len(list(tmp_path.iterdir())) == 2
            raise KeyError

    with pytest.raises(KeyError):
        interrupted()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.jsonl"]


@pytest.mark.parametrize("compression", [None, "gz"])
def test_a_full_disk_is_a_bad_run(tmp_path, monkeypatch, compression):
    monkeypatch.setattr(files, "_open_new", lambda path: open("/dev/full", "wb"))  # noqa: SIM115
    full = pytest.raises(BadRun, match=r"a\.jsonl cannot be written: No space left")
    with full as caught, atomic_write(str(tmp_path / "a.jsonl"), compression) as out:
        out.write(os.urandom(3 << 20))
    assert "make room" in caught.value.hint
    assert os.listdir(tmp_path) == []


def test_a_disk_that_fills_at_the_last_byte_is_a_bad_run(tmp_path, monkeypatch):
    def fail(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(BadRun, match="No space left"), atomic_write(str(tmp_path / "a")) as out:
        out.write(b"x")
    assert os.listdir(tmp_path) == []


def test_an_output_folder_that_is_a_file_is_a_bad_run(tmp_path):
    (tmp_path / "run").write_bytes(b"")
    with pytest.raises(BadRun, match="cannot be written"), atomic_write(str(tmp_path / "run/a")):
        pass


def test_leftovers_of_killed_runs_are_removed(tmp_path):
    touch(tmp_path, "clean/.a.jsonl.tmp-12", "clean/a.jsonl", "clean/b/.x.gz.tmp-999", "clean/.keep")
    removed = remove_leftovers(str(tmp_path))
    assert [Path(path).name for path in removed] == [".a.jsonl.tmp-12", ".x.gz.tmp-999"]
    left = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
    assert left == [".keep", "a.jsonl"]


def test_gzip_output_carries_no_time_and_no_name(tmp_path):
    with atomic_write(str(tmp_path / "a.gz"), "gz") as out:
        out.write(b"x")
    head = (tmp_path / "a.gz").read_bytes()[:10]
    assert head[3] == 0  # no flags: no name
    assert head[4:8] == bytes(4)  # no time
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == b"x"
