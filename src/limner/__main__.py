"""`python -m limner` -> the command line, under a name that never moves."""

from limner.frontends.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
