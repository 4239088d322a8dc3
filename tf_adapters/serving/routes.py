"""Handlers of the server's HTTP routes.

They speak TensorFlow Serving's REST API (`/v1/...`) and the Open Inference
Protocol (`/v2/...`), with an adapter in the place of a model.
"""

from __future__ import annotations

from collections.abc import Awaitable
from collections.abc import Callable
import importlib.resources
from typing import Any

import tf_adapters
from tf_adapters.common.extras import needs_extra
from tf_adapters.serving.instances import parse_object
from tf_adapters.serving.instances import read_instances
from tf_adapters.serving.metrics import Metrics
from tf_adapters.serving.request_error import RequestError
from tf_adapters.serving.service import Service
from tf_adapters.serving.tensors import output_tensors
from tf_adapters.serving.tensors import read_infer

with needs_extra("server", "The server"):
    from starlette.requests import Request
    from starlette.responses import HTMLResponse
    from starlette.responses import JSONResponse
    from starlette.responses import PlainTextResponse
    from starlette.responses import Response

_NAME = "tf_adapters"
_MODELS = "/v2/repository/models"
# The page loads nothing from elsewhere, and no other page may frame it.
_PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'; connect-src 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
}

# What a handler returns: the response, and attributes of `Handled`, to log.
Result = tuple[Response, dict[str, Any]]
Handler = Callable[[Request], Awaitable[Result]]


class Handlers:
    """Answers HTTP requests with a `Service`.

    Each handler takes a request, and returns its response and a dict with
    attributes of `Handled`. It raises a `RequestError` to refuse a request.

    Args:
        service: `Service`.
        metrics: `Metrics` to show.
    """

    def __init__(self, service: Service, metrics: Metrics) -> None:
        self.service = service
        self.metrics = metrics

    def routes(self) -> list[tuple[str, str, str, Handler]]:
        """Returns the method, path, name and handler of each route."""
        return [
            ("GET", "/", "page", self.page),
            ("GET", "/metrics", "metrics", self.show_metrics),
            ("GET", "/v1/models/{name}", "status", self.status),
            ("POST", "/v1/models/{name}:predict", "predict", self.predict),
            ("GET", "/v2", "server", self.server),
            ("GET", "/v2/health/live", "live", self.live),
            ("GET", "/v2/health/ready", "ready", self.ready),
            ("GET", "/v2/models/{name}", "metadata", self.metadata),
            ("GET", "/v2/models/{name}/ready", "model_ready", self.model_ready),
            ("POST", "/v2/models/{name}/infer", "infer", self.infer),
            ("POST", "/v2/repository/index", "index", self.index),
            ("POST", f"{_MODELS}/{{name}}/load", "load", self.load),
            ("POST", f"{_MODELS}/{{name}}/unload", "unload", self.unload),
        ]

    async def _body(self, request: Request) -> bytes:
        return await self.service.limits.read_body(
            request.stream(), request.headers
        )

    def _seconds(self, request: Request) -> float:
        asked = request.headers.get("x-request-timeout")
        return self.service.limits.timeout(asked)

    async def predict(self, request: Request) -> Result:
        """Answers `:predict` of TensorFlow Serving's API."""
        name, seconds = _name(request), self._seconds(request)
        await self.service.offer(name)
        instances = read_instances(
            await self._body(request), self.service.limits
        )
        _, reply = await self.service.predict(name, instances, seconds)
        known = {"adapter": name, "texts": len(instances)}
        return (
            JSONResponse({"predictions": reply.answers}),
            {**known, "tokens": reply.tokens},
        )

    async def infer(self, request: Request) -> Result:
        """Answers `infer` of the Open Inference Protocol."""
        name, seconds = _name(request), self._seconds(request)
        await self.service.offer(name)
        asked = read_infer(
            await self._body(request),
            self.service.limits,
            request.headers.get("inference-header-content-length"),
        )
        offer, reply = await self.service.predict(
            name, list(asked.instances), seconds
        )
        content = {
            "model_name": name,
            "model_version": str(offer.version),
            "outputs": output_tensors(reply.answers, asked.outputs),
        }
        if asked.id is not None:
            content["id"] = asked.id
        known = {"adapter": name, "texts": len(asked.instances)}
        return JSONResponse(content), {**known, "tokens": reply.tokens}

    async def status(self, request: Request) -> Result:
        """Answers whether an adapter is there, as TensorFlow Serving does."""
        offer = await self.service.offer(_name(request))
        state = {
            "version": str(offer.version),
            "state": "END" if offer.problem else "AVAILABLE",
            "status": {
                "error_code": "FAILED_PRECONDITION" if offer.problem else "OK",
                "error_message": offer.problem or "",
            },
        }
        content = {"model_version_status": [state]}
        return JSONResponse(content), {"adapter": offer.name}

    async def metadata(self, request: Request) -> Result:
        """Answers which inputs and outputs an adapter has."""
        offer, facts = await self.service.facts(_name(request))
        content = {
            "name": offer.name,
            "versions": [str(offer.version)],
            "platform": _NAME,
            "inputs": [
                {"name": field, "datatype": "BYTES", "shape": [-1]}
                for field in facts["fields"]
            ],
            "outputs": [],
            "parameters": facts,
        }
        return JSONResponse(content), {"adapter": offer.name}

    async def model_ready(self, request: Request) -> Result:
        """Answers 200 if an adapter can be asked."""
        offer, _ = await self.service.facts(_name(request))
        content = {"name": offer.name, "ready": True}
        return JSONResponse(content), {"adapter": offer.name}

    async def server(self, request: Request) -> Result:
        """Answers the server's name and version."""
        content = {
            "name": _NAME,
            "version": tf_adapters.__version__,
            "extensions": ["model_repository"],
        }
        return JSONResponse(content), {}

    async def live(self, request: Request) -> Result:
        """Answers 200, because the process runs."""
        return JSONResponse({"live": True}), {}

    async def ready(self, request: Request) -> Result:
        """Answers 200 if the engine answers, or 503."""
        if not await self.service.engine.is_ready():
            raise RequestError(503, "The encoder is being loaded.", 5)
        return JSONResponse({"ready": True}), {}

    async def index(self, request: Request) -> Result:
        """Answers a list of all adapters."""
        found = [
            {
                "name": offer.name,
                "version": str(offer.version),
                "state": "UNAVAILABLE" if offer.problem else "READY",
                "reason": offer.problem or "",
            }
            for offer in await self.service.offers()
        ]
        return JSONResponse(found), {}

    async def load(self, request: Request) -> Result:
        """Loads an adapter, or loads it again."""
        content = parse_object(await self._body(request))
        parameters = content.get("parameters") or {}
        source = (
            parameters.get("source") if isinstance(parameters, dict) else ""
        )
        if not isinstance(source, str | None) or source == "":
            raise RequestError(
                400,
                '`parameters` must be an object, as in {"source": "hf://o/n"}.',
            )
        offer = await self.service.load(_name(request), source)
        content = {"name": offer.name, "version": str(offer.version)}
        return JSONResponse(content), {"adapter": offer.name}

    async def unload(self, request: Request) -> Result:
        """Unloads an adapter when its requests have ended."""
        name = _name(request)
        await self.service.unload(name)
        self.metrics.forget(name)
        return JSONResponse({"name": name}), {"adapter": name}

    async def show_metrics(self, request: Request) -> Result:
        """Answers the metrics, for Prometheus."""
        return PlainTextResponse(self.metrics.text()), {}

    async def page(self, request: Request) -> Result:
        """Answers the page that asks several adapters about a text."""
        page = importlib.resources.files("tf_adapters.serving") / "page.html"
        text = page.read_text(encoding="utf-8")
        return HTMLResponse(text, headers=_PAGE_HEADERS), {}


def _name(request: Request) -> str:
    return request.path_params["name"]
