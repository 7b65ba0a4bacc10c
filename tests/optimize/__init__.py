# SPDX-License-Identifier: Apache-2.0
"""jaxport.optimize on models that others wrote: ONNX's own node tests and real exports."""
