"""Checks on a match: the exact span of the secret, or None."""

import binascii
import re

from memplane.governance.redact.rule import Span
from memplane.governance.redact.values import FILLER, MASK, NO_SECRET, PLAIN, TEMPLATE, is_stand_in


def secret(match: re.Match[str]) -> Span:
    return match.span(match.lastindex or 0)


def _value_of(match: re.Match[str]) -> str:
    return match[match.lastindex or 0]


def real(match: re.Match[str]) -> Span | None:
    """Anything but filler, or what somebody masked the end of."""
    masked = FILLER.search(_value_of(match)) or MASK.match(match.string, match.end())
    return None if masked else secret(match)


def with_digit(match: re.Match[str]) -> Span | None:
    """As `real`, for forms that words and identifiers share: a digit tells them apart."""
    return real(match) if any(c.isdigit() for c in _value_of(match)) else None


def both_cases(match: re.Match[str]) -> Span | None:
    """As `real`, for forms that identifiers share: lower and upper case tell them apart."""
    value = _value_of(match)
    return None if value == value.lower() or value == value.upper() else real(match)


def all_kinds(match: re.Match[str]) -> Span | None:
    return both_cases(match) if with_digit(match) else None


_PEM_BODY_MIN = 24


def key_block(match: re.Match[str]) -> Span | None:
    """A closed block without a key in it is documentation; an open one is taken to be cut off."""
    is_empty = len(match["body"].strip()) < _PEM_BODY_MIN
    return None if is_empty and match["closed"] else match.span()


def _decoded(value: str) -> str:
    """Base64 as text, or nothing if it is not that."""
    try:
        text = binascii.a2b_base64(value + "=" * (-len(value) % 4)).decode()
    except ValueError:
        return ""
    return text if text.replace("\n", "").isprintable() else ""


def basic(match: re.Match[str]) -> Span | None:
    """The word is common; what follows is a credential if it decodes to `user:password`."""
    return secret(match) if ":" in _decoded(match[1]) else None


def encoded_jwt(match: re.Match[str]) -> Span | None:
    return secret(match) if ".eyJ" in _decoded(match[1]) else None


def encoded_text(match: re.Match[str]) -> Span | None:
    return secret(match) if _decoded(match[1]) else None


_BEARER_WORD_LENGTH_MIN = 12


def bearer(match: re.Match[str]) -> Span | None:
    """What follows the word is a token unless it could be the next word of a sentence."""
    value = match[1].rstrip(".,:")
    is_parameter = value.endswith("=") and match.string.startswith('"', match.end())
    if is_stand_in(value) or "://" in value or is_parameter:
        return None
    is_joined = len(value) >= _BEARER_WORD_LENGTH_MIN and not value.isalpha()
    is_camel = value not in {value.lower(), value.upper(), value.capitalize()}
    start = match.start(1)
    return (start, start + len(value)) if is_joined or is_camel or not PLAIN.match(value) else None


_LOGIN_LENGTH_MIN = 5


def login(match: re.Match[str]) -> Span | None:
    """`-u user:password`; some services take the key as the user and leave the password empty."""
    part = "password" if match["password"] else "user"
    value, start = match[part].rstrip(";)"), match.start(part)
    return None if len(value) < _LOGIN_LENGTH_MIN or is_stand_in(value) else (start, start + len(value))


def database_password(match: re.Match[str]) -> Span | None:
    value = match["password"]
    return None if FILLER.search(value) or TEMPLATE.match(value) else match.span("password")


def url_password(match: re.Match[str]) -> Span | None:
    """`https://user:password@host` stands in every manual."""
    return None if match["password"] in NO_SECRET else database_password(match)
