"""What flows between the modules: items in, matches out, and their Arrow schemas.

An item, as a row of a reference file:

    {"suite": "gsm8k", "split": "test", "item": "17", "language": "en", "question": "A robe takes ...",
     "answers": ["3"], "correct": [true], "passage": null}
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import pyarrow as pa

Evidence = Literal["question+answer", "question", "near", "template", "solution", "canary", "partial"]

ITEM_FIELDS = {
    "suite": "the benchmark task",
    "split": "train, validation, test, ...",
    "item": "id of the item, unique in its suite and split",
    "language": "BCP 47 code, or null",
    "question": "what the model is asked",
    "answers": "every option, or the reference answers",
    "correct": "for each answer: is it right",
    "passage": "text the question is about, or null",
}

EVIDENCE: tuple[Evidence, ...] = (
    "question+answer", "question", "near", "template", "solution", "canary", "partial",
)  # fmt: skip
SOLUTION = "/solution"  # ending of the name of a suite whose questions are the solutions of another
CANARY = "canary"  # the split of canary strings: strings that mark a benchmark's own files
VERDICTS = ("keep", "review", "remove")

MATCH_FIELDS = {
    "row": "row of the shard, 0-based",
    "doc_id": "the document's own id, if an id field was named",
    "suite": "suite of the item",
    "split": "split of the item",
    "item": "id of the item",
    "language": "language of the item",
    "evidence": "question+answer, question, near, template, solution, canary or partial",
    "score": "the published score, 0..1 (flagged from 0.8)",
    "question_overlap": "idf-weighted share of the question's distinct 4-grams found, 0..1",
    "answer_overlap": "the same for the answer's 3-grams; an answer of up to 3 tokens: 0 or 1",
    "passage_overlap": "the same for the passage's 4-grams",
    "coverage": "weight of the question's tokens aligned, of all its weight, 0..1",
    "information": "nats: weight of the distinct question tokens aligned, less that of tokens missing "
    "inside the match, less half a nat for each foreign token inside",
    "cut_off": "nats: weight of the question's tokens missing before and after the match",
    "answer_information": "nats: weight of the distinct answer tokens, times the answer overlap",
    "numbers_kept": "every number of the question is aligned",
    "numbers_changed": "numbers of the question in whose place another number stands",
    "option": "0-based answer that stands nearest to whole after the question, or -1",
    "option_correct": "whether that answer is the right one; null without one",
    "start": "first character of the match in the document's text, 0-based",
    "end": "character after the match",
    "answer_start": "first character of the answer, or -1",
    "answer_end": "character after the answer, or -1",
    "quote": "the matched text with some context",
    "question": "the item's question",
    "answer": "the item's answer that was found, else its first right one",
    "verdict": "remove, review or keep",
}


def item_schema() -> pa.Schema:
    """Schema of a reference set; one row is one item."""
    import pyarrow as pa

    text = pa.large_string()
    return pa.schema(
        [
            ("suite", pa.string()),
            ("split", pa.string()),
            ("item", pa.string()),
            ("language", pa.string()),
            ("question", text),
            ("answers", pa.list_(text)),
            ("correct", pa.list_(pa.bool_())),
            ("passage", text),
        ]
    )


def match_schema() -> pa.Schema:
    """Schema of a match report; one row is one item found in one document (see MATCH_FIELDS)."""
    import pyarrow as pa

    types = {
        "row": pa.int64(),
        "score": pa.float32(),
        "question_overlap": pa.float32(),
        "answer_overlap": pa.float32(),
        "passage_overlap": pa.float32(),
        "coverage": pa.float32(),
        "information": pa.float32(),
        "cut_off": pa.float32(),
        "answer_information": pa.float32(),
        "numbers_kept": pa.bool_(),
        "numbers_changed": pa.int32(),
        "option": pa.int32(),
        "option_correct": pa.bool_(),
        "start": pa.int64(),
        "end": pa.int64(),
        "answer_start": pa.int64(),
        "answer_end": pa.int64(),
    }
    return pa.schema([(name, types.get(name, pa.string())) for name in MATCH_FIELDS])
