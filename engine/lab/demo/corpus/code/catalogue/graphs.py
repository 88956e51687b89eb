"""Graphs and grids as graphs."""

from __future__ import annotations

import random

from ..program import Program, Variant
from ..values import each

GRAPHS = (
    '{"A": ["B", "C"], "B": ["D"], "C": ["D"], "D": []}',
    '{"A": ["B"], "B": ["C", "D"], "C": [], "D": ["E"], "E": []}',
    '{"A": ["C", "D"], "B": [], "C": ["E"], "D": ["B", "E"], "E": []}',
    '{"A": ["B", "E"], "B": ["C"], "C": ["D"], "D": [], "E": ["D"]}',
    '{"A": ["D"], "D": ["B", "C"], "B": ["E"], "C": ["E"], "E": []}',
)

GRAPH_USAGE = 'graph = {0}\nprint(f(graph, "A"))'

PATH_USAGE = 'graph = {0}\nprint(f(graph, "A", "{1}"))'


def graph(rng: random.Random) -> str:
    return rng.choice(GRAPHS)


PROGRAMS = (
    Program(
        "bfs",
        ("a breadth first search", "bfs", "a BFS"),
        ("visit a graph in breadth first order", "walk through a graph with bfs"),
        (
            Variant(
                "deque",
                '''
from collections import deque


def bfs(graph: dict[str, list[str]], start: str) -> list[str]:
    """Return the nodes in breadth first order."""
    visited = [start]
    queue = deque([start])
    while queue:
        node = queue.popleft()
        for neighbor in graph[node]:
            if neighbor not in visited:
                visited.append(neighbor)
                queue.append(neighbor)
    return visited
''',
                ("The queue holds nodes whose neighbors come next.", "Near nodes are visited before far ones."),
            ),
            Variant(
                "levels",
                '''
def bfs(graph: dict[str, list[str]], start: str) -> list[str]:
    """Return the nodes in breadth first order."""
    visited = [start]
    level = [start]
    while level:
        following = []
        for node in level:
            for neighbor in graph[node]:
                if neighbor not in visited:
                    visited.append(neighbor)
                    following.append(neighbor)
        level = following
    return visited
''',
                ("It visits all nodes at one distance before the next.",),
                ("level by level", "without a queue"),
            ),
        ),
        (
            'f({"A": ["B", "C"], "B": ["D"], "C": [], "D": []}, "A") == ["A", "B", "C", "D"]',
            'f({"A": []}, "A") == ["A"]',
            'f({"A": ["B"], "B": ["A"]}, "B") == ["B", "A"]',
        ),
        each(graph),
        GRAPH_USAGE,
    ),
    Program(
        "dfs",
        ("a depth first search", "dfs", "a DFS"),
        ("visit a graph in depth first order", "walk through a graph with dfs"),
        (
            Variant(
                "recursive",
                '''
def dfs(graph: dict[str, list[str]], node: str, visited: list[str] | None = None) -> list[str]:
    """Return the nodes in depth first order."""
    if visited is None:
        visited = []
    visited.append(node)
    for neighbor in graph[node]:
        if neighbor not in visited:
            dfs(graph, neighbor, visited)
    return visited
''',
                ("It follows each path to its end before it turns back.",),
            ),
            Variant(
                "stack",
                '''
def dfs(graph: dict[str, list[str]], start: str) -> list[str]:
    """Return the nodes in depth first order."""
    visited = []
    stack = [start]
    while stack:
        node = stack.pop()
        if node not in visited:
            visited.append(node)
            stack.extend(reversed(graph[node]))
    return visited
''',
                ("The stack replaces the recursion.",),
                ("with a stack", "without recursion", "with a loop"),
            ),
        ),
        (
            'f({"A": ["B", "C"], "B": ["D"], "C": [], "D": []}, "A") == ["A", "B", "D", "C"]',
            'f({"A": []}, "A") == ["A"]',
            'f({"A": ["B"], "B": ["A"]}, "B") == ["B", "A"]',
        ),
        each(graph),
        GRAPH_USAGE,
    ),
    Program(
        "shortest_path",
        ("a shortest path search", "a shortest path function"),
        ("find the shortest path in a graph", "find a path between two nodes"),
        (
            Variant(
                "deque",
                '''
from collections import deque


def shortest_path(graph: dict[str, list[str]], start: str, end: str) -> list[str]:
    """Return the nodes of a shortest path, or an empty list."""
    queue = deque([[start]])
    visited = {start}
    while queue:
        path = queue.popleft()
        if path[-1] == end:
            return path
        for neighbor in graph[path[-1]]:
            if neighbor not in visited:
                visited.add(neighbor)
                queue.append(path + [neighbor])
    return []
''',
                ("The first path that reaches the end is the shortest.",),
            ),
            Variant(
                "recursive",
                '''
def shortest_path(graph: dict[str, list[str]], start: str, end: str) -> list[str]:
    """Return the nodes of a shortest path in a graph without cycles, or an empty list."""
    if start == end:
        return [end]
    paths = [shortest_path(graph, neighbor, end) for neighbor in graph[start]]
    return min(([start] + path for path in paths if path), key=len, default=[])
''',
                ("It compares the paths through every neighbor.",),
            ),
        ),
        (
            'f({"A": ["B", "C"], "B": ["C"], "C": []}, "A", "C") == ["A", "C"]',
            'f({"A": [], "B": []}, "A", "B") == []',
            'f({"A": []}, "A", "A") == ["A"]',
        ),
        each(graph, lambda rng: rng.choice("BCD")),
        PATH_USAGE,
    ),
    Program(
        "topological_sort",
        ("a topological sort", "the topological order of a graph"),
        ("sort the nodes of a graph in topological order", "order tasks by their dependencies"),
        (
            Variant(
                "recursive",
                '''
def topological_sort(graph: dict[str, list[str]]) -> list[str]:
    """Return the nodes so that every edge points forward."""
    order: list[str] = []

    def visit(node: str) -> None:
        if node not in order:
            for neighbor in graph[node]:
                visit(neighbor)
            order.append(node)

    for node in graph:
        visit(node)
    return order[::-1]
''',
                ("A node is added after everything that follows it, so the order is reversed.",),
            ),
            Variant(
                "loop",
                '''
def topological_sort(graph: dict[str, list[str]]) -> list[str]:
    """Return the nodes so that every edge points forward."""
    order: list[str] = []
    while len(order) < len(graph):
        remaining = [node for node in graph if node not in order]
        blocked = {neighbor for node in remaining for neighbor in graph[node]}
        free = [node for node in remaining if node not in blocked]
        if not free:
            raise ValueError("the graph has a cycle")
        order.extend(free)
    return order
''',
                ("Nodes without incoming edges come first.",),
            ),
        ),
        (
            'f({"A": ["B"], "B": ["C"], "C": []}) == ["A", "B", "C"]',
            'f({"B": [], "A": ["B"]}) == ["A", "B"]',
            "f({}) == []",
        ),
        each(graph),
        "graph = {0}\nprint(f(graph))",
    ),
    Program(
        "count_islands",
        ("an island counter", "the number of islands problem"),
        ("count the islands in a grid", "count connected groups of ones"),
        (
            Variant(
                "recursive",
                '''
def count_islands(grid: list[list[int]]) -> int:
    """Return the number of connected groups of ones."""
    land = {(r, c) for r, row in enumerate(grid) for c, cell in enumerate(row) if cell}

    def sink(r: int, c: int) -> None:
        if (r, c) in land:
            land.remove((r, c))
            for dr, dc in ((1, 0), (-1, 0), (0, 1), (0, -1)):
                sink(r + dr, c + dc)

    count = 0
    while land:
        sink(*min(land))
        count += 1
    return count
''',
                ("Each island is removed as soon as it is counted.",),
            ),
            Variant(
                "stack",
                '''
def count_islands(grid: list[list[int]]) -> int:
    """Return the number of connected groups of ones."""
    land = {(r, c) for r, row in enumerate(grid) for c, cell in enumerate(row) if cell}
    count = 0
    while land:
        count += 1
        stack = [land.pop()]
        while stack:
            r, c = stack.pop()
            for cell in ((r + 1, c), (r - 1, c), (r, c + 1), (r, c - 1)):
                if cell in land:
                    land.remove(cell)
                    stack.append(cell)
    return count
''',
                ("The stack holds the cells of the island that is being removed.",),
                ("with a stack", "without recursion"),
            ),
        ),
        ("f([[1, 0], [0, 1]]) == 2", "f([[1, 1], [0, 1]]) == 1", "f([[0]]) == 0", "f([]) == 0"),
        each(lambda rng: str([[int(rng.random() < 0.5) for _ in range(4)] for _ in range(3)])),
        "grid = {0}\nprint(f(grid))",
    ),
)
