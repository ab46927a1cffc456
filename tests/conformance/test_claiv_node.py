"""CLAIV's client for Node, installed by name into a folder beside the tests, once. Without npm, or where the registry does not
have it, these tests are skipped."""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from http_server import OWNER

PACKAGE = "@claiv/memory"
VERSION = "0.6.4"
FOLDER = Path(__file__).parents[2] / ".conformance" / f"claiv-{VERSION}"

SCRIPT = """
import { ClaivClient } from "@claiv/memory";
const client = new ClaivClient({ apiKey: process.env.KEY, baseUrl: process.env.URL });
const here = { user_id: "alice", conversation_id: "monday" };
const kept = await client.ingest({ ...here, type: "message", role: "user", content: "I prefer Svelte" });
const told = await client.recall({ ...here, query: "Which framework do I prefer?" });
const document = await client.uploadDocument({
  user_id: "alice", project_id: "p", document_name: "Notes", content: "# Notes\\n\\nSome words.",
});
const listed = await client.listDocuments({ user_id: "alice" });
const deleted = await client.deleteDocument(document.document_id);
const gone = await client.forget({ user_id: "alice" });
const receipt = await client.getDeletionReceipt(gone.receipt_id);
let refused;
try { await client.ingest({ user_id: "alice" }); } catch (error) { refused = [error.status, error.code]; }
console.log(JSON.stringify({ kept, told, listed, deleted, receipt, refused }));
"""


def installed():
    """The folder; made aside and given its name when it is whole, so that two may try at once."""
    if (FOLDER / "node_modules").exists():
        return FOLDER
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("node and npm are not installed, and the client comes from there")
    FOLDER.parent.mkdir(exist_ok=True)
    aside = Path(tempfile.mkdtemp(dir=FOLDER.parent))
    try:
        done = subprocess.run(
            [npm, "install", "--prefix", aside, "--no-audit", "--no-fund", f"{PACKAGE}@{VERSION}"],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        if done.returncode:
            reason = next((line for line in done.stderr.splitlines() if "code" in line), "no reason given")
            pytest.skip(f"{PACKAGE} {VERSION} cannot be installed here: {reason}")
        if not FOLDER.exists():
            aside.rename(FOLDER)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return FOLDER


@pytest.fixture(scope="module")
def folder():
    return installed()


def test_the_client_for_node(folder, server):
    """
    What it sends is taken, what it is answered it can read, deletes included.
    """
    script = folder / "drive.mjs"
    script.write_text(SCRIPT)
    done = subprocess.run(
        ["node", script],
        env={"PATH": os.environ["PATH"], "KEY": OWNER, "URL": server.url},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)

    assert found["kept"]["deduped"] is False
    assert found["told"]["answer_facts"][0]["object_text"] == "Svelte"
    assert found["listed"]["total"] == 1
    assert found["deleted"]["deleted"] is True
    assert found["receipt"]["deleted_counts"]["events"] == 1
    assert found["refused"] == [400, "invalid_request"]
