"""Chat templates: programs in Jinja that write a conversation as the text a model was trained on.

They come with checkpoints from anywhere, so they run in Jinja's sandbox, with the names that published templates use.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, NoReturn

from jinja2 import TemplateError, nodes
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace


class _Generation(Extension):
    """The tag ``{% generation %}``, which marks for training what the model itself wrote. Its content is rendered like
    any text."""

    tags = {"generation"}

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body, lineno=line)


class _Names(Namespace):
    """``namespace()``, which keeps nothing that begins with an underscore: a way out of the sandbox."""

    def __init__(*args: Any, **kwargs: Any) -> None:
        self, given = args[0], dict(*args[1:], **kwargs)
        for name in given:
            _check_name(name)
        Namespace.__init__(self, given)

    def __setitem__(self, name: str, value: Any) -> None:
        _check_name(name)
        super().__setitem__(name, value)


def _check_name(name: object) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise SecurityError(f"a namespace may not hold {name!r}")


class _Dict:
    """``dict()`` and ``dict.fromkeys()``, and nothing else of the class."""

    def __call__(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        return dict(*args, **kwargs)

    def fromkeys(self, *args: Any) -> dict[Any, Any]:
        return dict.fromkeys(*args)


def _refuse(message: str) -> NoReturn:
    raise TemplateError(message)


def _now(form: str) -> str:
    return datetime.now().strftime(form)


def _json(
    value: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
) -> str:
    """``tojson`` without the escaping for HTML that Jinja's own filter does."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


class ChatTemplate:
    """A compiled chat template. Raises ``jinja2.TemplateError`` for text that is no template."""

    def __init__(self, text: str) -> None:
        extensions: list[str | type[Extension]] = [_Generation, "jinja2.ext.loopcontrols"]
        sandbox = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=extensions)
        sandbox.filters["tojson"] = _json
        sandbox.globals.update(raise_exception=_refuse, strftime_now=_now, dict=_Dict(), namespace=_Names)
        self._template = sandbox.from_string(text)

    def render(self, messages: list[dict[str, Any]], add_generation_prompt: bool, **variables: Any) -> str:
        """The conversation as text. What a template raises is for the caller."""
        variables = {"tools": None, "documents": None, **variables}
        return self._template.render(messages=messages, add_generation_prompt=add_generation_prompt, **variables)
