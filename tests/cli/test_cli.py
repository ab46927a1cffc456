"""The `memplane` command in processes of its own, as people and scripts run it."""

import json
import os
import pty
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from subprocess import PIPE

import pytest

SCRIPT = Path(sys.executable).with_name("memplane")
ADDRESS = "Rua das Flores 12"


def lines(text):
    return text.splitlines()


def bytes_on_disk(folder):
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_what_is_kept_comes_back(shell):
    """
    A turn and a memory are recalled, briefed and found by later processes.
    """
    kept = shell("retain", "I moved to Lisbon last week", "-c", "c1", "--json")
    shell("store", "preference", "Prefers tea", "--tag", "drinks")

    assert (kept.code, kept.json["seq"]) == (0, 1)
    assert "I moved to Lisbon last week" in shell("recall", "which city did she move to?").out
    assert "- [preference] Prefers tea (0d ago)" in lines(shell("brief").out)
    assert "Prefers tea" in shell("search", "tea").out


def test_a_key_has_one_value_and_a_history(shell):
    """
    `get` prints the live value alone; `history` has every value.
    """
    shell("put", "preferences/theme", "dark", "--ttl", "30d")
    shell("put", "preferences/theme", "light")

    history = shell("history", "preferences/theme", "--json").json["history"]

    assert shell("get", "preferences/theme").out == "light\n"
    assert [(fact["text"], fact["state"]) for fact in history] == [
        ("dark", "superseded"),
        ("light", "active"),
    ]


def test_content_may_come_from_stdin(shell):
    """
    `-` reads content from stdin, without its last line end, in any language.
    """
    shell("retain", "-", stdin="我的猫\n叫小米\n".encode())

    (hit,) = shell("search", "-", "--json", stdin="小米".encode()).json["hits"]

    assert hit["text"] == "我的猫\n叫小米"


def test_forgetting_reaches_the_disk(shell):
    """
    Without a terminal a scoped forget goes ahead; its bytes are gone, and the ledger still verifies.
    """
    shell("retain", f"My address is {ADDRESS}", "--conversation", "private")
    before = bytes_on_disk(shell.data)

    receipt = shell("forget", "--conversation", "private", "--json").json

    assert ADDRESS.encode() in before
    assert ADDRESS.encode() not in bytes_on_disk(shell.data)
    assert receipt["counts"]["turns"] == 1
    assert shell("ledger", "verify", "--expect", f"{receipt['seq']}:{receipt['digest']}").code == 0


def test_an_export_imports_again(shell, tmp_path):
    """
    A full export becomes the same memories in another space; a second import adds nothing.
    """
    shell("store", "fact", "Lives in Porto")
    shell("ledger", "export", "--format", "full", "--output", str(tmp_path / "all.jsonl"))

    first = shell("ledger", "import", str(tmp_path / "all.jsonl"), "--space", "copy", "--json")
    second = shell("ledger", "import", str(tmp_path / "all.jsonl"), "--space", "copy", "--json")

    assert (first.code, first.json["added"], second.json["added"], second.json["known"]) == (0, 1, 0, 1)
    copied = shell("search", "Porto", "--json", "-s", "copy").out.replace(
        '"door":"import:cli"', '"door":"cli"'
    )
    assert shell("search", "Porto", "--json").out == copied


def test_keys_can_be_rotated(shell, tmp_path):
    """
    Plain files are encrypted under a generated key, then readable with it and not without; a second run changes
    nothing.
    """
    shell("put", "a", "b")
    key_file = tmp_path / "new.key"
    key_file.write_text(shell("encryption", "generate").out)

    rotated = shell("encryption", "rotate", "--new-key-file", str(key_file), "--json")
    again = shell("encryption", "rotate", "--new-key-env", "NEW", "--json", NEW=key_file.read_text())

    assert rotated.json == {"changed": 1, "spaces": [{"space": "default", "changed": True}]}
    assert again.json["changed"] == 0
    assert shell("get", "a", MEMPLANE_KEY_FILE=str(key_file)).out == "b\n"
    assert shell("get", "a").code == 4


def test_the_tour_runs_and_leaves_nothing(shell, tmp_path):
    """
    `memplane demo` ends well, without colours in a pipe, and deletes what it made.
    """
    done = shell("demo")

    assert (done.code, done.err) == (0, "No results.\n")
    assert "\x1b" not in done.out
    assert "not found in any of" in done.out
    assert "The ledger is NOT intact" in done.out
    assert list(tmp_path.iterdir()) == []


def test_the_tour_is_one_document_with_json(shell):
    """
    With --json the tour says the same as one document.
    """
    chapters = shell("demo", "--json").json["tour"]

    steps = [step for chapter in chapters for step in chapter["steps"]]
    assert [chapter["title"] for chapter in chapters][:2] == ["Remember", "Recall"]
    assert {step.get("exit_code", 0) for step in steps} == {0, 3}


def test_a_reader_that_goes_away_ends_it_quietly(shell, cli):
    """
    A closed pipe is exit code 141 and no word on stderr.
    """
    cli("retain", "-", stdin=b"long " * 100_000)

    with shell.start("ledger", "export", stdout=PIPE, stderr=PIPE) as process:
        process.stdout.read(10)
        process.stdout.close()
        said = process.stderr.read()

    assert (process.returncode, said) == (141, b"")


def test_an_answer_that_cannot_be_written_is_no_success(shell):
    """
    A full disk behind stdout is an error in one sentence.
    """
    with (
        Path("/dev/full").open("wb") as full,
        shell.start("spaces", "--json", stdout=full, stderr=PIPE) as process,
    ):
        said = process.stderr.read().decode()

    assert process.returncode == 1
    assert lines(said)[0].startswith("memplane: cannot write the output")


def test_closed_streams_are_no_crash(shell):
    """
    A caller that closed stdin, stdout or stderr gets the work done or one sentence.
    """
    script = '"$0" retain hello >&- && "$0" retain hello 2>&- && "$0" retain - <&-'
    done = subprocess.run(
        ["sh", "-c", script, SCRIPT], env=shell.environment, capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (1, "memplane: content is empty; give some text\n")


class Terminal:
    """A person at a terminal: reads what appears, then types."""

    def __init__(self, shell, *arguments):
        self._master, slave = pty.openpty()
        self.process = shell.fork(*arguments, stdin=slave, stderr=slave)
        os.close(slave)

    def wait_for(self, text):
        seen = b""
        while text.encode() not in seen:
            seen += os.read(self._master, 1_024)
        return seen.decode("utf-8", "ignore")  # it may end within a letter

    def type(self, text):
        os.write(self._master, text.encode())

    def end(self):
        out = self.process.stdout.read().decode()
        self.process.stdout.close()
        code = self.process.wait()
        os.close(self._master)
        return code, out


@pytest.mark.parametrize(("answer", "code", "left"), [("y\n", 0, 0), ("n\n", 1, 1), ("\n", 1, 1)])
def test_on_a_terminal_forget_shows_and_asks(shell, cli, answer, code, left):
    """
    The counts come first; only a clear yes forgets.
    """
    cli("put", "address", ADDRESS)
    terminal = Terminal(shell, "forget", "--key", "address", "--json")

    shown = terminal.wait_for("[y/N]")
    terminal.type(answer)
    ended, out = terminal.end()

    assert "facts 1" in shown
    assert (ended, bool(out)) == (code, code == 0)
    assert len(cli("facts", "--json").json["facts"]) == left


def test_an_interrupt_is_130_and_changes_nothing(shell, cli):
    """
    Ctrl-C at the question ends the command with 130 and without a traceback.
    """
    cli("put", "address", ADDRESS)
    terminal = Terminal(shell, "forget", "--everything")

    terminal.wait_for("[y/N]")
    terminal.process.send_signal(signal.SIGINT)

    assert terminal.end() == (130, "")
    assert cli("get", "address").code == 0


def test_a_directory_that_cannot_be_written_is_storage_trouble(shell, tmp_path):
    """
    A data directory below a plain file is exit code 4, one sentence, and no traceback.
    """
    (tmp_path / "file").touch()

    done = shell("--data", str(tmp_path / "file" / "data"), "--json", "retain", "hello")

    sentence, document = lines(done.err)
    assert (done.code, done.out) == (4, "")
    assert sentence.startswith("memplane: ")
    assert json.loads(document)["error"]["code"] == "storage_unavailable"


def test_a_setting_that_cannot_be_used_does_not_stop_the_help(shell):
    """
    A wrong environment variable is an error where it is needed, and only there.
    """
    assert shell("--help", MEMPLANE_KEY="short").code == 0
    assert shell("spaces", MEMPLANE_KEY="short").code == 1


def test_arguments_that_are_not_utf8_are_refused(shell, cli):
    """
    Bytes that are no text reach neither the store nor a traceback.
    """
    cli("put", "a", "b")

    done = shell("get", os.fsdecode(b"a\xff"))

    assert (done.code, done.out, done.err) == (
        1,
        "",
        "memplane: key is not UTF-8; convert it first, for example with iconv\n",
    )


def test_any_encoding_of_the_terminal_will_do(shell, cli):
    """
    A terminal that cannot show a character gets its escape; JSON is UTF-8 wherever it goes.
    """
    cli("put", "cat", "小米")

    assert shell("get", "cat", PYTHONIOENCODING="ascii").out == "\\u5c0f\\u7c73\n"
    assert shell("get", "cat", "--json", PYTHONIOENCODING="ascii").json["text"] == "小米"


def test_content_never_steers_a_coloured_terminal(shell, cli):
    """
    Even where we write colours ourselves, content brings neither markup nor escape sequences.
    """
    cli("store", "fact", "[bold red]boo[/] \x1b]0;title\x07 \x9b31m :smile:", "--tag", "[blink]t[/]")

    out = shell("search", "boo", FORCE_COLOR="1").out

    assert "[bold red]boo[/] ]0;title 31m :smile:" in out
    assert "#[blink]t[/]" in out
    assert {"\x1b]", "\x07", "\x9b"} & {out[i : i + n] for n in (1, 2) for i in range(len(out))} == set()


def test_the_shell_completes_spaces(shell, cli):
    """
    Completion offers the names of the spaces that are there.
    """
    cli("put", "a", "b", "--space", "alice")

    done = shell(_MEMPLANE_COMPLETE="complete_bash", COMP_WORDS="memplane stats --space al", COMP_CWORD="3")

    assert lines(done.out) == ["alice"]


def test_the_package_runs_as_a_module(shell):
    """
    `python -m memplane` is the same command.
    """
    done = subprocess.run(
        [sys.executable, "-m", "memplane", "--version"],
        env=shell.environment,
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout == f"memplane {version('memplane')}\n"
