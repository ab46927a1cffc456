"""`scripts/house.py` measures the tree it lies in."""

from pathlib import Path

from scripts.house import ROOT, marks_rate, rows_of, table


def test_the_static_part_measures_the_working_tree():
    """
    The rows that need no running program are there, and agree with a plain look at the files.
    """
    rows = rows_of(ROOT, static=True)

    assert rows["files"] == str(len(list(Path(ROOT, "src", "memplane").rglob("*.py"))))
    assert int(rows["top-level units"]) > 10
    assert float(rows["marks per 1,000 words: source"]) >= 0


def test_a_cycle_between_packages_is_found(tmp_path):
    """
    Two packages that import one another are named, and so are two classes with one name.
    """
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text("Nobody tells.\n", "utf-8")
    for unit, other in (("ledger", "safety"), ("safety", "ledger")):
        folder = tmp_path / "src" / "memplane" / unit
        folder.mkdir(parents=True)
        folder.joinpath("__init__.py").write_text(
            f"class Entry:\n    def of(self):\n        from memplane.{other} import Entry\n", "utf-8"
        )

    rows = rows_of(tmp_path, static=True)

    assert rows["package cycles"] == "ledger ↔ safety"
    assert rows["class names used more than once"] == "1 names, 2 classes"
    assert rows["marks per 1,000 words: README and docs"] == "1000.0"


def test_several_revisions_are_columns():
    """
    A row that one of them lacks stays empty there.
    """
    assert table({"old": {"files": "2"}, "new": {"files": "1", "units": "3"}}).splitlines() == [
        "       old  new",
        "files  2    1",
        "units       3",
    ]


def test_marks_are_counted_by_words():
    """
    Marks per 1,000 words, over all texts together.
    """
    assert marks_rate(iter(["Nobody is here today", "a plain sentence of words"])) == "111.1"
