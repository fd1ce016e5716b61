"""``python -m askance``."""

from .cli import main

main()
