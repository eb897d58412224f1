from __future__ import annotations

import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import jsonschema
import pytest


def test_the_document_describes_the_specs(server: Any) -> None:
    document = server.client.get("/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    body = document["paths"]["/runs"]["post"]["requestBody"]["content"]["application/json"]
    bodies = {each["title"]: each for each in body["schema"]["oneOf"]}
    assert list(bodies) == ["quick", "slow", "pieces", "asks", "open"]
    jsonschema.validate({"spec": "open", "prompt": "x"}, bodies["open"])
    assert not jsonschema.Draft202012Validator(bodies["quick"]).is_valid({"spec": "quick"})


def test_all_routes_are_in_the_document(server: Any) -> None:
    from runner.server.endpoint import Endpoints
    from runner.server.hosting import Hosting

    routes = {route.path for route in Endpoints(Hosting({})).routes}
    paths = set(server.client.get("/openapi.json").json()["paths"])
    assert paths == routes - {"/openapi.json"}


@pytest.mark.slow
def test_the_api_does_as_its_document_says(serve: Any) -> None:
    server = serve("--max-runs", "4", specs=["quick", "pieces", "open"])
    bearer = server.client.headers["authorization"]
    program = Path(sysconfig.get_path("scripts")) / "schemathesis"
    options = ["--phases", "coverage,fuzzing", "--max-examples", "3"]
    options += ["--seed", "1", "--checks", "all", "--request-timeout", "10"]
    finished = subprocess.run(
        [program, "run", f"{server.url}openapi.json", "-H", f"Authorization: {bearer}", *options],
        cwd=server.folder,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
