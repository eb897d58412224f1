"""The conformance cases, an area a test. They lie beside a checkout, in ../shared."""

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases"
AREAS = sorted({path.parts[-3] for path in CASES.glob("*/*/case.yaml")})

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.skipif(not AREAS, reason=f"there are no conformance cases at {CASES}")
@pytest.mark.parametrize("area", AREAS or ["none"])
def test_area(area: str) -> None:
    command = str(Path(sysconfig.get_path("scripts")) / "pi-run")
    # An area is looked for as a part of AREA/CASE, or of a title, of which none has a slash.
    words = [str(CASES / "run.py"), "--pi-run", command, "-k", f"{area}/", "-j", "2"]

    done = subprocess.run(
        [sys.executable, *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
