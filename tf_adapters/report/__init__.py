"""Pictures and tables of one finished run, from what it stored."""
