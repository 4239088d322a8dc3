"""What every part may use: errors, files, suggestions, the network."""
