"""Starts runs in processes that are forked from one with all imports.

Programs start within a second instead of ten. TensorFlow's threads start after
the fork.
"""

import multiprocessing
import os
import sys

from tf_adapters.cli import flags


def start(command):
    """Starts `python train.py <flags>` in a session of its own.

    Args:
        command: List of strings: Python, the program and its flags.

    Returns:
        A `multiprocessing` process.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, "tf_adapters.runs.training_run"])
    process = context.Process(target=_main, args=(command[1:],))
    process.start()
    return process


def _main(arguments):
    os.setsid()
    sys.argv = arguments
    flags.run()
