"""A pod file, its descriptors and its variables, as they are read."""

import contextlib
import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from memplane.adapters.clawdapus.pod.compile import DescriptorInvalid, parse_descriptor
from memplane.adapters.clawdapus.pod.podfile import PodInvalid, interpolate, parse_pod, read_env_file
from memplane.errors import InvalidRequest


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({}, "descriptor version must be 1 or 2, got 0"),
        ({"version": 3}, "descriptor version must be 1 or 2, got 3"),
        ({"version": 1, "memory": {}}, "descriptor version 1 does not support memory"),
        ({"version": 2, "memory": {}}, "memory: at least one of recall or retain must be declared"),
        (
            {"version": 2, "memory": {"forget": {"path": "/f"}}},
            "memory: at least one of recall or retain must be declared",
        ),
        ({"version": 2, "memory": {"recall": {}}}, "memory.recall.path is required"),
        (
            {"version": 2, "memory": {"retain": {"path": "x"}}},
            "memory.retain.path \"x\" must start with '/'",
        ),
        ({"version": 2, "auth": {"type": "basic"}}, "auth.type must be bearer, header or none, got basic"),
    ],
)
def test_a_descriptor_that_breaks_a_rule_is_refused(document, message):
    """
    In the original's words.
    """
    with pytest.raises(DescriptorInvalid) as refused:
        parse_descriptor(json.dumps(document).encode())

    assert str(refused.value) == message


def test_a_descriptor_is_read_leniently():
    """
    Unknown keys are passed over; one operation is enough.
    """
    found = parse_descriptor(
        b'{"version":2,"x":1,"memory":{"recall":{"path":"/r"}},"auth":{"type":"HEADER"}}'
    )

    assert (found.memory, found.auth_type) == ({"recall": "/r"}, "header")


def test_a_yaml_bomb_does_not_explode():
    """
    Aliases of aliases stay what they are: references.
    """
    levels = "\n".join(f"l{it}: &l{it} [{', '.join([f'*l{it - 1}'] * 9)}]" for it in range(1, 12))

    with pytest.raises(PodInvalid):
        parse_pod(f"l0: &l0 [x]\n{levels}\nservices: *l11\n".encode(), {}, default_name="x")


SHAPES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.dates(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "x-claw",
                    "services",
                    "memory",
                    "memory-defaults",
                    "service",
                    "timeout-ms",
                    "cllama",
                    "count",
                    "environment",
                    "expose",
                    "ports",
                    "build",
                    "labels",
                    "a",
                    "b",
                    "target",
                    "pod",
                    "type",
                    "mcp-stdio",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=25,
)


@given(SHAPES)
def test_any_pod_file_is_read_or_refused(document):
    """
    Whatever shape it has, there is a pod or one sentence, and never a crash.
    """
    with contextlib.suppress(InvalidRequest):
        assert parse_pod(yaml.safe_dump(document).encode(), {}, default_name="x").name


@given(st.binary(max_size=60) | SHAPES.map(lambda it: json.dumps(it, default=str).encode()))
def test_any_descriptor_is_read_or_refused(raw):
    """
    The same for descriptors, and for bytes that are none.
    """
    with contextlib.suppress(InvalidRequest):
        parse_descriptor(raw)
    with contextlib.suppress(InvalidRequest):
        parse_pod(raw, {}, default_name="x")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$A-${A}", "1-1"),
        ("${B:-x}${C:-y}${C-z}", "xy"),
        ("${A:+set}${D+no}", "set"),
        ("$$A ${D}", "$A "),
    ],
)
def test_variables_are_those_of_compose(text, expected):
    """
    Defaults, alternatives, and a dollar that is one.
    """
    assert interpolate(text, {"A": "1", "C": ""}) == expected


def test_an_env_file():
    """
    Quotes go, comments too.
    """
    raw = b"# no\nA=1 # why\nexport B='x # y'\nC=\nnonsense\n"

    assert read_env_file(raw) == {"A": "1", "B": "x # y", "C": ""}
