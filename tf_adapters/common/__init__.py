"""What every part may use: errors, files, checks, the network."""
