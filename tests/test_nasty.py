"""Hostile documents cost bounded time and memory, and nothing is read beyond the text.

Time limits are generous: a runaway would take minutes or hang, an honest scan takes a second or two.
"""

from __future__ import annotations

import random
import resource
import time
from typing import Any

import numpy as np
import pytest

from unseen import kernels, tokens
from unseen.errors import BadInput
from unseen.scan import Index, Scanner

SECONDS = 30.0
MB = 1_000_000
RNG = random.Random(5)
COMMON = "one fish two fish red"  # an n-gram that many questions share


def made_up(letters: int = 7) -> str:
    return "".join(RNG.choices("abcdefghijklmnopqrstuvwxyz", k=letters))


def item(number: int, question: str, answer: str = "forty two") -> dict[str, Any]:
    return {"suite": "s", "split": "test", "item": str(number), "question": question,
            "answers": [answer], "correct": [True]}  # fmt: skip


ITEMS = [
    item(k, " ".join([made_up() for _ in range(12)] + ([COMMON] if k % 20 == 0 else []) + [made_up()]))
    for k in range(2000)
]
ITEMS += [item(2000 + k, f"{COMMON} blue fish and {made_up()}") for k in range(20)]


@pytest.fixture(scope="module")
def index() -> Index:
    return Index.build(ITEMS)


@pytest.fixture
def scanner(index: Index) -> Scanner:
    return Scanner(index)


def scan(scanner: Scanner, text: str | bytes) -> tuple[np.ndarray, np.ndarray]:
    """Kernel rows and counters of one document; fails when it takes far too much time or memory."""
    raw = text.encode() if isinstance(text, str) else text
    data = np.frombuffer(raw + bytes(64), np.uint8)
    scanner.find(*tokens.pack(["warm up"]))
    scanner.counters[:] = 0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.monotonic()
    rows, _ = scanner.find(data, np.array([0, len(raw)], np.int64))
    assert time.monotonic() - started < SECONDS
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert grown < 200 * MB
    return rows, scanner.counters


def budget(counters: np.ndarray, size: int) -> None:
    """The work is bounded a segment, and there are few segments."""
    segments = 2 + counters[kernels.COUNT_TOKENS] // (kernels.SEGMENT - kernels.OVERLAP - 64)
    assert counters[kernels.COUNT_TOKENS] <= 2 * size + 64
    assert counters[kernels.COUNT_SEEDS] <= segments * kernels.MAX_SEEDS
    most = kernels.CELL_BUDGET + kernels.MAX_CELLS
    hurried = counters[kernels.COUNT_HURRIED] * 16 * kernels.MAX_QUESTION**2
    assert counters[kernels.COUNT_CELLS] <= segments * most + hurried


@pytest.mark.parametrize("unit", [*"aé中—½😀ﷺ1 ", "\u0301", "\x00", "\u200d"])
def test_ten_megabytes_of_one_character(scanner: Scanner, unit: str) -> None:
    size = 10 * MB // len(unit.encode())
    rows, counters = scan(scanner, unit * size)
    assert len(rows) == 0
    budget(counters, 10 * MB)


@pytest.mark.parametrize("separator", [" ", "", "\u00ad "])
def test_one_long_token_and_many_short_ones(scanner: Scanner, separator: str) -> None:
    rows, counters = scan(scanner, ("a" + separator) * (3 * MB) + " b" * MB + "é" * MB)
    assert len(rows) == 0
    budget(counters, 10 * MB)


@pytest.mark.parametrize("stride", [1, 10])
def test_an_ngram_of_many_questions_a_million_times(index: Index, stride: int) -> None:
    """It leads to 120 questions at every fifth token: too many seeds, so it is left out."""
    scanner = Scanner(index, stride=stride)
    text = (COMMON + " ") * (10 * MB // (len(COMMON) + 1))
    rows, counters = scan(scanner, text)
    budget(counters, len(text))
    assert counters[kernels.COUNT_CROWDED] > 0
    assert len(rows) < 100_000


def test_an_item_is_found_in_spite_of_a_crowd(scanner: Scanner) -> None:
    """Leaving out the commonest n-grams of a segment does not hide an item that stands in it."""
    crowd = (COMMON + " ") * 5_000
    rows, counters = scan(scanner, crowd + ITEMS[7]["question"] + " " + crowd)
    assert counters[kernels.COUNT_CROWDED] > 0
    assert 7 in [int(scanner.index.items["item"][int(r)].as_py()) for r in rows[:, kernels.ITEM]]


def test_one_question_a_hundred_thousand_times(scanner: Scanner) -> None:
    """Every copy is a row, and no two overlap."""
    question = ITEMS[0]["question"]
    copies = 4 * MB // (len(question) + 2)
    rows, counters = scan(scanner, (question + ". ") * copies)
    budget(counters, 4 * MB)
    mine = rows[rows[:, kernels.ITEM] == scanner.index.find_item("s/test/0")]
    assert len(mine) == copies
    assert (mine[1:, kernels.START] >= mine[:-1, kernels.END]).all()


def test_copies_that_overlap_each_other(scanner: Scanner) -> None:
    """Questions cut off and begun again, each row overlapping the next."""
    words = ITEMS[1]["question"].split()
    rows, counters = scan(scanner, (" ".join(words[:9] + words[5:] + words[:4]) + " ") * 20_000)
    budget(counters, 10 * MB)
    assert 0 < len(rows) <= 40_000


@pytest.mark.parametrize("pattern", [(0, 1), (0, 0, 1), (0, 1, 2, 3, 4, 5, 0, 1, 2, 3)])
def test_questions_of_few_different_words(pattern: tuple[int, ...]) -> None:
    """Every place of the document is a seed of a periodic question, at many of its places."""
    words = [("la", "lo", "li", "le", "lu", "ly")[k] for k in pattern]
    items = [item(k, " ".join((words * 60)[k : 60 + 3 * k])) for k in range(20)]
    scanner = Scanner(Index.build(items, allow_empty=True))
    for text in (" ".join(words * (MB // len(words))), "la lo " * MB, "la " * MB):
        rows, counters = scan(scanner, text)
        budget(counters, len(text))
        assert len(rows) < 400_000


def test_a_document_that_holds_every_item(index: Index, scanner: Scanner) -> None:
    shuffled = random.Random(1).sample(ITEMS, len(ITEMS))
    text = "\n".join(i["question"] + " Answer: " + i["answers"][0] for i in shuffled)
    rows, counters = scan(scanner, text)
    budget(counters, len(text))
    found = {index.items["item"][k].as_py() for k in np.unique(rows[:, kernels.ITEM]).tolist()}
    assert found == {i["item"] for i in ITEMS}
    assert len(rows) <= 2 * len(ITEMS)


@pytest.mark.parametrize(
    "unit", ["— ", "—", " —  ", "a b ", "é à ", "a—b ", "\u0301 ", "x\u0301-", "(1)½"]
)
def test_three_megabytes_of_little_runs(scanner: Scanner, unit: str) -> None:
    """Dashes and spaces, alternating one-letter tokens: an edge or two for every byte."""
    text = unit * (3 * MB // len(unit.encode()))
    rows, counters = scan(scanner, text)
    assert len(rows) == 0
    budget(counters, 3 * MB)


def test_time_grows_with_the_text_and_not_with_its_square(scanner: Scanner) -> None:
    """Text without one ASCII byte, which is a single run: 16 times as much in less than 60 times."""
    took = []
    for size in (2 * MB, 32 * MB):
        packed = tokens.pack(["一二三" * (size // 9)])
        started = time.monotonic()
        scanner.find(*packed)
        took.append(time.monotonic() - started)
    assert took[1] < 60 * max(took[0], 0.02)


# --- bytes that are not text -------------------------------------------------------------------------

LEADS = [0xC2, 0xDF, 0xE0, 0xED, 0xEF, 0xF0, 0xF4, 0xF5, 0xFF, 0xC0, 0x80, 0xBF, 0x61, 0x31, 0x20]


SCRATCH = kernels.make_scratch()


def token_list(raw: bytes, after: bytes) -> list[tuple[int, int, int]]:
    """(hash, start, end) of the tokens of `raw`, with other bytes behind it."""
    data = tokens.frozen(np.frombuffer(raw + after, np.uint8))
    segment = SCRATCH.segment
    out, position = [], 0
    while position < len(raw):
        count, reached = kernels.tokenize(data, position, len(raw), tokens.codepoints(), segment)
        assert reached > position
        position = reached
        columns = (segment.token, segment.start, segment.end)
        out += zip(*(column[:count].tolist() for column in columns), strict=True)
    return out


def test_invalid_utf8_is_read_within_its_bounds() -> None:
    """Whatever lies behind a text changes none of its tokens, and they lie inside it, in order."""
    rng = random.Random(3)
    for k in range(1500):
        size = rng.choice((1, 2, 3, 7, 8, 9, 63, 64, 65, 129, 400))
        raw = bytes(rng.choices(LEADS if k % 2 else range(256), k=size))
        found = token_list(raw, bytes(64))
        assert found == token_list(raw, b"\xbf" * 64) == token_list(raw, b"a1\xc3\xa9" * 16)
        assert all(0 <= a < b <= size for _, a, b in found)
        assert found == sorted(found, key=lambda t: t[1:])


@pytest.mark.parametrize("cut", range(1, 4))
def test_a_character_cut_off_at_the_end(cut: int) -> None:
    whole = "wörd 😀𝐀".encode()
    assert [t[1:] for t in token_list(whole[:-cut], bytes(64))] == [(0, 5)]
    assert [t[1:] for t in token_list(b"ab" + b"\xc3", b"\xa9" * 64)] == [(0, 2)]


@pytest.mark.parametrize(
    "unit", [b"\xff", b"\xc3", b"\xf0\x9f", b"\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"]
)
def test_megabytes_of_invalid_utf8(scanner: Scanner, unit: bytes) -> None:
    question = ITEMS[3]["question"].encode()
    rows, counters = scan(scanner, unit * (MB // len(unit)) + b" " + question + b" " + unit * MB)
    assert rows[:, kernels.ITEM].tolist() == [scanner.index.find_item("s/test/3")]
    budget(counters, 5 * MB)


def test_random_bytes(scanner: Scanner) -> None:
    rows, counters = scan(scanner, np.random.default_rng(2).bytes(3 * MB))
    assert len(rows) == 0
    budget(counters, 3 * MB)


# --- next to nothing ---------------------------------------------------------------------------------


def test_texts_with_nothing_in_them(index: Index) -> None:
    for text in ("", None, "a b c d", "\x00" * 9, "\ud800\udfff", "\u0301"):
        assert index.scan([text]).num_rows == 0
    for texts in ([], ["", None, ""]):
        assert index.scan(texts).num_rows == 0
        assert index.flag(texts).tolist() == [False] * len(texts)


def test_nothing_around_an_item_matters(index: Index) -> None:
    question = ITEMS[11]["question"]
    for text in (question, f"\x00{question}\x00", f"\ud800{question}\udfff", f"\ufeff{question}\u200b"):
        (match,) = index.scan(["", text, None]).to_pylist()
        assert (match["row"], match["item"]) == (1, "11")
        assert text[match["start"] : match["end"]].strip("\ufeff\u200b") == question


def test_an_index_without_items() -> None:
    with pytest.raises(BadInput):
        Index.build([])
    for items in ([], [item(0, "")], [item(0, "only four words here")], [item(0, "?", "")]):
        empty = Index.build(items, allow_empty=True)
        for stride in (1, 10):
            texts = ["", "only four words here", ITEMS[0]["question"], "é" * 70_000, "a " * 70_000]
            assert empty.scan(texts, stride=stride).num_rows == 0
