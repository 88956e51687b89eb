"""Matrices."""

from __future__ import annotations

from ..program import Program, Variant
from ..values import each, matrix, number

PROGRAMS = (
    Program(
        "transpose",
        ("a matrix transpose", "a transpose function"),
        ("transpose a matrix", "swap the rows and columns of a matrix"),
        (
            Variant(
                "zip",
                '''
def transpose(matrix: list[list[int]]) -> list[list[int]]:
    """Return the matrix with rows and columns swapped."""
    return [list(column) for column in zip(*matrix)]
''',
                ("zip collects the first, second, third elements of all rows.",),
                ("with zip", "using zip", "in one line"),
            ),
            Variant(
                "comprehension",
                '''
def transpose(matrix: list[list[int]]) -> list[list[int]]:
    """Return the matrix with rows and columns swapped."""
    return [[row[i] for row in matrix] for i in range(len(matrix[0]))]
''',
                ("The inner list is one column.",),
                ("with a nested comprehension", "with a list comprehension"),
            ),
            Variant(
                "loop",
                '''
def transpose(matrix: list[list[int]]) -> list[list[int]]:
    """Return the matrix with rows and columns swapped."""
    result = []
    for i in range(len(matrix[0])):
        column = []
        for row in matrix:
            column.append(row[i])
        result.append(column)
    return result
''',
                ("Each pass of the outer loop collects one column.",),
                ("with loops", "with nested loops"),
            ),
        ),
        ("f([[1, 2], [3, 4]]) == [[1, 3], [2, 4]]", "f([[1, 2, 3]]) == [[1], [2], [3]]", "f([[5]]) == [[5]]"),
        each(matrix(2, 3)),
    ),
    Program(
        "multiply",
        ("a matrix multiplication", "a matrix product"),
        ("multiply two matrices", "compute the product of two matrices"),
        (
            Variant(
                "loop",
                '''
def multiply(a: list[list[int]], b: list[list[int]]) -> list[list[int]]:
    """Return the matrix product of a and b."""
    result = [[0] * len(b[0]) for _ in a]
    for i in range(len(a)):
        for j in range(len(b[0])):
            for k in range(len(b)):
                result[i][j] += a[i][k] * b[k][j]
    return result
''',
                ("Each entry is a row of a times a column of b.",),
                ("with three loops", "with loops", "with nested loops"),
            ),
            Variant(
                "comprehension",
                '''
def multiply(a: list[list[int]], b: list[list[int]]) -> list[list[int]]:
    """Return the matrix product of a and b."""
    columns = list(zip(*b))
    return [[sum(x * y for x, y in zip(row, column)) for column in columns] for row in a]
''',
                ("zip turns the second matrix into its columns.",),
                ("with a comprehension", "with zip and sum"),
            ),
        ),
        (
            "f([[1, 2], [3, 4]], [[1, 0], [0, 1]]) == [[1, 2], [3, 4]]",
            "f([[2]], [[3]]) == [[6]]",
            "f([[1, 2]], [[3], [4]]) == [[11]]",
        ),
        each(matrix(2, 2), matrix(2, 2)),
        "a = {0}\nb = {1}\nprint(f(a, b))",
    ),
    Program(
        "identity",
        ("an identity matrix", "an identity matrix function"),
        ("create an identity matrix", "make a matrix with ones on the diagonal"),
        (
            Variant(
                "comprehension",
                '''
def identity(n: int) -> list[list[int]]:
    """Return n rows with ones on the diagonal."""
    return [[int(i == j) for j in range(n)] for i in range(n)]
''',
                ("A comparison becomes one or zero.",),
                ("with a nested comprehension", "in one line"),
            ),
            Variant(
                "loop",
                '''
def identity(n: int) -> list[list[int]]:
    """Return n rows with ones on the diagonal."""
    matrix = [[0] * n for _ in range(n)]
    for i in range(n):
        matrix[i][i] = 1
    return matrix
''',
                ("All zeros first, then ones on the diagonal.",),
            ),
        ),
        ("f(2) == [[1, 0], [0, 1]]", "f(1) == [[1]]", "sum(map(sum, f(5))) == 5"),
        each(number(2, 6)),
        "for row in f({0}):\n    print(row)",
    ),
    Program(
        "rotate_matrix",
        ("a matrix rotation", "a function that rotates a matrix"),
        ("rotate a matrix by 90 degrees", "turn a matrix clockwise"),
        (
            Variant(
                "zip",
                '''
def rotate_matrix(matrix: list[list[int]]) -> list[list[int]]:
    """Return the matrix turned clockwise by 90 degrees."""
    return [list(row) for row in zip(*matrix[::-1])]
''',
                ("It reverses the rows and transposes the result.",),
                ("with zip", "using zip", "in one line"),
            ),
            Variant(
                "loop",
                '''
def rotate_matrix(matrix: list[list[int]]) -> list[list[int]]:
    """Return the matrix turned clockwise by 90 degrees."""
    rows, columns = len(matrix), len(matrix[0])
    result = [[0] * rows for _ in range(columns)]
    for i in range(rows):
        for j in range(columns):
            result[j][rows - 1 - i] = matrix[i][j]
    return result
''',
                ("Each row becomes a column, starting on the right.",),
                ("with loops", "with nested loops"),
            ),
        ),
        ("f([[1, 2], [3, 4]]) == [[3, 1], [4, 2]]", "f([[1, 2, 3]]) == [[1], [2], [3]]", "f([[5]]) == [[5]]"),
        each(matrix(2, 3)),
    ),
    Program(
        "spiral",
        ("a spiral walk through a matrix", "a spiral order function"),
        ("read a matrix in spiral order", "list the elements of a matrix in a spiral"),
        (
            Variant(
                "while",
                '''
def spiral(matrix: list[list[int]]) -> list[int]:
    """Return the elements in clockwise order from the outside in."""
    result: list[int] = []
    while matrix:
        first, *rest = matrix
        result.extend(first)
        matrix = list(zip(*rest))[::-1]
    return result
''',
                ("It takes the first row and turns the rest to the left.",),
            ),
            Variant(
                "recursive",
                '''
def spiral(matrix: list[list[int]]) -> list[int]:
    """Return the elements in clockwise order from the outside in."""
    if not matrix:
        return []
    turned = [list(row) for row in zip(*matrix[1:])][::-1]
    return list(matrix[0]) + spiral(turned)
''',
                ("The first row comes before the turned rest.",),
            ),
        ),
        ("f([[1, 2], [3, 4]]) == [1, 2, 4, 3]", "f([[1, 2, 3]]) == [1, 2, 3]", "f([]) == []"),
        each(matrix(3, 3)),
    ),
)
