"""Made-up data in the schemas of the data sets `memplane eval` reads: a few lines of each, none of it theirs."""

import gzip
import json
from pathlib import Path
from typing import Any

LOCOMO = [
    {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Nadia",
            "speaker_b": "Tom",
            "session_1_date_time": "9:05 am on 3 March, 2025",
            "session_1": [
                {"speaker": "Nadia", "dia_id": "D1:1", "text": "I planted tomatoes on the balcony today."},
                {"speaker": "Tom", "dia_id": "D1:2", "text": "Nice! I only own a cactus."},
            ],
            "session_2_date_time": "7:40 pm on 11 April, 2025",
            "session_2": [
                {"speaker": "Tom", "dia_id": "D2:1", "text": "My sister opened a bakery in Ghent."},
                {
                    "speaker": "Nadia",
                    "dia_id": "D2:2",
                    "text": "Look at this!",
                    "blip_caption": "a photo of a loaf of rye bread",
                },
            ],
        },
        "qa": [
            {"question": "What did Nadia plant?", "evidence": ["D1:1"], "category": 4, "answer": "tomatoes"},
            {"question": "Where is the bakery?", "evidence": ["D2:1"], "category": 1, "answer": "Ghent"},
            {"question": "Which violin does Tom own?", "evidence": ["D1:2"], "category": 5},
        ],
    }
]

LONGMEMEVAL = [
    {
        "question_id": "q1",
        "question_type": "single-session-user",
        "question": "Which bus do I take to work?",
        "question_date": "2025/05/20 (Tue) 08:00",
        "haystack_session_ids": ["s1", "s2"],
        "haystack_dates": ["2025/05/01 (Thu) 10:00", "2025/05/02 (Fri) 11:00"],
        "haystack_sessions": [
            [
                {"role": "user", "content": "I take bus 41 to work these days.", "has_answer": True},
                {"role": "assistant", "content": "Good choice, it is the fast one."},
            ],
            [{"role": "user", "content": "How do I boil an egg?"}],
        ],
    }
]

MSC = [
    [
        {"speaker": "bot_0", "text": "Hello there!", "facts": []},
        {"speaker": "bot_1", "text": "I have two dogs and I live in Oslo.", "facts": ["I have two dogs."]},
    ]
]

SCENARIOS = [
    {
        "id": "move",
        "family": "factual_supersession",
        "propositions": [
            {"text": "I live in Oslo", "asserted_at": "2023-02-01T12:00:00", "session": "s1"},
            {"text": "I moved to Bergen", "asserted_at": "2024-06-01T12:00:00", "session": "s2"},
        ],
        "questions": [
            {
                "q": "Where does the user live now?",
                "type": "current_belief",
                "expected_current_contains": ["Bergen"],
                "expected_superseded_contains": ["Oslo"],
            },
            {
                "q": "Did it rain?",
                "type": "validity_at_time",
                "at_time": "2024-01-01",
                "expected_valid": True,
            },
        ],
    }
]

CONSOLIDATION = [
    {
        "context": "Here is a list of facts:\n0. The capital of Norway is Bergen.\n1. The capital of Norway is Oslo.",
        "questions": ["What is the capital of Norway?"],
        "answers": [["Oslo"]],
        "metadata": {"source": "factconsolidation_sh_6k"},
    }
]

CTPARSE = [
    {
        "text": "on 5 May 2019",
        "ref_time": "2019-01-01T10:00:00",
        "gold_parse": "Time[]{2019-05-05 X:X (X/X)}",
        "language": "en",
    }
]

DUCKLING = {
    "reference": "2013-02-12T04:30:00-02:00",
    "positive": [
        {
            "text": "3 March 2012",
            "kind": "datetime",
            "values": ["2012-03-03T00:00:00"],
            "grain": "Day",
            "open": None,
            "locale": "en",
            "reference": "2013-02-12T04:30:00-02:00",
        }
    ],
    "negative": ["a nice cup of tea"],
}

MULTIHOP = {
    "corpus": [
        {
            "url": f"https://news.test/{number}",
            "title": title,
            "source": "The Daily",
            "published_at": "2024-01-02 08:45:59.000000000Z",
            "body": body,
        }
        for number, (title, body) in enumerate(
            [
                ("Ferry strike", "Ferries stood still on Monday.\n\nThe union wants nine percent more pay."),
                ("Bridge opens", "The new bridge opened early. Drivers cheered."),
                ("Cheese fair", "A wheel of cheese won the fair."),
                ("Rain", "It rained all week in the north."),
                ("Chess", "The youngest player won the chess open."),
            ]
        )
    ],
    "questions": [
        {
            "query": "How much more pay does the union of the ferry strike want, and did the bridge open?",
            "question_type": "inference_query",
            "evidence_list": [
                {"url": "https://news.test/0", "fact": "The union wants nine percent more pay."},
                {"url": "https://news.test/1", "fact": "The new bridge opened early."},
            ],
        },
        {"query": "Which opera sold submarines to Peru?", "question_type": "null_query", "evidence_list": []},
    ],
}

CASES: dict[str, Any] = {
    "spaces": [
        {
            "language": "en",
            "who": "a gardener",
            "memories": [
                {"kind": "fact", "stored": "Lives in Ghent", "said": "I live in Ghent, near the canal."},
                {"kind": "preference", "stored": "Prefers tea", "said": "Tea for me please, never coffee."},
            ],
            "pairs": [
                {"memory": 0, "question": "In which town do I live?"},
                {"memory": 1, "question": "Should I order tea?"},
            ],
        }
    ],
    "turns": [
        {"language": "en", "type": "greeting", "text": "hi"},
        {"language": "en", "type": "arithmetic", "text": "what is 17 % of 240?"},
    ],
    "instructions": [
        {
            "language": "en",
            "scope": "some",
            "kind": "instruction",
            "stored": "Use metric units in recipes",
            "said": "Please use metric units in recipes.",
            "applies": ["how do I bake bread?"],
            "not": ["who painted the Night Watch?"],
        },
        {
            "language": "en",
            "scope": "every answer",
            "kind": "instruction",
            "stored": "Reply in short sentences",
            "said": "Please reply in short sentences.",
            "applies": ["how do I bake bread?"],
        },
    ],
}
"""Not a download: `memplane eval returned` is given the file."""

SAMPLES: dict[str, Any] = {
    "locomo-dev": LOCOMO,
    "longmemeval-oracle-dev": LONGMEMEVAL,
    "msc-facts-dev": MSC,
    "conflict-scenarios-dev": SCENARIOS,
    "fact-consolidation-dev": CONSOLIDATION,
    "temporal-ctparse-dev": CTPARSE,
    "temporal-duckling-dev": DUCKLING,
    "multihop-rag-dev": MULTIHOP,
}


def write_samples(folder: Path) -> Path:
    """One file each under the usual name; every other one gzipped."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, (name, sample) in enumerate(SAMPLES.items()):
        raw = json.dumps(sample).encode()
        if number % 2:
            (folder / f"{name}.json").write_bytes(raw)
        else:
            (folder / f"{name}.json.gz").write_bytes(gzip.compress(raw))
    return folder
