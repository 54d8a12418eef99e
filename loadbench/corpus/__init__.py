"""What is streamed: clips with their tracks and references, read from manifests and corpora."""
