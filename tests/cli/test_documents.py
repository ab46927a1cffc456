"""`memplane document` and `memplane collection`."""

import json

MANUAL = "# Manual\n\nTo install it, run make.\n\n## Use\n\nOpen the lid and pour water in.\n"


def answer(done):
    assert done.code == 0, done.err
    return json.loads(done.out)


def test_a_document_from_upload_to_deletion(cli, tmp_path):
    """
    Uploaded from a file, listed, shown in sections and as text, found, and forgotten with a receipt.
    """
    file = tmp_path / "manual.md"
    file.write_text(MANUAL, encoding="utf-8")

    kept = answer(cli("document", "upload", str(file), "--id", "m", "--project", "kitchen", "--json"))
    listed = answer(cli("document", "list", "--json"))
    shown = answer(cli("document", "show", "m", "--json"))
    text = cli("document", "show", "m", "--text")
    gone = answer(cli("document", "delete", "m", "--json"))

    assert (kept["id"], kept["name"], kept["project"]) == ("m", "manual.md", "kitchen")
    assert [one["id"] for one in listed["documents"]] == ["m"]
    assert listed["total"] == 1
    assert [section["title"] for section in shown["sections"]] == ["Manual", "Use"]
    assert text.out.rstrip("\n") == MANUAL.rstrip("\n")
    assert gone["counts"]["documents"] == 1
    assert answer(cli("document", "list", "--json"))["documents"] == []


def test_a_document_from_stdin_needs_a_name(cli):
    """
    Without one it is refused, with one it is kept.
    """
    refused = cli("document", "upload", "-", stdin="text")

    assert refused.code == 2
    assert "--name" in refused.err
    assert answer(cli("document", "upload", "-", "--name", "n", "--json", stdin="text"))["name"] == "n"


def test_collections_hold_documents(cli):
    """
    In an order, given up without their documents.
    """
    made = answer(cli("collection", "create", "Guides", "--id", "g", "--ordered", "--json"))
    for position, name in ((2, "b"), (1, "a")):
        cli(
            "document", "upload", "-", "--name", name, "--id", name,
            "--collection", "g", "--position", str(position), stdin=f"text {name}",
        )  # fmt: skip
    in_order = answer(cli("document", "list", "--collection", "g", "--json"))
    cli("collection", "remove", "g", "a")
    cli("collection", "add", "g", "a", "--position", "9")
    moved = answer(cli("document", "list", "--collection", "g", "--json"))
    listed = answer(cli("collection", "list", "--json"))
    tables = cli("collection", "list").out + cli("document", "list").out + cli("document", "show", "a").out
    not_in_it = cli("collection", "remove", "g", "c")
    given_up = cli("collection", "delete", "g")

    assert made["ordered"] is True
    assert [one["id"] for one in in_order["documents"]] == ["a", "b"]
    assert [one["id"] for one in moved["documents"]] == ["b", "a"]
    assert [one["documents"] for one in listed["collections"]] == [2]
    assert "None" not in tables
    assert "no document 'c' in collection 'g'" in not_in_it.err
    assert given_up.code == 0
    assert answer(cli("document", "list", "--json"))["total"] == 2


def test_what_is_not_there_is_told(cli, tmp_path):
    """
    A file, a document, a collection: one line that says so, and an exit code.
    """
    cli("retain", "hello")
    for arguments in (
        ("document", "upload", str(tmp_path / "nowhere.md")),
        ("document", "show", "nowhere"),
        ("collection", "delete", "nowhere"),
        ("document", "list", "--collection", "nowhere"),
    ):
        done = cli(*arguments)
        assert done.code != 0
        assert "nowhere" in done.err
        assert len(done.err.splitlines()) == 1
