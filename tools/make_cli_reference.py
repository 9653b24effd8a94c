"""Write docs/reference/cli.md from the commands themselves.

    python tools/make_cli_reference.py            # write it
    python tools/make_cli_reference.py --check    # exit 1 when the page is stale

Only names, help and defaults are taken, so that the page does not depend on Typer's version.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

import typer.main

from unseen import cli

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "cli.md"

HEAD = """\
# Command reference

Made from the commands by `make docs`; do not edit. Every command also takes `-h` and `--help`.

Data goes to standard output, everything else to standard error. With `--json` standard output holds
one JSON value and nothing else.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | `refs build` and `refs check`: done, but a benchmark is missing or short |
| 2 | error: one sentence on what happened and where, and a hint on what to do |

"""


def page() -> str:
    """The whole page as Markdown."""
    group: Any = typer.main.get_command(cli.app)
    commands = all_commands(group)
    toc = "".join(f"* [`unseen {n}`](#unseen-{n.replace(' ', '-')})\n" for n in commands)
    sections = "\n".join(section(name, command) for name, command in commands.items())
    return f"{HEAD}{toc}* [`unseen`](#unseen)\n\n{sections}\n{top(group)}"


def all_commands(group: Any) -> dict[str, Any]:
    """Commands by name; those of a group as `refs build`."""
    out: dict[str, Any] = {}
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            out |= {f"{name} {sub}": found for sub, found in all_commands(command).items()}
        else:
            out[name] = command
    return out


def section(name: str, command: Any) -> str:
    """One command: what it does, an example, arguments and options."""
    text = inspect.cleandoc(command.help)
    summary, _, example = text.partition("\n\nExample: ")
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option"]
    usage = " ".join(["unseen", name, *map(metavar, arguments), "[OPTIONS]"])
    rows = [
        f"| `{metavar(p)}` | {p.help} | {'required' if p.required else 'none'} |" for p in arguments
    ]
    rows += [f"| {names(p)} | {p.help} | {default(p)} |" for p in options if "--help" not in p.opts]
    table = "\n".join(["| option | what | default |", "|---|---|---|", *rows])
    return f"## unseen {name}\n\n{summary}\n\n    {example}\n\nUsage: `{usage}`\n\n{table}\n"


def top(group: Any) -> str:
    """The options of the command itself."""
    own = [p for p in group.params if "--help" not in p.opts]
    rows = "\n".join(f"| {names(p)} | {p.help} |" for p in own)
    return f"## unseen\n\n    unseen --version\n\n| option | what |\n|---|---|\n{rows}\n"


def metavar(argument: Any) -> str:
    """`POOL...` for an argument that may be given several times."""
    return str(argument.name).upper() + ("..." if argument.nargs == -1 else "")


def names(option: Any) -> str:
    """All spellings, short ones first."""
    spelled = sorted({*option.opts, *option.secondary_opts}, key=lambda o: (len(o), o))
    return ", ".join(f"`{o}`" for o in spelled)


def default(option: Any) -> str:
    """What is taken when the option is not given."""
    if option.required:
        return "required"
    if option.is_flag:
        return "off"
    return "none" if option.default is None else f"`{option.default}`"


def main() -> int:
    """Write the page, or with --check compare it."""
    made = page()
    if "--check" not in sys.argv:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(made)
        print(f"wrote {PAGE}")
        return 0
    if not PAGE.exists() or PAGE.read_text() != made:
        print(f"{PAGE} is stale: run `make docs`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
