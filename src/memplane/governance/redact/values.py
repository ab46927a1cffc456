"""What a value looks like: random, filler, an expression, a word."""

import math
import re
from collections import Counter

from memplane.governance.redact.rule import words

FILLER = re.compile(r"[xX]{5}|\*{3}|\.{3}|…|•{2}|#{5}|_{5}|\[REDACTED")
MASK = re.compile(r"\*{3}|#{3}|•")
TEMPLATE = re.compile(
    r"[$#]\{|\$\(|\$\w*\Z|\{\{|\{[A-Za-z_.$ -]*(?:![rsa])?(?::.{0,9})?\}?\Z|\{\w*\("
    r"|%\(|%[sdvr]|%\w+%\Z|@\w+@\Z|[<\[(:]|\\u00"
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
    "unknown unset user username value varchar weak when which with wrong your"
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
_SWITCH = re.compile(r"[A-Za-z](?=[0-9])|[0-9](?=[A-Za-z])")
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
    if len(run) < _RANDOM_RUN_MIN or len(_SWITCH.findall(value)) < _RANDOM_SWITCHES_MIN:
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
