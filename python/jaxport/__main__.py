# SPDX-License-Identifier: Apache-2.0
"""python -m jaxport: the command line, wherever the command jaxport is not on the path."""

import sys

from .command import main

sys.exit(main())
