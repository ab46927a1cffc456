"""The HTTP doors: one frame for all of them, and one module a door."""
