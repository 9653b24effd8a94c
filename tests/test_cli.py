"""The commands, end to end on small pools: what they write, print and refuse."""

from __future__ import annotations

import gzip
import io
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest

import samples
from unseen import __version__, cli

COMMANDS = ("index", "scan", "apply", "explain")

LEAKED = samples.leaked(samples.ROBES, "Answer: 15 robes")
OTHER_NUMBERS = samples.leaked(samples.ROBES.replace("14", "31").replace(" 6 ", " 8 "))
POOL = {
    "a.jsonl": [samples.ORDINARY[0], LEAKED, samples.ORDINARY[1], OTHER_NUMBERS],
    "sub/a.jsonl.gz": [samples.leaked(samples.LOCKS), samples.ORDINARY[2], samples.ORDINARY[3]],
}
REMOVED = {"a.jsonl": [1], "sub/a.jsonl.gz": [0]}


class Done(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Done]


@pytest.fixture
def unseen(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command in this process, as the script `unseen` does."""

    def run(*arguments: Any) -> Done:
        monkeypatch.setattr(sys, "argv", ["unseen", *map(str, arguments)])
        capsys.readouterr()
        code = 0
        try:
            cli.main()
        except SystemExit as end:
            code = int(end.code or 0)
        return Done(code, *capsys.readouterr())

    return run


def lines_of(name: str) -> list[bytes]:
    """The rows of one shard of the pool, with an id and another field, as written."""
    return [
        json.dumps({"id": f"{name}:{k}", "text": text, "n": k}, ensure_ascii=False).encode() + b"\n"
        for k, text in enumerate(POOL[name])
    ]


def write_pool(folder: Path) -> Path:
    for name in POOL:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        raw = b"".join(lines_of(name))
        path.write_bytes(gzip.compress(raw, mtime=0) if name.endswith(".gz") else raw)
    return folder


class World(NamedTuple):
    """Items, a pool, an index and a finished run, made once."""

    items: Path
    pool: Path
    index: Path
    run: Path


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    root = tmp_path_factory.mktemp("world")
    items = samples.write_jsonl(root / "items.jsonl", samples.ITEMS)
    made = World(items, write_pool(root / "pool"), root / "INDEX", root / "RUN")
    for arguments in (
        ["index", items, "-o", made.index],
        ["scan", made.pool, "-i", made.index, "-o", made.run, "-w", "1", "--id-field", "id"],
    ):
        done = by_process(*arguments)
        assert done.code == 0, done.err
    return made


def by_process(*arguments: Any, text: str | None = None) -> Done:
    done = subprocess.run(
        [sys.executable, "-m", "unseen", *map(str, arguments)],
        input=text, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return Done(done.returncode, done.stdout, done.stderr)


def rows_of(path: Path) -> list[bytes]:
    raw = path.read_bytes()
    return (gzip.decompress(raw) if path.suffix == ".gz" else raw).splitlines(keepends=True)


def matches_of(run: Path, shard: str = "a.jsonl") -> list[dict[str, Any]]:
    return list(pq.read_table(run / "matches" / f"{shard}.parquet").to_pylist())


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()
    }


def copy_of_run(world: World, tmp_path: Path) -> Path:
    return Path(shutil.copytree(world.run, tmp_path / "RUN"))


# ---- index ---------------------------------------------------------------------------------------


def test_index_prints_what_it_counted(unseen: Run, world: World, tmp_path: Path) -> None:
    done = unseen("index", world.items, "-o", tmp_path / "INDEX")
    assert done.code == 0
    assert "arithmetic" in done.out
    assert re.search(r"3 items, 3 distinct questions", done.out)
    as_json = unseen("index", world.items, "-o", tmp_path / "INDEX2", "--json").json
    assert [row["items"] for row in as_json["suites"]] == [1, 1, 1]
    assert as_json["counts"]["items"] == 3
    assert files_of(tmp_path / "INDEX") == files_of(tmp_path / "INDEX2")


def test_index_of_an_empty_suite_needs_permission(unseen: Run, tmp_path: Path) -> None:
    hollow = {"suite": "hollow", "split": "test", "item": "1", "question": "Why?"}
    refs = samples.write_jsonl(tmp_path / "refs.jsonl", [*samples.ITEMS, hollow])
    done = unseen("index", refs, "-o", tmp_path / "INDEX")
    assert (done.code, done.out) == (2, "")
    assert "hollow" in done.err
    assert not (tmp_path / "INDEX").exists()
    assert unseen("index", refs, "-o", tmp_path / "INDEX", "--allow-empty").code == 0


# ---- scan ----------------------------------------------------------------------------------------


def test_scan_splits_the_pool_byte_for_byte(world: World) -> None:
    for name in POOL:
        lines, gone = lines_of(name), REMOVED[name]
        assert rows_of(world.run / "removed" / name) == [lines[k] for k in gone]
        kept = [line for k, line in enumerate(lines) if k not in gone]
        assert rows_of(world.run / "clean" / name) == kept


def test_scan_records_the_evidence(world: World) -> None:
    found, template = matches_of(world.run)
    assert (found["row"], found["doc_id"], found["verdict"]) == (1, "a.jsonl:1", "remove")
    assert (found["suite"], found["split"], found["item"]) == ("arithmetic", "test", "7")
    assert found["evidence"] == "question+answer"
    assert found["coverage"] == pytest.approx(1)
    assert found["question"] == samples.ROBES
    assert found["answer"] == "15 robes"
    assert LEAKED[found["start"] : found["end"]] + "?" == samples.ROBES
    assert LEAKED[found["answer_start"] : found["answer_end"]] == "15 robes"
    assert samples.ROBES in found["quote"]
    assert (template["row"], template["evidence"], template["verdict"]) == (3, "template", "keep")
    assert template["numbers_changed"] == 2


def test_the_run_folder_is_complete(world: World) -> None:
    summary = json.loads((world.run / "summary.json").read_text())
    counts = summary["counts"]
    assert (counts["rows"], counts["kept"], counts["removed"], counts["bad"]) == (7, 5, 2, 0)
    assert summary["shards"] == 2
    for name in POOL:
        record = json.loads((world.run / "done" / f"{name}.json").read_text())
        assert record["input"]["size_bytes"] == (world.pool / name).stat().st_size
        for output, facts in record["outputs"].items():
            assert (world.run / output).stat().st_size == facts["size_bytes"]
    assert {path.name for path in world.run.iterdir()} == {
        "run.json", "summary.json", "clean", "removed", "matches", "done",
    }  # fmt: skip


def test_scan_prints_a_table_or_json(unseen: Run, world: World, tmp_path: Path) -> None:
    arguments = ["scan", world.pool, "-i", world.index, "-w", "1", "--id-field", "id"]
    done = unseen(*arguments, "-o", tmp_path / "A")
    assert done.code == 0
    assert "7 documents in 2 shards: 5 kept, 2 removed" in done.out
    assert "2 shards" in done.err
    assert "\x1b" not in done.out
    done = unseen(*arguments, "-o", tmp_path / "B", "--json")
    assert done.json["counts"]["removed"] == 2
    assert done.json["counts"] == json.loads((tmp_path / "B" / "summary.json").read_text())["counts"]
    assert files_of(tmp_path / "A") == files_of(tmp_path / "B")


def test_the_same_scan_again_changes_nothing(unseen: Run, world: World, tmp_path: Path) -> None:
    run = copy_of_run(world, tmp_path)
    arguments = ["scan", world.pool, "-i", world.index, "-o", run, "-w", "1", "--id-field", "id"]
    assert unseen(*arguments).code == 0
    assert files_of(run) == files_of(world.run)
    (run / "done" / "a.jsonl.json").unlink()  # as if it had been interrupted there
    (run / "clean" / "a.jsonl").write_text("half a fi")
    done = unseen(*arguments)
    assert "1 done before" in done.err
    assert files_of(run) == files_of(world.run)


def test_a_run_keeps_its_settings(unseen: Run, world: World, tmp_path: Path) -> None:
    run = copy_of_run(world, tmp_path)
    done = unseen(
        "scan", world.pool, "-i", world.index, "-o", run, "--stride", "10", "--id-field", "id"
    )
    assert (done.code, done.out) == (2, "")
    assert "stride was 1, now 10" in done.err
    assert files_of(run) == files_of(world.run)


def test_the_pool_and_the_items_are_only_read(world: World, tmp_path: Path) -> None:
    assert files_of(world.pool) == files_of(write_pool(tmp_path / "pool"))
    assert world.items.read_bytes() == samples.write_jsonl(tmp_path / "i", samples.ITEMS).read_bytes()


def test_dry_run_reports_and_writes_no_copy(unseen: Run, world: World, tmp_path: Path) -> None:
    done = unseen(
        "scan", world.pool, "-i", world.index, "-o", tmp_path / "R", "-w", "1", "--dry-run", "--json"
    )
    assert done.json["counts"]["removed"] == 2
    assert not (tmp_path / "R" / "clean").exists()
    assert not (tmp_path / "R" / "removed").exists()
    assert len(matches_of(tmp_path / "R")) == 2


def test_limit_reads_the_first_rows(unseen: Run, world: World, tmp_path: Path) -> None:
    done = unseen(
        "scan", world.pool, "-i", world.index, "-o", tmp_path / "R", "-w", "1", "--limit", "1", "--json"
    )
    assert (done.json["counts"]["rows"], done.json["counts"]["removed"]) == (2, 1)


def test_two_workers_write_the_same_bytes(world: World, tmp_path: Path) -> None:
    done = by_process(
        "scan", world.pool, "-i", world.index, "-o", tmp_path / "R", "-w", "2", "--id-field", "id"
    )
    assert done.code == 0
    assert files_of(tmp_path / "R") == files_of(world.run)


def test_spans_can_be_cut_out(unseen: Run, world: World, tmp_path: Path) -> None:
    around = "\n".join(samples.ORDINARY * 3)
    text = f"{around}\n{samples.ROBES}\n15 robes\n{around}"
    pool = samples.write_jsonl(tmp_path / "pool" / "a.jsonl", [{"text": text, "n": 1}])
    done = unseen("scan", pool, "-i", world.index, "-o", tmp_path / "R", "-w", "1", "--remove", "span")
    assert done.code == 0
    (row,) = rows_of(tmp_path / "R" / "clean" / "a.jsonl")
    left = json.loads(row)
    assert left["n"] == 1
    assert "velvet" not in left["text"]
    assert left["text"].startswith(around[:200])
    assert left["text"].endswith(around[-200:])
    assert not (tmp_path / "R" / "removed").exists()


def test_chats_are_read_by_a_list_path(unseen: Run, world: World, tmp_path: Path) -> None:
    rows = [
        {"messages": [{"role": "user", "content": samples.LOCKS}, {"role": "tool", "tool_calls": []}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": samples.ORDINARY[0]}]}]},
    ]
    pool = samples.write_jsonl(tmp_path / "chat.jsonl", rows)
    done = unseen(
        "scan", pool, "-i", world.index, "-o", tmp_path / "R", "-w", "1",
        "--text-field", "messages[].content", "--json",
    )  # fmt: skip
    assert (done.json["counts"]["rows"], done.json["counts"]["removed"]) == (2, 1)


# ---- rows that cannot be read --------------------------------------------------------------------


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    path = tmp_path / "pool" / "b.jsonl"
    path.parent.mkdir()
    path.write_bytes(b"".join([*lines_of("a.jsonl")[:2], b'{"text": "cut sh\n', b'{"body": "x"}\n']))
    return path


def test_a_bad_row_fails_the_scan(unseen: Run, world: World, damaged: Path, tmp_path: Path) -> None:
    done = unseen("scan", damaged, "-i", world.index, "-o", tmp_path / "R", "-w", "1")
    assert (done.code, done.out) == (2, "")
    assert f"{damaged}, row 2" in done.err
    assert "--on-bad-row quarantine" in done.err
    assert not (tmp_path / "R" / "done").exists()
    assert not (tmp_path / "R" / "clean").exists()
    assert not (tmp_path / "R" / "summary.json").exists()


def test_bad_rows_can_be_set_aside(unseen: Run, world: World, damaged: Path, tmp_path: Path) -> None:
    done = unseen(
        "scan",
        damaged,
        "-i",
        world.index,
        "-o",
        tmp_path / "R",
        "-w",
        "1",
        "--on-bad-row",
        "quarantine",
    )
    assert done.code == 0
    assert "4 documents in 1 shard: 1 kept, 1 removed (25.000%), 2 bad" in done.out
    bad = [json.loads(line) for line in rows_of(tmp_path / "R" / "bad" / "b.jsonl.jsonl")]
    assert [row["row"] for row in bad] == [2, 3]
    assert bad[0]["raw"] == '{"text": "cut sh\n'
    assert "text" in bad[1]["reason"]


def test_a_good_shard_is_finished_beside_a_bad_one(
    unseen: Run, world: World, damaged: Path, tmp_path: Path
) -> None:
    write_pool(damaged.parent)
    done = unseen("scan", damaged.parent, "-i", world.index, "-o", tmp_path / "R", "-w", "1")
    assert done.code == 2
    assert sorted(p.name for p in (tmp_path / "R" / "done").rglob("*.json")) == [
        "a.jsonl.gz.json",
        "a.jsonl.json",
    ]


# ---- apply ---------------------------------------------------------------------------------------


def test_apply_decides_again_without_a_scan(unseen: Run, world: World, tmp_path: Path) -> None:
    done = unseen(
        "apply", world.run, "--preset", "published", "-o", tmp_path / "P", "-w", "1", "--json"
    )
    assert done.code == 0
    by_score = [m["row"] for m in matches_of(world.run) if m["score"] >= 0.8]
    assert done.json["counts"]["rows"] == 7
    removed = {m["row"] for m in matches_of(tmp_path / "P") if m["verdict"] == "remove"}
    assert removed == set(by_score) == {1}
    assert rows_of(tmp_path / "P" / "removed" / "a.jsonl") == [lines_of("a.jsonl")[1]]
    # a question without an answer in the item: the score is the question's overlap, 1
    assert rows_of(tmp_path / "P" / "removed" / "sub" / "a.jsonl.gz") == [lines_of("sub/a.jsonl.gz")[0]]


def test_apply_gives_what_a_scan_with_that_policy_gives(
    unseen: Run, world: World, tmp_path: Path
) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "rules:\n- {verdict: keep, suite: hist*}\n- {verdict: review, evidence: [template]}\n"
        "- {verdict: remove, min_coverage: 0.9}\n"
    )
    scan = ["scan", world.pool, "-i", world.index, "-w", "1", "--id-field", "id"]
    assert unseen(*scan, "-o", tmp_path / "S", "--policy", policy).code == 0
    done = unseen("apply", world.run, "--policy", policy, "-o", tmp_path / "A", "-w", "1", "--json")
    counts = done.json["counts"]
    assert (counts["removed"], counts["review"], counts["kept"]) == (1, 1, 6)
    assert files_of(tmp_path / "A") == files_of(tmp_path / "S")


def test_apply_in_place_and_back_again(unseen: Run, world: World, tmp_path: Path) -> None:
    run = copy_of_run(world, tmp_path)
    policy = tmp_path / "keep.yaml"
    policy.write_text("name: keep all\nrules: []\n")
    assert unseen("apply", run, "--policy", policy, "-w", "1", "--json").json["counts"]["removed"] == 0
    assert rows_of(run / "clean" / "a.jsonl") == lines_of("a.jsonl")
    assert not list((run / "removed").rglob("*.jsonl*"))
    assert unseen("apply", run, "-w", "1").code == 0
    assert files_of(run) == files_of(world.run)


def test_apply_refuses_what_is_not_finished(unseen: Run, world: World, tmp_path: Path) -> None:
    run = copy_of_run(world, tmp_path)
    (run / "done" / "a.jsonl.json").unlink()
    done = unseen("apply", run, "-o", tmp_path / "A")
    assert (done.code, done.out) == (2, "")
    assert "a.jsonl" in done.err


def test_apply_refuses_a_changed_input(unseen: Run, world: World, tmp_path: Path) -> None:
    pool = write_pool(tmp_path / "pool")
    unseen("scan", pool, "-i", world.index, "-o", tmp_path / "R", "-w", "1")
    with (pool / "a.jsonl").open("ab") as file:
        file.write(b'{"text": "one more"}\n')
    done = unseen("apply", tmp_path / "R", "-o", tmp_path / "A", "-w", "1")
    assert done.code == 2
    assert "a.jsonl" in done.err


# ---- explain -------------------------------------------------------------------------------------


def test_explain_a_match(unseen: Run, world: World) -> None:
    asked = ["explain", f"{world.pool}/a.jsonl:1", "--item", "arithmetic/test/7", "-i", world.index]
    done = unseen(*asked)
    assert done.code == 0
    assert "verdict   remove: evidence question+answer" in done.out
    for stage in ("tokens", "seeds", "chain", "alignment", "answer", "score"):
        assert re.search(rf"^{stage}\b", done.out, re.M), stage
    found = unseen(*asked, "--json").json
    assert found["match"]["evidence"] == "question+answer"
    recorded = matches_of(world.run)[0]
    for field in ("start", "end", "score", "coverage", "quote", "evidence", "option_correct"):
        assert found["match"][field] == pytest.approx(recorded[field]), field


def test_explain_a_miss(unseen: Run, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(samples.ORDINARY[0]))
    done = unseen("explain", "-", "--item", "history/validation/comet/1", "-i", world.index)
    assert done.code == 0
    assert "verdict   keep: no 5-gram" in done.out


def test_explain_a_text_file(unseen: Run, world: World, tmp_path: Path) -> None:
    (tmp_path / "page.txt").write_text(samples.leaked(samples.COMETS, "It was Tycho Brahe."))
    asked = ["--item", "history/validation/comet/1", "-i", world.index, "--json"]
    found = unseen("explain", tmp_path / "page.txt", *asked).json
    assert (found["verdict"], found["match"]["option"]) == ("remove", 1)
    assert found["match"]["option_correct"] is True


# ---- errors, help --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("scan {pool}/none -i {index} -o {out}", "none does not exist"),
        ("scan {pool} -i {pool} -o {out}", "is not an index"),
        ("scan {pool} -i {index} -o {pool}", "inside the pool"),
        ("scan {pool} -i {index} -o {out} --stride 0", "--stride 0"),
        ("scan {pool} -i {index} -o {out} --limit 0", "--limit 0"),
        ("scan {pool} -i {index} -o {out} --preset strict", "no preset 'strict'"),
        ("scan {pool} -i {index} -o {out} --policy {pool}/none.yaml", "cannot be read"),
        ("scan {pool} -i {index} -o {out} --on-bad-row skip", "--on-bad-row skip"),
        ("scan {pool} -i {index} -o {out} --remove row", "--remove row"),
        ("scan {pool} -i {index} -o {out} --text-field a..b", "a..b"),
        ("scan {pool} -i {index} -o {out} --text-field body -w 1", "body"),
        ("scan {pool} -i {index} -o {out} --text-field a,b --remove span", "cannot cut"),
        ("scan {pool} -i {index} -o {out} --stride x", "--stride"),
        ("scan {pool} -i {index}", "--out"),
        ("scan", "pool"),
        ("index {items} -o {index}", "already there"),
        ("index {pool} -o {out}", "row 0"),
        ("apply {pool}", "is not a run folder"),
        ("apply {run} --dry-run", "--dry-run"),
        ("apply {run} --preset strict -o {out}", "no preset 'strict'"),
        ("explain {pool}/a.jsonl:1 --item a/b/c -i {index}", "'a/b/c'"),
        ("explain {pool}/a.jsonl:99 --item arithmetic/test/7 -i {index}", "row 99"),
        ("explain {pool}/none.txt --item arithmetic/test/7 -i {index}", "none.txt"),
        ("clean {pool}", "clean"),
    ],
)
def test_errors_are_a_sentence_and_a_hint(
    arguments: str, message: str, unseen: Run, world: World, tmp_path: Path
) -> None:
    filled = arguments.format(**world._asdict(), out=tmp_path / "out").split()
    done = unseen(*filled)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert re.search(r"^error: .+", done.err, re.M)
    assert re.search(r"^hint: .+", done.err, re.M)
    assert "Traceback" not in done.err


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_every_command_has_help_with_an_example(unseen: Run, command: str, flag: str) -> None:
    done = unseen(command, flag)
    assert done.code == 0
    assert f"Example: unseen {command} " in done.out


def test_the_command_itself(unseen: Run) -> None:
    assert unseen("--version") == Done(0, f"unseen {__version__}\n", "")
    done = unseen("-h")
    assert done.code == 0
    assert all(command in done.out for command in COMMANDS)
    assert "--install-completion" in done.out
    done = unseen()
    assert "Usage: " in done.out + done.err
    assert "error" not in done.out + done.err


def test_the_installed_script_runs() -> None:
    script = Path(sys.executable).with_name("unseen")
    done = subprocess.run([script, "--version"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"unseen {__version__}\n")


def test_results_can_be_piped(world: World, tmp_path: Path) -> None:
    """Standard output holds data alone, from the process's point of view too."""
    asked = ["--item", "history/test/lock", "-i", world.index, "--json"]
    done = by_process("explain", "-", *asked, text=samples.leaked(samples.LOCKS))
    assert done.code == 0
    assert done.json["verdict"] == "remove"
    done = by_process("scan", tmp_path / "none", "-i", world.index, "-o", tmp_path / "R", "--json")
    assert (done.code, done.out) == (2, "")
