"""Errors, named for what the caller must do.

    UnseenError                 everything this package raises on purpose
     ├─ BadSetting              an option or combination of options makes no sense: change the call
     ├─ BadInput                a pool file or reference file cannot be read whole: fix or quarantine it
     ├─ BadIndex                an index cannot be used: build it again
     ├─ BadRun                  a run folder does not fit this call: another folder, or the old settings
     └─ MissingExtra            an optional part is not installed: pip install it

Each carries one sentence on what happened and where, and a hint on what to do.
"""

from __future__ import annotations


class UnseenError(Exception):
    """`message` says what happened, with the value and the place; `hint` says what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\nhint: {self.hint}" if self.hint else self.message


class BadSetting(UnseenError):
    """An option, or a combination of options, makes no sense."""


class BadInput(UnseenError):
    """A file of the pool or of the reference set cannot be read whole."""


class BadIndex(UnseenError):
    """The index is missing, damaged, or made by another version or tokenizer."""


class BadRun(UnseenError):
    """The run folder belongs to another call, or is incomplete."""


class MissingExtra(UnseenError):
    """An optional dependency is not installed."""
