"""`tf-adapters serve FOLDER`: starts a server for the adapters in a folder."""

from __future__ import annotations

from collections.abc import Sequence
import os
import sys
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.cli.command import Command
from tf_adapters.cli.command import Flag
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import cut
from tf_adapters.config import plugins

if TYPE_CHECKING:
    from tf_adapters.serving.settings import Settings

# The command line of a process can be read by other users, its environment
# cannot.
_TOKEN = "TF_ADAPTERS_SERVER_TOKEN"


def run_serve(
    options: Any, layer: dict[str, Any], arguments: Sequence[str]
) -> None:
    """Serves adapters until SIGTERM or Ctrl-C.

    See `Command.run` for the arguments.

    Raises:
        ConfigError: If no folder is given, it holds no adapter, or an option
            has a wrong value.
    """
    if not arguments:
        raise ConfigError(
            "`tf-adapters serve` takes folders of adapters or of runs, or "
            "hf://owner/name addresses, as in tf-adapters serve runs/"
        )
    _check_options(options)
    # Imported here, so that --help is fast.
    from tf_adapters.serving import sources

    found = sources.find_adapters(arguments)
    if not found and not options.at_first_use:
        raise ConfigError(
            f"There is no adapter in {' and '.join(arguments)}. Train one, or "
            "give --at_first_use and --encoder to serve those that come later."
        )
    plugins.load_plugins(options.plugin)
    settings = _settings(options, layer, arguments, found)
    from tf_adapters.serving import server

    with server.running(settings, found):
        host = (
            settings.host if ":" not in settings.host else f"[{settings.host}]"
        )
        address = f"http://{host}:{settings.port}"
        encoder = settings.encoder
        if settings.quantize:
            encoder += f" in {settings.quantize}"
        adapters = "1 adapter" if len(found) == 1 else f"{len(found)} adapters"
        print(f"Serving {adapters} on {encoder}: {address}")
        sys.stdout.flush()
        server.wait_for_end()


def _check_options(options: Any) -> None:
    # An empty host would be every network.
    if not options.host:
        raise ConfigError(
            "--host is empty. Expected an address to listen on, such as "
            "--host=127.0.0.1, or --host=0.0.0.0 for every network."
        )
    if not options.timeout > 0:
        raise ConfigError(
            "--timeout must be a positive number of seconds. Received: "
            f"{options.timeout:g}"
        )
    _check_log_file(options)
    token = os.environ.get(_TOKEN, "")
    if not (token.isascii() and token.isprintable() and token == token.strip()):
        raise ConfigError(
            f"The environment variable {_TOKEN} has characters that the "
            "header of a request cannot have. Use letters, digits and "
            "punctuation of ASCII, without spaces at the ends."
        )


def _check_log_file(options: Any) -> None:
    """Raises a `ConfigError` if the log cannot be opened on this machine."""
    # Of a cluster, the machine of the gateway writes the log.
    if options.log_file is None or options.ray_address is not None:
        return
    try:
        with open(options.log_file, "a", encoding="utf-8"):
            pass
    except OSError as error:
        raise ConfigError(
            f"Cannot write to --log_file={cut(options.log_file)}: "
            f"{error.strerror}."
        ) from error


def _settings(
    options: Any,
    layer: dict[str, Any],
    places: Sequence[str],
    found: dict[str, str],
) -> Settings:
    from tf_adapters.serving.common_encoder import encoder_of
    from tf_adapters.serving.limits import Limits
    from tf_adapters.serving.settings import Settings

    encoder, quantize = layer.get("encoder"), layer.get("quantize")
    if encoder is None:
        encoder, quantize = encoder_of(found, quantize)
    return Settings(
        places=tuple(map(_absolute, places)),
        encoder=_encoder(encoder),
        precision=layer["train"].get("precision", "float32"),
        quantize=quantize,
        host=options.host,
        port=options.port,
        capacity=options.capacity,
        max_tokens=options.max_tokens,
        replicas=options.replicas,
        gpus=options.ray_gpus,
        ray_address=options.ray_address,
        allow_sources=tuple(map(_absolute, options.allow_sources or ())),
        at_first_use=options.at_first_use,
        plugins=tuple(map(_absolute, options.plugin)),
        token=os.environ.get(_TOKEN) or None,
        log_file=options.log_file and os.path.abspath(options.log_file),
        grace=options.grace,
        verbose=options.verbose,
        limits=Limits(
            texts=options.max_texts,
            characters=options.max_characters,
            # As two escapes of JSON, a character takes up to twelve bytes.
            body_bytes=max(Limits.body_bytes, 12 * options.max_characters),
            seconds=options.timeout,
            waiting=options.max_waiting,
        ),
    )


def _absolute(place: str) -> str:
    """Makes a path absolute, because Ray's processes run in another folder.

    Addresses and an empty text, which stands for no place, are returned
    unchanged.
    """
    is_path = place and "://" not in place
    return os.path.abspath(place) if is_path else place


def _encoder(name: str) -> str:
    """Makes an encoder's name absolute if it is the path of a folder."""
    # `load_encoder` does not take this name for a folder's either.
    is_folder = name != "minilm" and os.path.isdir(name)
    return _absolute(name) if is_folder else name


_OWN = (
    Flag("host", "Address to listen on; 0.0.0.0 for all.", "127.0.0.1"),
    Flag("port", "Port to listen on.", 8501, "integer", 1),
    Flag(
        "at_first_use",
        "Load an adapter when it is first asked for, and find those that come "
        "into the folders later. Default: load all at the start.",
        False,
        "boolean",
    ),
    Flag(
        "allow_sources",
        "Folders, and beginnings of hf:// addresses, from which clients may "
        "have adapters loaded, separated by commas.",
        kind="list",
    ),
    Flag(
        "capacity",
        "Adapters in memory. The least recently used one is removed for "
        "another, and loaded again when it is needed.",
        1_000,
        "integer",
        1,
    ),
    Flag(
        "max_tokens",
        "Tokens in a batch, which may mix adapters and clients.",
        2_048,
        "integer",
        1,
    ),
    Flag("timeout", "Seconds until a request fails.", 30.0, "float", 0.0),
    Flag(
        "max_waiting",
        "Requests that may wait. Others are refused with status 429.",
        1_000,
        "integer",
        1,
    ),
    Flag("max_texts", "Texts in a request.", 256, "integer", 1),
    Flag("max_characters", "Characters of a text.", 100_000, "integer", 1),
    Flag(
        "grace",
        "Seconds that accepted requests may take after SIGTERM.",
        30.0,
        "float",
        0.0,
    ),
    Flag(
        "log_file",
        "File for a line of JSON about each request, without its texts. "
        "Default: none.",
    ),
    Flag(
        "replicas",
        "Processes that compute, each with the encoder.",
        1,
        "integer",
        1,
    ),
    Flag(
        "ray_address",
        "Address of a running Ray cluster. Default: start Ray here.",
    ),
    Flag("ray_gpus", "GPUs for each replica.", 0.0, "float", 0.0),
)
COMMAND = Command(
    name="serve",
    summary="Serves many adapters on one encoder over HTTP, by TensorFlow "
    "Serving's REST API and the Open Inference Protocol, with a page to try "
    f"them. If the environment variable {_TOKEN} is set, clients must send "
    "its value as a bearer token.",
    usage="FOLDER|hf://OWNER/NAME ...",
    examples=(
        "tf-adapters serve runs/ --port=8501",
        "curl localhost:8501/v1/models/reviews:predict \\",
        """    -d '{"instances": ["a fine film"]}'""",
    ),
    groups={
        "Adapters": (
            *("encoder", "at_first_use", "allow_sources", "capacity"),
            *("precision", "quantize", "plugin"),
        ),
        "Network": ("host", "port", "log_file"),
        "Limits": (
            *("max_tokens", "timeout", "max_waiting"),
            *("max_texts", "max_characters", "grace"),
        ),
        "Ray": ("replicas", "ray_address", "ray_gpus", "verbose"),
    },
    run=run_serve,
    own_flags=_OWN,
    defaults={"encoder": "the adapters'", "precision": "float32"},
)
