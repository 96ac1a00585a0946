"""The paper's toy example: a small change of the costs, and what it does to the decision on a triangle and on a ball."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, FancyArrowPatch, Polygon

from dffl.drawing import INK, PALE_INK, WIDE, blank, in_print
from dffl_studies.paper.by_level import level_name
from dffl_studies.paper.figures.parts import explain

EPSILON, BOUND = 0.3, 1.0
VERTICES = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
CLIENT_COLOURS = ("#000000", "#56B4E9")
"""Clients, not methods; the third colour marks the jump."""
SET_COLOUR, JUMP_COLOUR = "#eeeeee", "#F0E442"
CAPTION = (
    f"$\\epsilon$ = {level_name(EPSILON)}, B = {BOUND:g}. Dots: the two clients' best decisions. Arrows: the directions "
    "in which their costs fall. Jump: the distance between the decisions. Gap: the largest difference of the clients' SPO+ "
    "losses, by a sweep over all predictions of norm at most B."
)


class ToyNumbers(NamedTuple):
    """How far the decision jumps between the clients, the largest SPO+ gap found, and the paper's bound on it."""

    triangle_jump: float
    triangle_gap: float
    triangle_bound: float
    ball_jump: float
    ball_gap: float
    ball_bound: float


class ToySet(NamedTuple):
    """A feasible set: its support function for many directions, and its best decision for one cost vector."""

    support: Callable[[np.ndarray], np.ndarray]
    decide: Callable[[np.ndarray], np.ndarray]


TRIANGLE = ToySet(lambda u: (u @ VERTICES.T).max(axis=-1), lambda c: VERTICES[np.argmin(VERTICES @ c)])
BALL = ToySet(lambda u: np.linalg.norm(u, axis=-1), lambda c: -c / np.linalg.norm(c))


def toy_numbers(epsilon: float = EPSILON, bound: float = BOUND) -> ToyNumbers:
    """The example's numbers for the predictions of norm at most ``bound``."""
    norm = np.sqrt(2 + 2 * epsilon + epsilon**2)
    return ToyNumbers(
        triangle_jump=_jump(TRIANGLE, epsilon),
        triangle_gap=_largest_gap(TRIANGLE, epsilon, bound),
        triangle_bound=float(epsilon + 2 * np.sqrt(2) * bound),
        ball_jump=_jump(BALL, epsilon),
        ball_gap=_largest_gap(BALL, epsilon, bound),
        ball_bound=float(np.sqrt(2) * epsilon * (1 + 2 * bound / norm)),
    )


def draw_toy(rows: pd.DataFrame | None = None, noise: float = 0.0, reading: str = "") -> Figure:
    """Both sets with the clients' decisions, and the gap as the clients become equal. It needs no rows."""
    numbers = toy_numbers()
    with in_print():
        figure = blank(WIDE, 3.05)
        triangle, ball, limit = figure.subplots(1, 3)
        triangle.add_patch(Polygon(VERTICES, facecolor=SET_COLOUR, edgecolor=INK, linewidth=0.8))
        ball.add_patch(Circle((0, 0), 1, facecolor=SET_COLOUR, edgecolor=INK, linewidth=0.8))
        _frame(triangle, "Polyhedral set", (-0.62, 1.2), numbers.triangle_gap, numbers.triangle_bound)
        _frame(ball, "Strongly convex set", (-1.85, 1.2), numbers.ball_gap, numbers.ball_bound)
        _clients(triangle, TRIANGLE, f"jump {numbers.triangle_jump:.2f}", (0.68, 0.72))
        _clients(ball, BALL, f"jump {numbers.ball_jump:.2f}", (-0.1, -0.1))
        _limit(limit)
        explain(figure, CAPTION)
    return figure


def _costs(epsilon: float) -> np.ndarray:
    return np.array([[1.0, 1.0 + epsilon], [1.0 + epsilon, 1.0]])


def _jump(feasible: ToySet, epsilon: float) -> float:
    first, second = (feasible.decide(cost) for cost in _costs(epsilon))
    return float(np.linalg.norm(first - second))


def _largest_gap(feasible: ToySet, epsilon: float, bound: float) -> float:
    """The largest difference of the clients' SPO+ losses, by a sweep over the disc of predictions."""
    # A multiple of eight angles, so that the diagonals are among them: there the triangle has its largest gap.
    angles, radii = np.linspace(0, 2 * np.pi, 1440, endpoint=False), np.linspace(0, bound, 11)
    predictions = (radii[:, None, None] * np.stack([np.cos(angles), np.sin(angles)], axis=-1)).reshape(-1, 2)
    first, second = (_spo_plus(feasible, predictions, cost) for cost in _costs(epsilon))
    return float(np.abs(first - second).max())


def _spo_plus(feasible: ToySet, predictions: np.ndarray, cost: np.ndarray) -> np.ndarray:
    decision = feasible.decide(cost)
    return feasible.support(cost - 2 * predictions) + 2 * predictions @ decision - cost @ decision


def _frame(axes: Axes, title: str, limits: tuple[float, float], gap: float, bound: float) -> None:
    axes.set(xticks=[-1, 0, 1], yticks=[-1, 0, 1], ylabel="$w_2$", xlabel=f"$w_1$\nlargest gap {gap:.3f}, bound {bound:.3f}")
    axes.set(xlim=limits, ylim=limits, aspect="equal")  # after the ticks, which widen the limits
    axes.set_title(title)


def _clients(axes: Axes, feasible: ToySet, jump: str, label: tuple[float, float]) -> None:
    """Mark each client's best decision, the direction -c that leads to it, and the jump between the two."""
    costs = _costs(EPSILON)
    decisions = [feasible.decide(cost) for cost in costs]
    reach = 0.2 * float(np.ptp(axes.get_xlim()))
    for number, (cost, decision, colour) in enumerate(zip(costs, decisions, CLIENT_COLOURS, strict=True), start=1):
        way = -reach * cost / np.linalg.norm(cost)
        tip = decision + way
        arrow = FancyArrowPatch(
            tuple(decision), tuple(tip), arrowstyle="-|>", mutation_scale=7, shrinkA=0, shrinkB=0, color=colour
        )
        axes.add_patch(arrow)
        axes.plot(*decision, "o", color=colour, markersize=5, zorder=5)
        axes.text(tip[0] + 0.42 * way[0], tip[1] + 0.42 * way[1], f"$-c^{{({number})}}$", ha="center", va="center", fontsize=8)
    axes.plot(*np.transpose(decisions), color=JUMP_COLOUR, linewidth=3.5, zorder=3, solid_capstyle="butt")
    leader = {"arrowstyle": "-", "linewidth": 0.6, "color": PALE_INK, "shrinkA": 1, "shrinkB": 1}
    middle = np.mean(decisions, axis=0)
    axes.annotate(jump, tuple(middle), xytext=label, ha="center", va="bottom", fontsize=7.5, arrowprops=leader, zorder=6)


def _limit(axes: Axes) -> None:
    """The largest gap, and its bound, as epsilon falls."""
    epsilons = np.geomspace(1e-3, 1, 31)
    numbers = [toy_numbers(epsilon) for epsilon in epsilons]
    lines = {
        "polyhedral": ([number.triangle_gap for number in numbers], [number.triangle_bound for number in numbers]),
        "strongly convex": ([number.ball_gap for number in numbers], [number.ball_bound for number in numbers]),
    }
    for name, (gap, bound) in lines.items():
        axes.plot(epsilons, bound, ":", color=INK)
        axes.plot(epsilons, gap, color=INK)
        axes.annotate(name, (epsilons[0], gap[0]), xytext=(2, 4), textcoords="offset points", va="bottom", fontsize=7.5)
    limit = (epsilons[0], 2 * np.sqrt(2) * BOUND)
    axes.annotate("limit $2\\sqrt{2}B$", limit, xytext=(2, -4), textcoords="offset points", va="top", fontsize=7.5)
    kinds = [Line2D([], [], color=INK), Line2D([], [], color=INK, linestyle=":")]
    axes.legend(kinds, ["gap", "the paper's bound"], loc="center left", bbox_to_anchor=(0, 0.42), handlelength=1.6)
    axes.set(xscale="log", xlabel="$\\epsilon$\n", ylabel="largest gap of SPO+ losses", ylim=(0, 4), box_aspect=1)
    axes.set_title("Largest gap as $\\epsilon \\to 0$")
