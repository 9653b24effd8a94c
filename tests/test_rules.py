"""The rules of the code base: layers, one file of kernels, light imports, no silent output."""

from __future__ import annotations

import ast
import io
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

import unseen

ROOT = pathlib.Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "unseen"
MODULES = {path.stem: path for path in sorted(PACKAGE.glob("*.py"))}

# A module imports only from lower levels; imports inside functions count too.
LEVELS = {
    0: ["errors", "records", "kernels"],
    1: ["files", "engines", "catalog"],
    2: [
        *("tokens", "pool", "refs", "score", "verdict", "write", "manifest"),
        *("fields", "lm_eval", "eval_framework"),
    ],
    3: ["index", "sources"],
    4: ["scan", "collect", "census"],
    5: ["pipeline", "explain"],
    6: ["cli_show", "warm"],
    7: ["cli_refs"],
    8: ["cli"],
}
LEVEL_OF = {name: level for level, names in LEVELS.items() for name in names}
DRAWERS = {"utils", "util", "common", "core", "helpers", "base", "misc"}


def tree_of(name: str) -> ast.Module:
    return ast.parse(MODULES[name].read_text(), MODULES[name].name)


def imports_of(tree: ast.AST) -> Iterator[str]:
    """Modules that a tree imports; `from unseen import x` gives unseen.x."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: imports are absolute"
            assert node.module is not None
            if node.module == "unseen":
                yield from (f"unseen.{alias.name}" for alias in node.names)
            else:
                yield node.module


def own_imports(name: str) -> set[str]:
    """Modules of the package that one of them imports."""
    inside = (module.split(".") for module in imports_of(tree_of(name)) if "." in module)
    return {parts[1] for parts in inside if parts[0] == "unseen" and parts[1] in MODULES}


def test_every_module_has_a_level() -> None:
    assert set(MODULES) - {"__init__", "__main__"} == set(LEVEL_OF)


@pytest.mark.parametrize("name", LEVEL_OF)
def test_imports_go_down_only(name: str) -> None:
    wrong = [other for other in own_imports(name) if LEVEL_OF[other] >= LEVEL_OF[name]]
    assert not wrong, f"{name} (level {LEVEL_OF[name]}) imports {wrong}"


def test_a_wrong_import_would_be_seen() -> None:
    tree = ast.parse(
        "def f():\n    from unseen import scan\n    from unseen.index import CompiledIndex"
    )
    assert list(imports_of(tree)) == ["unseen.scan", "unseen.index"]


def test_compiled_code_is_in_one_file() -> None:
    """Numba's cache does not see edits in other files than the kernel's own."""
    users = [name for name in MODULES if any(m.startswith("numba") for m in imports_of(tree_of(name)))]
    assert users == ["kernels"]
    assert not [n for n in MODULES if n != "kernels" and "njit" in MODULES[n].read_text()]
    roots = {module.split(".")[0] for module in imports_of(tree_of("kernels"))}
    assert roots <= {"__future__", "typing", "collections", "numpy", "numba", "llvmlite"}


def test_the_reference_is_independent() -> None:
    tree = ast.parse((ROOT / "tests" / "naive.py").read_text())
    assert not [m for m in imports_of(tree) if m.split(".")[0] == "unseen"]


@pytest.mark.parametrize("name", MODULES)
def test_no_output_but_the_commands_own(name: str) -> None:
    calls = [node.func for node in ast.walk(tree_of(name)) if isinstance(node, ast.Call)]
    names = {ast.unparse(function) for function in calls}
    if not name.startswith("cli"):
        assert "print" not in names
        assert not {n for n in names if n.startswith(("sys.stdout.write", "sys.stderr.write"))}
    assert "logging.basicConfig" not in names


@pytest.mark.parametrize("name", MODULES)
def test_no_error_is_swallowed(name: str) -> None:
    """No bare except; one that catches everything raises again."""
    for node in ast.walk(tree_of(name)):
        if not isinstance(node, ast.ExceptHandler):
            continue
        assert node.type is not None, f"{name}, line {node.lineno}: bare except"
        if ast.unparse(node.type) in ("Exception", "BaseException"):
            assert isinstance(node.body[-1], ast.Raise), f"{name}, line {node.lineno}"


def test_no_drawers() -> None:
    assert not DRAWERS & set(MODULES)


def functions_of(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """Public functions of a module and public methods of its public classes."""
    inherited = set(dir(io.RawIOBase))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield node
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            for inner in node.body:
                known = (
                    inner.name.startswith("_") or (node.bases and inner.name in inherited)
                    if isinstance(inner, ast.FunctionDef)
                    else True
                )
                if isinstance(inner, ast.FunctionDef) and not known:
                    yield inner


@pytest.mark.parametrize("name", MODULES)
def test_public_functions_are_documented_and_annotated(name: str) -> None:
    """One or two plain statements may speak for themselves; everything has types."""
    for function in functions_of(tree_of(name)):
        where = f"{name}.{function.name}, line {function.lineno}"
        if len(function.body) > 2 or name == "kernels":
            assert ast.get_docstring(function), f"{where}: no docstring"
        if name == "kernels":
            continue  # Numba infers the types; the docstrings state them
        assert function.returns is not None, f"{where}: no return type"
        arguments = function.args
        for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
            if argument.arg not in ("self", "cls"):
                assert argument.annotation is not None, f"{where}: {argument.arg} has no type"


@pytest.mark.parametrize("name", MODULES)
def test_modules_say_what_they_are(name: str) -> None:
    assert ast.get_docstring(tree_of(name))


def test_all_is_what_is_exported() -> None:
    exported = {name for name in dir(unseen) if not name.startswith("_")}
    exported -= {*MODULES, "annotations", "TYPE_CHECKING", "Any"}
    lazy = {name for name in unseen.__all__ if name not in vars(unseen)}
    assert exported | lazy | {"__version__"} == set(unseen.__all__)
    assert len(unseen.__all__) == len(set(unseen.__all__))
    assert all(getattr(unseen, name) is not None for name in unseen.__all__)
    with pytest.raises(AttributeError):
        _ = unseen.nothing_of_this_name


HEAVY = ("numpy", "numba", "pyarrow", "simdjson", "xxhash", "yaml")


@pytest.mark.parametrize(
    "code",
    [
        "import unseen",
        "import sys; sys.argv = ['unseen', '--help']\nfrom unseen.cli import main\n"
        "try: main()\nexcept SystemExit: pass",
        "import sys; sys.argv = ['unseen', 'scan', '--stride', 'x']\nfrom unseen.cli import main\n"
        "try: main()\nexcept SystemExit: pass",
    ],
    ids=["import", "help", "usage error"],
)
def test_start_is_light(code: str) -> None:
    """Help and usage errors load no array library: they take a tenth of a second, not one."""
    code += f"\nimport sys\nsys.exit(', '.join(m for m in {HEAVY} if m in sys.modules) or 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"loaded: {done.stderr[-300:]}"


def test_the_readme_maps_every_module() -> None:
    readme = (ROOT / "README.md").read_text()
    table = readme[readme.index("## The code") :]
    table = table[: table.index("\n## ", 5)]
    named = re.findall(r"^\| `(\w+)\.py` \| (.+) \|$", table, re.M)
    assert [name for name, _ in named] == list(dict.fromkeys(name for name, _ in named))
    assert {name for name, _ in named} == set(MODULES)
    assert all(len(line) > 10 for _, line in named)
