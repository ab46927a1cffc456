r"""Secrets: where they stand in a text, and the text without them.

`RULES` is the whole policy. A rule is tried only where one of its hints stands (a literal, found with
`str.find`), and its gate says what else a text must hold first, so that ordinary prose costs a few scans and
no more.

Two kinds of rule decide differently. A token with a form of its own (`ghp_…`) is a secret wherever it stands,
unless it is filler such as `ghp_xxxx…`. A value without a form is one only because of its name, so both are
judged: `password` asks little of its value, `token` asks for something random. Randomness alone is never
enough: digests, commit ids, UUIDs and images in base64 are random too.

Redaction is idempotent by construction. What lies between two placeholders is always scanned as if it stood
alone, and `find` repeats that on what its own findings leave over until nothing is left to find.

Nothing here backtracks without bound: quantifiers are bounded, or their run starts at a boundary that a run
holds once.
"""

from memplane.safety.redact.find import find_secrets, redact, redact_tree
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
    "find_secrets",
    "redact",
    "redact_tree",
]
