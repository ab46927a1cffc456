"""Statuses of errors: clients and scripts rely on each of them."""

import inspect

import pytest

from memplane import errors
from memplane.auth import principal
from memplane.errors import ErrorCategory, MemplaneError
from memplane.models import embedding, llm
from memplane.server.errors import status_of
from memplane.terminal.exits import exit_code

STATUSES = {
    errors.Changed: (503, 4, True),
    errors.CollectionTaken: (409, 1, False),
    errors.DocumentUnreadable: (422, 1, False),
    errors.InvalidRequest: (422, 1, False),
    errors.KeyMismatch: (500, 4, False),
    errors.LimitReached: (429, 1, False),
    errors.ManifestUnreadable: (502, 4, False),
    errors.MemplaneError: (500, 70, False),
    errors.NotFound: (404, 1, False),
    errors.PathTaken: (409, 1, False),
    errors.QuotaExceeded: (429, 1, False),
    errors.RateLimited: (429, 1, True),
    errors.RemoteDenied: (502, 1, False),
    errors.RemoteError: (502, 4, False),
    errors.RemoteUnavailable: (503, 4, True),
    errors.SettingsInvalid: (500, 1, False),
    errors.StorageBusy: (503, 4, True),
    errors.StorageCorrupt: (500, 4, False),
    errors.StorageError: (500, 4, False),
    errors.StorageFull: (507, 4, False),
    errors.StorageTooNew: (500, 4, False),
    errors.StorageUnavailable: (503, 4, False),
    errors.StorageUncertain: (503, 4, False),
    errors.StorageUnreachable: (503, 4, True),
    errors.Unchanged: (502, 4, False),
    embedding.EmbeddingFailed: (502, 1, False),
    embedding.EmbeddingUnavailable: (503, 1, True),
    embedding.EmbeddingUnusable: (502, 1, False),
    principal.Forbidden: (403, 1, False),
    principal.KeySetUnavailable: (503, 4, True),
    llm.LLMFailed: (502, 1, False),
    llm.LLMUnavailable: (503, 1, True),
    llm.LLMUnusable: (502, 1, False),
    principal.LockedOut: (429, 1, True),
    principal.Unauthenticated: (401, 1, False),
}
"""HTTP status, exit status, and whether a retry may succeed."""


@pytest.mark.parametrize("kind", STATUSES, ids=lambda kind: kind.__name__)
def test_an_error_keeps_its_statuses(kind):
    """
    The table of categories and what an interface overrides give the statuses that clients know.
    """
    error = kind.__new__(kind)

    assert (status_of(error), exit_code(error), kind.retryable) == STATUSES[kind]


@pytest.mark.parametrize("module", [errors, principal, embedding, llm], ids=lambda module: module.__name__)
def test_no_error_is_left_out(module):
    """
    A new error is added to the table above.
    """
    found = {
        kind for _, kind in inspect.getmembers(module, inspect.isclass) if issubclass(kind, MemplaneError)
    }

    assert found <= set(STATUSES)


def test_a_category_is_the_callers_or_the_servers():
    """
    The message of an error is shown where its HTTP status blames the client, and only there.
    """
    assert [one for one in ErrorCategory if one.is_callers != (one.http_status < 500)] == []
