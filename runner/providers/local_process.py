"""A llama.cpp server, run as a program of its own by `runner.providers.local_server`.

It isn't part of the process that uses it, because loading a model holds Python's lock for as long
as it takes, and because llama.cpp ends its process where others raise. It imports nothing of
pi-run, and is run by its path.

Arguments: the model's file, the number of tokens of its context, and the file of a chat template,
which may be missing. It writes one line of JSON, ``{"url": …}`` or ``{"error": …}``, and serves
until its standard input ends, so that it never outlives who started it.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any


def main(model: str, context: str, template: str | None = None) -> None:
    """Serve a model until the standard input ends."""
    told = os.dup(1)
    # Whatever llama.cpp prints is not for who reads the line.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    try:
        server = _start(model, int(context), template)
        line = {"url": server.listening_address}
    except Exception as error:
        line = {"error": str(error)}
    os.write(told, (json.dumps(line) + "\n").encode())
    os.close(told)
    if "url" in line:
        while os.read(0, 4096):
            pass
    # There is nothing to save, and nobody to wait for it.
    os._exit(0)


def _start(model: str, context: int, template: str | None) -> Any:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = model
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = context
    # One answer at a time, each from the beginning: whether others are being made, or were before,
    # changes the order of sums, and with it now and then a word.
    params.n_parallel = 1
    params.cache_prompt = False
    params.cache_ram_mib = 0
    # Its threads wait for each other by spinning: where one has to share its core, all are slow.
    threads = max(1, _cores() - 1)
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.use_jinja = True
    if template is not None:
        with open(template, encoding="utf-8") as file:
            params.chat_template = file.read()
    params.verbosity = -1
    return xllamacpp.Server(params)


def _cores() -> int:
    """How many this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


if __name__ == "__main__":
    main(*sys.argv[1:])
