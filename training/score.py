"""How much of the evidence plain vectors find: turn recall at ten, as `memplane eval --compare dense` measures it."""

import torch
from tokenizers import Tokenizer
from torch import Tensor

from training.data import Corpus, alone, as_asked, paired
from training.encoder import TOKENS_MAX, Encoder, Texts, embed

AT = 10
_PAIR_SHARE = 0.7


def turn_recall(
    encoder: Encoder, tokenizer: Tokenizer, corpus: Corpus, mark: str, device: torch.device
) -> tuple[float, float]:
    """With questions and turns as they are; and with questions as Memplane asks them and turns as it stores them."""
    alone_found = combined_found = 0.0
    asked = 0
    for number, dialogue in enumerate(corpus.dialogues):
        questions = [question for question in corpus.questions if question.dialogue == number]
        if not questions:
            continue
        own = embed(encoder, Texts(tokenizer, [alone(turn) for turn in dialogue], TOKENS_MAX), device)
        pair = embed(
            encoder,
            Texts(tokenizer, [paired(dialogue, at) for at in range(len(dialogue))], TOKENS_MAX),
            device,
        )
        queries = embed(
            encoder, Texts(tokenizer, [mark + question.text for question in questions], TOKENS_MAX), device
        )
        asked_texts = [mark + as_asked(question, dialogue) for question in questions]
        asked_queries = embed(encoder, Texts(tokenizer, asked_texts, TOKENS_MAX), device)
        evidence = [frozenset(question.evidence) for question in questions]
        alone_found += _found(queries @ own.T, evidence)
        combined_found += _found(asked_queries @ (own + _PAIR_SHARE * pair).T, evidence)
        asked += len(questions)
    return alone_found / max(1, asked), combined_found / max(1, asked)


def _found(scores: Tensor, evidence: list[frozenset[int]]) -> float:
    best = torch.topk(scores, min(AT, scores.shape[1]), dim=1).indices.tolist()
    return sum(len(wanted & set(found)) / len(wanted) for wanted, found in zip(evidence, best, strict=True))
