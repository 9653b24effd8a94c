"""JSON lines, the short way: what the kernel takes is what Python's json makes of it, and it takes
nothing that is no JSON. What it leaves goes the careful way, which `test_pool` covers."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest
import simdjson
from hypothesis import example, given, settings
from hypothesis import strategies as st

from unseen import kernels
from unseen.errors import BadInput
from unseen.files import list_shards
from unseen.pool import TextField, read_batches

SLACK = 64
TEXT, ID = np.frombuffer(b"text", np.uint8), np.frombuffer(b"id", np.uint8)


def take(lines: bytes, *, start: int = 0, after: bytes = b"", most: int = 1 << 40, id_key=ID):
    """(texts, ids, bytes left, nulls) as the kernel reads them. `after` lies behind the block, where a
    reader's buffer has what it held before."""
    buffer = lines + after + bytes(SLACK - len(after))
    data = np.frombuffer(buffer, np.uint8)
    out = np.full(len(lines) - start + 2 * SLACK, 0x55, np.uint8)
    lengths, spans = np.empty(64, np.int64), np.empty((64, 2), np.int64)
    reached, rows, filled, nulls = kernels.read_json_lines(
        data, start, len(lines), TEXT, id_key, most, out, 0, lengths, spans
    )
    assert start <= reached <= len(lines)
    assert filled == lengths[:rows].sum() <= len(lines) - start
    ends = np.cumsum(lengths[:rows]).tolist()
    texts = [out[a:b].tobytes().decode() for a, b in zip([0, *ends], ends, strict=False)]
    ids = [None if a < 0 else buffer[a:b].decode() for a, b in spans[:rows].tolist()]
    return texts, ids, len(lines) - reached, nulls


def taken(line: bytes, **options: Any) -> str | None:
    """The text of one line, None if the kernel leaves it."""
    texts, _, left, nulls = take(line, **options)
    assert len(texts) == (left == 0 < len(line))
    assert nulls == 0 or texts == [""]
    return texts[0] if texts else None


# ---- objects as other programs write them ----------------------------------------------------------

CHARACTERS = st.one_of(
    st.characters(exclude_categories=["Cs"]), st.sampled_from('"\\/\b\f\n\r\t\x00\x1f\x7fué数😀{}[],: ')
)
STRINGS = st.one_of(
    st.text(CHARACTERS, max_size=12),
    st.text(CHARACTERS, max_size=200),
    st.sampled_from(["", "text", "id", '"text": "x"', '{"text": 1}', "\\", '\\"', "null"]),
    st.builds(  # something special at the edges of 64 bytes
        lambda n, mark, m: "a" * n + mark + "b" * m,
        st.integers(55, 70), st.sampled_from([*'\n"\\é数😀', "\\n"]), st.integers(0, 140),
    ),
)  # fmt: skip
NUMBERS = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.integers(-9, 9))
SCALARS = st.one_of(STRINGS, NUMBERS, st.none(), st.booleans())
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(STRINGS, st.just("text")), inner, max_size=4),
    ),
    max_leaves=8,
)
MEMBERS = st.lists(
    st.one_of(
        st.tuples(st.just("text"), st.one_of(STRINGS, st.none())),
        st.tuples(st.sampled_from(["text", "id"]), VALUES),
        st.tuples(st.just("id"), st.one_of(STRINGS, st.integers(0, 10**20))),
        st.tuples(STRINGS, VALUES),
    ),
    max_size=6,
)


def written(rng: random.Random, value: Any) -> str:
    """A value as JSON with white space and escapes wherever they may be. Objects are lists of pairs."""

    def space() -> str:
        return rng.choice(["", "", "", " ", "\t", "\r", "  "])

    def character(c: str) -> str:
        short = {'"': '\\"', "\\": "\\\\", "/": "\\/", "\b": "\\b", "\f": "\\f", "\n": "\\n",
                 "\r": "\\r", "\t": "\\t"}  # fmt: skip
        if c in short and rng.random() < 0.7:
            return short[c]
        if c < " " or c in '"\\' or rng.random() < rate:
            code = c.encode("utf-16-be").hex()
            code = code.upper() if rng.random() < 0.5 else code
            return "".join("\\u" + code[n : n + 4] for n in range(0, len(code), 4))
        return c

    rate = rng.choice([0, 0, 0.05, 1])
    if isinstance(value, str):
        return '"' + "".join(map(character, value)) + '"'
    if isinstance(value, dict):
        value = tuple(value.items())
    if isinstance(value, tuple):
        members = [f"{written(rng, k)}{space()}:{space()}{written(rng, v)}" for k, v in value]
        return "{" + space() + f"{space()},{space()}".join(members) + space() + "}"
    if isinstance(value, list):
        return (
            "[" + space() + f"{space()},{space()}".join(written(rng, v) for v in value) + space() + "]"
        )
    return json.dumps(value)


def expected(members: list[tuple[str, Any]]) -> tuple[str | None, str | None] | None:
    """(text, id) of a row, None if it is a bad one."""
    texts = [value for key, value in members if key == "text"]
    ids = [value for key, value in members if key == "id"]
    if len(texts) != 1 or not isinstance(texts[0], str | None):
        return None
    ident = ids[0] if ids else None
    return texts[0], ident if isinstance(ident, str | None) else json.dumps(ident, ensure_ascii=False)


@settings(deadline=None, max_examples=300)
@given(
    rows=st.lists(MEMBERS, min_size=1, max_size=6),
    seed=st.integers(0, 1 << 30),
    ends=st.lists(st.sampled_from(["\n", "\r\n", " \n", "\n\n"]), min_size=6, max_size=6),
    batch_bytes=st.sampled_from([1, 100, 1 << 20]),
)
def test_batches_are_what_json_makes_of_the_lines(tmp_path_factory, rows, seed, ends, batch_bytes):
    rng = random.Random(seed)
    path = tmp_path_factory.mktemp("rows") / "a.jsonl"
    lines = [written(rng, tuple(members)) for members in rows]
    for line, members in zip(lines, rows, strict=True):
        pairs = json.loads(line, object_pairs_hook=lambda pairs: pairs)
        assert [key for key, _ in pairs] == [key for key, _ in members]
    path.write_bytes("".join(a + b for a, b in zip(lines, ends, strict=False)).encode())
    found: dict[int, Any] = {}
    nulls = 0
    for batch in read_batches(
        list_shards([str(path)]).shards[0], text_field=TextField.parse("text"), id_field="id",
        on_bad_row="quarantine", batch_bytes=batch_bytes,
    ):  # fmt: skip
        for n, row in enumerate(batch.rows.tolist()):
            text = batch.data[batch.offsets[n] : batch.offsets[n + 1]].tobytes().decode()
            found[row] = (text, batch.ids[n])
        found |= {bad.row: None for bad in batch.bad}
        assert all(bad.raw.decode().rstrip(" \r") == lines[bad.row].rstrip(" \r") for bad in batch.bad)
        nulls += batch.null_rows
    made = [expected(members) for members in rows]
    assert nulls == sum(row is not None and row[0] is None for row in made)
    made_rows = {n: row and (row[0] or "", row[1]) for n, row in enumerate(made)}
    loose = {n for n, members in enumerate(rows) if not comparable_id(members)}
    for n, row in made_rows.items():
        assert found[n] == row or (n in loose and row and found[n] and found[n][0] == row[0])
    assert len(found) == len(rows)


def comparable_id(members: list[tuple[str, Any]]) -> bool:
    """Not of ids that parsers print each in their way, or that are there twice."""
    ids = [value for key, value in members if key == "id"]
    return len(ids) < 2 and all(isinstance(i, str | int | None) for i in ids)


def test_ordinary_rows_take_the_short_way():
    rows = [
        {
            "id": "a/1",
            "text": "x" * n + '"\n\\é数😀' + "y" * (200 - n),
            "meta": {"n": [n, -1.5e3, True]},
        }
        for n in range(40)
    ]
    for ascii_only in (True, False):
        lines = "".join(json.dumps(row, ensure_ascii=ascii_only) + "\r\n" for row in rows).encode()
        texts, ids, left, nulls = take(lines)
        assert texts == [row["text"] for row in rows]
        assert ids == [row["id"] for row in rows]
        assert (left, nulls) == (0, 0)
        assert len(take(lines, most=3)[0]) == 3
        assert take(lines, id_key=np.frombuffer(b"", np.uint8))[1] == [None] * 40
    assert take(b'{"text": null}\n{"id": 12, "text": ""}') == (["", ""], [None, "12"], 0, 1)
    assert take(b'{"\\u0074e\\u0078t": "x"}')[0] == ["x"]


@pytest.mark.parametrize(
    "line",
    [
        b"", b" ", b"\r", b"\x00", b"{}", b"[]", b"null", b'"text"', b'{"id": "text"}', b'{"text": 1}',
        b'{"text": "a", "text": "a"}', b'{"text": "a", "t\\u0065xt": "a"}', b'{"text": "a"}}',
        b'{"text": "a"} {"text": "b"}', b'{"text": "a",}', b'{,"text": "a"}', b'{"text" "a"}',
        b'{"text": "a" "b": 1}', b'{"text": "a"',
        b'{"text": "a', b'{"text": "a\\"}', b'{"text": "\\x"}',
        b'{"text": "\\u12g4"}', b'{"text": "\\u123"}', b'{"text": "\\ud800"}', b'{"text": "\\udc00x"}',
        b'{"text": "\\ud800\\u0041"}', b'{"text": "\\ud800\\ud800\\udc00"}', b'{"text": "a\tb"}',
        b'{"text": "a", "b": "\x01"}', b'{"text": "a", "b": "\\ud800"}', b'{"text": "a", "b": 01}',
        b'{"text": "a", "b": 1.}', b'{"text": "a", "b": .5}', b'{"text": "a", "b": 1e}',
        b'{"text": "a", "b": +1}', b'{"text": "a", "b": -}', b'{"text": "a", "b": NaN}',
        b'{"text": "a", "b": nul}', b'{"text": "a", "b": nulll}', b'{"text": "a", "b": True}',
        b'{"text": "a", "b": [1,]}', b'{"text": "a", "b": [1 2]}', b'{"text": "a", "b": [}}',
        b'{"text": "a", "b": [1}', b'{"text": "a", "b": {"c": 1]}', b'{"text": "a", "b": {"c"}}',
        b'{"text": "a", "b": {1: 2}}', b'{"text": "a", "b": {,}}', b'{"text": "a", "b": }',
        b'{"text": "a", 5: 1}', b'{"text": "a"; "b": 1}', b'\xef\xbb\xbf{"text": "a"}',
        b'{"text": "a"}\x00',
        b'{"text": "a", "id": "a\\n"}', b'{"text": "a", "id": -5}', b'{"text": "a", "id": 1.5}',
        b'{"text": "a", "id": [1]}', b'{"text": "a", "b": 1234567890123456789012}',
        b'{"text": "a", "b": 1e999}', b'{"text": "a", "b": ' + b"[" * 66 + b"]" * 66 + b"}",
        b'{"text": "\xff"}', b'{"text": "\xc3"}', b'{"text": "\xa9"}',
        b'{"text": "a", "\xed\xa0\x80": 1}',
    ],
)  # fmt: skip
def test_what_is_not_plain_is_left(line):
    """Also when what lies behind the line, or behind the block, would make it whole."""
    for after in (b"", b'"}', b'"}\n{"text": "b"}\n', b"}", b"]}", b'u0041"}', b"\xa9" * 64, b'x"}'):
        assert taken(line, after=after[:SLACK]) is None
    good = b'{"text": "good"}'
    texts, _, left, _ = take(good + b"\n" + line + b"\n" + good)
    assert (texts, left) == (["good"], len(line + b"\n" + good))
    assert take(line + b"\n" + good, start=len(line) + 1)[0] == ["good"]


# ---- lines that were damaged ----------------------------------------------------------------------


PIECES = [bytes([c]) for c in b'"\\{},:[]0e-t \x00\x80\xe0'] + [
    b"\\u", b"\xc0\x80", b"\xed\xa0\x80", b"\xf0\x80\x80\x80", b"\xf4\x90\x80\x80",
]  # fmt: skip


def strictly(line: bytes) -> str | None:
    """The text if two independent parsers take the line, and there is one text; None otherwise."""
    try:
        parsed = simdjson.Parser().parse(line, recursive=True)
        pairs = json.loads(line.decode(), object_pairs_hook=lambda pairs: pairs)
    except (ValueError, RuntimeError):
        return None
    texts = [value for key, value in pairs if key == "text"]
    assert isinstance(parsed, dict)
    return (texts[0] or "") if len(texts) == 1 and isinstance(texts[0], str | None) else None


@settings(deadline=None, max_examples=600)
@given(
    members=MEMBERS,
    text=STRINGS,
    seed=st.integers(0, 1 << 30),
    change=st.sampled_from(["cut", "flip", "drop", "insert", "double", "swap"]),
    after=st.sampled_from([b"", b'"}', b"}", b'": 1}', b"\x80\x80"]),
)
@example([], "x", 0, "cut", b'"}')
def test_damaged_lines_are_never_taken(members, text, seed, change, after):
    rng = random.Random(seed)
    members = [pair for pair in members if pair[0] != "text"]
    members.insert(rng.randint(0, len(members)), ("text", text))
    line = bytearray(written(rng, tuple(members)).encode())
    for _ in range(rng.randint(1, 2)):
        at = rng.randrange(len(line)) if line else 0
        if change == "cut":
            line = line[:at]
        elif change == "flip" and line:
            line[at] ^= 1 << rng.randrange(8)
        elif change == "drop":
            del line[at : at + rng.randint(1, 3)]
        elif change == "insert":
            line[at:at] = rng.choice(PIECES)
        elif change == "double":
            line[at:at] = line[at : at + 8]
        else:
            other = rng.randrange(len(line))
            line[at], line[other] = line[other], line[at]
    whole = bytes(line).replace(b"\n", b" ")
    found = taken(whole, after=after)
    if found is not None:
        assert found == strictly(whole)


def test_utf8_is_checked_like_python_does():
    """All pairs and many longer runs of bytes that matter, at every place of 64 bytes."""
    rng = random.Random(3)
    edges = [*b" A\x7f\x80\x8f\x90\x9f\xa0\xbf\xc0\xc1\xc2\xdf\xe0\xe1\xec\xed\xee\xef\xf0\xf1"]
    edges += [0xF3, 0xF4, 0xF5, 0xFF]
    runs = [bytes([a, b]) for a in edges for b in edges]
    runs += [bytes(rng.choices(edges, k=rng.randint(1, 5))) for _ in range(6000)]
    runs += [
        chr(c).encode() for c in (0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF)
    ]
    for n, run in enumerate(runs):
        raw = b"a" * (n % 130) + run + b"b" * (n % 5)
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            text = None
        assert taken(b'{"text": "' + raw + b'"}') == text


def test_an_error_names_the_right_line(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"text": "a"}\n' * 5000 + b"\n" + b'{"text": 1}\n' + b'{"text": "a"}\n' * 5)
    shard = list_shards([str(path)]).shards[0]
    with pytest.raises(BadInput, match=r"row 5000 \(line 5002\)"):
        list(read_batches(shard, text_field=TextField.parse("text")))
