"""Promises about the source as a whole: style, sizes, what depends on the system, and what tests look at."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[1]
PRODUCT = ("engine", "dflash_tui")
THEIRS = re.compile(r"nvidia-smi|pip install")
"""Programs of others, whose flags the engine may name."""


def test_the_engine_leaves_flags_and_commands_to_front_ends() -> None:
    """The lab's scripts are programs of their own, and so is the driver's tool. A folder and a file are named after the
    program."""
    command_line = re.compile(r"(?<![\w-])--[a-z]|dflash-chat(?![-\"])")
    engine = ROOT / "engine"
    paths = [path for path in engine.rglob("*.py") if path.relative_to(engine).parts[0] not in ("lab", "demo")]
    lines = [line for path in paths for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(paths) > 50
    assert [line for line in lines if command_line.search(line) and not THEIRS.search(line)] == []


def test_ruff_finds_nothing() -> None:
    folders = ("engine", "dflash_tui", "support", "tests", "measure", "screenshots")
    command = [sys.executable, "-m", "ruff", "check", "--quiet", *folders]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr


COUNTED = re.compile(
    r"""\ (?:\w+\ )?(?:tokens|rounds|passes|drafts|rows|answers|questions|lines|requests|conversations|characters
    | words|bytes|runs|files|messages|turns|branches|matches|places)\b(?!\ a\b)""",
    re.VERBOSE,
)
NEVER_ONE = re.compile(
    r"^[A-Z_]+$|limit|most|len\((?:matching|different|done)\)|match\.length|thousands|what|wh?ere|who|block$"
)
"""Counts that are two at least, and what is no count."""


def test_counts_have_their_noun_from_one_place() -> None:
    """A number in a text before a plural would say "1 tokens" one day: ``counted`` knows. Those with a fraction are
    plurals."""
    found = []
    recorded = ("lesson", "traces")  # their counts are those of recordings that come with the program
    for path in (ROOT / "dflash_tui").rglob("*.py"):
        if path.parent.name in recorded:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            parts = node.values if isinstance(node, ast.JoinedStr) else []
            for value, behind in pairwise(parts):
                if not (isinstance(value, ast.FormattedValue) and isinstance(behind, ast.Constant)):
                    continue
                whole = value.format_spec is None or ast.unparse(value.format_spec) == "f','"
                if whole and COUNTED.match(str(behind.value)) and not NEVER_ONE.search(ast.unparse(value.value)):
                    found.append(f"{path.relative_to(ROOT)}:{value.lineno}: {ast.unparse(node)}")
    assert found == []
    own = re.compile(r"""['"]e?s['"] (?:\* \(|if )|else ['"]e?s['"]""")
    paths = (path for path in (ROOT / "dflash_tui").rglob("*.py") if own.search(path.read_text(encoding="utf-8")))
    assert {path.stem for path in paths} <= {"counted", "race_drawing"}  # a race pads its plurals


SYSTEM_ALONE = re.compile(
    r"""^[ ]*(?:import|from)\s+(?:fcntl|termios|tty|pty|resource|pwd|grp|msvcrt|winreg|syslog)\b
    | \bos\.(?:fork|killpg|getuid|geteuid|getpgrp|tcgetpgrp|setsid|pread|sysconf|sched_getaffinity|mkfifo|startfile)\b
    | \bos\.O_(?:NONBLOCK|CLOEXEC|NOCTTY|DIRECTORY|NOFOLLOW|BINARY)\b | \bos\.name\b
    | \bsignal\.SIG(?!INT\b|TERM\b)[A-Z]+\d?\b | \bsys\.platform\b""",
    re.VERBOSE | re.MULTILINE,
)
"""What one operating system has and another lacks."""
WHERE_SYSTEMS_DIFFER = {
    "dflash_tui/core/platforms.py",
    "engine/machine.py",
    "engine/files/cache_folder.py",  # whose the folder is where there is no home
}


def test_operating_systems_differ_in_one_place() -> None:
    paths = [path for package in ("engine", "dflash_tui") for path in (ROOT / package).rglob("*.py")]
    found = {
        path.relative_to(ROOT).as_posix() for path in paths if SYSTEM_ALONE.search(path.read_text(encoding="utf-8"))
    }
    assert found == WHERE_SYSTEMS_DIFFER


def test_source_files_can_be_read_in_one_sitting() -> None:
    """The training corpus is exempt: its modules hold sentences and exercises, which are looked up."""
    files = [path for package in ("engine", "dflash_tui") for path in (ROOT / package).rglob("*.py")]
    lengths = {str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in files}
    long = {name for name, length in lengths.items() if length > 420 and "/corpus/" not in name}
    assert long == set()


def sources(folder: str) -> Iterable[Path]:
    """The files of a folder that ``make test`` may read."""
    return (path for path in (ROOT / folder).rglob("*.py") if "proofs" not in path.relative_to(ROOT).parts)


@cache
def imported(path: Path) -> frozenset[str]:
    """The modules, and what may be some, that a file imports, wherever in it."""
    names: set[str] = set()
    package = [*path.relative_to(ROOT).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *(node.module or "").split(".")]).strip(".")
            names |= {module, *(f"{module}.{each.name}" for each in node.names)}
    return frozenset(names)


def test_every_package_is_imported_by_a_test_or_by_what_one_imports() -> None:
    """Of the tests that a change needs: a package that only proofs reach would break unseen. The lab may, and so may
    the script beside the bundled recordings."""
    files = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for each in PRODUCT for path in sources(each)}
    files |= {name.removesuffix(".__init__"): path for name, path in files.items()}
    reached: set[str] = set()
    found = {name for folder in ("tests", "support") for path in sources(folder) for name in imported(path)}
    while found:
        reached |= found
        more = {name for known in found if known in files for name in imported(files[known])}
        found = more - reached
    packages = {".".join(path.relative_to(ROOT).parts[:-1]) for each in PRODUCT for path in sources(each)}
    used = {name.rpartition(".")[0] for name in reached if name in files} | reached
    alone = {name for name in packages if name not in used and not name.startswith("engine.lab")}
    assert len(packages) > 50 and alone <= {"dflash_tui.traces"}


def test_measurements_need_no_tests_and_fast_tests_no_measurements() -> None:
    """Nor the lab, which is judged by proofs."""
    for folders, others in ((("measure", "support"), "tests."), (("tests",), "measure."), (("tests",), "engine.lab")):
        paths = [path for folder in folders for path in sources(folder)]
        assert [path for path in paths if any(name.startswith(others) for name in imported(path))] == []


HOUSE_WORDS = frozenset(("told", "said", "found", "kept", "beside", "place", "part"))
"""Words that say how something came about or where it stands; a name says what it holds, in the field's words."""


def defined_names(path: Path) -> Iterable[tuple[str, str]]:
    """Each name that a file defines, once per scope: functions, classes, arguments, variables, attributes of self."""

    def within(node: ast.AST, scope: str) -> Iterable[tuple[str, str]]:
        for each in ast.iter_child_nodes(node):
            inner = scope
            match each:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                    yield scope, name
                    inner = f"{scope}.{name}"
                case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
                    yield scope, name
                case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                    yield scope.rpartition(".")[0], name
            yield from within(each, inner)

    return set(within(ast.parse(path.read_text(encoding="utf-8")), ""))


def test_few_names_are_house_words() -> None:
    files = [path for package in PRODUCT for path in (ROOT / package).rglob("*.py")]
    names = [(path.name, *each) for path in files for each in defined_names(path)]
    assert len(names) > 20_000
    assert len([each for each in names if each[-1].strip("_") in HOUSE_WORDS]) <= 40


FAMILIES = {f"engine.models.{name}" for name in ("dflash", "gemma4", "pre_norm", "qwen3_5")}


def circles(edges: dict[str, set[str]]) -> list[set[str]]:
    """Sets of files each of which leads to all others of its set."""
    reach: dict[str, set[str]] = {}
    for name in edges:
        reach[name], ahead = set(), [name]
        while ahead:
            ahead += (new := edges[ahead.pop()] - reach[name])
            reach[name] |= new
    together = {frozenset(other for other in reach[name] if name in reach[other]) for name in edges}
    return [set(each) for each in together if len(each) > 1]


def test_no_circle_of_imports_is_larger_than_five_files() -> None:
    """Imports in functions and for types count, too. The folder of a family, or of a kind of drafter, may have seven:
    its config builds its modules, these make its passes, and passes read modules."""
    files = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for each in PRODUCT for path in sources(each)}
    edges = {name: (imported(path) & set(files)) - {name} for name, path in files.items()}
    found = circles(edges)
    families = [each for each in found if {name.rpartition(".")[0] for name in each} & FAMILIES]
    assert len(edges) > 500 and len(found) > 5
    assert [each for each in found if len(each) > (7 if each in families else 5)] == []


PROMISE = re.compile(r"^\| ([^|`]+) \| (`[^|]+) \| (`[^|]+) \|$", re.MULTILINE)
"""A row of the table in CONTRIBUTING.md: what is promised, by which fast tests and by which proofs."""


def test_every_promise_has_a_fast_test_and_a_proof() -> None:
    rows = PROMISE.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    assert len(rows) >= 16
    for promise, fast, proofs in rows:
        for named, inside in ((fast, False), (proofs, True)):
            for name, test in re.findall(r"`([^`:]+)(?:::(\w+))?`", named):
                path = ROOT / name
                assert path.exists() and name.startswith("tests/proofs/") == inside, (promise, name)
                assert not test or f"def {test}(" in path.read_text(encoding="utf-8"), (promise, test)
