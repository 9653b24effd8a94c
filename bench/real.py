"""Recall on real documents that hold benchmark items, and false alarms on real ones that hold none.

In: a folder with items.jsonl.gz (items), wild.jsonl.gz and truth.jsonl.gz (documents, and which item
stands in which: doc_id, benchmark, split, item_index, field, chars, via, same_text_items),
clean.jsonl.gz (documents without any). Out: tables, and every clean document that the default preset
removes, with its quote, to be judged by eye; --json keeps them.

    python -m bench.real --data DIR [--work build/real] [--json OUT]

A truth row is strong when its text has 60 characters or more and at most 5 items share it. `via` says
how the item stands there: raw, or only after escapes are undone.
"""

from __future__ import annotations

import argparse
import collections
import gzip
import json
import pathlib
import time
from typing import Any

import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from unseen import pipeline, refs
from unseen.scan import Index

Key = tuple[str, str, str, str]
OUT = Console(width=150)


def scan(data: pathlib.Path, work: pathlib.Path, name: str) -> tuple[list[dict[str, Any]], float]:
    """Matches of one file, scanned into work/NAME, and the seconds it took."""
    start = time.perf_counter()
    settings = pipeline.Settings(id_field="id", dry_run=True)
    pool = [str(data / f"{name}.jsonl.gz")]
    pipeline.scan_pool(pool, str(work / "index"), str(work / name), settings)
    table = pq.read_table(work / name / "matches" / f"{name}.jsonl.gz.parquet")
    return table.to_pylist(), time.perf_counter() - start


def recall_rows(data: pathlib.Path, found: set[Key]) -> dict[tuple[str, str, str], list[int]]:
    """(strength, field, via) -> [found, rows]."""
    out: dict[tuple[str, str, str], list[int]] = collections.defaultdict(lambda: [0, 0])
    with gzip.open(data / "truth.jsonl.gz", "rt") as lines:
        for line in lines:
            row = json.loads(line)
            strong = row["chars"] >= 60 and row["same_text_items"] <= 5
            key = ("strong" if strong else "weak", row["field"], row["via"])
            item = (row["doc_id"], row["benchmark"], row["split"], str(row["item_index"]))
            out[key][0] += item in found
            out[key][1] += 1
    return dict(sorted(out.items()))


def measure(data: pathlib.Path, work: pathlib.Path) -> dict[str, Any]:
    """Everything, as one dict."""
    if not (work / "index").exists():
        items = refs.read_items([str(data / "items.jsonl.gz")])
        Index.build(items, allow_empty=True).save(work / "index")
    wild, wild_seconds = scan(data, work, "wild")
    clean, clean_seconds = scan(data, work, "clean")
    removed = [m for m in wild if m["verdict"] == "remove"]
    found = {(m["doc_id"], m["suite"], m["split"], m["item"]) for m in removed}
    keep = ("doc_id", "suite", "split", "item", "evidence", "coverage", "information")
    keep += ("question", "quote")
    alarms = {}
    for match in clean:
        if match["verdict"] == "remove":
            alarms.setdefault((match["doc_id"], match["question"]), {k: match[k] for k in keep})
    return {
        "recall": [[*key, *counts] for key, counts in recall_rows(data, found).items()],
        "wild_documents_removed": len({m["doc_id"] for m in removed}),
        "clean_documents_removed": len({a["doc_id"] for a in alarms.values()}),
        "clean_removals": list(alarms.values()),
        "seconds": {"wild": wild_seconds, "clean": clean_seconds},
    }


def show(result: dict[str, Any]) -> None:
    table = Table("rows", "field", "via", "found", "of", "recall", box=None)
    for strength, field, via, found, rows in result["recall"]:
        table.add_row(strength, field, via, f"{found:,}", f"{rows:,}", f"{found / rows:.4f}")
    OUT.print(table)
    OUT.print(f"{result['wild_documents_removed']} documents with items removed")
    OUT.print(f"{result['clean_documents_removed']} clean documents removed:")
    for alarm in result["clean_removals"]:
        where = f"{alarm['suite']}/{alarm['split']}/{alarm['item']}"
        measured = f"coverage {alarm['coverage']:.2f}, {alarm['information']:.0f} nats"
        OUT.print(f"  {alarm['doc_id']}  {where}  {alarm['evidence']}  {measured}", markup=False)
        OUT.print(f"    item: {alarm['question'][:200]!r}", markup=False)
        OUT.print(f"    text: {alarm['quote'][:300]!r}", markup=False)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("build/real"))
    parser.add_argument("--json", dest="out", type=pathlib.Path)
    asked = parser.parse_args()
    asked.work.mkdir(parents=True, exist_ok=True)
    result = measure(asked.data, asked.work)
    show(result)
    if asked.out:
        asked.out.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
