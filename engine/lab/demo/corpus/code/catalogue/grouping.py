"""Counting, grouping and combining lists and dictionaries."""

from __future__ import annotations

from ..program import ITEMS_USAGE, Program, Variant
from ..values import each, number, small_ints, sorted_ints, word, words

PROGRAMS = (
    Program(
        "count_items",
        ("a function that counts the values of a list", "a value counter"),
        ("count how often each value occurs in a list", "count the values of a list"),
        (
            Variant(
                "dict",
                '''
def count_items(items: list[int]) -> dict[int, int]:
    """Return how often each value occurs."""
    counts: dict[int, int] = {}
    for item in items:
        counts[item] = counts.get(item, 0) + 1
    return counts
''',
                ("get returns zero for a new value.",),
            ),
            Variant(
                "counter",
                '''
from collections import Counter


def count_items(items: list[int]) -> dict[int, int]:
    """Return how often each value occurs."""
    return dict(Counter(items))
''',
                ("Counter is a dictionary made for counting.",),
            ),
            Variant(
                "comprehension",
                '''
def count_items(items: list[int]) -> dict[int, int]:
    """Return how often each value occurs."""
    return {item: items.count(item) for item in items}
''',
                ("This is short, but counts each value again and again.",),
                ("with a dict comprehension", "in one line"),
            ),
        ),
        ("f([1, 2, 1]) == {1: 2, 2: 1}", "f([]) == {}", "f([4, 4, 4]) == {4: 3}"),
        each(small_ints),
        ITEMS_USAGE,
        parameter="items",
    ),
    Program(
        "most_common",
        ("a function for the most common value", "a mode function"),
        ("find the most common value of a list", "find the value that occurs most often"),
        (
            Variant(
                "counter",
                '''
from collections import Counter


def most_common(items: list[int]) -> int:
    """Return the value that occurs most often."""
    return Counter(items).most_common(1)[0][0]
''',
                ("Counter returns pairs of value and count, so the value comes first.",),
            ),
            Variant(
                "one_line",
                '''
def most_common(items: list[int]) -> int:
    """Return the value that occurs most often."""
    return max(items, key=items.count)
''',
                ("The key makes max compare counts.",),
                ("in one line", "with max and count"),
            ),
            Variant(
                "dict",
                '''
def most_common(items: list[int]) -> int:
    """Return the value that occurs most often."""
    counts: dict[int, int] = {}
    for item in items:
        counts[item] = counts.get(item, 0) + 1
    return max(counts, key=lambda item: counts[item])
''',
                ("The dictionary counts and max picks the winner.",),
            ),
        ),
        ("f([1, 2, 1]) == 1", "f([7]) == 7", "f([3, 5, 5, 3, 5]) == 5"),
        each(small_ints),
        ITEMS_USAGE,
        parameter="items",
    ),
    Program(
        "group_by_length",
        ("a function that groups words by length", "a grouping of words by length"),
        ("group words by their length", "sort words into groups of equal length"),
        (
            Variant(
                "defaultdict",
                '''
from collections import defaultdict


def group_by_length(words: list[str]) -> dict[int, list[str]]:
    """Return the words of each length."""
    groups: dict[int, list[str]] = defaultdict(list)
    for word in words:
        groups[len(word)].append(word)
    return dict(groups)
''',
                ("A new group starts as an empty list.",),
            ),
            Variant(
                "dict",
                '''
def group_by_length(words: list[str]) -> dict[int, list[str]]:
    """Return the words of each length."""
    groups: dict[int, list[str]] = {}
    for word in words:
        groups.setdefault(len(word), []).append(word)
    return groups
''',
                ("setdefault creates the list when it is missing.",),
                ("with setdefault", "using a plain dict", "with a dictionary"),
            ),
        ),
        ('f(["a", "bb", "c"]) == {1: ["a", "c"], 2: ["bb"]}', "f([]) == {}"),
        each(words),
    ),
    Program(
        "invert_dict",
        ("a dictionary inversion", "a function that inverts a dictionary"),
        ("swap the keys and values of a dictionary", "invert a dictionary"),
        (
            Variant(
                "comprehension",
                '''
def invert_dict(mapping: dict[str, int]) -> dict[int, str]:
    """Return the dictionary with keys and values swapped."""
    return {value: key for key, value in mapping.items()}
''',
                ("When values repeat, the last key wins.",),
                ("with a dict comprehension", "in one line"),
            ),
            Variant(
                "loop",
                '''
def invert_dict(mapping: dict[str, int]) -> dict[int, list[str]]:
    """Return the keys of each value."""
    result: dict[int, list[str]] = {}
    for key, value in mapping.items():
        result.setdefault(value, []).append(key)
    return result
''',
                ("Each value maps to all keys that had it.",),
                ("with lists for repeated values", "with a loop that keeps all keys"),
                facts=('f({"a": 1, "b": 1}) == {1: ["a", "b"]}', "f({}) == {}"),
            ),
        ),
        ('f({"a": 1, "b": 2}) == {1: "a", 2: "b"}', "f({}) == {}"),
        each(lambda rng: "{" + ", ".join(f"{word(rng)}: {number(1, 9)(rng)}" for _ in range(3)) + "}"),
    ),
    Program(
        "merge_lists",
        ("a merge of two sorted lists", "a function that merges sorted lists"),
        ("merge two sorted lists", "combine two sorted lists into one"),
        (
            Variant(
                "while",
                '''
def merge_lists(left: list[int], right: list[int]) -> list[int]:
    """Return the elements of two sorted lists in order."""
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
                ("It always takes the smaller of the two first elements.",),
            ),
            Variant(
                "recursive",
                '''
def merge_lists(left: list[int], right: list[int]) -> list[int]:
    """Return the elements of two sorted lists in order."""
    if not left or not right:
        return left + right
    if left[0] <= right[0]:
        return [left[0]] + merge_lists(left[1:], right)
    return [right[0]] + merge_lists(left, right[1:])
''',
                ("The smaller first element comes before the merged rest.",),
            ),
            Variant(
                "heap",
                '''
from heapq import merge


def merge_lists(left: list[int], right: list[int]) -> list[int]:
    """Return the elements of two sorted lists in order."""
    return list(merge(left, right))
''',
                ("heapq.merge works for any number of sorted lists.",),
                ("with heapq.merge", "using heapq"),
            ),
        ),
        ("f([1, 4], [2, 3]) == [1, 2, 3, 4]", "f([], [5]) == [5]", "f([1], []) == [1]", "f([], []) == []"),
        each(sorted_ints, sorted_ints),
    ),
    Program(
        "common_elements",
        ("an intersection of two lists", "a common elements function"),
        ("find the common elements of two lists", "list the values that are in both lists"),
        (
            Variant(
                "set",
                '''
def common_elements(first: list[int], second: list[int]) -> list[int]:
    """Return the sorted values that are in both lists."""
    return sorted(set(first) & set(second))
''',
                ("The & operator gives the intersection of two sets.",),
            ),
            Variant(
                "comprehension",
                '''
def common_elements(first: list[int], second: list[int]) -> list[int]:
    """Return the values of the first list that are in the second."""
    return [value for value in first if value in second]
''',
                ("The order of the first list is kept.",),
            ),
        ),
        ("f([1, 2, 3], [2, 3, 4]) == [2, 3]", "f([1], [2]) == []", "f([], [1]) == []"),
        each(lambda rng: str(rng.sample(range(1, 12), 5)), lambda rng: str(rng.sample(range(1, 12), 5))),
    ),
)
