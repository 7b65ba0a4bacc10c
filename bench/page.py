# SPDX-License-Identifier: Apache-2.0
"""The page of results, docs/benchmarks.md: scripts write the parts between its markers."""

from measure import ROOT

PAGE = ROOT / "docs" / "benchmarks.md"


def write_part(name: str, text: str) -> None:
    """Replaces what stands between `<!-- name: begin -->` and `<!-- name: end -->`."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(begin)
    _, _, after = rest.partition(end)
    PAGE.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")
