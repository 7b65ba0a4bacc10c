# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os

# One device and no accelerator probing; must be set before JAX starts. Most programs here run once,
# so that compiling them well takes longer than it gains.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")
