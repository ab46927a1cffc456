"""The frame of the HTTP doors, over a real socket."""


def test_health_is_open_and_has_both_words(server):
    """
    `/healthz` answers everybody, in the words of both contracts.
    """
    answer = server.client(None).get("/healthz")

    assert answer.status_code == 200
    assert (answer.json()["status"], answer.json()["ok"]) == ("ok", True)
    assert answer.headers["x-request-id"]
