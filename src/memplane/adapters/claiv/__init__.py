"""The CLAIV Memory v6 API."""
