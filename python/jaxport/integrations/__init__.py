# SPDX-License-Identifier: Apache-2.0
"""jaxport where other libraries call a converter: each has enable() and disable()."""
