"""The command `tf-adapters`: trains, evaluates, predicts, exports.

    python train.py --task=mnli --method=fusion

`python train.py --help` lists the flags; tf_adapters/cli/flags.py defines them.
"""

from tf_adapters.cli import flags

if __name__ == "__main__":
    flags.run()
