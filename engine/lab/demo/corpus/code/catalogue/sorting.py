"""Sorting algorithms that compare and move elements."""

from __future__ import annotations

from ..program import ITEMS_USAGE, Program, Variant
from ..values import each, ints

IN_PLACE_USAGE = "items = {0}\nf(items)\nprint(items)"

SORTS = (
    "f([3, 1, 2]) == [1, 2, 3]",
    "f([]) == []",
    "f([7]) == [7]",
    "f([5, 4, 3, 2, 1]) == [1, 2, 3, 4, 5]",
    "f([2, 8, 2, 6]) == [2, 2, 6, 8]",
    "f([9, 4, 7, 1]) == [1, 4, 7, 9]",
)

SORTS_IN_PLACE = "items = [4, 1, 3, 1, 2]\nf(items)"

IS_SORTED_IN_PLACE = ("items == [1, 1, 2, 3, 4]", "items == sorted(items)", "len(items) == 5")


def in_place(source: str, *notes: str, label: str = "in_place", how: tuple[str, ...] = ()) -> Variant:
    """A variant that changes its list and returns nothing."""
    return Variant(label, source, notes, how, IN_PLACE_USAGE, SORTS_IN_PLACE, IS_SORTED_IN_PLACE)


def sort_program(name: str, nouns: tuple[str, ...], tasks: tuple[str, ...], *variants: Variant) -> Program:
    return Program(name, nouns, tasks, variants, SORTS, each(ints), ITEMS_USAGE, parameter="items")


PROGRAMS = (
    sort_program(
        "quicksort",
        ("a quicksort", "quick sort", "the quicksort algorithm"),
        ("sort a list with quicksort", "sort numbers using the quicksort algorithm"),
        Variant(
            "recursive",
            '''
def quicksort(items: list[int]) -> list[int]:
    """Return a sorted copy of items."""
    if len(items) <= 1:
        return items
    pivot = items[len(items) // 2]
    smaller = [x for x in items if x < pivot]
    equal = [x for x in items if x == pivot]
    larger = [x for x in items if x > pivot]
    return quicksort(smaller) + equal + quicksort(larger)
''',
            (
                "It splits the list around a pivot and sorts both sides.",
                "On average it takes O(n log n) time.",
            ),
        ),
        in_place(
            '''
def quicksort(items: list[int], low: int = 0, high: int | None = None) -> None:
    """Sort items in place, between low and high."""
    if high is None:
        high = len(items) - 1
    if low >= high:
        return
    pivot = items[high]
    border = low
    for i in range(low, high):
        if items[i] < pivot:
            items[i], items[border] = items[border], items[i]
            border += 1
    items[border], items[high] = items[high], items[border]
    quicksort(items, low, border - 1)
    quicksort(items, border + 1, high)
''',
            "The last element is the pivot and the border marks where it belongs.",
            "It changes the list itself and needs no extra lists.",
        ),
        in_place(
            '''
def quicksort(items: list[int]) -> None:
    """Sort items in place with a stack of ranges instead of recursion."""
    stack = [(0, len(items) - 1)]
    while stack:
        low, high = stack.pop()
        if low >= high:
            continue
        pivot = items[high]
        border = low
        for i in range(low, high):
            if items[i] < pivot:
                items[i], items[border] = items[border], items[i]
                border += 1
        items[border], items[high] = items[high], items[border]
        stack.append((low, border - 1))
        stack.append((border + 1, high))
''',
            "The stack holds the ranges that still have to be sorted.",
            label="loop",
            how=("without recursion", "with a loop and a stack", "with a stack instead of recursion"),
        ),
        Variant(
            "unpacking",
            '''
def quicksort(items: list[int]) -> list[int]:
    """Return a sorted copy of items."""
    if not items:
        return []
    pivot, *rest = items
    before = [x for x in rest if x < pivot]
    after = [x for x in rest if x >= pivot]
    return [*quicksort(before), pivot, *quicksort(after)]
''',
            ("The first element serves as the pivot.", "This is short, but slow on lists that are already sorted."),
            ("with the first element as pivot", "as short as possible", "with unpacking"),
        ),
    ),
    sort_program(
        "merge_sort",
        ("a merge sort", "mergesort", "the merge sort algorithm"),
        ("sort a list with merge sort", "sort numbers by merging halves"),
        Variant(
            "recursive",
            '''
def merge_sort(items: list[int]) -> list[int]:
    """Return a sorted copy of items."""
    if len(items) <= 1:
        return items
    middle = len(items) // 2
    left = merge_sort(items[:middle])
    right = merge_sort(items[middle:])
    result = []
    i = j = 0
    while i < len(left) and j < len(right):
        if left[i] <= right[j]:
            result.append(left[i])
            i += 1
        else:
            result.append(right[j])
            j += 1
    return result + left[i:] + right[j:]
''',
            (
                "It sorts both halves and merges them.",
                "It is stable and always takes O(n log n) time.",
            ),
        ),
        Variant(
            "builtin",
            '''
from heapq import merge


def merge_sort(items: list[int]) -> list[int]:
    """Return a sorted copy of items."""
    if len(items) <= 1:
        return items
    middle = len(items) // 2
    return list(merge(merge_sort(items[:middle]), merge_sort(items[middle:])))
''',
            ("The merge function of heapq does the hard part.",),
            ("with heapq.merge", "using the merge function of heapq"),
        ),
        Variant(
            "loop",
            '''
def merge_sort(items: list[int]) -> list[int]:
    """Return a sorted copy of items, merging runs from the bottom up."""
    runs = [[x] for x in items]
    while len(runs) > 1:
        merged = []
        for i in range(0, len(runs), 2):
            merged.append(merge(runs[i], runs[i + 1] if i + 1 < len(runs) else []))
        runs = merged
    return runs[0] if runs else []


def merge(left: list[int], right: list[int]) -> list[int]:
    """Merge two sorted lists."""
    result = []
    i = j = 0
    while i < len(left) and j < len(right):
        if left[i] <= right[j]:
            result.append(left[i])
            i += 1
        else:
            result.append(right[j])
            j += 1
    return result + left[i:] + right[j:]
''',
            ("It starts from runs of one element and merges them in pairs.",),
            ("without recursion", "from the bottom up", "with a loop"),
        ),
    ),
    sort_program(
        "bubble_sort",
        ("a bubble sort", "bubblesort", "the bubble sort algorithm"),
        ("sort a list with bubble sort", "sort numbers by swapping neighbors"),
        Variant(
            "copy",
            '''
def bubble_sort(items: list[int]) -> list[int]:
    """Return a sorted copy of items."""
    items = list(items)
    for end in range(len(items) - 1, 0, -1):
        swapped = False
        for i in range(end):
            if items[i] > items[i + 1]:
                items[i], items[i + 1] = items[i + 1], items[i]
                swapped = True
        if not swapped:
            break
    return items
''',
            (
                "It stops early when a pass makes no swap.",
                "Large values bubble up to the end of the list.",
            ),
            ("that returns a new list", "without changing the input"),
        ),
        in_place(
            '''
def bubble_sort(items: list[int]) -> None:
    """Sort items in place."""
    for end in range(len(items) - 1, 0, -1):
        for i in range(end):
            if items[i] > items[i + 1]:
                items[i], items[i + 1] = items[i + 1], items[i]
''',
            "Each pass moves the largest remaining value to the end.",
            "It is easy to read, but takes O(n * n) time.",
        ),
        Variant(
            "while",
            '''
def bubble_sort(items: list[int]) -> list[int]:
    """Return a sorted copy of items."""
    items = list(items)
    swapped = True
    while swapped:
        swapped = False
        for i in range(len(items) - 1):
            if items[i] > items[i + 1]:
                items[i], items[i + 1] = items[i + 1], items[i]
                swapped = True
    return items
''',
            ("It repeats until a whole pass makes no swap.",),
        ),
        in_place(
            '''
def bubble_sort(items: list[int], end: int | None = None) -> None:
    """Sort the first end items in place."""
    if end is None:
        end = len(items)
    if end <= 1:
        return
    for i in range(end - 1):
        if items[i] > items[i + 1]:
            items[i], items[i + 1] = items[i + 1], items[i]
    bubble_sort(items, end - 1)
''',
            "Each call makes one pass and leaves one element less to sort.",
            label="recursive",
        ),
    ),
    sort_program(
        "insertion_sort",
        ("an insertion sort", "the insertion sort algorithm"),
        ("sort a list with insertion sort", "sort numbers the way people sort cards"),
        Variant(
            "copy",
            '''
def insertion_sort(items: list[int]) -> list[int]:
    """Return a sorted copy of items."""
    result = []
    for item in items:
        position = len(result)
        while position > 0 and result[position - 1] > item:
            position -= 1
        result.insert(position, item)
    return result
''',
            ("Each element is inserted where it belongs.", "It works well for short lists."),
            ("that returns a new list", "without changing the input"),
        ),
        in_place(
            '''
def insertion_sort(items: list[int]) -> None:
    """Sort items in place."""
    for i in range(1, len(items)):
        value = items[i]
        j = i - 1
        while j >= 0 and items[j] > value:
            items[j + 1] = items[j]
            j -= 1
        items[j + 1] = value
''',
            "Larger values move one place to the right to make room.",
            "It is fast when the list is almost sorted.",
        ),
        Variant(
            "bisect",
            '''
from bisect import insort


def insertion_sort(items: list[int]) -> list[int]:
    """Return a sorted copy of items."""
    result: list[int] = []
    for item in items:
        insort(result, item)
    return result
''',
            ("The bisect module finds each position by binary search.",),
            ("with the bisect module", "using bisect"),
        ),
    ),
    sort_program(
        "selection_sort",
        ("a selection sort", "the selection sort algorithm"),
        ("sort a list with selection sort", "sort numbers by picking the smallest one again and again"),
        in_place(
            '''
def selection_sort(items: list[int]) -> None:
    """Sort items in place."""
    for start in range(len(items)):
        smallest = start
        for i in range(start + 1, len(items)):
            if items[i] < items[smallest]:
                smallest = i
        items[start], items[smallest] = items[smallest], items[start]
''',
            "Each round puts the smallest remaining value in front.",
            "It makes at most n swaps.",
        ),
        Variant(
            "copy",
            '''
def selection_sort(items: list[int]) -> list[int]:
    """Return a sorted copy of items."""
    remaining = list(items)
    result = []
    while remaining:
        smallest = min(remaining)
        remaining.remove(smallest)
        result.append(smallest)
    return result
''',
            ("It takes the smallest remaining value until none is left.",),
            ("that returns a new list", "without changing the input"),
        ),
        Variant(
            "recursive",
            '''
def selection_sort(items: list[int]) -> list[int]:
    """Return a sorted copy of items."""
    if not items:
        return []
    smallest = min(items)
    rest = list(items)
    rest.remove(smallest)
    return [smallest] + selection_sort(rest)
''',
            ("The smallest value comes first, then the sorted rest.",),
        ),
    ),
)
