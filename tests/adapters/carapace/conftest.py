"""A router that Carapace clients can ask."""

import pytest

from ipc_client import hosts


@pytest.fixture
def open_host(open_plane, tmp_path, clock):
    with hosts(open_plane, tmp_path, clock) as open_:
        yield open_


@pytest.fixture
def host(open_host):
    return open_host()
