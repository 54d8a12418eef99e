"""A clip made ready for the wire once, before the run: payloads in a mapped file, each with its due time."""
