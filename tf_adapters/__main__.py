"""`python -m tf_adapters` is the command `tf-adapters`."""

from tf_adapters.cli import flags

flags.run()
