"""Judge pairs of files and engines: see the package."""

from pairs.command import main

if __name__ == "__main__":
    main()
