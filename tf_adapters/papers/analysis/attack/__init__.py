"""An attack that replaces words by synonyms, its search, and WordNet."""
