"""`python -m roundline`."""

import sys

from roundline.cli import main

sys.exit(main())
