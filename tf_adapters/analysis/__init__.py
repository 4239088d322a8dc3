"""One file for each analysis: `table` is pure, `plot` is thin."""

import os

# As the command does, before anything imports TensorFlow.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
