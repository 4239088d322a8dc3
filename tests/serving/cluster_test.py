"""Connections of the server to a Ray cluster."""

import socket

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
