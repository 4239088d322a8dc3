"""Adapters of many kinds on disk, and a server of them in this process."""

import asyncio

import pytest
from starlette.testclient import TestClient

from tests import commands
from tests import tiny
import tf_adapters
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.serving.app import App
from tf_adapters.serving.engine import Engine
from tf_adapters.serving.failures import loading_failed
from tf_adapters.serving.request_error import LoadError
from tf_adapters.serving.request_log import RequestLog
from tf_adapters.serving.service import Service

ENCODER = commands.ENCODER
# Name of an adapter: its method, its head, and an instance that it reads.
KINDS = {
    "films": (
        methods.Pfeiffer(units=4),
        heads.Classification(("bad", "good")),
        "the film is good",
    ),
    "stars": (methods.LoRA(rank=2), heads.Regression(), "the bad film"),
    "topics": (
        methods.BitFit(),
        heads.MultiLabel(("plot", "actors", "sound")),
        "the good plot of the film",
    ),
    "words": (
        methods.AdapterBias(),
        heads.Tagging(("NOUN", "OTHER")),
        "the good film",
    ),
    "questions": (
        methods.IA3(),
        heads.Span(),
        {"question": "what is good", "context": "the film is good"},
    ),
    "pairs": (
        methods.Houlsby(units=3),
        heads.Classification(("no", "maybe", "yes")),
        ["the film is good", "bad film"],
    ),
}


def write_adapters(folder, names=tuple(KINDS)):
    """Writes a run folder with a random adapter for each name."""
    encoder, tokenizer = tf_adapters.load_encoder(ENCODER)
    for name in names:
        method, head, instance = KINDS[name]
        model = tf_adapters.adapt(encoder, method, head, name=name)
        seed = sum(map(ord, name))
        tiny.randomize(model.trained_variables().values(), seed=seed)
        details = {"max_length": 24}
        if isinstance(instance, list):
            details["text_fields"] = ["first", "second"]
        tf_adapters.save_adapter(model, folder / name / "adapter", details)
        encoder.restore()
    return folder


def expected(folder, name, instances=None):
    """Returns an adapter's own answers, without bank and server."""
    instance = KINDS[name][2]
    texts = [instance] if instances is None else instances
    if name == "questions":
        texts = [(x["question"], x["context"]) for x in texts]
    elif name == "pairs":
        texts = [tuple(x) for x in texts]
    elif name == "words":
        texts = [x.split() for x in texts]
    model = tf_adapters.load(folder / name)
    model.adapter_model.run_eagerly = True  # A graph takes seconds to trace.
    return model.answer(texts)


def make_engine(capacity=10, max_tokens=256):
    """Returns an `Engine` on the small encoder."""
    encoder, tokenizer = tf_adapters.load_encoder(ENCODER)
    return Engine(encoder, tokenizer, capacity, max_tokens)


class LocalEngine:
    """An `EngineClient` for an `Engine` in this process."""

    def __init__(self, engine):
        self.engine = engine
        self.is_there = True
        self.gate = asyncio.Event()
        self.gate.set()

    async def answer(self, ask):
        await self.gate.wait()
        (reply,) = await asyncio.to_thread(self.engine.answer, [ask])
        return reply

    async def load(self, key, source):
        try:
            return await asyncio.to_thread(self.engine.load, key, source)
        except Exception as error:
            failed = loading_failed(error)
            raise LoadError(failed.status, failed.message) from error

    async def load_first(self, sources):
        await asyncio.to_thread(self.engine.load_first, sources)

    async def prepare(self):
        await asyncio.to_thread(self.engine.prepare)

    async def forget(self, key):
        self.engine.forget(key)

    async def is_ready(self):
        return self.is_there


def make_app(engine, limits, log_file, token=None, **options):
    """Returns an `App`, and a client that asks it."""
    service = Service(LocalEngine(engine), limits, **options)
    app = App(service, RequestLog(str(log_file)), token)
    return app, TestClient(app.starlette())


def close(found, wanted):
    """Returns whether two answers are equal, but for rounding."""
    if isinstance(wanted, dict):
        return found.keys() == wanted.keys() and all(
            close(found[key], wanted[key]) for key in wanted
        )
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(close, found, wanted))
    if isinstance(wanted, float):
        return found == pytest.approx(wanted, abs=2e-5)
    return found == wanted
