"""What an assistant or a tool says of the user, turned round: `you live in Rome` becomes `I live in Rome`."""

import re

from memplane.enrich.english import base_form

ABOUT_USER = re.compile(r"\b(?:you|your|user)\b", re.IGNORECASE)
_START = re.compile(
    r"(?:(?:so|ok|okay|yes|and|but|well|got it|noted|great|understood|actually)\b[ ,.:!-]*)*"
    r"(?:i (?:know|see|understand|remember|think|believe|noticed|recall|note)(?: that)? )?(?:you mentioned (?:that )?)?"
    r"(?P<who>your|you|(?:the )?user's|(?:the )?user)\b(?P<verb> \w+)?",
    re.IGNORECASE,
)
_AGREES = {"are": "am", "were": "was", "is": "am", "has": "have", "does": "do", "have": "have", "was": "was"}


def turn_round(clause: str) -> str | None:
    """The clause as the user would have said it; None when it is not about the user."""
    found = _START.match(clause)
    if found is None:
        return None
    rest = clause[found.end() :]
    verb = (found["verb"] or "").strip()
    who = found["who"].lower()
    if who == "your" or who.endswith("'s"):
        return f"my {verb}{rest}"
    plain = _AGREES.get(verb.lower()) or (base_form(verb) if verb.endswith("s") else None) or verb
    return f"I {plain}{rest}"
