"""Conversions between notations and units."""

from __future__ import annotations

from ..program import Program, Variant
from ..values import each, number, one_of, word

ROMANS = ("IV", "IX", "XIV", "XL", "XC", "XXVII", "XLII", "LIX", "CD", "MMXXV", "MCMXC", "DCXXI", "XIX", "CXI", "MDC")

PROGRAMS = (
    Program(
        "to_roman",
        ("a Roman numeral converter", "a function for roman numerals"),
        ("convert a number to Roman numerals", "write a number in roman numerals"),
        (
            Variant(
                "loop",
                '''
NUMERALS = [
    (1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"),
    (50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I"),
]


def to_roman(n: int) -> str:
    """Return n in Roman numerals."""
    result = ""
    for value, numeral in NUMERALS:
        while n >= value:
            result += numeral
            n -= value
    return result
''',
                ("It always takes the largest numeral that fits.",),
            ),
            Variant(
                "recursive",
                '''
NUMERALS = {
    1000: "M", 900: "CM", 500: "D", 400: "CD", 100: "C", 90: "XC",
    50: "L", 40: "XL", 10: "X", 9: "IX", 5: "V", 4: "IV", 1: "I",
}


def to_roman(n: int) -> str:
    """Return n in Roman numerals."""
    for value, numeral in NUMERALS.items():
        if n >= value:
            return numeral + to_roman(n - value)
    return ""
''',
                ("The largest numeral comes first, then the rest.",),
            ),
        ),
        ('f(4) == "IV"', 'f(9) == "IX"', 'f(14) == "XIV"', 'f(1990) == "MCMXC"', 'f(1) == "I"'),
        each(number(3, 2100)),
    ),
    Program(
        "from_roman",
        ("a Roman numeral parser", "a function that reads roman numerals"),
        ("convert Roman numerals to a number", "read a roman numeral"),
        (
            Variant(
                "loop",
                '''
VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}


def from_roman(text: str) -> int:
    """Return the value of a Roman numeral."""
    total = 0
    for i, char in enumerate(text):
        value = VALUES[char]
        if i + 1 < len(text) and value < VALUES[text[i + 1]]:
            total -= value
        else:
            total += value
    return total
''',
                ("A smaller numeral before a larger one is subtracted.",),
            ),
            Variant(
                "reverse",
                '''
VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}


def from_roman(text: str) -> int:
    """Return the value of a Roman numeral."""
    total = 0
    last = 0
    for char in reversed(text):
        value = VALUES[char]
        total += value if value >= last else -value
        last = value
    return total
''',
                ("Read from the right, a smaller numeral is subtracted.",),
                ("from right to left", "with reversed", "reading backwards"),
            ),
        ),
        ('f("IV") == 4', 'f("IX") == 9', 'f("XIV") == 14', 'f("MCMXC") == 1990', 'f("III") == 3'),
        each(one_of(*(f'"{roman}"' for roman in ROMANS))),
    ),
    Program(
        "to_binary",
        ("a binary converter", "a decimal to binary function"),
        ("convert a number to binary", "write a number in binary"),
        (
            Variant(
                "while",
                '''
def to_binary(n: int) -> str:
    """Return n, which must not be negative, in binary digits."""
    if n == 0:
        return "0"
    digits = ""
    while n > 0:
        digits = str(n % 2) + digits
        n //= 2
    return digits
''',
                ("The remainders of two are the digits from right to left.",),
            ),
            Variant(
                "recursive",
                '''
def to_binary(n: int) -> str:
    """Return n, which must not be negative, in binary digits."""
    if n < 2:
        return str(n)
    return to_binary(n // 2) + str(n % 2)
''',
                ("The last digit follows the digits of the half.",),
            ),
            Variant(
                "builtin",
                '''
def to_binary(n: int) -> str:
    """Return n, which must not be negative, in binary digits."""
    return format(n, "b")
''',
                ("The format code b means binary.",),
                ("with format", "using built-in tools", "in one line"),
            ),
        ),
        ('f(0) == "0"', 'f(5) == "101"', 'f(8) == "1000"', 'f(1) == "1"', 'f(255) == "11111111"'),
        each(number(5, 255)),
    ),
    Program(
        "from_binary",
        ("a binary parser", "a binary to decimal function"),
        ("convert binary to decimal", "read a binary number"),
        (
            Variant(
                "loop",
                '''
def from_binary(digits: str) -> int:
    """Return the value of binary digits."""
    value = 0
    for digit in digits:
        value = value * 2 + int(digit)
    return value
''',
                ("Each new digit doubles the value so far.",),
            ),
            Variant(
                "builtin",
                '''
def from_binary(digits: str) -> int:
    """Return the value of binary digits."""
    return int(digits, 2)
''',
                ("The second argument of int is the base.",),
                ("with int", "using built-in tools", "in one line"),
            ),
            Variant(
                "recursive",
                '''
def from_binary(digits: str) -> int:
    """Return the value of binary digits."""
    if not digits:
        return 0
    return 2 * from_binary(digits[:-1]) + int(digits[-1])
''',
                ("The last digit is added to twice the value of the others.",),
            ),
        ),
        ('f("101") == 5', 'f("0") == 0', 'f("1000") == 8', 'f("11") == 3'),
        each(lambda rng: f'"{rng.randint(5, 255):b}"'),
    ),
    Program(
        "to_fahrenheit",
        ("a temperature converter", "a Celsius to Fahrenheit function"),
        ("convert Celsius to Fahrenheit", "convert temperatures"),
        (
            Variant(
                "formula",
                '''
def to_fahrenheit(celsius: float) -> float:
    """Return a temperature in Fahrenheit."""
    return celsius * 9 / 5 + 32
''',
                ("Water freezes at 32 and boils at 212 degrees Fahrenheit.",),
                ("with the formula", "with a simple formula"),
            ),
            Variant(
                "rounded",
                '''
def to_fahrenheit(celsius: float) -> int:
    """Return a temperature in Fahrenheit, rounded."""
    return round(celsius * 1.8 + 32)
''',
                ("The result is rounded to whole degrees.",),
                ("rounded to whole degrees", "with rounding"),
            ),
        ),
        ("f(0) == 32", "f(100) == 212", "f(-40) == -40", "f(10) == 50"),
        each(number(-30, 45)),
    ),
    Program(
        "format_time",
        ("a time formatter", "a function that formats seconds"),
        ("turn seconds into hours, minutes and seconds", "format a duration"),
        (
            Variant(
                "builtin",
                '''
def format_time(seconds: int) -> str:
    """Return a duration as hours:minutes:seconds."""
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}"
''',
                ("divmod gives the quotient and the remainder at once.",),
                ("with divmod", "using divmod"),
            ),
            Variant(
                "arithmetic",
                '''
def format_time(seconds: int) -> str:
    """Return a duration as hours:minutes:seconds."""
    hours = seconds // 3600
    minutes = seconds % 3600 // 60
    return f"{hours}:{minutes:02}:{seconds % 60:02}"
''',
                ("The format 02 fills up with zeros.",),
                ("with plain arithmetic", "without divmod"),
            ),
        ),
        ('f(0) == "0:00:00"', 'f(61) == "0:01:01"', 'f(3600) == "1:00:00"', 'f(7325) == "2:02:05"'),
        each(number(60, 20000)),
    ),
    Program(
        "to_morse",
        ("a Morse code translator", "a morse code encoder"),
        ("translate a text into Morse code", "write a word in morse code"),
        (
            Variant(
                "dict",
                '''
CODES = ".- -... -.-. -.. . ..-. --. .... .. .--- -.- .-.. -- -. --- .--. --.- .-. ... - ..- ...- .-- -..- -.-- --.."
MORSE = dict(zip("abcdefghijklmnopqrstuvwxyz", CODES.split()))


def to_morse(text: str) -> str:
    """Return the letters of the text in Morse code."""
    return " ".join(MORSE[char] for char in text.lower() if char in MORSE)
''',
                ("The dictionary maps each letter to its code.",),
            ),
            Variant(
                "loop",
                '''
CODES = ".- -... -.-. -.. . ..-. --. .... .. .--- -.- .-.. -- -. --- .--. --.- .-. ... - ..- ...- .-- -..- -.-- --.."


def to_morse(text: str) -> str:
    """Return the letters of the text in Morse code."""
    codes = CODES.split()
    result = []
    for char in text.lower():
        if char.isalpha():
            result.append(codes[ord(char) - ord("a")])
    return " ".join(result)
''',
                ("The place in the alphabet is the place in the list of codes.",),
                ("with a list and a loop", "with a loop"),
            ),
        ),
        ('f("sos") == "... --- ..."', 'f("E") == "."', 'f("") == ""', 'f("a b") == ".- -..."'),
        each(word),
    ),
    Program(
        "pig_latin",
        ("a pig latin translator", "a pig latin function"),
        ("translate a word into pig latin", "turn words into pig latin"),
        (
            Variant(
                "loop",
                '''
def pig_latin(word: str) -> str:
    """Return the word in pig latin."""
    for i, char in enumerate(word):
        if char in "aeiou":
            return word[i:] + word[:i] + ("way" if i == 0 else "ay")
    return word + "ay"
''',
                ("Everything before the first vowel moves to the end.",),
            ),
            Variant(
                "recursive",
                '''
def pig_latin(word: str, moved: int = 0) -> str:
    """Return the word in pig latin."""
    if word[0] in "aeiou" or moved == len(word):
        return word + ("way" if moved == 0 else "ay")
    return pig_latin(word[1:] + word[0], moved + 1)
''',
                ("Each call moves one consonant to the end.",),
            ),
        ),
        ('f("pig") == "igpay"', 'f("apple") == "appleway"', 'f("string") == "ingstray"'),
        each(word),
    ),
)
