"""EntraBot's memory, by the names its programs import: the same calls, answers and errors, kept by Memplane.

`overlay.install()`, or `shim/` on the module path, puts these modules in the place of `entrabot.storage` and the
`entrabot.tools` that keep memory.
"""
