"""Forward pass of a `BankModel`, with room for a fixed number of adapters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING
from typing import Any

from keras import ops
import numpy as np

from tf_adapters.common.types import Tensor
from tf_adapters.layers.banks import rows as row_lib
from tf_adapters.layers.banks.branches import BranchesSlot
from tf_adapters.layers.banks.heads import ABSENT
from tf_adapters.layers.banks.heads import TOKENS
from tf_adapters.layers.banks.heads import BankHeads
from tf_adapters.layers.banks.prefixes import PrefixesSlot
from tf_adapters.layers.banks.projections import ProjectionSlot
from tf_adapters.layers.dense import dense
from tf_adapters.layers.float32_layer import Float32Layer
from tf_adapters.layers.quantized import kernel_of
from tf_adapters.layers.slot import PROJECTIONS
from tf_adapters.models import bank_encoder_parts
from tf_adapters.models.adapted_encoder import AdaptedEncoder

if TYPE_CHECKING:
    from tf_adapters.encoders.encoder import Encoder
    from tf_adapters.layers.banks.bank_layer import BankLayer
    from tf_adapters.layers.slot import Slot
    from tf_adapters.models.bank_parts import Place


class BankCore(Float32Layer):
    """An encoder with layers that hold many adapters, and a table of adapters.

    Each adapter has an entry in the table: whether it exists, and which row of
    each bank layer has its weights. A forward pass reads the table once, at its
    start. Later changes of the table do not affect that pass.

    Args:
        encoder: `Encoder`.
        num_rows: Dict from `Place` to the number of rows of the bank layer
            there, including row 0, for adapters that have no weights there.
        num_entries: Integer. Number of entries of the table.
        smaller: `BankCore` whose adapters are copied, or `None` (default). Its
            places come first in `num_rows`. Its layers that have enough rows
            are shared instead of copied.
        **kwargs: See `keras.layers.Layer`.

    Call arguments:
        inputs: Dict as for `BankModel`.

    Returns:
        Dict with `texts`, `tokens` or both; see `BankHeads`. Examples without
        an adapter are NaN.
    """

    def __init__(
        self,
        encoder: Encoder,
        num_rows: dict[Place, int],
        num_entries: int,
        smaller: BankCore | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**{"trainable": False, **kwargs})
        self.num_entries = num_entries
        layers = _make_layers(
            num_rows, {} if smaller is None else smaller.layers_by_place
        )
        # A function, because Keras would track the dict and its keys.
        self._layers_by_place = lambda: layers
        self.table = self.add_weight(
            (num_entries, 1 + len(layers)), "zeros", "int32", name="table"
        )
        if smaller is not None:
            table = np.zeros(self.table.shape, "int32")
            old = ops.convert_to_numpy(smaller.table)
            table[:, : old.shape[1]] = old
            self.table.assign(table)
        self.heads = BankHeads(self._at("head"), name="heads")
        self.pooler_bias = self._at("pooler")
        self.encoder = self._adapted_encoder(encoder)
        self.built = True

    @property
    def layers_by_place(self) -> dict[Place, BankLayer]:
        """Dict from `Place` to its bank layer."""
        return self._layers_by_place()

    def _at(self, name: str, index: int = 0) -> list[BankLayer]:
        return [
            layer
            for place, layer in self.layers_by_place.items()
            if (place.name, place.index) == (name, index)
        ]

    def _adapted_encoder(self, encoder: Encoder) -> AdaptedEncoder:
        slots = [{} for _ in range(encoder.backbone.num_layers)]
        embedding_slots = {}
        for place in self.layers_by_place:
            if place.name in ("norm", "pooler", "head"):
                continue
            is_block = place.name != "embeddings"
            found = slots[place.index] if is_block else embedding_slots
            if place.name not in found:
                found[place.name] = self._slot(place.name, place.index)
        return AdaptedEncoder(
            encoder,
            slots,
            norms=self._norms(encoder),
            embedding_slots=embedding_slots,
            name="encoder",
        )

    def _slot(self, name: str, index: int) -> Slot:
        if name in PROJECTIONS:
            slot = ProjectionSlot
        else:
            slot = PrefixesSlot if name == "keys_and_values" else BranchesSlot
        layers = self._at(name, index)
        return slot(layers, trainable=False, name=f"block_{index}_{name}")

    def _norms(self, encoder: Encoder) -> list[Any]:
        """Returns the norm layers to use, in the order of the encoder's norms.

        Each is a `BankNorm` if an adapter trained the norm, or else the
        encoder's own norm.
        """
        norms = []
        for index, own in enumerate(AdaptedEncoder(encoder).norms()):
            (norm,) = self._at("norm", index) or (own,)
            if norm is not own:
                part = bank_encoder_parts.norm_part(own, {})
                norm.write(0, part.arrays)
            norms.append(norm)
        return norms

    def write(
        self,
        entry: int,
        rows: dict[Place, int],
        arrays: dict[Place, dict[str, np.ndarray]],
    ) -> None:
        """Writes an adapter's weights to its rows, and then its table entry.

        Args:
            entry: Index of the entry.
            rows: Dict from `Place` to the index of the adapter's row there.
            arrays: Dict from `Place` to a dict of the row's weights by name.
        """
        for place, values in arrays.items():
            self.layers_by_place[place].write(rows[place], values)
        columns = [rows.get(place, 0) for place in self.layers_by_place]
        row_lib.assign_row(self.table, entry, np.array([1, *columns]))

    def call(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        ids = inputs["adapter_ids"]
        # A negative index would count from the end.
        entries = ops.clip(ids, 0, self.num_entries - 1)
        rows = row_lib.take_rows(self.table, entries)
        is_there = ops.logical_and(ops.equal(entries, ids), rows[:, 0] > 0)
        outputs = self.encoder(
            {**inputs, "adapter_rows": rows},
            training=False,
            first_token_only=TOKENS not in self.heads.reads,
        )
        found = self.heads(self._vectors(outputs, rows), rows)
        if "tokens" in found:
            is_token = ops.cast(inputs["padding_mask"], "bool")[..., None]
            found["tokens"] = ops.where(is_token, found["tokens"], ABSENT)
        is_there = is_there[:, None, None]
        return {
            name: ops.where(is_there, value, float("nan"))
            for name, value in found.items()
        }

    def _vectors(
        self, outputs: dict[str, Tensor], rows: Tensor
    ) -> dict[str, Tensor]:
        """Returns the vectors that heads read, a dict keyed by `Head.reads`.

        Each value is float32 `(batch, tokens, width)`. If adapters trained the
        pooler's bias, the pooled output is computed here.
        """
        first = outputs["first_token_output"]
        vectors = {
            "first_token": first[:, None],
            TOKENS: outputs["sequence_output"],
        }
        if "pooled_output" in outputs:
            vectors["pooled_output"] = outputs["pooled_output"][:, None]
        for layer in self.pooler_bias:
            pooler: Any = self.encoder.pooler
            kernel = kernel_of(pooler, self.encoder.width)
            pooled = dense(first, kernel, pooler.bias)[:, None]
            change = layer.vectors("bias", rows, pooled.dtype)
            vectors["pooled_output"] = ops.tanh(pooled + change)
        return {k: ops.cast(v, "float32") for k, v in vectors.items()}


def _make_layers(
    num_rows: dict[Place, int], smaller: dict[Place, BankLayer]
) -> dict[Place, BankLayer]:
    """Returns a dict from each place in `num_rows` to its bank layer.

    A layer in `smaller` is reused, or copied if it has too few rows.
    """
    layers = {}
    for column, (place, rows) in enumerate(num_rows.items(), start=1):
        layer = smaller.get(place)
        if layer is None or layer.num_rows < rows:
            name = f"{place.name}_{place.index}_{column}"
            layer = place.kind.make_layer(rows, column, name)
            if place in smaller:
                layer.copy_rows(smaller[place])
        layers[place] = layer
    return layers


def count_rows(
    adapters: Iterable[Iterable[Place]],
) -> dict[Place, int]:
    """Counts the rows that adapters need at each place, including row 0.

    Returns a dict from `Place` to the count. For each adapter, `adapters` has
    the places at which it needs a row.
    """
    counts = {}
    for places in adapters:
        for place in places:
            counts[place] = counts.get(place, 1) + 1
    return counts
