"""A catalog to a reference set: load each benchmark, clean its fields, write its items.

In: entries of a catalog. Out: a folder that `unseen index` reads,

    REFS/  refs.json   items/SUITE/SPLIT.parquet, with `records.item_schema`

refs.json says for every suite where it came from and what was done to it, and names the benchmarks
that could not be loaded: "not audited" is never "clean". The same catalog and data give the same bytes.
"""

from __future__ import annotations

import json
import pathlib
import re
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from unseen import __version__, fields, records
from unseen.catalog import Draft, Entry, Loaded, Unavailable, with_unique_ids
from unseen.errors import BadSetting, UnseenError
from unseen.files import hash_file, new_folder
from unseen.refs import readable, set_header

FORMAT = 1
CANARY_NOTE = "canary strings: each is an item of its own"

Loads = Iterator[Loaded | Unavailable]


def collect(
    entries: Mapping[str, Entry],
    out: str,
    *,
    keep_going: bool = False,
    overwrite: bool = False,
    splits: Sequence[str] | None = None,
    data: Mapping[str, str] | None = None,
    on_benchmark: Callable[[str, int, int], None] = lambda name, done, total: None,
) -> dict[str, Any]:
    """Write the reference set of the entries; returns what refs.json says.

    splits: those to load of each benchmark; by default what its entry says, else train, validation and
    test. data: local folders or files that stand for datasets, by dataset id. on_benchmark is told the
    name of each benchmark before it is loaded, how many are done, and how many there are.

    Raises Unavailable for the first benchmark that cannot be loaded, unless `keep_going`, which lists
    them under `missing`; BadSetting when the folder is there already, or two entries make one suite.
    """
    written: dict[tuple[str, str], dict[str, Any]] = {}
    missing: list[Unavailable] = []
    with new_folder(pathlib.Path(out), ("refs.json", "items"), overwrite=overwrite) as partial:
        for done, (name, entry) in enumerate(entries.items()):
            on_benchmark(name, done, len(entries))
            loaded, failed = parted(load_or_say(name, entry, splits, data or {}))
            missing += failed
            if failed and not keep_going:
                raise failed[0]
            facts = {(one.suite, one.split): one.facts for one in loaded}
            try:
                made = suites_of(name, loaded, entry)
                tables = {
                    (suite.name, split): table_of(suite.name, split, drafts, entry)
                    for suite in made
                    for split, drafts in suite.splits.items()
                }
            except Unavailable as error:
                missing.append(error)
                if not keep_going:
                    raise
                continue
            notes = {suite.name: suite.notes for suite in made}
            for (suite_name, split), table in tables.items():
                if (suite_name, split) in written:
                    raise BadSetting(
                        f"two entries of the catalog make the suite {suite_name}/{split}",
                        "rename one of them",
                    )
                file = file_of(suite_name, split)
                path = partial / file
                path.parent.mkdir(parents=True, exist_ok=True)
                pq.write_table(table, path, compression="zstd")
                whose = (suite_name.removesuffix(records.SOLUTION), split)
                written[suite_name, split] = {
                    "suite": suite_name, "split": split, "file": file, "items": len(table),
                    "xxh3_128": hash_file(str(path)).xxh3_128,
                    "facts": facts.get((suite_name, split)) or facts.get(whose, {}),
                    "notes": notes[suite_name],
                }  # fmt: skip
        header = {
            "format": FORMAT,
            "unseen": __version__,
            "suites": [written[key] for key in sorted(written)],
            "missing": [
                {"suite": m.suite, "reason": m.reason, "hint": m.hint}
                for m in sorted(missing, key=lambda m: (m.suite, m.reason))
            ],
        }
        (partial / "refs.json").write_text(json.dumps(header, indent=1, ensure_ascii=False) + "\n")
    return header


def load_or_say(
    name: str, entry: Entry, splits: Sequence[str] | None, data: Mapping[str, str]
) -> Loads:
    """As `load`. Raises Unavailable for whatever goes wrong: damaged files, a package that is not
    installed, a mapping that does not fit."""
    try:
        yield from load(name, entry, splits, data)
    except Unavailable:
        raise
    except UnseenError as error:
        told = error.message if name in error.message else f"{name}: {error.message}"
        raise Unavailable(name, told.removeprefix(f"{name}: "), error.hint) from error
    except (
        Exception,
        SystemExit,
    ) as error:  # of a mapping, a function of the user's, or a file that a library reads
        raise Unavailable(
            name,
            f"{type(error).__name__}: {error}",
            "correct its entry in the catalog, or its files",
        ) from error


def load(name: str, entry: Entry, splits: Sequence[str] | None, data: Mapping[str, str]) -> Loads:
    """The splits of one entry, from the adapter that its source names."""
    chosen = splits or entry.splits or None
    if entry.source == "lm-eval":
        from unseen import lm_eval

        yield from lm_eval.load(entry.tasks or [name], splits=chosen, data=data)
    elif entry.source == "eval-framework":
        from unseen import eval_framework

        yield from eval_framework.load(entry.tasks or [name], splits=chosen, data=data)
    else:
        from unseen import sources

        try:
            yield from sources.load(name, entry, splits=chosen, data=data)
        except Unavailable as error:
            yield error


def parted(loads: Loads) -> tuple[list[Loaded], list[Unavailable]]:
    """What was loaded, and what was not. A split without items was not."""
    loaded, failed = [], []
    try:
        for one in loads:
            if isinstance(one, Unavailable):
                failed.append(one)
            elif not one.drafts:
                reason = f"its split {one.split} is empty"
                failed.append(Unavailable(one.suite, reason, "leave the split out"))
            else:
                loaded.append(one)
    except Unavailable as error:
        failed.append(error)
    return loaded, failed


def suites_of(name: str, loaded: Sequence[Loaded], entry: Entry) -> list[fields.Suite]:
    """The suites of one entry, cleaned, each with its splits; canaries as a split of the entry's."""
    splits: dict[str, dict[str, list[Draft]]] = {}
    for one in loaded:
        splits.setdefault(one.suite, {}).setdefault(one.split, []).extend(numbered(one.drafts))
    suites = {made.name: made for suite in splits for made in fields.cleaned(suite, splits[suite])}
    if entry.canary and suites:
        made = suites.setdefault(name, fields.Suite(name, {}, []))
        if records.CANARY in made.splits:
            raise Unavailable(
                name,
                f"it has a split called {records.CANARY}, where its canary strings would go",
                "load it under another name, or leave `canary` out",
            )
        made.splits[records.CANARY] = [
            {"item": text, "question": text}
            for text in dict.fromkeys(findable(name, one) for one in entry.canary)
        ]
        made.notes.append(CANARY_NOTE)
    return list(suites.values())


def findable(name: str, canary: str) -> str:
    """A benchmark's canary string. Raises Unavailable when no 5-gram can find it."""
    if len(re.findall(r"[^\W_]+", canary)) < 5:
        raise Unavailable(
            name,
            f"the canary {canary!r} has fewer than 5 words, so it cannot be found",
            "write a GUID with its dashes, or more of the sentence around it",
        )
    return str(readable(canary))


def numbered(drafts: Sequence[Draft]) -> list[Draft]:
    """Drafts with an id each: their own, with a number behind it where it repeats, else the row."""
    out = []
    for row, draft in enumerate(drafts):
        out.append(Draft(**{**draft, "item": str(readable(str(draft.get("item") or row)))}))
    return with_unique_ids(out)


def file_of(suite: str, split: str) -> str:
    """Where the items of a suite's split lie in the folder: no two share a file, and none is hidden."""
    return "items/" + "/".join(map(file_name, [*suite.split("/"), split])) + ".parquet"


def file_name(part: str) -> str:
    """A part of a name as a file name: unusual characters as %XX, and what is too long cut."""
    name = urllib.parse.quote(part, safe="+=()[], ")
    if name[:1] in ("", ".", "_", "~") or name.endswith(".parquet"):
        name = f"%{name}"
    return name if len(name) <= 150 else f"{name[:120]}%{xxhash.xxh3_64_hexdigest(part.encode())}"


def table_of(suite: str, split: str, drafts: Sequence[Draft], entry: Entry) -> pa.Table:
    """Drafts as items. Raises Unavailable for one that is none."""
    rows = []
    for draft in drafts:
        answers = [readable(answer) or "" for answer in draft.get("answers") or []]
        rows.append(
            {
                "suite": suite,
                "split": split,
                "item": draft["item"],
                "language": readable(draft.get("language") or entry.language),
                "question": readable(draft.get("question")),
                "answers": answers,
                "correct": list(draft.get("correct") or [True] * len(answers)),
                "passage": readable(draft.get("passage")),
            }
        )
    try:
        return pa.Table.from_pylist(rows, schema=records.item_schema())
    except (pa.ArrowException, UnicodeEncodeError) as error:
        raise Unavailable(
            suite,
            f"an item of its split {split} has a field of a wrong type: {error}",
            "correct its entry",
        ) from error


def missing_of(refs: Sequence[str]) -> list[dict[str, str]]:
    """Benchmarks that were asked for and are not in the reference sets."""
    headers = [set_header(path) for path in refs]
    return [dict(one) for header in headers if header for one in header["missing"]]


def chosen(entries: Mapping[str, Entry], names: Sequence[str]) -> dict[str, Entry]:
    """The entries with these names (* and ? allowed), all without names. BadSetting if none fits."""
    import difflib
    import fnmatch

    if not entries:
        raise BadSetting("the catalog names no benchmark", "add one under `benchmarks:`")
    if not names:
        return dict(entries)
    out = {}
    for name in names:
        fitting = [key for key in entries if fnmatch.fnmatchcase(key, name)]
        if not fitting:
            close = difflib.get_close_matches(name, entries, 3)
            hint = f"did you mean {', '.join(close)}?" if close else "see `unseen refs catalog`"
            raise BadSetting(f"the catalog has no benchmark {name!r}", hint)
        out.update({key: entries[key] for key in fitting})
    return out
