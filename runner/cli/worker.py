"""``pi-run worker``."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from runner.cli.batch import allow_open_files
from runner.cli.command import Command, FiniteRange, at_once_option
from runner.cli.database import database_option, opened
from runner.cli.interrupts import Interrupts
from runner.cli.streams import Streams


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  pi-run worker --database sqlite:///fleet.db -j 4
  PI_RUN_DATABASE=postgresql://pi@db/fleet pi-run worker -j 64

\b
Keys and other secrets come from the worker's own environment: none are in the database.
SIGTERM, or Ctrl-C, ends it when its runs have ended, or after --grace seconds; what is left is then
gone on with by other workers. Exit codes:
  0 it had nothing left to do (--until-idle)   2 wrong usage
  6 the database can't be used                 130, 143 interrupted, terminated""",
)
@database_option(required=True)
@at_once_option
@click.option("--workspace", metavar="DIR", help="The folder that the tools work in.")
@click.option("--env-file", metavar="FILE", help="Read NAME=value lines.")
@click.option(
    "--grace",
    metavar="SECONDS",
    type=FiniteRange(0, 86_400),
    default=30.0,
    show_default=True,
    help="How long runs have to end once the worker is told to.",
)
@click.option("--until-idle", is_flag=True, help="End when no run waits or is under way.")
@click.option("-q", "--quiet", is_flag=True, help="Tell nothing but errors.")
@click.pass_obj
def command(streams: Streams, /, database: str, at_once: int, **flags: Any) -> int:
    """Do runs from a database, as long as it is not told to end.

    Any number of workers, on any number of machines, share one database. The runs of one that dies
    are taken over by the others within seconds, and go on by their logs.
    """
    from runner.cli.inputs import take_variables
    from runner.thread import run_in_loop

    take_variables(flags["env_file"])
    allow_open_files(at_once)
    with opened(database) as store, Interrupts() as interrupts:
        from runner.fleet.database.schema import create_tables
        from runner.fleet.database.worker import Worker, WorkerOptions

        create_tables(store)
        options = WorkerOptions(at_once, flags["workspace"], flags["grace"], flags["until_idle"])
        worker = Worker(store, options, (lambda _: None) if flags["quiet"] else streams.say)

        async def drive() -> None:
            interrupts.attach(asyncio.get_running_loop(), worker)
            try:
                await worker.run()
            finally:
                interrupts.detach()

        run_in_loop(drive())
        return 0 if interrupts.received is None else 128 + interrupts.received
