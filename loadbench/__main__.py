"""`python -m loadbench`."""

from loadbench.cli import main

main()
