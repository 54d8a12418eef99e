"""A bundle for people and for other programs: HTML, terminal text, JSON, JUnit. Pure functions of the raw files."""
