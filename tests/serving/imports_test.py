import subprocess
import sys

import pytest

# What `tf-adapters serve` and the gateway import.
_PROGRAM = """
import sys
import tf_adapters.cli.serve
from tf_adapters.serving import app, common_encoder, server, sources
print([name for name in ("tensorflow", "keras") if name in sys.modules])
"""


def test_only_processes_that_compute_import_tensorflow():
    """It would take a gigabyte in each of the others."""
    pytest.importorskip("ray")
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"
