"""What a reference set holds, what is wrong with it, and what changed since the last one.

In: a folder of `unseen refs build`, an index folder, or item files. Out: frozen values, one entry for
each split of each suite, that become JSON with `dataclasses.asdict`:

    {"suite": "gsm8k", "split": "test", "items": 1319, "duplicates": 0, "options": 1319, ...}

Lengths are in words as the index counts them: runs of letters and digits, one a character in Han
or Thai. A text without a word is empty: nothing of it can be found.
"""

from __future__ import annotations

import dataclasses
import difflib
import itertools
import json
import os
import pathlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash
import yaml

from unseen import index, kernels, records, refs, tokens
from unseen.errors import BadInput, BadSetting

if TYPE_CHECKING:
    from rich.table import Table

CHUNK = 20_000  # texts that are Python strings at a time
SAMPLE = 500  # questions of a suite that are searched for shared text
LETTER = r"^\s*[(\[]?[A-Za-z][)\].:]?\s*$"
DIGIT = r"^\s*[(\[]?[0-9][)\].:]?\s*$"
MIN_DIGITS = 0.9  # share of a split's items answered by one digit from which it reads as an index
UNKNOWN = "und"  # BCP 47 for an undetermined language
WHY = {
    "with answer": "found only where an answer follows: the question alone is too common",
    "not checkable": "too common to be told apart from ordinary text",
    "too short": f"under {kernels.N} words",
    "empty": "no word in the question",
}

Paths = str | pathlib.Path | Sequence[str | pathlib.Path]
Longs = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]


# ---- what a census says ---------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Spread:
    """Least, (lower) median and greatest of some counts."""

    min: int
    median: int
    max: int


@dataclasses.dataclass(frozen=True)
class Field:
    """One field of the items of a split."""

    filled: int  # texts with a word
    empty: int  # texts without one; items without the field, but for answers
    duplicates: int  # texts with the words of an earlier one of the split; of the item, for answers
    words: Spread | None  # of the filled ones


@dataclasses.dataclass(frozen=True)
class Part:
    """One split of one suite."""

    suite: str
    split: str
    items: int  # without exact repeats
    repeated: int  # rows left out, the same in all fields as an earlier one
    clashing: int  # items with the id of an earlier one and other content: no index can be built
    questions: int  # distinct, by their words
    duplicates: int  # items whose question another item of the split has
    options: int  # answers in all
    right: int  # of these, the right ones
    options_per_item: Spread
    no_answers: int  # items without any
    none_right: int  # items with answers, none of them right
    letters: int  # items whose every answer is a letter: A, (b), C.
    indexes: int  # the same with digits, where nearly all of the split are so
    fields: dict[str, Field]  # question, answers, passage
    languages: dict[str, int]  # items; `und` where none is named
    status: dict[str, int]  # items by what the index can do with them (WHY)


@dataclasses.dataclass(frozen=True)
class Suite:
    """One suite, all splits together; canary strings are not counted."""

    suite: str
    items: int
    questions: int
    constant: str | None  # the answer, if all items have the same one
    template: tuple[str, ...]  # texts that most questions share, from a question with the most of it
    template_words: int  # of the median question


@dataclasses.dataclass(frozen=True)
class Pair:
    """Two suites, or splits, that ask the same questions."""

    a: str
    b: str
    questions: int  # distinct ones in both
    smaller: str  # that with fewer distinct questions
    share: float  # of the smaller one's, 0..1


@dataclasses.dataclass(frozen=True)
class Census:
    """All that `take` found."""

    parts: tuple[Part, ...]
    suites: tuple[Suite, ...]
    nested: tuple[Pair, ...]  # suites, most shared first
    nested_splits: tuple[Pair, ...]  # SUITE/SPLIT, most shared first; of one suite as well
    missing: tuple[dict[str, str], ...]  # suite, reason, hint: not audited is never clean
    mismatched: tuple[dict[str, Any], ...]  # suite, split, listed, found: refs.json says another count


# ---- reading --------------------------------------------------------------------------------------


class Source(NamedTuple):
    """Items, and what the headers beside them say."""

    items: pa.Table
    suites: list[dict[str, Any]]  # as in refs.json
    missing: list[dict[str, str]]


def read_set(paths: Paths) -> Source:
    """Items of folders of `unseen refs build`, index folders, and plain item files, one or several."""
    tables, suites, missing, plain = [], [], [], []
    for path in map(pathlib.Path, [paths] if isinstance(paths, str | pathlib.Path) else paths):
        if (header := refs.set_header(str(path))) is not None:
            suites += header["suites"]
            missing += header["missing"]
            files = [str(path / part["file"]) for part in header["suites"]]
            tables += [refs.read_files([file]) for file in files if os.path.isfile(file)]
        elif (path / "items.arrow").is_file() and (path / "header.json").is_file():
            missing += read_json(path / "header.json").get("missing", [])
            tables.append(items_of_index(path / "items.arrow"))
        else:
            plain.append(str(path))
    if plain or not (tables or suites or missing):
        tables.append(refs.read_items(plain))
    schema = records.item_schema()
    found = [table.select(schema.names).cast(schema) for table in tables]
    return Source(pa.concat_tables(found) if found else schema.empty_table(), suites, missing)


def read_json(path: pathlib.Path) -> dict[str, Any]:
    """A header. Raises BadInput."""
    try:
        header = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise BadInput(f"{path} cannot be read: {error}", "build it again") from error
    if not isinstance(header, dict):
        raise BadInput(f"{path} is no JSON object", "build it again")
    return header


def items_of_index(path: pathlib.Path) -> pa.Table:
    """The items that an index was made from."""
    try:
        with pa.memory_map(str(path)) as source:
            return pa.ipc.open_file(source).read_all()
    except (OSError, pa.ArrowInvalid) as error:
        raise BadInput(f"{path} cannot be read: {error}", index.REBUILD) from error


def parts_of(table: pa.Table) -> tuple[list[tuple[str, str]], Longs]:
    """(suite, split) of each part in order of name, and the part of each item."""
    suite, split = (table[n].combine_chunks().dictionary_encode() for n in ("suite", "split"))
    suites, splits = suite.dictionary.to_pylist(), split.dictionary.to_pylist()
    joined = suite.indices.to_numpy().astype(np.int64) * max(len(splits), 1) + split.indices.to_numpy()
    codes, inverse = np.unique(joined, return_inverse=True)
    names = [(suites[c // len(splits)], splits[c % len(splits)]) for c in codes.tolist()]
    order = sorted(range(len(names)), key=names.__getitem__)
    rank = np.empty(len(names), np.int64)
    rank[order] = np.arange(len(names))
    return [names[k] for k in order], rank[inverse.reshape(-1)]


# ---- hashes ---------------------------------------------------------------------------------------


def scramble(values: Hashes) -> Hashes:
    """64-bit values to well-mixed ones, one to one (the finalizer of splitmix64)."""
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def together(*columns: Hashes) -> Hashes:
    """One hash of several, for each item; their order matters."""
    mixed = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        mixed = scramble(mixed ^ column)
    return mixed


def in_chunks(texts: pa.ChunkedArray) -> Iterator[tuple[int, list[str | None]]]:
    """Python strings, some at a time, with the number of the first."""
    for first in range(0, len(texts), CHUNK):
        yield first, texts.slice(first, CHUNK).to_pylist()


def text_hashes(texts: pa.ChunkedArray) -> Hashes:
    """A hash of each text; 0 for null."""
    out = np.zeros(len(texts), np.uint64)
    for first, some in in_chunks(texts):
        out[first : first + len(some)] = [
            0 if t is None else xxhash.xxh3_64_intdigest(tokens.encode(t)) for t in some
        ]
    return out


def name_hashes(names: pa.ChunkedArray) -> Hashes:
    """The same, for a column with few distinct texts."""
    coded = names.combine_chunks().dictionary_encode()
    known = text_hashes(pa.chunked_array([coded.dictionary]))
    return np.concatenate([known, [np.uint64(0)]])[coded.indices.fill_null(-1).to_numpy()]


class Lists(NamedTuple):
    """The answers of all items, one after the other."""

    text: pa.ChunkedArray
    correct: npt.NDArray[np.bool_]
    sizes: Longs  # of each item
    owner: Longs  # item of each answer


def lists_of(table: pa.Table) -> Lists:
    """Answers and their marks. An answer without a mark counts as wrong."""
    sizes, marks = (
        pc.fill_null(pc.list_value_length(table[n]), 0).to_numpy().astype(np.int64)
        for n in ("answers", "correct")
    )
    owner = np.repeat(np.arange(len(sizes)), sizes)
    place = np.arange(len(owner)) - index.pointers(sizes)[owner]
    flat = pc.fill_null(pc.list_flatten(table["correct"]), False).to_numpy()
    correct = np.zeros(len(owner), bool)
    marked = place < marks[owner]
    correct[marked] = flat[(index.pointers(marks)[owner] + place)[marked]]
    return Lists(pc.list_flatten(table["answers"]), correct, sizes, owner)


class Prints(NamedTuple):
    """Hashes of the parts of each item: equal hashes, equal texts."""

    key: Hashes  # suite, split and id
    asked: Hashes  # language, question, passage
    answered: Hashes  # answers, and which are right


def prints_of(table: pa.Table) -> Prints:
    """What tells whether two items are the same."""
    answers = lists_of(table)
    ends = index.pointers(answers.sizes)
    place = (np.arange(len(answers.owner)) - ends[answers.owner]).astype(np.uint64)
    marked = place * np.uint64(2) + answers.correct.astype(np.uint64)
    each = together(text_hashes(answers.text), marked)
    total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(each, dtype=np.uint64)])
    return Prints(
        together(name_hashes(table["suite"]), name_hashes(table["split"]), text_hashes(table["item"])),
        together(
            name_hashes(table["language"]),
            text_hashes(table["question"]),
            text_hashes(table["passage"]),
        ),
        together(answers.sizes.astype(np.uint64), total[ends[1:]] - total[ends[:-1]]),
    )


def later_ones(hashes: Hashes) -> npt.NDArray[np.bool_]:
    """True where a value stood before."""
    out = np.ones(len(hashes), bool)
    out[np.unique(hashes, return_index=True)[1]] = False
    return out


class Measured(NamedTuple):
    """Texts, counted."""

    words: Longs
    run: Hashes  # of the words
    text: Hashes  # of the text without the white space around it


def measure(texts: pa.ChunkedArray) -> Measured:
    """Words of each text, and hashes. Memory: 24 bytes a text."""
    words = np.zeros(len(texts), np.int64)
    run, text = np.zeros(len(texts), np.uint64), np.zeros(len(texts), np.uint64)
    for first, some in in_chunks(texts):
        last = first + len(some)
        found = tokens.tokenize(some)
        words[first:last] = np.diff(found.ptr)
        kernels.hash_runs(found.token, found.ptr, run[first:last])
        text[first:last] = [xxhash.xxh3_64_intdigest(tokens.encode(t).strip()) for t in some]
    return Measured(words, run, text)


# ---- the census -----------------------------------------------------------------------------------


def take(paths: Paths) -> Census:
    """Count what a reference set holds (a folder of `refs build`, an index, or files; or several)."""
    source = read_set(paths)
    table = source.items
    names, part = parts_of(table)
    prints = prints_of(table)
    repeats = later_ones(together(*prints))
    repeated = np.bincount(part[repeats], minlength=len(names))
    if repeats.any():
        table, part = table.filter(pa.array(~repeats)), part[~repeats]
    clashing = np.bincount(part[later_ones(prints.key[~repeats])], minlength=len(names))

    question = measure(table["question"])
    counts = Counts(table, part, question, status_of(table))
    parts = tuple(
        counts.part(number, suite, split, int(repeated[number]), int(clashing[number]))
        for number, (suite, split) in enumerate(names)
    )
    suites = sorted({suite for suite, _ in names})
    code = {suite: k for k, suite in enumerate(suites)}
    of_part = np.array([code[suite] for suite, _ in names], np.int64)
    asked = np.flatnonzero(question.words > 0)
    return Census(
        parts,
        tuple(counts.suite(suite, parts) for suite in suites),
        shared(of_part[part[asked]], question.run[asked], suites),
        shared(part[asked], question.run[asked], ["/".join(name) for name in names]),
        tuple(not_there(source, names)),
        tuple(other_counts(source, parts)),
    )


def status_of(table: pa.Table) -> npt.NDArray[np.int8]:
    """What an index of these items can do with each: a place in `index.STATUSES`."""
    if len(table) == 0:
        return np.zeros(0, np.int8)
    rows = pa.array(np.arange(len(table))).cast(pa.string())  # ids that cannot clash
    numbered = table.set_column(table.schema.get_field_index("item"), "item", rows)
    built = index.CompiledIndex.build(numbered, allow_empty=True).items
    status = np.zeros(len(table), np.int8)
    status[built["item"].cast(pa.int64()).to_numpy()] = built["status"].to_numpy()
    return status


class Counts:
    """All items measured, ready to be counted part by part."""

    def __init__(
        self, table: pa.Table, part: Longs, question: Measured, status: npt.NDArray[np.int8]
    ) -> None:
        self.table = table
        self.question, self.status = question, status
        self.passage = measure(table["passage"])
        self.lists = lists_of(table)
        self.answer = measure(self.lists.text)
        self.right = self.per_item(self.lists.correct)
        self.letters = self.all_match(LETTER)
        self.digits = self.all_match(DIGIT)
        owner = self.lists.owner.astype(np.uint64)
        self.twice = later_ones(together(owner, self.answer.text)) & (self.answer.words > 0)
        coded = table["language"].combine_chunks().dictionary_encode()
        self.languages = [*coded.dictionary.to_pylist(), UNKNOWN]
        self.language = coded.indices.fill_null(len(self.languages) - 1).to_numpy()
        parts = int(part.max(initial=-1)) + 2
        self.items = np.argsort(part, kind="stable")
        self.bounds = np.searchsorted(part[self.items], np.arange(parts))
        of_answer = part[self.lists.owner]
        self.answers = np.argsort(of_answer, kind="stable")
        self.answer_bounds = np.searchsorted(of_answer[self.answers], np.arange(parts))

    def per_item(self, marked: npt.NDArray[np.bool_]) -> Longs:
        """How many answers of each item are marked."""
        return np.bincount(self.lists.owner[marked], minlength=len(self.lists.sizes))

    def all_match(self, pattern: str) -> npt.NDArray[np.bool_]:
        """Items that have answers, all of which match."""
        matched = pc.fill_null(pc.match_substring_regex(self.lists.text, pattern), False).to_numpy()
        return (self.per_item(matched) == self.lists.sizes) & (self.lists.sizes > 0)

    def part(self, number: int, suite: str, split: str, repeated: int, clashing: int) -> Part:
        """The counts of one split of one suite."""
        rows = self.items[self.bounds[number] : self.bounds[number + 1]]
        answers = self.answers[self.answer_bounds[number] : self.answer_bounds[number + 1]]
        sizes = self.lists.sizes[rows]
        question, passage = field(self.question, rows), field(self.passage, rows)
        answer = dataclasses.replace(
            field(self.answer, answers), duplicates=int(self.twice[answers].sum())
        )
        digits = int(self.digits[rows].sum())
        spoken = np.bincount(self.language[rows], minlength=len(self.languages))
        by_status = np.bincount(self.status[rows], minlength=len(index.STATUSES)).tolist()
        return Part(
            suite=suite,
            split=split,
            items=len(rows),
            repeated=repeated,
            clashing=clashing,
            questions=question.filled - question.duplicates,
            duplicates=question.duplicates,
            options=len(answers),
            right=int(self.right[rows].sum()),
            options_per_item=spread(sizes) or Spread(0, 0, 0),
            no_answers=int((sizes == 0).sum()),
            none_right=int(((sizes > 0) & (self.right[rows] == 0)).sum()),
            letters=int(self.letters[rows].sum()),
            indexes=digits if digits >= max(1, MIN_DIGITS * (sizes > 0).sum()) else 0,
            fields={"question": question, "answers": answer, "passage": passage},
            languages={self.languages[k]: int(spoken[k]) for k in np.argsort(-spoken) if spoken[k]},
            status=dict(zip(index.STATUSES, by_status, strict=True)),
        )

    def suite(self, suite: str, parts: Sequence[Part]) -> Suite:
        """What holds for all splits of a suite."""
        mine = [k for k, p in enumerate(parts) if p.suite == suite and p.split != records.CANARY]
        rows = np.concatenate(
            [self.items[:0], *(self.items[self.bounds[k] : self.bounds[k + 1]] for k in mine)]
        )
        spans = [slice(self.answer_bounds[k], self.answer_bounds[k + 1]) for k in mine]
        answers = np.concatenate([self.answers[:0], *(self.answers[span] for span in spans)])
        asked = rows[self.question.words[rows] > 0]
        distinct = asked[~later_ones(self.question.run[asked])]
        text, words = template_of(self.table["question"], distinct)
        return Suite(suite, len(rows), len(distinct), self.constant(answers), text, words)

    def constant(self, answers: Longs) -> str | None:
        """The text that all of these answers have, if two items or more have it."""
        hashes = self.answer.text[answers]
        if len(np.unique(self.lists.owner[answers])) < 2 or (hashes != hashes[0]).any():
            return None
        return (self.lists.text[int(answers[0])].as_py() or "").strip()


def field(measured: Measured, rows: Longs) -> Field:
    """One field of some items."""
    filled = rows[measured.words[rows] > 0]
    return Field(
        filled=len(filled),
        empty=len(rows) - len(filled),
        duplicates=int(later_ones(measured.run[filled]).sum()),
        words=spread(measured.words[filled]),
    )


def spread(values: Longs) -> Spread | None:
    """Least, lower median, greatest; None of nothing."""
    if len(values) == 0:
        return None
    middle = (len(values) - 1) // 2
    return Spread(int(values.min()), int(np.partition(values, middle)[middle]), int(values.max()))


def template_of(texts: pa.ChunkedArray, rows: Longs) -> tuple[tuple[str, ...], int]:
    """Texts inside word 5-grams that most questions share, and the words they take of the median one.

    The rule is the index's; up to SAMPLE questions are looked at, evenly spaced.
    """
    if len(rows) < index.TEMPLATE_QUESTIONS:
        return (), 0
    rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), SAMPLE)).astype(np.int64)]
    sample = texts.take(pa.array(rows)).to_pylist()
    found = tokens.tokenize(sample, most=kernels.MAX_QUESTION)
    grams = np.zeros(len(found.token), np.uint64)
    kernels.hash_many(found.token, found.ptr, kernels.N, grams)
    text = np.repeat(np.arange(len(rows)), np.diff(found.ptr))
    first = np.flatnonzero((grams != 0) & ~later_ones(together(grams, text.astype(np.uint64))))
    gram, frequency = np.unique(grams[first], return_counts=True)
    common = gram[frequency >= index.TEMPLATE_SHARE * len(rows)]
    starts = np.flatnonzero(np.isin(grams, common))
    covered = np.zeros(len(grams) + kernels.N, bool)
    for offset in range(kernels.N):
        covered[starts + offset] = True
    words = np.bincount(text[covered[: len(text)]], minlength=len(rows))
    most = int(np.argmax(words))
    places = np.flatnonzero(covered[found.ptr[most] : found.ptr[most + 1]])
    runs = np.split(places, np.flatnonzero(np.diff(places) > 1) + 1) if len(places) else []
    spelled = tokens.words(sample[most]) if runs else []
    parts = tuple(sample[most][spelled[run[0]][1] : spelled[run[-1]][2]] for run in runs)
    return parts, int(np.sort(words)[(len(words) - 1) // 2])


def shared(group: Longs, hashes: Hashes, names: Sequence[str]) -> tuple[Pair, ...]:
    """Pairs of groups with questions in common, most shared first.

    Cost: a sort of the questions. Questions that stand in the same groups are counted together, so the
    work on pairs depends on how many different sets of groups there are, not on the questions.
    """
    order = np.lexsort((group, hashes))
    hashes, group = hashes[order], group[order]
    new = np.ones(len(group), bool)
    new[1:] = (hashes[1:] != hashes[:-1]) | (group[1:] != group[:-1])
    hashes, group = hashes[new], group[new]
    sizes = np.bincount(group, minlength=len(names))
    start = np.flatnonzero(np.diff(hashes, prepend=~hashes[:1]))
    stop = np.concatenate([start[1:], [len(hashes)]]).astype(np.int64)
    several = stop - start > 1
    start, stop = start[several], stop[several]
    summed = np.concatenate([np.zeros(1, np.uint64), np.cumsum(scramble(group.astype(np.uint64)))])
    _, first, times = np.unique(summed[stop] - summed[start], return_index=True, return_counts=True)
    count: Counter[tuple[int, int]] = Counter()
    for k, n in zip(first.tolist(), times.tolist(), strict=True):
        for pair in itertools.combinations(group[start[k] : stop[k]].tolist(), 2):
            count[pair] += n
    out = []
    for (a, b), n in count.items():
        smaller = a if sizes[a] <= sizes[b] else b
        out.append(Pair(names[a], names[b], n, names[smaller], n / int(sizes[smaller])))
    return tuple(sorted(out, key=lambda p: (-p.questions, -p.share, p.a, p.b)))


def not_there(source: Source, names: Iterable[tuple[str, str]]) -> Iterator[dict[str, str]]:
    """Benchmarks that could not be loaded, and those that are listed and whose items are gone."""
    for one in source.missing:
        yield {key: str(one.get(key, "")) for key in ("suite", "reason", "hint")}
    there = set(names)
    for listed in source.suites:
        if (listed["suite"], listed["split"]) not in there:
            reason = f"refs.json lists its split {listed['split']}, but there are no items of it"
            yield {"suite": listed["suite"], "reason": reason, "hint": "build the set again"}


def other_counts(source: Source, parts: Sequence[Part]) -> Iterator[dict[str, Any]]:
    """Splits that hold another number of items than refs.json says."""
    listed: Counter[tuple[str, str]] = Counter()
    for one in source.suites:
        listed[one["suite"], one["split"]] += one["items"]
    for p in parts:
        key, found = (p.suite, p.split), p.items + p.repeated
        if listed and listed[key] != found:
            yield {"suite": p.suite, "split": p.split, "listed": listed[key], "found": found}


# ---- requirements ---------------------------------------------------------------------------------


class Requirement(NamedTuple):
    """A suite, or SUITE/SPLIT, and how many items it must have at least."""

    name: str
    least: int


REQUIREMENT_HINT = (
    "a line is `SUITE COUNT` or `SUITE/SPLIT COUNT`; in YAML and JSON (.yaml, .yml, .json) "
    "`SUITE: COUNT`, or `SUITE: {SPLIT: COUNT}`"
)


def read_requirements(path: str | pathlib.Path) -> list[Requirement]:
    """A `--require` file: YAML or JSON by its suffix, else lines (# starts a comment).

    Raises BadSetting naming file and line.
    """
    file = pathlib.Path(path)
    try:
        text = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise BadSetting(f"{file} cannot be read: {error}", "check the path") from error
    suffix = file.suffix.lower()
    found: dict[str, int] = {}
    if suffix == ".json":
        try:
            json.loads(text)
        except ValueError as error:
            line = error.lineno if isinstance(error, json.JSONDecodeError) else 1
            raise bad_line(file, line, f"it is not JSON ({error})") from error
    rows = required_keys(file, text) if suffix in (".json", ".yaml", ".yml") else required_lines(text)
    for line, name, count in rows:
        if not name or not (count.isascii() and count.isdecimal()) or int(count) < 1:
            wrong = f"{count!r} is no count of items" if name and count else "it has no name and count"
            raise bad_line(file, line, wrong)
        if name in found:
            raise bad_line(file, line, f"{name} is named twice")
        found[name] = int(count)
    if not found:
        raise bad_line(file, 1, "the file requires nothing")
    return [Requirement(name, least) for name, least in found.items()]


def bad_line(path: pathlib.Path, line: int, reason: str) -> BadSetting:
    return BadSetting(f"{path}, line {line}: {reason}", REQUIREMENT_HINT)


def required_lines(text: str) -> Iterator[tuple[int, str, str]]:
    """Line number, name and count of plain lines."""
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#", 1)[0].split()
        if words:
            yield number, " ".join(words[:-1]), words[-1]


def required_keys(path: pathlib.Path, text: str) -> Iterator[tuple[int, str, str]]:
    """The same of a mapping. PyYAML's nodes know their lines, and JSON is YAML but for tabs."""
    try:
        root = yaml.compose(text.replace("\t", " ") if path.suffix.lower() == ".json" else text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "unreadable"
        raise bad_line(path, mark.line + 1 if mark else 1, f"it is not YAML ({problem})") from error
    if root is None:
        return
    if not isinstance(root, yaml.MappingNode):
        raise bad_line(path, root.start_mark.line + 1, "it is no mapping of suites to counts")
    for key, value in root.value:
        inner = value.value if isinstance(value, yaml.MappingNode) else [(None, value)]
        for split, count in inner:
            line = (split or key).start_mark.line + 1
            nodes = [key, count] if split is None else [key, split, count]
            if not all(isinstance(node, yaml.ScalarNode) for node in nodes):
                raise bad_line(path, line, "it is no count of items")
            yield line, "/".join(node.value for node in nodes[:-1]), str(count.value)


def unmet(census: Census, requirements: Iterable[Requirement]) -> list[dict[str, Any]]:
    """Requirements that the set does not meet: {name, required, found, reason}.

    Items with an empty question count for nothing, nor do canary strings or exact repeats.
    """
    by_suite: Counter[str] = Counter()
    by_split: dict[str, int] = {}
    for p in census.parts:
        usable = p.items - p.status["empty"]
        by_split[f"{p.suite}/{p.split}"] = usable
        by_suite[p.suite] += usable if p.split != records.CANARY else 0
    why = {one["suite"]: one["reason"] for one in census.missing}
    out = []
    for name, least in requirements:
        there = name in by_suite or name in by_split
        found = by_suite[name] if name in by_suite else by_split.get(name, 0)
        if found < least:
            lacking = why.get(name) or why.get(name.rpartition("/")[0])
            reason = lacking or ("too few items" if there else close_to(name, [*by_suite, *by_split]))
            out.append({"name": name, "required": least, "found": found, "reason": reason})
    return out


def close_to(name: str, names: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(names), 3)
    return "not in the set" + (f"; it has {', '.join(close)}" if close else "")


# ---- list and show --------------------------------------------------------------------------------


def list_suites(paths: Paths) -> list[dict[str, Any]]:
    """Suites by name: {suite, items, splits: {split: items}, languages, facts, notes, missing}.

    `missing` says why a benchmark, or a part of it, is not there; null for a whole one.
    """
    source = read_set(paths)
    names, part = parts_of(source.items)
    sizes = np.bincount(part, minlength=len(names)).tolist()
    language = pc.fill_null(source.items["language"], UNKNOWN)
    spoken: dict[str, set[str]] = {}
    if names:
        pairs = pa.table({"part": pa.array(part), "language": language})
        for row in pairs.group_by(["part", "language"]).aggregate([]).to_pylist():
            spoken.setdefault(names[row["part"]][0], set()).add(row["language"])
    out: dict[str, dict[str, Any]] = {}
    lacking = {m["suite"]: m["reason"] for m in not_there(source, names)}
    for suite in sorted({suite for suite, _ in names} | set(lacking)):
        splits = {s: n for (name, s), n in zip(names, sizes, strict=True) if name == suite}
        out[suite] = {
            "suite": suite,
            "items": sum(splits.values()),
            "splits": splits,
            "languages": sorted(spoken.get(suite, ())),
            **facts_of(source, suite),
            "missing": lacking.get(suite),
        }
    return list(out.values())


def facts_of(source: Source, suite: str) -> dict[str, Any]:
    """Facts by split and notes of a suite, from refs.json; empty without one."""
    mine = [one for one in source.suites if one["suite"] == suite]
    notes = dict.fromkeys(note for one in mine for note in one.get("notes", []))
    return {"facts": {one["split"]: one.get("facts", {}) for one in mine}, "notes": list(notes)}


def show_suite(paths: Paths, suite: str, limit: int = 3) -> dict[str, Any]:
    """One suite: its line of `list_suites`, and the first `limit` items of each split, in full.

    Raises BadSetting for a suite that is not there, with the names that are close.
    """
    rows = {row["suite"]: row for row in list_suites(paths)}
    if suite not in rows or not rows[suite]["splits"]:
        reason = rows[suite]["missing"] if suite in rows else None
        close = difflib.get_close_matches(suite, rows, 3) or [n for n in rows if suite in n][:3]
        hint = f"did you mean {', '.join(close)}?" if close else "see `unseen refs list`"
        raise BadSetting(
            f"the set has no suite {suite!r}" + (f": {reason}" if reason else ""),
            "build the set again" if reason else hint,
        )
    items = read_set(paths).items
    items = items.filter(pc.equal(items["suite"], suite))
    shown = [items.filter(pc.equal(items["split"], s)).slice(0, limit) for s in rows[suite]["splits"]]
    return {**rows[suite], "shown": [item for some in shown for item in some.to_pylist()]}


# ---- diff -----------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Change:
    """One split of one suite, in two sets. Items are told apart by their ids."""

    suite: str
    split: str
    added: int
    removed: int
    changed: int  # same id, other content
    answers_only: int  # of these, items of which only the answers, or their marks, are others
    unchanged: int


@dataclasses.dataclass(frozen=True)
class Difference:
    """From one reference set to another."""

    added: tuple[str, ...]  # suites
    dropped: tuple[str, ...]
    changed: tuple[str, ...]  # suites in both, with any item added, removed or changed
    splits: tuple[Change, ...]
    missing: tuple[dict[str, str], ...]  # benchmarks that the new set asked for and does not have

    @property
    def same(self) -> bool:
        """Nothing changed, and nothing is missing."""
        return not (self.added or self.dropped or self.changed or self.missing)


class Side(NamedTuple):
    """One of two sets, its items by key."""

    names: list[tuple[str, str]]
    part: Longs
    prints: Prints


def diff(old: Paths, new: Paths) -> Difference:
    """What changed from one set to another; each is a folder of `refs build`, an index, or files.

    Raises BadInput when two different items of one set share suite, split and id.
    """
    target = read_set(new)
    before, after = by_key(read_set(old).items), by_key(target.items)
    names = sorted({*before.names, *after.names})
    place = {name: k for k, name in enumerate(names)}
    old_part = np.array([place[n] for n in before.names], np.int64)[before.part]
    new_part = np.array([place[n] for n in after.names], np.int64)[after.part]
    _, mine, theirs = np.intersect1d(
        before.prints.key, after.prints.key, assume_unique=True, return_indices=True
    )
    asked = before.prints.asked[mine] == after.prints.asked[theirs]
    answered = before.prints.answered[mine] == after.prints.answered[theirs]

    def count(part: Longs) -> list[int]:
        return np.bincount(part, minlength=len(names)).tolist()

    both = old_part[mine]
    columns = zip(
        count(np.delete(new_part, theirs)),
        count(np.delete(old_part, mine)),
        count(both[~(asked & answered)]),
        count(both[asked & ~answered]),
        count(both[asked & answered]),
        strict=True,
    )
    splits = tuple(Change(*name, *numbers) for name, numbers in zip(names, columns, strict=True))
    was, now = ({suite for suite, _ in side.names} for side in (before, after))
    touched = {c.suite for c in splits if c.added or c.removed or c.changed}
    return Difference(
        tuple(sorted(now - was)),
        tuple(sorted(was - now)),
        tuple(sorted(touched & was & now)),
        splits,
        tuple(not_there(target, after.names)),
    )


def by_key(table: pa.Table) -> Side:
    """Items without exact repeats. Raises BadInput for different items of one name."""
    names, part = parts_of(table)
    prints = prints_of(table)
    keep = ~later_ones(together(*prints))
    clash = np.flatnonzero(keep)[later_ones(prints.key[keep])]
    if len(clash):
        item = table.select(["suite", "split", "item"]).slice(int(clash[0]), 1).to_pylist()[0]
        raise BadInput(
            f"two different items are called {'/'.join(item.values())}",
            "give each item of a suite and split its own id",
        )
    return Side(names, part[keep], Prints(*(column[keep] for column in prints)))


# ---- tables for people ----------------------------------------------------------------------------


def tables_of_check(census: Census, most: int = 40) -> list[Table]:
    """Items, lengths, what to look at, suites that share questions (`most` pairs), what is missing."""
    titles = ["items", "dup", "options", "+answer", "unsure", "short", "empty"]
    items = table(["suite/split"], titles)
    items.add_column("languages")
    words = table(["suite/split"], ["question", "answer", "passage", "none", "blank", "twice"])
    words.title = "words (least/median/greatest), items without answers, blank answers, options twice"
    for p in census.parts:
        name = f"{p.suite}/{p.split}"
        cannot = [number(p.status[s]) for s in WHY]
        spoken = [name for name in p.languages if name != UNKNOWN] or ["-"]
        spoken = [*spoken[:3], f"+{len(spoken) - 3}"] if len(spoken) > 3 else spoken
        row(items, name, number(p.items), number(p.duplicates), span(p.options_per_item), *cannot,
            " ".join(spoken),
        )  # fmt: skip
        lengths = [span(p.fields[f].words) for f in ("question", "answers", "passage")]
        rest = [p.no_answers, p.fields["answers"].empty, p.fields["answers"].duplicates]
        row(words, name, *lengths, *map(number, rest))
    look = table(["suite", "look at"], [], "to look at")
    for suite, what in remarks(census):
        row(look, suite, what)
    nested = table(["suite", "and", "most of it"], ["questions", "of smaller"], "shared questions")
    inner = table(["suite", "split", "and"], ["questions", "of smaller"], "shared inside a suite")
    part_of = {f"{p.suite}/{p.split}": p for p in census.parts}
    between: dict[tuple[str, str], str] = {}
    for pair in census.nested_splits:
        a, b = part_of[pair.a], part_of[pair.b]
        if a.suite != b.suite:
            between.setdefault((a.suite, b.suite), f"{a.split}, {b.split}: {pair.questions:,}")
        elif inner.row_count < most:
            row(inner, a.suite, a.split, b.split, number(pair.questions), f"{pair.share:.1%}")
    for pair in census.nested[:most]:
        mostly = between.get((pair.a, pair.b), "")
        row(nested, pair.a, pair.b, mostly, number(pair.questions), f"{pair.share:.1%}")
    if len(census.nested) > most:
        nested.caption = f"and {len(census.nested) - most:,} more pairs: see --json"
    missing = table(["missing", "reason", "what to do"], [], "not in the set, so not audited")
    for one in census.missing:
        row(missing, one["suite"], one["reason"], one["hint"])
    return [items, words, *(t for t in (look, nested, inner, missing) if t.row_count)]


def remarks(census: Census) -> Iterator[tuple[str, str]]:
    """What a person should look at: (suite or SUITE/SPLIT, one sentence)."""
    for s in census.suites:
        if s.constant is not None:
            yield s.suite, f"every answer is {short(s.constant)!r}: index it on its question alone"
        if s.template:
            shown = ", ".join(repr(short(text)) for text in s.template[:3])
            yield s.suite, f"most questions share {s.template_words} words: {shown}"
    for p in census.parts:
        name = f"{p.suite}/{p.split}"
        lost = {why: p.status[why] for why in ("not checkable", "too short", "empty") if p.status[why]}
        reasons = ", ".join(f"{n:,} {why}" for why, n in lost.items())
        counts: list[tuple[int, str]] = [
            (p.clashing, "items have the id of another item: no index can be built"),
            (p.repeated, "rows repeat another one and were left out"),
            (some(p.letters, p.items), "items are answered by letters alone"),
            (p.indexes, "items are answered by one digit alone: are these indexes?"),
            (p.none_right, "items have answers, none of them right"),
            (some(sum(lost.values()), p.items, 0.5), f"items cannot be found: {reasons}"),
        ]
        yield from ((name, f"{n:,} of {p.items:,} {what}") for n, what in counts if n)
    for one in census.mismatched:
        what = f"refs.json lists {one['listed']:,} items, the files have {one['found']:,}"
        yield f"{one['suite']}/{one['split']}", what


def some(n: int, of: int, share: float = 0.05) -> int:
    """The count, or 0 where it is a small share."""
    return n if n >= share * of else 0


def tables_of_unmet(failed: Sequence[Mapping[str, Any]]) -> list[Table]:
    """Requirements that are not met; no table if all are."""
    out = table(["required", "reason"], ["least", "found"], "requirements not met")
    for one in failed:
        row(out, one["name"], one["reason"], number(one["required"]), number(one["found"]))
    return [out] if failed else []


def tables_of_list(suites: Sequence[Mapping[str, Any]]) -> list[Table]:
    """A line for each suite."""
    out = table(["suite", "splits"], ["items"])
    out.add_column("languages")
    for one in suites:
        splits = ", ".join(f"{split} {n:,}" for split, n in one["splits"].items())
        if one["missing"]:
            splits = "; ".join(part for part in (splits, f"missing: {one['missing']}") if part)
        row(out, one["suite"], splits, number(one["items"]), " ".join(one["languages"]))
    return [out]


def tables_of_show(shown: Mapping[str, Any]) -> list[Table]:
    """A suite's facts, then a table for each item that is shown."""
    about = table(["", " "], [], shown["suite"])
    for split, items in shown["splits"].items():
        facts = [f"{k}: {v}" for k, v in shown["facts"].get(split, {}).items() if v is not None]
        row(about, split, ", ".join([f"{items:,} items", *facts]))
    for note in shown["notes"]:
        row(about, "note", note)
    out = [about]
    for item in shown["shown"]:
        one = table(["", " "], [], f"{item['suite']}/{item['split']}/{item['item']}")
        for name in ("language", "question", "passage"):
            if item[name]:
                row(one, name, item[name])
        for answer, right in zip(item["answers"] or [], item["correct"] or [], strict=False):
            row(one, "answer" if right else "wrong", answer)
        out.append(one)
    return out


def tables_of_diff(found: Difference) -> list[Table]:
    """A line for each split that changed, and the suites that came, went, or are missing."""
    out = table(
        ["suite", "split"], ["added", "removed", "changed", "answers only", "unchanged"], "changes"
    )
    for c in found.splits:
        if c.added or c.removed or c.changed:
            numbers = (c.added, c.removed, c.changed, c.answers_only, c.unchanged)
            row(out, c.suite, c.split, *map(number, numbers))
    named = table(["suites", " "], [])
    for what in ("added", "dropped", "changed"):
        if getattr(found, what):
            row(named, what, ", ".join(getattr(found, what)))
    for one in found.missing:
        row(named, "missing", f"{one['suite']}: {one['reason']}")
    return [t for t in (out, named) if t.row_count]


def table(texts: Sequence[str], numbers: Sequence[str], title: str | None = None) -> Table:
    """An empty table: texts fold, numbers stay whole."""
    from rich.table import Table
    from rich.text import Text

    named = None if title is None else Text(title, "table.title")
    out = Table(box=None, padding=(0, 2, 0, 0), title=named, title_justify="left")
    for name in texts:
        out.add_column(name, overflow="fold")
    for name in numbers:
        out.add_column(name, justify="right", no_wrap=True)
    return out


def row(into: Table, *cells: str) -> None:
    """Add a row of plain text: in a string, a benchmark's own "[/b]" or ":smile:" would be markup."""
    from rich.text import Text

    into.add_row(*map(Text, cells))


def number(n: int) -> str:
    return f"{n:,}" if n else "-"


def span(found: Spread | None) -> str:
    """'4' where all are alike, else '1/4/5'."""
    if found is None:
        return "-"
    values = (found.min, found.median, found.max)
    return str(found.min) if found.min == found.max else "/".join(map(str, values))


def short(text: str, most: int = 60) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 3] + "..."
