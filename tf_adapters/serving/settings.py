"""The settings of a server."""

from __future__ import annotations

import dataclasses

from tf_adapters.serving.limits import Limits


@dataclasses.dataclass(frozen=True)
class Settings:
    """The settings of a server.

    Attributes:
        places: Folders and addresses of adapters, see `find_adapters`.
        encoder: Name of the encoder, or path of its folder.
        precision: Type in which the encoder computes.
        quantize: Type to which the encoder is quantized, or `None`.
        host: Address to listen on. `"0.0.0.0"` is every network.
        port: Port to listen on.
        capacity: Maximum number of adapters in memory.
        max_tokens: Maximum number of tokens of a batch.
        replicas: Number of processes that compute, each with all adapters.
        gpus: Number of GPUs for each of them.
        ray_address: Address of a Ray cluster, or `None` to start Ray here.
        allow_sources: Sources that clients may name, see `is_allowed`.
        at_first_use: Whether adapters are loaded when they are first asked for.
        plugins: Paths of Python files with methods and heads of users.
        token: Token that clients must send, or `None`.
        log_file: Path of the file for a line about each request, or `None`.
        grace: Seconds for which the server waits for its requests at the end.
        verbose: Whether to print what Ray's processes print.
        limits: `Limits` on requests.
    """

    places: tuple[str, ...]
    encoder: str
    precision: str = "float32"
    quantize: str | None = None
    host: str = "127.0.0.1"
    port: int = 8501
    capacity: int = 1_000
    max_tokens: int = 2_048
    replicas: int = 1
    gpus: float = 0.0
    ray_address: str | None = None
    allow_sources: tuple[str, ...] = ()
    at_first_use: bool = False
    plugins: tuple[str, ...] = ()
    token: str | None = dataclasses.field(default=None, repr=False)
    log_file: str | None = None
    grace: float = 30.0
    verbose: bool = False
    limits: Limits = dataclasses.field(default_factory=Limits)
