"""sealtune: fine-tune a language model on private data, on a GPU that belongs to a stranger."""

__version__ = "0.1.0"
