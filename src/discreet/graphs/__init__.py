# SPDX-License-Identifier: Apache-2.0
"""Graphs: counts of triangles, stars and degrees that protect one edge or one node.

graph.py         Graph: public nodes, and the edges between them                          ◄ read this first
read.py          edge lists from arrays, matrices, networks, files and tables
triangles.py     the number of triangles, its local and smooth sensitivity; exact
stars.py         the same for stars
pairs.py         common neighbours of pairs of nodes, in bounded memory
local.py         LocalSensitivity: at every distance, and smooth
counts.py        what is public about a count of subgraphs
ladder.py        pure privacy with noise for the local sensitivity
release.py       Triangles, KStars
degrees.py       EdgeCount, DegreeSequence, DegreeHistogram, CumulativeDegrees; the projection for
                 node privacy

Everything that is exported releases with noise. `triangles`, `stars` and `local` compute exact,
secret numbers and are not exported. The proofs are in graphs.proof.md.
"""

from __future__ import annotations

from discreet.graphs.degrees import CumulativeDegrees, DegreeHistogram, DegreeSequence, EdgeCount
from discreet.graphs.graph import Graph
from discreet.graphs.release import KStars, Triangles

__all__ = [
    "CumulativeDegrees",
    "DegreeHistogram",
    "DegreeSequence",
    "EdgeCount",
    "Graph",
    "KStars",
    "Triangles",
]
