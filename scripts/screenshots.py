"""Pictures of the console for the README and the docs, in light and dark: `make screenshots`.

The memory in them is made up, the same each time; the letters are Inter and JetBrains Mono where they can be had, since
what a machine without a desktop has is no pleasure to look at.
"""

import argparse
import io
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

from PIL import Image
from playwright.sync_api import Browser
from scripts.demo_memory import ASKED, OWNER, DemoClock, tell

from browser import browsing
from http_server import serving
from memplane import Memplane, Settings

IMAGES = Path(__file__).parents[1] / "docs" / "images"
WIDTH, HEIGHT, SCALE = 1_280, 800, 1.5
COLOURS = 256
BYTES_MAX = 150_000

_SPACE = f"/console/space/@{OWNER}"
PAGES: dict[str, str] = {
    "home": "/console",
    "timeline": f"{_SPACE}/timeline",
    "memories": f"{_SPACE}/memories",
    "memory": f"{_SPACE}/memories/@{{memory}}",
    "recall": f"{_SPACE}/recall?q={quote_plus(ASKED)}",
    "inbox": f"{_SPACE}/inbox",
    "graph": f"{_SPACE}/graph",
    "compare": f"{_SPACE}/compare?begin=2026-11-04",
    "receipt": f"{_SPACE}/receipts/@{{receipt}}",
}
"""The name of a picture, and what it shows."""

_FONTS = ("fonts-inter", "fonts-jetbrains-mono")
_FONTS_CONF = """<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig>
<include ignore_missing="yes">/etc/fonts/fonts.conf</include><dir>{folder}</dir>
<match><test name="family" compare="contains"><string>sans</string></test>
<edit name="family" mode="assign" binding="strong"><string>Inter</string></edit></match>
<match><test name="family"><string>system-ui</string></test>
<edit name="family" mode="assign" binding="strong"><string>Inter</string></edit></match>
<match><test name="family"><string>ui-monospace</string></test>
<edit name="family" mode="assign" binding="strong"><string>JetBrains Mono</string></edit></match>
</fontconfig>"""


def take(pages: Sequence[str], folder: Path, browser: Browser, **options: Any) -> list[Path]:
    """The pictures of these pages; `KeyError` for one that is none. `options` are for the plane."""
    wanted = {name: PAGES[name] for name in pages}
    folder.mkdir(parents=True, exist_ok=True)
    clock = DemoClock()
    settings = Settings(recall_work_ms=60_000)
    with (
        tempfile.TemporaryDirectory() as place,
        Memplane.open(Path(place) / "memory", clock=clock, settings=settings, **options) as plane,
        closing(plane.identity()) as identity,
    ):
        ids = tell(plane, identity, clock)
        with serving(plane, keys=identity) as console:
            ticket = identity.ticket(adapter="console", ttl=timedelta(minutes=5)).reveal()
            pictures = _Pictures(browser, console.url, f"/console/enter?ticket={ticket}")
            return [
                pictures.take(path.format_map(ids), folder / f"{name}-{shade}.png", shade)
                for name, path in wanted.items()
                for shade in ("light", "dark")
            ]


class _Pictures:
    """A page that is signed in, and what it looks like."""

    def __init__(self, browser: Browser, url: str, enter: str) -> None:
        context = browser.new_context(
            base_url=url, viewport={"width": WIDTH, "height": HEIGHT}, device_scale_factor=SCALE
        )
        self._page = context.new_page()
        self._page.goto(enter)
        self._page.wait_for_url("**/console")

    def take(self, path: str, file: Path, shade: str) -> Path:
        self._page.emulate_media(color_scheme="dark" if shade == "dark" else "light", reduced_motion="reduce")
        self._page.goto(path)
        file.write_bytes(_small(self._page.screenshot()))
        return file


def _small(png: bytes) -> bytes:
    """With as many colours as a page has: a third of the size, and nobody sees it."""
    out = io.BytesIO()
    Image.open(io.BytesIO(png)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(
        out, "PNG", optimize=True
    )
    assert out.tell() < BYTES_MAX, f"a picture of {out.tell()} bytes is too large for a repository"
    return out.getvalue()


@contextmanager
def fonts() -> Iterator[None]:
    """Letters for the browser that starts within, unpacked beside the system's and known to nobody else."""
    with tempfile.TemporaryDirectory() as place:
        if shutil.which("apt-get") and shutil.which("dpkg-deb"):
            fetched = subprocess.run(
                ["apt-get", "download", *_FONTS], cwd=place, capture_output=True, check=False, timeout=120
            )
            for package in Path(place).glob("*.deb") if fetched.returncode == 0 else ():
                subprocess.run(["dpkg-deb", "-x", package, place], check=True, timeout=60)
            conf = Path(place) / "fonts.conf"
            conf.write_text(_FONTS_CONF.format(folder=place), "utf-8")
            os.environ["FONTCONFIG_FILE"] = str(conf)
        try:
            yield
        finally:
            os.environ.pop("FONTCONFIG_FILE", None)


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="*", default=list(PAGES), help="which; all of them if none is named")
    parser.add_argument("--folder", type=Path, default=IMAGES)
    given = parser.parse_args(arguments)
    with fonts(), browsing() as browser:
        for file in take(given.pages, given.folder, browser):
            print(f"{file.stat().st_size:>8,}  {file.name}")


if __name__ == "__main__":
    main(sys.argv[1:])
