"""Reference files to items: two schemas, several formats, and bad rows that are named."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

import samples
from unseen import records
from unseen.errors import BadInput, BadSetting, UnseenError
from unseen.refs import read_items


def read(*paths: Path) -> list[dict[str, Any]]:
    table = read_items([str(path) for path in paths])
    assert table.schema == records.item_schema()
    return table.to_pylist()


@pytest.fixture
def items(tmp_path: Path) -> Path:
    return samples.write_jsonl(tmp_path / "items.jsonl", samples.ITEMS)


# ---- our schema ----------------------------------------------------------------------------------


def test_items_come_as_they_were_written(items: Path) -> None:
    assert read(items) == samples.ITEMS


def test_only_four_fields_are_required(tmp_path: Path) -> None:
    row = {"suite": "s", "split": "test", "item": 3, "question": "What?"}
    (item,) = read(samples.write_jsonl(tmp_path / "a.jsonl", [row]))
    empty = {"language": None, "answers": [], "correct": [], "passage": None}
    assert item == {"suite": "s", "split": "test", "item": "3", "question": "What?", **empty}


def test_one_answer_may_be_a_plain_string(tmp_path: Path) -> None:
    row = {"suite": "s", "split": "test", "item": "1", "question": "Q", "answers": "forty", "other": 1}
    (item,) = read(samples.write_jsonl(tmp_path / "a.jsonl", [row]))
    assert (item["answers"], item["correct"]) == (["forty"], [True])


def test_every_format_gives_the_same_items(items: Path, tmp_path: Path) -> None:
    raw = items.read_bytes()
    (tmp_path / "gz.jsonl.gz").write_bytes(gzip.compress(raw))
    (tmp_path / "zst.jsonl.zst").write_bytes(zstandard.ZstdCompressor().compress(raw))
    pq.write_table(pa.Table.from_pylist(samples.ITEMS), tmp_path / "a.parquet")
    (tmp_path / "crlf.jsonl").write_bytes(raw.replace(b"\n", b"\r\n"))
    for name in ("gz.jsonl.gz", "zst.jsonl.zst", "a.parquet", "crlf.jsonl"):
        assert read(tmp_path / name) == samples.ITEMS, name


def test_line_separators_inside_a_text_do_not_cut_the_row(tmp_path: Path) -> None:
    question = "one\u2028two\x85three\x0bfour\x0cfive"
    row = {"suite": "s", "split": "test", "item": "1", "question": question}
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(row, ensure_ascii=False) + "\n")
    assert read(path)[0]["question"] == question


def test_folders_are_read_whole_in_order_of_name(tmp_path: Path) -> None:
    for name, item in zip(("b", "a/c", "a/b"), samples.ITEMS, strict=True):
        samples.write_jsonl(tmp_path / "refs" / f"{name}.jsonl", [item])
    found = [item["item"] for item in read(tmp_path / "refs")]
    assert found == [samples.ITEMS[k]["item"] for k in (2, 1, 0)]


def test_reference_files_are_not_changed(items: Path) -> None:
    before = (items.read_bytes(), items.stat().st_mtime_ns)
    read(items)
    assert (items.read_bytes(), items.stat().st_mtime_ns) == before


# ---- decon's schema ------------------------------------------------------------------------------


def option(index: int, answer: str | None, right: bool | None = None, **more: Any) -> dict[str, Any]:
    row = {"doc_id": 1, "eval_key": "mmlu", "eval_instance_index": index, "split": "test"}
    row |= {"question": f"Question {index}?", "answer": answer, "is_correct": right, "passage": ""}
    return {**row, **more}


def test_options_of_an_instance_become_one_item(tmp_path: Path) -> None:
    rows = [
        option(0, "red", False),
        option(0, "blue", True),
        option(1, "ten"),
        option(0, "green", False),
    ]
    first, second = read(samples.write_jsonl(tmp_path / "a.jsonl", rows))
    assert first == {
        "suite": "mmlu", "split": "test", "item": "0", "language": None, "question": "Question 0?",
        "answers": ["red", "blue", "green"], "correct": [False, True, False], "passage": None,
    }  # fmt: skip
    assert (second["answers"], second["correct"]) == (["ten"], [True])


def test_splits_and_configs_keep_instances_apart(tmp_path: Path) -> None:
    rows = [
        option(0, "a"),
        option(0, "b", split="dev"),
        option(0, "c", config="law"),
        option(0, "d", config="default", eval_key="arc"),
    ]
    found = read(samples.write_jsonl(tmp_path / "a.jsonl", rows))
    assert [(f["suite"], f["split"], f["item"], f["answers"]) for f in found] == [
        ("mmlu", "test", "0", ["a"]),
        ("mmlu", "dev", "0", ["b"]),
        ("mmlu", "test", "law/0", ["c"]),
        ("arc", "test", "0", ["d"]),
    ]


def test_an_instance_without_answer_has_none(tmp_path: Path) -> None:
    rows = [option(0, None), option(1, ""), option(2, "x", passage="Once upon a time")]
    found = read(samples.write_jsonl(tmp_path / "a.jsonl", rows))
    assert [(f["answers"], f["passage"]) for f in found] == [
        ([], None),
        ([], None),
        (["x"], "Once upon a time"),
    ]


# ---- what is refused -----------------------------------------------------------------------------


def refused(path: Path) -> UnseenError:
    with pytest.raises(UnseenError) as caught:
        read(path)
    assert caught.value.hint
    return caught.value


GOOD = {"suite": "s", "split": "test", "item": "1", "question": "Q"}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{not json", "not JSON"),
        ("[1, 2]", "not a JSON object"),
        ('"text"', "not a JSON object"),
        ({"split": None}, "no split"),
        ({"item": None}, "no item"),
        ({"suite": None}, "no suite"),
        ({"question": 5}, "must be text"),
        ({"answers": [1]}, "must be text"),
        ({"passage": ["a"]}, "must be text"),
        ({"answers": ["a"], "correct": []}, "1 answers and 0 marks"),
        ({"answers": 5}, "answers"),
        ({"answers": ["a", "b"], "correct": 1}, "correct"),
        ({"language": 5}, "language"),
    ],
)
def test_a_bad_row_is_named(line: str | dict[str, Any], reason: str, tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    line = line if isinstance(line, str) else json.dumps({**GOOD, **line})
    path.write_text(f"{json.dumps(GOOD)}\n\n{line}\n")
    error = refused(path)
    assert isinstance(error, BadInput)
    assert f"{path}, row 1:" in error.message
    assert reason in error.message


def test_decon_rows_are_checked(tmp_path: Path) -> None:
    rows = [option(0, "a"), {"eval_key": "mmlu", "eval_instance_index": 1, "split": "test"}]
    error = refused(samples.write_jsonl(tmp_path / "a.jsonl", rows))
    assert "row 1: it has no question" in error.message
    rows = [option(0, "a"), option(0, "b", question="Another?")]
    error = refused(samples.write_jsonl(tmp_path / "b.jsonl", rows))
    assert "row 1: instance 0 of mmlu has two questions" in error.message
    error = refused(samples.write_jsonl(tmp_path / "c.jsonl", [option(0, "a"), GOOD]))
    assert "row 1:" in error.message


def test_files_that_are_cut_short_are_refused(items: Path, tmp_path: Path) -> None:
    whole = gzip.compress(items.read_bytes())
    (tmp_path / "cut.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    assert "cut short" in refused(tmp_path / "cut.jsonl.gz").message
    pq.write_table(pa.Table.from_pylist(samples.ITEMS), tmp_path / "a.parquet")
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "a.parquet").read_bytes()[:-20])
    assert "cut short" in refused(tmp_path / "cut.parquet").message


def test_invalid_utf8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    good = json.dumps(GOOD).encode()
    path.write_bytes(good + b"\n" + good.replace(b"Q", b"\xff") + b"\n")
    assert f"{path}, row 1" in refused(path).message


def test_a_mistyped_path_is_refused(tmp_path: Path) -> None:
    assert "does not exist" in refused(tmp_path / "none.jsonl").message
    (tmp_path / "notes.txt").write_text("no items")
    with pytest.raises(BadSetting, match=r"notes\.txt"):
        read(tmp_path / "notes.txt")


def test_parquet_rows_are_numbered_too(tmp_path: Path) -> None:
    rows = [samples.ITEMS[0], {**samples.ITEMS[1], "suite": None}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    assert "a.parquet, row 1: it has no suite" in refused(tmp_path / "a.parquet").message


def test_a_null_question_is_an_empty_one(tmp_path: Path) -> None:
    path = samples.write_jsonl(tmp_path / "a.jsonl", [{**GOOD, "question": None}])
    assert read(path)[0]["question"] is None
