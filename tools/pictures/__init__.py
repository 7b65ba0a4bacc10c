# SPDX-License-Identifier: Apache-2.0
"""The pictures of the documentation, drawn by `make pictures` from real conversions and results."""
