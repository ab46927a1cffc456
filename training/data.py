"""Conversations with questions, read from several sources into one form."""

import csv
import gzip
import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from training.rules import questions_about

_PAIR_CHARS_MAX = 300
"""As `memplane.recall.turn_embedding`: a turn is also embedded with the end of the one before it."""


class Turn(NamedTuple):
    speaker: str
    text: str


class Question(NamedTuple):
    """A question and the turns of its dialogue that answer it."""

    source: str
    text: str
    dialogue: int
    evidence: tuple[int, ...]
    """Empty: the turn of `speaker` that is nearest to `shown`, if one is near enough."""
    speaker: str = ""
    shown: str = ""


class Corpus:
    """Dialogues, and questions about them."""

    def __init__(self) -> None:
        self.dialogues: list[list[Turn]] = []
        self.questions: list[Question] = []

    def add(self, other: "Corpus") -> None:
        first = len(self.dialogues)
        self.dialogues += other.dialogues
        self.questions += [
            question._replace(dialogue=first + question.dialogue) for question in other.questions
        ]


ROLES = frozenset({"user", "assistant", "system", "tool"})


def alone(turn: Turn) -> str:
    """A turn as it is embedded."""
    return turn.text if turn.speaker in ROLES else f"{turn.speaker}: {turn.text}"


def paired(dialogue: Sequence[Turn], place: int) -> str:
    """A turn after the end of the one before it."""
    if not place or dialogue[place].speaker == "assistant":
        return dialogue[place].text
    return f"{dialogue[place - 1].text[-_PAIR_CHARS_MAX:]} {dialogue[place].text}"


def as_asked(question: Question, dialogue: Sequence[Turn]) -> str:
    """The question as Memplane embeds it: a speaker it names is `I`, because with the name every turn that greets the
    person is nearer than the turns that answer."""
    names = {turn.speaker for turn in dialogue} - ROLES
    forms = {form: "I" for name in names for form in (name, name.split()[0])}
    return _renamed(question.text, {f"{form}'s": "my" for form in forms} | forms)


def read_questions(corpus: Corpus, source: str, path: Path) -> None:
    """A file `{"dialogues": [[{speaker, text}]], "questions": [{question, dialogue, evidence}]}`."""
    found, first = read_json(path), len(corpus.dialogues)
    corpus.dialogues += [
        [Turn(turn["speaker"], turn["text"]) for turn in dialogue] for dialogue in found["dialogues"]
    ]
    corpus.questions += [
        Question(source, entry["question"], first + entry["dialogue"], tuple(entry["evidence"]))
        for entry in found["questions"]
    ]


def long_conversations(corpus: Corpus, size: int, chance: random.Random) -> Corpus:
    """The same questions about long conversations: as many short dialogues, one after the other, between the same two
    people.

    People talk for years; a name then says nothing about where an answer is. Dialogues between others than two people
    keep their names.
    """
    order = list(range(len(corpus.dialogues)))
    chance.shuffle(order)
    long = Corpus()
    placed: dict[int, tuple[int, int, dict[str, str]]] = {}
    for start in range(0, len(order), size):
        names = chance.sample(NAMES, 2)
        turns: list[Turn] = []
        for at in order[start : start + size]:
            speakers = list(dict.fromkeys(turn.speaker for turn in corpus.dialogues[at]))
            renamed = (
                dict(zip(speakers, chance.sample(names, 2), strict=True)) if _two_people(speakers) else {}
            )
            placed[at] = (len(long.dialogues), len(turns), renamed)
            turns += [
                Turn(renamed.get(turn.speaker, turn.speaker), _renamed(turn.text, renamed))
                for turn in corpus.dialogues[at]
            ]
        long.dialogues.append(turns)
    for question in corpus.questions:
        dialogue, first, renamed = placed[question.dialogue]
        long.questions.append(
            question._replace(
                text=_renamed(question.text, renamed),
                dialogue=dialogue,
                evidence=tuple(first + at for at in question.evidence),
            )
        )
    return long


def _two_people(speakers: Sequence[str]) -> bool:
    return len(speakers) == 2 and not ROLES.intersection(speakers)


def _renamed(text: str, names: Mapping[str, str]) -> str:
    for old, new in names.items():
        text = re.sub(rf"\b{re.escape(old)}\b", new, text)
    return text


def read_personas(corpus: Corpus, source: str, path: Path, chance: random.Random) -> None:
    """Synthetic-Persona-Chat: facts of two people and a conversation in which they show. Which turn shows a fact is
    found while training, by the model itself. The facts are asked for as they are, and by questions made from them."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        for row in list(csv.reader(file))[1 : 1 + _CONVERSATIONS]:
            dialogue = list(_spoken(row[2]))
            if len(dialogue) < _TURNS_MIN:
                continue
            names = dict(zip(("User 1", "User 2"), chance.sample(NAMES, 2), strict=True))
            at = len(corpus.dialogues)
            corpus.dialogues.append(
                [Turn(names.get(turn.speaker, turn.speaker), turn.text) for turn in dialogue]
            )
            for facts, speaker in zip(row[:2], names.values(), strict=True):
                for fact in filter(None, map(str.strip, facts.split("\n"))):
                    corpus.questions.append(Question(source, fact, at, (), speaker, fact))
                    corpus.questions += [
                        Question(f"{source} by rule", text, at, (), speaker, fact)
                        for text in questions_about(fact, speaker, chance)
                    ]


_TURNS_MIN = 6
_CONVERSATIONS = 400
"""The number used of each file; they resemble each other."""
NAMES = [
    "Ada",
    "Aisha",
    "Alejandro",
    "Amara",
    "Andrei",
    "Anna",
    "Arjun",
    "Bea",
    "Ben",
    "Bianca",
    "Carlos",
    "Chen",
    "Clara",
    "Daniel",
    "Daria",
    "David",
    "Diego",
    "Elena",
    "Emil",
    "Emma",
    "Erik",
    "Farid",
    "Fatima",
    "Felix",
    "Fiona",
    "Gabriel",
    "Grace",
    "Hana",
    "Hannah",
    "Hassan",
    "Hugo",
    "Ines",
    "Isabel",
    "Ivan",
    "Jack",
    "Jamal",
    "James",
    "Jana",
    "Jin",
    "Joao",
    "Julia",
    "Kai",
    "Karim",
    "Kate",
    "Keiko",
    "Lars",
    "Laura",
    "Leila",
    "Leo",
    "Lina",
    "Louis",
    "Lucas",
    "Maria",
    "Marco",
    "Marta",
    "Mateo",
    "Maya",
    "Mia",
    "Miguel",
    "Mina",
    "Nadia",
    "Nina",
    "Noah",
    "Nora",
    "Olga",
    "Oliver",
    "Omar",
    "Oscar",
    "Pablo",
    "Paula",
    "Pedro",
    "Priya",
    "Rafael",
    "Rania",
    "Rosa",
    "Ruth",
    "Sam",
    "Sara",
    "Sofia",
    "Stefan",
    "Tariq",
    "Tomas",
    "Uma",
    "Vera",
    "Victor",
    "Wei",
    "Yara",
    "Yusuf",
    "Zoe",
]


def _spoken(text: str) -> Iterator[Turn]:
    for line in text.split("\n"):
        speaker, colon, said = line.partition(": ")
        if colon and said.strip():
            yield Turn(speaker.strip(), said.strip())


def read_text(path: Path) -> str:
    """A file's text, compressed or not."""
    content = path.read_bytes()
    return (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8")


def read_json(path: Path) -> Any:
    return json.loads(read_text(path))
