# SPDX-License-Identifier: Apache-2.0
"""Rows that do not hold yet, by reason. A row that starts to hold fails until it is taken out here.

Only ops and counts may be missed: a model that does not load or gives other numbers is never
expected.
"""

from __future__ import annotations

_REASONS: dict[str, list[str]] = {
    "a look-up in a constant table is not folded": [
        "attention | by hand | relative position table",
    ],
    "a sequence without a batch is reshaped for each operand of Attention": [
        "rotary | equinox | process_heads",
    ],
    "the bias of what was folded stays an Add": [
        "norm | nnx | Conv and BatchNorm [folded]",
        "norm | nnx | Linear and BatchNorm [folded]",
        "norm | linen | Conv and BatchNorm [folded]",
        "norm | equinox | Conv2d and BatchNorm [folded]",
        "norm | by hand | convolution, NCHW, scale and shift [folded]",
        "norm | keras | Conv2D and BatchNormalization [folded]",
        "norm | haiku | Conv2D and BatchNorm [folded]",
        "model | nnx | ResNet-50, NHWC",
    ],
    "no rule": [
        "idiom | by hand | eye, symbolic",
        "idiom | by hand | image.resize, nearest",
        "idiom | by hand | image.resize, bilinear",
        "idiom | by hand | image.resize, bilinear, NHWC",
    ],
    "MatMul and Add do not become Gemm": [
        "idiom | by hand | x @ w + b, 2-D",
        "idiom | by hand | w @ x + b of each row",
        "idiom | nnx | Linear, 2-D",
        "idiom | nnx | Linear, symbolic",
        "idiom | linen | Dense",
        "idiom | equinox | Linear, vmap",
        "idiom | keras | Dense",
        "idiom | haiku | Linear",
    ],
    "the bias of a convolution stays an Add": [
        "idiom | by hand | convolution and bias, NHWC",
        "idiom | by hand | convolution and bias, NCHW",
        "idiom | nnx | Conv",
        "idiom | nnx | Conv, depthwise",
        "idiom | linen | Conv, strided",
        "idiom | equinox | Conv2d, vmap",
        "idiom | keras | Conv2D",
        "idiom | keras | DepthwiseConv2D",
        "idiom | haiku | Conv2D",
    ],
    "layouts cost more than they must": [
        "layout | by hand | MLP-Mixer",
        "layout | by hand | U-Net",
        "layout | by hand | axial attention",
        "layout | by hand | windowed attention",
    ],
}
NOT_YET = {name: reason for reason, names in _REASONS.items() for name in names}
