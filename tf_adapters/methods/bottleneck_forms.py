"""Variants of bottleneck adapters from papers and the `adapters` library."""

from collections.abc import Sequence
import dataclasses
import typing
from typing import Any

import keras
from keras import ops

from tf_adapters.common.errors import UserError
from tf_adapters.common.types import Tensor
from tf_adapters.layers import activations
from tf_adapters.layers import bottleneck_reads
from tf_adapters.layers import initializers
from tf_adapters.layers.banks.bank_layer import Part
from tf_adapters.layers.banks.branches import BankBottleneck
from tf_adapters.layers.bottleneck import Bottleneck
from tf_adapters.layers.bottleneck import Initialization
from tf_adapters.layers.context import Context
from tf_adapters.layers.dense import dense
from tf_adapters.layers.gate import TextGate
from tf_adapters.layers.normalization import layer_norm
from tf_adapters.layers.slot import Slot
from tf_adapters.layers.slot_of_layers import SlotOfLayers
from tf_adapters.layers.stateless_seeds import dropout
from tf_adapters.methods.method import EncoderShape
from tf_adapters.methods.method import Method
from tf_adapters.methods.registry import register
from tf_adapters.methods.support import bottleneck_slots

Where = typing.Literal["none", "before", "after", "both"]
Residual = typing.Literal["sublayer_output", "sum", "read"]


@register("bottleneck_forms")
@dataclasses.dataclass(frozen=True)
class BottleneckForms(Method):
    """Adds bottleneck adapters of any form to a frozen encoder.

    A sublayer has an input `r` and an output `h`, followed by the pretrained
    `norm(h + r)`. The adapter reads `h`, `norm(h + r)` or `r`. Its output `o`
    is the sum of the bottleneck's `delta` and a residual. The block continues
    with `norm(o + r)` or with `o` itself.

    The settings cover the search of Pfeiffer et al. 2021 (appendix A.2), the
    variants of Houlsby et al. 2019 (section 3.6), and the configurations
    `seq_bn`, `double_seq_bn`, `par_bn`, `scaled_par_bn` and AdapterPlus of the
    `adapters` library. The defaults are the best ones that Pfeiffer et al.
    found, and the same as in `Pfeiffer`. Below, "A.2" and "H 3.6" refer to
    these two sections.

    Attributes:
        position: `"top"` (default): after the feed-forward network.
            `"bottom"`: after attention. `"both"`: after each (A.2).
        parallel: Whether the adapter reads the sublayer's input `r` instead of
            its output.
        pretrained_norm: Where the pretrained norm is applied: `"before"` the
            adapter, `"after"` it, in `"both"` positions (default), or in
            `"none"` of them (A.2). If it is not applied after the adapter, the
            block's residual is not added there either.
        residual: Vector to which `delta` is added: `"sublayer_output"`
            (default) for `h`, `"sum"` for `h + r`, or `"read"` for the
            adapter's input (A.2).
        new_norm: Position of a new, trained norm in the adapter: `"before"`
            the bottleneck, `"after"` it, `"both"`, or `"none"` (default) (A.2
            and H 3.6).
        residual_in_new_norm: Whether the new norm after the bottleneck
            normalizes the sum of `delta` and the residual, instead of `delta`
            alone.
        combine: `"add"` (default), `"multiply"` (`h (1 + delta)`) or
            `"add_and_multiply"` (`h (1 + delta) + delta`) (H 3.6).
        units: Bottleneck width `m`; used if `reduction_factor` is `None`.
        reduction_factor: Ratio `d / m`. Defaults to 16 if `units` is not set
            either.
        num_hidden_layers: Number of layers of width `m` in the adapter. 1
            (default) is the usual bottleneck; H 3.6 also tried more.
        activation: Activation of each of these layers.
        initialization: See `Bottleneck`.
        init_stddev: See `Bottleneck`.
        scaling: Constant factor of `delta`.
        learned_scaling: Trained factor that replaces `scaling` and starts at 1:
            one `"scalar"`, one for each `"channel"`, or `"none"` (default).
        use_gating: Whether to multiply `delta` by a gate for each text
            (UniPELT).
        dropout: Rate of dropout on `delta`.
        leave_out: Indices of blocks without adapters.

    Examples:
        >>> parallel = methods.BottleneckForms(
        ...     parallel=True, pretrained_norm="after", scaling=4.0
        ... )
        >>> tuple(tf_adapters.adapt(encoder, parallel, head)(features).shape)
        (2, 2)
    """

    position: typing.Literal["top", "bottom", "both"] = "top"
    parallel: bool = False
    pretrained_norm: Where = "both"
    residual: Residual = "sublayer_output"
    new_norm: Where = "none"
    residual_in_new_norm: bool = False
    combine: typing.Literal["add", "multiply", "add_and_multiply"] = "add"
    units: int | None = None
    reduction_factor: float | None = None
    num_hidden_layers: int = 1
    activation: activations.Activation = "relu"
    initialization: Initialization = "normal"
    init_stddev: float = 2e-2
    scaling: float = 1.0
    learned_scaling: typing.Literal["none", "scalar", "channel"] = "none"
    use_gating: bool = False
    dropout: float = 0.0
    leave_out: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        bottleneck_slots.settle_width(self, default_factor=16.0)
        if not 1 <= self.num_hidden_layers <= 100:
            raise UserError(
                "`num_hidden_layers` must be at least 1, and at most 100. "
                f"Received: {self.num_hidden_layers}"
            )
        if self.parallel and self.pretrained_norm in ("before", "both"):
            raise UserError(
                "A parallel adapter reads the sublayer's input, so that no "
                "pretrained norm can be before it. Use "
                "`pretrained_norm='after'`."
            )

    def make_slots(self, shape: EncoderShape) -> list[dict[str, Slot]]:
        """Returns each block's slots: a list of dicts from place to slot."""
        sublayers = {"bottom": ("attention",), "top": ("ffn",)}
        names = sublayers.get(self.position, ("attention", "ffn"))
        behind = "" if self.pretrained_norm in ("after", "both") else "_norm"
        units = bottleneck_slots.width_of_bottleneck(self, shape.width)
        settings = dataclasses.asdict(self) | {"units": units}
        for name in ("reduction_factor", "position", "leave_out"):
            del settings[name]

        def make(place: str, name: str) -> "FormSlot":
            # A slot has the same name before and after the sublayer's norm.
            return FormSlot(**settings, name=name.removesuffix("_norm"))

        places = [f"after_{name}{behind}" for name in names]
        return self.fill_places(shape, places, make)


@keras.saving.register_keras_serializable("tf_adapters")
class FormSlot(SlotOfLayers):
    """Slot of `BottleneckForms`, attached before or after the pretrained norm.

    Args:
        **settings: Fields of `BottleneckForms` except `reduction_factor`,
            `position` and `leave_out`; `units` must be set. Further keywords
            are passed to `Slot`.

    Call arguments:
        x: `(batch, tokens, width)`. Output of the sublayer if the pretrained
            norm is applied after the adapter. Otherwise, output of that norm.
        context: `Context`.

    Returns:
        A tensor of the shape of `x`, and an empty dict of probes.
    """

    def __init__(self, **settings: Any) -> None:
        own = {field.name for field in dataclasses.fields(BottleneckForms)}
        super().__init__(**{k: v for k, v in settings.items() if k not in own})
        self.settings = {k: v for k, v in settings.items() if k in own}
        form = self.form = BottleneckForms(**self.settings)
        self.needs_all_tokens = form.use_gating
        self.delta = Bottleneck(
            self.settings["units"],
            form.activation,
            form.initialization,
            form.init_stddev,
            name="delta",
        )
        self.gate = TextGate(name="gate") if form.use_gating else None

    def build(self, input_shape: Sequence[Any]) -> None:
        super().build(input_shape)
        width, form = input_shape[-1], self.form
        self.norms = {
            place: (
                self.add_weight((width,), "ones", name=f"norm_{place}_gamma"),
                self.add_weight((width,), "zeros", name=f"norm_{place}_beta"),
            )
            for place in ("before", "after")
            if form.new_norm in (place, "both")
        }
        self.hidden = [
            (
                self.add_weight(
                    (form.units, form.units),
                    initializers.random_normal(form.init_stddev),
                    name=f"hidden_{number}_kernel",
                ),
                self.add_weight(
                    (form.units,), "zeros", name=f"hidden_{number}_bias"
                ),
            )
            for number in range(1, form.num_hidden_layers)
        ]
        self.factor = None
        if form.learned_scaling != "none":
            shape = (1,) if form.learned_scaling == "scalar" else (width,)
            self.factor = self.add_weight(shape, "ones", name="scaling")

    def call(
        self,
        x: Tensor,
        context: Context,
        training: bool | None = None,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        form = self.form
        read, output, total = self._sublayer(x, context)
        residual = {"sublayer_output": output, "sum": total, "read": read}
        residual = residual[form.residual]
        delta = self._delta(read, context)
        if form.combine != "add":
            product = output * delta
            both = form.combine == "add_and_multiply"
            delta = product + delta if both else product
        if form.residual_in_new_norm:
            return self._normed("after", delta + residual), {}
        return self._normed("after", delta) + residual, {}

    def _sublayer(
        self, x: Tensor, context: Context
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Returns the adapter's input, the sublayer's output `h`, and `h + r`.

        `r` is the sublayer's input.
        """
        form = self.form
        behind = form.pretrained_norm in ("none", "before")
        output = context.sublayer_output if behind else x
        total = output + context.residual
        if form.parallel:
            return context.residual, output, total
        if form.pretrained_norm in ("before", "both"):
            read = bottleneck_reads.read("normed_output", output, context)
            return x if behind else read, output, total
        return output, output, total

    def _delta(self, read: Tensor, context: Context) -> Tensor:
        form, layer = self.form, self.delta
        activation = activations.get_activation(form.activation)
        kernels = [(layer.down_kernel, layer.down_bias), *self.hidden]
        x = self._normed("before", read)
        for kernel, bias in kernels:
            x = dense(x, kernel, bias, activation)
        x = dense(x, layer.up_kernel, layer.up_bias)
        factor = form.scaling
        if self.factor is not None:
            factor = ops.cast(self.factor, x.dtype)
        x = dropout(x * factor, form.dropout, context.seeds)
        if self.gate is not None:
            x = x * self.gate(read, context.padding_mask)
        return x

    def _normed(self, place: str, x: Tensor) -> Tensor:
        if place not in self.norms:
            return x
        # PyTorch's default epsilon.
        return layer_norm(x, *self.norms[place], 1e-5)

    def bank_parts(self) -> list[Part]:
        """Returns the bottleneck as a bank stores it, a list of one `Part`.

        The scaling is multiplied into the up kernel and bias.

        Raises:
            UserError: If the form is not a usual bottleneck that is added to
                the sublayer's output, before the pretrained norm.
        """
        form, layer = self.form, self.delta
        self._check_is_added_before_the_norm()
        factor = form.scaling
        if self.factor is not None:
            factor = ops.convert_to_tensor(self.factor)
        arrays = {
            "down_kernel": layer.down_kernel,
            "down_bias": layer.down_bias,
            "up_kernel": layer.up_kernel * factor,
            "up_bias": layer.up_bias * factor,
        }
        reads = "sublayer_output"
        if form.pretrained_norm == "both":
            reads = "normed_output"
        if form.parallel:
            reads = "residual"
        return [
            BankBottleneck.part(arrays, reads=reads, activation=form.activation)
        ]

    def _check_is_added_before_the_norm(self) -> None:
        expected = {
            "pretrained_norm": ("both", "after"),
            "residual": ("sublayer_output",),
            "new_norm": ("none",),
            "combine": ("add",),
            "num_hidden_layers": (1,),
            "use_gating": (False,),
        }
        for name, values in expected.items():
            received = getattr(self.form, name)
            if received not in values:
                raise UserError(
                    f"A bank needs `{name}` to be "
                    f"{' or '.join(map(repr, values))}. Received: {received!r}."
                )

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self.settings}
