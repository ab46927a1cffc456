"""What reviewers forget: import direction, documentation of every setting and error, sizes, and what must never be
committed."""

import ast
import itertools
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

import memplane
from memplane import errors
from memplane.config import Settings
from memplane.types import Op

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "memplane"

# From the bottom up. A module imports from its own layer or from those below it.
LAYERS = (
    ("errors", "entropy", "moved"),
    ("clock",),
    ("types", "config"),
    ("storage", "models"),
    ("safety",),
    ("ledger",),
    ("telemetry", "extract"),
    ("auth", "documents"),
    ("memory",),
    ("compaction",),
    ("recall",),
    ("worker",),
    ("space",),
    ("engine", "transfer"),
    ("sync",),
    ("main",),
    ("terminal",),
    ("server",),
    ("console",),
    ("adapters",),
    ("cli",),
    ("__init__",),
    ("__main__",),
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}

FILE_LINES_MAX = 700
FUNCTION_LINES_MAX = 70


def modules():
    return sorted(SOURCE.rglob("*.py"))


def module_name(path):
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 2 else parts)


def layer_of(module):
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


@cache
def parsed(path):
    return ast.parse(path.read_text("utf-8"))


def imports_of(path, *, late=True):
    """What a module imports at its top and, unless `late` is off, inside functions."""
    inside = {
        inner
        for node in ast.walk(parsed(path))
        if not late and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for inner in ast.walk(node)
    }
    for node in ast.walk(parsed(path)):
        if node in inside:
            continue
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "memplane":
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "memplane")


def loaded_by(path):
    """What its imports run besides, for a package is run before what is in it; its own packages run already."""
    own = f"{module_name(path)}."
    for name in imports_of(path, late=False):
        for loaded in itertools.accumulate(name.split("."), "{}.{}".format):
            if not own.startswith(f"{loaded}."):
                yield loaded


def tracked_files():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout, so there is no list of tracked files")
    return [ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).is_file()]


def tracked_texts():
    for path in tracked_files():
        try:
            yield path, path.read_text("utf-8")
        except UnicodeDecodeError:
            continue


def test_imports_point_inward():
    """
    No module imports from a layer above its own.
    """
    outward = [
        f"{module_name(path)} imports {name}"
        for path in modules()
        for name in imports_of(path)
        if LEVEL[layer_of(name)] > LEVEL[layer_of(module_name(path))]
    ]

    assert outward == []


def test_no_import_cycles():
    """
    Following imports never leads back to where one started; importing a module also runs the packages around it.
    """
    graph = {module_name(path): set(loaded_by(path)) for path in modules()}

    def reaches(start):
        seen, todo = set(), [start]
        while todo:
            for name in graph.get(todo.pop(), ()):
                if name not in seen:
                    seen.add(name)
                    todo.append(name)
        return seen

    assert [name for name in graph if name in reaches(name)] == []


def test_only_storage_knows_the_database_driver():
    """
    apsw is imported below `storage/` and nowhere else.
    """
    knowing = {
        module_name(path)
        for path in modules()
        if re.search(r"^\s*(import|from) apsw\b", path.read_text("utf-8"), re.MULTILINE)
    }

    assert {name for name in knowing if not name.startswith("memplane.storage")} == set()


# Where others start us: a command, a hook of Claude Code, and EntraBot's programs, which import us and hand nothing down.
ENTRY_POINTS = {
    "__main__.py",
    "adapters/entrabot/environment.py",
    "adapters/entrabot/scripts/hooks/block_local_memory_write.py",
}


def test_only_entry_points_read_the_environment():
    """
    `os.environ` and `os.getenv` stand where others start us and nowhere else.
    """
    reading = {
        path.relative_to(SOURCE).as_posix()
        for path in modules()
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Attribute) and node.attr in {"environ", "getenv"}
    }

    assert reading - ENTRY_POINTS == set()


def test_an_import_inside_a_function_has_a_reason():
    """
    Imports are at the top of a module. One inside a function, for the sake of start-up time, says so in a comment.
    """
    unexplained = [
        f"{module_name(path)}:{inner.lineno}"
        for path in modules()
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for inner in ast.walk(node)
        if isinstance(inner, ast.Import | ast.ImportFrom)
        and "  # " not in path.read_text("utf-8").splitlines()[inner.lineno - 1]
    ]

    assert unexplained == []


def test_every_module_says_what_it_is_for():
    """
    A module that holds code begins with a docstring.
    """
    silent = [
        module_name(path) for path in modules() if (tree := parsed(path)).body and not ast.get_docstring(tree)
    ]

    assert silent == []


def test_files_and_functions_fit_a_reader():
    """
    No file is longer than a sitting, no function longer than a screen.
    """
    long_files = [
        module_name(path) for path in modules() if len(path.read_text("utf-8").splitlines()) > FILE_LINES_MAX
    ]
    long_functions = [
        f"{module_name(path)}.{node.name}"
        for path in modules()
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno >= FUNCTION_LINES_MAX
    ]

    assert (long_files, long_functions) == ([], [])


def test_all_lists_what_is_there():
    """
    `memplane.__all__` is sorted and names only what exists.
    """
    assert sorted(memplane.__all__) == memplane.__all__
    assert [name for name in memplane.__all__ if not hasattr(memplane, name)] == []


def test_every_setting_is_documented():
    """
    Each setting and each environment variable has its line in docs/reference/settings.md.
    """
    page = (ROOT / "docs/reference/settings.md").read_text("utf-8")
    variables = set(re.findall(r"MEMPLANE_[A-Z_]+", (SOURCE / "config.py").read_text("utf-8"))) - {
        "MEMPLANE_"
    }

    assert [name for name in Settings.__struct_fields__ if f"`{name}`" not in page] == []
    assert [name for name in variables if name not in page] == []


def test_every_error_is_documented_and_drawn():
    """
    Each error stands in docs/reference/errors.md with its code, and in the tree at the top of errors.py.
    """
    page = (ROOT / "docs/reference/errors.md").read_text("utf-8")
    classes = [
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, errors.MemplaneError)
    ]

    assert [cls for cls in classes if f"| `{cls.__name__}` | `{cls.code}` |" not in page] == []
    assert [cls for cls in classes if cls.__name__ not in (errors.__doc__ or "")] == []


def test_the_words_are_in_the_glossary():
    """
    docs/glossary.md explains every op of the ledger.
    """
    page = (ROOT / "docs/glossary.md").read_text("utf-8")

    assert [op for op in Op if op not in page] == []


def test_links_in_the_docs_lead_somewhere():
    """
    Every relative link in a tracked Markdown file names a file that is there.
    """
    dead = [
        f"{path.relative_to(ROOT)}: {target}"
        for path, text in tracked_texts()
        if path.suffix == ".md"
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
        if not (path.parent / target).exists()
    ]

    assert dead == []


def test_changelog_files_say_what_kind_of_change_they_are():
    """
    Each file in changelog/unreleased begins with a kind, a colon and a sentence.
    """
    first_lines = {
        path.name: path.read_text("utf-8").splitlines()[0]
        for path in (ROOT / "changelog/unreleased").glob("*.md")
    }

    assert first_lines
    assert {
        name: line
        for name, line in first_lines.items()
        if not re.match(r"(Added|Changed|Fixed|Removed|Security): \S", line)
    } == {}


def test_nothing_tracked_names_a_registry_a_machine_or_a_secret():
    """
    No registry address, absolute path of a machine or credential is committed.
    """
    patterns = [
        r"https?://[\w./-]*(?:pypi|pythonhosted|npmjs|deb\.debian)[\w./-]*",
        r"(?<![\w.])/(?:root|home/\w+|Users/\w+|work)/",
        r"gh[pousr]_[A-Za-z0-9]{36}",
        r"sk-(?:ant|proj)-[A-Za-z0-9_-]{24,}",
        r"AKIA[0-9A-Z]{16}",
    ]
    found = [
        f"{path.relative_to(ROOT)}: {pattern}"
        for (path, text), pattern in itertools.product(tracked_texts(), patterns)
        if path != Path(__file__) and re.search(pattern, text)
    ]

    assert found == []


def test_the_lock_pins_every_package_with_hashes():
    """
    requirements.lock holds exact versions with hashes and nothing else.
    """
    text = (ROOT / "requirements.lock").read_text("utf-8").replace("\\\n", " ")
    loose = [
        line for line in text.splitlines() if line.strip() and not re.match(r"\S+==\S+.*--hash=sha256:", line)
    ]

    assert loose == []


def test_schema_migrations_are_numbered_without_gaps():
    """
    Migrations are 0001, 0002, … so that a version is a count.
    """
    for folder in ("storage/sqlite/migrations", "storage/sqlite/catalog/migrations"):
        names = sorted(path.name for path in (SOURCE / folder).glob("*.sql"))

        assert names
        assert [int(name[:4]) for name in names] == list(range(1, len(names) + 1))
