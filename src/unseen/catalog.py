"""A catalog of benchmarks: what each is called, where its rows come from, how a row becomes an item.

In: catalog files (YAML), the built-in one among them. Out: entries, and for each row of an entry's
source one or more drafts of an item.

    benchmarks:
      arc_challenge:
        source: hf
        dataset: allenai/ai2_arc
        config: ARC-Challenge
        licence: CC-BY-SA-4.0
        language: en
        question: question
        answers: choices.text
        labels: choices.label
        correct: answerKey

Each field of a mapping is a JMESPath expression over the row (https://jmespath.org): a plain name for
most. `correct` is true or false for each answer, or the index (from 0), the letter, the label or the
text of the right one, or a list of these; without it every answer is right. `convert:
package.module:function` takes the place of all of it: a Python function from a row to a list of drafts.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypedDict

from unseen.errors import UnseenError


class Draft(TypedDict, total=False):
    """An item as a source tells it; `records.ITEM_FIELDS` says more. Missing fields are None or empty."""

    item: str  # id; without one, the row's number in its split
    question: str | None
    answers: list[str]
    correct: list[bool]
    passage: str | None
    language: str | None
    solution: list[str]  # reference solutions, for a derived suite NAME/solution


class Loaded(NamedTuple):
    """One split of one suite, as its source gives it."""

    suite: str
    split: str
    drafts: list[Draft]
    facts: dict[str, Any]  # where it came from: source, dataset, config, revision, licence, ...


class Unavailable(UnseenError):
    """A benchmark that was named and cannot be loaded: `message` names it, `hint` says what to do."""

    def __init__(self, suite: str, reason: str, hint: str) -> None:
        super().__init__(f"{suite}: {reason}", hint)
        self.suite = suite
        self.reason = reason

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.suite, self.reason, self.hint)
