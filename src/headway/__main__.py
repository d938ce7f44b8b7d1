"""``python -m headway`` is the ``headway`` command."""

import sys

from headway.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
