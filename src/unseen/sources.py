"""Sources: the rows of a catalog's entries, and the items they become.

In: an entry that says where its rows are: files (jsonl, parquet, csv), a Hugging Face dataset, or a
decon reference folder. Out: `Loaded` splits. Nothing is ever executed that a dataset brings along.

A Hugging Face dataset comes from the hub, from its cache (offline too: HF_HOME, HF_HUB_OFFLINE), or
from a local folder in the hub's layout (README.md with `configs:`, and its data files). In the hub's
Parquet copy of a dataset (`revision: refs/convert/parquet`) each configuration is a folder.
"""

from __future__ import annotations

import csv
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from unseen import refs
from unseen.catalog import Draft, Entry, Loaded, Unavailable, drafts_of, fields_of, suites_of
from unseen.errors import BadInput, BadSetting, MissingExtra
from unseen.files import list_shards

HUB = "https://huggingface.co/datasets/"
PARQUET_COPY = "refs/convert/parquet"
_hub_is_silent = False  # it did not answer once: each further benchmark would wait as long again
UNREACHED = {"ConnectionError", "ConnectError", "ConnectTimeout", "ReadTimeout", "ProxyError"}


def load(
    suite: str,
    entry: Entry,
    *,
    splits: Sequence[str] | None = None,
    data: Mapping[str, str] | None = None,
    cache_dir: str | None = None,
) -> Iterator[Loaded | Unavailable]:
    """The splits of an entry, in its source's order; one suite for each of its `configs`.

    A suite that cannot be loaded gives an Unavailable, which names it and the remedy.
    splits: instead of the entry's own.  data: {dataset id: local folder in the hub's layout}.
    cache_dir: of `datasets`.
    Raises BadInput for a damaged file or a row that does not fit, MissingExtra without `datasets`.
    """
    for name, given in suites_of(suite, entry).items():
        one = given.model_copy(update={"splits": tuple(splits)}) if splits else given
        try:
            if one.source == "hf":
                yield from _from_hub(name, one, data or {}, cache_dir)
            elif one.source == "decon":
                yield from _from_decon(name, one)
            elif one.source in ("jsonl", "parquet", "csv"):
                yield from _from_files(name, one)
            else:
                raise BadSetting(f"{name}: source {one.source} has an adapter of its own", "use that")
        except Unavailable as error:
            yield error


def dataset_id(dataset: str) -> str:
    """ORG/NAME of a dataset that may be given as a link: `hf.co/datasets/ORG/NAME`, `hf://...`."""
    link = re.fullmatch(
        r"(?:https?://)?(?:www\.)?(?:huggingface\.co|hf\.co)/datasets/([^/?#]+/[^/?#]+|[^/?#]+)(?:[/?#].*)?"
        r"|hf://datasets/([^/@]+/[^/@]+)(?:[/@].*)?",
        dataset,
    )
    return (link[1] or link[2]) if link else dataset


# Files


def _from_files(suite: str, entry: Entry) -> Iterator[Loaded]:
    for split in _wanted_splits(suite, entry, list(entry.files)):
        given = entry.files[split]
        paths = [given] if isinstance(given, str) else list(given)
        rows = [row for path in paths for row in _rows_of_files(suite, entry.source, path)]
        yield _loaded(suite, split, entry, rows, {})


def _rows_of_files(suite: str, source: str, path: str) -> Iterator[dict[str, Any]]:
    """Rows of a path, a glob or an fsspec URL, files in the order of their names."""
    if "://" not in path:
        yield from _rows_here(suite, source, path)
        return
    import fsspec

    with tempfile.TemporaryDirectory() as folder:
        try:
            system, pattern = fsspec.url_to_fs(path)
            names = sorted(system.glob(pattern)) if _has_magic(pattern) else [pattern]
            for number, name in enumerate(names):
                system.get_file(name, os.path.join(folder, f"{number:06}-{os.path.basename(name)}"))
        except (OSError, ImportError, ValueError) as error:
            raise Unavailable(
                suite, f"cannot read {path} ({error})", "check the address, the network and your rights"
            ) from error
        if not names:
            raise Unavailable(suite, f"nothing matches {path}", "check the address")
        yield from _rows_here(suite, source, folder)


def _has_magic(pattern: str) -> bool:
    return re.search(r"[*?\[]", pattern) is not None


def _rows_here(suite: str, source: str, path: str) -> Iterator[dict[str, Any]]:
    """Rows of a local file, folder or glob."""
    try:
        if source == "csv":
            yield from _csv_rows(suite, path)
            return
        listing = list_shards([path])
        if listing.ignored:
            names = ", ".join(os.path.basename(str(name)) for name in listing.ignored[:3])
            raise Unavailable(
                suite,
                f"{path} holds files that are not read ({names})",
                "name those to read, or a glob",
            )
        for shard in listing.shards:
            if shard.format != source:
                raise Unavailable(
                    suite, f"{shard.path} is {shard.format}, not {source}", "change `source`"
                )
            yield from (row for _, row in refs.numbered_rows(shard))
    except FileNotFoundError as error:
        raise Unavailable(suite, f"{path} does not exist", "check `files` in the catalog") from error
    except BadInput as error:
        if "does not exist" in error.message or "nothing matches" in error.message:
            raise Unavailable(suite, error.message, "check `files` in the catalog") from error
        raise BadInput(f"{suite}: {error.message}", "correct the file, or get it again") from error


def _csv_rows(suite: str, path: str) -> Iterator[dict[str, Any]]:
    """Rows of CSV files (.tsv: with tabs) with a head line, plain or compressed; values are text."""
    import fsspec

    csv.field_size_limit(1 << 30)
    pattern = os.path.join(path, "[!._]*.[ct]sv*") if os.path.isdir(path) else path
    files = fsspec.open_files(
        pattern, "rt", compression="infer", encoding="utf-8-sig", errors="strict", newline=""
    )
    if not files:
        raise Unavailable(suite, f"nothing matches {path}", "check `files` in the catalog")
    for file in files:
        separator = "\t" if ".tsv" in Path(file.path).suffixes else ","
        try:
            with file as text:
                reader = csv.DictReader(text, delimiter=separator, strict=True)
                for number, row in enumerate(reader):
                    if None in row or None in row.values():
                        reason = f"it has not the {len(reader.fieldnames or [])} fields of the head"
                        raise BadInput(
                            f"{file.path}, row {number}: {reason}",
                            "quote the fields, or correct the file",
                        )
                    yield row
        except (csv.Error, UnicodeDecodeError, EOFError) as error:
            raise BadInput(
                f"{file.path} is no whole CSV file: {error}", "get the file again"
            ) from error


# Hugging Face


def _from_hub(
    suite: str, entry: Entry, data: Mapping[str, str], cache_dir: str | None
) -> Iterator[Loaded]:
    """Splits of a dataset through `datasets`; decoded values only, no images or sounds."""
    global _hub_is_silent
    try:
        import datasets
    except ImportError as error:
        raise MissingExtra("Hugging Face datasets are not installed", "pip install datasets") from error

    name = dataset_id(str(entry.dataset))
    folder = data.get(name, data.get(str(entry.dataset)))
    if folder is None and os.path.isdir(name):
        folder = name
    if folder is not None and not os.path.isdir(folder):
        raise Unavailable(suite, f"there is no folder {folder} for {name}", "check the path")
    files = _lists(entry.data_files)
    config, data_dir = entry.config, entry.data_dir
    if (
        config
        and entry.revision == PARQUET_COPY
        and (not folder or os.path.isdir(f"{folder}/{config}"))
    ):
        config, data_dir = None, config
    # `datasets` knows a local folder by its name alone: a cache would give the rows of an older one.
    cache = tempfile.TemporaryDirectory(prefix="unseen-") if folder and not cache_dir else None
    offline = datasets.config.HF_HUB_OFFLINE
    try:
        datasets.config.HF_HUB_OFFLINE = offline or (_hub_is_silent and not folder)
        found = datasets.load_dataset(
            folder or name,
            name=config,
            data_dir=data_dir,
            data_files=files,
            revision=None if folder else entry.revision,
            cache_dir=cache.name if cache else cache_dir,
        )
    except Exception as error:
        failed = _unavailable(suite, name, entry, error)
        _hub_is_silent = _hub_is_silent or "the hub cannot be reached" in failed.reason
        raise failed from error
    finally:
        datasets.config.HF_HUB_OFFLINE = offline
    if config and not files:  # offline, the cache may give another configuration without a word
        got = {str(one.info.config_name) for one in found.values()} - {config, "None"}
        if got:
            raise Unavailable(
                suite,
                f"{name} has no configuration {entry.config}, only {sorted(got)}",
                "change `config`",
            )
    for split in _wanted_splits(suite, entry, [str(split) for split in found]):
        part = found[split]
        facts = {"revision": entry.revision or _commit_of(part)}
        yield _loaded(suite, split, entry, _rows_of_dataset(part, entry), facts)
    if cache:
        cache.cleanup()


def _lists(value: Any) -> Any:
    """Tuples as lists, which is what `datasets` takes."""
    if isinstance(value, Mapping):
        return {key: _lists(one) for key, one in value.items()}
    return list(value) if isinstance(value, tuple) else value


def _rows_of_dataset(part: Any, entry: Entry) -> list[dict[str, Any]]:
    """Rows as they are stored: class labels are numbers. Only the columns that the mapping reads."""
    wanted = fields_of(entry)
    if wanted is not None and wanted <= set(part.column_names):
        part = part.select_columns([name for name in part.column_names if name in wanted])
    rows: list[dict[str, Any]] = []
    for table in part.with_format("arrow").iter(batch_size=10_000):
        rows += table.to_pylist()
    return rows


def _commit_of(part: Any) -> str | None:
    """The commit that the rows came from, if `datasets` says so."""
    for url in part.info.download_checksums or {}:
        if found := re.search(r"@([0-9a-f]{40})", str(url)):
            return found[1]
    return None


def _unavailable(suite: str, name: str, entry: Entry, error: Exception) -> Unavailable:
    """What an exception of `datasets` means, and what to do."""
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in chain:
        chain.append(cause)
        cause = cause.__cause__ or cause.__context__
    kinds = {type(one).__name__ for one in chain}
    text = " ".join(" ".join(str(one).split()) for one in chain)
    status = {getattr(getattr(one, "response", None), "status_code", None) for one in chain}
    short = " ".join(str(error).split())[:300]

    def says(*words: str) -> bool:
        return any(word.lower() in text.lower() for word in words)

    gated = "GatedRepoError" in kinds or says("gated dataset")
    missing = kinds & {"RepositoryNotFoundError", "DatasetNotFoundError"} or 404 in status
    if gated or (status & {401, 403} and "RepositoryNotFoundError" not in kinds):
        return Unavailable(
            suite,
            f"{name} is gated: its terms must be accepted first, or the token has no right to read it",
            f"accept them at {HUB}{name} and set HF_TOKEN to a token of that account",
        )
    if says("scripts are no longer supported", "trust_remote_code"):
        return Unavailable(
            suite,
            f"{name} is a script, and scripts of datasets are never run",
            "use the hub's Parquet copy (`revision: refs/convert/parquet`), or another copy of it",
        )
    if "RevisionNotFoundError" in kinds or says("Revision '"):
        return Unavailable(suite, f"{name} has no revision {entry.revision}", "change `revision`")
    if says("BuilderConfig", "Config name is missing", "Unknown configuration"):
        which = entry.config or "of its own (it needs a named one)"
        return Unavailable(suite, f"{name} has no configuration {which}: {short}", "change `config`")
    if kinds & {"OfflineModeIsEnabled", "LocalEntryNotFoundError"} or says(
        "offline mode", "OfflineModeIsEnabled"
    ):
        return Unavailable(
            suite,
            f"{name} is not in the cache, and the hub is not asked (offline)",
            "unset HF_HUB_OFFLINE, fill HF_HOME on a machine with network, or name a local folder",
        )
    if kinds & UNREACHED or says(
        "Couldn't reach", "Max retries", "Name or service not known", "name resolution"
    ):
        return Unavailable(
            suite,
            f"{name}: the hub cannot be reached ({short})",
            "check the network or HF_ENDPOINT, use a filled HF_HOME, or name a local folder",
        )
    if missing:
        return Unavailable(
            suite,
            f"there is no dataset {name} on the hub, or you have no right to see it",
            f"check the id at {HUB}{name}; for a private one set HF_TOKEN",
        )
    if "EmptyDatasetError" in kinds or "DataFilesNotFoundError" in kinds:
        return Unavailable(suite, f"{name} holds no data files", "check the folder, or `data_dir`")
    if says("BatchSize must be greater than 0"):  # how Arrow reads a Parquet file without rows
        return Unavailable(
            suite,
            f"a split of {name} is empty",
            "take a `revision:` that has its rows, or name the files of the others (`data_files:`)",
        )
    if kinds & {"CastError", "DatasetGenerationCastError", "DatasetGenerationError", "ArrowInvalid"}:
        return Unavailable(
            suite,
            f"{name}: its files do not fit its schema, or are damaged ({short})",
            "pin a revision that could be read (`revision:`), or download it again",
        )
    return Unavailable(
        suite, f"{name} cannot be loaded: {type(error).__name__}: {short}", f"see {HUB}{name}"
    )


# decon


def _from_decon(suite: str, entry: Entry) -> Iterator[Loaded]:
    """Suites and splits of a decon reference folder, each called by its own name."""
    path = str(entry.path)
    if not os.path.exists(path):
        raise Unavailable(suite, f"{path} does not exist", "check `path` in the catalog")
    groups: dict[tuple[str, str], list[Draft]] = {}
    for shard in list_shards([path]).shards:
        for item in refs.decon_items(shard, refs.numbered_rows(shard)):
            draft: Draft = {
                "item": item["item"],
                "question": item["question"],
                "answers": item["answers"],
                "correct": item["correct"],
                "passage": item["passage"],
                "language": item["language"] or entry.language,
                "solution": [],
            }
            groups.setdefault((item["suite"], item["split"]), []).append(draft)
    keep = [key for key in groups if not entry.splits or key[1] in entry.splits]
    if not keep:
        raise Unavailable(
            suite, f"{path} holds no items of the named splits", "check `path` and `splits`"
        )
    for name, split in keep:
        yield Loaded(name, split, groups[name, split], _facts(entry, {}))


# All


def _wanted_splits(suite: str, entry: Entry, there: Sequence[str]) -> list[str]:
    """The splits to read: the named ones, or all."""
    for split in entry.splits:
        if split not in there:
            raise Unavailable(
                suite, f"it has no split {split}", f"its splits: {', '.join(there) or 'none'}"
            )
    return list(entry.splits) or list(there)


def _loaded(
    suite: str, split: str, entry: Entry, rows: Sequence[Mapping[str, Any]], facts: Mapping[str, Any]
) -> Loaded:
    if not rows:
        raise Unavailable(
            suite,
            f"its split {split} is empty",
            "check the source, or leave the split out (`splits:` names the others)",
        )
    try:
        drafts = drafts_of(entry, suite, rows)
    except Unavailable as error:
        raise Unavailable(suite, f"split {split}: {error.reason}", error.hint) from error
    except BadInput as error:
        raise BadInput(
            error.message.replace(f"{suite}, row", f"{suite}, split {split}, row", 1), error.hint
        ) from error
    if not drafts:
        raise Unavailable(suite, f"its split {split} gives no items", "check `each` or `convert`")
    return Loaded(suite, split, drafts, _facts(entry, {**facts, "rows": len(rows)}))


def _facts(entry: Entry, more: Mapping[str, Any]) -> dict[str, Any]:
    """What a reader must know of where the items came from; nothing that differs between machines."""
    given = {
        "source": entry.source,
        "dataset": dataset_id(entry.dataset) if entry.dataset else None,
        "config": entry.config,
        "licence": entry.licence,
        "language": entry.language,
        "note": entry.note,
        **more,
    }
    return {name: value for name, value in given.items() if value is not None}
