"""Front matter: what is written reads back, and what others wrote is never taken for more than text."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from memplane.sync.tree.frontmatter import YAML_CHARS_MAX, _as_written, part, with_members, written

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
NAMES = st.sampled_from(["name", "description", "tags", "some_more", "x-y"])
VALUES = st.one_of(TEXTS, st.lists(TEXTS, max_size=4))
AWKWARD = st.text(st.sampled_from("-\n\r \t:ab#'\"[]{}|>&*!%@`,?"), max_size=60)


@given(st.dictionaries(NAMES, VALUES), TEXTS)
def test_what_is_written_reads_back(members, body):
    """
    Any members and any body come back exactly, here and in a plain YAML reader.
    """
    head = with_members("", members)
    parted = part(head + body)

    assert (parted.head, parted.body, parted.members) == (head, body, members)
    inner = head.removeprefix("---\n").removesuffix("---\n")
    assert yaml.load(inner, Loader=yaml.BaseLoader) == (members or None)


@given(TEXTS)
def test_a_value_is_one_line(text):
    """
    Whatever a value is, it cannot end its line, its list or its front matter.
    """
    assert written(text).splitlines() in ([written(text)], [])
    assert yaml.safe_load(f"a: [{written(text)}]") is not None


@given(AWKWARD)
def test_nothing_is_lost_in_parting(text):
    """
    Head and body are the text, letter by letter.
    """
    for whole in (text, f"---\n{text}", f"---\n{text}\n---\n{text}", f"\ufeff---\r\n{text}\r\n---\r\n{text}"):
        parted = part(whole)

        assert parted.head + parted.body == whole


@given(AWKWARD, TEXTS)
def test_a_member_is_set_in_any_head(text, value):
    """
    Setting one member keeps every other one, whatever the head looks like.
    """
    head = part(f"---\n{text}\n---\nbody").head
    before = part(head).members
    after = part(with_members(head, {"id": value}) + "body")

    assert after.body == "body"
    assert after.members == {**before, "id": value}


def test_the_order_comments_and_unknown_members_stay():
    """
    A rewrite touches the lines it changes and no others.
    """
    head = "---\nname: x: y\n# mine\nchats:\n- a\n- b\ntype: user\nwhen: 2026-01-01 # a day\n---\n"

    assert with_members(head, {"type": "feedback", "id": "m1", "gone": None}) == head.replace(
        "type: user", "type: feedback"
    ).replace("# a day\n", "# a day\nid: m1\n")


def test_line_ends_and_the_byte_order_mark_stay():
    """
    A file from another system is written as it was.
    """
    head = with_members("\ufeff---\r\nname: a\r\n---\r\n", {"id": "1x"})

    assert head == '\ufeff---\r\nname: a\r\nid: "1x"\r\n---\r\n'


@pytest.mark.parametrize(
    ("text", "members"),
    [
        (
            '---\nname: a: b: c\ndescription: it\'s "so"\n---\nx',
            {"name": "a: b: c", "description": 'it\'s "so"'},
        ),
        ("---\nname: [a\ntype: user\n---\nx", {"name": "[a", "type": "user"}),
        ("---\na: &x [1, 2]\nb: *x\n---\nx", {"a": "&x [1, 2]", "b": "*x"}),
        ("---\nname:\tfoo\n---\nx", {"name": "foo"}),
        (
            "---\nname: yes\nn: 010\nd: 2026-01-01\nz: null\n---\nx",
            {"name": "yes", "n": "010", "d": "2026-01-01", "z": "null"},
        ),
        ("---\n!!python/object/apply:os.system {}\n---\nx", {}),
        ('---\nt: !!python/object/apply:os.system ["true"]\n---\nx', {"t": ["true"]}),
        ("---\n---\nx", {}),
        ("---\nsome prose\n---\nx", {}),
        ("--- \nname: a\n---  \nx", {"name": "a"}),
        ("---\nname: a\n", {}),
        ("no front matter\n---\nname: a\n---\n", {}),
    ],
)
def test_what_people_write_is_taken_as_far_as_it_goes(text, members):
    """
    YAML that is none, types, tags, aliases: text, and nothing else.
    """
    assert part(text).members == members


def test_bombs_do_not_go_off():
    """
    Aliases that make gigabytes, nesting without end, and heads of megabytes are read line by line.
    """
    bomb = "\n".join(
        ["a0: &a0 [lol]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30))]
    )
    deep = "a: " + "[" * 8_000
    huge = "\n".join(f"m{n}: {n}" for n in range(YAML_CHARS_MAX))

    assert part(f"---\n{bomb}\n---\n").members["a0"] == "&a0 [lol]"
    assert part(f"---\n{deep}\n---\n").members["a"].startswith("[[[[")
    assert part(f"---\n{huge}\n---\n").members["m77"] == "77"


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b_c"]), st.text(st.sampled_from("ab \"\\[],.:-#'\r\u0085é1"), max_size=12)
        )
    )
)
def test_the_short_way_reads_as_yaml_does(rows):
    """
    What is read without a YAML reader is what one would have read.
    """
    inner = "".join(f"{name}: {value}\n" for name, value in rows)
    found = _as_written(inner) if rows else None

    assert found is None or found == yaml.load(inner, Loader=yaml.BaseLoader)
