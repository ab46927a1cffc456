"""The v6 door: what clients of CLAIV Memory knock at."""
