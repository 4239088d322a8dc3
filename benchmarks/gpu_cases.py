"""The encoders, methods and batches that `gpu.py` measures on both sides."""

import dataclasses
import itertools

VOCABULARY = 30_522
LORA_RANK = 8
FUSED_ADAPTERS = 8
METHODS = ("full", "houlsby", "pfeiffer", "lora", "fusion")
# Blocks, width, attention heads.
SHAPES = {"bert_base": (12, 768, 12), "bert_large": (24, 1024, 16)}
# Of `--small`: they show that everything runs, not how fast.
SMALL_SHAPES = {"bert_base": (2, 64, 4), "bert_large": (3, 96, 4)}
PRECISIONS = ("float32", "tf32", "bfloat16")


@dataclasses.dataclass(frozen=True)
class Case:
    """What one line of the table measures.

    Attributes:
        shape: Key of `SHAPES`.
        method: One of `METHODS`.
        precision: One of `PRECISIONS`. Only matrix products differ between
            "float32" and "tf32". "bfloat16" keeps weights in float32.
        tokens: Tokens of each text. There is no padding.
        batch: Texts of a batch.
    """

    shape: str
    method: str
    precision: str
    tokens: int
    batch: int

    def sizes(self, small):
        """Returns blocks, width and attention heads."""
        return (SMALL_SHAPES if small else SHAPES)[self.shape]


def units_of(method, width):
    """Returns the units of a method's bottlenecks in an encoder of a width.

    Houlsby's adapters have 64 units if the width is 768, Pfeiffer's adapters
    and the members of a fusion 48.
    """
    return width // (12 if method == "houlsby" else 16)


def cases(small):
    """Returns all cases, the most important first.

    Args:
        small: Whether to shrink texts and batches.
    """

    def case(shape, method, precision, tokens):
        batch = 4096 // tokens
        if small:
            tokens, batch = tokens // 16, 4
        return Case(shape, method, precision, tokens, batch)

    first = [case("bert_base", m, "bfloat16", 128) for m in METHODS]
    precisions = [
        case("bert_base", "houlsby", precision, 128)
        for precision in ("float32", "tf32")
    ]
    longer = [
        case("bert_base", method, "bfloat16", 512)
        for method in ("houlsby", "full")
    ]
    large = [
        case("bert_large", method, "bfloat16", tokens)
        for tokens, method in itertools.product(
            (128, 512), ("houlsby", "lora", "full")
        )
    ]
    return [*first, *precisions, *longer, *large]


def operations(case, small, trains):
    """Returns the floating-point operations of a step, by the usual formula.

    Counts the products of the encoder for every token, two operations for each
    weight, and attention. The gradients of a frozen encoder cost as much as its
    forward pass, the gradients of a trained one twice as much. Adapters, norms,
    head and optimizer are not counted, and neither is what a side leaves out,
    so that both sides have the same number.

    Args:
        case: `Case`.
        small: Whether its shape is small.
        trains: Whether the step trains, or only computes the outputs.
    """
    blocks, width, _ = case.sizes(small)
    forward = case.batch * text_operations(blocks, width, case.tokens)
    if not trains:
        return forward
    return forward * (3 if case.method == "full" else 2)


def text_operations(blocks, width, tokens):
    """Returns the operations of an encoder's forward pass for one text.

    Args:
        blocks: Number of blocks.
        width: Width of the encoder.
        tokens: Number of tokens of the text.
    """
    # Four projections of attention; two of width 4d. Scores and mixture.
    a_token = 2 * 12 * width**2 + 4 * tokens * width
    return blocks * tokens * a_token
