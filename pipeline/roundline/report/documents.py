"""JSON documents: dataclasses as they are, under a schema name."""

from __future__ import annotations

import json
from typing import Any


def document(command: str, **parts: Any) -> str:
    """A JSON document of one command; keys keep their order, so equal input gives equal bytes."""
    return json.dumps({"schema": f"roundline.{command}/1", **parts}, indent=2, ensure_ascii=False)
