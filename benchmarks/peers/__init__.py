"""Other tools at the same work: their scripts, and how they are installed and called."""
