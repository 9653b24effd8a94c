"""Tasks of the real lm-evaluation-harness, on made-up rows in their datasets' schemas."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import lm_eval_data
from lm_eval_data import EXPECTED
from unseen.catalog import Draft, Loaded, Unavailable
from unseen.errors import BadSetting


def write(folder: Path, rows: Mapping[str, list[dict[str, Any]]], name: str = "{}.jsonl") -> str:
    folder.mkdir(parents=True, exist_ok=True)
    for split, some in rows.items():
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in some)
        (folder / name.format(split)).write_text(text, encoding="utf-8")
    return str(folder)


@pytest.fixture(scope="module", autouse=True)
def apart(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """No network, a cache of our own, and one index of the harness for all tests."""
    import datasets
    import lm_eval.tasks

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
        patch.setattr(datasets.config, "HF_DATASETS_OFFLINE", True, raising=False)
        patch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path_factory.mktemp("cache"))
        manager = lm_eval.tasks.TaskManager()
        real = lm_eval.tasks.TaskManager

        def same(include_path: str | None = None) -> Any:
            return real(include_path=include_path) if include_path else manager

        patch.setattr(lm_eval.tasks, "TaskManager", same)
        yield


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("data")
    return {task: write(folder / task, rows) for task, rows in lm_eval_data.ROWS.items()}


def load(names: list[str], **more: Any) -> list[Loaded | Unavailable]:
    from unseen import lm_eval

    return list(lm_eval.load(names, **more))


def loaded(names: list[str], **more: Any) -> dict[tuple[str, str], Loaded]:
    found = {}
    for one in load(names, **more):
        assert isinstance(one, Loaded), one
        found[one.suite, one.split] = one
    return found


def refused(names: list[str], **more: Any) -> Unavailable:
    (one,) = load(names, **more)
    assert isinstance(one, Unavailable)
    return one


def short(draft: Draft) -> tuple[str | None, list[str], list[int]]:
    assert len(draft["answers"]) == len(draft["correct"])
    return draft["question"], draft["answers"], [n for n, right in enumerate(draft["correct"]) if right]


# ---- families of tasks ---------------------------------------------------------------------------


@pytest.mark.parametrize("task", lm_eval_data.ROWS)
def test_a_family_of_tasks_gives_its_items(task: str, data: dict[str, str]) -> None:
    found = loaded([task], data=data)
    expected = {key: drafts for key, drafts in EXPECTED.items() if key[0] == task}
    assert {key: [short(d) for d in one.drafts] for key, one in found.items()} == expected
    assert len(expected) > 0


def test_there_are_enough_families_and_kinds() -> None:
    assert len(lm_eval_data.ROWS) >= 25
    assert {task for task, _ in EXPECTED} == set(lm_eval_data.ROWS)


@pytest.mark.parametrize("task", ["sciq", "boolq", "drop", "squadv2", "pubmedqa", "race"])
def test_a_long_context_is_a_passage(task: str, data: dict[str, str]) -> None:
    for one in loaded([task], data=data).values():
        for draft in one.drafts:
            assert (
                lm_eval_data.BRIDGE in (draft["passage"] or "")
                or draft["passage"] == lm_eval_data.ORCHARD
            )
            assert "Altenau was built" not in (draft["question"] or "")


def test_facts_say_where_it_came_from(data: dict[str, str]) -> None:
    from importlib.metadata import version

    one = loaded(["anli_r1"], data=data)["anli_r1", "test"]
    expected = {
        "source": "lm-eval",
        "lm_eval": version("lm_eval"),
        "task": "anli_r1",
        "version": 1.0,
        "output_type": "multiple_choice",
        "dataset_path": "facebook/anli",
        "dataset_split": "test_r1",
        "documents": 2,
        "data": data["anli_r1"],
    }
    assert expected.items() <= one.facts.items()
    assert [draft["item"] for draft in one.drafts] == ["n1", "n2"]


def test_reference_solution_of_code(data: dict[str, str]) -> None:
    (draft,) = loaded(["humaneval"], data=data)["humaneval", "test"].drafts
    assert draft["solution"] == ["    return 12 * years\n"]


def test_language_is_known_where_the_task_says_it(data: dict[str, str]) -> None:
    found = loaded(["xnli_de", "xcopa_it", "arc_easy"], data=data)
    languages = {suite: one.drafts[0].get("language") for (suite, _), one in found.items()}
    assert languages == {"xnli_de": "de", "xcopa_it": "it", "arc_easy": None}


def test_the_same_again(data: dict[str, str]) -> None:
    names = ["gpqa_main_zeroshot", "hellaswag", "mmlu_anatomy"]  # GPQA shuffles its options
    assert loaded(names, data=data) == loaded(names, data=data)


# ---- groups, tags, splits ------------------------------------------------------------------------


def test_a_group_is_its_tasks(tmp_path: Path) -> None:
    rows = lm_eval_data.ROWS["mmlu_anatomy"]
    found = loaded(["mmlu_stem"], data={"cais/mmlu": write(tmp_path / "mmlu", rows)})
    assert len(found) == 19
    assert ("mmlu_anatomy", "test") in found
    assert all(short(one.drafts[0]) == EXPECTED["mmlu_anatomy", "test"][0] for one in found.values())


def test_a_tag_is_its_tasks(data: dict[str, str]) -> None:
    found = loaded(["ai2_arc"], data={"allenai/ai2_arc": data["arc_easy"]}, splits=["test"])
    assert list(found) == [("arc_challenge", "test"), ("arc_easy", "test")]


def test_a_task_named_twice_comes_once(data: dict[str, str]) -> None:
    found = load(["arc_easy", "ai2_arc", "arc_e*y"], data={"allenai/ai2_arc": data["arc_easy"]})
    names = [(one.suite, one.split) for one in found if isinstance(one, Loaded)]
    assert len(names) == len(set(names)) == 6


def test_splits_are_kept_apart_and_can_be_chosen(data: dict[str, str]) -> None:
    assert [split for _, split in loaded(["arc_easy"], data=data)] == ["train", "validation", "test"]
    assert [split for _, split in loaded(["arc_easy"], data=data, splits=["test"])] == ["test"]
    gone = refused(["piqa"], data=data, splits=["test"])
    assert "validation" in gone.reason


def test_few_shot_documents_come_only_when_asked_for(data: dict[str, str]) -> None:
    found = loaded(["mmlu_anatomy"], data=data, few_shot=True)
    assert [split for _, split in found] == ["test", "fewshot"]
    assert found["mmlu_anatomy", "fewshot"].facts["dataset_split"] == "dev"


def test_folders_of_configurations_and_parquet(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    (tmp_path / "ARC-Easy").mkdir()
    table = pa.Table.from_pylist(lm_eval_data.ROWS["arc_easy"]["test"])
    pq.write_table(table, tmp_path / "ARC-Easy" / "test-00000-of-00001.parquet")
    found = loaded(["arc_easy"], data={"allenai/ai2_arc": str(tmp_path)})
    assert [short(d) for d in found["arc_easy", "test"].drafts] == EXPECTED["arc_easy", "test"]


def test_a_single_file_is_the_split_evaluated_on(tmp_path: Path) -> None:
    write(tmp_path, {"mine": lm_eval_data.ROWS["piqa"]["validation"]})
    found = loaded(["piqa"], data={"piqa": str(tmp_path / "mine.jsonl")})
    assert list(found) == [("piqa", "validation")]


def test_a_folder_of_the_hub(tmp_path: Path) -> None:
    """As `hf download --repo-type dataset` leaves it."""
    write(tmp_path / "main", lm_eval_data.ROWS["gsm8k"])
    files = [{"split": s, "path": f"main/{s}.jsonl"} for s in ("train", "test")]
    head = json.dumps({"configs": [{"config_name": "main", "data_files": files}]})
    (tmp_path / "README.md").write_text(f"---\n{head}\n---\n")
    (tmp_path / "main").rename(tmp_path / "data")
    (tmp_path / "README.md").write_text(f"---\n{head.replace('main/', 'data/')}\n---\n")
    found = loaded(["gsm8k"], data={"openai/gsm8k": str(tmp_path)})
    assert [short(d) for d in found["gsm8k", "test"].drafts] == EXPECTED["gsm8k", "test"]


def test_tasks_of_ones_own(tmp_path: Path) -> None:
    write(tmp_path, {"test": [{"ask": "Who keeps the ledger?", "say": "The school"}] * 2})
    (tmp_path / "own.yaml").write_text(
        "task: ledger_own\ndataset_path: json\n"
        f"dataset_kwargs: {{data_files: {{test: {tmp_path}/test.jsonl}}}}\n"
        "test_split: test\noutput_type: generate_until\ndoc_to_target: say\n"
        'doc_to_text: "Say: {{ask}} Now:"\ndescription: "Be brief. "\n'
    )
    one = loaded(["ledger_own"], include_path=str(tmp_path))["ledger_own", "test"]
    assert [short(d) for d in one.drafts] == [("Who keeps the ledger?", ["The school"], [0])] * 2


# ---- what cannot be loaded -----------------------------------------------------------------------


def test_an_unknown_name_is_named_with_close_ones() -> None:
    error = refused(["arc_eazy"])
    assert error.suite == "arc_eazy"
    assert "no task, group or tag" in error.reason
    assert "arc_easy" in error.hint


def test_no_name_is_a_bad_setting() -> None:
    with pytest.raises(BadSetting):
        load([])


def raising(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    real = datasets.load_dataset

    def load_dataset(path: str, *args: Any, **kwargs: Any) -> Any:
        if path == "openai/gsm8k":
            raise error
        return real(path, *args, **kwargs)

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)


def test_a_gated_dataset_names_the_token_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch, data: dict[str, str]
) -> None:
    from datasets.exceptions import DatasetNotFoundError

    said = (
        "Dataset 'openai/gsm8k' is a gated dataset on the Hub. You must be authenticated to access it."
    )
    raising(DatasetNotFoundError(said), monkeypatch)
    first, second = load(["gsm8k", "piqa"], data={"piqa": data["piqa"]})
    assert isinstance(first, Unavailable)
    assert (first.suite, first.reason) == ("gsm8k", "dataset openai/gsm8k is gated")
    assert "HF_TOKEN" in first.hint
    assert "https://huggingface.co/datasets/openai/gsm8k" in first.hint
    assert isinstance(second, Loaded)


@pytest.mark.parametrize(
    ("error", "reason", "hint"),
    [
        (ConnectionError("Couldn't reach 'openai/gsm8k' on the Hub"), "cannot be reached", "network"),
        (
            RuntimeError("Dataset scripts are no longer supported, but found gsm8k.py"),
            "remote code",
            "Parquet",
        ),
        (ValueError("BuilderConfig 'main' not found. Available: ['x']"), "another layout", "revision"),
        (
            ModuleNotFoundError("No module named 'pandas'", name="pandas"),
            "pandas",
            "pip install pandas",
        ),
    ],
    ids=["offline", "remote code", "configuration", "package"],
)
def test_reasons_and_remedies(
    monkeypatch: pytest.MonkeyPatch, error: Exception, reason: str, hint: str
) -> None:
    raising(error, monkeypatch)
    gone = refused(["gsm8k"])
    assert reason in gone.reason
    assert hint in gone.hint


def test_a_wrong_id_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from datasets.exceptions import DatasetNotFoundError

    raising(DatasetNotFoundError("Dataset 'openai/gsm8k' doesn't exist on the Hub"), monkeypatch)
    assert "not found" in refused(["gsm8k"]).reason


def test_a_dataset_that_nobody_has_is_unavailable_offline() -> None:
    assert "openai/gsm8k" in refused(["gsm8k"]).reason


def test_a_changed_schema_is_unavailable(tmp_path: Path) -> None:
    rows = {"test": [{"prompt": "How many?", "answer": "3"}]}
    gone = refused(["gsm8k"], data={"gsm8k": write(tmp_path, rows)})
    assert "question" in gone.reason
    assert "openai/gsm8k" in gone.hint or "dataset" in gone.hint


def test_missing_local_data_and_missing_splits(tmp_path: Path) -> None:
    assert "does not exist" in refused(["gsm8k"], data={"gsm8k": str(tmp_path / "none")}).reason
    assert "holds no data files" in refused(["gsm8k"], data={"gsm8k": str(tmp_path)}).reason
    write(tmp_path, {"odd": lm_eval_data.ROWS["gsm8k"]["test"]})
    write(tmp_path, {"queer": lm_eval_data.ROWS["gsm8k"]["test"]})
    assert "odd" in refused(["gsm8k"], data={"gsm8k": str(tmp_path)}).reason


def test_an_empty_split_is_unavailable(tmp_path: Path) -> None:
    rows = [{**row, "category": "law"} for row in lm_eval_data.ROWS["mmlu_pro_math"]["test"]]
    gone = refused(["mmlu_pro_math"], data={"mmlu_pro_math": write(tmp_path, {"test": rows})})
    assert gone.suite == "mmlu_pro_math"


def test_hidden_answers_leave_the_options(tmp_path: Path) -> None:
    rows = [{**row, "answerKey": ""} for row in lm_eval_data.ROWS["openbookqa"]["test"]]
    rows = [*lm_eval_data.ROWS["openbookqa"]["test"], *rows]
    one = loaded(["openbookqa"], data={"openbookqa": write(tmp_path, {"test": rows})})[
        "openbookqa", "test"
    ]
    assert [any(draft["correct"]) for draft in one.drafts] == [True, True, False, False]
    assert one.facts["unlabelled"] == 2


def test_importing_the_adapter_is_light() -> None:
    heavy = "{'lm_eval', 'datasets', 'numpy', 'pyarrow', 'jinja2'}"
    code = f"import sys, unseen.lm_eval; sys.exit(', '.join({heavy} & set(sys.modules)) or 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"loaded: {done.stderr}"


def test_from_a_catalog_to_a_reference_set(data: dict[str, str], tmp_path: Path) -> None:
    from unseen import collect, refs
    from unseen.catalog import Entry

    entry = Entry.model_validate({"source": "lm-eval", "tasks": ["arc_easy", "no_such_task"]})
    header = collect.collect({"ours": entry}, str(tmp_path / "REFS"), keep_going=True, data=data)
    assert {row["suite"] for row in header["suites"]} == {"arc_easy"}
    assert {row["split"] for row in header["suites"]} >= {"test"}
    assert [one["suite"] for one in header["missing"]] == ["no_such_task"]
    items = refs.read_items([str(tmp_path / "REFS")]).to_pylist()
    assert all(sum(item["correct"]) == 1 for item in items)
