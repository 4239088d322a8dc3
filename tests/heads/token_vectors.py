"""Makes random token vectors, and head layers that read them."""

from tests import tiny


def layer(head, width):
    """Returns the head's layer with large weights."""
    built = head.make_layer()
    built.build((None, None, width))
    tiny.randomize(built.weights, scale=1.0)
    return built


def outputs(random, mask, width):
    """Returns an encoder's outputs for texts with this padding mask."""
    vectors = random.normal(size=(*mask.shape, width)).astype("float32")
    return {"sequence_output": vectors, "padding_mask": mask}
