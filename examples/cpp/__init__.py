# SPDX-License-Identifier: Apache-2.0
"""A JAX model in a C++ program, with ONNX Runtime's C API."""
