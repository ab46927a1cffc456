"""Pictures for the docs are taken by a script."""

import re
from pathlib import Path

import pytest
from PIL import Image
from scripts import screenshots

ROOT = Path(__file__).parents[2]


def test_a_picture_is_taken(browser, tmp_path):
    """
    In light and dark, of a page as wide as a screen, and small enough for a repository.
    """
    taken = screenshots.take(["inbox"], tmp_path, browser, embedder=None)
    light, dark = (Image.open(file).convert("L") for file in taken)

    assert light.width == dark.width == screenshots.WIDTH * screenshots.SCALE
    assert light.getpixel((5, light.height - 5)) > 200
    assert dark.getpixel((5, dark.height - 5)) < 60


@pytest.mark.parametrize("page", ["README.md", "docs/guides/console.md"])
def test_pictures_in_the_docs_are_there(page):
    """
    Whatever a page shows was taken; none weighs much, nor all of them.
    """
    file = ROOT / page
    shown = re.findall(r'(?:src|srcset)="([^"]+\.png)"', file.read_text("utf-8"))
    assert shown
    assert [name for name in shown if not (file.parent / name).is_file()] == []
    sizes = [picture.stat().st_size for picture in screenshots.IMAGES.glob("*.png")]

    assert max(sizes) < screenshots.BYTES_MAX
    assert sum(sizes) < 1_500_000
