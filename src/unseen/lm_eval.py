"""Tasks of the installed lm-evaluation-harness to drafts of items.

In: names of tasks, groups or tags of the harness (patterns with * too), or `all`. Out: one `Loaded` for
each split of each task, or an `Unavailable` that says why there is none. The task's own `process_docs`,
`doc_to_text`, `doc_to_target` and `doc_to_choice` say what question, options and right answer are:

    arc_easy, test: {"question": "Which gas ...?", "answers": ["helium"], "correct": [true]}

What `doc_to_text` writes around a document ("Question: ", "Answer:", instructions, worked examples, the
letters of options) is no part of the question. To tell the two apart every text of a document is marked
with private-use characters before the task's function sees it: what stands between marks in the result
came from the document. Where the marks change the result (a function that compares texts), the
document's texts are looked for in the result instead.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import importlib
import logging
import random
import re
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from unseen.catalog import Draft, Loaded, Unavailable
from unseen.errors import BadSetting, MissingExtra

SPLITS = ("train", "validation", "test")
DATA_SUFFIXES = {".jsonl": "json", ".json": "json", ".parquet": "parquet", ".csv": "csv", ".tsv": "csv"}
# A field of one of these names, of at least so many characters, is a passage and not the question.
PASSAGE_NAMES = frozenset(
    re.findall(
        r"\w+",
        "passage passages context contexts article articles story support paragraph paragraphs "
        "document documents background abstract transcript evidence dialogue report",
    )
)
PASSAGE_CHARACTERS = 250
# Fields that say what a document is about: left out of a question that has other fields.
ABOUT_NAMES = frozenset(
    ["title", "subject", "subtopic", "topic", "category", "domain", "lang", "language", "level"]
)
ID_NAMES = ("id", "question_id", "task_id", "qid", "query_id", "uid", "problem_id")
ANSWER_NAMES = ("answers", "answer", "targets", "target", "solution", "output", "label")
LANGUAGES = frozenset(
    re.findall(
        r"\w+",
        "af am ar as az be bg bn bs ca cs cy da de el en es et eu fa fi fr ga gl gu ha he hi hr hu hy "
        "id ig is it ja jv ka kk km kn ko ky lo lt lv mk ml mn mr ms mt my ne nl no or pa pl ps pt ro "
        "ru rw si sk sl sn so sq sr st su sv sw ta te tg th tl tr uk ur uz vi wo xh yo zh zu",
    )
)
LABELS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

# ---- names to tasks ------------------------------------------------------------------------------


def load(
    names: Sequence[str],
    *,
    splits: Sequence[str] | None = None,
    data: Mapping[str, str] | None = None,
    include_path: str | None = None,
    few_shot: bool = False,
) -> Iterator[Loaded | Unavailable]:
    """Splits of the named tasks, groups and tags, in the order of the names; `all` is every task.

    `splits` keeps only these of train, validation and test (or the dataset's own names). `data` maps a
    dataset's path, or a task's name, to a local file or folder that takes its place. `include_path` is
    a folder with more task configurations. `few_shot` adds the split that only few-shot examples come
    from, as split `fewshot`. A task that cannot be loaded comes as Unavailable; the others go on.
    Raises MissingExtra without the harness, BadSetting for no names.
    """
    if isinstance(names, str) or not list(names):
        raise BadSetting("no task of lm-evaluation-harness is named", "give task names, or ['all']")
    harness = _module("lm_eval.tasks", "lm_eval")
    with _quiet():
        manager = harness.TaskManager(include_path=include_path)
    seen: set[str] = set()
    for name in _all_names(manager, names):
        for found in _members(manager, name, {}):
            if isinstance(found, Unavailable):
                yield found
            elif found.suite not in seen:
                seen.add(found.suite)
                yield from _load_task(found, splits=splits, data=data or {}, few_shot=few_shot)


def _module(name: str, package: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise MissingExtra(
            f"tasks of lm-evaluation-harness need the package {package} ({error})",
            "pip install 'lm_eval>=0.4.13' datasets",
        ) from error


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Around calls into the harness: its prints go to stderr, its warnings nowhere, its dice are fixed.

    And its templates are compiled once, not once for each document.
    """
    state, before = random.getstate(), logging.root.manager.disable
    environment = _module("lm_eval.utils", "lm_eval").env
    random.seed(1234)
    logging.disable(logging.WARNING)
    compile_template = environment.from_string
    environment.from_string = functools.lru_cache(256)(compile_template)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        environment.from_string = compile_template
        random.setstate(state)
        logging.disable(before)


class _Spec(NamedTuple):
    """A task to be built: its name and its whole configuration, or how to read that."""

    suite: str
    yaml_path: Path | None
    config: dict[str, Any]  # overrides of the file, or all of it


def _all_names(manager: Any, names: Sequence[str]) -> Iterator[str]:
    for name in names:
        if name == "all":
            yield from manager.all_subtasks
            yield from manager.all_groups  # for tasks that only a group defines
        elif "*" in name and (matches := manager.match_tasks([name])):
            yield from matches
        else:
            yield name


def _members(manager: Any, name: str, overrides: dict[str, Any]) -> Iterator[_Spec | Unavailable]:
    """Tasks that a name stands for."""
    entry = manager.task_index.get(name)
    if entry is None:
        yield _unknown(manager, name)
    elif entry.kind.name == "TAG":
        for task in sorted(entry.tags):
            yield from _members(manager, task, overrides)
    elif entry.kind.name == "GROUP":
        yield from _group_members(manager, name, entry, overrides)
    else:
        yield _Spec(
            name, entry.yaml_path, {**({} if entry.yaml_path else entry.cfg or {}), **overrides}
        )


def _group_members(
    manager: Any, name: str, entry: Any, overrides: dict[str, Any]
) -> Iterator[_Spec | Unavailable]:
    structural = _module("lm_eval.tasks._factory", "lm_eval").GROUP_FIELD_NAMES
    try:
        config = _read_config(name, entry.yaml_path) if entry.yaml_path else dict(entry.cfg or {})
    except Unavailable as error:
        yield error
        return
    own = {key: value for key, value in config.items() if key not in structural}
    yield from _listed(manager, name, config.get("task"), {**own, **overrides})


def _listed(
    manager: Any, group: str, members: Any, overrides: dict[str, Any]
) -> Iterator[_Spec | Unavailable]:
    """Members of a group: names, names with overrides, groups, or whole configurations."""
    for member in members if isinstance(members, list) else []:
        config = {"task": member} if isinstance(member, str) else dict(member)
        if "group" in config and config["group"] not in manager.task_index:
            yield from _listed(manager, f"{group}::{config['group']}", config.get("task"), overrides)
            continue
        name = config.pop("group", None) or config.pop("task", None)
        if name in manager.task_index:
            yield from _members(manager, name, {**overrides, **config})
        elif "dataset_path" in config or "dataset_path" in overrides:
            suite = f"{group}::{name}"
            yield _Spec(suite, None, {**overrides, **config, "task": suite})
        else:
            yield _unknown(manager, str(name), f" (named by the group {group})")


def _unknown(manager: Any, name: str, where: str = "") -> Unavailable:
    close = difflib.get_close_matches(name, manager.all_tasks, n=5, cutoff=0.6)
    return Unavailable(
        name,
        f"lm-evaluation-harness {_version()} has no task, group or tag of this name{where}",
        f"did you mean {', '.join(close)}?" if close else "`lm-eval ls tasks` lists them",
    )


def _version() -> str:
    from importlib.metadata import version

    return version("lm_eval")


# ---- a task to its splits ------------------------------------------------------------------------


def _load_task(
    spec: _Spec, *, splits: Sequence[str] | None, data: Mapping[str, str], few_shot: bool
) -> Iterator[Loaded | Unavailable]:
    try:
        config = {**_read_config(spec.suite, spec.yaml_path), **spec.config}
        config.setdefault("task", spec.suite)
        local = _local_data(spec.suite, config, data)
        task = _build(spec.suite, config, local)
        wanted = _wanted_splits(spec.suite, task, config, splits, few_shot)
    except Unavailable as error:
        yield error
        return
    for split, own_name in wanted:
        try:
            yield _load_split(spec.suite, task, config, split, own_name, local)
        except Unavailable as error:
            yield error


def _read_config(suite: str, path: Path | None) -> dict[str, Any]:
    """A task's configuration with its functions imported."""
    if path is None:
        return {}
    loader = _module("lm_eval.tasks._yaml_loader", "lm_eval")
    with _harness(suite, None), _quiet():
        config = dict(loader.load_yaml(path, resolve_func=False))
        for key in FUNCTION_KEYS:  # the others (metrics, filters) need packages that we do not
            value = config.get(key)
            if isinstance(value, str) and "\n" not in value and Path(value).is_absolute():
                if Path(value.rpartition(".")[0] + ".py").exists():
                    config[key] = loader._import_fun_from_str(value)
                else:  # a module of the harness, not a file beside the configuration
                    config[key] = loader.load_yaml(path, resolve_func=True)[key]
        return config


FUNCTION_KEYS = (
    "class",
    "custom_dataset",
    "process_docs",
    "doc_to_text",
    "doc_to_target",
    "doc_to_choice",
)


@contextlib.contextmanager
def _harness(suite: str, dataset: str | None) -> Iterator[None]:
    """Whatever the harness, the task's code or `datasets` raises becomes an Unavailable."""
    try:
        yield
    except Unavailable:
        raise
    except (Exception, SystemExit) as error:  # some tasks' modules leave the interpreter
        raise Unavailable(suite, *explain_failure(error, dataset)) from error


def explain_failure(error: BaseException, dataset: str | None) -> tuple[str, str]:
    """What an error in loading a dataset means, and what to do about it."""
    said = " ".join(str(error).split())[:300]
    names = {kind.__name__ for link in _chain(error) for kind in type(link).__mro__}
    all_said = " ".join(str(link) for link in _chain(error)).lower()
    what = f"dataset {dataset}" if dataset else "its dataset"
    local = "or give a local copy with `data`"
    if "GatedRepoError" in names or "gated" in all_said:
        page = f" at https://huggingface.co/datasets/{dataset}" if dataset else ""
        return f"{what} is gated", f"accept its terms{page} and set HF_TOKEN, {local}"
    if names & {"DatasetNotFoundError", "RepositoryNotFoundError"}:
        return f"{what} is not found ({said})", f"check the id; a private one needs HF_TOKEN; {local}"
    if "no longer supported" in all_said or "trust_remote_code" in all_said:
        return f"{what} needs remote code, which `datasets` does not run ({said})", (
            "convert it to Parquet once with datasets<4 and give that with `data`"
        )
    if isinstance(error, ImportError):
        package = (getattr(error, "name", None) or "the named package").split(".")[0]
        return f"its code needs {package} ({said})", f"pip install {package}"
    offline = {"OfflineModeIsEnabled", "ConnectionError", "LocalEntryNotFoundError", "ConnectError"}
    if names & offline or "couldn't reach" in all_said:
        return f"{what} is not in the cache and the hub cannot be reached", (
            f"load it once where there is a network, {local}"
        )
    if "BuilderConfig" in said or "Unknown split" in said:
        return f"{what} has another layout than the task expects ({said})", (
            f"use the harness's version that fits the dataset's revision, {local}"
        )
    return f"it cannot be loaded: {type(error).__name__}: {said}", (
        f"see that {what} has the fields that this version of the task expects, {local}"
    )


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _build(suite: str, config: dict[str, Any], local: dict[str, Any] | None) -> Any:
    """The harness's task object, without metrics, filters and few-shot examples."""
    api = _module("lm_eval.api.task", "lm_eval")
    config = {key: value for key, value in config.items() if key not in ("tag", "group", "task_list")}
    dataset = config.get("dataset_path")
    kind = config.get("class")
    with _harness(suite, dataset), _quiet():
        if kind is not None:
            kind = _reading_locally(kind, local) if local else kind
            takes_config = "config" in kind.__init__.__code__.co_varnames
            return kind(config=config) if takes_config else kind()
        config |= {
            "metric_list": None,
            "filter_list": None,
            "process_results": None,
            "fewshot_split": None,
            "num_fewshot": 0,
            "fewshot_config": {"samples": []},
        }
        if local:
            config |= {"dataset_path": local["path"], "dataset_name": local["name"]}
            config |= {"dataset_kwargs": local["kwargs"], "custom_dataset": None}
            _drop_missing_splits(suite, config, local)
        if not (config.get("test_split") or config.get("validation_split")):
            config["validation_split"] = config.get("training_split")
        return api.ConfigurableTask(
            config={**config, "dataset_kwargs": {**(config.get("dataset_kwargs") or {})}}
        )


def _reading_locally(kind: Any, local: dict[str, Any]) -> Any:
    """A task class that reads the local files in place of its dataset."""

    def download(self: Any, *args: Any, **kwargs: Any) -> None:
        self.dataset = _module("datasets", "datasets").load_dataset(
            local["path"], local["name"], **local["kwargs"]
        )

    return type(kind.__name__, (kind,), {"download": download, "__init__": kind.__init__})


SPLIT_KEYS = {"train": "training_split", "validation": "validation_split", "test": "test_split"}


def _drop_missing_splits(suite: str, config: dict[str, Any], local: dict[str, Any]) -> None:
    """Local files may hold only some of the splits that a task names."""
    held = local["kwargs"].get("data_files")
    if held is None:
        return
    kept = [key for key in SPLIT_KEYS.values() if config.get(key) in held]
    if not kept:
        asked = [config[key] for key in SPLIT_KEYS.values() if config.get(key)]
        raise Unavailable(
            suite,
            f"the local data has the splits {', '.join(held)} and the task asks for {', '.join(asked)}",
            "name the files after the task's splits: train.jsonl, validation.jsonl, test.jsonl ...",
        )
    config |= {key: None for key in SPLIT_KEYS.values() if key not in kept}


def _local_data(
    suite: str, config: Mapping[str, Any], data: Mapping[str, str]
) -> dict[str, Any] | None:
    """Arguments of `datasets.load_dataset` for a local copy, or None without one."""
    kind = config.get("class")
    dataset = config.get("dataset_path") or getattr(kind, "DATASET_PATH", None)
    place = data.get(suite) or data.get(str(dataset))
    if place is None:
        return None
    path, name = Path(place), config.get("dataset_name")
    if not path.exists():
        raise Unavailable(suite, f"its local data {place} does not exist", "correct the path in `data`")
    if path.is_dir() and name and (path / str(name)).is_dir():
        path, name = path / str(name), None
    if path.is_dir() and (path / "README.md").exists():  # the hub's own layout
        return {"path": str(path), "name": name, "kwargs": {}, "place": place}
    files: dict[str, list[str]] = {}
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        stem, suffix = _stem_and_suffix(file)
        if suffix in DATA_SUFFIXES:
            files.setdefault(stem, []).append(str(file))
    if not files:
        raise Unavailable(
            suite,
            f"{place} holds no data files",
            f"it needs files that end in {', '.join(DATA_SUFFIXES)}",
        )
    named = [config.get(key) for key in (*reversed(SPLIT_KEYS.values()), "fewshot_split")]
    if (
        path.is_file() and next(iter(files)) not in named
    ):  # one file of any name is the split evaluated on
        files = {next((n for n in named if n), "test"): [str(path)]}
    suffix = _stem_and_suffix(Path(next(iter(files.values()))[0]))[1]
    kwargs: dict[str, Any] = {"data_files": files}
    if suffix == ".tsv":
        kwargs["sep"] = "\t"
    return {"path": DATA_SUFFIXES[suffix], "name": None, "kwargs": kwargs, "place": place}


def _stem_and_suffix(file: Path) -> tuple[str, str]:
    """Split and format that a file's name tells: test-00000-of-00002.jsonl.gz gives test, .jsonl."""
    name = re.sub(r"\.(gz|zst|xz|bz2)$", "", file.name)
    stem, dot, suffix = name.rpartition(".")
    return re.sub(r"-\d+-of-\d+$", "", stem), dot + suffix


def _wanted_splits(
    suite: str, task: Any, config: Mapping[str, Any], splits: Sequence[str] | None, few_shot: bool
) -> list[tuple[str, str]]:
    """(split, the dataset's own name for it) of a task, each of the dataset's splits once."""
    found: dict[str, str] = {}
    for split in ("test", "validation", "train"):
        has = {
            "train": "has_training_docs",
            "validation": "has_validation_docs",
            "test": "has_test_docs",
        }
        if getattr(task, has[split])():
            own = str(getattr(task.config, SPLIT_KEYS[split], None) or split)
            if own not in found.values():
                found[split] = own
    pairs = [(split, found[split]) for split in SPLITS if split in found]
    if few_shot:
        shots = config.get("fewshot_split") or (config.get("fewshot_config") or {}).get("split")
        if shots and shots not in found.values() and shots in task.dataset:
            pairs.append(("fewshot", str(shots)))
    wanted = [pair for pair in pairs if splits is None or set(pair) & set(splits)]
    if not wanted:
        has_names = ", ".join(own for _, own in pairs) or "none"
        raise Unavailable(
            suite, f"it has none of the splits asked for (it has {has_names})", "ask for another"
        )
    return wanted


def _load_split(
    suite: str,
    task: Any,
    config: Mapping[str, Any],
    split: str,
    own_name: str,
    local: dict[str, Any] | None,
) -> Loaded:
    dataset = config.get("dataset_path") or getattr(task, "DATASET_PATH", None)
    process = getattr(task.config, "process_docs", None)
    raw: Any = None
    with _harness(suite, dataset), _quiet():
        if split == "fewshot":
            docs = task.dataset[own_name] if process is None else process(task.dataset[own_name])
        else:
            calls = {"train": "training_docs", "validation": "validation_docs", "test": "test_docs"}
            docs = getattr(task, calls[split])()
        docs = list(docs)
    if not docs:
        raise Unavailable(
            suite,
            f"its split {own_name} is empty",
            "load another revision of the dataset, or leave the split out with `splits`",
        )
    if process is not None:
        raw = task.dataset[own_name]
    drafts, counts = drafts_of(suite, task, docs, raw=raw)
    language = _language(suite, config)
    for draft in drafts:
        if language and not draft.get("language"):
            draft["language"] = language
    kwargs = config.get("dataset_kwargs") or {}
    facts = {
        "source": "lm-eval",
        "lm_eval": _version(),
        "task": suite,
        "version": getattr(task, "VERSION", None),
        "output_type": getattr(task, "OUTPUT_TYPE", None),
        "dataset_path": dataset,
        "dataset_name": config.get("dataset_name"),
        "revision": kwargs.get("revision"),
        "dataset_split": own_name,
        "documents": len(docs),
        **counts,
    }
    if local:
        facts["data"] = local["place"]
    return Loaded(suite, split, drafts, facts)


def _language(suite: str, config: Mapping[str, Any]) -> str | None:
    """The language, where both the dataset's configuration and the task's name say it."""
    code = str(config.get("dataset_name") or "").lower()
    return code if code in LANGUAGES and code in re.split(r"[_\W]+", suite.lower()) else None


# ---- documents to drafts -------------------------------------------------------------------------


class Piece(NamedTuple):
    """A stretch of a rendered text and the document's field that it came from; None: the template's."""

    text: str
    field: str | None


class Reading(NamedTuple):
    """What a task's functions say of one document."""

    text: str | int
    pieces: list[Piece]
    choices: list[str] | None
    choice_pieces: list[list[Piece]]
    target: Any


class BadDocument(Exception):
    """A function of the task fails on a document."""


def drafts_of(
    suite: str, task: Any, docs: Sequence[Any], *, raw: Any = None
) -> tuple[list[Draft], dict[str, int]]:
    """Drafts of the documents of one split, in order, and counts of what is special about them.

    `raw` are the dataset's rows before `process_docs`. Raises Unavailable for a document on which
    `doc_to_text` fails.
    """
    marked = _marked_through(task, docs, raw)
    readings: list[Reading] = []
    unlabelled = searched = 0
    try:
        with _quiet():
            for number, doc in enumerate(docs):
                reading, exact = _read(task, doc, marked[number] if marked else None)
                readings.append(reading)
                searched += not exact
    except BadDocument as error:
        raise Unavailable(
            suite,
            f"document {len(readings)}: {error}",
            "its fields are not those that this version of the task expects: use the revision of the "
            "dataset that fits, or another version of lm_eval",
        ) from error
    template = _template_texts(readings)
    passages = _passage_fields(readings)
    code = bool(getattr(task.config, "unsafe_code", False))
    rolling = getattr(task, "OUTPUT_TYPE", None) == "loglikelihood_rolling"
    drafts: list[Draft] = []
    for doc, reading in zip(docs, readings, strict=True):
        draft = _rolling(reading) if rolling else _draft(reading, doc, template, passages, code=code)
        drafts.append(draft)
        unlabelled += bool(draft["answers"]) and not any(draft["correct"])
    made = _made_columns(docs, raw)
    if searched or (made and not marked) or any(not _fields(r.pieces) for r in readings):
        _cut_shared_ends(drafts)
    _answers_from_fields(drafts, docs, readings)
    _add_ids(drafts, docs)
    counts = {"unlabelled": unlabelled} if unlabelled else {}
    if searched:
        counts["texts_searched"] = searched
    return drafts, counts


def _made_columns(docs: Sequence[Any], raw: Any) -> bool:
    """Does `process_docs` make fields that the dataset does not have?"""
    if raw is None or not docs or not isinstance(docs[0], Mapping):
        return False
    return bool(set(docs[0]) - set(getattr(raw, "column_names", None) or []))


def _marked_through(task: Any, docs: Sequence[Any], raw: Any) -> list[Any] | None:
    """Marked rows sent through `process_docs`, one for each document; None where that changes them.

    Fields that `process_docs` puts together hold template text as well; marks on the dataset's own
    fields show it.
    """
    if not _made_columns(docs, raw):
        return None
    datasets = importlib.import_module("datasets")
    rows = list(raw)
    for short in (True, False):
        try:
            with _quiet():
                marked_rows = [_mark(row, short=short) for row in rows]
                marked = _call("a copy of the rows", datasets.Dataset.from_list, marked_rows)
                out = _call("process_docs", task.config.process_docs, marked)
                out = list(out)
        except BadDocument:
            continue
        if len(out) == len(docs) and all(
            _unmark(ours) == _plain(theirs) for ours, theirs in zip(out, docs, strict=True)
        ):
            return out
    return None


def _call(name: str, function: Callable[..., Any], *args: Any) -> Any:
    try:
        return function(*args)
    except Exception as error:
        said = " ".join(str(error).split())[:200]
        raise BadDocument(f"{name} fails with {type(error).__name__}: {said}") from error


def _read(task: Any, doc: Any, marked: Any) -> tuple[Reading, bool]:
    """What the task says of a document, and whether marks told its pieces apart."""
    text = _call("doc_to_text", task.doc_to_text, doc)
    text = text if isinstance(text, int) else _as_text(text)
    choices: list[str] | None = None
    if getattr(task.config, "doc_to_choice", None) is not None:
        choices = [_as_text(choice) for choice in _call("doc_to_choice", task.doc_to_choice, doc)]
    try:
        target = _call("doc_to_target", task.doc_to_target, doc)
    except BadDocument:  # test sets keep their answers to themselves
        target = None
    pieces: list[Piece] = []
    exact = True
    if isinstance(text, str):
        pieces, exact = _pieces(task.doc_to_text, text, doc, marked)
    choice_pieces: list[list[Piece]] = []
    if choices and isinstance(text, str) and not text.strip():
        choice_pieces = _pieces_of_choices(task, choices, doc, marked)
    return Reading(text, pieces, choices, choice_pieces, target), exact


def _as_text(value: Any) -> str:
    """A rendered text; of a conversation the last turn of the user."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return _as_text(value.get("content") or value.get("text") or "")
    if isinstance(value, list | tuple):
        turns = [turn for turn in value if isinstance(turn, Mapping) and turn.get("role") == "user"]
        return _as_text(turns[-1]) if turns else "\n".join(_as_text(part) for part in value)
    return "" if value is None else str(value)


# ---- marks ---------------------------------------------------------------------------------------

FIRST_MARK, LAST_MARK = 0xF0000, 0xFFFFD  # supplementary private use area A: a mark's code is its field
END_MARK = "\U0010fffd"
MARK = re.compile(f"[{chr(FIRST_MARK)}-{chr(LAST_MARK)}{END_MARK}]")


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """(path, text) of every text in a document."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _leaves(inner, path)


def _mark(doc: Any, *, short: bool) -> Any:
    """The document with a mark after the first and before the last character of each text.

    So that `strip`, `capitalize` and `[:-1]` do as they would without. Numbers, single characters and
    written-out structures stay as they are; without `short`, single short words too.
    """
    number = -1

    def walk(value: Any) -> Any:
        nonlocal number
        if isinstance(value, Mapping):
            return {key: walk(inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [walk(inner) for inner in value]
        if not isinstance(value, str):
            return value
        number += 1
        text = value.strip()
        if len(text) < 2 or text[0] in "[{" or not re.search(r"[^\W\d_]", text):
            return value
        if not short and " " not in text and len(text) < 24:
            return value
        if FIRST_MARK + number > LAST_MARK:
            return value
        at = value.index(text)
        return (
            value[:at]
            + text[0]
            + chr(FIRST_MARK + number)
            + text[1:-1]
            + END_MARK
            + text[-1]
            + value[at + len(text) :]
        )

    return walk(doc)


def _unmark(value: Any) -> Any:
    if isinstance(value, str):
        return MARK.sub("", value)
    if isinstance(value, Mapping):
        return {key: _unmark(inner) for key, inner in value.items()}
    return [_unmark(inner) for inner in value] if isinstance(value, list | tuple) else value


def _plain(value: Any) -> Any:
    """Tuples as lists, as `_unmark` gives them."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value


def _pieces(render: Callable[[Any], Any], text: str, doc: Any, marked: Any) -> tuple[list[Piece], bool]:
    """The rendered text cut into what came from the document and what did not, and: was that exact?"""
    for candidate in (marked, _mark(doc, short=True), _mark(doc, short=False)):
        if candidate is None:
            continue
        try:
            out = _as_text(_call("doc_to_text", render, candidate))
        except BadDocument:
            continue
        if MARK.sub("", out) == text:
            return _marked_pieces(out, _fields_by_number(candidate)), True
    return _searched_pieces(text, doc), False


def _fields_by_number(marked: Any) -> dict[str, tuple[str, str]]:
    """For each mark of a document: its field and the field's text."""
    fields: dict[str, tuple[str, str]] = {}
    for path, text in _leaves(marked):
        for found in MARK.finditer(text):
            if found.group() != END_MARK:
                fields.setdefault(
                    found.group(), (path, MARK.sub("", _own_stretch(text, found.start())))
                )
    return fields


def _own_stretch(text: str, mark: int) -> str:
    """The text that one mark opens, with the characters before it and after its end."""
    end = text.find(END_MARK, mark)
    return text[max(0, mark - 1) : end + 2 if end >= 0 else len(text)]


def _marked_pieces(out: str, fields: Mapping[str, tuple[str, str]]) -> list[Piece]:
    marks = [(found.start() - count, found.group()) for count, found in enumerate(MARK.finditer(out))]
    text = MARK.sub("", out)
    spans: list[tuple[int, int, str]] = []
    for number, (at, mark) in enumerate(marks):
        if mark == END_MARK or mark not in fields:
            continue
        field, value = fields[mark]
        value = value.strip()
        start = at - 1 if at and text[at - 1].lower() == value[:1].lower() else at
        if number + 1 < len(marks) and marks[number + 1][1] == END_MARK:
            end = marks[number + 1][0]
            end += end < len(text) and text[end].lower() == value[-1:].lower()
        else:  # its end was cut off
            end = start
            while end < len(text) and end - start < len(value) and text[end] == value[end - start]:
                end += 1
        spans.append((start, end, field))
    return _cut(text, spans)


def _searched_pieces(text: str, doc: Any) -> list[Piece]:
    """The document's texts looked for in the rendered one, the longest first."""
    spans: list[tuple[int, int, str]] = []
    for field, value in sorted(_leaves(doc), key=lambda leaf: -len(leaf[1])):
        value = value.strip()
        for wanted in (value, value.rstrip(".?!")):
            at = text.find(wanted) if len(wanted) > 3 else -1
            while at >= 0 and any(at < end and start < at + len(wanted) for start, end, _ in spans):
                at = text.find(wanted, at + 1)
            if at >= 0:
                spans.append((at, at + len(wanted), field))
                break
    return _cut(text, spans)


def _cut(text: str, spans: Iterable[tuple[int, int, str]]) -> list[Piece]:
    pieces, done = [], 0
    for start, end, field in sorted(spans):
        start = max(start, done)
        if end <= start:
            continue
        if start > done:
            pieces.append(Piece(text[done:start], None))
        pieces.append(Piece(text[start:end], field))
        done = end
    return [*pieces, Piece(text[done:], None)] if done < len(text) else pieces


def _pieces_of_choices(task: Any, choices: Sequence[str], doc: Any, marked: Any) -> list[list[Piece]]:
    """Pieces of each choice, for tasks that put the whole question into the choices."""
    for candidate in (marked, _mark(doc, short=True), _mark(doc, short=False)):
        if candidate is None:
            continue
        try:
            out = [_as_text(c) for c in _call("doc_to_choice", task.doc_to_choice, candidate)]
        except BadDocument:
            continue
        if [MARK.sub("", c) for c in out] == list(choices):
            fields = _fields_by_number(candidate)
            return [_marked_pieces(c, fields) for c in out]
    return [_searched_pieces(choice, doc) for choice in choices]


# ---- pieces to a draft ---------------------------------------------------------------------------


def _fields(pieces: Iterable[Piece]) -> list[Piece]:
    return [piece for piece in pieces if piece.field is not None and _has_word(piece.text)]


def _has_word(text: str) -> bool:
    return bool(re.search(r"[^\W_]", text))


def _template_texts(readings: Sequence[Reading]) -> set[str]:
    """Stretches between fields that many documents share: the template's, not the document's.

    At least two documents and one in two hundred; with a single document every stretch.
    """
    count: Counter[str] = Counter()
    for reading in readings:
        count.update({piece.text.strip() for piece in reading.pieces if piece.field is None})
    enough = max(2, len(readings) / 200) if len(readings) > 1 else 1
    return {text for text, times in count.items() if times >= enough}


def _passage_fields(readings: Sequence[Reading]) -> set[str]:
    """Fields that hold a passage: by their name, and long in half of the documents."""
    lengths: dict[str, list[int]] = {}
    for reading in readings:
        here: Counter[str] = Counter()
        for piece in reading.pieces:
            if piece.field and PASSAGE_NAMES & set(piece.field.lower().split(".")):
                here[piece.field] += len(piece.text)
        for field, length in here.items():
            lengths.setdefault(field, []).append(length)
    return {f for f, known in lengths.items() if statistics.median(known) >= PASSAGE_CHARACTERS}


def _rolling(reading: Reading) -> Draft:
    """Of a perplexity task the document itself is the question."""
    text = _as_text(reading.target) or _as_text(reading.text)
    return {"question": text.strip(), "answers": [], "correct": []}


def _draft(reading: Reading, doc: Any, template: set[str], passages: set[str], *, code: bool) -> Draft:
    if isinstance(reading.text, int):
        return _with_solution(_multiple_inputs(reading, doc), doc)
    answers, correct = _answers(reading)
    pieces = reading.pieces
    labels = _labels(answers)
    if labels:
        options, pieces = _options(pieces, labels, doc)
        if options:
            answers, correct = _resolved(options, labels, correct, reading)
    elif len(answers) > 1:
        _, pieces = _options(pieces, LABELS[: len(answers)], doc, least=len(answers))
    known = {answer.strip() for answer in answers}
    kept = [p for p in pieces if p.field is None or p.text.strip() not in known]
    if code:  # tests that are shown and asked for
        kept = [p for p in kept if p.field is None or not any(p.text.strip() in a for a in known)]
    pieces = kept if _fields(kept) or not _fields(pieces) else pieces
    told = [piece for piece in pieces if not _is_about(piece)]
    pieces = told if _fields(told) else pieces
    passage = None
    rest = [Piece("\n", None) if piece.field in passages else piece for piece in pieces]
    if len(rest) > 1 and _has_word(_joined(rest, template, some=True)):
        passage = "\n".join(p.text.strip() for p in pieces if p.field in passages) or None
        pieces = rest
    question = _joined(pieces, template, some=bool(passage))
    if not _has_word(question):
        question, answers = _from_choices(reading, answers, correct)
    draft: Draft = {"question": question, "answers": answers, "correct": correct}
    if passage:
        draft["passage"] = passage
    return _with_solution(draft, doc)


# A question with its answer before the one that is asked, as RACE shows them.
WORKED_TURN = re.compile(r"(?:^|\n)\s*(?:question|q):[^\n]*\n+\s*(?:answer|a):[ \t]*\S[^\n]*\n+", re.I)


def _is_about(piece: Piece) -> bool:
    return piece.field is not None and piece.field.lower().rpartition(".")[2] in ABOUT_NAMES


def _joined(pieces: Sequence[Piece], template: set[str], *, some: bool = False) -> str:
    """The question: the fields, and between them what is not the template's.

    Without any field (`some` says that there was one) the template's text stays.
    """
    parts: list[str] = []
    some = some or bool(_fields(pieces))
    for piece in pieces:
        text = piece.text
        if piece.field is None and some and text.strip() in template and _has_word(text):
            text = "\n"
        if piece.field is not None or _has_word(text):
            parts.append(text)
        elif parts and not (parts[-1].endswith("\n") and text.startswith("\n")):
            parts.append(re.sub(r"\s*\n\s*", "\n", text))
    text = "".join(parts)
    end = pieces[-1].text if pieces and pieces[-1].field is None and some else ""
    if end and not _has_word(end) and text.endswith(end):
        text = text[: -len(end)]
    asked = WORKED_TURN.sub("\n", text).strip()
    return asked if _has_word(asked) else text.strip()


def _answers(reading: Reading) -> tuple[list[str], list[bool]]:
    """Options or reference answers, and which are right; all wrong means: it is not known."""
    target = reading.target
    if reading.choices:
        right = _right_ones(reading.choices, target)
        answers = [choice.strip() for choice in reading.choices]
        return answers, [number in right for number in range(len(answers))]
    if target is None or isinstance(target, bool | int | float):
        known = [str(target)] if isinstance(target, float) else []
    elif isinstance(target, list | tuple):
        known = [_as_text(part).strip() for part in target]
    else:
        known = [_as_text(target).strip()]
    known = list(dict.fromkeys(answer for answer in known if answer))
    return known, [True] * len(known)


def _right_ones(choices: Sequence[str], target: Any) -> set[int]:
    """Indices of the right choices: the target is an index, a choice's text, or a list of these."""
    if isinstance(target, list | tuple):
        if len(target) == len(choices) and all(isinstance(t, bool) for t in target):
            return {number for number, right in enumerate(target) if right}
        return {number for part in target for number in _right_ones(choices, part)}
    if isinstance(target, int | float):  # bool too: label true of ["no", "yes"]
        return {int(target)} if 0 <= int(target) < len(choices) else set()
    text = _as_text(target).strip() if target is not None else ""
    plain = [choice.strip() for choice in choices]
    if text in plain:
        return {plain.index(text)}
    bare = [re.sub(r"\W", "", choice).lower() for choice in plain]
    if re.sub(r"\W", "", text) and re.sub(r"\W", "", text).lower() in bare:
        return {bare.index(re.sub(r"\W", "", text).lower())}
    return {int(text)} if text.isdigit() and int(text) < len(choices) else set()


def _labels(answers: Sequence[str]) -> str:
    """The letters of answers that are nothing but option letters: "(A)", "B." gives "AB"; else "".

    A lone right letter, as generating tasks have it, stands for the row of letters up to J.
    """
    bare = [re.sub(r"[\W_]", "", answer) for answer in answers]
    if not bare or not all(len(label) == 1 for label in bare) or len(set(bare)) < len(bare):
        return ""
    if bare == list("".join(bare)) and (len(bare) > 1 and not set(bare) - set(LABELS[: len(bare)])):
        return "".join(bare)
    if all(label in LABELS[:10] for label in bare) and len(bare) <= 3:
        return LABELS[:10]
    return "".join(bare) if len(bare) > 1 else ""


def _marker(label: str, *, line: bool) -> re.Pattern[str]:
    """An option's letter as lists show it: "(A)", "A.", "A)"; with `line` only at a line's start."""
    start = r"(?:^|(?<=\n))[ \t]*" if line else r"(?:^|(?<=[\s(\[（]))"
    return re.compile(rf"{start}[(\[（]?{re.escape(label)}\s?[.):\]）．、]")


def _own_lists(doc: Any) -> Iterator[list[str]]:
    """Lists of texts in a document."""
    if isinstance(doc, Mapping):
        for inner in doc.values():
            yield from _own_lists(inner)
    elif isinstance(doc, list | tuple):
        texts = [inner.strip() for inner in doc if isinstance(inner, str)]
        if len(texts) == len(doc):
            yield texts
        else:
            for inner in doc:
                yield from _own_lists(inner)


def _options(
    pieces: list[Piece], labels: str, doc: Any, least: int = 2
) -> tuple[list[str], list[Piece]]:
    """Options that the text lists behind the letters, and the pieces without that list.

    A list of the document itself that stands there is taken as it is; else what stands between the
    letters. None where fewer than `least` letters follow each other.
    """
    text = "".join(piece.text for piece in pieces)
    ends = _piece_ends(pieces)
    own = [o for o in _own_lists(doc) if least <= len(o) <= len(labels) and all(o)]
    for line in (True, False):
        for first in reversed(list(_marker(labels[0], line=line).finditer(text))):
            for options in own:
                stop = _end_of_own(text, first.start(), options, labels, line=line)
                if stop:
                    return options, _without(pieces, _opened(text, first.start()), stop)
            found = [first]
            for label in labels[1:]:
                following = _marker(label, line=line).search(text, found[-1].end())
                if following is None:
                    break
                found.append(following)
            if len(found) < least:
                continue
            stops = [match.start() for match in found[1:]]
            stops.append(_end_of_option(text, found[-1].end(), ends))
            spans = zip(found, stops, strict=True)
            options = [text[match.end() : stop].strip().rstrip("(").strip() for match, stop in spans]
            if all(options):
                return options, _without(pieces, _opened(text, first.start()), stops[-1])
    return [], pieces


def _opened(text: str, at: int) -> int:
    return at - (text[max(0, at - 1) : at] in tuple("([（"))


def _end_of_own(text: str, at: int, options: list[str], labels: str, *, line: bool) -> int:
    """Where a list ends that shows just these options behind their letters; 0 if none starts here."""
    for label, option in zip(labels, options, strict=False):
        marker = _marker(label, line=line).search(text, at)
        if marker is None or not text[marker.end() :].lstrip().startswith(option):
            return 0
        at = text.index(option, marker.end()) + len(option)
    return at


def _piece_ends(pieces: Sequence[Piece]) -> dict[int, int]:
    """For each position where a field begins: where it ends."""
    ends, at = {}, 0
    for piece in pieces:
        if piece.field is not None:
            ends[at] = at + len(piece.text)
        at += len(piece.text)
    return ends


def _end_of_option(text: str, at: int, ends: Mapping[int, int]) -> int:
    """Where the last option ends: with its field, else with its line."""
    at += len(text[at:]) - len(text[at:].lstrip(" "))
    if at in ends:
        return ends[at]
    line = text.find("\n", at)
    return line if line >= 0 else len(text)


LIST_HEAD = re.compile(
    r"(?:^|\n)\s*[^\n.?!]{0,40}(?:options?|choices|answers?|alternatives?)\s*:?\s*$", re.I
)


def _without(pieces: Sequence[Piece], start: int, stop: int) -> list[Piece]:
    """The pieces without the characters from start to stop, and without the list's heading."""
    kept, at = [], 0
    for number, piece in enumerate(pieces):
        before = piece.text[: max(0, start - at)]
        after = piece.text[max(0, stop - at) :] if at + len(piece.text) > stop else ""
        if before and len(before) < len(piece.text):
            before = LIST_HEAD.sub("", before)
        if at + len(piece.text) > stop and piece.field is None and not _fields(pieces[number:]):
            after = ""  # "Answer:" and the like
        kept += [Piece(part, piece.field) for part in dict.fromkeys((before, after)) if part]
        at += len(piece.text)
    return kept


def _resolved(
    options: list[str], labels: str, correct: list[bool], reading: Reading
) -> tuple[list[str], list[bool]]:
    """The options' texts in place of their letters."""
    if reading.choices:
        marks = (correct + [False] * len(options))[: len(options)]
        return options, marks
    targets = reading.target if isinstance(reading.target, list | tuple) else [reading.target]
    right = {re.sub(r"[\W_]", "", _as_text(target)) for target in targets}
    return options, [label in right for label in labels[: len(options)]]


def _multiple_inputs(reading: Reading, doc: Any) -> Draft:
    """A task whose choices are the contexts and whose target continues them, as in WinoGrande.

    The question is the document's own sentence with the blank, where it has one.
    """
    choices = reading.choices or []
    before, after = _shared_ends(choices)
    rest = (after + " " + _as_text(reading.target)).strip()
    question = f"{before.strip()} _ {rest}".strip()
    for _, text in _leaves(doc):
        head, blank, _ = text.strip().partition("_")
        if blank and text.strip().endswith(rest) and before.strip().startswith(head.strip()):
            question, before = text.strip(), head.strip()
        elif (
            text.strip().startswith(before.strip())
            and text.strip().endswith(rest)
            and len(text) > len(question) - 2
        ):
            question = text.strip()
    options = [choice[len(before) : len(choice) - len(after)].strip() for choice in choices]
    right = reading.text if isinstance(reading.text, int) else -1
    return {
        "question": question,
        "answers": options,
        "correct": [number == right for number in range(len(options))],
    }


def _shared_ends(texts: Sequence[str]) -> tuple[str, str]:
    """Words with which all texts begin, and with which all end, apart from each other."""
    if len(texts) < 2:
        return "", ""
    lists = [re.findall(r"\S+\s*", text) for text in texts]
    least = min(len(words) for words in lists) - 1  # at least one word is each text's own
    front = 0
    while front < least and len({words[front].strip() for words in lists}) == 1:
        front += 1
    back = 0
    while back < least - front and len({words[-1 - back].strip() for words in lists}) == 1:
        back += 1
    return "".join(lists[0][:front]), "".join(lists[0][len(lists[0]) - back :])


def _from_choices(reading: Reading, answers: list[str], correct: list[bool]) -> tuple[str, list[str]]:
    """The question of a task that shows nothing but its choices.

    Fields that all choices hold (premise and hypothesis) are the question, and what differs is the
    answer; else (a good and a bad sentence) the right choice is the question itself.
    """
    sets = [{(p.field, p.text) for p in _fields(pieces)} for pieces in reading.choice_pieces]
    shared = set.intersection(*sets) if sets else set()
    if shared and len(answers) > 1:
        question = "\n".join(
            p.text.strip() for p in reading.choice_pieces[0] if (p.field, p.text) in shared
        )
        own = [
            " ".join(p.text.strip() for p in pieces if (p.field, p.text) not in shared)
            for pieces in reading.choice_pieces
        ]
        own = [re.sub(r"^\W+|[\s,;:]+$", "", text) for text in own]
        before, after = _shared_ends(own)
        own = [text[len(before) : len(text) - len(after)].strip(" ,;:") for text in own]
        return question, own if all(own) else answers
    right = [answer for answer, is_right in zip(answers, correct, strict=True) if is_right]
    question = (right or answers or [""])[0]
    return question or _as_text(reading.text).strip(), answers


def _with_solution(draft: Draft, doc: Any) -> Draft:
    solution = doc.get("canonical_solution") if isinstance(doc, Mapping) else None
    if isinstance(solution, str) and solution.strip():
        draft["solution"] = [solution]
    return draft


# ---- what only all documents together show -------------------------------------------------------


def _cut_shared_ends(drafts: Sequence[Draft]) -> None:
    """Takes off what all questions of a split begin and end with, up to a colon or a line's end."""
    questions = [draft["question"] or "" for draft in drafts]
    if len(set(questions)) < 2:
        return
    low, high = min(questions), max(questions)
    front = next(
        (i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), min(len(low), len(high))
    )
    front = max(low.rfind(":", 0, front), low.rfind("\n", 0, front)) + 1
    turned = sorted(question[front:][::-1] for question in questions)
    low, high = turned[0], turned[-1]
    back = next(
        (i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), min(len(low), len(high))
    )
    back = low.rfind("\n", 0, back) + 1
    for draft, question in zip(drafts, questions, strict=True):
        cut = question[front : len(question) - back].strip()
        draft["question"] = cut or question


def _answers_from_fields(
    drafts: Sequence[Draft], docs: Sequence[Any], readings: Sequence[Reading]
) -> None:
    """Where every document has the same target (DROP's template names no field), a field tells."""
    targets = {str(reading.target) for reading in readings}
    if len(drafts) < 3 or len(targets) > 1 or any(reading.choices for reading in readings):
        return
    for draft, doc in zip(drafts, docs, strict=True):
        if not isinstance(doc, Mapping):
            return
        for name in ANSWER_NAMES:
            texts = [text.strip() for _, text in _leaves(doc.get(name)) if text.strip()]
            if texts:
                draft["answers"] = list(dict.fromkeys(texts))
                draft["correct"] = [True] * len(draft["answers"])
                break


def _add_ids(drafts: Sequence[Draft], docs: Sequence[Any]) -> None:
    """The documents' own ids, where every one has another."""
    for name in ID_NAMES:
        ids = [doc.get(name) if isinstance(doc, Mapping) else None for doc in docs]
        texts = {str(i) for i in ids if isinstance(i, str | int) and not isinstance(i, bool) and str(i)}
        if len(texts) == len(docs):
            for draft, own in zip(drafts, ids, strict=True):
                draft["item"] = str(own)
            return
