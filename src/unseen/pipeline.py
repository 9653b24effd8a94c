"""A pool and an index to a run folder: plan, scan each shard, decide, write, sum up; resume.

In: shards. Out: RUN/ as described in the README ("What a run leaves"). A shard is done when its record
in done/ is there; everything before that can be thrown away and made again, byte for byte.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import pathlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from unseen import engines, kernels, manifest, records, verdict
from unseen.errors import BadIndex, BadInput, BadRun, BadSetting
from unseen.files import (
    BadRow,
    FileFacts,
    Shard,
    atomic_write,
    hash_file,
    list_shards,
)
from unseen.pool import OnBadRow, ShardReader, TextField, compile_reader, read_batches
from unseen.scan import Found, Index, Scanner, find_matches, is_compiled, to_table
from unseen.write import split_shard, write_bad

CUT_CONTEXT = 200  # characters cut on either side of a match by `remove="span"`, as GPT-3 did
WORKER_BYTES = 64 << 20  # input for which another process pays
MATCHES_AT_ONCE = 16384  # matches turned into rows together
CUT_REST = 200  # a document of which less is left is removed whole

Rows = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True)
class Settings:
    """What a run was asked to do; stored in run.json, compared on resume."""

    text_field: str = "text"
    id_field: str | None = None
    stride: int = 1  # look up every stride-th token position
    on_bad_row: OnBadRow = "fail"  # or "quarantine"
    remove: str = "document"  # or "span"
    limit: int | None = None  # rows of each shard
    dry_run: bool = False  # matches only, no copy of the pool
    policy: Mapping[str, Any] = dataclasses.field(default_factory=verdict.PRESETS["default"].model_dump)

    def decided(self) -> str:
        """Identifies what verdicts and copies follow from; kept in each done record."""
        what = (self.as_json()["policy"], self.remove, self.dry_run)
        return str(xxhash.xxh3_64_hexdigest(json.dumps(what).encode()))

    def as_json(self) -> dict[str, Any]:
        return dict(json.loads(json.dumps(dataclasses.asdict(self))))


@dataclasses.dataclass(frozen=True)
class Task:
    """One shard's work; small and picklable."""

    shard: Shard
    run: str
    index: str
    index_content: str  # its content hash: a worker that has another one open opens it again
    settings: Settings


class Progress(NamedTuple):
    """What the progress bar is told: sums over all workers."""

    bytes_read: int
    documents: int
    matches: int
    text_bytes: int


def scan_pool(
    pool: Sequence[str],
    index: str,
    run: str,
    settings: Settings,
    *,
    workers: int = 0,
    on_plan: Callable[[list[Shard], list[Shard], int], None] = lambda shards, left, ignored: None,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> dict[str, Any]:
    """Scan a pool into a run folder; returns the summary, also written to summary.json.

    workers: processes, 0 = all cores. on_plan is told the shards, those left to do, and how many files
    of the folders have no known suffix. A run that was interrupted goes on where it was.

    Raises BadSetting, BadInput, BadIndex or BadRun. When shards fail the others are finished first;
    then one error names them all.
    """
    check(settings)
    refuse_inside(pathlib.Path(run), pool)
    listing = list_shards(pool)
    opened = Index.open(index)
    folder = pathlib.Path(run)
    manifest.start(folder, request(opened, pool, listing.shards, settings))
    content = opened.content_hash
    tasks = [Task(s, str(folder), str(index), content, settings) for s in listing.shards]
    left = [
        t
        for t in tasks
        if manifest.finished(folder, t.shard.name, t.shard.size_bytes, settings.decided()) is None
    ]
    warm_up(opened)
    on_plan(listing.shards, [t.shard for t in left], len(listing.ignored))
    run_tasks(scan_shard, left, workers, on_progress)
    return summarize(folder)


def request(
    opened: Index, pool: Sequence[str], shards: Sequence[Shard], settings: Settings
) -> dict[str, Any]:
    """What run.json says."""
    header = opened.header
    return {
        "index": {
            "path": str(opened.path),
            "content": opened.content_hash,
            "tokenizer": header["tokenizer"],
            "items": header["counts"]["items"],
            "missing": header.get("missing", []),
            "base": header.get("delta", {}).get("base"),
        },
        "pool": list(pool),
        "settings": settings.as_json(),
        "shards": [{"name": s.name, "path": s.path} for s in shards],
    }


def check(settings: Settings) -> None:
    """Raise BadSetting for settings that make no sense."""
    field = TextField.parse(settings.text_field)
    if settings.stride < 1:
        raise BadSetting(f"--stride {settings.stride} is not possible", "use 1, or 10 as published")
    for name, value, allowed in (
        ("--on-bad-row", settings.on_bad_row, ("fail", "quarantine")),
        ("--remove", settings.remove, ("document", "span")),
    ):
        if value not in allowed:
            raise BadSetting(f"{name} {value} is not possible", f"use {' or '.join(allowed)}")
    if settings.remove == "span" and field.single is None:
        raise BadSetting(
            f"--remove span cannot cut text that comes from {settings.text_field}",
            "it needs one plain field; remove whole documents instead",
        )
    if settings.limit is not None and settings.limit < 1:
        raise BadSetting(f"--limit {settings.limit} is not possible", "use 1 or more")


def refuse_inside(run: pathlib.Path, pool: Sequence[str]) -> None:
    """Raise BadSetting when the run folder lies in the pool: the next call would scan its outputs."""
    for given in pool:
        fixed = re.split(r"[*?\[]", given)[0]
        if fixed != given and "**" not in given:
            pattern = os.path.abspath(given)
            if any(p.match(pattern) for p in (run.resolve(), *run.resolve().parents)):
                raise BadSetting(
                    f"{run} lies inside the pool {given}", "name a folder outside it with -o"
                )
            continue  # a plain glob walks only into folders that match it
        root = pathlib.Path(fixed if fixed == given else os.path.dirname(fixed) or ".")
        if root.is_dir() and run.resolve().is_relative_to(root.resolve()):
            raise BadSetting(f"{run} lies inside the pool {given}", "name a folder outside it with -o")


def warm_up(opened: Index) -> None:
    """Compile the kernels, or load them from the cache, before workers start and all need them."""
    if not is_compiled() and engines.default_workers() > 1:  # those that read beside those that scan
        for outcome in engines.local(
            functools.partial(compile_half, str(opened.path)), (True, False), workers=2
        ):
            if outcome.error is not None:
                raise outcome.error
    opened.scan(["warm up"])
    compile_reader()


def compile_half(index: str, scans: bool) -> None:
    """Compile the kernels that scan, or those that read, into the cache."""
    if scans:
        Index.open(index).scan(["warm up"])
    else:
        compile_reader()


def run_tasks(
    function: Callable[[Task], Any],
    tasks: Sequence[Task],
    workers: int,
    on_progress: Callable[[Progress], None],
) -> None:
    """Run all tasks, largest shard first; raise one error for all that failed."""
    order = sorted(tasks, key=lambda t: (-t.shard.size_bytes, t.shard.name))
    failed = []
    for outcome in engines.local(
        function,
        order,
        workers=workers or workers_for(sum(t.shard.size_bytes for t in tasks)),
        on_tick=lambda counts: on_progress(Progress(*counts[:4])),
    ):
        if outcome.error is not None:
            failed.append(outcome.error)
    if len(failed) == 1:
        raise failed[0]
    if failed:
        lines = "\n".join(f"  {error.message}" for error in failed)
        raise BadInput(
            f"{len(failed)} of {len(tasks)} shards failed:\n{lines}",
            f"{failed[0].hint}; then run the same command again, finished shards are kept",
        )


def workers_for(size_bytes: int) -> int:
    """All cores, but no process for less than WORKER_BYTES: starting it would cost more."""
    return max(1, min(engines.default_workers(), size_bytes // WORKER_BYTES))


@functools.lru_cache(maxsize=1)
def scanner_of(index: str, content: str, stride: int) -> Scanner:
    """This process's scanner: the index is mapped once. Raises BadIndex when it was replaced."""
    opened = Index.open(index)
    if opened.content_hash != content:
        raise BadIndex(f"{index} was replaced while the scan ran", "start a new run with the new index")
    return Scanner(opened, stride=stride)


def scan_shard(task: Task) -> None:
    """Read, scan, decide, write, and last the done record."""
    shard, settings, run = task.shard, task.settings, pathlib.Path(task.run)
    scanner = scanner_of(task.index, task.index_content, settings.stride)
    scanner.counters[:] = 0
    policy = verdict.Policy.model_validate(settings.policy)
    reader = open_shard(shard, settings)
    bad: list[BadRow] = []
    null_rows = text_bytes = seen_bytes = 0
    path = run / "matches" / f"{shard.name}.parquet"
    waiting: list[Found] = []
    with matches_file(path) as write:
        for batch in reader:
            found = find_matches(scanner, batch.data, batch.offsets, rows=batch.rows, ids=batch.ids)
            waiting.append(found)
            if sum(len(part.ints) for part in waiting) >= MATCHES_AT_ONCE:
                write(to_table(scanner.index, waiting, policy))
                waiting.clear()
            bad += batch.bad
            null_rows += batch.null_rows
            text_bytes += int(batch.offsets[-1])
            engines.tick(
                batch.read_bytes - seen_bytes, batch.n_rows, len(found.ints), int(batch.offsets[-1])
            )
            seen_bytes = batch.read_bytes
        write(to_table(scanner.index, waiting, policy))
    engines.tick(shard.size_bytes - seen_bytes, 0, 0, 0)
    counts = {
        "null_rows": null_rows,
        "text_bytes": text_bytes,
        "crowded_segments": int(scanner.counters[kernels.COUNT_CROWDED]),
        "hurried_chains": int(scanner.counters[kernels.COUNT_HURRIED]),
    }
    finish_shard(task, reader.facts, bad, counts)


def open_shard(shard: Shard, settings: Settings) -> ShardReader:
    return read_batches(
        shard,
        text_field=TextField.parse(settings.text_field),
        id_field=settings.id_field,
        on_bad_row=settings.on_bad_row,
        limit=settings.limit,
    )


def finish_shard(task: Task, facts: FileFacts, bad: Sequence[BadRow], counts: dict[str, int]) -> None:
    """Write what the recorded matches decide, then the done record. `counts` are carried over."""
    shard, settings, run = task.shard, task.settings, pathlib.Path(task.run)
    path = run / "matches" / f"{shard.name}.parquet"
    decided = pq.read_table(path, columns=["row", "start", "end", "answer_end", "verdict"])
    verdicts = np.array(decided["verdict"].to_pylist(), dtype=str)
    rows = decided["row"].to_numpy()
    removed = verdict.worst(rows, verdicts, "remove")
    review = verdict.worst(rows, verdicts, "review")
    edits: dict[int, str] = {}
    if settings.remove == "span" and len(removed):
        removed, edits = cut_spans(task, decided.filter(pa.array(verdicts == "remove")), removed)
    outputs = {f"matches/{shard.name}.parquet": facts_of(path)}
    copies = [run / "clean" / shard.name, run / "removed" / shard.name]
    bad_path = run / "bad" / f"{shard.name}.jsonl"
    if settings.dry_run:
        if bad:  # a report, not a copy of the pool: `apply` must know what was never read
            write_bad(bad, bad_path)
            outputs[f"bad/{shard.name}.jsonl"] = facts_of(bad_path)
    else:
        written = split_shard(
            shard,
            removed=removed,
            bad=bad,
            edits=edits,
            text_keys=TextField.parse(settings.text_field).single,
            clean_path=str(copies[0]),
            removed_path=str(copies[1]),
            bad_path=str(bad_path),
            expected=facts,
            limit=settings.limit,
        )
        for name, size, digest in (
            (f"clean/{shard.name}", written.clean_bytes, written.clean_hash),
            (f"removed/{shard.name}", written.removed_bytes, written.removed_hash),
            (f"bad/{shard.name}.jsonl", written.bad_bytes, written.bad_hash),
        ):
            if digest is not None:
                outputs[name] = {"size_bytes": size, "xxh3_128": digest}
    for stale in (*copies, bad_path):
        if stale.relative_to(run).as_posix() not in outputs:  # of an earlier decision
            stale.unlink(missing_ok=True)
    kept = facts.rows - len(removed) - len(bad)
    manifest.write_json(
        manifest.done_path(run, shard.name),
        {
            "shard": shard.name,
            "decided": settings.decided(),
            "input": {"size_bytes": facts.size_bytes, "xxh3_128": facts.xxh3_128},
            "counts": {
                "rows": facts.rows,
                "kept": kept,
                "removed": len(removed),
                "bad": len(bad),
                "review": len(review),
                "cut": len(edits),
                "matches": len(decided),
                **counts,
            },
            "outputs": outputs,
        },
    )


def facts_of(path: pathlib.Path) -> dict[str, Any]:
    facts = hash_file(str(path))
    return {"size_bytes": facts.size_bytes, "xxh3_128": facts.xxh3_128}


@contextmanager
def matches_file(path: pathlib.Path) -> Iterator[Callable[[pa.Table], None]]:
    """A Parquet file of matches, whole or not at all; the block is given a function that adds rows."""
    with atomic_write(str(path)) as output:
        writer = pq.ParquetWriter(output, records.match_schema(), compression="zstd")
        try:
            yield lambda table: writer.write_table(table) if len(table) else None
        except BaseException:
            with suppress(Exception):  # the file is thrown away; the first error is the one to tell
                writer.close()
            raise
        writer.close()


def cut_spans(task: Task, found: pa.Table, rows: Rows) -> tuple[Rows, dict[int, str]]:
    """Texts with their matches cut out, by row, and the rows of which too little is left."""
    spans: dict[int, list[tuple[int, int]]] = {}
    for row, start, end, answer_end in zip(
        *(found[c].to_pylist() for c in found.column_names[:4]), strict=True
    ):
        spans.setdefault(row, []).append((start - CUT_CONTEXT, max(end, answer_end) + CUT_CONTEXT))
    edits: dict[int, str] = {}
    wanted = set(rows.tolist())
    for batch in open_shard(task.shard, task.settings):
        for place, row in enumerate(batch.rows.tolist()):
            if row in wanted:
                raw = batch.data[batch.offsets[place] : batch.offsets[place + 1]].tobytes()
                edits[row] = without(raw.decode(), spans[row])
    gone = np.array([row for row in rows.tolist() if len(edits[row]) < CUT_REST], np.int64)
    return gone, {row: text for row, text in edits.items() if len(text) >= CUT_REST}


def without(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """The text without the given character spans; pieces are joined by a line break."""
    pieces, position = [], 0
    for start, end in sorted(spans):
        pieces.append(text[position : max(start, position)])
        position = max(position, end)
    pieces.append(text[position:])
    return "\n".join(piece for piece in pieces if piece.strip())


def apply_run(
    run: str,
    policy: verdict.Policy,
    *,
    out: str | None = None,
    remove: str | None = None,
    dry_run: bool = False,
    workers: int = 0,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> dict[str, Any]:
    """Decide again from recorded matches and write the copies, without a scan; returns the summary.

    out: a new run folder; without it the run itself is changed. Raises BadRun when the run is not
    finished or an input has changed since.
    """
    source, target = pathlib.Path(run), pathlib.Path(out or run)
    asked = manifest.read(source)
    old = Settings(**asked["settings"])
    settings = dataclasses.replace(
        old, policy=policy.model_dump(), remove=remove or old.remove, dry_run=dry_run
    )
    check(settings)
    shards = {s.path: s for s in list_shards([s["path"] for s in asked["shards"]]).shards}
    tasks = []
    for entry in asked["shards"]:
        shard = dataclasses.replace(shards[entry["path"]], name=entry["name"])
        if manifest.finished(source, shard.name, shard.size_bytes) is None:
            raise BadRun(
                f"{source} is not finished: {shard.name} is missing", "run the scan again first"
            )
        index = asked["index"]
        tasks.append(Task(shard, str(target), index["path"], index["content"], settings))
    new = {**asked, "settings": settings.as_json()}
    if target == source:
        manifest.write_json(target / "run.json", new)
    else:
        manifest.start(target, {k: v for k, v in new.items() if k != "format"})
    run_tasks(functools.partial(apply_shard, str(source)), tasks, workers, on_progress)
    return summarize(target)


def apply_shard(source: str, task: Task) -> None:
    """New verdicts for one shard's recorded matches, and its copies."""
    shard, run = task.shard, pathlib.Path(task.run)
    record = manifest.finished(pathlib.Path(source), shard.name, shard.size_bytes)
    assert record is not None
    policy = verdict.Policy.model_validate(task.settings.policy)
    table, bad = recorded(pathlib.Path(source), shard.name)
    columns = {
        name: table[name].to_numpy() for name in ("score", "coverage", "evidence", "suite", "split")
    }
    decided = verdict.verdict_of(columns, policy)
    place = table.schema.get_field_index("verdict")
    table = table.set_column(place, table.schema.field(place), pa.array(decided, pa.string()))
    with matches_file(run / "matches" / f"{shard.name}.parquet") as write:
        write(table)
    if len(bad) != record["counts"]["bad"]:
        raise BadRun(
            f"{source}/bad/{shard.name}.jsonl lists {len(bad)} rows,"
            f" {record['counts']['bad']} were bad",
            "run the scan again in a new folder",
        )
    facts = FileFacts(**record["input"], rows=record["counts"]["rows"])
    carried = ("null_rows", "text_bytes", "crowded_segments", "hurried_chains")
    finish_shard(task, facts, bad, {name: record["counts"][name] for name in carried})
    engines.tick(shard.size_bytes, facts.rows, len(table), 0)


def recorded(run: pathlib.Path, shard: str) -> tuple[pa.Table, list[BadRow]]:
    """Matches and bad rows of a scanned shard. Raises BadRun when they cannot be read."""
    try:
        table = pq.read_table(run / "matches" / f"{shard}.parquet")
        return table, quarantined(run / "bad" / f"{shard}.jsonl")
    except (OSError, pa.ArrowException, ValueError, KeyError) as error:
        raise BadRun(
            f"what was recorded of {shard} in {run} cannot be read: {error}",
            "run the scan again in a new folder",
        ) from error


def quarantined(path: pathlib.Path) -> list[BadRow]:
    """The bad rows that a scan set aside."""
    if not path.exists():
        return []
    rows = [json.loads(line) for line in path.read_bytes().split(b"\n") if line]
    return [BadRow(r["row"], r["reason"], r.get("raw", "").encode()) for r in rows]


def summarize(run: pathlib.Path) -> dict[str, Any]:
    """Totals and a table per suite and split; written to summary.json."""
    asked = manifest.read(run)
    done = [
        manifest.read_json(
            manifest.done_path(run, s["name"]), f"{run} is not finished", "scan it first"
        )
        for s in asked["shards"]
    ]
    counts = manifest.add_up(done)
    if counts.get("rows", 0) != sum(counts.get(k, 0) for k in ("kept", "removed", "bad")):
        raise BadRun(f"{run}: rows in are not kept + removed + bad: {counts}", "please report this")
    summary = {
        "shards": len(done),
        "counts": counts,
        "settings": asked["settings"],
        "index": asked["index"],
        "suites": suite_table(run, [s["name"] for s in asked["shards"]]),
    }
    manifest.write_json(run / "summary.json", summary)
    return summary


def suite_table(run: pathlib.Path, shards: Sequence[str]) -> list[dict[str, Any]]:
    """For each suite and split with a match: documents and items removed, and matches by evidence."""
    out: dict[tuple[str, str], dict[str, Any]] = {}
    items: dict[tuple[str, str], set[str]] = {}
    for shard in shards:
        path = run / "matches" / f"{shard}.parquet"
        table = pq.read_table(path, columns=["row", "suite", "split", "item", "evidence", "verdict"])
        documents: dict[tuple[str, str], set[int]] = {}
        for row, suite, split, item, evidence, decided in zip(*table.to_pydict().values(), strict=True):
            key = (suite, split)
            entry = out.setdefault(
                key,
                {"suite": suite, "split": split, "documents": 0, "items": 0,
                 **{v: 0 for v in records.VERDICTS}, "evidence": dict.fromkeys(records.EVIDENCE, 0)},
            )  # fmt: skip
            entry[decided] += 1
            entry["evidence"][evidence] += 1
            if decided == "remove":
                documents.setdefault(key, set()).add(row)
                items.setdefault(key, set()).add(item)
        for key, found in documents.items():
            out[key]["documents"] += len(found)
    for key, found_items in items.items():
        out[key]["items"] = len(found_items)
    return sorted(out.values(), key=lambda e: (-e["documents"], e["suite"], e["split"]))
