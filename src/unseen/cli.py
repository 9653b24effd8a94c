"""The command `unseen`. Heavy imports stay inside the commands, so that --help is quick."""

from __future__ import annotations

import pathlib
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from unseen import __version__, cli_refs
from unseen.cli_show import Json, console, say_json
from unseen.errors import BadInput, BadSetting, UnseenError
from unseen.records import EVIDENCE

if TYPE_CHECKING:
    from unseen.pipeline import Progress
    from unseen.verdict import Policy

app = typer.Typer(
    name="unseen",
    help="Keep benchmarks unseen: find evaluation items in training data, remove them with evidence.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(cli_refs.app, name="refs")

Workers = Annotated[int, typer.Option("--workers", "-w", min=0, help="Processes; 0 = all cores.")]
Preset = Annotated[
    Optional[str], typer.Option("--preset", help="default, or published: the score alone.")
]
PolicyFile = Annotated[Optional[str], typer.Option("--policy", help="Policy file (YAML or JSON).")]
IndexPath = Annotated[str, typer.Option("--index", "-i", help="Index folder, from `unseen index`.")]


def main() -> None:
    """Run the command; errors become one sentence and a hint on standard error, exit code 2."""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        code = app(standalone_mode=False)
        if code == 130:  # the option parser turns Ctrl-C into this code
            raise KeyboardInterrupt
        sys.exit(code if isinstance(code, int) else 0)
    except UnseenError as error:
        fail(error.message, error.hint)
    except typer.Exit as done:
        sys.exit(done.exit_code)
    except KeyboardInterrupt:
        fail("interrupted", "run the same command again: it goes on where it was")
    except BrokenPipeError:
        sys.exit(2)
    except Exception as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            print(error.format_message())  # type: ignore[attr-defined]  # noqa: T201
            sys.exit(2)
        if hasattr(error, "format_message"):  # a usage error of the option parser
            context = getattr(error, "ctx", None)
            fail(
                error.format_message(), f"see `{context.command_path if context else 'unseen'} --help`"
            )
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def fail(message: str, hint: str) -> None:
    """One sentence, one hint, exit code 2."""
    print(f"error: {message}", file=sys.stderr)  # noqa: T201
    if hint:
        print(f"hint: {hint}", file=sys.stderr)  # noqa: T201
    sys.exit(2)


@app.callback(invoke_without_command=True)
def _version(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        print(f"unseen {__version__}")  # noqa: T201
        raise typer.Exit()


@app.command()
def index(
    refs: Annotated[list[str], typer.Argument(help="Item files or folders: JSONL or Parquet.")],
    out: Annotated[str, typer.Option("--out", "-o", help="Index folder to write.")],
    base: Annotated[
        Optional[str],
        typer.Option("--base", help="An older index: take only what is new, weighed by all items."),
    ] = None,
    allow_empty: Annotated[
        bool, typer.Option("--allow-empty", help="Go on when a suite has nothing to match.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an index that is there.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Compile benchmark items into an index.

    Example: unseen index items.jsonl decon-refs/ -o INDEX/
    """
    compiling("tokenize_many")
    from unseen import collect
    from unseen import refs as refs_module
    from unseen.scan import Index

    started = time.perf_counter()
    built = Index.build(
        refs_module.read_items(refs),
        base=None if base is None else Index.open(base),
        missing=collect.missing_of(refs),
        allow_empty=allow_empty,
    )
    built.save(out, overwrite=overwrite)
    seconds = time.perf_counter() - started
    if as_json:
        say_json({"index": out, "seconds": seconds, **built.header})
        return
    from rich.table import Column, Table

    table = Table(Column("suite", overflow="fold"), "split", *SHORT_TITLES, box=None)
    for row in built.header["suites"]:
        numbers = [row[k] for k in ("items", "questions", "duplicates", *STATUS_TITLES)]
        table.add_row(row["suite"], row["split"], *[f"{n:,}" if n else "-" for n in numbers])
    console().print(table)
    for one in built.header["missing"]:
        console().print(f"not audited: {one['suite']}, which could not be loaded ({one['reason']})")
    delta = built.header.get("delta")
    if delta:
        console().print(f"new since {base}: {delta['new']:,} items; {delta['unchanged']:,} unchanged")
        for what in ("changed", "dropped"):
            if delta[what]:
                console().print(f"{what}: {', '.join(delta[what])}")
    counts = built.header["counts"]
    console().print(
        f"{counts['items']:,} items, {counts['questions']:,} distinct questions,"
        f" {counts['ngrams']:,} n-grams"
        f" in {out} ({seconds:.1f} s)\n"
        "+answer: removed only where the answer follows. unsure: not checkable (too common to be told"
        " apart), never removed. short: under 5 words, never found. dup: repeated rows."
    )


SHORT = {"question+answer": "q+answer"}
SHORT_TITLES = ("items", "distinct", "dup", "indexed", "+answer", "unsure", "short", "empty")
STATUS_TITLES = ("indexed", "with answer", "not checkable", "too short", "empty")


@app.command()
def scan(
    pool: Annotated[list[str], typer.Argument(help="Files, folders or globs: JSONL, Parquet, Arrow.")],
    index: IndexPath,
    out: Annotated[str, typer.Option("--out", "-o", help="Run folder to write.")],
    text_field: Annotated[
        str,
        typer.Option(
            "--text-field", help="Dotted path, a,b for several, messages[].content for lists."
        ),
    ] = "text",
    id_field: Annotated[
        Optional[str], typer.Option("--id-field", help="Field with the document's id.")
    ] = None,
    workers: Workers = 0,
    preset: Preset = None,
    policy: PolicyFile = None,
    stride: Annotated[
        int, typer.Option("--stride", help="Look up every n-th position; 10 as published.")
    ] = 1,
    remove: Annotated[
        str, typer.Option("--remove", help="document, or span: cut only the match.")
    ] = "document",
    on_bad_row: Annotated[
        str, typer.Option("--on-bad-row", help="fail, or quarantine: set it aside.")
    ] = "fail",
    limit: Annotated[Optional[int], typer.Option("--limit", help="Rows read of each shard.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Report only, write no copy of the pool.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Scan a pool and write a clean copy, what was removed, and the evidence.

    Example: unseen scan pool/ --index INDEX/ -o RUN/
    """
    compiling()
    start_workers(workers)
    from unseen import pipeline

    settings = pipeline.Settings(
        text_field=text_field,
        id_field=id_field,
        stride=stride,
        on_bad_row=on_bad_row,  # type: ignore[arg-type]  # checked by pipeline.check
        remove=remove,
        limit=limit,
        dry_run=dry_run,
        policy=chosen_policy(preset, policy).model_dump(),
    )
    with progress_bar() as (clock, on_plan, on_progress):
        summary = pipeline.scan_pool(
            pool, index, out, settings, workers=workers, on_plan=on_plan, on_progress=on_progress
        )
    show_summary(summary, out, clock(), as_json)


@app.command()
def apply(
    run: Annotated[str, typer.Argument(help="Run folder of `unseen scan`.")],
    preset: Preset = None,
    policy: PolicyFile = None,
    out: Annotated[
        Optional[str], typer.Option("--out", "-o", help="New run folder; else RUN changes.")
    ] = None,
    remove: Annotated[
        Optional[str], typer.Option("--remove", help="document or span; as scanned.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Report only, write no copy of the pool.")
    ] = False,
    workers: Workers = 0,
    as_json: Json = False,
) -> None:
    """Decide again from recorded matches and write the copies, without a scan.

    Example: unseen apply RUN/ --preset published -o RUN-published/
    """
    if dry_run and out is None:
        raise BadSetting("--dry-run needs a new folder", "name one with -o")
    start_workers(workers)
    from unseen import pipeline

    with progress_bar() as (clock, _, on_progress):
        summary = pipeline.apply_run(
            run,
            chosen_policy(preset, policy),
            out=out,
            remove=remove,
            dry_run=dry_run,
            workers=workers,
            on_progress=on_progress,
        )
    show_summary(summary, out or run, clock(), as_json)


@app.command()
def explain(
    doc: Annotated[
        str, typer.Argument(help="Text file, SHARD:ROW (the first row is 0), or - for stdin.")
    ],
    item: Annotated[str, typer.Option("--item", help="SUITE/SPLIT/ITEM")],
    index: IndexPath,
    text_field: Annotated[str, typer.Option("--text-field", help="As in `unseen scan`.")] = "text",
    preset: Preset = None,
    policy: PolicyFile = None,
    as_json: Json = False,
) -> None:
    """Show each stage for one document and one item: why was it found, or missed?

    Example: unseen explain pool/a.jsonl:17 --item gsm8k/test/3 --index INDEX/
    """
    compiling()
    from unseen import explain as explain_module
    from unseen.scan import Index

    text = document(doc, text_field)
    opened = Index.open(index)
    found = explain_module.explain(
        text, opened, opened.find_item(item), policy=chosen_policy(preset, policy)
    )
    if as_json:
        say_json(found)
        return
    for line in explain_module.lines(found):
        print(line)  # noqa: T201


def chosen_policy(preset: str | None, file: str | None) -> Policy:
    """The preset or the policy file, one of them. Raises BadSetting."""
    from unseen import verdict

    if preset is not None and file is not None:
        raise BadSetting("--preset and --policy contradict each other", "give one of them")
    return verdict.policy_named(preset or "default", file)


def document(name: str, text_field: str) -> str:
    """The text that DOC names."""
    if name == "-":
        return sys.stdin.read()
    path, _, row = name.rpartition(":")
    if path and row.isdigit():
        from unseen.files import list_shards
        from unseen.pool import TextField, get_text

        return get_text(list_shards([path]).shards[0], int(row), TextField.parse(text_field))
    if re.search(r"\.(jsonl|parquet|arrow)(\.\w+)?$", name):
        raise BadSetting(f"{name} holds many documents", f"name one: {name}:0 is the first row")
    try:
        return pathlib.Path(name).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(
            f"{name} cannot be read as text: {error}", "name a UTF-8 file, or SHARD:ROW"
        ) from error


def start_workers(workers: int) -> None:
    """Let another process import what workers need while this one does."""
    from unseen import engines

    if (workers or engines.default_workers()) > 1:
        engines.prepare("unseen.cli", "unseen.warm")


def compiling(kernel: str = "scan_texts") -> None:
    """Say so when kernels, this one among them, have to be compiled first: once per machine."""
    from unseen.scan import is_compiled

    if not is_compiled(kernel):
        note = "compiling kernels for their first use (up to 20 seconds) ..."
        print(note, file=sys.stderr)  # noqa: T201


@contextmanager
def progress_bar() -> Iterator[
    tuple[Callable[[], float], Callable[..., None], Callable[[Progress], None]]
]:
    """A bar on standard error: share of the pool read, documents, MB/s, matches, time left.

    The block gets a clock (seconds since the plan was made, so without compiling), and what to call
    with the plan and with progress.
    """
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    with Bar(
        TextColumn("scanning"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[note]}"),
        TimeRemainingColumn(),
        console=console(stderr=True),
        transient=True,
    ) as bar:
        task = bar.add_task("scan", total=None, note="")
        started = time.perf_counter()

        def clock() -> float:
            return time.perf_counter() - started

        def on_plan(shards: list[Any], left: list[Any], ignored: int) -> None:
            nonlocal started
            started = time.perf_counter()
            bar.update(task, total=sum(s.size_bytes for s in left))
            done = f", {len(shards) - len(left)} done before" if len(left) < len(shards) else ""
            skipped = f"; {ignored} files with other suffixes are not read" if ignored else ""
            bar.console.print(f"{len(shards)} shard{'s' * (len(shards) != 1)}{done}{skipped}")

        def on_progress(now: Progress) -> None:
            rate = now.text_bytes / 1e6 / max(clock(), 1e-9)
            note = f"{now.documents:,} documents  {rate:.0f} MB/s  {now.matches:,} matches"
            bar.update(task, completed=now.bytes_read, note=note)

        yield clock, on_plan, on_progress


def show_summary(summary: dict[str, Any], run: str, seconds: float, as_json: bool) -> None:
    """The table at the end, or the summary as JSON."""
    counts = summary["counts"]
    if as_json:
        say_json({**summary, "seconds": round(seconds, 3), "run": run})
        return
    from rich.table import Column, Table

    out = console()
    if summary["suites"]:
        evidence = [k for k in EVIDENCE if any(row["evidence"][k] for row in summary["suites"])]
        cut = summary["settings"].get("remove") == "span"
        titles = ("cut" if cut else "removed", "items", *[SHORT.get(k, k) for k in evidence])
        table = Table(Column("suite", overflow="fold"), "split", *titles, box=None)
        for row in summary["suites"]:
            numbers = [row["documents"], row["items"], *[row["evidence"][k] for k in evidence]]
            table.add_row(row["suite"], row["split"], *[f"{n:,}" if n else "-" for n in numbers])
        out.print(table)
        out.print(
            f"{titles[0]}: documents; items: different items in them; the others: matches by evidence,"
            " whatever became of their documents"
        )
    rows = counts.get("rows", 0)
    share = counts.get("removed", 0) / rows if rows else 0
    shards = f"{summary['shards']} shard{'s' * (summary['shards'] != 1)}"
    out.print(
        f"{rows:,} documents in {shards}: {counts.get('kept', 0):,} kept,"
        f" {counts.get('removed', 0):,} removed ({share:.3%}), {counts.get('bad', 0):,} bad,"
        f" {counts.get('review', 0):,} to review"
    )
    for one in summary["index"].get("missing", []):
        out.print(f"not audited: {one['suite']}, which could not be loaded ({one['reason']})")
    if summary["index"].get("base"):
        out.print("the index holds only what was new when it was built (`unseen index --base`)")
    for name, note in NOTES.items():
        if counts.get(name):
            out.print(f"{counts[name]:,} {note}")
    megabytes = counts.get("text_bytes", 0) / 1e6
    out.print(
        f"{megabytes:,.1f} MB of text in {seconds:.1f} s"
        f" ({megabytes / max(seconds, 1e-9):,.0f} MB/s);"
        f" everything is in {run}"
    )


NOTES = {
    "cut": "documents were kept with their matches cut out",
    "null_rows": "documents have no text (null); they are kept",
    "crowded_segments": "stretches share so much with the index that common n-grams were skipped",
    "hurried_chains": "matches were aligned in a narrow band, for the sake of time",
}
