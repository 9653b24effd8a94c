"""Made-up rows for every dataset that eval-framework's registry names, in the datasets' real schemas.

`write(folder)` lays them out as the hub does: a folder a dataset, README.md with `configs:`, and a
JSONL file for each configuration and split. `MADE[dataset][config][split]` is a list of rows. The
fields of the `ellamind/*`, `*-gen2mc` and `math-ai/*` datasets are those that the framework's readers
use: their full schemas were not at hand.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Row = dict[str, Any]
Splits = dict[str, list[Row]]

FERRY = "A ferry carries 48 bicycles on each of 7 crossings. How many bicycles does it carry in all?"
FERRY_DE = "Eine Fähre nimmt bei jeder von 7 Fahrten 48 Räder mit. Wie viele Räder sind das insgesamt?"
PASSAGE = "The lighthouse at Bovbjerg was lit in 1877. Its tower is 26 metres tall and painted red."
GLUE = {  # a HumanEval problem
    "prompt": "def glue(parts: list[str]) -> str:\n"
    '    """Join parts with hyphens, skipping empty ones.\n'
    "    >>> glue(['a', '', 'b'])\n    'a-b'\n    \"\"\"\n",
    "canonical_solution": "    kept = [part for part in parts if part]\n    return '-'.join(kept)\n",
    "test": "def check(candidate):\n    assert candidate(['a', '', 'b']) == 'a-b'\n",
    "entry_point": "glue",
}
TALLY = {  # another
    "prompt": 'def tally(word: str) -> int:\n    """Count the vowels of word."""\n',
    "canonical_solution": "    return sum(letter in 'aeiou' for letter in word.lower())\n",
    "test": "def check(candidate):\n    assert candidate('Otter') == 2\n",
    "entry_point": "tally",
}
MBPP_ROW = {
    "task_id": 11,
    "text": "Write a function to drop every third pebble from a row of pebbles.",
    "code": "def drop_third(row):\r\n    return [p for n, p in enumerate(row, 1) if n % 3]",
    "test_list": [
        "assert drop_third([1, 2, 3, 4]) == [1, 2, 4]",
        "assert drop_third([]) == []",
        "assert drop_third([5, 6, 7]) == [5, 6]",
    ],
    "test_setup_code": "",
    "challenge_test_list": [],
}


def _human_eval(prefix: str) -> list[Row]:
    return [{"task_id": f"{prefix}/{n}", **row} for n, row in enumerate((GLUE, TALLY))]


def _lettered(question: str, options: list[str], correct: int) -> Row:
    labels = "ABCDEFGHIJ"[: len(options)]
    choices = {"text": options, "label": list(labels)}
    return {"question": question, "choices": choices, "answerKey": labels[correct]}


def _arc(level: str) -> Splits:
    def row(n: int, key: str) -> Row:
        question = f"Which tool measures the mass of pebble {n} in {level}?"
        made = _lettered(question, ["a ruler", "a balance", "a thermometer", "a clock"], 1)
        return {"id": f"{level}_{n}", **made, "answerKey": key}

    return {"train": [row(1, "2")], "validation": [row(2, "B")], "test": [row(3, "B"), row(4, "2")]}


def _hellaswag(endings: str, *, label: str = "2") -> Row:
    return {
        "ind": 4,
        "activity_label": "Rowing",
        "ctx_a": "[header] How to row [title] Two people sit in a wooden boat.",
        "ctx_b": "they",
        "ctx": "Two people sit in a wooden boat. they",
        "endings": [
            f"{endings} bake a cake.",
            f"{endings} fall asleep.",
            f"{endings} pull the oars.",
            "x",
        ],
        "source_id": "made~1",
        "split": "train",
        "split_type": "indomain",
        "label": label,
    }


def _mmlu(subject: str) -> Splits:
    def row(n: int) -> Row:
        return {
            "question": f" In {subject}, which of these statements holds for case {n}?",
            "subject": subject,
            "choices": ["all of them", "none of them", "only the first", "only the last"],
            "answer": 2,
        }

    return {"test": [row(1), row(2)], "validation": [row(3)], "dev": [row(4)]}


def _global_mmlu(language: str) -> Splits:
    def row(n: int, subject: str) -> Row:
        return {
            "sample_id": f"{subject}/test/{n}",
            "subject": subject,
            "subject_category": "STEM",
            "question": f"[{language}] Welche Aussage über {subject} trifft im Fall {n} zu?",
            "option_a": "die erste",
            "option_b": "die zweite\nund dritte",
            "option_c": "keine",
            "option_d": "A. und B.",
            "answer": "B",
        }

    return {
        "dev": [row(1, subject) for subject in MMLU_SUBJECTS],
        "test": [row(2, subject) for subject in MMLU_SUBJECTS],
    }


def _mmlu_pro(category: str) -> Row:
    return {
        "question_id": 70,
        "question": f"Which approach to {category} did the made-up school of Skagen favour?",
        "options": ["the old one", "the new one", "both", "neither", "another", "N/A"],
        "answer": "C",
        "answer_index": 2,
        "cot_content": "",
        "category": category,
        "src": "made",
    }


def _math(problem: str, answer: str = "336") -> Row:
    return {
        "problem": problem,
        "level": "Level 2",
        "type": "Algebra",
        "solution": f"We multiply, and get $\\boxed{{{answer}}}$.",
    }


def _gpqa(name: str) -> Row:
    return {
        "Question": f"Which of the made-up particles of {name} decays last?\n",
        "Correct Answer": "the third [title] one",
        "Incorrect Answer 1": "the first one",
        "Incorrect Answer 2": "the second one",
        "Incorrect Answer 3": "the fourth one",
        "Explanation": "It is the heaviest.",
        "Record ID": "rec1",
    }


def _multipl_e(config: str) -> Row:
    return {
        "name": "HumanEval_900_glue",
        "language": config.split("-")[1],
        "prompt": f"// {config}: join parts with hyphens, skipping empty ones\nstring glue(parts) {{\n",
        "doctests": "transform",
        "original": "glue.py",
        "prompt_terminology": "reworded",
        "tests": "}\nint main() { assert(glue(parts) == joined); }",
        "stop_tokens": ["\n}"],
    }


def _drop(question: str, spans: list[str], number: str = "") -> Row:
    date = {"day": "", "month": "", "year": ""}
    answer = {"number": number, "date": date, "spans": spans, "worker_id": "w", "hit_id": "h"}
    return {
        "section_id": "s1",
        "passage": PASSAGE,
        "question": question,
        "query_id": "q1",
        "answer": answer,
        "validated_answers": {
            "number": [number], "date": [date], "spans": [spans], "worker_id": ["w"], "hit_id": ["h"],
        },
    }  # fmt: skip


def _squad(question: str, answers: list[str]) -> Row:
    starts = [PASSAGE.find(answer) for answer in answers]
    return {
        "id": "5f0",
        "title": "Bovbjerg",
        "context": PASSAGE,
        "question": question,
        "answers": {"text": answers, "answer_start": starts},
    }


def _winogrande(answer: str) -> Row:
    return {
        "sentence": "The kettle did not fit on the shelf because the _ was far too wide.",
        "option1": "kettle",
        "option2": "shelf",
        "answer": answer,
    }


def _piqa(label: int) -> Row:
    return {
        "goal": "To keep a rope from fraying,",
        "sol1": "wrap its end with twine.",
        "sol2": "wrap its end with butter.",
        "label": label,
    }


def _copa(label: int) -> Row:
    return {
        "premise": "The boat drifted away.",
        "choice1": "The rope was untied.",
        "choice2": "The mast was painted.",
        "question": "cause",
        "idx": 0,
        "label": label,
    }


def _ifeval(language: str) -> Row:
    prompts = {
        "en": "Write a note about tides in at least 40 words. Do not use any commas.",
        "de": "Schreibe einen Text über Ebbe und Flut mit mindestens 40 Wörtern. Nutze keine Kommas.",
    }
    return {
        "key": 1001,
        "prompt": prompts[language],
        "instruction_id_list": ["punctuation:no_comma", "length_constraints:number_words"],
        "kwargs": [
            {"relation": None, "num_words": None},
            {"relation": "at least", "num_words": 40},
        ],
    }


def _german(**more: Any) -> Splits:
    """A question of an `ellamind` dataset, with distractors of both kinds."""
    row: Row = {
        "question": "Warum läuft die Flut auf Sylt später auf als in Cuxhaven?",
        "correct_answer": "weil die Welle später ankommt",
        "incorrect_answers": ["weil es dort kälter ist", "wegen des Salzes", "das ist nicht so"],
        "easy_distractors": ["wegen der Möwen", "wegen der Züge"],
        "hard_distractors": ["weil die Welle früher ankommt", "wegen des Mondes allein"],
    }
    return {split: [{**row, **fields}] for split, fields in more.items()}


def _german_math(question: str) -> Row:
    return {
        "question": question,
        "problem": question,
        "solution": "Wir rechnen 7 mal 48, das sind $\\boxed{336}$ Räder.",
        "final_answer": "336",
        "extracted_answer": "336",
    }


MMLU_SUBJECTS = [
    "abstract_algebra", "anatomy", "astronomy", "business_ethics", "clinical_knowledge",
    "college_biology", "college_chemistry", "college_computer_science", "college_mathematics",
    "college_medicine", "college_physics", "computer_security", "conceptual_physics",
    "econometrics", "electrical_engineering", "elementary_mathematics", "formal_logic",
    "global_facts", "high_school_biology", "high_school_chemistry",
    "high_school_computer_science", "high_school_european_history", "high_school_geography",
    "high_school_government_and_politics", "high_school_macroeconomics",
    "high_school_mathematics", "high_school_microeconomics", "high_school_physics",
    "high_school_psychology", "high_school_statistics", "high_school_us_history",
    "high_school_world_history", "human_aging", "human_sexuality", "international_law",
    "jurisprudence", "logical_fallacies", "machine_learning", "management", "marketing",
    "medical_genetics", "miscellaneous", "moral_disputes", "moral_scenarios", "nutrition",
    "philosophy", "prehistory", "professional_accounting", "professional_law",
    "professional_medicine", "professional_psychology", "public_relations", "security_studies",
    "sociology", "us_foreign_policy", "virology", "world_religions",
]  # fmt: skip
MATH_SUBJECTS = [
    "algebra", "counting_and_probability", "geometry", "intermediate_algebra", "number_theory",
    "prealgebra", "precalculus",
]  # fmt: skip
CATEGORIES = [
    "engineering", "physics", "psychology", "chemistry", "biology", "law", "philosophy",
    "computer science", "other", "economics", "business", "history", "math", "health",
]  # fmt: skip
MULTIPL_E = [
    f"{of}-{to}" for of in ("humaneval", "mbpp") for to in ("cpp", "java", "js", "php", "rs", "sh")
]
GSM = {"question": FERRY, "answer": "It carries 48 * 7 = <<48*7=336>>336 bicycles.\n#### 336"}
HEIGHT = "How tall is the tower?"
SWAG = {"validation": [_hellaswag("They")]}
BIG_CODE = {
    "task_id": "BigCodeBench/900",
    "complete_prompt": 'import os\n\ndef task_func(folder):\n    """Sum the sizes of the files."""\n',
    "instruct_prompt": "Sum the sizes of the files of a folder.",
    "canonical_solution": "    return sum(entry.stat().st_size for entry in os.scandir(folder))",
    "code_prompt": "import os\ndef task_func(folder):\n",
    "test": "class TestCases(unittest.TestCase): ...",
    "entry_point": "task_func",
    "doc_struct": "{}",
    "libs": "['os']",
}
MATH_500 = {
    **_math("What is $7 \\cdot 48$?"),
    "answer": "336",
    "subject": "Algebra",
    "unique_id": "t/1",
}
AIME = {"id": 60, "problem": "Find the sum of all ferries $n$ with $n^2 = 49$.", "answer": "007"}
NQ = {"question": "who lit the lighthouse at bovbjerg", "answer": ["the keeper", "Mads Keeper"]}
SCIQ = {
    "question": "What pulls the tide?",
    "distractor3": "wind",
    "distractor1": "salt",
    "distractor2": "fish",
    "correct_answer": "the moon",
    "support": "Tides follow the moon.",
}
SOCIAL = {
    "context": "Ada lent Kim her boat.",
    "question": "What will Kim want to do next?",
    "answerA": "thank Ada",
    "answerB": "sell the boat",
    "answerC": "forget it",
    "label": "1",
}
ARC_DE = {
    **_lettered("Which tool measures mass?", ["a ruler", "a balance"], 1),
    "id": "de_1",
    "question_de": "Welches Werkzeug misst die Masse eines Kiesels?",
    "choices_de": {"text": ["ein Lineal", "eine Waage"], "label": ["A", "B"]},
}
CSQA = _lettered("Where would you moor a boat?", ["desert", "pier", "attic", "forest", "oven"], 1)

MADE: dict[str, dict[str, Splits]] = {
    "HuggingFaceH4/MATH-500": {"default": {"test": [MATH_500]}},
    "HuggingFaceH4/aime_2024": {
        "default": {"train": [{**AIME, "solution": "$7$", "url": "", "year": "2024"}]}
    },
    "math-ai/aime25": {"default": {"test": [AIME]}},
    "math-ai/aime26": {"default": {"test": [AIME]}},
    "openai/gsm8k": {
        "main": {
            "train": [{**GSM, "question": "How many oars do 9 boats with 4 oars have?"}], "test": [GSM],
        },
        "socratic": {"train": [GSM], "test": [GSM]},
    },
    "EleutherAI/hendrycks_math": {
        name: {
            "train": [_math(f"In {name}, add 1 and 335.")],
            "test": [_math(f"In {name}, find {n} times 48.", str(48 * n))],
        }
        for n, name in enumerate(MATH_SUBJECTS)
    },
    "allenai/ai2_arc": {name: _arc(name) for name in ("ARC-Easy", "ARC-Challenge")},
    "LeoLM/ArcChallenge_de": {
        "default": {split: [{**ARC_DE, "id": split}] for split in ("test", "validation")}
    },
    "bigcode/bigcodebench": {
        "default": {split: [BIG_CODE] for split in ("v0.1.1", "v0.1.2", "v0.1.3")},
    },
    "aps/super_glue": {
        "copa": {"train": [_copa(1)], "validation": [_copa(0)], "test": [_copa(-1)]},
    },
    "PleIAs/GoldenSwag": {"default": SWAG},
    "Idavidrein/gpqa": {name: {"train": [_gpqa(name)]} for name in ("gpqa_extended", "gpqa_diamond")},
    "Rowan/hellaswag": {
        "default": {
            "train": [_hellaswag("The two")], **SWAG, "test": [_hellaswag("Both", label="")],
        }
    },
    "openai/openai_humaneval": {"openai_humaneval": {"test": _human_eval("HumanEval")}},
    "evalplus/humanevalplus": {"default": {"test": _human_eval("HumanEval")}},
    "google/IFEval": {"default": {"train": [_ifeval("en")]}},
    "jzhang86/de_ifeval": {"default": {"train": [_ifeval("de")]}},
    "nuprl/MultiPL-E": {name: {"test": [_multipl_e(name)]} for name in MULTIPL_E},
    "google-research-datasets/mbpp": {
        "full": {
            "train": [{**MBPP_ROW, "task_id": 601}], "test": [MBPP_ROW],
            "validation": [{**MBPP_ROW, "task_id": 511}], "prompt": [{**MBPP_ROW, "task_id": 1}],
        },
        "sanitized": {"test": [{**MBPP_ROW, "prompt": MBPP_ROW["text"]}]},
    },
    "cais/mmlu": {name: _mmlu(name) for name in MMLU_SUBJECTS},
    "TIGER-Lab/MMLU-Pro": {
        "default": {
            "test": [_mmlu_pro(name) for name in CATEGORIES], "validation": [_mmlu_pro("math")],
        }
    },
    "CohereLabs/Global-MMLU": {
        name: _global_mmlu(name) for name in ("ar", "de", "es", "fr", "it", "pt")
    },
    "ybisk/piqa": {
        "default": {"train": [_piqa(0)], "validation": [_piqa(0)], "test": [_piqa(-1)]},
    },
    "allenai/sciq": {"default": {split: [SCIQ] for split in ("train", "validation", "test")}},
    "rajpurkar/squad": {
        "default": {
            "train": [_squad("What colour is the tower?", ["red"])],
            "validation": [_squad(HEIGHT, ["26 metres", "26 metres tall", "26 metres"])],
        }
    },
    "rajpurkar/squad_v2": {
        "default": {
            "train": [_squad("What colour is the tower?", ["red"])],
            "validation": [_squad(HEIGHT, ["26 metres"]), _squad("Who painted the tower?", [])],
        }
    },
    "allenai/winogrande": {
        "winogrande_xl": {
            "train": [_winogrande("1"), _winogrande("2")],
            "validation": [_winogrande("1")], "test": [_winogrande("")],
        }
    },
    "tau/commonsense_qa": {
        "default": {
            "train": [{"id": "1", **CSQA}], "validation": [{"id": "2", **CSQA}],
            "test": [{"id": "3", **CSQA, "answerKey": ""}],
        }
    },
    "EleutherAI/drop": {
        "default": {
            "train": [_drop("What colour is the tower?", ["red"])],
            "validation": [_drop(HEIGHT, [], "26"), _drop("Who built it?", [])],
        }
    },
    "allenai/drop-gen2mc": {
        "default": {
            "validation": [
                {
                    **_lettered(HEIGHT, ["12", "26", "31", "1877"], 1),
                    "passage_original": PASSAGE, "question_original": HEIGHT,
                }
            ]
        }
    },
    "google-research-datasets/nq_open": {"default": {"train": [NQ], "validation": [NQ]}},
    "allenai/nq-gen2mc": {
        "default": {"validation": [_lettered(NQ["question"], ["the king", "the keeper"], 1)]}
    },
    "allenai/social_i_qa": {"default": {"train": [SOCIAL], "validation": [SOCIAL]}},
    "ellamind/arc-multilingual": {
        "deu": {
            "test": [
                {
                    "question": f"Welches Werkzeug misst bei {level} die Masse?",
                    "choices": ["ein Lineal", "eine Waage"], "answer_key": "B", "arc_config": level,
                }
                for level in ("ARC-Easy", "ARC-Challenge")
            ]
        }
    },
    "ellamind/csqa-multilingual": {"deu": _german(validation={})},
    "ellamind/gpqa-multilingual": {"deu": _german(train={"is_diamond": True})},
    "ellamind/gsm8k-platinum-multilingual": {"deu": {"test": [_german_math(FERRY_DE)]}},
    "ellamind/hellaswag-multilingual": {
        "deu": _german(
            validation={
                "activity": "Rudern", "context": "Zwei Leute sitzen in einem Boot.",
                "correct_ending": "Sie ziehen an den Riemen.",
            }
        )
    },
    "ellamind/hendrycks-math-multilingual": {"deu": {"test": [_german_math(FERRY_DE)]}},
    "ellamind/hle-multilingual": {"deu": _german(test={"answer_type": "multipleChoice"})},
    "ellamind/humaneval-multilingual": {"deu": {"test": _human_eval("HumanEval")}},
    "ellamind/mbpp-multilingual": {
        "deu": {
            "test": [{**MBPP_ROW, "text": "Schreibe eine Funktion, die jeden dritten Kiesel entfernt."}]
        }
    },
    "ellamind/piqa-multilingual": {
        "deu": _german(
            validation={
                "goal": "Damit ein Seil nicht ausfranst,", "correct_solution": "umwickle sein Ende.",
                "easy_distractor": "iss es.", "hard_distractor": "fette sein Ende ein.",
            }
        )
    },
    "ellamind/simpleqa-verified-multilingual": {
        "deu": _german(
            eval={"question": "Wer entzündete das Feuer von Bovbjerg?", "answer": "Mads Wärter"}
        )
    },
    "ellamind/siqa-multilingual": {"deu": _german(validation={"context": "Ada lieh Kim ihr Boot."})},
    "ellamind/winogrande-multilingual": {
        "deu": {
            "validation": [
                {
                    "sentence": "Der Kessel passte nicht ins Regal, weil der _ viel zu breit war.",
                    "option1": "Kessel", "option2": "Boden", "answer": "1",
                }
            ]
        }
    },
}  # fmt: skip


def write(
    folder: Path, made: Mapping[str, Mapping[str, Mapping[str, list[Row]]]] | None = None
) -> dict[str, str]:
    """Lay datasets out in a folder, as the hub does; returns {dataset id: its folder}."""
    places = {}
    for dataset, configs in (MADE if made is None else made).items():
        place = folder / dataset.replace("/", "__")
        place.mkdir(parents=True, exist_ok=True)
        head = ["---", "configs:"]
        for config, splits in configs.items():
            head += [f"- config_name: {config}", "  data_files:"]
            for split, rows in splits.items():
                name = f"{config}.{split}.jsonl"
                (place / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
                head += [f"  - split: {split}", f"    path: {name}"]
        (place / "README.md").write_text("\n".join([*head, "---", ""]))
        places[dataset] = str(place)
    return places
