"""From names of tasks and files to rows with types."""
