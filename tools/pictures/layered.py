# SPDX-License-Identifier: Apache-2.0
"""Where the nodes of a graph stand: in rows from operands to results, with few crossings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

Node = Hashable
Edge = tuple[Node, Node]
Point = tuple[float, float]


@dataclass(frozen=True)
class Placed:
    centres: dict[Node, Point]
    curves: list[list[Point]]  # one for each edge, from the lower border to the upper one


def ranks_of(nodes: Sequence[Node], edges: Sequence[Edge]) -> dict[Node, int]:
    """Rows by the longest way from an input; inputs stand above their first reader."""
    rank = dict.fromkeys(nodes, 0)
    for _ in nodes:
        moved = False
        for a, b in edges:
            if rank[b] <= rank[a]:
                rank[b], moved = rank[a] + 1, True
        if not moved:
            break
    inputs = set(nodes) - {b for _, b in edges}
    for node in inputs:
        readers = [rank[b] for a, b in edges if a == node]
        rank[node] = min(readers) - 1 if readers else 0
    return rank


def with_stops(
    rank: dict[Node, int], edges: Sequence[Edge]
) -> tuple[list[list[Node]], list[list[Node]]]:
    """The rows, and each edge as a way with a stop in every row that it passes."""
    rows: dict[int, list[Node]] = defaultdict(list)
    for node, row in rank.items():
        rows[row].append(node)
    ways = []
    for number, (a, b) in enumerate(edges):
        stops: list[Node] = [("stop", number, row) for row in range(rank[a] + 1, rank[b])]
        for row, stop in enumerate(stops, rank[a] + 1):
            rows[row].append(stop)
        ways.append([a, *stops, b])
    return [rows[row] for row in range(max(rows) + 1)], ways


def neighbours(ways: list[list[Node]]) -> tuple[dict[Node, list[Node]], dict[Node, list[Node]]]:
    above, below = defaultdict(list), defaultdict(list)
    for way in ways:
        for a, b in pairwise(way):
            below[a].append(b)
            above[b].append(a)
    return above, below


def order(rows: list[list[Node]], ways: list[list[Node]]) -> None:
    """Sorts each row by where its neighbours stand, down and up again."""
    above, below = neighbours(ways)
    for sweep in range(12):
        near = above if sweep % 2 == 0 else below
        place = {node: i / len(row) for row in rows for i, node in enumerate(row)}
        for row in rows if sweep % 2 == 0 else reversed(rows):
            means = {
                n: sum(place[m] for m in near[n]) / len(near[n]) if near[n] else place[n]
                for n in row
            }
            row.sort(key=lambda n: means[n])
            place.update({node: i / len(row) for i, node in enumerate(row)})


def spread(
    rows: list[list[Node]], ways: list[list[Node]], widths: Mapping[Node, float], gap: float
) -> dict[Node, float]:
    """Each node near the middle of its neighbours, none on another."""
    above, below = neighbours(ways)
    x: dict[Node, float] = {}
    for row in rows:
        left = -sum(widths.get(n, 0) + gap for n in row) / 2
        for node in row:
            x[node] = left + widths.get(node, 0) / 2
            left += widths.get(node, 0) + gap
    for sweep in range(40):
        for row in rows if sweep % 2 == 0 else reversed(rows):
            for node in row:
                near = above[node] + below[node]
                x[node] = sum(x[m] for m in near) / len(near) if near else x[node]
            _apart(row, x, widths, gap)
    least = min(x[n] - widths.get(n, 0) / 2 for n in x)
    return {node: value - least for node, value in x.items()}


def _apart(row: list[Node], x: dict[Node, float], widths: Mapping[Node, float], gap: float) -> None:
    """Moves nodes of a row to both sides until none touches the next one."""
    for _ in range(2 * len(row)):
        for a, b in pairwise(row):
            need = (widths.get(a, 0) + widths.get(b, 0)) / 2 + gap
            lacks = need - (x[b] - x[a])
            if lacks > 0.01:
                x[a] -= lacks / 2
                x[b] += lacks / 2


def place(
    widths: Mapping[Node, float],
    edges: Sequence[Edge],
    *,
    height: float = 20,
    pitch: float = 36,
    gap: float = 12,
) -> Placed:
    rank = ranks_of(list(widths), edges)
    rows, ways = with_stops(rank, edges)
    order(rows, ways)
    x = spread(rows, ways, widths, gap)
    y = {node: i * pitch + height / 2 for i, row in enumerate(rows) for node in row}
    curves = []
    for way in ways:
        first, last = way[0], way[-1]
        points = [(x[first], y[first] + height / 2)]
        points += [(x[stop], y[stop]) for stop in way[1:-1]]
        curves.append([*points, (x[last], y[last] - height / 2)])
    return Placed({node: (x[node], y[node]) for node in widths}, curves)
