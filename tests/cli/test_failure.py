import click
import pytest

from runner.cli.failure import tell
from runner.cli.streams import Streams
from runner.error import Fault, LogError, PiRunError, RunError, SpecError, UsageError


@pytest.fixture(autouse=True)
def _no_actions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)


def raised(error: BaseException) -> BaseException:
    """An error as it is caught, with its traceback."""
    with pytest.raises(type(error)) as caught:
        raise error
    return caught.value


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (UsageError("no prompt; give one"), 2, "pi-run: no prompt; give one"),
        (RunError("no network; try again"), 3, "pi-run: no network; try again"),
        (LogError("out.jsonl: full; make room"), 6, "pi-run: out.jsonl: full; make room"),
        (KeyboardInterrupt(), 130, "pi-run: interrupted"),
        (
            click.UsageError("Got an odd option."),
            2,
            "pi-run: got an odd option; see pi-run --help",
        ),
        (
            click.NoSuchOption("--lgo", possibilities=["--log"]),
            2,
            "pi-run: no such option '--lgo'; did you mean '--log'?",
        ),
    ],
)
def test_an_error_is_one_line(
    error: BaseException, code: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tell(raised(error), Streams()) == code
    assert capsys.readouterr() == ("", f"{line}\n")


def test_faults_stand_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    faults = [Fault("b.yaml", 4, 1, "promt", "unknown key"), Fault("a.yaml", 9, 2, "x", "y")]

    assert tell(SpecError(faults), Streams()) == 2
    assert capsys.readouterr().err == "a.yaml:9:2: x: y\nb.yaml:4:1: promt: unknown key\n"


def test_faults_are_annotations_in_actions(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")

    tell(SpecError([Fault("a.yaml", 4, 1, "promt", "unknown\n::error::key")]), Streams())

    assert capsys.readouterr().err.splitlines() == [
        "a.yaml:4:1: promt: unknown",
        ":\\:error::key",
        "::error file=a.yaml,line=4,col=1::promt: unknown%0A::error::key",
    ]


@pytest.mark.parametrize("error", [RuntimeError("odd\nthing"), SystemExit(0)])
def test_anything_else_is_a_bug(error: BaseException, capsys: pytest.CaptureFixture[str]) -> None:
    assert tell(raised(error), Streams()) == 70

    told = capsys.readouterr().err
    assert told.startswith("pi-run: this is a bug of pi-run: ")
    assert told.count("\n") == 1
    assert "--verbose" in told


@pytest.mark.parametrize("error", [RuntimeError("odd"), PiRunError("odd")])
def test_verbose_gives_the_traceback(error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    streams = Streams()
    streams.verbose = True

    tell(raised(error), streams)

    assert capsys.readouterr().err.startswith("Traceback (most recent call last)")
