"""Hatchling build hook: a wheel carries `grammar/` inside the package; an editable install reads the checkout's."""

from __future__ import annotations

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class GrammarHook(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "standard":
            build_data["force_include"]["grammar"] = "ptxtile/grammar"
