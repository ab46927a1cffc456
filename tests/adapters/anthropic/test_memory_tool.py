"""Anthropic's memory tool against the SDK's own base class, runner and tool on files, and over HTTP."""

import asyncio
import json
import threading

import anthropic
import httpx2
import pytest
from anthropic.lib.tools import ToolError
from anthropic.tools.memory import (
    BetaAbstractMemoryTool,
    BetaAsyncAbstractMemoryTool,
    BetaLocalFilesystemMemoryTool,
)
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from conftest import HandClock, fresh_folder
from memplane import Caller, Memplane, Settings
from memplane.adapters.anthropic.handler import MemplaneAsyncMemoryTool, MemplaneMemoryTool
from memplane.errors import NotFound

NOTES = "/memories/notes.txt"
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@pytest.fixture
def tool(space):
    return MemplaneMemoryTool(space)


def refusal(tool, **command):
    with pytest.raises(ToolError) as caught:
        tool.call(command)
    return caught.value.content


def create(tool, path, text):
    return tool.call({"command": "create", "path": path, "file_text": text})


def view(tool, path, **more):
    return tool.call({"command": "view", "path": path, **more})


# ── the words of the documentation ───────────────────────────────────────────────────────────────────────────────


def test_it_is_the_tool_of_the_sdk(tool, space):
    """
    Both handlers are subclasses of the SDK's base classes and declare `memory_20250818`.
    """
    assert isinstance(tool, BetaAbstractMemoryTool)
    assert isinstance(MemplaneAsyncMemoryTool(space), BetaAsyncAbstractMemoryTool)
    assert tool.to_dict() == {"type": "memory_20250818", "name": "memory"}


def test_the_first_view_of_an_empty_store_is_no_error(tool):
    """
    The root is always there: the header and one line for the directory itself.
    """
    assert view(tool, "/memories") == (
        "Here're the files and directories up to 2 levels deep in /memories, "
        "excluding hidden items and node_modules:\n0B\t/memories"
    )


def test_view_of_a_directory_lists_two_levels_with_sizes(tool):
    """
    Two levels, sizes for people, a tab between; nothing hidden and no node_modules.
    """
    create(tool, "/memories/a.txt", "x" * 1536)
    create(tool, "/memories/project/plan.md", "x" * 10)
    create(tool, "/memories/project/deep/er/file.md", "x" * 2048)
    create(tool, "/memories/.hidden", "x")
    create(tool, "/memories/node_modules/x.js", "x")

    assert view(tool, "/memories").splitlines()[1:] == [
        "3.5K\t/memories",
        "1.5K\t/memories/a.txt",
        "2.0K\t/memories/project/",
        "2.0K\t/memories/project/deep/",
        "10B\t/memories/project/plan.md",
    ]
    assert view(tool, "/memories/project/").splitlines()[1:] == [
        "2.0K\t/memories/project",
        "2.0K\t/memories/project/deep/",
        "2.0K\t/memories/project/deep/er/",
        "10B\t/memories/project/plan.md",
    ]


def test_view_of_a_file_numbers_its_lines(tool):
    """
    Six places, right-aligned, a tab; `view_range` shows a part, -1 is the end.
    """
    create(tool, NOTES, "Hello World\nThis is line two\nthree")

    assert view(tool, NOTES) == (
        f"Here's the content of {NOTES} with line numbers:\n"
        "     1\tHello World\n     2\tThis is line two\n     3\tthree"
    )
    assert view(tool, NOTES, view_range=[2, 2]).endswith(":\n     2\tThis is line two")
    assert view(tool, NOTES, view_range=[2, -1]).endswith(":\n     2\tThis is line two\n     3\tthree")


def test_create_does_not_write_over(tool):
    """
    `create` answers in the documented words, and refuses a path that is taken.
    """
    assert create(tool, NOTES, "one") == f"File created successfully at: {NOTES}"
    assert (
        refusal(tool, command="create", path=NOTES, file_text="two") == f"Error: File {NOTES} already exists"
    )
    create(tool, "/memories/folder/file", "x")
    assert (
        refusal(tool, command="create", path="/memories/folder", file_text="x")
        == "Error: File /memories/folder already exists"
    )
    assert view(tool, NOTES).endswith("\tone")


def test_str_replace_says_what_changed(tool):
    """
    The answer begins with the documented sentence and shows the lines around the change.
    """
    create(tool, NOTES, "1\n2\n3\n4 blue\n5\n6\n7")

    answer = tool.call({"command": "str_replace", "path": NOTES, "old_str": "blue", "new_str": "green"})

    assert answer == (
        "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
        "     2\t2\n     3\t3\n     4\t4 green\n     5\t5\n     6\t6"
    )
    tool.call({"command": "str_replace", "path": NOTES, "old_str": " green"})
    assert "     4\t4\n" in view(tool, NOTES)


def test_str_replace_refuses_what_is_not_there_once(tool):
    """
    Text that is missing, or there several times with the lines it is in, or in a directory.
    """
    create(tool, "/memories/a/notes.txt", "blue\nx\nblue blue")
    path = "/memories/a/notes.txt"

    assert refusal(tool, command="str_replace", path=path, old_str="red", new_str="") == (
        f"No replacement was performed, old_str `red` did not appear verbatim in {path}."
    )
    assert refusal(tool, command="str_replace", path=path, old_str="blue", new_str="") == (
        "No replacement was performed. Multiple occurrences of old_str `blue` in lines: 1, 3, 3. "
        "Please ensure it is unique"
    )
    for gone in ("/memories/a", "/memories/none"):
        assert refusal(tool, command="str_replace", path=gone, old_str="a", new_str="") == (
            f"Error: The path {gone} does not exist. Please provide a valid path."
        )
    assert "did not appear" in refusal(tool, command="str_replace", path=path, old_str="", new_str="x")


def test_insert_goes_after_a_line(tool):
    """
    0 is before the first line; beyond the last line is refused with the range.
    """
    create(tool, NOTES, "b\nd\n")
    for line, text in ((0, "a\n"), (2, "c"), (4, "e\n")):
        assert (
            tool.call({"command": "insert", "path": NOTES, "insert_line": line, "insert_text": text})
            == f"The file {NOTES} has been edited."
        )

    assert view(tool, NOTES, view_range=[1, 5]).split(":\n")[1] == "\n".join(
        f"     {n}\t{letter}" for n, letter in enumerate("abcde", 1)
    )
    assert refusal(tool, command="insert", path=NOTES, insert_line=6, insert_text="x") == (
        "Error: Invalid `insert_line` parameter: 6. It should be within the range of lines of the file: [0, 5]"
    )
    assert refusal(tool, command="insert", path="/memories/no", insert_line=0, insert_text="x") == (
        "Error: The path /memories/no does not exist"
    )


def test_delete_and_rename_take_folders_too(tool):
    """
    Both work on files and directories, in the documented words, and never write over anything.
    """
    create(tool, "/memories/a/1", "one")
    create(tool, "/memories/a/b/2", "two")
    create(tool, "/memories/c", "three")

    assert refusal(tool, command="rename", old_path="/memories/a", new_path="/memories/c") == (
        "Error: The destination /memories/c already exists"
    )
    assert refusal(tool, command="rename", old_path="/memories/x", new_path="/memories/y") == (
        "Error: The path /memories/x does not exist"
    )
    assert (
        tool.call({"command": "rename", "old_path": "/memories/a", "new_path": "/memories/z/a"})
        == "Successfully renamed /memories/a to /memories/z/a"
    )
    assert view(tool, "/memories/z/a/b/2").endswith("\ttwo")
    assert refusal(tool, command="view", path="/memories/a") == (
        "The path /memories/a does not exist. Please provide a valid path."
    )
    assert tool.call({"command": "delete", "path": "/memories/z"}) == "Successfully deleted /memories/z"
    assert refusal(tool, command="delete", path="/memories/z") == "Error: The path /memories/z does not exist"
    assert view(tool, "/memories").splitlines()[1:] == ["5B\t/memories", "5B\t/memories/c"]


@pytest.mark.parametrize("command", ["delete", "rename"])
def test_the_root_stays(tool, command):
    """
    The directory itself is neither deleted nor moved.
    """
    paths = (
        {"path": "/memories/"}
        if command == "delete"
        else {"old_path": "/memories", "new_path": "/memories/a"}
    )

    assert "/memories directory itself" in refusal(tool, command=command, **paths)


# ── bad input ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "path",
    [
        "/memories/../secrets.env",
        "/memories/a/../../b",
        "/memories/a/..",
        "/memories/..\\b",
        "/memories/%2e%2e/b",
        "/memories/%2E%2E%2Fb",
        "/memories/%252e%252e/b",
        "/etc/passwd",
        "memories/a",
        "/memoriesx",
        "",
        "/",
        "/memories/a\x00b",
        "/memories/a\nb",
        "/memories/a\u202eb",
        "/memories/ a",
        "/memories/" + "x" * 600,
        "/memories/" + TOKEN,
        "/memories/\ud800",
    ],
)
def test_paths_that_leave_or_lie_are_refused(tool, space, path):
    """
    Every command refuses such a path and writes nothing.
    """
    for command in (
        {"command": "view", "path": path},
        {"command": "create", "path": path, "file_text": "x"},
        {"command": "str_replace", "path": path, "old_str": "a", "new_str": "b"},
        {"command": "insert", "path": path, "insert_line": 0, "insert_text": "x"},
        {"command": "delete", "path": path},
        {"command": "rename", "old_path": path, "new_path": "/memories/ok"},
        {"command": "rename", "old_path": "/memories/ok", "new_path": path},
    ):
        assert refusal(tool, **command)

    assert space.ledger.entries() == []


@pytest.mark.parametrize(
    "given",
    [
        None,
        [],
        "view",
        {},
        {"command": "chmod", "path": NOTES},
        {"command": "view"},
        {"command": "view", "path": 7},
        {"command": "view", "path": NOTES, "view_range": "all"},
        {"command": "insert", "path": NOTES, "insert_line": "1", "insert_text": "x"},
        {"command": "create", "path": NOTES},
    ],
)
def test_input_that_is_no_command_is_refused(tool, given):
    """
    A model may write anything; it is told what is wrong.
    """
    with pytest.raises(ToolError, match="not a valid command of the memory tool"):
        tool.call(given)


@pytest.mark.parametrize("view_range", [[], [1], [1, 2, 3], [0, 1], [4, 5], [2, 1], [-3, -1]])
def test_ranges_that_show_nothing_are_refused(tool, view_range):
    """
    A range must be two numbers that name lines of the file.
    """
    create(tool, NOTES, "1\n2\n3")

    assert "view_range" in refusal(tool, command="view", path=NOTES, view_range=view_range)


def test_a_folder_cannot_lie_in_a_file_or_in_itself(tool):
    """
    What a file system would refuse is refused in a sentence.
    """
    create(tool, "/memories/a", "x")
    create(tool, "/memories/b/c", "x")

    assert "is a file" in refusal(tool, command="create", path="/memories/a/b", file_text="x")
    assert "is a file" in refusal(tool, command="rename", old_path="/memories/b", new_path="/memories/a/b")
    assert "into itself" in refusal(tool, command="rename", old_path="/memories/b", new_path="/memories/b/d")


def test_sizes_and_counts_are_limited(open_plane):
    """
    A file, also one that grows by edits, and the number of files have a limit.
    """
    tool = MemplaneMemoryTool(open_plane(file_bytes_max=100, files_max=2).space("alice"))
    create(tool, NOTES, "é" * 50)

    assert "100" in refusal(tool, command="create", path="/memories/b", file_text="é" * 51)
    assert "100" in refusal(tool, command="insert", path=NOTES, insert_line=0, insert_text="x")
    create(tool, "/memories/b", "")
    assert "files already" in refusal(tool, command="create", path="/memories/c", file_text="")


# ── governance ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_secrets_are_not_shown_and_survive_an_edit_beside_them(tool, space):
    """
    A view redacts. An edit elsewhere leaves the secret as it was; one that touches the placeholder takes it out.
    """
    create(tool, NOTES, f"first\ntoken = {TOKEN}\nlast")
    assert TOKEN not in view(tool, NOTES)
    tool.call({"command": "str_replace", "path": NOTES, "old_str": "last", "new_str": "done"})
    tool.call({"command": "insert", "path": NOTES, "insert_line": 2, "insert_text": "between"})
    kept = [json.loads(entry.body)["value"] for entry in space.ledger.entries()]
    shown = view(tool, NOTES)

    assert kept[-1] == f"first\ntoken = {TOKEN}\nbetween\ndone\n"
    assert "[REDACTED:" in shown
    assert TOKEN not in shown
    placeholder = shown[shown.index("[REDACTED") : shown.index("]") + 1]
    answer = tool.call({"command": "str_replace", "path": NOTES, "old_str": placeholder, "new_str": "none"})
    assert "token = none" in answer
    assert TOKEN not in json.loads(space.ledger.entries()[-1].body)["value"]


def test_invisible_characters_are_not_shown(tool):
    """
    What no reader sees cannot carry instructions; editing around it works on what is seen.
    """
    create(tool, NOTES, "a\u200bb\u202ec\U000e0041d")

    assert view(tool, NOTES).endswith("\tabcd")
    tool.call({"command": "str_replace", "path": NOTES, "old_str": "bc", "new_str": "X"})
    assert view(tool, NOTES).endswith("\taXd")


def test_recalled_memory_is_not_kept_again(tool, space):
    """
    A file that holds nothing but what memory itself told is refused: it would breed.
    """
    space.store("fact", "Her dog is named Luna")
    told = space.recall("what do I know about her dog Luna?").text

    assert "Luna" in told
    assert "only injected memory" in refusal(tool, command="create", path=NOTES, file_text=told)


def test_files_are_found_through_other_doors(tool, space):
    """
    A file is a fact under its path: searched, recalled, listed and read everywhere.
    """
    create(tool, "/memories/pets.md", "Her dog is named Luna")

    assert space.search("dog luna")[0].memory.key == "/memories/pets.md"
    assert "Luna" in space.recall("what is the dog called?").text
    assert space.get("/memories/pets.md").expires_at is None
    space.put("/memories/by-hand.md", "put by another door", category="notes")
    assert view(tool, "/memories/by-hand.md").endswith("\tput by another door")


def test_large_files_crowd_nothing_out(tool, space):
    """
    The brief says where a file is and how it begins; a recall shows the part that answers.
    """
    noise = "\n".join(f"line {n} about nothing" for n in range(2_000))
    space.store("fact", "Her dog is named Luna")
    for n in range(20):
        create(tool, f"/memories/{n}.md", f"{noise}\nThe cat number {n} is called Mimi\n{noise}")
    brief = space.brief()
    told = space.recall("what did I call my cat number 7?")

    assert brief.brief_count == 21
    assert "/memories/7.md: line 0 about nothing" in brief.markdown
    assert "cat number 7 is called Mimi" in told.text
    assert any("cat number 7 is called Mimi" in block.text for block in told.blocks)


def test_history_is_kept_and_forgotten_as_one(tool, space):
    """
    Every version stays on record across a rename; deleting the file forgets all of them.
    """
    create(tool, NOTES, "version one")
    tool.call({"command": "str_replace", "path": NOTES, "old_str": "one", "new_str": "two"})
    tool.call({"command": "rename", "old_path": NOTES, "new_path": "/memories/moved"})
    first = space.history(NOTES)[0]

    assert [memory.text for memory in space.overview.chain(first.id)] == [
        "version one",
        "version two",
        "version two",
    ]
    create(tool, NOTES, "another file under the old name")
    tool.call({"command": "delete", "path": "/memories/moved"})
    assert [memory.text for memory in space.history(NOTES)] == ["another file under the old name"]
    with pytest.raises(NotFound):
        space.memory(first.id)
    space.ledger.replay()
    assert view(tool, "/memories").splitlines()[2:] == ["31B\t/memories/notes.txt"]
    assert space.ledger.verify().ok


def test_a_purge_does_not_save_old_versions_from_a_delete(tool, space, clock):
    """
    Versions that were purged from memory are still in the ledger, and go with the file.
    """
    create(tool, NOTES, "an old secret plan")
    tool.call({"command": "str_replace", "path": NOTES, "old_str": "old secret", "new_str": "new"})
    clock.advance(days=200)
    assert space.purge() == 1
    tool.call({"command": "delete", "path": NOTES})

    assert [entry.op for entry in space.ledger.entries() if entry.body and b"secret plan" in entry.body] == []


def test_deletes_count_against_a_session(plane):
    """
    A space opened for a session has the session's limit, also through files.
    """
    tool = MemplaneMemoryTool(plane.space("alice", caller=Caller(session="s1")))
    for n in range(6):
        create(tool, f"/memories/{n}", "x")
    for n in range(5):
        tool.call({"command": "delete", "path": f"/memories/{n}"})

    assert "5 times" in refusal(tool, command="delete", path="/memories/5")


def test_two_writers_lose_nothing(plane):
    """
    An edit is one transaction: threads that insert at once all find their lines.
    """
    tools = [MemplaneMemoryTool(plane.space("alice")) for _ in range(4)]
    create(tools[0], NOTES, "")

    def insert(tool, name):
        for n in range(10):
            tool.call({"command": "insert", "path": NOTES, "insert_line": 0, "insert_text": f"{name}-{n}"})

    threads = [threading.Thread(target=insert, args=(tool, name)) for name, tool in enumerate(tools)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = {line.split("\t")[1] for line in view(tools[0], NOTES, view_range=[1, 40]).splitlines()[1:]}

    assert lines == {f"{name}-{n}" for name in range(4) for n in range(10)}


def test_clear_all_memory(tool, space):
    """
    The base class's own method empties the directory and leaves the rest of memory alone.
    """
    create(tool, "/memories/a/b", "x")
    create(tool, "/memories/c", "x")
    space.store("fact", "Her dog is named Luna")

    assert tool.clear_all_memory() == "All memory cleared"
    assert view(tool, "/memories").endswith("\n0B\t/memories")
    assert len(space.search("dog")) == 1


# ── the SDK's runner ─────────────────────────────────────────────────────────────────────────────────────────────


def scripted(commands, seen):
    """A provider that asks for these commands one after the other, and notes what it was answered."""
    todo = list(commands)

    def handler(request):
        body = json.loads(request.content)
        last = body["messages"][-1]["content"]
        if isinstance(last, list):
            seen.extend(
                (part["content"], part.get("is_error", False))
                for part in last
                if part["type"] == "tool_result"
            )
        if len(todo) == len(commands):  # later requests go on with the same thread
            assert body["tools"] == [{"type": "memory_20250818", "name": "memory"}]
        if todo:
            content = [{"type": "tool_use", "id": f"t{len(todo)}", "name": "memory", "input": todo.pop(0)}]
        else:
            content = [{"type": "text", "text": "done"}]
        return httpx2.Response(
            200,
            json={
                "id": "msg",
                "type": "message",
                "role": "assistant",
                "model": "m",
                "content": content,
                "stop_reason": "tool_use" if content[0]["type"] == "tool_use" else "end_turn",
                "stop_sequence": None,
                "usage": {"input_tokens": 1, "output_tokens": 1},
            },
        )

    return httpx2.MockTransport(handler)


COMMANDS = [
    {"command": "view", "path": "/memories"},
    {"command": "create", "path": NOTES, "file_text": "likes tea"},
    {"command": "create", "path": NOTES, "file_text": "likes tea"},
    {"command": "fly", "path": NOTES},
    {"command": "view", "path": NOTES},
]


def check_scripted(seen):
    assert [is_error for _, is_error in seen] == [False, False, True, True, False]
    assert seen[2][0] == f"Error: File {NOTES} already exists"
    assert seen[4][0].endswith("     1\tlikes tea")


def test_the_runner_of_the_sdk_drives_it(tool):
    """
    `client.beta.messages.tool_runner` carries out commands and tells the model what was refused.
    """
    seen = []
    with anthropic.Anthropic(
        api_key="k", max_retries=0, http_client=httpx2.Client(transport=scripted(COMMANDS, seen))
    ) as client:
        client.beta.messages.tool_runner(
            model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}], tools=[tool]
        ).until_done()

    check_scripted(seen)


def test_the_asynchronous_runner_drives_it(space):
    """
    The same with the asynchronous client.
    """
    seen = []

    async def talk():
        http_client = httpx2.AsyncClient(transport=scripted(COMMANDS, seen))
        async with anthropic.AsyncAnthropic(api_key="k", max_retries=0, http_client=http_client) as client:
            await client.beta.messages.tool_runner(
                model="m",
                max_tokens=9,
                messages=[{"role": "user", "content": "hi"}],
                tools=[MemplaneAsyncMemoryTool(space)],
            ).until_done()

    asyncio.run(talk())

    check_scripted(seen)


# ── over HTTP ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_over_http_a_refusal_is_an_answer(server):
    """
    `POST /api/memory-tool` answers what belongs into the `tool_result`.
    """
    client = server.client()
    made = {"command": "create", "path": NOTES, "file_text": "x"}

    assert client.post("/api/memory-tool", json=made).json() == {
        "content": f"File created successfully at: {NOTES}",
        "is_error": False,
    }
    again = client.post("/api/memory-tool", json=made)
    assert (again.status_code, again.json()["is_error"]) == (200, True)
    assert server.plane.space("owner").files.read(NOTES).text == "x"


def test_over_http_malformed_commands_are_client_errors(server):
    """
    What is no command at all is refused by the frame, and so is a foreign space.
    """
    client = server.client(server.keys.add("alice", subject="alice", spaces={"alice"}))

    assert client.post("/api/memory-tool", json={"command": "fly"}).status_code in {400, 422}
    assert client.post("/api/memory-tool", content=b"{").status_code == 400
    looking = {"command": "view", "path": "/memories"}
    assert client.post("/api/memory-tool", params={"space": "bob"}, json=looking).status_code == 403
    assert server.client(None).post("/api/memory-tool", json=looking).status_code == 401


def test_over_http_who_may_read_may_not_write(server):
    """
    A credential with the right to read views, and does not create.
    """
    client = server.client(server.keys.add("reader", subject="alice", rights={"read"}))

    assert client.post("/api/memory-tool", json={"command": "view", "path": "/memories"}).status_code == 200
    made = client.post("/api/memory-tool", json={"command": "create", "path": NOTES, "file_text": "x"})
    assert made.status_code == 403
    assert server.plane.space("alice").files.list() == []


def test_over_http_who_may_only_read_makes_no_spaces(server):
    """
    Looking into spaces that are not there leaves none behind, however many names are tried.
    """
    client = server.client(server.keys.add("reader", subject="alice", rights={"read"}))
    server.plane.space("bob").files.create(NOTES, "x")
    looking = {"command": "view", "path": "/memories"}

    assert client.post("/api/memory-tool", params={"space": "bob"}, json=looking).status_code == 200
    assert client.post("/api/memory-tool", params={"space": "nobody"}, json=looking).status_code == 422
    assert set(server.plane.spaces()) == {"bob"}


# ── a state machine ──────────────────────────────────────────────────────────────────────────────────────────────

NAMES = st.sampled_from(["a", "b", "c.md"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(lambda names: "/".join(["/memories", *names]))
TEXTS = st.text("ab\n é", max_size=12)


class FilesMachine(RuleBasedStateMachine):
    """Our tool beside a dictionary of files, and beside the SDK's tool on a real directory."""

    @initialize()
    def begin(self):
        self.folder = fresh_folder()
        folder = self.folder.__enter__()
        self.plane = Memplane.open(
            folder / "data", embedder=None, clock=HandClock(), settings=Settings(wipe_now_bytes_max=0)
        )
        self.space = self.plane.space("alice")
        self.tool = MemplaneMemoryTool(self.space)
        self.sdk = BetaLocalFilesystemMemoryTool(str(folder / "files"))
        self.model = {}

    def teardown(self):
        if hasattr(self, "plane"):
            self.plane.close()
            self.folder.__exit__(None, None, None)

    def both(self, **command):
        """Whether our tool and the SDK's carried it out; they must agree."""
        done = [True, True]
        for n, tool in enumerate((self.tool, self.sdk)):
            try:
                tool.call(command)
            except (ToolError, OSError):
                done[n] = False
        return done

    def folders(self):
        return {"/".join(path.split("/")[:n]) for path in self.model for n in range(2, path.count("/") + 1)}

    @rule(path=PATHS, text=TEXTS)
    def create(self, path, text):
        blocked = path in self.model or path in self.folders()
        blocked = blocked or any(path.startswith(f"{file}/") for file in self.model)
        ours, theirs = self.both(command="create", path=path, file_text=text)
        assert ours != blocked
        if ours:
            self.model[path] = text
        if ours and not theirs:  # an empty directory of that name was left behind by a delete
            self.resync()

    @rule(path=PATHS, old=st.text("ab\n", min_size=1, max_size=2), new=TEXTS)
    def str_replace(self, path, old, new):
        done = self.both(command="str_replace", path=path, old_str=old, new_str=new)
        possible = self.model.get(path, "").count(old) == 1
        assert done == [possible, possible]
        if possible:
            self.model[path] = self.model[path].replace(old, new)

    @rule(path=PATHS, line=st.integers(-1, 6), text=TEXTS)
    def insert(self, path, line, text):
        done = self.both(command="insert", path=path, insert_line=line, insert_text=text)
        lines = self.model.get(path, "").split("\n")
        if lines[-1] == "":
            lines.pop()
        possible = path in self.model and 0 <= line <= len(lines)
        assert done == [possible, possible]
        if possible:
            lines.insert(line, text.rstrip("\n"))
            whole = "\n".join(lines)
            self.model[path] = whole if whole.endswith("\n") else whole + "\n"

    @rule(path=PATHS)
    def delete(self, path):
        ours, _ = self.both(command="delete", path=path)
        gone = {file for file in self.model if file == path or file.startswith(f"{path}/")}
        assert ours == bool(gone)
        self.model = {file: text for file, text in self.model.items() if file not in gone}
        self.resync()

    @rule(path=PATHS, new=PATHS)
    def rename(self, path, new):
        moving = {file for file in self.model if file == path or file.startswith(f"{path}/")}
        taken = new in self.model or new in self.folders() or any(new.startswith(f"{f}/") for f in self.model)
        possible = bool(moving) and not taken and not new.startswith(f"{path}/")
        ours, _ = self.both(command="rename", old_path=path, new_path=new)
        assert ours == possible
        if possible:
            self.model = {
                new + file.removeprefix(path) if file in moving else file: text
                for file, text in self.model.items()
            }
        self.resync()

    @rule()
    def replay(self):
        self.space.ledger.replay()

    def resync(self):
        """The SDK keeps empty directories; ours do not exist. Begin anew with the same files."""
        self.sdk.clear_all_memory()
        for path, text in self.model.items():
            self.sdk.call({"command": "create", "path": path, "file_text": text})

    @invariant()
    def the_files_are_those_of_the_model(self):
        if not hasattr(self, "space"):
            return
        assert {entry.path: entry.bytes for entry in self.space.files.list()} == {
            path: len(text.encode()) for path, text in self.model.items()
        }
        for path, text in self.model.items():
            assert self.space.files.read(path).text == text
            assert self.tool.call({"command": "view", "path": path}) == self.sdk.call(
                {"command": "view", "path": path}
            )


FilesMachine.TestCase.settings = settings(max_examples=25, stateful_step_count=15)
TestFiles = FilesMachine.TestCase
