"""``python -m runner`` is ``pi-run``."""

from runner.cli import main

if __name__ == "__main__":
    main()
