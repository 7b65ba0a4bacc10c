# SPDX-License-Identifier: Apache-2.0
"""DINOv3 in Equinox, from Meta's checkpoint to a model in ONNX Runtime: docs/dinov3.md."""

from .variants import VARIANTS as VARIANTS
from .variants import build as build
