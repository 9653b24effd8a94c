"""What all commands share: the console, JSON output, and options of the same name."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON on standard output.")]


def say_json(value: Any) -> None:
    """The result of a command, for machines."""
    print(json.dumps(value, indent=1, ensure_ascii=False))  # noqa: T201


def console(*, stderr: bool = False) -> Console:
    """Where tables go; 120 columns wide where nobody looks at a terminal."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    return Console(stderr=stderr, highlight=False, width=None if stream.isatty() else 120)
