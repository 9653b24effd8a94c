"""How many task configurations of the installed lm-evaluation-harness become items, and why not all.

    python tools/lm_eval_census.py > docs/reference/lm-eval-census.md

Nothing is downloaded. Each configuration is read with its functions imported, and the adapter's own
mapping (`unseen.lm_eval.drafts_of`) runs on synthetic documents: their fields are those that the
templates name (found by Jinja) and that the functions ask for (found by a dictionary that keeps what is
looked up); the fields' types are searched for until the task's functions accept them.
"""

from __future__ import annotations

import argparse
import collections
import random
import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from unseen import lm_eval as adapter
from unseen.catalog import Unavailable

TRIES = 1200
TEMPLATES = ("doc_to_text", "doc_to_target", "doc_to_choice", "gen_prefix")
LIST_NAMES = re.compile(
    r"(choices?|options?|endings?|candidates|distractors|targets|list|answers|sentences)$", re.I
)


class Keeps(dict[str, Any]):
    """A document that makes up each field it is asked for."""

    def __init__(self, kinds: dict[str, Any], row: int, known: dict[str, Any] | None = None) -> None:
        super().__init__(known or {})
        self.kinds, self.row = kinds, row

    def __missing__(self, key: str) -> Any:
        if not isinstance(key, str):
            raise KeyError(key)
        kind = self.kinds.setdefault(key, "list" if LIST_NAMES.search(key) else "text")
        self[key] = made(kind, key, self.row)
        return self[key]

    def get(self, key: str, default: Any = None) -> Any:
        return self[key]


class Nested(dict[str, Any]):
    """A field with fields of its own."""

    def __init__(self, kind: str, name: str, row: int) -> None:
        super().__init__()
        self.kind, self.name, self.row = kind, name, row

    def __missing__(self, key: str) -> Any:
        if not isinstance(key, str):
            raise KeyError(key)
        kind = "letters" if "label" in key and self.kind == "list" else self.kind
        self[key] = made(kind, f"{self.name} {key}", self.row)
        return self[key]

    def get(self, key: str, default: Any = None) -> Any:
        return self[key]

    def __getattr__(self, key: str) -> Any:
        if key.startswith("__"):
            raise AttributeError(key)
        return self[key]


def text_of(name: str, row: int, part: str = "") -> str:
    """A made-up text: which field, of which row, which part of it."""
    return f"Made up words number {row + 3} {part}for the {name.replace('_', ' ')} of this row."


def made(kind: Any, name: str, row: int) -> Any:
    """A value of one kind for a field."""
    parts = ("first ", "second ", "third ", "fourth ", "fifth ")
    match kind:
        case "text":
            return text_of(name, row)
        case "list":
            return [text_of(name, row, part) for part in parts[:4]]
        case "list of 10":
            return [text_of(name, row, f"{number}th ") for number in range(10)]
        case "letters":
            return list("ABCD")
        case "fields of text":
            return Nested("text", name, row)
        case "fields of lists":
            return Nested("list", name, row)
        case "list of fields":
            return [Nested("text", f"{name} {part}", row) for part in parts[:4]]
        case "lists":
            return [[text_of(name, row, a + b) for a in parts[:2]] for b in parts[:4]]
        case "blank":
            return f"The words before _ and <mask> [MASK] number {row} and the words after it."
        case "boxed":
            return f"{text_of(name, row)} So it is $\\boxed{{{row + 7}}}$."
        case "written list":
            return str(made("list", name, row))
        case "json":
            import json

            return json.dumps(made("list", name, row))
        case "written fields":
            options = [text_of("option", row, part) for part in parts[:4]]
            return str([{"question": text_of("question", row), "answer": "A", "options": options}])
        case "numbers":
            return [0, 1, 0, 0]
        case _:
            return kind  # the value itself


KINDS: tuple[Any, ...] = (
    "text", "list", 0, "A", "1", "fields of lists", "fields of text", "list of fields", "blank", 1, "a",
    True, "written list", "json", "lists", "letters", "numbers", 1.5, "yes", "list of 10",
    "written fields", "0", "(A)", "boxed", "2024-05-01", None,
)  # fmt: skip


def constants(value: Any, depth: int = 0) -> Iterator[str]:
    """Short texts written in a function, the functions in it, and what it was given."""
    if depth > 9:
        return
    if isinstance(value, str):
        if 0 < len(value) <= 40 and "\n" not in value:
            yield value
    elif isinstance(value, dict):
        for pair in list(value.items())[:200]:
            yield from constants(list(pair), depth + 1)
    elif isinstance(value, list | tuple | set | frozenset):
        for inner in list(value)[:200]:
            yield from constants(inner, depth + 1)
    elif hasattr(value, "func") and hasattr(value, "keywords"):  # functools.partial
        yield from constants([*value.args, *value.keywords.values(), value.func], depth + 1)
    elif isinstance(value, types.CodeType):
        yield from constants(value.co_consts, depth + 1)
    elif isinstance(value, types.FunctionType):
        yield from constants(value.__code__, depth + 1)
        for cell in value.__closure__ or ():
            yield from constants(cell.cell_contents, depth + 1)
        names = value.__code__.co_names
        shared = [value.__globals__.get(name) for name in names]
        yield from constants(
            [s for s in shared if isinstance(s, dict | list | tuple | types.FunctionType)], depth + 1
        )


def template_facts(template: str, fields: dict[str, Any], words: list[str]) -> None:
    """Fields that a Jinja template names, the kinds their use tells, and texts it compares with."""
    from jinja2 import meta, nodes
    from lm_eval.utils import env

    tree = env.parse(template)
    for name in meta.find_undeclared_variables(tree):
        fields.setdefault(name, "list" if LIST_NAMES.search(name) else "text")
    for node in tree.find_all((nodes.Getattr, nodes.Getitem)):
        if isinstance(node.node, nodes.Name) and node.node.name in fields:
            key = node.attr if isinstance(node, nodes.Getattr) else getattr(node.arg, "value", None)
            name = node.node.name
            if isinstance(key, str) and not hasattr(str, key) and not hasattr(list, key):
                fields[name] = "fields of lists" if LIST_NAMES.search(name + key) else "fields of text"
            elif isinstance(key, int) and fields[name] == "text":
                fields[name] = "list"
    words += [
        c.value
        for c in tree.find_all(nodes.Const)
        if isinstance(c.value, str) and 0 < len(c.value) < 40
    ]


class Rows(list[Any]):
    """As much of a `datasets.Dataset` as functions of tasks use."""

    @property
    def column_names(self) -> list[str]:
        return list(self[0]) if self else []

    @property
    def features(self) -> dict[str, Any]:
        return dict.fromkeys(self.column_names)

    @property
    def num_rows(self) -> int:
        return len(self)

    def map(self, function: Any, **kwargs: Any) -> Rows:
        out = Rows()
        for number, row in enumerate(self):
            new = (
                function(row, number)
                if kwargs.get("with_indices")
                else function(row, **(kwargs.get("fn_kwargs") or {}))
            )
            gone = set(kwargs.get("remove_columns") or ())
            kept = {k: v for k, v in row.items() if k not in gone}
            doc = Keeps(row.kinds, row.row, {**kept, **(new or {})})
            out.append(doc)
        return out

    def filter(self, function: Any, **kwargs: Any) -> Rows:
        return Rows(row for row in self if function(row, **(kwargs.get("fn_kwargs") or {})))

    def same(self, *args: Any, **kwargs: Any) -> Rows:
        return self

    shuffle = remove_columns = flatten = cast_column = cast = sort = flatten_indices = with_format = (
        same
    )

    def select(self, indices: Any) -> Rows:
        return Rows(self[i] for i in indices if i < len(self))

    def select_columns(self, names: Any) -> Rows:
        return self

    def rename_column(self, old: str, new: str) -> Rows:
        return Rows(Keeps(r.kinds, r.row, {**r, new: r[old]}) for r in self)

    def rename_columns(self, names: dict[str, str]) -> Rows:
        out = self
        for old, new in names.items():
            out = out.rename_column(old, new)
        return out

    def add_column(self, name: str, column: Any, **kwargs: Any) -> Rows:
        return Rows(
            Keeps(r.kinds, r.row, {**r, name: value}) for r, value in zip(self, column, strict=True)
        )

    def to_list(self) -> list[Any]:
        return list(self)

    def __getitem__(self, key: Any) -> Any:
        return [row[key] for row in self] if isinstance(key, str) else super().__getitem__(key)


def synthetic_task(config: dict[str, Any], fields: dict[str, Any]) -> Any:
    """The task's object as the harness makes it, without a dataset."""
    from lm_eval.api.task import ConfigurableTask, TaskConfig

    kind = config.get("class")
    own = {k: v for k, v in config.items() if k not in ("class", "group", "task_list", "recipe")}
    own |= {"metric_list": None, "filter_list": None, "fewshot_config": None, "process_results": None}
    task = (kind or ConfigurableTask).__new__(kind or ConfigurableTask)
    task._config = TaskConfig(**own)
    task.prompt = None
    task.OUTPUT_TYPE = task._config.output_type if kind is None else kind.OUTPUT_TYPE
    task.features = list(fields)
    return task


def attempt(name: str, config: dict[str, Any], kinds: dict[str, Any]) -> dict[str, int]:
    """Runs the mapping on three synthetic documents; raises what the task's functions raise."""
    named = set(kinds)
    docs: Any = Rows(Keeps(kinds, row, {f: made(kinds[f], f, row) for f in named}) for row in range(3))
    task = synthetic_task(config, kinds)
    with adapter._quiet():
        if config.get("process_docs") is not None:
            docs = config["process_docs"](docs)
            if not len(docs):
                raise ValueError("process_docs keeps no document")
        elif config.get("class") is not None and hasattr(task, "_process_doc"):
            docs = [task._process_doc(doc) for doc in docs]
        for doc in docs:  # so that every field is there
            task.doc_to_text(doc)
            if getattr(task.config, "doc_to_choice", None) is not None:
                task.doc_to_choice(doc)
            task.doc_to_target(doc)
    task.features = list(docs[0])
    drafts, counts = adapter.drafts_of(name, task, [plain(doc) for doc in docs])
    if not all(re.search(r"\w", draft["question"] or "") for draft in drafts):
        raise ValueError("the question is empty")
    return {**counts, "with answers": sum(bool(draft["answers"]) for draft in drafts)}


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, list | tuple) else value


def show(name: str, config: dict[str, Any]) -> tuple[bool, str, dict[str, int]]:
    """(handled, the first failure, counts): searches for kinds of fields that the functions accept."""
    fields: dict[str, Any] = {}
    words: list[str] = []
    for key in TEMPLATES:
        for value in config[key] if isinstance(config.get(key), list) else [config.get(key)]:
            if isinstance(value, str) and re.fullmatch(r"\w+", value) and key != "gen_prefix":
                if key != "doc_to_choice" or not isinstance(config.get(key), list):
                    fields.setdefault(value, "list" if key == "doc_to_choice" else "text")
            elif isinstance(value, str) and "{" in value:
                template_facts(value, fields, words)
    for key in ("process_docs", "doc_to_text", "doc_to_target", "doc_to_choice"):
        if not isinstance(config.get(key), str):
            words += constants(config.get(key))
    words = list(dict.fromkeys(words))[:80]
    heads = [word for word in words if re.search(r"\w[._/-]$", word)]
    pool = [*KINDS, *words, *(head + word for head in heads for word in words)][:160]
    starts = [fields, *({**fields, **known} for known in WORKED[-3:])]
    first, tries, rng = "", 0, random.Random(1)
    seen: set[str] = set()
    fronts: list[Iterator[dict[str, Any]]] = [iter([dict(start) for start in starts])]
    while tries < TRIES and fronts:
        front = fronts[0] if tries < len(starts) else rng.choice([fronts[-1], rng.choice(fronts)])
        kinds = next(front, None)
        if kinds is None:
            fronts.remove(front)
            continue
        tries += 1
        try:
            counts = attempt(name, config, kinds)
        except Exception as error:  # whatever a task's function raises on a made-up document
            first = first or f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"
            place = f"{type(error).__name__} {where(error)}"
            if (
                place not in seen
            ):  # another place than before: go on from here, one field after the other
                seen.add(place)
                fronts.append(changes(dict(kinds), pool))
            continue
        if kinds not in WORKED:
            WORKED.append(kinds)
        return True, "", counts
    return False, first, {}


def changes(base: dict[str, Any], pool: list[Any]) -> Iterator[dict[str, Any]]:
    """The same kinds with one field changed, or all fields of one kind."""
    for kind in pool:
        for old in {str(k): k for k in base.values()}.values():
            yield {field: kind if k is old else k for field, k in base.items()}
        for field in reversed(base):
            if base[field] is not kind:
                yield {**base, field: kind}


WORKED: list[dict[str, Any]] = []  # what the tasks before this one took: families look alike


def where(error: BaseException) -> str:
    """The line of the task's code that an error comes from, or what it says."""
    trace, place = error.__traceback__, ""
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if file != __file__ and "unseen" not in file:
            place = f"{file}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place if "jinja2" not in place and "<template>" not in place else str(error)[:60]


def census(names: list[str], jobs: int = 1) -> list[dict[str, Any]]:
    """One row for each task configuration, in the order of the harness, made by several processes."""
    import multiprocessing

    from lm_eval.tasks import TaskManager

    with adapter._quiet():
        manager = TaskManager()
        names = names or manager.all_subtasks
        parts = [names[at : at + 200] for at in range(0, len(names), 200)]
        if jobs == 1:
            return [row for part in parts for row in rows_of(manager, part)]
        with multiprocessing.get_context("fork").Pool(
            jobs, initializer=hold, initargs=(manager,)
        ) as pool:
            return [row for rows in pool.imap(rows_of_part, parts) for row in rows]


HELD: list[Any] = []  # the harness's index, in each process


def hold(manager: Any) -> None:
    HELD.append(manager)


def rows_of_part(names: list[str]) -> list[dict[str, Any]]:
    del WORKED[:]  # so that the result does not depend on the number of processes
    sys.stderr.write(f"{names[0]}\n")
    return list(rows_of(HELD[0], names))


def rows_of(manager: Any, chosen: list[str]) -> Iterator[dict[str, Any]]:
    for name in chosen:
        entry = manager.task_index[name]
        base = Path(adapter._module("lm_eval.tasks", "lm_eval").__file__).parent
        family = entry.yaml_path.relative_to(base).parts[0] if entry.yaml_path else "-"
        row = {"task": name, "family": family, "type": "-", "counts": {}}
        try:
            config = {"task": name, **adapter._read_config(name, entry.yaml_path)}
            kind = "class" if config.get("class") else config.get("output_type", "generate_until")
            row["type"] = kind
            row["handled"], row["reason"], row["counts"] = show(name, config)
        except Unavailable as error:
            row |= {"handled": False, "reason": error.reason}
        yield row


def table(head: list[str], rows: list[list[Any]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows])


def counted(rows: list[dict[str, Any]], key: str) -> list[list[Any]]:
    groups: dict[str, list[dict[str, Any]]] = collections.defaultdict(list)
    for row in rows:
        groups[row[key]].append(row)
    return [[name, len(g), sum(r["handled"] for r in g)] for name, g in sorted(groups.items())]


def page(rows: list[dict[str, Any]]) -> str:
    """The whole page, in Markdown."""
    done = [row for row in rows if row["handled"]]
    exact = sum("texts_searched" not in row["counts"] for row in done)
    answered = sum(row["counts"].get("with answers", 0) > 0 for row in done)
    left: dict[tuple[str, str], list[str]] = collections.defaultdict(list)
    for row in rows:
        if not row["handled"]:
            why = row["reason"].replace("|", "/").replace(str(Path.cwd()), ".")
            left[row["family"], re.sub(r"/\S*site-packages/", "", why)[:200]].append(row["task"])
    listed = [
        [
            family,
            len(names),
            ", ".join(f"`{n}`" for n in names[:3]) + (" ..." if len(names) > 3 else ""),
            why,
        ]
        for (family, why), names in sorted(left.items())
    ]
    families = counted(rows, "family")
    share = 100 * len(done) / len(rows)
    return f"""# Census of lm-evaluation-harness

Made by `python tools/lm_eval_census.py > docs/reference/lm-eval-census.md`; do not edit. `lm_eval`
{adapter._version()}, Python {sys.version_info.major}.{sys.version_info.minor}.

{len(done)} of {len(rows)} task configurations ({share:.1f} %) become items.

**This was shown with synthetic documents, without data:** made-up fields of the names and types that
the configuration's templates and functions ask for, three documents a task. It says that the adapter
copes with the form of a task, not that its dataset can be had or still has these fields. Rows in the
real schema are in the tests, for the families of `tests/lm_eval_data.py`.

* For {answered} there are answers as well as a question.
* For {exact} marks told the document's text from the template's exactly; for the others the
  document's texts were searched for in the prompt.

## By output type

{table(["output type", "configurations", "handled"], counted(rows, "type"))}

## Not handled

A configuration whose code needs a package is handled once that is installed; until then the task is
`Unavailable` and the hint names the package. Where a function failed, no made-up document was found
that it takes: with real rows it may work.

{table(["family", "configurations", "tasks", "why (the first failure)"], listed)}

## By family

{table(["family", "configurations", "handled"], families)}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*", help="only these tasks")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    asked = parser.parse_args()
    print(page(census(asked.tasks, asked.jobs)), end="")


if __name__ == "__main__":
    main()
