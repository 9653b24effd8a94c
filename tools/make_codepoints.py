"""Writes src/unseen/codepoints.npz, the frozen table that folds code points.

    python tools/make_codepoints.py

Run it only to adopt a newer Unicode version, with a Python whose `unicodedata` has it: every index
built before is refused afterwards. What the table says for one code point:

* SEPARATOR: ends a token. Everything that is not listed below.
* SKIP: vanishes and does not end a token: combining marks of a non-zero class (accents, virama,
  vowel points) and default-ignorable characters (soft hyphen, zero-width joiner, variation selectors).
* LETTER, DIGIT: belongs to a token, as the given UTF-8 bytes.
* SINGLE: a token of its own: scripts written without spaces.
* EXPAND: several of the above (a ligature, a fraction, an expanded ideogram).

The folding of one code point is NFKD, case folding, NFKD again, and marks of a non-zero combining
class dropped; a decimal digit of any script becomes the ASCII digit.

One entry is a uint64: bits 0-31 UTF-8 bytes (little end first) or, for EXPAND, the first index into
`expansions`; bits 32-39 the number of bytes or of entries; bits 40-47 the class.
"""

from __future__ import annotations

import pathlib
import sys
import unicodedata

import numpy as np

SEPARATOR, SKIP, LETTER, DIGIT, SINGLE, EXPAND = range(6)
UNSPACED = (
    "CJK ",
    "HIRAGANA",
    "KATAKANA",
    "THAI ",
    "LAO ",
    "KHMER ",
    "MYANMAR ",
    "IDEOGRAPHIC ",
    "HALFWIDTH KATAKANA",
)
IGNORABLE = [
    (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5),
    (0x180B, 0x180F), (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164),
    (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8),
    (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
]  # fmt: skip


def classify(char: str) -> tuple[int, bytes]:
    """The class of a character that needs no further folding, and its UTF-8 bytes."""
    point = ord(char)
    if any(low <= point <= high for low, high in IGNORABLE):
        return SKIP, b""
    category = unicodedata.category(char)
    if category == "Me" or (category[0] == "M" and unicodedata.combining(char)):
        return SKIP, b""
    if category == "Nd":
        return DIGIT, str(unicodedata.decimal(char)).encode()
    if category[0] not in "LNM":
        return SEPARATOR, b""
    if unicodedata.name(char, "").startswith(UNSPACED):
        return SINGLE, char.encode()
    return (DIGIT if category[0] == "N" else LETTER), char.encode()


def fold(point: int) -> list[tuple[int, bytes]]:
    """The classes and bytes that one code point turns into, skipped ones left out."""
    if 0xD800 <= point <= 0xDFFF:
        return [(SEPARATOR, b"")]
    folded = unicodedata.normalize("NFKD", chr(point)).casefold()
    parts = [classify(c) for c in unicodedata.normalize("NFKD", folded)]
    if any(low <= point <= high for low, high in IGNORABLE):
        return []
    parts = [p for p in parts if p[0] != SKIP]
    if len(parts) > 1 and any(kind in (SEPARATOR, SINGLE) for kind, _ in parts):
        # No word reaches into a fraction or an expanded sign: "3½" is 3, 1, 2, as "3 1/2" is.
        return [(SEPARATOR, b""), *parts, (SEPARATOR, b"")]
    return parts


def pack(kind: int, payload: int, count: int) -> int:
    return payload | count << 32 | kind << 40


def is_one_word(parts: list[tuple[int, bytes]]) -> bool:
    """Letters and digits of four bytes at most: one entry holds them (ligatures, sharp s)."""
    return all(k in (LETTER, DIGIT) for k, _ in parts) and sum(len(b) for _, b in parts) <= 4


def main() -> None:
    entries = np.zeros(0x110000, np.uint64)
    expansions: list[int] = []
    for point in range(0x110000):
        parts = fold(point)
        packed = [pack(k, int.from_bytes(b, "little"), len(b)) for k, b in parts]
        if not parts:
            entries[point] = pack(SKIP, 0, 0)
        elif len(parts) == 1:
            entries[point] = packed[0]
        elif is_one_word(parts):
            kind = DIGIT if any(k == DIGIT for k, _ in parts) else LETTER
            word = b"".join(b for _, b in parts)
            entries[point] = pack(kind, int.from_bytes(word, "little"), len(word))
        else:
            entries[point] = pack(EXPAND, len(expansions), len(packed))
            expansions += packed
    pages, page_of = np.unique(entries.reshape(-1, 256), axis=0, return_inverse=True)
    out = pathlib.Path(__file__).parent.parent / "src/unseen/codepoints.npz"
    np.savez_compressed(
        out,
        pages=page_of.reshape(-1).astype(np.uint16),
        entries=pages.reshape(-1),
        expansions=np.array(expansions, np.uint64),
        unicode_version=np.array(unicodedata.unidata_version),
    )
    print(
        f"{out}: Unicode {unicodedata.unidata_version}, {len(pages)} pages, "
        f"{len(expansions)} expansions, {out.stat().st_size} bytes, Python {sys.version.split()[0]}"
    )


if __name__ == "__main__":
    main()
