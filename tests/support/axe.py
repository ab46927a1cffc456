"""axe-core, which finds what keeps people from using a page: run within the page that a browser shows."""

from npm_tools import installed

VERSION = "4.14.0"
TAGS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
GRAVE = ("serious", "critical")

_RUN = """(options) => axe.run(document, options).then((found) => found.violations)"""


def axe_source():
    """What is evaluated in a page before it can be asked; skipped where npm cannot give it."""
    return (installed("axe-core", VERSION) / "node_modules" / "axe-core" / "axe.min.js").read_text("utf-8")


def violations(page, *, rules=()):
    """What is serious or worse, with the elements it is about."""
    only = {"type": "rule", "values": rules} if rules else {"type": "tag", "values": TAGS}
    found = page.evaluate(_RUN, {"runOnly": only, "resultTypes": ["violations"]})
    return [
        {
            "rule": one["id"],
            "help": one["help"],
            "nodes": [(node["html"][:200], node["failureSummary"]) for node in one["nodes"][:4]],
        }
        for one in found
        if one["impact"] in GRAVE
    ]
