"""Trimming a phrase to what a person would write down of it."""

import re

_CUT = re.compile(
    r"""(?:\s*,)?\s+(?:because|since|which|although|though|unless|whereas|if|so\ that|so\ (?:i|we|it|my|you)|but|cause
        |while|where\ i|when\ (?:i|we|he|she|it|they|my|you)|as\ (?:i|it|well)|too|either|lol|haha|right\ now
        |at\ the\ moment|at\ all|anyway|(?:and|or)$|just\ like\ you|like\ you|with\ you|you\ know|of\ course)(?=\s|,|$).*"""
    r"""|\s*[,(]\s*(?:what|how|do|are|is|did|have|lol|haha|and|but|so|it|that|though|too|right|as|which|who)\b.*""",
    re.IGNORECASE | re.VERBOSE,
)
_EDGE = ' ,.;:!?-\u2014\u2026()"*'


def trim(phrase: str) -> str:
    """Without subordinate clauses and what trails off."""
    return _CUT.sub("", phrase, count=1).strip(_EDGE)
