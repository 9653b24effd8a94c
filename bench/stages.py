"""Where the time of a scan goes: MB of text per second and core, stage by stage.

In: a pool and an index. Out: a table, or with --json a file: for each stage the MB/s it would reach
alone, and the nanoseconds a byte it adds. One process, one core, the best of --repeat runs.

    python -m bench.stages POOL... --index INDEX/ [--json OUT]

read: bytes of the files, decompressed, cut into lines. parse: texts out of the lines, as the kernels
need them. tokens, hits, seeds: the kernels of these names, on the batches as one long text. chains:
chaining, alignment and rows, as the rest of the whole kernel. table: rows to an Arrow table. write:
the second pass, which copies what is kept. The baseline is read + parse with simdjson alone, the
fastest parser that was found (docs/log.md).
"""

from __future__ import annotations

import argparse
import functools
import json
import pathlib
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import simdjson
from rich.console import Console
from rich.table import Table

from unseen import kernels, pipeline, tokens, verdict
from unseen.files import line_blocks, list_shards, open_bytes
from unseen.pool import Batch, TextField, read_batches
from unseen.scan import Index, Scanner, find_matches, to_table
from unseen.write import split_shard


def best(work: Callable[[], Any], repeat: int) -> float:
    """CPU seconds of the fastest of `repeat` runs: what else the machine does counts less."""
    seconds = []
    for _ in range(repeat):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return min(seconds)


def read_lines(shards: list[Any]) -> int:
    """Bytes of all whole lines."""
    total = 0
    for shard in shards:
        with open_bytes(shard) as reader:
            total += sum(len(block) for block in line_blocks(reader))
    return total


def parse_bare(shards: list[Any], field: str) -> None:
    """The least that any scan has to do: read every line, parse it with simdjson, get its text."""
    parser = simdjson.Parser()
    for shard in shards:
        with open(shard.path, "rb", buffering=1 << 20) as file:
            for line in file:
                parser.parse(line)[field]


def batches_of(shards: list[Any], field: str) -> list[Batch]:
    return [b for s in shards for b in read_batches(s, text_field=TextField.parse(field))]


def kernel_stages(index: Index, batches: list[Batch], repeat: int) -> dict[str, float]:
    """Seconds of each kernel, on each batch as one long text."""
    scratch, table = kernels.make_scratch(), tokens.codepoints()
    segment, hits, counters = scratch.segment, scratch.hits, np.zeros(kernels.COUNTERS, np.int64)
    grams, seeds_of = index.arrays.grams, index.arrays.questions.seeds

    def run(level: int) -> None:
        for batch in batches:
            data, position, end = tokens.frozen(batch.data), 0, int(batch.offsets[-1])
            while position < end:
                count, position = kernels.tokenize(data, position, end, table, segment)
                if level == 0:
                    continue
                made = kernels.hash_grams(segment.token, count, kernels.N, segment.gram)
                if level == 1:
                    continue
                found = kernels.find_hits(grams, segment.gram, made, 1, 0, hits)
                if level > 2:
                    kernels.expand_hits(grams, seeds_of, hits, found, counters)

    levels = [best(functools.partial(run, level), repeat) for level in range(4)]
    names = ("tokens", "n-grams", "hits", "seeds")
    return dict(zip(names, np.diff([0.0, *levels]).tolist(), strict=True))


def measure(pool: list[str], index_path: str, field: str, repeat: int) -> dict[str, Any]:
    """Seconds of every stage, and the bytes they are for."""
    shards, index = list_shards(pool).shards, Index.open(index_path)
    pipeline.warm_up(index)
    batches = batches_of(shards, field)
    scanner, policy = Scanner(index), verdict.PRESETS["default"]
    stages = {"read": best(lambda: read_lines(shards), repeat)}
    stages["parse"] = best(lambda: batches_of(shards, field), repeat) - stages["read"]
    stages |= kernel_stages(index, batches, repeat)
    whole = best(lambda: [scanner.find(b.data, b.offsets) for b in batches], repeat)
    before = sum(stages[name] for name in ("tokens", "n-grams", "hits", "seeds"))
    stages["chains"] = max(whole - before, 0.0)
    tables = best(
        lambda: to_table(index, [find_matches(scanner, b.data, b.offsets) for b in batches], policy),
        repeat,
    )
    stages["table"] = max(tables - whole, 0.0)
    with tempfile.TemporaryDirectory() as folder:
        stages["write"] = best(lambda: write_copies(shards, pathlib.Path(folder)), repeat)
    plain = [s for s in shards if s.compression is None and s.format == "jsonl"]
    bare = best(lambda: parse_bare(plain, field), repeat) if len(plain) == len(shards) else None
    text_bytes = sum(int(b.offsets[-1]) for b in batches)
    rows = sum(b.n_rows for b in batches)
    return {"text_bytes": text_bytes, "documents": rows, "seconds": stages, "bare_parse": bare}


def write_copies(shards: list[Any], folder: pathlib.Path) -> None:
    """The second pass with the first row of each shard removed, so that nothing is a plain copy."""
    for shard in shards:
        split_shard(
            shard,
            removed=np.zeros(1, np.int64),
            bad=[],
            edits=None,
            text_keys=None,
            clean_path=str(folder / "clean" / shard.name),
            removed_path=str(folder / "removed" / shard.name),
            bad_path=str(folder / "bad" / shard.name),
            expected=None,
        )


def show(result: dict[str, Any]) -> None:
    size, stages = result["text_bytes"], result["seconds"]
    total = sum(stages.values())
    table = Table("stage", "MB/s", "ns a byte", "share", box=None)
    for name, seconds in [*stages.items(), ("all", total)]:
        rate = f"{size / 1e6 / seconds:,.0f}" if seconds > 0 else "-"
        table.add_row(name, rate, f"{seconds * 1e9 / size:.2f}", f"{seconds / total:.0%}")
    console = Console()
    console.print(table)
    console.print(f"{size / 1e6:,.1f} MB of text, {result['documents']:,} documents, one core")
    if result["bare_parse"]:
        bare = result["bare_parse"]
        console.print(
            f"bare simdjson parse {size / 1e6 / bare:,.0f} MB/s;"
            f" the whole scan takes {total / bare:.2f} times as long"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pool", nargs="+")
    parser.add_argument("--index", required=True)
    parser.add_argument("--text-field", default="text")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--json", dest="out")
    asked = parser.parse_args()
    result = measure(asked.pool, asked.index, asked.text_field, asked.repeat)
    show(result)
    if asked.out:
        pathlib.Path(asked.out).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
