"""Texts and an index to matches.

`scan_batch` is the function to read first: kernels find the places, the rest turns them into rows of
`records.match_schema`.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from unseen import kernels, records, score, tokens, verdict
from unseen.errors import BadInput
from unseen.index import CompiledIndex

QUOTE_CONTEXT = 80  # characters shown on either side of a match
QUOTE_LENGTH = 2000  # characters of a match that are quoted at most

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]


class Index(CompiledIndex):
    """A compiled reference set that scans texts.

    >>> index = Index.open("INDEX/")                                          # doctest: +SKIP
    >>> index.scan(["How many eggs does Janet sell ...", "some other text"])  # doctest: +SKIP
    >>> dataset.filter(lambda b: ~index.flag(b["text"]), batched=True)        # doctest: +SKIP
    """

    def scan(
        self, texts: Sequence[str | None], *, preset: str = "default", stride: int = 1
    ) -> pa.Table:
        """Matches of a list of texts, with `records.match_schema`; `row` is the place in the list.

        A null text is an empty one. stride: look up every stride-th token position (1 or more). Spans
        are character offsets. Raises BadSetting for an unknown preset.
        """
        if isinstance(texts, str) or not all(t is None or isinstance(t, str) for t in texts):
            raise BadInput("scan and flag need a list of texts", "write [text] for a single one")
        packed = tokens.pack(texts)
        policy = verdict.policy_named(preset)
        return scan_batch(self._scanner(stride), packed.data, packed.offsets, policy=policy)

    def flag(self, texts: Sequence[str | None], *, preset: str = "default") -> npt.NDArray[np.bool_]:
        """For each text, whether the preset would remove it; bool[texts]."""
        found = self.scan(texts, preset=preset)
        out = np.zeros(len(texts), bool)
        out[found["row"].to_numpy()[np.array(found["verdict"].to_pylist(), str) == "remove"]] = True
        return out

    def _scanner(self, stride: int) -> Scanner:
        known = self.__dict__.setdefault("_scanners", {})
        if stride not in known:
            known[stride] = Scanner(self, stride=stride)
        return known[stride]


class Scanner:
    """Scans batches against one index; owns the scratch memory. One per process."""

    def __init__(self, index: CompiledIndex, *, stride: int = 1) -> None:
        self.index = index
        self.stride = stride
        self.scratch = kernels.make_scratch()
        self.counters = np.zeros(kernels.COUNTERS, np.int64)
        self._make_room(1 << 16)

    def _make_room(self, rows: int) -> None:
        self.ints = np.empty((rows, kernels.INTS), np.int64)
        self.floats = np.empty((rows, kernels.FLOATS), np.float32)

    def find(self, data: npt.NDArray[np.uint8], offsets: Ints) -> tuple[Ints, Floats]:
        """Kernel rows of a batch: int64[n, INTS], float32[n, FLOATS] (columns named in `kernels`)."""
        texts = len(offsets) - 1
        text, found = 0, []
        while text < texts:
            rows, reached = kernels.scan_texts(
                tokens.frozen(data), tokens.frozen(offsets), text, tokens.codepoints(),
                self.index.arrays, self.stride, self.scratch, self.counters, self.ints, self.floats,
            )  # fmt: skip
            found.append((self.ints[:rows].copy(), self.floats[:rows].copy()))
            if reached == text:
                self._make_room(4 * len(self.ints))  # one text alone has more rows than fit
            text = reached
        return drop_repeats(
            np.concatenate([i for i, _ in found] or [np.empty((0, kernels.INTS), np.int64)]),
            np.concatenate([f for _, f in found] or [np.empty((0, kernels.FLOATS), np.float32)]),
        )


class Found(NamedTuple):
    """Matches of one batch, with what had to be read from its texts."""

    ints: Ints  # int64[matches, INTS]
    floats: Floats  # float32[matches, FLOATS]
    row: Ints  # row number of the document
    doc_id: list[str | None]
    places: dict[str, Any]  # start, end, answer_start, answer_end, quote


def scan_batch(
    scanner: Scanner,
    data: npt.NDArray[np.uint8],
    offsets: Ints,
    *,
    policy: verdict.Policy,
    rows: Ints | None = None,
    ids: Sequence[str | None] | None = None,
) -> pa.Table:
    """Matches of a batch of texts.

    data uint8: UTF-8 of all texts back to back with 64 more readable bytes; offsets int64[texts + 1]
    (bytes); rows and ids: row number and document id of each text. Returns a table with
    `records.match_schema`, by row, start, then item.
    """
    found = find_matches(scanner, data, offsets, rows=rows, ids=ids)
    return to_table(scanner.index, [found], policy)


def find_matches(
    scanner: Scanner,
    data: npt.NDArray[np.uint8],
    offsets: Ints,
    *,
    rows: Ints | None = None,
    ids: Sequence[str | None] | None = None,
) -> Found:
    """The first half of `scan_batch`: all that needs the texts."""
    ints, floats = scanner.find(data, offsets)
    text = ints[:, kernels.TEXT]
    return Found(
        ints,
        floats,
        text if rows is None else np.asarray(rows)[text],
        [None if ids is None else ids[t] for t in text.tolist()],
        places(data, offsets, ints),
    )


def to_table(index: CompiledIndex, parts: Sequence[Found], policy: verdict.Policy) -> pa.Table:
    """The second half: measures, evidence, verdict and the item's texts, for many batches at once."""
    parts = [part for part in parts if len(part.ints)]
    if not parts:
        return records.match_schema().empty_table()
    ints = np.concatenate([part.ints for part in parts])
    columns = measures(index, ints, np.concatenate([part.floats for part in parts]))
    columns["evidence"] = verdict.evidence_of(columns)
    columns["verdict"] = verdict.verdict_of(columns, policy)
    columns["row"] = np.concatenate([part.row for part in parts])
    columns["doc_id"] = list(itertools.chain.from_iterable(part.doc_id for part in parts))
    for name in ("start", "end", "answer_start", "answer_end"):
        columns[name] = np.concatenate([part.places[name] for part in parts])
    columns["quote"] = list(itertools.chain.from_iterable(part.places["quote"] for part in parts))
    columns |= item_texts(index, ints)
    schema = records.match_schema()
    return pa.Table.from_arrays(
        [pa.array(columns[name], schema.field(name).type) for name in schema.names], schema=schema
    )


def drop_repeats(ints: Ints, floats: Floats) -> tuple[Ints, Floats]:
    """One row where several chains found the same copy of an item.

    Of rows of one text and item whose spans overlap the best stays: by coverage, then by answer
    overlap, then the earliest. Returns the rest by text, start and item.
    """
    text, item, start, end = (
        ints[:, k] for k in (kernels.TEXT, kernels.ITEM, kernels.START, kernels.END)
    )
    order = np.lexsort((start, item, text))
    keep = np.ones(len(ints), bool)
    for group in overlapping(text[order] * len(ints) + rank_of(item[order]), start[order], end[order]):
        rows = order[group]
        best = np.lexsort(
            (start[rows], -floats[rows, kernels.ANSWER_OVERLAP], -floats[rows, kernels.COVERAGE])
        )
        taken: list[tuple[int, int]] = []  # spans kept, ascending
        for row in rows[best].tolist():
            place = bisect.bisect(taken, (int(start[row]), int(end[row])))
            before = place > 0 and taken[place - 1][1] > start[row]
            after = place < len(taken) and taken[place][0] < end[row]
            keep[row] = not (before or after)
            if keep[row]:
                taken.insert(place, (int(start[row]), int(end[row])))
    left = np.flatnonzero(keep)
    left = left[np.lexsort((item[left], start[left], text[left]))]
    return ints[left], floats[left]


def rank_of(values: Ints) -> Ints:
    """The values as small numbers, equal where they are equal."""
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def overlapping(owner: Ints, start: Ints, end: Ints) -> list[slice]:
    """Runs of two and more spans of one owner that hang together; sorted by owner and start."""
    if len(owner) == 0:
        return []
    fresh = np.ones(len(owner), bool)
    same = owner[1:] == owner[:-1]
    reach = end.copy()
    for i in np.flatnonzero(same).tolist():  # few: items found twice in a text
        reach[i + 1] = max(reach[i + 1], reach[i])
        fresh[i + 1] = start[i + 1] >= reach[i]
    edges = [*np.flatnonzero(fresh).tolist(), len(owner)]
    return [slice(a, b) for a, b in itertools.pairwise(edges) if b - a > 1]


def measures(index: CompiledIndex, ints: Ints, floats: Floats) -> dict[str, Any]:
    """The measured columns of a match, and suite and split, as NumPy arrays."""
    answers = index.arrays.answers
    item = ints[:, kernels.ITEM]
    option = ints[:, kernels.OPTION]
    lengths = score.Lengths(
        question=ints[:, kernels.QUESTION_TOKENS],
        question_grams=ints[:, kernels.QUESTION_GRAMS],
        answer=ints[:, kernels.ANSWER_TOKENS],
        passage=ints[:, kernels.PASSAGE_TOKENS],
    )
    oq, oa, op = (
        floats[:, k].astype(np.float64)
        for k in (kernels.QUESTION_OVERLAP, kernels.ANSWER_OVERLAP, kernels.PASSAGE_OVERLAP)
    )
    right = np.zeros(len(item), bool)
    right[option >= 0] = answers.correct[(answers.of_item[item] + option)[option >= 0]] == 1
    return {
        "coverage": floats[:, kernels.COVERAGE],
        "information": floats[:, kernels.FOUND]
        - floats[:, kernels.HOLES]
        - kernels.STRANGER * floats[:, kernels.FOREIGN],
        "cut_off": floats[:, kernels.ENDS],
        "answer_information": floats[:, kernels.ANSWER_INFORMATION],
        "question_overlap": oq,
        "answer_overlap": oa,
        "passage_overlap": op,
        "score": score.published(oq, oa, op, lengths),
        "numbers_kept": ints[:, kernels.NUMBERS_MISSING] == 0,
        "numbers_changed": ints[:, kernels.NUMBERS_CHANGED],
        "numbers": ints[:, kernels.NUMBERS],
        "option": option,
        "option_correct": np.ma.masked_array(right, option < 0),
        "suite": index.items["suite"].take(pa.array(item)).to_numpy(zero_copy_only=False),
        "split": index.items["split"].take(pa.array(item)).to_numpy(zero_copy_only=False),
    }


def places(data: npt.NDArray[np.uint8], offsets: Ints, ints: Ints) -> dict[str, Any]:
    """Character offsets and quotes of matches, each document decoded once."""
    names = ("start", "end", "answer_start", "answer_end")
    columns = (kernels.START, kernels.END, kernels.ANSWER_START, kernels.ANSWER_END)
    spans = ints[:, columns]
    out = np.empty_like(spans)
    quotes: list[str] = []
    first = 0
    while first < len(ints):
        text = ints[first, kernels.TEXT]
        last = first + int(np.searchsorted(ints[first:, kernels.TEXT], text, "right"))
        raw = data[offsets[text] : offsets[text + 1]].tobytes()
        local = np.where(spans[first:last] >= 0, spans[first:last] - offsets[text], -1)
        flat = tokens.char_offsets(raw, local.ravel().tolist())
        out[first:last] = np.array(flat, np.int64).reshape(-1, 4)
        whole = raw.decode(errors="replace")
        quotes += [quote(whole, *span) for span in out[first:last].tolist()]
        first = last
    return {**{name: out[:, k] for k, name in enumerate(names)}, "quote": quotes}


def quote(text: str, start: int, end: int, answer_start: int, answer_end: int) -> str:
    """The match with its answer and some context, cut in the middle when it is long."""
    low, high = max(0, start - QUOTE_CONTEXT), max(end, answer_end) + QUOTE_CONTEXT
    if high - low > QUOTE_LENGTH:
        half = QUOTE_LENGTH // 2
        return text[low : low + half] + " [...] " + text[high - half : high]
    return text[low:high]


def item_texts(index: CompiledIndex, ints: Ints) -> dict[str, Any]:
    """Columns that come from the reference set: item, language, question, answer."""
    rows, inverse = np.unique(ints[:, kernels.ITEM], return_inverse=True)
    taken = index.items.select(["item", "language", "question", "answers", "correct"]).take(
        pa.array(rows)
    )
    columns = {name: taken[name].to_pylist() for name in taken.column_names}
    answers = []
    for k, option in zip(inverse.tolist(), ints[:, kernels.OPTION].tolist(), strict=True):
        given, marks = columns["answers"][k] or [], columns["correct"][k] or []
        right = marks.index(True) if True in marks else 0
        chosen = option if option >= 0 else right
        answers.append(given[chosen] if chosen < len(given) else None)
    picked = {
        name: [columns[name][k] for k in inverse.tolist()] for name in ("item", "language", "question")
    }
    return {**picked, "answer": answers}


def is_compiled(kernel: str = "scan_texts") -> bool:
    """Whether Numba's cache holds a kernel: the one that scans, or another."""
    try:
        return bool(getattr(kernels, kernel)._cache._cache_file._load_index())
    except (AttributeError, OSError, ValueError):
        return False  # only decides whether a notice is printed
