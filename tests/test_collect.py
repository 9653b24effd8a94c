"""collect: a catalog to a reference set, and what could not be loaded stays named to the end."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import samples
from test_cli import Run, unseen  # noqa: F401 (a fixture)
from unseen import collect, records, refs
from unseen.catalog import Entry, Unavailable
from unseen.errors import BadInput, BadSetting
from unseen.scan import Index

GUID = "3f2b1c4d-77aa-4b5c-9d8e-0123456789ab"
SOLUTION = """def close_pairs(values, limit):
    ordered = sorted(values)
    for left, right in zip(ordered, ordered[1:]):
        if right - left < limit:
            return True
    return False
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Rows of two benchmarks in files of their own schema."""
    folder = tmp_path / "source"
    code = [
        {"id": f"code/{n}", "prompt": f"{prompt} Write the function number {n}.", "code": SOLUTION}
        for n, prompt in enumerate([samples.ROBES, samples.LOCKS])
    ]
    quiz = [
        {"q": samples.COMETS, "options": ["Tycho Brahe", "Edmond Halley"], "right": "B"},
        {"q": samples.LOCKS, "options": ["one", "two"], "right": "A"},
    ]
    samples.write_jsonl(folder / "code.jsonl", code)
    samples.write_jsonl(folder / "quiz-test.jsonl", quiz)
    samples.write_jsonl(folder / "quiz-train.jsonl", quiz[1:])
    return folder


@pytest.fixture
def entries(files: Path) -> dict[str, Entry]:
    made = {
        "code": {
            "source": "jsonl", "files": {"test": str(files / "code.jsonl")}, "item": "id",
            "question": "prompt", "solution": "code", "canary": [GUID], "language": "en",
        },
        "quiz": {
            "source": "jsonl",
            "files": {s: str(files / f"quiz-{s}.jsonl") for s in ("test", "train")},
            "question": "q", "answers": "options", "correct": "right",
        },
    }  # fmt: skip
    return {name: Entry.model_validate(entry) for name, entry in made.items()}


def hashes(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_a_set_has_a_file_for_each_suite_and_split(entries: dict[str, Entry], tmp_path: Path) -> None:
    header = collect.collect(entries, str(tmp_path / "REFS"))
    named = [(row["suite"], row["split"], row["items"]) for row in header["suites"]]
    assert named == [
        ("code", "canary", 1), ("code", "test", 2), ("code/solution", "test", 2),
        ("quiz", "test", 2), ("quiz", "train", 1),
    ]  # fmt: skip
    assert header == json.loads((tmp_path / "REFS" / "refs.json").read_text())
    for row in header["suites"]:
        table = pq.read_table(tmp_path / "REFS" / row["file"], partitioning=None)
        assert table.schema.equals(records.item_schema())
        assert set(table["suite"].to_pylist()) == {row["suite"]}
        assert len(table) == row["items"]
    items = refs.read_items([str(tmp_path / "REFS")]).to_pylist()
    assert len(items) == 8
    (comets,) = [i for i in items if i["question"] == samples.COMETS]
    assert (comets["answers"], comets["correct"]) == (["Tycho Brahe", "Edmond Halley"], [False, True])
    (one, two) = [i for i in items if i["suite"] == "code/solution"]
    assert (one["question"], one["answers"], one["language"]) == (SOLUTION, [], "en")
    assert two["item"] == "code/1"


def test_the_same_input_gives_the_same_bytes_and_is_not_touched(
    entries: dict[str, Entry], files: Path, tmp_path: Path
) -> None:
    before = hashes(files)
    for name in ("A", "B"):
        collect.collect(entries, str(tmp_path / name))
    assert hashes(tmp_path / "A") == hashes(tmp_path / "B")
    assert hashes(files) == before
    assert not list(tmp_path.glob(".*")), "a partial folder was left"


def test_a_benchmark_that_is_not_there_stops_or_is_listed(
    entries: dict[str, Entry], tmp_path: Path
) -> None:
    gone = {
        "aaa": entries["quiz"].model_copy(update={"files": {"test": "/nowhere/x.jsonl"}}),
        **entries,
    }
    with pytest.raises(Unavailable, match=r"^aaa: .*nowhere"):
        collect.collect(gone, str(tmp_path / "REFS"))
    assert not (tmp_path / "REFS").exists()
    header = collect.collect(gone, str(tmp_path / "REFS"), keep_going=True)
    assert [one["suite"] for one in header["missing"]] == ["aaa"]
    assert len(header["suites"]) == 5


def test_an_empty_benchmark_is_not_there(
    entries: dict[str, Entry], files: Path, tmp_path: Path
) -> None:
    (files / "quiz-train.jsonl").write_text("")
    with pytest.raises(Unavailable, match="quiz"):
        collect.collect(entries, str(tmp_path / "REFS"))


def test_a_folder_is_replaced_only_when_asked(entries: dict[str, Entry], tmp_path: Path) -> None:
    out = tmp_path / "REFS"
    collect.collect(entries, str(out))
    with pytest.raises(BadSetting, match="already there"):
        collect.collect(entries, str(out))
    collect.collect({"quiz": entries["quiz"]}, str(out), overwrite=True)
    assert not (out / "items" / "code").exists()
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(BadSetting, match="already there"):
        collect.collect(entries, str(other), overwrite=True)


@pytest.mark.parametrize(
    "name", ["_priv", "../../x", "(paren)", "a/test.parquet", "x" * 400, ".hid", "ü/数"]
)
def test_any_name_is_written_and_read_again(
    name: str, entries: dict[str, Entry], tmp_path: Path
) -> None:
    out = tmp_path / "deep" / "REFS"
    collect.collect({"a": entries["quiz"], name: entries["quiz"]}, str(out))
    items = refs.read_items([str(out)])
    assert set(items["suite"].to_pylist()) == {"a", name}
    assert len(items) == 6
    assert sorted(p.name for p in tmp_path.rglob("*") if p.parent == tmp_path) == ["deep", "source"]


def test_a_set_is_read_whole_or_not_at_all(entries: dict[str, Entry], tmp_path: Path) -> None:
    out = tmp_path / "REFS"
    collect.collect(entries, str(out))
    for part in (out / "items", out / "items" / "quiz", out / "refs.json"):
        with pytest.raises(BadSetting, match="is a part of the reference set"):
            refs.read_items([str(part)])
    file = out / "items" / "quiz" / "train.parquet"
    pq.write_table(pq.read_table(file, partitioning=None).slice(1), file)
    with pytest.raises(BadInput, match=r"train.parquet holds 0 items, and .* lists 1"):
        refs.read_items([str(out)])
    file.unlink()
    with pytest.raises(BadInput, match=r"train.parquet is not there"):
        refs.read_items([str(out)])
    for text in ("null", "[]", "{}", '{"missing": 5, "suites": 3}', '{"missing": [1], "suites": [{}]}'):
        (out / "refs.json").write_text(text)
        with pytest.raises(BadInput, match=r"refs.json cannot be read"):
            refs.read_items([str(out)])


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"question": "find('(', q)"}, "error"),
        ({"question": "q", "each": "right"}, ""),
        ({"convert": "no.such:function"}, "no"),
        ({"question": "q", "answers": "options", "correct": "q"}, "correct"),
        ({"question": "nothing"}, "nothing"),
    ],
)
def test_whatever_goes_wrong_with_one_leaves_the_others(
    entry: dict[str, Any], reason: str, entries: dict[str, Entry], files: Path, tmp_path: Path
) -> None:
    source = {"source": "jsonl", "files": {"test": str(files / "quiz-test.jsonl")}}
    bad = Entry.model_validate({**source, **entry})
    header = collect.collect({"bad": bad, **entries}, str(tmp_path / "REFS"), keep_going=True)
    (one,) = header["missing"]
    assert one["suite"] == "bad"
    assert reason in one["reason"]
    assert len(header["suites"]) == 5


def test_damaged_files_are_missing_benchmarks(
    entries: dict[str, Entry], files: Path, tmp_path: Path
) -> None:
    (files / "quiz-test.jsonl").write_bytes(b'{"q": "cut')
    header = collect.collect(entries, str(tmp_path / "REFS"), keep_going=True)
    assert [one["suite"] for one in header["missing"]] == ["quiz"]
    assert "quiz-test.jsonl, row 0" in header["missing"][0]["reason"]


def test_canaries_that_cannot_be_found_are_refused(entries: dict[str, Entry], tmp_path: Path) -> None:
    for text in ("zebra", GUID.replace("-", "")):
        made = {"code": entries["code"].model_copy(update={"canary": (text,)})}
        with pytest.raises(Unavailable, match="fewer than 5 words"):
            collect.collect(made, str(tmp_path / "REFS"))
    files = entries["code"].files
    clash = entries["code"].model_copy(update={"files": {"canary": files["test"]}})
    with pytest.raises(Unavailable, match="has a split called canary"):
        collect.collect({"code": clash}, str(tmp_path / "REFS"))


def test_a_link_is_not_replaced(entries: dict[str, Entry], tmp_path: Path) -> None:
    collect.collect(entries, str(tmp_path / "REFS"))
    (tmp_path / "link").symlink_to(tmp_path / "REFS")
    with pytest.raises(BadSetting, match="is a link"):
        collect.collect(entries, str(tmp_path / "link"), overwrite=True)
    (tmp_path / "file").write_text("")
    with pytest.raises(BadSetting, match="cannot be written"):
        collect.collect(entries, str(tmp_path / "file" / "REFS"))


def test_a_set_whose_files_are_not_its_own(entries: dict[str, Entry], tmp_path: Path) -> None:
    out = tmp_path / "REFS"
    collect.collect(entries, str(out))
    (tmp_path / "link").symlink_to(out / "items")
    for part in (
        f"{out}/item*",
        f"{tmp_path}/RE*/items",
        str(tmp_path / "link"),
        f"{tmp_path}/R*",
        f"{tmp_path}/**/*.parquet",
    ):
        with pytest.raises(BadSetting, match="reference set"):
            refs.read_items([part])
    solution, test = (out / "items" / "code" / n / "test.parquet" for n in ("solution", "."))
    kept = test.read_bytes()
    test.write_bytes(solution.read_bytes())
    with pytest.raises(BadInput, match="holds items of code/solution"):
        refs.read_items([str(out)])
    test.write_bytes(kept)
    changed = pq.read_table(test, partitioning=None).to_pylist()
    changed[0]["question"] = changed[1]["question"]
    pq.write_table(pa.Table.from_pylist(changed, schema=records.item_schema()), test)
    with pytest.raises(BadInput, match="was changed since"):
        refs.read_items([str(out)])
    test.write_bytes(kept)
    (out / "items" / "extra.jsonl").write_text("")
    with pytest.raises(BadInput, match=r"items/extra.jsonl is not in it"):
        refs.read_items([str(out)])


def test_what_is_not_ours_is_not_deleted(entries: dict[str, Entry], tmp_path: Path) -> None:
    out = tmp_path / "REFS"
    collect.collect(entries, str(out))
    (out / "mine.txt").write_text("x")
    with pytest.raises(BadSetting, match=r"holds mine.txt, which would be lost"):
        collect.collect(entries, str(out), overwrite=True)
    (out / "mine.txt").unlink()
    before = hashes(out)
    collect.collect(entries, f"{out}/../REFS", overwrite=True)
    assert hashes(out) == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["REFS", "source"]


def test_of_two_builds_at_once_the_second_is_refused(entries: dict[str, Entry], tmp_path: Path) -> None:
    """It sees at its end that the other one was quicker."""
    out = tmp_path / "REFS"

    def meanwhile(name: str, done: int, total: int) -> None:
        if done == 1:
            out.mkdir()

    with pytest.raises(BadSetting, match="already there"):
        collect.collect(entries, str(out), on_benchmark=meanwhile)
    assert list(out.iterdir()) == []


def test_names_are_chosen_by_pattern(entries: dict[str, Entry]) -> None:
    assert list(collect.chosen(entries, ["q*"])) == ["quiz"]
    with pytest.raises(BadSetting, match=r"no benchmark 'quizz'\nhint: did you mean quiz"):
        collect.chosen(entries, ["quizz"])


@pytest.fixture
def catalog(files: Path, tmp_path: Path) -> Path:
    path = tmp_path / "catalog.yaml"
    path.write_text(f"""
benchmarks:
  code:
    source: jsonl
    files: {{test: {files}/code.jsonl}}
    item: id
    question: prompt
    solution: code
    canary: ["{GUID}"]
  gone:
    source: jsonl
    files: {{test: {files}/gone.jsonl}}
    question: q
""")
    return path


def test_from_a_catalog_to_removed_documents(unseen: Run, catalog: Path, tmp_path: Path) -> None:  # noqa: F811
    """Missing benchmarks stay named; a canary removes; a solution alone is for review."""
    refs_path, index, run = tmp_path / "REFS", tmp_path / "INDEX", tmp_path / "RUN"
    stopped = unseen("refs", "build", catalog, "-o", refs_path)
    assert (stopped.code, stopped.out) == (2, "")
    assert "gone" in stopped.err
    built = unseen("refs", "build", catalog, "-o", refs_path, "--keep-going", "--json")
    assert built.code == 1
    assert [one["suite"] for one in built.json["missing"]] == ["gone"]
    assert unseen("index", refs_path, "-o", index).code == 0
    assert [one["suite"] for one in Index.open(index).header["missing"]] == ["gone"]
    filler = "Ordinary words of an ordinary document that nobody would miss. "
    texts = [
        filler,
        f"{filler}\nBENCHMARK DATA SHOULD NEVER APPEAR. canary GUID {GUID}\n{filler}",
        f"{filler}\n{SOLUTION}\n{filler}",
        f"{filler}\n{samples.LOCKS} Write the function number 1.\n{filler}",
    ]
    pool = samples.write_jsonl(tmp_path / "pool" / "a.jsonl", [{"text": text} for text in texts])
    scanned = unseen("scan", pool, "-i", index, "-o", run, "--json")
    assert scanned.code == 0
    assert [one["suite"] for one in scanned.json["index"]["missing"]] == ["gone"]
    matches = pq.read_table(run / "matches" / "a.jsonl.parquet").to_pylist()
    told = {(m["row"], m["suite"], m["evidence"], m["verdict"]) for m in matches}
    assert {
        (1, "code", "canary", "remove"),
        (2, "code/solution", "solution", "review"),
        (3, "code", "question", "remove"),
    } <= told
    assert scanned.json["counts"]["removed"] == 2
    shown = unseen("scan", pool, "-i", index, "-o", tmp_path / "RUN2")
    assert "not audited: gone, which could not be loaded" in shown.out


def test_commands_on_a_set(unseen: Run, catalog: Path, tmp_path: Path) -> None:  # noqa: F811
    refs_path = tmp_path / "REFS"
    unseen("refs", "build", catalog, "-o", refs_path, "--only", "code")
    assert unseen("refs", "check", refs_path).code == 0
    required = tmp_path / "required.txt"
    required.write_text("code/test 2\ncode/solution 3\n")
    failed = unseen("refs", "check", refs_path, "--require", required, "--json")
    assert failed.code == 1
    assert [one["name"] for one in failed.json["unmet"]] == ["code/solution"]
    listed: Any = unseen("refs", "list", refs_path, "--json").json
    assert {one["suite"] for one in listed} == {"code", "code/solution"}
    shown = unseen("refs", "show", "code", refs_path)
    assert samples.LOCKS[:20] in " ".join(shown.out.split())
    more = tmp_path / "MORE"
    catalog.write_text(catalog.read_text().replace("  code:", "  another:"))
    unseen("refs", "build", catalog, "-o", more, "--only", "another")
    differs = unseen("refs", "diff", refs_path, more)
    assert differs.code == 0
    assert "another" in differs.out
    assert unseen("refs", "diff", refs_path, refs_path, "--json").json["added"] == []
    listed_catalog = unseen("refs", "catalog", "--json").json
    assert len(listed_catalog) >= 100
