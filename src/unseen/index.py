"""Items to an index: distinct questions, their n-grams and weights, as memory-mapped arrays.

In: a table of items (`records.item_schema`). Out: a folder

    INDEX/  header.json   *.npy, one for each array of `kernels.IndexArrays`   items.arrow

that all workers map. The same items in another order give the same bytes. Texts, tokens and n-grams are
worked on in pieces: beside the arrays of the index, a build needs a few bytes for each question token.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import math
import mmap
import os
import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from unseen import __version__, kernels, records, tokens, verdict
from unseen.errors import BadIndex, BadInput, BadSetting
from unseen.files import new_folder

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
PIECE_TOKENS = 1 << 21  # tokens worked on at a time
PIECE_BYTES = 1 << 24  # bytes of text worked on at a time
GROUP_GRAMS = 1 << 20  # n-grams sorted at a time, about
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
            ask_for_large_pages(array)
            arrays.append(np.asarray(array))
        try:
            with pa.memory_map(str(folder / "items.arrow")) as source:
                items = pa.ipc.open_file(source).read_all()
        except (OSError, pa.ArrowInvalid) as error:
            raise BadIndex(f"{folder}/items.arrow cannot be read: {error}", REBUILD) from error
        return cls(from_flat(arrays), items, header, folder.resolve())

    @classmethod
    def build(
        cls,
        items: pa.Table | Iterable[Mapping[str, Any]],
        *,
        base: CompiledIndex | None = None,
        allow_empty: bool = False,
        missing: Sequence[Mapping[str, Any]] = (),
    ) -> Self:
        """Compile items (a table with `records.item_schema`, or dicts with its fields) in memory.

        With `base`, only items that are not in it, with the same content, are kept; all weights are
        those of the whole set, so a scan finds what it would find with the index of all, of these
        items. `missing`: benchmarks that could not be loaded, for the header.

        Raises BadInput when two different items share suite, split and id, and, unless `allow_empty`,
        when a suite ends with nothing to match; BadSetting when nothing is new.
        """
        if base is not None and "delta" in base.header:
            raise BadSetting(
                f"{base.path or 'the base'} holds only what was new when it was built",
                "name an index of a whole reference set as base",
            )
        table = items if isinstance(items, pa.Table) else table_of(items)
        del items  # a large table exists once, if the caller keeps none
        table, duplicates = in_order(table)
        new, delta = (None, None) if base is None else new_items(table, base)
        arrays, status, facts = compile_items(table, new)
        table = table.append_column("status", pa.array(status, pa.int8()))
        if not allow_empty:
            refuse_empty(table)
        if new is not None:
            table = table.filter(pa.array(new)).combine_chunks()
        header = {
            "format": FORMAT,
            "unseen": __version__,
            "tokenizer": tokens.tokenizer_hash(),
            "settings": settings(),
            "content": content_hash(arrays, table),
            "counts": {"items": len(table), **facts},
            "suites": count_items(table, arrays.questions, duplicates),
            "missing": [dict(benchmark) for benchmark in missing],
            "arrays": {n: [str(a.dtype), len(a)] for n, a in flat(arrays)},
        }
        if delta is not None:
            header["delta"] = delta
        return cls(arrays, table, header)

    def save(self, path: str | pathlib.Path, *, overwrite: bool = False) -> None:
        """Write the folder; it appears whole or not at all. BadSetting when it is already there."""
        own = ("header.json", "items.arrow", "*.npy")
        with new_folder(pathlib.Path(path), own, overwrite=overwrite) as folder:
            for name, array in flat(self.arrays):
                np.save(folder / f"{name}.npy", array)
                if array.nbytes >= LARGE:
                    leave_cache(folder / f"{name}.npy")
            with (
                pa.OSFile(str(folder / "items.arrow"), "wb") as sink,
                pa.ipc.new_file(sink, self.items.schema) as writer,
            ):
                writer.write_table(self.items.combine_chunks())  # one chunk: no copy
            (folder / "header.json").write_text(json.dumps(self.header, indent=1) + "\n")

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


# Every n-gram of a text costs a look at a random place of the index. With a large one that is mapped in
# pages of 4 KB, the processor spends much of a scan on looking for pages.
LARGE = 1 << 22  # bytes of an array


def ask_for_large_pages(array: npt.NDArray[Any]) -> None:
    """Let Linux read a mapped file in pages of 2 MB, if it can; all processes share them, as ever."""
    if array.nbytes >= LARGE and hasattr(mmap, "MADV_HUGEPAGE") and isinstance(array.base, mmap.mmap):
        with contextlib.suppress(OSError):  # a kernel without them
            array.base.madvise(mmap.MADV_HUGEPAGE)


def leave_cache(path: pathlib.Path) -> None:
    """Write a file to disk, and forget its pages: they are small, and would stay so."""
    if hasattr(os, "posix_fadvise"):
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


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
    order = pc.sort_indices(
        table.append_column("_natural", _padded(table["item"])),
        sort_keys=[(name, "ascending") for name in ("suite", "split", "_natural", "item")],
    )
    columns = [column.take(order).combine_chunks() for column in table.columns]
    table = pa.Table.from_arrays(columns, schema=table.schema)
    named = same_as_before(table, ("suite", "split", "item"))
    repeated = np.flatnonzero(named)
    if len(repeated) == 0:
        return table, {}
    same = equal_rows(table, repeated, table, repeated - 1)
    if not same.all():
        (wrong,) = table.slice(int(repeated[~same][0]), 1).to_pylist()
        raise BadInput(
            f"two different items are called {wrong['suite']}/{wrong['split']}/{wrong['item']}",
            "give each item of a suite and split its own id",
        )
    dropped: dict[tuple[str, str], int] = {}
    for row in table.select(["suite", "split"]).take(pa.array(repeated)).to_pylist():
        name = (row["suite"], row["split"])
        dropped[name] = dropped.get(name, 0) + 1
    return table.filter(pa.array(~named)).combine_chunks(), dropped


def same_as_before(table: pa.Table, names: Sequence[str]) -> npt.NDArray[np.bool_]:
    """For each row, whether these columns hold what they hold in the row before."""
    out = np.zeros(len(table), bool)
    if len(table) > 1:
        out[1:] = True
        for name in names:
            column = table[name]
            same = pc.equal(column.slice(1), column.slice(0, len(table) - 1))
            out[1:] &= pc.fill_null(same, False).to_numpy()
    return out


def same_runs(table: pa.Table, names: Sequence[str]) -> list[tuple[int, int]]:
    """First row, and row after the last, of each run of rows alike in these columns."""
    edges = [*np.flatnonzero(~same_as_before(table, names)).tolist(), len(table)]
    return list(itertools.pairwise(edges))


def equal_rows(a: pa.Table, rows_a: Longs, b: pa.Table, rows_b: Longs) -> npt.NDArray[np.bool_]:
    """Whether the items in rows_a of one table and rows_b of another are the same, pair by pair."""
    fields = list(records.ITEM_FIELDS)
    out = np.ones(len(rows_a), bool)
    for k in range(0, len(rows_a), 1 << 14):
        mine = a.select(fields).take(pa.array(rows_a[k : k + (1 << 14)]))
        theirs = b.select(fields).take(pa.array(rows_b[k : k + (1 << 14)]))
        if not mine.equals(theirs):
            pairs = zip(mine.to_pylist(), theirs.to_pylist(), strict=True)
            out[k : k + len(mine)] = [x == y for x, y in pairs]
    return out


def new_items(table: pa.Table, base: CompiledIndex) -> tuple[npt.NDArray[np.bool_], dict[str, Any]]:
    """Which items (in order) an index does not hold with the same content, and the header's "delta".

    Raises BadSetting when it holds all.
    """
    new = np.ones(len(table), bool)
    place = pc.index_in(item_names(table), value_set=item_names(base.items))
    known = np.flatnonzero(place.is_valid().to_numpy(zero_copy_only=False))
    there = place.drop_null().to_numpy().astype(np.int64)
    new[known] = ~equal_rows(table, known, base.items, there)
    if not new.any():
        raise BadSetting(
            f"there is nothing new: the base holds all {len(table)} items",
            "scan with the base, or name a set with more",
        )
    gone = np.ones(len(base.items), bool)
    gone[there] = False
    splits, old_splits = (
        {(t["suite"][a].as_py(), t["split"][a].as_py()) for a, _ in same_runs(t, ("suite", "split"))}
        for t in (table, base.items)
    )
    fresh = set(pc.unique(table["suite"].filter(pa.array(new))).to_pylist())
    lost = base.items.select(["suite", "split"]).filter(pa.array(gone)).group_by(["suite", "split"])
    lost_splits = {(row["suite"], row["split"]) for row in lost.aggregate([]).to_pylist()}
    changed = (fresh & {suite for suite, _ in old_splits}) | {s for s, _ in lost_splits & splits}
    return new, {
        "base": base.content_hash,
        "new": int(new.sum()),
        "changed": sorted(changed),
        "dropped": sorted(f"{suite}/{split}" for suite, split in old_splits - splits),
        "unchanged": int((~new).sum()),
    }


def item_names(table: pa.Table) -> pa.Array:
    """Suite, split and id of each item as one text (large_string)."""
    parts = [table[name].cast(pa.large_string()) for name in ("suite", "split", "item")]
    names = pc.binary_join_element_wise(*parts, pa.scalar("\0", pa.large_string()))
    return names.combine_chunks() if isinstance(names, pa.ChunkedArray) else names


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


def tokenize_column(texts: pa.ChunkedArray, *, most: int = 1 << 40) -> tokens.Tokens:
    """Token hashes of each text, at most `most` of each; a null is an empty text."""
    scratch, parts, sizes = kernels.make_scratch(), [], [np.zeros(1, np.int64)]
    for chunk in texts.cast(pa.large_string()).chunks:
        offsets = np.frombuffer(chunk.buffers()[1] or bytes(8), np.int64)
        offsets = offsets[chunk.offset : chunk.offset + len(chunk) + 1]
        for first, last in pieces(offsets, PIECE_BYTES):
            piece = chunk.slice(first, last - first)
            packed = packed_texts(piece.fill_null("") if piece.null_count else piece)
            room = 2 * int(packed.offsets[-1]) + 64
            token, length = np.empty(room, np.uint32), np.empty(room, np.uint8)
            ptr = np.zeros(len(packed.offsets), np.int64)
            count = kernels.tokenize_many(
                packed.data, packed.offsets, tokens.codepoints(), scratch.segment, most, token, length,
                ptr,
            )  # fmt: skip
            parts.append((token[:count].copy(), length[:count].copy()))
            sizes.append(np.diff(ptr))
    return tokens.Tokens(
        np.concatenate([token for token, _ in parts] or [np.zeros(0, np.uint32)]),
        np.concatenate([length for _, length in parts] or [np.zeros(0, np.uint8)]),
        np.cumsum(np.concatenate(sizes)),
    )


def packed_texts(texts: pa.Array) -> tokens.Texts:
    """Texts (large_string without nulls) as the kernels read them."""
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    raw = np.frombuffer(data or b"", np.uint8)[ends[0] : ends[-1]]
    data_and_room = np.concatenate([raw, np.zeros(64, np.uint8)])
    tokens.frozen(data_and_room)
    return tokens.Texts(data_and_room, ends - ends[0])


def pieces(ptr: Longs, most: int) -> Iterator[tuple[int, int]]:
    """Consecutive runs, as (first, after the last), that hold `most` at most, or one run that has more.

    ptr int64[runs + 1]: where each run starts.
    """
    first = 0
    while first < len(ptr) - 1:
        last = int(np.searchsorted(ptr, ptr[first] + most, "right")) - 1
        last = min(max(last, first + 1), len(ptr) - 1)
        yield first, last
        first = last


def distinct_runs(found: tokens.Tokens) -> Questions:
    """Runs of tokens, each once, in order of first appearance; empty runs have number -1.

    The tokens found are used up.
    """
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
    kept = kernels.keep_runs(found.token, found.length, found.ptr, chosen)
    found.token.resize(kept, refcheck=False)
    found.length.resize(kept, refcheck=False)
    return Questions(of_item, found.token, found.length, pointers(sizes[chosen]))


def ranges(starts: Longs, sizes: Longs) -> Longs:
    """Concatenated arange(start, start + size)."""
    if len(starts) == 0:
        return np.zeros(0, np.int64)
    shifts = np.repeat(starts - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes)
    return np.arange(int(sizes.sum()), dtype=np.int64) + shifts


def pointers(sizes: Longs) -> Longs:
    """Where each run starts, and the end."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def compile_items(
    table: pa.Table, new: npt.NDArray[np.bool_] | None = None
) -> tuple[kernels.IndexArrays, npt.NDArray[np.int8], dict[str, int]]:
    """The arrays of an index, the status of each item, and counts. `table` is in order.

    With `new`, bool[items], the arrays hold these items only; all are weighed, and have a status.
    """
    answers, option_ptr, correct = answers_of(table)
    answer_idf = idf(first_grams(answers.token, answers.ptr, kernels.ANSWER_N), len(answers.ptr) - 1)
    passages = distinct_runs(tokenize_column(table["passage"]))
    passage_grams = first_grams(passages.token, passages.ptr, kernels.PASSAGE_N)
    passage_idf = idf(passage_grams, len(passages.ptr) - 1)
    del passage_grams
    questions = distinct_runs(tokenize_column(table["question"], most=kernels.MAX_QUESTION))
    count = len(questions.ptr) - 1
    gram_weight = idf(first_grams(questions.token, questions.ptr, kernels.QUESTION_N), count)

    owner_ptr, owner = owners(questions.of_item, count)
    kept = np.zeros(count, bool)
    asked = questions.of_item if new is None else questions.of_item[new]
    kept[asked[asked >= 0]] = True
    grams = first_grams(questions.token, questions.ptr, kernels.N)
    frequency = frequency_of(grams)
    template = template_tokens(table, questions, grams, frequency)
    found = postings(grams, questions.ptr, frequency, kept)
    del grams, frequency

    language = language_codes(table)
    asked = np.flatnonzero(questions.of_item >= 0)
    question_language = np.zeros(count, np.int64)
    question_language[questions.of_item[asked][::-1]] = language[asked][::-1]
    known = TokenFrequency(questions, question_language, int(language.max(initial=0)) + 1)
    q_weight = known.signed_weights(questions, question_language, template)
    a_weight = known.signed_weights(answers, np.repeat(language, np.diff(option_ptr)))

    arrays = kernels.IndexArrays(
        kernels.Grams(
            bloom(found.key), buckets(found.key), found.key, found.ptr, found.question, found.position
        ),
        kernels.Questions(
            ptr=questions.ptr,
            token=questions.token,
            weight=q_weight,
            gram_weight=gram_weight,
            total=sums(q_weight, questions.ptr, np.abs),
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
            gram_weight=answer_idf,
        ),
        kernels.Passages(
            of_item=passages.of_item.astype(np.int32),
            ptr=passages.ptr,
            token=passages.token,
            gram_weight=passage_idf,
        ),
    )
    status = item_status(arrays, questions.of_item, table["split"])
    if new is not None:
        arrays = arrays_of(arrays, new, kept)
    arrays = from_flat([tokens.frozen(np.ascontiguousarray(a)) for _, a in flat(arrays)])
    facts = {
        "questions": len(arrays.questions.ptr) - 1,
        "ngrams": len(found.key),
        "postings": len(found.question),
    }
    return arrays, status, facts


def arrays_of(
    arrays: kernels.IndexArrays, new: npt.NDArray[np.bool_], kept: npt.NDArray[np.bool_]
) -> kernels.IndexArrays:
    """The arrays for some of the items: new bool[items]; kept bool[questions]: those that they ask.

    The postings lead to kept questions already, by their old numbers.
    """
    grams, questions, answers, passages = arrays
    item_number, question_number = np.cumsum(new) - 1, np.cumsum(kept) - 1
    asks = np.repeat(np.arange(len(kept)), np.diff(questions.owner_ptr))
    mine = new[questions.owner]
    q_ptr, q = chosen_runs(questions.ptr, np.flatnonzero(kept))
    option_ptr, option = chosen_runs(answers.of_item, np.flatnonzero(new))
    a_ptr, a = chosen_runs(answers.ptr, option)
    of_item = passages.of_item[new]
    with_passage = np.unique(of_item[of_item >= 0])
    p_ptr, p = chosen_runs(passages.ptr, with_passage)
    passage = np.searchsorted(with_passage, of_item).astype(np.int32)
    return kernels.IndexArrays(
        grams._replace(question=question_number[grams.question].astype(np.uint32)),
        kernels.Questions(
            ptr=q_ptr,
            token=questions.token[q],
            weight=questions.weight[q],
            gram_weight=questions.gram_weight[q],
            total=questions.total[kept],
            seeds=questions.seeds[kept],
            owner_ptr=pointers(np.bincount(asks[mine], minlength=len(kept))[kept]),
            owner=item_number[questions.owner[mine]].astype(np.uint32),
        ),
        kernels.Answers(
            of_item=option_ptr,
            correct=answers.correct[option],
            ptr=a_ptr,
            token=answers.token[a],
            weight=answers.weight[a],
            gram_weight=answers.gram_weight[a],
        ),
        kernels.Passages(
            of_item=np.where(of_item >= 0, passage, np.int32(-1)),
            ptr=p_ptr,
            token=passages.token[p],
            gram_weight=passages.gram_weight[p],
        ),
    )


def chosen_runs(ptr: Longs, chosen: Longs) -> tuple[Longs, Longs]:
    """Where the chosen runs start when they stand back to back, and the places of what they hold."""
    sizes = ptr[chosen + 1] - ptr[chosen]
    return pointers(sizes), ranges(ptr[chosen], sizes)


# Scripts that name a language well enough to count its words apart, where an item names none.
SCRIPTS = {
    "ja": "[\u3040-\u30ff]", "zh": "[\u3400-\u9fff]", "ko": "[\uac00-\ud7af]", "ru": "[\u0400-\u04ff]",
    "ar": "[\u0600-\u06ff]", "el": "[\u0391-\u03c9]{3}", "hi": "[\u0900-\u097f]",
    "bn": "[\u0980-\u09ff]", "ta": "[\u0b80-\u0bff]", "te": "[\u0c00-\u0c7f]",
    "th": "[\u0e00-\u0e7f]", "he": "[\u0590-\u05ff]",
}  # fmt: skip


def language_codes(table: pa.Table) -> npt.NDArray[np.int64]:
    """A small number for the language of each item: as given, else by script, else one for the rest."""
    names = table["language"].cast(pa.string()).combine_chunks()
    foreign = pc.invert(pc.fill_null(pc.string_is_ascii(table["question"]), True))
    unnamed = pc.and_(pc.is_null(names), foreign).combine_chunks()
    written = table["question"].filter(unnamed)
    guessed = pa.nulls(len(written), pa.string())
    for language, pattern in SCRIPTS.items():
        in_script = pc.match_substring_regex(written, pattern)
        guessed = pc.if_else(pc.and_(pc.is_null(guessed), in_script), language, guessed)
    if len(written):
        if isinstance(guessed, pa.ChunkedArray):
            guessed = guessed.combine_chunks()
        names = pc.replace_with_mask(names, unnamed, guessed)
    coded = names.fill_null("").dictionary_encode()
    return coded.indices.to_numpy().astype(np.int64)


def answers_of(table: pa.Table) -> tuple[tokens.Tokens, Longs, npt.NDArray[np.uint8]]:
    """Tokens of every answer, the first answer of each item, and which are right."""
    texts = table["answers"].combine_chunks().flatten()
    marks = table["correct"].combine_chunks().flatten()
    sizes, marked = (
        pc.fill_null(pc.list_value_length(table[name]), 0).to_numpy().astype(np.int64)
        for name in ("answers", "correct")
    )
    right = pc.fill_null(marks.cast(pa.bool_()), False).to_numpy(zero_copy_only=False)
    if not np.array_equal(sizes, marked):  # marks that are lacking mean wrong
        paired = np.minimum(sizes, marked)
        out = np.zeros(int(sizes.sum()), bool)
        out[ranges(pointers(sizes)[:-1], paired)] = right[ranges(pointers(marked)[:-1], paired)]
        right = out
    found = tokenize_column(pa.chunked_array([texts]), most=kernels.OVERLAP // 2)
    return found, pointers(sizes), right.astype(np.uint8)


class TokenFrequency:
    """How many distinct questions hold each token, in all and in each language."""

    def __init__(self, questions: Questions, language: npt.NDArray[np.int64], languages: int) -> None:
        """`language`: a code for each question, below `languages`."""
        found = Counts(np.zeros(0, np.uint64), np.zeros(0, np.int64))
        waiting: list[Counts] = []
        for first, last in pieces(questions.ptr, PIECE_TOKENS):
            ptr, token, spoken = piece_of(questions, language, first, last)
            fresh = ~repeats(token.astype(np.uint64), ptr)
            waiting.append(Counts(*np.unique(in_language(token, spoken)[fresh], return_counts=True)))
            if sum(len(counts.key) for counts in waiting) > 8 * PIECE_TOKENS:
                found, waiting = added([found, *waiting]), []
        self.questions = np.bincount(language, minlength=languages)
        self.each = added([found, *waiting])
        everywhere = self.each.key >> np.uint64(32) << np.uint64(32)
        self.all = added([Counts(everywhere, self.each.times)])
        self.each_bucket, self.all_bucket = buckets(self.each.key), buckets(self.all.key)

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
        found, spoken = np.empty(len(token), np.int64), np.empty(len(token), np.int64)
        anywhere = in_language(token, np.zeros(len(token), np.int64))
        kernels.look_up(anywhere, self.all_bucket, *self.all, found)
        kernels.look_up(in_language(token, language), self.each_bucket, *self.each, spoken)
        prior = (
            np.array(PRIOR_BY_LENGTH)[np.minimum(length, len(PRIOR_BY_LENGTH) - 1)] * PRIOR_QUESTIONS
        )
        everywhere = self.questions.sum() + PRIOR_QUESTIONS + 1
        here = self.questions[language] + PRIOR_QUESTIONS + 1
        ratio = np.minimum(everywhere / (found + prior), here / (spoken + prior))
        return np.clip(np.log(ratio), 0.05, MAX_WEIGHT).astype(np.float32)

    def signed_weights(
        self,
        runs: Questions | tokens.Tokens,
        language: npt.NDArray[np.int64],
        template: npt.NDArray[np.bool_] | None = None,
    ) -> Floats:
        """Weights of all tokens: negative where one occurred before in its run, 0 in a template."""
        out = np.empty(len(runs.token), np.float32)
        for first, last in pieces(runs.ptr, PIECE_TOKENS):
            begin, end = runs.ptr[first], runs.ptr[last]
            ptr, token, spoken = piece_of(runs, language, first, last)
            weight = self.weights(token, runs.length[begin:end], spoken)
            if template is not None:
                weight[template[begin:end]] = 0
            out[begin:end] = np.where(repeats(token.astype(np.uint64), ptr), -weight, weight)
        return out


class Counts(NamedTuple):
    """How often each key occurs."""

    key: npt.NDArray[np.uint64]  # ascending
    times: Longs


def added(parts: Sequence[Counts]) -> Counts:
    """Counts of all parts together; keys may be repeated."""
    key, inverse = np.unique(np.concatenate([part.key for part in parts]), return_inverse=True)
    count = np.zeros(len(key), np.int64)
    np.add.at(count, inverse, np.concatenate([part.times for part in parts]))
    return Counts(key, count)


def in_language(token: npt.NDArray[np.uint32], language: Longs) -> npt.NDArray[np.uint64]:
    """Token and language as one number."""
    return token.astype(np.uint64) << np.uint64(32) | language.astype(np.uint64)


def piece_of(
    runs: Questions | tokens.Tokens, language: Longs, first: int, last: int
) -> tuple[Longs, npt.NDArray[np.uint32], Longs]:
    """Of the runs first..last-1: where each starts, their tokens, and the language of each token."""
    ptr = runs.ptr[first : last + 1]
    spoken = np.repeat(language[first:last], np.diff(ptr))
    return ptr - ptr[0], runs.token[ptr[0] : ptr[-1]], spoken


def repeats(values: npt.NDArray[np.uint64], ptr: Longs) -> npt.NDArray[np.bool_]:
    """True where a value occurred before in its own run."""
    longest = int(np.diff(ptr).max(initial=1))
    table = np.zeros(max(32, 1 << math.ceil(math.log2(2 * longest + 1))), np.uint64)
    out = np.zeros(len(values), np.uint8)
    kernels.mark_repeats(values, ptr, table, out)
    return out.astype(bool)


def first_grams(token: npt.NDArray[np.uint32], ptr: Longs, size: int) -> npt.NDArray[np.uint64]:
    """n-gram hash at each token; 0 where there is none, or where it occurred before in its run."""
    grams = np.zeros(len(token), np.uint64)
    kernels.hash_many(token, ptr, size, grams)
    for first, last in pieces(ptr, PIECE_TOKENS):
        piece = grams[ptr[first] : ptr[last]]
        piece[repeats(piece, ptr[first : last + 1] - ptr[first])] = 0
    return grams


class Groups(NamedTuple):
    """The places of n-grams, grouped by the top bits of the n-gram."""

    place: npt.NDArray[np.uint32]  # ascending in each group
    ptr: Longs
    bits: int


def grouped(grams: npt.NDArray[np.uint64]) -> Groups:
    """Places of the n-grams other than 0, in groups of about GROUP_GRAMS.

    Raises BadInput when there are too many to be numbered.
    """
    if len(grams) >= 1 << 32:
        raise BadInput(
            f"the items have {len(grams)} tokens, and one index holds {1 << 32}",
            "split the reference set, and scan with one index after the other",
        )
    bits = max(1, math.ceil(math.log2(max(len(grams), 1) / GROUP_GRAMS)))
    sizes = np.zeros(1 << bits, np.int64)
    kernels.count_groups(grams, 64 - bits, sizes)
    ptr = pointers(sizes)
    place = np.empty(int(ptr[-1]), np.uint32)
    kernels.group_places(grams, 64 - bits, ptr[:-1].copy(), place)
    return Groups(place, ptr, bits)


def sorted_groups(
    grams: npt.NDArray[np.uint64], groups: Groups
) -> Iterator[tuple[slice, npt.NDArray[np.uint64], npt.NDArray[np.uint32]]]:
    """Group by group: where it lies in groups.place, its n-grams, ascending, and the order of places.

    The arrays are overwritten by the next group.
    """
    most = int(np.diff(groups.ptr).max(initial=0))
    spare, key = np.empty(most, np.uint64), np.empty(most, np.uint64)
    order = np.empty(most, np.uint32)
    heads = np.zeros((1 << max(1, math.ceil(math.log2(max(most, 1) / 8)))) + 1, np.int64)
    for begin, end in itertools.pairwise(groups.ptr.tolist()):
        count = end - begin
        if count:
            kernels.sort_group(
                grams, groups.place[begin:end], groups.bits, heads, spare, key[:count], order[:count]
            )
            yield slice(begin, end), key[:count], order[:count]


def starts_of(key: npt.NDArray[np.uint64]) -> Longs:
    """First place of each distinct value of a sorted array that is not empty."""
    return np.concatenate([[0], np.flatnonzero(key[1:] != key[:-1]) + 1])


def frequency_of(grams: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint32]:
    """How often the n-gram at each place occurs in all; 0 where there is none."""
    out = np.zeros(len(grams), np.uint32)
    groups = grouped(grams)
    for where, key, order in sorted_groups(grams, groups):
        sizes = np.diff(starts_of(key), append=len(key))
        out[groups.place[where][order]] = np.repeat(sizes, sizes)
    return out


def idf(grams: npt.NDArray[np.uint64], runs: int) -> Floats:
    """ln((N + 1) / df) of each n-gram, N runs, df those that hold it; 0 where there is none."""
    frequency = frequency_of(grams)
    out = np.zeros(len(grams), np.float32)
    for first in range(0, len(grams), PIECE_TOKENS):
        df = frequency[first : first + PIECE_TOKENS]
        filled = df > 0
        out[first : first + PIECE_TOKENS][filled] = np.log((runs + 1) / df[filled])
    return out


def template_tokens(
    table: pa.Table,
    questions: Questions,
    grams: npt.NDArray[np.uint64],
    frequency: npt.NDArray[np.uint32],
) -> npt.NDArray[np.bool_]:
    """Tokens inside n-grams that most questions of a suite share: they say nothing about an item.

    frequency: how many questions of all suites hold each n-gram; a template is at least as frequent.
    """
    out = np.zeros(len(questions.token), bool)
    for first_item, last_item in same_runs(table, ("suite",)):
        mine = np.unique(questions.of_item[first_item:last_item])
        mine = mine[mine >= 0]
        if len(mine) < TEMPLATE_QUESTIONS:
            continue
        bar = TEMPLATE_SHARE * len(mine)
        sizes = questions.ptr[mine + 1] - questions.ptr[mine]
        found = []
        for first, last in pieces(pointers(sizes), PIECE_TOKENS):
            place = ranges(questions.ptr[mine[first:last]], sizes[first:last])
            found.append(place[frequency[place] >= bar])
        places = np.concatenate(found)
        _, inverse, count = np.unique(grams[places], return_inverse=True, return_counts=True)
        shared = count[inverse] >= bar
        for offset in range(kernels.N):
            out[places[shared] + offset] = True
    return out


class Postings(NamedTuple):
    key: npt.NDArray[np.uint64]
    ptr: Longs
    question: npt.NDArray[np.uint32]
    position: npt.NDArray[np.uint16]
    seeds: npt.NDArray[np.uint16]


def postings(
    grams: npt.NDArray[np.uint64],
    ptr: Longs,
    frequency: npt.NDArray[np.uint32],
    kept: npt.NDArray[np.bool_],
) -> Postings:
    """Where each n-gram stands. Common ones are left out, but no question loses its rarest.

    kept: bool[questions], those that get postings. `grams` and `frequency` are used up.
    """
    seeds = np.zeros(len(ptr) - 1, np.uint16)
    kernels.choose_seeds(frequency, ptr, MAX_POSTINGS, MIN_SEEDS, seeds)
    for first in range(0, len(grams), PIECE_TOKENS):
        grams[first : first + PIECE_TOKENS][frequency[first : first + PIECE_TOKENS] == 0] = 0
    if not kept.all():
        grams[~np.repeat(kept, np.diff(ptr))] = 0
    groups = grouped(grams)
    count = len(groups.place)
    key, first_of = np.empty(count, np.uint64), np.empty(count + 1, np.int64)
    position = np.empty(count, np.uint16)
    keys = 0
    for where, gram, order in sorted_groups(grams, groups):
        place = groups.place[where]
        question = np.empty(len(place), np.uint32)
        kernels.owner_of(place, ptr, question)
        position[where] = (place - ptr[question])[order]
        place[:] = question[order]
        starts = starts_of(gram)
        key[keys : keys + len(starts)] = gram[starts]
        first_of[keys : keys + len(starts)] = where.start + starts
        keys += len(starts)
    first_of[keys] = count
    key.resize(keys, refcheck=False)
    first_of.resize(keys + 1, refcheck=False)
    return Postings(key, first_of, groups.place, position, seeds)


def bloom(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The filter: 12 to 24 bits a key, a power of two of words."""
    words = np.zeros(1 << max(6, math.ceil(math.log2(max(len(keys), 1) * 12 / 64))), np.uint64)
    kernels.fill_filter(keys, words)
    return words


def buckets(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint32]:
    """First key of each value of the top bits, one to two keys a bucket."""
    bits = max(4, math.ceil(math.log2(max(len(keys), 1))) - 1)
    out = np.empty((1 << bits) + 1, np.uint32)
    for first in range(0, 1 << bits, PIECE_TOKENS):
        bounds = np.arange(first, min(first + PIECE_TOKENS, 1 << bits), dtype=np.uint64)
        out[first : first + len(bounds)] = np.searchsorted(keys, bounds << np.uint64(64 - bits))
    out[-1] = len(keys)
    return out


def owners(of_item: Longs, questions: int) -> tuple[Longs, npt.NDArray[np.uint32]]:
    """Items that ask each question."""
    asked = np.flatnonzero(of_item >= 0)
    order = asked[np.argsort(of_item[asked], kind="stable")]
    return pointers(np.bincount(of_item[asked], minlength=questions)), order.astype(np.uint32)


def sums(values: Floats, ptr: Longs, of: Callable[[Floats], Floats]) -> Floats:
    """Sum of `of` the values of each run."""
    out = np.zeros(len(ptr) - 1, np.float32)
    before = 0.0
    for first, last in pieces(ptr, PIECE_TOKENS):
        piece = of(values[ptr[first] : ptr[last]])
        total = np.cumsum(np.concatenate([[before], piece]))
        ends = total[ptr[first : last + 1] - ptr[first]]
        out[first:last] = np.diff(ends)
        before = total[-1]
    return out


def positive(values: Floats) -> Floats:
    return np.maximum(values, 0)


def item_status(
    arrays: kernels.IndexArrays, of_item: Longs, split: pa.ChunkedArray
) -> npt.NDArray[np.int8]:
    """What the default policy can say of each item: an index into STATUSES. of_item: its question.

    A canary counts whole or not at all, however little its words tell.
    """
    information = sums(arrays.questions.weight, arrays.questions.ptr, positive)
    answer = sums(arrays.answers.weight, arrays.answers.ptr, positive)
    best = np.zeros(len(of_item), np.float32)
    item_of_answer = np.repeat(np.arange(len(best)), np.diff(arrays.answers.of_item))
    np.maximum.at(best, item_of_answer, answer)
    q = of_item
    size = (
        np.where(q >= 0, np.diff(arrays.questions.ptr)[q], 0)
        if len(arrays.questions.ptr) > 1
        else np.zeros(len(q))
    )
    told = np.where(q >= 0, information[q], 0) if len(information) else np.zeros(len(q))
    status = np.full(len(q), STATUSES.index("indexed"), np.int8)
    status[told < verdict.MIN_COPY_INFORMATION] = STATUSES.index("with answer")
    status[told + best < verdict.MIN_COPY_INFORMATION] = STATUSES.index("not checkable")
    status[pc.equal(split, records.CANARY).to_numpy()] = STATUSES.index("indexed")
    status[size < kernels.N] = STATUSES.index("too short")
    status[size == 0] = STATUSES.index("empty")
    return status


def count_items(
    table: pa.Table, questions: kernels.Questions, duplicates: Mapping[tuple[str, str], int]
) -> list[dict[str, Any]]:
    """Per suite and split: items, distinct questions, and how many of each status."""
    asked = np.full(len(table), -1, np.int64)
    asked[questions.owner] = np.repeat(
        np.arange(len(questions.owner_ptr) - 1), np.diff(questions.owner_ptr)
    )
    status = table["status"].to_numpy()
    out = []
    for first, last in same_runs(table, ("suite", "split")):
        suite, split = table["suite"][first].as_py(), table["split"][first].as_py()
        row: dict[str, Any] = {"suite": suite, "split": split, "items": last - first}
        mine = asked[first:last]
        row["questions"] = len(np.unique(mine[mine >= 0]))
        row["duplicates"] = duplicates.get((suite, split), 0)
        for code, name in enumerate(STATUSES):
            row[name] = int((status[first:last] == code).sum())
        out.append(row)
    return out


def refuse_empty(table: pa.Table) -> None:
    """Raise BadInput for suites that would be scanned for nothing: "not audited" is never "clean"."""
    usable = table["status"].to_numpy() <= STATUSES.index("with answer")
    suites = same_runs(table, ("suite",))
    empty = [table["suite"][a].as_py() for a, b in suites if not usable[a:b].any()]
    if not suites:
        raise BadInput("there are no items", "check the reference files, or pass --allow-empty")
    if empty:
        status = table["status"].to_numpy()
        mine = np.isin(table["suite"].to_numpy(), empty)
        counts = {name: int((status[mine] == code).sum()) for code, name in enumerate(STATUSES)}
        why = ", ".join(f"{n:,} {name}" for name, n in counts.items() if n)
        raise BadInput(
            f"nothing can be matched of {', '.join(empty)}: its items are {why}",
            "look at them with `unseen refs check`, or pass --allow-empty to go on without",
        )


def content_hash(arrays: kernels.IndexArrays, table: pa.Table) -> str:
    """xxh3-128 over the arrays and the items."""
    state = xxhash.xxh3_128()
    for name, array in flat(arrays):
        state.update(name.encode())
        state.update(array.view(np.uint8).data)
    sink = pa.PythonFile(Hashed(state), mode="w")
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())  # one chunk: no copy
    return str(state.hexdigest())


class Hashed(io.RawIOBase):
    """A file that goes into a hash, and nowhere else."""

    def __init__(self, state: xxhash.xxh3_128) -> None:
        self.state = state

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.state.update(data)
        return len(data)
