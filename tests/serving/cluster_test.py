"""Connections of the server to a Ray cluster."""

import socket
import types

import pytest

from tf_adapters.common.errors import ConfigError
from tf_adapters.serving.settings import Settings


def test_a_cluster_that_does_not_answer_is_refused_at_once():
    pytest.importorskip("ray")
    from tf_adapters.serving import server

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # Nothing listens there.
        address = f"127.0.0.1:{free.getsockname()[1]}"
        settings = Settings((), "", port=0, ray_address=address)
        with (
            pytest.raises(ConfigError, match="Cannot reach Ray"),
            server.running(settings, {}),
        ):
            pass


def test_a_second_server_on_a_cluster_leaves_the_first_alone(monkeypatch):
    pytest.importorskip("ray")
    from tf_adapters.serving import server

    def fail(*arguments, **options):
        raise AssertionError("The first server would be replaced or ended.")

    status = types.SimpleNamespace(applications={"tf_adapters": "RUNNING"})
    monkeypatch.setattr(server, "_connect", lambda *_: None)
    monkeypatch.setattr(server.serve, "start", lambda **_: None)
    monkeypatch.setattr(server.serve, "status", lambda: status)
    monkeypatch.setattr(server.serve, "delete", fail)
    monkeypatch.setattr(server, "_run", fail)
    settings = Settings((), "", port=0, ray_address="auto")
    with (
        pytest.raises(ConfigError, match="a server of adapters already"),
        server.running(settings, {}),
    ):
        pass
