"""Measure releases of OpenVINO: see the package."""

from releases.command import main

if __name__ == "__main__":
    main()
