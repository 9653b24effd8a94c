"""Items to an index: distinct questions, their n-grams and weights, as memory-mapped arrays.

In: a table of items (`records.item_schema`). Out: a folder

    INDEX/  header.json   *.npy, one for each array of `kernels.IndexArrays`   items.arrow

that all workers map. The same items in another order give the same bytes.
"""

from __future__ import annotations

import json
import math
import pathlib
import shutil
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from unseen import __version__, kernels, records, tokens, verdict
from unseen.errors import BadIndex, BadInput, BadSetting

FORMAT = 1
MAX_POSTINGS = 128  # questions an n-gram may stand in and still be a seed for all of them
MIN_SEEDS = 4  # n-grams that every question may use as seeds, however common they are
TEMPLATE_SHARE = 0.5  # n-grams in this share of a suite's questions are its template
TEMPLATE_QUESTIONS = 10  # a suite with fewer distinct questions has no template
MAX_WEIGHT = 8.0  # nats: no single token tells more
# Pseudo-counts for token weights: a reference set of one item knows nothing about word frequency, so
# each token starts as frequent as tokens of its length are in ordinary text.
PRIOR_QUESTIONS = 2000
PRIOR_BY_LENGTH = (0.1, 0.1, 0.08, 0.03, 0.01, 0.005, 0.003, 0.002, 0.0015, 0.001)
STATUSES = ("indexed", "with answer", "not checkable", "too short", "empty")

Floats = npt.NDArray[np.float32]
Longs = npt.NDArray[np.int64]


class CompiledIndex:
    """An open index, without the scan (`scan.Index` adds it). It is read-only and may be shared."""

    def __init__(
        self,
        arrays: kernels.IndexArrays,
        items: pa.Table,
        header: Mapping[str, Any],
        path: pathlib.Path | None = None,
    ) -> None:
        self.arrays = from_flat([tokens.frozen(array) for _, array in flat(arrays)])
        self.items = items
        self.header = dict(header)
        self.path = path

    @classmethod
    def open(cls, path: str | pathlib.Path) -> Self:
        """Map an index folder; takes milliseconds.

        Raises BadIndex when it is missing, incomplete, or made by another format or tokenizer.
        """
        folder = pathlib.Path(path)
        header = read_header(folder)
        arrays = []
        for name, (dtype, length) in header["arrays"].items():
            try:
                array = np.load(folder / f"{name}.npy", mmap_mode="r")
            except (OSError, ValueError) as error:
                raise BadIndex(f"{folder / name}.npy cannot be read: {error}", REBUILD) from error
            if str(array.dtype) != dtype or len(array) != length:
                raise BadIndex(f"{folder / name}.npy has not the size that the header says", REBUILD)
            arrays.append(np.asarray(array))
        try:
            with pa.memory_map(str(folder / "items.arrow")) as source:
                items = pa.ipc.open_file(source).read_all()
        except (OSError, pa.ArrowInvalid) as error:
            raise BadIndex(f"{folder}/items.arrow cannot be read: {error}", REBUILD) from error
        return cls(from_flat(arrays), items, header, folder.resolve())

    @classmethod
    def build(cls, items: pa.Table | Iterable[Mapping[str, Any]], *, allow_empty: bool = False) -> Self:
        """Compile items (a table with `records.item_schema`, or dicts with its fields) in memory.

        Raises BadInput when two different items share suite, split and id, and, unless `allow_empty`,
        when a suite ends with nothing to match.
        """
        table = items if isinstance(items, pa.Table) else table_of(items)
        table, duplicates = in_order(table)
        arrays, status, facts = compile_items(table)
        table = table.append_column("status", pa.array(status, pa.int8()))
        counts = count_items(table, arrays, duplicates)
        if not allow_empty:
            refuse_empty(counts)
        header = {
            "format": FORMAT,
            "unseen": __version__,
            "tokenizer": tokens.tokenizer_hash(),
            "settings": settings(),
            "content": content_hash(arrays, table),
            "counts": {"items": len(table), **facts},
            "suites": counts,
            "arrays": {n: [str(a.dtype), len(a)] for n, a in flat(arrays)},
        }
        return cls(arrays, table, header)

    def save(self, path: str | pathlib.Path, *, overwrite: bool = False) -> None:
        """Write the folder; it appears whole or not at all. BadSetting when it is already there."""
        folder = pathlib.Path(path)
        if folder.exists() and not (overwrite and (folder / "header.json").exists()):
            raise BadSetting(f"{folder} is already there", "name another folder, or pass --overwrite")
        partial = folder.with_name(f".{folder.name}.tmp")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        for name, array in flat(self.arrays):
            np.save(partial / f"{name}.npy", array)
        with (
            pa.OSFile(str(partial / "items.arrow"), "wb") as sink,
            pa.ipc.new_file(sink, self.items.schema) as writer,
        ):
            writer.write_table(self.items.combine_chunks())
        (partial / "header.json").write_text(json.dumps(self.header, indent=1) + "\n")
        if folder.exists():
            shutil.rmtree(folder)
        partial.rename(folder)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as its path, when it has one: workers map it again."""
        if self.path is not None:
            return type(self).open, (self.path,)
        return type(self), (self.arrays, self.items, self.header)

    @property
    def content_hash(self) -> str:
        """xxh3-128 over all arrays and items: equal hashes mean equal results."""
        return str(self.header["content"])

    def find_item(self, name: str) -> int:
        """Row of the item called SUITE/SPLIT/ITEM (suites and items may hold slashes themselves)."""
        joined = pc.binary_join_element_wise(
            self.items["suite"], self.items["split"], self.items["item"], "/"
        )
        row = pc.index(joined, name).as_py()
        if row < 0:
            close = pc.filter(joined, pc.match_substring(joined, name.rsplit("/", 1)[-1]))[:3]
            hint = "names look like " + ", ".join(close.to_pylist() or joined[:3].to_pylist())
            raise BadSetting(f"no item is called {name!r}", hint)
        return int(row)


REBUILD = "build it again with `unseen index`"


def read_header(folder: pathlib.Path) -> dict[str, Any]:
    """The header of an index folder, checked against this version. Raises BadIndex."""
    try:
        header = json.loads((folder / "header.json").read_text())
    except (OSError, ValueError) as error:
        raise BadIndex(
            f"{folder} is not an index: header.json cannot be read ({error})", REBUILD
        ) from error
    if header.get("format") != FORMAT:
        raise BadIndex(
            f"{folder} has index format {header.get('format')}, this version reads {FORMAT}", REBUILD
        )
    if header.get("tokenizer") != tokens.tokenizer_hash():
        raise BadIndex(
            f"{folder} was built with tokenizer {header.get('tokenizer')}, "
            f"this version has {tokens.tokenizer_hash()}",
            REBUILD,
        )
    if list(header["arrays"]) != array_names():
        raise BadIndex(f"{folder} lacks arrays that this version needs", REBUILD)
    return dict(header)


PARTS: tuple[Any, ...] = (kernels.Grams, kernels.Questions, kernels.Answers, kernels.Passages)


def array_names() -> list[str]:
    """Names of the array files, in the order of `kernels.IndexArrays`."""
    names = kernels.IndexArrays._fields
    return [f"{n}.{f}" for n, part in zip(names, PARTS, strict=True) for f in part._fields]


def flat(arrays: kernels.IndexArrays) -> list[tuple[str, npt.NDArray[Any]]]:
    """All arrays with their names."""
    return list(zip(array_names(), [array for part in arrays for array in part], strict=True))


def from_flat(arrays: list[npt.NDArray[Any]]) -> kernels.IndexArrays:
    """The inverse of `flat`, without the names."""
    left = iter(arrays)
    parts: list[Any] = [part(*(next(left) for _ in part._fields)) for part in PARTS]
    return kernels.IndexArrays(*parts)


def settings() -> dict[str, Any]:
    """What was decided at build time; stored in the header."""
    return {
        "ngram": kernels.N,
        "max_postings": MAX_POSTINGS,
        "min_seeds": MIN_SEEDS,
        "template_share": TEMPLATE_SHARE,
        "max_question_tokens": kernels.MAX_QUESTION,
        "max_weight": MAX_WEIGHT,
        "prior_questions": PRIOR_QUESTIONS,
    }


def table_of(items: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Dicts with the fields of `records.ITEM_FIELDS` as a table; missing fields are null."""
    rows = [{name: item.get(name) for name in records.ITEM_FIELDS} for item in items]
    for number, row in enumerate(rows):
        lacking = [name for name in ("suite", "split", "item") if row[name] is None]
        if lacking:
            raise BadInput(
                f"item {number} has no {lacking[0]}", "each item needs suite, split, item and question"
            )
    try:
        return pa.Table.from_pylist(rows, schema=records.item_schema())
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError) as error:
        raise BadInput(
            f"an item has a field of the wrong type: {error}", "texts are str, answers a list of str"
        ) from error


def in_order(table: pa.Table) -> tuple[pa.Table, dict[tuple[str, str], int]]:
    """Items by suite, split and id, so that the input's order does not matter.

    Returns the table without exact repeats, and how many were dropped per suite and split.
    """
    keys = ["suite", "split", "item"]
    order = pc.sort_indices(
        table.append_column("_natural", _padded(table["item"])),
        sort_keys=[(name, "ascending") for name in ("suite", "split", "_natural", "item")],
    )
    table = table.take(order).combine_chunks()
    columns = [table[k].to_pylist() for k in keys]
    names = list(zip(*columns, strict=True))
    keep = np.ones(len(names), bool)
    dropped: dict[tuple[str, str], int] = {}
    for i in range(1, len(names)):
        if names[i] != names[i - 1]:
            continue
        if table.slice(i, 1).to_pylist() != table.slice(i - 1, 1).to_pylist():
            raise BadInput(
                f"two different items are called {'/'.join(names[i])}",
                "give each item of a suite and split its own id",
            )
        keep[i] = False
        dropped[names[i][:2]] = dropped.get(names[i][:2], 0) + 1
    return table.filter(pa.array(keep)), dropped


def _padded(ids: pa.ChunkedArray) -> pa.ChunkedArray:
    """Ids such that numbers sort by value: '7' before '10'."""
    number = pc.match_substring_regex(ids, r"^[0-9]{1,15}$")
    return pc.if_else(number, pc.utf8_lpad(ids, 16, "0"), ids)


class Questions(NamedTuple):
    """Distinct questions: items whose question has the same tokens share one."""

    of_item: Longs  # question of each item, -1 without tokens
    token: npt.NDArray[np.uint32]
    length: npt.NDArray[np.uint8]
    ptr: Longs


def distinct_runs(found: tokens.Tokens) -> Questions:
    """Runs of tokens, each once, in order of first appearance; empty runs have number -1."""
    hashes = np.zeros(len(found.ptr) - 1, np.uint64)
    kernels.hash_runs(found.token, found.ptr, hashes)
    sizes = np.diff(found.ptr)
    filled = np.flatnonzero(sizes > 0)
    _, first, inverse = np.unique(hashes[filled], return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    of_item = np.full(len(sizes), -1, np.int64)
    of_item[filled] = rank[inverse]
    chosen = filled[np.sort(first)]
    take = ranges(found.ptr[chosen], sizes[chosen])
    return Questions(of_item, found.token[take], found.length[take], pointers(sizes[chosen]))


def ranges(starts: Longs, sizes: Longs) -> Longs:
    """Concatenated arange(start, start + size)."""
    if len(starts) == 0:
        return np.zeros(0, np.int64)
    shifts = np.repeat(starts - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes)
    return np.arange(int(sizes.sum()), dtype=np.int64) + shifts


def pointers(sizes: Longs) -> Longs:
    """Where each run starts, and the end."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def compile_items(table: pa.Table) -> tuple[kernels.IndexArrays, npt.NDArray[np.int8], dict[str, int]]:
    """The arrays of an index, the status of each item, and counts. `table` is in order."""
    questions = distinct_runs(tokens.tokenize(table["question"].to_pylist(), most=kernels.MAX_QUESTION))
    answers, option_ptr, correct = answers_of(table)
    passages = distinct_runs(tokens.tokenize(table["passage"].to_pylist()))

    language = language_codes(table)
    asked = np.flatnonzero(questions.of_item >= 0)
    question_language = np.zeros(len(questions.ptr) - 1, np.int64)
    question_language[questions.of_item[asked][::-1]] = language[asked][::-1]
    frequency = TokenFrequency(questions, question_language, int(language.max(initial=0)) + 1)
    weight = frequency.weights(
        questions.token, questions.length, np.repeat(question_language, np.diff(questions.ptr))
    )
    grams = first_grams(questions.token, questions.ptr, kernels.N)
    gram_weight = idf(
        first_grams(questions.token, questions.ptr, kernels.QUESTION_N), len(questions.ptr) - 1
    )
    weight[template_tokens(table["suite"], questions, grams)] = 0
    q_weight = signed(weight, questions.token, questions.ptr)
    answer_language = np.repeat(np.repeat(language, np.diff(option_ptr)), np.diff(answers.ptr))
    a_weight = signed(
        frequency.weights(answers.token, answers.length, answer_language), answers.token, answers.ptr
    )
    found = postings(grams, questions.ptr)
    owner_ptr, owner = owners(questions.of_item, len(questions.ptr) - 1)

    arrays = kernels.IndexArrays(
        kernels.Grams(
            bloom(found.key), buckets(found.key), found.key, found.ptr, found.question, found.position
        ),
        kernels.Questions(
            ptr=questions.ptr,
            token=questions.token,
            weight=q_weight,
            gram_weight=gram_weight,
            total=sums(np.abs(q_weight), questions.ptr),
            seeds=found.seeds,
            owner_ptr=owner_ptr,
            owner=owner,
        ),
        kernels.Answers(
            of_item=option_ptr,
            correct=correct,
            ptr=answers.ptr,
            token=answers.token,
            weight=a_weight,
            gram_weight=idf(first_grams(answers.token, answers.ptr, 3), len(answers.ptr) - 1),
        ),
        kernels.Passages(
            of_item=passages.of_item.astype(np.int32),
            ptr=passages.ptr,
            token=passages.token,
            gram_weight=idf(first_grams(passages.token, passages.ptr, 4), len(passages.ptr) - 1),
        ),
    )
    arrays = from_flat([tokens.frozen(np.ascontiguousarray(a)) for _, a in flat(arrays)])
    facts = {
        "questions": len(questions.ptr) - 1,
        "ngrams": len(found.key),
        "postings": len(found.question),
    }
    return arrays, item_status(arrays, questions), facts


# Scripts that name a language well enough to count its words apart, where an item names none.
SCRIPTS = {
    "ja": "[\u3040-\u30ff]", "zh": "[\u3400-\u9fff]", "ko": "[\uac00-\ud7af]", "ru": "[\u0400-\u04ff]",
    "ar": "[\u0600-\u06ff]", "el": "[\u0391-\u03c9]{3}", "hi": "[\u0900-\u097f]",
    "bn": "[\u0980-\u09ff]", "ta": "[\u0b80-\u0bff]", "te": "[\u0c00-\u0c7f]",
    "th": "[\u0e00-\u0e7f]", "he": "[\u0590-\u05ff]",
}  # fmt: skip


def language_codes(table: pa.Table) -> npt.NDArray[np.int64]:
    """A small number for the language of each item: as given, else by script, else one for the rest."""
    names = table["language"]
    for language, pattern in SCRIPTS.items():
        written = pc.fill_null(pc.match_substring_regex(table["question"], pattern), False)
        names = pc.if_else(pc.and_(pc.is_null(names), written), language, names)
    coded = names.combine_chunks().fill_null("").dictionary_encode()
    return coded.indices.to_numpy().astype(np.int64)


def answers_of(table: pa.Table) -> tuple[tokens.Tokens, Longs, npt.NDArray[np.uint8]]:
    """Tokens of every answer, the first answer of each item, and which are right."""
    texts: list[str | None] = []
    correct: list[bool] = []
    sizes = []
    for answers, marks in zip(table["answers"].to_pylist(), table["correct"].to_pylist(), strict=True):
        given = answers or []
        texts += given
        correct += [bool(m) for m in (marks or [])][: len(given)]
        correct += [False] * (len(texts) - len(correct))
        sizes.append(len(given))
    found = tokens.tokenize(texts, most=kernels.OVERLAP // 2)
    return found, pointers(np.array(sizes, np.int64)), np.array(correct, np.uint8)


class TokenFrequency:
    """How many distinct questions hold each token, in all and in each language."""

    def __init__(self, questions: Questions, language: npt.NDArray[np.int64], languages: int) -> None:
        """`language`: a code for each question, below `languages`."""
        first = ~repeats(questions.token.astype(np.uint64), questions.ptr)
        spoken = np.repeat(language, np.diff(questions.ptr))[first].astype(np.uint64)
        token = questions.token[first].astype(np.uint64)
        self.questions = np.bincount(language, minlength=languages)
        self.all = np.unique(token, return_counts=True)
        self.each = np.unique(spoken << np.uint64(32) | token, return_counts=True)

    def weights(
        self,
        token: npt.NDArray[np.uint32],
        length: npt.NDArray[np.uint8],
        language: npt.NDArray[np.int64],
    ) -> Floats:
        """Nats: ln((N + K + 1) / (df + K p)), p the frequency that tokens of this length have in text.

        N distinct questions, df those that hold the token, K = PRIOR_QUESTIONS pseudo-questions. The
        lesser of two values: over all questions, and over those of the token's own language, since a
        common word of a language with few items is rare among all.
        """
        plain = token.astype(np.uint64)
        spoken = language.astype(np.uint64) << np.uint64(32) | plain
        prior = (
            np.array(PRIOR_BY_LENGTH)[np.minimum(length, len(PRIOR_BY_LENGTH) - 1)] * PRIOR_QUESTIONS
        )
        everywhere = self.questions.sum() + PRIOR_QUESTIONS + 1
        here = self.questions[language] + PRIOR_QUESTIONS + 1
        ratio = np.minimum(
            everywhere / (count_of(plain, *self.all) + prior),
            here / (count_of(spoken, *self.each) + prior),
        )
        return np.clip(np.log(ratio), 0.05, MAX_WEIGHT).astype(np.float32)


def count_of(
    values: npt.NDArray[np.uint64], known: npt.NDArray[np.uint64], counts: Longs
) -> npt.NDArray[np.int64]:
    """The count of each value; 0 for unknown ones. `known` is ascending."""
    if len(known) == 0:
        return np.zeros(len(values), np.int64)
    place = np.searchsorted(known, values).clip(0, len(known) - 1)
    return np.where(known[place] == values, counts[place], 0)


def repeats(values: npt.NDArray[np.uint64], ptr: Longs) -> npt.NDArray[np.bool_]:
    """True where a value occurred before in its own run."""
    longest = int(np.diff(ptr).max(initial=1))
    table = np.zeros(max(32, 1 << math.ceil(math.log2(2 * longest + 1))), np.uint64)
    out = np.zeros(len(values), np.uint8)
    kernels.mark_repeats(values, ptr, table, out)
    return out.astype(bool)


def signed(weight: Floats, token: npt.NDArray[np.uint32], ptr: Longs) -> Floats:
    """Weights, negative where the token occurred before in its run."""
    return np.where(repeats(token.astype(np.uint64), ptr), -weight, weight).astype(np.float32)


def first_grams(token: npt.NDArray[np.uint32], ptr: Longs, size: int) -> npt.NDArray[np.uint64]:
    """n-gram hash at each token; 0 where there is none, or where it occurred before in its run."""
    grams = np.zeros(len(token), np.uint64)
    kernels.hash_many(token, ptr, size, grams)
    grams[repeats(grams, ptr)] = 0
    return grams


def idf(grams: npt.NDArray[np.uint64], runs: int) -> Floats:
    """ln((N + 1) / df) of each n-gram, N runs, df those that hold it; 0 where there is none."""
    out = np.zeros(len(grams), np.float32)
    filled = grams != 0
    _, inverse, df = np.unique(grams[filled], return_inverse=True, return_counts=True)
    out[filled] = np.log((runs + 1) / df)[inverse]
    return out


def template_tokens(
    suite: pa.ChunkedArray, questions: Questions, grams: npt.NDArray[np.uint64]
) -> npt.NDArray[np.bool_]:
    """Tokens inside n-grams that most questions of a suite share: they say nothing about an item."""
    out = np.zeros(len(questions.token), bool)
    names = suite.combine_chunks().dictionary_encode()
    of_suite = names.indices.to_numpy()
    for s in range(len(names.dictionary)):
        mine = np.unique(questions.of_item[of_suite == s])
        mine = mine[mine >= 0]
        if len(mine) < TEMPLATE_QUESTIONS:
            continue
        places = ranges(questions.ptr[mine], questions.ptr[mine + 1] - questions.ptr[mine])
        values, inverse, count = np.unique(grams[places], return_inverse=True, return_counts=True)
        shared = (count[inverse] >= TEMPLATE_SHARE * len(mine)) & (values[inverse] != 0)
        for offset in range(kernels.N):
            out[places[shared] + offset] = True
    return out


class Postings(NamedTuple):
    key: npt.NDArray[np.uint64]
    ptr: Longs
    question: npt.NDArray[np.uint32]
    position: npt.NDArray[np.uint16]
    seeds: npt.NDArray[np.uint16]


def postings(grams: npt.NDArray[np.uint64], ptr: Longs) -> Postings:
    """Where each n-gram stands. Common ones are left out, but no question loses its rarest."""
    place = np.flatnonzero(grams)
    question = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))[place]
    _, inverse, df = np.unique(grams[place], return_inverse=True, return_counts=True)
    df = df[inverse]
    used = df <= MAX_POSTINGS
    rare_first = np.lexsort((place, df, question))
    in_question = np.arange(len(place)) - np.searchsorted(question, question[rare_first])
    used[rare_first[in_question < MIN_SEEDS]] = True
    place, question = place[used], question[used]
    order = np.argsort(grams[place], kind="stable")
    keys, first = np.unique(grams[place][order], return_index=True)
    return Postings(
        keys,
        np.concatenate([first, [len(order)]]).astype(np.int64),
        question[order].astype(np.uint32),
        (place - ptr[question])[order].astype(np.uint16),
        np.bincount(question, minlength=len(ptr) - 1).astype(np.uint16),
    )


def bloom(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The filter: 12 to 24 bits a key, a power of two of words."""
    words = np.zeros(1 << max(6, math.ceil(math.log2(max(len(keys), 1) * 12 / 64))), np.uint64)
    kernels.fill_filter(keys, words)
    return words


def buckets(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint32]:
    """First key of each value of the top bits, one to two keys a bucket."""
    bits = max(4, math.ceil(math.log2(max(len(keys), 1))) - 1)
    bounds = np.arange(1 << bits, dtype=np.uint64) << np.uint64(64 - bits)
    return np.concatenate([np.searchsorted(keys, bounds), [len(keys)]]).astype(np.uint32)


def owners(of_item: Longs, questions: int) -> tuple[Longs, npt.NDArray[np.uint32]]:
    """Items that ask each question."""
    asked = np.flatnonzero(of_item >= 0)
    order = asked[np.argsort(of_item[asked], kind="stable")]
    return pointers(np.bincount(of_item[asked], minlength=questions)), order.astype(np.uint32)


def sums(values: Floats, ptr: Longs) -> Floats:
    """Sum of each run."""
    total = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
    return (total[ptr[1:]] - total[ptr[:-1]]).astype(np.float32)


def item_status(arrays: kernels.IndexArrays, questions: Questions) -> npt.NDArray[np.int8]:
    """What the default policy can say of each item: an index into STATUSES."""
    information = sums(np.maximum(arrays.questions.weight, 0), arrays.questions.ptr)
    answer = sums(np.maximum(arrays.answers.weight, 0), arrays.answers.ptr)
    best = np.zeros(len(questions.of_item), np.float32)
    item_of_answer = np.repeat(np.arange(len(best)), np.diff(arrays.answers.of_item))
    np.maximum.at(best, item_of_answer, answer)
    q = questions.of_item
    size = (
        np.where(q >= 0, np.diff(arrays.questions.ptr)[q], 0)
        if len(arrays.questions.ptr) > 1
        else np.zeros(len(q))
    )
    told = np.where(q >= 0, information[q], 0) if len(information) else np.zeros(len(q))
    status = np.full(len(q), STATUSES.index("indexed"), np.int8)
    status[told < verdict.MIN_COPY_INFORMATION] = STATUSES.index("with answer")
    status[told + best < verdict.MIN_COPY_INFORMATION] = STATUSES.index("not checkable")
    status[size < kernels.N] = STATUSES.index("too short")
    status[size == 0] = STATUSES.index("empty")
    return status


def count_items(
    table: pa.Table, arrays: kernels.IndexArrays, duplicates: Mapping[tuple[str, str], int]
) -> list[dict[str, Any]]:
    """Per suite and split: items, distinct questions, and how many of each status."""
    owner = np.full(len(table), -1, np.int64)
    owner[arrays.questions.owner] = np.repeat(
        np.arange(len(arrays.questions.owner_ptr) - 1), np.diff(arrays.questions.owner_ptr)
    )
    status = table["status"].to_numpy()
    names = list(zip(table["suite"].to_pylist(), table["split"].to_pylist(), strict=True))
    out = []
    first = 0
    while first < len(names):
        last = first
        while last < len(names) and names[last] == names[first]:
            last += 1
        mine = owner[first:last]
        row: dict[str, Any] = {
            "suite": names[first][0],
            "split": names[first][1],
            "items": last - first,
        }
        row["questions"] = len(np.unique(mine[mine >= 0]))
        row["duplicates"] = duplicates.get(names[first], 0)
        for code, name in enumerate(STATUSES):
            row[name] = int((status[first:last] == code).sum())
        out.append(row)
        first = last
    return out


def refuse_empty(counts: list[dict[str, Any]]) -> None:
    """Raise BadInput for suites that would be scanned for nothing: "not audited" is never "clean"."""
    total: dict[str, int] = {}
    for row in counts:
        usable = row["indexed"] + row["with answer"]
        total[row["suite"]] = total.get(row["suite"], 0) + usable
    empty = sorted(suite for suite, usable in total.items() if usable == 0)
    if not total or empty:
        what = f"nothing can be matched of {', '.join(empty)}" if empty else "there are no items"
        raise BadInput(what, "check the reference files, or pass --allow-empty to go on without")


def content_hash(arrays: kernels.IndexArrays, table: pa.Table) -> str:
    """xxh3-128 over the arrays and the items."""
    state = xxhash.xxh3_128()
    for name, array in flat(arrays):
        state.update(name.encode())
        state.update(array.view(np.uint8).data)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    state.update(sink.getvalue())
    return str(state.hexdigest())
