"""Personal data that a rule or a checksum tells: e-mail addresses, telephone numbers, IBANs and card numbers.

Off by default: nothing in Memplane redacts personal data unless a caller asks for it. Names and postal addresses need a
model and are not found.
"""

import re
from collections.abc import Iterator

from memplane.safety.redact.find import replaced
from memplane.safety.redact.rule import NATIVE, Redacted, SecretFinding, Style

_EMAIL = re.compile(
    r"(?<![\w.%+-])[\w.%+-]{1,64}+@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9-])", re.ASCII
)
_PHONE = re.compile(
    r"(?<![\w+.])(?:\+[1-9](?:[ ().-]{0,2}[0-9]){7,14}|\(?[2-9][0-9]{2}\)?[ .-][0-9]{3}[ .-][0-9]{4}"
    r"|0[1-9][0-9]{1,3}[ /-][0-9]{5,8})(?![\w-])",
    re.ASCII,
)
_IBAN = re.compile(r"(?<![A-Za-z0-9])[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]){11,30}", re.ASCII)
_CARD = re.compile(r"(?<![0-9.-])[3-6][0-9]{3}(?:[ -]?[0-9]){8,14}[0-9](?![0-9-])", re.ASCII)

_IBAN_LENGTHS = {
    **dict.fromkeys(("NO",), 15),
    **dict.fromkeys(("BE",), 16),
    **dict.fromkeys(("DK", "FI", "FO", "GL", "NL"), 18),
    **dict.fromkeys(("MK", "SI"), 19),
    **dict.fromkeys(("AT", "BA", "EE", "KZ", "LT", "LU"), 20),
    **dict.fromkeys(("CH", "HR", "LI", "LV"), 21),
    **dict.fromkeys(("BG", "DE", "GB", "GE", "IE", "ME", "RS"), 22),
    **dict.fromkeys(("AE", "GI", "IL"), 23),
    **dict.fromkeys(("AD", "CZ", "ES", "MD", "PK", "RO", "SA", "SE", "SK", "TN"), 24),
    **dict.fromkeys(("PT",), 25),
    **dict.fromkeys(("IS", "TR"), 26),
    **dict.fromkeys(("FR", "GR", "IT", "MC", "SM"), 27),
    **dict.fromkeys(("AL", "AZ", "CY", "DO", "GT", "HU", "LB", "PL"), 28),
    **dict.fromkeys(("BR", "EG", "QA", "UA"), 29),
    **dict.fromkeys(("JO", "KW", "MU"), 30),
    **dict.fromkeys(("MT",), 31),
}
_CARD_LENGTHS = {
    "34": {15},
    "37": {15},
    "35": {16},
    "30": {14},
    "36": {14},
    "38": {14},
    "4": {13, 16, 19},
    "5": {16},
    "6": {16, 19},
}
"""Lengths by the first digits that brands use."""
_IBAN_MODULUS = 97
_DOUBLED_MAX = 9


def find_personal_data(text: str) -> list[SecretFinding]:
    """E-mail addresses, telephone numbers, IBANs and card numbers of a text, in order and without overlaps."""
    found = [SecretFinding("email", *match.span()) for match in _EMAIL.finditer(text)]
    found += _ibans(text)
    found += [SecretFinding("card", *match.span()) for match in _CARD.finditer(text) if _is_card(match[0])]
    found += [SecretFinding("phone", *match.span()) for match in _PHONE.finditer(text)]
    apart: list[SecretFinding] = []
    for finding in sorted(found, key=lambda one: (one.start, -one.end)):
        if not apart or apart[-1].end <= finding.start:
            apart.append(finding)
    return apart


def _ibans(text: str) -> Iterator[SecretFinding]:
    """The pattern may run into the next number, so each search begins where the last finding ended."""
    at = 0
    while match := _IBAN.search(text, at):
        finding = _iban(match)
        at = finding.end if finding else match.start() + 1
        if finding:
            yield finding


def redact_personal_data(text: str, style: Style = NATIVE) -> Redacted:
    """The text with a placeholder for each finding of `find_personal_data`."""
    return replaced(text, find_personal_data(text), style)


def _iban(match: re.Match[str]) -> SecretFinding | None:
    """As many characters as the country's numbers have, if their checksum holds."""
    length = _IBAN_LENGTHS.get(match[0][:2], 0)
    end, digits = match.start(), ""
    while end < match.end() and len(digits) < length:
        digits += match.string[end].strip()
        end += 1
    if not length or len(digits) < length or match.string[end : end + 1].isalnum():
        return None
    number = int("".join(str(int(character, 36)) for character in digits[4:] + digits[:4]))
    return SecretFinding("iban", match.start(), end) if number % _IBAN_MODULUS == 1 else None


def _is_card(text: str) -> bool:
    """Luhn's checksum; a number of one repeated digit has it too and is none."""
    digits = [int(character) for character in text if character.isdigit()]
    doubled = [2 * digit for digit in digits[-2::-2]]
    total = sum(digits[-1::-2]) + sum(digit - 9 if digit > _DOUBLED_MAX else digit for digit in doubled)
    lengths = _CARD_LENGTHS.get(text[:2]) or _CARD_LENGTHS.get(text[0], set())
    return total % 10 == 0 and len(set(digits)) > 1 and len(digits) in lengths
