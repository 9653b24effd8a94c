"""Unseen keeps benchmarks unseen: it finds evaluation items in language-model training data."""

from __future__ import annotations

__version__ = "0.1.0"
__all__ = ["Index", "UnseenError", "__version__"]

from typing import TYPE_CHECKING, Any

from unseen.errors import UnseenError

if TYPE_CHECKING:
    from unseen.scan import Index


def __getattr__(name: str) -> Any:
    """`unseen.Index` is loaded on first use, so that `import unseen` stays light."""
    if name == "Index":
        from unseen.scan import Index

        return Index
    raise AttributeError(f"module 'unseen' has no attribute {name!r}")
