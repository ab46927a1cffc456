r"""Secrets: where they stand in a text, and the text without them.

`RULES` is the whole policy. A rule is tried only where one of its hints stands (a literal, found with
`str.find`), and its gate says what else a text must hold first, so that ordinary prose costs a few scans and
no more.

Two kinds of rule decide differently. A token with a form of its own (`ghp_…`) is a secret wherever it stands,
unless it is filler such as `ghp_xxxx…`. A value without a form is one only because of its name, so both are
judged: `password` asks little of its value, `token` asks for something random. Randomness alone is never
enough: digests, commit ids, UUIDs and images in base64 are random too.

Redaction is idempotent by construction. What lies between two placeholders is always scanned as if it stood
alone, and `_find` repeats that on what its own findings leave over until nothing is left to find.

Nothing here backtracks without bound: quantifiers are bounded, or their run starts at a boundary that a run
holds once.
"""

import binascii
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
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
    """What a text must hold before a rule's hints are looked for, from rarely to often worth the look."""

    OPEN = 0
    """Nothing."""
    OPERATOR = 1
    """One of `=`, `:` and `>`."""
    TEXT = 2
    """A run of letters and digits that looks like no word (`_RUN`), anywhere."""
    RUN = 3
    """Such a run, with the hint beside it: no blank between."""


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


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# --- What a value looks like --------------------------------------------------------------------------------

_FILLER = re.compile(r"[xX]{5}|\*{3}|\.{3}|…|•{2}|#{5}|_{5}|\[REDACTED")
_MASK = re.compile(r"\*{3}|#{3}|•")
_TEMPLATE = re.compile(
    r"[$#]\{|\$\(|\$\w*\Z|\{\{|\{[A-Za-z_.$ -]*(?:![rsa])?(?::.{0,9})?\}?\Z|\{\w*\("
    r"|%\(|%[sdvr]|%\w+%\Z|@\w+@\Z|[<\[(:]|\\u00"
)
_DUMMY = re.compile(
    r"your[-_ ]?\w|(?:insert|replace|enter)[-_ ]|change[-_ ]?(?:me|this|it)|x{3,}\Z"
    r"|.{0,40}[-_](?:here|placeholder)\b|\w{0,40}(?:example|placeholder|redacted|dummy)\w{0,40}\Z",
    re.IGNORECASE,
)
_NO_SECRET = _words(
    "access auth basic bearer blank bool boolean bytes char correct cred credential credentials default "
    "disabled empty enabled encrypted expired false field file forgotten from hashed hidden incorrect input "
    "integer invalid key masked missing must name needed none null number object optional pass passcode "
    "passphrase passwd password passwords plain private prompt protected public redacted required reset "
    "sample secret secrets should string test testing text that this todo token tokens true type undefined "
    "unknown unset user username value varchar weak when which with wrong your"
)
_UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\Z")
_HEX = re.compile(r"[0-9a-f]+\Z|[0-9A-F]+\Z")
_PLAIN = re.compile(r"[^\W\d_]+(?:[-_.'][^\W\d_]+)*\Z")
_IDENTIFIER = re.compile(r"[A-Za-z_]+\Z")
_CODE = re.compile(
    r"[A-Za-z_$][\w.$:>-]*[(\[]"
    r"|(?:os|process|self|this|config|settings|env|args|request|req|options|opts|params|ctx|secrets|vars?"
    r"|locals?|cfg|data|state|props|app|module|input|each|context|credentials)\.\w",
    re.IGNORECASE,
)
_DOTTED = re.compile(r"[A-Za-z_$][\w$]{0,30}(?:(?:\.|->|::)[A-Za-z_$][\w$]{0,30})+\Z")
_PATH = re.compile(
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


def _is_random(value: str) -> bool:
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


def _is_mixed(value: str) -> bool:
    return any(c.isdigit() for c in value) and any(c.isalpha() for c in value)


def _is_stand_in(value: str) -> bool:
    """Whether it only holds the place of a value: `${VAR}`, `<your key>`, `xxxxx`, `changeme`, `null`."""
    marked = _FILLER.search(value) or _TEMPLATE.match(value) or _DUMMY.match(value)
    return bool(marked) or value.lower() in _NO_SECRET or _is_one_letter(value)


# --- Checks on a match: the exact span of the secret, or None -----------------------------------------------


def _secret(match: re.Match[str]) -> Span:
    return match.span(match.lastindex or 0)


def _value_of(match: re.Match[str]) -> str:
    return match[match.lastindex or 0]


def _real(match: re.Match[str]) -> Span | None:
    """Anything but filler, or what somebody masked the end of."""
    masked = _FILLER.search(_value_of(match)) or _MASK.match(match.string, match.end())
    return None if masked else _secret(match)


def _with_digit(match: re.Match[str]) -> Span | None:
    """As `_real`, for forms that words and identifiers share: a digit tells them apart."""
    return _real(match) if any(c.isdigit() for c in _value_of(match)) else None


def _both_cases(match: re.Match[str]) -> Span | None:
    """As `_real`, for forms that identifiers share: lower and upper case tell them apart."""
    value = _value_of(match)
    return None if value == value.lower() or value == value.upper() else _real(match)


def _all_kinds(match: re.Match[str]) -> Span | None:
    return _both_cases(match) if _with_digit(match) else None


_PEM_BODY_MIN = 24


def _key_block(match: re.Match[str]) -> Span | None:
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


def _basic(match: re.Match[str]) -> Span | None:
    """The word is common; what follows is a credential if it decodes to `user:password`."""
    return _secret(match) if ":" in _decoded(match[1]) else None


def _encoded_jwt(match: re.Match[str]) -> Span | None:
    return _secret(match) if ".eyJ" in _decoded(match[1]) else None


def _encoded_text(match: re.Match[str]) -> Span | None:
    return _secret(match) if _decoded(match[1]) else None


_BEARER_WORD_LENGTH_MIN = 12


def _bearer(match: re.Match[str]) -> Span | None:
    """What follows the word is a token unless it could be the next word of a sentence."""
    value = match[1].rstrip(".,:")
    is_parameter = value.endswith("=") and match.string.startswith('"', match.end())
    if _is_stand_in(value) or "://" in value or is_parameter:
        return None
    is_joined = len(value) >= _BEARER_WORD_LENGTH_MIN and not value.isalpha()
    is_camel = value not in {value.lower(), value.upper(), value.capitalize()}
    start = match.start(1)
    return (start, start + len(value)) if is_joined or is_camel or not _PLAIN.match(value) else None


_LOGIN_LENGTH_MIN = 5


def _login(match: re.Match[str]) -> Span | None:
    """`-u user:password`; some services take the key as the user and leave the password empty."""
    part = "password" if match["password"] else "user"
    value, start = match[part].rstrip(";)"), match.start(part)
    return None if len(value) < _LOGIN_LENGTH_MIN or _is_stand_in(value) else (start, start + len(value))


def _database_password(match: re.Match[str]) -> Span | None:
    value = match["password"]
    return None if _FILLER.search(value) or _TEMPLATE.match(value) else match.span("password")


def _url_password(match: re.Match[str]) -> Span | None:
    """`https://user:password@host` stands in every manual."""
    return None if match["password"] in _NO_SECRET else _database_password(match)


# --- Names: what `name = value` says about its value --------------------------------------------------------


class _Trust(IntEnum):
    """What a name says about its value, from nothing to most."""

    NONE = 0
    RANDOM = 1
    """It is a secret if it looks random."""
    ISSUED = 2
    """A machine made it, so it is not a word."""
    SECRET = 3
    """A word too, where it is plainly a value: in quotes, or tight behind `=`."""
    PASSWORD = 4
    """A word or a number, wherever it stands."""


_TrustOf = Callable[[list[str]], _Trust]

_NAME_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_NAME_BEFORE = re.compile(r"[A-Za-z0-9_.-]*\Z")
_NAME_BEFORE_SPACED = re.compile(r"(?:[A-Za-z0-9_.-]+ )?[A-Za-z0-9_.-]*\Z")
_NAME_LENGTH_MAX = 48

_ENDINGS_THAT_SAY_NOTHING = _words(
    "b base current default dev development encoded env header live main new old plain prod production raw "
    "sandbox stage staging str string test text v val value var variable"
)
"""`DB_PASSWORD_PROD` and `api_key_2` are what they are without the last word."""
_NEVER_SECRET = _words(
    "authenticity cancellation count csrf continuation cursor max min next num page pub public sync total "
    "xsrf"
)
_KEYS_SECRET = _words(
    "access account admin api app application auth authorization client consumer deploy encryption hmac jwt "
    "license master private secret service session shared signing storage subscription token webhook"
)
_KEYS_NOT_SECRET = _words(
    "a alt bucket cache candidate composite config const def dict final foreign group hash hot i18n "
    "idempotency index let lookup map object partition primary range react record registry routing row "
    "search sequence shift sort sorting static string the translation this unique val var"
)
_KEYS_IN_ONE_WORD = frozenset(f"{kind}key" for kind in _KEYS_SECRET)
_TOKENS_SECRET = _words(
    "access api auth authorization bearer bot client deploy id pat personal private refresh secret security "
    "service session"
)
_TOKENS_IN_ONE_WORD = frozenset(f"{kind}token" for kind in _TOKENS_SECRET)


def _name_parts(name: str) -> list[str]:
    """`DB_PASSWORD_2`, `dbPassword` and `db.password` say the same: db, password."""
    parts = [part.lower() for part in _NAME_PARTS.findall(name)]
    while len(parts) > 1 and (parts[-1] in _ENDINGS_THAT_SAY_NOTHING or parts[-1].isdigit()):
        parts.pop()
    return parts


def _trust_password(parts: list[str]) -> _Trust:
    last = parts[-1]
    full = last.endswith(("password", "passwort", "passwd", "passphrase", "passcode", "pwd"))
    return _Trust.PASSWORD if full or (last == "pass" and len(parts) > 1) else _Trust.NONE


def _trust_secret(parts: list[str]) -> _Trust:
    return _Trust.SECRET if parts[-1].endswith("secret") else _Trust.NONE


def _trust_token(parts: list[str]) -> _Trust:
    last = parts[-1]
    if not last.endswith("token"):
        return _Trust.NONE
    known = last in _TOKENS_IN_ONE_WORD or not _TOKENS_SECRET.isdisjoint(parts[:-1])
    return _Trust.ISSUED if known else _Trust.RANDOM


def _trust_key(parts: list[str]) -> _Trust:
    last, before = parts[-1], parts[:-1]
    if last in _KEYS_IN_ONE_WORD or (last == "key" and not _KEYS_SECRET.isdisjoint(before)):
        return _Trust.ISSUED
    return _Trust.RANDOM if last == "key" and before and _KEYS_NOT_SECRET.isdisjoint(before) else _Trust.NONE


def _trust_authorization(parts: list[str]) -> _Trust:
    if parts[-1] in {"authorization", "authorisation"}:
        return _Trust.ISSUED
    return _Trust.RANDOM if parts[-1] == "auth" else _Trust.NONE


def _trust_credentials(parts: list[str]) -> _Trust:
    return _Trust.RANDOM if parts[-1] in {"cred", "creds", "credential", "credentials"} else _Trust.NONE


_ENDS_A_VALUE = ".,:)]}"
_CLOSING_TAG = re.compile(r"\s{0,32}</")
_LENGTH_MIN = 4
_READ_MAX = 128
"""What a value is judged by; the rest of it is like the beginning."""
_LENGTH_MIN_IN_PROSE = 8


def _named(trust: _TrustOf) -> Check:
    """The check of a `name = value` rule whose names `trust` knows."""
    # The word before belongs to a name such as "access key". A password needs none, and "to pass" is no name.
    before_name = _NAME_BEFORE if trust is _trust_password else _NAME_BEFORE_SPACED

    def check(match: re.Match[str]) -> Span | None:
        at = match.start()
        before = before_name.search(match.string, max(0, at - _NAME_LENGTH_MAX), at)
        name = (before[0] if before else "") + match["name"]
        parts = _name_parts(name)
        if not parts or not _NEVER_SECRET.isdisjoint(parts) or (match["gap"] and "--" not in name):
            return None
        trusted = trust(parts)
        return _named_value(match, parts, trusted) if trusted else None

    return check


def _named_value(match: re.Match[str], name: list[str], trust: _Trust) -> Span | None:
    start, end = _secret(match)
    value = match.string[start:end]
    if " " in value or _is_stand_in(value[:_READ_MAX]) or _PATH.match(value):
        return None
    if match["packed"] or match["loose"]:
        value = value.rstrip(_ENDS_A_VALUE)
        end = start + len(value)
        if _is_code(match, value[:_READ_MAX], end):
            return None
    value = value[:_READ_MAX]
    if len(value) < _LENGTH_MIN or value.lower() in _NO_SECRET or _repeats(name, value):
        return None
    if match["tag"] and not _CLOSING_TAG.match(match.string, end):
        return None
    return (start, end) if _is_own(match, value, end, trust, name) else None


def _repeats(name: list[str], value: str) -> bool:
    """Whether the value only says its name again: `db_password: "dbPassword"`."""
    return bool(_IDENTIFIER.match(value)) and set(_name_parts(value)) <= set(name)


def _is_code(match: re.Match[str], value: str, end: int) -> bool:
    """Whether an unquoted value is an expression: `os.environ[…]`, `get_password()`, `self.token`."""
    after = match.string[end : end + 1]
    if _CODE.match(value) or after in {"(", "["}:
        return True
    parts = _name_parts(value)
    names_a_secret = len(parts) > 1 and parts[-1] in _NO_SECRET
    if _DOTTED.match(value) and (names_a_secret or match["loose"]):
        return True
    return bool(match["packed"] and _IDENTIFIER.match(value) and (names_a_secret or after in {")", ",", "."}))


def _is_own(match: re.Match[str], value: str, end: int, trust: _Trust, name: list[str]) -> bool:
    """Whether the name has a value of its own here, rather than a word of the text around it."""
    if trust is _Trust.RANDOM:
        return _is_random(value) or _is_short_token(match, value, name)
    if match["comma"]:
        return _is_random(value) or (trust is _Trust.PASSWORD and _is_mixed(value) and "_" not in value)
    if value.isdigit():
        return trust is _Trust.PASSWORD
    is_header = name[0] == "x" and not match["verb"]
    if (match["loose"] or match["verb"] or match["gap"]) and not is_header:
        return _is_own_in_prose(match, value, end, trust)
    return trust >= _Trust.SECRET or bool(match["packed"]) or is_header or not _IDENTIFIER.match(value)


def _is_own_in_prose(match: re.Match[str], value: str, end: int, trust: _Trust) -> bool:
    if not _PLAIN.match(value):
        return trust is _Trust.PASSWORD or (len(value) >= _LENGTH_MIN_IN_PROSE and _is_mixed(value))
    is_last = match.string[end : end + 1] in {"", "\n", "\r"} and not (match["verb"] or match["gap"])
    return trust is _Trust.PASSWORD and is_last and value.isalpha() and value.islower()


def _is_short_token(match: re.Match[str], value: str, name: list[str]) -> bool:
    """`token=4f2a91bc7` is one although it is short; `key` and `auth` say too little for that."""
    is_exact = match["tag"] or not (match["loose"] or match["comma"]) or len(name) > 1
    is_long_enough = len(value) > _LENGTH_MIN_IN_PROSE and _is_mixed(value)
    return bool(is_exact and is_long_enough and name[-1] == "token")


def _assignment(stem: str) -> re.Pattern[str]:
    r"""`name op value` from the telling part of the name on, as code, configuration and prose write it.

    Operators: `=` and its kin (`:=`, `=>`, `?=`, `.=`), `:`, `<-`, the end of an opening tag, `" value=`, a
    comma between two quoted strings, the verbs is, was and to, and the blank after a command's option.
    """
    scheme = r"(?:(?:Basic|Bearer|Token|Digest|ApiKey|Api-Key|Api-Token|Key|SSWS)[ \t]{1,4})?"
    return re.compile(
        rf"""
        (?P<name>{stem}[A-Za-z0-9_.-]{{0,32}}+)
        \\{{0,3}}["'`]?\]?\*{{0,2}}
        (?:
            (?P<tight>=)(?=[^\s=>])
          | (?:[ \t]{{0,4}}:?[ \t]{{0,4}}(?:string|str)\??)?
            [ \t]{{0,16}}(?:[:?.+|]{{0,3}}={{1,3}}>?|:|<-)\*{{0,2}}[ \t]{{0,16}}
          | (?P<tag>(?<![-=\s])>\s{{0,32}})
          | (?<=["'])[ \t]{{1,8}}value[ \t]{{0,4}}=[ \t]{{0,4}}
          | (?<=["'])(?P<comma>[ \t]{{0,4}},\s{{0,16}})(?=["'])
          | (?P<verb>[ \t]{{1,4}}(?:is|was|to)[ \t]{{1,4}})
          | (?P<gap>[ \t]{{1,4}})(?=[^\s=:-][^\s0-9]{{0,40}}[0-9])
        )
        (?:
            \\{{1,3}}["']{scheme}(?P<escaped>[^"'\\\n]{{1,512}})
          | "{scheme}(?P<double>(?:[^"\\\n]|\\.){{1,512}})
          | '{scheme}(?P<single>(?:[^'\\\n]|\\.){{1,512}})
          | `{scheme}(?P<back>[^`\n]{{1,512}})
          | {scheme}(?(tight)(?P<packed>[^\s"'`<>&;,\\]{{1,512}})|(?P<loose>[^\s"'`<>;,\\]{{1,512}}))
        )
        """,
        re.VERBOSE | re.IGNORECASE,
    )


# --- The rules: forms first, then names, so that a tie goes to what says more -------------------------------

_LEFT = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2}))"
"""Where a token may start: not inside a word, but after an escaped line break or an encoded character."""
_LEFT_STRICT = r"(?:(?<![A-Za-z0-9_/.-])|(?<=\\[nrt]))"
"""As `_LEFT`, for forms that paths and identifiers can hold too."""

_CHECKS: dict[str, Check] = {
    "real": _real,
    "digit": _with_digit,
    "cases": _both_cases,
    "mixed": _all_kinds,
    "jwt": _encoded_jwt,
}


def _rows(table: str) -> Iterator[list[str]]:
    """The cells of a table whose columns are two or more blanks apart."""
    return (re.split(" {2,}", line) for line in table.strip().splitlines() if not line.startswith("#"))


def _forms(table: str) -> Iterator[Rule]:
    """Rules from rows of type, meaning, prefixes, what follows them, check."""
    for type, what, prefixes, body, check in _rows(table):
        each = prefixes.split()
        name, _, strict = check.partition(" ")
        start = f"{_LEFT_STRICT if strict else _LEFT}((?:{'|'.join(map(re.escape, each))}){body})"
        hints = tuple(prefix.lower() for prefix in each)
        yield Rule(type, what, hints, re.compile(start, re.ASCII), _CHECKS[name])


def _shapes(table: str) -> Iterator[Rule]:
    """Rules from rows of type, meaning, hint, pattern, check."""
    for type, what, hint, pattern, check in _rows(table):
        yield Rule(type, what, (hint,), re.compile(pattern, re.ASCII), _CHECKS[check])


_FORMS = r"""
# Models and their tools
openai-key  OpenAI project, service or admin key  sk-proj- sk-svcacct- sk-admin-  [\w-]{8,512}  real
groq-key  Groq key  gsk_  [A-Za-z0-9]{40,64}  real
xai-key  xAI key  xai-  [A-Za-z0-9]{60,100}  real
perplexity-key  Perplexity key  pplx-  [A-Za-z0-9]{40,64}  real
huggingface-token  Hugging Face token  hf_ api_org_  [A-Za-z0-9]{34,40}(?!\w)  cases
replicate-token  Replicate token  r8_  [A-Za-z0-9]{37,40}  digit
nvidia-key  NVIDIA API key  nvapi-  [\w-]{40,100}  real
pinecone-key  Pinecone key  pcsk_  \w{40,100}  real
langsmith-key  LangSmith key  lsv2_pt_ lsv2_sk_  [0-9a-f]{32}_[0-9a-f]{10}  real
tavily-key  Tavily key  tvly-  [\w-]{20,64}  digit
firecrawl-key  Firecrawl key  fc-  [0-9a-f]{32}(?![A-Za-z0-9])  real strict
# Code and packages
github-token  GitHub token  ghp_ gho_ ghu_ ghs_ ghr_ github_pat_  \w{10,255}  real
gitlab-token  GitLab token  glpat- gldt- glrt- glrtr- gloas- glptt- glcbt- glft- glsoat- glimt- glagent- glffct- glwt-  [\w.-]{20,300}  real
gitlab-token  GitLab runner registration token  GR1348941  [\w-]{20}  cases
atlassian-token  Atlassian or Bitbucket token  ATATT3 ATCTT3 ATBB  [\w=-]{24,300}  real
sourcegraph-token  Sourcegraph token  sgp_  (?:(?:local|[0-9a-fA-F]{16})_)?[0-9a-fA-F]{40}(?!\w)  real
npm-token  npm token  npm_  [A-Za-z0-9]{36}(?!\w)  real
pypi-token  PyPI token  pypi-AgE  [\w-]{40,1000}  real
rubygems-token  RubyGems token  rubygems_  [0-9a-f]{48}  real
nuget-key  NuGet key  oy2  [a-z0-9]{43}(?!\w)  digit
clojars-token  Clojars token  CLOJARS_  [a-z0-9]{60}  real
docker-token  Docker Hub token  dckr_pat_ dckr_oat_  [\w-]{24,64}  real
artifactory-token  JFrog Artifactory key or token  AKCp cmVmdGtu  [A-Za-z0-9]{50,80}  real
sonar-token  SonarQube token  squ_ sqp_ sqa_  [0-9a-f]{40}  real
circleci-token  CircleCI token  CCIPAT_ CCIPRJ_  \w{30,100}  real
buildkite-token  Buildkite token  bkua_  [0-9a-f]{40}  real
# Clouds
aws-access-key  AWS access key id  AKIA ASIA ABIA ACCA  [0-9A-Z]{16}(?![A-Za-z0-9])  real
aws-bedrock-key  Amazon Bedrock API key  ABSKQmVkcm9ja0FQSUtleS  [A-Za-z0-9+/]{80,260}={0,2}(?![A-Za-z0-9+/])  real
aws-bedrock-key  Amazon Bedrock short-term API key  bedrock-api-key-  [A-Za-z0-9+/]{40,4000}={0,2}  real
google-api-key  Google API key  AIza  [\w-]{35}(?![\w-])  real
google-oauth-token  Google OAuth access token  ya29.  [\w.-]{10,1000}  real
google-client-secret  Google OAuth client secret  GOCSPX-  [\w-]{20,40}  real
google-refresh-token  Google OAuth refresh token  1//0  [\w-]{40,200}  real strict
digitalocean-token  DigitalOcean token  dop_v1_ doo_v1_ dor_v1_  [0-9a-f]{64}  real
alibaba-key  Alibaba Cloud access key id  LTAI  [A-Za-z0-9]{16,24}(?!\w)  cases
tencent-key  Tencent Cloud secret id  AKID  [A-Za-z0-9]{32}(?!\w)  mixed
yandex-key  Yandex Cloud key  AQVN YCAJ  [\w-]{30,45}(?![\w-])  digit
cloudflare-key  Cloudflare origin CA key  v1.0-  [0-9a-f]{24}-[0-9a-f]{100,200}  real
heroku-key  Heroku key  HRKU-  [\w-]{30,80}  real
flyio-token  Fly.io token  fo1_ fm1_ fm1a_ fm1r_ fm2_  [A-Za-z0-9+/=_-]{40,1000}  mixed
planetscale-token  PlanetScale token or password  pscale_tkn_ pscale_pw_ pscale_oauth_  [\w=.-]{30,64}  real
supabase-key  Supabase key  sbp_ sb_secret_  \w{20,64}  digit
databricks-token  Databricks token  dapi  [0-9a-f]{32}(?:-[0-9])?(?![A-Za-z0-9])  real
openshift-token  OpenShift token  sha256~  [\w-]{43}(?![\w-])  real
octopus-key  Octopus Deploy key  API-  [A-Z0-9]{25,26}(?![A-Za-z0-9])  digit strict
# Vaults
vault-token  HashiCorp Vault token  hvs. hvb. hvr.  [\w-]{24,300}  real
vault-token  HashiCorp Vault token, old form  s.  [A-Za-z0-9]{24}(?![\w.])  mixed strict
doppler-token  Doppler token  dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.  [\w.-]{40,80}  real
onepassword-token  1Password service account token  ops_eyJ  [A-Za-z0-9+/=_-]{200,2000}  real
onepassword-key  1Password secret key  A3-  [A-Z0-9]{6}(?:-[A-Z0-9]{5,11}){4,5}(?![A-Za-z0-9-])  digit
age-key  age secret key  AGE-SECRET-KEY-1  [A-Z0-9]{58}  real
pulumi-token  Pulumi token  pul-  [0-9a-f]{40}(?!\w)  real strict
infracost-key  Infracost key  ico-  [A-Za-z0-9]{32}(?!\w)  mixed strict
tailscale-key  Tailscale key  tskey-  [a-z]{2,12}-[A-Za-z0-9-]{16,80}  real
# Messages
slack-token  Slack token  xoxb- xoxp- xoxa- xoxr- xoxs- xoxo- xapp-  [A-Za-z0-9-]{16,300}  digit strict
slack-token  Slack token that rotates  xoxe- xoxe.xoxb- xoxe.xoxp-  [0-9]-[A-Za-z0-9]{60,400}  real strict
twilio-key  Twilio API key  SK  [0-9a-f]{32}(?!\w)  real
sendgrid-key  SendGrid key  SG.  [\w=-]{10,32}[\w=.-]{30,64}  cases
mailgun-key  Mailgun key  key-  [0-9a-f]{32}(?!\w)  real strict
brevo-key  Brevo key  xkeysib-  [0-9a-f]{64}-[A-Za-z0-9]{16}  real
# Money and shops
stripe-key  Stripe key  sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_ pk_live_ pk_test_  [A-Za-z0-9]{8,256}  real
stripe-webhook-secret  Stripe webhook secret  whsec_  [A-Za-z0-9+/=]{20,128}  real
square-token  Square token or secret  sq0atp- sq0csp- sq0idp-  [\w-]{22,80}  real
square-token  Square access token  EAAA  [\w-]{60}(?![\w-])  mixed strict
shopify-token  Shopify token  shpat_ shpca_ shppa_ shpss_  [0-9a-fA-F]{32}  real
shippo-token  Shippo token  shippo_live_ shippo_test_  [0-9a-f]{40}  real
easypost-key  EasyPost key  EZAK EZTK  [A-Za-z0-9]{54}(?!\w)  real
flutterwave-key  Flutterwave key  FLWSECK FLWPUBK  (?:_TEST)?-[0-9a-h]{32}-X  real
duffel-token  Duffel token  duffel_live_ duffel_test_  [\w=-]{40,64}  real
plaid-token  Plaid access token  access-sandbox- access-development- access-production-  [0-9a-f-]{36}  real
# Work
notion-token  Notion token  ntn_  [0-9]{11}[A-Za-z0-9]{32,36}(?!\w)  mixed
notion-token  Notion token, old form  secret_  [A-Za-z0-9]{43}(?!\w)  mixed
linear-key  Linear key  lin_api_ lin_oauth_  [A-Za-z0-9]{32,64}  real
figma-token  Figma token  figd_ figu_  [\w-]{30,64}  real
airtable-token  Airtable token  pat  [A-Za-z0-9]{14}\.[0-9a-f]{64}  real
asana-token  Asana token  1/ 2/  [0-9]{16}(?:/[0-9]{16})?:[0-9a-f]{32}  real strict
contentful-token  Contentful token  CFPAT-  [\w-]{40,64}  real
typeform-token  Typeform token  tfp_  [\w=.-]{59}  real
hubspot-token  HubSpot token  pat-na1- pat-na2- pat-eu1-  [0-9a-f-]{36}  real
dropbox-token  Dropbox token  sl.  [\w=-]{120,1200}  mixed strict
adobe-secret  Adobe client secret  p8e-  [A-Za-z0-9]{32}(?!\w)  real
frameio-token  Frame.io token  fio-u-  [\w=-]{64}  real
readme-key  ReadMe key  rdme_  [a-z0-9]{70}  real
postman-key  Postman key  PMAK-  [0-9a-f]{24}-[0-9a-f]{34}  real
intra42-secret  42 intra client secret  s-s4t2ud- s-s4t2af-  [0-9a-f]{64}  real
# Watching and shipping
grafana-token  Grafana token  glc_ glsa_  [A-Za-z0-9+/=_]{32,400}  mixed
grafana-token  Grafana key, old form  eyJrIjoi  [A-Za-z0-9+/=]{60,400}  real
newrelic-key  New Relic key  NRAK- NRJS- NRII- NRAL-  [A-Za-z0-9-]{19,32}  real
sentry-token  Sentry token  sntrys_ sntryu_  [A-Za-z0-9+/=_-]{40,500}  real
dynatrace-token  Dynatrace token  dt0c01.  [A-Z0-9]{24}\.[A-Z0-9]{64}  real
posthog-key  PostHog personal key  phx_  [A-Za-z0-9]{40,64}  real
harness-token  Harness token  pat. sat.  [\w-]{22}\.[0-9a-f]{24}\.[A-Za-z0-9]{20}  real
prefect-key  Prefect key  pnu_ pnb_  [A-Za-z0-9]{36}(?!\w)  digit
scalingo-token  Scalingo token  tk-us-  [\w-]{48}  real
settlemint-token  SettleMint token  sm_pat_ sm_sat_ sm_aat_  [A-Za-z0-9]{16}  real
# People
facebook-token  Facebook page or user token  EAAM EAAC EAAB EAAG EAAD  [A-Za-z0-9]{80,400}  digit
mapbox-token  Mapbox token  sk.eyJ pk.eyJ  [\w-]{20,200}\.[\w-]{20,30}  real
"""
"""One token to a row. The word `strict` after a check asks for `_LEFT_STRICT`."""

_SHAPES = r"""
azure-client-secret  Azure AD client secret: all but its first four characters  q~  (?<=[\w.~-]{3}[0-9])(Q~[\w.~-]{31,34})(?![\w.~-])  real
azure-sas  Azure shared access signature  sig=  (?<=[?&;])sig=([A-Za-z0-9%+/=_-]{30,200})  digit
terraform-token  Terraform Cloud token: what follows its id  .atlasv1.  (?<=[A-Za-z0-9]{14})\.atlasv1\.([\w=-]{60,80})  real
slack-webhook  Slack webhook: what follows the host  hooks.slack.com/  hooks\.slack\.com/(?:services|workflows|triggers)/([\w/+-]{20,200})  real
discord-webhook  Discord webhook: what follows its id  /api/webhooks/  /api/webhooks/[0-9]{15,21}/([\w-]{40,100})  real
discord-token  Discord bot token: what follows the bot's id  .  (?:(?<=[MNO][\w-]{23})|(?<=[MNO][\w-]{25}))\.([\w-]{6}\.[\w-]{27,38})(?![\w.-])  mixed
telegram-token  Telegram bot token: what follows the bot's id  :a  (?<=[0-9]{8}):(A[\w-]{34})(?![\w-])  cases
teams-webhook  Microsoft Teams webhook: what follows the host  .webhook.office.com/  \.webhook\.office\.com/webhookb2/([A-Za-z0-9@/-]{60,250})  real
facebook-token  Facebook app token: what follows the app's id  |  (?<=[0-9]{15})\|([\w-]{27})(?![\w-])  mixed
jwt  JSON Web Token  eyj  (?:(?<![\w-])|(?<=\\[nrt]))(eyJ[\w-]{8,}\.eyJ[\w-]{8,}(?:\.[\w-]*){0,3})  real
jwt  JSON Web Token, encoded once more  zxlk  (?<![\w+/-])(ZXlK[\w+/-]{60,})={0,2}  jwt
"""

_NAMES: tuple[tuple[str, str, str, _TrustOf, Gate], ...] = (
    ("password", "Value of a name that ends in password, passphrase, …", "pass", _trust_password, Gate.OPEN),
    ("password", "Value of a name that ends in pwd", "pwd", _trust_password, Gate.OPERATOR),
    ("secret", "Value of a name that ends in secret", "secret", _trust_secret, Gate.OPERATOR),
    (
        "api-key",
        "Value of an API key, an access key, …; random one of another",
        "key",
        _trust_key,
        Gate.OPERATOR,
    ),
    ("token", "Value of an access token, …; random one of another", "token", _trust_token, Gate.OPERATOR),
    ("authorization", "Value of an Authorization header", "auth", _trust_authorization, Gate.OPERATOR),
    ("credentials", "Random value of a name that ends in credentials", "cred", _trust_credentials, Gate.TEXT),
)

_DATABASES = (
    "postgres postgresql mysql mariadb mongodb mongodb+srv redis rediss amqp amqps mssql sqlserver clickhouse"
)
_AFTER_DATABASE = "|".join(f"(?<=(?i:{re.escape(name)}))" for name in _DATABASES.split())

RULES: Final[tuple[Rule, ...]] = (
    Rule(
        "private-key",
        "PEM or PGP private key: the whole block, to the end of the text if it is not closed",
        ("-----begin",),
        re.compile(
            r"-----BEGIN\s{1,4}(?:[A-Z0-9]{1,12}\s{1,4}){0,3}PRIVATE\s{1,4}KEY(?:\s{1,4}BLOCK)?-----"
            r"(?P<body>(?s:.)*?)(?:(?P<closed>-----END\s[A-Z0-9 ]{0,40}PRIVATE\s{1,4}KEY(?:\s{1,4}BLOCK)?-----)|\Z)"
        ),
        _key_block,
        Gate.TEXT,
    ),
    Rule(
        "anthropic-key",
        "Anthropic key",
        ("sk-",),
        re.compile(rf"{_LEFT}(sk-ant-[\w-]{{8,256}})", re.ASCII),
        _real,
        Gate.OPEN,
    ),
    *_forms(_FORMS),
    *_shapes(_SHAPES),
    Rule(
        "aws-secret-key",
        "AWS secret access key, by its name",
        ("secret_access_key", "secretaccesskey", "aws_secret"),
        re.compile(
            r"""[A-Za-z_]{8,24}["'\]\s]{0,3}[:=]{1,2}>?\s{0,4}["']?([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])"""
        ),
        _with_digit,
        Gate.TEXT,
    ),
    Rule(
        "sk-key",
        "Key in the `sk-` form of OpenAI and those who followed it",
        ("sk-",),
        re.compile(
            rf"{_LEFT}(sk-(?!(?:learn|image|prefix(?:ed)?|based|style|format)(?!\w))[\w-]{{6,512}})", re.ASCII
        ),
        _real,
        Gate.OPEN,
    ),
    Rule(
        "sk-key",
        "Key in the `sk_`, `pk_` or `pk-` form",
        ("sk_", "pk_", "pk-"),
        re.compile(rf"{_LEFT}((?:[sp]k_|pk-)[A-Za-z0-9]{{8,256}})(?!\w)", re.ASCII),
        _with_digit,
    ),
    Rule(
        "connection-string",
        "Password in the address of a database or a queue",
        ("://",),
        re.compile(
            rf"(?:{_AFTER_DATABASE})://(?P<user>[^\s:/@\"'<>`]{{0,128}}):"
            r"(?P<password>[^\s/\"'<>`]{1,256})@(?=[^\s@/])"
        ),
        _database_password,
        Gate.OPERATOR,
        ("@",),
    ),
    Rule(
        "url-credentials",
        "Password in any other address",
        ("://",),
        re.compile(
            r"(?<=[A-Za-z0-9])://(?P<user>[^\s:/?#@\"'<>`]{0,128}):"
            r"(?P<password>[^\s/?#\"'<>`]{1,256})@(?=[^\s@/])"
        ),
        _url_password,
        Gate.OPERATOR,
        ("@",),
    ),
    Rule(
        "bearer-token",
        "What follows the word Bearer, unless it is a word too",
        ("bearer",),
        re.compile(r"(?<![A-Za-z0-9])(?i:bearer)\s{1,8}([A-Za-z0-9._~+/=:-]{6,})"),
        _bearer,
        Gate.OPEN,
    ),
    Rule(
        "basic-credentials",
        "What follows the word Basic, if it decodes to user and password",
        ("basic ",),
        re.compile(r"(?<![A-Za-z0-9])(?i:basic)[ ]{1,4}([A-Za-z0-9+/]{8,1024}={0,2})"),
        _basic,
        Gate.TEXT,
    ),
    Rule(
        "login",
        "Password in curl's `-u user:password`",
        ("-u", "--user"),
        re.compile(
            r"""(?<![A-Za-z0-9-])-(?:u|-user)(?:[ \t]{1,4}|=)["']?(?P<user>[^\s:"'<>]{0,128})["']?:"""
            r"""["']?(?P<password>[^\s"'<>]{0,128})"""
        ),
        _login,
        Gate.OPERATOR,
        ("curl",),
    ),
    Rule(
        "login",
        "Bundler's credentials for a gem server",
        ("bundle_",),
        re.compile(
            r"""BUNDLE_[A-Z0-9_]{2,64}["']?\s{0,4}[:=]\s{0,4}["']?(?P<user>[^\s:"']{1,64}):"""
            r"""(?P<password>[^\s"'/]{1,128})"""
        ),
        _login,
        Gate.TEXT,
    ),
    Rule(
        "kubernetes-secret",
        "Value in a Kubernetes Secret, in base64",
        (":",),
        re.compile(r""":[ \t]{1,4}["']?([A-Za-z0-9+/]{8,4096}={0,2})["']?[ \t]{0,4}(?=[,}\r\n]|\Z)"""),
        _encoded_text,
        Gate.TEXT,
        ("kind: secret", 'kind: "secret', "kind: 'secret", '"kind": "secret', '"kind":"secret'),
    ),
    *(
        Rule(type, what, (stem,), _assignment(stem), _named(trust), gate)
        for type, what, stem, trust, gate in _NAMES
    ),
)


# --- Finding ------------------------------------------------------------------------------------------------

_RUN = re.compile(r"[0-9A-Z_](?:(?<=\w{10})|(?=-(?:----|[0-9A-Z]{5}-|[0-9a-f]{4}-)))")
"""Ten characters without a blank that end in a digit, a capital or an underscore; or the joint of a key in
groups, or the end of a PEM header. One scan for it is most of what a text without secrets costs."""


def _by_hint(*gates: Gate) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """What to look for in a text, and which rules to try then. A context stands for its rule's hints."""
    table: dict[str, list[int]] = {}
    for order, rule in enumerate(RULES):
        if rule.gate in gates:
            for literal in rule.context or rule.hints:
                table.setdefault(literal, []).append(order)
    return tuple((literal, tuple(orders)) for literal, orders in table.items())


_BEHIND_GATE = {
    Gate.OPEN: _by_hint(Gate.OPEN),
    Gate.OPERATOR: _by_hint(Gate.OPEN, Gate.OPERATOR),
    Gate.TEXT: _by_hint(Gate.OPEN, Gate.OPERATOR, Gate.TEXT),
    Gate.RUN: _by_hint(Gate.RUN),
}

_ROUNDS_MAX = 16
"""Findings that appear only because another one beside them is gone, one after the other. Nobody writes that
many by accident; what is left then goes as a whole."""


def find_secrets(text: str) -> list[Finding]:
    """The secrets of a text in order, none overlapping another; the same for the same text every time."""
    return _find(text, frozenset())


def redact(text: str, style: Style = NATIVE) -> Redacted:
    """The text with a placeholder for every secret. Doing it again, in any style, changes nothing."""
    findings = _find(text, style.whole)
    if not findings:
        return Redacted(text, ())
    parts: list[str] = []
    at = 0
    for finding in findings:
        parts += text[at : finding.start], _placeholder(text, finding, style)
        at = finding.end
    return Redacted("".join([*parts, text[at:]]), tuple(findings))


def redact_tree(value: Any, style: Style = NATIVE) -> tuple[Any, int]:
    """A deep copy of a JSON-like value with its strings redacted, and how many secrets went; keys stay."""
    root: list[Any] = [None]
    pending: list[tuple[Any, Any, Any]] = [(root, 0, value)]
    count = 0
    while pending:
        parent, place, item = pending.pop()
        copy = item
        if isinstance(item, str):
            copy, found = redact(item, style)
            count += len(found)
        elif isinstance(item, dict):
            copy = dict.fromkeys(item)
            pending.extend((copy, key, member) for key, member in item.items())
        elif isinstance(item, list | tuple):
            copy = [None] * len(item)
            pending.extend((copy, index, member) for index, member in enumerate(item))
        parent[place] = copy
    return root[0], count


_BEARER_BEFORE = re.compile(r"(?i:bearer)\s{1,8}\Z")


def _placeholder(text: str, finding: Finding, style: Style) -> str:
    follows = _BEARER_BEFORE.search(text, max(0, finding.start - 16), finding.start)
    if style.after_bearer and follows and not text.startswith("sk-", finding.start):
        return style.after_bearer
    return style.placeholder.format(type=finding.type)


def _find(text: str, whole: frozenset[str]) -> list[Finding]:
    low = _lower(text)
    if "[" in text and "[redacted" in low:
        # The blank keeps what stood apart apart, and the type in a placeholder must not serve as a hint.
        own = _PLACEHOLDER.sub("[ ]", text)
        rules = _rules_for(own, _lower(own))
        pieces = list(_between((match.span() for match in _PLACEHOLDER.finditer(text)), 0, len(text)))
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
    """The rules that may find something, in the order of `RULES`."""
    run = _RUN.search(text)
    gate = Gate.TEXT if run else Gate.OPERATOR if "=" in text or ":" in text or ">" in text else Gate.OPEN
    orders: list[int] = []
    for literal, asked in _BEHIND_GATE[gate]:
        if literal in low:
            orders += asked
    if run:
        beside = _beside_runs(text, low, run)
        for literal, asked in _BEHIND_GATE[Gate.RUN]:
            if literal in beside:
                orders += asked
    return [RULES[order] for order in sorted(set(orders))] if orders else []


def _beside_runs(text: str, low: str, run: re.Match[str] | None) -> str:
    """The stretches between blanks that hold a run: the only places for a token with a form."""
    stretches = []
    while run:
        start, end = low.rfind(" ", 0, run.start()) + 1, low.find(" ", run.end())
        end = len(low) if end < 0 else end
        stretches.append(low[start:end])
        run = _RUN.search(text, end)
    return " ".join(stretches)


def _between(spans: Iterable[Span], start: int, end: int) -> Iterator[Span]:
    """What sorted spans leave over of the span from `start` to `end`."""
    for taken, freed in spans:
        if start < taken:
            yield start, taken
        start = freed
    if start < end:
        yield start, end


def _search(
    text: str, low: str, rules: list[Rule], pieces: list[Span], whole: frozenset[str]
) -> Iterator[Finding]:
    """Findings in the pieces, then in what these leave over, until there is nothing left to find."""
    for _ in range(_ROUNDS_MAX):
        rest: list[Span] = []
        for start, end in pieces:
            found = _scan(text[start:end], low[start:end], rules, whole)
            if found:
                spans = [(start + a, start + b) for _, a, b in found]
                yield from (Finding(kind, *span) for (kind, _, _), span in zip(found, spans, strict=True))
                rest += _between(spans, start, end)
        if not rest:
            return
        pieces = rest
    for start, end in pieces:
        if found := _scan(text[start:end], low[start:end], rules, whole):
            yield Finding(found[0].type, start, end)


def _scan(piece: str, low: str, rules: list[Rule], whole: frozenset[str]) -> list[Finding]:
    """One pass over a piece, leftmost and longest first.

    Where two findings overlap, the first gives the type and the span covers both: half a secret is one too.
    """
    found = [
        (start, -end, order, rule.type)
        for order, rule in enumerate(rules)
        for start, end in _matches(rule, piece, low, whole=rule.type in whole)
    ]
    merged: list[Finding] = []
    for start, minus_end, _, kind in sorted(found):
        end = -minus_end
        if merged and start < merged[-1].end:
            last = merged[-1]
            merged[-1] = last._replace(end=max(last.end, end))
        else:
            merged.append(Finding(kind, start, end))
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
