# SPDX-License-Identifier: Apache-2.0
"""Random JAX programs against ONNX Runtime; __main__.py says how to run them."""
