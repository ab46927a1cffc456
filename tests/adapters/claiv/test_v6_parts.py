"""The parts of the v6 door that need no server."""

import base64
from contextlib import suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memplane.adapters.all import all_adapters
from memplane.adapters.claiv.recall import RecallReference, fact_of, read_recall_id, recall_id_of
from memplane.config import Settings
from memplane.server.app import error_format
from memplane.server.errors import ErrorContext, HttpError


@given(st.text(min_size=1), st.integers(0, 1 << 52), st.lists(st.text(max_size=50), max_size=30))
def test_a_recall_id_says_what_was_told(owner, at, facts):
    """
    Whatever the names are: it fits into one segment of a path and is read back as it was.
    """
    told = RecallReference(
        owner.encode("utf-8", "replace").decode(),
        at,
        tuple(f.encode("utf-8", "replace").decode() for f in facts),
    )
    spelled = recall_id_of(told)

    assert read_recall_id(spelled) == told
    assert set(spelled) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "r1_",
        "r1_!!!",
        "r1_é",
        "r0_abc",
        "r1_" + "A" * 20_000,
        "r1_" + base64.urlsafe_b64encode(b'["alice"]').decode(),
        "r1_" + base64.urlsafe_b64encode(b'{"owner":1}').decode(),
        "r1_" + base64.urlsafe_b64encode(b"\xff\xfe").decode(),
        "r1_" + base64.urlsafe_b64encode(b'["alice",999999999999999999,[]]').decode(),
    ],
)
def test_what_is_no_recall_id_is_not_found(text):
    """
    Made up, cut off or of another shape: a 404, and nothing worse.
    """
    with pytest.raises(HttpError) as found:
        read_recall_id(text)

    assert found.value.status == 404


@given(st.text())
def test_no_text_breaks_the_reading_of_a_recall_id(text):
    """
    Anything at all is either an id of ours or refused.
    """
    with suppress(HttpError):
        assert isinstance(read_recall_id(f"r1_{text}"), RecallReference)


def test_an_event_tags_its_facts_with_a_document(space):
    """
    The document's id and name stand beside facts that were read out of such an event, and beside no others.
    """
    space.retain("I prefer Svelte", document="d1", document_name="Notes")
    space.retain("I live in Lisbon", metadata={"document": "d2"})
    space.retain("I work at Acme")
    space.enrich()
    memories = space.overview.newest_memories(10)
    about = space.documents.mentioned_by(memories)

    found = {memory.object_text: fact_of(memory, about) for memory in memories}
    assert (found["Svelte"].document_id, found["Svelte"].document_name) == ("d1", "Notes")
    assert (found["Lisbon"].document_id, found["Acme"].document_id) == (None, None)


def test_what_was_stored_on_purpose_is_a_fact_too(space):
    """
    It has no predicate; its key or its kind takes that place, and no member is missing.
    """
    stored = fact_of(space.store("preference", "Dark mode"), {})
    keyed = fact_of(space.put("editor/theme", "dark"), {})

    assert (stored.subject, stored.predicate, stored.object_text) == ("user", "preference", "Dark mode")
    assert (keyed.predicate, keyed.object_text, keyed.text) == ("editor/theme", "dark", "editor/theme: dark")


@pytest.mark.parametrize("path", ["/v6/recall", "/v6/", "/v1/usage/x", "/v1/deletion-receipts/x"])
def test_refusals_are_in_words_that_claivs_clients_know(plane, path):
    """
    400 for 422, `unauthorized` for a credential, and how long to wait in the body.
    """
    context = ErrorContext(request_id="r1")
    format_ = error_format(all_adapters(plane, Settings()), path)
    unread = format_.render(HttpError(422, "invalid_request", "m", details={"field": "f"}), context)
    busy = format_.render(HttpError(503, "storage_busy", "m", headers={"retry-after": "1"}), context)
    wrong = format_.render(HttpError(401, "unauthenticated", "m"), context)

    assert (unread.status_code, msgspec.json.decode(unread.body)) == (
        400,
        {"error": {"code": "invalid_request", "message": "m", "request_id": "r1", "details": {"field": "f"}}},
    )
    assert msgspec.json.decode(busy.body)["error"]["details"] == {"retry_after": 1}
    assert msgspec.json.decode(wrong.body)["error"] == {
        "code": "unauthorized",
        "message": "m",
        "request_id": "r1",
    }
