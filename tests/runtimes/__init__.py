# SPDX-License-Identifier: Apache-2.0
"""Models on many versions of ONNX Runtime, each in an environment of its own: docs/runtimes.md."""
