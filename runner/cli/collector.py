"""The option ``--otlp``: an address that need not be given."""

from __future__ import annotations

from typing import Any

import click

STANDARD = "on"
"""Stands for the address that OpenTelemetry's own variables name."""
_YES = ("on", "1", "true", "yes")
_NO = ("", "off", "0", "false", "no")
_SIGNALS = ("/v1/traces", "/v1/metrics")


class Endpoint(click.types.StringParamType):
    """A collector's address, without a signal's path."""

    name = "endpoint"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The address; `STANDARD` where none is given, None where nothing is to be sent."""
        text = str(value).strip()
        if text.lower() in _YES:
            return STANDARD
        if text.lower() in _NO:
            return None
        from urllib.parse import urlsplit

        try:
            url = urlsplit(text)
            usable = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
        except ValueError:
            usable = False
        if not usable:
            self.fail(
                f'"{text}" is no address of a collector, such as http://localhost:4318; '
                "without an address, write --otlp last",
                param,
                ctx,
            )
        for signal in _SIGNALS:
            text = text.removesuffix(signal)
        return text.rstrip("/")


def address(endpoint: str) -> str | None:
    """What was given as an address; None where the environment has it."""
    return None if endpoint == STANDARD else endpoint
