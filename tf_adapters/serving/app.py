"""The server as a Starlette application: checks, counts and logs requests."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
import time
from typing import Any
import uuid

from tf_adapters.common.extras import needs_extra
from tf_adapters.serving.metrics import Handled
from tf_adapters.serving.metrics import Metrics
from tf_adapters.serving.origins import check_origin
from tf_adapters.serving.origins import listens_locally
from tf_adapters.serving.request_error import RequestError
from tf_adapters.serving.request_log import RequestLog
from tf_adapters.serving.routes import Handler
from tf_adapters.serving.routes import Handlers
from tf_adapters.serving.service import Service
from tf_adapters.serving.under_way import UnderWay

with needs_extra("server", "The server"):
    from starlette.applications import Starlette
    from starlette.requests import ClientDisconnect
    from starlette.requests import Request
    from starlette.responses import JSONResponse
    from starlette.responses import Response
    from starlette.routing import Route

_LOGGER = logging.getLogger(__name__)
# Routes that answer without a token: probes of an orchestrator, and the page,
# which asks its user for the token.
_OPEN = ("live", "ready", "page")


class App:
    """Answers HTTP requests with a `Service`.

    Args:
        service: `Service`.
        log: `RequestLog`.
        token: String that clients must send as `Authorization: Bearer TOKEN`.
            Default: `None`, everybody may ask.
        host: Address on which the application is listened for. If it is this
            machine's own and there is no token, requests must name this machine
            as their host.
    """

    def __init__(
        self,
        service: Service,
        log: RequestLog,
        token: str | None = None,
        host: str = "",
    ) -> None:
        self.service = service
        self.log = log
        self.is_draining = False
        self._token = token
        self._is_local = token is None and listens_locally(host)
        self._open = UnderWay()
        self.metrics = Metrics(
            lambda: service.under_way.total,
            lambda: len(service.catalog.offers()),
        )

    def starlette(self) -> Starlette:
        """Returns the application with all routes."""
        handlers = Handlers(self.service, self.metrics)
        return Starlette(
            routes=[
                Route(path, self._endpoint(name, handler), methods=[method])
                for method, path, name, handler in handlers.routes()
            ],
            exception_handlers={404: _no_route, 405: _no_route},
        )

    def _endpoint(self, route: str, handler: Handler) -> Any:
        """Returns a handler's endpoint, which also checks, counts and logs."""

        async def endpoint(request: Request) -> Response:
            start = time.monotonic()
            request_id = request.headers.get("x-request-id", "")[:80]
            request_id = request_id or uuid.uuid4().hex
            known: dict[str, Any] = {}
            try:
                self._check(route, request)
                async with self._open.counting(route):
                    response, known = await handler(request)
            except RequestError as error:
                response = _refusal(error)
            except ClientDisconnect:
                response = Response(status_code=499)
            except Exception:
                _LOGGER.exception("A request failed.")
                message = (
                    f"Internal error. The request has the id {request_id}."
                )
                response = _refusal(RequestError(500, message))
            known = known or self._adapter_of(request)
            seconds = time.monotonic() - start
            handled = Handled(route, response.status_code, seconds, **known)
            self.metrics.count(handled)
            self.log.write(request_id, handled)
            if self.is_draining:
                response.headers["Connection"] = "close"
            return response

        return endpoint

    def _adapter_of(self, request: Request) -> dict[str, str]:
        """Returns which adapter a refused request names, if it is there."""
        name = request.path_params.get("name", "")
        return {"adapter": name} if self.service.catalog.find(name) else {}

    async def drain(self, seconds: float) -> int:
        """Refuses new requests, and waits until all others have ended.

        Args:
            seconds: Maximum number of seconds to wait.

        Returns:
            Number of requests that did not end.
        """
        self.is_draining = True
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._open.wait_for_end(), seconds)
        return self._open.total

    def _check(self, route: str, request: Request) -> None:
        """Raises a `RequestError` if a request may not be answered."""
        if self.is_draining and route != "live":
            raise RequestError(503, "The server ends.", retry_after=5)
        check_origin(request.headers, self._is_local)
        if self._token is None or route in _OPEN:
            return
        given = request.headers.get("authorization", "")
        expected = f"Bearer {self._token}"
        # In constant time, so that the time says nothing about the token.
        if not hmac.compare_digest(given.encode(), expected.encode()):
            raise RequestError(
                401, "Send the header `Authorization: Bearer TOKEN`."
            )


def _refusal(error: RequestError) -> JSONResponse:
    headers = {}
    if error.retry_after is not None:
        headers["Retry-After"] = str(error.retry_after)
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return JSONResponse({"error": error.message}, error.status, headers=headers)


async def _no_route(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    message = (
        f"{request.method} {request.url.path[:200]} is not offered. `POST "
        "/v1/models/NAME:predict` answers texts, and `POST "
        "/v2/repository/index` lists the adapters."
    )
    return JSONResponse({"error": message}, status)
