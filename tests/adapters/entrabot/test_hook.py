"""The hook that keeps Claude Code from writing memory where only one machine finds it."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from memplane.adapters.entrabot.scripts.hooks import block_local_memory_write as hook


@pytest.fixture
def run(monkeypatch, tmp_path, capsys):
    """The hook on a payload: its exit code, stdout and stderr. Home is a directory of the test."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("ENTRABOT_KEEP_MEMORY_LOCAL", raising=False)

    def run(tool="Write", path=None, *, raw=None, keep=None, **given):
        if keep is not None:
            monkeypatch.setenv("ENTRABOT_KEEP_MEMORY_LOCAL", keep)
        payload = {
            "hook_event_name": "PreToolUse",
            "tool_name": tool,
            "tool_input": {"content": "hi"} | ({} if path is None else {"file_path": str(path)}),
        } | given
        text = json.dumps(payload).encode() if raw is None else raw
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(text)))
        code = hook.main()
        out, err = capsys.readouterr()
        return SimpleNamespace(code=code, out=out, err=err)

    return run


@pytest.fixture
def memory(tmp_path):
    return tmp_path / ".claude" / "projects" / "example" / "memory"


# What goes on


def test_a_file_anywhere_else_may_be_written(run):
    """
    The hook is about memory only.
    """
    assert run(path="/tmp/foo.md").code == 0


def test_other_tools_may_do_what_they_do(run, memory):
    """
    It looks at tools that edit files.
    """
    assert run("Bash", tool_input={"command": f"echo hi > {memory}/foo.md"}).code == 0


def test_whoever_keeps_memory_local_may_write_it(run, memory):
    """
    Then it is where it belongs.
    """
    assert run(path=memory / "foo.md", keep="true").code == 0


def test_keeping_it_local_is_spelled_in_any_case(run, memory):
    """
    TRUE is true.
    """
    assert run(path=memory / "foo.md", keep="TRUE").code == 0


def test_a_name_with_memory_in_it_is_not_memory(run, tmp_path):
    """
    It is the directory that counts.
    """
    assert run(path=tmp_path / "notes" / "memory-notes.md").code == 0


def test_a_directory_beside_memory_is_not_memory(run, memory):
    """
    Nor is one whose name begins like it.
    """
    assert run(path=memory.parent / "not-memory" / "foo.md").code == 0
    assert run(path=memory.parent / "memory-old" / "foo.md").code == 0


def test_without_a_path_there_is_nothing_to_refuse(run):
    """
    What cannot be judged goes on.
    """
    assert run().code == 0


# What does not


@pytest.mark.parametrize("tool", ["Write", "Edit", "NotebookEdit"])
def test_memory_is_not_written_by_any_tool_that_edits(run, memory, tool):
    """
    Exit code 2 is what blocks.
    """
    assert run(tool, memory / "foo.md").code == 2


def test_memory_is_not_written_in_a_directory_of_it_either(run, memory):
    """
    However deep.
    """
    assert run(path=memory / "subdir" / "nested.md").code == 2


def test_the_decision_is_json_on_stdout(run, memory):
    """
    With the tool to use instead, and the variable that lifts it.
    """
    decision = json.loads(run(path=memory / "foo.md").out)

    assert decision["decision"] == "block"
    assert "mcp__persona-sati__write_memory_file" in decision["reason"]
    assert "ENTRABOT_KEEP_MEMORY_LOCAL" in decision["reason"]


def test_the_model_is_told_on_stderr(run, memory):
    """
    That is what it reads.
    """
    err = run(path=memory / "foo.md").err

    assert "blocked" in err.lower()
    assert "ENTRABOT_KEEP_MEMORY_LOCAL" in err


def test_an_empty_variable_lifts_nothing(run, memory):
    """
    It is as if it were not set.
    """
    assert run(path=memory / "foo.md", keep="").code == 2


def test_only_true_lifts_it(run, memory):
    """
    Here 1 does not, as in EntraBot's own hook.
    """
    assert run(path=memory / "foo.md", keep="1").code == 2


# Beyond


@pytest.mark.parametrize(
    "raw", [b"", b"not json", b"[]", b"null", b'{"tool_name": 3}', b"[" * 100_000, b"\xff\xfe"]
)
def test_what_is_not_understood_goes_on(run, raw):
    """
    A hook that fails must not stop the session.
    """
    assert run(raw=raw).code == 0


@pytest.mark.parametrize("name", ["tool_input", "cwd"])
def test_odd_fields_go_on(run, name):
    """
    Whatever they hold.
    """
    assert run(**{name: [1]}).code == 0


def test_a_detour_leads_to_the_same_place(run, memory, tmp_path):
    """
    By dots, by the home directory's short name, by the working directory, by a link, or as a notebook.
    """
    memory.mkdir(parents=True)
    (tmp_path / "link").symlink_to(memory)

    detour = f"{memory.parent}/x/../memory/foo.md"
    assert run(path=detour).code == 2
    assert run(path="~/.claude/projects/example/memory/foo.md").code == 2
    assert run(path="memory/foo.md", cwd=str(memory.parent)).code == 2
    assert run(path=tmp_path / "link" / "foo.md").code == 2
    assert run("NotebookEdit", tool_input={"notebook_path": str(memory / "n.ipynb")}).code == 2
    assert run("MultiEdit", memory / "foo.md").code == 2


def test_it_runs_alone_as_claude_code_runs_it(memory, tmp_path):
    """
    As a file given to Python, without anything of Memplane on the module path.
    """
    payload = {"tool_name": "Write", "tool_input": {"file_path": str(memory / "foo.md")}}
    environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}

    done = subprocess.run(
        [sys.executable, "-I", str(Path(hook.__file__))],
        input=json.dumps(payload),
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )

    assert done.returncode == 2
    assert json.loads(done.stdout)["decision"] == "block"
