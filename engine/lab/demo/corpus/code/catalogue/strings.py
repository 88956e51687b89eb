"""Strings: reversing, testing and rewriting."""

from __future__ import annotations

from ..program import Program, Variant
from ..values import each, maybe_palindrome, number, sentence, word

ANAGRAMS = (
    '"listen", "silent"', '"night", "thing"', '"dusty", "study"', '"earth", "heart"', '"angel", "glean"',
    '"brag", "grab"', '"stone", "apple"', '"paris", "pairs"', '"table", "chair"', '"state", "taste"',
)  # fmt: skip

PROGRAMS = (
    Program(
        "reverse_string",
        ("a string reversal", "a function that reverses a string"),
        ("reverse a string", "turn a string around"),
        (
            Variant(
                "slicing",
                '''
def reverse_string(text: str) -> str:
    """Return the text backwards."""
    return text[::-1]
''',
                ("The slice walks through the text with step -1.",),
            ),
            Variant(
                "loop",
                '''
def reverse_string(text: str) -> str:
    """Return the text backwards."""
    result = ""
    for char in text:
        result = char + result
    return result
''',
                ("Each character is put in front of the result.",),
            ),
            Variant(
                "recursive",
                '''
def reverse_string(text: str) -> str:
    """Return the text backwards."""
    if len(text) <= 1:
        return text
    return reverse_string(text[1:]) + text[0]
''',
                ("The first character moves behind the reversed rest.",),
            ),
            Variant(
                "builtin",
                '''
def reverse_string(text: str) -> str:
    """Return the text backwards."""
    return "".join(reversed(text))
''',
                ("reversed gives the characters from the last to the first.",),
                ("with reversed", "using join and reversed", "with built-in functions"),
            ),
        ),
        ('f("abc") == "cba"', 'f("") == ""', 'f("a") == "a"', 'f("no on") == "no on"'),
        each(word),
    ),
    Program(
        "is_palindrome",
        ("a palindrome check", "a palindrome checker", "a palindrome test"),
        ("check whether a word is a palindrome", "test if a text reads the same backwards"),
        (
            Variant(
                "slicing",
                '''
def is_palindrome(text: str) -> bool:
    """Tell whether the text reads the same backwards."""
    letters = [char.lower() for char in text if char.isalnum()]
    return letters == letters[::-1]
''',
                ("Case, spaces and punctuation do not matter.", "It compares the letters with their reverse."),
            ),
            Variant(
                "loop",
                '''
def is_palindrome(text: str) -> bool:
    """Tell whether the text reads the same backwards."""
    text = text.lower()
    left, right = 0, len(text) - 1
    while left < right:
        if text[left] != text[right]:
            return False
        left += 1
        right -= 1
    return True
''',
                ("Two positions move from the ends to the middle.",),
                ("with two pointers", "with a while loop", "with a loop"),
            ),
            Variant(
                "recursive",
                '''
def is_palindrome(text: str) -> bool:
    """Tell whether the text reads the same backwards."""
    if len(text) < 2:
        return True
    if text[0].lower() != text[-1].lower():
        return False
    return is_palindrome(text[1:-1])
''',
                ("It compares the two ends and goes on with the middle.",),
            ),
        ),
        ('f("level")', 'f("Anna")', 'not f("python")', 'f("")', 'not f("ab")', 'f("noon")'),
        each(maybe_palindrome),
    ),
    Program(
        "is_anagram",
        ("an anagram check", "an anagram checker"),
        ("check whether two words are anagrams", "test if two words have the same letters"),
        (
            Variant(
                "sorted",
                '''
def is_anagram(first: str, second: str) -> bool:
    """Tell whether both words have the same letters."""
    return sorted(first.lower()) == sorted(second.lower())
''',
                ("Anagrams are equal once their letters are sorted.",),
            ),
            Variant(
                "counter",
                '''
from collections import Counter


def is_anagram(first: str, second: str) -> bool:
    """Tell whether both words have the same letters."""
    return Counter(first.lower()) == Counter(second.lower())
''',
                ("Both words must have the same count of every letter.",),
            ),
            Variant(
                "loop",
                '''
def is_anagram(first: str, second: str) -> bool:
    """Tell whether both words have the same letters."""
    remaining = list(second.lower())
    for char in first.lower():
        if char not in remaining:
            return False
        remaining.remove(char)
    return not remaining
''',
                ("Each letter of the first word uses up one of the second.",),
            ),
        ),
        ('f("listen", "silent")', 'not f("abc", "abd")', 'f("Tea", "eat")', 'not f("a", "aa")', 'not f("aa", "a")'),
        lambda rng: tuple(rng.choice(ANAGRAMS).split(", ")),
    ),
    Program(
        "caesar",
        ("a Caesar cipher", "the caesar cipher"),
        ("encrypt a text with a Caesar cipher", "shift every letter of a text"),
        (
            Variant(
                "loop",
                '''
def caesar(text: str, shift: int) -> str:
    """Return the text with every letter moved by shift places."""
    result = ""
    for char in text:
        if char.isalpha():
            base = ord("A") if char.isupper() else ord("a")
            char = chr((ord(char) - base + shift) % 26 + base)
        result += char
    return result
''',
                ("The remainder of 26 wraps around at the end of the alphabet.", "A negative shift decrypts the text."),
            ),
            Variant(
                "builtin",
                '''
from string import ascii_lowercase


def caesar(text: str, shift: int) -> str:
    """Return the text in lower case with every letter moved by shift places."""
    shift %= 26
    table = str.maketrans(ascii_lowercase, ascii_lowercase[shift:] + ascii_lowercase[:shift])
    return text.lower().translate(table)
''',
                ("translate replaces all letters in one call.",),
                ("with str.translate", "using maketrans", "with a translation table"),
            ),
            Variant(
                "comprehension",
                '''
def caesar(text: str, shift: int) -> str:
    """Return the text in lower case with every letter moved by shift places."""

    def move(char: str) -> str:
        return chr((ord(char) - ord("a") + shift) % 26 + ord("a")) if char.isalpha() else char

    return "".join(move(char) for char in text.lower())
''',
                ("The helper moves one letter and keeps everything else.",),
                ("with a helper function", "with an inner function"),
            ),
        ),
        ('f("abc", 3) == "def"', 'f("xyz", 3) == "abc"', 'f("a b", 1) == "b c"', 'f("def", -3) == "abc"'),
        each(word, number(2, 20)),
    ),
    Program(
        "run_length",
        ("a run length encoding", "run-length compression"),
        ("compress a string with run length encoding", "encode repeated characters as counts"),
        (
            Variant(
                "builtin",
                '''
from itertools import groupby


def run_length(text: str) -> str:
    """Return each run of equal characters as its character and length."""
    return "".join(f"{char}{len(list(run))}" for char, run in groupby(text))
''',
                ("groupby collects equal neighbors.",),
                ("with itertools.groupby", "using groupby"),
            ),
            Variant(
                "loop",
                '''
def run_length(text: str) -> str:
    """Return each run of equal characters as its character and length."""
    result = ""
    count = 0
    for i, char in enumerate(text):
        count += 1
        if i + 1 == len(text) or text[i + 1] != char:
            result += f"{char}{count}"
            count = 0
    return result
''',
                ("A run ends where the next character differs.",),
            ),
        ),
        ('f("aaab") == "a3b1"', 'f("") == ""', 'f("abc") == "a1b1c1"', 'f("zz") == "z2"'),
        each(lambda rng: '"' + "".join(c * rng.randint(1, 5) for c in rng.sample("abcdexyz", 4)) + '"'),
    ),
    Program(
        "is_balanced",
        ("a bracket checker", "a check for balanced brackets", "a balanced parentheses check"),
        ("check whether brackets are balanced", "test if all brackets are closed"),
        (
            Variant(
                "stack",
                '''
def is_balanced(text: str) -> bool:
    """Tell whether every bracket is closed in the right order."""
    pairs = {")": "(", "]": "[", "}": "{"}
    stack = []
    for char in text:
        if char in pairs.values():
            stack.append(char)
        elif char in pairs:
            if not stack or stack.pop() != pairs[char]:
                return False
    return not stack
''',
                ("The stack holds the brackets that are still open.",),
                ("with a stack", "using a stack"),
            ),
            Variant(
                "replace",
                '''
def is_balanced(text: str) -> bool:
    """Tell whether every bracket is closed in the right order."""
    text = "".join(char for char in text if char in "()[]{}")
    previous = None
    while text != previous:
        previous = text
        for pair in ("()", "[]", "{}"):
            text = text.replace(pair, "")
    return not text
''',
                ("It removes empty pairs until nothing changes.",),
                ("with replace", "by removing pairs", "without a stack"),
            ),
        ),
        ('f("()")', 'f("([]{})")', 'not f("(]")', 'not f("((")', 'f("")', 'not f(")(")'),
        each(
            lambda rng: (
                f'"{rng.choice(("(a + b) * c", "[(x)]", "{[()]}", "((a)", "(a]", "f(x[0])", "{(})", "[[]](1)"))}"'
            )
        ),
    ),
    Program(
        "truncate",
        ("a text truncation", "a function that shortens a text"),
        ("shorten a text to a maximum length", "cut a long text and add dots"),
        (
            Variant(
                "slicing",
                '''
def truncate(text: str, length: int) -> str:
    """Return at most length characters, ending in dots when cut."""
    if len(text) <= length:
        return text
    return text[: length - 3] + "..."
''',
                ("Three characters are kept free for the dots.",),
            ),
            Variant(
                "words",
                '''
def truncate(text: str, length: int) -> str:
    """Return whole words of at most length characters, with dots when cut."""
    if len(text) <= length:
        return text
    result = ""
    for word in text.split():
        if len(result) + len(word) + 3 > length:
            break
        result += word + " "
    return result.rstrip() + "..."
''',
                ("Words are never cut in the middle.",),
                ("without cutting words", "that keeps whole words"),
                facts=(
                    'f("short", 10) == "short"',
                    'f("hello big world", 10) == "hello..."',
                    'len(f("a b c d e f", 9)) <= 9',
                ),
            ),
        ),
        ('f("short", 10) == "short"', 'f("hello world", 8) == "hello..."', 'len(f("a" * 50, 20)) == 20'),
        each(sentence, number(12, 24)),
    ),
    Program(
        "snake_case",
        ("a camel case to snake case converter", "a snake case function"),
        ("turn camelCase into snake_case", "convert a name to snake case"),
        (
            Variant(
                "loop",
                '''
def snake_case(name: str) -> str:
    """Return a camelCase name in lower case with underscores."""
    result = ""
    for char in name:
        if char.isupper() and result:
            result += "_"
        result += char.lower()
    return result
''',
                ("Each capital letter starts a new word.",),
            ),
            Variant(
                "regex",
                '''
import re


def snake_case(name: str) -> str:
    """Return a camelCase name in lower case with underscores."""
    return re.sub(r"(?<!^)([A-Z])", r"_\\1", name).lower()
''',
                ("The pattern finds capital letters that are not at the start.",),
                ("with a regular expression", "using re", "with the re module"),
            ),
        ),
        ('f("camelCase") == "camel_case"', 'f("MyClass") == "my_class"', 'f("word") == "word"'),
        each(
            lambda rng: (
                f'"{rng.choice(("max", "min", "user", "file", "page", "item"))}'
                f'{rng.choice(("Count", "Name", "Size", "Index", "Value"))}{rng.choice(("", "", "List", "Map"))}"'
            )
        ),
    ),
)
