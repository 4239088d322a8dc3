"""Reads the adapters to merge, and checks that their settings agree."""

from collections.abc import Sequence
import os

from tf_adapters import methods
from tf_adapters.common import adapter_folder
from tf_adapters.common.errors import AdapterError
from tf_adapters.encoders.encoder import Encoder
from tf_adapters.methods.support import bottleneck_slots
from tf_adapters.models import stacked_adapters
from tf_adapters.models import trained_members
from tf_adapters.models.adapter_model import AdapterModel
from tf_adapters.models.trained_members import Member

_BOTTLENECKS = (methods.Houlsby, methods.Pfeiffer)
MERGED_METHODS = (*_BOTTLENECKS, methods.LoRA)


def read_mergeable(
    adapters: Sequence[str | os.PathLike[str] | AdapterModel],
    encoder: Encoder,
    same_width: bool,
    target_index: int,
) -> tuple[Member, ...]:
    """Reads adapters, checks that they can be merged, and returns `Member`s.

    Args:
        adapters: List of folders and of models in memory.
        encoder: `Encoder` that the adapters were trained on, freshly loaded.
        same_width: Whether the shapes of all weights must agree.
        target_index: Index of the adapter whose head is read. The heads of the
            others are not used, and may be of a kind that is not installed.

    Raises:
        AdapterError: If an adapter is missing, damaged, belongs to another
            encoder, was trained with an unsupported method, or does not fit the
            others.
    """
    with_heads = [i == target_index for i in range(len(adapters))]
    members = trained_members.read_members(adapters, encoder, with_heads)
    for member in members:
        _check_member(member, encoder)
    _check_agree(members, encoder, same_width)
    return members


def is_lora(member: Member) -> bool:
    """Returns whether a member's method is LoRA."""
    return isinstance(member.method, methods.LoRA)


def width_of(member: Member, encoder: Encoder) -> int:
    """Returns a LoRA's rank, or the number of units in a bottleneck's slot."""
    if is_lora(member):
        return member.method.rank
    return bottleneck_slots.width_of_bottleneck(
        member.method, encoder.backbone.hidden_dim
    )


def model_of_member(member: Member, encoder: Encoder) -> AdapterModel:
    """Creates an `AdapterModel` with the method, head and weights of a member.

    Raises:
        AdapterError: If the member's weights do not match its configuration.
    """
    model = AdapterModel(encoder, member.method, member.head)
    adapter_folder.assign_tensors(
        model.trained_variables(), member.tensors, member.weights_source
    )
    return model


def _check_member(member: Member, encoder: Encoder) -> None:
    if type(member.method) not in MERGED_METHODS:
        raise AdapterError(
            f"{member.source} was trained with "
            f"`{methods.name_of(member.method)}`; only adapters of houlsby, "
            "pfeiffer and lora are merged. Use `tf_adapters.compose` for an "
            "Average of others."
        )
    setting = "--params_override=method.train_layer_norms"
    trained_members.check_encoder_untrained(member, encoder, "merge", setting)
    if is_lora(member) and member.method.use_gating:
        raise AdapterError(
            f"{member.source} is a LoRA with a gate for each text, which a "
            "merged adapter cannot have. Train it with "
            "method.use_gating=false."
        )
    if member.is_stacked:
        raise AdapterError(
            f"{member.source} was trained on top of other adapters and does "
            "not work without them. Only standalone adapters can be merged."
        )
    if member.left_out:
        raise AdapterError(
            f"{member.source} was left out of blocks {member.left_out} after "
            "its training. Merge the complete adapter, and leave blocks out "
            "of the result."
        )


def _check_agree(
    members: Sequence[Member], encoder: Encoder, same_width: bool
) -> None:
    facts = {
        "method": lambda m: methods.name_of(m.method),
        "left-out blocks": lambda m: tuple(sorted(set(m.method.leave_out))),
    }
    if all(is_lora(member) for member in members):
        facts["projections"] = lambda m: tuple(sorted(m.method.projections))
        if same_width:
            facts["alpha"] = lambda m: m.method.alpha
    elif not any(is_lora(member) for member in members):
        facts["activation"] = lambda m: m.method.activation
    if same_width:
        facts["width"] = lambda m: width_of(m, encoder)
    for what, of in facts.items():
        stacked_adapters.common(members, what, of)
