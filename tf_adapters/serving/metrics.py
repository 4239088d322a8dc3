"""Counts requests, texts and seconds for Prometheus."""

from __future__ import annotations

from collections.abc import Callable
import dataclasses

from tf_adapters.common.extras import needs_extra

with needs_extra("server", "The server"):
    import prometheus_client

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


@dataclasses.dataclass(frozen=True)
class Handled:
    """What is known of a request after its response was made.

    It holds no text of a client, so it can be logged.

    Attributes:
        route: Name of the kind of request, such as `"predict"`.
        status: HTTP status of the response.
        seconds: Seconds from its arrival to the response.
        adapter: Name of the adapter, or `""` if there is none of that name.
        texts: Number of instances that were answered.
        tokens: Number of tokens that were read.
    """

    route: str
    status: int
    seconds: float
    adapter: str = ""
    texts: int = 0
    tokens: int = 0


class Metrics:
    """The metrics of a server, in a registry of their own.

    Args:
        waiting: Function that returns the number of requests under way.
        num_adapters: Function that returns the number of adapters.
    """

    def __init__(
        self, waiting: Callable[[], int], num_adapters: Callable[[], int]
    ) -> None:
        self._registry = prometheus_client.CollectorRegistry()
        registry = self._registry
        self._requests = prometheus_client.Counter(
            "tf_adapters_requests",
            "Requests by kind and HTTP status.",
            ("route", "status"),
            registry=registry,
        )
        self._seconds = prometheus_client.Histogram(
            "tf_adapters_request_seconds",
            "Seconds from the arrival of a request to its response.",
            ("route",),
            buckets=_SECONDS,
            registry=registry,
        )
        self._texts = prometheus_client.Counter(
            "tf_adapters_texts",
            "Instances that were answered, by adapter.",
            ("adapter",),
            registry=registry,
        )
        self._tokens = prometheus_client.Counter(
            "tf_adapters_tokens", "Tokens that were read.", registry=registry
        )
        self._batches = prometheus_client.Histogram(
            "tf_adapters_batch_requests",
            "Requests that were computed together.",
            buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256),
            registry=registry,
        )
        prometheus_client.Gauge(
            "tf_adapters_requests_under_way",
            "Requests that wait or are computed.",
            registry=registry,
        ).set_function(waiting)
        prometheus_client.Gauge(
            "tf_adapters_adapters",
            "Adapters that are served.",
            registry=registry,
        ).set_function(num_adapters)

    def count(self, handled: Handled) -> None:
        """Adds a request to the metrics."""
        self._requests.labels(handled.route, str(handled.status)).inc()
        self._seconds.labels(handled.route).observe(handled.seconds)
        self._tokens.inc(handled.tokens)
        if handled.texts:
            self._texts.labels(handled.adapter).inc(handled.texts)

    def count_batch(self, num_requests: int) -> None:
        """Adds a batch of requests to the metrics."""
        self._batches.observe(num_requests)

    def forget(self, adapter: str) -> None:
        """Drops the number of texts of an adapter that is no longer served."""
        self._texts.remove_by_labels({"adapter": adapter})

    def text(self) -> bytes:
        """Returns the metrics in the text format of Prometheus."""
        return prometheus_client.generate_latest(self._registry)
