"""The layouts of corpora that are read as they lie on disk."""
