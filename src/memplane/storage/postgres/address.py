"""The address of a database: checked before a server is contacted, and shown without secrets."""

import re
from typing import NamedTuple

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from memplane.errors import SettingsInvalid

ENCODE = "a sign such as @, /, % or a space in a password is written as %40, %2F, %25 or %20"

_PORT_MAX = 65_535
_UNKNOWN = re.compile(r'query parameter: "(\w+)"')
_MISREAD = ("percent-encoded", "unexpected spaces")


class Address(NamedTuple):
    """How to connect, and what may be shown of it."""

    conninfo: str
    where: str
    """Each host and its port; empty if a part of a password may have been parsed as one of them."""


def address_of(url: str) -> Address:
    """Parse an address. Raises `SettingsInvalid` if it is invalid."""
    try:
        named = {name: str(value) for name, value in conninfo_to_dict(url).items()}
    except psycopg.ProgrammingError as exc:
        raise SettingsInvalid(f"data: {_why(url, str(exc))}") from None
    host, port = named.get("host", ""), named.get("port", "")
    if "@" in host[1:]:  # the first sign of an abstract socket may be one
        raise SettingsInvalid(f"data: the address of the database has an @ too many; {ENCODE}")
    astray = "@" in named.get("dbname", "")
    if not all(it == "" or (it.isdecimal() and 0 < int(it) <= _PORT_MAX) for it in port.split(",")):
        hint = f"; {ENCODE}" if astray else ""
        raise SettingsInvalid(
            f"data: the address of the database has a port that there is not; it is a number up to 65535{hint}"
        )
    if not named.get("connect_timeout", "1").strip().isdecimal():
        raise SettingsInvalid("data: connect_timeout in the address of the database is no number of seconds")
    conninfo = make_conninfo(**{"application_name": "memplane", "connect_timeout": "10", **named})
    return Address(conninfo, "" if astray else _where(host or named.get("hostaddr", ""), port))


def _why(url: str, said: str) -> str:
    """Our own message: that of the library repeats parts of the address."""
    unknown = _UNKNOWN.search(said)
    if unknown is not None and "@" not in url.partition("?")[2]:
        return f"the address of the database has a parameter {unknown[1]!r} that there is not; leave it out"
    if any(words in said for words in _MISREAD):
        return f"the address of the database cannot be read; {ENCODE}"
    return f"this is no address of a database; write postgresql://user@host/name ({ENCODE})"


def _where(hosts: str, ports: str) -> str:
    """The hosts and ports; as in the library, missing parts come from the environment."""
    defaults = {it.keyword: (it.val or b"").decode() for it in psycopg.pq.Conninfo.get_defaults()}
    names = (hosts or defaults.get(b"host", "") or "this machine").split(",")
    usual = defaults.get(b"port", "")
    numbers = [number or usual for number in ports.split(",")]
    numbers = numbers * len(names) if len(numbers) == 1 else numbers
    shown = (f"[{name}]" if ":" in name else name for name in names)
    return ", ".join(f"{name}:{number}" for name, number in zip(shown, numbers, strict=False))
