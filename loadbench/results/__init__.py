"""The hall: what a run leaves behind. Types and the crash-safe bundle; no clock, no other room."""
