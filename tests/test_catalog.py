"""The catalog: entries, expressions, how a row becomes items; every built-in entry on made-up rows."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from unseen import catalog
from unseen.catalog import Entry, Unavailable, drafts_of
from unseen.errors import BadInput, BadSetting

ROWS: dict[str, Any] = yaml.safe_load(
    Path(__file__).with_name("catalog_rows.yaml").read_text(encoding="utf-8")
)
BUILT_IN = catalog.built_in()


def entry(**fields: Any) -> Entry:
    return Entry.model_validate({"source": "jsonl", "files": {"test": "x.jsonl"}, **fields})


def drafts(rows: list[dict[str, Any]], **fields: Any) -> list[catalog.Draft]:
    return drafts_of(entry(**fields), "made", rows)


# The built-in catalog


def test_it_is_large_and_each_entry_has_rows() -> None:
    assert len(BUILT_IN) >= 110
    assert set(BUILT_IN) == set(ROWS)


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_built_in_entry_maps_its_rows(name: str) -> None:
    case = ROWS[name] if "like" not in ROWS[name] else ROWS[ROWS[name]["like"]]
    one = next(iter(catalog.suites_of(name, BUILT_IN[name]).values()))
    made = catalog.with_unique_ids(drafts_of(one, name, case["rows"]))
    assert len(made) == len(case["items"])
    for draft, wanted in zip(made, case["items"], strict=True):
        assert draft["question"] == wanted["q"]
        assert draft["answers"] == wanted["a"]
        right = wanted.get("right", range(len(wanted["a"])))
        assert [place for place, mark in enumerate(draft["correct"]) if mark] == list(right)
        assert draft["passage"] == wanted.get("passage")
        assert draft["solution"] == wanted.get("solution", [])
        if "id" in wanted:
            assert draft["item"] == wanted["id"]
        if "language" in wanted and "like" not in ROWS[name]:
            assert draft["language"] == wanted["language"]


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_built_in_entry_says_what_it_is(name: str) -> None:
    one = BUILT_IN[name]
    assert one.language or one.language_field or all(one.configs.values())
    assert one.dataset is None or one.dataset.count("/") == 1
    wanted = catalog.fields_of(one)
    row = (ROWS[name] if "like" not in ROWS[name] else ROWS[ROWS[name]["like"]])["rows"][0]
    assert wanted is None or one.each or wanted <= set(row) | set(one.each or ())


def test_german_and_code_suites() -> None:
    german = [
        suite
        for name, one in BUILT_IN.items()
        for suite, narrow in catalog.suites_of(name, one).items()
        if narrow.language == "de"
    ]
    assert len(german) > 30
    assert {"humaneval", "mbpp", "apps"} <= {name for name, one in BUILT_IN.items() if one.solution}
    assert "mgsm/de" in german


# Entries and catalog files


def write(folder: Path, text: str, name: str = "catalog.yaml") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_catalog_file(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """
benchmarks:
  gsm8k:
  mine:
    source: jsonl
    files: {test: data/a.jsonl, dev: [/abs/b.jsonl, "s3://bucket/c.jsonl"]}
    question: q
    language: no
  theirs: {like: mine, question: [ ], note: x}
""".replace("question: [ ]", "question: other"),
    )
    entries = catalog.read_catalog([path])
    assert entries["gsm8k"] == BUILT_IN["gsm8k"]
    assert entries["mine"].files == {
        "test": str(tmp_path / "data/a.jsonl"),
        "dev": ("/abs/b.jsonl", "s3://bucket/c.jsonl"),
    }
    assert entries["mine"].language == "no"  # Norwegian, not false
    assert entries["theirs"].question == "other"
    assert entries["theirs"].files == entries["mine"].files


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("benchmarks: {a: {source: jsonl, files: {t: x}}}", "a: the entry: it needs `question`"),
        ("benchmarks: {a: {source: ftp}}", "a: source:"),
        ("benchmarks: {a: {source: jsonl, question: q}}", "source jsonl needs `files`"),
        ("benchmarks: {a: {source: hf, question: q}}", "source hf needs `dataset`"),
        (
            "benchmarks: {a: {source: hf, dataset: d, question: 'q['}}",
            "a: question: 'q[' is no JMESPath",
        ),
        ("benchmarks: {a: {source: hf, dataset: d, question: q, colour: red}}", "a: colour:"),
        ("benchmarks: {a: {source: hf, dataset: d, question: q, correct: c}}", "need `answers`"),
        ("benchmarks: {a: {source: hf, dataset: d, question: q, convert: 'm:f'}}", "takes the place"),
        ("benchmarks: {a: {source: hf, dataset: d, convert: m.f}}", "package.module:function"),
        ("benchmarks: {nowhere: }", "there is no benchmark nowhere"),
        ("benchmarks: {a: {like: nowhere}}", "there is no benchmark nowhere"),
        ("benchmarks: {a: {like: gsm8k}, a: {like: mmlu}}", "a is there twice"),
        ("benchmarks: {a: 3}", "a: an entry is a name with fields"),
        ("benchmarks: [", "is not YAML"),
        ("other: 1", "is no catalog"),
    ],
)
def test_a_wrong_catalog_names_file_benchmark_and_field(tmp_path: Path, text: str, says: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(BadSetting) as found:
        catalog.read_catalog([path])
    assert path in found.value.message
    assert says in found.value.message
    assert found.value.hint


def test_two_catalogs_with_one_name(tmp_path: Path) -> None:
    paths = [write(tmp_path, "benchmarks: {gsm8k: }", name) for name in ("a.yaml", "b.yaml")]
    with pytest.raises(BadSetting, match="gsm8k is in another catalog"):
        catalog.read_catalog(paths)
    with pytest.raises(BadSetting, match="cannot read"):
        catalog.read_catalog([str(tmp_path / "none.yaml")])


def test_configs_are_suites() -> None:
    one = Entry(source="hf", dataset="a/b", configs={"x": "de", "y": None}, question="q", language="fr")
    suites = catalog.suites_of("m", one)
    assert [(name, e.config, e.language) for name, e in suites.items()] == [
        ("m/x", "x", "de"),
        ("m/y", "y", "fr"),
    ]
    assert catalog.suites_of("m/x", suites["m/x"]) == {"m/x": suites["m/x"]}


def test_unavailable_travels_between_processes() -> None:
    error = Unavailable("s", "why", "do")
    again = pickle.loads(pickle.dumps(error))
    assert (again.suite, again.reason, again.hint, str(again)) == ("s", "why", "do", "s: why\nhint: do")


# Rows to drafts

OPTIONS = ["red", "green", "blue"]


@pytest.mark.parametrize(
    ("correct", "right"),
    [
        (1, [1]),
        (1.0, [1]),
        ("B", [1]),
        ("b", [1]),
        ("green", [1]),
        (" green\n", [1]),
        ([False, True, True], [1, 2]),
        ([0, 2], [0, 2]),
        (["A", "blue"], [0, 2]),
        (None, []),
        ("", []),
        (-1, []),
        ("-1", []),
        ([], []),
    ],
)
def test_correct_without_labels(correct: Any, right: list[int]) -> None:
    (draft,) = drafts([{"q": "?", "o": OPTIONS, "c": correct}], question="q", answers="o", correct="c")
    assert [place for place, mark in enumerate(draft["correct"]) if mark] == right


@pytest.mark.parametrize(("correct", "right"), [("2", [0]), (3, [1]), ("red", [0]), ([4, 2], [0, 2])])
def test_correct_with_labels(correct: Any, right: list[int]) -> None:
    (draft,) = drafts(
        [{"q": "?", "o": OPTIONS, "l": ["2", "3", "4"], "c": correct}],
        question="q",
        answers="o",
        labels="l",
        correct="c",
    )
    assert [place for place, mark in enumerate(draft["correct"]) if mark] == right


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"o": OPTIONS, "c": 3}, "`correct` is 3 and it has 3 answers"),
        ({"o": OPTIONS, "c": -2}, "`correct` is -2"),
        ({"o": OPTIONS, "c": "D"}, "`correct` is 'D', which is none of its 3 answers"),
        ({"o": OPTIONS, "c": "pink"}, "'pink', which is none"),
        ({"o": ["B", "A"], "c": "A"}, "give `labels`"),
        ({"o": OPTIONS, "c": True}, "one for each answer"),
        ({"o": OPTIONS, "c": [True]}, "3 answers and 1 marks"),
        ({"o": OPTIONS, "c": {"x": 1}}, "this is no text"),
    ],
)
def test_a_wrong_correct_names_benchmark_and_row(row: dict[str, Any], says: str) -> None:
    rows = [{"q": "?", "o": OPTIONS, "c": 0}, {"q": "?", **row}]
    with pytest.raises(BadInput) as found:
        drafts(rows, question="q", answers="o", correct="c")
    assert found.value.message.startswith("made, row 1: ")
    assert says in found.value.message
    assert "fields found: q, o, c" in found.value.hint


def test_labels_must_fit() -> None:
    with pytest.raises(BadInput, match="3 answers and 2 labels"):
        drafts(
            [{"q": "?", "o": OPTIONS, "c": "A"}],
            question="q",
            answers="o",
            labels="['A', 'B']",
            correct="c",
        )


def test_missing_options_do_not_move_the_right_one() -> None:
    (draft,) = drafts(
        [{"q": "?", "a": "x", "b": None, "c": "z", "r": 2}],
        question="q",
        answers="[a, b, c]",
        correct="r",
    )
    assert (draft["answers"], draft["correct"]) == (["x", "z"], [False, True])


def test_options_that_are_there_twice_stay_but_references_do_not() -> None:
    row = {"q": "?", "a": ["7", "7", "8"], "r": 2}
    assert drafts([row], question="q", answers="a", correct="r")[0]["answers"] == ["7", "7", "8"]
    assert drafts([row], question="q", answers="a")[0]["answers"] == ["7", "8"]


def test_values_that_are_not_text() -> None:
    row = {"q": 3, "a": [1.0, 2.5, True, [4, "x"]], "p": ["one", None, "two"], "i": 12}
    (draft,) = drafts([row], question="q", answers="a", passage="p", item="i")
    assert draft == {
        "item": "12",
        "question": "3",
        "answers": ["1", "2.5", "True", "4", "x"],
        "correct": [True] * 5,
        "passage": "one\ntwo",
        "language": None,
        "solution": [],
    }


def test_functions() -> None:
    row = {"j": '["a", "b"]', "p": "['c', 'd']", "s": "e; f;", "t": "Q: g?", "o": "a ) 1 , b ) 2"}
    (draft,) = drafts(
        [row],
        question="sub('^Q: ', '', t)",
        answers="[parse(j), parse(p), split(s, ';'), find('\\) (\\d)', o)][]",
    )
    assert draft["question"] == "g?"
    assert draft["answers"] == ["a", "b", "c", "d", "e", "f", "1", "2"]
    with pytest.raises(BadInput, match="made, row 0: 'no list' is neither JSON"):
        drafts([{"t": "x", "j": "no list"}], question="t", answers="parse(j)")
    with pytest.raises(BadInput, match="made, row 0: In function join"):
        drafts([{"t": "x", "u": None}], question="join(' ', [t, u])")


def test_ids_are_unique() -> None:
    rows = [{"q": "?", "i": name} for name in ("x", "x", "x#2", None, "x")]
    made = catalog.with_unique_ids(drafts(rows, question="q", item="i"))
    assert [draft["item"] for draft in made] == ["x", "x#3", "x#2", "3", "x#4"]


def test_each_keeps_the_rows_fields() -> None:
    row = {"text": "T", "id": 5, "parts": [{"q": "one", "id": 7}, {"q": "two", "id": 8}]}
    made = drafts(
        [row],
        each="parts",
        question="q",
        passage="text",
        item="join('/', [to_string(parent.id), to_string(id)])",
    )
    assert [(draft["item"], draft["question"], draft["passage"]) for draft in made] == [
        ("5/7", "one", "T"),
        ("5/8", "two", "T"),
    ]
    assert drafts([row], each="parts", question="q", item="id")[0]["item"] == "7"
    texts = drafts([{"turns": ["a", "b"]}, {"turns": ["c"]}], each="turns", question="each")
    assert [(draft["item"], draft["question"]) for draft in texts] == [
        ("0/0", "a"),
        ("0/1", "b"),
        ("1/0", "c"),
    ]
    with pytest.raises(BadInput, match="row 0: the lists of `each` are not equally long: q 2, a 1"):
        drafts([{"x": [1, 2], "y": [1]}], each={"q": "x", "a": "y"}, question="q")


# Chats


def turn(role: str, text: Any) -> dict[str, Any]:
    return {"role": role, "content": text}


@pytest.mark.parametrize(
    ("messages", "question", "answers"),
    [
        ([turn("user", "q")], "q", []),
        ([turn("system", "s"), turn("user", "q"), turn("assistant", "a")], "q", ["a"]),
        (
            [turn("user", "shot"), turn("assistant", "x"), turn("user", "q"), turn("assistant", "a")],
            "q",
            ["a"],
        ),
        ([turn("user", "shot"), turn("assistant", "x"), turn("user", "q")], "q", []),
        ([{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}], "q", ["a"]),
        ([turn("user", [{"type": "text", "text": "q"}, {"type": "image"}])], "q\n", []),
        ([turn("assistant", "hello"), turn("user", "q")], "q", []),
        ([], None, []),
    ],
)
def test_the_last_turn_is_the_question(messages: Any, question: Any, answers: list[str]) -> None:
    assert catalog.last_turn(messages) == (question, answers)
    (draft,) = drafts([{"m": messages}], messages="m")
    assert (draft["question"], draft["answers"]) == (question, answers)


def test_a_mapping_beside_messages() -> None:
    row = {"m": [turn("user", "q"), turn("assistant", "a")], "gold": ["1", "2"]}
    (draft,) = drafts([row], messages="m", answers="gold")
    assert (draft["question"], draft["answers"]) == ("q", ["1", "2"])


# Fields that are not there


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"question": "prompt"}, "prompt"),
        ({"question": "q", "answers": "choices.txt"}, "txt"),
        ({"question": "q", "answers": "list[*].body"}, "body"),
        ({"question": "q", "answers": "[a, b]"}, "a"),
        ({"question": "q", "answers": "list[].{x: y}.x"}, "y"),
        ({"question": "a || b"}, "a"),
        ({"question": "join(' ', [q, z])"}, "z"),
        ({"question": "q", "each": "parts"}, "parts"),
        ({"question": "z", "each": "list"}, "z"),
        ({"question": "q", "answers": "choices.text", "correct": "key"}, "key"),
    ],
)
def test_a_field_that_no_row_has(fields: dict[str, Any], name: str) -> None:
    rows = [{"q": "?", "choices": {"text": ["a"]}, "list": [{"text": "t"}]}] * 60
    with pytest.raises(Unavailable) as found:
        drafts(rows, **fields)
    assert f"no row has a field {name}" in found.value.reason
    assert "schema changed" in found.value.reason
    assert "fields found: q, choices, list" in found.value.hint


@pytest.mark.parametrize(
    "fields",
    [
        {"question": "q || prompt"},
        {"question": "not_null(prompt, q)"},
        {"question": "q", "answers": "late"},
        {"question": "q", "answers": "list[*].text"},
        {"question": "q", "passage": "null"},
    ],
)
def test_a_field_that_some_row_has(fields: dict[str, Any]) -> None:
    rows: list[dict[str, Any]] = [{"q": "?", "list": [], "null": None}] * 60 + [
        {"q": "?", "list": [], "null": None, "late": "x"}
    ]
    assert len(drafts(rows, **fields)) == 61


# Python functions


def test_convert(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_tasks.py").write_text(
        "def two(row):\n"
        "    return [{'question': row['q'] + mark, 'answers': ['a']} for mark in '?!']\n"
        "def one(row):\n    return {'item': 7, 'question': row['q'], 'solution': ['s']}\n"
        "def bad(row):\n    return {'question': row['q'], 'answer': 'a'}\n"
        "def wrong(row):\n    return {'question': 3}\n"
        "def marks(row):\n    return {'question': 'q', 'answers': ['a'], 'correct': []}\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    rows = [{"q": "x"}]
    made = drafts(rows, convert="my_tasks:two", language="de")
    assert [(draft["item"], draft["question"], draft["language"]) for draft in made] == [
        ("0/0", "x?", "de"),
        ("0/1", "x!", "de"),
    ]
    assert made[0]["correct"] == [True]
    (draft,) = drafts(rows, convert="my_tasks:one")
    assert (draft["item"], draft["solution"]) == ("7", ["s"])
    for name, says in (
        ("bad", "an item has no field answer"),
        ("wrong", "must be text or null"),
        ("marks", "1 answers and 0 marks"),
    ):
        with pytest.raises(BadInput, match=f"made, row 0: .*{says}"):
            drafts(rows, convert=f"my_tasks:{name}")
    with pytest.raises(BadInput, match="made, row 0: my_tasks:one failed with KeyError"):
        drafts([{}], convert="my_tasks:one")
    with pytest.raises(BadSetting, match="cannot load my_tasks:none"):
        drafts(rows, convert="my_tasks:none")
    sys.modules.pop("my_tasks")
