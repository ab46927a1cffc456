"""Passwords in command lines and in the files of commands: `mysql -p…`, `sshpass -p …`, netrc, PowerShell."""

import re

from memplane.safety.redact.rule import Gate, Pattern, Rule, Span, is_stand_in

_LINE_LENGTH_MAX = 256
_PASSWORD_LENGTH_MIN = 4
_VALUE = r"""["']?(?P<password>[^\s"'<>|;&]{4,}+)"""

_ATTACHED = re.compile(
    r"(?<![\w-])(?:mysql\w{0,10}|mariadb[\w-]{0,10}|7za?|unrar|rar)(?:\.exe)?(?![\w-])[^\n|;&]*\Z",
    re.IGNORECASE,
)
"""Commands whose password follows `-p` without a blank; with one, `-p` asks for it."""
_SPACED = re.compile(
    r"(?<![\w-])(?:sshpass|(?:docker|podman|helm|oc|az|buildah|skopeo|crane|cf|oras)\s(?:[\w-]{1,20}\s){0,3}login"
    r"|mongo\w{0,10}|sqlcmd|bcp|osql|zip|unzip|cqlsh|influx|ldap\w{3,10}|smbclient|rpcclient|xfreerdp|ipmitool"
    r"|clickhouse-client|redis-cli|keytool|jarsigner|vncviewer|nmcli|pg_\w{2,10})(?:\.exe)?(?![\w-])[^\n|;&]*\Z",
    re.IGNORECASE,
)
_NOT_A_PASSWORD = re.compile(r"[0-9]{1,5}(?::[0-9]{1,5})?\Z|[./~]{1,3}[\w./-]*\Z|--?[A-Za-z]")


def _password(match: re.Match[str]) -> Span | None:
    value = match["password"].rstrip(")")
    if len(value) < _PASSWORD_LENGTH_MIN or is_stand_in(value) or _NOT_A_PASSWORD.match(value):
        return None
    start = match.start("password")
    return start, start + len(value)


_NETRC = re.compile(
    r"(?:machine\s{1,8}\S{1,200}|default)\s{1,8}login\s{1,8}\S{1,200}\s{1,8}(?:account\s{1,8}\S{1,100}\s{1,8})?\Z"
)


def _of_netrc(match: re.Match[str]) -> Span | None:
    """The password of a machine's entry, on one line or several."""
    at = match.start()
    return _password(match) if _NETRC.search(match.string, max(0, at - _ENTRY_LENGTH_MAX), at) else None


_ENTRY_LENGTH_MAX = 512


def _of_command(match: re.Match[str]) -> Span | None:
    """The password of an option, if the command before it on the line is known to take one there."""
    text, at = match.string, match.start()
    command = _SPACED if match["gap"] else _ATTACHED
    line = max(text.rfind("\n", max(0, at - _LINE_LENGTH_MAX), at) + 1, at - _LINE_LENGTH_MAX, 0)
    return _password(match) if command.search(text, line, at) else None


def _quoted(match: re.Match[str]) -> Span | None:
    return match.span("password") if _password(match) else None


COMMAND_RULES = (
    Rule(
        "login",
        "Password in an option of a command",
        (" -p",),
        Pattern(rf"""[ ]-[pP](?P<gap>[ \t=]{{1,4}})?{_VALUE}"""),
        _of_command,
        Gate.MIXED,
    ),
    Rule(
        "login",
        "Password of redis-cli",
        (" -a ",),
        Pattern(rf"""[ ]-a(?P<gap>[ \t]{{1,4}}){_VALUE}"""),
        _of_command,
        Gate.MIXED,
        ("redis-cli",),
    ),
    Rule(
        "password",
        "Password in a netrc file",
        ("passw",),
        Pattern(r"(?<=\s)passw(?:or)?d\s{1,8}(?P<password>[^\s\"']{4,}+)", re.IGNORECASE),
        _of_netrc,
        Gate.MIXED,
        ("machine ",),
    ),
    Rule(
        "password",
        "Password given to OpenSSL",
        ("pass:",),
        Pattern(
            r"(?:(?<=-passin )|(?<=-passout )|(?<=-pass )|(?<=-password ))pass:(?P<password>[^\s\"']{4,}+)"
        ),
        _password,
        Gate.MIXED,
    ),
    Rule(
        "password",
        "Secure string in PowerShell",
        ("securestring",),
        Pattern(
            r"""securestring\s{1,4}(?:-string\s{1,4})?(?P<quote>["'])(?P<password>(?:(?!(?P=quote))[^\n]){4,512})(?P=quote)""",
            re.IGNORECASE,
        ),
        _quoted,
        Gate.MIXED,
    ),
)
