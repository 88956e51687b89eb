"""Sorting by heaps, counts, gaps and keys."""

from __future__ import annotations

from ..program import ITEMS_USAGE, Program, Variant
from ..values import each, ints, small_ints, words
from .sorting import in_place, sort_program

PROGRAMS = (
    sort_program(
        "heap_sort",
        ("a heap sort", "heapsort", "the heap sort algorithm"),
        ("sort a list with a heap", "sort numbers using heap sort"),
        Variant(
            "heap",
            '''
from heapq import heapify, heappop


def heap_sort(items: list[int]) -> list[int]:
    """Return a sorted copy of items."""
    heap = list(items)
    heapify(heap)
    return [heappop(heap) for _ in range(len(heap))]
''',
            ("The heap always gives the smallest element first.", "Each pop takes O(log n) time."),
        ),
        in_place(
            '''
def heap_sort(items: list[int]) -> None:
    """Sort items in place."""
    size = len(items)
    for root in range(size // 2 - 1, -1, -1):
        sift_down(items, root, size)
    for end in range(size - 1, 0, -1):
        items[0], items[end] = items[end], items[0]
        sift_down(items, 0, end)


def sift_down(items: list[int], root: int, end: int) -> None:
    """Move the root down until no child before end is larger."""
    while 2 * root + 1 < end:
        child = 2 * root + 1
        if child + 1 < end and items[child + 1] > items[child]:
            child += 1
        if items[root] >= items[child]:
            return
        items[root], items[child] = items[child], items[root]
        root = child
''',
            "It builds a max heap and moves the largest value to the end.",
        ),
    ),
    sort_program(
        "counting_sort",
        ("a counting sort", "the counting sort algorithm"),
        ("sort small numbers with counting sort", "sort numbers by counting them"),
        Variant(
            "list",
            '''
def counting_sort(items: list[int]) -> list[int]:
    """Return a sorted copy of items, which must not be negative."""
    if not items:
        return []
    counts = [0] * (max(items) + 1)
    for item in items:
        counts[item] += 1
    result = []
    for value, count in enumerate(counts):
        result.extend([value] * count)
    return result
''',
            ("It counts each value and never compares two elements.", "It works for numbers that are not negative."),
        ),
        Variant(
            "counter",
            '''
from collections import Counter


def counting_sort(items: list[int]) -> list[int]:
    """Return a sorted copy of items."""
    counts = Counter(items)
    result = []
    for value in sorted(counts):
        result.extend([value] * counts[value])
    return result
''',
            ("Counter does the counting, so only distinct values are sorted.",),
        ),
    ),
    sort_program(
        "shell_sort",
        ("a shell sort", "the shell sort algorithm"),
        ("sort a list with shell sort", "sort numbers with shrinking gaps"),
        Variant(
            "copy",
            '''
def shell_sort(items: list[int]) -> list[int]:
    """Return a sorted copy of items."""
    items = list(items)
    gap = len(items) // 2
    while gap > 0:
        for i in range(gap, len(items)):
            j = i
            while j >= gap and items[j - gap] > items[j]:
                items[j - gap], items[j] = items[j], items[j - gap]
                j -= gap
        gap //= 2
    return items
''',
            ("It sorts elements that are far apart first.",),
            ("that returns a new list", "without changing the input"),
        ),
        in_place(
            '''
def shell_sort(items: list[int]) -> None:
    """Sort items in place."""
    gap = len(items) // 2
    while gap > 0:
        for i in range(gap, len(items)):
            value = items[i]
            j = i
            while j >= gap and items[j - gap] > value:
                items[j] = items[j - gap]
                j -= gap
            items[j] = value
        gap //= 2
''',
            "The gap halves until it is an ordinary insertion sort.",
        ),
    ),
    Program(
        "sort_by_length",
        ("a sort by length", "a way to sort words by length"),
        ("sort words by length", "order strings from short to long"),
        (
            Variant(
                "sorted",
                '''
def sort_by_length(words: list[str]) -> list[str]:
    """Return the words from short to long."""
    return sorted(words, key=len)
''',
                ("Words of equal length keep their order.",),
            ),
            Variant(
                "tuple_key",
                '''
def sort_by_length(words: list[str]) -> list[str]:
    """Return the words from short to long, and equal lengths by the alphabet."""
    return sorted(words, key=lambda word: (len(word), word))
''',
                ("Words of equal length come in alphabetical order.",),
                ("with ties in alphabetical order", "and by the alphabet for equal lengths"),
            ),
            Variant(
                "in_place",
                '''
def sort_by_length(words: list[str]) -> None:
    """Sort the words in place, short ones first."""
    words.sort(key=len)
''',
                ("The sort method changes the list itself.",),
                usage="words = {0}\nf(words)\nprint(words)",
                setup='words = ["ccc", "a", "bb"]\nf(words)',
                facts=('words == ["a", "bb", "ccc"]', "len(words) == 3"),
            ),
        ),
        ('f(["ccc", "a", "bb"]) == ["a", "bb", "ccc"]', "f([]) == []", 'f(["dd", "c"]) == ["c", "dd"]'),
        each(words),
        "print(f({args}))",
    ),
    Program(
        "is_sorted",
        ("a check whether a list is sorted", "a sorted check"),
        ("check whether a list is sorted", "test if numbers are in order"),
        (
            Variant(
                "comprehension",
                '''
def is_sorted(items: list[int]) -> bool:
    """Tell whether items are in ascending order."""
    return all(a <= b for a, b in zip(items, items[1:]))
''',
                ("It compares each element with the next one.",),
                ("with all and zip", "using zip"),
            ),
            Variant(
                "loop",
                '''
def is_sorted(items: list[int]) -> bool:
    """Tell whether items are in ascending order."""
    for i in range(len(items) - 1):
        if items[i] > items[i + 1]:
            return False
    return True
''',
                ("It stops at the first pair that is out of order.",),
            ),
            Variant(
                "sorted",
                '''
def is_sorted(items: list[int]) -> bool:
    """Tell whether items are in ascending order."""
    return items == sorted(items)
''',
                ("This is the shortest way, but it sorts the whole list.",),
            ),
        ),
        ("f([1, 2, 2, 5])", "not f([3, 1, 2])", "f([])", "f([4])", "not f([1, 2, 3, 0])"),
        each(lambda rng: ints(rng) if rng.random() < 0.5 else small_ints(rng)),
        ITEMS_USAGE,
        parameter="items",
    ),
)
