"""What Houlsby's and Pfeiffer's adapters share: how wide, and which blocks."""


def width_of_bottleneck(method, width):
    """Returns the bottleneck's width for token vectors of width `width`.

    `reduction_factor`, where given, wins over `units`.
    """
    if method.reduction_factor is None:
        return method.units
    return max(1, int(width // method.reduction_factor))


def kept_blocks(method, num_blocks):
    """Returns for each block whether it has adapters.

    Raises:
        ValueError: If `leave_out` names a block that does not exist.
    """
    unknown = [i for i in method.leave_out if not 0 <= i < num_blocks]
    if unknown:
        raise ValueError(
            f"`leave_out` names blocks {unknown}, but the encoder has blocks 0 "
            f"to {num_blocks - 1}."
        )
    return [i not in method.leave_out for i in range(num_blocks)]


def layer_options(method, width):
    """Returns the keyword arguments of `Bottleneck` for this method."""
    return {
        "units": width_of_bottleneck(method, width),
        "activation": method.activation,
        "initialization": method.initialization,
        "init_stddev": method.init_stddev,
    }
