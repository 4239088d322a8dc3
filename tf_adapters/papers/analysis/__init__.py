"""Analyses of finished runs, one file for each; all are found automatically.

`analysis.py` has the contract; `tf-adapters analyse <name>` runs one.
"""

import os

# Done before anything imports TensorFlow, as in the command.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
