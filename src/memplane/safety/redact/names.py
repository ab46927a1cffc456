"""What `name = value` says about its value."""

import re
from collections.abc import Callable
from enum import IntEnum

from memplane.safety.redact.rule import (
    CODE,
    DOTTED,
    IDENTIFIER,
    NO_SECRET,
    PATH,
    PLAIN,
    Check,
    Pattern,
    Span,
    is_mixed,
    is_random,
    is_stand_in,
    secret,
    words,
)


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
    """A word or a number, anywhere."""


TrustOf = Callable[[list[str]], _Trust]

_NAME_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_NAME_BEFORE = re.compile(r"[A-Za-z0-9_.-]*\Z")
_NAME_BEFORE_SPACED = re.compile(r"(?:[A-Za-z0-9_.-]+ )?[A-Za-z0-9_.-]*\Z")
_NAME_LENGTH_MAX = 48

_ENDINGS_THAT_SAY_NOTHING = words(
    "b base current default dev development encoded env header live main new old plain prod production raw "
    "sandbox stage staging str string test text v val value var variable"
)
"""`DB_PASSWORD_PROD` and `api_key_2` are what they are without the last word."""
NEVER_SECRET = words(
    "authenticity cancel cancellation count csrf continuation cursor max min next num page pub public sync total "
    "xsrf"
)
_KEYS_SECRET = words(
    "access account admin api app application auth authorization client consumer deploy encryption hmac jwt "
    "license master private secret service session shared signing storage subscription token webhook"
)
KEYS_NOT_SECRET = words(
    "a alt bucket cache candidate composite config const def dict final foreign group hash hot i18n "
    "idempotency index let lookup map object partition primary range react record registry routing row "
    "search sequence shift sort sorting static string the translation this unique val var"
)
_KEYS_IN_ONE_WORD = frozenset(f"{kind}key" for kind in _KEYS_SECRET)
_TOKENS_SECRET = words(
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


def trust_password(parts: list[str]) -> _Trust:
    last = parts[-1]
    full = last.endswith(("password", "passwort", "passwd", "passphrase", "passcode", "pwd"))
    return (
        _Trust.PASSWORD
        if full or (last == "pass" and len(parts) > 1 and parts[-2] not in {"all", "any"})
        else _Trust.NONE
    )


def trust_secret(parts: list[str]) -> _Trust:
    return _Trust.SECRET if parts[-1].endswith("secret") else _Trust.NONE


def trust_token(parts: list[str]) -> _Trust:
    last = parts[-1]
    if not last.endswith("token"):
        return _Trust.NONE
    known = last in _TOKENS_IN_ONE_WORD or not _TOKENS_SECRET.isdisjoint(parts[:-1])
    return _Trust.ISSUED if known else _Trust.RANDOM


def trust_key(parts: list[str]) -> _Trust:
    last, before = parts[-1], parts[:-1]
    if last in _KEYS_IN_ONE_WORD or (last == "key" and not _KEYS_SECRET.isdisjoint(before)):
        return _Trust.ISSUED
    return _Trust.RANDOM if last == "key" and before and KEYS_NOT_SECRET.isdisjoint(before) else _Trust.NONE


def trust_authorization(parts: list[str]) -> _Trust:
    if parts[-1] in {"authorization", "authorisation"}:
        return _Trust.ISSUED
    return _Trust.RANDOM if parts[-1] == "auth" else _Trust.NONE


def trust_credentials(parts: list[str]) -> _Trust:
    return _Trust.RANDOM if parts[-1] in {"cred", "creds", "credential", "credentials"} else _Trust.NONE


_LENGTH_MAX = 512
"""What one match of the pattern reads. A longer value that is a secret is read to its end."""
_REST = {
    "escaped": re.compile(r"""[^"'\\\n]*+"""),
    "double": re.compile(r"""(?:[^"\\\n]|\\.)*+"""),
    "single": re.compile(r"""(?:[^'\\\n]|\\.)*+"""),
    "back": re.compile(r"[^`\n]*+"),
    "packed": re.compile(r"""[^\s"'`<>&;,\\]*+"""),
    "loose": re.compile(r"""[^\s"'`<>;,\\]*+"""),
}
_ENDS_A_VALUE = ".,:)]}"
_CLOSING_TAG = re.compile(r"\s{0,32}</")
_LENGTH_MIN = 4
_READ_MAX = 128
"""What a value is judged by; the rest of it is like the beginning."""
_LENGTH_MIN_IN_PROSE = 8
_NAMES_OF_CODES = words(
    "change current er err error flag incorrect invalid long missing reset submit valid workflow"
)
"""`ER_INVALID_PASSWORD = 1819` is a number for an error."""


def named(trust: TrustOf) -> Check:
    """The check of a `name = value` rule whose names `trust` knows."""
    # The word before belongs to a name such as "access key". A password needs none, and "to pass" is no name.
    before_name = _NAME_BEFORE if trust is trust_password else _NAME_BEFORE_SPACED

    def check(match: re.Match[str]) -> Span | None:
        at = match.start()
        before = before_name.search(match.string, max(0, at - _NAME_LENGTH_MAX), at)
        name = (before[0] if before else "") + match["name"]
        parts = _name_parts(name)
        if not parts or not NEVER_SECRET.isdisjoint(parts) or (match["gap"] and not _is_option(name)):
            return None
        trusted = trust(parts)
        return _named_value(match, parts, trusted) if trusted else None

    return check


def _is_option(name: str) -> bool:
    """`--token` and PowerShell's `-Token`, but not `--secrets HF_TOKEN`."""
    return name.rpartition(" ")[2].startswith("-")


def _named_value(match: re.Match[str], name: list[str], trust: _Trust) -> Span | None:
    start, end = secret(match)
    value = match.string[start:end]
    if " " in value or is_stand_in(value[:_READ_MAX]) or PATH.match(value) or _HEX_NUMBER.match(value):
        return None
    if match["packed"] or match["loose"]:
        value = value.rstrip(_ENDS_A_VALUE)
        end = start + len(value)
        if _is_code(match, value[:_READ_MAX], end):
            return None
        if len(value) < _LENGTH_MIN:
            end = _line_end(match, end)
            value = match.string[start:end]
    value = value[:_READ_MAX]
    if len(value) < _LENGTH_MIN or value.lower() in NO_SECRET or _repeats(name, value):
        return None
    if match["tag"] and not _CLOSING_TAG.match(match.string, _whole_end(match, end)):
        return None
    if trust < _Trust.PASSWORD and _is_description(value):
        return None
    return (start, _whole_end(match, end)) if _is_own(match, value, end, trust, name) else None


_HEX_NUMBER = re.compile(r"0x[0-9A-Fa-f]{1,8}\Z")
_DESCRIPTION_ENDS = words("auth id key keys password passwords secret secrets token tokens type types")


def _is_description(value: str) -> bool:
    """`my-client-secret` and `Ed25519PrivateKey` say what a value is."""
    parts = _name_parts(value)
    return len(parts) > 1 and parts[-1] in _DESCRIPTION_ENDS and _is_wordy(value) and value[-1].isalpha()


def _whole_end(match: re.Match[str], end: int) -> int:
    """Where a value ends that may be longer than what the pattern reads."""
    start, read_to = secret(match)
    rest = _REST[match.lastgroup or ""]
    if read_to - start >= _LENGTH_MAX and (more := rest.match(match.string, read_to)):
        end = more.end()
        while match.lastgroup in {"packed", "loose"} and match.string[end - 1] in _ENDS_A_VALUE:
            end -= 1
    return _line_end(match, end) if match.lastgroup in {"packed", "loose"} else end


_LINE_REST = re.compile(r"[^\s\"'`=:A-Za-z0-9]*+[A-Za-z0-9][^\s\"'`=:]*+(?=[\r\n]|\Z)")
_LINE_START = re.compile(r"(?:(?:export|set|setx|ENV|ARG)[ \t]{1,4}|[-*][ \t]{1,4}|[ \t]{1,32})?[\w.-]*\Z")


def _line_end(match: re.Match[str], end: int) -> int:
    """In a file of `NAME=value` lines the value goes on to the end of its line, also past `;`, `&` and `,`."""
    text, at = match.string, match.start()
    line = text.rfind("\n", max(0, at - 2 * _NAME_LENGTH_MAX), at) + 1
    if not line and at > 2 * _NAME_LENGTH_MAX:
        return end
    rest = _LINE_REST.match(text, end) if _LINE_START.match(text, line, at) else None
    return rest.end() if rest else end


def _repeats(name: list[str], value: str) -> bool:
    """Whether the value only says its name again: `db_password: "dbPassword"`."""
    parts = _name_parts(value)
    return _is_wordy(value) and (set(parts) <= set(name) or "".join(parts) == "".join(name))


_WORDY = re.compile(r"[A-Za-z_.-][\w.-]*\Z", re.ASCII)
_DIGIT_GROUPS = re.compile(r"[0-9]+")
_DIGITS_MAX = 8


def _is_wordy(value: str) -> bool:
    """Whether it is words joined by capitals or signs, with few digits: an identifier."""
    digits = _DIGIT_GROUPS.findall(value)
    letters = [part for part in _NAME_PARTS.findall(value) if len(part) > 1 and part.isalpha()]
    return bool(_WORDY.match(value)) and sum(map(len, digits)) <= _DIGITS_MAX and len(digits) <= len(letters)


_EXPRESSION = re.compile(
    r"(?:await|yield|new|not|typeof|lambda|function|async)\Z|![01]\b|\*[A-Za-z]|[\w$]{1,80}\$[0-9]\Z"
    r"|[A-Za-z_$][\w$.]*+(?:\?\?|\|\||&&|\?\.|[+?|&]\Z)"
    r"|[0-9]{1,2}-[a-z]+\Z"
)
_CONSTANT = re.compile(r"(?=[A-Z0-9_]*(?:PASS|TOKEN|KEY|SECRET))[A-Z][A-Z0-9]*+(?:_[A-Z0-9]++){2,9}\Z")
_CAMEL = re.compile(r"[a-z]++(?:[A-Z][a-z]++){2,8}[0-9]\Z")


def _is_unpacked(match: re.Match[str]) -> bool:
    """`user, password = split`."""
    at = match.start()
    return bool(re.search(r"\w[ \t]*,[ \t]*\Z", match.string[max(0, at - 32) : at]))


def _is_code(match: re.Match[str], value: str, end: int) -> bool:
    """Whether an unquoted value is an expression: `os.environ[…]`, `get_password()`, `self.token`."""
    after = match.string[end : end + 1]
    if CODE.match(value) or after in {"(", "["} or _EXPRESSION.match(value) or _CAMEL.match(value):
        return True
    between = match.string[match.end("name") : match.start(match.lastindex or 0)]
    if "+=" in between or ("=" in between and match["loose"] and _is_unpacked(match)):
        return True
    if match["loose"] and (_is_description(value) or _CONSTANT.match(value)):
        return True
    parts = _name_parts(value)
    names_a_secret = len(parts) > 1 and parts[-1] in NO_SECRET
    if DOTTED.match(value) and (names_a_secret or match["loose"]):
        return True
    return bool(match["packed"] and IDENTIFIER.match(value) and (names_a_secret or after in {")", ",", "."}))


def _is_own(match: re.Match[str], value: str, end: int, trust: _Trust, name: list[str]) -> bool:
    """Whether the name has a value of its own here, rather than a word of the text around it."""
    if trust is _Trust.RANDOM:
        return is_random(value) or _is_short_token(match, value, name)
    if (
        name[-1] in {"authorization", "authorisation"}
        and value.isalpha()
        and len(value) < _LENGTH_MIN_IN_PROSE
    ):
        return False
    if match["comma"]:
        return is_random(value) or (trust is _Trust.PASSWORD and is_mixed(value) and "_" not in value)
    if value.isdigit():
        return trust is _Trust.PASSWORD and _NAMES_OF_CODES.isdisjoint(name)
    is_header = name[0] == "x" and not match["verb"]
    if (match["loose"] or match["verb"] or match["gap"]) and not is_header:
        return _is_own_in_prose(match, value, end, trust)
    return (
        trust >= _Trust.SECRET
        or bool(match["packed"])
        or is_header
        or not PLAIN.match(value.replace("/", "."))
    )


def _is_own_in_prose(match: re.Match[str], value: str, end: int, trust: _Trust) -> bool:
    if not PLAIN.match(value):
        return trust is _Trust.PASSWORD or (len(value) >= _LENGTH_MIN_IN_PROSE and is_mixed(value))
    is_last = match.string[end : end + 1] in {"", "\n", "\r"} and not (match["verb"] or match["gap"])
    return trust is _Trust.PASSWORD and is_last and value.isalpha() and value.islower()


def _is_short_token(match: re.Match[str], value: str, name: list[str]) -> bool:
    """`token=4f2a91bc7` is one although it is short; `key` and `auth` say too little for that."""
    is_exact = match["tag"] or not (match["loose"] or match["comma"]) or len(name) > 1
    is_long_enough = len(value) > _LENGTH_MIN_IN_PROSE and is_mixed(value)
    return bool(is_exact and is_long_enough and name[-1] == "token")


def assignment(stem: str) -> Pattern:
    r"""`name op value` from the telling part of the name on, as code, configuration and prose write it.

    Operators: `=` and its kin (`:=`, `=>`, `?=`, `.=`), `:`, `<-`, the end of an opening tag, `" value=`, a
    comma between two quoted strings, the verbs is, was and to, and the blank after a command's option.
    """
    length = f"{{1,{_LENGTH_MAX}}}"
    scheme = r"(?:(?:Basic|Bearer|Token|Digest|ApiKey|Api-Key|Api-Token|Key|SSWS)[ \t]{1,4})?"
    return Pattern(
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
            \\{{1,3}}["']{scheme}(?P<escaped>[^"'\\\n]{length})
          | "{scheme}(?P<double>(?:[^"\\\n]|\\.){length})
          | '{scheme}(?P<single>(?:[^'\\\n]|\\.){length})
          | `{scheme}(?P<back>[^`\n]{length})
          | {scheme}(?(tight)(?P<packed>[^\s"'`<>&;,\\]{length})|(?P<loose>[^\s"'`<>;,\\]{length}))
        )
        """,
        re.VERBOSE | re.IGNORECASE,
    )
