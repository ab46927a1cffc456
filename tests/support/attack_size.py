"""How far the attack tests go: a short form with the other tests, a long one with `make attack`."""

import os

LONG = os.environ.get("MEMPLANE_ATTACK") == "long"
