"""What runs show: one file for each analysis, found by itself.

`analysis.py` has the contract; `tf-adapters analyse <name>` runs one.
"""

import os

# As the command does, before anything imports TensorFlow.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
