"""Writes a line of JSON for each request, without texts."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import threading
import time
from typing import Any

from tf_adapters.serving.metrics import Handled


class RequestLog:
    """Writes lines of JSON to a file.

    A line has the fields of `Handled`, the time, and the id of the request. It
    has neither texts nor messages, which may quote texts.

    Args:
        path: Path of a file to append to, or `None` to write nothing.
    """

    def __init__(self, path: str | None) -> None:
        self._file: Any = None
        if path is not None:
            # Line by line, so that the last lines are there after a crash.
            self._file = open(path, "a", encoding="utf-8", buffering=1)  # noqa: SIM115
        self._lock = threading.Lock()

    def write(self, request_id: str, handled: Handled) -> None:
        """Writes the line of a request."""
        if self._file is None:
            return
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        line = {"time": now, "id": request_id, **dataclasses.asdict(handled)}
        line["seconds"] = round(handled.seconds, 4)
        # A full disk must not fail the request.
        with self._lock, contextlib.suppress(OSError):
            self._file.write(json.dumps(line, ensure_ascii=False) + "\n")
