"""The kinds of single values that stand in many places of a spec."""

from typing import Annotated

from runner.spec.mark import Min, Template

Count = Annotated[int, Min(1)]
Whole = Annotated[int, Min(0)]
Amount = Annotated[float, Min(0)]
Seconds = Annotated[float, Min(0, exclusive=True)]
Text = Annotated[str, Template()]
