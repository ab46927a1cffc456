r"""Secret redaction: find secrets in a text and replace them with placeholders.

`RULES` is the whole policy. A rule is tried only at its hints (literals found with `str.find`), and its gate names
what else the text must contain, so ordinary prose costs only a few scans.

There are three kinds of rule. A token with a recognisable format (`ghp_…`, read from `formats.toml`) is always a secret, unless it is filler such
as `ghp_xxxx…`. A value without a format is a secret only because of its name, so both are checked: `password` accepts
almost any value, `token` needs a random one. In prose and on command lines a word or an option takes the place of the
name. Randomness alone is never enough: digests, commit ids, UUIDs and base64
images are random too.

Redaction is idempotent by construction: the text between two placeholders is scanned as if it were alone, and `find`
repeats this on the remainder until it finds nothing.

No pattern backtracks without bound: quantifiers are bounded, or their run starts at a boundary that occurs once.
"""

from memplane.safety.redact.find import find_secrets, redact, redact_tree
from memplane.safety.redact.personal import find_personal_data, redact_personal_data
from memplane.safety.redact.rule import CARAPACE, CLAWDAPUS, NATIVE, Redacted, SecretFinding, Style
from memplane.safety.redact.rules import RULES

__all__ = [
    "CARAPACE",
    "CLAWDAPUS",
    "NATIVE",
    "RULES",
    "Redacted",
    "SecretFinding",
    "Style",
    "find_personal_data",
    "find_secrets",
    "redact",
    "redact_personal_data",
    "redact_tree",
]
