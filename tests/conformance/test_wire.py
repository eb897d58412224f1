"""The wire cases, a format a test. They lie beside a checkout, in ../shared."""

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

WIRE = Path(__file__).resolve().parents[3] / "shared" / "wire"
FORMATS = sorted(path.name for path in WIRE.glob("cases/*") if path.is_dir())

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.skipif(not FORMATS, reason=f"there are no wire cases at {WIRE}")
@pytest.mark.parametrize("wire_format", FORMATS or ["none"])
def test_format(wire_format: str) -> None:
    command = str(Path(sysconfig.get_path("scripts")) / "pi-run")
    words = [str(WIRE / "check.py"), "--pi-run", command, "-k", wire_format, "-j", "2"]

    done = subprocess.run(
        [sys.executable, *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
