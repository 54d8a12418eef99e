"""loadbench: a real-time latency load tester for live interpretation services."""

__version__ = "0.1.0"
