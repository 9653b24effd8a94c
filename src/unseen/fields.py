"""Fields that leak: what of an item the training data can quote, and what only looks like it.

In: the drafts of all splits of one suite. Out: the drafts, changed, and notes that say what changed.

* An answer that is only the letter of an option becomes its text; the options leave the question.
* A suite whose every answer is the same text ("Success") keeps its questions alone.
* Words that all questions of a suite begin or end with ("Question:", instructions) leave the question.
* Reference solutions become a suite of their own, NAME/solution, asked whole: its policy is review,
  since a short problem can have only one reasonable solution.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from unseen.catalog import Draft, with_unique_ids
from unseen.records import SOLUTION

MIN_SHARING = 10  # distinct questions of a suite that must share an opening before it is a template
MIN_CONSTANT = 2  # items of a suite that must share their only answer before it is left out

OPTION = re.compile(r"^[ \t]*[\[(]?([A-Z])[\]).:][ \t]*(\S.*?)[ \t]*$", re.M)
LETTER = re.compile(r"[\[(]?([A-Z])[\]).:]?", re.A)
BOUNDARY = re.compile(r"[\n:.?!。：？！]")


class Suite(NamedTuple):
    """One suite: the drafts of each of its splits, and what was done to them."""

    name: str
    splits: dict[str, list[Draft]]
    notes: list[str]


def cleaned(name: str, splits: dict[str, list[Draft]]) -> list[Suite]:
    """The suite as it should be indexed, and the suite of its solutions where it has any."""
    notes: list[str] = []
    solutions = {split: solutions_of(drafts) for split, drafts in splits.items()}
    splits = {split: [without_solution(draft) for draft in splits[split]] for split in splits}
    out = {split: [options_read(draft) for draft in drafts] for split, drafts in splits.items()}
    read = sum(a != b for s in splits for a, b in zip(splits[s], out[s], strict=True))
    if read:
        notes.append(f"letters: the options of {read} items were read from their questions")
    constant = constant_answer(draft for drafts in out.values() for draft in drafts)
    if constant is not None:
        for drafts in out.values():
            for draft in drafts:
                draft["answers"], draft["correct"] = [], []
        notes.append(f"constant answer: every answer is {constant!r}; indexed on the question alone")
    opening, ending = shared_ends([d.get("question") or "" for ds in out.values() for d in ds])
    if opening or ending:
        for drafts in out.values():
            for draft in drafts:
                draft["question"] = without_ends(draft.get("question"), opening, ending)
        notes += [f"template: {text.strip()!r} left out" for text in (opening, ending) if text]
    suites = [Suite(name, out, notes)]
    if any(solutions.values()):
        note = f"solution: the reference solutions of {name}; kept for review"
        suites.append(
            Suite(name + SOLUTION, {s: drafts for s, drafts in solutions.items() if drafts}, [note])
        )
    return suites


def without_solution(draft: Draft) -> Draft:
    """The draft for the suite itself."""
    out = draft.copy()
    out.pop("solution", None)
    return out


def solutions_of(drafts: Sequence[Draft]) -> list[Draft]:
    """A draft for each reference solution: the solution is the question, and there is no answer."""
    out: list[Draft] = [
        {"item": draft["item"], "question": text, "language": draft.get("language")}
        for draft in drafts
        for text in draft.get("solution") or []
        if text and text.strip()
    ]
    return with_unique_ids(out)


def options_read(draft: Draft) -> Draft:
    """The draft with the texts of its options as answers, where the question lists them and the answer
    is a letter; else a copy."""
    answers = draft.get("answers") or []
    question = draft.get("question") or ""
    letters = [LETTER.fullmatch(answer.strip()) for answer in answers]
    out = draft.copy()
    if not answers or not all(letters):
        return out
    found = list(OPTION.finditer(question))
    labels = [match[1] for match in found]
    if len(found) < 2 or labels != [chr(ord("A") + i) for i in range(len(found))]:
        return out
    correct = draft.get("correct") or [True] * len(answers)
    right = {m[1] for m, ok in zip(letters, correct, strict=True) if m is not None and ok}
    if not right <= set(labels):
        return out
    between = OPTION.sub("", question[found[0].start() : found[-1].end()])
    asked = f"{question[: found[0].start()].rstrip()}{question[found[-1].end() :].rstrip()}".strip()
    if between.strip() or not asked:
        return out  # an option of several lines, or nothing beside the options
    out["question"] = asked
    out["answers"] = [match[2] for match in found]
    out["correct"] = [label in right for label in labels]
    return out


def constant_answer(drafts: Iterable[Draft]) -> str | None:
    """The one answer that all items of a suite have, if that is so."""
    seen: set[tuple[str, ...]] = set()
    count = 0
    for draft in drafts:
        seen.add(tuple(draft.get("answers") or ()))
        count += 1
        if len(seen) > 1:
            return None
    if count < MIN_CONSTANT or not seen:
        return None
    answers = seen.pop()
    return answers[0] if len(set(answers)) == 1 else None


def shared_ends(questions: Sequence[str]) -> tuple[str, str]:
    """What every question of a suite begins and ends with, cut to whole lines or sentences."""
    distinct = {question for question in questions if question.strip()}
    if len(distinct) < MIN_SHARING:
        return "", ""
    some = sorted(distinct)
    opening = shared_start(some[0], some[-1])
    cuts = [match.end() for match in BOUNDARY.finditer(opening)]
    opening = opening[: cuts[-1]] if cuts else ""
    turned = sorted(question[len(opening) :][::-1] for question in distinct)
    ending = shared_start(turned[0], turned[-1])[::-1]
    cuts = [match.start() for match in re.finditer(r"\n|(?<=[.?!。？！])\s", ending)]
    ending = ending[cuts[0] :] if cuts else ""
    if len(ending.split()) == 0:
        ending = ""
    if any(len(opening) + len(ending) >= len(question.strip()) for question in distinct):
        return "", ""  # one of them is nothing else
    return opening, ending


def shared_start(a: str, b: str) -> str:
    """What both texts begin with."""
    size = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    return a[:size]


def without_ends(question: str | None, opening: str, ending: str) -> str | None:
    """The question without the text that all questions begin and end with."""
    if question is None or not question.strip():
        return question
    return question[len(opening) : len(question) - len(ending)].strip()
