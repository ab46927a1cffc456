"""A real browser: the distribution's Chromium, led by Playwright. Where there is none, and none can be installed, tests
that need one are skipped with the reason."""

import os
import shutil
import subprocess
from contextlib import contextmanager

import pytest
from playwright.sync_api import sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
INSTALL = ("apt-get", "install", "--yes", "--no-install-recommends", "chromium")
INSTALL_SECONDS_MAX = 280


def chromium():
    """The path of it. Debian's is installed where that can be done without asking anybody."""
    found = next((path for path in map(shutil.which, NAMES) if path), None)
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(
            INSTALL, env=environment, capture_output=True, check=False, timeout=INSTALL_SECONDS_MAX
        )
        found = shutil.which("chromium")
    if found is None:
        pytest.skip("no Chromium here, and it could not be installed; `apt-get install chromium` does it")
    return found


@contextmanager
def browsing():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium(), args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield browser
        browser.close()


class Watched:
    """A page that notes what should not happen: errors in the console, requests that leave the machine."""

    def __init__(self, page, url):
        self.page = page
        self.errors = []
        self.foreign = []
        page.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on(
            "request",
            lambda request: (
                None if request.url.startswith((url, "data:")) else self.foreign.append(request.url)
            ),
        )
