"""The published score, worked out by hand from the published rule.

The rule counts BPE tokens; a length in tokens of ours is multiplied by BPE_PER_TOKEN (1.3) first. Long
items (100 tokens and more) need 0.8; for those the score is the plain weighted sum.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unseen import score

LONG = 100


def published(
    oq: float, oa: float = 0, op: float = 0, *, q: int = LONG, grams: int = LONG, a: int = 0, p: int = 0
) -> float:
    """The score of one match."""
    lengths = score.Lengths(*(np.array([n]) for n in (q, grams, a, p)))
    return float(score.published(*(np.array([x], float) for x in (oq, oa, op)), lengths)[0])


def test_the_factor_that_these_numbers_assume() -> None:
    assert score.BPE_PER_TOKEN == 1.3
    assert score.FLAGGED == 0.8


@pytest.mark.parametrize(
    ("oq", "oa", "op", "lengths", "expected"),
    [
        # question alone: Oq
        (0.79, 0, 0, {}, 0.79),
        (0.80, 0, 0, {}, 0.80),
        # question and answer: 0.75 Oq + 0.25 Oa; a question without its answer cannot pass 0.75
        (1.0, 0, 0, {"a": LONG}, 0.75),
        (0.9, 0.6, 0, {"a": LONG}, 0.675 + 0.15),
        # question and passage: 0.85 and 0.15
        (1.0, 0, 0, {"p": LONG}, 0.85),
        (0.9, 0, 0.5, {"p": LONG}, 0.765 + 0.075),
        # all three: 0.7, 0.2, 0.1
        (1.0, 1.0, 0, {"a": LONG, "p": LONG}, 0.9),
        (1.0, 0, 1.0, {"a": LONG, "p": LONG}, 0.8),
        (1.0, 0, 0.5, {"a": LONG, "p": LONG}, 0.75),
        # an answer of 2 distinct tokens: k = 0.75; its loss of 0.05 goes to the passage
        (1.0, 1.0, 0, {"a": 2, "p": LONG}, 0.7 + 0.15),
        (1.0, 0, 1.0, {"a": 2, "p": LONG}, 0.7 + 0.15),
        # 10 five-grams are 13 of theirs: c = 0.5 + 0.5 * 13 / 20 = 0.825
        (1.0, 0, 0, {"grams": 10, "a": LONG}, 0.75 * 0.825),
        (1.0, 0, 0, {"grams": 10, "p": LONG}, 0.85 * 0.825),
        (1.0, 1.0, 0, {"grams": 10, "a": LONG, "p": LONG}, 0.7 * 0.825 + 0.2 + 0.35 * 0.175),
        (1.0, 0, 1.0, {"grams": 10, "a": LONG, "p": LONG}, 0.7 * 0.825 + 0.1 + 0.35 * 0.175),
        # a question alone does not lose weight for being short, there is nothing to give it to
        (0.9, 0, 0, {"grams": 10}, 0.9),
    ],
)
def test_weights(oq: float, oa: float, op: float, lengths: dict[str, int], expected: float) -> None:
    assert published(oq, oa, op, **lengths) == pytest.approx(expected, abs=1e-6)


def test_what_an_item_needs_by_its_length() -> None:
    """1.0 up to 20, 0.8 from 50, linear between."""
    lengths = [0, 20, 35, 50, 500]
    assert score.needed(lengths, 0.8) == pytest.approx([1.0, 1.0, 0.9, 0.8, 0.8])
    assert score.needed([35], 5 / 7) == pytest.approx([1 - 0.5 * 2 / 7])


def test_a_short_item_needs_more() -> None:
    """Question 20 and answer 5 tokens: 32.5 of theirs, which need 1 - 0.2 * 12.5 / 30 = 0.91667."""
    needed = 1 - 0.2 * 12.5 / 30
    just_under = published(0.9 / 0.75 - 1 / 3, 1.0, q=20, a=5)  # 0.75 Oq + 0.25 = 0.9
    assert just_under < 0.8
    whole_question = published(1.0, 0.68, q=20, a=5)  # 0.75 + 0.17 = 0.92
    assert whole_question == pytest.approx(0.92 * 0.8 / needed)
    assert whole_question > 0.8


def test_an_item_under_20_tokens_is_never_flagged() -> None:
    """15 of ours are 19.5 of theirs, 16 are 20.8."""
    assert published(1.0, 1.0, q=14, grams=11, a=1) < 0.8
    assert published(1.0, 1.0, q=15, grams=12, a=1) == 1.0


def test_a_question_with_a_low_overlap_is_never_flagged() -> None:
    """30 tokens are 39 of theirs: Oq must be 1 - 2/7 * 19/30 = 0.819, whatever the answer adds."""
    assert published(0.80, 1.0, q=30, grams=26, a=LONG) == pytest.approx(0.799)
    assert published(0.83, 1.0, q=30, grams=26, a=LONG) == pytest.approx(0.75 * 0.83 + 0.25)
    assert published(0.70, 1.0, a=LONG) < 0.8


@given(
    overlaps=st.tuples(*[st.floats(0, 1)] * 3),
    lengths=st.tuples(*[st.integers(0, 300)] * 4),
    more=st.integers(0, 2),
)
def test_more_overlap_never_lowers_the_score(
    overlaps: tuple[float, float, float], lengths: tuple[int, int, int, int], more: int
) -> None:
    q, grams, a, p = lengths
    raised = list(overlaps)
    raised[more] = 1.0
    low = published(*overlaps, q=q, grams=grams, a=a, p=p)
    high = published(*raised, q=q, grams=grams, a=a, p=p)
    assert 0 <= low <= high + 1e-9
    assert high <= 1
