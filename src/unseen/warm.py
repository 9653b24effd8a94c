"""Imported by the process that workers are forked from: they start with every kernel loaded."""

from __future__ import annotations

from unseen.pipeline import warm_up
from unseen.scan import Index, is_compiled

if is_compiled():  # otherwise the command itself compiles them, once
    warm_up(Index.build([], allow_empty=True))
