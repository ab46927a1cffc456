"""`memplane tree`: a space as files, from the command line."""


def test_export_edit_import(cli, tmp_path):
    """
    What is exported can be edited by hand and taken in; a dry run only says so.
    """
    cli("store", "preference", "Drinks tea", "--space", "alice")
    place = tmp_path / "tree"
    written = cli("tree", "export", "alice", str(place), "--json").json["written"]
    (path,) = (path for path in written if path.startswith("behavioral/user_"))
    file = place / path
    file.write_text(file.read_text().replace("Drinks tea\n", "Drinks mate\n"))

    refused = cli("tree", "export", "alice", str(place), "--json")
    assert (refused.code, refused.json["kept"][0][0]) == (3, path)
    dry = cli("tree", "import", "alice", str(place), "--dry-run", "--json").json
    assert (dry["taken"], dry["entries"]) == ([path], 1)
    assert cli("tree", "import", "alice", str(place), "--json").json["taken"] == [path]
    assert "entries added" in cli("tree", "import", "alice", str(place)).out
    assert "Drinks mate" in cli("search", "mate", "--space", "alice").out
    assert "written" in cli("tree", "export", "alice", str(place), "--prefix", "claude_memory").out


def test_what_cannot_be_done_is_said(cli, tmp_path):
    """
    A space that is not there, a file that cannot be taken, a folder that is none.
    """
    place = tmp_path / "tree"
    (place / "behavioral").mkdir(parents=True)
    (place / "behavioral" / "a.md").write_bytes(b"\xff")

    assert cli("tree", "export", "nobody", str(place)).code != 0
    rejected = cli("tree", "import", "bob", str(place))
    assert rejected.code == 3
    assert "not UTF-8" in rejected.out
    assert cli("tree", "import", "bob", str(place), "--prefix", "x").code == 1
    assert cli("tree", "import", "bob", str(place), "--space", "alice").code == 1


def test_the_space_is_named_before_the_place_or_by_its_option(cli, tmp_path):
    """
    As with every other command.
    """
    cli("store", "preference", "Drinks tea", "--space", "alice")
    place = str(tmp_path / "tree")

    assert cli("tree", "export", place, "--space", "alice", "--json").json["written"]
    assert cli("tree", "import", place, "--space", "bob", "--json").json["entries"] == 1
    assert cli("tree", "export", "alice", place, "--space", "alice").code == 0
    assert cli("tree", "export", "a", "b", "c").code == 1


def test_an_import_from_where_nothing_is_fails(cli, tmp_path):
    """
    And makes no space.
    """
    imported = cli("tree", "import", "bob", str(tmp_path / "tree"))

    assert imported.code == 1
    assert "is empty" in imported.err
    assert "bob" not in cli("spaces").out
