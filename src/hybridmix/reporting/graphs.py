"""Graphs of states and the transitions between them, as inline SVG for the report."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from hybridmix._typing import FloatArray
from hybridmix.reporting.charts import svg
from hybridmix.reporting.markup import escape, percent
from hybridmix.reporting.plane import WIDTH, place_text

# Arrows of a lower probability are not drawn.
LEAST = 0.02
# Width of the arrow of a certain transition.
_WIDEST = 5.0
# How far arrows bend, in parts of their length, so that both directions can be seen.
_BEND = 0.22
_HEAD = 7.0
_LARGEST_NODE = 15.0


class _Layout(NamedTuple):
    """Where the states are, and in which direction they have no arrows."""

    places: FloatArray
    away: FloatArray
    radius: float
    height: float


def transition_graph(transitions: FloatArray, description: str) -> str:
    """Draw states, and arrows as wide as transitions are probable.

    Chains that never go back stand in a row, others in a circle. What is written next to
    a state is the probability of staying there.

    Parameters
    ----------
    transitions : ndarray of shape (K, K)
        Probabilities of the next state (columns) in each state (rows).
    description : str
        What a screen reader says.
    """
    layout = _in_a_row(transitions) if _is_forward(transitions) else _circle(transitions)
    parts = [
        _arrow(layout, source, target, float(transitions[source, target]))
        for source, target in np.argwhere(transitions >= LEAST).tolist()
        if source != target
    ]
    for state, place in enumerate(layout.places):
        across, down, radius = map(place_text, (*place, layout.radius))
        stay = percent(float(transitions[state, state]))
        parts.append(
            f'<circle class="node" cx="{across}" cy="{down}" r="{radius}">'
            f"<title>state {state}: stays with {escape(stay)}</title></circle>"
            f'<text x="{across}" y="{down}" dy="4" class="middle">{state}</text>'
        )
        # Text is wider than high.
        free = place + (layout.radius + np.array([26.0, 9.0])) * layout.away[state]
        parts.append(
            f'<text x="{place_text(free[0])}" y="{place_text(free[1])}" dy="4" '
            f'class="middle label">{escape(_whole(stay))}</text>'
        )
    return svg("".join(parts), description, layout.height)


def _whole(share: str) -> str:
    """Return a share in per cent without its decimal: circles are close to each other."""
    return re.sub(r"\d+\.\d(?= %)", lambda found: f"{float(found[0]):.0f}", share)


def _is_forward(transitions: FloatArray) -> bool:
    return not np.tril(transitions, -1).any()


def _in_a_row(transitions: FloatArray) -> _Layout:
    n_states = len(transitions)
    step = WIDTH / n_states
    places = np.column_stack(
        [step * (np.arange(n_states) + 0.5), np.full(n_states, 62.0)]
    )
    away = np.tile([0.0, 1.0], (n_states, 1))
    return _Layout(places, away, min(_LARGEST_NODE, 0.3 * step), 104.0)


def _circle(transitions: FloatArray) -> _Layout:
    n_states, size = len(transitions), 92.0
    # The first state is at the top, and the others follow clockwise.
    angles = 2.0 * np.pi * np.arange(n_states) / n_states - np.pi / 2
    away = np.column_stack([np.cos(angles), np.sin(angles)])
    places = np.array([WIDTH / 2, size + 40.0]) + size * away
    between = size * 2.0 * np.pi / n_states
    return _Layout(places, away, min(_LARGEST_NODE, 0.3 * between), 2.0 * size + 80.0)


def _arrow(layout: _Layout, source: int, target: int, probability: float) -> str:
    """Draw a bent arrow between the circles of two states."""
    begin, end = layout.places[source], layout.places[target]
    along = end - begin
    across = np.array([along[1], -along[0]])
    bend = 0.5 * (begin + end) + _BEND * across
    inwards = (end - bend) / np.linalg.norm(end - bend)
    outwards = (bend - begin) / np.linalg.norm(bend - begin)
    start = begin + layout.radius * outwards
    tip = end - (layout.radius + 1.0) * inwards
    base = tip - _HEAD * inwards
    side = 0.5 * _HEAD * np.array([inwards[1], -inwards[0]])
    width = place_text(max(_WIDEST * probability, 0.6))
    return (
        f'<path class="arrow" stroke-width="{width}" d="M{_point(start)}Q{_point(bend)} '
        f'{_point(base)}"><title>state {source} to {target}: '
        f"{escape(percent(probability))}</title></path>"
        f'<path class="head" d="M{_point(tip)}L{_point(base + side)}L'
        f'{_point(base - side)}z"/>'
    )


def _point(place: FloatArray) -> str:
    return f"{place_text(place[0])} {place_text(place[1])}"
