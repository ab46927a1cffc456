"""Every step on made-up data, with a small random model, on a CPU: what `make train-tiny` runs.

python -m training.tiny [FOLDER]
"""

import csv
import gzip
import json
import random
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnxruntime
import torch
from tokenizers import Tokenizer

from training import export, multilingual, relation, run, weights
from training.encoder import Encoder, Texts, embed
from training.texts import LANGUAGES

ORIGINAL = Path(__file__).parent.parent / "src/memplane/models/weights/arctic-embed-s"
_THINGS = ("bicycle", "violin", "garden", "kitchen", "bakery", "piano", "tent", "boat", "camera", "guitar")
_DEEDS = ("repaired", "sold", "bought", "painted", "lost", "found", "cleaned", "borrowed")
COSINE_MIN = 0.995


def main(folder: Path) -> None:
    chance = random.Random(1)
    sources, pairs, other = (folder / name for name in ("sources", "pairs", "multilingual"))
    for made in (sources, pairs, other):
        made.mkdir(parents=True)
    _write_dialogues(pairs / "friends.json", chance)
    _write_personas(sources / "personas.csv.gz", chance)
    _write_languages(other, chance)
    (folder / "texts.json.gz").write_bytes(
        gzip.compress(json.dumps([_said(chance) for _ in range(60)]).encode())
    )
    out = folder / "out"
    options = {
        "--original": ORIGINAL,
        "--sources": sources,
        "--pairs": pairs,
        "--texts": folder / "texts.json.gz",
        "--out": out,
        "--score": f"friends={pairs / 'friends.json'}",
        "--multilingual": other,
        "--translations": other,
        "--score-languages": other / "languages.json",
    }
    run.main(["--tiny", *(str(part) for option in options.items() for part in option)])
    for name, tokenizer in (
        ("english", ORIGINAL / "tokenizer.json"),
        ("multilingual", other / "tokenizer.json"),
    ):
        nearest = _exported(out / name, tokenizer, _said(chance))
        print(f"{name}: cosine of the exported model to the trained one {nearest:.4f}")
        if nearest < COSINE_MIN:
            sys.exit(f"the exported {name} model differs from the trained one")
    _relation(other, ORIGINAL, chance)


def _relation(folder: Path, original: Path, chance: random.Random) -> None:
    """Train the cross-encoder on made-up pairs, and score it on a made-up case."""
    rows = [
        {"old": _said(chance), "new": _said(chance), "label": chance.choice(("update", "add"))}
        for _ in range(12)
    ]
    with gzip.open(folder / "pairs.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write("".join(json.dumps(row) + "\n" for row in rows))
    statements = [{"text": "I own a violin."}, {"text": "I sold the violin."}]
    cases = [
        {"kind": kind, "statements": statements, "current": ["sold"], "outdated": ["own a"]}
        for kind in ("update", "deny", "add")
    ]
    (folder / "cases.json").write_text(json.dumps(cases), "utf-8")
    relation.main(
        [
            *("--original", str(original), "--pairs", str(folder), "--out", str(folder / "relation")),
            *("--score", str(folder / "cases.json"), "--tiny"),
        ]
    )
    print(f"relation: {len(weights.load(folder / 'relation'))} arrays")


def _said(chance: random.Random) -> str:
    return f"I {chance.choice(_DEEDS)} the {chance.choice(_THINGS)} and then the {chance.choice(_THINGS)}."


def _write_dialogues(path: Path, chance: random.Random) -> None:
    dialogues, questions = [], []
    for number in range(4):
        turns = [{"speaker": ("Ada", "Ben")[at % 2], "text": _said(chance)} for at in range(8)]
        dialogues.append(turns)
        questions += [
            {"question": f"What did {turns[at]['speaker']} do?", "dialogue": number, "evidence": [at]}
            for at in range(4)
        ]
    path.write_text(json.dumps({"dialogues": dialogues, "questions": questions}), "utf-8")


def _write_personas(path: Path, chance: random.Random) -> None:
    with gzip.open(path, "wt", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["user 1 personas", "user 2 personas", "conversation"])
        for _ in range(3):
            talk = "\n".join(f"User {1 + at % 2}: {_said(chance)}" for at in range(8))
            rows.writerow(["I love my violin.\nI live in Lisbon.", "My favorite color is blue.", talk])


def _write_languages(folder: Path, chance: random.Random) -> None:
    """A table of random words, and translations that are the same text."""
    words = sorted({word.lower() for _ in range(200) for word in _said(chance).split()})
    pieces = [("<unk>", 0.0), ("<s>", 0.0), ("</s>", 0.0), ("?", -4.0), ("\u2581", -5.0)]
    pieces += [(f"\u2581{word}", -3.0) for word in words]
    multilingual.write_tokenizer(pieces, b"", folder / "tokenizer.json")
    table = np.random.default_rng(1).standard_normal((len(pieces), 512)).astype(np.float32)
    codes, scales = multilingual.packed(table)
    np.savez(folder / "table.npz", codes=codes, scales=scales)
    rows = [
        {
            language: {name: _said(chance) for name in ("memory", "turn", "question", "other")}
            for language in LANGUAGES
        }
        for _ in range(4)
    ]
    (folder / "languages.json").write_text(json.dumps(rows), "utf-8")
    (folder / "lexicon.tsv").write_text(
        "\n".join("\t".join([word] * len(LANGUAGES)) for word in words) + "\n", "utf-8"
    )
    with gzip.open(folder / "translations.json.gz", "wt", encoding="utf-8") as file:
        json.dump([{"en": said, "de": said} for said in (_said(chance) for _ in range(20))], file)


def _exported(folder: Path, tokenizer: Path, text: str) -> float:
    """The cosine between what the written ONNX file and the trained weights make of a text."""
    stored = weights.load(folder)
    path = folder / "model.onnx"
    export.write(stored, path)
    plain = {name: array for name, array in stored.items() if name not in {"codes", "scales"}}
    if "codes" in stored:
        plain[weights.WORDS] = multilingual.unpacked(stored["codes"], stored["scales"])
    texts = Texts(Tokenizer.from_file(str(tokenizer)), [text], 64)
    trained = embed(Encoder(plain), texts, torch.device("cpu"))[0].numpy()
    ids = texts.ids[0][None]
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    made = session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids)})[0][0, 0]
    return float(trained @ made / np.linalg.norm(made))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory(prefix="memplane-training-") as made:
            main(Path(made))
