# SPDX-License-Identifier: Apache-2.0
"""Real programs of packages from PyPI: `make ecosystem` exports all, the test suite a sample."""
