"""The index: what it counts, what it refuses, and that its bytes depend on the items alone."""

from __future__ import annotations

import json
import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import samples
from unseen import index as index_module
from unseen.errors import BadIndex, BadInput, BadSetting
from unseen.index import STATUSES
from unseen.scan import Index

WORDS = "amber basin cedar delta ember fjord gravel harbor island jasper kettle marble".split()  # noqa: SIM905


def item(name: Any = "1", **more: Any) -> dict[str, Any]:
    """An item whose question tells enough to be found."""
    return {**samples.ITEMS[0], "suite": "s", "item": str(name), **more}


def many_items(count: int) -> list[dict[str, Any]]:
    """Items of three suites, with templates, shared questions, and answers of all lengths."""
    rng = random.Random(8)
    made: list[dict[str, Any]] = []
    for k in range(count):
        question = " ".join(rng.choices(WORDS, k=rng.choice((0, 4, 9, 14, 30))))
        if k % 3 == 0:
            question = f"Which of the following is right about {question}"
        if k % 9 == 4:
            question = made[k // 2]["question"]
        answers = [" ".join(rng.choices(WORDS, k=rng.randrange(6))) for _ in range(rng.randrange(5))]
        more = {"language": rng.choice((None, "de")), "correct": [True] * len(answers)}
        passage = " ".join(rng.choices(WORDS, k=30)) if k % 7 == 0 else None
        made.append(
            item(k, suite=f"s{k % 3}", question=question, answers=answers, passage=passage, **more)
        )
    return made


def counts_of(items: list[dict[str, Any]], **options: Any) -> dict[str, Any]:
    (row,) = Index.build(items, **options).header["suites"]
    return dict(row)


def folder_bytes(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    Index.build(samples.ITEMS).save(tmp_path / "INDEX")
    return tmp_path / "INDEX"


# ---- counts --------------------------------------------------------------------------------------


def test_every_item_is_counted_once() -> None:
    items = [
        item(1),
        item(2),  # the same question: another item, one question
        item(3, question="Is it so or is it not?", answers=["no"]),
        item(4, question="Why do the locks leak?", answers=[samples.LOCKS]),
        item(5, question="Why so?", answers=[], correct=[]),
        item(6, question="", answers=["yes"]),
        item(7, question="?! ...", answers=["yes"]),
    ]
    row = counts_of(items)
    assert row["items"] == 7
    assert sum(row[status] for status in STATUSES) == 7
    assert row["indexed"] == 2
    assert row["with answer"] == 1
    assert row["not checkable"] == 1
    assert row["too short"] == 1
    assert row["empty"] == 2
    assert row["questions"] == 4


def test_suites_and_splits_are_counted_apart() -> None:
    header = Index.build(samples.ITEMS).header
    assert [(row["suite"], row["split"], row["items"]) for row in header["suites"]] == [
        ("arithmetic", "test", 1),
        ("history", "test", 1),
        ("history", "validation", 1),
    ]
    assert header["counts"]["items"] == 3
    assert header["counts"]["questions"] == 3


def test_an_exact_repeat_is_counted_and_dropped() -> None:
    row = counts_of([item(1), item(1), item(2), item(1)])
    assert (row["items"], row["duplicates"], row["questions"]) == (2, 2, 1)


def test_two_items_of_one_name_are_refused() -> None:
    with pytest.raises(BadInput, match="two different items are called s/test/1"):
        Index.build([item(1), item(1, answers=["16 robes"])])


def test_a_question_of_two_suites_is_found_for_both() -> None:
    index = Index.build([item(1), item(1, suite="t")])
    found = index.scan([samples.leaked(samples.ROBES)])
    assert sorted(found["suite"].to_pylist()) == ["s", "t"]


# ---- a suite with nothing to match ---------------------------------------------------------------


@pytest.mark.parametrize("question", ["", "!!!", "What is it?", "the of and in to"])
def test_a_suite_with_nothing_to_match_is_refused(question: str) -> None:
    items = [item(1), item(1, suite="hollow", question=question, answers=["a"])]
    with pytest.raises(BadInput, match="hollow") as caught:
        Index.build(items)
    assert "--allow-empty" in caught.value.hint
    assert len(Index.build(items, allow_empty=True).items) == 2


def test_one_good_split_is_enough() -> None:
    Index.build([item(1), item(1, split="dev", question="", answers=[])])


def test_no_items_at_all() -> None:
    with pytest.raises(BadInput, match="there are no items"):
        Index.build([])
    empty = Index.build([], allow_empty=True)
    assert len(empty.scan([samples.leaked(samples.ROBES)])) == 0


# ---- the same items, the same bytes --------------------------------------------------------------


def test_the_order_of_the_items_does_not_matter(tmp_path: Path) -> None:
    rng = random.Random(5)
    made = [(" ".join(rng.choices(WORDS, k=14)), rng.choice(WORDS)) for _ in range(60)]
    items = samples.ITEMS + [
        item(k, suite=f"s{k % 3}", question=question, answers=[answer])
        for k, (question, answer) in enumerate(made)
    ]
    for name in ("a", "b"):
        rng.shuffle(items)
        Index.build(items).save(tmp_path / name)
    assert folder_bytes(tmp_path / "a") == folder_bytes(tmp_path / "b")


def test_another_item_changes_the_content_hash() -> None:
    one = Index.build(samples.ITEMS)
    assert one.content_hash == Index.build(samples.ITEMS[::-1]).content_hash
    for change in ({"answers": ["16 robes"]}, {"question": samples.ROBES + " Please."}, {"item": "8"}):
        other = Index.build([{**samples.ITEMS[0], **change}, *samples.ITEMS[1:]])
        assert other.content_hash != one.content_hash


def test_the_size_of_the_pieces_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    items = many_items(300)
    whole = Index.build(items)
    for name, size in (("PIECE_TOKENS", 7), ("PIECE_BYTES", 11), ("GROUP_GRAMS", 5)):
        monkeypatch.setattr(index_module, name, size)
        assert Index.build(items).content_hash == whole.content_hash


def test_common_ngrams_are_seeds_where_a_question_has_no_rarer_ones() -> None:
    questions = [f"which of these four things is the number {k}" for k in range(300)]
    items = [item(k, question=question) for k, question in enumerate(questions)]
    arrays = Index.build(items, allow_empty=True).arrays
    assert int(arrays.questions.seeds.min()) >= index_module.MIN_SEEDS
    assert int(np.diff(arrays.grams.ptr).max()) > index_module.MAX_POSTINGS
    seeds = np.bincount(arrays.grams.question, minlength=len(arrays.questions.seeds))
    assert seeds.tolist() == arrays.questions.seeds.tolist()
    assert len(np.unique(arrays.grams.key)) == len(arrays.grams.key)
    assert (np.diff(arrays.grams.key) > 0).all()


def test_null_and_lacking_marks_are_wrong_answers() -> None:
    given = [["a", "b"], None, [], ["c", "d", "e"]]
    marks = [[None, True], [True], None, [True]]
    made = [item(k, answers=a, correct=c) for k, (a, c) in enumerate(zip(given, marks, strict=True))]
    answers = Index.build(made).arrays.answers
    assert answers.of_item.tolist() == [0, 2, 2, 2, 5]
    assert answers.correct.tolist() == [0, 1, 1, 0, 0]


def test_nulls_that_hide_text_are_empty() -> None:
    table = index_module.table_of([item(1), item(2, question="Another robe takes 7 bolts of silk.")])
    text = pa.array(["some passage", "a hidden one"], pa.large_string())
    hidden = pa.Array.from_buffers(pa.large_string(), 2, [pa.py_buffer(b"\x01"), *text.buffers()[1:]])
    shown = pa.array(["some passage", None], pa.large_string())
    place = table.schema.get_field_index("passage")
    built = [Index.build(table.set_column(place, "passage", c)) for c in (hidden, shown)]
    assert built[0].content_hash == built[1].content_hash


def test_missing_benchmarks_are_in_the_header() -> None:
    missing = [{"suite": "gpqa", "reason": "it is gated", "hint": "set HF_TOKEN"}]
    assert Index.build(samples.ITEMS, missing=missing).header["missing"] == missing
    assert Index.build(samples.ITEMS).header["missing"] == []


def test_an_opened_index_finds_what_the_built_one_finds(saved: Path) -> None:
    texts = [samples.leaked(samples.ROBES, "15 robes"), samples.ORDINARY[0], None, samples.LOCKS]
    opened, built = Index.open(saved), Index.build(samples.ITEMS)
    assert opened.scan(texts).equals(built.scan(texts))
    assert opened.content_hash == built.content_hash
    assert opened.header == built.header


def test_an_open_index_is_read_only_and_mapped(saved: Path) -> None:
    for array in (a for part in Index.open(saved).arrays for a in part):
        assert not array.flags.writeable
        if len(array):
            base: Any = array
            while base is not None and not isinstance(base, np.memmap):
                base = base.base
            assert base is not None


def test_an_index_travels_to_a_worker_as_its_path(saved: Path) -> None:
    sent = pickle.dumps(Index.open(saved))
    assert len(sent) < 1000
    assert pickle.loads(sent).content_hash == Index.build(samples.ITEMS).content_hash
    in_memory = pickle.loads(pickle.dumps(Index.build(samples.ITEMS)))
    assert len(in_memory.scan([samples.LOCKS])) == 1


# ---- what is refused -----------------------------------------------------------------------------


def refused(folder: Path) -> BadIndex:
    with pytest.raises(BadIndex) as caught:
        Index.open(folder)
    assert "unseen index" in caught.value.hint
    assert str(folder) in caught.value.message
    return caught.value


def change_header(folder: Path, **fields: Any) -> None:
    header = json.loads((folder / "header.json").read_text())
    (folder / "header.json").write_text(json.dumps({**header, **fields}))


def test_another_tokenizer_is_refused(saved: Path) -> None:
    change_header(saved, tokenizer="0-0000")
    assert "tokenizer 0-0000" in refused(saved).message


def test_another_format_is_refused(saved: Path) -> None:
    change_header(saved, format=99)
    assert "format 99" in refused(saved).message


def test_a_damaged_index_is_refused(saved: Path) -> None:
    (saved / "grams.key.npy").write_bytes((saved / "grams.key.npy").read_bytes()[:-8])
    assert "grams.key.npy" in refused(saved).message
    (saved / "grams.key.npy").unlink()
    assert "grams.key.npy" in refused(saved).message


def test_an_index_without_its_items_is_refused(saved: Path) -> None:
    (saved / "items.arrow").unlink()
    refused(saved)


def test_what_is_no_index_is_refused(tmp_path: Path) -> None:
    refused(tmp_path / "none")
    (tmp_path / "header.json").write_text("{")
    refused(tmp_path)


def test_an_index_is_not_overwritten_by_accident(saved: Path) -> None:
    before = folder_bytes(saved)
    other = Index.build(samples.ITEMS[:1])
    with pytest.raises(BadSetting, match="already there") as caught:
        other.save(saved)
    assert "--overwrite" in caught.value.hint
    assert folder_bytes(saved) == before
    other.save(saved, overwrite=True)
    assert Index.open(saved).content_hash == other.content_hash
    assert [path.name for path in saved.parent.iterdir()] == ["INDEX"]


def test_overwrite_replaces_only_an_index(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(BadSetting):
        Index.build(samples.ITEMS).save(tmp_path, overwrite=True)
    assert (tmp_path / "thesis.txt").exists()


# ---- names of items ------------------------------------------------------------------------------


def test_items_are_found_by_name(saved: Path) -> None:
    index = Index.open(saved)
    for wanted in samples.ITEMS:
        row = index.find_item(f"{wanted['suite']}/{wanted['split']}/{wanted['item']}")
        assert index.items["question"][row].as_py() == wanted["question"]


def test_an_unknown_item_is_answered_with_names(saved: Path) -> None:
    with pytest.raises(BadSetting, match="no item is called 'history/test/comet'") as caught:
        Index.open(saved).find_item("history/test/comet")
    assert "history/validation/comet/1" in caught.value.hint


def test_a_canary_is_always_checkable() -> None:
    """Its words may be common, or short: it counts whole or not at all."""
    guid = "ab12-cd34-ef56-0a1b-2c3d"
    items = [
        {"suite": "s", "split": split, "item": "1", "question": guid} for split in ("canary", "test")
    ]
    header = Index.build(items, allow_empty=True).header
    assert [row["indexed"] for row in header["suites"]] == [1, 0]
