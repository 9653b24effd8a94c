"""The commands `unseen refs ...`: build, check, list, show and diff reference sets."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from unseen.cli_show import Json, console, say_json
from unseen.errors import BadSetting

if TYPE_CHECKING:
    from rich.table import Table

app = typer.Typer(
    help="Reference sets: build them from a catalog, check them, compare them.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
)

Refs = Annotated[list[str], typer.Argument(help="Reference folders, or files of items.")]


@app.command()
def build(
    catalog: Annotated[
        Optional[list[str]], typer.Argument(help="Catalog files (YAML); without: the built-in one.")
    ] = None,
    out: Annotated[str, typer.Option("--out", "-o", help="Reference folder to write.")] = "REFS",
    only: Annotated[
        Optional[list[str]],
        typer.Option("--only", help="Only these benchmarks; * and ? allowed. May be repeated."),
    ] = None,
    data: Annotated[
        Optional[list[str]],
        typer.Option("--data", help="DATASET=PATH: a local copy of a dataset. May be repeated."),
    ] = None,
    splits: Annotated[
        Optional[list[str]],
        typer.Option("--split", help="Only these splits. May be repeated."),
    ] = None,
    keep_going: Annotated[
        bool,
        typer.Option("--keep-going", help="Build the others when one cannot be loaded; exit code 1."),
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a reference folder that is there.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say which benchmarks would be loaded, load none.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Load every benchmark of a catalog and write its items.

    Example: unseen refs build catalog.yaml -o REFS/
    """
    from unseen import catalog as catalogs
    from unseen import collect

    entries = catalogs.read_catalog(catalog) if catalog else catalogs.built_in()
    entries = collect.chosen(entries, only or [])
    if dry_run:
        say_entries(entries, as_json)
        return
    with progress_bar() as on_benchmark:
        header = collect.collect(
            entries,
            out,
            keep_going=keep_going,
            overwrite=overwrite,
            splits=splits,
            data=pairs(data or []),
            on_benchmark=on_benchmark,
        )
    if as_json:
        say_json({"refs": out, **header})
    else:
        show_built(header, out)
    if header["missing"]:
        raise typer.Exit(1)


@app.command()
def catalog(
    files: Annotated[
        Optional[list[str]], typer.Argument(help="Catalog files (YAML); without: the built-in one.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List the benchmarks of a catalog: dataset, language, licence.

    Example: unseen refs catalog
    """
    from unseen import catalog as catalogs

    say_entries(catalogs.read_catalog(files) if files else catalogs.built_in(), as_json)


@app.command()
def check(
    refs: Refs,
    require: Annotated[
        Optional[str],
        typer.Option(
            "--require", help="File: `SUITE[/SPLIT] COUNT` a line, or YAML. Exit code 1 if unmet."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Say what is in a reference set, field by field, and what is wrong with it.

    Example: unseen refs check REFS/ --require required.txt
    """
    from unseen import census

    required = census.read_requirements(require) if require else []
    found = census.take(refs)
    unmet = census.unmet(found, required)
    if as_json:
        say_json({**dataclasses.asdict(found), "unmet": unmet})
    else:
        show([*census.tables_of_check(found), *census.tables_of_unmet(unmet)])
    if unmet or found.missing or found.mismatched:
        raise typer.Exit(1)


@app.command("list")
def list_suites(refs: Refs, as_json: Json = False) -> None:
    """List the suites and splits of a reference set.

    Example: unseen refs list REFS/
    """
    from unseen import census

    suites = census.list_suites(refs)
    if as_json:
        say_json(suites)
    else:
        show(census.tables_of_list(suites))


@app.command("show")
def show_suite(
    suite: Annotated[str, typer.Argument(help="Name of the suite.")],
    refs: Refs,
    limit: Annotated[int, typer.Option("--limit", "-n", min=0, help="Items shown of each split.")] = 3,
    as_json: Json = False,
) -> None:
    """Show where a suite came from, what was done to its fields, and some of its items.

    Example: unseen refs show gsm8k REFS/
    """
    from unseen import census

    found = census.show_suite(refs, suite, limit)
    if as_json:
        say_json(found)
    else:
        show(census.tables_of_show(found))


@app.command()
def diff(
    old: Annotated[str, typer.Argument(help="Reference folder, file of items, or index.")],
    new: Annotated[str, typer.Argument(help="The newer one.")],
    as_json: Json = False,
) -> None:
    """Say which suites and items were added, dropped or changed between two reference sets.

    Example: unseen refs diff REFS/ REFS-2/
    """
    from unseen import census

    found = census.diff(old, new)
    if as_json:
        say_json(dataclasses.asdict(found))
    else:
        show(census.tables_of_diff(found))


def show(tables: Sequence[Table]) -> None:
    """Tables, with a line between them."""
    for table in tables:
        console().print(table)
        console().print()


def pairs(given: list[str]) -> dict[str, str]:
    """`NAME=PATH` options. BadSetting for one without a path."""
    out = {}
    for text in given:
        name, equals, path = text.partition("=")
        if not equals or not path:
            raise BadSetting(f"--data {text} names no path", "write DATASET=PATH")
        out[name] = path
    return out


def say_entries(entries: dict[str, Any], as_json: bool) -> None:
    """The benchmarks of a catalog as a table or as JSON."""
    if as_json:
        say_json({name: entry.model_dump(exclude_defaults=True) for name, entry in entries.items()})
        return
    from rich.table import Column, Table

    columns = [Column(name, overflow="fold") for name in ("benchmark", "source", "dataset")]
    table = Table(*columns, "language", "licence", box=None)
    for name, entry in entries.items():
        where = entry.dataset or entry.path or ", ".join(entry.tasks or [])
        table.add_row(name, entry.source, where, entry.language or "", entry.licence or "")
    console().print(table)
    console().print(f"{len(entries)} benchmarks")


def show_built(header: dict[str, Any], out: str) -> None:
    """What was built, and what is missing."""
    from rich.table import Column, Table

    table = Table(Column("suite", overflow="fold"), "split", "items", "notes", box=None)
    for row in header["suites"]:
        notes = "; ".join(note.split(":")[0] for note in row["notes"])
        table.add_row(row["suite"], row["split"], f"{row['items']:,}", notes)
    console().print(table)
    items = sum(row["items"] for row in header["suites"])
    suites = len({row["suite"] for row in header["suites"]})
    console().print(f"{items:,} items of {suites} suite{'s' * (suites != 1)} in {out}")
    for one in header["missing"]:
        print(f"missing: {one['suite']}: {one['reason']}", file=sys.stderr)  # noqa: T201
        print(f"  hint: {one['hint']}", file=sys.stderr)  # noqa: T201


@contextmanager
def progress_bar() -> Iterator[Callable[[str, int, int], None]]:
    """A bar on standard error: the benchmark being loaded, and how many are done."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    with Progress(
        TextColumn("loading {task.fields[name]}"),
        BarColumn(),
        MofNCompleteColumn(),
        console=console(stderr=True),
        transient=True,
    ) as bar:
        task = bar.add_task("load", total=None, name="")

        def on_benchmark(name: str, done: int, total: int) -> None:
            bar.update(task, completed=done, total=total, name=name)

        yield on_benchmark
