"""`weir run -- PROGRAM`, also as `python -m weir run -- PROGRAM`: becomes the program `weir` of the wheel."""
import os
import sys


def main() -> None:
    os.execv(os.path.join(os.path.dirname(__file__), "bin", "weir"), ["weir", *sys.argv[1:]])


if __name__ == "__main__":
    main()
