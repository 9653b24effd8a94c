"""Files: which ones make up a pool, how they are opened and cut into rows, how one is written.

In:   paths, folders and globs as a user types them.
Out:  `Shard`s; the bytes inside a shard (decompressed) together with the size and hash of the file
      itself; blocks of whole lines; output files that appear under their name only when complete.

    >>> list_shards(["pool/"]).shards[0]
    Shard(path='/data/pool/cc/a.jsonl.zst', name='cc/a.jsonl.zst', format='jsonl', compression='zst',
          size_bytes=1834)

Nothing here knows what a row means. A stream that ends early, or carries bytes that belong to no
stream, raises `BadInput`: it never just ends.
"""

from __future__ import annotations

import bz2
import errno
import glob
import io
import lzma
import os
import re
import shutil
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Literal, NamedTuple, Protocol

import xxhash

from unseen.errors import BadInput, BadRun, BadSetting

Format = Literal["jsonl", "parquet", "arrow"]
Compression = Literal["gz", "zst", "bz2", "xz"]

BLOCK_BYTES = 512 << 10
"""Bytes read and cut into lines at a time: the block, its lines and their texts fit the L2 cache."""

SLACK = 64
"""Readable bytes after a block: kernels load 64 bytes at a time."""

MAX_ROW_BYTES = 1 << 30
"""A longer row is refused: it is most likely a damaged or hostile file, and it would have to fit in
memory several times."""

_FORMATS: dict[str, Format] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
_COMPRESSIONS: dict[str, Compression] = {
    ".gz": "gz",
    ".gzip": "gz",
    ".zst": "zst",
    ".zstd": "zst",
    ".bz2": "bz2",
    ".xz": "xz",
}
KNOWN_SUFFIXES = (
    ".jsonl, .ndjson, .json (JSON lines), each also with .gz, .zst, .bz2 or .xz; "
    ".parquet, .pq; .arrow, .feather, .ipc"
)
_FETCH_AGAIN = "fetch the file again, or take it out of the pool"
_CHUNK_BYTES = 1 << 20  # compressors and hashes are fed this much at a time
_READ_ERRORS = (OSError, EOFError, zlib.error, lzma.LZMAError)
_END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"
_TEMPORARY = re.compile(r"\..+\.tmp-\d+")


# ---- what flows ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shard:
    """One file of a pool.

    path: absolute.  name: POSIX path below the pool's root, with its suffixes; unique in the pool.
    compression: of a JSON lines file; None for plain ones, and for Parquet and Arrow.
    size_bytes: of the file when it was listed.
    """

    path: str
    name: str
    format: Format
    compression: Compression | None
    size_bytes: int


class FileFacts(NamedTuple):
    """What a file was when it was read or written.

    xxh3_128: 32 hex digits over the file's own (compressed) bytes; None if it was not read whole.
    rows: rows in the file, bad ones included; with a limit, the rows read.
    """

    size_bytes: int
    xxh3_128: str | None
    rows: int


class BadRow(NamedTuple):
    """A row that cannot be read.

    row: 0-based.  reason: one line.  raw: the line without its line feed; of a Parquet or Arrow file
    the bytes of the text, as far as there are any.
    """

    row: int
    reason: str
    raw: bytes


class Listing(NamedTuple):
    """ignored: files met in folders and globs whose suffix says that they are no shards."""

    shards: list[Shard]
    ignored: list[str]


# ---- which files ---------------------------------------------------------------------------------


def list_shards(pool: Sequence[str]) -> Listing:
    """The shards that files, folders (all levels) and globs (`**` too) name, sorted by `Shard.name`.

    Names are relative to the deepest folder that holds everything given, so same-named files of
    different folders keep different names. A file reached twice is listed once. In folders and
    globs, files and folders that start with "." or "_" are left out unless the glob spells that out.

    Raises:
        BadSetting: nothing was given, or a file was given whose suffix is unknown.
        BadInput: an argument does not exist, or names no shard.
    """
    if not pool:
        raise BadSetting("no pool was given", "name files, folders or globs, such as 'pool/*.jsonl'")
    found = [_expand(given) for given in pool]
    root = os.path.commonpath([folder for folder, _ in found])
    ignored: set[str] = set()
    by_name: dict[str, Shard] = {}
    for given, (_, paths) in zip(pool, found, strict=True):
        shards = [shard for path in paths if (shard := _shard(path, root))]
        if not shards:
            raise BadInput(f"no shards in {given}", f"known suffixes: {KNOWN_SUFFIXES}")
        by_name |= {shard.name: shard for shard in shards}
        ignored.update(path for path in paths if _kind(path) is None)
    return Listing(_each_file_once([by_name[name] for name in sorted(by_name)]), sorted(ignored))


def _expand(given: str) -> tuple[str, list[str]]:
    """(folder that the names are relative to, files) for one argument."""
    path = os.path.abspath(given)
    if os.path.isdir(path):
        return path, list(_walk(path, set()))
    if os.path.exists(path):
        if _kind(path) is None:
            raise BadSetting(
                f"{given} is no kind of file that can be read", f"known suffixes: {KNOWN_SUFFIXES}"
            )
        return os.path.dirname(path), [path]
    if not glob.has_magic(given):
        raise BadInput(f"{given} does not exist", "check the path")
    return _expand_glob(path)


def _expand_glob(pattern: str) -> tuple[str, list[str]]:
    fixed = Path(pattern)
    while glob.has_magic(str(fixed)):
        fixed = fixed.parent
    hidden_too = any(map(_hidden, Path(pattern).relative_to(fixed).parts))
    paths: list[str] = []
    for path in sorted(glob.glob(pattern, recursive=True)):
        if hidden_too or not any(map(_hidden, Path(path).relative_to(fixed).parts)):
            paths.extend(_walk(path, set()) if os.path.isdir(path) else [path])
    if not paths:
        raise BadInput(f"nothing matches {pattern}", "check the pattern, and quote it for the shell")
    return str(fixed), [os.path.normpath(path) for path in paths]


def _hidden(name: str) -> bool:
    return name.startswith((".", "_"))


def _walk(folder: str, seen: set[str]) -> Iterator[str]:
    """Files below `folder`; links to folders are followed, each real folder is entered once."""
    real = os.path.realpath(folder)
    if real in seen:
        return
    seen.add(real)
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise unreadable(folder, error) from error
    for name in names:
        if _hidden(name):
            continue
        path = os.path.join(folder, name)
        if os.path.isdir(path):
            yield from _walk(path, seen)
        else:
            yield path


def _kind(path: str) -> tuple[Format, Compression | None] | None:
    """What the suffixes say; None if they are unknown. Only JSON lines come compressed."""
    stem, last = os.path.splitext(os.path.basename(path).lower())
    compression = _COMPRESSIONS.get(last)
    if compression is not None:
        last = os.path.splitext(stem)[1]
    file_format = _FORMATS.get(last)
    if file_format is None or (compression is not None and file_format != "jsonl"):
        return None
    return file_format, compression


def _shard(path: str, root: str) -> Shard | None:
    kind = _kind(path)
    if kind is None:
        return None
    name = Path(path).relative_to(root).as_posix()
    try:
        name.encode()
        size_bytes = os.stat(path).st_size
    except UnicodeEncodeError as error:
        raise BadInput(f"{path!r}: its name is not UTF-8", "rename the file") from error
    except OSError as error:
        raise unreadable(path, error) from error
    return Shard(path, name, kind[0], kind[1], size_bytes)


def _each_file_once(shards: Sequence[Shard]) -> list[Shard]:
    """Drops shards that are links to one listed before."""
    first: dict[str, Shard] = {}
    for shard in shards:
        first.setdefault(os.path.realpath(shard.path), shard)
    return list(first.values())


# ---- reading -------------------------------------------------------------------------------------


def unreadable(path: str, error: OSError) -> BadInput:
    """The error for a file that the system does not let us read."""
    return BadInput(f"{path} cannot be read: {error.strerror or error}", "check it and its rights")


class HashingReader(io.RawIOBase):
    """A file read from start to end; `size_bytes` and `digest` cover what was read so far."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._file = open(path, "rb", buffering=0)  # noqa: SIM115 (closed by close)
        self._hash = xxhash.xxh3_128()
        self.size_bytes = 0

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, into: Any) -> int:
        """Reads into a buffer; returns the number of bytes, 0 at the end."""
        view = memoryview(into)
        count = self._file.readinto(view) or 0
        self._hash.update(view[:count])
        self.size_bytes += count
        return count

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes, all that is left by default."""
        data = self._file.read(size) or b""
        self._hash.update(data)
        self.size_bytes += len(data)
        return data

    def drain(self) -> None:
        """Reads what is left, so that the hash covers the whole file."""
        while self.read(_CHUNK_BYTES):
            pass

    def digest(self) -> str:
        """xxh3_128 of the bytes read so far, as 32 hex digits."""
        return str(self._hash.hexdigest())

    def close(self) -> None:
        """Closes the file; a second time does nothing."""
        if not self.closed:
            self._file.close()
        super().close()


def hash_file(path: str) -> FileFacts:
    """Size and hash of a file; its `rows` are not known here and are 0."""
    try:
        with HashingReader(path) as reader:
            reader.drain()
            return FileFacts(reader.size_bytes, reader.digest(), 0)
    except OSError as error:
        raise unreadable(path, error) from error


class _Decoder(Protocol):
    """bz2.BZ2Decompressor and lzma.LZMADecompressor."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


class _Streams(io.RawIOBase):
    """bz2 or xz streams back to back. The standard library's readers pass over a damaged second
    stream as if the file ended before it; here it raises."""

    def __init__(self, raw: HashingReader, new_decoder: Callable[[], _Decoder]) -> None:
        super().__init__()
        self._raw = raw
        self._new_decoder = new_decoder
        self._decoder = new_decoder()
        self._pending = b""

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, into: Any) -> int:
        """Decompresses into a buffer; returns the number of bytes, 0 at the end."""
        view = memoryview(into)
        while True:
            if self._decoder.eof and not self._next_stream():
                return 0
            out = self._decoder.decompress(self._input(), len(view))
            if out:
                view[: len(out)] = out
                return len(out)

    def _input(self) -> bytes:
        if not self._decoder.needs_input:
            return b""
        data, self._pending = self._pending or self._raw.read(BLOCK_BYTES), b""
        if not data:
            raise EOFError("the last stream has no end")
        return data

    def _next_stream(self) -> bool:
        rest = self._decoder.unused_data.lstrip(b"\0")  # streams may be padded with zeros
        while not rest:
            data = self._raw.read(BLOCK_BYTES)
            if not data:
                return False
            rest = data.lstrip(b"\0")
        self._decoder, self._pending = self._new_decoder(), rest
        return True


def _zstd_reader(raw: HashingReader) -> IO[bytes]:
    # zstandard's own stream_reader ends silently on a cut-short frame; Arrow's raises, and is as fast.
    import pyarrow as pa

    stream: IO[bytes] = pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd")
    return stream


def _gzip_reader(raw: HashingReader) -> IO[bytes]:
    from isal import igzip

    stream: IO[bytes] = igzip.IGzipFile(fileobj=raw, mode="rb")
    return stream


_OPENERS: dict[Compression, Callable[[HashingReader], Any]] = {
    "gz": _gzip_reader,
    "zst": _zstd_reader,
    "bz2": lambda raw: _Streams(raw, bz2.BZ2Decompressor),
    "xz": lambda raw: _Streams(raw, lzma.LZMADecompressor),
}


class ShardBytes:
    """The bytes inside a shard, decompressed, read from start to end.

    Every failure is a `BadInput` that names the file. `file_bytes` counts the file's own bytes
    consumed so far.
    """

    def __init__(self, shard: Shard) -> None:
        self.path = shard.path
        self._compression = shard.compression
        self._bytes_out = 0
        try:
            self._raw = HashingReader(shard.path)
        except OSError as error:
            raise unreadable(shard.path, error) from error
        self._stream: Any = self._raw
        if shard.compression is not None:
            self._stream = _OPENERS[shard.compression](self._raw)

    def __enter__(self) -> ShardBytes:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def file_bytes(self) -> int:
        """Bytes of the file itself read so far."""
        return self._raw.size_bytes

    def readinto(self, into: memoryview) -> int:
        """Fills `into` from its start; returns the number of bytes, less than its length only at
        the end of the data."""
        filled = 0
        try:
            while filled < len(into):
                count = self._stream.readinto(into[filled:])
                if not count:
                    self._check_not_empty()
                    break
                filled += count
        except _READ_ERRORS as error:
            raise self._damaged(self._bytes_out + filled, error) from error
        self._bytes_out += filled
        return filled

    def read(self, size: int) -> bytes:
        """Up to `size` bytes; fewer only at the end of the data."""
        buffer = bytearray(size)
        return bytes(memoryview(buffer)[: self.readinto(memoryview(buffer))])

    def facts(self, rows: int) -> FileFacts:
        """Size and hash of the whole file, and the row count that the caller found. The file is
        read on to its end if it was not."""
        try:
            self._raw.drain()
        except OSError as error:
            raise unreadable(self.path, error) from error
        return FileFacts(self._raw.size_bytes, self._raw.digest(), rows)

    def close(self) -> None:
        """Closes the file."""
        if self._stream is not self._raw:
            self._stream.close()
        self._raw.close()

    def _check_not_empty(self) -> None:
        if self._compression is not None and self._raw.size_bytes == 0:
            raise EOFError("the file is empty")

    def _damaged(self, bytes_read: int, error: BaseException) -> BadInput:
        if isinstance(error, OSError) and error.errno is not None:
            return unreadable(self.path, error)
        return BadInput(
            f"{self.path} is cut short or damaged: its {self._compression} data cannot be "
            f"read beyond {bytes_read:,} bytes of text ({error})",
            _FETCH_AGAIN,
        )


def open_bytes(shard: Shard) -> ShardBytes:
    """Opens a JSON lines shard. Close it, or use it in a `with` block."""
    return ShardBytes(shard)


def line_blocks(reader: ShardBytes, block_bytes: int = BLOCK_BYTES) -> Iterator[memoryview]:
    """The reader's bytes as blocks of whole lines: each ends with a line feed, only the very last one
    may not. A block holds at most `block_bytes`, or one line if that is longer; it is valid until the
    next one is asked for. Its bytearray goes on for at least SLACK bytes after it.

    Raises:
        BadInput: a line is longer than MAX_ROW_BYTES.
    """
    buffer = bytearray(block_bytes + SLACK)
    held = 0  # bytes of an unfinished line, at the start of the buffer
    offset = 0  # of the buffer's start in the data, in bytes
    while True:
        view = memoryview(buffer)[:-SLACK]
        end = held + reader.readinto(view[held:])
        if end < len(view):
            if end:
                yield view[:end]
            return
        cut = buffer.rfind(b"\n", held, end) + 1
        if cut:
            yield view[:cut]
        elif end >= MAX_ROW_BYTES:
            raise _row_too_long(reader.path, offset)
        rest = bytes(view[cut:])
        held, offset = len(rest), offset + cut
        size = max(block_bytes, 2 * held) + SLACK
        if size != len(buffer):
            buffer = bytearray(size)
        buffer[:held] = rest


def _row_too_long(path: str, offset: int) -> BadInput:
    return BadInput(
        f"{path}: the row that starts at byte {offset:,} of its text is longer than "
        f"{MAX_ROW_BYTES >> 20:,} MiB",
        "split the row, or take the file out of the pool",
    )


def is_blank(line: bytes) -> bool:
    """A line of white space alone is no row."""
    return not line.strip()


@contextmanager
def reading_arrow(path: str) -> Iterator[None]:
    """Turns what Arrow raises on a damaged Parquet or Arrow file into a `BadInput` that names it."""
    import pyarrow as pa

    try:
        yield
    except pa.ArrowNotImplementedError as error:
        raise BadInput(
            f"{path} holds what this pyarrow cannot handle ({error})",
            "write the file anew with plainer types, or take it out of the pool",
        ) from error
    except (pa.ArrowException, OSError, EOFError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise unreadable(path, error) from error
        raise cut_short(path, " ".join(str(error).split())) from error


def cut_short(path: str, detail: str) -> BadInput:
    """The error for a file that ends early or holds what it should not."""
    return BadInput(f"{path} is cut short or damaged ({detail})", _FETCH_AGAIN)


def open_parquet(path: str) -> Any:
    """A `pyarrow.parquet.ParquetFile` that checks page checksums, and reads a column as a stream, not
    as one piece. Use it inside `reading_arrow`."""
    import pyarrow.parquet as pq

    return pq.ParquetFile(
        path, pre_buffer=False, buffer_size=_CHUNK_BYTES, page_checksum_verification=True
    )


class Ipc(NamedTuple):
    """An open Arrow IPC file or stream. batches: each with its end offset in the file, in bytes."""

    kind: Literal["file", "stream"]
    schema: Any
    batches: Iterator[tuple[Any, int]]


def open_ipc(path: str) -> Ipc:
    """Opens an Arrow file or stream memory-mapped; which of the two, its first bytes say. Read it
    inside `reading_arrow`."""
    import pyarrow as pa

    source = pa.memory_map(path)
    if source.read(6) == b"ARROW1":
        reader = pa.ipc.open_file(source)
        return Ipc("file", reader.schema, _file_batches(reader, source.size()))
    source.seek(0)
    reader = pa.ipc.open_stream(source)
    return Ipc("stream", reader.schema, _stream_batches(path, reader, source))


def _file_batches(reader: Any, size_bytes: int) -> Iterator[tuple[Any, int]]:
    for number in range(reader.num_record_batches):
        yield reader.get_batch(number), size_bytes * (number + 1) // reader.num_record_batches


def _stream_batches(path: str, reader: Any, source: Any) -> Iterator[tuple[Any, int]]:
    for batch in reader:
        yield batch, source.tell()
    # Arrow takes a missing end marker, and anything after one, for a proper end.
    end = source.tell()
    source.seek(max(0, end - len(_END_OF_STREAM)))
    if end != source.size() or source.read() != _END_OF_STREAM:
        raise cut_short(path, "the stream does not end with its end marker")


# ---- writing -------------------------------------------------------------------------------------


class _Compressor(Protocol):
    def compress(self, data: bytes) -> bytes: ...
    def flush(self) -> bytes: ...


def _gzip_writer() -> _Compressor:
    # zlib, not isal: isal's level 2 gave other bytes for the same input, three times in some thousands.
    return zlib.compressobj(4, zlib.DEFLATED, 31)  # 31: a bare gzip header


def _zstd_writer() -> _Compressor:
    import zstandard

    made: _Compressor = zstandard.ZstdCompressor(level=3, write_checksum=True).compressobj()
    return made


_COMPRESSORS: dict[Compression, Callable[[], _Compressor]] = {
    "gz": _gzip_writer,
    "zst": _zstd_writer,
    "bz2": lambda: bz2.BZ2Compressor(9),
    "xz": lambda: lzma.LZMACompressor(preset=6),
}


class OutputFile:
    """A file being written by `atomic_write`; after the `with` block `size_bytes` and `xxh3_128` are
    those of the finished file.

    The same data gives the same bytes however it was cut into writes: compressors are fed fixed
    chunks and write no time or name. Levels, as measured on 30 to 40 MB of mixed text and one core:
    gzip with zlib level 4, 32 MB/s at ratio 2.81 (level 6: 20 MB/s at 2.87; isal level 2: 288 MB/s at
    2.57, but not always the same bytes); zstd level 3 with a checksum, 158 MB/s at 2.88; bz2 level 9,
    11 MB/s at 3.13; xz preset 6.
    """

    def __init__(self, path: str, file: IO[bytes], compression: Compression | None) -> None:
        self.path = path
        self.size_bytes = 0
        self.xxh3_128 = ""
        self.closed = False
        self._file = file
        self._abandoned = False
        self._hash = xxhash.xxh3_128()
        self._compressor = None if compression is None else _COMPRESSORS[compression]()
        self._waiting = bytearray()

    def write(self, data: Any) -> int:
        """Takes all of `data` (bytes-like); returns its length in bytes."""
        view = memoryview(data).cast("B")
        if self._compressor is None:
            self._put(view)
        else:
            self._waiting += view
            if len(self._waiting) >= _CHUNK_BYTES:
                self._compress_waiting(self._compressor)
        return len(view)

    def _compress_waiting(self, compressor: _Compressor) -> None:
        whole = len(self._waiting) // _CHUNK_BYTES * _CHUNK_BYTES
        for start in range(0, whole, _CHUNK_BYTES):
            self._put(compressor.compress(bytes(self._waiting[start : start + _CHUNK_BYTES])))
        del self._waiting[:whole]

    def finish(self) -> None:
        """Writes what is held back and waits until the disk has it."""
        if self._compressor is not None:
            self._put(self._compressor.compress(bytes(self._waiting)))
            self._put(self._compressor.flush())
        with _writing(self.path):
            self._file.flush()
            os.fsync(self._file.fileno())
        self.xxh3_128 = str(self._hash.hexdigest())

    def abandon(self) -> None:
        """Swallow what is still written: Arrow's writers write a footer when they are destroyed."""
        self._abandoned = True

    def _put(self, data: bytes | memoryview) -> None:
        if self._abandoned:
            return
        with _writing(self.path):
            self._file.write(data)
        self._hash.update(data)
        self.size_bytes += len(data)

    # What Arrow's writers ask of a file object.

    def tell(self) -> int:
        """Bytes written so far."""
        return self.size_bytes

    def flush(self) -> None:
        """Nothing to do before `finish`."""

    def writable(self) -> bool:
        """Always."""
        return True


_open_new: Callable[[str], IO[bytes]] = lambda path: open(path, "wb")  # noqa: E731, SIM115


@contextmanager
def new_folder(place: Path, own: Sequence[str], *, overwrite: bool) -> Iterator[Path]:
    """A folder that appears as `place` when the block ends without an error, and not otherwise.

    One that is there is replaced if `overwrite` and if it holds `own[0]` and nothing but `own` (names,
    * allowed); it is deleted last. Raises BadSetting when it is there otherwise, is a link, or cannot
    be written.
    """
    place = Path(os.path.abspath(place))
    _replaceable(place, own, overwrite)
    partial, old = (place.with_name(f".{place.name}.{k}-{os.getpid()}") for k in ("tmp", "old"))
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
    except OSError as error:
        raise BadSetting(f"{place} cannot be written: {error}", "name another folder") from error
    try:
        yield partial
        _replaceable(place, own, overwrite)  # another process may have written it meanwhile
        if place.exists():
            place.rename(old)
        partial.rename(place)
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _replaceable(place: Path, own: Sequence[str], overwrite: bool) -> None:
    """Raise BadSetting unless nothing is at `place`, or what may be replaced."""
    if place.is_symlink():
        raise BadSetting(f"{place} is a link", "name the folder itself")
    if not place.exists():
        return
    if not (overwrite and (place / own[0]).exists()):
        raise BadSetting(f"{place} is already there", "name another folder, or pass --overwrite")
    others = [p.name for p in place.iterdir() if not any(fnmatch(p.name, name) for name in own)]
    if others:
        raise BadSetting(
            f"{place} holds {sorted(others)[0]}, which would be lost", "move it, or name another folder"
        )


@contextmanager
def atomic_write(path: str, compression: Compression | None = None) -> Iterator[OutputFile]:
    """A file that appears under `path` when the block ends without an error, and not otherwise.

    It is written beside its place as `.<name>.tmp-<pid>`, flushed to the disk, then renamed. Missing
    folders are made.

    Raises:
        BadRun: the disk is full, or the file cannot be written for another reason.
    """
    folder, name = os.path.split(os.path.abspath(path))
    temporary = os.path.join(folder, f".{name}.tmp-{os.getpid()}")
    with _writing(path):
        os.makedirs(folder, exist_ok=True)
        file = _open_new(temporary)
    out = OutputFile(path, file, compression)
    try:
        yield out
        out.finish()
        with _writing(path):
            file.close()
            os.replace(temporary, path)
            _sync_folder(folder)
    except BaseException:
        out.abandon()
        with suppress(OSError):
            file.close()
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _sync_folder(folder: str) -> None:
    """Makes a rename last through a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _writing(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise BadRun(
            f"{path} cannot be written: {error.strerror or error}",
            "make room on the disk or choose another output folder, then run the same command again"
            if full
            else "check the output folder and its rights, then run the same command again",
        ) from error


def remove_leftovers(folder: str) -> list[str]:
    """Deletes the temporary files that killed runs left at any depth; returns their paths.

    Call it before any worker starts: it does not ask whose they are.
    """
    removed = []
    for parent, _, names in os.walk(folder):
        for name in names:
            if _TEMPORARY.fullmatch(name):
                path = os.path.join(parent, name)
                with _writing(path):
                    os.unlink(path)
                removed.append(path)
    return sorted(removed)
