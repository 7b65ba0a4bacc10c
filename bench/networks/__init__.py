# SPDX-License-Identifier: Apache-2.0
"""The networks that `make bench` converts and runs, each as its users would write it."""

from networks import science, sequence, vision
from networks.network import Network

NETWORKS: tuple[Network, ...] = (*vision.NETWORKS, *sequence.NETWORKS, *science.NETWORKS)


def network(name: str) -> Network:
    return next(candidate for candidate in NETWORKS if candidate.name == name)
