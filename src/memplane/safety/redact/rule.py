"""What a rule consists of, what it finds, and the checks on a match."""

import binascii
import math
import re
from collections import Counter
from collections.abc import Callable
from enum import IntEnum
from functools import cached_property
from typing import Final, NamedTuple


class SecretFinding(NamedTuple):
    """One secret: `text[start:end]`, without the name or quotes around it."""

    type: str
    start: int
    end: int


class Redacted(NamedTuple):
    """A redacted text, and the spans of its secrets in the original."""

    text: str
    findings: tuple[SecretFinding, ...]


class Style(NamedTuple):
    """The placeholder of a secret. Every placeholder must match `PLACEHOLDER`."""

    placeholder: str
    after_bearer: str | None = None
    """Instead of `placeholder`, for a token that follows the word Bearer and is not an `sk-` key."""
    whole: frozenset[str] = frozenset()
    """Types whose whole URL goes, not only its password."""


NATIVE: Final = Style("[REDACTED:{type}]")
CARAPACE: Final = Style("[REDACTED]", whole=frozenset({"connection-string"}))
CLAWDAPUS: Final = Style("[redacted-secret]", after_bearer="[redacted]")

PLACEHOLDER = re.compile(r"\[(?:REDACTED(?::[a-z0-9-]+)?|redacted(?:-secret)?)\]")

Span = tuple[int, int]
Check = Callable[[re.Match[str]], Span | None]


class Gate(IntEnum):
    """What a text must hold before a rule's hints are looked for, from rarely to often worth the look."""

    OPEN = 0
    """Nothing."""
    OPERATOR = 1
    """One of `=`, `:` and `>`."""
    TEXT = 2
    """A run of letters and digits that looks like no word (`_RUN`), anywhere."""
    RUN = 3
    """Such a run, adjacent to the hint without whitespace."""
    MIXED = 4
    """A digit beside a letter or a sign, shortly after the hint."""
    FOREIGN = 5
    """The same, and a letter outside ASCII."""


class Pattern:
    """A regular expression, compiled when it is first tried. Of all rules most never are, and to compile them takes longer
    than most commands."""

    def __init__(self, source: str, flags: int = 0) -> None:
        self._source = source
        self._flags = flags

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        return re.compile(self._source, self._flags)

    def match(self, text: str, at: int) -> re.Match[str] | None:
        return self.compiled.match(text, at)


class Rule(NamedTuple):
    """One kind of secret. `pattern` starts where a hint does, and its last matched group is the secret."""

    type: str
    what: str
    hints: tuple[str, ...]
    pattern: Pattern
    check: Check
    gate: Gate = Gate.RUN
    context: tuple[str, ...] = ()
    """If given, one of these must occur in the text, in lower case."""
    is_prefixed: bool = False
    """Whether the hints stand at the start of a word."""


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Checks on a match: the exact span of the secret, or None.


# What a value looks like: random, filler, an expression, a word.


FILLER = re.compile(r"[xX]{5}|\*{3}|\.{3}|…|•{2}|#{5}|_{5}|\[REDACTED")
MASK = re.compile(r"\*{3}|#{3}|•")
TEMPLATE = re.compile(
    r"[$#]\{|\$\(|\$\w*\Z|\{\{|\{[A-Za-z_.$ -]*(?:![rsa])?(?::.{0,9})?\}?\Z|\{\w*\("
    r"|\$env:|%\(|%[sdvr]|%\w+%\Z|@\w+@\Z|[<\[(:]|\\u00|(?:string|str|int|bool|binary|number)\?\Z"
)
_DUMMY = re.compile(
    r"your[-_ ]?\w|(?:insert|replace|enter)[-_ ]|change[-_ ]?(?:me|this|it)|x{3,}\Z"
    r"|.{0,40}[-_](?:here|placeholder)\b|\w{0,40}(?:example|placeholder|redacted|dummy)\w{0,40}\Z",
    re.IGNORECASE,
)
NO_SECRET = words(
    "access auth basic bearer blank bool boolean bytes char correct cred credential credentials default "
    "disabled empty enabled encrypted expired false field file forgotten from hashed hidden incorrect input "
    "integer invalid key masked missing must name needed none null number object optional pass passcode "
    "passphrase passwd password passwords plain private prompt protected public redacted required reset "
    "sample secret secrets should string test testing text that this todo token tokens true type undefined "
    "latin1 unknown unset user username utf8 utf16 value varchar weak when which with wrong your"
)
_UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\Z")
_HEX = re.compile(r"[0-9a-f]+\Z|[0-9A-F]+\Z")
PLAIN = re.compile(r"[^\W\d_]+(?:[-_.'][^\W\d_]+)*\Z")
IDENTIFIER = re.compile(r"[A-Za-z_]+\Z")
CODE = re.compile(
    r"[A-Za-z_$][\w.$:>-]*[(\[]"
    r"|(?:os|process|self|this|config|settings|env|args|request|req|options|opts|params|ctx|secrets|vars?"
    r"|locals?|cfg|data|state|props|app|module|input|each|context|credentials)\.\w",
    re.IGNORECASE,
)
DOTTED = re.compile(r"[A-Za-z_$][\w$]{0,30}(?:(?:\.|->|::)[A-Za-z_$][\w$]{0,30})+\Z")
PATH = re.compile(
    r"https?://|[A-Za-z]:\\|[.~]{0,2}/[\w.-]{1,15}(?:/|\Z)|\S{1,200}\."
    r"(?:pem|key|json|ya?ml|txt|crt|cer|p12|pfx|env|js|ts|py|rb|go|html?|xml|toml|ini|conf|md|sh)\Z"
)
_SEPARATOR = re.compile(r"[^A-Za-z0-9]+")
SWITCH = re.compile(r"[A-Za-z](?=[0-9])|[0-9](?=[A-Za-z])")
_SAME = re.compile(r"(.)\1{7,}")

_RANDOM_LENGTH_MIN = 16
_RANDOM_RUN_MIN = 12
_RANDOM_SWITCHES_MIN = 3
_RANDOM_BITS_MIN, _RANDOM_BITS_MIN_HEX = 3.3, 2.9


def _bits(value: str) -> float:
    """Shannon entropy per character."""
    size = len(value)
    return -sum(n / size * math.log2(n / size) for n in Counter(value).values())


def is_random(value: str) -> bool:
    """Whether no person chose it: long, letters and digits mixed, and not a UUID, which names things."""
    if len(value) < _RANDOM_LENGTH_MIN or _UUID.match(value) or _is_one_letter(value):
        return False
    run = max(_SEPARATOR.split(value), key=len)
    if len(run) < _RANDOM_RUN_MIN or len(SWITCH.findall(value)) < _RANDOM_SWITCHES_MIN:
        return False
    return _bits(value) >= (_RANDOM_BITS_MIN_HEX if _HEX.match(value) else _RANDOM_BITS_MIN)


def _is_one_letter(value: str) -> bool:
    """Whether most of it is one character again and again."""
    same = _SAME.search(value)
    return same is not None and 2 * len(same[0]) >= len(value)


def is_mixed(value: str) -> bool:
    return any(c.isdigit() for c in value) and any(c.isalpha() for c in value)


def is_stand_in(value: str) -> bool:
    """Whether it only holds the place of a value: `${VAR}`, `<your key>`, `xxxxx`, `changeme`, `null`."""
    marked = FILLER.search(value) or TEMPLATE.match(value) or _DUMMY.match(value)
    return bool(marked) or value.lower() in NO_SECRET or _is_one_letter(value)


def secret(match: re.Match[str]) -> Span:
    return match.span(match.lastindex or 0)


def _value_of(match: re.Match[str]) -> str:
    return match[match.lastindex or 0]


def real(match: re.Match[str]) -> Span | None:
    """Anything but filler or a masked value."""
    value = _value_of(match)
    if FILLER.search(value) or MASK.match(match.string, match.end()):
        return None
    start, end = secret(match)
    return start, end - (len(value) - len(value.rstrip(".")))  # the full stop of a sentence is no part of it


def with_digit(match: re.Match[str]) -> Span | None:
    """As `real`, for forms that words and identifiers share: a digit tells them apart."""
    return real(match) if any(c.isdigit() for c in _value_of(match)) else None


def both_cases(match: re.Match[str]) -> Span | None:
    """As `real`, for forms that identifiers share: lower and upper case tell them apart."""
    value = _value_of(match)
    return None if value == value.lower() or value == value.upper() else real(match)


def all_kinds(match: re.Match[str]) -> Span | None:
    return both_cases(match) if with_digit(match) else None


def extended_left(length: int, match: re.Match[str]) -> Span | None:
    """As `real`, for a secret that starts `length` characters before its fixed part, at the start of a word."""
    start, end = secret(match)
    start -= length
    before = match.string[start - 1 : start] if start > 0 else ""
    is_inside = before.isalnum() or before in {"_", "+", "-"}
    return None if is_inside or FILLER.search(match.string, start, end) else (start, end)


_PEM_BODY_MIN = 24
_PEM_HEAD_LENGTH = 400
_PEM_START = re.compile(
    r"(?:\\[nrt]|[\s\"'+\\,|>])*+(?:MI[IGHC]|MH[cQ]C|MC[0-9A-Za-z]C|b3Blbn|l[QIFV][A-Za-z0-9+/]|x[cVY][A-Za-z0-9+/]"
    r"|Proc-Type:|DEK-Info:|Version:|Comment:|Subject:|Hash:|Charset:)"
)
_PEM_LINE = re.compile(r"[A-Za-z0-9+/]{24,}+")


def key_block(match: re.Match[str]) -> Span | None:
    """A block without a key in it is documentation or code that looks for one; an open one is taken to be cut off."""
    body = match["body"]
    if match["closed"] and len(body.strip()) < _PEM_BODY_MIN:
        return None
    is_key = _PEM_START.match(body) or any(
        is_mixed(line[0]) for line in _PEM_LINE.finditer(body, 0, _PEM_HEAD_LENGTH)
    )
    return match.span() if is_key else None


_DECODED_MAX = 4_096


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


def signed_header(match: re.Match[str]) -> Span | None:
    """A token whose first part is the header of a signature or of an encryption."""
    header = match[1][:_DECODED_MAX].partition(".")[0].replace("-", "+").replace("_", "/")
    is_header = '"alg"' in _decoded(header) or '"enc"' in _decoded(header)
    return real(match) if is_header else None


def encoded_text(match: re.Match[str]) -> Span | None:
    return secret(match) if _decoded(match[1]) else None


_BEARER_WORD_LENGTH_MIN = 12
_PARAMETER_LENGTH_MAX = 24


def bearer(match: re.Match[str]) -> Span | None:
    """What follows the word is a token unless it could be the next word of a sentence."""
    value = match[1].rstrip(".,:")
    is_parameter = value.endswith("=") and len(value) < _PARAMETER_LENGTH_MAX and PLAIN.match(value[:-1])
    is_named = "_" in value and value.rpartition("_")[2] in NO_SECRET
    if is_stand_in(value) or "://" in value or is_parameter or is_named:
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


_USER_IS_TOKEN = words("x-oauth-basic x-oauth-token x-token-auth")
"""Passwords that say that the secret is the user's name, as Git hosts have it."""
_TOKEN_LENGTH_MIN = 8
_EXAMPLE_LENGTH_MAX = 3
"""`http://foo:bar@host`"""


def url_password(match: re.Match[str]) -> Span | None:
    """`https://user:password@host` is in every manual."""
    user, password = match["user"], match["password"]
    if password in _USER_IS_TOKEN and len(user) >= _TOKEN_LENGTH_MIN:
        return None if is_stand_in(user) else match.span("user")
    is_short = password.isalpha() and max(len(user), len(password)) <= _EXAMPLE_LENGTH_MAX
    is_repository = match.string.endswith("github", 0, match.start())  # github://owner:repository@branch
    is_example = is_short or is_repository or password.lower() in NO_SECRET or "[" in user
    return None if is_example else database_password(match)


def url_token(match: re.Match[str]) -> Span | None:
    """A token instead of user and password. A Sentry address has a public key there."""
    user = match["user"]
    scheme = match.string[max(0, match.start() - 3) : match.start()]
    is_public = scheme == "ssh" or "sentry" in match.string[match.end() : match.end() + 64]
    return match.span("user") if is_random(user) and not is_stand_in(user) and not is_public else None


_BLOCK_LENGTH_MIN = 120


def real_block(match: re.Match[str]) -> Span | None:
    """A file whose format is plain, unless only its first line is named."""
    return match.span() if len(match[0]) >= _BLOCK_LENGTH_MIN and "Private-Lines:" in match[0] else None


_COOKIE_HEADER = re.compile(r"(?i:cookies?)[\"']?\s{0,4}[:=]", re.ASCII)
_COOKIE_LINE_MAX = 4_096


def cookie(match: re.Match[str]) -> Span | None:
    """A random value on a line that starts a cookie header."""
    text, at = match.string, match.start()
    line = max(text.rfind("\n", max(0, at - _COOKIE_LINE_MAX), at) + 1, at - _COOKIE_LINE_MAX)
    header = _COOKIE_HEADER.search(text, max(0, line), at)
    return secret(match) if header and is_random(match[1]) and not is_stand_in(match[1]) else None
