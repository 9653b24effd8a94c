"""pipeline: whatever the route, the pool comes out whole, and with the same bytes.

Runs are made in this process where that is enough, else by the installed command.
"""

from __future__ import annotations

import base64
import bz2
import errno
import functools
import gzip
import itertools
import json
import lzma
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import samples
from unseen import cli, files, manifest, pipeline, pool, refs, verdict
from unseen.errors import UnseenError
from unseen.pipeline import Settings, apply_run, scan_pool
from unseen.scan import Index

Rows = list[dict[str, Any]]

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    ".jsonl": bytes,
    ".gz": gzip.compress,
    ".zst": zstandard.ZstdCompressor().compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
}
DECOMPRESS: dict[str, Callable[[bytes], bytes]] = {
    ".jsonl": bytes,
    ".gz": gzip.decompress,
    ".zst": lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
    ".bz2": bz2.decompress,
    ".xz": lzma.decompress,
}
SHAPES = ("a.jsonl", "a.jsonl.gz", "a.jsonl.zst", "a.jsonl.bz2", "a.jsonl.xz", "a.parquet", "a.arrow")
ROBES = samples.leaked(samples.ROBES, "15 robes")
UNSEEN = [str(Path(sys.executable).with_name("unseen"))]


# ---- helpers -------------------------------------------------------------------------------------


def scan(given: Path | list[Path], index: str, run: Path, *, workers: int = 1, **options: Any) -> Any:
    """A scan in this process (its workers apart); returns the summary."""
    given = given if isinstance(given, list) else [given]
    return scan_pool([str(p) for p in given], index, str(run), Settings(**options), workers=workers)


def tree(run: Path) -> dict[str, bytes]:
    """Every file of a folder, hidden ones too."""
    paths = sorted(p for p in run.rglob("*") if p.is_file())
    return {p.relative_to(run).as_posix(): p.read_bytes() for p in paths}


def assert_same(one: Path, other: Path) -> None:
    """The same files with the same bytes."""
    a, b = tree(one), tree(other)
    assert list(a) == list(b)
    assert [name for name in a if a[name] != b[name]] == []


def matches(run: Path, shard: str) -> pa.Table:
    return pq.read_table(run / "matches" / f"{shard}.parquet")


def done(run: Path, shard: str) -> Any:
    return json.loads((run / "done" / f"{shard}.json").read_text())


def done_names(run: Path) -> set[str]:
    folder = run / "done"
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*.json") if p.name[0] != "."}


def removed_rows(run: Path, shard: str) -> list[int]:
    found = matches(run, shard)
    gone = zip(found["row"].to_pylist(), found["verdict"].to_pylist(), strict=True)
    return sorted({row for row, decided in gone if decided == "remove"})


def write_as(path: Path, rows: Rows) -> Path:
    """Rows in the format that the name says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=70)
    elif path.suffix == ".arrow":
        table = pa.Table.from_pylist(rows)
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=70)
    else:
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        path.write_bytes(COMPRESS[path.suffix](lines.encode()))
    return path


def read_bytes(path: Path) -> bytes:
    return DECOMPRESS[path.suffix](path.read_bytes()) if path.exists() else b""


def read_as(path: Path) -> Rows:
    if path.suffix == ".parquet":
        return list(pq.read_table(path).to_pylist())
    if path.suffix == ".arrow":
        return list(pa.ipc.open_file(path).read_all().to_pylist())
    return [json.loads(line) for line in read_bytes(path).splitlines()]


def bad_rows(run: Path, shard: str) -> list[dict[str, Any]]:
    path = run / "bad" / f"{shard}.jsonl"
    return (
        [json.loads(line) for line in path.read_bytes().split(b"\n") if line] if path.exists() else []
    )


class Done(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """The one sentence on standard error; the hint stands on the next line."""
        assert [line.split(":")[0] for line in self.err.split("\n")].count("error") == 1, self.err
        return self.err[self.err.index("error: ") : self.err.index("\nhint: ")]

    @property
    def hint(self) -> str:
        return self.err[self.err.index("\nhint: ") + 7 :].strip()

    def check_refused(self) -> None:
        """Exit code 2, a sentence and a remedy on standard error, nothing on standard output."""
        assert self.code == 2, self
        assert self.out == ""
        assert "\n" not in self.error
        assert self.hint
        assert "Traceback" not in self.err
        assert "Exception ignored" not in self.err


Command = Callable[..., Done]


@pytest.fixture
def unseen(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs a command in this process, as the script `unseen` does."""

    def run(*arguments: Any) -> Done:
        monkeypatch.setattr(sys, "argv", ["unseen", *map(str, arguments)])
        capsys.readouterr()
        code = 0
        try:
            cli.main()
        except SystemExit as end:
            code = int(end.code or 0)
        return Done(code, *capsys.readouterr())

    return run


def run_command(*arguments: Any) -> Done:
    """Runs a command in a process of its own."""
    ended = subprocess.run(
        [*UNSEEN, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False
    )
    return Done(ended.returncode, ended.stdout, ended.stderr)


# ---- the routes agree ----------------------------------------------------------------------------


def test_every_format_gives_the_same_matches_and_rows(
    tmp_path: Path, index_path: str, rows: Rows
) -> None:
    for name in SHAPES:
        write_as(tmp_path / "pool" / name, rows)
    run = tmp_path / "run"
    scan(tmp_path / "pool", index_path, run, id_field="id")
    expected = matches(run, "a.jsonl")
    assert {"question+answer", "question", "near", "template"} <= set(expected["evidence"].to_pylist())
    removed = removed_rows(run, "a.jsonl")
    assert removed
    for name in SHAPES:
        assert matches(run, name).equals(expected), name
        assert read_as(run / "removed" / name) == [rows[n] for n in removed], name
        assert read_as(run / "clean" / name) == [
            row for n, row in enumerate(rows) if n not in removed
        ], name
        counts = done(run, name)["counts"]
        assert counts == done(run, "a.jsonl")["counts"], name
    for name in SHAPES[1:5]:
        for kind in ("clean", "removed"):
            assert read_bytes(run / kind / name) == read_bytes(run / kind / "a.jsonl")


def test_matches_hold_what_stands_in_the_text(pool: Path, index_path: str, tmp_path: Path) -> None:
    """Offsets are characters of the row's own text, line breaks and 4-byte characters before it."""
    scan(pool, index_path, tmp_path / "run", id_field="id")
    rows = read_as(pool / "a.jsonl")
    found = matches(tmp_path / "run", "a.jsonl").to_pylist()
    whole = [m for m in found if m["evidence"].startswith("question")]
    assert whole
    for m in whole:
        text = rows[m["row"]]["text"]
        assert text[m["start"] : m["end"]] == m["question"].rstrip("?.")
        assert m["quote"] in text
        assert m["doc_id"] == rows[m["row"]]["id"]
        if m["evidence"] == "question+answer":
            assert text[m["answer_start"] : m["answer_end"]] == m["answer"]


@pytest.mark.parametrize("workers", [2, 4])
def test_workers_do_not_change_a_byte(
    pool: Path, tmp_path: Path, index_path: str, rows: Rows, workers: int
) -> None:
    write_as(pool / "c.jsonl.zst", rows[:90])
    write_as(pool / "sub" / "d.parquet", rows[60:])
    with (pool / "sub" / "b.jsonl").open("ab") as file:
        file.write(b'{"text": "\xff"}\n{"txt": 1}\n')
    scan(pool, index_path, tmp_path / "one", on_bad_row="quarantine")
    assert {n.split("/")[0] for n in tree(tmp_path / "one")} == {
        *manifest.FOLDERS, "run.json", "summary.json",
    }  # fmt: skip
    scan(pool, index_path, tmp_path / "many", on_bad_row="quarantine", workers=workers)
    assert_same(tmp_path / "one", tmp_path / "many")


@pytest.mark.parametrize("batch_bytes", [1, 777, 30_000, 1 << 30])
def test_batch_size_does_not_matter(
    tmp_path: Path,
    index_path: str,
    rows: Rows,
    monkeypatch: pytest.MonkeyPatch,
    batch_bytes: int,
) -> None:
    names = ("a.jsonl", "a.jsonl.xz", "a.parquet", "a.arrow")
    for name in names:
        write_as(tmp_path / "pool" / name, rows)
    scan(tmp_path / "pool", index_path, tmp_path / "plain")
    batches = []
    small = functools.partial(pool_module_read, batches, batch_bytes)
    monkeypatch.setattr(pipeline, "read_batches", small)
    scan(tmp_path / "pool", index_path, tmp_path / "cut")
    assert (len(batches) > 2 * len(names)) == (batch_bytes < 1 << 30)
    one, other = tree(tmp_path / "plain"), tree(tmp_path / "cut")
    assert list(one) == list(other)
    copies = [name for name in one if name.startswith(("clean/", "removed/"))]
    assert len(copies) == 8
    assert all(one[name] == other[name] for name in copies)
    assert one["summary.json"] == other["summary.json"]
    for name in names:
        assert matches(tmp_path / "cut", name).equals(matches(tmp_path / "plain", name))


def pool_module_read(seen: list[int], batch_bytes: int, *args: Any, **options: Any) -> Iterator[Any]:
    """`read_batches` with another batch size; notes every batch."""

    class Counted:
        def __init__(self) -> None:
            self.reader = pool.read_batches(*args, **options, batch_bytes=batch_bytes)

        def __iter__(self) -> Iterator[Any]:
            for batch in self.reader:
                seen.append(batch.n_rows)
                yield batch

        @property
        def facts(self) -> Any:
            return self.reader.facts

    return Counted()  # type: ignore[return-value]


def test_names_and_order_of_shards_do_not_matter(pool: Path, tmp_path: Path, index_path: str) -> None:
    other = tmp_path / "other"
    renamed = {"a.jsonl": "z/last.jsonl", "sub/a.jsonl": "m.jsonl", "sub/b.jsonl": "0.jsonl"}
    for old, new in renamed.items():
        (other / new).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(pool / old, other / new)
    scan(pool, index_path, tmp_path / "one")
    scan([other / "z", other], index_path, tmp_path / "two")
    scan([other, other / "z"], index_path, tmp_path / "three")
    for old, new in renamed.items():
        assert matches(tmp_path / "one", old).equals(matches(tmp_path / "two", new))
        assert (tmp_path / "one/clean" / old).read_bytes() == (
            tmp_path / "two/clean" / new
        ).read_bytes()
    two, three = tree(tmp_path / "two"), tree(tmp_path / "three")
    assert [n for n in two if two[n] != three[n]] == ["run.json"]  # it keeps the pool as it was given


# ---- resume --------------------------------------------------------------------------------------


class Started(NamedTuple):
    """A running command, leader of its process group."""

    process: subprocess.Popen[str]
    run: Path
    temporaries: frozenset[Path]  # what a run before it left
    n_done: int

    def new_temporaries(self, folder: str) -> set[Path]:
        return set((self.run / folder).glob("**/.*.tmp-*")) - self.temporaries

    def wait_for(self, moment: Callable[[Started], Any]) -> None:
        while not moment(self):
            assert self.process.poll() is None, f"it ended too early: {self.process.stderr.read()}"
            time.sleep(0.0005)

    def kill_group(self, with_signal: int = signal.SIGKILL) -> None:
        os.killpg(self.process.pid, with_signal)


def start(arguments: list[str], run: Path) -> Started:
    process = subprocess.Popen(
        arguments,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    return Started(process, run, frozenset(run.glob("**/.*.tmp-*")), len(done_names(run)))


MOMENTS: dict[str, Callable[[Started], Any]] = {
    "asked": lambda s: (s.run / "run.json").exists(),
    "scanning": lambda s: s.new_temporaries("matches"),
    "writing": lambda s: s.new_temporaries("clean"),
    "between": lambda s: len(done_names(s.run)) >= s.n_done + 2,
}


class Long(NamedTuple):
    """A pool that takes a while, and an undisturbed run of it."""

    pool: Path
    run: Path

    def command(self, index: str, run: Path, workers: int) -> list[str]:
        options = [str(self.pool), "--index", index, "-o", str(run), "-w", str(workers)]
        return [*UNSEEN, "scan", *options, "--on-bad-row", "quarantine"]


@pytest.fixture(scope="session")
def long(tmp_path_factory: pytest.TempPathFactory, index_path: str, rows: Rows) -> Long:
    """Ten shards of 4 to 8 MB in several formats, with bad rows."""
    folder = tmp_path_factory.mktemp("long")
    ordinary = [row for n, row in enumerate(rows) if n % 15 != 3]
    many = rows + ordinary * 25
    plain = write_as(folder / "pool/x/a.jsonl", many).read_bytes()
    assert len(plain) > 4e6, len(plain)
    for number in range(7):
        extra = b'{"text": "\xff%d"}\n' % number
        part = plain[: len(plain) // 7 * number]
        (folder / f"pool/s{number}.jsonl").write_bytes(plain + extra + part)
    (folder / "pool/x/a.jsonl.zst").write_bytes(COMPRESS[".zst"](plain))
    write_as(folder / "pool/x/b.parquet", many)
    long = Long(folder / "pool", folder / "run")
    scan(long.pool, index_path, long.run, on_bad_row="quarantine")
    return long


def stamps(run: Path, shards: set[str]) -> dict[str, tuple[int, int]]:
    """What tells whether a file was written again, for the outputs of shards."""
    names = [
        name for shard in shards for name in json.loads((run / "done" / shard).read_text())["outputs"]
    ]
    paths = [run / name for name in names] + [run / "done" / shard for shard in shards]
    return {str(p): (p.stat().st_ino, p.stat().st_mtime_ns) for p in paths}


@pytest.mark.parametrize(
    ("workers", "moments"),
    [(1, ["asked", "scanning", "writing", "between"]), (2, ["scanning", "between", "writing"])],
)
def test_kill_9_and_the_same_command_gives_the_same_bytes(
    long: Long, tmp_path: Path, index_path: str, workers: int, moments: list[str]
) -> None:
    """Killed four times over, each time a little further on."""
    run = tmp_path / "run"
    command = long.command(index_path, run, workers)
    finished: set[str] = set()
    before: dict[str, tuple[int, int]] = {}
    for moment in moments:
        started = start(command, run)
        started.wait_for(MOMENTS[moment])
        started.kill_group()
        assert started.process.wait(30) == -signal.SIGKILL
        assert not (run / "summary.json").exists()
        assert finished <= done_names(run)
        assert len(done_names(run)) < 10, "the pool is too small to be killed in the middle"
        assert before.items() <= stamps(run, done_names(run)).items()
        finished = done_names(run)
        before = stamps(run, finished)
    assert finished
    ended = run_command(*command[1:])
    assert ended.code == 0, ended
    assert f"10 shards, {len(finished)} done before" in ended.err
    assert before.items() <= stamps(run, finished).items(), "a shard that was done was scanned again"
    assert_same(long.run, run)


@pytest.mark.parametrize("kill", [signal.SIGKILL, signal.SIGTERM])
def test_workers_do_not_outlive_the_command(
    long: Long, tmp_path: Path, index_path: str, kill: signal.Signals
) -> None:
    """Killed alone (out of memory, docker stop), it leaves nobody who writes on, and nothing half."""
    run = tmp_path / "run"
    started = start(long.command(index_path, run, 2), run)
    started.wait_for(lambda s: len(s.new_temporaries("matches")) == 2)
    workers = {int(p.name.rpartition("-")[2]) for p in started.new_temporaries("matches")}
    started.process.send_signal(kill)
    started.process.wait(30)
    try:
        deadline = time.monotonic() + 6
        while (alive := {pid for pid in workers if is_running(pid)}) and time.monotonic() < deadline:
            time.sleep(0.05)
    finally:
        if any(is_running(pid) for pid in workers):
            started.kill_group()
    assert not alive, "workers still run 6 s after the command was killed"
    assert len(done_names(run)) < 10


def is_running(pid: int) -> bool:
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True)
    return state.stdout.strip()[:1] not in ("", "Z")


def test_a_killed_worker_ends_the_run_with_a_remedy(
    long: Long, tmp_path: Path, index_path: str
) -> None:
    run = tmp_path / "run"
    started = start(long.command(index_path, run, 2), run)
    started.wait_for(lambda s: s.new_temporaries("matches"))
    worker = next(iter(started.new_temporaries("matches"))).name.rpartition("-")[2]
    os.kill(int(worker), signal.SIGKILL)
    out, err = started.process.communicate(timeout=60)
    ended = Done(started.process.returncode, out, err)
    ended.check_refused()
    assert "worker process died" in ended.error
    assert "same command" in ended.hint
    scan(long.pool, index_path, run, on_bad_row="quarantine")
    assert_same(long.run, run)


@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupted_command_is_no_success(
    long: Long, tmp_path: Path, index_path: str, workers: int
) -> None:
    run = tmp_path / "run"
    started = start(long.command(index_path, run, workers), run)
    started.wait_for(MOMENTS["scanning"])
    started.kill_group(signal.SIGINT)
    out, err = started.process.communicate(timeout=60)
    ended = Done(started.process.returncode, out, err)
    ended.check_refused()
    assert "interrupted" in ended.error
    assert "same command" in ended.hint


class Dead(BaseException):
    """The process was killed: from here on nothing reaches the disk."""


class Life:
    """Patches os so that the process dies before or after its n-th rename or deletion."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
        self.left = steps

        for name in ("replace", "unlink", "rename"):
            monkeypatch.setattr(os, name, functools.partial(self.step, getattr(os, name)))

    def step(self, real: Callable[..., Any], *args: Any, **options: Any) -> Any:
        if self.left <= 0:
            raise Dead
        self.left -= 1  # even number of steps: dies before the next one
        result = real(*args, **options)
        if self.left <= 0:
            raise Dead  # odd: right after it
        self.left -= 1
        return result


def die_at_each_step(
    monkeypatch: pytest.MonkeyPatch, command: Callable[[Path], Any], prepared: Callable[[], Path]
) -> int:
    """Runs a command, killed at every place where the disk changes, each time followed by the same
    command undisturbed. The result must be that of one that was never disturbed. Returns the number
    of places."""
    straight = prepared()
    command(straight)
    for steps in itertools.count():
        run = prepared()
        with monkeypatch.context() as patch:
            Life(patch, steps)
            try:
                command(run)
                return steps
            except Dead:
                pass
        command(run)
        assert_same(straight, run)
        shutil.rmtree(run)
    raise AssertionError


@pytest.fixture
def mixed(tmp_path: Path, rows: Rows) -> Path:
    """Two shards with rows to keep, to remove and that are bad."""
    write_as(tmp_path / "mixed/a.jsonl.gz", rows[:40])
    (tmp_path / "mixed/b.jsonl").write_bytes(
        b'{"text": "\xff"}\n' + json.dumps({"text": ROBES}).encode() + b'\n\n{"text": null}\n'
    )
    write_as(tmp_path / "mixed/sub/b.parquet", rows[40:70])
    return tmp_path / "mixed"


def test_a_scan_killed_at_any_step_goes_on(
    mixed: Path, tmp_path: Path, index_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = itertools.count()
    steps = die_at_each_step(
        monkeypatch,
        lambda run: scan(mixed, index_path, run, on_bad_row="quarantine"),
        lambda: tmp_path / f"run{next(numbers)}",
    )
    assert steps >= 2 * (1 + 3 * 4 + 1 + 1)  # run.json; matches, clean, removed, done; bad; summary


@pytest.mark.parametrize("in_place", [True, False])
def test_an_apply_killed_at_any_step_goes_on(
    mixed: Path, tmp_path: Path, index_path: str, monkeypatch: pytest.MonkeyPatch, in_place: bool
) -> None:
    scan(mixed, index_path, tmp_path / "run", on_bad_row="quarantine")
    numbers = itertools.count()

    def prepared() -> Path:
        made = tmp_path / f"run{next(numbers)}"
        if in_place:
            shutil.copytree(tmp_path / "run", made)
        return made

    def command(made: Path) -> None:
        source = made if in_place else tmp_path / "run"
        apply_run(str(source), keep_all(), out=None if in_place else str(made), workers=1)

    assert die_at_each_step(monkeypatch, command, prepared) > 12


def test_verdicts_of_two_policies_are_never_mixed(
    mixed: Path, tmp_path: Path, index_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An apply in place was killed half-way; a scan with the new policy must not take the shards that
    still carry the old verdicts for done."""
    options = {"on_bad_row": "quarantine", "policy": keep_all().model_dump()}
    scan(mixed, index_path, tmp_path / "straight", **options)
    for steps in itertools.count():
        run = tmp_path / "run"
        shutil.rmtree(run, ignore_errors=True)
        scan(mixed, index_path, run, on_bad_row="quarantine")
        with monkeypatch.context() as patch:
            Life(patch, steps)
            try:
                apply_run(str(run), keep_all(), workers=1)
                break
            except Dead:
                pass
        if json.loads((run / "run.json").read_text())["settings"]["policy"]["name"] == "none":
            scan(mixed, index_path, run, **options)
            assert_same(tmp_path / "straight", run)


def test_only_what_is_not_done_is_scanned_again(pool: Path, tmp_path: Path, index_path: str) -> None:
    run = tmp_path / "run"
    scan(pool, index_path, run)
    straight = tree(run)
    kept = {"a.jsonl.json", "sub/b.jsonl.json"}
    before = stamps(run, kept)
    (run / "done/sub/a.jsonl.json").unlink()
    (run / "clean/sub/a.jsonl").unlink()
    (run / "clean/sub/.a.jsonl.tmp-77").write_text("half")
    plans = []
    scan_pool(
        [str(pool)],
        index_path,
        str(run),
        Settings(),
        workers=1,
        on_plan=lambda shards, left, ignored: plans.append(
            [[s.name for s in shards], [s.name for s in left]]
        ),
    )
    assert plans == [[["a.jsonl", "sub/a.jsonl", "sub/b.jsonl"], ["sub/a.jsonl"]]]
    assert tree(run) == straight
    assert stamps(run, kept) == before


# ---- nothing is lost -----------------------------------------------------------------------------

BAD_LINES = [
    b'{"text": "cut',
    b'{"texts": "another name"}',
    b'{"text": 5}',
    b'{"text": {"text": "deeper"}}',
    b'{"text": "bytes \xff\xfe"}',
    b'{"text": "once", "text": "twice"}',
    b'["a list"]',
    b"null",
    b'{"text": "one"}{"text": "two"}',
    '{"txt": "separators \u2028 \u0085 \x0b of other lines"}'.encode(),
]
GOOD_LINES = [
    b'{"text": null}',
    b'{"text": ""}',
    b' { "text" : "spaces" , "n":\t[1, 2] } ',
    b'{"n": NaN, "big": 123456789012345678901234567890, "text": "what simdjson refuses"}',
    b'{"text": "lone \\ud800 surrogate"}',
    b'{"te\\u0078t": "escaped key"}',
    '{"text": "raw \u2028 and \u0085"}'.encode(),
]
BLANK_LINES = [b"", b" ", b"\t ", b"\r", b"\x0b\x0c"]


def leaked_line(item: str, before: str, escape: bool) -> bytes:
    return json.dumps({"text": f"{before}\n{item}", "n": 1}, ensure_ascii=escape).encode()


LINES = st.lists(
    st.tuples(
        st.one_of(
            st.tuples(st.just("good"), st.sampled_from(GOOD_LINES)),
            st.tuples(
                st.just("good"),
                st.builds(
                    lambda text, escape: json.dumps({"text": text}, ensure_ascii=escape).encode(),
                    st.text(max_size=40),
                    st.booleans(),
                ),
            ),
            st.tuples(st.just("bad"), st.sampled_from(BAD_LINES)),
            st.tuples(st.just("blank"), st.sampled_from(BLANK_LINES)),
            st.tuples(
                st.just("leaked"),
                st.builds(
                    leaked_line,
                    st.sampled_from([ROBES, samples.LOCKS]),
                    st.sampled_from(["", "Überschrift 日本語 🙂", " \u2028"]),
                    st.booleans(),
                ),
            ),
        ),
        st.sampled_from([b"\n", b"\n", b"\r\n"]),
    ),
    max_size=12,
)


@settings(
    max_examples=settings().max_examples,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(LINES, st.booleans(), st.sampled_from([".jsonl", ".gz", ".zst"]), st.none() | st.integers(1, 8))
@example([], True, ".jsonl", None)
@example([(("bad", line), b"\n") for line in BAD_LINES], True, ".jsonl", None)
@example([(("good", line), b"\r\n") for line in GOOD_LINES], False, ".gz", None)
@example([(("leaked", leaked_line(ROBES, "", True)), b"\n")] * 3, False, ".zst", 2)
def test_kept_removed_and_bad_rows_are_the_input(
    tmp_path_factory: pytest.TempPathFactory,
    index_path: str,
    drawn: list[tuple[tuple[str, bytes], bytes]],
    ended: bool,
    suffix: str,
    limit: int | None,
) -> None:
    lines = [(kind, line + end) for (kind, line), end in drawn]
    if lines and not ended:
        lines[-1] = (lines[-1][0], lines[-1][1].rstrip(b"\n"))
    folder = tmp_path_factory.mktemp("conserved")
    name = "a.jsonl" if suffix == ".jsonl" else f"a.jsonl{suffix}"
    (folder / "pool").mkdir()
    (folder / "pool" / name).write_bytes(COMPRESS[suffix](b"".join(line for _, line in lines)))
    run = folder / "run"
    summary = scan(folder / "pool", index_path, run, on_bad_row="quarantine", limit=limit)

    numbers = itertools.count()
    placed = [(kind, line, next(numbers) if kind != "blank" else -1) for kind, line in lines]
    if limit is not None:  # blank lines after the last row read belong to nobody
        last = max((at for at, (_, _, n) in enumerate(placed) if 0 <= n < limit), default=-1)
        placed = placed[: last + 1] if next(numbers) >= limit else placed
    of = {kind: [(line, n) for k, line, n in placed if k == kind] for kind in ("good", "bad", "leaked")}
    counts = summary["counts"]
    assert counts["rows"] == sum(map(len, of.values()))
    assert [counts[k] for k in ("kept", "removed", "bad")] == [
        len(of[k]) for k in ("good", "leaked", "bad")
    ]
    assert counts["null_rows"] == sum(b"null" in line for line, _ in of["good"])
    clean = [line for kind, line, _ in placed if kind in ("good", "blank")]
    assert read_bytes(run / "clean" / name) == b"".join(clean)
    assert read_bytes(run / "removed" / name) == b"".join(line for line, _ in of["leaked"])
    assert removed_rows(run, name) == [n for _, n in of["leaked"]]
    bad = bad_rows(run, name)
    assert [row["row"] for row in bad] == [n for _, n in of["bad"]]
    assert [raw_of(row) for row in bad] == [line for line, _ in of["bad"]]
    if limit is None and not of["leaked"] and not of["bad"]:
        assert (run / "clean" / name).read_bytes() == (folder / "pool" / name).read_bytes()
    shutil.rmtree(folder)


def raw_of(row: dict[str, Any]) -> bytes:
    return row["raw"].encode() if "raw" in row else base64.b64decode(row["raw_base64"])


def test_a_pool_without_an_item_is_copied_byte_for_byte(
    tmp_path: Path, index_path: str, rows: Rows
) -> None:
    """Also compressed, with blank lines, mixed line ends and no last one."""
    ordinary = [row for n, row in enumerate(rows) if n % 15 != 3]
    for name in SHAPES:
        write_as(tmp_path / "pool" / name, ordinary)
    (tmp_path / "pool/odd.jsonl").write_bytes(b'\n{"text": "a"}\r\n\n \n{"text":null}')
    (tmp_path / "pool/two.jsonl.gz").write_bytes(gzip.compress(b'{"text": "a"}\n') * 2)
    (tmp_path / "pool/empty.jsonl").write_bytes(b"")
    (tmp_path / "pool/empty.jsonl.gz").write_bytes(gzip.compress(b""))
    summary = scan(tmp_path / "pool", index_path, tmp_path / "run")
    assert tree(tmp_path / "run/clean") == tree(tmp_path / "pool")
    assert not (tmp_path / "run/removed").exists()
    assert not (tmp_path / "run/bad").exists()
    assert summary["counts"]["kept"] == summary["counts"]["rows"] == 7 * len(ordinary) + 4


def test_the_pool_is_only_read(pool: Path, tmp_path: Path, index_path: str) -> None:
    before, items = tree(pool), tree(Path(index_path))
    scan(pool, index_path, tmp_path / "run", remove="span")
    assert tree(pool) == before
    assert tree(Path(index_path)) == items


# ---- folders -------------------------------------------------------------------------------------


def test_same_named_files_do_not_mix(tmp_path: Path, index_path: str) -> None:
    texts = {"x": ROBES, "y": "nothing", "y/x": samples.leaked(samples.LOCKS), "deep/er/y": ROBES}
    for name, text in texts.items():
        write_as(tmp_path / "pool" / name / "a.jsonl", [{"text": name}, {"text": text}])
    several = [tmp_path / "pool" / name for name in ("x", "y", "deep/er")]
    glob = tmp_path / "pool" / "**" / "*.jsonl"
    for number, given_pool in enumerate([[tmp_path / "pool"], several, [glob]]):
        run = tmp_path / f"run{number}"
        scan(given_pool, index_path, run)
        for name, text in texts.items():
            shard = f"{name}/a.jsonl"
            gone = [] if name == "y" else [{"text": text}]
            clean = [{"text": name}] if gone else [{"text": name}, {"text": text}]
            assert read_as(run / "removed" / shard) == gone
            assert read_as(run / "clean" / shard) == clean
            assert len(matches(run, shard)) == len(gone)
            assert done(run, shard)["shard"] == shard
    assert_only_run_json_differs(tmp_path / "run0", tmp_path / "run1")
    assert_only_run_json_differs(tmp_path / "run0", tmp_path / "run2")


def assert_only_run_json_differs(one: Path, other: Path) -> None:
    a, b = tree(one), tree(other)
    assert list(a) == list(b)
    assert [name for name in a if a[name] != b[name]] == ["run.json"]


def test_roots_of_one_name_do_not_mix(tmp_path: Path, index_path: str) -> None:
    one, two = tmp_path / "one/pool", tmp_path / "two/pool"
    write_as(one / "a.jsonl", [{"text": ROBES}])
    write_as(two / "a.jsonl", [{"text": "nothing"}])
    scan([one, two], index_path, tmp_path / "run")
    assert read_as(tmp_path / "run/removed/one/pool/a.jsonl") == [{"text": ROBES}]
    assert read_as(tmp_path / "run/clean/two/pool/a.jsonl") == [{"text": "nothing"}]
    assert not (tmp_path / "run/removed/two").exists()


def test_a_run_folder_inside_the_pool(unseen: Command, pool: Path, index_path: str) -> None:
    """Its copies would be taken for shards by the next call."""
    for given_pool in (pool, pool / "**/*.jsonl", pool / "*"):
        command = ["scan", given_pool, "--index", index_path, "-o", pool / "run", "-w", 1]
        ended = unseen(*command)
        ended.check_refused()
        assert str(pool / "run") in ended.error
        assert "-o" in ended.hint
        assert not (pool / "run").exists()


def test_a_run_folder_beside_the_files_of_a_glob(
    unseen: Command, pool: Path, index_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """*.jsonl does not reach into the run folder."""
    monkeypatch.chdir(pool)
    command = ["scan", "*.jsonl", "--index", index_path, "-o", "run", "-w", 1]
    assert unseen(*command).code == 0
    before = tree(pool / "run")
    assert unseen(*command).code == 0
    assert tree(pool / "run") == before


# ---- files that cannot be read -------------------------------------------------------------------


class Broken(NamedTuple):
    """A damaged file: its name, how it is made of rows, what is said of it, and the remedy."""

    name: str
    damage: Callable[[Path], None]
    says: str
    remedy: str


def cut(share: float) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        data = path.read_bytes()
        path.write_bytes(data[: min(int(len(data) * share), len(data) - 1)])

    return damage


def with_line(line: bytes) -> Callable[[Path], None]:
    """Puts a line in the place of row 5, which a blank line precedes: it is line 7."""

    def damage(path: Path) -> None:
        lines = path.read_bytes().splitlines(keepends=True)
        lines[5] = b"\n" + line + b"\n"
        path.write_bytes(b"".join(lines))

    return damage


def unreadable(path: Path) -> None:
    """Rights do not bind root; reading this gives an input/output error to anybody."""
    path.unlink()
    path.symlink_to("/proc/self/mem")


def renamed_column(path: Path) -> None:
    pq.write_table(pq.read_table(path).rename_columns(["id", "body", "n"]), path)


BROKEN = {
    "truncated gzip": Broken("m.jsonl.gz", cut(0.6), "cut short or damaged.*rows were read", "fetch"),
    "gzip without its end": Broken("m.jsonl.gz", cut(1.0), "cut short or damaged", "fetch"),
    "truncated zstd": Broken("m.jsonl.zst", cut(0.6), "cut short or damaged", "fetch"),
    "truncated bz2": Broken("m.jsonl.bz2", cut(0.6), "cut short or damaged", "fetch"),
    "truncated xz": Broken("m.jsonl.xz", cut(0.6), "cut short or damaged", "fetch"),
    "truncated Parquet": Broken("m.parquet", cut(0.6), "cut short or damaged", "fetch"),
    "truncated Arrow": Broken("m.arrow", cut(0.6), "cut short or damaged", "fetch"),
    "truncated JSON": Broken("m.jsonl", cut(1 - 1e-3), r"row 149 \(line 150\): not JSON", "quarantine"),
    "invalid UTF-8": Broken(
        "m.jsonl",
        with_line(b'{"text": "\xff"}'),
        r"row 5 \(line 7\): byte 0xff.*not UTF-8",
        "quarantine",
    ),
    "no text field": Broken(
        "m.jsonl",
        with_line(b'{"body": ""}'),
        r"row 5 \(line 7\): no field 'text'.*: body",
        "quarantine",
    ),
    "byte order mark": Broken(
        "m.jsonl",
        lambda path: path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes()),
        r"row 0 \(line 1\): .*UTF-8 byte order mark; strip it: sed",
        "quarantine",
    ),
    "no text column": Broken(
        "m.parquet", renamed_column, "no column 'text'.*: id, body, n", "--text-field"
    ),
    "unreadable": Broken("m.jsonl", unreadable, "cannot be read: Input/output error", "check it"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_file_that_cannot_be_read_whole(
    unseen: Command, tmp_path: Path, index_path: str, rows: Rows, case: str
) -> None:
    """Named with its row and a remedy; nothing of it is called clean; the others are finished; once it
    is mended the same command completes."""
    broken, run, folder = BROKEN[case], tmp_path / "run", tmp_path / "pool"
    for name in ("a.jsonl", broken.name, "z.jsonl.gz"):
        write_as(folder / name, rows[:150])
    whole = (folder / broken.name).read_bytes()
    broken.damage(folder / broken.name)
    command = ["scan", folder, "--index", index_path, "-o", run, "-w", 1]
    ended = unseen(*command)
    ended.check_refused()
    assert str(folder / broken.name) in ended.error
    assert re.search(broken.says, ended.error), ended.error
    assert broken.remedy in ended.hint
    assert done_names(run) == {"a.jsonl.json", "z.jsonl.gz.json"}
    assert not [name for name in tree(run) if "/m." in name or "/." in name]
    assert not (run / "summary.json").exists()
    assert unseen(*command).error == ended.error

    (folder / broken.name).unlink()
    (folder / broken.name).write_bytes(whole)
    before = stamps(run, done_names(run))
    mended = unseen(*command)
    assert mended.code == 0, mended
    assert before.items() <= stamps(run, done_names(run)).items()
    scan(folder, index_path, tmp_path / "straight")
    assert_same(tmp_path / "straight", run)


def test_errors_of_several_shards_and_workers_are_told_together(
    tmp_path: Path, index_path: str, rows: Rows
) -> None:
    """In a process of its own, with two workers: every file is named, and nothing else is printed."""
    for name in ("a.jsonl", "m.jsonl.gz", "n.parquet", "o.parquet", "z.jsonl.gz"):
        write_as(tmp_path / "pool" / name, rows[:150])
    cut(0.5)(tmp_path / "pool/m.jsonl.gz")
    with_line(b'{"text": "\xff"}')(tmp_path / "pool/a.jsonl")
    renamed_column(tmp_path / "pool/o.parquet")
    ended = run_command(
        "scan", tmp_path / "pool", "--index", index_path, "-o", tmp_path / "run", "-w", 2, "--json"
    )
    assert (ended.code, ended.out) == (2, "")
    for name, says in (("m.jsonl.gz", "cut short"), ("a.jsonl", "row 5"), ("o.parquet", "no column")):
        assert re.search(f"{re.escape(str(tmp_path / 'pool' / name))}.*{says}", ended.err)
    assert "3 of 5 shards failed" in ended.error
    assert ended.hint
    assert "Traceback" not in ended.err
    assert "Exception ignored" not in ended.err
    assert done_names(tmp_path / "run") == {"n.parquet.json", "z.jsonl.gz.json"}


def test_a_link_that_leads_nowhere_is_named_before_the_scan(
    unseen: Command, pool: Path, tmp_path: Path, index_path: str
) -> None:
    (pool / "m.jsonl").symlink_to(tmp_path / "nowhere")
    command = ["scan", pool, "--index", index_path, "-o", tmp_path / "run", "-w", 1]
    ended = unseen(*command)
    ended.check_refused()
    assert str(pool / "m.jsonl") in ended.error
    assert not tree(tmp_path / "run")
    (pool / "m.jsonl").unlink()
    assert unseen(*command).code == 0


def test_a_file_that_changes_during_the_scan_is_refused(
    unseen: Command, pool: Path, tmp_path: Path, index_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Same length, other bytes, between the scan and the copy."""
    real = pipeline.split_shard

    def changed_first(shard: files.Shard, **options: Any) -> Any:
        if shard.name == "sub/a.jsonl":
            path = Path(shard.path)
            path.write_bytes(path.read_bytes().replace(b"doc/", b"DOC/", 1))
        return real(shard, **options)

    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "split_shard", changed_first)
        ended = unseen("scan", pool, "--index", index_path, "-o", tmp_path / "run", "-w", 1)
    ended.check_refused()
    assert str(pool / "sub/a.jsonl") in ended.error
    assert "changed" in ended.error
    assert done_names(tmp_path / "run") == {"a.jsonl.json", "sub/b.jsonl.json"}
    assert not (tmp_path / "run/clean/sub/a.jsonl").exists()


class FullDisk(NamedTuple):
    """A folder that takes about a megabyte until room is made."""

    folder: Path
    make_room: Callable[[], Any]


@pytest.fixture(params=["mounted", "injected"])
def full_disk(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[FullDisk]:
    """A real one where we may mount (else the other kind again), or one whose writes fail."""
    folder = tmp_path / "disk"
    folder.mkdir()
    tmpfs = ["mount", "-t", "tmpfs", "-o"]
    can_mount = shutil.which("mount") and os.geteuid() == 0
    if request.param == "mounted" and can_mount:
        small = [*tmpfs, "size=1m", "none", str(folder)]
        can_mount = subprocess.run(small, capture_output=True, check=False).returncode == 0
        if can_mount:
            large = ["mount", "-o", "remount,size=64m", str(folder)]
            yield FullDisk(folder, lambda: subprocess.run(large, check=True))
            subprocess.run(["umount", str(folder)], check=True)
            return
    room = [1 << 20]  # bytes that one file may take
    real = files._open_new

    class Limited:
        def __init__(self, path: str) -> None:
            self.file, self.left = real(path), room[0]

        def write(self, data: bytes) -> int:
            self.left -= len(data)
            if self.left < 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return self.file.write(data)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.file, name)

    monkeypatch.setattr(files, "_open_new", Limited)
    yield FullDisk(folder, lambda: room.__setitem__(0, 1 << 30))


def test_a_full_disk(
    unseen: Command, full_disk: FullDisk, tmp_path: Path, index_path: str, rows: Rows
) -> None:
    """The shard that does not fit is named, smaller ones are finished, and once there is room the same
    command completes."""
    folder, run = tmp_path / "pool", full_disk.folder / "run"
    write_as(folder / "big.jsonl", rows * 12)
    write_as(folder / "small.jsonl", rows[:30])
    write_as(folder / "small.parquet", rows[:30])
    assert (folder / "big.jsonl").stat().st_size > 1.2e6
    command = ["scan", folder, "--index", index_path, "-o", run, "-w", 1]
    ended = unseen(*command)
    ended.check_refused()
    assert f"{run}/clean/big.jsonl cannot be written: No space left on device" in ended.error
    assert "make room" in ended.hint
    assert done_names(run) == {"small.jsonl.json", "small.parquet.json"}
    assert not [name for name in tree(run) if name.startswith("clean/big") or "/." in name]
    full_disk.make_room()
    assert unseen(*command).code == 0
    scan(folder, index_path, tmp_path / "straight")
    assert_same(tmp_path / "straight", run)


def test_a_disk_that_is_full_at_any_write(
    mixed: Path, tmp_path: Path, index_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever write fails: BadRun, nothing half written, and the same call completes."""
    scan(mixed, index_path, tmp_path / "straight", on_bad_row="quarantine")
    real = files.OutputFile._put
    for failing in itertools.count(0, 7):
        left, run = [failing], tmp_path / f"run{failing}"

        def put(file: files.OutputFile, data: Any, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] < 0:
                with files._writing(file.path):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            real(file, data)

        with monkeypatch.context() as patch:
            patch.setattr(files.OutputFile, "_put", put)
            error = error_of(lambda run=run: scan(mixed, index_path, run, on_bad_row="quarantine"))
        if error is None:
            break
        assert "No space left on device" in error.message
        assert "make room" in error.hint
        assert not (run / "summary.json").exists()
        assert not [name for name in tree(run) if "/." in name]
        scan(mixed, index_path, run, on_bad_row="quarantine")
        assert_same(tmp_path / "straight", run)
        shutil.rmtree(run)
    assert failing > 20


def error_of(call: Callable[[], Any]) -> UnseenError | None:
    try:
        call()
    except UnseenError as error:
        return error
    return None


# ---- a run folder that is there ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "named"),
    [
        (["--stride", "10"], "stride was 1, now 10"),
        (["--preset", "published"], 'policy.name was "default", now "published"'),
        (["--text-field", "id"], 'text_field was "text", now "id"'),
        (["--id-field", "id"], 'id_field was null, now "id"'),
        (["--on-bad-row", "quarantine"], 'on_bad_row was "fail", now "quarantine"'),
        (["--remove", "span"], 'remove was "document", now "span"'),
        (["--limit", "7"], "limit was null, now 7"),
        (["--dry-run"], "dry_run was false, now true"),
    ],
)
def test_other_settings_are_refused(
    unseen: Command, pool: Path, tmp_path: Path, index_path: str, option: list[str], named: str
) -> None:
    command = ["scan", pool, "--index", index_path, "-o", tmp_path / "run", "-w", 1]
    assert unseen(*command).code == 0
    before = tree(tmp_path / "run")
    ended = unseen(*command, *option)
    ended.check_refused()
    assert str(tmp_path / "run") in ended.error
    assert named in ended.error
    assert "-o" in ended.hint
    assert tree(tmp_path / "run") == before
    assert unseen(*command).code == 0
    assert tree(tmp_path / "run") == before


def test_the_number_of_workers_is_no_setting(
    unseen: Command, pool: Path, tmp_path: Path, index_path: str
) -> None:
    command = ["scan", pool, "--index", index_path, "-o", tmp_path / "run", "-w"]
    assert unseen(*command, 1).code == 0
    assert unseen(*command, 2).code == 0


def test_another_index_is_refused(unseen: Command, pool: Path, tmp_path: Path) -> None:
    """Also one that was built in the same place."""
    items = refs.read_items([str(samples.write_jsonl(tmp_path / "items.jsonl", samples.ITEMS))])
    Index.build(items).save(str(tmp_path / "index"))
    command = ["scan", pool, "--index", tmp_path / "index", "-o", tmp_path / "run", "-w", 1]
    assert unseen(*command).code == 0
    before = tree(tmp_path / "run")
    Index.build(items.slice(1)).save(str(tmp_path / "index"), overwrite=True)
    ended = unseen(*command)
    ended.check_refused()
    assert "index.content" in ended.error
    assert "index.items was 3, now 2" in ended.error
    assert tree(tmp_path / "run") == before


def test_a_rebuilt_index_is_the_one_that_is_used(pool: Path, tmp_path: Path) -> None:
    """Two runs of one process; the index in the same place is another one the second time."""
    items = refs.read_items([str(samples.write_jsonl(tmp_path / "items.jsonl", samples.ITEMS))])
    Index.build(items.slice(2)).save(str(tmp_path / "index"))
    scan(pool, str(tmp_path / "index"), tmp_path / "one")
    Index.build(items.slice(0, 2)).save(str(tmp_path / "index"), overwrite=True)
    summary = scan(pool, str(tmp_path / "index"), tmp_path / "two")
    assert {(s["suite"], s["split"]) for s in summary["suites"]} == {
        ("arithmetic", "test"),
        ("history", "validation"),
    }


def test_another_pool_is_refused(unseen: Command, pool: Path, tmp_path: Path, index_path: str) -> None:
    """A file more, a file less, other folders: the sentence names the file."""
    command = ["scan", pool, "--index", index_path, "-o", tmp_path / "run", "-w", 1]
    assert unseen(*command).code == 0
    before = tree(tmp_path / "run")
    write_as(pool / "sub/new.jsonl", [{"text": "new"}])
    more = unseen(*command)
    (pool / "sub/new.jsonl").unlink()
    (pool / "sub/b.jsonl").rename(tmp_path / "b.jsonl")
    less = unseen(*command)
    (tmp_path / "b.jsonl").rename(pool / "sub/b.jsonl")
    other = unseen("scan", pool / "sub", *command[2:])
    for ended in (more, less, other):
        ended.check_refused()
    assert tree(tmp_path / "run") == before
    assert unseen(*command).code == 0
    assert "sub/new.jsonl" in more.error
    assert "sub/b.jsonl" in less.error
    assert f"{pool}/sub" in other.error


def test_a_changed_input_is_noticed(
    unseen: Command, pool: Path, tmp_path: Path, index_path: str
) -> None:
    """Of a shard that is done; the remedy that is given works."""
    command = ["scan", pool, "--index", index_path, "-o", tmp_path / "run", "-w", 1]
    assert unseen(*command).code == 0
    with (pool / "sub/a.jsonl").open("ab") as file:
        file.write(b'{"text": "one more"}\n')
    ended = unseen(*command)
    ended.check_refused()
    assert "sub/a.jsonl" in ended.error
    assert "bytes" in ended.error
    Path(re.findall(r"delete (\S+done/\S+\.json)", ended.hint)[0]).unlink()
    assert unseen(*command).code == 0
    scan(pool, index_path, tmp_path / "straight")
    assert_same(tmp_path / "straight", tmp_path / "run")


@pytest.mark.parametrize("kind", ["matches", "clean", "removed", "bad"])
@pytest.mark.parametrize("damage", ["deleted", "truncated"])
def test_an_output_that_was_damaged_is_noticed(
    unseen: Command, mixed: Path, tmp_path: Path, index_path: str, kind: str, damage: str
) -> None:
    """By the next scan, whose remedy works. Apply makes copies anew, and needs matches and bad rows."""
    run = tmp_path / "run"
    command = ["scan", mixed, "--index", index_path, "-o", run, "-w", 1, "--on-bad-row", "quarantine"]
    assert unseen(*command).code == 0
    before = tree(run)
    output = next(run / name for name in before if name.startswith(f"{kind}/b.jsonl"))
    if damage == "deleted":
        output.unlink()
    else:
        output.write_bytes(output.read_bytes()[: -20 if kind == "bad" else -1])
    applied = unseen("apply", run, "-o", tmp_path / "new", "-w", 1)
    if applied.code:
        applied.check_refused()
        assert "b.jsonl" in applied.error
    else:
        assert kind in ("clean", "removed")
        assert {n: d for n, d in tree(tmp_path / "new").items() if n[:4] != "done"} == {
            n: d for n, d in before.items() if n[:4] != "done"
        }
    ended = unseen(*command)
    ended.check_refused()
    assert str(output) in ended.error
    Path(re.findall(r"delete (\S+done/\S+\.json)", ended.hint)[0]).unlink()
    assert unseen(*command).code == 0
    assert tree(run) == before


@pytest.mark.parametrize("name", ["run.json", "done/b.jsonl.json"])
def test_a_damaged_record_is_refused(
    unseen: Command, mixed: Path, tmp_path: Path, index_path: str, name: str
) -> None:
    run = tmp_path / "run"
    command = ["scan", mixed, "--index", index_path, "-o", run, "-w", 1, "--on-bad-row", "quarantine"]
    assert unseen(*command).code == 0
    (run / name).write_bytes((run / name).read_bytes()[:40])
    for again in (command, ["apply", run, "-w", 1]):
        ended = unseen(*again)
        ended.check_refused()
        assert name in ended.error


def test_a_folder_with_other_things_is_refused(
    unseen: Command, pool: Path, tmp_path: Path, index_path: str
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full/notes.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for name in ("full", "file"):
        ended = unseen("scan", pool, "--index", index_path, "-o", tmp_path / name, "-w", 1)
        ended.check_refused()
        assert str(tmp_path / name) in ended.error
        assert "-o" in ended.hint
    assert tree(tmp_path / "full") == {"notes.txt": b"mine"}


# ---- options -------------------------------------------------------------------------------------


def test_bad_rows_are_set_aside_with_a_reason(tmp_path: Path, index_path: str) -> None:
    (tmp_path / "pool").mkdir()
    good, leak = b'{"text": "fine"}\n', json.dumps({"text": ROBES}).encode() + b"\n"
    bad = [line + b"\n" for line in BAD_LINES]
    data = good + b"\n" + bad[0] + leak + b"".join(bad[1:]) + good
    (tmp_path / "pool/a.jsonl").write_bytes(data)
    summary = scan(tmp_path / "pool", index_path, tmp_path / "run", on_bad_row="quarantine")
    rows = bad_rows(tmp_path / "run", "a.jsonl")
    assert [r["row"] for r in rows] == [1, *range(3, 2 + len(bad))]
    assert [raw_of(r) for r in rows] == bad
    assert all(r["reason"] and "\n" not in r["reason"] for r in rows)
    assert "not UTF-8" in rows[4]["reason"]
    assert "no field 'text'" in rows[1]["reason"]
    assert (tmp_path / "run/clean/a.jsonl").read_bytes() == good + b"\n" + good
    assert (tmp_path / "run/removed/a.jsonl").read_bytes() == leak
    assert summary["counts"]["bad"] == len(bad)
    assert done(tmp_path / "run", "a.jsonl")["counts"]["bad"] == len(bad)


def test_bad_rows_of_a_table_are_set_aside(tmp_path: Path, index_path: str) -> None:
    texts = pa.array([b"fine", b"\xff", ROBES.encode(), None], pa.binary())
    (tmp_path / "pool").mkdir()
    pq.write_table(pa.table({"text": texts, "n": [1, 2, 3, 4]}), tmp_path / "pool/a.parquet")
    scan(tmp_path / "pool", index_path, tmp_path / "run", on_bad_row="quarantine")
    assert [r["n"] for r in read_as(tmp_path / "run/clean/a.parquet")] == [1, 4]
    assert [r["n"] for r in read_as(tmp_path / "run/removed/a.parquet")] == [3]
    (row,) = bad_rows(tmp_path / "run", "a.parquet")
    assert row["row"] == 1
    kept = pa.ipc.open_stream(base64.b64decode(row["raw_base64"])).read_all()
    assert kept.to_pylist() == [{"text": b"\xff", "n": 2}]
    assert done(tmp_path / "run", "a.parquet")["counts"]["null_rows"] == 1


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.zst", "a.parquet", "a.arrow"])
@pytest.mark.parametrize("limit", [1, 4, 64, 1000])
def test_a_limit_is_rows_of_each_shard(
    tmp_path: Path, index_path: str, rows: Rows, name: str, limit: int
) -> None:
    write_as(tmp_path / "pool" / name, rows)
    write_as(tmp_path / "pool/sub" / name, rows[3:])
    summary = scan(tmp_path / "pool", index_path, tmp_path / "run", limit=limit)
    for shard, there in ((name, rows), (f"sub/{name}", rows[3:])):
        gone = removed_rows(tmp_path / "run", shard)
        assert gone == [n for n in gone if n < limit]
        read = there[:limit]
        assert read_as(tmp_path / "run/clean" / shard) == [
            r for n, r in enumerate(read) if n not in gone
        ]
        removed = tmp_path / "run/removed" / shard
        assert (read_as(removed) if gone else removed.exists()) == ([read[n] for n in gone] or False)
        assert done(tmp_path / "run", shard)["counts"]["rows"] == len(read)
    assert summary["counts"]["rows"] == min(limit, 300) + min(limit, 297)


def test_a_dry_run_has_the_same_matches_and_no_copy(
    mixed: Path, tmp_path: Path, index_path: str
) -> None:
    wet = scan(mixed, index_path, tmp_path / "wet", on_bad_row="quarantine")
    dry = scan(mixed, index_path, tmp_path / "dry", on_bad_row="quarantine", dry_run=True)
    a, b = tree(tmp_path / "wet"), tree(tmp_path / "dry")
    assert [n for n in a if n.startswith("matches/")] == [n for n in b if n.startswith("matches/")]
    assert all(a[n] == b[n] for n in a if n.startswith("matches/"))
    assert not [n for n in b if n.startswith(("clean/", "removed/"))]
    assert dry["counts"] == wet["counts"]
    assert dry["suites"] == wet["suites"]


def spans_left(text: str, found: list[dict[str, Any]]) -> str:
    """The text without its matches and 200 characters on either side; what is left in pieces is joined
    by a line break."""
    gone = [False] * len(text)
    for m in found:
        for at in range(max(0, m["start"] - 200), max(m["end"], m["answer_end"]) + 200):
            if at < len(text):
                gone[at] = True
    marks = "".join("\0" if g else c for c, g in zip(text, gone, strict=True))
    return "\n".join(piece for piece in re.split("\0+", marks) if piece.strip())


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.parquet"])
def test_a_span_can_be_cut_out(tmp_path: Path, index_path: str, name: str) -> None:
    host = " ".join(f"wört{n} 🙂" for n in range(400))
    texts = {
        "middle": host + ROBES + host,
        "start": samples.ROBES + host,
        "end": host + samples.LOCKS,
        "two": host + ROBES + host + samples.leaked(samples.LOCKS) + host,
        "short": host[:150] + ROBES + host[:150],
        "whole": samples.ROBES,
        "ordinary": host,
        "template": host + samples.leaked(samples.ROBES.replace("14", "25").replace(" 9 ", " 3 ")),
    }
    rows = [{"n": n, "text": text, "tail": {"x": 1.50, "y": "é"}} for n, text in texts.items()]
    write_as(tmp_path / "pool" / name, rows)
    summary = scan(tmp_path / "pool", index_path, tmp_path / "run", remove="span")
    clean = {row["n"]: row for row in read_as(tmp_path / "run/clean" / name)}
    removed = read_as(tmp_path / "run/removed" / name)
    assert removed == [row for row in rows if row["n"] in ("short", "whole")]
    assert list(clean) == [n for n in texts if n not in ("short", "whole")]
    found = [m for m in matches(tmp_path / "run", name).to_pylist() if m["verdict"] == "remove"]
    for place, row in enumerate(rows):
        own = [m for m in found if m["row"] == place]
        left = spans_left(row["text"], own)
        assert bool(own) == (row["n"] not in ("ordinary", "template"))
        if row["n"] in clean:
            assert clean[row["n"]] == {**row, "text": left}
            assert len(left) >= 200
        else:
            assert len(left) < 200
    counts = summary["counts"]
    assert (counts["kept"], counts["removed"], counts["cut"]) == (6, 2, 4)
    assert not any(q in clean[n]["text"] for n in clean for q in (samples.ROBES, samples.LOCKS))
    again = scan(tmp_path / "run/clean", index_path, tmp_path / "again")
    assert again["counts"]["removed"] == 0


def test_cutting_a_span_changes_no_other_byte(tmp_path: Path, index_path: str) -> None:
    host = "wort " * 200
    before, after = b'  {"b" : 1.50, "meta": {"x":[ ], "text":', b', "e": "\\u00e9\\/"} }\r\n'
    line = before + json.dumps(host + ROBES + host).encode() + after
    other = b'{"meta": {"text": "plain \\u00e9"}}\n'
    (tmp_path / "pool").mkdir()
    (tmp_path / "pool/a.jsonl").write_bytes(other + line + other)
    scan(tmp_path / "pool", index_path, tmp_path / "run", remove="span", text_field="meta.text")
    (match,) = matches(tmp_path / "run", "a.jsonl").to_pylist()
    new = spans_left(host + ROBES + host, [match])
    expected = before + json.dumps(new).encode() + after
    assert (tmp_path / "run/clean/a.jsonl").read_bytes() == other + expected + other


CHAT = [
    {"role": "system", "content": None},
    {"role": "user", "content": "An opening line."},
    {
        "role": "user",
        "content": [
            {"type": "image", "url": "x"},
            {"type": "text", "text": samples.LOCKS},
            "a bare part",
        ],
    },
    {"role": "assistant", "tool_calls": []},
]


@pytest.mark.parametrize(
    ("field", "row", "text"),
    [
        ("a.b", {"a": {"b": samples.LOCKS, "text": 1}}, samples.LOCKS),
        ("title,text", {"title": "T", "text": samples.LOCKS}, "T\n\n" + samples.LOCKS),
        ("title,text", {"title": None, "text": samples.LOCKS}, samples.LOCKS),
        ("messages[].content", {"messages": CHAT},
         f"An opening line.\n\n{samples.LOCKS}\n\na bare part"),
        ("texts[]", {"texts": ["x", samples.LOCKS]}, "x\n\n" + samples.LOCKS),
    ],
)  # fmt: skip
def test_texts_are_found_where_the_field_says(
    tmp_path: Path, index_path: str, field: str, row: dict[str, Any], text: str
) -> None:
    write_as(tmp_path / "pool/a.jsonl", [row, row])
    if field != "messages[].content":  # a list of strings and objects is no Arrow type
        write_as(tmp_path / "pool/a.parquet", [row, row])
    summary = scan(tmp_path / "pool", index_path, tmp_path / "run", text_field=field)
    assert summary["counts"]["removed"] == summary["counts"]["rows"] == 2 * summary["shards"]
    for shard in ("a.jsonl", "a.parquet")[: summary["shards"]]:
        first, second = matches(tmp_path / "run", shard).to_pylist()
        assert text[first["start"] : first["end"]] == samples.LOCKS.rstrip(".")
        assert {**first, "row": 1} == second
    assert summary["counts"]["text_bytes"] == summary["counts"]["rows"] * len(text.encode())


def test_half_of_an_item_in_each_of_two_fields_is_no_loss(tmp_path: Path, index_path: str) -> None:
    """A question in one message and its answer in the next is one document."""
    chat = [{"role": "user", "content": samples.ROBES}, {"role": "assistant", "content": "15 robes"}]
    write_as(tmp_path / "pool/a.jsonl", [{"messages": chat}])
    scan(tmp_path / "pool", index_path, tmp_path / "run", text_field="messages[].content")
    (match,) = matches(tmp_path / "run", "a.jsonl").to_pylist()
    assert match["evidence"] == "question+answer"


@pytest.mark.parametrize(
    ("field", "expected"),
    [("id", ["x-0", "x-1", None]), ("meta.key", ["7", "8.5", "true"]), (None, [None] * 3)],
)
def test_ids_are_recorded(
    tmp_path: Path, index_path: str, field: str | None, expected: list[str | None]
) -> None:
    keys: list[Any] = [7, 8.5, True]
    rows = [
        {"id": ident, "meta": {"key": key}, "text": ROBES}
        for ident, key in zip(["x-0", "x-1", None], keys, strict=True)
    ]
    write_as(tmp_path / "pool/a.jsonl", rows)
    scan(tmp_path / "pool", index_path, tmp_path / "run", id_field=field)
    assert matches(tmp_path / "run", "a.jsonl")["doc_id"].to_pylist() == expected


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet", "a.arrow"])
def test_null_texts_are_kept_and_counted(tmp_path: Path, index_path: str, name: str) -> None:
    rows = [
        {"text": None, "n": 0},
        {"text": "", "n": 1},
        {"text": ROBES, "n": 2},
        {"text": None, "n": 3},
    ]
    write_as(tmp_path / "pool" / name, rows)
    summary = scan(tmp_path / "pool", index_path, tmp_path / "run")
    assert summary["counts"]["null_rows"] == 2
    assert summary["counts"]["kept"] == 3
    assert read_as(tmp_path / "run/clean" / name) == [rows[0], rows[1], rows[3]]
    assert matches(tmp_path / "run", name)["row"].to_pylist() == [2]


# ---- apply ---------------------------------------------------------------------------------------


def keep_all() -> verdict.Policy:
    return verdict.Policy(name="none", rules=[])


POLICIES = {
    "published": verdict.PRESETS["published"],
    "none": keep_all(),
    "all": verdict.Policy(name="all", rules=[verdict.Rule(verdict="remove")]),
    "review": verdict.Policy(
        name="review",
        rules=[
            verdict.Rule(verdict="keep", suite="hist*", split="validation"),
            verdict.Rule(verdict="review", evidence=["question", "template"]),
            verdict.Rule(verdict="remove", min_score=0.6),
        ],
    ),
}


def assert_same_results(one: Path, other: Path) -> None:
    """The same copies, verdicts and counts."""
    a, b = tree(one), tree(other)
    assert list(a) == list(b)
    tables = [name for name in a if name.startswith("matches/")]
    assert all(pq.read_table(one / name).equals(pq.read_table(other / name)) for name in tables)
    rest = [name for name in a if not name.startswith(("matches/", "done/"))]
    assert [name for name in rest if a[name] != b[name]] == []


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("remove", ["document", "span"])
@pytest.mark.parametrize("in_place", [True, False])
def test_apply_gives_what_a_scan_with_that_policy_gives(
    mixed: Path, pool: Path, tmp_path: Path, index_path: str, policy: str, remove: str, in_place: bool
) -> None:
    """Copies, verdicts, bad rows, counts and run.json alike, also where files have to go."""
    shutil.move(mixed, pool / "mixed")
    options: dict[str, Any] = {"on_bad_row": "quarantine", "id_field": None}
    scan(pool, index_path, tmp_path / "run", **options, remove="document")
    scanned = scan(
        pool, index_path, tmp_path / "scan", **options, remove=remove,
        policy=POLICIES[policy].model_dump(),
    )  # fmt: skip
    before = tree(tmp_path / "run")
    new = tmp_path / ("run" if in_place else "new")
    summary = apply_run(
        str(tmp_path / "run"),
        POLICIES[policy],
        out=None if in_place else str(new),
        remove=remove,
        workers=1,
    )
    assert summary == scanned
    assert_same_results(tmp_path / "scan", new)
    if not in_place:
        assert tree(tmp_path / "run") == before
    counts = summary["counts"]
    assert counts["rows"] == counts["kept"] + counts["removed"] + counts["bad"]
    assert (counts["review"] > 0) == (policy == "review")


def test_there_and_back_again(pool: Path, tmp_path: Path, index_path: str) -> None:
    """Verdicts forget nothing: the first policy again gives the first results."""
    run = tmp_path / "run"
    scan(pool, index_path, run)
    shutil.copytree(run, tmp_path / "first")
    for name in ("none", "review", "all", "published"):
        apply_run(str(run), POLICIES[name], workers=1)
    apply_run(str(run), verdict.PRESETS["default"], workers=1)
    assert_same_results(tmp_path / "first", run)


def test_verdicts_to_review_stay_in_the_clean_copy(
    unseen: Command, pool: Path, tmp_path: Path, index_path: str
) -> None:
    (tmp_path / "policy.yaml").write_text("rules:\n- {verdict: review, suite: arithmetic}\n")
    run = tmp_path / "run"
    command = ["scan", pool, "--index", index_path, "-o", run, "-w", 1]
    assert unseen(*command, "--policy", tmp_path / "policy.yaml").code == 0
    assert tree(run / "clean") == tree(pool)
    assert not (run / "removed").exists()
    found = [m for name in ("a", "sub/a", "sub/b") for m in matches(run, f"{name}.jsonl").to_pylist()]
    assert {m["verdict"] for m in found if m["suite"] == "arithmetic"} == {"review"}
    assert {m["verdict"] for m in found if m["suite"] == "history"} == {"keep"}
    summary = json.loads((run / "summary.json").read_text())
    per_shard = [matches(run, f"{name}.jsonl") for name in ("a", "sub/a", "sub/b")]
    documents = sum(
        len({m["row"] for m in t.to_pylist() if m["verdict"] == "review"}) for t in per_shard
    )
    assert summary["counts"]["review"] == documents > 0
    assert summary["counts"]["removed"] == 0


def test_apply_writes_the_copy_that_a_dry_run_left_out(
    mixed: Path, tmp_path: Path, index_path: str
) -> None:
    """Bad rows stay bad: what was not read is never called clean."""
    scan(mixed, index_path, tmp_path / "dry", on_bad_row="quarantine", dry_run=True)
    scan(mixed, index_path, tmp_path / "wet", on_bad_row="quarantine")
    apply_run(str(tmp_path / "dry"), verdict.PRESETS["default"], out=str(tmp_path / "new"), workers=1)
    assert_same_results(tmp_path / "wet", tmp_path / "new")
    apply_run(str(tmp_path / "dry"), verdict.PRESETS["default"], workers=1)
    assert_same_results(tmp_path / "wet", tmp_path / "dry")


@pytest.mark.parametrize("workers", [1, 2])
def test_bad_rows_stay_bad_when_verdicts_change(tmp_path: Path, index_path: str, workers: int) -> None:
    (tmp_path / "pool").mkdir()
    lines = b"".join(line + b"\n" for line in [*BAD_LINES, *GOOD_LINES])
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / "pool" / name).write_bytes(lines)
    run = tmp_path / "run"
    scan(tmp_path / "pool", index_path, run, on_bad_row="quarantine")
    before = tree(run)
    summary = apply_run(str(run), POLICIES["all"], workers=workers)
    assert summary["counts"]["bad"] == 2 * len(BAD_LINES)
    after = tree(run)
    same = [n for n in before if n.startswith(("bad/", "clean/"))]
    assert len(same) == 4
    assert all(before[n] == after[n] for n in same)


def test_apply_keeps_the_limit(pool: Path, tmp_path: Path, index_path: str) -> None:
    policy = POLICIES["published"]
    scan(pool, index_path, tmp_path / "run", limit=40)
    scan(pool, index_path, tmp_path / "scan", limit=40, policy=policy.model_dump())
    apply_run(str(tmp_path / "run"), policy, workers=1)
    assert_same_results(tmp_path / "scan", tmp_path / "run")


def test_apply_refuses_a_run_that_is_not_finished(
    unseen: Command, pool: Path, tmp_path: Path, index_path: str
) -> None:
    scan(pool, index_path, tmp_path / "run")
    (tmp_path / "run/done/sub/a.jsonl.json").unlink()
    before = tree(tmp_path / "run")
    for out in ([], ["-o", tmp_path / "new"]):
        ended = unseen("apply", tmp_path / "run", "--preset", "published", "-w", 1, *out)
        ended.check_refused()
        assert "sub/a.jsonl" in ended.error
        assert "not finished" in ended.error
        assert tree(tmp_path / "run") == before
        assert not tree(tmp_path / "new")
    for name in ("pool", "nothing"):
        unseen("apply", tmp_path / name, "-w", 1).check_refused()


@pytest.mark.parametrize("change", ["longer", "same length", "gone"])
@pytest.mark.parametrize("in_place", [True, False])
def test_apply_refuses_a_changed_input(
    unseen: Command, pool: Path, tmp_path: Path, index_path: str, change: str, in_place: bool
) -> None:
    """Nothing is written from it, and nothing that was there is lost."""
    scan(pool, index_path, tmp_path / "run")
    before = tree(tmp_path / "run")
    path = pool / "sub/a.jsonl"
    whole = path.read_bytes()
    if change == "gone":
        path.unlink()
    else:
        path.write_bytes(whole + b"\n" if change == "longer" else whole.replace(b"doc/", b"DOC/", 1))
    target = tmp_path / ("run" if in_place else "new")
    options = ["--preset", "published", "-w", 1] + ([] if in_place else ["-o", target])
    ended = unseen("apply", tmp_path / "run", *options)
    ended.check_refused()
    assert "sub/a.jsonl" in ended.error
    assert not (tmp_path / "new/clean/sub/a.jsonl").exists()
    assert "sub/a.jsonl.json" not in done_names(tmp_path / "new")
    if not in_place or change != "same length":
        assert tree(tmp_path / "run") == before
    path.write_bytes(whole)
    mended = unseen("apply", tmp_path / "run", *options)
    assert mended.code == 0, mended
    policy = verdict.PRESETS["published"].model_dump()
    scan(pool, index_path, tmp_path / "straight", policy=policy)
    assert_same_results(tmp_path / "straight", target)


def test_apply_refuses_a_folder_of_another_run(
    unseen: Command, pool: Path, tmp_path: Path, index_path: str
) -> None:
    scan(pool, index_path, tmp_path / "run")
    scan(pool, index_path, tmp_path / "other", stride=10)
    before = tree(tmp_path / "other")
    ended = unseen("apply", tmp_path / "run", "-o", tmp_path / "other", "-w", 1)
    ended.check_refused()
    assert "stride" in ended.error
    assert tree(tmp_path / "other") == before


# ---- progress and memory -------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("limit", [None, 20])
def test_progress_adds_up(
    pool: Path, tmp_path: Path, index_path: str, rows: Rows, workers: int, limit: int | None
) -> None:
    """The last numbers are the whole pool, whatever of it was read; they never fall."""
    write_as(pool / "c.parquet", rows)
    seen: list[pipeline.Progress] = []
    summary = scan_pool(
        [str(pool)],
        index_path,
        str(tmp_path / "run"),
        Settings(limit=limit),
        workers=workers,
        on_progress=seen.append,
    )
    assert all(
        a <= b for one, other in itertools.pairwise(seen) for a, b in zip(one, other, strict=True)
    )
    counts = summary["counts"]
    size = sum(p.stat().st_size for p in pool.rglob("*") if p.is_file())
    assert seen[-1] == (size, counts["rows"], counts["matches"], counts["text_bytes"])


GIGABYTES = 0.6
PEAK = (
    "import resource, subprocess, sys\n"
    "ended = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)\n"
    "print(ended.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
)  # in a small process: a child's peak counts what its parent held when it was started


def peak_megabytes(*arguments: Any) -> float:
    """Peak memory of a command, the mapped index included."""
    launched = [sys.executable, "-c", PEAK, *UNSEEN, *map(str, arguments)]
    ended = subprocess.run(launched, capture_output=True, text=True, timeout=300, check=True)
    code, peak = map(int, ended.stdout.split())
    assert code == 0, ended.stderr
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def test_a_large_shard_streams(tmp_path: Path, index_path: str, rows: Rows) -> None:
    """At most 400 MB a process, however large the shard."""
    block = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows if row["n"] % 15 != 3)
    data = block.encode() * int(10e6 // len(block.encode()))
    data += json.dumps(rows[3]).encode() + b"\n"
    try:
        (tmp_path / "pool").mkdir()
        with (tmp_path / "pool/a.jsonl").open("wb") as file:
            while file.tell() < GIGABYTES * 1e9:
                file.write(data)
        options = ["--index", index_path, "-o", tmp_path / "run", "-w", 1, "--dry-run"]
        peak = peak_megabytes("scan", tmp_path / "pool", *options)
    finally:
        shutil.rmtree(tmp_path / "pool")
    assert peak < 400, f"a dry run over {GIGABYTES} GB of JSON lines took {peak:.0f} MB"


def test_a_large_row_group_streams(tmp_path: Path, index_path: str) -> None:
    """A Parquet file of one row group, 240 MB of it compressed, is not read whole either."""
    noise = base64.b64encode(os.urandom(750_000)).decode()
    texts = pa.chunked_array([pa.array([noise[k : k + 5000] for k in range(0, 1_000_000, 5000)])] * 300)
    try:
        (tmp_path / "pool").mkdir()
        pq.write_table(
            pa.table({"text": texts}),
            tmp_path / "pool/a.parquet",
            row_group_size=1 << 30,
            use_dictionary=False,
            compression="snappy",
        )
        assert pq.read_metadata(tmp_path / "pool/a.parquet").num_row_groups == 1
        options = ["--index", index_path, "-o", tmp_path / "run", "-w", 1, "--dry-run"]
        peak = peak_megabytes("scan", tmp_path / "pool", *options)
    finally:
        shutil.rmtree(tmp_path / "pool")
    assert peak < 400, f"a row group of 300 MB took {peak:.0f} MB"
