"""An attack that replaces words, with its search and WordNet."""
