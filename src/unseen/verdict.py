"""Evidence and verdicts: the only place with thresholds.

In: what a match measures (coverage, information, overlaps, numbers, score). Out: its evidence, and with
a policy its verdict. Matches are recorded far below these bars, so `apply` can decide again.
"""

from __future__ import annotations

import fnmatch
import pathlib
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pydantic

from unseen.errors import BadSetting
from unseen.records import CANARY, EVIDENCE, SOLUTION, VERDICTS, Evidence

# Nats that a match must tell to be evidence; the curve behind these is in docs/design/003.
MIN_COPY_INFORMATION = 27.0  # when the question stands there whole, or much of it word for word
MIN_EDITED_INFORMATION = 36.0  # when it is edited throughout, and more the less of it is there:
EDITED_SLOPE = 25.0  # nats for each unit of coverage under WHOLE_COVERAGE
WHOLE_COVERAGE = 0.97
COPIED_OVERLAP = 0.6  # question overlap (4-grams) from which on it is a copy, perhaps cut
MIN_NEAR_COVERAGE = 0.65
MIN_ANSWER_OVERLAP = 0.5
MAX_CHANGED_NUMBERS = 0.15  # share of the question's numbers; with more it is another item
FLAGGED = 0.8  # published score

Columns = Mapping[str, npt.NDArray[Any]]


class Rule(pydantic.BaseModel):
    """One line of a policy: matches that fit all given conditions get the verdict."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)

    verdict: Literal["keep", "review", "remove"]
    suite: str = pydantic.Field("*", description="suite name, * and ? allowed")
    split: str = pydantic.Field("*", description="split name, * and ? allowed")
    evidence: tuple[Evidence, ...] = pydantic.Field(EVIDENCE, description="classes it applies to")
    min_score: float = pydantic.Field(0.0, ge=0, le=1, description="published score, from here on")
    min_coverage: float = pydantic.Field(0.0, ge=0, le=1, description="coverage, from here on")


class Policy(pydantic.BaseModel):
    """What to do with which match: the first rule that fits, else keep."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)

    name: str = "custom"
    rules: list[Rule]


PRESETS = {
    "default": Policy(
        name="default",
        rules=[
            Rule(verdict="remove", evidence=("question+answer", "question", "near", "canary")),
            Rule(verdict="review", evidence=("solution",)),
        ],
    ),
    "published": Policy(  # which indexes no solutions, and knows no canaries
        name="published",
        rules=[
            Rule(
                verdict="remove",
                evidence=("question+answer", "question", "near", "template", "partial"),
                min_score=FLAGGED,
            )
        ],
    ),
}


def policy_named(preset: str, file: str | None = None) -> Policy:
    """A preset, or the policy in a YAML or JSON file. Raises BadSetting."""
    if file is None:
        if preset not in PRESETS:
            raise BadSetting(f"there is no preset {preset!r}", f"presets: {', '.join(PRESETS)}")
        return PRESETS[preset]
    import yaml

    try:
        return Policy.model_validate(yaml.safe_load(pathlib.Path(file).read_text()))
    except OSError as error:
        raise BadSetting(
            f"the policy {file} cannot be read: {error.strerror}", "check the path"
        ) from error
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "it"
        raise BadSetting(f"the policy {file}: {place}: {first['msg']}", POLICY_HINT) from error
    except yaml.YAMLError as error:
        raise BadSetting(f"the policy {file} is no YAML: {error}", POLICY_HINT) from error


POLICY_HINT = (
    "a policy is `rules:`, a list of {suite, split, evidence, min_score, min_coverage, verdict}; "
    f"evidence is some of {', '.join(EVIDENCE)}; verdict one of {', '.join(VERDICTS)}"
)


def evidence_of(m: Columns) -> npt.NDArray[np.str_]:
    """Evidence class of each match, from columns named as in `records.MATCH_FIELDS`.

    template: some numbers of the question are replaced by others. question+answer: the question stands
    there and its answer follows. question: it stands there whole. near: an edited or cut copy. Each
    of the last three must tell enough to be itself (`needed_information`), and is a solution where the
    suite's questions are solutions. canary: a canary string, whole. partial: anything less.
    """
    canary = np.asarray(m["split"]) == CANARY
    solution = ~canary & matches_pattern(m["suite"], f"*{SOLUTION}")
    close = m["coverage"] >= MIN_NEAR_COVERAGE
    whole = m["coverage"] >= WHOLE_COVERAGE
    needed = needed_information(m)
    told = m["information"] - np.where(copied(m), 0, m["cut_off"])
    answer = np.where(m["answer_overlap"] >= MIN_ANSWER_OVERLAP, m["answer_information"], -np.inf)
    return np.select(
        [
            canary & whole,
            canary,
            close & (m["numbers_changed"] > MAX_CHANGED_NUMBERS * m["numbers"]),
            solution & close & (told >= needed),
            close & (told + answer >= needed),
            whole & (told >= needed),
            close & (told >= needed),
        ],
        ["canary", "partial", "template", "solution", "question+answer", "question", "near"],
        "partial",
    )


def copied(m: Columns) -> npt.NDArray[np.bool_]:
    """Whether the question stands there whole, or much of it word for word.

    What is missing at the ends of such a match was cut off; elsewhere it speaks against a match.
    """
    much = (m["question_overlap"] >= COPIED_OVERLAP) & (m["coverage"] >= MIN_NEAR_COVERAGE)
    return much | (m["coverage"] >= WHOLE_COVERAGE)


def needed_information(m: Columns) -> npt.NDArray[np.float64]:
    """Nats that each match must tell, question (and answer) together."""
    missing = np.maximum(WHOLE_COVERAGE - np.asarray(m["coverage"], np.float64), 0)
    edited = MIN_EDITED_INFORMATION + EDITED_SLOPE * missing
    return np.where(copied(m), MIN_COPY_INFORMATION, edited)


def verdict_of(m: Columns, policy: Policy) -> npt.NDArray[np.str_]:
    """Verdict of each match: of the first rule of the policy that fits."""
    n = len(m["score"])
    out = np.full(n, "keep", dtype="<U6")
    open_ = np.ones(n, bool)
    for rule in policy.rules:
        fits = open_ & np.isin(m["evidence"], rule.evidence)
        fits &= (m["score"] >= rule.min_score - 1e-6) & (m["coverage"] >= rule.min_coverage - 1e-6)
        for field, pattern in (("suite", rule.suite), ("split", rule.split)):
            if pattern != "*":
                fits &= matches_pattern(m[field], pattern)
        out[fits] = rule.verdict
        open_ &= ~fits
    return out


def matches_pattern(values: npt.NDArray[Any], pattern: str) -> npt.NDArray[np.bool_]:
    names, inverse = np.unique(values.astype(str), return_inverse=True)
    return np.array([fnmatch.fnmatchcase(n, pattern) for n in names], bool)[inverse]


def worst(
    rows: npt.NDArray[np.int64], verdicts: npt.NDArray[np.str_], verdict: str
) -> npt.NDArray[np.int64]:
    """Documents (row numbers, ascending, once) whose gravest verdict is `verdict`."""
    level = np.array([VERDICTS.index(v) for v in verdicts.tolist()], np.int64)
    documents, inverse = np.unique(rows, return_inverse=True)
    top = np.zeros(len(documents), np.int64)
    np.maximum.at(top, inverse, level)
    return documents[top == VERDICTS.index(verdict)]
