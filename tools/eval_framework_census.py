"""How many benchmarks of eval-framework's registry become items, and why the others do not.

    python tools/eval_framework_census.py            # write docs/reference/eval-framework-census.md
    python tools/eval_framework_census.py --check    # exit 1 when the page is stale

It needs eval-framework (Python 3.12 or newer), and no network: each benchmark reads made-up rows in
its dataset's schema (tests/eval_framework_data.py) through the framework's own loaders and readers.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from pathlib import Path

from unseen import eval_framework
from unseen.catalog import Loaded, Unavailable

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "reference" / "eval-framework-census.md"
COMMAND = "python tools/eval_framework_census.py"


def census(folder: Path) -> str:
    """The page, made from made-up datasets that are written into the folder."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    sys.path.insert(0, str(ROOT / "tests"))
    import eval_framework_data

    data = eval_framework_data.write(folder / "hub")
    names = list(eval_framework.benchmarks())
    loaded: dict[str, list[Loaded]] = {name: [] for name in names}
    failed: dict[str, list[Unavailable]] = {name: [] for name in names}
    for one in eval_framework.load(["all"], data=data):
        if isinstance(one, Unavailable):
            failed[one.suite].append(one)
        else:
            loaded[one.suite].append(one)
    good = [name for name in names if loaded[name] and not failed[name] and asked(loaded[name])]
    rows = [row(name, loaded[name], name in good) for name in names]
    shapes = Counter(shape(loaded[name]) for name in good)
    share = f"{len(good)} of {len(names)} benchmarks ({100 * len(good) / len(names):.1f} %)"
    lines = [
        "# eval-framework: what becomes items",
        "",
        f"eval-framework {eval_framework.version()}, made by `{COMMAND}`.",
        "",
        f"**{share} become items**: every split loads, and every item",
        "has a question. No hub was asked: each benchmark read made-up rows in the schema of its",
        "dataset (`tests/eval_framework_data.py`), a row or two a split, through the framework's own",
        "loaders, readers and prompts. Whether the datasets on the hub still have these schemas is not",
        "shown here; `unseen refs build` says so for each when it loads them.",
        "",
        "| what its items have | benchmarks |",
        "|---|---|",
        *(f"| {what} | {count} |" for what, count in shapes.most_common()),
        "",
        "## Not handled",
        "",
        *(unhandled(names, good, failed) or ["None."]),
        "",
        "## All",
        "",
        "Splits in the order they are read, the one with the samples first. `reader`: question,",
        "options and answer come from the framework's own reader of choices; `prompt`: from the user's",
        "turn and the ground truth.",
        "",
        "| benchmark | dataset | from | response | splits | its items have |",
        "|---|---|---|---|---|---|",
        *rows,
    ]
    return "\n".join(lines) + "\n"


def asked(loads: list[Loaded]) -> bool:
    """Does every item have a question?"""
    return all((draft.get("question") or "").strip() for one in loads for draft in one.drafts)


def shape(loads: list[Loaded]) -> str:
    """What the items of a benchmark have."""
    drafts = [draft for one in loads if one.facts["role"] == "samples" for draft in one.drafts]
    answers = {answer for draft in drafts for answer in draft["answers"]}
    wrong = any(not ok for draft in drafts for ok in draft["correct"])
    if not answers:
        parts = ["question alone"]
    elif wrong:
        parts = ["question and options"]
    elif len(answers) == 1 and len(drafts) > 1 and all(draft["answers"] for draft in drafts):
        parts = [f"question, and the constant answer {answers.pop()!r}"]
    else:
        parts = ["question and answer"]
    if any(draft.get("passage") for draft in drafts):
        parts.append("passage")
    if any(draft.get("solution") for draft in drafts):
        parts.append("reference solution")
    return ", ".join(parts)


def row(name: str, loads: list[Loaded], good: bool) -> str:
    """A row of the table of all benchmarks."""
    if not loads:
        return f"| {name} | | | | | **not handled** |"
    facts = loads[0].facts
    splits = ", ".join(one.split for one in loads)
    what = shape(loads) if good else "**not handled**"
    return f"| {name} | {facts['dataset']} | {facts['by']} | {facts['response']} | {splits} | {what} |"


def unhandled(names: list[str], good: list[str], failed: dict[str, list[Unavailable]]) -> list[str]:
    """A line for each benchmark that does not become items, with the reason."""
    lines = []
    for name in names:
        if name not in good:
            reasons = "; ".join(one.reason for one in failed[name])
            lines.append(f"* {name}: {reasons or 'an item of it has no question'}")
    return lines


def main() -> int:
    """Write the page, or with --check compare it."""
    with tempfile.TemporaryDirectory() as folder:
        made = census(Path(folder))
    if "--check" in sys.argv:
        stale = not PAGE.exists() or PAGE.read_text() != made
        if stale:
            print(f"{PAGE} is stale: run `{COMMAND}`", file=sys.stderr)
        return int(stale)
    PAGE.write_text(made)
    print(f"wrote {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
