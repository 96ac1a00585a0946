"""The markers of methods: Plotly's names, and the same shapes as SVG paths for the list of methods next to a chart."""

from __future__ import annotations

from math import cos, pi, sin


def _corners(count: int, outer: float = 6.5, inner: float | None = None) -> str:
    """A regular polygon, or a star, with one corner at the top."""
    radii = [outer] if inner is None else [outer, inner]
    steps = count * len(radii)
    points = [
        (radii[step % len(radii)] * sin(2 * pi * step / steps), -radii[step % len(radii)] * cos(2 * pi * step / steps))
        for step in range(steps)
    ]
    return "M" + "L".join(f"{x:.2f},{y:.2f}" for x, y in points) + "Z"


SYMBOLS = {
    "circle": "M6,0A6,6 0 1 1 0,-6A6,6 0 0 1 6,0Z",
    "square": "M5.5,5.5H-5.5V-5.5H5.5Z",
    "diamond": _corners(4, 7.5),
    "triangle-up": _corners(3, 7),
    "triangle-down": "M-6,-3.5H6L0,7Z",
    "cross": "M6.5,2.2H2.2V6.5H-2.2V2.2H-6.5V-2.2H-2.2V-6.5H2.2V-2.2H6.5Z",
    "star": _corners(5, 7.5, 3),
    "hexagon": _corners(6),
    "pentagon": _corners(5),
    "bowtie": "M6,5V-5L0,0L-6,-5V5L0,0Z",
    "hourglass": "M5,6H-5L0,0L-5,-6H5L0,0Z",
    "star-diamond": _corners(4, 7.5, 3.5),
}
