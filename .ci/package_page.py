"""What a package page shows is README.md, whose pictures and files lie beside it: there they need whole addresses."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class PackagePage(MetadataHookInterface):
    """Run by hatchling wherever the project's metadata are asked for."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Fill in the page, which ``pyproject.toml`` calls dynamic."""
        source = metadata["urls"]["Source"]
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        text = re.sub(r"(!\[[^\]]*\]\()(?!https?:)", rf"\g<1>{source}/raw/main/", text)
        text = re.sub(r"((?<!!)\[[^\]]*\]\()(?!https?:|#)", rf"\g<1>{source}/blob/main/", text)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
