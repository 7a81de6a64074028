"""``python -m transferable``: the command line, where no script is on the path."""

from transferable.cli import main

if __name__ == "__main__":
    main()
