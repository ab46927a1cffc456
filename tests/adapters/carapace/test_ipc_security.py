"""What the ipc door keeps apart, and keeps to itself. Tests are named after the titles of Carapace's memory-security and
sqlite-injection suites where they restate one."""

import pytest

from ipc_client import contents, failed
from memplane.adapters.carapace.audit import AuditLog
from memplane.adapters.carapace.groups import Groups, check_group, read_identity
from memplane.errors import InvalidRequest, StorageBusy, StorageCorrupt

# ── sqlite-injection, memory-security ────────────────────────────────────────────────────────────────────────────────


HOSTILE = [
    "'; DROP TABLE memory; --",
    "x' UNION SELECT * FROM sqlite_master --",
    "a''b\"\"c",
    "C:\\new\\table",
    "text -- comment /* more */",
    "PRAGMA user_version = 99;",
    '["a","b"]',
]


@pytest.mark.parametrize("text", HOSTILE)
def test_injection_is_only_text(host, text):
    """
    SQL injection through memory content, tags, search query, id and supersedes; PRAGMA injection attempts.
    """
    stored = host.store(text, tags=[text[:50]])

    assert (stored["content"], stored["tags"]) == (text, [text[:50]])
    assert contents(host.result("memory_search", {"tags": [text[:50]]})) == [text]
    assert host.tool("memory_search", {"query": text}).code == 0
    assert host.tool("memory_delete", {"id": text}).stderr["message"] == f'Memory entry "{text}" not found.'
    assert (
        host.tool("memory_store", {"type": "fact", "content": "x", "supersedes": text}).stderr["code"]
        == "HANDLER_ERROR"
    )
    assert len(host.result("memory_search", {})["results"]) == 1


@pytest.mark.parametrize(
    "query",
    [
        'dark" AND (',
        "content:dark",
        "NEAR(dark mode, 5)",
        "dark AND mode",
        "dark OR x",
        "dark NOT mode",
        "dar* dark",
        '"dark mode"',
        "^dark",
        "{dark} (mode)",
    ],
)
def test_fts5_query_syntax_injection(host, query):
    """
    sanitizes …, sanitized query still finds relevant results, raw FTS5 injection with column: syntax does not crash.
    """
    host.store("The user likes dark mode")

    assert len(host.result("memory_search", {"query": query})["results"]) == 1


def test_keyword_stuffing_does_not_produce_relevance_above_one(host):
    """
    FTS5 ranking manipulation resistance.
    """
    host.store("dark " * 400)

    assert host.result("memory_search", {"query": "dark"})["results"][0]["relevance_score"] <= 1


@pytest.mark.parametrize(
    "name", ["..", "../x", "a/b", "a\\b", "a.b", "a b", "", "-admin", "_system", "ä", "a\n"]
)
def test_group_names_are_rejected(name):
    """
    Path traversal in group names: rejects …, empty, starting with hyphen or underscore.
    """
    with pytest.raises(InvalidRequest, match="Only \\[a-zA-Z0-9_-\\] allowed") as caught:
        check_group(name)

    assert str(caught.value).startswith(f'Invalid group name: "{name}".')
    with pytest.raises(InvalidRequest):
        Groups(default=name)
    with pytest.raises(InvalidRequest):
        Groups({b"x": name})


@pytest.mark.parametrize("name", ["main", "Group-1", "a_b", "0"])
def test_accepts_valid_group_names(name):
    """
    SqliteManager accepts valid group names.
    """
    assert check_group(name) == name


@pytest.mark.parametrize(
    ("given", "identity", "group"),
    [
        ("c1=work", b"c1", "work"),
        ("hex:00ff=work", b"\0\xff", "work"),
        ("a=b=work", b"a=b", "work"),
        ("ü=w", "ü".encode(), "w"),
    ],
)
def test_identities_are_read(given, identity, group):
    """
    IDENTITY=GROUP, as text or hexadecimal.
    """
    assert read_identity(given) == (identity, group)


@pytest.mark.parametrize("given", ["", "c1", "=work", "hex:0=work", "hex:=work", "c1=../x", "x" * 256 + "=a"])
def test_identities_that_cannot_be_are_refused(given):
    """
    Said in words.
    """
    with pytest.raises(InvalidRequest):
        read_identity(given)


# ── group isolation ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_entries_stored_under_one_group_are_only_in_that_group(open_host):
    """
    group isolation: no tool, no id and nothing on the wire reaches another group.
    """
    host = open_host(groups=Groups({b"a": "work", b"b": "family"}))
    secret = host.store("Only for work", identity="a")
    claimed = {"group": "work", "source": "container-61", "tenant": "default"}

    for identity in ("b", "other"):
        assert host.tool("memory_search", {}, identity=identity, **claimed).stdout == {"results": []}
        assert host.tool("memory_brief", {}, identity=identity, **claimed).stdout["entry_count"] == 0
        ended = host.tool("memory_delete", {"id": secret["id"]}, identity=identity, **claimed)
        assert ended == failed("HANDLER_ERROR", f'Memory entry "{secret["id"]}" not found.')
        arguments = {"type": "fact", "content": "x", "supersedes": secret["id"]}
        assert host.tool("memory_store", arguments, identity=identity, **claimed).code == 1
    assert contents(host.result("memory_search", {}, identity="a")) == ["Only for work"]


def test_who_is_in_no_group_is_turned_away(open_host, plane):
    """
    With a list and no default, only those on the list are served.
    """
    host = open_host(groups=Groups({b"a": "work"}, default=None))

    ended = host.tool("memory_brief", {}, identity="b")
    assert ended == failed("UNAUTHORIZED", "This connection belongs to no group.", stage=4)
    assert host.tool("memory_brief", {}, identity="a").code == 0
    assert list(plane.spaces()) == ["work"]


# ── trouble ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("error", "code", "retriable"),
    [
        (StorageBusy("/secret/path"), "PLUGIN_UNAVAILABLE", True),
        (StorageCorrupt("/secret/path"), "PLUGIN_ERROR", False),
        (ZeroDivisionError("/secret/path"), "PLUGIN_ERROR", False),
    ],
    ids=["busy", "damaged", "bug"],
)
def test_trouble_of_the_host_is_told_without_its_details(open_host, error, code, retriable):
    """
    The caller learns whether to try again, and nothing about the host.
    """

    class Broken:
        def space(self, *_, **__):
            raise error

    ended = open_host(Broken()).tool("memory_brief", {})
    assert (ended.code, ended.stderr["code"], ended.stderr["retriable"]) == (1, code, retriable)
    assert "secret" not in ended.stderr["message"]


def test_secrets_are_sanitized_in_every_answer(host):
    """
    Sanitizes a successful response payload result; sanitizes error message fields. The placeholder is Carapace's.
    """
    token = "ghp_" + "a1B2c3D4e5" * 4
    stored = host.store(f"Uses {token} or postgres://u:s3cretpw@db/x")
    assert stored["content"] == "Uses [REDACTED] or [REDACTED]"
    for tool in ("memory_search", "memory_brief"):
        assert contents(host.result(tool, {})) == ["Uses [REDACTED] or [REDACTED]"]

    assert (
        host.tool("memory_delete", {"id": token}).stderr["message"] == 'Memory entry "[REDACTED]" not found.'
    )


# ── the audit log ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_request_is_noted_without_its_content(open_host, tmp_path):
    """
    Routed, rejected with stage and reason, handler errors twice, sanitized with paths; never what was said.
    """
    audit = AuditLog(tmp_path / "audit")
    host = open_host(audit=audit, groups=Groups({b"c2": "other"}))
    token = "ghp_" + "a1B2c3D4e5" * 4
    with host.dealer() as dealer:
        correlation = dealer.ask(
            "tool.invoke.memory_store", {"type": "fact", "content": f"Luna {token}", "tags": [token[:50]]}
        )
        dealer.receive()
    host.tool("memory_store", {"type": "nope", "content": "Luna"})
    host.tool("memory_delete", {"id": "mem-nope"})
    host.tool("memory_brief", {}, identity="c2")

    assert [
        (line.seq, line.stage, line.outcome, line.phase, line.reason or (line.error and line.error.message))
        for line in audit.entries("default")
    ] == [
        (1, "route", "routed", None, None),
        (2, "route", "sanitized", None, None),
        (
            3,
            "payload",
            "rejected",
            None,
            "Argument validation failed: /type: must be equal to one of the allowed values",
        ),
        (4, "route", "error", "before_normalization", 'Memory entry "mem-nope" not found.'),
        (5, "route", "error", "after_normalization", 'Memory entry "mem-nope" not found.'),
    ]
    (routed, sanitized) = audit.query("default", correlation=correlation)
    assert (routed.source, routed.topic) == ("container-6331", "tool.invoke.memory_store")
    assert sanitized.field_paths == ("$.result.content", "$.result.tags[0]")
    assert len(audit.entries("other")) == 1
    written = "".join(path.read_text() for path in (tmp_path / "audit").iterdir())
    assert "Luna" not in written
    assert "a1B2c3" not in written
