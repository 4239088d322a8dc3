"""An attack that replaces words by synonyms, which are read from WordNet."""
