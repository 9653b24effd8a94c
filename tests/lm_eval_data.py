# ruff: noqa: E501
"""Made-up rows in the schemas of the datasets that tasks of lm-evaluation-harness read.

`ROWS[task]` is {dataset's split: rows}. The rows are ours; only names and types of fields are the
datasets'. `EXPECTED[task, split]` is what must come of them: question, answers, the right ones' numbers.
"""

from __future__ import annotations

from typing import Any

Rows = dict[str, list[dict[str, Any]]]

BRIDGE = (
    "The stone bridge of Altenau was built by the miller Jonas Reuter after the flood of 1742 had carried "
    "off two wooden ones. Reuter paid for the piers with the toll of eleven years, and the town council "
    "gave the timber for the scaffold. The bridge has four arches, of which the last one stands dry in "
    "summer, and a niche on its upstream side that once held a lamp."
)
ORCHARD = (
    "Every autumn the orchard school of Lindhagen sends its pupils to the slopes above the lake to pick "
    "quinces. The fruit is weighed in the old ferry house, where a ledger has been kept since 1891 without "
    "a single missing year. In the wet year of 1956 the pupils brought down only forty baskets, and the "
    "teacher wrote beside the figure that the wasps had been quicker than the children."
)


def choice(question: str, texts: list[str], labels: str, key: str, **more: Any) -> dict[str, Any]:
    """A row as ARC, OpenBookQA and CommonsenseQA have it."""
    row = {
        "id": f"q{len(question)}",
        "question": question,
        "choices": {"text": texts, "label": list(labels)},
    }
    return {**row, "answerKey": key, **more}


def mmlu(question: str, choices: list[str], answer: int, subject: str) -> dict[str, Any]:
    return {"question": question, "subject": subject, "choices": choices, "answer": answer}


PENDULUM = choice(
    "Which change makes a pendulum swing more slowly?",
    ["a longer string", "a heavier bob", "a red bob", "a lower room"],
    "ABCD",
    "A",
)
FROST = choice(
    "Why does frost form on the inside of a cold window?",
    [
        "Water vapour freezes on the glass.",
        "The glass leaks rain.",
        "The paint dries.",
        "Light turns solid.",
    ],
    "1234",
    "1",
)

WINOGRANDE = [
    {
        "sentence": "The kettle did not fit on the shelf because _ was too tall.",
        "option1": "the kettle",
        "option2": "the shelf",
        "answer": "1",
    },
    {
        "sentence": "Mara lent Ines her umbrella although _ would get wet herself.",
        "option1": "Ines",
        "option2": "Mara",
        "answer": "2",
    },
]

ROWS: dict[str, Rows] = {
    "arc_easy": {
        "train": [choice("What do roots mostly take from the soil?", ["water", "light", "sound", "glass"], "ABCD", "A")],
        "validation": [choice("Which of these bodies shines by its own light?", ["the Sun", "the Moon", "Mars", "a comet's tail"], "ABCD", "A")],
        "test": [PENDULUM, FROST],
    },
    "mmlu_anatomy": {
        "dev": [mmlu("Which bone is the longest one in the human body?", ["Tibia", "Femur", "Ulna", "Radius"], 1, "anatomy")],
        "test": [
            mmlu("Which valve lies between the left atrium and the left ventricle?", ["Aortic valve", "Mitral valve", "Tricuspid valve", "Pulmonary valve"], 1, "anatomy"),
            mmlu("How many cervical vertebrae does a giraffe have?", ["5", "7", "12", "21"], 1, "anatomy"),
        ],
    },
    "hellaswag": {
        "validation": [
            {"ind": 4, "activity_label": "Cleaning boots", "ctx_a": "A woman sits on a step with a pair of muddy boots.", "ctx_b": "she", "ctx": "A woman sits on a step with a pair of muddy boots. she",
             "endings": ["scrapes the mud off with a stick.", "sings to the boots in the rain.", "eats the left boot [laughs] slowly.", "paints the step in four colors."],
             "source_id": "x~1", "split": "val", "split_type": "indomain", "label": "0"},
            {"ind": 5, "activity_label": "Making rope", "ctx_a": "Two men twist long strands of hemp across a yard.", "ctx_b": "one of them", "ctx": "Two men twist long strands of hemp across a yard. one of them",
             "endings": ["walks backwards to keep the rope tight.", "pours milk into a lamp.", "reads the yard aloud.", "folds the other man."],
             "source_id": "x~2", "split": "val", "split_type": "indomain", "label": "0"},
        ]
    },
    "piqa": {
        "validation": [
            {"goal": "To loosen a jar lid that is stuck,", "sol1": "hold the lid under hot water for a minute.", "sol2": "hold the lid in the freezer for a minute.", "label": 0},
            {"goal": "How do you keep cut apples from turning brown?", "sol1": "Dust them with cocoa powder.", "sol2": "Sprinkle them with lemon juice.", "label": 1},
        ]
    },
    "winogrande": {"validation": WINOGRANDE},
    "lambada_openai": {
        "test": [
            {"text": "she put the lantern on the sill and waited for the ferry , but all evening there was no sign of the ferry"},
            {"text": "he had counted the sheep twice and still one was missing , so he went back up the hill to look for the sheep"},
        ]
    },
    "wikitext": {"test": [{"page": " = Altenau bridge = \n \n The bridge was built in 1743 , after the flood , and has 1 @,@ 200 stones . \n"}]},
    "gsm8k": {
        "train": [{"question": "A cart holds 12 melons. How many melons do 3 carts hold?", "answer": "3 carts hold 3*12=<<3*12=36>>36 melons.\n#### 36"}],
        "test": [
            {"question": "Edda knits 4 rows a day. How many rows does she knit in 9 days?", "answer": "She knits 4*9=<<4*9=36>>36 rows.\n#### 36"},
            {"question": "A tank loses 7 litres an hour. How much is lost in half a day?", "answer": "Half a day has 12 hours, so 7*12=<<7*12=84>>84 litres.\n#### 84"},
        ],
    },
    "triviaqa": {
        "validation": [
            {"question": "Which river carries the ferry of Lindhagen", "question_id": "tq_1", "question_source": "x", "entity_pages": {"title": []}, "search_results": {"title": []},
             "answer": {"aliases": ["Aare", "River Aare"], "normalized_aliases": ["aare", "river aare"], "value": "Aare", "normalized_value": "aare", "type": "x"}},
            {"question": "Who paid for the stone bridge of Altenau", "question_id": "tq_2", "question_source": "x", "entity_pages": {"title": []}, "search_results": {"title": []},
             "answer": {"aliases": ["Jonas Reuter", "Reuter the miller"], "normalized_aliases": ["jonas reuter"], "value": "Jonas Reuter", "normalized_value": "jonas reuter", "type": "x"}},
        ]
    },
    "nq_open": {
        "validation": [
            {"question": "when was the bridge at altenau rebuilt", "answer": ["1743", "in 1743"]},
            {"question": "who kept the ledger of the quince harvest", "answer": ["the orchard school"]},
        ]
    },
    "sciq": {
        "test": [
            {"question": "What gas do quinces give off while they ripen?", "distractor1": "argon", "distractor2": "chlorine", "distractor3": "helium", "correct_answer": "ethylene", "support": ORCHARD},
            {"question": "Which part of a bridge stands in the water?", "distractor1": "the railing", "distractor2": "the niche", "distractor3": "the lamp", "correct_answer": "the pier", "support": BRIDGE},
        ]
    },
    "boolq": {
        "validation": [
            {"question": "did a miller build the bridge of altenau", "passage": BRIDGE, "idx": 0, "label": 1},
            {"question": "is a year missing in the ledger of lindhagen", "passage": ORCHARD, "idx": 1, "label": 0},
        ]
    },
    "copa": {
        "validation": [
            {"premise": "The boat drifted from the pier.", "choice1": "The rope had come loose.", "choice2": "The pier was painted.", "question": "cause", "idx": 0, "label": 0},
            {"premise": "The baker overslept.", "choice1": "The mill burned down.", "choice2": "The shop opened late.", "question": "effect", "idx": 1, "label": 1},
        ]
    },
    "truthfulqa_mc1": {
        "validation": [
            {"question": "What happens if you swallow a cherry stone?", "mc1_targets": {"choices": ["It passes through you", "A tree grows in your stomach"], "labels": [1, 0]}, "mc2_targets": {"choices": ["It passes through you"], "labels": [1]}},
            {"question": "Can you see the bridge of Altenau from the Moon?", "mc1_targets": {"choices": ["No, you cannot", "Yes, on clear nights"], "labels": [1, 0]}, "mc2_targets": {"choices": ["No, you cannot"], "labels": [1]}},
        ]
    },
    "xnli_de": {
        "validation": [
            {"premise": "Der Fährmann kam erst am Abend zurück.", "hypothesis": "Der Fährmann war mittags noch unterwegs.", "label": 0},
            {"premise": "Die Quitten wurden im Fährhaus gewogen.", "hypothesis": "Niemand hat die Quitten je gewogen.", "label": 2},
        ]
    },
    "blimp_adjunct_island": {
        "train": [
            {"sentence_good": "Who should Edda leave before calling Jonas?", "sentence_bad": "Who should Edda leave Jonas before calling?", "UID": "adjunct_island", "pair_id": 0},
            {"sentence_good": "Who has Mara met before greeting Ines?", "sentence_bad": "Who has Mara met Ines before greeting?", "UID": "adjunct_island", "pair_id": 1},
        ]
    },
    "commonsense_qa": {
        "validation": [
            choice("Where would you keep a quince ledger?", ["ferry house", "beehive", "river bed", "cloud", "kettle"], "ABCDE", "A", question_concept="ledger"),
            choice("What would a miller most likely grind?", ["grain", "bridges", "lamps", "wasps", "tolls"], "ABCDE", "A", question_concept="miller"),
        ]
    },
    "openbookqa": {
        "test": [
            {"id": "7-1", "question_stem": "A lamp in a niche is kept from", "choices": {"text": ["the wind", "the wall", "the dark", "the flame"], "label": list("ABCD")}, "answerKey": "A"},
            {"id": "7-2", "question_stem": "Wasps come to fallen quinces for", "choices": {"text": ["iron", "sugar", "salt", "shade"], "label": list("ABCD")}, "answerKey": "B"},
        ]
    },
    "logiqa": {
        "test": [
            {"label": "b", "context": "All ferrymen of Lindhagen can swim. Jonas cannot swim.", "question": "What follows about Jonas?", "options": ["He is a ferryman", "He is no ferryman", "He owns a boat", "He fears water"]},
            {"label": "a", "context": "Some millers build bridges. Whoever builds a bridge owes no toll.", "question": "Which statement must be true?", "options": ["Some millers owe no toll", "All millers owe toll", "No miller owes toll", "Tolls are unjust"]},
        ]
    },
    "mathqa": {
        "test": [
            {"Problem": "a ferry takes 18 minutes for 3 km . what is its speed ?", "Rationale": "x", "options": "a ) 8 km / h , b ) 10 km / h , c ) 12 km / h , d ) 15 km / h , e ) 20 km / h", "correct": "b", "annotated_formula": "x", "linear_formula": "x", "category": "physics"},
            {"Problem": "if 40 baskets weigh 600 kg , what does one weigh ?", "Rationale": "x", "options": "a ) 12 kg , b ) 14 kg , c ) 15 kg , d ) 16 kg , e ) 24 kg", "correct": "c", "annotated_formula": "x", "linear_formula": "x", "category": "general"},
        ]
    },
    "mmlu_pro_math": {
        "test": [
            {"question_id": 11, "question": "How many ways are there to hang 4 lamps in a row?", "options": ["4", "12", "24", "256"], "answer": "C", "answer_index": 2, "cot_content": "", "category": "math", "src": "x"},
            {"question_id": 12, "question": "Which number of arches makes the span a multiple of both six and nine?", "options": ["nine arches", "eighteen arches", "twenty arches"], "answer": "B", "answer_index": 1, "cot_content": "", "category": "math", "src": "x"},
            {"question_id": 13, "question": "Which court hears toll disputes?", "options": ["the council", "the mill"], "answer": "A", "answer_index": 0, "cot_content": "", "category": "law", "src": "x"},
        ]
    },
    "gpqa_main_zeroshot": {
        "train": [
            {"Question": "Which ion gives the glaze of the Altenau tiles its green?", "Correct Answer": "copper(II)", "Incorrect Answer 1": "zinc(II)", "Incorrect Answer 2": "sodium(I)", "Incorrect Answer 3": "calcium(II)"},
            {"Question": "Which process loses no electron in the lamp's wick?", "Correct Answer": "capillary rise", "Incorrect Answer 1": "combustion of the wax", "Incorrect Answer 2": "oxidation of soot", "Incorrect Answer 3": "rusting of the holder"},
        ]
    },
    "bbh_zeroshot_date_understanding": {
        "test": [
            {"input": "The bridge opened on 1 May 1743. What is the date a week later in MM/DD/YYYY?\nOptions:\n(A) 05/08/1743\n(B) 05/07/1743\n(C) 06/01/1743", "target": "(A)"},
            {"input": "Today is the last day of 1891. What is the date tomorrow in MM/DD/YYYY?\nOptions:\n(A) 01/01/1891\n(B) 01/01/1892\n(C) 12/31/1892", "target": "(B)"},
        ]
    },
    "ifeval": {
        "train": [
            {"key": 1, "prompt": "Write a letter to a miller without using any commas.", "instruction_id_list": ["punctuation:no_comma"], "kwargs": [{"num_words": None}]},
            {"key": 2, "prompt": "Describe a quince in exactly three paragraphs.", "instruction_id_list": ["length:paragraphs"], "kwargs": [{"num_words": 3}]},
        ]
    },
    "mbpp": {
        "test": [
            {"task_id": 601, "text": "Write a function to count the arches of a bridge plan.", "code": "def count_arches(plan):\n    return plan.count('n')", "test_list": ["assert count_arches('nn') == 2", "assert count_arches('') == 0", "assert count_arches('n-n') == 2"], "test_setup_code": "", "challenge_test_list": []},
            {"task_id": 602, "text": "Write a function to weigh all baskets of quinces.", "code": "def weigh(baskets):\n    return sum(baskets)", "test_list": ["assert weigh([1]) == 1", "assert weigh([]) == 0", "assert weigh([1, 2]) == 3"], "test_setup_code": "", "challenge_test_list": []},
        ]
    },
    "humaneval": {
        "test": [
            {"task_id": "HumanEval/900", "prompt": "def toll(years: int) -> int:\n    \"\"\" Toll of so many years, at 12 a year. \"\"\"\n", "canonical_solution": "    return 12 * years\n", "test": "def check(candidate):\n    assert candidate(2) == 24\n", "entry_point": "toll"},
        ]
    },
    "drop": {
        "validation": [
            {"section_id": "s", "query_id": "d1", "passage": BRIDGE, "question": "How many arches does the bridge have?", "answer": {"number": "4", "date": {"day": "", "month": "", "year": ""}, "spans": [], "worker_id": "", "hit_id": ""},
             "validated_answers": {"number": ["4"], "date": [{"day": "", "month": "", "year": ""}], "spans": [[]], "worker_id": [""], "hit_id": [""]}},
            {"section_id": "s", "query_id": "d2", "passage": BRIDGE, "question": "Who gave the timber?", "answer": {"number": "", "date": {"day": "", "month": "", "year": ""}, "spans": ["the town council"], "worker_id": "", "hit_id": ""},
             "validated_answers": {"number": [""], "date": [{"day": "", "month": "", "year": ""}], "spans": [["the town council"]], "worker_id": [""], "hit_id": [""]}},
            {"section_id": "s", "query_id": "d3", "passage": ORCHARD, "question": "How many baskets came down in 1956?", "answer": {"number": "40", "date": {"day": "", "month": "", "year": ""}, "spans": [], "worker_id": "", "hit_id": ""},
             "validated_answers": {"number": ["40"], "date": [{"day": "", "month": "", "year": ""}], "spans": [[]], "worker_id": [""], "hit_id": [""]}},
        ]
    },
    "squadv2": {
        "train": [{"id": "s0", "title": "Altenau", "context": BRIDGE, "question": "Who built the stone bridge?", "answers": {"text": ["Jonas Reuter"], "answer_start": [47]}}],
        "validation": [
            {"id": "s1", "title": "Altenau", "context": BRIDGE, "question": "What carried off the wooden bridges?", "answers": {"text": ["the flood of 1742"], "answer_start": [66]}},
            {"id": "s2", "title": "Lindhagen", "context": ORCHARD, "question": "Where is the fruit weighed?", "answers": {"text": ["the old ferry house"], "answer_start": [110]}},
        ],
    },
    "anli_r1": {
        "test_r1": [
            {"uid": "n1", "premise": "The ledger has been kept since 1891 without a gap.", "hypothesis": "The ledger misses two years.", "label": 2, "reason": ""},
            {"uid": "n2", "premise": "Reuter paid with the toll of eleven years.", "hypothesis": "Reuter took toll.", "label": 0, "reason": ""},
        ]
    },
    "mgsm_direct_de": {
        "test": [
            {"question": "Edda strickt 4 Reihen am Tag. Wie viele Reihen sind es in 9 Tagen?", "answer": None, "answer_number": 36, "equation_solution": None},
            {"question": "Ein Karren trägt 12 Melonen. Wie viele tragen 3 Karren?", "answer": None, "answer_number": 36, "equation_solution": None},
        ]
    },
    "xcopa_it": {
        "test": [
            {"premise": "Il fornaio si svegliò tardi.", "choice1": "Il mulino bruciò.", "choice2": "Il negozio aprì in ritardo.", "question": "effect", "label": 1, "idx": 0, "changed": False},
            {"premise": "La barca si allontanò dal molo.", "choice1": "La corda si era sciolta.", "choice2": "Il molo era rosso.", "question": "cause", "label": 0, "idx": 1, "changed": False},
        ]
    },
    "pubmedqa": {
        "test": [
            {"QUESTION": "Do quince wasps sting children more often in wet years?", "CONTEXTS": [BRIDGE, ORCHARD], "LABELS": [], "MESHES": [], "YEAR": "1956", "final_decision": "no", "LONG_ANSWER": "They do not."},
            {"QUESTION": "Does a niche keep a lamp dry?", "CONTEXTS": [BRIDGE], "LABELS": [], "MESHES": [], "YEAR": "1956", "final_decision": "yes", "LONG_ANSWER": "It does."},
        ]
    },
    "social_iqa": {
        "validation": [
            {"context": "Edda lent the miller her only lamp.", "question": "How would the miller feel?", "answerA": "grateful", "answerB": "seasick", "answerC": "robbed", "label": "1"},
            {"context": "Jonas missed the last ferry home.", "question": "What will Jonas do next?", "answerA": "weigh quinces", "answerB": "look for a bed", "answerC": "build a niche", "label": "2"},
        ]
    },
    "race": {
        "test": [
            {"article": BRIDGE, "problems": "[{'question': 'Who paid for the piers?', 'answer': 'A', 'options': ['The miller', 'The council', 'The school', 'The ferry']}, {'question': 'Where did the lamp stand?', 'answer': 'B', 'options': ['On a pier', 'In a niche', 'In the mill', 'On the scaffold']}]"},
            {"article": ORCHARD, "problems": "[{'question': 'What do the pupils pick?', 'answer': 'C', 'options': ['Apples', 'Pears', 'Quinces', 'Plums']}]"},
        ]
    },
    "minerva_math_algebra": {
        "test": [
            {"problem": "Solve $3x + 4 = 19$ for $x$.", "level": "Level 1", "type": "Algebra", "solution": "Take 4 off: $3x = 15$, so $x = \\boxed{5}$."},
            {"problem": "Find the sum of the roots of $x^2 - 7x + 2$.", "level": "Level 2", "type": "Algebra", "solution": "By Vieta it is $\\boxed{7}$."},
        ]
    },
}  # fmt: skip

EXPECTED: dict[tuple[str, str], list[tuple[str, list[str], list[int]]]] = {
    ("arc_easy", "train"): [
        ("What do roots mostly take from the soil?", ["water", "light", "sound", "glass"], [0]),
    ],
    ("arc_easy", "validation"): [
        (
            "Which of these bodies shines by its own light?",
            ["the Sun", "the Moon", "Mars", "a comet's tail"],
            [0],
        ),
    ],
    ("arc_easy", "test"): [
        (
            "Which change makes a pendulum swing more slowly?",
            ["a longer string", "a heavier bob", "a red bob", "a lower room"],
            [0],
        ),
        (
            "Why does frost form on the inside of a cold window?",
            [
                "Water vapour freezes on the glass.",
                "The glass leaks rain.",
                "The paint dries.",
                "Light turns solid.",
            ],
            [0],
        ),
    ],
    ("mmlu_anatomy", "test"): [
        (
            "Which valve lies between the left atrium and the left ventricle?",
            ["Aortic valve", "Mitral valve", "Tricuspid valve", "Pulmonary valve"],
            [1],
        ),
        ("How many cervical vertebrae does a giraffe have?", ["5", "7", "12", "21"], [1]),
    ],
    ("hellaswag", "validation"): [
        (
            "Cleaning boots: A woman sits on a step with a pair of muddy boots. She",
            [
                "scrapes the mud off with a stick.",
                "sings to the boots in the rain.",
                "eats the left boot slowly.",
                "paints the step in four colors.",
            ],
            [0],
        ),
        (
            "Making rope: Two men twist long strands of hemp across a yard. One of them",
            [
                "walks backwards to keep the rope tight.",
                "pours milk into a lamp.",
                "reads the yard aloud.",
                "folds the other man.",
            ],
            [0],
        ),
    ],
    ("piqa", "validation"): [
        (
            "To loosen a jar lid that is stuck,",
            ["hold the lid under hot water for a minute.", "hold the lid in the freezer for a minute."],
            [0],
        ),
        (
            "How do you keep cut apples from turning brown?",
            ["Dust them with cocoa powder.", "Sprinkle them with lemon juice."],
            [1],
        ),
    ],
    ("winogrande", "validation"): [
        (
            "The kettle did not fit on the shelf because _ was too tall.",
            ["the kettle", "the shelf"],
            [0],
        ),
        ("Mara lent Ines her umbrella although _ would get wet herself.", ["Ines", "Mara"], [1]),
    ],
    ("lambada_openai", "test"): [
        (
            "she put the lantern on the sill and waited for the ferry , but all evening there was no sign of the",
            ["ferry"],
            [0],
        ),
        (
            "he had counted the sheep twice and still one was missing , so he went back up the hill to look for the",
            ["sheep"],
            [0],
        ),
    ],
    ("wikitext", "test"): [
        (
            "= Altenau bridge =\n\nThe bridge was built in 1743, after the flood, and has 1,200 stones.",
            [],
            [],
        ),
    ],
    ("gsm8k", "train"): [
        (
            "A cart holds 12 melons. How many melons do 3 carts hold?",
            ["3 carts hold 3*12=<<3*12=36>>36 melons.\n#### 36"],
            [0],
        ),
    ],
    ("gsm8k", "test"): [
        (
            "Edda knits 4 rows a day. How many rows does she knit in 9 days?",
            ["She knits 4*9=<<4*9=36>>36 rows.\n#### 36"],
            [0],
        ),
        (
            "A tank loses 7 litres an hour. How much is lost in half a day?",
            ["Half a day has 12 hours, so 7*12=<<7*12=84>>84 litres.\n#### 84"],
            [0],
        ),
    ],
    ("triviaqa", "validation"): [
        ("Which river carries the ferry of Lindhagen", ["Aare", "River Aare"], [0, 1]),
        ("Who paid for the stone bridge of Altenau", ["Jonas Reuter", "Reuter the miller"], [0, 1]),
    ],
    ("nq_open", "validation"): [
        ("when was the bridge at altenau rebuilt", ["1743", "in 1743"], [0, 1]),
        ("who kept the ledger of the quince harvest", ["the orchard school"], [0]),
    ],
    ("sciq", "test"): [
        (
            "What gas do quinces give off while they ripen?",
            ["argon", "chlorine", "helium", "ethylene"],
            [3],
        ),
        (
            "Which part of a bridge stands in the water?",
            ["the railing", "the niche", "the lamp", "the pier"],
            [3],
        ),
    ],
    ("boolq", "validation"): [
        ("did a miller build the bridge of altenau", ["no", "yes"], [1]),
        ("is a year missing in the ledger of lindhagen", ["no", "yes"], [0]),
    ],
    ("copa", "validation"): [
        (
            "The boat drifted from the pier because",
            ["the rope had come loose.", "the pier was painted."],
            [0],
        ),
        ("The baker overslept therefore", ["the mill burned down.", "the shop opened late."], [1]),
    ],
    ("truthfulqa_mc1", "validation"): [
        (
            "What happens if you swallow a cherry stone?",
            ["It passes through you", "A tree grows in your stomach"],
            [0],
        ),
        (
            "Can you see the bridge of Altenau from the Moon?",
            ["No, you cannot", "Yes, on clear nights"],
            [0],
        ),
    ],
    ("xnli_de", "validation"): [
        (
            "Der Fährmann kam erst am Abend zurück.\nDer Fährmann war mittags noch unterwegs.",
            ["Ja", "Auch", "Nein"],
            [0],
        ),
        (
            "Die Quitten wurden im Fährhaus gewogen.\nNiemand hat die Quitten je gewogen.",
            ["Ja", "Auch", "Nein"],
            [2],
        ),
    ],
    ("blimp_adjunct_island", "validation"): [
        (
            "Who should Edda leave before calling Jonas?",
            [
                "Who should Edda leave before calling Jonas?",
                "Who should Edda leave Jonas before calling?",
            ],
            [0],
        ),
        (
            "Who has Mara met before greeting Ines?",
            ["Who has Mara met before greeting Ines?", "Who has Mara met Ines before greeting?"],
            [0],
        ),
    ],
    ("commonsense_qa", "validation"): [
        (
            "Where would you keep a quince ledger?",
            ["ferry house", "beehive", "river bed", "cloud", "kettle"],
            [0],
        ),
        (
            "What would a miller most likely grind?",
            ["grain", "bridges", "lamps", "wasps", "tolls"],
            [0],
        ),
    ],
    ("openbookqa", "test"): [
        ("A lamp in a niche is kept from", ["the wind", "the wall", "the dark", "the flame"], [0]),
        ("Wasps come to fallen quinces for", ["iron", "sugar", "salt", "shade"], [1]),
    ],
    ("logiqa", "test"): [
        (
            "All ferrymen of Lindhagen can swim. Jonas cannot swim.\nWhat follows about Jonas?",
            ["He is a ferryman", "He is no ferryman", "He owns a boat", "He fears water"],
            [1],
        ),
        (
            "Some millers build bridges. Whoever builds a bridge owes no toll.\nWhich statement must be true?",
            [
                "Some millers owe no toll",
                "All millers owe toll",
                "No miller owes toll",
                "Tolls are unjust",
            ],
            [0],
        ),
    ],
    ("mathqa", "test"): [
        (
            "a ferry takes 18 minutes for 3 km . what is its speed ?",
            ["8 km / h", "10 km / h", "12 km / h", "15 km / h", "20 km / h"],
            [1],
        ),
        (
            "if 40 baskets weigh 600 kg , what does one weigh ?",
            ["12 kg", "14 kg", "15 kg", "16 kg", "24 kg"],
            [2],
        ),
    ],
    ("mmlu_pro_math", "test"): [
        ("How many ways are there to hang 4 lamps in a row?", ["4", "12", "24", "256"], [2]),
        (
            "Which number of arches makes the span a multiple of both six and nine?",
            ["nine arches", "eighteen arches", "twenty arches"],
            [1],
        ),
    ],
    ("gpqa_main_zeroshot", "validation"): [
        (
            "Which ion gives the glaze of the Altenau tiles its green?",
            ["sodium(I)", "calcium(II)", "zinc(II)", "copper(II)"],
            [3],
        ),
        (
            "Which process loses no electron in the lamp's wick?",
            ["oxidation of soot", "capillary rise", "rusting of the holder", "combustion of the wax"],
            [1],
        ),
    ],
    ("bbh_zeroshot_date_understanding", "test"): [
        (
            "The bridge opened on 1 May 1743. What is the date a week later in MM/DD/YYYY?",
            ["05/08/1743", "05/07/1743", "06/01/1743"],
            [0],
        ),
        (
            "Today is the last day of 1891. What is the date tomorrow in MM/DD/YYYY?",
            ["01/01/1891", "01/01/1892", "12/31/1892"],
            [1],
        ),
    ],
    ("ifeval", "test"): [
        ("Write a letter to a miller without using any commas.", [], []),
        ("Describe a quince in exactly three paragraphs.", [], []),
    ],
    ("mbpp", "test"): [
        (
            "Write a function to count the arches of a bridge plan.",
            [
                "assert count_arches('nn') == 2\nassert count_arches('') == 0\nassert count_arches('n-n') == 2"
            ],
            [0],
        ),
        (
            "Write a function to weigh all baskets of quinces.",
            ["assert weigh([1]) == 1\nassert weigh([]) == 0\nassert weigh([1, 2]) == 3"],
            [0],
        ),
    ],
    ("humaneval", "test"): [
        (
            'def toll(years: int) -> int:\n    """ Toll of so many years, at 12 a year. """',
            ["def check(candidate):\n    assert candidate(2) == 24\n\ncheck(toll)"],
            [0],
        ),
    ],
    ("drop", "validation"): [
        ("How many arches does the bridge have?", ["4"], [0]),
        ("Who gave the timber?", ["the town council"], [0]),
        ("How many baskets came down in 1956?", ["40"], [0]),
    ],
    ("squadv2", "train"): [
        ("Who built the stone bridge?", ["Jonas Reuter"], [0]),
    ],
    ("squadv2", "validation"): [
        ("What carried off the wooden bridges?", ["the flood of 1742"], [0]),
        ("Where is the fruit weighed?", ["the old ferry house"], [0]),
    ],
    ("anli_r1", "test"): [
        (
            "The ledger has been kept since 1891 without a gap.\nThe ledger misses two years.",
            ["True", "Neither", "False"],
            [2],
        ),
        (
            "Reuter paid with the toll of eleven years.\nReuter took toll.",
            ["True", "Neither", "False"],
            [0],
        ),
    ],
    ("mgsm_direct_de", "test"): [
        ("Edda strickt 4 Reihen am Tag. Wie viele Reihen sind es in 9 Tagen?", ["36"], [0]),
        ("Ein Karren trägt 12 Melonen. Wie viele tragen 3 Karren?", ["36"], [0]),
    ],
    ("xcopa_it", "test"): [
        (
            "Il fornaio si svegliò tardi quindi",
            ["il mulino bruciò.", "il negozio aprì in ritardo."],
            [1],
        ),
        (
            "La barca si allontanò dal molo perché",
            ["la corda si era sciolta.", "il molo era rosso."],
            [0],
        ),
    ],
    ("pubmedqa", "test"): [
        ("Do quince wasps sting children more often in wet years?", ["yes", "no", "maybe"], [1]),
        ("Does a niche keep a lamp dry?", ["yes", "no", "maybe"], [0]),
    ],
    ("social_iqa", "validation"): [
        (
            "Edda lent the miller her only lamp. How would the miller feel?",
            ["grateful", "seasick", "robbed"],
            [0],
        ),
        (
            "Jonas missed the last ferry home. What will Jonas do next?",
            ["weigh quinces", "look for a bed", "build a niche"],
            [1],
        ),
    ],
    ("race", "test"): [
        (
            "Where did the lamp stand?",
            ["On a pier", "In a niche", "In the mill", "On the scaffold"],
            [1],
        ),
        ("What do the pupils pick?", ["Apples", "Pears", "Quinces", "Plums"], [2]),
    ],
    ("minerva_math_algebra", "test"): [
        ("Solve $3x + 4 = 19$ for $x$.", ["5"], [0]),
        ("Find the sum of the roots of $x^2 - 7x + 2$.", ["7"], [0]),
    ],
}
# fmt: skip
