# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os

# One device and no accelerator probing; must be set before JAX starts.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
