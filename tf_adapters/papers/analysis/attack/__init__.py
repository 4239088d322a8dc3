"""The attack on words, with its search and WordNet."""
