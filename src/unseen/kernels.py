"""All Numba code, and every constant that it uses, in this one file.

Numba's cache does not notice edits in other files, so nothing here imports from the package. Kernels
know arrays only. They never raise, never allocate in proportion to their input (scratch comes in), and
return counts; the callers in `tokens`, `index` and `scan` validate.

Order of the file: machine words, tokens, n-grams, seeds, chains, alignment, published score, answers,
and `scan_texts`, which calls them in that order and is the function to read first. At the end, apart
from the detector: JSON lines, checked and unescaped into a batch for `pool`.

Units: "bytes" are offsets into a batch's `data`, "tokens" are positions in the current segment of a
document, "items" are rows of the reference set. A token is a uint32: 31 bits of hash, and bit 0 set
when the token holds a digit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

# Classes of code points; tools/make_codepoints.py writes the same numbers.
SEPARATOR, SKIP, LETTER, DIGIT, SINGLE, EXPAND = range(6)

N = 5  # tokens in a seed
QUESTION_N = 4  # tokens in an n-gram of the published question overlap: its 5 BPE tokens are 3.85 words
ANSWER_N = 3  # tokens in an answer n-gram (published)
PASSAGE_N = 4  # tokens in a passage n-gram (published)
SEGMENT = 65536  # tokens of a document looked at together: bounds scratch, whatever its length
OVERLAP = 8192  # tokens that two segments of one document share; no window is longer
PIECE = 8192  # bytes that `tokenize` cuts into runs at a time
MAX_QUESTION = 2048  # tokens of a question that are indexed
MAX_SEEDS = 1 << 18  # postings expanded per segment before the commonest n-grams are left out
MAX_CELLS = 1 << 20  # cells of one alignment; a larger one is banded
AHEAD = 32  # n-grams whose place in the filter is asked for before they are looked at
CELL_BUDGET = 1 << 26  # cells aligned per segment before chains are judged by their seeds alone
MIN_COVERAGE = 0.5  # matches are recorded from here on, far below any verdict
STRANGER = np.float32(0.5)  # nats that a foreign token inside a match speaks against it
MIN_INFORMATION = 12.0  # nats; with less, and a question overlap under MIN_OVERLAP, it is no evidence
MIN_OVERLAP = 0.6

# Columns of a match as `scan_texts` writes it: integers, then floats.
(TEXT, ITEM, START, END, ANSWER_START, ANSWER_END, OPTION, NUMBERS_MISSING, NUMBERS_CHANGED,
 NUMBERS, QUESTION_TOKENS, QUESTION_GRAMS, ANSWER_TOKENS, PASSAGE_TOKENS) = range(14)  # fmt: skip
(COVERAGE, FOUND, HOLES, ENDS, FOREIGN, ANSWER_INFORMATION, QUESTION_OVERLAP, ANSWER_OVERLAP,
 PASSAGE_OVERLAP) = range(9)  # fmt: skip
INTS, FLOATS = 14, 9

# Counters. CROWDED: segments whose commonest n-grams were left out; HURRIED: chains that were aligned
# in a narrow band because their segment had used up CELL_BUDGET.
(COUNT_TOKENS, COUNT_HITS, COUNT_SEEDS, COUNT_CHAINS, COUNT_CELLS, COUNT_CROWDED,
 COUNT_HURRIED) = range(7)  # fmt: skip
COUNTERS = 7

U0 = np.uint64(0)
U1 = np.uint64(1)
U2 = np.uint64(2)
U6 = np.uint64(6)
U8 = np.uint64(8)
U12 = np.uint64(12)
U28 = np.uint64(28)
U29 = np.uint64(29)
U32 = np.uint64(32)
U40 = np.uint64(40)
U63 = np.uint64(63)
U64 = np.uint64(64)
BYTE = np.uint64(0xFF)
LOW32 = np.uint64(0xFFFFFFFF)
QPOS_MASK = np.uint64(0xFFF)
DPOS_MASK = np.uint64(0xFFFF)
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
HIGH_BITS = np.uint64(0x8080808080808080)
CASE_BITS = np.uint64(0x2020202020202020)
LETTER_BITS = np.uint64(0x4040404040404040)
WORD_SEED = np.uint64(0x9E3779B97F4A7C15)
WORD_MIX = np.uint64(0xD6E8FEB86659FD93)
WORD_LAST = np.uint64(0xA0761D6478BD642F)
GRAM_1 = np.uint64(0x9E3779B97F4A7C15)
GRAM_2 = np.uint64(0xC2B2AE3D27D4EB4F)
GRAM_3 = np.uint64(0x165667B19E3779F9)
GRAM_4 = np.uint64(0xD6E8FEB86659FD93)
GRAM_MIX = np.uint64(0xFF51AFD7ED558CCD)


class Codepoints(NamedTuple):
    """The frozen folding table (see tools/make_codepoints.py)."""

    pages: np.ndarray  # uint16[4352]: page of each block of 256 code points
    entries: np.ndarray  # uint64[256 * pages]
    expansions: np.ndarray  # uint64[]


class Grams(NamedTuple):
    """The n-grams that may seed a match."""

    filter: np.ndarray  # uint64[2**k]: blocked Bloom filter, two bits of one word per n-gram
    bucket: np.ndarray  # uint32[2**b + 1]: first key of each value of the key's top b bits
    key: np.ndarray  # uint64[grams]: n-gram hashes, ascending
    ptr: np.ndarray  # int64[grams + 1]: postings of each n-gram
    question: np.ndarray  # uint32[postings]
    position: np.ndarray  # uint16[postings]: token position in the question


class Questions(NamedTuple):
    """The distinct questions."""

    ptr: np.ndarray  # int64[questions + 1]: tokens of each
    token: np.ndarray  # uint32[]
    weight: np.ndarray  # float32[]: nats; negative where the token occurred before; 0 = template
    gram_weight: np.ndarray  # float32[]: idf of the 4-gram that starts there; 0 = repeated or none
    total: np.ndarray  # float32[questions]: sum of |weight|
    seeds: np.ndarray  # uint16[questions]: n-gram positions that have a posting
    owner_ptr: np.ndarray  # int64[questions + 1]
    owner: np.ndarray  # uint32[]: items that ask this question


class Answers(NamedTuple):
    """The answers (options) of all items."""

    of_item: np.ndarray  # int64[items + 1]: answers of each item
    correct: np.ndarray  # uint8[answers]
    ptr: np.ndarray  # int64[answers + 1]: tokens of each
    token: np.ndarray  # uint32[]
    weight: np.ndarray  # float32[]: nats; negative where the token occurred before
    gram_weight: np.ndarray  # float32[]: idf of the 3-gram that starts there; 0 = repeated or none


class Passages(NamedTuple):
    """The distinct passages."""

    of_item: np.ndarray  # int32[items]: passage of each item, -1 = none
    ptr: np.ndarray  # int64[passages + 1]: tokens of each
    token: np.ndarray  # uint32[]
    gram_weight: np.ndarray  # float32[]: idf of the 4-gram that starts there; 0 = repeated or none


class IndexArrays(NamedTuple):
    """A compiled reference set. All arrays are read-only."""

    grams: Grams
    questions: Questions
    answers: Answers
    passages: Passages


class Segment(NamedTuple):
    """The tokens of a stretch of a document, at most SEGMENT of them."""

    begin: np.ndarray  # int64[PIECE]: runs of a piece (bytes)
    stop: np.ndarray  # int64[PIECE]
    token: np.ndarray  # uint32[SEGMENT]
    start: np.ndarray  # int64[SEGMENT]: first byte of each token
    end: np.ndarray  # int64[SEGMENT]: byte after each token
    gram: np.ndarray  # uint64[SEGMENT]


class Hits(NamedTuple):
    """n-grams of a segment that the index holds, and what they lead to."""

    position: np.ndarray  # int32[SEGMENT]: token of the segment
    slot: np.ndarray  # int64[SEGMENT]: row of Grams.key
    seed: np.ndarray  # uint64[MAX_SEEDS]: question << 28 | document position << 12 | question position
    spare: np.ndarray  # uint64[MAX_SEEDS]: for sorting
    tally: np.ndarray  # uint8[65536]: seeds per question, hashed; zero between calls
    load: np.ndarray  # int64[4096]: postings per n-gram, hashed; for sorting


class Window(NamedTuple):
    """Working memory of one alignment."""

    cells: np.ndarray  # uint8[MAX_CELLS + 16 * MAX_QUESTION]
    row: np.ndarray  # float32[2 * OVERLAP + 4]
    path: np.ndarray  # int32[MAX_QUESTION]: document position of each question token, or -1
    bits: np.ndarray  # uint64[64]
    part_gram: np.ndarray  # uint64[OVERLAP]: n-grams of a question, answer or passage
    gram: np.ndarray  # uint64[OVERLAP]: n-grams of the text
    set_a: np.ndarray  # uint64[2 * OVERLAP]: an open-addressed set
    set_b: np.ndarray  # uint64[2 * OVERLAP]


class Scratch(NamedTuple):
    """Working memory of one scanning process."""

    segment: Segment
    hits: Hits
    window: Window


def make_scratch() -> Scratch:
    """Working memory for `scan_texts`, about 9 MB."""
    u64, u32, i64, i32, u8, f32 = (
        np.uint64, np.uint32, np.int64, np.int32, np.uint8, np.float32,
    )  # fmt: skip

    def zeros(*sizes):
        return [np.zeros(size, dtype) for size, dtype in sizes]

    return Scratch(
        Segment(*zeros((PIECE, i64), (PIECE, i64), (SEGMENT, u32), (SEGMENT, i64), (SEGMENT, i64),
                       (SEGMENT, u64))),
        Hits(*zeros((SEGMENT, i32), (SEGMENT, i64), (MAX_SEEDS, u64), (MAX_SEEDS, u64), (65536, u8),
                    (4096, i64))),
        Window(*zeros((MAX_CELLS + 16 * MAX_QUESTION, u8), (2 * OVERLAP + 4, f32), (MAX_QUESTION, i32),
                      (64, u64), (OVERLAP, u64), (OVERLAP, u64), (2 * OVERLAP, u64),
                      (2 * OVERLAP, u64))),
    )  # fmt: skip


# error_model: no check for division by zero. _nrt: without it a call counts references to each array,
# two atomic operations for every one, which made text that is not ASCII 10 times slower; nothing here
# allocates. A `part` has no entry from Python, which saves a third of the time to compile; a `stage` is
# compiled as part of its callers only.
kernel = njit(cache=True, error_model="numpy", _nrt=False, no_cfunc_wrapper=True)
part = njit(cache=True, error_model="numpy", _nrt=False, no_cfunc_wrapper=True, no_cpython_wrapper=True)
stage = njit(cache=True, error_model="numpy", _nrt=False, inline="always")


# --- machine words -----------------------------------------------------------------------------------


@intrinsic
def load64(typingctx, array, index):
    """uint64 from 8 bytes of a uint8 array at any byte offset (one unaligned load)."""

    def codegen(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        pointer = builder.gep(data, [args[1]])
        word = builder.bitcast(pointer, ir.IntType(64).as_pointer())
        return builder.load(word, align=1)

    return types.uint64(array, types.int64), codegen


@intrinsic
def token_mask64(typingctx, array, index):
    """One bit per byte of the 64 at `index`: ASCII letter, ASCII digit, or not ASCII."""

    def codegen(context, builder, signature, args):
        lanes = ir.VectorType(ir.IntType(8), 64)
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        pointer = builder.bitcast(builder.gep(data, [args[1]]), lanes.as_pointer())
        block = builder.load(pointer, align=1)

        def splat(value):
            return ir.Constant(lanes, [value] * 64)

        lower = builder.or_(block, splat(0x20))
        letter = builder.icmp_unsigned("<", builder.sub(lower, splat(ord("a"))), splat(26))
        digit = builder.icmp_unsigned("<", builder.sub(block, splat(ord("0"))), splat(10))
        foreign = builder.icmp_unsigned(">=", block, splat(0x80))
        bits = builder.or_(builder.or_(letter, digit), foreign)
        return builder.bitcast(bits, ir.IntType(64))

    return types.uint64(array, types.int64), codegen


@intrinsic
def punctuation_mask64(typingctx, array, index):
    """One bit for each U+2010 to U+2027 (dashes, quotes, ellipses) whose three bytes lie in the 64 at
    `index`: that of its first byte."""

    def codegen(context, builder, signature, args):
        lanes = ir.VectorType(ir.IntType(8), 64)
        i64 = ir.IntType(64)
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        pointer = builder.bitcast(builder.gep(data, [args[1]]), lanes.as_pointer())
        block = builder.load(pointer, align=1)

        def bits(comparison, vector, value):
            constant = ir.Constant(lanes, [value] * 64)
            return builder.bitcast(builder.icmp_unsigned(comparison, vector, constant), i64)

        third = bits("<", builder.sub(block, ir.Constant(lanes, [0x90] * 64)), 0x18)
        second = builder.lshr(bits("==", block, 0x80), ir.Constant(i64, 1))
        third = builder.lshr(third, ir.Constant(i64, 2))
        return builder.and_(builder.and_(bits("==", block, 0xE2), second), third)

    return types.uint64(array, types.int64), codegen


@intrinsic
def hash_runs8(typingctx, data, begin, stop, first, token, start, end, place):
    """Tokens of runs first..first+7, as if all were ASCII and of 16 bytes at most; a bit for each that
    is not.

    data uint8[] (64 more bytes readable), begin and stop int64[] (bytes of each run); out, from index
    `place` on: token uint32[8], start and end int64[8]. The vector form of

        state = _mix(WORD_SEED, word 0 of the run, lower-cased, zero-padded)
        state = _mix(state, word 1) where the run has more than 8 bytes
        token = _finish(state, whether a byte is a digit)
    """

    def codegen(context, builder, signature, args):
        i64, i32, i8 = ir.IntType(64), ir.IntType(32), ir.IntType(8)
        lanes = ir.VectorType(i64, 8)
        arrays = {
            k: context.make_array(signature.args[k])(context, builder, args[k]).data
            for k in (0, 1, 2, 4, 5, 6)
        }

        def splat(value):
            return ir.Constant(lanes, [int(value)] * 8)

        def at(k, index, vector):
            pointer = builder.gep(arrays[k], [args[index]])
            return builder.bitcast(pointer, vector.as_pointer())

        def minimum(a, b):
            return builder.select(builder.icmp_unsigned("<", a, b), a, b)

        def low_bytes(count):
            half = builder.shl(count, splat(2))
            return builder.not_(builder.shl(builder.shl(splat(ALL), half), half))

        def words(offset):
            out = ir.Constant(lanes, ir.Undefined)
            for lane in range(8):
                index = builder.extract_element(begins, ir.Constant(i32, lane))
                index = builder.add(index, ir.Constant(i64, offset))
                pointer = builder.bitcast(builder.gep(arrays[0], [index]), i64.as_pointer())
                word = builder.load(pointer, align=1)
                out = builder.insert_element(out, word, ir.Constant(i32, lane))
            return out

        def mix(state, word):
            state = builder.mul(builder.xor(state, word), splat(WORD_MIX))
            return builder.xor(state, builder.lshr(state, splat(32)))

        begins = builder.load(at(1, 3, lanes), align=8)
        ends = builder.load(at(2, 3, lanes), align=8)
        size = builder.sub(ends, begins)
        short = minimum(size, splat(8))
        keep = low_bytes(short)
        more = low_bytes(builder.sub(minimum(size, splat(16)), short))
        word = builder.and_(words(0), keep)
        second = builder.and_(words(8), more)
        one = mix(splat(WORD_SEED), builder.or_(word, builder.and_(splat(CASE_BITS), keep)))
        two = mix(one, builder.or_(second, builder.and_(splat(CASE_BITS), more)))
        state = builder.select(builder.icmp_unsigned(">", size, splat(8)), two, one)
        no_letter = builder.or_(
            builder.and_(builder.not_(word), keep), builder.and_(builder.not_(second), more)
        )
        digits = builder.icmp_unsigned("!=", builder.and_(no_letter, splat(LETTER_BITS)), splat(0))
        hashed = builder.lshr(builder.mul(state, splat(WORD_LAST)), splat(32))
        hashed = builder.or_(builder.and_(hashed, splat(0xFFFFFFFE)), builder.zext(digits, lanes))
        builder.store(
            builder.trunc(hashed, ir.VectorType(i32, 8)), at(4, 7, ir.VectorType(i32, 8)), align=4
        )
        builder.store(begins, at(5, 7, lanes), align=8)
        builder.store(ends, at(6, 7, lanes), align=8)
        foreign = builder.and_(builder.or_(word, second), splat(HIGH_BITS))
        odd = builder.or_(
            builder.icmp_unsigned("!=", foreign, splat(0)), builder.icmp_unsigned(">", size, splat(16))
        )
        return builder.zext(builder.bitcast(odd, i8), i64)

    signature = types.uint64(data, begin, stop, types.int64, token, start, end, types.int64)
    return signature, codegen


@intrinsic
def trailing_zeros(typingctx, word):
    """Zero bits below the lowest set bit of a uint64; 64 for zero."""

    def codegen(context, builder, signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), codegen


@intrinsic
def count_ones(typingctx, word):
    """Set bits of a uint64."""

    def codegen(context, builder, signature, args):
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), codegen


@intrinsic
def filter_mask8(typingctx, words, gram, index, shift):
    """A bit for each of the n-grams gram[index:index + 8] (uint64[]) whose two bits are set in the
    filter (see `fill_filter`)."""

    def codegen(context, builder, signature, args):
        i64 = ir.IntType(64)
        lanes = ir.VectorType(i64, 8)
        filter_data = context.make_array(signature.args[0])(context, builder, args[0]).data
        gram_data = context.make_array(signature.args[1])(context, builder, args[1]).data
        pointer = builder.bitcast(builder.gep(gram_data, [args[2]]), lanes.as_pointer())
        h = builder.load(pointer, align=8)
        word = ir.Constant(lanes, ir.Undefined)
        for lane in range(8):
            place = builder.extract_element(h, ir.IntType(32)(lane))
            place = builder.lshr(place, args[3])
            loaded = builder.load(builder.gep(filter_data, [place]), align=8)
            word = builder.insert_element(word, loaded, ir.IntType(32)(lane))

        def splat(value):
            return ir.Constant(lanes, [value] * 8)

        first = builder.lshr(word, builder.and_(h, splat(63)))
        second = builder.lshr(word, builder.and_(builder.lshr(h, splat(6)), splat(63)))
        both = builder.and_(builder.and_(first, second), splat(1))
        mask = builder.bitcast(builder.icmp_unsigned("!=", both, splat(0)), ir.IntType(8))
        return builder.zext(mask, i64)

    return types.uint64(words, gram, types.int64, types.uint64), codegen


@intrinsic
def prefetch(typingctx, array, index):
    """Begin to load array[index] (uint64 index) into the cache; nothing waits for it."""

    def codegen(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        i32, bytes_ = ir.IntType(32), ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [bytes_, i32, i32, i32])
        hint = builder.module.declare_intrinsic("llvm.prefetch", [bytes_], kind)
        place = builder.bitcast(builder.gep(data, [args[1]]), bytes_)
        builder.call(hint, [place, i32(0), i32(3), i32(1)])  # to read, into all levels, data
        return context.get_dummy_value()

    return types.void(array, types.uint64), codegen


# --- tokens ------------------------------------------------------------------------------------------


@part
def _mix(state, word):
    state = (state ^ word) * WORD_MIX
    return state ^ (state >> U32)


@part
def _finish(state, has_digit):
    """31 bits of hash and the digit flag."""
    return np.uint32(((state * WORD_LAST) >> U32) & np.uint64(0xFFFFFFFE) | has_digit)


@part
def _feed(state, word, filled, payload, length):
    """(state, word, filled) of a token's hash after `length` more bytes, 1 to 8, those of payload."""
    word |= payload << (filled * U8)
    filled += length
    if filled >= U8:
        state = _mix(state, word)
        filled -= U8
        word = U0
        if filled > U0:
            word = payload >> ((length - filled) * U8)
    return state, word, filled


@part
def _foreign_run(data, first, last, more, table, token, start, end, count, limit):
    """Tokens of a run of bytes that holds code points above 127.

    data uint8[], the run is data[first:last] (bytes) and goes on there when `more`; table Codepoints;
    token uint32[], start and end int64[] (bytes) are written from `count` on. Returns (count, next
    byte): fewer bytes than asked for when less than 32 places are left before `limit`, or when the
    last token may go on; it is then read again. Cost: linear in the bytes.
    """
    pages, entries, expansions = table
    state = WORD_SEED
    word = U0
    filled = U0  # bytes in `word`
    has_digit = U0
    begin = -1  # first byte of the code point in which the open token began
    begin_count = count  # tokens before that code point
    anchor = first  # where to read again when the run goes on: no token reaches over it
    anchor_count = count  # tokens before `anchor`
    stop = first  # byte after the open token
    i = first
    while i < last and count + 32 <= limit:
        if begin < 0:
            anchor = i
            anchor_count = count
        lead = np.int64(data[i])
        if lead < 0x80:  # letters and digits: what else is ASCII ends a run
            if begin < 0:
                begin = i
                begin_count = count
            eight = load64(data, i)
            length = min(trailing_zeros(eight & HIGH_BITS) // U8, np.uint64(last - i))
            keep = ALL if length >= U8 else ALL >> (U64 - length * U8)
            if ~eight & LETTER_BITS & keep != U0:
                has_digit = U1
            eight = (eight | CASE_BITS) & keep
            state, word, filled = _feed(state, word, filled, eight, length)
            i += np.int64(length)
            stop = i
            continue
        if begin < 0 and 0xE0 <= lead < 0xF0:  # scripts of one token a character, and their signs
            kind = U0
            while i + 3 < last and count + 32 <= limit:
                three = load64(data, i)
                if three & np.uint64(0xF0) != np.uint64(0xE0):
                    break
                point = np.int64(
                    (three & np.uint64(0x0F)) << U12
                    | (three >> np.uint64(2)) & np.uint64(0xFC0)
                    | (three >> np.uint64(16)) & np.uint64(0x3F)
                )
                entry = entries[np.int64(pages[point >> 8]) * 256 + (point & 255)]
                kind = entry >> U40
                if kind != SINGLE and kind != SEPARATOR:
                    break
                if kind == SINGLE:  # nothing is written for a sign: the next place may be in use
                    token[count] = _finish(_mix(WORD_SEED, entry & LOW32), U0)
                    start[count] = i
                    end[count] = i + 3
                    count += 1
                i += 3
            if i >= last or count + 32 > limit or (begin < 0 and data[i] < 0x80):
                continue
            anchor = i
            anchor_count = count
            lead = np.int64(data[i])
        if more and last - i < 4:
            break  # perhaps only part of a code point
        if 0xC3 <= lead < 0xE0 and i + 1 < last:  # letters of two bytes, each one letter when folded
            while i + 1 < last and 0xC3 <= data[i] < 0xE0 and not (more and last - i < 4):
                point = (np.int64(data[i]) & 0x1F) << 6 | (np.int64(data[i + 1]) & 0x3F)
                entry = entries[np.int64(pages[point >> 8]) * 256 + (point & 255)]
                if entry >> U40 != LETTER:
                    break
                if begin < 0:
                    begin = i
                    begin_count = count
                payload = entry & LOW32
                length = (entry >> U32) & BYTE
                state, word, filled = _feed(state, word, filled, payload, length)
                i += 2
                stop = i
            if i >= last or data[i] < 0x80:
                continue
            if begin < 0:
                anchor = i
                anchor_count = count
            lead = np.int64(data[i])
            if more and last - i < 4:
                break
        before = count
        size = 1
        if 0xC2 <= lead < 0xE0 and i + 1 < last:
            point = (lead & 0x1F) << 6 | (np.int64(data[i + 1]) & 0x3F)
            size = 2
        elif 0xE0 <= lead < 0xF0 and i + 2 < last:
            point = (
                (lead & 0x0F) << 12
                | (np.int64(data[i + 1]) & 0x3F) << 6
                | (np.int64(data[i + 2]) & 0x3F)
            )
            size = 3
        elif 0xF0 <= lead < 0xF5 and i + 3 < last:
            point = (
                (lead & 0x07) << 18
                | (np.int64(data[i + 1]) & 0x3F) << 12
                | (np.int64(data[i + 2]) & 0x3F) << 6
                | (np.int64(data[i + 3]) & 0x3F)
            )
            size = 4
        else:
            point = 0  # not UTF-8: callers refuse such text, so a separator will do
        point = min(point, 0x10FFFF)
        entry = entries[np.int64(pages[point >> 8]) * 256 + (point & 255)]
        if entry >> U40 == SINGLE and begin < 0:
            token[count] = _finish(_mix(WORD_SEED, entry & LOW32), U0)
            start[count] = i
            end[count] = i + size
            count += 1
            i += size
            continue
        parts = 1
        base = 0
        if entry >> U40 == EXPAND:
            parts = np.int64((entry >> U32) & BYTE)
            base = np.int64(entry & LOW32)
        for p in range(parts):
            if parts > 1:
                entry = expansions[base + p]
            kind = entry >> U40
            if kind == SKIP:
                if begin >= 0:
                    stop = i + size
                continue
            if kind != LETTER and kind != DIGIT and begin >= 0:  # the open token ends here
                if filled > U0:
                    state = _mix(state, word)
                token[count] = _finish(state, has_digit)
                start[count] = begin
                end[count] = stop
                count += 1
                begin = -1
                state = WORD_SEED
                word = U0
                filled = U0
                has_digit = U0
            if kind == SEPARATOR:
                continue
            payload = entry & LOW32
            if kind == SINGLE:
                token[count] = _finish(_mix(WORD_SEED, payload), U0)
                start[count] = i
                end[count] = i + size
                count += 1
                continue
            if begin < 0:
                begin = i
                begin_count = before
            stop = i + size
            if kind == DIGIT:
                has_digit = U1
            length = (entry >> U32) & BYTE
            state, word, filled = _feed(state, word, filled, payload, length)
        i += size
    if begin >= 0:
        if more and count + 32 <= limit:
            return anchor_count, anchor
        if i < last or more:  # out of room: it is read again by the next call
            return begin_count, begin
        if filled > U0:
            state = _mix(state, word)
        token[count] = _finish(state, has_digit)
        start[count] = begin
        end[count] = stop
        count += 1
    return count, i


@part
def find_runs(data, first, last, begin, stop):
    """Runs of token bytes (see `token_mask64`) in data[first:last].

    data uint8[] with 64 more readable bytes; out: begin and stop int64[], the first byte of each run
    and the byte after it. Common punctuation that is not ASCII ends a run, mostly: where it does not,
    `_foreign_run` finds it. Stops before a block when fewer than 80 places are left. A run that reaches
    the last byte looked at is closed there. Returns (number of runs, byte to go on from). Cost: linear,
    two branches a block.
    """
    limit = np.uint64(begin.shape[0] - 80)
    begun = U0
    stopped = U0
    carry = U0  # last bit of the previous block
    position = first
    while position < last and begun <= limit:
        mask = token_mask64(data, position)
        signs = punctuation_mask64(data, position)
        left = last - position
        if left < 64:
            mask &= (U1 << np.uint64(left)) - U1
            signs &= ((U1 << np.uint64(left)) - U1) >> U2
        mask &= ~(signs | signs << U1 | signs << U2)
        before = mask << U1 | carry
        carry = mask >> U63
        bits = mask & ~before
        place, begun = begun, begun + count_ones(bits)
        while place < begun:  # eight at a time, whether there are as many or not: few branches
            for _ in range(8):
                begin[place] = position + np.int64(trailing_zeros(bits))
                place += U1
                bits &= bits - U1
        bits = before & ~mask
        place, stopped = stopped, stopped + count_ones(bits)
        while place < stopped:
            for _ in range(8):
                stop[place] = position + np.int64(trailing_zeros(bits))
                place += U1
                bits &= bits - U1
        position += 64
    position = min(position, last)
    if stopped < begun:
        stop[stopped] = position
    return np.int64(begun), position


@part
def _long_run(data, first, last):
    """Token of an ASCII run of any length; 0 when it is not ASCII. data uint8[] (64 more readable)."""
    size = np.uint64(last - first)
    state = WORD_SEED
    seen = U0
    digits = U0
    i = first
    while size > U0:
        keep = ALL if size >= U8 else ALL >> (U64 - size * U8)
        word = load64(data, i) & keep
        seen |= word
        digits |= ~word & LETTER_BITS & keep
        state = _mix(state, word | (CASE_BITS & keep))
        size -= min(size, U8)
        i += 8
    if seen & HIGH_BITS != U0:
        return np.uint32(0)
    return _finish(state, U1 if digits != U0 else U0)


@kernel
def tokenize(data, first, last, table, segment):
    """Tokens of data[first:last] (bytes of UTF-8, 64 more readable), from index 0 of the outputs on.

    data uint8[], table Codepoints; out: segment Segment (token, start, end). Stops early when the
    outputs fill up. Returns (number of tokens, byte to go on from; `last` when done). A token's hash
    runs over the UTF-8 bytes of its folded form, eight at a time, zero-padded, so that the ASCII paths
    here and the table path of `_foreign_run` agree. Works in pieces, so that the cost is linear also
    for a text that is one long run.
    """
    begin, stop, token, start, end, _ = segment
    limit = token.shape[0]
    count = 0
    position = first
    piece = PIECE
    while position < last:
        runs, reached = find_runs(data, position, min(last, position + piece), begin, stop)
        for r in range(runs, runs + 8):  # the vector may read eight runs from the last one on
            begin[r] = position
            stop[r] = position
        cut = runs > 0 and stop[runs - 1] == reached and reached < last  # it may go on
        r = 0
        while r < runs:
            if count + 96 > limit:
                return count, begin[r]
            odd = hash_runs8(data, begin, stop, r, token, start, end, count)
            lanes = min(8, runs - r)
            if cut and r + lanes == runs:
                odd |= U1 << np.uint64(lanes - 1)
            while lanes > 0:
                plain = min(np.int64(trailing_zeros(odd)), lanes)
                count += plain
                r += plain
                lanes -= plain
                if lanes == 0:
                    break
                odd >>= np.uint64(plain)
                more = cut and r == runs - 1
                before = count
                hashed = np.uint32(0)
                if stop[r] - begin[r] > 16 and not more:
                    hashed = _long_run(data, begin[r], stop[r])
                if hashed != 0:
                    token[count] = hashed
                    start[count] = begin[r]
                    end[count] = stop[r]
                    count += 1
                else:
                    count, read = _foreign_run(
                        data, begin[r], stop[r], more, table, token, start, end, count, limit
                    )
                    if more:
                        reached = read
                    elif read < stop[r]:
                        return count, read
                r += 1
                lanes = lanes - 1 if count == before + 1 else 0  # the other lanes stay where they are
                odd >>= U1
        piece = piece * 4 if reached == position else PIECE
        position = reached
    return count, last


# --- n-grams -----------------------------------------------------------------------------------------


@part
def _mix_gram(h):
    h ^= h >> U29
    h *= GRAM_MIX
    return h ^ (h >> U32)


@kernel
def hash_grams(token, count, size, gram):
    """64-bit hashes of all n-grams of token[:count].

    token uint32[], size in 3..5 tokens; out: gram uint64[], index = first token of the n-gram.
    Returns their number, max(0, count - size + 1). Cost: linear, no branches.
    """
    grams = count - size + 1
    if grams <= 0:
        return 0
    if size == N:
        for i in range(grams):
            gram[i] = _mix_gram(
                np.uint64(token[i]) * GRAM_4
                + np.uint64(token[i + 1]) * GRAM_3
                + np.uint64(token[i + 2]) * GRAM_2
                + np.uint64(token[i + 3]) * GRAM_1
                + np.uint64(token[i + 4])
            )
        return grams
    for i in range(grams):
        state = U0
        for k in range(size):
            state = _mix_gram(state * GRAM_1 + np.uint64(token[i + k]))
        gram[i] = state
    return grams


@kernel
def fill_filter(keys, words):
    """Set the two bits of every key. keys uint64[]; out: words uint64[2**k], zero on entry."""
    shift = U64 - trailing_zeros(np.uint64(words.shape[0]))
    for i in range(keys.shape[0]):
        h = keys[i]
        words[h >> shift] |= U1 << (h & U63) | U1 << ((h >> U6) & U63)


@kernel
def tokenize_many(data, offsets, table, segment, most, out, length, ptr):
    """Tokens of many texts, one after the other.

    data uint8[] (64 more bytes readable), offsets int64[texts + 1] (bytes), table Codepoints, segment
    Segment (scratch); most: tokens kept of one text. Out: out uint32[] and
    length uint8[] (code points, at most 255), two places per byte suffice, ptr int64[texts + 1].
    Returns the number of tokens.
    """
    total = 0
    for t in range(offsets.shape[0] - 1):
        ptr[t] = total
        position = offsets[t]
        while position < offsets[t + 1]:
            n, position = tokenize(data, position, offsets[t + 1], table, segment)
            for i in range(min(n, most - (total - ptr[t]))):
                points = 0
                for j in range(segment.start[i], segment.end[i]):
                    points += 1 if (data[j] & 0xC0) != 0x80 else 0
                out[total] = segment.token[i]
                length[total] = min(points, 255)
                total += 1
    ptr[offsets.shape[0] - 1] = total
    return total


@kernel
def hash_runs(token, ptr, out):
    """One 64-bit hash per run of tokens. token uint32[], ptr int64[runs + 1]; out: uint64[runs]."""
    for t in range(ptr.shape[0] - 1):
        state = WORD_SEED
        for i in range(ptr[t], ptr[t + 1]):
            state = _mix_gram(state * GRAM_1 + np.uint64(token[i]))
        out[t] = state


@kernel
def hash_many(token, ptr, size, gram):
    """n-gram hashes of many token runs; places without a whole n-gram get 0.

    token uint32[], ptr int64[texts + 1] (tokens), size in 3..5; out: gram uint64[tokens].
    """
    for t in range(ptr.shape[0] - 1):
        first = ptr[t]
        last = ptr[t + 1]
        grams = hash_grams(token[first:last], last - first, size, gram[first:last])
        for i in range(first + grams, last):
            gram[i] = U0


@kernel
def mark_repeats(values, ptr, table, repeated):
    """repeated[i] = 1 where values[i] occurred before in its own run.

    values uint64[], ptr int64[runs + 1], table uint64[2**k] scratch, at least twice the longest run;
    out: repeated uint8[]. The value 0 is never marked. Cost: linear.
    """
    for t in range(ptr.shape[0] - 1):
        length = ptr[t + 1] - ptr[t]
        size = np.uint64(16)
        while size < np.uint64(2 * length):
            size *= np.uint64(2)
        for i in range(size):
            table[i] = U0
        for i in range(ptr[t], ptr[t + 1]):
            repeated[i] = 0
            if values[i] != U0 and _add(table, size, values[i]) == 0:
                repeated[i] = 1


@part
def _add(table, size, value):
    """Insert a non-zero value into an open-addressed set of `size` = 2**k places; 1 when it is new."""
    place = (value >> U12) & (size - U1)
    while table[place] != U0:
        if table[place] == value:
            return 0
        place = (place + U1) & (size - U1)
    table[place] = value
    return 1


@part
def _has(table, size, value):
    place = (value >> U12) & (size - U1)
    while table[place] != U0:
        if table[place] == value:
            return True
        place = (place + U1) & (size - U1)
    return False


@part
def _clear(table, members):
    """Empty the part of a set that `members` values need; returns its size, a power of two."""
    size = np.uint64(16)
    while size < np.uint64(2 * members):
        size *= np.uint64(2)
    for i in range(size):
        table[i] = U0
    return size


# --- seeds -------------------------------------------------------------------------------------------


@kernel
def find_hits(index, gram, grams, step, base, hits):
    """n-grams of a segment that the index holds.

    index Grams, gram uint64[grams]; only every `step`-th position of the document is looked at,
    `base` tokens of it lie before the segment. Out: hits Hits (position, slot). Returns their number.
    The filter first, eight n-grams at a time, so that its cache misses overlap; then the table for what
    is left, whose misses are asked for ahead.
    """
    position = hits.position
    shift = U64 - trailing_zeros(np.uint64(index.filter.shape[0]))
    bucket_shift = U64 - trailing_zeros(np.uint64(index.bucket.shape[0] - 1))
    found = U0
    for i in range(min(AHEAD, grams)):
        prefetch(index.filter, gram[i] >> shift)
    for i in range(0, grams, 8):
        if i + AHEAD + 8 <= grams:
            for k in range(i + AHEAD, i + AHEAD + 8):
                prefetch(index.filter, gram[k] >> shift)
        mask = filter_mask8(index.filter, gram, i, shift)
        if grams - i < 8:
            mask &= (U1 << np.uint64(grams - i)) - U1
        while mask != U0:
            p = i + np.int64(trailing_zeros(mask))
            position[found] = p
            prefetch(index.bucket, gram[p] >> bucket_shift)
            found += U1 if (base + p) % step == 0 else U0
            mask &= mask - U1
    for f in range(found):
        prefetch(index.key, np.uint64(index.bucket[gram[position[f]] >> bucket_shift]))
    kept = 0
    for f in range(found):
        h = gram[position[f]]
        b = h >> bucket_shift
        for k in range(np.int64(index.bucket[b]), np.int64(index.bucket[b + U1])):
            if index.key[k] == h:
                position[kept] = position[f]
                hits.slot[kept] = k
                kept += 1
                break
    return kept


@kernel
def expand_hits(index, seeds_of, hits, count, counters):
    """Postings of the hits, as sorted seeds; questions with too few seeds are left out.

    index Grams, seeds_of uint16[questions], hits Hits: position and slot, `count` of them. Out:
    hits.seed, ascending. hits.tally is zero on entry and on return. When more postings than MAX_SEEDS
    are due, the n-grams that are commonest here (occurrences x postings) are left out, and
    counters[COUNT_CROWDED] says so. Returns the number of seeds. Cost: linear, and a radix sort.
    """
    seed, tally, load = hits.seed, hits.tally, hits.load
    due = 0
    for h in range(count):
        due += index.ptr[hits.slot[h] + 1] - index.ptr[hits.slot[h]]
    ceiling = due
    if due > MAX_SEEDS:
        counters[COUNT_CROWDED] += 1
        ceiling = _crowd_ceiling(index, hits, count)
    made = 0
    for h in range(count):
        slot = hits.slot[h]
        if due > MAX_SEEDS and load[slot & 4095] > ceiling:
            continue
        place = np.uint64(hits.position[h]) << U12
        for p in range(index.ptr[slot], index.ptr[slot + 1]):
            q = np.uint64(index.question[p])
            seed[made] = q << U28 | place | np.uint64(index.position[p])
            made += 1
            if tally[q & DPOS_MASK] < 255:
                tally[q & DPOS_MASK] += 1
    kept = 0
    for s in range(made):
        q = seed[s] >> U28
        if tally[q & DPOS_MASK] >= seeds_needed(seeds_of[q]):
            hits.spare[kept] = seed[s]
            kept += 1
    for s in range(made):
        tally[(seed[s] >> U28) & DPOS_MASK] = 0
    for s in range(kept):
        seed[s] = hits.spare[s]
    sort_words(seed, hits.spare, load, kept)
    return kept


@part
def _crowd_ceiling(index, hits, count):
    """The largest load (occurrences x postings, hashed) of an n-gram that lets all seeds fit."""
    load = hits.load
    for i in range(4096):
        load[i] = 0
    for h in range(count):
        load[hits.slot[h] & 4095] += index.ptr[hits.slot[h] + 1] - index.ptr[hits.slot[h]]
    ceiling = 1
    while True:
        total = 0
        for i in range(4096):
            if load[i] <= 2 * ceiling:
                total += load[i]
        if total > MAX_SEEDS or ceiling > 1 << 40:
            return ceiling
        ceiling *= 2


@part
def sort_words(word, spare, places, count):
    """Sort word[:count] (uint64[]) ascending; spare uint64[], places int64[257] are scratch.

    Insertion sort, or radix.
    """
    if count <= 48:
        for i in range(1, count):
            w = word[i]
            j = i - 1
            while j >= 0 and word[j] > w:
                word[j + 1] = word[j]
                j -= 1
            word[j + 1] = w
        return
    common = word[0]
    differ = U0
    for i in range(count):
        differ |= word[i] ^ common
    shift = U0
    while shift < U64:
        if (differ >> shift) & BYTE != U0:
            for d in range(257):
                places[d] = 0
            for i in range(count):
                places[((word[i] >> shift) & BYTE) + U1] += 1
            for d in range(256):
                places[d + 1] += places[d]
            for i in range(count):
                d = (word[i] >> shift) & BYTE
                spare[places[d]] = word[i]
                places[d] += 1
            for i in range(count):
                word[i] = spare[i]
        shift += U8


@kernel
def seeds_needed(seeds):
    """Seeds a chain must have, of those its question could have: one in ten, at most 100."""
    return min(max((np.int64(seeds) + 9) // 10, 1), 100)


# --- chains ------------------------------------------------------------------------------------------


@kernel
def next_chain(question_ptr, seed, count, at, step, base):
    """The chain that starts at seed[at]: seeds of one question, close together.

    question_ptr int64[], seed uint64[count] sorted. A chain ends where the question changes, where
    more than 32 tokens and an eighth of the question are without a seed, where it gets longer than
    twice the question plus 64, or where the question starts again. Returns (index after the chain,
    first seed, last seed, distinct question positions, whether a sampled position is among them),
    seeds as uint64.
    """
    first = seed[at]
    question = first >> U28
    length = question_ptr[question + U1] - question_ptr[question]
    begin = np.int64((first >> U12) & DPOS_MASK)
    last = first
    highest = np.int64(first & QPOS_MASK)
    distinct = 1
    sampled = step == 1 or (base + begin) % step == 0
    previous = begin
    i = at + 1
    while i < count and seed[i] >> U28 == question:
        d = np.int64((seed[i] >> U12) & DPOS_MASK)
        q = np.int64(seed[i] & QPOS_MASK)
        if d - previous > 32 + length // 8 or d - begin > 2 * length + 64:
            break
        if d > previous and q + length // 2 < highest and d - begin >= length // 2:
            break
        if d > previous:
            distinct += 1
            last = seed[i]
            sampled = sampled or (base + d) % step == 0
        highest = max(highest, q)
        previous = d
        i += 1
    return i, first, last, distinct, sampled


# --- alignment ---------------------------------------------------------------------------------------


@part
def bag_bound(question, weight, token, low, high, bits):
    """Upper bound of the weight that any alignment can reach: question tokens present in the window.

    question uint32[m], weight float32[m], token uint32[], window token[low:high]; bits uint64[64]
    scratch (a 4096-bit set: collisions only raise the bound).
    """
    for i in range(64):
        bits[i] = U0
    for j in range(low, high):
        h = np.uint64(token[j]) >> U6
        bits[h & U63] |= U1 << ((h >> U6) & U63)
    total = np.float32(0)
    for i in range(question.shape[0]):
        h = np.uint64(question[i]) >> U6
        if bits[h & U63] & (U1 << ((h >> U6) & U63)):
            total += abs(weight[i])
    return total


@part
def align(question, weight, token, low, high, limit, window):
    """Weighted longest common subsequence of a question and token[low:high].

    question uint32[m], weight float32[m] (nats, sign ignored), token uint32[]; out: window.path
    int32[m], document position of each question token or -1. Common heads
    and tails are matched first (they belong to a best alignment, up to the weight of a word that is
    also part of a template), the rest by dynamic programming,
    L[i, j] = max(L[i-1, j], L[i, j-1], L[i-1, j-1] + w[i] if equal), in a band when it would need
    more than `limit` cells. Returns the cells used.
    """
    cells, row, path = window.cells, window.row, window.path
    m = question.shape[0]
    head = 0
    while head < m and low + head < high and question[head] == token[low + head]:
        path[head] = low + head
        head += 1
    tail = 0
    while (
        tail < m - head
        and high - tail > low + head
        and question[m - 1 - tail] == token[high - 1 - tail]
    ):
        path[m - 1 - tail] = high - 1 - tail
        tail += 1
    rows = m - head - tail
    columns = high - low - head - tail
    for i in range(rows):
        path[head + i] = -1
    if rows == 0 or columns <= 0:
        return 0
    band = columns
    if rows * columns > limit:
        band = min(max(limit // rows, 16), columns)
    above = row[: columns + 1]
    current = row[columns + 1 : 2 * columns + 2]
    above[:] = 0
    current[:] = 0
    first = low + head
    for i in range(rows):
        t = question[head + i]
        w = abs(weight[head + i]) + np.float32(0.01)
        left = max(0, min(i * columns // rows - band // 2, columns - band))
        right = min(columns, left + band)
        if left > 0:
            current[left] = above[left]
        for j in range(left, right):
            best = above[j + 1]
            way = 1
            if current[j] > best:
                best = current[j]
                way = 2
            if t == token[first + j] and above[j] + w > best:
                best = above[j] + w
                way = 3
            current[j + 1] = best
            cells[i * band + j - left] = way
        for j in range(right + 1, columns + 1):  # outside the band: what was reached so far
            current[j] = current[right]
        above, current = current, above
    i = rows - 1
    j = columns - 1
    while i >= 0 and j >= 0:
        left = max(0, min(i * columns // rows - band // 2, columns - band))
        right = min(columns, left + band)
        if j >= right:
            j = right - 1
            continue
        if j < left:
            i -= 1
            continue
        way = cells[i * band + j - left]
        if way == 3:
            path[head + i] = first + j
            i -= 1
            j -= 1
        elif way == 2:
            j -= 1
        else:
            i -= 1
    return rows * min(band, columns)


@part
def tighten_path(question, token, path):
    """Move each matched token as far left as the one before allows, then as far right as the next.

    question uint32[m], token uint32[], path int32[m], changed in place. Among equally good alignments
    the one in one place is the copy; a word beside it that happens to fit is not. Cost: the span.
    """
    previous = -1
    for i in range(question.shape[0]):
        if path[i] < 0:
            continue
        if previous >= 0:
            j = previous + 1
            while token[j] != question[i]:
                j += 1
            path[i] = j
        previous = path[i]
    following = -1
    for i in range(question.shape[0] - 1, -1, -1):
        if path[i] < 0:
            continue
        if following >= 0:
            j = following - 1
            while token[j] != question[i]:
                j -= 1
            path[i] = j
        following = path[i]


@part
def trim_path(path, m):
    """Drop matched tokens at either end that stand far from the rest of the match.

    path int32[m] (document positions or -1), changed in place. A token stands far when the document
    gap to the next matched one exceeds 8 plus twice the gap in the question.
    """
    while True:
        i = 0
        while i < m and path[i] < 0:
            i += 1
        k = i + 1
        while k < m and path[k] < 0:
            k += 1
        if k >= m or path[k] - path[i] <= 8 + 2 * (k - i):
            break
        path[i] = -1
    while True:
        i = m - 1
        while i >= 0 and path[i] < 0:
            i -= 1
        k = i - 1
        while k >= 0 and path[k] < 0:
            k -= 1
        if k < 0 or path[i] - path[k] <= 8 + 2 * (i - k):
            break
        path[i] = -1


@part
def mend_ends(question, token, count, path):
    """Go on at both ends of the match while the words agree: a stray word elsewhere had taken theirs.

    question uint32[m], token uint32[count], path int32[m], changed in place.
    """
    m = question.shape[0]
    first = 0
    while first < m and path[first] < 0:
        first += 1
    last = m - 1
    while last >= 0 and path[last] < 0:
        last -= 1
    if last < 0:
        return
    while first > 0 and path[first] > 0 and token[path[first] - 1] == question[first - 1]:
        path[first - 1] = path[first] - 1
        first -= 1
    while last < m - 1 and path[last] + 1 < count and token[path[last] + 1] == question[last + 1]:
        path[last + 1] = path[last] + 1
        last += 1


@part
def measure_path(question, weight, token, path):
    """What an alignment shows.

    question uint32[m], weight float32[m], token uint32[], path int32[m]. Returns (weight covered,
    weight of the distinct tokens found, weight of those missing inside the match, of those missing
    before and after it, foreign tokens inside, first and last document position, numbers of the
    question not found, numbers that stand in another number's place). Only gaps of like size on both
    sides count as changed numbers: a longer insertion is none.
    """
    m = question.shape[0]
    zero = np.float32(0)
    covered, found, holes, ends, gap_weight = zero, zero, zero, zero, zero
    first = -1
    last = -1
    matched = 0
    missing = 0
    changed = 0
    gap_numbers = 0
    gap = 0
    for i in range(m):
        if path[i] < 0:
            gap += 1
            gap_numbers += np.int64(question[i] & 1)
            gap_weight += max(weight[i], zero)
            continue
        matched += 1
        covered += abs(weight[i])
        found += max(weight[i], zero)
        if first < 0:
            first = path[i]
            ends += gap_weight
        else:
            holes += gap_weight
            if gap_numbers and path[i] - last - 1 <= 2 * gap + 2:
                here = 0
                for j in range(last + 1, path[i]):
                    here += np.int64(token[j] & 1)
                changed += min(here, gap_numbers)
        missing += gap_numbers
        gap_numbers = 0
        gap_weight = zero
        gap = 0
        last = path[i]
    missing += gap_numbers
    ends += gap_weight
    foreign = np.float32(last - first + 1 - matched)
    return covered, found, holes, ends, foreign, first, last, missing, changed


# --- the published score -----------------------------------------------------------------------------


@part
def _gram_at(token, i, size):
    """One n-gram as `hash_grams` hashes it, size other than N."""
    state = U0
    for k in range(size):
        state = _mix_gram(state * GRAM_1 + np.uint64(token[i + k]))
    return state


@part
def question_overlap(token, count, question, gram_weight, begin, end, window):
    """Question overlap of the published rule around an aligned match.

    token uint32[count]: the segment; question uint32[m], gram_weight float32[m]: idf of each distinct
    n-gram of QUESTION_N tokens, 0 where it is repeated; begin, end: first and last token of the match.
    Walks from the first n-gram in it that is the question's, left, then right, until 11 n-grams in a
    row are not, and no further than twice the question plus 64. Returns (overlap 0..1, distinct
    n-grams of the question).
    """
    m = question.shape[0]
    own = window.part_gram
    owned = hash_grams(question, m, QUESTION_N, own)
    grams = count - QUESTION_N + 1
    members, found = window.set_a, window.set_b
    size = _clear(members, owned)
    found_size = _clear(found, owned)
    for i in range(owned):
        _add(members, size, own[i])
    anchor = begin
    while (
        anchor <= end
        and anchor < grams
        and not _has(members, size, _gram_at(token, anchor, QUESTION_N))
    ):
        anchor += 1
    for direction in (-1, 1):
        misses = 0
        i = anchor
        furthest = anchor + direction * (2 * m + 64)
        while 0 <= i < grams and misses < 11 and i != furthest:
            gram = _gram_at(token, i, QUESTION_N)
            if _has(members, size, gram):
                _add(found, found_size, gram)
                misses = 0
            else:
                misses += 1
            i += direction
    distinct = 0
    total = np.float32(0)
    weight = np.float32(0)
    for i in range(owned):
        if gram_weight[i] > 0:
            distinct += 1
            total += gram_weight[i]
            if _has(found, found_size, own[i]):
                weight += gram_weight[i]
    return weight / total if total > 0 else np.float32(0), distinct


@part
def find_answer(answer, gram_weight, token, count, begin, window):
    """Answer overlap of the published rule: up to 3 tokens exactly, longer ones by 3-grams.

    answer uint32[k], gram_weight float32[k] (idf of distinct 3-grams); token uint32[count]; begin:
    token after the question. Looked for after the question only: a short one starts within 50 tokens,
    a longer one stands within max(100, twice its length). Returns (overlap 0..1, first token, last
    token); -1 where nothing was found.
    """
    k = answer.shape[0]
    if k <= ANSWER_N:
        for j in range(begin, min(begin + 50, count - k + 1) if k else begin):
            i = 0
            while i < k and token[j + i] == answer[i]:
                i += 1
            if i == k:
                return np.float32(1), j, j + k - 1
        return np.float32(0), -1, -1
    stop = min(begin + max(100, 2 * k), count, begin + OVERLAP)
    if stop - begin < ANSWER_N:
        return np.float32(0), -1, -1
    grams = hash_grams(token[begin:stop], stop - begin, ANSWER_N, window.gram)
    own = window.part_gram
    owned = hash_grams(answer, k, ANSWER_N, own)
    size = _clear(window.set_a, grams)
    for j in range(grams):
        _add(window.set_a, size, window.gram[j])
    total = np.float32(0)
    found = np.float32(0)
    for i in range(owned):
        total += gram_weight[i]
        if gram_weight[i] > 0 and _has(window.set_a, size, own[i]):
            found += gram_weight[i]
    if found <= 0:
        return np.float32(0), -1, -1
    size = _clear(window.set_a, owned)
    for i in range(owned):
        _add(window.set_a, size, own[i])
    first = -1
    last = -1
    for j in range(grams):
        if _has(window.set_a, size, window.gram[j]):
            if first < 0:
                first = begin + j
            last = begin + j + ANSWER_N - 1
    return found / total, first, last


@stage
def best_option(answers, item, token, count, begin, window):
    """The answer of an item that stands nearest to whole after a question.

    answers Answers, token uint32[count]; begin: token after the question. Ties go to the correct
    option, then to the first. Returns (option or -1, overlap, first token, last token, information
    found in nats, distinct tokens of that answer, or of the first one that has any).
    """
    best = -1
    overlap = np.float32(0)
    first = -1
    last = -1
    shown = -1
    for a in range(answers.of_item[item], answers.of_item[item + 1]):
        low = answers.ptr[a]
        high = answers.ptr[a + 1]
        if shown < 0 and high > low:
            shown = a
        found, x, y = find_answer(
            answers.token[low:high], answers.gram_weight[low:high], token, count, begin, window
        )
        preferred = best >= 0 and answers.correct[a] > answers.correct[best]
        if found > overlap or (found == overlap and found > 0 and preferred):
            best = a
            shown = a
            overlap = found
            first = x
            last = y
    information = np.float32(0)
    distinct = 0
    if shown >= 0:
        for i in range(answers.ptr[shown], answers.ptr[shown + 1]):
            if answers.weight[i] > 0:
                information += answers.weight[i]
                distinct += 1
    option = best - answers.of_item[item] if best >= 0 else -1
    return option, overlap, first, last, information * overlap, distinct


@part
def find_passage(passages, item, token, begin, window):
    """Passage overlap of the published rule: 4-grams in the max(100, twice) tokens before the question.

    passages Passages, token uint32[]; begin: first token of the question. Walks backwards; after the
    first hit, three misses in a row end it. Returns (overlap 0..1, tokens of the passage, 0 = none).
    """
    p = passages.of_item[item]
    if p < 0:
        return np.float32(0), 0
    first = passages.ptr[p]
    length = passages.ptr[p + 1] - first
    known = min(length, OVERLAP // 2)
    own = window.part_gram
    owned = hash_grams(passages.token[first : first + known], known, PASSAGE_N, own)
    low = max(0, begin - max(100, 2 * known))
    grams = hash_grams(token[low:begin], begin - low, PASSAGE_N, window.gram)
    members, found = window.set_a, window.set_b
    size = _clear(members, owned)
    found_size = _clear(found, owned)
    for i in range(owned):
        _add(members, size, own[i])
    hit = False
    misses = 0
    j = grams - 1
    while j >= 0 and misses < 3:
        if _has(members, size, window.gram[j]):
            _add(found, found_size, window.gram[j])
            hit = True
            misses = 0
        elif hit:
            misses += 1
        j -= 1
    total = np.float32(0)
    weight = np.float32(0)
    for i in range(owned):
        total += passages.gram_weight[first + i]
        if passages.gram_weight[first + i] > 0 and _has(found, found_size, own[i]):
            weight += passages.gram_weight[first + i]
    return weight / total if total > 0 else np.float32(0), length


# --- the scan ----------------------------------------------------------------------------------------


@stage
def align_chain(questions, first, last, segment, count, cells_left, window):
    """Align the question of a chain with the text around its seeds; the path lies in window.path.

    questions Questions; first, last: outer seeds of the chain; segment.token[:count]. Returns
    (coverage 0..1, what `measure_path` returns after it, cells used); coverage is 0 when the chain is
    not worth a row.
    """
    token = segment.token
    q = first >> U28
    low = questions.ptr[q]
    m = questions.ptr[q + U1] - low
    question = questions.token[low : low + m]
    weight = questions.weight[low : low + m]
    total = questions.total[q]
    none = np.float32(0)
    slack = 3 + m // 8
    begin = np.int64((first >> U12) & DPOS_MASK) - np.int64(first & QPOS_MASK)
    if begin < 0 or token[begin] != question[0]:
        begin = max(0, begin - slack)
    end = np.int64((last >> U12) & DPOS_MASK) - np.int64(last & QPOS_MASK) + m
    if end > count or token[end - 1] != question[m - 1]:
        end = min(count, end + slack)
    end = max(min(end, begin + OVERLAP), begin + 1)
    if total <= 0 or bag_bound(question, weight, token, begin, end, window.bits) < MIN_COVERAGE * total:
        return none, none, none, none, none, 0, 0, 0, 0, 0
    limit = MAX_CELLS if cells_left > 0 else 16 * m
    used = align(question, weight, token, begin, end, limit, window)
    tighten_path(question, token, window.path[:m])
    trim_path(window.path, m)
    mend_ends(question, token, count, window.path[:m])
    covered, found, holes, ends, foreign, x, y, missing, changed = measure_path(
        question, weight, token, window.path[:m]
    )
    coverage = min(covered / total, np.float32(1))
    if x < 0 or coverage < MIN_COVERAGE:
        return none, none, none, none, none, 0, 0, 0, 0, used
    return coverage, found, holes, ends, foreign, x, y, missing, changed, used


@stage
def judge_chain(
    index, first, last, count, from_token, to_token, text, segment, window, cells_left,
    out_i, out_f, rows,
):  # fmt: skip
    """Align one chain and write a row for each item that asks its question.

    index IndexArrays; first, last: outer seeds; segment.token[:count]; a match that begins
    outside from_token..to_token belongs to a neighbouring segment; text: number of the text in the
    batch. Out: out_i int64[cap, INTS], out_f float32[cap, FLOATS], from `rows` on.
    Returns (rows, cells used); rows is -1 when the outputs are full.
    """
    questions = index.questions
    coverage, found, holes, ends, foreign, begin, end, missing, changed, used = align_chain(
        questions, first, last, segment, count, cells_left, window
    )
    if coverage == 0 or not from_token <= begin < to_token:
        return rows, used
    q = first >> U28
    low = questions.ptr[q]
    m = questions.ptr[q + U1] - low
    overlap, distinct = question_overlap(
        segment.token, count, questions.token[low : low + m], questions.gram_weight[low : low + m],
        begin, end, window,
    )  # fmt: skip
    if found - holes - STRANGER * foreign < MIN_INFORMATION and overlap < MIN_OVERLAP:
        return rows, used
    numbers = 0
    for i in range(m):
        numbers += np.int64(questions.token[low + i] & 1)
    for o in range(questions.owner_ptr[q], questions.owner_ptr[q + U1]):
        if rows == out_i.shape[0]:
            return -1, used
        item = np.int64(questions.owner[o])
        option, answer_overlap, x, y, answer_information, answer_tokens = best_option(
            index.answers, item, segment.token, count, end + 1, window
        )
        passage_overlap, passage_tokens = find_passage(
            index.passages, item, segment.token, begin, window
        )
        ints = out_i[rows]
        floats = out_f[rows]
        ints[TEXT] = text
        ints[ITEM] = item
        ints[START] = segment.start[begin]
        ints[END] = segment.end[end]
        ints[ANSWER_START] = segment.start[x] if x >= 0 else -1
        ints[ANSWER_END] = segment.end[y] if x >= 0 else -1
        ints[OPTION] = option
        ints[NUMBERS_MISSING] = missing
        ints[NUMBERS_CHANGED] = changed
        ints[NUMBERS] = numbers
        ints[QUESTION_TOKENS] = m
        ints[QUESTION_GRAMS] = distinct
        ints[ANSWER_TOKENS] = answer_tokens
        ints[PASSAGE_TOKENS] = passage_tokens
        floats[COVERAGE] = coverage
        floats[FOUND] = found
        floats[HOLES] = holes
        floats[ENDS] = ends
        floats[FOREIGN] = foreign
        floats[ANSWER_INFORMATION] = answer_information
        floats[QUESTION_OVERLAP] = overlap
        floats[ANSWER_OVERLAP] = answer_overlap
        floats[PASSAGE_OVERLAP] = passage_overlap
        rows += 1
    return rows, used


@stage
def scan_segment(index, count, grams, is_last, text, step, base, scratch, counters, out_i, out_f, rows):
    """Hits, seeds, chains and rows of the segment that lies in scratch.segment.

    Arguments as in `scan_texts`; base: tokens of the document before the segment. Of two segments the
    one that sees more around a match writes it: the border runs through the middle of what they
    share. Returns the number of rows, -1 when the outputs are full.
    """
    from_token = OVERLAP // 2 if base > 0 else 0
    to_token = count if is_last else count - OVERLAP // 2
    hits, segment = scratch.hits, scratch.segment
    found = find_hits(index.grams, segment.gram, grams, step, base, hits)
    if step > 1 and found > 0:  # a sampled hit: now look at every position
        found = find_hits(index.grams, segment.gram, grams, 1, base, hits)
    counters[COUNT_HITS] += found
    if found == 0:
        return rows
    seeds = expand_hits(index.grams, index.questions.seeds, hits, found, counters)
    counters[COUNT_SEEDS] += seeds
    cells_left = CELL_BUDGET
    at = 0
    while at < seeds:
        question = hits.seed[at] >> U28
        at, first, last, distinct, sampled = next_chain(
            index.questions.ptr, hits.seed, seeds, at, step, base
        )
        if not sampled or distinct < seeds_needed(index.questions.seeds[question]):
            continue
        counters[COUNT_CHAINS] += 1
        if cells_left <= 0:
            counters[COUNT_HURRIED] += 1
        rows, used = judge_chain(
            index, first, last, count, from_token, to_token, text, segment, scratch.window,
            cells_left, out_i, out_f, rows,
        )  # fmt: skip
        if rows < 0:
            return rows
        counters[COUNT_CELLS] += used
        cells_left -= used
    return rows


@kernel
def scan_texts(data, offsets, text, table, index, step, scratch, counters, out_i, out_f):
    """The detector: tokens, n-grams, hits, seeds, chains, alignment, for texts from `text` on.

    data uint8[] (64 more bytes readable), offsets int64[texts + 1] (bytes), table Codepoints, index
    IndexArrays, step: look up every step-th position, scratch Scratch, counters int64[COUNTERS]
    (added to). Out: out_i int64[cap, INTS], out_f float32[cap, FLOATS]. Returns (rows, next text):
    it stops early, before a text whose rows do not fit. Cost: linear in the bytes, plus the
    alignments, both bounded per segment.
    """
    rows = 0
    segment = scratch.segment
    while text < offsets.shape[0] - 1:
        rows_before = rows
        position = offsets[text]
        base = 0
        while True:
            count, reached = tokenize(data, position, offsets[text + 1], table, segment)
            counters[COUNT_TOKENS] += count
            grams = hash_grams(segment.token, count, N, segment.gram)
            is_last = reached >= offsets[text + 1]
            rows = scan_segment(
                index, count, grams, is_last, text, step, base, scratch, counters, out_i, out_f, rows
            )
            if rows < 0:
                return rows_before, text
            if is_last:
                break
            position = segment.start[count - OVERLAP]
            base += count - OVERLAP
        text += 1
    return rows, text


# --- JSON lines --------------------------------------------------------------------------------------

QUOTE, BACKSLASH, COMMA, COLON = ord('"'), ord("\\"), ord(","), ord(":")
OPEN_OBJECT, CLOSE_OBJECT, OPEN_LIST, CLOSE_LIST = ord("{"), ord("}"), ord("["), ord("]")
LETTER_E, LETTER_N, LETTER_U = ord("e"), ord("n"), ord("u")
MINUS, PLUS, POINT, ZERO = ord("-"), ord("+"), ord("."), ord("0")
LOW40 = np.uint64(0xFFFFFFFFFF)
TRUE, FALSE, NULL = (np.uint64(int.from_bytes(word, "little")) for word in (b"true", b"false", b"null"))
UNESCAPED = np.zeros(256, np.uint8)  # byte that an escape stands for, by its letter; 0 = no such escape
UNESCAPED[list(b'"\\/bfnrt')] = list(b'"\\/\b\f\n\r\t')
HEX_VALUE = np.full(256, -1, np.int64)  # of a digit; -1 = no digit
HEX_VALUE[list(b"0123456789abcdef")] = HEX_VALUE[list(b"0123456789ABCDEF")] = range(16)


@intrinsic
def quote_mask64(typingctx, array, index):
    """One bit per byte of the 64 at `index` of a uint8 array: a quote, a backslash, or below 0x20."""

    def codegen(context, builder, signature, args):
        lanes = ir.VectorType(ir.IntType(8), 64)
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        pointer = builder.bitcast(builder.gep(data, [args[1]]), lanes.as_pointer())
        block = builder.load(pointer, align=1)

        def splat(value):
            return ir.Constant(lanes, [value] * 64)

        quote = builder.icmp_unsigned("==", block, splat(QUOTE))
        backslash = builder.icmp_unsigned("==", block, splat(BACKSLASH))
        control = builder.icmp_unsigned("<", block, splat(0x20))
        return builder.bitcast(builder.or_(builder.or_(quote, backslash), control), ir.IntType(64))

    return types.uint64(array, types.int64), codegen


@intrinsic
def least_mask64(typingctx, array, index, least):
    """One bit per byte of the 64 at `index` of a uint8 array: at least `least`."""

    def codegen(context, builder, signature, args):
        lanes = ir.VectorType(ir.IntType(8), 64)
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        pointer = builder.bitcast(builder.gep(data, [args[1]]), lanes.as_pointer())
        block = builder.load(pointer, align=1)
        value = builder.trunc(args[2], ir.IntType(8))
        one = builder.insert_element(ir.Constant(lanes, ir.Undefined), value, ir.IntType(32)(0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), 64), [0] * 64)
        every = builder.shuffle_vector(one, one, zeros)
        return builder.bitcast(builder.icmp_unsigned(">=", block, every), ir.IntType(64))

    return types.uint64(array, types.int64, types.int64), codegen


@intrinsic
def copy64(typingctx, source, index, target, place):
    """Copies 64 bytes from `index` of a uint8 array to `place` of another."""

    def codegen(context, builder, signature, args):
        lanes = ir.VectorType(ir.IntType(8), 64)

        def pointer(which):
            data = context.make_array(signature.args[which])(context, builder, args[which]).data
            return builder.bitcast(builder.gep(data, [args[which + 1]]), lanes.as_pointer())

        builder.store(builder.load(pointer(0), align=1), pointer(2), align=1)
        return context.get_dummy_value()

    return types.void(source, types.int64, target, types.int64), codegen


@part
def _line_end(data, i, end):
    """Position of the first line feed of data[i:end], or `end`; 64 more bytes are readable."""
    while i < end:
        feeds = least_mask64(data, i, 10) & ~least_mask64(data, i, 11)
        if feeds != U0:
            return min(i + np.int64(trailing_zeros(feeds)), end)
        i += 64
    return end


@kernel
def line_ends(data, out):
    """Places after each line feed of data (uint8[]). Out: out int64[], those that fit. Returns how many
    there are. Cost: linear, one branch per 64 bytes and line."""
    count = 0
    i = 0
    while i + 64 <= data.shape[0]:
        feeds = least_mask64(data, i, 10) & ~least_mask64(data, i, 11)
        while feeds != U0:
            if count < out.shape[0]:
                out[count] = i + np.int64(trailing_zeros(feeds)) + 1
            count += 1
            feeds &= feeds - U1
        i += 64
    while i < data.shape[0]:
        if data[i] == 10:
            if count < out.shape[0]:
                out[count] = i + 1
            count += 1
        i += 1
    return count


@part
def _is_utf8(data, i, stop):
    """Whether data[i:stop] is UTF-8; 64 more bytes are readable. A character that is cut off at the end
    is not seen, and one of the first three bytes of `data` that is not ASCII is refused.

    A byte must be a continuation exactly where one of the three before it asks for it. The second of a
    character is checked beside it: E0, ED, F0 and F4 allow only some (no overlong forms, no
    surrogates, nothing above 10FFFF).
    """
    while i < min(stop, 3):
        if data[i] >= 0x80:
            return False
        i += 1
    while i < stop:
        high = least_mask64(data, i, 0x80)
        if high | least_mask64(data, i - 3, 0x80):
            lead = least_mask64(data, i, 0xC0)
            asked = (
                least_mask64(data, i - 1, 0xC0)
                | least_mask64(data, i - 2, 0xE0)
                | least_mask64(data, i - 3, 0xF0)
            )
            wrong = (high & ~lead) ^ asked
            wrong |= (lead & ~least_mask64(data, i, 0xC2)) | least_mask64(data, i, 0xF5)
            above_8f = least_mask64(data, i, 0x90)
            above_9f = least_mask64(data, i, 0xA0)
            wrong |= _after(data, i, 0xE0) & ~above_9f
            wrong |= _after(data, i, 0xED) & above_9f
            wrong |= _after(data, i, 0xF0) & ~above_8f
            wrong |= _after(data, i, 0xF4) & above_8f
            if wrong != U0 and np.int64(trailing_zeros(wrong)) < stop - i:
                return False
        i += 64
    return True


@part
def _after(data, i, value):
    """One bit per byte of the 64 at i: the byte before it is `value`."""
    return least_mask64(data, i - 1, value) & ~least_mask64(data, i - 1, value + 1)


@part
def _json_space(data, i, stop):
    """First position of data[i:stop] that holds no white space; i itself beyond `stop`."""
    while i < stop and (data[i] == 0x20 or data[i] == 0x09 or data[i] == 0x0D):
        i += 1
    return i


@part
def _json_digits(data, i, stop):
    """First position of data[i:stop] that holds no digit; i itself beyond `stop`."""
    while i < stop and 0x30 <= data[i] <= 0x39:
        i += 1
    return i


@part
def _code_unit(a, b, c, d):
    """Value of four hexadecimal digits, given as bytes; negative if one is no digit."""
    return HEX_VALUE[a] << 12 | HEX_VALUE[b] << 8 | HEX_VALUE[c] << 4 | HEX_VALUE[d]


@part
def _json_string(data, i, stop, out, j):
    """Write the string whose first byte, after the quote, is data[i] to out[j], without its escapes.

    data uint8[] (64 bytes readable from `stop` on), out uint8[] (64 bytes more than the string has).
    Returns (position of the closing quote, byte after the last one written); (-1, j) if it does not
    end before `stop` or is no valid string; half of a surrogate pair is not. Cost: linear in the bytes.

    In one piece on purpose: a call with arrays costs more than an escape. So does waiting for one to
    be done: the marks of 64 bytes are found at once, and then gone through.
    """
    while i < stop:
        copy64(data, i, out, j)
        marks = quote_mask64(data, i)
        first = i
        while marks != U0:
            mark = first + np.int64(trailing_zeros(marks))
            j += mark - i
            i = mark
            if i >= stop:
                return -1, j
            if data[i] == QUOTE:
                return i, j
            if data[i] != BACKSLASH:
                return -1, j
            byte = UNESCAPED[data[i + 1]]
            if byte != 0:
                out[j] = byte
                i += 2
                j += 1
            elif data[i + 1] != LETTER_U:
                return -1, j
            else:
                point = _code_unit(data[i + 2], data[i + 3], data[i + 4], data[i + 5])
                i += 6
                if 0xD800 <= point < 0xDC00 and data[i] == BACKSLASH and data[i + 1] == LETTER_U:
                    low = _code_unit(data[i + 2], data[i + 3], data[i + 4], data[i + 5])
                    if 0xDC00 <= low < 0xE000:
                        point = 0x10000 + ((point - 0xD800) << 10 | (low - 0xDC00))
                        i += 6
                if point < 0 or 0xD800 <= point < 0xE000:
                    return -1, j
                if point < 0x80:
                    out[j] = point
                    j += 1
                elif point < 0x800:
                    out[j] = 0xC0 | point >> 6
                    out[j + 1] = 0x80 | (point & 0x3F)
                    j += 2
                elif point < 0x10000:
                    out[j] = 0xE0 | point >> 12
                    out[j + 1] = 0x80 | (point >> 6 & 0x3F)
                    out[j + 2] = 0x80 | (point & 0x3F)
                    j += 3
                else:
                    out[j] = 0xF0 | point >> 18
                    out[j + 1] = 0x80 | (point >> 12 & 0x3F)
                    out[j + 2] = 0x80 | (point >> 6 & 0x3F)
                    out[j + 3] = 0x80 | (point & 0x3F)
                    j += 4
            copy64(data, i, out, j)
            done = i - first
            marks = marks >> np.uint64(done) << np.uint64(done) if done < 64 else U0
        if i < first + 64:
            j += first + 64 - i
            i = first + 64
    return -1, j


@part
def _json_key(data, i, stop, out, j):
    """Write the key of the member that begins at data[i] to out[j]; arguments as in `_json_string`.

    Returns (position of its value, byte after the last one written), (-1, j) if there is none.
    """
    if data[i] != QUOTE:
        return -1, j
    i, j = _json_string(data, i + 1, stop, out, j)
    if i < 0:
        return -1, j
    i = _json_space(data, i + 1, stop)
    if data[i] != COLON:
        return -1, j
    i = _json_space(data, i + 1, stop)
    return (i, j) if i < stop else (-1, j)


@part
def _json_scalar(data, i, stop):
    """Position after the number, true, false or null at data[i], -1 if there is none. Numbers that not
    all readers take for the same are refused: of more than 18 digits, or with large exponents."""
    word = load64(data, i)
    if word & LOW32 == TRUE or word & LOW32 == NULL:
        return i + 4
    if word & LOW40 == FALSE:
        return i + 5
    if data[i] == MINUS:
        i += 1
    first = i
    i = _json_digits(data, i, stop)
    if i == first or i - first > 18 or (i - first > 1 and data[first] == ZERO):
        return -1
    if data[i] == POINT:
        first = i + 1
        i = _json_digits(data, first, stop)
        if i == first:
            return -1
    if data[i] | 0x20 == LETTER_E:
        i += 1
        if data[i] == MINUS or data[i] == PLUS:
            i += 1
        first = i
        i = _json_digits(data, first, stop)
        if i == first or i - first > 2:
            return -1
    return i


@part
def _json_value(data, i, stop, out, j):
    """Position after the JSON value at data[i], -1 if there is none before `stop` or it is nested more
    than 64 deep. out[j:] is scratch, as for `_json_string`. Cost: linear in the bytes."""
    depth = 0
    objects = U0  # bit 0: the innermost of the open containers is an object; bit 1: the next one; ...
    while i < stop:
        if data[i] == QUOTE:
            i, _ = _json_string(data, i + 1, stop, out, j)
            if i < 0:
                return -1
            i += 1
        elif data[i] == OPEN_OBJECT or data[i] == OPEN_LIST:
            is_object = data[i] == OPEN_OBJECT
            i = _json_space(data, i + 1, stop)
            if data[i] == (CLOSE_OBJECT if is_object else CLOSE_LIST):
                i += 1
            else:
                if depth == 64:
                    return -1
                depth += 1
                objects = objects << U1 | (U1 if is_object else U0)
                if is_object:
                    i, _ = _json_key(data, i, stop, out, j)
                    if i < 0:
                        return -1
                continue
        else:
            i = _json_scalar(data, i, stop)
            if i < 0:
                return -1
        while depth > 0:  # a value has ended at i
            i = _json_space(data, i, stop)
            mark = data[i]
            i += 1
            if mark == COMMA:
                i = _json_space(data, i, stop)
                if objects & U1 == U1:
                    i, _ = _json_key(data, i, stop, out, j)
                    if i < 0:
                        return -1
                break
            if mark != (CLOSE_OBJECT if objects & U1 == U1 else CLOSE_LIST) or i > stop:
                return -1
            depth -= 1
            objects = objects >> U1
        else:
            return i
    return -1


@part
def _same_bytes(data, begin, end, key):
    """Whether data[begin:end] is `key`; both uint8[]."""
    size = key.shape[0]
    k = 0
    while k < size and end - begin == size and data[begin + k] == key[k]:
        k += 1
    return k == size == end - begin


@stage
def _json_row(data, i, stop, key, id_key, out, j):
    """Write the text of the JSON object that is data[i:stop] to out[j].

    Arguments as in `read_json_lines`. Returns (byte after the text, or -1 for a row that wants care;
    whether it is null; first byte of the id, byte after it: -1, -1 if there is none). The position in
    the line only grows, so what is read beyond its end, at most 64 bytes, is never accepted.
    """
    seen = False
    is_null = False
    id_seen = id_key.shape[0] == 0
    id_begin = -1
    id_end = -1
    i = _json_space(data, i, stop)
    if data[i] != OPEN_OBJECT:
        return -1, False, -1, -1
    i = _json_space(data, i + 1, stop)
    while i < stop:
        i, key_end = _json_key(data, i, stop, out, j)
        if i < 0:
            break
        is_text = _same_bytes(out, j, key_end, key)
        is_id = not id_seen and _same_bytes(out, j, key_end, id_key)
        if is_text and seen:
            break
        begin = i
        written = j
        if data[i] == QUOTE:
            i, written = _json_string(data, i + 1, stop, out, j)
            if i < 0:
                break
            if is_id:
                id_begin = begin + 1
                id_end = i
                if i - begin - 1 != written - j:  # it has escapes
                    break
            i += 1
        else:
            i = _json_value(data, i, stop, out, j)
            if i < 0:
                break
            if data[begin] != LETTER_N:
                if is_text or (is_id and _json_digits(data, begin, stop) != i):
                    break
                if is_id:
                    id_begin = begin
                    id_end = i
            is_null |= is_text
        if is_text:
            seen = True
            j = written
        id_seen |= is_id
        i = _json_space(data, i, stop)
        mark = data[i]
        i = _json_space(data, i + 1, stop)
        if mark == CLOSE_OBJECT and i == stop and seen:
            return j, is_null, id_begin, id_end
        if mark != COMMA:
            break
    return -1, False, -1, -1


@kernel
def read_json_lines(data, at, end, key, id_key, most, out, filled, lengths, ids):
    """Texts and ids of the JSON objects that are the lines of data[at:end], up to the first line that
    wants care: one that is blank or no valid JSON, has the text not once or not as a string or null,
    has an id that is neither a string without escapes nor a whole number, or anything uncommon.

    data uint8[] (at least 64 bytes longer than `end`), key and id_key uint8[]: fields of text and id
    (empty: no id is looked for), most: rows to read at most. Out: out uint8[] (from `filled` on, at
    least 128 bytes more than the lines have): the texts, UTF-8; lengths int64[cap]: bytes of each; ids
    int64[cap, 2]: first byte of each id in data, byte after it (-1, -1: none or null). Returns (next
    line, rows, byte after the last text, rows whose text is null). Cost: linear in the bytes.
    """
    rows = 0
    nulls = 0
    most = min(most, lengths.shape[0])
    while at < end and rows < most:
        stop = _line_end(data, at, end)
        if not _is_utf8(data, at, stop):
            break
        after, is_null, id_begin, id_end = _json_row(data, at, stop, key, id_key, out, filled)
        if after < 0:
            break
        lengths[rows] = after - filled
        ids[rows, 0] = id_begin
        ids[rows, 1] = id_end
        filled = after
        nulls += is_null
        rows += 1
        at = min(stop + 1, end)
    return at, rows, filled, nulls


# --- building an index -------------------------------------------------------------------------------


@kernel
def keep_runs(token, length, ptr, chosen):
    """Move the chosen runs of tokens to the front, in place, back to back.

    token uint32[] and length uint8[], changed; ptr int64[runs + 1], chosen int64[], ascending. Returns
    the tokens kept.
    """
    kept = 0
    for c in range(chosen.shape[0]):
        for i in range(ptr[chosen[c]], ptr[chosen[c] + 1]):
            token[kept] = token[i]
            length[kept] = length[i]
            kept += 1
    return kept


@kernel
def count_groups(gram, shift, sizes):
    """How many n-grams other than 0 have each value of gram >> shift; adds to sizes int64[]."""
    shift = np.uint64(shift)
    for i in range(gram.shape[0]):
        if gram[i] != U0:
            sizes[gram[i] >> shift] += 1


@kernel
def group_places(gram, shift, ends, place):
    """Places of the n-grams other than 0, by gram >> shift, then by place.

    gram uint64[]; ends int64[groups]: first row of each group, on return the row after it; out: place
    uint32[].
    """
    shift = np.uint64(shift)
    for i in range(gram.shape[0]):
        if gram[i] != U0:
            group = gram[i] >> shift
            place[ends[group]] = i
            ends[group] += 1


@kernel
def sort_group(gram, place, bits, heads, spare, key, order):
    """Sort a group of n-grams, equal ones by place.

    gram uint64[], place uint32[n], ascending; all gram[place] share their top `bits` bits. heads
    int64[2**b + 1]: scratch, about a tenth of n; spare uint64[n]: scratch. Out: key uint64[n], the
    n-grams, ascending, and order uint32[n], where in `place` each stands. Cost: linear, as n-grams are
    hashes: they are dealt to 2**b piles, and a pile is sorted by insertion.
    """
    bits = np.uint64(bits)
    shift = U64 - trailing_zeros(np.uint64(heads.shape[0] - 1))
    for b in range(heads.shape[0]):
        heads[b] = 0
    for i in range(place.shape[0]):
        spare[i] = gram[place[i]]
        heads[(spare[i] << bits) >> shift] += 1
    total = 0
    for b in range(heads.shape[0]):
        size = heads[b]
        heads[b] = total
        total += size
    for i in range(place.shape[0]):
        g = spare[i]
        pile = (g << bits) >> shift
        key[heads[pile]] = g
        order[heads[pile]] = i
        heads[pile] += 1
    for i in range(1, place.shape[0]):  # piles are in order: nothing moves further than its own
        g = key[i]
        o = order[i]
        j = i - 1
        while j >= 0 and key[j] > g:
            key[j + 1] = key[j]
            order[j + 1] = order[j]
            j -= 1
        key[j + 1] = g
        order[j + 1] = o


@kernel
def owner_of(place, ptr, owner):
    """The run that holds each place. place uint32[], ascending, ptr int64[runs + 1]; out: owner
    uint32[]. Cost: linear in the places and in the runs between the first and the last."""
    if place.shape[0] == 0:
        return
    low = 0
    high = ptr.shape[0] - 1
    while high - low > 1:
        middle = (low + high) // 2
        if ptr[middle] <= place[0]:
            low = middle
        else:
            high = middle
    run = low
    for i in range(place.shape[0]):
        while ptr[run + 1] <= place[i]:
            run += 1
        owner[i] = run


@kernel
def choose_seeds(frequency, ptr, most, least, seeds):
    """Which n-grams seed a match: those of at most `most` questions, and the rarest `least` of each.

    frequency uint32[tokens]: questions that hold the n-gram there, 0 = no n-gram; set to 0 where it is
    no seed. ptr int64[questions + 1]. Out: seeds uint16[questions], how many each has. Cost: linear.
    """
    for q in range(ptr.shape[0] - 1):
        chosen = 0
        for i in range(ptr[q], ptr[q + 1]):
            chosen += 1 if 0 < frequency[i] <= most else 0
        bar = np.int64(most)  # n-grams of this frequency are chosen up to the place `upto`
        upto = ptr[q + 1]
        while chosen < least:  # the next in order of frequency, then place
            best = np.int64(1) << 40
            where = np.int64(-1)
            for i in range(ptr[q], ptr[q + 1]):
                f = np.int64(frequency[i])
                if (f > bar or (f == bar and i > upto)) and f < best:
                    best = f
                    where = i
            if where < 0:
                break
            bar = best
            upto = where
            chosen += 1
        for i in range(ptr[q], ptr[q + 1]):
            f = np.int64(frequency[i])
            if f > bar or (f == bar and i > upto):
                frequency[i] = 0
        seeds[q] = chosen


@kernel
def look_up(values, bucket, key, count, out):
    """The count of each value, 0 for unknown ones.

    values uint64[], bucket uint32[2**b + 1]: first key of each value of the top b bits, key uint64[],
    ascending, count int64[]; out: int64[values].
    """
    shift = U64 - trailing_zeros(np.uint64(bucket.shape[0] - 1))
    for i in range(values.shape[0]):
        v = values[i]
        low = np.int64(bucket[v >> shift])
        high = np.int64(bucket[(v >> shift) + U1])
        while high - low > 0:
            middle = (low + high) // 2
            if key[middle] < v:
                low = middle + 1
            else:
                high = middle
        known = low < key.shape[0] and key[low] == v
        out[i] = count[low] if known else 0
