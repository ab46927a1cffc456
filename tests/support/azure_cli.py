"""An `az` that plays Azure: it answers as a test says and remembers what it was asked."""

AZ = """#!/bin/sh
# Remembers what it was asked, and answers by the first rule that fits: "words<TAB>code<TAB>stdout<TAB>stderr".
printf '%s\\n' "$*" >> "$AZ_HOME/asked"
while IFS="$(printf '\\t')" read -r words code out err; do
  case "$*" in
    $words*) [ -n "$out" ] && printf '%s\\n' "$out"; [ -n "$err" ] && printf '%s\\n' "$err" >&2; exit "$code" ;;
  esac
done < "$AZ_HOME/rules"
exit 0
"""
ACCOUNT_ID = "/subscriptions/s/resourceGroups/entrabot-rg/providers/Microsoft.Storage/storageAccounts/a"
DEFAULT = [("storage account show*--query*", 0, ACCOUNT_ID, "")]
MISSING = [
    ("group show", 3, "", "not found"),
    *DEFAULT,
    ("storage account show", 3, "", "not found"),
    ("storage container show", 3, "", "not found"),
]


class Az:
    def __init__(self, home):
        self.home = home
        self.answers(DEFAULT)

    def answers(self, rules):
        rows = ("\t".join(map(str, (words, code, out or " ", err))) for words, code, out, err in rules)
        (self.home / "rules").write_text("".join(f"{row}\n" for row in rows))

    def asked(self):
        asked = self.home / "asked"
        return asked.read_text().splitlines() if asked.exists() else []


def fake_az(home, monkeypatch):
    """Put it first on the PATH."""
    home.mkdir()
    (home / "az").write_text(AZ)
    (home / "az").chmod(0o755)
    monkeypatch.setenv("AZ_HOME", str(home))
    monkeypatch.setenv("PATH", f"{home}:/usr/bin:/bin")
    return Az(home)
