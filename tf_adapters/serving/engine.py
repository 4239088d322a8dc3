"""Computes the predictions of many requests, each with its own adapter."""

from __future__ import annotations

import functools
import time
from typing import TYPE_CHECKING
from typing import Any

import numpy as np

from tf_adapters.serving.adapter_bank import AdapterBank
from tf_adapters.serving.bank_graph import BankGraph
from tf_adapters.serving.encoding import encode_each
from tf_adapters.serving.failures import answering_failed
from tf_adapters.serving.failures import loading_failed
from tf_adapters.serving.fast_packer import Packers
from tf_adapters.serving.messages import Ask
from tf_adapters.serving.messages import Reply
from tf_adapters.serving.reading import Question
from tf_adapters.serving.steps import padded_features
from tf_adapters.serving.steps import plan_steps

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Sequence

    from tf_adapters.data.examples import Examples
    from tf_adapters.encoders.encoder import Encoder

# Least number of further adapters of each kind for which there is room in the
# bank's variables from the start. With more, the variables are doubled.
_SPARE = 16
_LATE = Reply(status=504, message="The request took too long.")


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
        self._graph = BankGraph()

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
            self.adapters.bank.reserve_spare(_SPARE)
            names = self.adapters.bank.feature_shapes()
            one = dict.fromkeys(names, np.ones((1, 1), "int32"))
            absent = np.array([-1], "int32")  # No adapter has this id.
            self._graph.of(self.adapters.bank)({**one, "adapter_ids": absent})

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
        asked = {i: self._question(ask) for i, ask in enumerate(asks)}
        replies = {i: a for i, a in asked.items() if isinstance(a, Reply)}
        questions = {i: a for i, a in asked.items() if isinstance(a, Question)}
        encoded: dict[int, Examples] = {}
        found = encode_each([*questions.values()], self._packer)
        for i, examples in zip(questions, found, strict=True):
            if isinstance(examples, Exception):
                replies[i] = answering_failed(examples)
            else:
                encoded[i] = examples
        for i, outputs in self._outputs(asks, encoded).items():
            if isinstance(outputs, Reply):
                replies[i] = outputs
            else:
                replies[i] = _decoded(questions[i], encoded[i], outputs)
        return [replies[i] for i in range(len(asks))]

    def _question(self, ask: Ask) -> Question | Reply:
        """Returns the rows of a request, or a reply that refuses it."""
        if time.time() > ask.deadline:
            return _LATE
        try:
            self.load(ask.key, ask.source)
        except Exception as error:
            return loading_failed(error)
        try:
            return self.adapters.reading(ask.key).question(ask.instances)
        except Exception as error:
            return answering_failed(error)

    def _outputs(
        self, asks: Sequence[Ask], encoded: Mapping[int, Examples]
    ) -> dict[int, list[np.ndarray] | Reply]:
        """Returns the outputs of the bank for each example of each request.

        Args:
            asks: List of requests.
            encoded: Dict from the index of a request to its examples.

        Returns:
            Dict from the index of a request to its outputs, or to a reply if
            it failed or its deadline has passed.
        """
        outputs = {i: [np.empty(0)] * len(of) for i, of in encoded.items()}
        failed: dict[int, Reply] = {}
        places = [(i, j) for i, of in encoded.items() for j in range(len(of))]
        lengths = [int(n) for of in encoded.values() for n in of.lengths]
        for step in plan_steps(lengths, self.max_tokens):
            now = time.time()
            failed |= {i: _LATE for i in encoded if now > asks[i].deadline}
            chosen = [places[k] for k in step if places[k][0] not in failed]
            if not chosen:
                continue
            try:
                rows = self._computed(asks, encoded, chosen)
            except Exception as error:
                reply = answering_failed(error)
                failed |= dict.fromkeys((i for i, _ in chosen), reply)
                continue
            for (i, j), row in zip(chosen, rows, strict=True):
                outputs[i][j] = row
        return {**outputs, **failed}

    def _computed(
        self,
        asks: Sequence[Ask],
        encoded: Mapping[int, Examples],
        chosen: Sequence[tuple[int, int]],
    ) -> list[np.ndarray]:
        """Returns the outputs of examples, an array for each.

        Args:
            asks: List of requests.
            encoded: Dict from the index of a request to its examples.
            chosen: For each example, the indices of its request and of itself.
        """
        features = padded_features((encoded[i], j) for i, j in chosen)
        keys = [asks[i].key for i, _ in chosen]
        sources = {asks[i].key: asks[i].source for i, _ in chosen}
        with self.adapters.using(keys, sources) as used:
            # The graph is chosen after the adapters: the bank's variables may
            # have been replaced to load one.
            graph = self._graph.of(self.adapters.bank)
            return used.split(
                graph({**features, "adapter_ids": used.adapter_ids})
            )


def _decoded(
    question: Question, encoded: Examples, outputs: list[np.ndarray]
) -> Reply:
    if not all(np.isfinite(row).all() for row in outputs):
        return Reply(
            status=500, message="The adapter's outputs are not finite numbers."
        )
    try:
        answers = question.reading.head.decode(outputs, encoded.source)
    except Exception as error:
        return answering_failed(error)
    return Reply(answers, tokens=int(encoded.lengths.sum()))
