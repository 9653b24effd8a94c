"""Run Unseen, AI2's decon and corpus-assay on the same pool and items, side by side.

In: a planted pool as `bench.generate` makes it (made on first use). The peers come from PyPI
(`decontaminate`, `corpus-assay`) and are installed once into an environment of their own, which
needs Python 3.12 or newer. Out: tables on the screen and, with `--json`, one JSON file with
every figure, versions, machine, date and commit.

Every run is a whole process, measured from outside: wall time, processor time, peak memory
(the largest sum of the proportional shares of all its processes, sampled, and the largest
single process). Nothing is subtracted silently: a run on a pool of eight short documents gives the
start time (for decon, which keeps no index, that includes building it); "gross" is text per second of
the whole run, "net" leaves the start time out, "per CPU s" counts processor time, which other work
on the machine disturbs less; it is known for one core alone. MB are 10^6 bytes of text in UTF-8.

    python -m bench.peers --data DIR --json docs/peers.json
    python -m bench.peers --tools unseen --part recall
    python -m bench.peers --explain DOC_ID        # one document of the agreement, with all scores
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import platform
import re
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Column, Table

from bench.generate import CLASSES, SHARDS, read_jsonl, write_jsonl

PEERS = {"decon": ("decontaminate", "0.3.0.post4"), "corpus-assay": ("corpus-assay", "0.1.0")}
LONG_QUESTION_WORDS = 8
SAMPLE_SECONDS = 0.1
LOW_THRESHOLD = 0.3  # at which decon is asked again, so that it reports what it does not flag
ALL_RECORDS = 10**7  # corpus-assay keeps 500 flagged documents a shard unless told otherwise

DECON_SCAN = """
import json, sys, decon
options = json.loads(sys.argv[1])
decon.detect(decon.Config(**options))
"""

# Facts of reference rows in decon's own tokens: what it indexes, and the score it asks for.
DECON_FACTS = """
import json, sys, decon
tokenizer = decon.Tokenizer("cl100k")
def tokens(text):
    text = decon.clean_text(text or "")
    return tokenizer.encode(" " + text) if text else []
for line in sys.stdin:
    row = json.loads(line)
    parts = [decon.clean_text(row.get(k) or "") for k in ("passage", "question", "answer")]
    whole = " ".join(p for p in parts if p)
    question, answer = tokens(row["question"]), tokens(row.get("answer"))
    passage = tokens(row.get("passage"))
    length = len(question) + len(set(answer)) + len(passage)
    print(json.dumps({
        "answer": (row.get("answer") or "")[:80],
        "indexed_tokens": sum(not tokenizer.is_space_token(t) for t in tokens(whole)),
        "indexed_words": len(set(whole.split())),
        "question_tokens": len(question),
        "question_ngrams": len({tuple(question[i:i+5]) for i in range(len(question) - 4)}),
        "answer_tokens": len(answer),
        "length": length,
        "needed": 1 - 0.2 * min(1, max(0, (length - 20) / 30)),
    }))
"""

WRITING = "unseen, writing"  # with the clean copy; the peers only report

Key = tuple[str, str, str]  # suite, split, item
Flagged = dict[str, set[Key]]  # document id -> the items named for it
console = Console(width=None if sys.stdout.isatty() else 150)


# --- measuring a process ----------------------------------------------------------------------


@dataclass(frozen=True)
class Usage:
    """What one run took, seen from outside."""

    wall: float  # seconds
    cpu: float  # seconds of user and system time, descendants included
    peak_mb: float  # largest sum of proportional set sizes over all processes
    largest_mb: float  # largest resident set of one process


def descendants(process: int) -> Iterator[int]:
    """A process and all its living descendants."""
    yield process
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        for child in task.read_text().split():
            yield from descendants(int(child))


def tree_memory(process: int) -> float:
    """Proportional set size of a process tree in MB; 0 where the system does not tell."""
    total = 0
    with contextlib.suppress(OSError):
        for each in descendants(process):
            with contextlib.suppress(OSError):  # ended in the meantime
                rollup = Path(f"/proc/{each}/smaps_rollup").read_text()
                total += int(re.findall(r"^Pss: +(\d+)", rollup, re.MULTILINE)[0])
    return total / 1e3


def watch_memory(process: int, done: threading.Event, peak: list[float]) -> None:
    while not done.wait(SAMPLE_SECONDS):
        peak[0] = max(peak[0], tree_memory(process))


def run(command: Sequence[str], log: Path, cores: int | None = None) -> Usage:
    """Run a command to its end, on the first `cores` cores; its output goes to `log`."""
    if cores is not None:
        command = ["taskset", "-c", f"0-{cores - 1}", *command]
    log.parent.mkdir(parents=True, exist_ok=True)
    environment = os.environ | {
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
        "HF_HOME": str(log.parent / "hf"),
    }
    done, peak = threading.Event(), [0.0]
    with log.open("wb") as out:
        start = time.perf_counter()
        process = subprocess.Popen(
            command, stdout=out, stderr=out, env=environment, start_new_session=True
        )
        watcher = threading.Thread(target=watch_memory, args=(process.pid, done, peak))
        watcher.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        finally:
            done.set()
        wall = time.perf_counter() - start
    watcher.join()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        tail = log.read_text(errors="replace")[-2_000:]
        raise SystemExit(f"{' '.join(command)}\nended with {process.returncode}:\n{tail}")
    largest = usage.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
    return Usage(wall, usage.ru_utime + usage.ru_stime, peak[0], largest)


# --- the tools --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """Where everything lies: the planted pool, and a working folder with the peers in it."""

    work: Path
    planted: Path

    @property
    def python(self) -> Path:
        return self.work / "venv" / "bin" / "python"

    def script(self, name: str) -> str:
        return str(self.python.parent / name)

    @property
    def log(self) -> Path:
        return self.work / "log.txt"

    def fresh(self, *names: str) -> Path:
        """An empty place for outputs: tools that resume must not find earlier results."""
        path = self.work.joinpath("out", *names)
        shutil.rmtree(path, ignore_errors=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


@dataclass(frozen=True)
class Tool:
    """How one tool is run and how its report is read."""

    name: str
    index: Callable[[Place], list[str]] | None  # None: the index is built in every scan
    scan: Callable[[Place, Path, Path, int], list[str]]  # (place, pool, out, workers)
    read: Callable[[Place, Path, Path], Flagged]  # (place, pool, out)


def unseen_command() -> list[str]:
    script = Path(sys.executable).with_name("unseen")
    if script.exists():
        return [str(script)]
    return [sys.executable, "-c", "from unseen.cli import main; main()"]


def unseen_index(place: Place) -> list[str]:
    out = place.fresh("unseen-index")
    return [*unseen_command(), "index", str(place.planted / "items.jsonl"), "-o", str(out)]


def unseen_scan(*options: str) -> Callable[[Place, Path, Path, int], list[str]]:
    def scan(place: Place, pool: Path, out: Path, workers: int) -> list[str]:
        index = place.work / "out" / "unseen-index"
        where = [str(pool), "--id-field", "id", "--index", str(index), "-o", str(out)]
        return [*unseen_command(), "scan", *where, "--workers", str(workers), *options]

    return scan


def unseen_matches(out: Path) -> Iterator[dict[str, Any]]:
    for path in sorted((out / "matches").rglob("*.parquet")):
        yield from pq.read_table(path).to_pylist()


def unseen_read(place: Place, pool: Path, out: Path) -> Flagged:
    flagged: Flagged = defaultdict(set)
    for row in unseen_matches(out):
        if row["verdict"] == "remove":
            flagged[row["doc_id"]].add((row["suite"], row["split"], row["item"]))
    return flagged


def decon_options(place: Place, pool: Path, out: Path, workers: int) -> dict[str, Any]:
    return {
        "training_dir": str(pool),
        "evals_dir": str(place.planted / "decon-refs"),
        "report_output_dir": str(out),
        "worker_threads": workers,
    }


def decon_scan(place: Place, pool: Path, out: Path, workers: int) -> list[str]:
    options = decon_options(place, pool, out, workers)
    return [str(place.python), "-c", DECON_SCAN, json.dumps(options)]


def decon_row_refs(place: Place) -> dict[str, Key]:
    """Write decon's references once more with every row an instance of its own, and return whose
    row it is: decon reports but one option of an instance, and not the best one."""
    owners: dict[str, Key] = {}
    folder = place.fresh("decon-rows")
    for path in sorted((place.planted / "decon-refs").glob("*.jsonl")):
        rows = list(read_jsonl(path))
        for row in rows:
            owners[str(row["doc_id"])] = decon_key(row)
            row["eval_instance_index"] = row["doc_id"]
        write_jsonl(folder / path.name, rows)
    return owners


def decon_scan_all(place: Place, pool: Path, out: Path, workers: int) -> list[str]:
    """Decon at a low threshold and without its length bar: the raw scores of all likely pairs."""
    options = decon_options(place, pool, out, workers) | {
        "evals_dir": str(place.work / "out" / "decon-rows"),
        "contamination_score_threshold": LOW_THRESHOLD,
        "perfect_match_decay_start": None,
        "perfect_match_decay_end": None,
    }
    return [str(place.python), "-c", DECON_SCAN, json.dumps(options)]


def decon_key(row: dict[str, Any]) -> Key:
    return row["eval_key"], row["split"], str(row["eval_instance_index"])


def decon_matches(pool: Path, out: Path) -> Iterator[tuple[str, Key, dict[str, Any]]]:
    """(document id, item, report row) of a decon report, which names lines, not documents."""
    for report in sorted(out.rglob("*.jsonl")):
        rows = list(read_jsonl(report))
        ids = [row["id"] for row in read_jsonl(pool / rows[0]["training_file"])]
        for row in rows:
            yield ids[row["training_line"]], decon_key(row), row


def decon_read(place: Place, pool: Path, out: Path) -> Flagged:
    flagged: Flagged = defaultdict(set)
    for doc_id, key, _ in decon_matches(pool, out):
        flagged[doc_id].add(key)
    return flagged


def assay_suites(place: Place) -> dict[str, list[Key]]:
    """The items of each suite and split in file order, which is how corpus-assay counts them."""
    suites: dict[str, list[Key]] = {}
    for row in read_jsonl(place.planted / "items.jsonl"):
        name = f"{row['suite']}_{row['split']}"
        suites.setdefault(name, []).append((row["suite"], row["split"], row["item"]))
    return suites


def assay_index(place: Place) -> list[str]:
    """Write corpus-assay's config (JSON is YAML) and its items: question and answers as one text,
    as its own registry does for GSM8K and MMLU."""
    folder = place.fresh("corpus-assay-index")
    rows: dict[str, list[dict[str, Any]]] = {}
    for row in read_jsonl(place.planted / "items.jsonl"):
        kept = {"question": row["question"], "answers": "\n".join(row["answers"])}
        rows.setdefault(f"{row['suite']}_{row['split']}", []).append(kept)
    for name, own in rows.items():
        write_jsonl(folder / f"{name}.jsonl", own)
    benchmarks = [
        {
            "name": name,
            "dataset": "json",
            "data_files": {"test": str((folder / f"{name}.jsonl").resolve())},
            "splits": ["test"],
            "fields": ["question", "answers"],
        }
        for name in rows
    ]
    config = folder / "config.yaml"
    config.write_text(json.dumps({"benchmarks": benchmarks}))
    out = ["--out-index", str(folder / "index.native"), "--allow-unpinned"]
    return [place.script("corpus-assay"), "build-index", "--config", str(config), *out]


def assay_scan(place: Place, pool: Path, out: Path, workers: int) -> list[str]:
    folder = place.work / "out" / "corpus-assay-index"
    return [
        *(place.script("corpus-assay"), "scan", "--config", str(folder / "config.yaml")),
        *("--index", str(folder / "index.native"), "--input", str(pool), "--id-key", "id"),
        *("--out-dir", str(out), "--workers", str(workers)),
        *("--max-return-records", str(ALL_RECORDS)),
    ]


def assay_read(place: Place, pool: Path, out: Path) -> Flagged:
    failed = json.loads((out / "_FINAL_SUMMARY.json").read_text())["failed_files"]
    if failed:
        raise SystemExit(f"corpus-assay could not read {failed} shards of {pool}")
    keys = [key for suite in assay_suites(place).values() for key in suite]
    flagged: Flagged = defaultdict(set)
    for path in sorted((out / "contaminated_docs").glob("*.ndjson")):
        for row in read_jsonl(path):
            doc_id = re.sub(r"-part-\d+$", "", row["doc_id"])
            flagged[doc_id] |= {keys[hit["item_id"]] for hit in row.get("item_hits") or ()}
    return flagged


TOOLS = {
    tool.name: tool
    for tool in (
        Tool("unseen", unseen_index, unseen_scan("--dry-run"), unseen_read),
        Tool(WRITING, unseen_index, unseen_scan(), unseen_read),
        Tool("decon", None, decon_scan, decon_read),
        Tool("corpus-assay", assay_index, assay_scan, assay_read),
    )
}


# --- the peers' environment -------------------------------------------------------------------


def find_python() -> str:
    """A Python of at least 3.12, from PATH or pyenv."""
    names = ["python3.13", "python3.12", "python3.14"]
    candidates = [path for name in names if (path := shutil.which(name))]
    pyenv = Path.home() / ".pyenv" / "versions"
    candidates += [str(p) for p in sorted(pyenv.glob("3.1[2-9]*/bin/python"))]
    for candidate in [*candidates, sys.executable]:
        check = [candidate, "-c", "import sys, venv; sys.exit(sys.version_info < (3, 12))"]
        if subprocess.run(check, capture_output=True, check=False).returncode == 0:
            return candidate
    raise SystemExit(
        "decontaminate and corpus-assay need Python 3.12 or newer: none found as python3.12, "
        "python3.13 or python3.14 on PATH, nor under ~/.pyenv/versions"
    )


def install_peers(place: Place) -> None:
    """Create the peers' environment once; the marker is written last."""
    marker = place.work / "venv" / "installed.json"
    wanted = [f"{name}=={version}" for name, version in PEERS.values()]
    if marker.exists() and json.loads(marker.read_text()) == wanted:
        return
    console.print(f"installing {', '.join(wanted)} into {place.work / 'venv'}")
    subprocess.run([find_python(), "-m", "venv", "--clear", place.work / "venv"], check=True)
    subprocess.run([place.python, "-m", "pip", "install", "--quiet", *wanted], check=True)
    marker.write_text(json.dumps(wanted))


# --- speed ------------------------------------------------------------------------------------


def pool_size(pool: Path) -> tuple[int, int]:
    """(documents, bytes of text) of a pool."""
    sizes = [len(row["text"].encode()) for path in pool.glob("*.jsonl") for row in read_jsonl(path)]
    return len(sizes), sum(sizes)


def tiny_pool(place: Place) -> Path:
    """A pool of one short document a shard, for the time a tool takes to start all its workers."""
    folder = place.work / "tiny"
    for number in range(SHARDS):
        row = {"id": f"tiny-{number}", "text": "An ordinary sentence. " * 9}
        write_jsonl(folder / f"shard-{number:02d}.jsonl", [row])
    return folder


@dataclass
class Speed:
    """Runs of one tool on one number of cores; figures are medians."""

    tool: str
    cores: int
    runs: list[Usage] = field(default_factory=list)
    starts: list[Usage] = field(default_factory=list)

    def figures(self, documents: int, size: int) -> dict[str, Any]:
        wall = statistics.median(run.wall for run in self.runs)
        start = statistics.median(run.wall for run in self.starts)
        # The system does not tell the processor time of processes that a server forked.
        told = self.cores == 1
        cpu = statistics.median(run.cpu for run in self.runs) if told else None
        start_cpu = statistics.median(run.cpu for run in self.starts) if told else None

        def rate(amount: float, seconds: float) -> float | None:
            return amount / seconds if seconds > 0 else None  # the start took longer: noise

        return {
            "tool": self.tool,
            "cores": self.cores,
            "wall_s": wall,
            "start_s": start,
            "cpu_s": cpu,
            "start_cpu_s": start_cpu,
            "peak_mb": statistics.median(run.peak_mb for run in self.runs),
            "largest_process_mb": statistics.median(run.largest_mb for run in self.runs),
            "mb_per_s_gross": size / 1e6 / wall,
            "mb_per_s_net": rate(size / 1e6, wall - start),
            "mb_per_cpu_s_net": rate(size / 1e6, (cpu or 0.0) - (start_cpu or 0.0)),
            "documents_per_s_net": rate(documents, wall - start),
            "starts": [asdict(start) for start in self.starts],
            "runs": [asdict(run) for run in self.runs],
        }


def build_indexes(place: Place, tools: Sequence[Tool]) -> dict[str, dict[str, float]]:
    """Build the index of each tool that keeps one; returns what it took, by tool."""
    commands = {tool.index for tool in tools if tool.index is not None}
    taken = {command: asdict(run(command(place), place.log)) for command in commands}
    return {tool.name: taken[tool.index] for tool in tools if tool.index is not None}


def measure_speed(place: Place, tools: Sequence[Tool], repeat: int) -> dict[str, Any]:
    """Time the tools in alternation, on one core and on all, on ordinary text."""
    pool, tiny = place.planted / "plain", tiny_pool(place)
    documents, size = pool_size(pool)
    every = os.cpu_count() or 1
    speeds = [Speed(tool.name, cores) for cores in sorted({1, every}) for tool in tools]
    first = {  # compiles and fills caches: kept out of the figures, but told
        tool.name: run(tool.scan(place, tiny, place.fresh("start"), 1), place.log).wall
        for tool in tools
    }
    for number in range(repeat):
        for speed in speeds if number % 2 == 0 else reversed(speeds):
            tool = TOOLS[speed.tool]
            for source, kept in ((tiny, speed.starts), (pool, speed.runs)):
                command = tool.scan(place, source, place.fresh("speed"), speed.cores)
                kept.append(run(command, place.log, speed.cores))
            console.print(
                f"[dim]{speed.tool}, {speed.cores} core(s): {speed.runs[-1].wall:.2f} s[/dim]"
            )
    figures = [speed.figures(documents, size) for speed in speeds]
    return {
        "documents": documents,
        "bytes": size,
        "repeat": repeat,
        "first_run_s": first,
        "figures": figures,
    }


def number(value: float | None, digits: int = 0) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"


def times(ours: float | None, theirs: float | None) -> str:
    return f"{ours / theirs:.1f} x" if ours and theirs else "-"


def show_speed(speed: dict[str, Any], index: dict[str, dict[str, float]]) -> None:
    size, documents = speed["bytes"] / 1e6, speed["documents"]
    title = f"ordinary text: {documents:,} documents, {size:.0f} MB; medians of {speed['repeat']}"
    table = Table(
        *("tool", "cores", "MB/s net", "MB/CPU s net", "MB/s gross", "docs/s net", "start s"),
        *("index s", "CPU s", "CPU/wall", "peak MB", "largest MB", "unseen is", "by CPU"),
        title=title,
    )
    base = {f["cores"]: f for f in speed["figures"] if f["tool"] == "unseen"}
    for row in speed["figures"]:
        own = base.get(row["cores"], {})
        built = index.get(row["tool"])
        table.add_row(
            row["tool"],
            str(row["cores"]),
            number(row["mb_per_s_net"], 2),
            number(row["mb_per_cpu_s_net"], 2),
            number(row["mb_per_s_gross"], 2),
            number(row["documents_per_s_net"]),
            number(row["start_s"], 2),
            number(built["wall"], 2) if built else "in start",
            number(row["cpu_s"], 2),
            number(row["cpu_s"] and row["cpu_s"] / row["wall_s"], 2),
            number(row["peak_mb"]),
            number(row["largest_process_mb"]),
            times(own.get("mb_per_s_net"), row["mb_per_s_net"]),
            times(own.get("mb_per_cpu_s_net"), row["mb_per_cpu_s_net"]),
        )
    console.print(table)


# --- recall and false alarms ------------------------------------------------------------------


def plain_question(text: str) -> str:
    """Letters and digits only, to tell whether two items ask the same question."""
    return "".join(c for c in text.casefold() if c.isalnum())


def flag_pool(place: Place, tool: Tool, pool: Path, cores: int) -> Flagged:
    out = place.fresh(f"flags-{tool.name}-{pool.name}".replace(", ", "-"))
    run(tool.scan(place, pool, out, cores), place.log)
    return tool.read(place, pool, out)


def recall_of(place: Place, flagged: Flagged) -> list[dict[str, Any]]:
    """For each class and suite: planted, and how many were found, by document and by item."""
    questions = {
        (row["suite"], row["split"], row["item"]): plain_question(row["question"])
        for row in read_jsonl(place.planted / "items.jsonl")
    }
    cells: dict[tuple[str, str], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row in read_jsonl(place.planted / "truth.jsonl"):
        named = {questions[key] for key in flagged.get(row["doc_id"], ()) if key in questions}
        document = row["doc_id"] in flagged
        item = questions[row["suite"], row["split"], row["item"]] in named
        lengths = ["all", "long"] if row["words"] >= LONG_QUESTION_WORDS else ["all"]
        for length in lengths:
            cell = cells[row["class"], row["suite"]]
            cell[f"{length}_planted"] += 1
            cell[f"{length}_documents"] += document
            cell[f"{length}_items"] += item
    return [{"class": form, "suite": suite, **cell} for (form, suite), cell in cells.items()]


def false_alarms(place: Place, by_pool: dict[str, Flagged]) -> list[str]:
    """Ordinary documents that were flagged, each once, in either pool."""
    planted = {row["doc_id"] for row in read_jsonl(place.planted / "truth.jsonl")}
    found = {doc_id for flagged in by_pool.values() for doc_id in flagged} - planted
    return sorted({re.sub(r"~\d+$", "", doc_id) for doc_id in found})


def ordinary_documents(place: Place) -> int:
    """How many different ordinary documents the two pools hold."""
    planted = {row["doc_id"] for row in read_jsonl(place.planted / "truth.jsonl")}
    ids = {
        re.sub(r"~\d+$", "", row["id"])
        for name in ("pool", "plain")
        for path in (place.planted / name).glob("*.jsonl")
        for row in read_jsonl(path)
    }
    return len(ids - planted)


def measure_recall(place: Place, tools: Sequence[Tool]) -> dict[str, Any]:
    result: dict[str, Any] = {"ordinary_documents": ordinary_documents(place), "tools": {}}
    for tool in tools:
        by_pool = {
            name: flag_pool(place, tool, place.planted / name, os.cpu_count() or 1)
            for name in ("pool", "plain")
        }
        result["tools"][tool.name] = {
            "recall": recall_of(place, by_pool["pool"]),
            "false_alarms": false_alarms(place, by_pool),
        }
    return result


def share(cells: Iterable[dict[str, int]], found: str, planted: str) -> str:
    cells = list(cells)
    total = sum(cell.get(planted, 0) for cell in cells)
    return f"{sum(cell.get(found, 0) for cell in cells) / total:.2f}" if total else "-"


def show_recall(result: dict[str, Any]) -> None:
    """One table over all suites, one by suite, and the false alarms."""
    tools = result["tools"]
    measures = ("documents", "items")
    lengths = ("all", ">= 8")
    heads = [f"{name}\n{what}\n{length}" for name in tools for what in measures for length in lengths]
    overall = Table(
        Column("class", no_wrap=True),
        *heads,
        title="recall, all suites (>= 8: questions of 8 words up)",
    )
    suites = sorted({cell["suite"] for tool in tools.values() for cell in tool["recall"]})
    by_suite = Table(
        Column("class", no_wrap=True), *suites, title=f"recall by suite, documents: {' / '.join(tools)}"
    )
    for form in CLASSES:
        row, own = [], []
        for tool in tools.values():
            cells = [cell for cell in tool["recall"] if cell["class"] == form]
            own.append(cells)
            for what in measures:
                row.append(share(cells, f"all_{what}", "all_planted"))
                row.append(share(cells, f"long_{what}", "long_planted"))
        overall.add_row(form, *row)
        cells_of = [
            [
                share([c for c in cells if c["suite"] == suite], "all_documents", "all_planted")
                for cells in own
            ]
            for suite in suites
        ]
        by_suite.add_row(form, *("-" if set(c) == {"-"} else " / ".join(c) for c in cells_of))
    console.print(overall)
    console.print(by_suite)
    for name, tool in tools.items():
        alarms = tool["false_alarms"]
        console.print(
            f"{name}: {len(alarms)} of {result['ordinary_documents']:,} ordinary documents flagged"
        )


# --- agreement with the published rule --------------------------------------------------------


def decon_facts(place: Place, keys: set[Key]) -> dict[Key, list[dict[str, Any]]]:
    """Per item, what decon's tokens say of each of its reference rows."""
    rows, owners = [], []
    for path in sorted((place.planted / "decon-refs").glob("*.jsonl")):
        for row in read_jsonl(path):
            key = decon_key(row)
            if key in keys:
                rows.append(json.dumps(row))
                owners.append(key)
    command = [str(place.python), "-c", DECON_FACTS]
    done = subprocess.run(command, input="\n".join(rows), text=True, capture_output=True, check=True)
    facts: dict[Key, list[dict[str, Any]]] = defaultdict(list)
    for key, line in zip(owners, done.stdout.splitlines(), strict=True):
        facts[key].append(json.loads(line))
    return facts


def best_scores(rows: Iterable[tuple[str, Key, dict[str, Any]]], score: str) -> dict[str, Any]:
    """The best row of each (document, item), by document."""
    best: dict[str, dict[Key, dict[str, Any]]] = defaultdict(dict)
    for doc_id, key, row in rows:
        held = best[doc_id].get(key)
        if held is None or row[score] > held[score]:
            best[doc_id][key] = row
    return best


def published_pair(place: Place) -> tuple[dict[str, Any], dict[str, Any], Flagged, Flagged]:
    """Scores and flags of decon and of `unseen scan --preset published` on the planted pool."""
    pool, cores = place.planted / "pool", os.cpu_count() or 1
    outs = {name: place.fresh("agreement", name) for name in ("decon", "decon-all", "unseen")}
    run(decon_scan(place, pool, outs["decon"], cores), place.log)
    owners = decon_row_refs(place)
    run(decon_scan_all(place, pool, outs["decon-all"], cores), place.log)
    published = unseen_scan("--preset", "published", "--dry-run")
    run(published(place, pool, outs["unseen"], cores), place.log)
    # Of two clusters that start at one place decon reports the first over its threshold, so the
    # plain run can hold a better score than the run at the low threshold: the best of both.
    raw = (
        (doc_id, owners[row_number], row)
        for doc_id, (_, _, row_number), row in decon_matches(pool, outs["decon-all"])
    )
    reported = [*decon_matches(pool, outs["decon"]), *raw]
    theirs = best_scores(reported, "contamination_score")
    rows = (
        (row["doc_id"], (row["suite"], row["split"], row["item"]), row)
        for row in unseen_matches(outs["unseen"])
    )
    ours = best_scores(rows, "score")
    flags = decon_read(place, pool, outs["decon"]), unseen_read(place, pool, outs["unseen"])
    return theirs, ours, *flags


def guess_reason(
    side: str,
    theirs: dict[str, Any] | None,
    ours: dict[str, Any] | None,
    facts: list[dict[str, Any]],
) -> str:
    """A first guess at why the two differ on one item of one document; to be checked by reading."""
    if side == "unseen only":
        if all(fact["indexed_tokens"] < 20 for fact in facts):
            return "decon does not index it: under 20 of its tokens"
        if all(fact["indexed_words"] < 4 for fact in facts):
            return "decon does not index it: under 4 words between spaces"
        if re.search("[\uff01-\uff5e]{3}", (ours or {}).get("quote") or ""):
            return "full-width letters are other tokens for decon"
        if theirs is None:
            return "decon sees next to nothing: sampling, other tokens at the edges, no answer behind"
        needed = min(fact["needed"] for fact in facts)
        score = theirs["contamination_score"]
        if theirs.get("answer_idf_overlap", 1.0) < (ours or {}).get("answer_overlap", 0.0):
            return f"answer: decon looks behind the question only ({score:.3f} of {needed:.3f})"
        return f"score: decon {score:.3f}, needs {needed:.3f} at {facts[0]['length']} tokens"
    if ours is None:
        return "unseen records no match of this item"
    parts = ("question", "answer", "passage")
    their, our = report_scores(theirs, DECON_SCORES), report_scores(ours, UNSEEN_SCORES)
    gaps = {part: (their or {}).get(part, 0.0) - (our or {}).get(part, 0.0) for part in parts}
    part = max(gaps, key=lambda name: gaps[name])
    return f"score: unseen {ours['score']:.3f}, decon sees {gaps[part]:.2f} more of the {part}"


def disagreements(place: Place) -> dict[str, Any]:
    """Documents that only one side flags, with both scores for each item and a reason to check."""
    theirs, ours, decon_flags, unseen_flags = published_pair(place)
    sides = {
        "decon only": (decon_flags, set(decon_flags) - set(unseen_flags)),
        "unseen only": (unseen_flags, set(unseen_flags) - set(decon_flags)),
    }
    facts = decon_facts(
        place, {key for flags, docs in sides.values() for d in docs for key in flags[d]}
    )
    rows = []
    for side, (flags, documents) in sides.items():
        for doc_id in sorted(documents):
            for key in sorted(flags[doc_id]):
                their, our = theirs[doc_id].get(key), ours[doc_id].get(key)
                rows.append(
                    {
                        "side": side,
                        "doc_id": doc_id,
                        "item": "/".join(key),
                        "decon": report_scores(their, DECON_SCORES),
                        "unseen": report_scores(our, UNSEEN_SCORES),
                        "facts": facts.get(key, []),
                        "reason": guess_reason(side, their, our, facts.get(key, [])),
                    }
                )
    both = set(decon_flags) & set(unseen_flags)
    return {
        "decon_flags": len(decon_flags),
        "unseen_flags": len(unseen_flags),
        "both": len(both),
        "unseen_of_decon": len(both) / max(1, len(decon_flags)),
        "decon_of_unseen": len(both) / max(1, len(unseen_flags)),
        "disagreements": rows,
    }


DECON_SCORES = {
    "contamination_score": "score",
    "idf_overlap": "question",
    "answer_idf_overlap": "answer",
    "passage_idf_overlap": "passage",
    "training_overlap_text": "text",
}
UNSEEN_SCORES = {
    "score": "score",
    "question_overlap": "question",
    "answer_overlap": "answer",
    "passage_overlap": "passage",
    "coverage": "coverage",
    "evidence": "evidence",
    "verdict": "verdict",
    "quote": "text",
}


def report_scores(row: dict[str, Any] | None, names: dict[str, str]) -> dict[str, Any] | None:
    return row and {new: row[old] for old, new in names.items() if row.get(old) is not None}


def show_agreement(result: dict[str, Any], limit: int = 40) -> None:
    console.print(
        f"published rule: decon flags {result['decon_flags']} documents, unseen "
        f"{result['unseen_flags']}, both {result['both']}: unseen has "
        f"{result['unseen_of_decon']:.1%} of decon's, decon {result['decon_of_unseen']:.1%} of ours"
    )
    rows = result["disagreements"]
    reasons: dict[tuple[str, str], set[str]] = defaultdict(set)
    for row in rows:
        reasons[row["side"], re.sub(r"[\d.]+", "#", row["reason"])].add(row["doc_id"])
    table = Table("side", "documents", "reason (a guess, to be checked)")
    for (side, reason), documents in sorted(reasons.items(), key=lambda r: -len(r[1])):
        table.add_row(side, str(len(documents)), reason)
    console.print(table)
    table = Table("side", "document", "item", "decon", "unseen", "reason")
    for row in rows[:limit]:
        scores = [f"{side['score']:.3f}" if side else "-" for side in (row["decon"], row["unseen"])]
        table.add_row(row["side"], row["doc_id"], row["item"], *scores, row["reason"])
    console.print(table)
    if len(rows) > limit:
        console.print(f"{len(rows) - limit} more in the JSON; --explain DOC_ID prints one in full")


def explain(result: dict[str, Any], doc_id: str) -> None:
    """Print everything known about the disagreements on one document."""
    rows = [row for row in result["disagreements"] if row["doc_id"] == doc_id]
    if not rows:
        raise SystemExit(f"no disagreement on {doc_id!r} in the last agreement run")
    for row in rows:
        console.rule(f"{row['side']}: {row['doc_id']}, {row['item']}")
        console.print(row["reason"], markup=False)
        for name in ("decon", "unseen", "facts"):
            console.print(f"{name}:", row[name], markup=False)


# --- the command ------------------------------------------------------------------------------


def machine() -> dict[str, Any]:
    cpu = platform.processor()
    with contextlib.suppress(OSError, IndexError):
        cpu = re.findall(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())[0]
    load = os.getloadavg()[0]
    if load > 0.5:
        console.print(f"[yellow]other work is running (load {load:.1f}): the times will suffer")
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "load_before": load,
    }


def versions() -> dict[str, str]:
    found = {name: f"{package} {version}" for name, (package, version) in PEERS.items()}
    done = subprocess.run([*unseen_command(), "--version"], capture_output=True, text=True, check=False)
    return found | {"unseen": done.stdout.strip() or "?", "python": platform.python_version()}


def commit() -> str | None:
    """The commit of this working tree, with "+" when files differ from it."""

    def git(*words: str) -> str:
        command = ["git", "-C", str(Path(__file__).parent), *words]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()

    head = git("rev-parse", "HEAD")
    return head and head + ("+" if git("status", "--porcelain") else "")


def prepare(place: Place, arguments: argparse.Namespace) -> dict[str, Any]:
    """Make the planted pool unless it is there with the same settings."""
    names = ("seed", "mb", "per_class", "per_suite")
    wanted = {name: getattr(arguments, name) for name in names}
    marker = place.planted / "settings.json"
    settings = wanted | {"data": str(arguments.data) if arguments.data else None}
    if not marker.exists() or json.loads(marker.read_text()) != settings:
        console.print(f"making the planted pool in {place.planted}")
        options = [f"--{name.replace('_', '-')}={value}" for name, value in wanted.items()]
        options += [f"--data={arguments.data}"] if arguments.data else []
        command = [sys.executable, "-m", "bench.generate", f"--out={place.planted}", *options]
        # A process of its own: a child's peak memory starts at that of its parent.
        subprocess.run(command, check=True, cwd=Path(__file__).parents[1])
        marker.write_text(json.dumps(settings))
    summary: dict[str, Any] = json.loads((place.planted / "generate.json").read_text())
    return summary


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.peers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--work", type=Path, default=Path("build/peers"), help="working folder, kept between runs")
    add("--data", type=Path, help="folder with clean.jsonl.gz and items.jsonl.gz")
    add("--json", type=Path, help="write every figure to this file")
    add("--repeat", type=int, default=3, help="timed runs per tool and number of cores")
    add("--seed", type=int, default=0)
    add("--mb", type=float, default=64, help="size of the pool of ordinary text")
    add("--per-class", type=int, default=150, help="planted items per class and suite")
    add("--per-suite", type=int, default=2000, help="items of each suite in the index; 0: all")
    add("--tools", nargs="+", choices=TOOLS, default=list(TOOLS))
    add(
        "--part",
        nargs="+",
        choices=["speed", "recall", "agreement"],
        default=["speed", "recall", "agreement"],
    )
    add("--explain", metavar="DOC_ID", help="one document of the last agreement run, in full")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse(arguments)
    options.data = options.data and options.data.resolve()
    place = Place(options.work.resolve(), options.work.resolve() / "planted")
    saved = place.work / "agreement.json"
    if options.explain:
        explain(json.loads(saved.read_text()), options.explain)
        return
    install_peers(place)
    result: dict[str, Any] = {
        "date": datetime.date.today().isoformat(),
        "commit": commit(),
        "versions": versions(),
        "machine": machine(),
        "pool": prepare(place, options),
    }
    tools = [TOOLS[name] for name in options.tools]
    result["index"] = build_indexes(place, tools)
    if "speed" in options.part:
        result["speed"] = measure_speed(place, tools, options.repeat)
        show_speed(result["speed"], result["index"])
    if "recall" in options.part:
        compared = [tool for tool in tools if tool.name != WRITING]
        result["recall"] = measure_recall(place, compared)
        show_recall(result["recall"])
    if "agreement" in options.part and {"unseen", "decon"} <= set(options.tools):
        result["agreement"] = disagreements(place)
        saved.write_text(json.dumps(result["agreement"], ensure_ascii=False, indent=1))
        show_agreement(result["agreement"])
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(result, ensure_ascii=False, indent=1) + "\n")


if __name__ == "__main__":
    main()
