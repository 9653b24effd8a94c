"""What a reference set holds, nested benchmarks, requirements, and what changed between two sets."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.table import Table

import samples
from unseen import census, index, records, tokens
from unseen.errors import BadInput, BadSetting

WORDS = ["amber", "birch", "cobalt", "dune", "ember", "fjord", "granite", "heather", "iris", "juniper"]


def item(suite: str, split: str, name: str, question: str | None, *answers: str, **more: Any) -> Any:
    fields = {
        "language": None,
        "answers": [*answers],
        "correct": [True] * len(answers),
        "passage": None,
    }
    return {"suite": suite, "split": split, "item": name, "question": question, **fields, **more}


def asked(number: int) -> str:
    """A question of its own, long enough to be told apart."""
    rng = np.random.default_rng(number)
    return f"Why do {' '.join(rng.choice(WORDS, 12))} weigh {number + 100} pounds in {number + 1500}?"


def census_of(tmp_path: Path, rows: list[dict[str, Any]]) -> census.Census:
    return census.take(samples.write_jsonl(tmp_path / "items.jsonl", rows))


def refs_folder(folder: Path, rows: list[dict[str, Any]], **header: Any) -> Path:
    """A folder as `unseen refs build` writes it."""
    suites = []
    for suite, split in dict.fromkeys((row["suite"], row["split"]) for row in rows):
        mine = [row for row in rows if (row["suite"], row["split"]) == (suite, split)]
        file = folder / "items" / suite / f"{split}.parquet"
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(mine, schema=records.item_schema()), file)
        facts, notes = {"source": "jsonl", "licence": "MIT"}, ["letters: 3 were read"]
        suites.append(
            {"suite": suite, "split": split, "file": f"items/{suite}/{split}.parquet",
             "items": len(mine), "facts": facts, "notes": notes}
        )  # fmt: skip
    folder.mkdir(exist_ok=True)
    body = {"format": 1, "suites": suites, "missing": [], **header}
    (folder / "refs.json").write_text(json.dumps(body))
    return folder


def shown(tables: list[Table], width: int = 100) -> str:
    console = Console(width=width, record=True, file=open(os.devnull, "w"), highlight=False)  # noqa: SIM115
    for table in tables:
        console.print(table)
    text = console.export_text()
    assert max(map(len, text.splitlines()), default=0) <= width
    return text


GATED = {"suite": "gpqa", "reason": "it is gated", "hint": "set HF_TOKEN"}


# ---- the census ----------------------------------------------------------------------------------


def test_counts_of_one_split(tmp_path: Path) -> None:
    rows = [
        item("a", "test", "1", asked(1), "one", "two three", correct=[False, True], language="de"),
        item("a", "test", "2", asked(1).upper(), "one", "one", "", correct=[False, False, False]),
        item("a", "test", "3", "Too short?", passage="A passage of six words only."),
        item("a", "test", "4", None),
        item("a", "test", "4", None),
        item("a", "train", "1", asked(1), "one"),
    ]
    test, train = census_of(tmp_path, rows).parts
    assert (test.suite, test.split, test.items, test.repeated, test.clashing) == ("a", "test", 4, 1, 0)
    assert (test.questions, test.duplicates) == (2, 1)
    assert (test.options, test.right, test.no_answers, test.none_right) == (5, 1, 2, 1)
    assert test.options_per_item == census.Spread(0, 0, 3)
    assert test.fields["question"].empty == 1
    assert test.fields["question"].words is not None
    assert test.fields["question"].words.min == 2
    assert test.fields["answers"] == census.Field(4, 1, 1, census.Spread(1, 1, 2))
    assert test.fields["passage"] == census.Field(1, 3, 0, census.Spread(6, 6, 6))
    assert test.languages == {"und": 3, "de": 1}
    assert (test.status["empty"], test.status["too short"], test.status["indexed"]) == (1, 1, 2)
    assert (train.items, train.duplicates) == (1, 0)


def test_statuses_are_those_of_the_index(tmp_path: Path) -> None:
    rows = [item("s", f"{n % 3}", str(n), asked(n)[: 5 + 9 * (n % 9)], "yes") for n in range(40)]
    found = {(p.suite, p.split): p.status for p in census_of(tmp_path, rows).parts}
    for row in index.CompiledIndex.build(rows, allow_empty=True).header["suites"]:
        assert found[row["suite"], row["split"]] == {name: row[name] for name in index.STATUSES}


def test_one_id_with_two_contents_is_counted_not_fatal(tmp_path: Path) -> None:
    rows = [item("a", "test", "1", asked(1)), item("a", "test", "1", asked(2))]
    found = census_of(tmp_path, rows)
    assert (found.parts[0].items, found.parts[0].clashing) == (2, 1)
    assert "no index can be built" in shown(census.tables_of_check(found), 200)


def test_letters_and_indexes_as_answers(tmp_path: Path) -> None:
    rows = [
        *[item("letters", "t", str(n), asked(n), "ABCD"[n % 4]) for n in range(6)],
        item("letters", "t", "x", asked(7), "(b)", "c."),
        item("letters", "t", "y", asked(8), "A", "plain text"),
        *[item("indexes", "t", str(n), asked(n), str(n % 4)) for n in range(10)],
        *[item("numbers", "t", str(n), asked(n), str(n * 3)) for n in range(10)],
    ]
    found = {p.suite: (p.letters, p.indexes) for p in census_of(tmp_path, rows).parts}
    assert found == {"letters": (7, 0), "indexes": (0, 10), "numbers": (0, 0)}


def test_constant_answers(tmp_path: Path) -> None:
    rows = [
        *[item("code", f"s{n % 2}", str(n), asked(n), "Success" + " " * n) for n in range(4)],
        item("code", "s0", "none", asked(9)),
        item("code", records.CANARY, "c", "a canary string of six words", "other"),
        *[item("choice", "t", str(n), asked(n), "yes", "no") for n in range(4)],
        item("single", "t", "0", asked(1), "yes", "yes"),
        item("nothing", "t", "0", asked(1)),
    ]
    found = census_of(tmp_path, rows)
    constant = {s.suite: s.constant for s in found.suites}
    assert constant == {"code": "Success", "choice": None, "single": None, "nothing": None}
    assert {s.suite: s.items for s in found.suites}["code"] == 5
    assert "'Success'" in shown(census.tables_of_check(found))


def test_the_template_of_a_suite(tmp_path: Path) -> None:
    before, after = (
        "Read the following problem with great care.",
        "Answer with one number only, please.",
    )
    rows = [item("t", "test", str(n), f"{before} {asked(n)} {after}") for n in range(20)]
    rows += [item("few", "test", str(n), f"{before} {asked(n + 50)}") for n in range(5)]
    by_name = {s.suite: s for s in census_of(tmp_path, rows).suites}
    assert by_name["few"].template == ()
    text = by_name["t"].template
    assert text[0].startswith("Read the following problem with great care")
    assert text[-1].endswith("Answer with one number only, please")
    assert 13 <= by_name["t"].template_words <= 16


def test_suites_that_share_questions(tmp_path: Path) -> None:
    rows = [item("math", "test", str(n), asked(n)) for n in range(10)]
    rows += [item("math500", "test", str(n), asked(n).upper()) for n in range(4)]
    rows += [item("other", "dev", str(n), asked(n)) for n in range(9, 12)]
    rows += [item("other", "test", "x", asked(11)), item("empty", "test", "x", None)]
    found = census_of(tmp_path, rows)
    assert found.nested == (
        census.Pair("math", "math500", 4, "math500", 1.0),
        census.Pair("math", "other", 1, "other", 1 / 3),
    )
    assert census.Pair("other/dev", "other/test", 1, "other/test", 1.0) in found.nested_splits
    text = shown(census.tables_of_check(found))
    assert "test, test: 4" in text
    assert "shared inside a suite" in text


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 8)), max_size=60))
def test_shared_counts_equal_a_brute_force_count(pairs: list[tuple[int, int]]) -> None:
    group = np.array([a for a, _ in pairs], np.int64)
    hashes = census.scramble(np.array([b for _, b in pairs], np.uint64))
    sets = [{b for a, b in pairs if a == g} for g in range(6)]
    names = [f"suite {g}" for g in range(6)]
    expected = {}
    for a, b in itertools.combinations(range(6), 2):
        if sets[a] & sets[b]:
            expected[names[a], names[b]] = (
                len(sets[a] & sets[b]),
                len(sets[a] & sets[b]) / min(len(sets[a]), len(sets[b])),
            )
    found = census.shared(group, hashes, names)
    assert {(p.a, p.b): (p.questions, p.share) for p in found} == expected
    assert [p.questions for p in found] == sorted((p.questions for p in found), reverse=True)
    for pair in found:
        sizes = {pair.a: len(sets[names.index(pair.a)]), pair.b: len(sets[names.index(pair.b)])}
        assert sizes[pair.smaller] == min(sizes.values())


def test_a_million_questions_in_the_same_suites_are_quick() -> None:
    """One question in 40 suites is 780 pairs; 25,000 such questions must not cost 20 million steps."""
    group, hashes = np.tile(np.arange(40), 25_000), np.repeat(np.arange(25_000, dtype=np.uint64), 40)
    started = time.perf_counter()
    found = census.shared(group, census.scramble(hashes), [str(n) for n in range(40)])
    assert len(found) == 780
    assert {p.questions for p in found} == {25_000}
    assert time.perf_counter() - started < 5


@given(st.lists(st.sampled_from(["", "a", "a b", "b  A", "日本", "?", "a b c"]), max_size=12))
def test_measures_do_not_depend_on_the_chunk(texts: list[str]) -> None:
    column = pa.chunked_array(
        [pa.array(texts[:5], pa.large_string()), pa.array(texts[5:], pa.large_string())]
    )
    whole = census.measure(column)
    assert whole.words.tolist() == [len(tokens.words(text)) for text in texts]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(census, "CHUNK", 2)
        parts = census.measure(column)
    assert all((a == b).all() for a, b in zip(whole, parts, strict=True))


def test_it_becomes_json(tmp_path: Path) -> None:
    found = census_of(tmp_path, samples.ITEMS)
    again = json.loads(json.dumps(dataclasses.asdict(found)))
    assert [p["suite"] for p in again["parts"]] == ["arithmetic", "history", "history"]
    assert again["parts"][0]["options_per_item"] == {"min": 1, "median": 1, "max": 1}


def test_the_order_of_the_items_does_not_matter(tmp_path: Path) -> None:
    rows = [item("s", "ab"[n % 2], str(n), asked(n % 7), "x" * (n % 3)) for n in range(20)]
    straight = census_of(tmp_path, rows)
    assert census_of(tmp_path, rows[::-1]) == straight


# ---- headers -------------------------------------------------------------------------------------


def test_missing_benchmarks_are_named(tmp_path: Path) -> None:
    folder = refs_folder(tmp_path / "refs", samples.ITEMS, missing=[GATED])
    (folder / "items" / "history" / "test.parquet").unlink()
    found = census.take(folder)
    assert [one["suite"] for one in found.missing] == ["gpqa", "history"]
    assert found.mismatched == ()
    text = shown(census.tables_of_check(found))
    assert "not audited" in text
    assert "gpqa" in text


def test_a_set_of_which_nothing_could_be_loaded(tmp_path: Path) -> None:
    found = census.take(refs_folder(tmp_path / "refs", [], missing=[GATED]))
    assert found.parts == found.suites == found.nested == ()
    assert found.missing == (GATED,)
    assert shown(census.tables_of_check(found))


def test_other_counts_than_the_header_says(tmp_path: Path) -> None:
    folder = refs_folder(tmp_path / "refs", samples.ITEMS)
    header = json.loads((folder / "refs.json").read_text())
    header["suites"][0]["items"] = 7
    (folder / "refs.json").write_text(json.dumps(header))
    (row,) = census.take(folder).mismatched
    assert row == {"suite": "arithmetic", "split": "test", "listed": 7, "found": 1}


def test_a_damaged_header_is_an_error(tmp_path: Path) -> None:
    folder = refs_folder(tmp_path / "refs", samples.ITEMS)
    (folder / "refs.json").write_text("{")
    with pytest.raises(BadInput, match=r"refs\.json cannot be read"):
        census.take(folder)


def test_several_sets_at_once(tmp_path: Path) -> None:
    folder = refs_folder(tmp_path / "refs", samples.ITEMS[:1], missing=[GATED])
    file = samples.write_jsonl(tmp_path / "more.jsonl", samples.ITEMS[1:])
    assert [p.items for p in census.take([folder, file]).parts] == [1, 1, 1]
    assert len(census.read_set([str(folder), str(file)]).missing) == 1


# ---- requirements --------------------------------------------------------------------------------

LINES = "# what we publish\n\narithmetic 1\nhistory/test  1 # one split\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("need.txt", LINES),
        ("need.yaml", "# what we publish\narithmetic: 1\nhistory/test: 1\n"),
        ("need.yml", "arithmetic: 1\nhistory:\n  test: 1\n"),
        ("need.json", '{\n\t"arithmetic": 1,\n\t"history": {"test": 1}\n}\n'),
    ],
)
def test_requirements_in_three_formats(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    found = census.read_requirements(tmp_path / name)
    assert found == [("arithmetic", 1), ("history/test", 1)]
    assert census.unmet(census_of(tmp_path, samples.ITEMS), found) == []


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.txt", "", "line 1: the file requires nothing"),
        ("a.txt", "# nothing\n", "line 1: the file requires nothing"),
        ("a.txt", "mmlu 3\ngsm8k\n", "line 2: it has no name and count"),
        ("a.txt", "mmlu three\n", "line 1: 'three' is no count"),
        ("a.txt", "mmlu -3\n", "line 1: '-3' is no count"),
        ("a.txt", "mmlu 0\n", "line 1: '0' is no count"),
        ("a.txt", "mmlu 1\nmmlu 2\n", "line 2: mmlu is named twice"),
        ("a.yaml", "", "line 1: the file requires nothing"),
        ("a.yaml", "{}", "line 1: the file requires nothing"),
        ("a.yaml", "- mmlu\n", "line 1: it is no mapping"),
        ("a.yaml", "mmlu: 1\ngsm8k: [1]\n", "line 2: it is no count"),
        ("a.yaml", "mmlu: 1\ngsm8k:\n  test: {a: 1}\n", "line 3: it is no count"),
        ("a.yaml", "mmlu: 1\ngsm8k:\n", "line 2: it has no name and count"),
        ("a.yaml", "a: 1\nb: 2\n  c: :", "line 3: it is not YAML"),
        ("a.json", '{"mmlu": 1,\n}', "line 2: it is not JSON"),
        ("a.json", '{"mmlu": 1,\n "x": "many"}', "line 2: 'many' is no count"),
        ("a.json", "[]", "line 1: it is no mapping"),
    ],
)
def test_bad_requirements_name_file_and_line(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(BadSetting) as caught:
        census.read_requirements(tmp_path / name)
    assert caught.value.message.startswith(f"{tmp_path / name}, {message}")
    assert caught.value.hint


def test_requirements_that_are_not_met(tmp_path: Path) -> None:
    rows = [*samples.ITEMS, item("history", records.CANARY, "c", "a canary of a few words")]
    rows += [item("arithmetic", "test", str(n), None) for n in range(8, 12)]
    rows += [item("code/solution", "test", "1", asked(1))]
    found = census.take(refs_folder(tmp_path / "refs", rows, missing=[GATED]))
    needed = [
        ("arithmetic", 2),  # empty ones do not count
        ("arithmetic/test", 1),
        ("history", 3),  # nor do canary strings
        ("history/validation", 1),
        ("historie", 1),
        ("gpqa", 10),
        ("gpqa/test", 10),
        ("code/solution", 1),
        ("code/solution/test", 2),
    ]
    failed = census.unmet(found, [census.Requirement(*one) for one in needed])
    assert [(one["name"], one["required"], one["found"]) for one in failed] == [
        ("arithmetic", 2, 1), ("history", 3, 2), ("historie", 1, 0), ("gpqa", 10, 0),
        ("gpqa/test", 10, 0), ("code/solution/test", 2, 1),
    ]  # fmt: skip
    assert failed[2]["reason"].startswith("not in the set; it has history")
    assert failed[3]["reason"] == failed[4]["reason"] == "it is gated"
    assert "historie" in shown(census.tables_of_unmet(failed))
    assert census.tables_of_unmet([]) == []


# ---- list and show -------------------------------------------------------------------------------


def test_list(tmp_path: Path) -> None:
    rows = census.list_suites(refs_folder(tmp_path / "refs", samples.ITEMS, missing=[GATED]))
    assert [row["suite"] for row in rows] == ["arithmetic", "gpqa", "history"]
    history = rows[2]
    assert history["splits"] == {"test": 1, "validation": 1}
    assert (history["items"], history["languages"], history["missing"]) == (2, ["en"], None)
    assert history["facts"]["test"] == {"source": "jsonl", "licence": "MIT"}
    assert history["notes"] == ["letters: 3 were read"]
    assert (rows[1]["items"], rows[1]["missing"]) == (0, "it is gated")
    assert "missing: it is gated" in shown(census.tables_of_list(rows))


def test_list_of_plain_files(tmp_path: Path) -> None:
    rows = census.list_suites(str(samples.write_jsonl(tmp_path / "a.jsonl", samples.ITEMS)))
    assert [(row["suite"], row["facts"], row["notes"]) for row in rows] == [
        ("arithmetic", {}, []),
        ("history", {}, []),
    ]


def test_show(tmp_path: Path) -> None:
    rows = [
        item("s", split, str(n), asked(n), "a", "b", correct=[False, True])
        for split in "xy"
        for n in range(5)
    ]
    found = census.show_suite(refs_folder(tmp_path / "refs", rows), "s", 2)
    assert [(one["split"], one["item"]) for one in found["shown"]] == [
        ("x", "0"), ("x", "1"), ("y", "0"), ("y", "1"),
    ]  # fmt: skip
    assert found["shown"][0] == rows[0]
    text = shown(census.tables_of_show(found))
    assert "licence: MIT" in text
    assert "wrong" in text
    assert " ".join(asked(0).split()[:5]) in text


def test_texts_that_look_like_markup_are_shown_as_they_are(tmp_path: Path) -> None:
    text = "[INST] Is [/b] a tag, or :smile: a face? [/INST]"
    rows = [item("[s]", "[/t]", "[/i]", text, "[/red]"), item("[s]", "[/t]", "j", asked(1), "[/red]")]
    file = samples.write_jsonl(tmp_path / "a.jsonl", rows)
    found = shown(census.tables_of_show(census.show_suite(file, "[s]")))
    assert text in found
    assert "[s]/[/t]/[/i]" in found
    assert "'[/red]'" in shown(census.tables_of_check(census.take(file)))


def test_show_of_what_is_not_there(tmp_path: Path) -> None:
    folder = refs_folder(tmp_path / "refs", samples.ITEMS, missing=[GATED])
    with pytest.raises(BadSetting, match="no suite 'arithmetics'\nhint: did you mean arithmetic"):
        census.show_suite(folder, "arithmetics")
    with pytest.raises(BadSetting, match="no suite 'gpqa': it is gated"):
        census.show_suite(folder, "gpqa")


# ---- diff ----------------------------------------------------------------------------------------


def changed(row: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {**row, **fields}


def test_diff_names_what_changed(tmp_path: Path) -> None:
    old = [
        *[item("same", "t", str(n), asked(n), "x") for n in range(3)],
        *[item("moved", "t", str(n), asked(n), "x", "y", correct=[True, False]) for n in range(5)],
        item("gone", "t", "1", asked(1)),
    ]
    new = [
        *old[2::-1],
        changed(old[3], question=asked(99)),
        changed(old[4], answers=["x", "z"]),
        changed(old[5], correct=[False, True]),
        old[6],
        item("moved", "t", "new", asked(7)),
        item("moved", "u", "new", asked(8)),
        item("fresh", "t", "1", asked(9)),
    ]
    files = [samples.write_jsonl(tmp_path / f"{n}.jsonl", rows) for n, rows in enumerate([old, new])]
    found = census.diff(*files)
    assert (found.added, found.dropped, found.changed) == (("fresh",), ("gone",), ("moved",))
    assert not found.same
    by_split = {(c.suite, c.split): c for c in found.splits}
    assert by_split["moved", "t"] == census.Change("moved", "t", 1, 1, 3, 2, 1)
    assert by_split["moved", "u"] == census.Change("moved", "u", 1, 0, 0, 0, 0)
    assert by_split["same", "t"].unchanged == 3
    text = shown(census.tables_of_diff(found))
    assert "dropped" in text
    assert "gone" in text
    assert "same" not in text


def test_diff_of_a_folder_an_index_and_files(tmp_path: Path) -> None:
    file = samples.write_jsonl(tmp_path / "a.jsonl", samples.ITEMS)
    folder = refs_folder(tmp_path / "refs", samples.ITEMS)
    index.CompiledIndex.build(samples.ITEMS).save(tmp_path / "index")
    for old, new in itertools.permutations([file, folder, tmp_path / "index"], 2):
        assert census.diff(old, new).same, (old, new)


def test_diff_names_what_the_new_set_lacks(tmp_path: Path) -> None:
    old = refs_folder(tmp_path / "old", samples.ITEMS)
    new = refs_folder(tmp_path / "new", samples.ITEMS, missing=[GATED])
    found = census.diff(old, new)
    assert found.missing == (GATED,)
    assert not found.same
    assert "gpqa: it is gated" in shown(census.tables_of_diff(found))


def test_diff_refuses_two_items_of_one_name(tmp_path: Path) -> None:
    rows = [item("a", "t", "1", asked(1)), item("a", "t", "1", asked(2))]
    file = samples.write_jsonl(tmp_path / "a.jsonl", rows)
    with pytest.raises(BadInput, match="two different items are called a/t/1"):
        census.diff(file, file)


ROWS = st.lists(
    st.builds(
        item,
        st.sampled_from("ab"),
        st.sampled_from(["t", "u"]),
        st.sampled_from("123"),
        st.sampled_from(["q", "r", "", None]),
        st.sampled_from(["x", "y", ""]),
    ),
    max_size=12,
    unique_by=lambda row: (row["suite"], row["split"], row["item"]),
)


@given(ROWS, ROWS)
def test_diff_is_antisymmetric_and_counts_right(old: list[Any], new: list[Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(census, "read_set", lambda rows: census.Source(index.table_of(rows), [], []))
        assert census.diff(old, old).same
        there, back = census.diff(old, new), census.diff(new, old)
    assert (there.added, there.dropped, there.changed) == (back.dropped, back.added, back.changed)
    keyed = [{(r["suite"], r["split"], r["item"]): r for r in rows} for rows in (old, new)]
    for a, b in zip(there.splits, back.splits, strict=True):
        assert (a.added, a.removed, a.changed, a.answers_only, a.unchanged) == (
            b.removed, b.added, b.changed, b.answers_only, b.unchanged,
        )  # fmt: skip
        mine = [{k: r for k, r in rows.items() if k[:2] == (a.suite, a.split)} for rows in keyed]
        both = mine[0].keys() & mine[1].keys()
        assert a.added == len(mine[1].keys() - both)
        assert a.removed == len(mine[0].keys() - both)
        assert a.unchanged == sum(mine[0][k] == mine[1][k] for k in both)
        assert a.changed == len(both) - a.unchanged
        assert a.answers_only == sum(
            mine[0][k]["question"] == mine[1][k]["question"] and mine[0][k] != mine[1][k] for k in both
        )


# ---- real data -----------------------------------------------------------------------------------


@pytest.mark.data
def test_nested_benchmarks_of_the_real_set() -> None:
    found = census.take(Path(os.environ["UNSEEN_DATA"]) / "items.jsonl.gz")
    assert sum(p.items for p in found.parts) == 242_514
    shares = {(p.a, p.b): p for p in found.nested}
    splits = {(p.a, p.b): p for p in found.nested_splits}
    assert splits["gsm8k/test", "mgsm/en"].share == 1
    assert shares["math", "math500"].share == 1
    assert shares["humaneval", "humaneval_x"].share == 1
    assert shares["mmlu", "mmlu_redux"].share > 0.99
    assert splits["agieval/aqua-rat", "aqua/test"].share == 1
    assert shown(census.tables_of_check(found))
