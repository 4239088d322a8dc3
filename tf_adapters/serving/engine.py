"""Computes the predictions of many requests, each with its own adapter."""

from __future__ import annotations

import functools
import itertools
import logging
import threading
import time
from typing import TYPE_CHECKING
from typing import Any

import numpy as np
import tensorflow as tf

from tf_adapters.common.errors import UserError
from tf_adapters.serving.adapter_bank import AdapterBank
from tf_adapters.serving.encoding import Question
from tf_adapters.serving.encoding import encode
from tf_adapters.serving.fast_packer import Packers
from tf_adapters.serving.messages import Ask
from tf_adapters.serving.messages import Reply
from tf_adapters.serving.request_error import RequestError
from tf_adapters.serving.steps import padded_features
from tf_adapters.serving.steps import plan_steps

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Sequence

    from tf_adapters.data.examples import Examples
    from tf_adapters.encoders.encoder import Encoder
    from tf_adapters.models.bank_model import BankModel

_LOGGER = logging.getLogger(__name__)
# Number of adapters of each kind for which there is room in the bank's
# variables from the start. With more, the variables are doubled.
_SPARE = 16


class Engine:
    """Answers requests with a bank of adapters. Several threads may use it.

    Args:
        encoder: The `Encoder` of all adapters.
        tokenizer: The encoder's tokenizer, from `load_encoder`.
        capacity: Maximum number of adapters in memory.
        max_tokens: Maximum number of tokens that are computed together, padding
            included.
    """

    def __init__(
        self, encoder: Encoder, tokenizer: Any, capacity: int, max_tokens: int
    ) -> None:
        self.max_tokens = max_tokens
        self.adapters = AdapterBank(encoder, capacity)
        packers = Packers(tokenizer, encoder.takes_segments)
        self._packer = functools.lru_cache(packers.make)
        self._graphs = _Graphs()

    def load(self, key: str, source: str) -> dict[str, Any]:
        """Loads an adapter; see `AdapterBank.load`."""
        return self.adapters.load(key, source)

    def load_first(self, sources: dict[str, str]) -> None:
        """Loads many adapters at once; see `AdapterBank.load_first`."""
        self.adapters.load_first(sources)

    def prepare(self) -> None:
        """Makes the graph, and room for a few more adapters of each kind.

        Otherwise, the first request would wait for this, and so would the first
        request after an adapter was added.
        """
        if not self.adapters.is_empty:
            self.adapters.bank.reserve(_SPARE)
            names = self.adapters.bank.feature_shapes()
            one = dict.fromkeys(names, np.ones((1, 1), "int32"))
            absent = np.array([-1], "int32")  # No adapter has this id.
            self._graphs.of(self.adapters.bank)({**one, "adapter_ids": absent})

    def forget(self, key: str) -> None:
        """Removes an adapter; see `AdapterBank.forget`."""
        self.adapters.forget(key)

    def answer(self, asks: Sequence[Ask]) -> list[Reply]:
        """Returns the reply to each request.

        An error that concerns one request is in its reply only.
        """
        keys = list(dict.fromkeys(ask.key for ask in asks))
        size = self.adapters.capacity
        parts = (keys[i : i + size] for i in range(0, len(keys), size))
        replies: dict[int, Reply] = {}
        for part in parts:
            places = [i for i, ask in enumerate(asks) if ask.key in part]
            some = self._answer_part([asks[place] for place in places])
            replies.update(zip(places, some, strict=True))
        return [replies[place] for place in range(len(asks))]

    def _answer_part(self, asks: Sequence[Ask]) -> list[Reply]:
        """Answers requests for at most as many adapters as the bank holds."""
        replies: dict[int, Reply] = {}
        questions: dict[int, Question] = {}
        for place, ask in enumerate(asks):
            asked = self._question(ask)
            if isinstance(asked, Reply):
                replies[place] = asked
            else:
                questions[place] = asked
        members = list(questions.values())
        encoded = encode(members, self._packer)
        outputs = self._outputs([asks[place] for place in questions], encoded)
        for place, question, of, rows in zip(
            questions, members, encoded, outputs, strict=True
        ):
            replies[place] = _decoded(question, of, rows)
        return [replies[place] for place in range(len(asks))]

    def _question(self, ask: Ask) -> Question | Reply:
        """Returns the rows of a request, or a reply that refuses it."""
        if time.time() > ask.deadline:
            return Reply(status=504, message="The request took too long.")
        try:
            self.load(ask.key, ask.source)
        except (UserError, RequestError) as error:
            return Reply(status=409, message=str(error), is_damaged=True)
        except Exception as error:
            _LOGGER.exception("Loading failed.")
            message = f"The adapter cannot be loaded: {type(error).__name__}"
            return Reply(status=409, message=message, is_damaged=True)
        try:
            reading = self.adapters.reading(ask.key)
            return Question(reading, reading.rows(ask.instances))
        except UserError as error:
            return Reply(status=400, message=str(error))

    def _outputs(
        self, asks: Sequence[Ask], encoded: Sequence[Examples]
    ) -> list[list[np.ndarray]]:
        """Returns the outputs of the bank for each example of each request."""
        outputs = [[np.empty(0)] * len(of) for of in encoded]
        places = [
            (i, j) for i, of in enumerate(encoded) for j in range(len(of))
        ]
        lengths = list(
            itertools.chain.from_iterable(of.lengths.tolist() for of in encoded)
        )
        sources = {ask.key: ask.source for ask in asks}
        for step in plan_steps(lengths, self.max_tokens):
            chosen = [places[index] for index in step]
            features = padded_features((encoded[i], j) for i, j in chosen)
            keys = [asks[i].key for i, _ in chosen]
            for (i, j), row in zip(
                chosen, self._compute(keys, sources, features), strict=True
            ):
                outputs[i][j] = row
        return outputs

    def _compute(
        self,
        keys: Sequence[str],
        sources: dict[str, str],
        features: dict[str, np.ndarray],
    ) -> list[np.ndarray]:
        """Returns the outputs of a batch, an array for each example."""
        with self.adapters.using(keys, sources) as used:
            # The graph is chosen after the adapters: the bank's variables may
            # have been replaced to load one.
            graph = self._graphs.of(self.adapters.bank)
            return used.split(
                graph({**features, "adapter_ids": used.adapter_ids})
            )


class _Graphs:
    """Makes the graph of a bank, once for each generation of its variables."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._generation = -1
        self._graph: Callable[..., Any] | None = None

    def of(self, bank: BankModel) -> Callable[..., Any]:
        """Returns a function that maps features to the bank's outputs."""
        with self._lock:
            generation = bank.generation
            if self._graph is None or generation != self._generation:
                self._graph, self._generation = _graph_of(bank), generation
            return self._graph


def _graph_of(bank: BankModel) -> Callable[..., Any]:
    shapes = {
        name: tf.TensorSpec(shape, tf.int32, name)
        for name, shape in bank.feature_shapes().items()
    }
    return tf.function(
        lambda features: bank(features, training=False),
        input_signature=[shapes],
        autograph=False,
    )


def _decoded(
    question: Question, encoded: Examples, outputs: list[np.ndarray]
) -> Reply:
    if not all(np.isfinite(row).all() for row in outputs):
        return Reply(
            status=500, message="The adapter's outputs are not finite numbers."
        )
    answers = question.reading.head.decode(outputs, encoded.source)
    return Reply(answers, tokens=int(encoded.lengths.sum()))
