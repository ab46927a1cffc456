"""A space as a tree of plain files that people and other programs read and write."""

from memplane.sync.tree.names import BEHAVIORAL, CLAUDE, PREFIXES
from memplane.sync.tree.report import TreeReport, WriteReport
from memplane.sync.tree.tree import files_of, import_tree
from memplane.sync.tree.whole import read_tree, write_tree

__all__ = [
    "BEHAVIORAL",
    "CLAUDE",
    "PREFIXES",
    "TreeReport",
    "WriteReport",
    "files_of",
    "import_tree",
    "read_tree",
    "write_tree",
]
