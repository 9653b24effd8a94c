"""The run folder's own records: what was asked (run.json), what is done (done/<shard>.json).

run.json is written first, a done record last, after the outputs it lists. Neither holds a time, so the
same call gives the same bytes, however often it was interrupted.
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from unseen.errors import BadRun
from unseen.files import atomic_write, remove_leftovers

FORMAT = 1
FOLDERS = ("matches", "clean", "removed", "bad", "done")


def start(run: pathlib.Path, request: Mapping[str, Any]) -> None:
    """Write run.json, or check that the one there asks for the same; BadRun names what differs."""
    request = {"format": FORMAT, **request}
    path = run / "run.json"
    if run.exists() and not run.is_dir():
        raise BadRun(f"{run} is a file", "name a folder with -o")
    remove_leftovers(str(run))
    if path.exists():
        differs = differences(read(run), request)
        if differs:
            raise BadRun(
                f"{run} holds a run with other settings: {'; '.join(differs)}",
                "name another folder with -o, or go back to the old settings",
            )
        return
    if run.exists() and any(run.iterdir()):
        raise BadRun(f"{run} is not empty and holds no run", "name a new folder with -o")
    write_json(path, request)


def read(run: pathlib.Path) -> dict[str, Any]:
    """The request of a run. Raises BadRun when there is none."""
    return read_json(run / "run.json", f"{run} is not a run folder", "check the path")


def read_json(path: pathlib.Path, problem: str, hint: str) -> dict[str, Any]:
    """A record of a run; BadRun when it cannot be read."""
    try:
        return dict(json.loads(path.read_text()))
    except (OSError, ValueError) as error:
        raise BadRun(f"{problem}: {path} cannot be read ({error})", hint) from error


def differences(old: Any, new: Any, name: str = "") -> list[str]:
    """Leaves that differ between two requests, as `name: old, now new`."""
    if isinstance(old, dict) and isinstance(new, dict):
        keys = list(old) + [k for k in new if k not in old]
        parts = [differences(old.get(k), new.get(k), f"{name}.{k}" if name else k) for k in keys]
        return [line for part in parts for line in part]
    if old == new:
        return []
    if name == "shards":
        before, now = ({shard["name"] for shard in shards} for shards in (old, new))
        gone = [f"{n} is gone from the pool" for n in sorted(before - now)]
        return (gone + [f"{n} is new in the pool" for n in sorted(now - before)])[:10] or [
            "the pool's files lie elsewhere now"
        ]
    return [f"{name} was {_short(old)}, now {_short(new)}"]


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 120 else f"{text[:100]}... ({len(text)} characters)"


def done_path(run: pathlib.Path, shard: str) -> pathlib.Path:
    return run / "done" / f"{shard}.json"


def finished(
    run: pathlib.Path, shard: str, size_bytes: int, decided: str | None = None
) -> dict[str, Any] | None:
    """The record of a shard that is done, or None.

    decided: what its verdicts and copies must come from; a record that was decided otherwise is not
    done. Without it the matches alone count, whatever was decided. Raises BadRun when the input has
    another size now, or an output is missing or has another size.
    """
    path = done_path(run, shard)
    if not path.exists():
        return None
    record = read_json(path, f"{shard} has a damaged record", f"delete {path} and run again")
    if record["input"]["size_bytes"] != size_bytes:
        raise BadRun(
            f"{shard} had {record['input']['size_bytes']} bytes when it was scanned, now {size_bytes}",
            f"scan it again: delete {path}, or name another folder with -o",
        )
    if decided is None:
        return record
    if record["decided"] != decided:
        return None
    for name, facts in record["outputs"].items():
        output = run / name
        if not output.exists() or output.stat().st_size != facts["size_bytes"]:
            raise BadRun(
                f"{output} is missing or not as it was written", f"write it again: delete {path}"
            )
    return record


def write_json(path: pathlib.Path, value: Any) -> None:
    """Write JSON, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(str(path)) as file:
        file.write((json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode())


def add_up(records: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Sums of the `counts` of done records."""
    total: dict[str, int] = {}
    for record in records:
        for name, number in record["counts"].items():
            total[name] = total.get(name, 0) + number
    return total
