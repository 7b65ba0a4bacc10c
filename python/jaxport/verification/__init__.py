# SPDX-License-Identifier: Apache-2.0
"""jaxport.verify: does a model give JAX's numbers, and if not, since which equation?"""
