"""`python -m spt`."""

from spt.cli import main

main()
