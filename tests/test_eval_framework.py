"""eval-framework as a source: exact items from made-up data, through the real package."""

from __future__ import annotations

import gzip
import importlib
import importlib.util
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import eval_framework_data as made
from unseen import eval_framework, fields
from unseen.catalog import Draft, Loaded, Unavailable
from unseen.errors import MissingExtra

HUMAN_EVAL = ("HumanEval_OLMES", "HumanEval_OLMES_V2", "HumanEvalBPB", "HumanEvalBPB_V2")
MBPP = ("MBPP_OLMES", "MBPP_EvalPlus", "MBPPBPB", "MBPP_BPB_EvalPlus")
BENCHMARKS = (
    *HUMAN_EVAL, *MBPP,
    "ARC", "ARC_OLMES", "ARC_IDK", "ARC_DE", "ARC_ELLAMIND_BPB_DE", "AIME2024", "BigCodeBench_OLMES",
    "COPA_OLMES", "CommonsenseQAMC_OLMES", "DropCompletion_OLMES", "DropMC_OLMES",
    "GPQA_DIAMOND_COT", "GPQA_ELLAMIND_DIAMOND_COT_DE", "GSM8KBPB", "GSM8KReasoning", "GSM8K_OLMES",
    "GSM8K_Ellamind_DE_Platinum", "GlobalMMLU_German", "HellaSwag", "HumanEvalDEInstruct", "IFEvalDe",
    "MATH500", "MATHMinervaBPB", "MATHMinervaDE_BPB_OLMES", "MATHMinerva_OLMES", "MBPPDE_OLMES",
    "MMLU_PRO", "MultiPLEHumanEvalCpp", "NaturalQsOpen", "PIQA_IDK", "SCIQ_OLMES", "SQuAD2_MA",
    "SQuAD_OLMES", "SocialIQAMC_OLMES", "WINOGRANDECloze", "WINOGRANDE_ELLAMIND_PARTIAL_EVAL_DE",
)  # fmt: skip


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """{dataset id: folder} of the made-up datasets."""
    return made.write(tmp_path_factory.mktemp("hub"))


def loaded(names: Sequence[str], **options: Any) -> dict[tuple[str, str], Loaded]:
    out = {}
    for one in eval_framework.load(names, **options):
        assert isinstance(one, Loaded), one
        out[one.suite, one.split] = one
    return out


@pytest.fixture(scope="session")
def splits(data: dict[str, str]) -> dict[tuple[str, str], Loaded]:
    """Every split of the benchmarks above."""
    return loaded(BENCHMARKS, data=data)


def first(splits: dict[tuple[str, str], Loaded], suite: str, split: str = "test") -> Draft:
    return splits[suite, split].drafts[0]


GLUE = made.GLUE["prompt"].strip()
TESTS = made.MBPP_ROW["test_list"]
SOLUTION = made.MBPP_ROW["code"].replace("\r\n", "\n")
TASK = made.MBPP_ROW["text"]
PEBBLE = "Which tool measures the mass of pebble 3 in ARC-Easy?"
TOOLS = ["a ruler", "a balance", "a thermometer", "a clock"]
KETTLE = "The kettle did not fit on the shelf because the"
KETTLES = ["kettle was far too wide.", "shelf was far too wide."]

EXPECTED: list[tuple[str, str, str, list[str], list[int]]] = [
    # stylers: cloze, letters, abstention, bits per byte of the right choice alone
    ("ARC", "test", PEBBLE, TOOLS, [1]),
    ("ARC_OLMES", "test", PEBBLE, TOOLS, [1]),
    ("ARC_IDK", "test", PEBBLE, TOOLS, [1]),
    (
        "ARC_ELLAMIND_BPB_DE", "test",
        "Welches Werkzeug misst bei ARC-Easy die Masse?", ["ein Lineal", "eine Waage"], [1],
    ),
    ("COPA_OLMES", "validation", "The boat drifted away because",
     ["the rope was untied.", "the mast was painted."], [0]),
    ("MMLU_PRO", "test", "Which approach to engineering did the made-up school of Skagen favour?",
     ["the old one", "the new one", "both", "neither", "another", "N/A"], [2]),
    ("SocialIQAMC_OLMES", "train", "Ada lent Kim her boat. What will Kim want to do next?",
     ["thank Ada", "sell the boat", "forget it"], [0]),
    ("DropMC_OLMES", "validation", made.HEIGHT, ["12", "26", "31", "1877"], [1]),
    # a chain of thought: the options are no part of the question
    ("GPQA_DIAMOND_COT", "train", "Which of the made-up particles of gpqa_diamond decays last?",
     ["the fourth one", "the second one", "the third. one", "the first one"], [2]),
    # one row asked as two samples
    ("WINOGRANDECloze", "train", KETTLE, KETTLES, [0]),
    # options in the prompt, without a styler
    ("GlobalMMLU_German", "test", "[de] Welche Aussage über abstract_algebra trifft im Fall 2 zu?",
     ["die erste", "die zweite\nund dritte", "keine", "A. und B."], [1]),
    # completions
    ("GSM8K_OLMES", "test", made.FERRY, ["336"], [0]),
    ("GSM8KReasoning", "test", made.FERRY, ["336"], [0]),
    ("GSM8K_Ellamind_DE_Platinum", "test", made.FERRY_DE, ["336"], [0]),
    ("MATH500", "test", "What is $7 \\cdot 48$?", ["336"], [0]),
    ("AIME2024", "train", "Find the sum of all ferries $n$ with $n^2 = 49$.", ["7"], [0]),
    ("MATHMinerva_OLMES", "test", "In algebra, find 0 times 48.", ["0"], [0]),
    ("NaturalQsOpen", "validation", made.NQ["question"], ["the keeper", "Mads Keeper"], [0, 1]),
    ("SQuAD_OLMES", "validation", made.HEIGHT, ["26 metres", "26 metres tall"], [0, 1]),
    ("SQuAD2_MA", "validation", made.HEIGHT, ["26 metres"], [0]),
    ("DropCompletion_OLMES", "validation", made.HEIGHT, ["26"], [0]),
    # bits per byte of a reference answer: its own words, not the sentence around them
    ("GSM8KBPB", "test", made.FERRY, ["It carries 48 * 7 = 336 bicycles\n336"], [0]),
    ("MATHMinervaBPB", "test", "In algebra, find 0 times 48.",
     ["We multiply, and get $\\boxed{0}$."], [0]),
    ("MATHMinervaDE_BPB_OLMES", "test", made.FERRY_DE,
     ["Wir rechnen 7 mal 48, das sind $\\boxed{336}$ Räder.\n336"], [0]),
    # no answer at all
    ("IFEvalDe", "train", made._ifeval("de")["prompt"], [], []),
    ("MultiPLEHumanEvalCpp", "test", made._multipl_e("humaneval-cpp")["prompt"].strip(), [], []),
    # code: what the framework calls the ground truth, less the reference solution
    ("HumanEval_OLMES", "test", GLUE, ["Success"], [0]),
    ("HumanEval_OLMES_V2", "test", GLUE, ["Success"], [0]),
    ("HumanEvalBPB", "test", GLUE, [], []),
    ("HumanEvalBPB_V2", "test", GLUE, [], []),
    ("HumanEvalDEInstruct", "test", GLUE, ["Success"], [0]),
    ("MBPP_OLMES", "test", f"{TASK}\n{TESTS[0]}", [str(TESTS)], [0]),
    ("MBPP_EvalPlus", "test", f"{TASK}\n{TESTS[0]}", [str(TESTS)], [0]),
    ("MBPPBPB", "test", "\n".join([TASK, *TESTS]), [], []),
    ("MBPP_BPB_EvalPlus", "test", f"{TASK}\n{TESTS[0]}", [], []),
    ("BigCodeBench_OLMES", "v0.1.2", made.BIG_CODE["complete_prompt"].strip(), [], []),
]  # fmt: skip


@pytest.mark.parametrize(
    ("suite", "split", "question", "answers", "right"), EXPECTED, ids=[row[0] for row in EXPECTED]
)
def test_items_are_what_the_row_says(
    splits: dict[tuple[str, str], Loaded],
    suite: str,
    split: str,
    question: str,
    answers: list[str],
    right: list[int],
) -> None:
    draft = first(splits, suite, split)
    assert draft["question"] == question
    assert draft["answers"] == answers
    assert [n for n, ok in enumerate(draft["correct"]) if ok] == right


@pytest.mark.parametrize("suite", ["SQuAD_OLMES", "SQuAD2_MA", "DropCompletion_OLMES", "DropMC_OLMES"])
def test_the_passage_is_kept_apart(splits: dict[tuple[str, str], Loaded], suite: str) -> None:
    draft = first(splits, suite, "validation")
    assert (draft["question"], draft["passage"]) == (made.HEIGHT, made.PASSAGE)


def test_no_template_is_left_in_a_question(splits: dict[tuple[str, str], Loaded]) -> None:
    words = (
        "Question", "Frage:", "Answer:", "Antwort", "```", "Problem:", "Aufgabe", "Background",
        "Context:", "Passage", "Please", "Bitte", "Vervollständige", "You are", "Solve", "final answer",
    )  # fmt: skip
    for loads in splits.values():
        for draft in loads.drafts:
            assert not [word for word in words if word in (draft["question"] or word)], draft


@pytest.mark.parametrize("suite", HUMAN_EVAL)
def test_human_eval_is_indexed_on_its_question_alone(
    splits: dict[tuple[str, str], Loaded], suite: str
) -> None:
    """Its ground truth is a constant, or the solution, which becomes a suite of its own."""
    drafts = splits[suite, "test"].drafts
    clean, solutions = fields.cleaned(suite, {"test": drafts})
    assert [draft["answers"] for draft in clean.splits["test"]] == [[], []]
    assert [draft["question"] for draft in clean.splits["test"]] == [
        made.GLUE["prompt"].strip(), made.TALLY["prompt"].strip(),
    ]  # fmt: skip
    assert solutions.name == f"{suite}/solution"
    assert [(draft["question"] or "").rstrip() for draft in solutions.splits["test"]] == [
        made.GLUE["canonical_solution"].rstrip(), made.TALLY["canonical_solution"].rstrip(),
    ]  # fmt: skip


@pytest.mark.parametrize("suite", [*MBPP, "MBPPDE_OLMES"])
def test_mbpp_gives_its_solutions(splits: dict[tuple[str, str], Loaded], suite: str) -> None:
    assert first(splits, suite)["solution"] == [SOLUTION]


def test_answers_that_are_not_public_mark_no_option(splits: dict[tuple[str, str], Loaded]) -> None:
    """HellaSwag's reader takes an empty label for the first ending; others fail on it."""
    for suite in ("HellaSwag", "COPA_OLMES", "CommonsenseQAMC_OLMES", "PIQA_IDK", "WINOGRANDECloze"):
        draft = first(splits, suite)
        assert len(draft["answers"]) >= 2
        assert not any(draft["correct"]), suite
    assert first(splits, "WINOGRANDECloze")["answers"] == KETTLES


def test_splits_are_kept_apart(splits: dict[tuple[str, str], Loaded]) -> None:
    def of(suite: str) -> dict[str, str]:
        return {split: one.facts["role"] for (name, split), one in splits.items() if name == suite}

    assert of("ARC") == {"test": "samples", "train": "few-shot", "validation": "other"}
    assert of("ARC_DE") == {"test": "samples", "validation": "few-shot"}
    assert of("MBPPBPB") == {"test": "samples", "train": "few-shot", "validation": "other"}
    assert of("BigCodeBench_OLMES") == {"v0.1.2": "samples"}
    assert of("GlobalMMLU_German") == {"test": "samples", "dev": "few-shot"}
    assert len(splits["GlobalMMLU_German", "dev"].drafts) == len(made.MMLU_SUBJECTS)


def test_rows_keep_their_order_and_subjects_are_in_the_ids(
    splits: dict[tuple[str, str], Loaded],
) -> None:
    assert [draft["item"] for draft in splits["ARC", "test"].drafts] == [
        "ARC-Easy/0", "ARC-Easy/1", "ARC-Challenge/0", "ARC-Challenge/1",
    ]  # fmt: skip
    assert [draft["item"] for draft in splits["HumanEval_OLMES", "test"].drafts] == ["0", "1"]
    assert first(splits, "GlobalMMLU_German")["item"] == "('de', 'abstract_algebra')/0"


def test_two_subjects_of_the_same_rows_count_once(splits: dict[tuple[str, str], Loaded]) -> None:
    one = splits["BigCodeBench_OLMES", "v0.1.2"]
    assert len(one.drafts) == 1
    assert one.facts["same_as"] == {"calibrated": "original"}


def test_facts_say_where_items_come_from(
    splits: dict[tuple[str, str], Loaded], data: dict[str, str]
) -> None:
    facts = splits["ARC", "test"].facts
    assert facts["source"] == "eval-framework"
    assert facts["version"] == importlib.metadata.version("eval-framework")
    assert facts["dataset"] == "allenai/ai2_arc"
    assert facts["config"] == facts["subjects"] == ["ARC-Easy", "ARC-Challenge"]
    assert facts["revision"] is None  # a local folder was read, not the pinned revision
    assert facts["folder"] == data["allenai/ai2_arc"]
    assert (facts["languages"], facts["response"]) == (["en"], "loglikelihoods")
    assert first(splits, "ARC")["language"] == "en"
    assert first(splits, "ARC_DE")["language"] == "de"
    assert first(splits, "GlobalMMLU_German")["language"] == "de"
    json.dumps([one.facts for one in splits.values()])


def test_the_same_data_gives_the_same_items(
    splits: dict[tuple[str, str], Loaded], data: dict[str, str]
) -> None:
    names = ("GPQA_DIAMOND_COT", "SCIQ_OLMES", "ARC")
    for key, one in loaded(names, data=data).items():
        assert one == splits[key]


def test_named_splits_only(data: dict[str, str]) -> None:
    assert list(loaded(["MBPP_OLMES"], splits=["prompt"], data=data)) == [("MBPP_OLMES", "prompt")]
    (missing,) = eval_framework.load(["ARC"], splits=["dev"], data=data)
    assert isinstance(missing, Unavailable)
    assert missing.reason == "subject ARC-Easy, split dev: there is none"
    assert missing.hint == "its splits: train, validation, test"


def test_names_are_the_frameworks_and_others_get_a_hint(data: dict[str, str]) -> None:
    found = list(eval_framework.load(["arc-de", "HumanEval_OLMSE", "???"], data=data))
    assert {one.suite for one in found[:2]} == {"ARC_DE"}
    typo, nonsense = found[2:]
    assert isinstance(typo, Unavailable)
    assert "HumanEval_OLMES" in typo.hint
    assert isinstance(nonsense, Unavailable)
    assert "no benchmark of this name" in nonsense.reason


# What cannot be loaded


def failing(
    monkeypatch: pytest.MonkeyPatch, error: Exception, calls: list[tuple[str, bool]] | None = None
) -> None:
    """Make `datasets` raise an error for everything that is no folder."""
    datasets = importlib.import_module("datasets")
    real = datasets.load_dataset

    def load_dataset(path: str, *args: Any, **options: Any) -> Any:
        if os.path.isdir(path):
            return real(path, *args, **options)
        if calls is not None:
            calls.append((path, datasets.config.HF_HUB_OFFLINE))
        raise error

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)


def test_a_gated_dataset_names_the_token_and_others_go_on(
    data: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    exceptions = importlib.import_module("datasets.exceptions")
    message = "Dataset 'Idavidrein/gpqa' is a gated dataset on the Hub. Visit it to ask for access."
    failing(monkeypatch, exceptions.DatasetNotFoundError(message))
    some = {key: folder for key, folder in data.items() if key != "Idavidrein/gpqa"}
    gated, *others = eval_framework.load(["GPQA_OLMES", "GSM8K_OLMES"], data=some)
    assert isinstance(gated, Unavailable)
    assert gated.suite == "GPQA_OLMES"
    assert "gated" in gated.reason
    assert "HF_TOKEN" in gated.hint
    assert "https://huggingface.co/datasets/Idavidrein/gpqa" in gated.hint
    assert [(one.suite, one.split) for one in others if isinstance(one, Loaded)] == [
        ("GSM8K_OLMES", "test"), ("GSM8K_OLMES", "train"),
    ]  # fmt: skip


def test_an_unreachable_hub_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, bool]] = []
    failing(monkeypatch, ConnectionError("Couldn't reach 'x' on the Hub (ConnectError)"), calls)
    found = list(eval_framework.load(["GSM8K_OLMES", "GSM8KBPB", "MATHMinerva_OLMES", "ARC_DE"]))
    assert [one.suite for one in found] == ["GSM8K_OLMES", "GSM8KBPB", "MATHMinerva_OLMES", "ARC_DE"]
    for one in found:
        assert isinstance(one, Unavailable)
        assert "cannot be reached" in one.reason
        assert "HF_HUB_OFFLINE" in one.hint
    assert calls == [
        ("openai/gsm8k", False), ("EleutherAI/hendrycks_math", True), ("LeoLM/ArcChallenge_de", True),
    ]  # fmt: skip
    assert importlib.import_module("datasets").config.HF_HUB_OFFLINE is False


@pytest.mark.parametrize(
    ("kind", "message", "reason"),
    [
        (
            "DatasetNotFoundError", "Dataset 'x' doesn't exist on the Hub or cannot be accessed.",
            "there is no dataset LeoLM/ArcChallenge_de",
        ),
        (
            "DatasetNotFoundError", "Revision 'b' doesn't exist for dataset 'x' on the Hub.",
            "no revision 0e3e3c8804a5c8285d8e551512553f8bbfe710fe",
        ),
        ("DatasetGenerationError", "An error occurred while generating it", "cannot be loaded"),
    ],
)  # fmt: skip
def test_errors_of_the_hub_name_benchmark_and_remedy(
    monkeypatch: pytest.MonkeyPatch, kind: str, message: str, reason: str
) -> None:
    exceptions = importlib.import_module("datasets.exceptions")
    failing(monkeypatch, getattr(exceptions, kind)(message))
    (one,) = eval_framework.load(["ARC_DE"])
    assert isinstance(one, Unavailable)
    assert reason in one.reason
    assert str(one).startswith("ARC_DE: ")
    assert "local folder" in one.hint


@pytest.mark.parametrize(
    ("configs", "reason"),
    [
        ({"socratic": {"train": [made.GSM], "test": [made.GSM]}}, "no configuration main"),
        ({"main": {"train": [made.GSM]}}, "subject main, split test: there is none"),
        (
            {"main": {split: [{"frage": "Wie viele?", "antwort": "4"}] for split in ("train", "test")}},
            "subject main, split test, row 0: the task cannot read it (KeyError: 'question'); "
            "its fields: frage, antwort, subject",
        ),
        (
            {"main": {"train": [made.GSM], "test": [{"frage": "Wie viele?", "antwort": "4"}]}},
            "openai/gsm8k cannot be loaded",
        ),
    ],
    ids=["configuration", "split", "schema", "schema of a split"],
)  # fmt: skip
def test_changed_datasets(
    tmp_path: Path, configs: dict[str, Any], reason: str, data: dict[str, str]
) -> None:
    folders = made.write(tmp_path, {"openai/gsm8k": configs})
    found = list(eval_framework.load(["GSM8K_OLMES", "AIME2025"], data={**data, **folders}))
    failed = [one for one in found if isinstance(one, Unavailable)]
    assert {one.suite for one in failed} == {"GSM8K_OLMES"}
    assert reason in failed[0].reason
    assert failed[0].hint
    assert isinstance(found[-1], Loaded)
    assert found[-1].suite == "AIME2025"


def test_an_empty_split_is_no_clean_one(tmp_path: Path) -> None:
    """HLE's subset of native multiple choice has no rows here."""
    rows = [{**row, "answer_type": "exactMatch"} for row in made._german(test={})["test"]]
    folders = made.write(tmp_path, {"ellamind/hle-multilingual": {"deu": {"test": rows}}})
    whole, native = eval_framework.load(
        ["HLE_ELLAMIND_MC_DE", "HLE_ELLAMIND_MC_NATIVE_DE"], data=folders
    )
    assert isinstance(whole, Loaded)
    assert isinstance(native, Unavailable)
    assert native.reason == "subject deu, split test is empty"


def test_a_folder_whose_files_change_is_read_again(tmp_path: Path) -> None:
    """The cache of `datasets` knows a folder with `configs:` by its name, not by what is in it."""
    for answer in ("336", "337"):
        row = {**made.GSM, "answer": f"#### {answer}"}
        folders = made.write(tmp_path, {"openai/gsm8k": {"main": {"test": [row], "train": [row]}}})
        assert first(loaded(["GSM8K_OLMES"], data=folders), "GSM8K_OLMES")["answers"] == [answer]


def test_a_missing_folder_is_named() -> None:
    (one,) = eval_framework.load(["ARC_DE"], data={"LeoLM/ArcChallenge_de": "nowhere/arc"})
    assert isinstance(one, Unavailable)
    assert "no folder nowhere/arc" in one.reason


# Tasks that a user wrote as classes


@pytest.fixture
def own_tasks() -> Iterator[None]:
    """Two task classes in the registry: one with a styler, one that builds its prompt itself."""
    base = importlib.import_module("eval_framework.tasks.base")
    styles = importlib.import_module("eval_framework.tasks.task_style")
    registries = importlib.import_module("eval_framework.tasks.registry")

    class HarbourQuiz(base.BaseTask):  # type: ignore[name-defined, misc]
        NAME = "Harbour Quiz"
        DATASET_PATH = "me/harbour"
        SAMPLE_SPLIT = "test"
        FEWSHOT_SPLIT = "train"
        SUBJECTS = (("de", "tides"), ("fr", "ropes"))
        REVISION_LOCKFILE = None
        LANGUAGE = {"de": base.Language.DEU, "fr": base.Language.FRA}  # noqa: RUF012
        TASK_STYLER = styles.MCStyle()

        def _load_dataset(self, subject: Any) -> None:
            self.dataset = self._shuffle_splits(
                self._load_hf_dataset(path=self.DATASET_PATH, name=subject[0])
            )

        def _get_raw_question(self, item: dict[str, Any]) -> str:
            return str(item["q"])

        def _get_choices(self, item: dict[str, Any]) -> list[str]:
            return list(item["options"])

        def _get_correct_index(self, item: dict[str, Any]) -> int:
            return int(item["right"])

    class HarbourTalk(HarbourQuiz):
        NAME = "Harbour Talk"
        SUBJECTS = (("de", "tides"),)
        RESPONSE_TYPE = base.ResponseType.LOGLIKELIHOODS
        METRICS: list[Any] = []  # noqa: RUF012

        def _get_system_prompt_text(self, item: dict[str, Any]) -> str:
            return "You know every harbour."

        def _get_initial_prompt_text(self, item: dict[str, Any]) -> str:
            return "Here are questions about harbours."

        def _get_instruction_text(self, item: dict[str, Any]) -> str:
            options = "".join(f"({'ABC'[n]}) {option}\n" for n, option in enumerate(item["options"]))
            return f"Question about harbours: {item['q']}\n{options}Your choice:"

        def _get_cue_text(self, item: dict[str, Any]) -> str:
            return "Answer:"

        def _get_possible_completions(self, item: dict[str, Any]) -> list[str]:
            return [" A", " B", " C"]

        def _get_ground_truth(self, item: dict[str, Any]) -> str:
            return " " + "ABC"[item["right"]]

    talk = type("HarbourTalk", (HarbourTalk,), {})
    for hook in ("_get_raw_question", "_get_choices", "_get_correct_index"):
        setattr(talk, hook, getattr(base.BaseTask, hook))
    styler = HarbourQuiz.TASK_STYLER
    del HarbourQuiz.TASK_STYLER  # HarbourTalk has none
    quiz = type("HarbourQuiz", (HarbourQuiz,), {"TASK_STYLER": styler})
    with registries.with_registry(registries.Registry()):
        registries.register_task(quiz)
        registries.register_task(talk)
        yield


@pytest.mark.usefixtures("own_tasks")
def test_task_classes(tmp_path: Path, data: dict[str, str]) -> None:
    options = [["Ebbe", "Flut", "Wind"], ["Tau", "Anker", "Ruder"], ["Sog", "Gischt", "Dünung"]]
    rows = [{"q": f"Was hebt das Boot {n}?", "options": options[n], "right": n} for n in range(3)]
    made_up = {
        "me/harbour": {
            c: {"train": rows[:1], "test": rows, "validation": rows[1:]} for c in ("de", "fr")
        }
    }
    made_up["me/harbour"]["fr"]["test"] = rows[:2]
    found = loaded(["HarbourQuiz", "Harbour_Talk"], data=made.write(tmp_path, made_up))
    assert list(found) == [
        ("HarbourQuiz", "test"), ("HarbourQuiz", "train"), ("HarbourQuiz", "validation"),
        ("HarbourTalk", "test"), ("HarbourTalk", "train"), ("HarbourTalk", "validation"),
    ]  # fmt: skip
    quiz = found["HarbourQuiz", "test"].drafts
    assert [draft["item"] for draft in quiz][2:4] == ["('de', 'tides')/2", "('fr', 'ropes')/0"]
    assert [draft["language"] for draft in quiz] == ["de"] * 3 + ["fr"] * 2
    talk = found["HarbourTalk", "test"].drafts
    for drafts in (quiz, talk):
        assert [draft["question"] for draft in drafts[:3]] == [row["q"] for row in rows]
        assert [draft["answers"] for draft in drafts[:3]] == options
        assert [draft["correct"].index(True) for draft in drafts[:3]] == [0, 1, 2]


# Without the framework


def test_the_framework_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "eval_framework"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "eval_framework", None)
    with pytest.raises(MissingExtra, match="eval-framework is not installed"):
        next(eval_framework.load(["ARC"]))


def texts_of(render: Any, rows: list[dict[str, Any]]) -> list[eval_framework.Own]:
    return eval_framework.own_texts([render(row) for row in rows], rows, render)


def test_a_field_is_found_where_its_mark_comes_out() -> None:
    """Not where its value stands: the word "a" is everywhere."""

    def render(row: dict[str, Any]) -> str:
        return f"Question: what is a {row['what']}, said of a {row['of'].strip()}?\nAnswer:"

    rows = [{"what": "a", "of": " ship\n"}, {"what": "mast", "of": "a"}]
    assert [own.question for own in texts_of(render, rows)] == ["a\nship", "mast\na"]


def test_words_that_differ_between_rows_are_kept() -> None:
    """A number in the prompt is no text field: what stands around it is not a template."""

    def render(row: dict[str, Any]) -> str:
        return f"Add {row['n']} to what {row['who']} has."

    rows = [{"n": 4, "who": "Ada"}, {"n": 5, "who": "Kim"}]
    assert [own.question for own in texts_of(render, rows)] == [
        "Add 4 to what Ada has.",
        "Add 5 to what Kim has.",
    ]


def test_a_field_that_other_words_depend_on_is_left_in_its_text() -> None:
    def render(row: dict[str, Any]) -> str:
        return f"{row['q'].upper()} ({len(row['q'])} letters)"

    rows = [{"q": "boat"}, {"q": "mast!"}]
    assert [own.question for own in texts_of(render, rows)] == ["BOAT (4 letters)", "MAST! (5 letters)"]


def test_options_in_a_prompt_become_answers() -> None:
    def render(row: dict[str, Any]) -> str:
        return f"{row['q']}\n" + "".join(f" {'ABC'[n]}. {o}\n" for n, o in enumerate(row["options"]))

    rows = [{"q": "Which?", "options": ["B. or C.", "this\n C. one", "none"]}]
    (own,) = texts_of(render, rows)
    assert own == ("Which?", None, {"A": "B. or C.", "B": "this\n C. one", "C": "none"})
    asked = eval_framework.Asked(render(rows[0]), " B", [" A", " B", " C"])
    assert eval_framework.answers_of(asked, own.options) == (
        ["B. or C.", "this\n C. one", "none"], [False, True, False],
    )  # fmt: skip


def test_candidates_that_are_texts_are_options() -> None:
    asked = eval_framework.Asked("The cat sat on the", " mat", [" mat", " floor"])
    assert eval_framework.answers_of(asked, {}) == (["mat", "floor"], [True, False])
    letters = eval_framework.Asked("Which?", " B", [" A", " B"])
    assert eval_framework.answers_of(letters, {}) == (["B"], [True])


# The real files


@pytest.mark.data
def test_real_files(tmp_path: Path, data: dict[str, str]) -> None:
    folder = Path(os.environ["UNSEEN_DATA"]) / "benchmarks"

    def rows(name: str) -> list[dict[str, Any]]:
        with gzip.open(folder / name, "rt") as lines:
            return [json.loads(line) for line in lines]

    human, gsm, few = (
        rows("humaneval/test.jsonl.gz"),
        rows("gsm8k/test.jsonl.gz"),
        rows("gsm8k/train.jsonl.gz"),
    )
    folders = made.write(
        tmp_path,
        {
            "openai/openai_humaneval": {"openai_humaneval": {"test": human}},
            "openai/gsm8k": {"main": {"test": gsm, "train": few}},
        },
    )
    found = loaded([*HUMAN_EVAL, "GSM8K_OLMES", "GSM8KReasoning"], data={**data, **folders})
    for suite in HUMAN_EVAL:
        drafts = found[suite, "test"].drafts
        assert [draft["question"] for draft in drafts] == [row["prompt"].strip() for row in human]
        assert [draft["solution"] for draft in drafts] == [
            [row["canonical_solution"].rstrip()] for row in human
        ]
    for suite in ("GSM8K_OLMES", "GSM8KReasoning"):
        assert len(found[suite, "train"].drafts) == len(few)
        for draft, row in zip(found[suite, "test"].drafts, gsm, strict=True):
            assert draft["question"] == row["question"].strip()
            number = row["answer"].split("####")[1].strip().replace(",", "")
            assert draft["answers"][0].lstrip("-") == number.lstrip("-")  # GSM8K_OLMES drops the sign


def test_from_a_catalog_to_a_reference_set(data: dict[str, str], tmp_path: Path) -> None:
    from unseen import collect, refs
    from unseen.catalog import Entry

    entry = Entry.model_validate({"source": "eval-framework", "tasks": ["ARC", "HumanEval_OLMES"]})
    header = collect.collect({"ours": entry}, str(tmp_path / "REFS"), data=data)
    assert {row["suite"] for row in header["suites"]} == {
        "ARC", "HumanEval_OLMES", "HumanEval_OLMES/solution",
    }  # fmt: skip
    notes = {row["suite"]: row["notes"] for row in header["suites"]}
    assert notes["HumanEval_OLMES"][0].startswith("constant answer: every answer is 'Success'")
    items = refs.read_items([str(tmp_path / "REFS")]).to_pylist()
    assert all(item["answers"] == [] for item in items if item["suite"] == "HumanEval_OLMES")
