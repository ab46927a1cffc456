"""What holds for the command line as a whole: how it ends, what it never lets through, and what is written about it."""

import inspect
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.main import get_command

from memplane import errors
from memplane.cli.app import PARTS, assembled, main, parts_for
from memplane.errors import MemplaneError
from memplane.models.embedding import EmbeddingFailed
from memplane.models.llm import LLMFailed
from memplane.terminal.call import Wiring
from memplane.terminal.exits import SpaceMissing, exit_code
from memplane.terminal.output import cell, line, path_text, write_json

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"
STEERING = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
HOSTILE = "[bold red]x[/bold red] \x1b[31m\x1b]0;t\x07 \x9b31m \u202e :smile: [/]"
TAMED = "[bold red]x[/bold red] [31m]0;t 31m  :smile: [/]"


def every_command(group=None, path=()):
    """Paths such as `ledger verify`, with their commands."""
    for name, command in (group or get_command(assembled())).commands.items():
        if not hasattr(command, "commands") or command.invoke_without_command:
            yield " ".join((*path, name)), command
        if hasattr(command, "commands"):
            yield from every_command(command, (*path, name))


COMMANDS = dict(every_command())


# ── what is loaded ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.module.rpartition(".")[2])
def test_a_part_has_the_commands_it_is_loaded_for(part):
    """
    The table says of every part which commands it has: one that it left out would not be found.
    """
    assert frozenset(get_command(assembled([part])).commands) == part.commands


def names(arguments):
    return {part.module.rpartition(".")[2] for part in parts_for(arguments)}


@pytest.mark.parametrize(
    ("arguments", "loaded"),
    [
        (["recall", "tea"], {"recall"}),
        (["--data", "store", "recall", "tea"], {"memories", "recall"}),
        (["--json", "--space=put", "ledger", "verify"], {"ledger"}),
        (["recall", "store"], {"recall", "memories"}),
    ],
)
def test_only_what_a_command_line_may_be_about_is_loaded(arguments, loaded):
    """
    Whatever it is about is loaded, however it is written, and hardly anything else.
    """
    assert names(arguments) == loaded


@pytest.mark.parametrize("arguments", [[], ["--help"], ["recal", "store"], ["--data", "recall"], ["demo"]])
def test_help_and_mistakes_need_everything(arguments):
    """
    Who asks what there is, or names nothing that is, is answered with all of it.
    """
    assert parts_for(arguments) == PARTS


def test_the_version_needs_nothing():
    assert parts_for(["--version"]) == ()


# ── how it ends ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_derived_error_ends_like_the_nearest_one_above_it():
    """
    An error of a door's own is mapped through what it derives from.
    """

    class Stranger(errors.StorageFull):
        """Made by someone else."""

    assert exit_code(SpaceMissing("x")) == 1
    assert exit_code(Stranger("x")) == 4


ERRORS = [
    value for _, value in inspect.getmembers(errors, inspect.isclass) if issubclass(value, MemplaneError)
]


@pytest.mark.parametrize("error", [*ERRORS, EmbeddingFailed, LLMFailed], ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("json_", [False, True])
def test_no_error_of_ours_shows_a_traceback(capsys, error, json_):
    """
    One sentence on stderr, the code of the table, an empty stdout; with --json the error as a document too.
    """
    made = error.__new__(error)
    Exception.__init__(made, "it \x1b[31m went\nwrong")

    def fail(_data, _environment):
        raise made

    code = main(Wiring(open=fail, environment={}), ["spaces", *(["--json"] if json_ else [])])

    out, err = capsys.readouterr()
    sentence, *documents = err.splitlines()
    assert (code, out, sentence) == (exit_code(made), "", "memplane: it [31m went wrong")
    assert [json.loads(document)["error"]["code"] for document in documents] == [error.code] * json_


def test_a_bug_shows_its_traceback_and_ends_with_70(capsys):
    """
    What nobody raised on purpose is not dressed up.
    """

    def fail(_data, _environment):
        raise ZeroDivisionError("a bug")

    code = main(Wiring(open=fail, environment={}), ["spaces"])

    out, err = capsys.readouterr()
    assert (code, out) == (70, "")
    assert err.startswith("Traceback")
    assert err.endswith("ZeroDivisionError: a bug\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["ledger"],
        ["ledger", "nonsense"],
        ["retain"],
        ["store", "fact"],
        ["search", "--limit", "0"],
        ["search", "--limit", "101"],
        ["search", "--limit", "many"],
        ["--json"],
        ["--nonsense"],
        ["stats", "--nonsense"],
    ],
    ids=" ".join,
)
def test_a_wrong_command_line_is_2(cli, arguments):
    """
    Typer's own usage errors; nothing is created.
    """
    assert cli(*arguments).code == 2
    assert not cli.data.exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["store", "mood", "x"],
        ["retain", "x", "--role", "king"],
        ["retain", "   "],
        ["retain", "x", "--at", "yesterday"],
        ["search", "--since", "soon"],
        ["put", "pack_history/x", "y"],
        ["store", "fact", "x" * 2_001],
        ["store", "fact", "x", "--supersedes", "mem-none"],
    ],
    ids=lambda arguments: " ".join(arguments)[:40],
)
def test_what_the_engine_refuses_is_1(filled, arguments):
    """
    The engine's own sentence, and exit code 1.
    """
    done = filled(*arguments)

    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("memplane: ")


def test_stdin_that_cannot_be_kept_is_refused(cli):
    """
    Bytes that are not UTF-8, and more than an entry holds, are refused before anything is written.
    """
    assert "not UTF-8" in cli("retain", "-", stdin=b"caf\xe9").err
    assert "split it" in cli("retain", "-", stdin=b"x" * (8 * 1024 * 1024 + 1)).err
    assert not cli.data.exists()


def test_stdin_fits_to_the_last_byte(cli):
    """
    Only one line end is taken off; a carriage return before it goes with it.
    """
    cli("put", "a", "-", stdin="two\nlines\r\n")
    cli("retain", "-", stdin="x\n\n")

    assert cli("get", "a", "--json").json["text"] == "two\nlines"
    assert cli("search", "--no-memories", "--json").json["hits"][0]["text"] == "x\n"


def test_version_is_said_in_both_ways(cli):
    """
    `--version` for people and programs.
    """
    number = cli("--json", "--version").json["version"]

    assert cli("--version").out == f"memplane {number}\n"


# ── content is data ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def hostile(cli):
    """Hostile text wherever a user may write some."""
    options = ["--space", HOSTILE]
    cli("retain", HOSTILE, "--conversation", HOSTILE, *options)
    cli("store", "fact", HOSTILE, "--tag", HOSTILE, *options)
    put = cli("put", HOSTILE, HOSTILE, "--category", HOSTILE, *options, "--json").json["id"]
    cli("quarantine", "release", put, *options)
    cli("put", "other", HOSTILE, *options)
    cli("forget", "--key", "other", "--reason", HOSTILE, *options)
    return cli


@pytest.mark.parametrize(
    "arguments",
    [
        ["search", "x"],
        ["recall", "what did I say about bold red?"],
        ["brief"],
        ["get", HOSTILE],
        ["history", HOSTILE],
        ["facts"],
        ["facts", "--categories"],
        ["put", HOSTILE, HOSTILE],
        ["forget", "--key", HOSTILE],
        ["forget", "--conversation", HOSTILE, "--reason", HOSTILE],
        ["receipts"],
        ["quarantine", "list"],
        ["spaces"],
        ["stats"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_content_steers_nothing(hostile, arguments):
    """
    Neither markup nor control characters of content reach a terminal; the words themselves do.
    """
    done = hostile(*arguments, "--space", HOSTILE)

    assert (done.code, done.err) == (0, "")
    assert not STEERING.search(done.out)
    assert TAMED in done.out


@pytest.mark.parametrize(
    "arguments", [["search", "x"], ["facts"], ["get", HOSTILE], ["receipts"], ["spaces"]]
)
def test_json_holds_the_content_exactly_and_steers_nothing(hostile, arguments):
    """
    A program gets every character; on its way it is escaped.
    """
    done = hostile(*arguments, "--space", HOSTILE, "--json")

    assert not STEERING.search(done.out.removesuffix("\n"))
    assert json.dumps(HOSTILE) in json.dumps(done.json)


def test_errors_steer_nothing(hostile):
    """
    What a message repeats is tamed too.
    """
    for arguments in (["get", HOSTILE + "?"], ["--space", HOSTILE + "?", "stats"], ["stats"]):
        done = hostile(*arguments)

        assert done.code == 1
        assert not STEERING.search(done.err)


@given(st.text())
def test_any_text_is_tame_on_one_line(text):
    """
    A table's cell and a line of words are one line without steering characters, whatever the text.
    """
    for shown in (cell(text).plain, line(text, (text, "bold")).plain):
        assert not STEERING.search(shown)
        assert "\n" not in shown


def test_long_content_does_not_drown_a_table(cli):
    """
    People see the beginning; programs get all of it.
    """
    cli("put", "long", "x" * 5_000)

    assert len(cli("facts").out) < 2_000
    assert len(cli("get", "long").out) == 5_001


def test_json_is_the_same_bytes_for_the_same_document(capsysbinary):
    """
    Astral characters and separators survive; the document is one line.
    """
    document = {"text": "😀 \u2028 \x85 \x1b 小米"}

    write_json(document)
    out = capsysbinary.readouterr().out

    assert json.loads(out) == document
    assert out.count(b"\n") == 1


def test_paths_that_are_not_utf8_can_be_shown():
    """
    JSON holds any path, if not byte for byte.
    """
    assert path_text(Path("caf\udce9")) == "caf\ufffd"


# ── help and documentation ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_explains_itself(cli, path):
    """
    Help says what the command does, every option has its words, and there is an example of it.
    """
    command = COMMANDS[path]
    done = cli(*path.split(), "--help")

    assert (done.code, done.err) == (0, "")
    assert command.help
    assert [option.name for option in command.params if not option.help] == []
    assert "Examples:" in done.out
    assert f"memplane {path}" in command.epilog


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_takes_the_common_options(path):
    """
    --data, --space and --json stand after every command.
    """
    options = {name for option in COMMANDS[path].params for name in option.opts}

    assert {"--data", "--space", "-s", "--json"} <= options


def sections():
    """The page by command."""
    parts = re.split(r"^### `memplane ([a-z]+(?:[ -][a-z]+)*)", PAGE.read_text("utf-8"), flags=re.MULTILINE)
    return {name.strip(): text for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def test_every_command_is_documented():
    """
    docs/reference/cli.md has a section for each command, and for no other.
    """
    assert sections().keys() == COMMANDS.keys()


@pytest.mark.parametrize("path", COMMANDS)
def test_every_option_is_documented(path):
    """
    Each option and argument of a command stands in its section, or is common to all.
    """
    common = {"--data", "--space", "-s", "--json", "--help"}
    names = [
        name
        for option in COMMANDS[path].params
        for name in (
            [*option.opts, *option.secondary_opts] if option.opts[0].startswith("-") else [option.metavar]
        )
        if name not in common
    ]

    assert [name for name in names if name not in sections()[path]] == []


def test_every_exit_code_is_documented():
    """
    The page has a line for each way a command may end.
    """
    page = PAGE.read_text("utf-8")

    assert [code for code in (0, 1, 2, 3, 4, 70, 130, 141) if f"| {code} |" not in page] == []


def test_the_common_options_come_first_on_the_page():
    """
    What holds everywhere is said once, before the commands.
    """
    page = PAGE.read_text("utf-8")

    assert all(
        page.index(name) < page.index("### `memplane")
        for name in ("--data", "--space", "--json", "MEMPLANE_SPACE")
    )
