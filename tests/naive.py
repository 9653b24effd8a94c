"""The detector in plain Python: what `unseen` computes, written to be read rather than to be fast.

It imports nothing from the package (only the frozen code-point table is read, as data), and it works
with strings and tuples where the package has hashes, so a fault in either shows as a difference
(tests/test_naive.py). Read from top to bottom it is the algorithm:

    text -> tokens -> n-grams -> seeds -> chains -> alignment -> overlaps -> score, evidence, verdict

Left out is what only bounds the cost of hostile or huge documents: segments, the seed and cell
budgets, the band of an alignment, and the filters that merely save work. The package adds in float32;
sums here are exact, but the alignment rounds as it does, since equally good paths are told apart by
the last bit. `Detector.close_calls` counts decisions that rounding could turn.
"""

from __future__ import annotations

import functools
import itertools
import math
import pathlib
import re
from collections import Counter
from typing import NamedTuple

import numpy as np

# The package's constants, restated (kernels, index, score, verdict).
N = 5  # tokens in a seed
QUESTION_N, ANSWER_N, PASSAGE_N = 4, 3, 4  # tokens in an n-gram of the published overlaps
MAX_QUESTION, MAX_ANSWER, MAX_PASSAGE = 2048, 4096, 4096  # tokens looked at
MIN_COVERAGE = 0.5  # a match is recorded from here on
STRANGER = 0.5  # nats against a match for each foreign token inside it
MIN_INFORMATION, MIN_OVERLAP = 12.0, 0.6  # under both, nothing is recorded
MAX_POSTINGS, MIN_SEEDS = 128, 4
TEMPLATE_SHARE, TEMPLATE_QUESTIONS = 0.5, 10
MIN_WEIGHT, MAX_WEIGHT = 0.05, 8.0
PRIOR_QUESTIONS = 2000
PRIOR_BY_LENGTH = (0.1, 0.1, 0.08, 0.03, 0.01, 0.005, 0.003, 0.002, 0.0015, 0.001)
BPE_PER_TOKEN, FLAGGED = 1.3, 0.8
MIN_COPY_INFORMATION, MIN_EDITED_INFORMATION, EDITED_SLOPE = 27.0, 36.0, 25.0
WHOLE_COVERAGE, MIN_NEAR_COVERAGE = 0.97, 0.65
COPIED_OVERLAP, MIN_ANSWER_OVERLAP = 0.6, 0.5
MAX_CHANGED_NUMBERS = 0.15
REMOVED = ("question+answer", "question", "near", "canary")
CLOSE = 1e-4

# --- tokens ------------------------------------------------------------------------------------------

SEPARATOR, SKIP, LETTER, DIGIT, SINGLE, EXPAND = range(6)
TABLE = np.load(pathlib.Path(__file__).parent.parent / "src" / "unseen" / "codepoints.npz")
PAGES, ENTRIES, EXPANSIONS = (TABLE[k].tolist() for k in ("pages", "entries", "expansions"))


Run = tuple[str, ...]  # the texts of consecutive tokens


class Token(NamedTuple):
    text: str  # folded
    start: int  # characters
    end: int
    digit: bool  # holds a digit


@functools.cache
def fold(char: str) -> list[tuple[int, str]]:
    """What a character turns into: (class, folded text), several for fractions and the like."""
    point = ord(char)
    entry = ENTRIES[PAGES[point >> 8] * 256 + (point & 255)]
    entries = [entry]
    if entry >> 40 == EXPAND:
        first, count = entry & 0xFFFFFFFF, entry >> 32 & 255
        entries = EXPANSIONS[first : first + count]
    payloads = [(e & 0xFFFFFFFF).to_bytes(4, "little")[: e >> 32 & 255] for e in entries]
    return [(e >> 40, payload.decode()) for e, payload in zip(entries, payloads, strict=True)]


def tokenize(text: str | None) -> list[Token]:
    """Runs of letters and digits, folded; one token a character in scripts without spaces.

    What is skipped (accents, joiners) neither starts nor ends a token, but lengthens an open one.
    """
    tokens: list[Token] = []
    word: Token | None = None
    for i, char in enumerate(text or ""):
        for kind, piece in fold(char):
            if kind in (LETTER, DIGIT):
                word = word or Token("", i, i, False)
                word = Token(word.text + piece, word.start, i + 1, word.digit or kind == DIGIT)
            elif kind == SKIP:
                word = word and word._replace(end=i + 1)
            else:
                tokens += [word] if word else []
                word = None
                tokens += [Token(piece, i, i + 1, False)] if kind == SINGLE else []
    return tokens + ([word] if word else [])


def words(tokens: list[Token]) -> Run:
    return tuple(t.text for t in tokens)


def ngrams(run: Run, n: int) -> list[Run]:
    return [run[i : i + n] for i in range(len(run) - n + 1)]


def first_ngrams(run: Run, n: int) -> dict[Run, int]:
    """Distinct n-grams, each with its first position."""
    return {gram: i for i, gram in reversed(list(enumerate(ngrams(run, n))))}


# --- the reference set -------------------------------------------------------------------------------

SCRIPTS = {
    "ja": "[\u3040-\u30ff]", "zh": "[\u3400-\u9fff]", "ko": "[\uac00-\ud7af]", "ru": "[\u0400-\u04ff]",
    "ar": "[\u0600-\u06ff]", "el": "[\u0391-\u03c9]{3}", "hi": "[\u0900-\u097f]",
    "bn": "[\u0980-\u09ff]", "ta": "[\u0b80-\u0bff]", "te": "[\u0c00-\u0c7f]",
    "th": "[\u0e00-\u0e7f]", "he": "[\u0590-\u05ff]",
}  # fmt: skip


def in_order(items: list[dict]) -> list[dict]:
    """Items by suite, split and id (numbers by value), exact repeats dropped."""

    def natural(name: str) -> str:
        return name.rjust(16, "0") if re.fullmatch("[0-9]{1,15}", name) else name

    ordered = sorted(items, key=lambda i: (i["suite"], i["split"], natural(i["item"]), i["item"]))
    return [item for k, item in enumerate(ordered) if k == 0 or item != ordered[k - 1]]


def language_of(item: dict) -> str:
    """As given, else by script, else one for all the rest."""
    if item.get("language") is not None:
        return item["language"]
    found = (name for name, script in SCRIPTS.items() if re.search(script, item.get("question") or ""))
    return next(found, "")


class Question:
    """A distinct question: items that ask the same tokens share one."""

    def __init__(self, tokens: list[Token], language: str) -> None:
        self.tokens, self.words, self.language = tokens, words(tokens), language
        self.grams = first_ngrams(self.words, N)
        self.published = first_ngrams(self.words, QUESTION_N)
        self.numbers = sum(t.digit for t in tokens)
        self.fresh = [w not in self.words[:i] for i, w in enumerate(self.words)]
        self.owners: list[int] = []  # items
        self.weight: list[float] = []  # nats of each token; 0 where it belongs to a template
        self.seeds: dict[Run, int] = {}  # n-grams that may start a match


Chain = list[tuple[int, int]]  # seeds: place in the document, place in the question


class Document(NamedTuple):
    tokens: list[Token]
    words: Run
    grams: list[Run]


class Answer(NamedTuple):
    words: Run
    correct: bool
    information: float  # nats of its distinct tokens


def round32(value: float) -> float:
    return float(np.float32(value))


class Detector:
    """A compiled reference set, and the scan. `items` have the fields of `records.ITEM_FIELDS`."""

    def __init__(self, items: list[dict]) -> None:
        self.close_calls = 0
        self.items = in_order(items)
        self.questions: dict[Run, Question] = {}
        for number, item in enumerate(self.items):
            tokens = tokenize(item["question"])[:MAX_QUESTION]
            if tokens:
                question = Question(tokens, language_of(item))
                self.questions.setdefault(question.words, question).owners.append(number)
        asked = list(self.questions.values())
        self.token_df = Counter(w for q in asked for w in set(q.words))
        self.spoken_df = Counter((q.language, w) for q in asked for w in set(q.words))
        self.spoken = Counter(q.language for q in asked)
        self.gram_idf = inverse_frequency([q.published for q in asked])

        self.answers = [self.answers_of(item) for item in self.items]
        self.answer_idf = inverse_frequency(
            [first_ngrams(a.words, ANSWER_N) for answers in self.answers for a in answers]
        )
        self.passages = [words(tokenize(item.get("passage"))) for item in self.items]
        distinct = [p for p in dict.fromkeys(self.passages) if p]
        self.passage_idf = inverse_frequency([first_ngrams(p, PASSAGE_N) for p in distinct])

        template = self.template_tokens()
        gram_df = Counter(g for q in asked for g in q.grams)
        for q in asked:
            plain = self.token_weights(q.tokens, q.language)
            q.weight = [0.0 if (q.words, i) in template else w for i, w in enumerate(plain)]
            rarest = sorted(q.grams, key=lambda g: (gram_df[g], q.grams[g]))[:MIN_SEEDS]
            q.seeds = {g: i for g, i in q.grams.items() if gram_df[g] <= MAX_POSTINGS or g in rarest}

    def token_weights(self, tokens: list[Token], language: str) -> list[float]:
        """Nats: how rare a token is, among all questions or those of its language, the lesser.

        Pseudo-questions, in which a token is as frequent as others of its length are in ordinary text,
        keep a small reference set from calling a common word rare.
        """
        out = []
        for t in tokens:
            prior = PRIOR_QUESTIONS * PRIOR_BY_LENGTH[min(t.end - t.start, 9)]
            everywhere = (len(self.questions) + PRIOR_QUESTIONS + 1) / (self.token_df[t.text] + prior)
            here = (self.spoken[language] + PRIOR_QUESTIONS + 1) / (
                self.spoken_df[language, t.text] + prior
            )
            out.append(round32(min(max(math.log(min(everywhere, here)), MIN_WEIGHT), MAX_WEIGHT)))
        return out

    def answers_of(self, item: dict) -> list[Answer]:
        out = []
        marks = item.get("correct") or []
        for k, text in enumerate(item.get("answers") or []):
            tokens = tokenize(text)[:MAX_ANSWER]
            weight: dict[str, float] = {}
            for t, w in zip(tokens, self.token_weights(tokens, language_of(item)), strict=True):
                weight.setdefault(t.text, w)
            out.append(Answer(words(tokens), k < len(marks) and bool(marks[k]), sum(weight.values())))
        return out

    def template_tokens(self) -> set[tuple[Run, int]]:
        """(question, position) of tokens in n-grams that at least half of a suite's questions share."""
        out = set()
        suites: dict[str, dict[Run, Question]] = {}
        for q in self.questions.values():
            for owner in q.owners:
                suites.setdefault(self.items[owner]["suite"], {})[q.words] = q
        for mine in (list(suite.values()) for suite in suites.values()):
            if len(mine) < TEMPLATE_QUESTIONS:
                continue
            count = Counter(g for q in mine for g in q.grams)
            for q in mine:
                for gram, i in q.grams.items():
                    if count[gram] >= TEMPLATE_SHARE * len(mine):
                        out |= {(q.words, i + k) for k in range(N)}
        return out

    # --- the scan ------------------------------------------------------------------------------------

    def find(self, text: str, stride: int = 1, preset: str = "default") -> list[dict]:
        """The matches of a document, by start, then item."""
        self.close_calls = 0
        tokens = tokenize(text)
        doc = Document(tokens, words(tokens), ngrams(words(tokens), N))
        rows = []
        for question in self.questions.values():
            seeds = [(d, question.seeds[g]) for d, g in enumerate(doc.grams) if g in question.seeds]
            for chain in chains(len(question.words), seeds):
                sampled = any(d % stride == 0 for d, _ in chain)
                if sampled and len(chain) >= min(max((len(question.seeds) + 9) // 10, 1), 100):
                    rows += self.judge(question, chain, doc)
        rows = self.without_repeats(rows)
        for row in rows:
            row["evidence"] = self.evidence(row)
            removed = row["evidence"] in REMOVED
            if preset == "published":
                scored = row["evidence"] not in ("solution", "canary")
                removed = scored and self.reaches(row["score"], FLAGGED - 1e-6)
            row["verdict"] = "remove" if removed else "keep"
            if row["evidence"] == "solution" and preset == "default":
                row["verdict"] = "review"
        return sorted(rows, key=lambda row: (row["start"], row["number"]))

    def judge(self, question: Question, chain: Chain, doc: Document) -> list[dict]:
        """A row for each item that asks the question of a chain, or none."""
        total = sum(question.weight)
        if total <= 0:
            return []  # nothing but template
        low, high = window(question.words, chain, doc.words)
        path = align(question.words, question.weight, doc.words, low, high)
        tighten(question.words, doc.words, path)
        trim(path)
        mend(question.words, doc.words, path)
        shown = measure(question, doc.tokens, path)
        coverage = min(shown["covered"] / total, 1.0)
        if not self.reaches(coverage, MIN_COVERAGE):
            return []
        overlap = question_overlap(self.gram_idf, question, doc.words, shown["first"], shown["last"])
        telling = self.reaches(shown["information"], MIN_INFORMATION)
        if not telling and not self.reaches(overlap, MIN_OVERLAP):
            return []
        rows = []
        for number in question.owners:
            item, passage = self.items[number], self.passages[number]
            answer = self.best_option(number, doc.words, shown["last"] + 1)
            row = {
                "number": number,
                "item": f"{item['suite']}/{item['split']}/{item['item']}",
                "start": doc.tokens[shown["first"]].start,
                "end": doc.tokens[shown["last"]].end,
                "answer_start": -1 if answer["first"] < 0 else doc.tokens[answer["first"]].start,
                "answer_end": -1 if answer["first"] < 0 else doc.tokens[answer["last"]].end,
                "option": answer["option"],
                "option_correct": answer["correct"],
                "numbers_kept": shown["missing"] == 0,
                "numbers_changed": shown["changed"],
                "numbers": question.numbers,
                "matched": [i for i, d in enumerate(path) if d >= 0],
                "coverage": coverage,
                "information": shown["information"],
                "cut_off": shown["cut_off"],
                "answer_information": answer["information"],
                "question_overlap": overlap,
                "answer_overlap": answer["overlap"],
                "passage_overlap": passage_overlap(
                    self.passage_idf, passage, doc.words, shown["first"]
                ),
            }
            row["score"] = self.score(row, question, answer["length"], len(passage))
            rows.append(row)
        return rows

    def best_option(self, number: int, run: Run, begin: int) -> dict:
        """The answer that stands nearest to whole after a question that ends before token `begin`.

        Ties go to the right answer, then to the first.
        """
        best, chosen, where = 0.0, -1, (-1, -1)
        answers = self.answers[number]
        for k, answer in enumerate(answers):
            overlap, first, last = find_answer(self.answer_idf, answer.words, run, begin)
            if overlap != best and abs(overlap - best) < CLOSE:
                self.close_calls += 1
            preferred = chosen >= 0 and answer.correct > answers[chosen].correct
            if overlap > best or (overlap == best > 0 and preferred):
                best, chosen, where = overlap, k, (first, last)
        shown = next((answer for answer in answers if answer.words), Answer((), False, 0.0))
        if chosen >= 0:
            shown = answers[chosen]
        return {
            "option": chosen,
            "correct": shown.correct if chosen >= 0 else None,
            "overlap": best,
            "first": where[0],
            "last": where[1],
            "information": shown.information * best,
            "length": len(set(shown.words)),
        }

    def score(self, row: dict, question: Question, answer: int, passage: int) -> float:
        """The published score, from the overlaps and the lengths in BPE tokens (`score.published`)."""
        oq, oa, op = row["question_overlap"], row["answer_overlap"], row["passage_overlap"]
        grams = len(question.published) * BPE_PER_TOKEN
        c = 0.5 + 0.5 * min(grams / 20, 1)  # a short question counts for less
        if answer and passage:
            for_answer = (0.2 + 0.35 * (1 - c)) * (0.5 + 0.5 * min(answer / 4, 1))
            score = 0.7 * c * oq + for_answer * oa + (1 - 0.7 * c - for_answer) * op
        elif answer:
            score = 0.75 * c * oq + (1 - 0.75 * c) * oa
        elif passage:
            score = 0.85 * c * oq + (1 - 0.85 * c) * op
        else:
            score = oq
        length = len(question.words) + answer + passage
        if self.reaches(score, 1 - 1e-6):
            score = 1.0
        else:  # a short item needs more: its score is scaled instead
            score = max(score, 0.0) * FLAGGED / needed(length * BPE_PER_TOKEN, FLAGGED)
        enough = self.reaches(oq, needed(len(question.words) * BPE_PER_TOKEN, 5 / 7) - 1e-6)
        if length * BPE_PER_TOKEN < 20 or not enough:
            score = min(score, FLAGGED - 1e-3)
        return score

    def evidence(self, row: dict) -> str:
        """What kind of copy a match shows, and whether it tells enough to be itself.

        What is missing at the ends of a copy was cut off; at the ends of anything else it speaks
        against the match, and more is asked of it.
        """
        coverage, told, needed = row["coverage"], row["information"], MIN_COPY_INFORMATION
        whole = self.reaches(coverage, WHOLE_COVERAGE)
        if row["item"].split("/")[-2] == "canary":
            return "canary" if whole else "partial"
        if not self.reaches(coverage, MIN_NEAR_COVERAGE):
            return "partial"
        if row["numbers_changed"] > MAX_CHANGED_NUMBERS * row["numbers"]:
            return "template"
        if not whole and not self.reaches(row["question_overlap"], COPIED_OVERLAP):
            told -= row["cut_off"]
            needed = MIN_EDITED_INFORMATION + EDITED_SLOPE * (WHOLE_COVERAGE - coverage)
        if f"/{row['item']}".split("/")[-3] == "solution":
            return "solution" if self.reaches(told, needed) else "partial"
        answered = self.reaches(row["answer_overlap"], MIN_ANSWER_OVERLAP)
        if answered and self.reaches(told + row["answer_information"], needed):
            return "question+answer"
        if self.reaches(told, needed):
            return "question" if whole else "near"
        return "partial"

    def without_repeats(self, rows: list[dict]) -> list[dict]:
        """One row where several chains found the same copy of an item: of two that overlap, the better.

        By coverage, then by answer overlap, then the earlier.
        """
        kept: list[dict] = []
        for row in sorted(rows, key=lambda r: (-r["coverage"], -r["answer_overlap"], r["start"])):
            rivals = [k for k in kept if k["number"] == row["number"] and overlapping(k, row)]
            for rival in rivals:
                self.close_calls += tied(row, rival)
            kept += [] if rivals else [row]
        return kept

    def reaches(self, value: float, bar: float) -> bool:
        """value >= bar; a close call is counted (but 0 and 1 come out the same however one adds)."""
        self.close_calls += abs(value - bar) < CLOSE and min(abs(value), abs(value - 1)) > 1e-9
        return value >= bar


def overlapping(a: dict, b: dict) -> bool:
    return a["start"] < b["end"] and b["start"] < a["end"]


def tied(a: dict, b: dict) -> bool:
    """Whether the coverage of two rows is so nearly the same that rounding decides."""
    near = abs(a["coverage"] - b["coverage"]) < CLOSE and min(a["coverage"], b["coverage"]) < 1 - 1e-9
    return near and a["matched"] != b["matched"]


def inverse_frequency(runs: list[dict[Run, int]]) -> dict[Run, float]:
    """ln((N + 1) / df) of every n-gram, df of N runs hold it."""
    df = Counter(gram for run in runs for gram in run)
    return {gram: math.log((len(runs) + 1) / count) for gram, count in df.items()}


# --- chains ------------------------------------------------------------------------------------------


def chains(length: int, seeds: Chain) -> list[Chain]:
    """Seeds (place in the document, place in the question) of one question, cut where copies end.

    seeds: by place in the document. A chain ends before a gap of more than 32 tokens and an eighth of
    the question, where it would get longer than twice the question and 64, and where the question
    starts again: half of it lies behind, and the next seed is half of it further up.
    """
    out: list[Chain] = []
    for d, q in seeds:
        if out:
            begin, previous = out[-1][0][0], out[-1][-1][0]
            highest = max(q for _, q in out[-1])
            far = d - previous > 32 + length // 8 or d - begin > 2 * length + 64
            again = q + length // 2 < highest and d - begin >= length // 2
            if not far and not again:
                out[-1].append((d, q))
                continue
        out.append([(d, q)])
    return out


def window(question: Run, chain: Chain, run: Run) -> tuple[int, int]:
    """Where the whole question would stand, judging by the outer seeds; wider where it does not."""
    slack = 3 + len(question) // 8
    low = chain[0][0] - chain[0][1]
    if low < 0 or run[low] != question[0]:
        low = max(0, low - slack)
    high = chain[-1][0] - chain[-1][1] + len(question)
    if high > len(run) or run[high - 1] != question[-1]:
        high = min(len(run), high + slack)
    return low, high


# --- alignment ---------------------------------------------------------------------------------------


def align(question: Run, weight: list[float], run: Run, low: int, high: int) -> list[int]:
    """Weighted longest common subsequence of a question and run[low:high].

    Returns the place of each question token in the run, or -1. Common heads and tails first, then the
    textbook table, read backwards: a token is matched only where neither neighbour is as good.
    """
    m = len(question)
    path = [-1] * m
    head = tail = 0
    while head < m and low + head < high and question[head] == run[low + head]:
        path[head] = low + head
        head += 1
    while tail < min(m, high - low) - head and question[m - 1 - tail] == run[high - 1 - tail]:
        path[m - 1 - tail] = high - 1 - tail
        tail += 1
    rows, columns = question[head : m - tail], run[low + head : high - tail]
    best = [[0.0] * (len(columns) + 1)]
    for i, word in enumerate(rows):
        w = round32(weight[head + i] + round32(0.01))  # what weighs nothing is still better matched
        line = [0.0]
        for j, other in enumerate(columns):
            value = max(best[i][j + 1], line[j])
            line.append(max(value, round32(best[i][j] + w)) if word == other else value)
        best.append(line)
    i, j = len(rows), len(columns)
    while i > 0 and j > 0:
        if best[i][j] == best[i - 1][j]:
            i -= 1
        elif best[i][j] == best[i][j - 1]:
            j -= 1
        else:
            i, j = i - 1, j - 1
            path[head + i] = low + head + j
    return path


def tighten(question: Run, run: Run, path: list[int]) -> None:
    """Move each matched token as far left as the one before allows, then as far right as the next one
    allows: a copy stands in one place."""
    matched = [i for i, d in enumerate(path) if d >= 0]
    for i, k in itertools.pairwise(matched):
        path[k] = min(d for d in range(path[i] + 1, path[k] + 1) if run[d] == question[k])
    for i, k in reversed(list(itertools.pairwise(matched))):
        path[i] = max(d for d in range(path[i], path[k]) if run[d] == question[i])


def trim(path: list[int]) -> None:
    """Drop matched tokens at either end while they stand far from the next one: 8 and twice the gap."""
    for order in (1, -1):
        while True:
            matched = [i for i, d in enumerate(path) if d >= 0][::order]
            if len(matched) < 2:
                break
            i, k = matched[:2]
            if abs(path[k] - path[i]) <= 8 + 2 * abs(k - i):
                break
            path[i] = -1


def mend(question: Run, run: Run, path: list[int]) -> None:
    """Go on at both ends while the words agree: a stray word elsewhere had taken theirs."""
    matched = [i for i, d in enumerate(path) if d >= 0]
    if not matched:
        return
    i, k = matched[0], matched[-1]
    while i > 0 and path[i] > 0 and question[i - 1] == run[path[i] - 1]:
        path[i - 1] = path[i] - 1
        i -= 1
    while k + 1 < len(path) and path[k] + 1 < len(run) and question[k + 1] == run[path[k] + 1]:
        path[k + 1] = path[k] + 1
        k += 1


def measure(question: Question, tokens: list[Token], path: list[int]) -> dict:
    """What an alignment shows. What is there speaks for a copy; what is missing or foreign, against."""
    matched = [i for i, d in enumerate(path) if d >= 0]
    if not matched:
        return {"covered": 0.0}
    here = set(matched)
    low, high = matched[0], matched[-1]
    known = [w if fresh else 0.0 for w, fresh in zip(question.weight, question.fresh, strict=True)]
    foreign = path[high] - path[low] + 1 - len(matched)
    missing = {i for i, t in enumerate(question.tokens) if t.digit} - here
    changed = 0  # another number in its place: in a gap about as long in the text as in the question
    for i, k in itertools.pairwise(matched):
        strangers = tokens[path[i] + 1 : path[k]]
        if len(strangers) <= 2 * (k - i - 1) + 2:
            changed += min(sum(t.digit for t in strangers), len(missing & set(range(i, k))))
    return {
        "covered": sum(question.weight[i] for i in matched),
        "information": sum(known[i] if i in here else -known[i] for i in range(low, high + 1))
        - STRANGER * foreign,
        "cut_off": sum(known[:low]) + sum(known[high + 1 :]),
        "first": path[low],
        "last": path[high],
        "missing": len(missing),
        "changed": changed,
    }


# --- the published rule ------------------------------------------------------------------------------


def share(idf: dict, grams: dict, found: set) -> float:
    """Weight of the n-grams found, of all."""
    total = sum(idf[g] for g in grams)
    return sum(idf[g] for g in grams if g in found) / total if total else 0.0


def question_overlap(idf: dict, question: Question, run: Run, begin: int, end: int) -> float:
    """Both ways from the first n-gram of a match that is the question's, while it goes on.

    It ends where 11 n-grams in a row are not, and after twice the question and 64.
    """
    own, grams, reach = question.published, ngrams(run, QUESTION_N), 2 * len(question.words) + 64
    anchor = next((i for i in range(begin, end + 1) if grams[i : i + 1] and grams[i] in own), end + 1)
    if anchor >= len(grams):
        return 0.0
    found = set()
    for side in (grams[anchor::-1], grams[anchor:]):
        misses = 0
        for gram in side[:reach]:
            misses = 0 if gram in own else misses + 1
            found.add(gram)
            if misses == 11:
                break
    return share(idf, own, found)


def find_answer(idf: dict, answer: Run, run: Run, begin: int) -> tuple[float, int, int]:
    """Overlap, first and last token. Up to 3 tokens: whole, from within 50. Longer: by 3-grams."""
    k = len(answer)
    if k <= ANSWER_N:
        for j in range(begin, min(begin + 50, len(run) - k + 1)):
            if k and run[j : j + k] == answer:
                return 1.0, j, j + k - 1
        return 0.0, -1, -1
    own = first_ngrams(answer, ANSWER_N)
    near = ngrams(run[begin : begin + max(100, 2 * k)], ANSWER_N)
    places = [begin + j for j, gram in enumerate(near) if gram in own]
    if not places:
        return 0.0, -1, -1
    return share(idf, own, set(near)), places[0], places[-1] + ANSWER_N - 1


def passage_overlap(idf: dict, passage: Run, run: Run, begin: int) -> float:
    """Backwards from the question; after the first hit, three misses in a row end it."""
    known = passage[:MAX_PASSAGE]
    own = first_ngrams(known, PASSAGE_N)
    found, misses = set(), 0
    for gram in reversed(ngrams(run[max(0, begin - max(100, 2 * len(known))) : begin], PASSAGE_N)):
        if gram in own:
            found.add(gram)
            misses = 0
        elif found:
            misses += 1
            if misses == 3:
                break
    return share(idf, own, found)


def needed(length: float, bar: float) -> float:
    """1 up to 20 BPE tokens, `bar` from 50, linear between."""
    return 1 - (1 - bar) * min(max((length - 20) / 30, 0), 1)
