r"""Secrets: where they stand in a text, and the text without them.

`RULES` is the whole policy. A rule is tried only where one of its hints stands (a literal, found with `str.find`), so a
text without hints costs a few scans and no more. Three gates keep it cheap on ordinary prose: most rules wait until the
text holds something no prose has, a long run of letters and digits; those about `name = value` wait for an operator.

Two kinds of rule decide differently. A token with a form of its own (`ghp_…`) is a secret wherever it stands, unless it
is filler such as `ghp_xxxx…`. A value without a form is one only because of its name, so both are judged: `password`
asks little of its value, `token` asks for something random. Randomness alone is never enough: digests, commit ids,
UUIDs and images in base64 are random too.

Redaction is idempotent by construction. What lies between two placeholders is always scanned as if it stood alone, and
`_find` repeats that on what its own findings leave over until nothing is left to find.

Nothing here backtracks without bound: quantifiers are bounded, or their run starts at a boundary that a run holds once.
"""

import binascii
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from typing import Any, Final, NamedTuple


class Finding(NamedTuple):
    """One secret: `text[start:end]`, without the name or the quotes around it."""

    type: str
    start: int
    end: int


class Redacted(NamedTuple):
    """A text without its secrets, and where they stood in the text it was made from."""

    text: str
    findings: tuple[Finding, ...]


class Style(NamedTuple):
    """How a secret is written once it is gone. Every placeholder must match `_PLACEHOLDER`."""

    placeholder: str
    after_bearer: str | None = None
    """Instead of `placeholder`, for a token that follows the word Bearer and is not an `sk-` key."""
    whole: frozenset[str] = frozenset()
    """Types whose whole URL goes, not only its password."""


NATIVE: Final = Style("[REDACTED:{type}]")
CARAPACE: Final = Style("[REDACTED]", whole=frozenset({"connection-string"}))
CLAWDAPUS: Final = Style("[redacted-secret]", after_bearer="[redacted]")

_PLACEHOLDER = re.compile(r"\[(?:REDACTED(?::[a-z0-9-]+)?|redacted(?:-secret)?)\]")

Span = tuple[int, int]
Check = Callable[[re.Match[str]], Span | None]


class Gate(IntEnum):
    """What a text must hold before a rule is tried on it; each gate lets through what the ones before it do."""

    OPEN = 0
    """Nothing: the hint is rare enough in prose."""
    OPERATOR = 1
    """One of `=`, `:` and `>`."""
    RUN = 2
    """A run of letters and digits that looks like no word (`_RUN`)."""


class Rule(NamedTuple):
    """One kind of secret. `pattern` starts where a hint does, and its last matched group is the secret."""

    type: str
    what: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    check: Check
    gate: Gate = Gate.RUN
    context: tuple[str, ...] = ()
    """If given, one of these must stand somewhere in the text, in lower case."""


# --- What a value looks like -----------------------------------------------------------------------------------------

_FILLER = re.compile(r"[xX]{5,}|\*{3,}|\.{3}|…|•{2,}|#{5,}|_{5,}|\[REDACTED", re.ASCII)
_TEMPLATE = re.compile(
    r"\$\{|\$\(|\{\{|#\{|%\(|<|\[|\$\w*\Z|%\w+%?\Z|\{[A-Za-z_.$ -]*\}?\Z|\{\w*\(|@[A-Za-z]+@?\Z|\\u00"
)
_DUMMY = re.compile(
    r"(?:your|insert|replace|enter|change)[-_ ]?\w|x{3,}\Z|\w*(?:example|placeholder|redacted|changeme|dummy)\w*\Z"
    r"|.{0,40}[-_](?:here|goes|placeholder)\b|(?:abc|foo|bar|baz|qux|123)+\Z",
    re.IGNORECASE,
)
_WORDS_THAT_ARE_NO_SECRET = frozenset(
    "a an and any are as at auth bar basic bearer blank bool boolean bytes char correct credential credentials default "
    "disabled empty enabled encrypted env expired false field file foo for forgotten from hashed hidden if in incorrect "
    "input int integer invalid is it key masked missing must name needed new nil no none not null number number of off "
    "ok on optional or pass passcode passphrase passwd password passwords plain private prompt protected public pwd "
    "redacted required reset sample secret secrets see should str string tbd test testing text that the this to todo "
    "token tokens true type undefined unknown unset user username value varchar was weak when which with wrong yes "
    "you your".split()
)
_UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\Z")
_HEX = re.compile(r"[0-9a-f]+\Z|[0-9A-F]+\Z")
_PLAIN = re.compile(r"[^\W\d_]+(?:[-_.'][^\W\d_]+)*\Z")
_CODE = re.compile(
    r"[A-Za-z_$][\w.$:>-]*[(\[]"
    r"|(?:os|process|self|this|config|settings|env|ENV|args|request|req|options|opts|params|ctx|secrets|vars?|locals?"
    r"|cfg|data|state|props|app|module|input|each|context|credentials)\.\w"
)
_DOTTED = re.compile(r"[A-Za-z_$][\w$]*(?:(?:\.|->|::)[A-Za-z_$]+)+\Z")
_PATH = re.compile(
    r"https?://|[A-Za-z]:\\|[.~]{0,2}/[\w.-]{1,15}(?:/|\Z)"
    r"|.*\.(?:pem|key|json|ya?ml|txt|crt|cer|p12|pfx|env|js|ts|py|rb|go|html?|xml|toml|ini|conf|md|sh)\Z"
)
_SEPARATOR = re.compile(r"[^A-Za-z0-9]+")
_SWITCH = re.compile(r"[A-Za-z](?=[0-9])|[0-9](?=[A-Za-z])")
_SAME = re.compile(r"(.)\1{7}")

_RANDOM_LENGTH_MIN = 16
_RANDOM_RUN_MIN = 12
_RANDOM_SWITCHES_MIN = 3
_RANDOM_BITS_MIN, _RANDOM_BITS_MIN_HEX = 3.3, 2.9


def _bits(value: str) -> float:
    """Shannon entropy per character."""
    size = len(value)
    return -sum(n / size * math.log2(n / size) for n in Counter(value).values())


def _is_random(value: str) -> bool:
    """Whether no person chose it: long, letters and digits mixed, and not a UUID, which names things."""
    if len(value) < _RANDOM_LENGTH_MIN or _UUID.match(value) or _SAME.search(value):
        return False
    run = max(_SEPARATOR.split(value), key=len)
    if len(run) < _RANDOM_RUN_MIN or len(_SWITCH.findall(value)) < _RANDOM_SWITCHES_MIN:
        return False
    return _bits(value) >= (_RANDOM_BITS_MIN_HEX if _HEX.match(value) else _RANDOM_BITS_MIN)


def _is_stand_in(value: str) -> bool:
    """Whether it only holds the place of a value: `${VAR}`, `<your key>`, `xxxxx`, `changeme`, `null`."""
    return bool(
        _FILLER.search(value)
        or _TEMPLATE.match(value)
        or _DUMMY.match(value)
        or value.lower() in _WORDS_THAT_ARE_NO_SECRET
    )


# --- Checks on a match: the exact span of the secret, or None --------------------------------------------------------


def _secret(match: re.Match[str]) -> Span:
    return match.span(match.lastindex or 0)


def _real(match: re.Match[str]) -> Span | None:
    """Anything but filler."""
    return None if _FILLER.search(match[match.lastindex or 0]) else _secret(match)


def _with_digit(match: re.Match[str]) -> Span | None:
    """As `_real`, for forms that words and identifiers share: a digit tells them apart."""
    return _real(match) if any(c.isdigit() for c in match[match.lastindex or 0]) else None


def _both_cases(match: re.Match[str]) -> Span | None:
    """As `_real`, for forms that identifiers share: lower and upper case tell them apart."""
    value = match[match.lastindex or 0]
    return None if value[4:].islower() or value[4:].isupper() else _real(match)


def _random(match: re.Match[str]) -> Span | None:
    return _real(match) if _is_random(match[match.lastindex or 0]) else None


_PEM_BODY_MIN = 40
_PEM_END = "-----END"


def _key_block(match: re.Match[str]) -> Span | None:
    """A closed block without a key in it is documentation; an open one is taken to be cut off."""
    body = match[0]
    closed = body.rstrip().endswith("-----") and _PEM_END in body
    if closed and len(body) - body.index("-----\n" if "-----\n" in body else "-----", 5) < _PEM_BODY_MIN + 30:
        return None
    return match.span()


def _decoded(value: str) -> str:
    """Base64 as text, or nothing if it is not that."""
    try:
        text = binascii.a2b_base64(value + "=" * (-len(value) % 4)).decode()
    except ValueError:
        return ""
    return text if text.isprintable() or "\n" in text else ""


def _basic(match: re.Match[str]) -> Span | None:
    """The word is common; what follows is a credential if it decodes to `user:password`."""
    return _secret(match) if ":" in _decoded(match[1]) else None


def _encoded_jwt(match: re.Match[str]) -> Span | None:
    return _secret(match) if _decoded(match[1]).count(".eyJ") else None


def _encoded_text(match: re.Match[str]) -> Span | None:
    return _secret(match) if _decoded(match[1]) else None


_BEARER_WORD_LENGTH_MIN = 12


def _bearer(match: re.Match[str]) -> Span | None:
    """What follows the word is a token unless it could be the next word of a sentence."""
    start, end = _secret(match)
    value = match[1].rstrip(".,:")
    if _is_stand_in(value):
        return None
    plain = _PLAIN.match(value)
    joined = len(value) >= _BEARER_WORD_LENGTH_MIN and any(c in value for c in "._-")
    camel = plain and not (value.islower() or value.isupper() or value.istitle())
    return (start, start + len(value)) if not plain or joined or camel else None


_PASSWORD_LENGTH_MIN = 5


def _user_and_password(match: re.Match[str]) -> Span | None:
    """`-u user:password`; some services take the key as the user and leave the password empty."""
    user, password = match["user"], match["password"]
    if not password:
        return match.span("user") if _is_password_of_own(user) else None
    return match.span("password") if _is_password_of_own(password) else None


def _is_password_of_own(value: str) -> bool:
    return len(value) >= _PASSWORD_LENGTH_MIN and not _is_stand_in(value)


def _url_password(match: re.Match[str]) -> Span | None:
    value = match["password"]
    return None if _FILLER.search(value) or _TEMPLATE.match(value) else match.span("password")


# --- Names: what `name = value` says about its value ------------------------------------------------------------------


class _Trust(IntEnum):
    """How much a name proves."""

    NONE = 0
    SOME = 1
    """The value must look random as well."""
    FULL = 2
    """Any value that is not a stand-in."""


_NAME_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_NAME_BEFORE = re.compile(r"(?:[A-Za-z0-9_.-]+ )?[A-Za-z0-9_.-]*\Z")
_NAME_LENGTH_MAX = 48

_NAME_ENDINGS = frozenset(
    "b64 base64 current default dev development encoded env header live main new old plain prod production raw sandbox "
    "stage staging str string test text v1 v2 val value var variable".split()
)
"""Words after the telling one that change nothing: `DB_PASSWORD_PROD`, `api_key_2`."""
_NAMES_NOT_SECRET = frozenset(
    "authenticity cancellation count csrf continuation cursor max min next num page pub public sync total xsrf".split()
)
_KEYS_SECRET = frozenset(
    "access account admin api app application auth authorization client consumer deploy encryption hmac jwt license "
    "master private secret service session shared signing storage subscription token webhook".split()
)
_KEYS_NOT_SECRET = frozenset(
    "alt bucket cache candidate composite config dict foreign group hash hot i18n idempotency index lookup map object "
    "partition primary range react record registry routing row search sequence shift sort sorting the translation this "
    "unique".split()
)
_KEYS_IN_ONE_WORD = tuple(f"{kind}key" for kind in sorted(_KEYS_SECRET))
_TOKENS_IN_ONE_WORD = ("accesstoken", "apitoken", "authtoken", "bearertoken", "refreshtoken", "sessiontoken")
_TOKENS_SECRET = frozenset(
    "access api auth authorization bearer bot client csrf deploy id personal pat private refresh secret security service "
    "session user".split()
)


def _name_parts(name: str) -> list[str]:
    """`DB_PASSWORD_2`, `dbPassword` and `db.password` say the same: db, password."""
    parts = [part.lower() for part in _NAME_PARTS.findall(name)]
    while len(parts) > 1 and (parts[-1] in _NAME_ENDINGS or parts[-1].isdigit()):
        parts.pop()
    return parts


def _trust_password(parts: list[str]) -> _Trust:
    last = parts[-1]
    if last.endswith(("password", "passwort", "passwd", "passphrase", "passcode", "pwd")):
        return _Trust.FULL
    return _Trust.FULL if last == "pass" and len(parts) > 1 else _Trust.NONE


def _trust_secret(parts: list[str]) -> _Trust:
    return _Trust.FULL if parts[-1].endswith("secret") else _Trust.NONE


def _trust_token(parts: list[str]) -> _Trust:
    last = parts[-1]
    if not last.endswith("token"):
        return _Trust.NONE
    known = last in _TOKENS_IN_ONE_WORD or not _TOKENS_SECRET.isdisjoint(parts[:-1])
    return _Trust.FULL if known else _Trust.SOME


def _trust_key(parts: list[str]) -> _Trust:
    last, before = parts[-1], parts[:-1]
    if last in _KEYS_IN_ONE_WORD or (last == "key" and not _KEYS_SECRET.isdisjoint(before)):
        return _Trust.FULL
    if last == "key" and before and _KEYS_NOT_SECRET.isdisjoint(before):
        return _Trust.SOME
    return _Trust.NONE


def _trust_authorization(parts: list[str]) -> _Trust:
    if parts[-1] in {"authorization", "authorisation"}:
        return _Trust.FULL
    return _Trust.SOME if parts[-1] in {"auth", "authkey"} else _Trust.NONE


def _trust_credentials(parts: list[str]) -> _Trust:
    return _Trust.SOME if parts[-1] in {"cred", "creds", "credential", "credentials"} else _Trust.NONE


_ENDS_A_VALUE = ".,:)]}"
_NEXT_OF_CODE = "(.[),+*"
_VALUE_LENGTH_MIN = 4


def _named(trust: Callable[[list[str]], _Trust]) -> Check:
    """The check of a `name = value` rule whose names `trust` knows."""

    def check(match: re.Match[str]) -> Span | None:
        text, at = match.string, match.start()
        before = _NAME_BEFORE.search(text, max(0, at - _NAME_LENGTH_MAX), at)
        parts = _name_parts((before[0] if before else "") + match["name"])
        if not parts or not _NAMES_NOT_SECRET.isdisjoint(parts):
            return None
        trusted = trust(parts)
        if trusted is _Trust.NONE or (match["gap"] and not _is_flag(text, at)):
            return None
        return _value(match, trusted, is_password=trust is _trust_password)

    return check


def _is_flag(text: str, at: int) -> bool:
    """Whether the name at `at` is an option of a command: `--db-password hunter2`."""
    start = text.rfind(" ", max(0, at - _NAME_LENGTH_MAX), at) + 1
    return text.startswith("--", start)


def _value(match: re.Match[str], trusted: _Trust, *, is_password: bool) -> Span | None:
    start, end = _secret(match)
    value = match.string[start:end]
    quoted = match.lastgroup != "bare"
    if not quoted:
        value = value.rstrip(_ENDS_A_VALUE)
        end = start + len(value)
    if " " in value or len(value) < _VALUE_LENGTH_MIN or _is_stand_in(value) or _PATH.match(value):
        return None
    if not quoted and _is_code(match.string, start, end, tight=match["tight"] is not None):
        return None
    if trusted is _Trust.SOME:
        return (start, end) if _is_random(value) else None
    return (start, end) if _is_chosen(match, value, end, quoted=quoted, is_password=is_password) else None


def _is_code(text: str, start: int, end: int, *, tight: bool) -> bool:
    """Whether an unquoted value is an expression: `os.environ[…]`, `get_password()`, `self.token`."""
    value = text[start:end]
    if _CODE.match(value) or text[end : end + 1] in {"(", "["}:
        return True
    if not tight:
        return bool(_DOTTED.match(value))
    parts = _name_parts(value)
    names_itself = len(parts) > 1 and parts[-1] in _WORDS_THAT_ARE_NO_SECRET and _PLAIN.match(value)
    return bool(names_itself or (_PLAIN.match(value) and text[end : end + 1] in tuple(_NEXT_OF_CODE)))


def _is_chosen(match: re.Match[str], value: str, end: int, *, quoted: bool, is_password: bool) -> bool:
    """Whether a fully trusted name has a value of its own here, rather than a word of the sentence around it."""
    if value.isdigit():
        return is_password
    if not _PLAIN.match(value):
        return True
    if match["verb"]:
        return False
    if quoted or match["tight"] is not None:
        return True
    return is_password and value.islower() and match.string[end : end + 1] in {"", "\n", "\r"}


def _assignment(*stems: str) -> re.Pattern[str]:
    r"""`name op value` from the telling part of the name on, in the ways code, configuration and prose write it.

    Operators: `=` and its kin (`:=`, `=>`, `?=`, `.=`), `:`, `<-`, a closing tag bracket, `" value=`, a comma between
    two quoted strings, the verbs is, was and to, and the blank after a command's option.
    """
    return re.compile(
        rf"""
        (?P<name>(?:{"|".join(stems)})[A-Za-z0-9_.-]{{0,32}}+)
        (?P<close>\\{{0,3}}["'`]?\]?\*{{0,2}})
        (?:
            (?P<tight>=)(?=[^\s=>])
          | [ \t]{{0,16}} (?:[:?.+|]{{0,3}}={{1,3}}>? | : | <-) \*{{0,2}} [ \t]{{0,16}}
          | (?<![-=\s])>\s{{0,32}}
          | (?<=["'])[ \t]{{1,8}}value[ \t]{{0,4}}=[ \t]{{0,4}}
          | (?<=["'])[ \t]{{0,4}},\s{{0,16}}(?=["'])
          | (?P<verb>[ \t]{{1,4}}(?:is|was|to)[ \t]{{1,4}})
          | (?P<gap>[ \t]{{1,4}})(?=[^\s=:-])
        )
        (?:(?<=[:=][ \t])(?:Basic|Bearer|Token|Digest|Negotiate|ApiKey|Api-Key|Api-Token|Key|SSWS)[ \t]{{1,4}})?
        (?:
            \\{{1,3}}["'](?P<escaped>[^"'\\\n]{{1,512}})
          | "(?P<double>(?:[^"\\\n]|\\.){{1,512}})
          | '(?P<single>(?:[^'\\\n]|\\.){{1,512}})
          | `(?P<back>[^`\n]{{1,512}})
          | (?P<bare>[^\s"'`<>&;,\\]{{1,512}})
        )
        """,
        re.VERBOSE | re.IGNORECASE,
    )


# --- The rules: forms first, then names, so that a tie goes to what says more ----------------------------------------

_LEFT = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2}))"
"""Where a token may start: not inside a word, but after an escaped line break or an encoded character."""
_LEFT_STRICT = r"(?:(?<![A-Za-z0-9_/.-])|(?<=\\[nrt]))"
"""As `_LEFT`, for short prefixes that paths and identifiers hold too."""


def _form(
    type: str,  # noqa: A002 - it is what the field is called
    what: str,
    prefixes: str,
    body: str,
    *,
    check: Check = _real,
    left: str = _LEFT,
    gate: Gate = Gate.RUN,
) -> Rule:
    """A token known by its prefix; `prefixes` holds them with blanks between."""
    each = prefixes.split()
    start = "|".join(map(re.escape, each))
    pattern = re.compile(f"{left}((?:{start}){body})")
    return Rule(type, what, tuple(p.lower() for p in each), pattern, check, gate)


_A, _U, _H = "[A-Za-z0-9]", "[A-Za-z0-9_-]", "[0-9a-f]"

_FORMS: tuple[Rule, ...] = (
    Rule(
        "private-key",
        "PEM or PGP private key, the whole block; to the end of the text if it is not closed",
        ("-----begin",),
        re.compile(
            r"-----BEGIN\s{1,4}(?:[A-Z0-9]{1,12}\s{1,4}){0,3}PRIVATE\s{1,4}KEY(?:\s{1,4}BLOCK)?-----"
            r"(?:(?s:.)*?-----END\s[A-Z0-9 ]{0,40}PRIVATE\s{1,4}KEY(?:\s{1,4}BLOCK)?-----|(?s:.)*)"
        ),
        _key_block,
    ),
    _form("anthropic-key", "Anthropic API key", "sk-ant-", _U + "{8,256}", gate=Gate.OPEN),
    _form("openai-key", "OpenAI project, service or admin key", "sk-proj- sk-svcacct- sk-admin-", _U + "{8,512}"),
    _form("sk-key", "Key in the sk- form that OpenAI began", "sk- pk-", "(?!learn)[A-Za-z0-9_-]{6,512}", gate=Gate.OPEN),
    _form("stripe-key", "Stripe key", "sk_live_ sk_test_ rk_live_ rk_test_ pk_live_ pk_test_", _A + "{8,256}"),
    _form("stripe-webhook-secret", "Stripe webhook secret", "whsec_", "[A-Za-z0-9+/=]{20,128}"),
    _form("sk-key", "Key in the sk_ or pk_ form", "sk_ pk_", _A + "{8,256}", check=_with_digit),
    _form("github-token", "GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", "[A-Za-z0-9_]{10,255}"),
)
