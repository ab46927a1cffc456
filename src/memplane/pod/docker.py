"""What only docker knows of a running pod: ports that it chose itself, and what the proxies logged."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

from memplane.errors import InvalidRequest

_SECONDS_MAX = 60


def published_place(compose_file: Path, service: str, port: int) -> tuple[str, str] | None:
    """Address and port on this machine; None where nobody can say."""
    said = _ask("compose", "-f", str(compose_file), "port", service, str(port))
    address, _, out = (said or b"").decode("utf-8", "replace").strip().rpartition(":")
    return (address, out) if out.isdecimal() and out != "0" else None


def proxy_lines(pod: str, since: str | None) -> Iterator[bytes]:
    """Line after line of each proxy. Raises `InvalidRequest` where docker does not tell."""
    labels = ("--filter", f"label=claw.pod={pod}", "--filter", "label=claw.role=proxy")
    names = _told(_ask("ps", "--all", *labels, "--format", "{{.Names}}"))
    for name in names.decode("utf-8", "replace").split():
        yield from _told(_ask("logs", *(("--since", since) if since else ()), name)).splitlines()


def _told(said: bytes | None) -> bytes:
    if said is None:
        raise InvalidRequest(
            "the logs of the pod's proxies cannot be had from docker; name them with --log FILE"
        )
    return said


def _ask(*words: str) -> bytes | None:
    """What it says; None where it fails or is not there."""
    try:
        done = subprocess.run(["docker", *words], capture_output=True, timeout=_SECONDS_MAX, check=True)  # noqa: S603, S607
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout
