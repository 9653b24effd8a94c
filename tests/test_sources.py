"""Sources: files, Hugging Face datasets in local folders, decon folders; errors that name a remedy."""

from __future__ import annotations

import ast
import bz2
import gzip
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from unseen import catalog, sources
from unseen.catalog import Entry, Loaded, Unavailable
from unseen.errors import BadInput, MissingExtra

ROWS = [{"q": f"question {n}", "a": [f"answer {n}", "other"], "r": n % 2} for n in range(5)]
MAPPING = {"question": "q", "answers": "a", "correct": "r"}


def write_jsonl(path: Path, rows: list[dict[str, Any]]) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return str(path)


def write_parquet(path: Path, rows: list[dict[str, Any]]) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)
    return str(path)


def questions(loaded: list[Loaded]) -> dict[str, list[str | None]]:
    return {f"{one.suite}:{one.split}": [draft["question"] for draft in one.drafts] for one in loaded}


def load_all(suite: str, entry: Entry, **options: Any) -> list[Loaded]:
    """All splits; the first suite that cannot be loaded is raised."""
    loaded = []
    for one in sources.load(suite, entry, **options):
        if isinstance(one, Unavailable):
            raise one
        loaded.append(one)
    return loaded


def files(source: str, **splits: Any) -> Entry:
    return Entry.model_validate({"source": source, "files": splits, **MAPPING})


# Files


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_jsonl(tmp_path: Path, name: str) -> None:
    path = write_jsonl(tmp_path / name, ROWS)
    (one,) = load_all("made", files("jsonl", test=path))
    assert one.suite == "made"
    assert one.split == "test"
    assert one.facts == {"source": "jsonl", "rows": 5}
    assert one.drafts[3] == {
        "item": "3",
        "question": "question 3",
        "answers": ["answer 3", "other"],
        "correct": [False, True],
        "passage": None,
        "language": None,
        "solution": [],
    }


def test_splits_globs_and_parquet(tmp_path: Path) -> None:
    for part in range(2):
        write_parquet(tmp_path / f"train-{part}.parquet", ROWS[part * 2 : part * 2 + 2])
    test = write_parquet(tmp_path / "test.parquet", ROWS[4:])
    entry = files("parquet", train=str(tmp_path / "train-*.parquet"), test=[test, test])
    assert questions(load_all("made", entry)) == {
        "made:train": [f"question {n}" for n in range(4)],
        "made:test": ["question 4", "question 4"],
    }
    only = entry.model_copy(update={"splits": ("test",)})
    assert list(questions(load_all("made", only))) == ["made:test"]
    gone = entry.model_copy(update={"splits": ("dev",)})
    with pytest.raises(Unavailable, match=r"made: it has no split dev\nhint: its splits: train, test"):
        load_all("made", gone)


@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2"])
def test_csv(tmp_path: Path, suffix: str) -> None:
    text = '\ufeffq,a,b,r\n"one, ""two""\nthree",x,y,B\nfour,z,w,A\n'.encode()
    pack: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress}
    path = tmp_path / f"a.csv{suffix}"
    path.write_bytes(pack[suffix](text))
    entry = Entry(source="csv", files={"test": str(path)}, question="q", answers="[a, b]", correct="r")
    (one,) = load_all("made", entry)
    assert [draft["question"] for draft in one.drafts] == ['one, "two"\nthree', "four"]
    assert [draft["correct"] for draft in one.drafts] == [[False, True], [True, False]]


def test_tsv_and_broken_csv(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("q\ta\none, two\tx\n")
    entry = Entry(source="csv", files={"test": str(tmp_path / "a.tsv")}, question="q", answers="a")
    assert questions(load_all("made", entry)) == {"made:test": ["one, two"]}
    for text in ("q,a\none,two,three\n", "q,a\none\n", 'q,a\n"one,x\n'):
        (tmp_path / "a.csv").write_text(text)
        entry = Entry(source="csv", files={"test": str(tmp_path / "a.csv")}, question="q")
        with pytest.raises(BadInput, match=r"a\.csv"):
            load_all("made", entry)
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(b"q,a\n" + b"one,two\n" * 9000)[:-20])
    entry = Entry(source="csv", files={"test": str(tmp_path / "b.csv.gz")}, question="q")
    with pytest.raises(BadInput, match=r"b\.csv\.gz is no whole CSV"):
        load_all("made", entry)


def test_urls(tmp_path: Path) -> None:
    import fsspec

    memory = fsspec.filesystem("memory")
    for part in range(2):
        local = write_jsonl(tmp_path / f"p{part}.jsonl.gz", ROWS[part : part + 1])
        memory.put_file(local, f"/made/p{part}.jsonl.gz")
    entry = files("jsonl", test="memory://made/p*.jsonl.gz", one="memory://made/p1.jsonl.gz")
    assert questions(load_all("made", entry)) == {
        "made:test": ["question 0", "question 1"],
        "made:one": ["question 1"],
    }
    for address in ("memory://made/none.jsonl", "memory://none/*.jsonl", "nosuch://x/y.jsonl"):
        with pytest.raises(Unavailable) as found:
            load_all("made", files("jsonl", test=address))
        assert address in found.value.reason
        assert "check the address" in found.value.hint


def test_files_that_are_not_there_or_empty_or_damaged(tmp_path: Path) -> None:
    for path in (tmp_path / "none.jsonl", tmp_path / "none*.jsonl", tmp_path / "none" / "*.csv"):
        source = "csv" if path.suffix == ".csv" else "jsonl"
        with pytest.raises(Unavailable, match=r"check `files` in the catalog"):
            load_all("made", files(source, test=str(path)))
    empty = write_jsonl(tmp_path / "empty.jsonl", [])
    with pytest.raises(Unavailable, match="its split test is empty"):
        load_all("made", files("jsonl", test=empty))
    with pytest.raises(Unavailable, match="is jsonl, not parquet"):
        load_all("made", files("parquet", test=empty))
    (tmp_path / "bad.jsonl").write_text('{"q": 1}\n{"q": \n')
    with pytest.raises(BadInput, match=r"made: .*bad\.jsonl, row 1: it is not JSON"):
        load_all("made", files("jsonl", test=str(tmp_path / "bad.jsonl")))
    other = write_jsonl(tmp_path / "other.jsonl", [{"prompt": "x", "a": [], "r": None}])
    with pytest.raises(Unavailable, match=r"made: split test: no row has a field q .*schema changed"):
        load_all("made", files("jsonl", test=other))
    wrong = write_jsonl(tmp_path / "wrong.jsonl", [ROWS[0], {**ROWS[0], "r": 9}])
    with pytest.raises(BadInput, match="made, split test, row 1: `correct` is 9"):
        load_all("made", files("jsonl", test=wrong))


# decon


def test_decon(tmp_path: Path) -> None:
    rows = [
        {
            "eval_key": key,
            "eval_instance_index": index,
            "split": split,
            "question": f"{key} {index}",
            "answer": answer,
            "is_correct": answer == "x",
        }
        for key, split in (("mmlu", "test"), ("mmlu", "dev"), ("arc", "test"))
        for index in range(2)
        for answer in ("x", "y")
    ]
    write_jsonl(tmp_path / "refs" / "a.jsonl.gz", rows[:6])
    write_jsonl(tmp_path / "refs" / "b.jsonl", rows[6:])
    entry = Entry(source="decon", path=str(tmp_path / "refs"))
    loaded = load_all("old", entry)
    assert questions(loaded) == {
        "mmlu:test": ["mmlu 0", "mmlu 1"],
        "mmlu:dev": ["mmlu 0", "mmlu 1"],
        "arc:test": ["arc 0", "arc 1"],
    }
    assert loaded[0].drafts[1]["answers"] == ["x", "y"]
    assert loaded[0].drafts[1]["correct"] == [True, False]
    only = entry.model_copy(update={"splits": ("dev",)})
    assert list(questions(load_all("old", only))) == ["mmlu:dev"]
    for change in ({"path": str(tmp_path / "none")}, {"splits": ("none",)}):
        with pytest.raises(Unavailable, match="old: "):
            load_all("old", entry.model_copy(update=change))


# Hugging Face


@pytest.mark.parametrize(
    "given",
    [
        "org/name",
        "hf.co/datasets/org/name",
        "https://huggingface.co/datasets/org/name",
        "https://huggingface.co/datasets/org/name/viewer/default/test?row=3",
        "https://www.hf.co/datasets/org/name/",
        "hf://datasets/org/name",
        "hf://datasets/org/name@main/data/x.parquet",
    ],
)
def test_links_are_ids(given: str) -> None:
    assert sources.dataset_id(given) == "org/name"
    assert sources.dataset_id("squad") == "squad"
    assert sources.dataset_id("https://hf.co/datasets/squad") == "squad"
    assert sources.dataset_id("/data/squad") == "/data/squad"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder like a snapshot of a dataset with two configurations, and `datasets` offline."""
    datasets = pytest.importorskip("datasets")
    for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    datasets.disable_progress_bars()
    folder = tmp_path / "snapshot"
    write_parquet(folder / "de" / "test-00000-of-00002.parquet", ROWS[:2])
    write_parquet(folder / "de" / "test-00001-of-00002.parquet", ROWS[2:3])
    write_parquet(folder / "de" / "dev-00000-of-00001.parquet", ROWS[3:4])
    write_parquet(folder / "en" / "test.parquet", ROWS[4:])
    configs = [
        {
            "config_name": "de",
            "data_files": [
                {"split": "test", "path": "de/test-*"},
                {"split": "dev", "path": "de/dev-*"},
            ],
        },
        {"config_name": "en", "data_files": [{"split": "test", "path": "en/test.parquet"}]},
    ]
    head = yaml.safe_dump({"license": "mit", "configs": configs})
    (folder / "README.md").write_text(f"---\n{head}---\n# Made up\n")
    return folder


def on_hub(**fields: Any) -> Entry:
    return Entry.model_validate({"source": "hf", "dataset": "org/name", **MAPPING, **fields})


def load(suite: str, entry: Entry, folder: Path) -> list[Loaded]:
    return load_all(
        suite, entry, data={"org/name": str(folder)}, cache_dir=str(folder.parent / "cache")
    )


def test_a_snapshot_with_configurations(hub: Path) -> None:
    entry = on_hub(configs={"de": "de", "en": "en"}, licence="MIT", revision="a" * 40)
    loaded = load("made", entry, hub)
    assert questions(loaded) == {
        "made/de:test": ["question 0", "question 1", "question 2"],
        "made/de:dev": ["question 3"],
        "made/en:test": ["question 4"],
    }
    assert loaded[0].facts == {
        "source": "hf",
        "dataset": "org/name",
        "config": "de",
        "revision": "a" * 40,
        "licence": "MIT",
        "language": "de",
        "rows": 3,
    }
    assert loaded[2].drafts[0]["language"] == "en"
    assert load("made", entry, hub) == loaded


def test_one_configuration_that_fails_leaves_the_others(hub: Path) -> None:
    entry = on_hub(configs={"de": "de", "fr": "fr", "en": "en"}, splits=["dev"])
    data = {"org/name": str(hub)}
    made = list(
        sources.load("made", entry, splits=["test"], data=data, cache_dir=str(hub.parent / "cache"))
    )
    assert [type(one).__name__ for one in made] == ["Loaded", "Unavailable", "Loaded"]
    assert [one.suite for one in made] == ["made/de", "made/fr", "made/en"]


def test_named_splits_and_links(hub: Path) -> None:
    entry = on_hub(config="de", splits=["dev"], dataset="https://hf.co/datasets/org/name")
    assert questions(load("made", entry, hub)) == {"made:dev": ["question 3"]}
    with pytest.raises(Unavailable, match=r"it has no split train\nhint: its splits: test, dev"):
        load("made", on_hub(config="de", splits=["train"]), hub)
    folder = on_hub(config="en", dataset=str(hub))
    assert questions(load_all("made", folder, cache_dir=str(hub.parent / "cache"))) == {
        "made:test": ["question 4"]
    }


def test_wrong_configuration_is_named(hub: Path) -> None:
    with pytest.raises(Unavailable) as found:
        load("made", on_hub(config="fr"), hub)
    assert "org/name has no configuration fr" in found.value.reason
    assert found.value.hint == "change `config`"
    with pytest.raises(Unavailable, match=r"no configuration of its own .*de"):
        load("made", on_hub(), hub)


def test_an_empty_split(hub: Path) -> None:
    table = pa.Table.from_pylist(ROWS[:1])
    pq.write_table(table.slice(0, 0), hub / "de" / "dev-00000-of-00001.parquet")
    with pytest.raises(Unavailable, match="made: a split of org/name is empty"):
        load("made", on_hub(config="de"), hub)


def test_a_changed_schema(hub: Path) -> None:
    with pytest.raises(Unavailable, match=r"split test: no row has a field prompt") as found:
        load("made", on_hub(config="de", question="prompt"), hub)
    assert "fields found: q, a, r" in found.value.hint
    assert "revision" in found.value.hint


def test_class_labels_and_columns_that_are_not_read(hub: Path) -> None:
    from datasets import ClassLabel, Features, Image, Sequence, Value

    features = Features(
        {
            "q": Value("string"),
            "label": ClassLabel(names=["no", "yes"]),
            "answers": Sequence({"text": Value("string"), "start": Value("int32")}),
            "picture": Image(),
        }
    )
    made = [
        {
            "q": "one?",
            "label": 1,
            "answers": {"text": ["a", "a"], "start": [0, 3]},
            "picture": {"bytes": b"no picture", "path": None},
        },
        {"q": "two?", "label": -1, "answers": {"text": [], "start": []}, "picture": None},
    ]
    folder = hub.parent / "labels"
    folder.mkdir()
    table = pa.Table.from_pylist(made, schema=features.arrow_schema)
    pq.write_table(table, folder / "test.parquet")
    entry = on_hub(question="q", answers="['no', 'yes']", correct="label")
    (one,) = load("made", entry, folder)
    assert [draft["correct"] for draft in one.drafts] == [[False, True], [False, False]]
    (one,) = load("made", on_hub(question="q", answers="answers.text", correct=None), folder)
    assert [draft["answers"] for draft in one.drafts] == [["a"], []]


def test_the_hubs_parquet_copy(hub: Path) -> None:
    folder = hub.parent / "copy"
    write_parquet(folder / "plain_text" / "train" / "0000.parquet", ROWS[:1])
    write_parquet(folder / "plain_text" / "test" / "0000.parquet", ROWS[1:3])
    write_parquet(folder / "other" / "test" / "0000.parquet", ROWS[3:])
    entry = on_hub(config="plain_text", revision="refs/convert/parquet")
    assert questions(load("made", entry, folder)) == {
        "made:train": ["question 0"],
        "made:test": ["question 1", "question 2"],
    }
    # a snapshot of the dataset itself does as well
    entry = on_hub(config="de", splits=["dev"], revision="refs/convert/parquet")
    (hub / "de").rename(hub / "data")
    (hub / "README.md").write_text((hub / "README.md").read_text().replace("de/", "data/"))
    assert questions(load("made", entry, hub)) == {"made:dev": ["question 3"]}


def test_a_snapshot_of_json_lines(hub: Path) -> None:
    folder = hub.parent / "lines"
    write_jsonl(folder / "data" / "test.jsonl", ROWS[:2])
    write_jsonl(folder / "data" / "train.jsonl", ROWS[2:])
    assert questions(load("made", on_hub(), folder)) == {
        "made:train": ["question 2", "question 3", "question 4"],
        "made:test": ["question 0", "question 1"],
    }
    (folder / "data" / "test.jsonl").write_text("")
    with pytest.raises(Unavailable) as found:
        load("made", on_hub(), folder)
    assert found.value.suite == "made"


def test_data_files(hub: Path) -> None:
    entry = on_hub(data_files={"validation": ["de/dev-*.parquet"]})
    assert questions(load("made", entry, hub)) == {"made:validation": ["question 3"]}


def test_a_script_is_never_run(hub: Path) -> None:
    folder = hub.parent / "name"
    folder.mkdir()
    (folder / "name.py").write_text("raise SystemExit('it was run')\n")
    with pytest.raises(Unavailable) as found:
        load("made", on_hub(), folder)
    assert "never run" in found.value.reason
    assert "refs/convert/parquet" in found.value.hint


def test_a_folder_without_data(hub: Path) -> None:
    folder = hub.parent / "nothing"
    folder.mkdir()
    with pytest.raises(Unavailable, match="holds no data files"):
        load("made", on_hub(), folder)
    with pytest.raises(Unavailable, match="there is no folder"):
        load("made", on_hub(), folder / "none")
    (folder / "test.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(Unavailable, match="made: org/name"):
        load("made", on_hub(), folder)


def test_offline(hub: Path) -> None:
    with pytest.raises(Unavailable) as found:
        load_all("made", on_hub(dataset="org/elsewhere"), cache_dir=str(hub.parent / "cache"))
    assert "org/elsewhere is not in the cache" in found.value.reason
    assert "HF_HUB_OFFLINE" in found.value.hint


def test_the_cache_serves_offline(hub: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache as `datasets` leaves it after a download from the hub."""
    import datasets

    cache = hub.parent / "cache"
    load("made", on_hub(config="de"), hub)
    built = next(cache.glob("snapshot/de/0.0.0/*/dataset_info.json")).parent
    target = cache / "org___name" / "de" / "0.0.0" / ("f" * 40)
    target.parent.mkdir(parents=True)
    built.rename(target)
    for file in target.glob("snapshot-*.arrow"):
        file.rename(target / file.name.replace("snapshot-", "name-"))
    info = json.loads((target / "dataset_info.json").read_text())
    info.update(builder_name="parquet", dataset_name="name", config_name="de")
    (target / "dataset_info.json").write_text(json.dumps(info))
    loaded = load_all("made", on_hub(config="de"), cache_dir=str(cache))
    assert list(questions(loaded)) == ["made:test", "made:dev"]
    assert datasets.config.HF_HUB_OFFLINE
    with pytest.raises(Unavailable, match=r"made: .*name"):
        load_all("made", on_hub(config="en"), cache_dir=str(cache))


def hub_error(name: str, status: int) -> Exception:
    import huggingface_hub.errors as errors

    http: Any = sys.modules[errors.HTTPError.__module__.split(".")[0]]  # httpx, or another
    request = http.Request("GET", "https://huggingface.co/x")
    kind: Any = getattr(errors, name)
    return kind(f"{status} Client Error", response=http.Response(status, request=request))


@pytest.mark.parametrize(
    ("error", "reason", "hint"),
    [
        (lambda: hub_error("GatedRepoError", 401), "is gated", "HF_TOKEN"),
        (
            lambda: hub_error("GatedRepoError", 403),
            "is gated",
            "https://huggingface.co/datasets/org/name",
        ),
        (lambda: hub_error("HfHubHTTPError", 403), "is gated", "HF_TOKEN"),
        (
            lambda: hub_error("RepositoryNotFoundError", 401),
            "there is no dataset org/name",
            "check the id",
        ),
        (lambda: hub_error("RevisionNotFoundError", 404), "no revision v9", "change `revision`"),
        (
            lambda: ConnectionError("Couldn't reach 'org/name' on the Hub (ConnectError)"),
            "be reached",
            "network",
        ),
        (
            lambda: RuntimeError("Dataset scripts are no longer supported, but found name.py"),
            "script",
            "parquet",
        ),
        (lambda: KeyError("odd"), "cannot be loaded: KeyError", "huggingface.co"),
    ],
)
def test_what_the_hub_says(
    hub: Path, monkeypatch: pytest.MonkeyPatch, error: Any, reason: str, hint: str
) -> None:
    def fail(*args: Any, **kwargs: Any) -> None:
        assert "trust_remote_code" not in kwargs
        assert kwargs["revision"] == "v9"
        try:
            raise error()
        except Exception as cause:
            if "HTTP" in type(cause).__mro__[1].__name__:
                from datasets.exceptions import DatasetNotFoundError

                gated = "is a gated dataset on the Hub." if reason == "is gated" else "doesn't exist"
                raise DatasetNotFoundError(f"Dataset 'org/name' {gated}") from cause
            raise

    monkeypatch.setattr("datasets.load_dataset", fail)
    with pytest.raises(Unavailable) as found:
        load_all("made", on_hub(revision="v9"))
    assert found.value.suite == "made"
    assert reason in found.value.reason
    assert hint in found.value.hint


def test_without_datasets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtra) as found:
        load_all("made", on_hub())
    assert found.value.hint == "pip install datasets"


def test_importing_stays_light() -> None:
    heavy = {"datasets", "pandas", "jmespath", "fsspec", "yaml", "huggingface_hub"}
    code = f"import sys, unseen.sources\nassert not {heavy} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


# Real benchmarks, in their authors' files

DATA = os.environ.get("UNSEEN_DATA", "")
needs_data = pytest.mark.data
ORIGINAL = yaml.safe_load(
    Path(__file__).with_name("catalog_original.yaml").read_text(encoding="utf-8")
)["benchmarks"]


def number_of(text: str, pattern: str) -> int:
    return len(re.findall(pattern, text))


def quoted(text: str) -> int:
    """Strings in a Python list."""
    return sum(isinstance(node, ast.Constant) for node in ast.walk(ast.parse(text)))


def distinct(*values: Any) -> int:
    return len({str(value) for value in values if value is not None})


# How many answers each item of a raw row must get, written down without the mapping
ANSWERS: dict[str, Callable[[dict[str, Any]], list[int]]] = {
    "2wikimultihop": lambda r: [distinct(*r["answer"])],
    "addsub": lambda r: [distinct(*r["lSolutions"])],
    "agieval": lambda r: [len(r["options"]) if r["options"] else 1],
    "alpaca_eval": lambda r: [1],
    "arc": lambda r: [len(r["question"]["choices"])],
    "bamboogle": lambda r: [distinct(*r["golden_answers"])],
    "bigbench": lambda r: [len(r["target_scores"])],
    "bigbench_date": lambda r: [len(r["target_scores"])],
    "bigbench_object_tracking": lambda r: [len(r["target_scores"])],
    "bigbench_strategyqa": lambda r: [2],
    "aime24": lambda r: [2],
    "aqua": lambda r: [5],
    "carp_en": lambda r: [distinct(r["answer"], r["steps"])],
    "cmmlu": lambda r: [4],
    "commonsenseqa": lambda r: [5],
    "exams_multilingual": lambda r: [len(r["question"]["choices"])],
    "gaokao_bench": lambda r: [
        distinct(*(r["answer"] if isinstance(r["answer"], list) else [r["answer"]]), r["analysis"])
    ],
    "hellaswag": lambda r: [4],
    "jcommonsenseqa": lambda r: [5],
    "jtruthfulqa": lambda r: [sum(map(quoted, (r["Correct Answers"], r["Incorrect Answers"])))],
    "jsquad": lambda r: [distinct(*(a["text"] for a in r["answers"]))],
    "llm_adapters_arc_easy": lambda r: [number_of(r["instruction"], r"Answer\d:")],
    "llm_adapters_boolq": lambda r: [2],
    "llm_adapters_openbookqa": lambda r: [4],
    "llm_adapters_piqa": lambda r: [2],
    "llm_adapters_social_i_qa": lambda r: [3],
    "llm_adapters_winogrande": lambda r: [2],
    "logiqa": lambda r: [len(r["options"])],
    "math500": lambda r: [distinct(r["solution"], r["answer"])],
    "minif2f": lambda r: [2],
    "mlqa_de": lambda r: [distinct(*r["answers"]["text"])],
    "mmlu": lambda r: [4],
    "mmlu_redux": lambda r: [4],
    "mt_bench": lambda r: [0] * len(r["turns"]),
    "musique": lambda r: [distinct(*r["answer"])],
    "nq_open": lambda r: [distinct(*r["answer"])],
    "olympiadbench": lambda r: [distinct(*r["solution"], *r["final_answer"])],
    "pawsx_de": lambda r: [2],
    "popqa": lambda r: [distinct(*r["golden_answers"])],
    "pubmedqa_icl": lambda r: [3],
    "race": lambda r: [4],
    "squad_v2": lambda r: [distinct(*(a["text"] for a in r["answers"]))],
    "strategyqa": lambda r: [2],
    "triviaqa": lambda r: [distinct(*r["golden_answers"])],
    "triviaqa_icl": lambda r: [distinct(r["answer"], *r["aliases"])],
    "truthfulqa": lambda r: [
        1 + sum(len(r[f].strip("; ").split(";")) for f in ("Correct Answers", "Incorrect Answers"))
    ],
    "vicuna_bench": lambda r: [0] * len(r["turns"]),
    "winograd_wsc_icl": lambda r: [2],
    "winogrande_icl": lambda r: [2],
    "xcopa": lambda r: [2],
    "xnli_de": lambda r: [3],
    "xquad": lambda r: [distinct(*(a["text"] for a in r["answers"]))],
}
ICL = ("arc_easy", "bigbench_", "boolq", "copa", "mathqa", "openbookqa", "piqa", "siqa")
NO_ANSWERS = (
    "arena_hard",
    "deepseek_leetcode",
    "ifeval",
    "m_ifeval",
    "multipl_e_humaneval",
    "simple_safety_tests",
    "wizardlm_testset",
)


def answers_of(name: str) -> Callable[[dict[str, Any]], list[int]]:
    if name in ANSWERS:
        return ANSWERS[name]
    if name.endswith("_icl") and name.startswith(ICL) and name != "bigbench_qa_wikidata_icl":
        return lambda row: [len(row["choices"])]
    if name in NO_ANSWERS:
        return lambda row: [0]
    return lambda row: [1]


def original(name: str, folder: Path, tmp_path: Path) -> Entry:
    """The entry of a benchmark, with the files that are there."""
    found = {
        file.name.removesuffix(".jsonl.gz"): str(file) for file in sorted(folder.glob("*.jsonl.gz"))
    }
    chosen: dict[str, Any] = {}
    todo = [name]
    while (other := ORIGINAL[todo[-1]].get("like")) in ORIGINAL and other not in todo:
        todo.append(other)
    for one in todo:
        chosen[one] = {**ORIGINAL[one], "source": "jsonl", "files": found}
    path = tmp_path / "catalog.yaml"
    path.write_text(yaml.safe_dump({"benchmarks": dict(reversed(chosen.items()))}, sort_keys=False))
    return catalog.read_catalog([str(path)])[name]


@needs_data
def test_every_benchmark_has_an_entry() -> None:
    there = {folder.name for folder in Path(DATA, "benchmarks").iterdir() if folder.is_dir()}
    assert there == set(ORIGINAL)


@needs_data
@pytest.mark.parametrize("name", ORIGINAL)
def test_counts_equal_the_sources(name: str, tmp_path: Path) -> None:
    folder = Path(DATA, "benchmarks", name)
    loaded = load_all(name, original(name, folder, tmp_path))
    assert {one.split for one in loaded} == {f.name.removesuffix(".jsonl.gz") for f in folder.iterdir()}
    for one in loaded:
        with gzip.open(folder / f"{one.split}.jsonl.gz", "rt", encoding="utf-8") as lines:
            raw = [json.loads(line) for line in lines]
        wanted = [number for row in raw for number in answers_of(name)(row)]
        assert len(one.drafts) == len(wanted)
        assert [len(draft["answers"]) for draft in one.drafts] == wanted
        assert all(draft["question"] for draft in one.drafts)
        assert len({draft["item"] for draft in one.drafts}) == len(wanted)


# Where our questions differ from items.jsonl.gz on purpose: a question mark, a second sentence or the
# input of a program belongs to the question; an activity in front of it; an item for each turn
OTHER_QUESTIONS = {
    "boolq_icl",
    "cruxeval",
    "hellaswag",
    "mt_bench",
    "pawsx_de",
    "winograd_wsc_icl",
    "winogrande_icl",
    "xnli_de",
}


@needs_data
def test_questions_and_options_are_those_of_the_items(tmp_path: Path) -> None:
    """A second, independent reading of the same files."""
    items: dict[tuple[str, str], list[dict[str, Any]]] = {}
    with gzip.open(Path(DATA, "items.jsonl.gz"), "rt", encoding="utf-8") as lines:
        for line in lines:
            item = json.loads(line)
            items.setdefault((item["suite"], item["split"]), []).append(item)

    def plain(text: str | None) -> str:
        return " ".join((text or "").split())

    compared = 0
    for name in set(ORIGINAL) - OTHER_QUESTIONS:
        for one in load_all(name, original(name, Path(DATA, "benchmarks", name), tmp_path)):
            theirs = items[name, one.split]
            assert len(one.drafts) == len(theirs)
            for mine, item in zip(one.drafts, theirs, strict=True):
                if item["question"] is not None:
                    assert plain(mine["question"]) == plain(item["question"])
                if len(item["answers"]) > 1 and name != "aqua":  # it keeps "A)" in front
                    options = item["answers"][: len(mine["answers"])]  # an explanation may follow
                    assert list(map(plain, mine["answers"])) == list(map(plain, options))
                compared += 1
    assert compared > 200_000


def test_a_folder_that_changed_gives_its_new_rows(hub: Path) -> None:
    entry, data = on_hub(config="en"), {"org/name": str(hub)}
    assert questions(load_all("made", entry, data=data)) == {"made:test": ["question 4"]}
    write_parquet(hub / "en" / "test.parquet", [{**ROWS[4], "q": "another"}])
    assert questions(load_all("made", entry, data=data)) == {"made:test": ["another"]}


def test_a_hub_that_did_not_answer_is_asked_once(hub: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    asked: list[bool] = []

    def fails(*_: Any, **__: Any) -> None:
        asked.append(datasets.config.HF_HUB_OFFLINE)
        raise ConnectionError("Couldn't reach the hub")

    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(sources, "_hub_is_silent", False)
    monkeypatch.setattr(datasets, "load_dataset", fails)
    for _ in range(2):
        (failed,) = sources.load("made", on_hub(), data={})
        assert isinstance(failed, Unavailable)
        assert "cannot be reached" in failed.reason
    assert asked == [False, True]
    assert datasets.config.HF_HUB_OFFLINE is False
