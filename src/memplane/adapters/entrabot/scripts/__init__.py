"""EntraBot's scripts, as modules that its tests and its setup load."""
