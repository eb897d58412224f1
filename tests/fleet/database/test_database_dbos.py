"""The contract with DBOS: all that is used of it does what `runner.fleet.database` builds on."""

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from dbos import DBOS

from runner.fleet.database import open_database
from runner.fleet.database.connect import Database
from runner.fleet.database.engine import MAX_RECOVERIES, NAME, Engine, Queue, tell_troubles
from runner.thread import call_in_thread


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    found = open_database(f"sqlite:///{tmp_path}/fleet.db")
    logger = logging.getLogger("dbos")
    before = logger.handlers, logger.propagate
    tell_troubles(lambda _: None, found)
    yield found
    found.close()
    logger.handlers, logger.propagate = before


def rows(database: Database) -> list[Any]:
    columns = "workflow_uuid, status, executor_id, application_version, serialization, priority"
    with database.read() as connection:
        query = sa.text(f"SELECT {columns}, recovery_attempts FROM workflow_status")
        return list(connection.execute(query).all())


def put(database: Database, *runs: str) -> None:
    queue = Queue(database)
    queue.create_tables()
    with database.begin() as connection:
        queue.put(connection, runs)


class Doer:
    """Holds each run until it is let go."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.stopped: list[str] = []
        self.go = asyncio.Event()

    async def do(self, run_id: str) -> None:
        self.begun.append(run_id)
        await self.go.wait()

    def engine(self, database: Database, worker: str, at_once: int) -> Engine:
        return Engine(database, worker, at_once, self.do, self.stopped.append)

    async def until(self, count: int) -> None:
        for _ in range(200):
            if len(self.begun) >= count:
                return
            await asyncio.sleep(0.05)
        raise AssertionError(self.begun)


async def launched(engine: Engine) -> Engine:
    await call_in_thread(engine.launch, "launch")
    return engine


async def ended(engine: Engine) -> None:
    await call_in_thread(engine.end, "end")


def test_a_run_is_put_in_once_as_json_with_the_version_of_the_log(database: Database) -> None:
    put(database, "a", "b")
    put(database, "a")
    found = rows(database)
    assert sorted(row.workflow_uuid for row in found) == ["a", "b"]
    assert {row.status for row in found} == {"ENQUEUED"}
    assert {row.application_version for row in found} == {"pi-run-log/1"}
    assert {row.serialization for row in found} == {"portable_json"}
    with database.read() as connection:
        inputs = connection.scalar(sa.text("SELECT inputs FROM workflow_input LIMIT 1"))
    assert str(inputs).startswith('{"namedArgs":{},"positionalArgs":[')


def test_a_worker_takes_up_as_many_as_it_was_told_whatever_others_were(database: Database) -> None:
    async def go() -> None:
        doer = Doer()
        Queue(database).create_tables()
        await ended(await launched(doer.engine(database, "before", 5)))
        put(database, *"abcde")
        engine = await launched(doer.engine(database, "worker-1", 2))
        with database.begin() as connection:
            connection.execute(sa.text("UPDATE queues SET worker_concurrency = 5"))
        try:
            await doer.until(2)
            await asyncio.sleep(1)
            assert len(doer.begun) == 2
            assert engine.busy_workers() == {"worker-1"}
            engine.at_once = 0
            # What it has read by now is held to once.
            await asyncio.sleep(1)
            doer.go.set()
            await asyncio.sleep(1)
            assert len(doer.begun) == 2
            engine.at_once = 4
            await doer.until(5)
            for _ in range(100):
                if {row.status for row in rows(database)} == {"SUCCESS"}:
                    break
                await asyncio.sleep(0.05)
            assert not engine.busy_workers()
        finally:
            await ended(engine)

    asyncio.run(go())


def test_runs_of_one_that_is_gone_come_first_and_are_given_up_in_the_end(
    database: Database,
) -> None:
    async def go() -> None:
        put(database, "a")
        for number in range(MAX_RECOVERIES + 1):
            doer = Doer()
            engine = await launched(doer.engine(database, f"worker-{number}", 1))
            engine.recover([f"worker-{number - 1}"])
            try:
                await doer.until(1)
                assert [row.executor_id for row in rows(database)] == [f"worker-{number}"]
            finally:
                # As if it was killed: what is under way is forgotten.
                await ended(engine)
        put(database, "b")
        doer = Doer()
        engine = await launched(doer.engine(database, "last", 1))
        try:
            engine.recover([f"worker-{MAX_RECOVERIES}"])
            assert {row.workflow_uuid: row.priority for row in rows(database)} == {"a": 1, "b": 2}
            await doer.until(1)
            assert doer.begun == ["b"]
            assert engine.given_up() == ["a"]
        finally:
            doer.go.set()
            await ended(engine)

    asyncio.run(go())


def test_a_run_that_is_cancelled_is_stopped_and_can_be_put_in_anew(database: Database) -> None:
    async def go() -> None:
        put(database, "a", "b")
        doer = Doer()
        engine = await launched(doer.engine(database, "worker", 1))
        try:
            await doer.until(1)
            queue = Queue(database)
            await call_in_thread(lambda: queue.cancel(["a", "b"]), "cancel")
            assert {row.status for row in rows(database)} == {"CANCELLED"}
            for _ in range(60):
                if doer.stopped:
                    break
                await asyncio.sleep(0.05)
            assert doer.stopped == doer.begun
            with database.begin() as connection:
                queue.renew(connection, ["a", "b"])
            await doer.until(2)
        finally:
            doer.go.set()
            await ended(engine)

    asyncio.run(go())


def test_dbos_is_the_version_that_is_held_here() -> None:
    from importlib.metadata import version

    assert version("dbos").startswith("3.4.")
    assert NAME == "pi-run"
    assert DBOS is not None
