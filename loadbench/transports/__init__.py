"""How bytes travel: each transport takes wire messages, stamps what arrives at the edge, and says how it ended."""
