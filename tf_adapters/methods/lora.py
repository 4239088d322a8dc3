"""LoRA: Hu et al. 2022, arXiv:2106.09685, in the form of the PEFT library."""

import dataclasses
import typing

from tf_adapters.common.errors import UserError
from tf_adapters.common.suggestions import check_choices
from tf_adapters.layers.lora import LoRAUpdate

Projection = typing.Literal["query", "key", "value", "output"]


@dataclasses.dataclass(frozen=True)
class LoRA:
    """Changes attention's kernels by products of rank `rank`.

    Each kernel `W` of shape `d x d` becomes `W + (alpha / rank) A B`, which
    trains `2 rank d` weights; norms, biases and the rest stay frozen. The
    product is made of the weights, not of the activations, so it costs the same
    for any number of tokens, and nothing once it is merged (see
    `AdapterModel.merge`).

    Attributes:
        rank: 8 in PEFT.
        alpha: 8 in PEFT.
        dropout: Rate at which input neurons are dropped before `A`. 0 in PEFT,
            which draws for each token; here the draw of a step is the same for
            all tokens.
        projections: Which kernels change: `"query"`, `"key"`, `"value"`,
            `"output"`. Query and value in the paper (section 5.1) and in PEFT.
    """

    rank: int = 8
    alpha: float = 8.0
    dropout: float = 0.0
    projections: tuple[Projection, ...] = ("query", "value")

    def __post_init__(self):
        check_choices(self)
        if not self.projections:
            raise UserError(
                "`projections` must name one or more of "
                f"{', '.join(typing.get_args(Projection))}."
            )

    def make_slots(self, num_blocks, width, ffn_width):
        """Returns no slots: the kernels themselves change."""
        return [{} for _ in range(num_blocks)]

    def trainable_encoder_variables(self, encoder):
        """Returns nothing: the encoder is frozen."""
        return []

    def reparameterize(self, model):
        """Returns pairs of a kernel and its `LoRAUpdate`."""
        pairs = []
        for i, kernels in enumerate(model.encoder.attention_kernels()):
            for name in self.projections:
                kernel, num_input_axes = kernels[name]
                layer = LoRAUpdate(
                    kernel.shape,
                    self.rank,
                    self.alpha,
                    self.dropout,
                    num_input_axes,
                    name=f"block_{i}_{name}",
                )
                layer.build()
                pairs.append((kernel, layer))
        return pairs
