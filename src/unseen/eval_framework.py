"""Aleph Alpha's `eval-framework` as a source: the items of the benchmarks in its registry.

In: names of the registry. Out: `Loaded` splits, one suite a name; an item of a subject is called
SUBJECT/ROW, ROW counted from 0 in the source's order, after the benchmark's own filter of rows.

The framework's own objects say what is asked: its reader of choices (`ChoiceReader`, or
`_get_raw_question`, `_get_choices` and `_get_correct_index` of a task class) where it has one, else the
user's turn and the ground truth of its samples. System prompt, few-shot turns, the preamble and the
answer's cue never come in. What a prompt puts around the fields of a row is found by putting marks in
their place:

    Question: {question}\\n                          the question is {question}
    Background: {context}\\nQuestion: {question}     {context} is the passage
    Frage: {question}\\nA. {option_a}\\nB. ...         the options are answers

Words between the fields are left out where all rows of a subject have the same ones. A code benchmark's
reference solution is a `solution`, and no answer. Nothing is ever executed that a dataset brings along.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib
import importlib.metadata
import itertools
import os
import random
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from unseen.catalog import Draft, Loaded, Unavailable
from unseen.errors import MissingExtra

Row = dict[str, Any]
Path = tuple[str | int, ...]

USUAL_SPLITS = ("train", "validation", "test")
HUB = "https://huggingface.co/datasets/"

MARK = "\ue000\ue001\ue002"  # private code points: no case, no space, no letter
PROBED = 50  # first rows of a subject, on which all fields are tried
PASSAGES = {"passage", "passage_original", "context", "background", "article", "paragraph", "story"}
HEADINGS = {"title"}
LABELS = ("label", "answer", "answerKey", "answer_key", "answer_index")
STAND_INS: tuple[str | int, ...] = ("1", "2", "A", "B", 0, 1)
OPTION_LABEL = re.compile(r"(?:^|\n)[ \t]*[\[(]?([A-Z])[\]).:]{1,2}[ \t]*$")
LETTER = re.compile(r"[\[(]?([A-Z])[\]).:]?", re.A)

# what a function of the framework raises on a row with marks instead of text
UNFIT = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    SyntaxError,
    TypeError,
    ValueError,
)


class Slice(NamedTuple):
    """One subject of a benchmark, or all of it: its rows by split, and how a row is read."""

    label: str  # "" for a benchmark without subjects
    subject: Any  # as the framework has it
    language: str | None
    splits: Sequence[str]
    rows: Callable[[str], Iterator[Row]]


class Opened(NamedTuple):
    """A benchmark whose data is there."""

    name: str
    sample_split: str
    fewshot_split: str | None
    slices: list[Slice]
    drafts: Callable[[Slice, list[Row]], list[Draft]]
    facts: dict[str, Any]


class Piece(NamedTuple):
    """A field of a row in a text: where it stands, and which it is."""

    start: int
    end: int
    path: Path


def load(
    names: Sequence[str],
    *,
    splits: Sequence[str] | None = None,
    data: Mapping[str, str] | None = None,
) -> Iterator[Loaded | Unavailable]:
    """The splits of benchmarks of the registry, or of `all`; one that fails does not stop the others.

    splits: those to load; by default the one with the samples, the one with the few-shot examples, and
    train, validation and test where the dataset has them. data: {dataset id: local folder in the hub's
    layout}. Raises MissingExtra without eval-framework. Not for several threads at once.
    """
    known = {key_of(name): benchmark for name, benchmark in benchmarks().items()}
    wanted = list(known) if "all" in names else [key_of(name) for name in names]
    given = dict(zip(wanted, names, strict=False))
    with tempfile.TemporaryDirectory(prefix="unseen-", ignore_cleanup_errors=True) as cache:
        hub = Hub(dict(data or {}), cache)
        for key in dict.fromkeys(wanted):
            if key in known:
                yield from _loaded(known[key], splits, hub)
            else:
                yield unknown(given[key], known)


def benchmarks() -> dict[str, Any]:
    """The registry: benchmarks by name, those that a program has registered itself among them."""
    try:
        with contextlib.redirect_stdout(sys.stderr):  # one of its modules prints while it is imported
            registries = importlib.import_module("eval_framework.tasks.registry")
            names = importlib.import_module("eval_framework.tasks.task_names")
    except ImportError as error:
        raise MissingExtra(
            f"eval-framework is not installed, or not whole ({error})",
            "pip install 'unseen[eval-framework]', with Python 3.12 or newer",
        ) from error
    own = registries.Registry()
    names.register_all_tasks(own)
    return {**dict(registries.registry().items()), **dict(own.items())}


def version() -> str:
    """Of the installed eval-framework."""
    return importlib.metadata.version("eval-framework")


def key_of(name: str) -> str:
    """What the framework makes of a name: case, spaces, `-` and `_` do not count."""
    return re.sub(r"[\s\-_]+", "", name).upper()


def unknown(name: str, known: Mapping[str, Any]) -> Unavailable:
    """No benchmark has this name; those that have one like it. known: benchmarks by key."""
    close = [known[key].id() for key in difflib.get_close_matches(key_of(name), known, 3)]
    hint = f"did you mean {', '.join(close)}?" if close else "see its registry, or say `all`"
    return Unavailable(name, f"eval-framework {version()} has no benchmark of this name", hint)


def _loaded(benchmark: Any, splits: Sequence[str] | None, hub: Hub) -> Iterator[Loaded | Unavailable]:
    try:
        opened = open_benchmark(benchmark, hub)
        wanted = wanted_splits(opened, splits)
    except Unavailable as error:
        yield error
        return
    for split in wanted:
        try:
            yield read_split(opened, split)
        except Unavailable as error:
            yield error


def wanted_splits(opened: Opened, splits: Sequence[str] | None) -> list[str]:
    """The splits to read, the one with the samples first."""
    if splits:
        return list(dict.fromkeys(splits))
    there = {split for part in opened.slices for split in part.splits}
    usual = [split for split in USUAL_SPLITS if split in there]
    own = [opened.sample_split, opened.fewshot_split]
    return list(dict.fromkeys(split for split in [*own, *usual] if split))


def read_split(opened: Opened, split: str) -> Loaded:
    """One split of all subjects. Unavailable if one lacks it, or a row does not fit the task."""
    drafts: list[Draft] = []
    seen: dict[str, list[Draft]] = {}
    alike: dict[str, str] = {}
    for part in opened.slices:
        where = f"subject {part.label}, split {split}" if part.label else f"split {split}"
        if split not in part.splits:
            there = ", ".join(part.splits) or "none"
            raise Unavailable(opened.name, f"{where}: there is none", f"its splits: {there}")
        made = _drafts_of(opened, part, split, where)
        if not made and split == opened.sample_split:
            raise Unavailable(opened.name, f"{where} is empty", EMPTY)
        twin = next((label for label, others in seen.items() if others == made), None)
        if made and twin is not None:
            alike[part.label] = twin  # two subjects that ask the same of the same rows
            continue
        seen[part.label] = made
        for number, draft in enumerate(made):
            drafts.append({"item": f"{part.label}/{number}" if part.label else str(number), **draft})
    if not drafts:
        raise Unavailable(opened.name, f"split {split} is empty", EMPTY)
    role = {opened.fewshot_split: "few-shot", opened.sample_split: "samples"}.get(split, "other")
    facts = {**opened.facts, "role": role, "subjects": [label for label in seen if label]}
    if alike:
        facts["same_as"] = alike
    return Loaded(opened.name, split, drafts, facts)


EMPTY = "the dataset may have changed: check its page, pin the revision, or leave the split out"


def _drafts_of(opened: Opened, part: Slice, split: str, where: str) -> list[Draft]:
    try:
        rows = list(part.rows(split))
    except Unavailable:
        raise
    except Exception as error:
        raise unfit(opened.name, where, error) from error
    try:
        made = opened.drafts(part, rows)
    except RowError as error:
        fields = ", ".join(map(str, rows[error.row]))
        raise Unavailable(
            opened.name,
            f"{where}, row {error.row}: the task cannot read it ({error}); its fields: {fields}",
            "the dataset has changed, or the folder holds another one: use the revision that "
            "eval-framework pins, or another version of eval-framework",
        ) from error
    for draft in made:
        if part.language:
            draft["language"] = part.language
    return made


class RowError(Exception):
    """A row that the framework's own functions cannot read."""

    def __init__(self, row: int, error: Exception) -> None:
        super().__init__(f"{type(error).__name__}: {error}")
        self.row = row


def unfit(name: str, where: str, error: Exception) -> Unavailable:
    return Unavailable(
        name,
        f"{where} cannot be read ({type(error).__name__}: {' '.join(str(error).split())[:300]})",
        "the dataset has changed, or a file is damaged: use the revision that eval-framework pins",
    )


# Benchmarks


def open_benchmark(benchmark: Any, hub: Hub) -> Opened:
    """A benchmark with its datasets loaded. Raises Unavailable."""
    name = benchmark.id()
    while hasattr(benchmark, "_loaded_factory"):  # a Lazy one
        benchmark = benchmark._loaded_factory()
    hub.begin(name)
    try:
        if hasattr(benchmark, "dataset_policy"):
            opened = _open_composed(name, benchmark, hub)
        else:
            opened = _open_task(name, benchmark.create(0, None, None, 0), hub)
    except Unavailable:
        raise
    except Exception as error:
        raise unfit(name, "its data", error) from error
    facts: dict[str, Any] = {
        "source": "eval-framework",
        "version": version(),
        "benchmark": benchmark.display_name(),
        "response": benchmark.response_type().value,
        **hub.facts(),
        "languages": sorted({part.language for part in opened.slices if part.language}),
        **opened.facts,
    }
    return opened._replace(facts=facts)


def _open_composed(name: str, benchmark: Any, hub: Hub) -> Opened:
    """A benchmark put together from a reader or prompt, a loader of data and a few-shot policy."""
    loader = benchmark.dataset_policy.loader(None)
    sample_split = benchmark.sample_split
    slices = []
    for subject in benchmark._subjects.select([]):
        with hub.in_place():
            found = loader.load(subject.load_key)
        label = "" if subject.load_key is None else subject.label
        language = language_of(benchmark.language, subject.label)
        slices.append(
            Slice(label, subject.label, language, list(found), _rows_of(found, subject.label))
        )
    kind = benchmark._kind
    fewshot = benchmark._fewshot.documentation(sample_split).split
    facts = {
        "kind": type(kind).__name__,
        **{k: v for k, v in kind.metadata().items() if k == "task_style"},
    }
    reader = reader_of(kind)
    facts["by"] = "prompt" if reader is None else "reader"
    if reader is None:
        return Opened(name, sample_split, fewshot, slices, _from_samples(kind.samples, _body), facts)

    def read(row: Row) -> Choices:
        fields = reader.read(row)
        return Choices(fields.raw_question, list(fields.choices), fields.correct_index)

    return Opened(name, sample_split, fewshot, slices, _from_choices(read), facts)


def reader_of(kind: Any) -> Any:
    """The reader of choices of a kind of evaluation, if it has one."""
    base = importlib.import_module("eval_framework.choices").ChoiceReader
    return next((value for value in vars(kind).values() if isinstance(value, base)), None)


def _rows_of(found: Mapping[str, Any], label: str) -> Callable[[str], Iterator[Row]]:
    def rows(split: str) -> Iterator[Row]:
        for row in found[split]:
            yield {**row, "subject": label}

    return rows


def _open_task(name: str, task: Any, hub: Hub) -> Opened:
    """A task class: `BaseTask` of the framework, of a user's own tasks above all."""
    base = importlib.import_module("eval_framework.tasks.base")
    if not isinstance(task, base.BaseTask):
        raise Unavailable(
            name,
            f"it is a {type(task).__name__}, neither put together by the framework nor a task class",
            "write its items as JSONL and name them in the catalog",
        )
    task.rnd = InOrder(0)
    slices = []
    for subject in task.SUBJECTS:
        with hub.in_place():
            task._load_dataset(subject)
        there = hub.splits() or list(task.dataset)
        label = "" if subject == base.NO_SUBJECT else str(getattr(subject, "value", subject))
        language = language_of(getattr(task, "LANGUAGE", None), subject)
        slices.append(Slice(label, subject, language, there, _rows_of_task(task, subject, hub)))
    hooks = (
        hasattr(task, "TASK_STYLER")
        or type(task)._get_raw_question is not base.BaseTask._get_raw_question
    )

    def read(row: Row) -> Choices:
        question, choices = task._get_raw_question(row), list(task._get_choices(row))
        return Choices(question, choices, task._get_correct_index(row))

    def samples(row: Row) -> list[Any]:
        return list(task._create_samples(row, 0, str(row.get("subject"))))

    drafts = _from_choices(read) if hooks else _from_samples(samples, _turn(task))
    fewshot = getattr(task, "FEWSHOT_SPLIT", None)
    facts = {"kind": type(task).__name__, "by": "reader" if hooks else "prompt"}
    return Opened(name, task.SAMPLE_SPLIT, fewshot, slices, drafts, facts)


class InOrder(random.Random):
    """A source of chance for a task that shuffles its rows: they stay in the dataset's order."""

    def shuffle(self, x: Any) -> None:
        return None


def _rows_of_task(task: Any, subject: Any, hub: Hub) -> Callable[[str], Iterator[Row]]:
    """Rows as the task loads them; it keeps only the splits that it knows, so it is told another."""

    def rows(split: str) -> Iterator[Row]:
        own = task.SAMPLE_SPLIT
        task.SAMPLE_SPLIT = split
        try:
            with hub.in_place():
                task._load_dataset(subject)
            for row in task.dataset[split]:
                yield {**row, "subject": subject}
        finally:
            task.SAMPLE_SPLIT = own

    return rows


def _body(sample: Any) -> Asked:
    """A sample of a composed benchmark, before preamble and few-shot turns are put around it."""
    return Asked(sample.prompt, sample.ground_truth, list(sample.possible_completions))


def _turn(task: Any) -> Callable[[Any], Asked]:
    """The last user's turn of a sample of a task class, without the text that opens every prompt."""

    def asked(sample: Any) -> Asked:
        user = [m.content for m in sample.messages if m.role is not None and m.role.value == "user"]
        text = user[-1] if user else ""
        opening = task._get_initial_prompt_text({"subject": sample.subject})
        if opening and text.startswith(opening):
            text = text[len(opening) :].lstrip()
        return Asked(text, sample.ground_truth, list(sample.possible_completions or []))

    return asked


# Languages


def language_of(declared: Any, subject: Any) -> str | None:
    """BCP 47 code of what a task declares: one language, or one for each subject; None for several."""
    if isinstance(declared, Mapping):
        parts = subject if isinstance(subject, tuple) else (subject,)
        keys = [subject, str(subject), *parts, *map(str, parts)]
        return language_of(next((declared[key] for key in keys if key in declared), None), subject)
    if declared is None or isinstance(declared, tuple | list):
        return None
    iso639 = importlib.import_module("iso639")
    try:
        language = iso639.Language.from_part3(declared.name.lower())
        broad = (
            iso639.Language.from_part3(language.macrolanguage) if language.macrolanguage else language
        )
    except iso639.LanguageNotFoundError:
        return None
    return str(language.part1 or broad.part1 or language.part3)


# Datasets


class Hub:
    """Stands for `datasets.load_dataset` while a benchmark loads its data.

    It reads local folders instead of datasets where told to, loads nothing twice, and does not wait
    again for a hub that could not be reached: from then on the cache alone is asked.

    Local folders have a cache of their own, for this run: that of `datasets` knows a folder with
    `configs:` by its name alone, and gives the old rows when its files change.
    """

    def __init__(self, data: dict[str, str], cache: str) -> None:
        self.data = data
        self.cache = cache
        self.unreachable = False
        self.seen: dict[tuple[str, ...], Any] = {}
        self.begin("")

    def begin(self, name: str) -> None:
        """From here on what is loaded is for this benchmark."""
        self.name = name
        self.asked: list[tuple[str, str | None, str | None]] = []  # dataset, configuration, revision
        self.last: Mapping[str, Any] = {}

    @contextlib.contextmanager
    def in_place(self) -> Iterator[None]:
        """The framework's modules call this object for their data."""
        self.last = {}
        modules = [
            importlib.import_module("eval_framework.tasks.dataset_loading"),
            importlib.import_module("eval_framework.tasks.base"),
        ]
        before = [module.load_dataset for module in modules]
        for module in modules:
            module.load_dataset = self.load  # type: ignore[attr-defined]
        try:
            yield
        finally:
            for module, own in zip(modules, before, strict=True):
                module.load_dataset = own  # type: ignore[attr-defined]

    def load(self, path: str, name: str | None = None, **more: Any) -> Any:
        """As `datasets.load_dataset`, with all splits. Raises Unavailable."""
        folder = self.data.get(path)
        revision = None if folder else more.get("revision")
        self.asked.append((path, name, revision))
        rest = [
            f"{key}={more[key]}" for key in sorted(more) if key not in ("cache_dir", "download_config")
        ]
        key = (path, str(name), *rest)
        if key not in self.seen:
            try:
                self.seen[key] = self._load(path, name, more)
            except Unavailable as error:
                self.seen[key] = error
        found = self.seen[key]
        if isinstance(found, Unavailable):
            raise Unavailable(self.name, found.reason, found.hint)
        if isinstance(found, Mapping):
            self.last = found
        return found

    def _load(self, path: str, name: str | None, more: Mapping[str, Any]) -> Any:
        datasets = importlib.import_module("datasets")
        options = dict(more)
        if folder := self.data.get(path):
            if not os.path.isdir(folder):
                raise Unavailable(
                    self.name, f"there is no folder {folder} for {path}", "check the path"
                )
            options["revision"] = None
            options["cache_dir"] = os.path.join(self.cache, str(list(self.data).index(path)))
        offline = datasets.config.HF_HUB_OFFLINE
        try:
            datasets.config.HF_HUB_OFFLINE = offline or self.unreachable
            found = datasets.load_dataset(folder or path, name=name, **options)
        except Exception as error:
            if isinstance(error, ConnectionError):
                self.unreachable = True
            raise cannot_load(self.name, path, name, options.get("revision"), error) from error
        finally:
            datasets.config.HF_HUB_OFFLINE = offline
        got = (
            {part.info.config_name for part in found.values()} if isinstance(found, Mapping) else set()
        )
        if name and got - {None, name}:  # offline, the cache gives another one without a word
            raise Unavailable(
                self.name,
                f"{path} has no configuration {name} in the cache, only {', '.join(sorted(got))}",
                "load it once with a network, or name a local folder for it",
            )
        return found

    def splits(self) -> list[str]:
        """Splits of the dataset that was loaded last."""
        return [str(split) for split in self.last]

    def facts(self) -> dict[str, Any]:
        """Where the data of this benchmark came from."""

        def one(values: Sequence[str | None]) -> Any:
            distinct = [value for value in dict.fromkeys(values) if value is not None]
            return distinct[0] if len(distinct) == 1 else distinct or None

        paths, configs, revisions = zip(*self.asked, strict=True) if self.asked else ((), (), ())
        facts = {"dataset": one(paths), "config": one(configs), "revision": one(revisions)}
        if local := [self.data[path] for path in dict.fromkeys(paths) if path in self.data]:
            facts["folder"] = one(local)
        return facts


def cannot_load(
    suite: str, path: str, config: str | None, revision: str | None, error: Exception
) -> Unavailable:
    """What an exception of `datasets` means for a benchmark, and what to do."""
    text = " ".join(f"{error}: {error.__cause__}".split() if error.__cause__ else str(error).split())
    kind = type(error).__name__
    status = getattr(getattr(error, "response", None), "status_code", None)
    local = "name a local folder for it"
    if "gated" in text.lower() or kind == "GatedRepoError" or status in (401, 403):
        return Unavailable(
            suite,
            f"the dataset {path} is gated, or the token has no right to read it",
            f"accept its terms at {HUB}{path} and set HF_TOKEN to a token of that account",
        )
    if isinstance(error, ConnectionError):
        return Unavailable(
            suite,
            f"the dataset {path} is not in the cache, and the hub cannot be reached",
            f"check the network and HF_HUB_OFFLINE, fill the cache on another machine, or {local}",
        )
    if "Revision '" in text:
        return Unavailable(
            suite,
            f"the dataset {path} has no revision {revision}",
            f"update eval-framework, or {local}",
        )
    if "BuilderConfig" in text or "Config name is missing" in text:
        return Unavailable(
            suite,
            f"{path} has no configuration {config}: {text[:300]}",
            f"correct the folder, or {local}",
        )
    if "scripts are no longer supported" in text:
        return Unavailable(suite, f"{path} is a script, and scripts of datasets are never run", local)
    if kind == "DatasetNotFoundError":
        return Unavailable(
            suite,
            f"there is no dataset {path} on the hub, or you have no right to see it",
            f"check {HUB}{path}; for a private one set HF_TOKEN, or {local}",
        )
    return Unavailable(
        suite, f"{path} cannot be loaded ({kind}: {text[:300]})", f"see {HUB}{path}, or {local}"
    )


# Rows with choices


class Choices(NamedTuple):
    """What a reader of choices makes of a row."""

    question: str
    choices: list[str]
    correct: int


def _from_choices(read: Callable[[Row], Choices]) -> Callable[[Slice, list[Row]], list[Draft]]:
    """Drafts of rows that have a reader: raw question, every option, the correct one marked."""

    def drafts(part: Slice, rows: list[Row]) -> list[Draft]:
        rows = [row if label is None else {**row, **label} for row, label in _labelled(rows, read)]
        found = [_reading(number, read, row) for number, row in enumerate(rows)]
        parts = own_texts([one.question for one in found], rows, lambda row: read(row).question)
        single = all(len(one.choices) == 1 for one in found)
        answers = (
            own_texts([one.choices[0] for one in found], rows, lambda row: read(row).choices[0])
            if single
            else None
        )
        made: list[Draft] = []
        for number, (row, one, text) in enumerate(zip(rows, found, parts, strict=True)):
            options = (
                [answers[number].question] if answers else [choice.strip() for choice in one.choices]
            )
            hidden = HIDDEN in row
            marks = [not hidden and index == one.correct for index in range(len(options))]
            made.append(_draft(row, text, options, marks))
        return made

    return drafts


HIDDEN = "\ue000hidden"  # a field beside those of the row: its right answer is not public


def _labelled(rows: list[Row], read: Callable[[Row], Choices]) -> Iterator[tuple[Row, Row | None]]:
    """Each row with what must stand for its label where that is hidden, as in many a test split."""
    for row in rows:
        hidden = [name for name in LABELS if name in row and row[name] in ("", "-1", -1, None)]
        yield row, _stand_in(row, hidden, read) if hidden else None


def _stand_in(row: Row, hidden: list[str], read: Callable[[Row], Choices]) -> Row | None:
    """Values for hidden labels with which a row can be read; None if no answer depends on them."""
    fitting: dict[int, Row] = {}
    for value in STAND_INS:
        labels: Row = {**dict.fromkeys(hidden, value), HIDDEN: True}
        try:
            one = read({**row, **labels})
            one.choices[one.correct]
        except UNFIT:
            continue
        fitting.setdefault(one.correct, labels)
    return next(iter(fitting.values())) if len(fitting) > 1 else None


def _reading(number: int, read: Callable[[Row], Choices], row: Row) -> Choices:
    try:
        found = read(row)
        if not isinstance(found.question, str) or not all(isinstance(c, str) for c in found.choices):
            raise TypeError("question and choices are not text")
        if not 0 <= found.correct < len(found.choices):
            raise ValueError(f"its answer is choice {found.correct} of {len(found.choices)}")
    except Exception as error:
        raise RowError(number, error) from error
    return found


# Rows with a prompt


class Asked(NamedTuple):
    """A user's turn, its ground truth, and the candidates that are scored."""

    text: str
    truth: str | list[str] | None
    candidates: list[str]


def _from_samples(
    samples: Callable[[Row], list[Any]], asked: Callable[[Any], Asked]
) -> Callable[[Slice, list[Row]], list[Draft]]:
    """Drafts of rows that only have prompts: the fields in the prompt, and the ground truth."""

    def drafts(part: Slice, rows: list[Row]) -> list[Draft]:
        found = [_asking(number, samples, asked, row) for number, row in enumerate(rows)]
        made: list[list[Draft]] = [[] for _ in rows]
        for turn in range(
            max(map(len, found), default=0)
        ):  # more than one: a row is asked several ways
            having = [number for number, one in enumerate(found) if len(one) > turn]

            def render(row: Row, turn: int = turn) -> str:
                return asked(samples(row)[turn]).text

            texts = own_texts(
                [found[number][turn].text for number in having], [rows[n] for n in having], render
            )
            for number, text in zip(having, texts, strict=True):
                options, marks = answers_of(found[number][turn], text.options)
                made[number].append(_draft(rows[number], text, options, marks))
        return list(itertools.chain.from_iterable(made))

    return drafts


def _asking(
    number: int, samples: Callable[[Row], list[Any]], asked: Callable[[Any], Asked], row: Row
) -> list[Asked]:
    try:
        return [asked(sample) for sample in samples({**row})]
    except Exception as error:
        raise RowError(number, error) from error


def answers_of(one: Asked, options: Mapping[str, str]) -> tuple[list[str], list[bool]]:
    """Every answer of a sample and whether it is right: lettered options of the prompt, candidates, or
    the ground truths alone. options: texts by letter."""
    truths = [one.truth] if isinstance(one.truth, str) else one.truth or []
    right = [text for text in dict.fromkeys(truth.strip() for truth in truths) if text]
    letters = [match[1] for text in right if (match := LETTER.fullmatch(text))]
    if options and right and len(letters) == len(right) and set(letters) <= set(options):
        return list(options.values()), [letter in letters for letter in options]
    candidates = [text for text in dict.fromkeys(text.strip() for text in one.candidates) if text]
    if (
        len(candidates) > 1
        and set(right) & set(candidates)
        and not all(map(LETTER.fullmatch, candidates))
    ):
        return candidates, [text in right for text in candidates]
    return right, [True] * len(right)


# Drafts


def _draft(row: Row, text: Own, answers: list[str], marks: list[bool]) -> Draft:
    """A draft; the reference solution of a code benchmark is no answer but a `solution`."""
    solutions = solutions_of(row)
    if solutions:
        plain = [answer.replace("\r\n", "\n") for answer in answers]
        kept = [n for n, one in enumerate(plain) if not any(s.strip() in one for s in solutions)]
        answers, marks = [answers[n] for n in kept], [marks[n] for n in kept]
    draft: Draft = {"question": text.question or None, "answers": answers, "correct": marks}
    if text.passage:
        draft["passage"] = text.passage
    if solutions:
        draft["solution"] = solutions
    return draft


def solutions_of(row: Row) -> list[str]:
    """Reference solutions of a code benchmark: HumanEval's `canonical_solution`, the `code` of MBPP."""
    found = [row.get("canonical_solution"), row.get("code") if "test_list" in row else None]
    texts = [text.replace("\r\n", "\n").rstrip() for text in found if isinstance(text, str)]
    return [text for text in dict.fromkeys(texts) if text.strip()]


# What a text says of a row alone


class Own(NamedTuple):
    """The parts of a text that are fields of its row; options: texts by letter."""

    question: str
    passage: str | None
    options: dict[str, str]


def own_texts(texts: Sequence[str], rows: Sequence[Row], render: Callable[[Row], str]) -> list[Own]:
    """Each text (`render` of its row) without the words around the row's fields.

    Where no field is found in a text, or the words are not the same in all rows, the text stays whole.
    """
    found: list[tuple[Piece, ...]] = []
    names: set[str] = set()
    for number, (text, row) in enumerate(zip(texts, rows, strict=True)):
        if any(isinstance(value, str) and value.strip() == text.strip() for value in row.values()):
            found.append(())
            continue
        pieces = pieces_of(text, row, render, names if number >= PROBED else None)
        if number < PROBED:
            names |= {str(piece.path[0]) for piece in pieces}
        found.append(pieces)
    words: dict[tuple[Path, ...], set[tuple[str, ...]]] = {}
    for text, pieces in zip(texts, found, strict=True):
        words.setdefault(tuple(p.path for p in pieces), set()).add(tuple(between(text, pieces)))
    return [
        split_text(text, pieces)
        if pieces and len(words[tuple(p.path for p in pieces)]) == 1
        else Own(text.strip(), None, {})
        for text, pieces in zip(texts, found, strict=True)
    ]


def pieces_of(
    text: str, row: Row, render: Callable[[Row], str], names: set[str] | None
) -> tuple[Piece, ...]:
    """Where fields of a row stand in its text: put a mark in place of each, and see where it comes out.

    names: fields to look for, or None for all. A field that is changed on its way, or on which the rest
    of the text depends, is not found.
    """
    pieces = []
    for name, value in row.items():
        if name in ("subject", HIDDEN) or (names is not None and name not in names):
            continue
        for path, leaf in leaves(value, (name,)):
            try:
                marked = render(replaced(row, path))
            except UNFIT:
                continue
            if leaf.strip():
                pieces += places(text, marked.split(MARK), path)
    pieces.sort(key=lambda piece: (piece.start, -piece.end))
    kept: list[Piece] = []
    for piece in pieces:
        if not kept or piece.start >= kept[-1].end:
            kept.append(piece)
    return tuple(kept)


def places(text: str, around: Sequence[str], path: Path) -> list[Piece]:
    """Where a field stands in a text, once or more. around: the words before, between and after."""
    if len(around) < 2 or not (text.startswith(around[0]) and text.endswith(around[-1])):
        return []
    before, *middle, after = around
    stop = len(text) - len(after)
    pieces, start = [], len(before)
    for words in middle:
        end = text.find(words, start, stop) if words else -1
        if end <= start:
            return []
        pieces.append(Piece(start, end, path))
        start = end + len(words)
    return [*pieces, Piece(start, stop, path)] if start < stop else []


def leaves(value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    """Every text in a value, and the way to it."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from leaves(inner, (*path, number))
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, (*path, name))


def replaced(value: Any, path: Path) -> Any:
    """A copy of a value with the mark at a place in it."""
    if not path:
        return MARK
    copy: Any = list(value) if isinstance(value, list) else dict(value)
    copy[path[0]] = replaced(value[path[0]], path[1:])
    return copy


def between(text: str, pieces: Sequence[Piece]) -> list[str]:
    """The words before, between and after the fields of a text."""
    starts = [0, *(piece.end for piece in pieces)]
    ends = [*(piece.start for piece in pieces), len(text)]
    return [text[start:end] for start, end in zip(starts, ends, strict=True)]


def split_text(text: str, pieces: Sequence[Piece]) -> Own:
    """The fields of a text: options behind their letters, the passage if it is set apart, the question.

    Fields stay joined as they are where no word stands between them, else each is a line of its own.
    """
    words = between(text, pieces)
    options: dict[str, str] = {}
    passage: str | None = None
    question = ""
    glue = ""  # between the question so far and the next field of it
    for number, piece in enumerate(pieces):
        own = text[piece.start : piece.end]
        before, after = words[number], words[number + 1]
        letter = OPTION_LABEL.search(before)
        if letter and letter[1] == chr(ord("A") + len(options)):
            options[letter[1]] = own.strip()
            continue
        glue = before if question and not re.search(r"\w", before) else "\n"
        apart = re.search(r"\w", after) is not None and number + 1 < len(pieces)
        if piece.path[0] in HEADINGS and apart:
            continue
        if piece.path[0] in PASSAGES and apart and passage is None:
            passage = own.strip()
            continue
        question += (glue if question else "") + own
    return Own(question.strip(), passage, options)
