"""Why was this found, or missed? One document and one item, stage by stage.

In: a text, an index, an item. Out: a dict with one entry a stage, and `lines` to print it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from unseen import kernels, tokens, verdict
from unseen.scan import Index, Scanner, measures, places

SHOWN = 12  # tokens, seeds or chains listed of each kind


def explain(
    text: str, opened: Index, item: int, *, policy: verdict.Policy = verdict.PRESETS["default"]
) -> dict[str, Any]:
    """Each stage of the detector for one text and one item (a row of `opened.items`).

    The stages run on the real kernels; only the item's own seeds and chains are shown.
    """
    questions = opened.arrays.questions
    q = question_of(opened, item)
    record = opened.items.slice(item, 1).to_pylist()[0]
    words = tokens.words(text)
    out: dict[str, Any] = {
        "item": {k: record[k] for k in ("suite", "split", "item", "question", "answers", "correct")},
        "document": {
            "characters": len(text),
            "tokens": len(words),
            "first": [w for w, _, _ in words[:SHOWN]],
        },
    }
    if q < 0:
        return out | {"question": None, "verdict": "keep", "reason": "the question has no token"}
    low, high = questions.ptr[q], questions.ptr[q + 1]
    weight = questions.weight[low:high]
    own = tokens.words(record["question"])
    heaviest = np.argsort(-np.abs(weight))[:SHOWN]
    out["question"] = {
        "tokens": int(high - low),
        "information": float(np.maximum(weight, 0).sum()),
        "template_tokens": int((weight == 0).sum()),
        "heaviest": [[own[i][0], round(float(abs(weight[i])), 1)] for i in heaviest if i < len(own)],
        "seeds": int(questions.seeds[q]),
        "shared_with": int(questions.owner_ptr[q + 1] - questions.owner_ptr[q] - 1),
    }
    out["seeds"], out["chains"] = seeds_and_chains(text, opened, q, words)
    out["match"] = best_match(text, opened, item, policy)
    return out | conclusion(out, policy.name)


def question_of(opened: Index, item: int) -> int:
    """Number of the item's question, -1 when it has no token."""
    questions = opened.arrays.questions
    place = np.flatnonzero(questions.owner == item)
    return int(np.searchsorted(questions.owner_ptr, place[0], "right")) - 1 if len(place) else -1


def seeds_and_chains(
    text: str, opened: Index, q: int, words: list[tuple[str, int, int]]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Seeds of one question in a text, and the chains they make (first segment of the text only)."""
    arrays = opened.arrays
    packed = tokens.pack([text])
    scratch = kernels.make_scratch()
    count, _ = kernels.tokenize(packed.data, 0, packed.offsets[1], tokens.codepoints(), scratch.segment)
    grams = kernels.hash_grams(scratch.segment.token, count, kernels.N, scratch.segment.gram)
    hits = kernels.find_hits(arrays.grams, scratch.segment.gram, grams, 1, 0, scratch.hits)
    counters = np.zeros(kernels.COUNTERS, np.int64)
    held = kernels.expand_hits(arrays.grams, arrays.questions.seeds, scratch.hits, hits, counters)
    seeds = scratch.hits.seed[:held]
    mine = seeds[(seeds >> np.uint64(28)) == q].copy()
    at, chains = 0, []
    while at < len(mine):
        at, first, last, distinct, _ = kernels.next_chain(
            arrays.questions.ptr, mine, len(mine), at, 1, 0
        )
        begin, end = (int((s >> np.uint64(12)) & np.uint64(0xFFFF)) for s in (first, last))
        chains.append(
            {
                "start": words[begin][1],
                "end": words[min(end + kernels.N, len(words)) - 1][2],
                "seeds": int(distinct),
                "needed": int(kernels.seeds_needed(arrays.questions.seeds[q])),
            }
        )
    shown = [int((s >> np.uint64(12)) & np.uint64(0xFFFF)) for s in mine[:SHOWN]]
    return (
        {
            "ngrams_of_the_document": int(grams),
            "in_the_index": int(hits),
            "of_this_question": len(mine),
            "first": [" ".join(w for w, _, _ in words[p : p + kernels.N]) for p in shown],
        },
        chains,
    )


def best_match(text: str, opened: Index, item: int, policy: verdict.Policy) -> dict[str, Any] | None:
    """The match with the best coverage, as in a report, with its lengths; None without one."""
    packed = tokens.pack([text])
    ints, floats = Scanner(opened).find(packed.data, packed.offsets)
    mine = np.flatnonzero(ints[:, kernels.ITEM] == item)
    if len(mine) == 0:
        return None
    best = mine[[np.argmax(floats[mine, kernels.COVERAGE])]]
    columns = measures(opened, ints[best], floats[best])
    columns["evidence"] = verdict.evidence_of(columns)
    columns["verdict"] = verdict.verdict_of(columns, policy)
    columns |= places(packed.data, packed.offsets, ints[best])
    columns["needed_information"] = verdict.needed_information(columns)
    return {name: pa.array(values)[0].as_py() for name, values in columns.items()}


def conclusion(found: dict[str, Any], policy: str) -> dict[str, Any]:
    """The verdict and the stage that decided it."""
    match, seeds, chains = found["match"], found["seeds"], found["chains"]
    if match is not None:
        whole = {name: np.array([match[name]]) for name in ("coverage", "question_overlap")}
        told = match["information"] - (0 if verdict.copied(whole)[0] else match["cut_off"])
        if match["answer_overlap"] >= verdict.MIN_ANSWER_OVERLAP:
            told += match["answer_information"]
        decided = {
            "template": f"{match['numbers_changed']} of its numbers are others: ",
            "partial": "it tells too little: ",
            "canary": "the whole string stands there: ",
        }.get(match["evidence"], "")
        reason = (
            f"evidence {match['evidence']}: {decided}coverage {match['coverage']:.2f}, tells"
            f" {told:.0f} nats of {match['needed_information']:.0f} needed,"
            f" published score {match['score']:.2f}"
        )
        return {"verdict": match["verdict"], "reason": f"{reason}; policy {policy}"}
    if seeds["of_this_question"] == 0:
        reason = "no 5-gram of the question stands in the document (or too few to start a chain)"
    elif not any(chain["seeds"] >= chain["needed"] for chain in chains):
        reason = "no chain has enough seeds: too few 5-grams of the question stand close together"
    else:
        reason = (
            f"a chain was aligned, but under coverage {kernels.MIN_COVERAGE} or "
            f"{kernels.MIN_INFORMATION:.0f} nats it is not recorded"
        )
    return {"verdict": "keep", "reason": reason}


def lines(found: dict[str, Any]) -> Iterator[str]:
    """The explanation as text."""
    item, document, question = found["item"], found["document"], found["question"]
    yield f"item      {item['suite']}/{item['split']}/{item['item']}: {item['question'][:200]!r}"
    yield f"document  {document['characters']} characters, {document['tokens']} tokens: " + " ".join(
        document["first"]
    )
    if question is None:
        yield f"verdict   {found['verdict']}: {found['reason']}"
        return
    heavy = ", ".join(f"{word} {nats}" for word, nats in question["heaviest"])
    yield (
        f"tokens    {question['tokens']} in the question, {question['information']:.0f} nats"
        f" ({question['template_tokens']} of its suite's template); heaviest: {heavy}"
    )
    seeds = found["seeds"]
    yield (
        f"seeds     {seeds['ngrams_of_the_document']} 5-grams in the document,"
        f" {seeds['in_the_index']} in the index,"
        f" {seeds['of_this_question']} lead to this question (it has {question['seeds']})"
    )
    for gram in seeds["first"]:
        yield f"            {gram}"
    for chain in found["chains"][:SHOWN]:
        yield (
            f"chain     characters {chain['start']} to {chain['end']}: {chain['seeds']} seeds,"
            f" {chain['needed']} needed"
        )
    match = found["match"]
    if match is not None:
        yield (
            f"alignment coverage {match['coverage']:.3f}, information"
            f" {match['information']:.1f} nats,"
            f" numbers {'kept' if match['numbers_kept'] else 'missing'},"
            f" {match['numbers_changed']} changed;"
            f" characters {match['start']} to {match['end']}"
        )
        yield (
            "answer    none was found"
            if match["option"] < 0
            else (
                f"answer    option {match['option']}, overlap {match['answer_overlap']:.2f}, "
                f"{match['answer_information']:.1f} nats, characters {match['answer_start']} to"
                f" {match['answer_end']}"
            )
        )
        yield (
            f"score     {match['score']:.3f} (question {match['question_overlap']:.2f}, answer"
            f" {match['answer_overlap']:.2f}, passage {match['passage_overlap']:.2f})"
        )
        yield f"quote     {match['quote']!r}"
    yield f"verdict   {found['verdict']}: {found['reason']}"
