"""Sets two logical CPUs and the seed, silences TensorFlow, and sorts files."""

import collections
import os
import random

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # As train.py does.

import numpy as np
import pytest
import tensorflow as tf

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0],
    [tf.config.LogicalDeviceConfiguration()] * 2,
)


def pytest_addoption(parser):
    parser.addoption(
        "--seed", type=int, default=0, help="Seed of each test's weights."
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Sets the seed before the fixtures of a test are made.

    Without it, a test that fails once in a hundred runs fails on another
    person's machine and not on yours. Other seeds show which tests pass by
    luck only: `pytest --seed=1`.
    """
    # Keras draws its seeds from Python's generator. TensorFlow's seed stays as
    # it is: to set it would delete the graphs' kernels before every test.
    random.seed(item.config.getoption("seed"))
    np.random.seed(item.config.getoption("seed"))


# Approximate seconds of a test, by its mark.
_SECONDS = {"slow": 20, "integration": 2}


def pytest_collection_modifyitems(items):
    """Sorts files so that the longest come first.

    Two processes share the files. A long file at the end would leave one
    process idle.
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
    """Reports the backends that were not installed and not tested."""
    skipped = terminalreporter.stats.get("skipped", [])
    if any("PyTorch is not installed" in str(r.longrepr) for r in skipped):
        terminalreporter.write_line(
            "PyTorch is not installed: nothing was tested under it."
        )
