"""Find secrets in a text, and redact them."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from memplane.safety.redact.formats import PrefixIndex
from memplane.safety.redact.rule import NATIVE, PLACEHOLDER, Gate, Redacted, Rule, SecretFinding, Span, Style
from memplane.safety.redact.rules import RULES

_RUN_END = r"(?<=\w{10})|(?=-(?:----|[0-9A-Z]{5}-|[0-9a-f]{4}-))"
_RUN = re.compile(rf"[0-9A-Z_](?:{_RUN_END})")
"""Ten characters without a blank that end in a digit, a capital or an underscore; or the joint of a key in
groups, or the end of a PEM header. One scan for it is most of what a text without secrets costs."""
_MIXED_OR_RUN = re.compile(
    rf"[0-9A-Z_](?:{_RUN_END}|(?P<mixed>(?<=[A-Za-z!@#%^&*+=~?_][0-9])|(?<=[0-9])(?=[A-Za-z!@#^&*+=~_])))"
)
"""A run, or a digit beside a letter or a sign: every password that prose can hold has one."""
_FOREIGN = re.compile("[\u00c0-\u1fff\u2c00-\ud7ff\uf900-\uffdc]")
"""A letter outside ASCII, and no quotation mark, dash or emoji."""


def _hints(*gates: Gate) -> Iterator[tuple[str, int]]:
    """The hints of the rules behind these gates. A context replaces its rule's hints."""
    for order, rule in enumerate(RULES):
        if rule.gate in gates:
            yield from ((literal, order) for literal in rule.context or rule.hints)


def _by_hint(hints: Iterable[tuple[str, int]]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """What to search for in a text, and which rules to try then."""
    table: dict[str, list[int]] = {}
    for literal, order in hints:
        table.setdefault(literal, []).append(order)
    return tuple((literal, tuple(orders)) for literal, orders in table.items())


def _is_prefix(hint: str, order: int) -> bool:
    return RULES[order].is_prefixed and PrefixIndex.key_of(hint) is not None


_BEHIND_GATE = {
    Gate.OPEN: _by_hint(_hints(Gate.OPEN)),
    Gate.OPERATOR: _by_hint(_hints(Gate.OPEN, Gate.OPERATOR)),
    Gate.TEXT: _by_hint(_hints(Gate.OPEN, Gate.OPERATOR, Gate.TEXT)),
    Gate.RUN: _by_hint(hint for hint in _hints(Gate.RUN) if not _is_prefix(*hint)),
    Gate.MIXED: _by_hint(_hints(Gate.MIXED)),
    Gate.FOREIGN: _by_hint(_hints(Gate.FOREIGN)),
}
_PREFIXES = PrefixIndex(hint for hint in _hints(Gate.RUN) if _is_prefix(*hint))

_ROUNDS_MAX = 16
"""Findings that appear only because an adjacent one is gone, one after the other. More than this is not accidental;
the remainder is then redacted as a whole."""


def find_secrets(text: str) -> list[SecretFinding]:
    """The secrets of a text in order, without overlaps; deterministic."""
    return _find(text, frozenset())


def redact(text: str, style: Style = NATIVE) -> Redacted:
    """The text with a placeholder for every secret. Idempotent, in any style."""
    return replaced(text, _find(text, style.whole), style)


def replaced(text: str, findings: list[SecretFinding], style: Style) -> Redacted:
    """The text with a placeholder for each finding."""
    if not findings:
        return Redacted(text, ())
    parts: list[str] = []
    at = 0
    for finding in findings:
        parts += text[at : finding.start], _placeholder(text, finding, style)
        at = finding.end
    return Redacted("".join([*parts, text[at:]]), tuple(findings))


def redact_tree(value: Any, style: Style = NATIVE, *, named: bool = False) -> tuple[Any, int]:
    """A deep copy of a JSON-like value with its strings redacted, and the number of secrets; keys are kept.

    With `named`, a string is also judged by its key: `{"password": "…"}`.
    """
    root: list[Any] = [None]
    pending: list[tuple[Any, Any, Any, str]] = [(root, 0, value, "")]
    count = 0
    while pending:
        parent, place, item, name = pending.pop()
        copy = item
        if isinstance(item, str):
            copy, found = _redact_named(item, name, style) if named and name else redact(item, style)
            count += len(found)
        elif isinstance(item, dict):
            copy = dict.fromkeys(item)
            pending.extend((copy, key, member, key) for key, member in item.items())
        elif isinstance(item, list | tuple):
            copy = [None] * len(item)
            pending.extend((copy, index, member, name) for index, member in enumerate(item))
        parent[place] = copy
    return root[0], count


def _redact_named(text: str, name: str, style: Style) -> Redacted:
    """The name itself is kept, and findings in it do not count."""
    prefix = f"{name}="
    text_alone = redact(text, style)
    beside = redact(prefix + text, style)
    if not beside.text.startswith(prefix) or len(beside.findings) < len(text_alone.findings):
        return text_alone
    return Redacted(beside.text.removeprefix(prefix), beside.findings)


_BEARER_BEFORE = re.compile(r"(?i:bearer)\s{1,8}\Z")


def _placeholder(text: str, finding: SecretFinding, style: Style) -> str:
    follows = _BEARER_BEFORE.search(text, max(0, finding.start - 16), finding.start)
    if style.after_bearer and follows and not text.startswith("sk-", finding.start):
        return style.after_bearer
    return style.placeholder.format(type=finding.type)


def _find(text: str, whole: frozenset[str]) -> list[SecretFinding]:
    low = _lower(text)
    if "[" in text and "[redacted" in low:
        # The blank keeps what stood apart apart, and the type in a placeholder must not serve as a hint.
        own = PLACEHOLDER.sub("[ ]", text)
        rules = _rules_for(own, _lower(own))
        pieces = list(_between((match.span() for match in PLACEHOLDER.finditer(text)), 0, len(text)))
    else:
        rules = _rules_for(text, low)
        pieces = [(0, len(text))]
    if not rules:
        return []
    return sorted(_search(text, low, rules, pieces, whole), key=lambda finding: finding.start)


def _lower(text: str) -> str:
    low = text.lower()
    if len(low) == len(text):
        return low
    return text.replace("\u0130", "\u0131").lower()  # the one letter that grows, and would move all behind it


def _rules_for(text: str, low: str) -> list[Rule]:
    """The rules that may match, in the order of `RULES`."""
    hit = _MIXED_OR_RUN.search(text)
    near, beside = _surroundings(text, low, hit) if hit else ("", "")
    gate = Gate.TEXT if beside else Gate.OPERATOR if "=" in text or ":" in text or ">" in text else Gate.OPEN
    orders = _orders(gate, low)
    if near:
        orders += _orders(Gate.MIXED, near)
        if not near.isascii() and _FOREIGN.search(near):
            orders += _orders(Gate.FOREIGN, near)
    if beside:
        orders += _PREFIXES.find(beside)
        orders += _orders(Gate.RUN, beside)
    return [RULES[order] for order in sorted(set(orders))] if orders else []


def _orders(gate: Gate, low: str) -> list[int]:
    orders: list[int] = []
    for literal, asked in _BEHIND_GATE[gate]:
        if literal in low:
            orders += asked
    return orders


_NEAR_LENGTH = 240
"""How far before its value prose may name a secret."""


def _surroundings(text: str, low: str, hit: re.Match[str] | None) -> tuple[str, str]:
    """The stretches between blanks that hold a hit and what stands before them; and those alone that hold a run.

    The first are the only places for a secret in prose, the second for a token with a format.
    """
    near, beside = [], []
    end = 0
    while hit:
        start, last = low.rfind(" ", 0, hit.start()) + 1, end
        end = low.find(" ", hit.end())
        end = len(low) if end < 0 else end
        near.append(low[max(last, start - _NEAR_LENGTH) : end])
        if hit.lastgroup is None or _RUN.search(text, hit.start(), end):
            beside.append(low[start:end])
        hit = _MIXED_OR_RUN.search(text, end)
    return " ".join(near), " ".join(beside)


def _between(spans: Iterable[Span], start: int, end: int) -> Iterator[Span]:
    """The gaps that sorted spans leave between `start` and `end`."""
    for taken, freed in spans:
        if start < taken:
            yield start, taken
        start = freed
    if start < end:
        yield start, end


def _search(
    text: str, low: str, rules: list[Rule], pieces: list[Span], whole: frozenset[str]
) -> Iterator[SecretFinding]:
    """Findings in the pieces, then in the gaps between them, until there are none."""
    for _ in range(_ROUNDS_MAX):
        rest: list[Span] = []
        for start, end in pieces:
            found = _scan(text[start:end], low[start:end], rules, whole)
            if found:
                spans = [(start + a, start + b) for _, a, b in found]
                yield from (
                    SecretFinding(kind, *span) for (kind, _, _), span in zip(found, spans, strict=True)
                )
                rest += _between(spans, start, end)
        if not rest:
            return
        pieces = rest
    for start, end in pieces:
        if found := _scan(text[start:end], low[start:end], rules, whole):
            yield SecretFinding(found[0].type, start, end)


def _scan(piece: str, low: str, rules: list[Rule], whole: frozenset[str]) -> list[SecretFinding]:
    """One pass over a piece, leftmost and longest first.

    Where two findings overlap, the first gives the type and the span covers both: half a secret is one too.
    """
    found = [
        (start, -end, order, rule.type)
        for order, rule in enumerate(rules)
        for start, end in _matches(rule, piece, low, whole=rule.type in whole)
    ]
    merged: list[SecretFinding] = []
    for start, minus_end, _, kind in sorted(found):
        end = -minus_end
        if merged and start < merged[-1].end:
            last = merged[-1]
            merged[-1] = last._replace(end=max(last.end, end))
        else:
            merged.append(SecretFinding(kind, start, end))
    return merged


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}\Z")
_NO_BLANK = re.compile(r"\S*")


_REFUSED_MAX = 8
"""How often one stretch may be read again for a hint inside it: `token=token=token=…` has no end of them."""


def _matches(rule: Rule, piece: str, low: str, *, whole: bool) -> Iterator[Span]:
    for hint in rule.hints:
        at, refused, refused_to = low.find(hint), 0, 0
        while at >= 0:
            match = rule.pattern.match(piece, at)
            span = rule.check(match) if match else None
            if match and span:
                start, end = _whole_url(piece, at, span) if whole else span
                yield start, end
                at = max(at, end - 1)
            elif match:
                refused = refused + 1 if at < refused_to else 0
                refused_to = max(refused_to, match.end())
                at = refused_to - 1 if refused == _REFUSED_MAX else at
            at = low.find(hint, at + 1)


def _whole_url(piece: str, at: int, span: Span) -> Span:
    """From the scheme before the `://` at `at` to the next blank."""
    scheme = _SCHEME.search(piece, max(0, at - 31), at)
    rest = _NO_BLANK.match(piece, span[1])
    return (scheme.start() if scheme else at, rest.end() if rest else span[1])
