"""The published score of a match, from its overlaps and lengths.

The rule of AI2's `decon`, as used for OLMo 3. `decon` counts BPE tokens, we count words: BPE_PER_TOKEN
turns our lengths into its, where its rule has a length. `bench.peers` reports how far the two agree.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

BPE_PER_TOKEN = 1.3  # cl100k tokens per word of ordinary English
FLAGGED = 0.8

Floats = npt.NDArray[np.float64]


class Lengths(NamedTuple):
    """Lengths of the matched items, one entry a match."""

    question: npt.NDArray[np.int64]  # tokens
    question_grams: npt.NDArray[np.int64]  # distinct 4-grams
    answer: npt.NDArray[np.int64]  # distinct tokens, 0 = the item has no answer
    passage: npt.NDArray[np.int64]  # tokens, 0 = no passage


def published(oq: Floats, oa: Floats, op: Floats, lengths: Lengths) -> Floats:
    """Score in 0..1, flagged from 0.8.

    With Nq distinct n-grams, c = 0.5 + 0.5 Nq / 20 below 20, else 1 (what a short question loses goes
    to its answer and passage):

        question                     Oq
        question, answer             0.75c Oq + (1 - 0.75c) Oa
        question, passage            0.85c Oq + (1 - 0.85c) Op
        question, answer, passage    0.7c Oq + (0.2 + 0.35(1-c)) k Oa + the rest Op,
                                     k = 0.5 + 0.5 Na / 4 for Na < 4 distinct answer tokens, else 1

    An item of L tokens needs 1.0 up to 20 and 0.8 from 50, linearly between: a lower score is scaled
    by 0.8 / needed. An item under 20 tokens is never flagged, nor is one whose question overlap is
    under the same line drawn from 1 to 5/7, whatever its answer. Our n-grams are of 4 words where
    decon's are of 5 BPE tokens: as many characters.
    """
    grams = lengths.question_grams * BPE_PER_TOKEN
    c = np.where(grams < 20, 0.5 + 0.5 * grams / 20, 1.0)
    has_answer, has_passage = lengths.answer > 0, lengths.passage > 0
    k = np.where(lengths.answer < 4, 0.5 + 0.5 * lengths.answer / 4, 1.0)
    wa = (0.2 + 0.35 * (1 - c)) * k
    both = 0.7 * c * oq + wa * oa + (1 - 0.7 * c - wa) * op
    answer = 0.75 * c * oq + (1 - 0.75 * c) * oa
    passage = 0.85 * c * oq + (1 - 0.85 * c) * op
    score = np.where(
        has_answer, np.where(has_passage, both, answer), np.where(has_passage, passage, oq)
    ).clip(0, 1)
    full = score > 1 - 1e-6
    length = (lengths.question + lengths.answer + lengths.passage) * BPE_PER_TOKEN
    score = np.where(full, 1.0, score * FLAGGED / needed(length, FLAGGED))
    score = np.where(length >= 20, score, np.minimum(score, FLAGGED - 1e-3))
    question_bar = needed(lengths.question * BPE_PER_TOKEN, 5 / 7)
    return np.where(oq >= question_bar - 1e-6, score, np.minimum(score, FLAGGED - 1e-3))


def needed(length: npt.ArrayLike, bar: float) -> Floats:
    """1.0 up to 20 BPE tokens, `bar` from 50, linear between."""
    share = np.clip((np.asarray(length, np.float64) - 20) / 30, 0, 1)
    return 1 - (1 - bar) * share
