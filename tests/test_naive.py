"""The package and `naive.py` agree: on tokens, on a compiled index, on every match of random documents.

HYPOTHESIS_PROFILE=ci or nightly runs many more examples than the default.
"""

from __future__ import annotations

import itertools
import os
import random
import string
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

import naive
from unseen import index as index_module
from unseen import kernels, scan, tokens
from unseen.scan import Index

# Kernels without an entry from Python, compiled here with one.
align, measure_path, sort_words, trim_path = (
    numba.njit(error_model="numpy")(part.py_func)
    for part in (kernels.align, kernels.measure_path, kernels.sort_words, kernels.trim_path)
)

for name, examples in (("small", 60), ("ci", 300), ("nightly", 5000)):
    settings.register_profile(
        name,
        max_examples=examples,
        deadline=None,
        suppress_health_check=[
            HealthCheck.too_slow,
            HealthCheck.data_too_large,
            HealthCheck.filter_too_much,
        ],
        derandomize=name == "small",  # the same examples each time; ci and nightly look further
        print_blob=True,
    )
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "small"))

MANY = settings(max_examples=4 * settings().max_examples)  # for what is cheap or where faults hide
FEW = settings(max_examples=max(settings().max_examples // 2, 1))

# --- tokens ------------------------------------------------------------------------------------------

SEPARATORS = " \n\t.,;:!?\"'()[]{}<>/_-—、。 \u3000…\u2028"
WORD = st.text(string.ascii_letters + string.digits, min_size=1, max_size=12)
SCRIPTS = {
    "full-width": "ＡＢｃｄ１２３",
    "marks": "e\u0301a\u0300o\u0308\u0327n\u0303z",
    "han": "中文字一二三〇",
    "kana": "ひらがなカタカナｶﾀｶﾅが\u3099",
    "thai": "ภาษาไทย๑๒",
    "hangul": "한국어\u1112\u1161\u11ab",
    "ligatures": "ﬁﬂﬀßŒǆ㍿㎏½⅓①⑴ⅧŒº㌀ﷺﷺ",
    "joiners": "a\u200db\u00adc\ufe0fd\u200b",
    "indic": "हिन्दीবাংলা४५",
    "astral": "𝐀𝟏𝒜🙂𠀀🏽a",
    "case": "İIıſKÅΣςσ",
}
FOREIGN = st.sampled_from(sorted(SCRIPTS)).flatmap(lambda s: st.text(SCRIPTS[s], max_size=12))
SPACE = st.text(SEPARATORS, max_size=3) | st.integers(1, 140).map(lambda n: " " * n)
LONG = st.builds(lambda word, n: (word * n)[:n], WORD, st.integers(1, 140))  # over 8, 16, 64 bytes
TEXT = st.lists(st.one_of(WORD, SPACE, FOREIGN, LONG, st.text(max_size=12)), max_size=14).map("".join)


def check_tokens(text: str) -> None:
    """Same spans, same lengths, same digits, and equal hashes just where the folded texts are equal."""
    expected = naive.tokenize(text)
    assert [span[1:] for span in tokens.words(text)] == [(t.start, t.end) for t in expected]
    found = tokens.tokenize([text])
    assert found.ptr.tolist() == [0, len(expected)]
    assert found.length.tolist() == [min(t.end - t.start, 255) for t in expected]
    assert [bool(h & 1) for h in found.token.tolist()] == [t.digit for t in expected]
    pairs = set(zip(found.token.tolist(), naive.words(expected), strict=True))
    assert len(pairs) == len({h for h, _ in pairs}) == len({w for _, w in pairs})


@MANY
@given(TEXT)
@example("")
@example("\ud800a\udfff\x00b\u0301")
@example("Hello, Wörld! " * 5)
def test_tokens_are_the_same(text: str) -> None:
    check_tokens(text)


SHORT = st.text("ab1Zé字。’…‐\u00a0\u00adя\u0301½", min_size=1, max_size=4)


@MANY
@given(st.lists(SHORT | st.sampled_from(("a", "it", "mat.")), max_size=24), st.integers(0, 64))
@example(["字。", *"abcdefgh"], 0)
@example([*"abc", "é。", *"defghij"], 60)
def test_short_foreign_words_among_plain_ones(some: list[str], pad: int) -> None:
    """Eight words are hashed at a time, and those that are not ASCII are put in afterwards."""
    check_tokens("." * pad + " ".join(some))
    check_tokens("x" * pad + "".join(some))


@given(st.text(st.characters(codec=None, exclude_categories=()), max_size=60))
def test_tokens_of_any_code_points_are_the_same(text: str) -> None:
    check_tokens(text)


@MANY
@given(st.lists(WORD, min_size=1, max_size=3), st.integers(0, 130), TEXT)
def test_a_folded_text_has_the_same_hashes_by_every_path(some: list[str], pad: int, after: str) -> None:
    """Words of ASCII, full-width, accented and soft-hyphenated are equal at any alignment."""
    plain = " ".join(some)
    wide = "".join(chr(ord(c) + 0xFEE0) if c != " " else c for c in plain)
    accented = "".join(c + "\u0301" if c != " " else c for c in plain)
    soft = "".join(c + "\u00ad" if c != " " else c for c in plain)
    found = tokens.tokenize([" " * pad + text for text in (plain, wide, accented, soft, plain.upper())])
    runs = [found.token[a:b].tolist() for a, b in zip(found.ptr, found.ptr[1:], strict=False)]
    assert all(run == runs[0] for run in runs)
    check_tokens(plain + "," + wide + after)


@FEW
@given(
    st.sampled_from(
        [("a ", 4096), ("a ", 65472), ("一", 2731), ("一", 65504), ("x", 8192), ("é", 4096)]
    ),
    st.integers(-70, 6),
    TEXT,
)
@example(("一", 65504), 0, "½x")
@example(("a ", 4096), -3, "¹¼ࠀ")
@example(("x", 8192), 32768, "y½ z")
def test_tokens_where_a_kernel_call_ends(unit: tuple[str, int], shift: int, text: str) -> None:
    """8192 bytes are cut into runs at a time, and 65,536 tokens are the most of one call."""
    check_tokens(unit[0] * (unit[1] + shift) + text)


# --- documents with planted items --------------------------------------------------------------------

ALPHABETS = (string.ascii_lowercase, string.ascii_lowercase, "абвгдеж", "中文字語言天地")


class Maker:
    """Random items and documents. Hypothesis draws the structure, a seeded generator fills in words."""

    def __init__(self, seed: int, words: int) -> None:
        self.rng = random.Random(seed)
        self.vocabulary = [self.word() for _ in range(words)]
        self.items: list[dict[str, Any]] = []

    def word(self) -> str:
        kind = self.rng.random()
        if kind < 0.15:
            return str(self.rng.randrange(200))
        letters = self.rng.choice(ALPHABETS) if kind < 0.3 else string.ascii_lowercase
        return "".join(self.rng.choices(letters, k=self.rng.choice((1, 2, 3, 4, 6, 9, 14))))

    def words(self, low: int, high: int) -> list[str]:
        return self.rng.choices(self.vocabulary, k=self.rng.randint(low, high))

    def add(self, kind: str) -> None:
        """One more item, perhaps made of an earlier one."""
        rng = self.rng
        earlier = rng.choice(self.items)["question"].split() if self.items else self.words(8, 20)
        question = {
            "fresh": lambda: self.words(1, 45),
            "long": lambda: self.words(60, 150),
            "longer": lambda: earlier + self.words(1, 9),
            "prefix": lambda: earlier[: rng.randint(1, len(earlier) or 1)],
            "repeat": lambda: (part := self.words(3, 9)) + self.words(0, 9) + part + self.words(0, 4),
            "template": lambda: self.vocabulary[:9] + self.words(1, 9) + self.vocabulary[:6],
            "same": lambda: earlier,
        }[kind]()
        answers = [" ".join(self.words(0, 10)) for _ in range(rng.choice((0, 1, 1, 1, 4)))]
        if len(answers) == 4 and rng.random() < 0.5:
            answers[3] = answers[0]
        correct = [k == 0 for k in range(len(answers))]
        rng.shuffle(correct)
        self.items.append(
            {
                "suite": rng.choice(("a", "b", "a/solution")) if kind != "template" else "t",
                "split": rng.choice(("test", "test", "test", "canary")),
                "item": str(len(self.items)),
                "language": rng.choice((None, None, "en", "xx")),
                "question": " ".join(question),
                "answers": answers if rng.random() < 0.9 else None,
                "correct": correct if rng.random() < 0.9 else correct[:1],
                "passage": " ".join(self.words(3, 120)) if rng.random() < 0.3 else None,
            }
        )

    def piece(self, kind: str) -> list[str]:
        """Words of one part of a document."""
        rng = self.rng
        item = rng.choice(self.items)
        question = item["question"].split()
        cut = rng.randint(0, len(question))
        if kind == "host":
            return self.words(0, 40)
        if kind == "foreign":
            return [self.word() + "q" for _ in range(rng.randint(0, 50))]
        if kind == "cut":
            return question[:cut] if rng.random() < 0.5 else question[cut:]
        if kind == "overlap":
            return question[:cut] + question[max(cut - 4, 0) :]
        if kind == "answer":
            return " ".join(item["answers"] or []).split()
        if kind == "edited":
            question = self.edited(question, rng.choice((4, 8, 15)))
        before = (item["passage"] or "").split() if kind in ("whole", "passage") else []
        after = rng.choice(item["answers"] or [""]).split() if kind in ("whole", "answered") else []
        return before + question + (["answer"] if rng.random() < 0.3 else []) + after

    def edited(self, words: list[str], one_in: int) -> list[str]:
        """One word in so many replaced, dropped or preceded by another."""
        out = []
        for word in words:
            other = str(self.rng.randrange(99)) if word.isdigit() else self.word()
            kind = self.rng.randrange(3 * one_in)
            out += {0: [other], 1: [], 2: [other, word]}.get(kind, [word])
        return out

    def render(self, words: list[str]) -> str:
        """Words as text: any separators, now and then upper case or full-width."""
        style = self.rng.random()
        if style < 0.2:
            words = [w.upper() for w in words]
        elif style < 0.3:
            words = ["".join(chr(ord(c) + 0xFEE0) if c.isascii() else c for c in w) for w in words]
        gaps = self.rng.choices((" ", " ", " ", "\n", ", ", ". ", " — ", "\n# "), k=len(words))
        return "".join(w + gap for w, gap in zip(words, gaps, strict=True))


ITEM_KINDS = ("fresh", "fresh", "long", "longer", "prefix", "repeat", "same", "template")
PIECE_KINDS = ("host", "foreign", "cut", "overlap", "answer", "edited", "edited", "whole", "answered",
               "passage")  # fmt: skip


@st.composite
def makers(draw: st.DrawFn) -> Maker:
    maker = Maker(draw(st.integers(0, 2**32 - 1)), draw(st.sampled_from((2, 5, 12, 40, 300, 300))))
    kinds = draw(st.lists(st.sampled_from(ITEM_KINDS), min_size=1, max_size=9))
    if draw(st.booleans()):
        kinds += ["template"] * 11
    for kind in kinds:
        maker.add(kind)
    return maker


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[dict[str, Any]], list[str]]:
    """Items, and documents that hold them in all states."""
    maker = draw(makers())
    documents = []
    for _ in range(draw(st.integers(1, 3))):
        kinds = draw(st.lists(st.sampled_from(PIECE_KINDS), min_size=1, max_size=7))
        documents.append("".join(maker.render(maker.piece(kind)) for kind in kinds))
    return maker.items, documents


EXACT = ("start", "end", "answer_start", "answer_end", "option", "option_correct", "numbers_kept",
         "numbers_changed", "evidence", "verdict")  # fmt: skip
NEARLY = ("coverage", "information", "cut_off", "answer_information", "question_overlap",
          "answer_overlap", "passage_overlap", "score")  # fmt: skip


def same_rows(expected: list[dict[str, Any]], found: list[dict[str, Any]]) -> None:
    """The same matches in the same order; floats up to float32."""

    def exact(row: dict[str, Any]) -> dict[str, Any]:
        return {name: row[name] for name in EXACT}

    names = [f"{row['suite']}/{row['split']}/{row['item']}" for row in found]
    assert [(row["item"], exact(row)) for row in expected] == [
        (name, exact(row)) for name, row in zip(names, found, strict=True)
    ]
    for mine, row in zip(expected, found, strict=True):
        assert {n: row[n] for n in NEARLY} == pytest.approx({n: mine[n] for n in NEARLY}, abs=2e-3)


@settings(max_examples=3 * settings().max_examples)
@given(cases(), st.sampled_from((1, 1, 10)), st.sampled_from(("default", "published")))
def test_matches_are_the_same(
    case: tuple[list[dict[str, Any]], list[str]], stride: int, preset: str
) -> None:
    items, documents = case
    index = Index.build(items, allow_empty=True)
    detector = naive.Detector(items)
    for text in documents:
        expected = detector.find(text, stride, preset)
        assume(not detector.close_calls)
        same_rows(expected, index.scan([text], stride=stride, preset=preset).to_pylist())


@given(cases())
def test_a_batch_is_its_texts_one_by_one(case: tuple[list[dict[str, Any]], list[str]]) -> None:
    items, documents = case
    index = Index.build(items, allow_empty=True)
    documents = [None, *documents, "", documents[0]]
    one_by_one = [
        {**m, "row": k} for k, text in enumerate(documents) for m in index.scan([text]).to_pylist()
    ]
    assert index.scan(documents).to_pylist() == one_by_one


@given(makers(), st.randoms(use_true_random=False))
def test_the_order_of_the_items_changes_nothing(maker: Maker, rng: random.Random) -> None:
    shuffled = [*maker.items, rng.choice(maker.items)]  # an exact repeat is dropped
    rng.shuffle(shuffled)
    straight = Index.build(maker.items, allow_empty=True)
    assert Index.build(shuffled, allow_empty=True).content_hash == straight.content_hash


# --- what must always be found -----------------------------------------------------------------------


@settings(max_examples=2 * settings().max_examples)
@given(
    makers(), TEXT, TEXT, st.text(SEPARATORS, min_size=1, max_size=3), st.integers(0, 99), st.booleans()
)
def test_an_item_pasted_anywhere_is_found(
    maker: Maker, before: str, after: str, gap: str, which: int, kin: bool
) -> None:
    """Verbatim, between any texts: coverage 1. Also near pieces of the same items, unless all the text
    is made of a handful of words (a spread alignment may then do as well as the copy)."""
    index = Index.build(maker.items, allow_empty=True)
    item = maker.items[which % len(maker.items)]
    question = item["question"]
    detector = naive.Detector(maker.items)
    words = naive.words(naive.tokenize(question))
    assume(len(words) >= naive.N and sum(detector.questions[words].weight) > 0)
    if kin and len(maker.vocabulary) >= 40:
        before += " " + maker.render(maker.piece("cut")) + maker.render(maker.piece("host"))
        after = maker.render(maker.piece("overlap")) + " " + after
    text = before + gap + question + gap + after
    found = [m for m in index.scan([text]).to_pylist() if m["item"] == item["item"]]
    assert max((m["coverage"] for m in found), default=0) == pytest.approx(1, abs=1e-4)
    assert max(m["question_overlap"] for m in found) == pytest.approx(1, abs=1e-4)
    grams = naive.ngrams(naive.words(naive.tokenize(text)), naive.N)
    if sum(g in detector.questions[words].grams for g in grams) == len(words) - naive.N + 1:
        start = len(before + gap)  # nothing else of the item is there, so the span is the copy
        assert (found[0]["start"], found[0]["end"]) == (start, start + len(question.rstrip()))


def test_another_question_with_the_same_opening_does_not_hide_an_item() -> None:
    question = "Which of the following is the capital of Bolivia today?"
    other = (
        "Which of the following is a kind of dance that people in the old north liked to see at "
        "weddings each winter and spring? "
    )
    index = Index.build([{"suite": "s", "split": "t", "item": "1", "question": question}])
    (alone,) = index.scan([question]).to_pylist()
    (beside,) = index.scan([other + question]).to_pylist()
    assert beside["start"] == len(other)
    for name in ("coverage", "information", "question_overlap", "score", "evidence"):
        assert beside[name] == alone[name]


@given(makers(), st.integers(0, 25), st.integers(0, 99), st.booleans())
def test_every_tenth_position_finds_full_copies(maker: Maker, pad: int, which: int, kin: bool) -> None:
    item = maker.items[which % len(maker.items)]
    words = naive.words(naive.tokenize(item["question"]))
    weight = naive.Detector(maker.items).questions.get(words)
    assume(len(words) >= 14 and weight is not None and sum(weight.weight) > 0)
    seeds = list(zip(*(words[i:] for i in range(5)), strict=False))
    assume(len(set(seeds)) == len(seeds))  # one that repeats itself falls into two chains
    kin = kin and len(maker.vocabulary) >= 40
    host = maker.render(maker.piece("host" if kin else "foreign"))
    text = "pad " * pad + host + " " + item["question"] + " " + host
    found = Index.build(maker.items, allow_empty=True).scan([text], stride=10).to_pylist()
    assert max((m["coverage"] for m in found if m["item"] == item["item"]), default=0) == pytest.approx(
        1, abs=1e-4
    )


QUESTION = (
    "How many of the 12 red fish in the old lake near Tromsø swim north before 7 each winter morning?"
)
ITEM = {"suite": "s", "split": "test", "item": "1", "question": QUESTION,
        "answers": ["nine golden fish in all", "4"], "correct": [False, True],
        "passage": "The lake near the town is home to fish of several colours in winter"}  # fmt: skip
COPY = f"{ITEM['passage']}. {QUESTION} Answer: nine golden fish in all, or 4. "
# Tokens where a segment begins, hands over from the one before (half-way), and where that one ends.
BORDERS = [k * (65472 - 8192) + shift for k in (1, 2) for shift in (0, 4096, 8192)]


@given(
    st.sampled_from(("filler ", "一", "x, ")),
    st.sampled_from(BORDERS).flatmap(lambda at: st.integers(at - 120, at + 120))
    | st.integers(0, 140_000),
    st.sampled_from((1, 10)),
)
@example("filler ", 65431, 1)
@example("filler ", 65460, 1)
def test_an_item_is_found_once_wherever_it_stands_in_a_long_text(
    unit: str, at: int, stride: int
) -> None:
    """Also where one segment of 65,536 tokens ends and the next begins 8,192 earlier."""
    index = Index.build([ITEM])
    text = unit * at + " " + COPY + unit * (140_000 - at)
    (alone,) = index.scan([" " + COPY]).to_pylist()
    (match,) = index.scan([text], stride=stride).to_pylist()
    shift = len(unit) * at
    places = ("start", "end", "answer_start", "answer_end")
    assert {n: match[n] - shift for n in places} == {n: alone[n] for n in places}
    ignored = (*places, "quote")
    assert {n: v for n, v in match.items() if n not in ignored} == {
        n: v for n, v in alone.items() if n not in ignored
    }


@FEW
@given(
    cases(),
    st.sampled_from(("filler ", "一")),
    st.sampled_from(BORDERS).flatmap(lambda at: st.integers(at - 200, at + 50)),
)
def test_matches_do_not_depend_on_their_place(
    case: tuple[list[dict[str, Any]], list[str]], unit: str, at: int
) -> None:
    """Many items, whole and in pieces, around the ends of segments."""
    items, documents = case
    index = Index.build(items, allow_empty=True)
    block = " " + documents[0] + " "
    near, far = (index.scan([unit * before + block + unit * 2000]).to_pylist() for before in (2000, at))
    for match in far:
        for name in ("start", "end", "answer_start", "answer_end"):
            match[name] -= len(unit) * (at - 2000) if match[name] >= 0 else 0
    assert far == near


# --- the parts ---------------------------------------------------------------------------------------


@given(makers())
def test_a_compiled_index_holds_the_same_numbers(maker: Maker) -> None:
    """Weights, templates, n-gram weights, seeds and owners, of every question, answer and passage."""
    index = Index.build(maker.items, allow_empty=True)
    detector = naive.Detector(maker.items)
    questions, answers, passages = index.arrays[1:]
    assert len(questions.total) == len(detector.questions)
    for q, mine in enumerate(detector.questions.values()):
        low, high = questions.ptr[q], questions.ptr[q + 1]
        assert (
            questions.owner[questions.owner_ptr[q] : questions.owner_ptr[q + 1]].tolist() == mine.owners
        )
        signed = [w if fresh else -w for w, fresh in zip(mine.weight, mine.fresh, strict=True)]
        assert questions.weight[low:high].tolist() == pytest.approx(signed, abs=1e-6)
        assert questions.total[q] == pytest.approx(sum(mine.weight), rel=1e-6)
        assert gram_weights(mine.words, naive.QUESTION_N, detector.gram_idf) == pytest.approx(
            questions.gram_weight[low:high].tolist(), abs=1e-6
        )
        assert questions.seeds[q] == len(mine.seeds)
        assert sorted(index.arrays.grams.position[index.arrays.grams.question == q]) == sorted(
            mine.seeds.values()
        )
    flat = [answer for item in detector.answers for answer in item]
    assert answers.correct.tolist() == [answer.correct for answer in flat]
    for k, mine in enumerate(flat):
        low, high = answers.ptr[k], answers.ptr[k + 1]
        told = np.maximum(answers.weight[low:high], 0).sum()
        assert told == pytest.approx(mine.information, rel=1e-5, abs=1e-6)
        assert gram_weights(mine.words, naive.ANSWER_N, detector.answer_idf) == pytest.approx(
            answers.gram_weight[low:high].tolist(), abs=1e-6
        )
    for p, words in zip(passages.of_item.tolist(), detector.passages, strict=True):
        assert (p < 0) == (not words)
        if words:
            assert gram_weights(words, naive.PASSAGE_N, detector.passage_idf) == pytest.approx(
                passages.gram_weight[passages.ptr[p] : passages.ptr[p + 1]].tolist(), abs=1e-6
            )


def gram_weights(words: naive.Run, size: int, idf: dict[naive.Run, float]) -> list[float]:
    """The weight of the n-gram at each token; 0 where there is none or it occurred before."""
    out = [0.0] * len(words)
    for gram, place in naive.first_ngrams(words, size).items():
        out[place] = idf[gram]
    return out


def test_common_ngrams_are_no_seeds_but_no_question_loses_its_rarest() -> None:
    opening = "one two three four five six seven eight nine ten"
    items = [
        {"suite": "s", "split": "t", "item": str(k), "question": f"{opening} {k if k else ''}"}
        for k in range(naive.MAX_POSTINGS + 5)
    ]
    index, detector = Index.build(items, allow_empty=True), naive.Detector(items)
    assert index.arrays.questions.seeds.tolist() == [len(q.seeds) for q in detector.questions.values()]
    assert set(index.arrays.questions.seeds.tolist()) == {naive.MIN_SEEDS}
    for k in (0, 7):
        text = items[k]["question"]
        detector.close_calls = 0
        same_rows(detector.find(text), index.scan([text]).to_pylist())


@pytest.mark.parametrize("sharing", [4, 5, 9])
def test_what_half_of_a_suite_shares_is_its_template(sharing: int) -> None:
    own = [c * 3 + d * 3 + c * 4 for c in "abcde" for d in "vw"]
    shared = ["choose the best of these options now "] * sharing + [""] * len(own)
    items = [
        {"suite": "s", "split": "t", "item": w, "question": f"{opening}{w} it x{w} is {w}y"}
        for w, opening in zip(own, shared, strict=False)
    ]
    questions = Index.build(items, allow_empty=True).arrays.questions
    first = questions.weight[questions.ptr[0] : questions.ptr[1]]
    assert (first[:7] == 0).all() == (sharing >= naive.TEMPLATE_SHARE * len(own))
    assert (first[7:] > 0).sum() == 5


@MANY
@given(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 2**20), max_size=200))
def test_sort_words_sorts(values: list[int]) -> None:
    word = np.array([*values, 7], np.uint64)
    sort_words(word, np.zeros(len(word), np.uint64), np.zeros(257, np.int64), len(values))
    assert word.tolist() == [*sorted(values), 7]


@MANY
@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=40),
    st.lists(st.integers(0, 6), max_size=60),
    st.integers(0, 9),
    st.sampled_from((1 << 20, 1 << 20, 300)),
)
def test_an_alignment_is_a_best_one(question: list[int], text: list[int], low: int, limit: int) -> None:
    """Weight of a longest common subsequence; in a band, some common subsequence."""
    weight = np.array([0.0, 0.25, 1.5, 2.0, 3.25, 8.0], np.float32)[question]
    low = min(low, len(text))
    window = kernels.make_scratch().window
    align(
        tokens.frozen(np.array(question, np.uint32)), tokens.frozen(weight),
        np.array([*text, 0], np.uint32), low, len(text), limit, window,
    )  # fmt: skip
    path = window.path[: len(question)].tolist()
    matched = [(i, j) for i, j in enumerate(path) if j >= 0]
    assert all(question[i] == text[j] and j >= low for i, j in matched)
    assert [j for _, j in matched] == sorted({j for _, j in matched})
    w = (weight + np.float32(0.01)).tolist()
    best = [[0.0] * (len(text) + 1) for _ in range(len(question) + 1)]
    for i in range(len(question)):
        for j in range(low, len(text)):
            both = best[i][j] + w[i] if question[i] == text[j] else 0.0
            best[i + 1][j + 1] = max(best[i][j + 1], best[i + 1][j], both)
    reached = sum(w[i] for i, _ in matched)
    if limit > len(question) * len(text):
        assert reached == pytest.approx(best[-1][-1], abs=1e-4)
        assert path == naive.align(
            tuple(map(str, question)), weight.tolist(), tuple(map(str, text)), low, len(text)
        )
    else:
        assert reached <= best[-1][-1] + 1e-4


@given(st.lists(st.lists(st.integers(0, 9), max_size=30), max_size=8))
def test_mark_repeats_marks_what_was_there_before(runs: list[list[int]]) -> None:
    flat = np.array([v for run in runs for v in run], np.uint64)
    found = index_module.repeats(
        flat, index_module.pointers(np.array([len(r) for r in runs], np.int64))
    )
    assert found.tolist() == [v != 0 and v in run[:i] for run in runs for i, v in enumerate(run)]


@given(makers(), st.integers(1, 12), st.integers(0, 100_000))
def test_find_hits_are_the_ngrams_of_the_index(maker: Maker, step: int, base: int) -> None:
    index = Index.build(maker.items, allow_empty=True)
    keys = index.arrays.grams.key
    known = {key: k for k, key in enumerate(keys.tolist())}
    scratch = kernels.make_scratch()
    gram = np.array(maker.rng.choices([*known, 3, 2**63, 5 << 50], k=300), np.uint64)
    scratch.segment.gram[:300] = gram
    count = kernels.find_hits(index.arrays.grams, scratch.segment.gram, 300, step, base, scratch.hits)
    expected = [
        (i, known[g]) for i, g in enumerate(gram.tolist()) if (base + i) % step == 0 and g in known
    ]
    found = zip(scratch.hits.position[:count].tolist(), scratch.hits.slot[:count].tolist(), strict=True)
    assert list(found) == expected


PATH = st.lists(st.none() | st.integers(1, 4) | st.integers(1, 25), min_size=1, max_size=20)


@MANY
@given(PATH, st.integers(0, 2**32 - 1))
def test_the_measures_of_an_alignment(steps: list[int | None], seed: int) -> None:
    """Weight found, missing inside and at the ends; foreign tokens; numbers missing and changed."""
    rng = random.Random(seed)
    path = path_of(steps)
    question = rng.choices(("a", "b", "1", "2", "c", "d", "e"), k=len(path))
    text = rng.choices(("x", "y", "3"), k=max(path) + 2)
    for i, place in enumerate(path):
        if place >= 0:
            text[place] = question[i]
    asked = naive.Question(naive.tokenize(" ".join(question)), "")
    asked.weight = [{"a": 0.0, "b": 0.5, "1": 2.0}.get(w, 3.25) for w in question]
    signed = [w if fresh else -w for w, fresh in zip(asked.weight, asked.fresh, strict=True)]
    expected = naive.measure(asked, naive.tokenize(" ".join(text)), path)
    hashed = tokens.tokenize([" ".join(question), " ".join(text)])
    cut = int(hashed.ptr[1])
    covered, found, holes, ends, foreign, first, last, missing, changed = measure_path(
        tokens.frozen(hashed.token[:cut].copy()), tokens.frozen(np.array(signed, np.float32)),
        hashed.token[cut:].copy(), np.array(path, np.int32),
    )  # fmt: skip
    assert covered == pytest.approx(expected["covered"])
    if max(path) >= 0:
        assert found - holes - naive.STRANGER * foreign == pytest.approx(expected["information"])
        assert ends == pytest.approx(expected["cut_off"])
        places = [expected[name] for name in ("first", "last", "missing", "changed")]
        assert [first, last, missing, changed] == places


def path_of(steps: list[int | None]) -> list[int]:
    """Steps as places, None as -1."""
    places = itertools.accumulate(steps, lambda place, step: place + (step or 0), initial=0)
    return [place if step else -1 for place, step in zip(list(places)[1:], steps, strict=True)]


@given(PATH)
def test_trimming_drops_what_stands_apart(steps: list[int | None]) -> None:
    path = path_of(steps)
    trimmed = np.array([*path, -1], np.int32)
    trim_path(trimmed, len(path))
    naive.trim(path)
    assert trimmed.tolist() == [*path, -1]


SPAN = st.tuples(
    st.integers(0, 1), st.integers(0, 40), st.integers(1, 30), st.integers(0, 3), st.integers(0, 1)
)


@MANY
@given(st.lists(SPAN, max_size=9))
@example([(0, 0, 100, 2, 0), (0, 10, 10, 1, 0), (0, 30, 10, 1, 0)])
@example([(0, 0, 10, 3, 0), (0, 8, 10, 2, 0), (0, 16, 10, 1, 0)])
def test_of_rows_that_overlap_the_best_stays(spans: list[tuple[int, int, int, int, int]]) -> None:
    rows = [
        {"number": item, "start": start, "end": start + length, "coverage": 1 - worse / 8,
         "answer_overlap": float(answered), "matched": []}
        for item, start, length, worse, answered in spans
    ]  # fmt: skip
    ints = np.zeros((len(rows), kernels.INTS), np.int64)
    floats = np.zeros((len(rows), kernels.FLOATS), np.float32)
    for k, row in enumerate(rows):
        ints[k, [kernels.ITEM, kernels.START, kernels.END]] = row["number"], row["start"], row["end"]
        floats[k, [kernels.COVERAGE, kernels.ANSWER_OVERLAP]] = row["coverage"], row["answer_overlap"]
    found, _ = scan.drop_repeats(ints, floats)
    kept = naive.Detector([]).without_repeats(rows)
    assert found[:, [kernels.START, kernels.ITEM, kernels.END]].tolist() == sorted(
        [row["start"], row["number"], row["end"]] for row in kept
    )
