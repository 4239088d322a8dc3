"""Reports on a finished run: tables and pictures from its stored files."""
