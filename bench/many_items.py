"""Six million items: seconds and memory to make, read, build and save an index, and how fast it scans.

In: nothing, or with --pool JSONL files of ordinary text to scan. Out: a table, or with --json a file.

    python -m bench.many_items [--items 6000000] [--pool FILES...] [--work DIR] [--json OUT]

The items are recombined, by a seed, from a vocabulary of common English words and made-up ones with
Zipf frequencies, and from phrases of it that recur: 200 suites, questions of 10 to 80 words, up to 5
answers, a few passages, some questions asked by several suites, a third of the suites with a template.
Each step runs in a process of its own, so that its peak (of resident memory) is its own. The same text
is scanned with an index of 10,000 of the items and with that of all; one core, the best of 3 runs.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from unseen import pipeline, records, refs
from unseen.files import list_shards
from unseen.pool import Batch, TextField, read_batches
from unseen.scan import Index, Scanner

SUITES = 200
SMALL = 10_000  # items of the small index
POOL_BYTES = 48_000_000  # text that is scanned without --pool
PHRASES = 0.0015  # share of recurring phrases in the made-up pool: as many n-grams met as in real text
LEAKS = 1000  # one item is pasted into the made-up pool for so many documents
COMMON = """
the of and to in a is that for it was on are as with his they at be this have from or one had by not but
what all were we when your can said there use an each which she do how their if will up other about out
many then them these so some her would make like him into time has look two more write go see number no
way could people my than first water been call who oil its now find long down day did get come made may
part following statement correct answer question true false if according passage best describes between
because after before where why year world new most
"""
SYLLABLES = [a + b for a in (*"bdfgklmnprstv", "st", "tr", "pl") for b in (*"aeiou", "ar", "en")]

Ints = npt.NDArray[np.int64]


class Pieces:
    """Words and recurring phrases with Zipf frequencies; the same for every run."""

    def __init__(self) -> None:
        rng = np.random.default_rng(1)
        syllables = np.array(SYLLABLES, object)
        made = {
            "".join(syllables[rng.integers(0, len(syllables), k)])
            for k in rng.choice([1, 2, 3, 4], 150_000, p=[0.02, 0.38, 0.4, 0.2]).tolist()
        }
        rare = rng.permutation(sorted(made - set(COMMON.split())))
        words = np.array([*dict.fromkeys(COMMON.split()), *rare], object)
        weight = 1 / (np.arange(len(words)) + 2.7) ** 1.05
        lengths = rng.integers(3, 8, 30_000)
        drawn = rng.choice(len(words), int(lengths.sum()), p=weight / weight.sum())
        ends = np.cumsum(lengths)
        phrases = [" ".join(words[drawn[e - n : e]]) for e, n in zip(ends, lengths, strict=True)]
        often = 1 / (np.arange(len(phrases)) + 20.0)
        self.texts = pa.array([*words, *phrases], pa.string())
        self.weight, self.often = weight / weight.sum(), often / often.sum()

    def texts_of(self, rng: np.random.Generator, sizes: Ints, phrases: float = 0.08) -> pa.Array:
        """Texts of so many pieces each (large_string), this share of them phrases."""
        ladder = np.cumsum(np.concatenate([(1 - phrases) * self.weight, phrases * self.often]))
        drawn = np.searchsorted(ladder, rng.random(int(sizes.sum()))).clip(0, len(self.texts) - 1)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
        lists = pa.ListArray.from_arrays(pa.array(offsets), self.texts.take(pa.array(drawn)))
        return pc.binary_join(lists, " ").cast(pa.large_string())


def lengths(rng: np.random.Generator, count: int, middle: float, low: int, high: int) -> Ints:
    """Log-normal lengths around `middle`, within low..high."""
    return np.clip(np.exp(rng.normal(np.log(middle), 0.55, count)), low, high).astype(np.int64)


def suite_items(pieces: Pieces, number: int, count: int) -> pa.Table:
    """One suite of `count` items, from the seed `number`."""
    rng = np.random.default_rng([2, number])
    questions = pieces.texts_of(rng, lengths(rng, count, 18, 8, 60))
    if number % 3 == 0:
        template = pieces.texts_of(rng, np.array([9]))[0]
        questions = pc.binary_join_element_wise(template, questions, pa.scalar(" ", pa.large_string()))
    shared = pieces.texts_of(np.random.default_rng(3), np.full(5000, 25))
    taken = pa.array(rng.integers(0, len(shared), count))
    questions = pc.if_else(pa.array(rng.random(count) < 0.03), shared.take(taken), questions)
    answers = rng.integers(0, 6, count)
    offsets = pa.array(np.concatenate([[0], np.cumsum(answers)]).astype(np.int32))
    options = pieces.texts_of(rng, lengths(rng, int(answers.sum()), 4, 1, 40))
    marks = pa.array(rng.random(len(options)) < 0.3)
    passages = pieces.texts_of(rng, lengths(rng, max(count // 300, 1), 120, 40, 400))
    of_item = pa.array(rng.integers(0, len(passages), count), mask=rng.random(count) < 0.98)
    columns = [
        pa.array([f"suite{number:03d}"] * count),
        pa.array(["test" if number % 2 else "train"] * count),
        pc.cast(pa.array(np.arange(count)), pa.string()),
        pa.array([None if number % 4 else "en"] * count, pa.string()),
        questions,
        pa.ListArray.from_arrays(offsets, options),
        pa.ListArray.from_arrays(offsets, marks),
        passages.take(of_item),
    ]
    return pa.Table.from_arrays(columns, schema=records.item_schema())


def make_items(work: pathlib.Path, count: int) -> dict[str, Any]:
    """Write the reference set and the small one as folders of Parquet files."""
    pieces = Pieces()
    suites = []
    sizes = np.diff(np.linspace(0, count, SUITES + 1).astype(int)).tolist()
    for number, size in enumerate(sizes):
        table = suite_items(pieces, number, size)
        suite, split = table["suite"][0].as_py(), table["split"][0].as_py()
        file = f"items/{suite}/{split}.parquet"
        for folder, part in (("REFS", table), ("SMALL", table.slice(0, max(SMALL // SUITES, 1)))):
            (work / folder / file).parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(part, work / folder / file)
        suites.append({"suite": suite, "split": split, "file": file, "items": size})
    refs_json = {"format": 1, "suites": suites, "missing": []}
    (work / "REFS" / "refs.json").write_text(json.dumps(refs_json, indent=1) + "\n")
    return {"items": count}


def make_pool(work: pathlib.Path) -> dict[str, Any]:
    """Ordinary documents of the same vocabulary, a few of them with an item."""
    pieces, rng = Pieces(), np.random.default_rng(4)
    questions = pq.read_table(next((work / "SMALL").rglob("*.parquet")))["question"].to_pylist()
    size = 0
    with open(work / "pool.jsonl", "w") as out:
        for number in range(1 << 30):
            texts = pieces.texts_of(rng, lengths(rng, 1000, 300, 20, 5000), PHRASES)
            for k, text in enumerate(texts.to_pylist()):
                if k % LEAKS == 0:
                    text = f"{text}\n{questions[number % len(questions)]}\n{text}"
                size += out.write(json.dumps({"text": text}) + "\n")
            if size > POOL_BYTES:
                return {"bytes": size}
    return {}


def build(work: pathlib.Path, refs_name: str, index_name: str) -> dict[str, Any]:
    """Read, build and save one index; seconds of each."""
    start = time.perf_counter()
    items = [refs.read_items([str(work / refs_name / "items")])]  # popped: the build may free it
    read = time.perf_counter()
    index = Index.build(items.pop())
    built = time.perf_counter()
    index.save(work / index_name, overwrite=True)
    saved = time.perf_counter()
    return {
        "read": read - start, "build": built - read, "save": saved - built,
        "bytes": sum(f.stat().st_size for f in (work / index_name).iterdir()),
        **index.header["counts"],
    }  # fmt: skip


def scan(work: pathlib.Path, pool: list[str]) -> dict[str, Any]:
    """MB of text per second and core, with the small and the large index: of the scan as a whole, which
    reads the files too, and of the detector alone."""
    shards = list_shards(pool).shards

    def batches() -> Iterator[Batch]:
        return (b for s in shards for b in read_batches(s, text_field=TextField.parse("text")))

    kept = list(batches())
    size = sum(int(b.offsets[-1]) for b in kept)
    out: dict[str, Any] = {"pool_bytes": size}
    for name in ("small", "large"):
        index = Index.open(work / f"{name.upper()}-INDEX")
        pipeline.warm_up(index)
        scanner = Scanner(index)
        rows = seconds_of(scanner, kept)[1]
        whole = min(seconds_of(scanner, batches())[0] for _ in range(3))
        scanner.counters[:] = 0
        seconds = seconds_of(scanner, kept)[0]
        counters = scanner.counters.tolist()
        seconds = min(seconds, *(seconds_of(scanner, kept)[0] for _ in range(2)))
        out[name] = {"whole": size / 1e6 / whole, "detector": size / 1e6 / seconds, "rows": rows}
        out[name]["counters"] = counters
    for part in ("whole", "detector"):
        out[f"ratio_{part}"] = out["large"][part] / out["small"][part]
    return out


def seconds_of(scanner: Scanner, batches: Iterable[Batch]) -> tuple[float, int]:
    """CPU seconds to find all matches in batches, and how many there are."""
    start = time.process_time()
    rows = sum(len(scanner.find(b.data, b.offsets)[0]) for b in batches)
    return time.process_time() - start, rows


STEPS = {
    "items": lambda work, asked: make_items(work, asked.items),
    "pool": lambda work, asked: make_pool(work),
    "small": lambda work, asked: build(work, "SMALL", "SMALL-INDEX"),
    "large": lambda work, asked: build(work, "REFS", "LARGE-INDEX"),
    "scan": lambda work, asked: scan(work, asked.pool or [str(work / "pool.jsonl")]),
}


def run_steps(work: pathlib.Path, asked: argparse.Namespace) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each step in its own process; its numbers, seconds and peak of resident memory."""
    for step in STEPS:
        command = [sys.executable, "-m", "bench.many_items", "--step", step, "--work", str(work)]
        command += ["--items", str(asked.items), *(["--pool", *asked.pool] if asked.pool else [])]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        yield step, json.loads(done.stdout.splitlines()[-1])


def one_step(asked: argparse.Namespace) -> None:
    start = time.perf_counter()
    found = STEPS[asked.step](pathlib.Path(asked.work), asked)
    found["seconds"] = time.perf_counter() - start
    found["peak_gib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps(found))


def show(result: dict[str, Any]) -> None:
    table = Table("step", "seconds", "peak GiB", "", box=None)
    for step, found in result.items():
        rest = {k: v for k, v in found.items() if k not in ("seconds", "peak_gib", "counters")}
        text = ", ".join(
            f"{k} {v:,.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in rest.items()
        )
        table.add_row(step, f"{found['seconds']:,.1f}", f"{found['peak_gib']:.2f}", text)
    Console(width=160).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--items", type=int, default=6_000_000)
    parser.add_argument("--pool", nargs="+", help="JSONL files of ordinary text; default: made up")
    parser.add_argument("--work", help="keeps items and indexes here; default: a temporary folder")
    parser.add_argument("--json", dest="out")
    parser.add_argument("--step", choices=list(STEPS), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.step:
        one_step(asked)
        return
    work = pathlib.Path(asked.work or tempfile.mkdtemp(prefix="many-items-"))
    try:
        result = dict(run_steps(work, asked))
    finally:
        if not asked.work:
            shutil.rmtree(work)
    show(result)
    if asked.out:
        pathlib.Path(asked.out).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
