"""A column of a model that is counted by the routines of `slotted install --column`. Copy this file.

    views = Counter(Article.views)                                for `views: Mapped[int]` of the model Article
    session.execute(views.add(article.id, 2))                     counts, in the transaction of the session
    select(Article, views.total).order_by(Article.views.desc())   exact totals, also in where() and order_by()

All functions return a statement, so that an AsyncSession executes them, too. In env.py of Alembic, the line
`include_name=counted.include_name` in context.configure() leaves the tables of the slots alone.
"""

import asyncio
import time

from sqlalchemy import BigInteger, Column, Integer, MetaData, Table, cast, event, func, inspect, select, text
from sqlalchemy.exc import DBAPIError


class Counter:
    """Counts of a column, which is the total up to the last roll-up. After the row is inserted, a session does not write the
    column: an assignment, also that of merge(), is ignored."""

    tables = set()

    def __init__(self, attribute):
        column, key = attribute.property.columns[0], attribute.class_.id
        self.name = f"{column.table.name}_{column.name}"
        Counter.tables.add(self.name)
        id, count = Column("id", BigInteger, primary_key=True), Column("count", BigInteger)
        # In metadata of its own, because create_all() does not create the routines.
        self.slots = Table(self.name, MetaData(), id, Column("slot", Integer, primary_key=True), count)
        pending = select(func.sum(count)).where(id == key).scalar_subquery()
        self.total = cast(attribute + func.coalesce(pending, 0), BigInteger).label("total")
        event.listen(attribute, "set", kept, retval=True, active_history=True)
        # A DELETE statement does not delete the counts of its rows.
        event.listen(attribute.class_, "after_delete", lambda _, connection, row: connection.execute(self.delete(row.id)))

    def call(self, routine, **arguments):
        names = ", ".join(f":{name}" for name in arguments)
        return text(f"CALL {self.name}_{routine}({names})").bindparams(**arguments)

    def add(self, key, amount=1):
        return self.call("add", key=key, amount=amount)

    def reset(self, key, total):
        return self.call("reset", key=key, total=total)

    def delete(self, key):
        return self.call("delete", key=key)

    def rollup(self):
        return self.call("rollup", batch=None)


def kept(row, value, old, _event):
    return old if inspect(row).persistent else value


def include_name(name, kind, _parents):
    return kind != "table" or name not in Counter.tables


def repeats(error, once):
    """Whether the transaction is to be repeated. 1305: a savepoint of begin_nested() that does not exist any more, because error
    1213 has rolled back the whole transaction. Other numbers, 30000 and above, are errors of the package."""
    return error.orig.args[0] in (1213, 1205, 1020, 1305, 3101, 30021) or once and error.connection_invalidated


def repeated(sessions, work, attempts=10, once=False):
    """Calls work(session) in a transaction, which is repeated if it was rolled back. With once, work begins with the INSERT of a
    unique request, such as that of an order. Then it is repeated after a lost connection, too, and error 1062 means that an
    earlier attempt was committed."""
    for attempt in range(attempts):
        try:
            with sessions.begin() as session:
                return work(session)
        except DBAPIError as error:
            if once and error.orig.args[0] == 1062:
                return None
            if not repeats(error, once) or attempt == attempts - 1:
                raise
            time.sleep(0.01 * attempt)


async def repeated_async(sessions, work, attempts=10, once=False):
    """The same with an AsyncSession."""
    for attempt in range(attempts):
        try:
            async with sessions.begin() as session:
                return await work(session)
        except DBAPIError as error:
            if once and error.orig.args[0] == 1062:
                return None
            if not repeats(error, once) or attempt == attempts - 1:
                raise
            await asyncio.sleep(0.01 * attempt)
