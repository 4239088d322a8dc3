"""Two logical CPUs, no notes of TensorFlow's, and the longest files first."""

import collections
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # As train.py does.

import tensorflow as tf

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0],
    [tf.config.LogicalDeviceConfiguration()] * 2,
)


# Seconds that a test takes, about, by its mark.
_SECONDS = {"slow": 20, "integration": 2}


def pytest_collection_modifyitems(items):
    """Lets the files that take longest begin first.

    Two processes take one file after the other; a long one at the end would
    leave the other process idle.
    """
    seconds = collections.Counter()
    for item in items:
        seconds[item.path] += next(
            (
                s
                for mark, s in _SECONDS.items()
                if item.get_closest_marker(mark)
            ),
            0.1,
        )
    items.sort(key=lambda item: -seconds[item.path])


def pytest_terminal_summary(terminalreporter):
    """Says which backend was not there to be tested."""
    skipped = terminalreporter.stats.get("skipped", [])
    if any("PyTorch is not installed" in str(r.longrepr) for r in skipped):
        terminalreporter.write_line(
            "PyTorch is not installed: nothing was tested under it."
        )
