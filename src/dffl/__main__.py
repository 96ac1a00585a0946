"""``python -m dffl``."""

from dffl.cli import main

main()
