"""A provenance graph as a file for other programs: JSON, or GraphML."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .run_directory import RunDirectory

if TYPE_CHECKING:
    from collections.abc import Mapping

    import networkx as nx

_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def save_json(graph: nx.DiGraph, file: str | Path) -> None:
    """Write the graph as JSON in networkx's node-link form.

    An object with ``directed`` (true), ``multigraph`` (false), ``graph`` (the graph's attributes), ``nodes`` (objects with
    ``id`` and the attributes) and ``edges`` (objects with ``source``, ``target`` and the attributes).
    ``networkx.node_link_graph(data, edges="edges")`` reads it.

    Raises:
        AskanceError: The file cannot be written.
    """
    import networkx as nx

    data = nx.node_link_data(graph, edges="edges")
    _write(file, json.dumps(data, ensure_ascii=False, indent=2, allow_nan=False) + "\n")


def save_graphml(graph: nx.DiGraph, file: str | Path) -> None:
    """Write the graph as GraphML, for Gephi, yEd and the like.

    GraphML knows only single values: what is in an object gets its path as name (``gain.low``), lists become JSON, and
    what is undefined is left out. Control characters, which XML forbids, become U+FFFD.

    Raises:
        AskanceError: The file cannot be written.
    """
    import networkx as nx

    flat = nx.DiGraph(**_flat(graph.graph))
    flat.add_nodes_from((name, _flat(row)) for name, row in graph.nodes(data=True))
    flat.add_edges_from((here, there, _flat(row)) for here, there, row in graph.edges(data=True))
    _write(file, "\n".join(nx.generate_graphml(flat, named_key_ids=True)) + "\n")


def _write(file: str | Path, text: str) -> None:
    path = Path(file)
    RunDirectory(path.parent).write(path.name, text)


def _flat(row: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Single values only."""
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{before}{name}.")
        elif isinstance(value, (list, tuple)):
            flat[before + name] = _NOT_IN_XML.sub("\ufffd", json.dumps(value, ensure_ascii=False))
        elif isinstance(value, str):
            flat[before + name] = _NOT_IN_XML.sub("\ufffd", value)
        elif isinstance(value, int) and not isinstance(value, bool) and before:
            flat[before + name] = float(value)  # one name, one type: a measure may be 0 here and 0.1 there
        elif value is not None:
            flat[before + name] = value
    return flat
