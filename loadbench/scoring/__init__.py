"""Quality as points: error rates, the standard's tables as data, what the scorers get. Knows nothing of latency."""
