"""All methods with the options that affect them, and their sizes."""

import pytest

from tests import tiny
from tests.tiny import BLOCKS
from tests.tiny import FFN_WIDTH
from tests.tiny import WIDTH
from tf_adapters import methods
from tf_adapters.models.adapter_model import AdapterModel

L, D, F = BLOCKS, WIDTH, FFN_WIDTH
NORMS = (2 * L + 1) * 2 * D
_ATTENTION = 4 * (D * D + D)
_FFN = D * F + F + F * D + D
_BLOCK = _ATTENTION + _FFN + 4 * D
_GATED = {"l0_lambda": 1e-4, "gate_learning_rate_multiplier": 1.0}


def _bottleneck(units):
    return 2 * units * D + units + D


# The tiny encoder is a BERT: 50 words, 32 positions, 2 segments, a pooler that
# nothing reads.
_FULL = (50 + 32 + 2) * D + 2 * D + L * _BLOCK


# Two bottlenecks of half the width of half a token vector.
_COUPLING = 2 * (2 * (D // 4) * (D // 2) + D // 4 + D // 2)
# Name: the method, and how many weights it trains without the head.
CASES = {
    "full": (methods.Full(), _FULL),
    "full_mixout": (methods.Full(mixout=0.5), _FULL),
    "head_only": (methods.HeadOnly(), 0),
    "top_layers": (methods.TopLayers(k=1), _BLOCK),
    "layer_norm": (methods.LayerNorm(), NORMS),
    "bitfit": (methods.BitFit(), D + L * (4 * D + F + D + 2 * D)),
    "houlsby": (
        methods.Houlsby(units=4),
        L * 2 * _bottleneck(4) + NORMS,
    ),
    "houlsby_frozen_norms": (
        methods.Houlsby(reduction_factor=8, train_layer_norms=False),
        L * 2 * _bottleneck(2),
    ),
    "houlsby_leave_out": (
        methods.Houlsby(units=4, leave_out=(0,)),
        2 * _bottleneck(4) + NORMS,
    ),
    "houlsby_mixout": (
        methods.Houlsby(units=4, mixout=0.5),
        L * 2 * _bottleneck(4) + NORMS,
    ),
    "pfeiffer": (methods.Pfeiffer(units=4), L * _bottleneck(4)),
    "pfeiffer_zero_up": (
        methods.Pfeiffer(units=4, initialization="zero_up", leave_out=(1,)),
        _bottleneck(4),
    ),
    "lora": (methods.LoRA(rank=4), L * 2 * 2 * 4 * D),
    "lora_all": (
        methods.LoRA(
            rank=3,
            alpha=5.0,
            projections=("query", "key", "value", "output"),
        ),
        L * 4 * 2 * 3 * D,
    ),
    "diff_pruning": (
        # One rate, as the others have: two steps are compared.
        methods.DiffPruning(last_phase_learning_rate_multiplier=1.0, **_GATED),
        # A group gate for each of the encoder's variables that are read.
        2 * _FULL + 5 + 16 * L,
    ),
    "adapter_bias": (
        methods.AdapterBias(),
        L * (D + F + 1) + L * 2 * D,
    ),
    "adapter_bias_figure": (
        methods.AdapterBias(alpha_input="residual"),
        L * (D + D + 1) + L * 2 * D,
    ),
    "adapter_bias_counts": (
        methods.AdapterBias(train_norms="block"),
        L * (D + F + 1) + L * 4 * D,
    ),
    "adapter_bias_code": (
        methods.AdapterBias(train_norms="ffn_and_embedding"),
        L * (D + F + 1) + (L + 1) * 2 * D,
    ),
    "adapter_bias_no_alpha": (
        methods.AdapterBias(use_alpha=False, train_norms="none"),
        L * D,
    ),
    "adapter_bias_share_v": (
        methods.AdapterBias(share_vector=True, train_norms="none"),
        D + L * (F + 1),
    ),
    "adapter_bias_share_alpha": (
        methods.AdapterBias(share_alpha=True, train_norms="none"),
        L * D + F + 1,
    ),
    "adapter_bias_share_both": (
        methods.AdapterBias(
            share_vector=True, share_alpha=True, train_norms="none"
        ),
        D + F + 1,
    ),
    "adapter_bias_l0": (
        methods.AdapterBias(train_norms="none", **_GATED),
        L * (D + 2 * (F + 1)),
    ),
    "adapter_bias_l0_shared": (
        methods.AdapterBias(share_alpha=True, train_norms="none", **_GATED),
        L * D + 2 * (F + 1),
    ),
    "projected_attention": (
        methods.ProjectedAttention(units=4, num_heads=2, attention_dropout=0.0),
        2 * D * 4 + D + 4 + L * (3 * 16 + 8),
    ),
    "projected_attention_code": (
        methods.ProjectedAttention(
            units=4,
            num_heads=2,
            activation="gelu",
            attention_dropout=0.0,
            leave_out=(0,),
        ),
        2 * D * 4 + D + 4 + (3 * 16 + 8),
    ),
    "multitask": (
        methods.MultiTask(("a", "b"), methods.Pfeiffer(units=4)),
        _FULL + L * _bottleneck(4),
    ),
    "multitask_heads": (
        methods.MultiTask(("a", "b"), methods.HeadOnly()),
        _FULL,
    ),
    "multitask_frozen": (
        methods.MultiTask(
            ("a", "b"), methods.Pfeiffer(units=4), train_encoder=False
        ),
        L * _bottleneck(4),
    ),
    "ia3": (methods.IA3(), L * (2 * D + F)),
    "ia3_peft": (methods.IA3(form="peft", leave_out=(0,)), 3 * D + F),
    "prefix_tuning": (
        methods.PrefixTuning(prefix_length=3, hidden_units=4),
        3 * D + (D + 1) * 4 + (4 + 1) * 2 * L * D,
    ),
    "prefix_tuning_peft": (
        methods.PrefixTuning(prefix_length=3, hidden_units=0, form="peft"),
        2 * 3 * L * D,
    ),
    "prompt_tuning": (
        methods.PromptTuning(prompt_length=3, stands="after_first"),
        3 * D,
    ),
    "prompt_tuning_peft": (
        methods.PromptTuning(prompt_length=3, form="peft"),
        3 * D,
    ),
    "compacter": (
        methods.Compacter(reduction_factor=4.0),
        L * 2 * (3 * (D + 4)) + 4**3,
    ),
    "compacter_plus_plus": (
        methods.Compacter(
            placement="pfeiffer", reduction_factor=4.0, leave_out=(1,)
        ),
        3 * (D + 4) + 4**3,
    ),
    "parallel": (
        methods.BottleneckForms(
            parallel=True,
            pretrained_norm="after",
            learned_scaling="scalar",
            initialization="zero_up",
            units=4,
        ),
        L * (_bottleneck(4) + 1),
    ),
    "bottleneck_forms": (
        methods.BottleneckForms(
            position="both",
            pretrained_norm="before",
            residual="read",
            num_hidden_layers=2,
            combine="add_and_multiply",
            units=4,
        ),
        L * 2 * (_bottleneck(4) + 4 * 4 + 4),
    ),
    "invertible": (methods.Invertible(), _COUPLING),
    "language_adapter": (
        methods.Union((methods.Pfeiffer(units=4), methods.Invertible())),
        L * _bottleneck(4) + _COUPLING,
    ),
    "mam": (
        methods.Union(
            (
                methods.PrefixTuning(3, hidden_units=4),
                methods.BottleneckForms(
                    parallel=True,
                    pretrained_norm="after",
                    scaling=4.0,
                    initialization="zero_up",
                    units=4,
                ),
            )
        ),
        3 * D + (D + 1) * 4 + (4 + 1) * 2 * L * D + L * _bottleneck(4),
    ),
    "unipelt": (
        methods.Union(
            (
                methods.PrefixTuning(3, hidden_units=0, use_gating=True),
                methods.BottleneckForms(units=4, use_gating=True),
                methods.LoRA(rank=2, use_gating=True),
            )
        ),
        # A prefix, a bottleneck, two products; a gate each.
        L * (2 * 3 * D + _bottleneck(4) + 2 * 2 * 2 * D + 4 * (D + 1)),
    ),
}
# The first case of each method.
ONE_OF_EACH = tuple(
    {
        type(method): name for name, (method, _) in reversed(CASES.items())
    }.values()
)
# Vectors in the text, or in its attention, change the encoder from the
# first step on.
FAR_FROM_THE_ENCODER = (
    *("prefix_tuning", "prefix_tuning_peft", "mam", "unipelt"),
    *("prompt_tuning", "prompt_tuning_peft"),
)


# Over three members whose weights `build` draws. They start far from the
# encoder alone, and `fusion_model.fuse` makes them where there are folders.
FUSIONS = {
    "fusion": methods.Fusion(("a", "b", "c"), units=4),
    "fusion_subset": methods.Fusion(
        ("a", "b", "c"),
        placement="houlsby",
        units=4,
        value="static",
        subset=2,
        leave_out=(0,),
    ),
}
EVERY = {**{name: method for name, (method, _) in CASES.items()}, **FUSIONS}


def build(encoder, method, head, **options):
    """Returns the model of a method in `EVERY`, for an `Encoder`."""
    model = AdapterModel(encoder, method, head, **options)
    groups = {name: variables for name, _, variables in model.variable_groups()}
    tiny.randomize(groups.get("members", ()))
    return model


# One case of each method, and of each way in which its options make it another
# kind of thing: mixed weights, gates and their penalty, members drawn a step.
# For tests that take seconds a case; invariants that take less run over all.
ONE_EACH = (
    *("full", "full_mixout", "head_only", "top_layers", "layer_norm", "bitfit"),
    *("houlsby", "houlsby_mixout", "pfeiffer", "lora", "diff_pruning"),
    *("adapter_bias", "adapter_bias_l0_shared", "projected_attention"),
    *("multitask", "fusion", "fusion_subset", "ia3", "prefix_tuning"),
    *("prompt_tuning_peft", "compacter", "bottleneck_forms", "unipelt"),
)


def num_blocks(method):
    """Returns the smallest number of blocks that tests everything in a method.

    Graphs of one block are built in half the time. Two are needed to leave one
    out, or to share a layer.
    """
    recurs = isinstance(method, methods.ProjectedAttention) or (
        isinstance(method, methods.AdapterBias)
        and (method.share_vector or method.share_alpha)
    )
    return 2 if recurs or method.leave_out else 1


# Methods that train the encoder, add to it, or replace its weights.
_FAST = ("full", "houlsby", "lora")


def names():
    """Returns `ONE_EACH` for `parametrize`; all but a few are slow."""
    return [
        pytest.param(name, marks=[] if name in _FAST else [pytest.mark.slow])
        for name in ONE_EACH
    ]


def pairs(kinds, shift=0):
    """Returns pairs of a name in `ONE_EACH` and a kind: each name, each kind.

    Methods and heads are tested separately. Pairs test their few interactions
    as well as all combinations would.

    Args:
        kinds: Sequence of names, dealt out in turn.
        shift: Where the turn begins, so that another test has other pairs.
    """
    kinds = sorted(kinds)
    return [
        (name, kinds[(i + shift) % len(kinds)])
        for i, name in enumerate(ONE_EACH)
    ]
