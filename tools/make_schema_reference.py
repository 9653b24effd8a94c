"""Fill the tables of docs/reference/schemas.md from the code.

    python tools/make_schema_reference.py            # write them
    python tools/make_schema_reference.py --check    # exit 1 when the page is stale

A table stands between `<!-- NAME -->` and `<!-- end -->`; the text around it is written by hand.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from unseen import records, verdict

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "schemas.md"


def fields(described: Mapping[str, str], schema: pa.Schema) -> str:
    """A table of the fields of a schema."""
    rows = [f"| `{name}` | {schema.field(name).type} | {text} |" for name, text in described.items()]
    return "\n".join(["| field | type | what |", "|---|---|---|", *rows])


def rules() -> str:
    """A table of what a rule of a policy may say."""
    rows = []
    for name, field in verdict.Rule.model_fields.items():
        what = field.description or f"one of {', '.join(records.VERDICTS)}"
        default = "required" if field.is_required() else f"`{shown(field.default)}`"
        rows.append(f"| `{name}` | {what} | {default} |")
    return "\n".join(["| key | what | default |", "|---|---|---|", *rows])


def shown(value: object) -> str:
    """A default as a policy file would say it."""
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def page(text: str) -> str:
    """The page with its tables filled."""
    tables = {
        "items": fields(records.ITEM_FIELDS, records.item_schema()),
        "matches": fields(records.MATCH_FIELDS, records.match_schema()),
        "rules": rules(),
    }
    for name, table in tables.items():
        text, count = re.subn(
            rf"<!-- {name} -->\n.*?<!-- end -->",
            lambda _, name=name, table=table: f"<!-- {name} -->\n\n{table}\n\n<!-- end -->",
            text,
            flags=re.S,
        )
        if count != 1:
            raise SystemExit(f"{PAGE}: no place for the table {name}")
    return text


def main() -> int:
    """Write the page, or with --check compare it."""
    before = PAGE.read_text()
    made = page(before)
    if "--check" in sys.argv:
        if before != made:
            print(f"{PAGE} is stale: run `make docs`", file=sys.stderr)
        return int(before != made)
    PAGE.write_text(made)
    print(f"wrote {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
