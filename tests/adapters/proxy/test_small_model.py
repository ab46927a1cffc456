"""The whole loop with a real model: told in one conversation, known in the next. The model is too small to be asked whether
it understood, so what counts is what it was given to read."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import small_model
from proxy_server import fronting

WEIGHTS, MISSING = small_model.weights()


@pytest.fixture(scope="module")
def model_url():
    process = subprocess.Popen(
        [sys.executable, small_model.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=Path(small_model.__file__).parent,
    )
    yield next(line.strip() for line in process.stdout if line.startswith("http"))
    process.stdin.close()
    process.stdout.close()
    process.kill()
    process.wait()


@pytest.mark.skipif(WEIGHTS is None, reason=MISSING)
def test_a_real_model_is_given_what_was_told_before(open_plane, model_url, tmp_path):
    """
    Through OpenAI's API and Anthropic's: the model reads more tokens than the client sent, and among them what another
    conversation said; both of its answers are in the ledger.
    """
    urls = {"openai_base_url": f"{model_url}/v1", "anthropic_base_url": model_url}
    changes = urls | {"session_history_dir": str(tmp_path / "history"), "proxy_brief": False}
    with fronting(open_plane, **changes) as fronted:
        client = fronted.openai()
        short = {"model": "small", "max_tokens": 2}
        client.chat.completions.create(
            **short,
            messages=[{"role": "user", "content": "My dog is called Rex"}],
            extra_body={"cache_prompt": True},
        )
        asked = {"role": "user", "content": "What is my dog called?"}
        stream = client.chat.completions.create(
            **short, messages=[asked], stream=True, stream_options={"include_usage": True}
        )
        streamed = [event for event in stream if event.usage][-1].usage
        message = fronted.anthropic().messages.create(**short, messages=[asked])

        lines = (tmp_path / "history" / "alice" / "history.jsonl").read_bytes().splitlines()
        turns = fronted.turns()

    first, *later = [json.loads(line) for line in lines]
    assert "Rex" in str(first["request_original"])
    for entry in later:
        assert "Rex" not in str(entry["request_original"])
        assert "My dog is called Rex" in str(entry["request_effective"])
        assert entry["usage"]["prompt_tokens"] > 60
    assert streamed.prompt_tokens == later[0]["usage"]["prompt_tokens"]
    assert message.content[0].text.strip() in turns[-1][1]
    assert [role for role, _ in turns] == ["user", "assistant"] * 3
