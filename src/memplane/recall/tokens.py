"""How many tokens a text costs a model, estimated without a tokenizer.

Models split text differently, and Memplane does not know which model reads it. The estimate is the mean of six current
tokenizers. A line is cut into pieces (words, digits, signs, runs of one script), and each kind of piece has a price fitted
by `benchmarks/token_prices.py`; docs/internals/tokens.md has the errors.
"""

import re
from collections.abc import Iterator, Mapping

PRICES: Mapping[str, tuple[float, float]] = {
    "a": (0.96, 0.00),
    "Aa": (0.63, 0.42),
    "a*": (1.03, 0.09),
    "Aa*": (1.41, 0.23),
    "A": (1.97, 0.02),
    ".": (0.94, 0.00),
    " ": (0.33, 0.00),
    "?": (2.02, 0.30),
    "…": (0.00, 0.30),
    "é": (0.61, 0.30),
    "ł": (1.61, 0.30),
    "λ": (1.03, 0.41),
    "ї": (1.18, 0.30),
    "ж": (1.74, 0.00),
    "ש": (0.68, 0.56),
    "ع": (1.80, 0.00),
    "ह": (0.83, 0.49),
    "ব": (1.21, 0.60),
    "ก": (0.91, 0.41),
    "☺": (2.38, 0.30),
    "。": (0.56, 0.30),
    "あ": (0.05, 0.38),
    "中": (2.55, 0.47),
    "가": (1.51, 0.30),
}
"""Tokens of a piece by its kind, and of each further character; of Latin words, of each after the fourth."""

_WORD, _NAME, _CAPITALS, _DIGITS, _SIGNS, _SPACES = "a", "Aa", "A", "0", ".", " "
_FOREIGN = "*"
"""Marks words and names in a line of another language than English."""
_LATIN_CHARS = 4
_VIETNAMESE = "ế"
_ACCENTS = {"é": "a", "ł": "a", _VIETNAMESE: "a", "ї": "ж"}
"""Letters of single languages, which make words cost more, and the letter that they count as otherwise. Vietnamese words
are short and have many of them; there they cost nothing."""

_SCRIPTS = (
    (0x00A0, 0x00BF, "…"),
    (0x00C0, 0x00FF, "é"),
    (0x0100, 0x024F, "ł"),
    (0x0300, 0x036F, "ł"),
    (0x0370, 0x03FF, "λ"),
    (0x0404, 0x0407, "ї"),
    (0x0454, 0x0457, "ї"),
    (0x0490, 0x0491, "ї"),
    (0x0400, 0x052F, "ж"),
    (0x0590, 0x05FF, "ש"),
    (0x0600, 0x06FF, "ع"),
    (0x0900, 0x097F, "ह"),
    (0x0980, 0x09FF, "ব"),
    (0x0E00, 0x0E7F, "ก"),
    (0x1E00, 0x1EFF, "ế"),
    (0x2000, 0x206F, "…"),
    (0x2190, 0x2BFF, "☺"),
    (0x3000, 0x303F, "。"),
    (0x3040, 0x30FF, "あ"),
    (0x3400, 0x9FFF, "中"),
    (0xAC00, 0xD7AF, "가"),
    (0xFE00, 0xFE0F, "…"),
    (0xFF00, 0xFFEF, "。"),
    (0x1F000, 0x1FAFF, "☺"),
)
"""One character stands for a whole script; the first range that matches counts. Letters that one language has and its
neighbours have not (Ukrainian, Polish, Vietnamese) make words longer in tokens, so they have prices of their own."""
_OTHER = "?"
_BLANK = " \t\r"
_LATIN_PIECES = r"aa{0,39}|\.\.{0,39}|Aa{1,39}|AA{0,39}|00{0,39}| 00{0,39}| {2,40}|\?"
"""Each begins with one character, because such alternatives are much faster to rule out."""
_PIECE_ASCII = re.compile(_LATIN_PIECES)
_PIECE = re.compile(
    rf"{_LATIN_PIECES}|中中{{0,39}}|ああ{{0,39}}|가가{{0,39}}|жж{{0,39}}|عع{{0,39}}|हह{{0,39}}|שש{{0,39}}|λλ{{0,39}}|বব{{0,39}}"
    r"|กก{0,39}|[…。☺]"
)
LINE_END = re.compile(r"\n+")

_ENGLISH = frozenset(
    [
        "the",
        "and",
        "of",
        "to",
        "it",
        "you",
        "that",
        "for",
        "are",
        "with",
        "she",
        "they",
        "this",
        "have",
        "be",
        "at",
        "my",
        "your",
        "not",
        "but",
        "what",
        "all",
        "if",
        "or",
        "an",
        "by",
        "from",
        "will",
        "just",
        "about",
        "out",
        "up",
        "when",
        "how",
        "who",
        "which",
        "there",
        "would",
        "like",
        "more",
        "some",
        "their",
        "them",
        "our",
        "been",
        "were",
        "did",
        "get",
        "know",
        "time",
        "good",
        "new",
        "i'm",
        "i've",
        "it's",
        "don't",
        "that's",
        "her",
        "his",
        "can",
        "does",
    ]
)
_OTHER_LATIN = (
    frozenset(
        [
            "der",
            "das",
            "und",
            "ist",
            "nicht",
            "ich",
            "zu",
            "mit",
            "ein",
            "eine",
            "einen",
            "von",
            "auch",
            "wie",
            "wir",
            "sie",
            "es",
            "haben",
            "kann",
            "für",
            "auf",
            "dem",
            "des",
            "du",
            "mir",
            "mich",
            "aber",
            "sind",
            "wenn",
            "oder",
            "im",
            "bei",
            "nach",
            "noch",
            "nur",
            "zum",
            "zur",
            "mein",
            "meine",
            "le",
            "les",
            "et",
            "est",
            "que",
            "pas",
            "pour",
            "dans",
            "un",
            "une",
            "au",
            "sur",
            "avec",
            "je",
            "vous",
            "nous",
            "qui",
            "ce",
            "cette",
            "il",
            "elle",
            "ne",
            "se",
            "la",
            "mon",
            "ma",
            "mes",
            "son",
            "ou",
            "mais",
            "el",
            "los",
            "las",
            "por",
            "para",
            "con",
            "una",
            "lo",
            "su",
            "mi",
            "como",
            "pero",
            "muy",
            "del",
            "al",
            "yo",
            "si",
            "de",
            "está",
            "más",
            "em",
            "os",
            "da",
            "na",
            "não",
            "uma",
            "eu",
            "você",
            "meu",
            "minha",
            "com",
            "mais",
            "ao",
            "dos",
            "um",
            "é",
            "che",
            "di",
            "sono",
            "non",
            "ho",
            "ti",
            "gli",
            "della",
            "nel",
            "per",
            "è",
            "mio",
            "mia",
            "più",
            "anche",
            "i",
            "het",
            "een",
            "niet",
            "ik",
            "dat",
            "je",
            "en",
            "op",
            "zijn",
            "voor",
            "ook",
            "maar",
            "wat",
            "wij",
            "hebben",
            "van",
            "te",
            "er",
            "aan",
            "mijn",
            "naar",
            "om",
            "bij",
            "wordt",
            "kan",
            "worden",
            "och",
            "att",
            "det",
            "som",
            "är",
            "jag",
            "på",
            "med",
            "inte",
            "av",
            "till",
            "har",
            "ett",
            "en",
            "för",
            "vi",
            "om",
            "yang",
            "dan",
            "itu",
            "ini",
            "tidak",
            "saya",
            "untuk",
            "dengan",
            "dari",
            "adalah",
            "ada",
            "kamu",
            "anda",
            "akan",
            "atau",
            "dalam",
            "oleh",
            "pada",
            "bisa",
            "ke",
            "di",
            "aku",
            "setiap",
            "hak",
            "orang",
            "dapat",
            "bir",
            "ve",
            "bu",
            "için",
            "ben",
            "sen",
            "ile",
            "çok",
            "nie",
            "się",
            "jest",
            "jak",
            "co",
            "mam",
            "na",
            "do",
            "z",
            "w",
        ]
    )
    - _ENGLISH
    - {"i", "do", "en", "van", "ma", "son", "for", "had", "men"}
)
"""Frequent short words of other languages in Latin letters. Their words cost more than English ones of the same length."""


class _Classes(dict[int, str]):
    """The class of each character: a letter for a Latin letter, 0 for a digit, and so on."""

    def __missing__(self, code: int) -> str:
        found = self[code] = _class_of(code)
        return found


class _Prices(dict[str, int]):
    """Thousandths of a token by piece. There are few different pieces, because a class has one character."""

    def __init__(self, *, foreign: bool) -> None:
        super().__init__()
        self._foreign = foreign

    def __missing__(self, piece: str) -> int:
        kind, further, tokens = measure(piece, foreign=self._foreign)
        first, more = PRICES.get(kind, (0.0, 0.0))
        found = self[piece] = round(1_000 * (tokens + first + further * more))
        return found


def tokens_of(text: str) -> int:
    """An estimate; the estimates of lines add up."""
    if "\n" not in text:
        return _line_tokens(text)
    return sum(map(_line_tokens, text.split("\n"))) + len(LINE_END.findall(text))


def pieces(line: str) -> tuple[list[str], dict[str, int], bool]:
    """The pieces of a line by class, its accented letters by class, and whether its words are of another language than
    English."""
    words = line.lower().split()
    others = len(_OTHER_LATIN.intersection(words))
    foreign = others - len(_ENGLISH.intersection(words)) if others else 0
    if line.isascii():
        return _PIECE_ASCII.findall(line.encode().translate(_ASCII_CLASSES).decode()), {}, foreign > 0
    classes = line.translate(_CLASSES)
    accents = {accent: count for accent in _ACCENTS if (count := classes.count(accent))}
    for accent in accents:
        classes = classes.replace(accent, _ACCENTS[accent])
    priced = {} if _VIETNAMESE in accents else accents
    return _PIECE.findall(classes), priced, foreign > 0 or (foreign == 0 and bool(accents))


def measure(piece: str, *, foreign: bool) -> tuple[str, int, float]:
    """The kind of a piece, how many further characters it has, and the tokens that are known without fitting."""
    kind, length = piece[-1], len(piece)
    if kind in (_WORD, _CAPITALS):
        if kind == _CAPITALS and length > 1:
            return _CAPITALS, length - 1, 0.0
        kind = _NAME if piece[0] == _CAPITALS and length > 1 else _WORD
        return kind + _FOREIGN * foreign, max(0, length - _LATIN_CHARS), 0.0
    if kind == _DIGITS:
        # Three tokenizers group three digits, three have a token for each; a space before a digit is one more.
        digits = length - (piece[0] == " ")
        return _DIGITS, 0, ((digits + 2) // 3 + digits) / 2 + (piece[0] == " ")
    return kind, length - 1, 0.0


def _line_tokens(line: str) -> int:
    if not line.strip(_BLANK):
        return 0
    found, accents, foreign = pieces(line)
    prices = _FOREIGN_PRICES if foreign else _ENGLISH_PRICES
    thousandths = sum(map(prices.__getitem__, found))
    for accent, count in accents.items():
        thousandths += round(1_000 * PRICES[accent][0]) * count
    return max(1, (thousandths + 500) // 1_000)


def _class_of(code: int) -> str:
    character = chr(code)
    if character in _BLANK:
        return " "
    if character.isascii():
        if character.isalpha():
            return _WORD if character.islower() else _CAPITALS
        return _DIGITS if character.isdigit() else _SIGNS if character.isprintable() else _OTHER
    return next((script for first, last, script in _SCRIPTS if first <= code <= last), _OTHER)


def kinds() -> Iterator[str]:
    """Everything that has a price."""
    yield from (_WORD, _NAME, _WORD + _FOREIGN, _NAME + _FOREIGN, _CAPITALS, _SIGNS, _SPACES, _OTHER)
    yield from dict.fromkeys(script for _, _, script in _SCRIPTS if script != _VIETNAMESE)


_CLASSES = _Classes()
_ASCII_CLASSES = "".join(map(_class_of, range(128))).encode() + bytes(range(128, 256))
_ENGLISH_PRICES, _FOREIGN_PRICES = _Prices(foreign=False), _Prices(foreign=True)
