"""From a name or a folder to a pretrained encoder and its tokenizer."""
