"""EntraBot under its own names, its settings, and a place for its blobs."""

import pytest

from blob_server import BlobServer
from memplane.adapters.entrabot.overlay import install
from memplane.adapters.entrabot.storage.backend import close_backends

install()  # the tests of EntraBot's memory import it by its own names


@pytest.fixture
def blob_server():
    serving = BlobServer()
    yield serving
    serving.close()


@pytest.fixture
def entrabot_settings(tmp_path, monkeypatch):
    """EntraBot's variables, unset but for the directory; call it to set some, such as `keep_memory_local="true"`."""
    for name in ("BLOB_ENDPOINT", "BLOB_CONTAINER", "KEEP_MEMORY_LOCAL", "PERSONA_SYNC", "STORAGE_TOKEN"):
        monkeypatch.delenv(f"ENTRABOT_{name}", raising=False)
    monkeypatch.setenv("ENTRABOT_DATA_DIR", str(tmp_path / "data"))

    def choose(**values):
        for name, value in values.items():
            monkeypatch.setenv(f"ENTRABOT_{name.upper()}", value)

    yield choose
    close_backends()
