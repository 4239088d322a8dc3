"""A run in a process of its own, forked from one that has imported all.

Programs start within a second instead of ten; what they compute with begins
after the fork.
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
