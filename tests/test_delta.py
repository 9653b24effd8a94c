"""A delta: an index of what is new, which finds of it what the index of the whole set finds."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import samples
from test_naive import ITEM_KINDS, Maker, cases
from unseen.errors import BadSetting
from unseen.scan import Index


def name_of(row: dict[str, Any]) -> tuple[str, str, str]:
    return row["suite"], row["split"], row["item"]


def same_as_whole(items: list[dict[str, Any]], old: list[dict[str, Any]], texts: list[str]) -> None:
    """The delta's rows are those of the index of all items, without the items of `old`."""
    base = Index.build(old, allow_empty=True)
    whole = Index.build(items, allow_empty=True)
    delta = Index.build(items, base=base, allow_empty=True)
    new = [item for item in items if item not in old]
    assert len(delta.items) == len({name_of(item) for item in new})
    names = {name_of(item) for item in new}
    expected = [row for row in whole.scan(texts).to_pylist() if name_of(row) in names]
    assert delta.scan(texts).to_pylist() == expected
    assert delta.header["delta"]["new"] == len(delta.items)
    assert delta.header["delta"]["unchanged"] == len(whole.items) - len(delta.items)
    assert delta.header["delta"]["base"] == base.content_hash


@given(cases(), st.randoms(use_true_random=False))
def test_a_delta_finds_what_the_whole_index_finds(
    case: tuple[list[dict[str, Any]], list[str]], rng: random.Random
) -> None:
    items, texts = case
    old = [item for item in items if rng.random() < 0.5]
    if len(old) == len(items):
        old = old[1:]
    same_as_whole(items, old, texts)


@given(cases(), st.randoms(use_true_random=False))
def test_changed_items_are_new(
    case: tuple[list[dict[str, Any]], list[str]], rng: random.Random
) -> None:
    items, texts = case
    changed = rng.randrange(len(items))
    old = [{**item, "answers": ["x"], "correct": [True]} if k == changed else item
           for k, item in enumerate(items)]  # fmt: skip
    same_as_whole(items, old, texts)


def test_common_ngrams_and_templates_are_those_of_the_whole() -> None:
    rng = random.Random(3)
    maker = Maker(3, 300)
    for kind in rng.choices(ITEM_KINDS, k=200):
        maker.add(kind)
    template = "which of the following statements is the right one about"
    items = [
        {**item, "question": f"{template} {item['question']}"} if k % 2 else item
        for k, item in enumerate(maker.items)
    ]
    texts = [f"so {item['question']} and {' '.join(item['answers'] or [])}" for item in items]
    same_as_whole(items, items[:190], texts)
    same_as_whole(items, items[:1], texts)


def test_the_header_names_what_changed() -> None:
    robes, locks = samples.ITEMS[0], samples.ITEMS[2]

    def item(suite: str, split: str, name: str, **more: Any) -> dict[str, Any]:
        return {**robes, "suite": suite, "split": split, "item": name, **more}

    same = [item("same", "test", "1"), item("same", "test", "2")]
    old = [
        *same, item("edited", "test", "1"), item("grown", "test", "1"), item("shrunk", "test", "1"),
        item("shrunk", "test", "2"), item("gone", "test", "1"), item("half", "dev", "1"),
        item("half", "test", "1"),
    ]  # fmt: skip
    now = [
        *same, item("edited", "test", "1", passage="Robes."), item("grown", "test", "1"),
        item("grown", "train", "1"), item("shrunk", "test", "1"), item("half", "test", "1"),
        item("fresh", "test", "1", question=locks["question"]),
    ]  # fmt: skip
    base = Index.build(old)
    delta = Index.build(now, base=base)
    assert delta.header["delta"] == {
        "base": base.content_hash,
        "new": 3,
        "changed": ["edited", "grown", "shrunk"],
        "dropped": ["gone/test", "half/dev"],
        "unchanged": 5,
    }
    assert [name_of(row) for row in delta.items.to_pylist()] == [
        ("edited", "test", "1"), ("fresh", "test", "1"), ("grown", "train", "1"),
    ]  # fmt: skip
    assert "delta" not in base.header


def test_a_delta_without_anything_new_is_refused() -> None:
    base = Index.build(samples.ITEMS)
    for items in (samples.ITEMS, samples.ITEMS[::-1], samples.ITEMS[:1]):
        with pytest.raises(BadSetting, match="nothing new"):
            Index.build(items, base=base)


def test_a_delta_is_saved_and_opened(tmp_path: Any) -> None:
    Index.build(samples.ITEMS[:1]).save(tmp_path / "BASE")
    base = Index.open(tmp_path / "BASE")
    Index.build(samples.ITEMS, base=base).save(tmp_path / "DELTA")
    delta = Index.open(tmp_path / "DELTA")
    texts = [samples.leaked(item["question"]) for item in samples.ITEMS]
    found = {row["row"] for row in delta.scan(texts).to_pylist()}
    assert found == {1, 2}
    assert [row["items"] for row in delta.header["suites"]] == [1] * 2


def test_a_suite_counts_as_matched_by_its_old_items() -> None:
    """A new item that cannot be matched is no reason to refuse a suite whose others can."""
    empty = {**samples.ITEMS[0], "item": "empty", "question": ""}
    base = Index.build(samples.ITEMS)
    delta = Index.build([*samples.ITEMS, empty], base=base)
    assert [row["empty"] for row in delta.header["suites"]] == [1]
    assert len(delta.scan([samples.ROBES])) == 0


def test_a_part_is_no_base() -> None:
    both = [
        {"suite": "s", "split": "t", "item": str(n), "question": f"alpha beta gamma delta {word}"}
        for n, word in ((1, "one"), (2, "two"))
    ]
    old = Index.build(both[:1], allow_empty=True)
    part = Index.build(both, base=old, allow_empty=True)
    with pytest.raises(BadSetting, match="only what was new"):
        Index.build(both, base=part, allow_empty=True)
