"""Analyses of finished runs, one file for each; all are found automatically.

`support/analysis.py` has the base class. `tf-adapters analyse <name>` runs one.
"""

import os

# Set before anything imports TensorFlow, as the command `tf-adapters` does.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
