"""The documentation keeps up with the code: commands, options, fields, links, examples."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer.main

import unseen
from unseen import cli, records, verdict

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
GROUP: Any = typer.main.get_command(cli.app)
COMMANDS: dict[str, Any] = {}  # `refs build` and the like are commands of a group
for _name, _command in GROUP.commands.items():
    COMMANDS |= {f"{_name} {sub}": c for sub, c in getattr(_command, "commands", {}).items()} or {
        _name: _command
    }
# What the project must not say: places and things of one machine.
PRIVATE = re.compile(r"/work/|\.\./shared|/tmp/|/root/|localhost")


def text_of(name: str) -> str:
    return (ROOT / name).read_text()


def prose_of(name: str) -> str:
    """A page without its code."""
    text = re.sub(r"```.*?```", "", text_of(name), flags=re.S)
    return re.sub(r"(?m)^    .*$", "", text)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


# ---- commands ------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_an_example_and_a_place_in_the_readme(command: str) -> None:
    assert re.search(rf"Example: unseen {command}( |$)", COMMANDS[command].help)
    assert re.search(rf"\n    unseen {command}[ \n]", text_of("README.md"))
    assert f"## unseen {command}\n" in text_of("docs/reference/cli.md")
    for parameter in COMMANDS[command].params:
        assert parameter.help, f"{command}: {parameter.name} has no help"


@pytest.mark.parametrize("tool", ["make_cli_reference", "make_schema_reference"])
def test_pages_made_from_the_code_are_current(tool: str) -> None:
    done = run(f"tools/{tool}.py", "--check")
    assert done.returncode == 0, done.stderr


def commands_in(name: str) -> list[list[str]]:
    """The commands of a page: indented lines, or lines after a prompt, that start with `unseen`."""
    lines = re.findall(r"(?m)^\s*(?:\$ |\S*bin/)?(unseen .*)$", text_of(name))
    return [shlex.split(line.split(" #")[0].split(" > ")[0]) for line in lines if "`" not in line]


@pytest.mark.parametrize("name", [*NAMES, "examples/policy.yaml"])
def test_commands_in_the_docs_exist(name: str) -> None:
    for words in commands_in(name):
        flags = [word for word in words if re.match(r"-{1,2}[a-z]", word)]
        name = next((n for n in (" ".join(words[1:3]), words[1]) if n in COMMANDS), None)
        command = GROUP if name is None else COMMANDS[name]
        known = {option for parameter in command.params for option in parameter.opts}
        assert name is not None or words[1].startswith("-"), words
        assert set(flags) <= known | {"-h", "--help"}, words


def test_the_check_sees_commands() -> None:
    assert [
        "unseen",
        "apply",
        "RUN/",
        "--policy",
        "examples/policy.yaml",
        "-o",
        "RUN2/",
    ] in commands_in("README.md")
    assert sum(len(commands_in(name)) for name in NAMES) > 15


# ---- fields --------------------------------------------------------------------------------------


def test_all_fields_are_documented() -> None:
    page = text_of("docs/reference/schemas.md")
    named = set(re.findall(r"(?m)^\| `([\w+ ]+)` \|", page))
    wanted = {*records.MATCH_FIELDS, *records.ITEM_FIELDS, *verdict.Rule.model_fields}
    wanted |= {*records.EVIDENCE, *verdict.PRESETS}
    assert wanted <= named, wanted - named


def test_the_schemas_have_the_described_fields() -> None:
    assert records.match_schema().names == list(records.MATCH_FIELDS)
    assert records.item_schema().names == list(records.ITEM_FIELDS)


def test_evidence_in_the_readme() -> None:
    rules = verdict.PRESETS["default"].rules
    default = {kind: rule.verdict for rule in rules for kind in rule.evidence}
    rows = re.findall(r"(?m)^\| `([a-z+]+)` \| .+ \| (remove|review|keep) \|$", text_of("README.md"))
    assert dict(rows) == {kind: default.get(kind, "keep") for kind in records.EVIDENCE}


# ---- links, words, versions ----------------------------------------------------------------------


def anchors_of(text: str) -> set[str]:
    """Anchors of the headings of a page, as GitHub makes them."""
    heads = re.findall(r"(?m)^#+ (.+)$", text)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name: str) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", text_of(name)):
        if re.match(r"https?:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (ROOT / name).parent / path if path else ROOT / name
        assert file.exists(), f"{name}: {target}"
        if anchor and file.suffix == ".md":
            assert anchor in anchors_of(file.read_text()), f"{name}: {target}"


@pytest.mark.parametrize("name", NAMES)
def test_files_that_are_named_exist(name: str) -> None:
    """Paths in code quotes: `tests/naive.py`, `docs/log.md`."""
    quoted = re.findall(r"`((?:src|tests|docs|tools|bench|examples)/[\w./-]+\.\w+)`", text_of(name))
    for path in quoted:
        assert (ROOT / path).exists(), f"{name}: {path}"


@pytest.mark.parametrize("name", NAMES)
def test_make_targets_that_are_named_exist(name: str) -> None:
    targets = set(re.findall(r"(?m)^([a-z]+):", text_of("Makefile")))
    named = re.findall(r"(?m)(?:^    |`)make ([a-z]+)\b", text_of(name))
    assert set(named) <= targets, name


SOURCES = sorted(
    path
    for folder in ("src", "examples", "tools", "bench", ".ci")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in (".py", ".yaml", "") and path.is_file()
)


@pytest.mark.parametrize("path", [*PAGES, *SOURCES, ROOT / "Makefile"], ids=lambda p: p.name)
def test_nothing_names_one_machine(path: Path) -> None:
    found = PRIVATE.search(path.read_text())
    assert found is None, found


@pytest.mark.parametrize("name", NAMES)
def test_lines_are_not_endless(name: str) -> None:
    """Prose is wrapped, so that a change can be read; tables and code may be long."""
    long = [line for line in prose_of(name).splitlines() if len(line) > 112 and line[:1] != "|"]
    assert not long, long


def test_versions_agree() -> None:
    project = tomllib.loads(text_of("pyproject.toml"))["project"]
    assert project["version"] == unseen.__version__
    assert f"## {unseen.__version__}" in text_of("CHANGELOG.md")
    assert project["license"] in text_of("README.md")


def test_the_figure_is_sound() -> None:
    import xml.etree.ElementTree as ElementTree

    root = ElementTree.fromstring(text_of("docs/flow.svg"))
    words = " ".join(element.text or "" for element in root.iter())
    for command in GROUP.commands:
        assert f"unseen {command}" in words


# ---- examples ------------------------------------------------------------------------------------


def test_the_filter_example_runs() -> None:
    done = run("examples/filter_dataset.py")
    assert done.returncode == 0, done.stderr
    assert "2 of 4 rows kept" in done.stdout


def test_the_example_policy_is_valid() -> None:
    policy = verdict.policy_named("default", str(ROOT / "examples" / "policy.yaml"))
    assert [rule.verdict for rule in policy.rules] == ["keep", "remove", "review", "review", "review"]


def test_the_demo_finds_what_it_planted(tmp_path: Path) -> None:
    """With a small pool; `make demo` takes a larger one."""
    done = run("examples/demo.py", "--megabytes", "3", "--out", str(tmp_path / "demo"))
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    assert "MISSED" not in done.stdout
    readme = text_of("README.md")
    shown = readme[readme.index("planted as") : readme.index(" ...\nordinary")]
    for line in shown.splitlines()[1:]:
        kind, expected, happened = re.split(r"\s{2,}", line.strip())[:3]
        assert re.search(rf"{re.escape(kind)} +{expected} +{happened}", done.stdout), line
