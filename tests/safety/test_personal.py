"""Numbers here are the examples of the standards that define them."""

import time

import pytest

from memplane.safety.redact import find_personal_data, redact, redact_personal_data

FOUND = [
    ("email", "write to ", "bob.smith+x@mail.example.com", "."),
    ("phone", "call ", "+49 30 1234 5678", " today"),
    ("phone", "call ", "(212) 555-0143", "."),
    ("phone", "Tel. ", "030 12345678", ""),
    ("iban", "pay to ", "DE89 3704 0044 0532 0130 00", " AND tell me"),
    ("iban", "IBAN: ", "GB82WEST12345698765432", ","),
    ("iban", "", "NO93 8601 1117 947", "\n"),
    ("card", "my card is ", "4111 1111 1111 1111", ", 12/29"),
    ("card", "", "378282246310005", ""),
]
NOT_FOUND = [
    "DE89 3704 0044 0532 0130 01 has the wrong checksum",
    "4111 1111 1111 1112 too; 0000 0000 0000 0000 is no card",
    "at 2026-03-04T05:06:07Z, version 1.2.3.4, 3,141,592 people, ISBN 978-3-16-148410-0",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b, 192.168.100.200, @bob and a@b",
    "from 2019-2024 we sold 100 200 3000 units",
]


@pytest.mark.parametrize(("type_", "before", "data", "after"), FOUND)
def test_personal_data_is_found_exactly(type_, before, data, after):
    """
    Addresses and numbers are found whole, by their form or by their checksum.
    """
    assert find_personal_data(before + data + after) == [(type_, len(before), len(before + data))]
    assert redact_personal_data(before + data + after).text == f"{before}[REDACTED:{type_}]{after}"


@pytest.mark.parametrize("text", NOT_FOUND)
def test_other_numbers_stay(text):
    """
    A number that fails its checksum, a date, a version or a digest is not personal.
    """
    assert find_personal_data(text) == []


def test_it_is_off_by_default():
    """
    Redaction of secrets leaves personal data alone.
    """
    text = "bob@example.com, +49 30 1234 5678, 4111 1111 1111 1111"

    assert redact(text).text == text


@pytest.mark.parametrize("unit", ["a", "a.", "a@", "1", "1 ", "+1", "DE89 ", "4111 ", "a@a.", "0301 "])
def test_time_grows_with_the_text(unit):
    """
    Four times the text takes about four times as long.
    """

    def seconds(length):
        text = unit * (length // len(unit))
        begin = time.process_time()
        find_personal_data(text)
        return time.process_time() - begin

    short = max(min(seconds(20_000) for _ in range(3)), 0.002)

    assert min(seconds(80_000) for _ in range(3)) < 12 * short
