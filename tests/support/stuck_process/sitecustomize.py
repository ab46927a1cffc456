"""Imported by a server process under test: at SIGUSR1 it computes for hours and keeps the interpreter's lock."""

import re
import signal

signal.signal(signal.SIGUSR1, lambda *_: re.match("(?:a|a)+$", "a" * 60 + "b"))
