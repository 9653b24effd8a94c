"""Evidence and policies: where the bars lie, which rule decides, what a policy file may say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pydantic
import pytest

from unseen import records, verdict
from unseen.errors import BadSetting
from unseen.records import EVIDENCE
from unseen.verdict import Policy, Rule


class Columns(dict[str, Any]):
    """Columns of one match; those that are not given are 0."""

    def __missing__(self, name: str) -> Any:
        return np.zeros(1)


def columns(**given: Any) -> Columns:
    """One match that shows a whole, telling question and no answer, with some columns replaced."""
    one = {
        "coverage": 1.0,
        "question_overlap": 1.0,
        "information": 100.0,
        "score": 0.75,
        "evidence": "question",
        "suite": "gsm8k",
        "split": "test",
    }
    return Columns({name: np.array([value]) for name, value in {**one, **given}.items()})


def needed(**given: Any) -> float:
    return float(verdict.needed_information(columns(**given))[0])


def evidence(**given: Any) -> str:
    return str(verdict.evidence_of(columns(**given))[0])


def decided(policy: Policy, **given: Any) -> str:
    return str(verdict.verdict_of(columns(**given), policy)[0])


# ---- evidence ------------------------------------------------------------------------------------


EDITED = {"coverage": 0.8, "question_overlap": 0.3}
ANSWERED = {"answer_overlap": 1.0, "answer_information": 10.0}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, "question"),
        (ANSWERED, "question+answer"),
        (ANSWERED | {"answer_overlap": verdict.MIN_ANSWER_OVERLAP - 0.01}, "question"),
        (EDITED, "near"),
        (EDITED | ANSWERED, "question+answer"),
        (EDITED | ANSWERED | {"coverage": verdict.MIN_NEAR_COVERAGE - 0.01}, "partial"),
        ({"numbers_changed": 1}, "template"),
        (ANSWERED | {"numbers_changed": 1}, "template"),
    ],
)
def test_evidence(given: dict[str, Any], expected: str) -> None:
    assert evidence(**given) == expected


@pytest.mark.parametrize(("given", "kind"), [({}, "question"), (EDITED, "near")])
def test_a_match_must_tell_enough(given: dict[str, Any], kind: str) -> None:
    """The bar is on question and answer together."""
    bar = needed(**given)
    assert evidence(**given, information=bar + 0.1) == kind
    assert evidence(**given, information=bar - 0.1) == "partial"
    answered = {**given, "answer_overlap": 1.0, "answer_information": 5.0}
    assert evidence(**answered, information=bar - 4.9) == "question+answer"
    assert evidence(**answered, information=bar - 5.1) == "partial"


def test_all_evidence_is_named_in_the_records() -> None:
    shown = {"question", "question+answer", "near", "template", "solution", "canary", "partial"}
    assert shown == set(EVIDENCE)


def test_the_less_stands_there_the_more_it_must_tell() -> None:
    steps = np.linspace(0, 1, 101)
    bars = [needed(coverage=c, question_overlap=0.0) for c in steps]
    assert bars == sorted(bars, reverse=True)
    assert bars[0] > bars[80] > bars[-1]


def test_an_edit_asks_for_more_than_a_whole_copy() -> None:
    assert needed(**EDITED) > needed()


def test_more_information_never_weakens_the_evidence() -> None:
    order = ["partial", "near", "question", "question+answer"]
    for coverage in (0.65, 0.8, 0.97, 1.0):
        found = [order.index(evidence(coverage=coverage, information=i)) for i in range(0, 120, 3)]
        assert found == sorted(found)
        assert found[0] < found[-1]


# ---- policies ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("question+answer", "remove"), ("question", "remove"), ("near", "remove"), ("template", "keep"),
     ("partial", "keep")],
)  # fmt: skip
def test_the_default_goes_by_evidence(kind: str, expected: str) -> None:
    assert decided(verdict.PRESETS["default"], evidence=kind, score=0.1) == expected


def test_the_published_preset_goes_by_score_alone() -> None:
    published = verdict.PRESETS["published"]
    for kind in EVIDENCE:
        indexed = kind not in ("solution", "canary")  # the published rule has neither
        assert decided(published, evidence=kind, score=0.8) == ("remove" if indexed else "keep")
        assert decided(published, evidence=kind, score=0.79) == "keep"


def test_the_first_rule_that_fits_decides() -> None:
    policy = Policy(
        rules=[
            Rule(verdict="keep", split="train"),
            Rule(verdict="review", evidence=["near"]),
            Rule(verdict="remove"),
        ]
    )
    assert decided(policy, split="train") == "keep"
    assert decided(policy, split="train", evidence="near") == "keep"
    assert decided(policy, evidence="near") == "review"
    assert decided(policy) == "remove"


def test_without_a_fitting_rule_a_match_is_kept() -> None:
    assert decided(Policy(rules=[])) == "keep"
    assert decided(Policy(rules=[Rule(verdict="remove", suite="mmlu")])) == "keep"


def test_conditions_of_a_rule_must_all_hold() -> None:
    rule = Rule(verdict="remove", suite="gsm*", split="t??t", min_score=0.7, min_coverage=0.9)
    policy = Policy(rules=[rule])
    assert decided(policy) == "remove"
    for given in ({"suite": "mmlu"}, {"split": "train"}, {"score": 0.69}, {"coverage": 0.89}):
        assert decided(policy, **given) == "keep", given


def test_bounds_are_inclusive() -> None:
    assert decided(Policy(rules=[Rule(verdict="remove", min_score=0.75)])) == "remove"
    at_float32 = float(np.float32(0.7))  # matches store 32-bit numbers
    assert decided(Policy(rules=[Rule(verdict="remove", min_score=0.7)]), score=at_float32) == "remove"


def test_a_document_follows_its_gravest_match() -> None:
    rows = np.array([3, 3, 5, 8, 8])
    verdicts = np.array(["keep", "remove", "review", "review", "keep"])
    assert verdict.worst(rows, verdicts, "remove").tolist() == [3]
    assert verdict.worst(rows, verdicts, "review").tolist() == [5, 8]
    assert verdict.worst(rows, verdicts, "keep").tolist() == []


def test_no_matches_no_verdicts() -> None:
    none = Columns({name: np.zeros(0) for name in records.MATCH_FIELDS})
    assert len(verdict.verdict_of(none, verdict.PRESETS["default"])) == 0
    assert len(verdict.evidence_of(none)) == 0


# ---- policy files --------------------------------------------------------------------------------


def test_a_policy_file_is_yaml_or_json(tmp_path: Path) -> None:
    yaml = tmp_path / "policy.yaml"
    yaml.write_text(
        "name: mine\nrules:\n  - {verdict: review, evidence: [near]}\n  - verdict: remove\n"
    )
    read = verdict.policy_named("default", str(yaml))
    assert read.name == "mine"
    assert [rule.verdict for rule in read.rules] == ["review", "remove"]
    written = tmp_path / "policy.json"
    written.write_text(json.dumps(read.model_dump()))
    assert verdict.policy_named("default", str(written)) == read


@pytest.mark.parametrize(
    "text",
    [
        "rules: [{verdict: delete}]",
        "rules: [{verdict: remove, suit: gsm8k}]",
        "rules: [{verdict: remove, min_score: 80}]",
        "rules: [{evidence: [near]}]",
        "rules: [{verdict: remove, evidence: [nearly]}]",
        "- verdict: remove",
        "rules: [",
        "",
    ],
)
def test_a_mistake_in_a_policy_file_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(text)
    with pytest.raises(BadSetting) as caught:
        verdict.policy_named("default", str(path))
    assert str(path) in caught.value.message
    assert "remove" in caught.value.hint


def test_a_missing_policy_or_preset_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="cannot be read"):
        verdict.policy_named("default", str(tmp_path / "none.yaml"))
    with pytest.raises(BadSetting, match="no preset 'strict'") as caught:
        verdict.policy_named("strict")
    assert "published" in caught.value.hint


def test_policies_do_not_change() -> None:
    with pytest.raises(pydantic.ValidationError):
        verdict.PRESETS["default"].name = "other"  # type: ignore[misc]


# ---- solutions and canaries ----------------------------------------------------------------------


def test_a_solution_is_evidence_of_its_own_and_for_review() -> None:
    assert evidence(suite="humaneval/solution") == "solution"
    assert evidence(suite="humaneval/solution", coverage=0.9, question_overlap=0.7) == "solution"
    assert evidence(suite="humaneval/solution", information=1.0) == "partial"
    assert evidence(suite="solution") == "question"
    found = columns(suite="humaneval/solution", evidence="solution")
    assert verdict.verdict_of(found, verdict.PRESETS["default"]).tolist() == ["review"]
    high = columns(suite="humaneval/solution", evidence="solution", score=1.0)
    assert verdict.verdict_of(high, verdict.PRESETS["published"]).tolist() == ["keep"]


def test_a_canary_counts_whole_or_not_at_all() -> None:
    assert evidence(split="canary", information=1.0) == "canary"
    assert evidence(split="canary", coverage=0.8) == "partial"
    found = columns(split="canary", evidence="canary")
    assert verdict.verdict_of(found, verdict.PRESETS["default"]).tolist() == ["remove"]
