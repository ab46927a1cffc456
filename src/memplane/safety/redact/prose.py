# ruff: noqa: RUF001 - words and punctuation of many scripts
"""Secrets that a person tells in a sentence, with or without a separator, in many languages.

A word such as "password" or "Schlüssel" says that a secret may follow, and the value itself must look like one: letters
with digits or signs for a password, a random string for a key or a token.
"""

import re

from memplane.safety.redact.names import KEYS_NOT_SECRET, NEVER_SECRET
from memplane.safety.redact.rule import (
    PATH,
    SWITCH,
    Check,
    Gate,
    Pattern,
    Rule,
    Span,
    is_mixed,
    is_random,
    is_stand_in,
    words,
)

_VALUE = r"""["'`“”„«「『(]?(?P<value>[!#$%&()*+,\-./0-9:;=?@A-Z\[\]^_a-z{|}~]{4,}+)"""
"""Passwords are typed on any keyboard, so they are ASCII; in many scripts that is also where the value ends."""
_VERBS = (
    "is was are lautet ist heißt heisst war wurde est était sera es era será fue é foi è sarà het luidt jest brzmi to "
    "są je bylo bude olarak är var er oli là adalah ialah este"
)
_VERB = (
    rf"(?:{'|'.join(sorted((set(_VERBS.split()) - {'to'}), key=len, reverse=True))}"
    r"|(?:changed|set|reset|updated|switched)[ \t]{1,3}to)"
    r"(?:[ \t]{1,3}(?:now|set|to|currently|still|changed|jetzt|nun|ahora|maintenant|agora|adesso|nu|teraz|artık)){0,3}"
)
_ABOUT = r"(?:[ \t]{1,3}[^\W\d_][\w'’.@/&-]{0,30}){0,5}?"
_SIGN = r"(?:[ \t]{0,3}[:：]|[ \t]{1,3}(?:->|→|[–—-]))[ \t]{1,3}"
_JOIN = (
    rf"(?:(?P<about>{_ABOUT})(?:{_SIGN}|[ \t]{{1,3}}{_VERB}[ \t]{{0,2}}:?[ \t]{{1,3}})"
    r"|(?P<bare>[ \t]{1,3}))"
)

_SIGNS = re.compile(r"[!@#$%^&*+=~?]")
_ORDINARY = re.compile(
    r"[0-9]{1,4}(?:st|nd|rd|th|s|x|k|m|h|d|w|y|am|pm|gb|mb|kb|px|ms|min|mins|hrs?|days?|chars?|digits?|bits?|bytes?|%|\+)\Z"
    r"|[0-9][0-9.,:/+-]*(?:am|pm)?\Z|v?[0-9]+(?:\.[0-9]+)+[a-z]{0,3}[0-9]*\Z"
    r"|[0-9]{1,3}-?[a-z]{2,}(?:-[a-z]+)*\Z|[a-z]+-[0-9]+(?:-[a-z]+)*\Z"
    r"|(?:sha|md|base|utf|iso|aes|rsa|bcrypt|scrypt|argon|oauth|http|ipv|mp|h|web|log|s)-?[0-9]{1,4}(?![A-Za-z0-9]).*\Z"
    r"|(?:1password|lastpass|bitwarden|keepass)\w*\Z|[A-Za-z]:[\\/]|(?:https?|ftp|mailto):|www\.|[\w.+-]+@[\w-]+\.[A-Za-z]{2,}\Z|@\w+\Z|#\w+\Z"
    r"|[\w-]+(?:\.[\w-]+)*\(|[\w.-]+\.[a-z]{2,4}\Z",
    re.IGNORECASE,
)
_CODE = re.compile(r"[A-Za-z_$][\w.$]*[(\[]|[A-Za-z_]\w*=|[({\[$]|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+\Z")
_ENDS = ".,:;)]}"
_READ_MAX = 128
"""What a value is judged by."""
_PASSWORD_LENGTH_MIN, _BARE_LENGTH_MIN = 6, 8
_BARE_SWITCHES_MIN = 2


def _is_password(value: str, *, bare: bool) -> bool:
    """Letters with digits; without a verb or a sign before it, more than a word with a number."""
    if len(value) < _PASSWORD_LENGTH_MIN or not is_mixed(value) or _ORDINARY.match(value):
        return False
    if is_stand_in(value) or PATH.match(value) or _CODE.match(value):
        return False
    if not bare:
        return True
    is_odd = len(SWITCH.findall(value)) >= _BARE_SWITCHES_MIN or _SIGNS.search(value, 0, len(value) - 1)
    return len(value) >= _BARE_LENGTH_MIN and bool(is_odd)


def _trimmed(match: re.Match[str]) -> Span:
    """The value without what ends a sentence; a bracket that opens inside the value closes inside it too."""
    start, end = match.span("value")
    text = match.string
    ends = text[max(start, end - _READ_MAX) : end]
    kept = ends.rstrip(_ENDS)
    opened = sum(ends.count(bracket) for bracket in "([{")
    while opened and len(kept) < len(ends) and ends[len(kept)] in ")]}":
        kept += ends[len(kept)]
        opened -= 1
    return start, end - (len(ends) - len(kept))


_VERB_FORMS = words("pass passe passes")
"""Also verbs: "pass x=1" says nothing about a password."""


def _password(match: re.Match[str]) -> Span | None:
    start, end = _trimmed(match)
    if match["bare"] and match["word"].lower() in _VERB_FORMS:
        return None
    value = match.string[start : min(end, start + _READ_MAX)]
    return (start, end) if _is_password(value, bare=bool(match["bare"])) else None


def _foreign_password(match: re.Match[str]) -> Span | None:
    start, end = _trimmed(match)
    return (
        (start, end) if _is_password(match.string[start : min(end, start + _READ_MAX)], bare=False) else None
    )


_WORD_BEFORE = re.compile(r"([A-Za-z]+)[ _-]?\Z")
_NOT_KEYS = (
    KEYS_NOT_SECRET - words("the a this")
    | NEVER_SECRET
    | words("commit digest checksum node entry etag shard")
)


def _random_value(match: re.Match[str]) -> Span | None:
    """A key or a token in a sentence is random, and no key of a table or a cache."""
    start, end = _trimmed(match)
    value = match.string[start : min(end, start + _READ_MAX)]
    before = _WORD_BEFORE.search(match.string, max(0, match.start() - 24), match.start())
    if before and before[1].lower() in _NOT_KEYS:
        return None
    is_token = (
        is_random(value) and not is_stand_in(value) and not PATH.match(value) and not _ORDINARY.match(value)
    )
    return (start, end) if is_token and not set(value) & set("()[]{},;") else None


_EDGE = r"(?<![A-Za-z0-9_])"


def _latin(
    type: str, what: str, stems: dict[str, str], check: Check, gate: Gate = Gate.MIXED, *, tight: str = ""
) -> Rule:
    """A rule for words in Latin script: hint → pattern of the word that starts there. `tight` is one more way to join."""
    word = "|".join(stems.values())
    pattern = Pattern(rf"(?P<word>{word})(?:{_JOIN}{tight}){_VALUE}", re.IGNORECASE)
    return Rule(type, what, tuple(stems), pattern, check, gate)


_PASSWORD_WORDS = {
    "pass": rf"{_EDGE}pass(?:word|wort|wd|phrase|code|e)?s?",
    "pw": rf"{_EDGE}pwd?",
}
_PASSWORD_WORDS_ELSEWHERE = {
    "kennwort": "kennwort",
    "senha": "senha",
    "contrase": "contrase(?:ñ|n|nh)a",
    "clave": rf"{_EDGE}clave",
    "wachtwoord": "wachtwoord",
    "parol": rf"{_EDGE}parol[ae]?",
    "ifre": "(?<=[sşSŞ])ifre(?:si|m|niz|n)?",
    "heslo": rf"{_EDGE}heslo",
    "haslo": rf"{_EDGE}haslo",
}
"""Hint → word. German, Portuguese, Spanish, Dutch, Italian, Romanian, Turkish, Czech, Polish; French and English are
above: mot de passe."""

_KEY_WORDS = {
    "key": rf"{_EDGE}key",
    "token": rf"{_EDGE}token",
    "secret": rf"{_EDGE}secret",
    "schl": "schl(?:ü|ue)ssel",
    "chave": rf"{_EDGE}chave",
    "chiave": rf"{_EDGE}chiave",
    "clave": rf"{_EDGE}clave",
    "llave": rf"{_EDGE}llave",
    "jeton": rf"{_EDGE}jeton",
    "sleutel": "sleutel",
    "klucz": rf"{_EDGE}klucz",
    "anahtar": rf"{_EDGE}anahtar[ıi]?",
}

_ACCENTED_PASSWORD_WORDS = {
    "lösenord": "lösenord(?:et)?",
    "hasło": "hasło",
    "jelszó": "jelszó",
    "jelszav": "jelszav[ao]m?",
    "mật khẩu": "mật khẩu",
}
_ACCENTED_KEY_WORDS = {"clé": rf"{_EDGE}clés?"}

_OTHER_PASSWORD_WORDS = words(
    "пароль пароля паролем 密码 密碼 口令 パスワード 暗証番号 비밀번호 암호 패스워드 पासवर्ड סיסמה סיסמא κωδικός รหัสผ่าน"
) | {"كلمة المرور", "كلمة السر", "رمز عبور"}
_OTHER_KEY_WORDS = words("ключ токен 密钥 密鑰 令牌 キー トークン 토큰 키 مفتاح κλειδί")
_LETTERS = r"[^\x00-\x7f。？！…「」『』]"
_GAP = (
    rf"(?:{_LETTERS}{{0,12}}+(?:[ \t:：=-]{{1,3}}{_LETTERS}{{1,16}}+){{0,6}}[ \t:：=–—-]{{0,3}}+"
    rf"|{_ABOUT}[ \t]{{0,2}}[:：=–—-][ \t]{{1,2}})"
)
"""The rest of the phrase: words in the same script, blanks and a separator. The end of a sentence ends it."""


def _other_script(type: str, what: str, stems: frozenset[str], check: Check) -> Rule:
    word = "|".join(map(re.escape, sorted(stems, key=len, reverse=True)))
    pattern = Pattern(rf"(?:{word}){_GAP}{_VALUE}", re.IGNORECASE)
    return Rule(type, what, tuple(sorted(stems)), pattern, check, Gate.FOREIGN)


def _foreign_random(match: re.Match[str]) -> Span | None:
    start, end = _trimmed(match)
    value = match.string[start : min(end, start + _READ_MAX)]
    return (start, end) if is_random(value) and not is_stand_in(value) and not PATH.match(value) else None


PROSE_RULES = (
    _latin("password", "Password in a sentence", _PASSWORD_WORDS, _password),
    _latin("password", "Password in a sentence", _PASSWORD_WORDS_ELSEWHERE, _password, tight="|[:=：]"),
    _latin(
        "password",
        "Password in a sentence",
        _ACCENTED_PASSWORD_WORDS,
        _password,
        Gate.FOREIGN,
        tight="|[:=：]",
    ),
    _latin("token", "Random key or token in a sentence", _KEY_WORDS, _random_value),
    _latin("token", "Random key or token in a sentence", _ACCENTED_KEY_WORDS, _random_value, Gate.FOREIGN),
    _other_script("password", "Password in another script", _OTHER_PASSWORD_WORDS, _foreign_password),
    _other_script("token", "Random key or token in another script", _OTHER_KEY_WORDS, _foreign_random),
)
