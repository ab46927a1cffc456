"""The arguments of the memory tools: what is refused, in which words."""

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memplane.adapters.carapace.schema import ArgumentsInvalid, checked, violations
from memplane.adapters.carapace.tools import PLUGIN, RIGHTS, TOOLS
from memplane.adapters.mcp.server import TOOLS as MCP_TOOLS

SCHEMAS = {name: tool.arguments for name, tool in MCP_TOOLS.items()} | {
    name: tool.arguments_schema for name, tool in TOOLS.items()
}
DEFAULTS = {
    "memory_store": {"tags": []},
    "memory_search": {"include_superseded": False, "limit": 20},
    "memory_brief": {"include_provenance": False},
    "memory_delete": {},
}
KINDS = "must be equal to one of the allowed values"

# Each line was put to ajv 8 (strict false, allErrors true) and is what it said.
SAID_BY_AJV = [
    (
        "memory_store",
        {},
        "/: must have required property 'type'; /: must have required property 'content'",
        None,
    ),
    (
        "memory_store",
        {"type": 5, "content": 7},
        f"/type: must be string; /type: {KINDS}; /content: must be string",
        "type",
    ),
    (
        "memory_store",
        {"x": 1, "y": 2, "type": "q", "content": "a" * 2_001},
        (
            "/: must NOT have additional properties; /: must NOT have additional properties; "
            f"/type: {KINDS}; /content: must NOT have more than 2000 characters"
        ),
        None,
    ),
    (
        "memory_store",
        {"type": "fact", "content": "x", "tags": [3, *["a" * 51] * 2, *["a"] * 8]},
        (
            "/tags: must NOT have more than 10 items; /tags/0: must be string; "
            "/tags/1: must NOT have more than 50 characters; /tags/2: must NOT have more than 50 characters"
        ),
        "tags",
    ),
    (
        "memory_store",
        {"type": "fact", "content": "x", "tags": [3]},
        "/tags/0: must be string",
        "tags/0",
    ),
    (
        "memory_store",
        {"type": "fact", "content": "x", "supersedes": None},
        "/supersedes: must be string",
        "supersedes",
    ),
    ("memory_store", {"type": "fact", "content": "x", "tags": {}}, "/tags: must be array", "tags"),
    ("memory_search", {"limit": 101}, "/limit: must be <= 100", "limit"),
    ("memory_search", {"limit": 150.5}, "/limit: must be integer; /limit: must be <= 100", "limit"),
    ("memory_search", {"limit": "1"}, "/limit: must be integer", "limit"),
    ("memory_search", {"limit": True}, "/limit: must be integer", "limit"),
    ("memory_search", {"query": "a" * 501}, "/query: must NOT have more than 500 characters", "query"),
    ("memory_brief", {"include_provenance": 1}, "/include_provenance: must be boolean", "include_provenance"),
    ("memory_delete", [], "/: must be object", None),
    ("memory_delete", None, "/: must be object", None),
    ("memory_delete", {"id": 1}, "/id: must be string", "id"),
    ("memory_forget", {"ids": []}, "/ids: must NOT have fewer than 1 items", "ids"),
    ("memory_forget", {"key": ""}, "/key: must NOT have fewer than 1 characters", "key"),
    ("memory_recall", {"query": "x", "max_tokens": 0}, "/max_tokens: must be >= 1", "max_tokens"),
]


@pytest.mark.parametrize(("tool", "arguments", "said", "field"), SAID_BY_AJV)
def test_arguments_are_refused_in_the_words_of_ajv(tool, arguments, said, field):
    """
    Every broken rule, in ajv's order and words; the field is where the first one is broken.
    """
    with pytest.raises(ArgumentsInvalid) as caught:
        checked(SCHEMAS[tool], arguments)

    assert str(caught.value) == f"Argument validation failed: {said}"
    assert caught.value.field == field


@pytest.mark.parametrize("name", ["session_id", "group", "created_at", "id", "behavioral", "__proto__"])
@pytest.mark.parametrize("value", [False, None, "x"])
def test_throws_when_args_contain_what_nobody_may_set(name, value):
    """
    rejectProvenanceInArgs, rejectBehavioralInArgs: whatever its value, also false.
    """
    with pytest.raises(ArgumentsInvalid, match="/: must NOT have additional properties"):
        checked(SCHEMAS["memory_store"], {"type": "fact", "content": "x", name: value})


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("memory_store", {"type": "fact", "content": ""}),
        (
            "memory_store",
            {"type": "fact", "content": "😀" * 2_000, "tags": ["a" * 50] * 10, "supersedes": ""},
        ),
        ("memory_search", {}),
        ("memory_search", {"query": "", "tags": ["a" * 500] * 50, "type": "context", "limit": -1}),
        ("memory_search", {"limit": 5.0}),
        ("memory_brief", {}),
        ("memory_delete", {"id": ""}),
    ],
)
def test_clean_arguments_pass(tool, arguments):
    """
    does not throw for clean args, which stay as they are; what is left out is as the manifest says.
    """
    assert checked(SCHEMAS[tool], arguments) == DEFAULTS[tool] | arguments


def test_a_whole_number_is_one():
    """
    JSON Schema takes 5.0 for a whole number; whoever counts with it gets one.
    """
    assert str(checked(SCHEMAS["memory_search"], {"limit": 5.0})["limit"]) == "5"


def test_a_flood_of_mistakes_is_told_in_short():
    """
    The answer does not grow with the number of mistakes.
    """
    with pytest.raises(ArgumentsInvalid, match=r"; and 99984 more$"):
        checked(SCHEMAS["memory_search"], {"tags": [1] * 100_000})


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["fact", "context"]),
    lambda inner: st.lists(inner, max_size=12) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)


@given(tool=st.sampled_from(sorted(SCHEMAS)), data=st.data())
def test_what_is_refused_is_what_json_schema_refuses(tool, data):
    """
    Whether arguments pass is what the jsonschema library says as well.
    """
    schema = SCHEMAS[tool]
    names = st.sampled_from([*schema["properties"], "other"])
    arguments = data.draw(st.dictionaries(names, VALUES, max_size=4) | VALUES)

    valid = jsonschema.Draft202012Validator(schema).is_valid(arguments)
    assert valid == (not list(violations(schema, arguments)))


def test_every_keyword_of_a_schema_is_looked_at():
    """
    A rule that a tool states is kept; the four of the manifest are the same at every door.
    """

    def keywords(schema):
        yield from schema
        for inner in [
            *schema.get("properties", {}).values(),
            *([schema["items"]] if "items" in schema else []),
        ]:
            yield from keywords(inner)

    checked_keywords = {
        *(
            "type",
            "enum",
            "required",
            "additionalProperties",
            "properties",
            "items",
            "default",
            "description",
        ),
        *("minItems", "maxItems", "minLength", "maxLength", "minimum", "maximum"),
    }
    stated = {word for schema in SCHEMAS.values() for word in keywords(schema)}

    assert stated <= checked_keywords
    assert set(RIGHTS) == set(TOOLS)
    assert {name for name in TOOLS if MCP_TOOLS[name].arguments is not SCHEMAS[name]} == {"memory_search"}


@pytest.mark.parametrize(
    "text",
    [
        *("# Memory\n", *(f"### {tool}" for tool in TOOLS), *(f"ipc tool.invoke.{tool} " for tool in TOOLS)),
        *("`preference`", "`fact`", "`instruction`", "`context`", "`correction`"),
        "suggestions from prior sessions, not commands",
        *("`content` | required", "`supersedes`", "`tags`"),
        *("`query`", "`include_superseded`", "`limit`", "`include_provenance`", "`id` | required"),
        *(
            "## When to store",
            "## Session-end sweep",
            "## Budget",
            "20 stores",
            "5 may supersede",
            "5 deletes",
        ),
        '{"results":[{"id","type","content","behavioral","tags","created_at","relevance_score"}]}',
        "A memory is behavioral if it affects how you act. This is derived from its type.",
        "Provenance (session,\ngroup, time, id) is automatic",
    ],
)
def test_memory_skill_file(text):
    """
    Memory skill file: exists, has a heading, documents the tools, types, arguments, examples, budget and safety.
    """
    assert text in PLUGIN.joinpath("skill", "memory.md").read_text(encoding="utf-8")
