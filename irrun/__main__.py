"""``python -m irrun``."""

from irrun.cli import main

if __name__ == "__main__":
    main()
