# SPDX-License-Identifier: Apache-2.0
"""Makes the pictures of docs/report.md from the screenshots that `make test-page` leaves.

They are smaller than the screen and of few colours, so that the repository stays small.
"""

import sys
from pathlib import Path

from PIL import Image

IMAGES = Path(__file__).parents[2] / "docs" / "images"
PICTURES = {  # in docs/images: the screenshot, and how wide it becomes
    "report": ("node", 1280),
    "report-totals": ("totals", 960),
    "report-runtimes": ("runtimes", 960),
    "report-profile": ("profile", 960),
    "report-phone": ("phone-source", 390),
}
COLORS = 256


def shrink(image: Image.Image, width: int) -> Image.Image:
    height = round(image.height * width / image.width)
    smaller = image.convert("RGB").resize((width, height), Image.Resampling.LANCZOS)
    return smaller.quantize(COLORS, dither=Image.Dither.NONE)


def main() -> None:
    folder = Path(sys.argv[1])
    for name, (screenshot, width) in PICTURES.items():
        path = IMAGES / f"{name}.png"
        shrink(Image.open(folder / f"{screenshot}.png"), width).save(path, optimize=True)
        print(f"{path.stat().st_size / 1000:4.0f} kB  {path.name}")


if __name__ == "__main__":
    main()
