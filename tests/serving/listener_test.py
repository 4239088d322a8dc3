"""The socket on which the server listens."""

import pytest

from tf_adapters.serving.listener import bound_socket


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "::"])
def test_addresses_of_both_protocols_are_bound(host):
    with bound_socket(host, 0) as first:
        first.listen()
        name, port, *_ = first.getsockname()
        assert name == host
        with pytest.raises(OSError, match="in use"):
            bound_socket(host, port)
