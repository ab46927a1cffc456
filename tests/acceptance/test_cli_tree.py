"""`memplane tree`: a space as files, from the command line."""


def test_export_edit_import(inside, tmp_path):
    """
    What is exported can be edited by hand and taken in; a dry run only says so.
    """
    inside("store", "preference", "Drinks tea", "--space", "alice")
    place = tmp_path / "tree"
    written = inside("tree", "export", "alice", str(place), "--json").json["written"]
    (path,) = (path for path in written if path.startswith("behavioral/user_"))
    file = place / path
    file.write_text(file.read_text().replace("Drinks tea\n", "Drinks mate\n"))

    refused = inside("tree", "export", "alice", str(place), "--json")
    assert (refused.code, refused.json["kept"][0][0]) == (3, path)
    dry = inside("tree", "import", "alice", str(place), "--dry-run", "--json").json
    assert (dry["taken"], dry["entries"]) == ([path], 1)
    assert inside("tree", "import", "alice", str(place), "--json").json["taken"] == [path]
    assert "entries added" in inside("tree", "import", "alice", str(place)).out
    assert "Drinks mate" in inside("search", "mate", "--space", "alice").out
    assert "written" in inside("tree", "export", "alice", str(place), "--prefix", "claude_memory").out


def test_what_cannot_be_done_is_said(inside, tmp_path):
    """
    A space that is not there, a file that cannot be taken, a folder that is none.
    """
    place = tmp_path / "tree"
    (place / "behavioral").mkdir(parents=True)
    (place / "behavioral" / "a.md").write_bytes(b"\xff")

    assert inside("tree", "export", "nobody", str(place)).code != 0
    rejected = inside("tree", "import", "bob", str(place))
    assert rejected.code == 3
    assert "not UTF-8" in rejected.out
    assert inside("tree", "import", "bob", str(place), "--prefix", "x").code == 1
    assert inside("tree", "import", "bob", str(place), "--space", "alice").code == 1
