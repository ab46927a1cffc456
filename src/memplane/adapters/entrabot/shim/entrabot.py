"""`entrabot` for programs that want its memory and not the rest: put the directory above this one on the module path."""

from memplane.adapters.entrabot.overlay import install

install()
