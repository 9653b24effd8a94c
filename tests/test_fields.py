"""fields: letters, constant answers, templates, solutions."""

from __future__ import annotations

import string

from hypothesis import given
from hypothesis import strategies as st

from unseen import fields
from unseen.catalog import Draft


def questions(suite: fields.Suite, split: str = "test") -> list[str | None]:
    return [draft.get("question") for draft in suite.splits[split]]


def test_a_letter_becomes_the_text_of_its_option() -> None:
    asked = "Which gas do plants take in?\nA. oxygen\nB) carbon dioxide \n(C) helium\nD: argon"
    draft: Draft = {"item": "0", "question": asked, "answers": ["B"], "correct": [True]}
    (suite,) = fields.cleaned("s", {"test": [draft]})
    (read,) = suite.splits["test"]
    assert read["question"] == "Which gas do plants take in?"
    assert read["answers"] == ["oxygen", "carbon dioxide", "helium", "argon"]
    assert read["correct"] == [False, True, False, False]
    assert suite.notes == ["letters: the options of 1 items were read from their questions"]
    assert draft["answers"] == ["B"], "what came in was changed"


def test_letters_without_options_stay() -> None:
    for asked in ("Name the vitamin of oranges.", "A. one\nC. three", "A. only one option"):
        draft: Draft = {"item": "0", "question": asked, "answers": ["C"]}
        assert fields.options_read(draft) == draft
    outside: Draft = {"item": "0", "question": "x\nA. one\nB. two", "answers": ["E"]}
    assert fields.options_read(outside) == outside


def test_no_question_is_emptied_by_its_options() -> None:
    """Text behind the options stays; options of several lines, or alone, are not touched."""
    behind: Draft = {"item": "0", "question": "A. cat\nB. dog\nWhich of them barks?", "answers": ["B"]}
    assert fields.options_read(behind)["question"] == "Which of them barks?"
    assert fields.options_read(behind)["answers"] == ["cat", "dog"]
    for asked in ("A. cat\nB. dog", "Read this.\nA. the cat sat\non the mat\nB. the dog\nWell?"):
        draft: Draft = {"item": "0", "question": asked, "answers": ["B"]}
        assert fields.options_read(draft) == draft


def test_no_question_is_emptied_as_a_template() -> None:
    short = "Explain the theorem of Pythagoras in your own words, please."
    drafts: list[Draft] = [
        {"item": str(n), "question": short if n == 0 else f"{short} Use the numbers {n}."}
        for n in range(13)
    ]
    assert questions(fields.cleaned("s", {"test": drafts})[0])[0] == short


def test_a_constant_answer_is_left_out_and_said_so() -> None:
    drafts: list[Draft] = [
        {"item": str(i), "question": f"def f{i}(): ...", "answers": ["Success"], "correct": [True]}
        for i in range(3)
    ]
    (suite,) = fields.cleaned("humaneval", {"test": drafts})
    assert all(draft["answers"] == [] and draft["correct"] == [] for draft in suite.splits["test"])
    assert suite.notes == ["constant answer: every answer is 'Success'; indexed on the question alone"]


def test_answers_that_differ_once_stay() -> None:
    drafts: list[Draft] = [
        {"item": str(i), "question": f"q{i}", "answers": ["yes" if i else "no"]} for i in range(9)
    ]
    (suite,) = fields.cleaned("s", {"train": drafts[:1], "test": drafts[1:]})
    assert suite.splits["test"][0]["answers"] == ["yes"]
    assert suite.notes == []
    two: list[Draft] = [{"item": str(i), "question": "q", "answers": ["no", "yes"]} for i in range(9)]
    assert fields.constant_answer(two) is None, "options that are the same everywhere are no answer"


def test_what_all_questions_share_is_left_out() -> None:
    words = string.ascii_lowercase[:12]
    drafts: list[Draft] = [
        {"item": w, "question": f"Solve this. Think first.\nQuestion: Is {w} a letter?\nAnswer:"}
        for w in words
    ]
    (suite,) = fields.cleaned("s", {"test": drafts})
    assert questions(suite) == [f"Is {w} a letter?" for w in words]
    assert suite.notes == [
        "template: 'Solve this. Think first.\\nQuestion:' left out",
        "template: 'Answer:' left out",
    ]
    few = fields.cleaned("s", {"test": drafts[:9]})[0]
    assert questions(few)[0] == drafts[0]["question"], "nine questions may share it by chance"


def test_words_that_questions_begin_with_are_no_template() -> None:
    drafts: list[Draft] = [
        {"item": str(i), "question": f"What is the capital of country {i}?"} for i in range(20)
    ]
    (suite,) = fields.cleaned("s", {"test": drafts})
    assert questions(suite) == [draft["question"] for draft in drafts]


def test_solutions_become_a_suite_of_their_own() -> None:
    drafts: list[Draft] = [
        {
            "item": "a",
            "question": "add",
            "answers": ["1"],
            "solution": ["return x + y", "return y + x"],
        },
        {"item": "b", "question": "nothing", "answers": ["2"], "solution": [" "]},
    ]
    plain, solution = fields.cleaned("code", {"test": drafts, "train": []})
    assert [list(draft) for draft in plain.splits["test"]] == [["item", "question", "answers"]] * 2
    assert solution.name == "code/solution"
    assert plain.notes == [], "an item that loses its solution has not had its letters read"
    assert list(solution.splits) == ["test"]
    assert [(d["item"], d["question"]) for d in solution.splits["test"]] == [
        ("a", "return x + y"),
        ("a#2", "return y + x"),
    ]


@given(
    st.text("ab :.\n", max_size=8),
    st.text("ab :.\n?", max_size=8),
    st.lists(st.text("xyz ?", min_size=1, max_size=6), min_size=10, max_size=20, unique=True),
)
def test_no_question_loses_what_others_do_not_share(head: str, tail: str, cores: list[str]) -> None:
    asked = [f"{head}{core}{tail}" for core in cores]
    opening, ending = fields.shared_ends(asked)
    for text in asked:
        if text.strip():
            assert text.startswith(opening)
            assert text.endswith(ending)
            assert len(opening) + len(ending) <= len(text)
            assert (fields.without_ends(text, opening, ending) or "") in text
