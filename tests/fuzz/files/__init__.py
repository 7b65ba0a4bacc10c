# SPDX-License-Identifier: Apache-2.0
"""Damaged files through the command line; __main__.py says how to run them."""
