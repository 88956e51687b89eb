"""Letters and words of a text."""

from __future__ import annotations

from ..program import Program, Variant
from ..values import each, sentence

PROGRAMS = (
    Program(
        "count_vowels",
        ("a vowel counter", "a function that counts vowels"),
        ("count the vowels in a text", "find out how many vowels a string has"),
        (
            Variant(
                "one_line",
                '''
def count_vowels(text: str) -> int:
    """Return how many vowels the text has."""
    return sum(char in "aeiou" for char in text.lower())
''',
                ("True counts as one in a sum.",),
                ("in one line", "with sum", "as a one-liner"),
            ),
            Variant(
                "loop",
                '''
def count_vowels(text: str) -> int:
    """Return how many vowels the text has."""
    count = 0
    for char in text.lower():
        if char in "aeiou":
            count += 1
    return count
''',
                ("Lower case first, so that capital vowels count too.",),
            ),
            Variant(
                "recursive",
                '''
def count_vowels(text: str) -> int:
    """Return how many vowels the text has."""
    if not text:
        return 0
    first = 1 if text[0].lower() in "aeiou" else 0
    return first + count_vowels(text[1:])
''',
                ("Each call looks at the first character.",),
            ),
        ),
        ('f("hello") == 2', 'f("") == 0', 'f("xyz") == 0', 'f("AEIOU") == 5', 'f("Python code") == 3'),
        each(sentence),
    ),
    Program(
        "count_words",
        ("a word counter", "a word count"),
        ("count how often each word occurs", "count the words of a text"),
        (
            Variant(
                "counter",
                '''
from collections import Counter


def count_words(text: str) -> dict[str, int]:
    """Return how often each word occurs."""
    return Counter(text.lower().split())
''',
                ("Counter does all the work.",),
                usage="counts = f({0})\nprint(counts.most_common(3))",
            ),
            Variant(
                "dict",
                '''
def count_words(text: str) -> dict[str, int]:
    """Return how often each word occurs."""
    counts: dict[str, int] = {}
    for word in text.lower().split():
        counts[word] = counts.get(word, 0) + 1
    return counts
''',
                ("get returns zero for a word that is new.",),
            ),
            Variant(
                "defaultdict",
                '''
from collections import defaultdict


def count_words(text: str) -> dict[str, int]:
    """Return how often each word occurs."""
    counts: dict[str, int] = defaultdict(int)
    for word in text.lower().split():
        counts[word] += 1
    return dict(counts)
''',
                ("A missing word starts at zero.",),
            ),
        ),
        ('f("a b a") == {"a": 2, "b": 1}', 'f("") == {}', 'f("Hi hi") == {"hi": 2}'),
        each(sentence),
    ),
    Program(
        "count_letters",
        ("a letter counter", "a character frequency count"),
        ("count how often each letter occurs", "count the characters of a string"),
        (
            Variant(
                "dict",
                '''
def count_letters(text: str) -> dict[str, int]:
    """Return how often each letter occurs."""
    counts: dict[str, int] = {}
    for char in text.lower():
        if char.isalpha():
            counts[char] = counts.get(char, 0) + 1
    return counts
''',
                ("Spaces and punctuation are left out.",),
            ),
            Variant(
                "counter",
                '''
from collections import Counter


def count_letters(text: str) -> dict[str, int]:
    """Return how often each letter occurs."""
    return Counter(char for char in text.lower() if char.isalpha())
''',
                ("Counter accepts any stream of characters.",),
            ),
        ),
        ('f("abca") == {"a": 2, "b": 1, "c": 1}', 'f("") == {}', 'f("A a!") == {"a": 2}'),
        each(sentence),
    ),
    Program(
        "longest_word",
        ("a function for the longest word", "a longest word finder"),
        ("find the longest word in a sentence", "return the longest word of a text"),
        (
            Variant(
                "builtin",
                '''
def longest_word(text: str) -> str:
    """Return the first of the longest words."""
    return max(text.split(), key=len)
''',
                ("The key makes max compare lengths.",),
                ("with max", "in one line", "with max and a key"),
            ),
            Variant(
                "loop",
                '''
def longest_word(text: str) -> str:
    """Return the first of the longest words."""
    longest = ""
    for word in text.split():
        if len(word) > len(longest):
            longest = word
    return longest
''',
                ("The first of several equally long words wins.",),
            ),
        ),
        ('f("a bb ccc") == "ccc"', 'f("one two") == "one"', 'f("hello") == "hello"'),
        each(sentence),
    ),
    Program(
        "reverse_words",
        ("a word reversal", "a function that reverses the words"),
        ("reverse the order of the words in a sentence", "turn the words of a text around"),
        (
            Variant(
                "slicing",
                '''
def reverse_words(text: str) -> str:
    """Return the words in reverse order."""
    return " ".join(text.split()[::-1])
''',
                ("The text is split, reversed and joined again.",),
            ),
            Variant(
                "loop",
                '''
def reverse_words(text: str) -> str:
    """Return the words in reverse order."""
    result: list[str] = []
    for word in text.split():
        result.insert(0, word)
    return " ".join(result)
''',
                ("Each word is put in front of the ones before it.",),
            ),
        ),
        ('f("a b c") == "c b a"', 'f("hello") == "hello"', 'f("") == ""'),
        each(sentence),
    ),
    Program(
        "title_case",
        ("a title case function", "a capitalizer"),
        ("capitalize every word of a text", "turn a text into title case"),
        (
            Variant(
                "comprehension",
                '''
def title_case(text: str) -> str:
    """Return the text with every word capitalized."""
    return " ".join(word.capitalize() for word in text.split())
''',
                ("Words are split at spaces and joined again.",),
            ),
            Variant(
                "loop",
                '''
def title_case(text: str) -> str:
    """Return the text with every word capitalized."""
    words = []
    for word in text.split():
        words.append(word[0].upper() + word[1:].lower())
    return " ".join(words)
''',
                ("Only the first letter of each word is made upper case.",),
            ),
        ),
        ('f("hello world") == "Hello World"', 'f("a") == "A"', 'f("tO Be") == "To Be"'),
        each(sentence),
    ),
)
