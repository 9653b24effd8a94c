"""Texts to tokens: the frozen code-point table, and small wrappers around the kernels.

In: UTF-8 bytes. Out: uint32 token hashes with byte offsets. "Hello, Wörld!" has two tokens, the same as
"hello world"; "你好" has two, one a character.
"""

from __future__ import annotations

import functools
import importlib.resources
import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import xxhash

from unseen import kernels

TOKENIZER_VERSION = 1  # counts changes of the token rule in kernels.py that the table's hash can't show


@functools.cache
def codepoints() -> kernels.Codepoints:
    """The frozen table, read once per process; its arrays are read-only."""
    with importlib.resources.files("unseen").joinpath("codepoints.npz").open("rb") as file:
        stored = np.load(file)
        return kernels.Codepoints(
            frozen(stored["pages"]), frozen(stored["entries"]), frozen(stored["expansions"])
        )


@functools.cache
def tokenizer_hash() -> str:
    """Identifies the token rule; an index made under another one is refused."""
    state = xxhash.xxh3_128()
    for array in codepoints():
        state.update(array.tobytes())
    return f"{TOKENIZER_VERSION}-{state.hexdigest()[:16]}"


def frozen(array: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """The array, read-only: kernels compile once, for read-only arrays (as memory-mapped ones are)."""
    array.flags.writeable = False
    return array


class Texts(NamedTuple):
    """Texts back to back, as the kernels read them."""

    data: npt.NDArray[np.uint8]  # UTF-8, 64 more bytes readable after the last text
    offsets: npt.NDArray[np.int64]  # bytes; one more than texts


def pack(texts: Sequence[str | None]) -> Texts:
    """Lay texts back to back. None is an empty text; a lone surrogate becomes one '?'."""
    parts = [encode(text) for text in texts]
    offsets = np.zeros(len(parts) + 1, np.int64)
    np.cumsum([len(part) for part in parts], out=offsets[1:])
    data = np.frombuffer(b"".join([*parts, bytes(64)]), np.uint8)
    return Texts(data, offsets)


def encode(text: str | None) -> bytes:
    if not text:
        return b""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="replace")


class Tokens(NamedTuple):
    """Tokens of many texts, back to back."""

    token: npt.NDArray[np.uint32]
    length: npt.NDArray[np.uint8]  # code points, at most 255
    ptr: npt.NDArray[np.int64]  # first token of each text; one more than texts


def tokenize(texts: Sequence[str | None], *, most: int = 1 << 40) -> Tokens:
    """Token hashes of each text, at most `most` of each."""
    packed = pack(texts)
    scratch = kernels.make_scratch()
    room = 2 * int(packed.offsets[-1]) + 64
    token, length = np.empty(room, np.uint32), np.empty(room, np.uint8)
    ptr = np.zeros(len(packed.offsets), np.int64)
    count = kernels.tokenize_many(
        packed.data, packed.offsets, codepoints(), scratch.segment, most, token, length, ptr
    )
    return Tokens(token[:count].copy(), length[:count].copy(), ptr)


def words(text: str) -> list[tuple[str, int, int]]:
    """The tokens of one text as written, with character offsets: for people and for `explain`."""
    packed = pack([text])
    segment = kernels.make_scratch().segment
    out: list[tuple[int, int]] = []
    position = 0
    raw = packed.data.tobytes()
    while position < packed.offsets[1]:
        count, position = kernels.tokenize(
            packed.data, position, packed.offsets[1], codepoints(), segment
        )
        out += zip(segment.start[:count].tolist(), segment.end[:count].tolist(), strict=True)
    places = char_offsets(raw, [x for span in out for x in span])
    return [(raw[a:b].decode(), places[2 * i], places[2 * i + 1]) for i, (a, b) in enumerate(out)]


def char_offsets(text: bytes, places: Sequence[int]) -> list[int]:
    """Character offsets of byte offsets into UTF-8 text; -1 stays -1. Cost: linear in the text."""
    if text.isascii():
        return list(places)
    leads = (np.frombuffer(text, np.uint8) & 0xC0) != 0x80
    order = sorted({p for p in places if p >= 0})
    pieces = [int(np.count_nonzero(leads[a:b])) for a, b in itertools.pairwise([0, *order])]
    found = dict(zip(order, itertools.accumulate(pieces), strict=True))
    return [found.get(p, -1) for p in places]
