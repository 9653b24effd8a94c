"""A catalog of benchmarks: what each is called, where its rows come from, how a row becomes an item.

In: catalog files (YAML), the built-in one among them. Out: entries, and for each row of an entry's
source one or more drafts of an item.

    benchmarks:
      arc_challenge:
        source: hf
        dataset: allenai/ai2_arc
        config: ARC-Challenge
        licence: CC-BY-SA-4.0
        language: en
        question: question
        answers: choices.text
        labels: choices.label
        correct: answerKey
      gsm8k:                        # the built-in entry of that name
      my_arc:
        like: arc_challenge         # all of another entry, with changes
        source: jsonl
        files: {test: data/arc.jsonl.gz}

Each field of a mapping is a JMESPath expression over the row (https://jmespath.org): a plain name for
most. Beside JMESPath's own functions there are `parse(text)` (JSON, or a Python literal), `split(text,
separator)`, `find(pattern, text)` (as `re.findall`) and `sub(pattern, by, text)` (as `re.sub`).

`correct` is true or false for each answer, or the index (from 0), the letter, the label or the text of
the right one, or a list of these; without it every answer is right, and an answer that is there twice
counts once. A row whose `correct` is null, empty or -1 has no known right answer: none is marked.
`messages` gives a chat: its last user turn is the question, the assistant turn after that the answer;
system prompt and earlier turns are left out. `each` gives the parts of a row that are items of their
own: a list, or names with a list each, which are read side by side. A part's fields hide the row's,
which are still there under `parent`; a part that is no object is called `each`.

`convert: package.module:function` takes the place of all of it: a Python function from a row to a draft
or a list of drafts. `language` is a constant, `language_field` an expression.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict, cast

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator, model_validator

from unseen.errors import BadInput, BadSetting, UnseenError

if TYPE_CHECKING:
    import jmespath.parser

Row = Mapping[str, Any]
Source = Literal["jsonl", "parquet", "csv", "hf", "lm-eval", "eval-framework", "decon"]

BUILT_IN = Path(__file__).with_name("catalog.yaml")
MAPPING = ("item", "question", "answers", "labels", "correct", "passage", "solution", "messages")
WHERE = (
    "files",
    "path",
    "tasks",
    "dataset",
    "config",
    "configs",
    "revision",
    "splits",
    "data_dir",
    "data_files",
)
NEEDED = {
    "jsonl": "files",
    "parquet": "files",
    "csv": "files",
    "hf": "dataset",
    "lm-eval": "tasks",
    "eval-framework": "tasks",
    "decon": "path",
}
"""What an entry must say about its source."""

_CODES = (
    "sq ar hy az eu be bn bg ca zh hr cs da nl en et fi fr gl ka de el he hi hu is id it ja kk ko "
    "lv lt mk ms ml mr ne no fa pl pt ro ru sr sk sl es sw sv tl ta te th tr uk ur uz vi"
)
_NAMES = (
    "albanian arabic armenian azerbaijani basque belarusian bengali bulgarian catalan chinese "
    "croatian czech danish dutch english estonian finnish french galician georgian german greek "
    "hebrew hindi hungarian icelandic indonesian italian japanese kazakh korean latvian lithuanian "
    "macedonian malay malayalam marathi nepali norwegian persian polish portuguese romanian russian "
    "serbian slovak slovenian spanish swahili swedish tagalog tamil telugu thai turkish ukrainian "
    "urdu uzbek vietnamese"
)
LANGUAGES = dict(zip(_NAMES.split(), _CODES.split(), strict=True))
"""Codes of languages that data sets call by their English name."""


class Draft(TypedDict, total=False):
    """An item as a source tells it; `records.ITEM_FIELDS` says more. Missing: None or empty."""

    item: str  # id; without one, the row's number in its split
    question: str | None
    answers: list[str]
    correct: list[bool]
    passage: str | None
    language: str | None
    solution: list[str]  # reference solutions, for a derived suite NAME/solution


class Loaded(NamedTuple):
    """One split of one suite, as its source gives it."""

    suite: str
    split: str
    drafts: list[Draft]
    facts: dict[str, Any]  # where it came from: source, dataset, config, revision, licence, ...


class Unavailable(UnseenError):
    """A benchmark that was named and cannot be loaded: `message` names it, `hint` says what to do."""

    def __init__(self, suite: str, reason: str, hint: str) -> None:
        super().__init__(f"{suite}: {reason}", hint)
        self.suite = suite
        self.reason = reason

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.suite, self.reason, self.hint)


class Entry(BaseModel):
    """One benchmark of a catalog: its source, and how a row of it becomes an item."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: Source
    # where the rows are
    files: dict[str, str | tuple[str, ...]] = {}  # split: paths, globs or URLs (jsonl, parquet, csv)
    path: str | None = None  # a decon reference folder
    tasks: tuple[str, ...] = ()  # names, groups and tags of an evaluation framework, or `all`
    dataset: str | None = None  # a Hugging Face id, a link to one, or a folder
    config: str | None = None
    configs: dict[str, str | None] = {}  # config: language; each is a suite NAME/CONFIG
    revision: str | None = None  # a commit, tag or branch
    splits: tuple[str, ...] = ()  # without any: all
    data_dir: str | None = None
    data_files: str | tuple[str, ...] | dict[str, str | tuple[str, ...]] | None = None
    # how a row becomes items
    each: str | dict[str, str] | None = None
    item: str | None = None
    question: str | None = None
    answers: str | None = None
    labels: str | None = None
    correct: str | None = None
    passage: str | None = None
    solution: str | None = None
    messages: str | None = None
    language_field: str | None = None
    convert: str | None = None
    # what is known about it
    language: str | None = None
    licence: str | None = None
    canary: tuple[str, ...] = ()
    note: str | None = None

    @field_validator("configs", mode="before")
    @classmethod
    def _configs_may_be_a_list(cls, given: Any) -> Any:
        return dict.fromkeys(map(str, given)) if isinstance(given, list | tuple) else given

    @field_validator("splits", "tasks", "canary", mode="before")
    @classmethod
    def _one_may_stand_alone(cls, given: Any) -> Any:
        return (given,) if isinstance(given, str) else given

    @field_validator(*MAPPING, "language_field", "each")
    @classmethod
    def _is_an_expression(cls, given: Any) -> Any:
        for expression in given.values() if isinstance(given, dict) else [given]:
            if expression is not None:
                _parsed(expression)
        return given

    @field_validator("convert")
    @classmethod
    def _names_a_function(cls, given: str | None) -> str | None:
        if given is not None and not re.fullmatch(r"[\w.]+:\w+", given):
            raise ValueError("it must be package.module:function")
        return given

    @model_validator(mode="after")
    def _is_whole(self) -> Entry:
        needed = NEEDED[self.source]
        if not getattr(self, needed):
            raise ValueError(f"source {self.source} needs `{needed}`")
        if needed in ("files", "dataset"):
            if not (self.question or self.messages or self.convert):
                raise ValueError("it needs `question`, `messages` or `convert`")
            if self.convert and any(getattr(self, name) for name in (*MAPPING, "each")):
                raise ValueError("`convert` takes the place of all other fields of the mapping")
        if self.config and self.configs:
            raise ValueError("it has `config` and `configs`")
        if self.configs and self.source != "hf":
            raise ValueError(f"`configs` are for source hf, not {self.source}")
        if (self.correct or self.labels) and not self.answers:
            raise ValueError("`correct` and `labels` need `answers`")
        return self


def read_catalog(paths: Sequence[str]) -> dict[str, Entry]:
    """The entries of catalog files, by name. Relative paths in a file start at its folder.

    Raises BadSetting naming file, benchmark and field.
    """
    raw: dict[str, dict[str, Any]] = {}
    entries: dict[str, Entry] = {}
    for path in paths:
        try:
            benchmarks = _benchmarks_of(path)
        except (TypeError, ValueError, RecursionError) as error:
            raise BadSetting(
                f"{path} cannot be read as a catalog: {type(error).__name__}: {error}",
                "write `benchmarks:`, and below it a name and its fields for each",
            ) from error
        for name, given in benchmarks.items():
            if name in entries:
                raise BadSetting(
                    f"{path}: {name} is in another catalog already", "give one of them another name"
                )
            try:
                raw[name] = _with_like(path, name, given, raw)
                entries[name] = _entry(path, name, raw[name])
            except (TypeError, ValueError, RecursionError) as error:
                raise BadSetting(
                    f"{path}: {name}: {type(error).__name__}: {error}", "correct this entry"
                ) from error
    return entries


def built_in() -> dict[str, Entry]:
    """The entries that ship with the package, by name."""
    return {name: _entry(str(BUILT_IN), name, given) for name, given in _built_in_rows().items()}


def suites_of(name: str, entry: Entry) -> dict[str, Entry]:
    """An entry as one entry a suite: NAME/CONFIG for each of its `configs`, else itself."""
    if not entry.configs:
        return {name: entry}
    return {
        f"{name}/{config}": entry.model_copy(
            update={"config": config, "configs": {}, "language": language or entry.language}
        )
        for config, language in entry.configs.items()
    }


def drafts_of(entry: Entry, suite: str, rows: Sequence[Row]) -> list[Draft]:
    """Items of the rows of one split, in their order; ids are unique.

    Raises BadInput naming benchmark and row for a row that does not fit, Unavailable for a field that
    no row has.
    """
    make = _converter(entry, suite) if entry.convert else _mapper(entry, suite, rows)
    drafts: list[Draft] = []
    for number, row in enumerate(rows):
        made = make(number, row)
        for part, draft in enumerate(made):
            if not draft["item"]:
                draft["item"] = str(number) if len(made) == 1 and not entry.each else f"{number}/{part}"
            if entry.language and not draft["language"]:
                draft["language"] = entry.language
        drafts += made
    return drafts


def fields_of(entry: Entry) -> set[str] | None:
    """Names of the columns that an entry's mapping reads, or None for all of them."""
    if entry.convert:
        return None
    names: set[str] = set()
    for expression in _expressions(entry):
        found = _roots(_parsed(expression).parsed)
        if found is None or "parent" in found:
            return None
        names |= found
    return names


# Catalog files


def _benchmarks_of(path: str) -> dict[str, Any]:
    """What a catalog file says, by benchmark."""
    import yaml

    class Loader(yaml.SafeLoader):
        """A name that is there twice is an error."""

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
            keys = [key.value for key, _ in node.value]
            if double := [key for key in keys if keys.count(key) > 1]:
                raise yaml.constructor.ConstructorError(
                    None, None, f"{double[0]} is there twice", node.start_mark
                )
            return super().construct_mapping(node, deep)

    # `on`, `no` and `y` are names here (Norwegian), not true and false
    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in found if tag != "tag:yaml.org,2002:bool"]
        for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    try:
        text = Path(path).read_text(encoding="utf-8")
        content = yaml.load(text, Loader)  # a SafeLoader
    except OSError as error:
        raise BadSetting(
            f"cannot read the catalog {path}: {error.strerror}", "check the path"
        ) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        where = " ".join(str(error).split())
        raise BadSetting(f"{path} is not YAML: {where}", "correct that line") from error
    found = content.get("benchmarks") if isinstance(content, dict) else None
    if not isinstance(found, dict) or set(content) != {"benchmarks"}:
        raise BadSetting(
            f"{path} is no catalog", "it needs `benchmarks:` and below it a name for each, nothing else"
        )
    for name, given in found.items():
        if not isinstance(name, str) or not isinstance(given, dict | None):
            raise BadSetting(
                f"{path}, {name}: an entry is a name with fields", "see the docs on catalogs"
            )
    return found


@functools.cache
def _built_in_rows() -> dict[str, dict[str, Any]]:
    raw: dict[str, dict[str, Any]] = {}
    for name, given in _benchmarks_of(str(BUILT_IN)).items():
        raw[name] = _with_like(str(BUILT_IN), name, given, raw)
    return raw


def _with_like(
    path: str, name: str, given: dict[str, Any] | None, before: Mapping[str, dict[str, Any]]
) -> dict[str, Any]:
    """An entry with what it takes over from the one it is `like`; without any fields, the built-in one.

    Paths become absolute. A field that is null is taken away. With another `source`, nothing of where
    the rows are is taken over.
    """
    given = dict(given or {"like": name})
    like = given.pop("like", None)
    folder = Path(path).resolve().parent

    def absolute(value: Any) -> Any:
        if isinstance(value, list):
            return [absolute(one) for one in value]
        return value if "://" in value else str(folder / value)

    if isinstance(given.get("files"), dict):
        given["files"] = {str(split): absolute(value) for split, value in given["files"].items()}
    if isinstance(given.get("path"), str):
        given["path"] = absolute(given["path"])
    if isinstance(given.get("dataset"), str) and given["dataset"].startswith("."):
        given["dataset"] = absolute(given["dataset"])
    if like is None:
        return given
    known = before if like in before else {} if path == str(BUILT_IN) else _built_in_rows()
    if like not in known:
        raise BadSetting(
            f"{path}, {name}: there is no benchmark {like}",
            "`like` names an entry above, or a built-in one (`unseen refs catalog`)",
        )
    other = known[like]
    if given.get("source", other["source"]) != other["source"]:
        other = {field: value for field, value in other.items() if field not in WHERE}
    return {field: value for field, value in {**other, **given}.items() if value is not None}


def _entry(path: str, name: str, given: Mapping[str, Any]) -> Entry:
    try:
        return Entry.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "the entry"
        raise BadSetting(
            f"{path}, {name}: {field}: {first['msg'].removeprefix('Value error, ')}",
            "the fields of an entry: " + ", ".join(Entry.model_fields),
        ) from error


# Expressions


@functools.cache
def _parsed(expression: str) -> jmespath.parser.ParsedResult:
    """A compiled expression; ValueError if it is none."""
    import jmespath

    try:
        return jmespath.compile(expression)
    except jmespath.exceptions.JMESPathError as error:
        raise ValueError(f"{expression!r} is no JMESPath expression: {error}") from error


@functools.cache
def _options() -> Any:
    """JMESPath with four functions more."""
    import jmespath
    from jmespath import functions

    class Functions(functions.Functions):
        """`parse`, `split`, `find`, `sub`."""

        @functions.signature({"types": ["string", "null"]})
        def _func_parse(self, text: str | None) -> Any:
            return None if text is None else parsed_text(text)

        @functions.signature({"types": ["string"]}, {"types": ["string"]})
        def _func_split(self, text: str, separator: str) -> list[str]:
            return [part.strip() for part in text.split(separator) if part.strip()]

        @functions.signature({"types": ["string"]}, {"types": ["string"]})
        def _func_find(self, pattern: str, text: str) -> list[Any]:
            return [list(one) if isinstance(one, tuple) else one for one in re.findall(pattern, text)]

        @functions.signature({"types": ["string"]}, {"types": ["string"]}, {"types": ["string"]})
        def _func_sub(self, pattern: str, by: str, text: str) -> str:
            return re.sub(pattern, by, text)

    return jmespath.Options(custom_functions=Functions())


def parsed_text(text: str) -> Any:
    """JSON, or a Python literal; None for empty text. ValueError for anything else."""
    import ast

    if not text.strip():
        return None
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return ast.literal_eval(text.strip())
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise ValueError(f"{text[:60]!r} is neither JSON nor a Python literal") from error


def _getter(expression: str | None) -> Callable[[Row], Any]:
    """A function from a row to what the expression gives."""
    if expression is None:
        return lambda row: None
    if re.fullmatch(r"[A-Za-z_]\w*", expression):
        return lambda row: row.get(expression)
    parsed = _parsed(expression)
    return lambda row: parsed.search(row, _options())


def _expressions(entry: Entry) -> Iterator[str]:
    """Expressions over a whole row; with `each`, those over its parts are left to `_absent`."""
    each = [entry.each] if isinstance(entry.each, str) else list((entry.each or {}).values())
    rest = [getattr(entry, name) for name in (*MAPPING, "language_field")]
    yield from (expression for expression in [*each, *rest] if expression is not None)


def _roots(node: Mapping[str, Any]) -> set[str] | None:
    """Names of a row's fields that an expression reads; None if it may read any."""
    kind, children = node["type"], node["children"]
    if kind == "field":
        return {node["value"]}
    if kind == "current":
        return None
    if kind in ("literal", "expref"):
        return set()
    if kind in (
        "subexpression",
        "index_expression",
        "projection",
        "value_projection",
        "pipe",
        "flatten",
    ):
        children = children[:1]
    if kind == "filter_projection":
        children = children[:1]
    names: set[str] = set()
    for child in children:
        found = _roots(child)
        if found is None:
            return None
        names |= found
    return names


def _absent(node: Mapping[str, Any], values: Sequence[Any]) -> str | None:
    """The first name that an expression reads and that none of the values has; None if all are there.

    One of several alternatives (`a || b`, `not_null(a, b)`) is enough.
    """
    import jmespath.parser

    def given_by(child: Mapping[str, Any]) -> list[Any]:
        search = jmespath.parser.ParsedResult("", cast(Any, child)).search
        return [found for value in values if (found := search(value, _options())) is not None]

    kind, children = node["type"], node["children"]
    if kind == "field":
        full = [value for value in values if value is not None]
        if not full or any(isinstance(value, Mapping) and node["value"] in value for value in full):
            return None
        return str(node["value"])
    if kind in ("or_expression", "function_expression") and (
        kind == "or_expression" or node["value"] == "not_null"
    ):
        names = [_absent(child, values) for child in children]
        return names[0] if all(names) else None
    if kind in ("subexpression", "pipe"):
        for child in children:
            if name := _absent(child, values):
                return name
            values = given_by(child)
        return None
    if kind in ("projection", "value_projection", "filter_projection"):
        left, right = children[:2]
        if name := _absent(left, values):
            return name
        inner: list[Any] = []
        for found in given_by(left):
            inner += (
                found.values()
                if isinstance(found, Mapping)
                else found
                if isinstance(found, list)
                else []
            )
        return _absent(right, inner)
    if kind in ("literal", "expref", "current", "identity"):
        return None
    return next(filter(None, (_absent(child, values) for child in children)), None)


# Rows to drafts


def _converter(entry: Entry, suite: str) -> Callable[[int, Row], list[Draft]]:
    """The function that `convert` names, made to give lists."""
    module, name = str(entry.convert).split(":")
    try:
        convert = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise BadSetting(
            f"{suite}: cannot load {entry.convert} ({error})", "put its folder on PYTHONPATH"
        ) from error

    def make(number: int, row: Row) -> list[Draft]:
        try:
            made = convert(row)
        except Exception as error:
            raise BadInput(
                f"{suite}, row {number}: {entry.convert} failed with {type(error).__name__}: {error}",
                f"correct that function; {_found(row)}",
            ) from error
        drafts = [made] if isinstance(made, Mapping) else made or []
        return [_checked(cast(Draft, draft), suite, number) for draft in drafts]

    return make


def _mapper(entry: Entry, suite: str, rows: Sequence[Row]) -> Callable[[int, Row], list[Draft]]:
    """The mapping of an entry, after a check that the rows have the fields it reads."""
    parts_of = _parts_getter(entry)
    getters = {name: _getter(getattr(entry, name)) for name in (*MAPPING, "language_field")}
    _check_fields(entry, suite, rows, parts_of)

    def make(number: int, row: Row) -> list[Draft]:
        import jmespath

        try:
            return [
                _draft(entry, {name: get(part) for name, get in getters.items()})
                for part in parts_of(row)
            ]
        except (jmespath.exceptions.JMESPathError, ValueError, AttributeError) as error:
            reason = " ".join(str(error).split())
            raise BadInput(
                f"{suite}, row {number}: {reason}",
                f"change the entry's mapping, or the row; {_found(row)}",
            ) from error

    return make


def _listed(given: Any) -> list[Any]:
    """What `each` gives: a list, or nothing. ValueError for text and the like."""
    if given is not None and not isinstance(given, list | tuple):
        raise ValueError(f"`each` gives {given!r:.40}, which is no list")
    return list(given or [])


def _parts_getter(entry: Entry) -> Callable[[Row], list[Row]]:
    """A function from a row to the parts that are items of their own: the row itself, mostly."""
    each = entry.each
    if each is None:
        return lambda row: [row]
    if isinstance(each, str):
        get = _getter(each)

        def parts(row: Row) -> list[Any]:
            return _listed(get(row))
    else:
        getters = {name: _getter(expression) for name, expression in each.items()}

        def parts(row: Row) -> list[Any]:
            lists = {name: _listed(get(row)) for name, get in getters.items()}
            if len({len(values) for values in lists.values()}) > 1:
                lengths = ", ".join(f"{name} {len(values)}" for name, values in lists.items())
                raise ValueError(f"the lists of `each` are not equally long: {lengths}")
            return [
                dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)
            ]

    def merged(row: Row) -> list[Row]:
        return [
            {**row, **(part if isinstance(part, Mapping) else {"each": part}), "parent": row}
            for part in parts(row)
        ]

    return merged


def _check_fields(
    entry: Entry, suite: str, rows: Sequence[Row], parts_of: Callable[[Row], list[Row]]
) -> None:
    """Unavailable for a field that no row has; a few rows are enough to see that all is well."""
    each = [entry.each] if isinstance(entry.each, str) else list((entry.each or {}).values())
    own = [(f"each: {expression}", expression) for expression in each]
    inner = [
        (f"{name}: {expression}", expression)
        for name in (*MAPPING, "language_field")
        if (expression := getattr(entry, name)) is not None
    ]

    def missing(sample: Sequence[Row]) -> tuple[str, str] | None:
        for what, expression in own:
            if name := _absent(_parsed(expression).parsed, sample):
                return what, name
        try:
            parts = list(itertools.chain.from_iterable(map(parts_of, sample))) if entry.each else sample
        except ValueError:  # lists of different lengths: the row is named when its turn comes
            return None
        for what, expression in inner:
            if name := _absent(_parsed(expression).parsed, parts):
                return what, name
        return None

    if (found := missing(rows[:50])) and (found := missing(rows)):
        raise Unavailable(
            suite,
            f"no row has a field {found[1]} (`{found[0]}`): the schema changed, or the entry is wrong",
            f"{_found(*rows[:50])}; pin the revision that had it (`revision:`), or change the mapping",
        )


def _found(*rows: Row) -> str:
    names = dict.fromkeys(str(name) for row in rows for name in row)
    return "fields found: " + (", ".join(list(names)[:40]) or "none")


def _draft(entry: Entry, values: Mapping[str, Any]) -> Draft:
    """One item of what the mapping's expressions gave. ValueError if it makes none."""
    question: str | None = _text(values["question"])
    answers = _texts(values["answers"])
    if entry.messages:
        asked, said = last_turn(values["messages"] or [])
        question = question if entry.question else asked
        answers = answers if entry.answers else said
    language = _text(values["language_field"])
    correct = [True] * len(answers)
    if entry.correct:
        correct = _right_ones(answers, values["labels"], values["correct"])
    given = [(text, right) for text, right in zip(answers, correct, strict=True) if text is not None]
    if not entry.correct:
        given = list(dict.fromkeys(given))
    return {
        "item": _text(values["item"]) or "",
        "question": question,
        "answers": [text for text, _ in given],
        "correct": [right for _, right in given],
        "passage": _text(values["passage"]),
        "language": LANGUAGES.get(language.lower(), language) if language else None,
        "solution": list(dict.fromkeys(text for text in _texts(values["solution"]) if text)),
    }


def _text(value: Any) -> str | None:
    """A value as text: numbers as they are written (3.0 is 3), a list of texts as paragraphs."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, bool | int | float):
        return str(value)
    if isinstance(value, list):
        return "\n".join(text for one in value if (text := _text(one)))
    raise ValueError(f"this is no text: {json.dumps(value, default=str, ensure_ascii=False)[:80]}")


def _texts(value: Any) -> list[str | None]:
    """A value as a list of texts; lists inside a list are taken apart."""
    if value is None:
        return []
    if not isinstance(value, list):
        return [_text(value)]
    return list(
        itertools.chain.from_iterable(
            _texts(one) if isinstance(one, list) else [_text(one)] for one in value
        )
    )


def _right_ones(answers: Sequence[str | None], labels: Any, correct: Any) -> list[bool]:
    """For each answer whether it is right. ValueError if `correct` cannot be resolved."""
    names = _texts(labels)
    if names and len(names) != len(answers):
        raise ValueError(f"it has {len(answers)} answers and {len(names)} labels")
    if isinstance(correct, list) and correct and all(isinstance(one, bool) for one in correct):
        if len(correct) != len(answers):
            raise ValueError(f"it has {len(answers)} answers and {len(correct)} marks in `correct`")
        return list(correct)
    right: set[int] = set()
    for one in correct if isinstance(correct, list) else [correct]:
        right |= _places(answers, names, one)
    return [place in right for place in range(len(answers))]


def _places(answers: Sequence[str | None], labels: Sequence[str | None], one: Any) -> set[int]:
    """The answers that one value of `correct` means."""
    text = _text(one)
    if isinstance(one, bool):
        raise ValueError("`correct` is one true or false: it needs one for each answer")
    if text is None or text == "" or (text == "-1" and "-1" not in labels):
        return set()  # a hidden label
    if text in labels:
        return {labels.index(text)}
    if not isinstance(one, str):
        place = int(text) if text.isdecimal() else len(answers)
        if place >= len(answers):
            raise ValueError(f"`correct` is {text} and it has {len(answers)} answers, counted from 0")
        return {place}
    same = {place for place, answer in enumerate(answers) if answer == text}
    same = same or {
        place for place, answer in enumerate(answers) if (answer or "").strip() == text.strip()
    }
    letter = ord(text.upper()) - ord("A") if re.fullmatch("[A-Za-z]", text) and not labels else -1
    if not 0 <= letter < len(answers):
        letter = -1
    if same and letter >= 0 and letter not in same:
        raise ValueError(f"`correct` is {text!r}, a letter and an answer's text: give `labels`")
    if not same and letter < 0:
        choices = f"labels {list(labels)}" if labels else f"{len(answers)} answers"
        raise ValueError(f"`correct` is {text[:60]!r}, which is none of its {choices}")
    return same or {letter}


def last_turn(messages: Sequence[Mapping[str, Any]]) -> tuple[str | None, list[str | None]]:
    """(question, answers) of a chat: its last user turn, and what the assistant says to it, if it does.

    Turns are {role, content} or {from, value}; content is text, or parts with a `text`.
    """
    question: str | None = None
    answers: list[str | None] = []
    for message in messages:
        role = str(message.get("role", message.get("from", ""))).lower()
        content = message.get("content", message.get("value"))
        if isinstance(content, list):
            content = "\n".join(
                part if isinstance(part, str) else str(part.get("text") or "") for part in content
            )
        if role in ("user", "human"):
            question, answers = _text(content), []
        elif role in ("assistant", "gpt", "model", "bot") and question is not None:
            answers = [_text(content)]
    return question, answers


def _checked(draft: Draft, suite: str, number: int) -> Draft:
    """The draft with all its fields. BadInput if one has a wrong type."""
    unknown = set(draft) - set(Draft.__annotations__)
    given, solution = draft.get("answers") or [], draft.get("solution") or []
    answers = [given] if isinstance(given, str) else list(given)
    correct = draft.get("correct")
    full: Draft = {
        "item": str(draft["item"]) if draft.get("item") not in (None, "") else "",
        "question": draft.get("question"),
        "answers": answers,
        "correct": [True] * len(answers) if correct is None else list(correct),
        "passage": draft.get("passage"),
        "language": draft.get("language"),
        "solution": [solution] if isinstance(solution, str) else list(solution),
    }
    reason = ""
    if unknown:
        reason = f"an item has no field {sorted(unknown)[0]}"
    elif not all(isinstance(text, str) for text in [*answers, *full["solution"]]):
        reason = "answers and solutions must be texts"
    elif not all(isinstance(full[name], str | None) for name in ("question", "passage", "language")):
        reason = "question, passage and language must be text or null"
    elif not all(isinstance(mark, bool) for mark in full["correct"]):
        reason = "`correct` must be true or false for each answer"
    elif len(full["correct"]) != len(answers):
        reason = f"it has {len(answers)} answers and {len(full['correct'])} marks in `correct`"
    if reason:
        raise BadInput(f"{suite}, row {number}: {reason}", "change what `convert` gives")
    return full


def with_unique_ids(drafts: list[Draft]) -> list[Draft]:
    """The drafts; an id that was there before gets a number: 7, 7#2, 7#3."""
    seen: dict[str, int] = {}
    taken = {draft["item"] for draft in drafts}
    for draft in drafts:
        name = draft["item"]
        seen[name] = seen.get(name, 0) + 1
        if seen[name] > 1:
            while (other := f"{name}#{seen[name]}") in taken:
                seen[name] += 1
            taken.add(other)
            draft["item"] = other
    return drafts
