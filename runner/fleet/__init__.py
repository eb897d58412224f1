"""Many runs of specs as one piece of work that can be stopped and gone on with.

How it goes: `work` makes jobs of specs and rows → `batch` asks the `contract.Store` what there is
to do of each, and has the `contract.Doer` do it → `report` adds up what the store keeps. The store
of a batch is a `folder`; the doer is `one`.

What others call::

    work = Work.of(["triage.yaml"], RunOptions(), rows="issues.csv")    # raises all faults at once
    folder = Folder(Path("batch"), work)                  # locked; what it has is not done again
    batch = Batch(work, folder, Runs(work), BatchOptions(at_once=64))
    await batch.run()                                     # batch.abort() stops it in order
    Report(work, folder, "batch").head()                  # totals; .runs() has each run
"""

from runner.fleet.baseline import Baseline, Worse, read_baseline
from runner.fleet.batch import Batch, BatchOptions
from runner.fleet.contract import Doer, Job, Outcome, Start, Store
from runner.fleet.folder import Folder
from runner.fleet.one import Runs
from runner.fleet.report import Report
from runner.fleet.tally import Tally, interval
from runner.fleet.work import Work, default_name

__all__ = [
    "Baseline",
    "Batch",
    "BatchOptions",
    "Doer",
    "Folder",
    "Job",
    "Outcome",
    "Report",
    "Runs",
    "Start",
    "Store",
    "Tally",
    "Work",
    "Worse",
    "default_name",
    "interval",
    "read_baseline",
]
