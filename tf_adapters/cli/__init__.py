"""What the commands do: flags, modes, lists, summaries, how errors are told."""
