"""CLAIV's client for Node."""

import json
import os
import subprocess

import pytest

import npm_tools
from http_server import OWNER

PACKAGE = "@claiv/memory"
VERSION = "0.6.4"

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


@pytest.fixture(scope="module")
def folder():
    return npm_tools.installed(PACKAGE, VERSION, folder="claiv")


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
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)

    assert found["kept"]["deduped"] is False
    assert found["told"]["answer_facts"][0]["object_text"] == "Svelte"
    assert found["listed"]["total"] == 1
    assert found["deleted"]["deleted"] is True
    assert found["receipt"]["deleted_counts"]["events"] == 1
    assert found["refused"] == [400, "invalid_request"]
