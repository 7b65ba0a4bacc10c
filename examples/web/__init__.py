# SPDX-License-Identifier: Apache-2.0
"""A page that reads drawn digits: trained in JAX, run by ONNX Runtime Web."""
