"""The rule table: formats first, then names, then prose, so that a tie goes to what says more."""

import re
from typing import Final

from memplane.safety.redact.commands import COMMAND_RULES
from memplane.safety.redact.formats import LEFT, format_rules
from memplane.safety.redact.names import (
    TrustOf,
    assignment,
    named,
    trust_authorization,
    trust_credentials,
    trust_key,
    trust_password,
    trust_secret,
    trust_token,
)
from memplane.safety.redact.prose import PROSE_RULES
from memplane.safety.redact.rule import (
    Gate,
    Pattern,
    Rule,
    basic,
    bearer,
    cookie,
    database_password,
    encoded_text,
    key_block,
    login,
    real,
    real_block,
    url_password,
    url_token,
    with_digit,
)

_NAMES: tuple[tuple[str, str, str, TrustOf, Gate], ...] = (
    ("password", "Value of a name that ends in password, passphrase, …", "pass", trust_password, Gate.OPEN),
    ("password", "Value of a name that ends in pwd", "pwd", trust_password, Gate.OPERATOR),
    ("secret", "Value of a name that ends in secret", "secret", trust_secret, Gate.OPERATOR),
    (
        "api-key",
        "Value of an API key, an access key, …; random one of another",
        "key",
        trust_key,
        Gate.OPERATOR,
    ),
    ("token", "Value of an access token, …; random one of another", "token", trust_token, Gate.OPERATOR),
    ("authorization", "Value of an Authorization header", "auth", trust_authorization, Gate.OPERATOR),
    ("credentials", "Random value of a name that ends in credentials", "cred", trust_credentials, Gate.TEXT),
)

_DATABASES = (
    "postgres postgresql mysql mariadb mongodb mongodb+srv redis rediss amqp amqps mssql sqlserver clickhouse"
)
_AFTER_DATABASE = "|".join(f"(?<=(?i:{re.escape(name)}))" for name in _DATABASES.split())

RULES: Final[tuple[Rule, ...]] = (
    Rule(
        "private-key",
        "PEM, OpenSSH, SSH2 or PGP private key: the whole block, to the end of the text if it is not closed",
        ("---- begin", "-----begin"),
        Pattern(
            r"(?:-----|---- )BEGIN\s{1,4}(?:[A-Z0-9]{1,12}\s{1,4}){0,3}PRIVATE\s{1,4}KEY(?:\s{1,4}BLOCK)?(?:-----| ----)"
            r"(?P<body>(?s:.)*?)(?:(?P<closed>(?:-----|---- )END\s[A-Z0-9 ]{0,40}"
            r"PRIVATE\s{1,4}KEY(?:\s{1,4}BLOCK)?(?:-----| ----))|\Z)"
        ),
        key_block,
        Gate.TEXT,
    ),
    Rule(
        "private-key",
        "PuTTY private key: the whole file, to the end of the text if it is cut off",
        ("putty-user-key-file-",),
        Pattern(r"PuTTY-User-Key-File-[0-9]: (?s:.)*?(?:Private-MAC: [0-9a-f]{32,}+|\Z)"),
        real_block,
        Gate.TEXT,
    ),
    Rule(
        "private-key",
        "Private part of a JSON Web Key",
        ('"d"', '"k"'),
        Pattern(r'''"[dk]"\s{0,4}:\s{0,4}"([\w-]{20,}+)"''', re.ASCII),
        with_digit,
        Gate.TEXT,
        ('"kty"',),
    ),
    Rule(
        "private-key",
        "Private part of an RSA key in XML",
        ("<d>", "<p>", "<q>", "<dp>", "<dq>", "<inverseq>"),
        Pattern(r"<(?:D|P|Q|DP|DQ|InverseQ)>\s{0,16}([A-Za-z0-9+/]{20,}+={0,2})\s{0,16}</"),
        with_digit,
        Gate.TEXT,
        ("<rsakeyvalue",),
    ),
    Rule(
        "anthropic-key",
        "Anthropic key",
        ("sk-",),
        Pattern(rf"{LEFT}(sk-ant-[\w-]{{8,}}+)", re.ASCII),
        real,
        Gate.OPEN,
    ),
    *format_rules(),
    Rule(
        "aws-secret-key",
        "AWS secret access key, by its name",
        ("secret_access_key", "secretaccesskey", "aws_secret"),
        Pattern(
            r"""[A-Za-z_]{8,24}["'\]\s]{0,3}[:=]{1,2}>?\s{0,4}["']?([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])"""
        ),
        with_digit,
        Gate.TEXT,
    ),
    Rule(
        "sk-key",
        "Key in the `sk-` form of OpenAI and those who followed it",
        ("sk-",),
        Pattern(
            rf"{LEFT}(sk-(?!ssh-ed|ecdsa-sha|(?:learn|image|prefix(?:ed)?|based|style|format)(?!\w))[\w-]{{6,}}+)",
            re.ASCII,
        ),
        real,
        Gate.OPEN,
    ),
    Rule(
        "sk-key",
        "Key in the `sk_`, `pk_` or `pk-` form",
        ("sk_", "pk_", "pk-"),
        Pattern(rf"{LEFT}((?:[sp]k_|pk-)[A-Za-z0-9]{{8,}}+)(?!\w)", re.ASCII),
        with_digit,
    ),
    Rule(
        "connection-string",
        "Password in the address of a database or a queue",
        ("://",),
        Pattern(
            rf"(?:{_AFTER_DATABASE})://(?P<user>[^\s:/@\"'<>`]{{0,256}}):"
            r"(?P<password>[^\s/\"'<>`]{1,4096})@(?=[^\s@/])"
        ),
        database_password,
        Gate.OPERATOR,
        ("@",),
    ),
    Rule(
        "url-credentials",
        "Password in any other address",
        ("://",),
        Pattern(
            r"(?<=[A-Za-z0-9])://(?P<user>[^\s:/?#@\"'<>`]{0,4096}):"
            r"(?P<password>[^\s/?#\"'<>`]{1,4096})@(?=[^\s@/])"
        ),
        url_password,
        Gate.OPERATOR,
        ("@",),
    ),
    Rule(
        "url-credentials",
        "Token instead of user and password",
        ("://",),
        Pattern(r"(?<=[A-Za-z0-9])://(?P<user>[^\s:/?#@\"'<>`]{16,4096}+):?@(?=[^\s@/])"),
        url_token,
        Gate.TEXT,
        ("@",),
    ),
    Rule(
        "bearer-token",
        "What follows the word Bearer, unless it is a word too",
        ("bearer",),
        Pattern(r"(?<![A-Za-z0-9])(?i:bearer)\s{1,8}([A-Za-z0-9._~+/=:-]{6,})"),
        bearer,
        Gate.OPEN,
    ),
    Rule(
        "basic-credentials",
        "What follows the word Basic, if it decodes to user and password",
        ("basic ",),
        Pattern(r"(?<![A-Za-z0-9])(?i:basic)[ ]{1,4}([A-Za-z0-9+/]{8,}+={0,2})"),
        basic,
        Gate.TEXT,
    ),
    Rule(
        "login",
        "Password in curl's `-u user:password`",
        ("-u", "--user"),
        Pattern(
            r"""(?<![A-Za-z0-9-])-(?:u|-user)(?:[ \t]{1,4}|=)["']?(?P<user>[^\s:"'<>]{0,128})["']?:"""
            r"""["']?(?P<password>[^\s"'<>]*+)"""
        ),
        login,
        Gate.OPERATOR,
        ("curl",),
    ),
    Rule(
        "login",
        "Bundler's credentials for a gem server",
        ("bundle_",),
        Pattern(
            r"""BUNDLE_[A-Z0-9_]{2,64}["']?\s{0,4}[:=]\s{0,4}["']?(?P<user>[^\s:"']{1,64}):"""
            r"""(?P<password>[^\s"'/]++)"""
        ),
        login,
        Gate.TEXT,
    ),
    Rule(
        "kubernetes-secret",
        "Value in a Kubernetes Secret, in base64",
        (":",),
        Pattern(r""":[ \t]{1,4}["']?([A-Za-z0-9+/]{8,}+={0,2})["']?[ \t]{0,4}(?=[,}\r\n]|\Z)"""),
        encoded_text,
        Gate.TEXT,
        ("kind: secret", 'kind: "secret', "kind: 'secret", '"kind": "secret', '"kind":"secret'),
    ),
    Rule(
        "cookie",
        "Random value of a cookie",
        ("=",),
        Pattern(r"""(?<=[\w.-])=["']?([^\s;,"'\\<>]{12,}+)"""),
        cookie,
        Gate.TEXT,
        ("cookie",),
    ),
    *COMMAND_RULES,
    *(
        Rule(type, what, (stem,), assignment(stem), named(trust), gate)
        for type, what, stem, trust, gate in _NAMES
    ),
    *PROSE_RULES,
)
