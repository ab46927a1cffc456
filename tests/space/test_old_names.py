"""The API of a space: which names it has, and that earlier names still work."""

import inspect
from operator import attrgetter

import pytest

from memplane import RecallRequest, Space
from memplane.errors import InvalidRequest
from memplane.recall.request import RecallOptions
from memplane.recall.result import Limits
from memplane.space.deprecated import MOVED

VERBS_MAX = 26


@pytest.mark.parametrize("name", MOVED)
def test_an_earlier_name_leads_to_the_new_one(space, name):
    """
    With a warning that says where it is now.
    """
    with pytest.warns(DeprecationWarning, match=rf"space\.{name} is now space\.{MOVED[name]}$"):
        found = getattr(space, name)

    assert found == attrgetter(MOVED[name])(space)


@pytest.mark.parametrize("name", ["documents", "files", "facts"])
def test_a_listing_that_was_a_method_can_still_be_called(space, name):
    """
    The sub-object has the name of that method.
    """
    with pytest.warns(DeprecationWarning, match=rf"space\.{name}\(\) is now space\.{name}\.list\(\)"):
        assert getattr(space, name)() == []


def test_an_unknown_name_is_an_attribute_error(space):
    """
    As for any other object.
    """
    assert not hasattr(space, "no_such_thing")


def test_space_has_few_verbs():
    """
    Everything else belongs to a sub-object.
    """
    verbs = [name for name, _ in inspect.getmembers(Space, inspect.isfunction) if not name.startswith("_")]

    assert len(verbs) <= VERBS_MAX


def test_recall_takes_what_a_request_has():
    """
    The keyword arguments are the fields of `RecallRequest` beside its query.
    """
    assert ["query", *RecallOptions.__annotations__] == list(RecallRequest.__struct_fields__)


def test_a_request_and_keyword_arguments_recall_the_same(space):
    """
    Adapters build the request, people write the arguments.
    """
    space.retain("I moved to Lisbon last week", conversation="c1")
    request = RecallRequest(query="where does she live?", conversation="c1", limits=Limits(turns=3))

    assert (
        space.recall(request).text
        == space.recall(request.query, conversation="c1", limits=request.limits).text
    )


@pytest.mark.parametrize(
    "options",
    [{"query": 7}, {"as_of": "yesterday"}, {"conversation": "\ud800"}, {"limits": Limits(spans=51)}],
)
def test_an_invalid_request_is_refused_when_it_is_made(options):
    """
    Before any adapter hands it to a space.
    """
    with pytest.raises(InvalidRequest):
        RecallRequest(**{"query": "tea", **options})
