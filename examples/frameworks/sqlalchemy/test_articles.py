import unittest

from sqlalchemy import inspect, select, text
from sqlalchemy.dialects.mysql import BIGINT
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import Session, sessionmaker

from articles import Article, Base, engine, url, views
from counted import repeated, repeated_async


def total(article):
    return select(views.total).where(Article.id == article.id)


def insert(session, **values):
    article = Article(**values)
    session.add(article)
    session.flush()
    return article


class RolledBack(unittest.TestCase):
    """Each test is a transaction that is rolled back. A commit() of the session ends a savepoint."""

    def setUp(self):
        connection = engine.connect()
        self.addCleanup(connection.close)
        transaction = connection.begin()
        self.addCleanup(transaction.rollback)
        self.session = Session(connection, join_transaction_mode="create_savepoint")
        self.addCleanup(self.session.close)
        self.article = insert(self.session, title="One", views=40)

    def total(self, article):
        return self.session.scalar(total(article))

    def test_counts_and_rolls_up(self):
        self.session.execute(views.add(self.article.id))
        self.session.execute(views.add(self.article.id, 2))
        self.session.commit()
        self.assertEqual(self.total(self.article), 43)
        self.session.execute(views.rollup())
        self.session.refresh(self.article)
        self.assertEqual((self.article.views, self.total(self.article)), (43, 43))

    def test_starts_without_the_articles_of_other_tests(self):
        self.assertEqual(self.session.scalars(select(Article.title)).all(), ["One"])

    def test_save_does_not_write_the_column(self):
        self.session.execute(views.add(self.article.id, 2))
        self.session.execute(views.rollup())
        self.article.title, self.article.views = "Two", 5
        self.session.merge(Article(id=self.article.id, title="Two", views=6))
        self.session.flush()
        self.session.refresh(self.article)
        self.assertEqual((self.article.title, self.article.views), ("Two", 42))

    def test_lists_exact_totals(self):
        two = insert(self.session, title="Two", views=7)
        self.session.execute(views.add(two.id, 100))
        page = select(Article.title, views.total).order_by(Article.views.desc()).limit(20)
        self.assertEqual(self.session.execute(page).all(), [("One", 40), ("Two", 107)])
        self.assertEqual(self.session.scalars(select(Article.title).where(views.total > 50)).all(), ["Two"])

    def test_recounts(self):
        self.session.execute(views.add(self.article.id))
        self.session.execute(views.reset(self.article.id, 12))
        self.assertEqual(self.total(self.article), 12)

    def test_deletes_the_counts_with_the_row(self):
        self.session.execute(views.add(self.article.id))
        key = self.article.id
        self.session.delete(self.article)
        self.session.flush()
        self.assertEqual(self.total(insert(self.session, id=key, title="Again")), 0)

    def test_tells_an_error_of_a_routine(self):
        with self.assertRaises(DBAPIError) as raised, self.session.begin_nested():
            self.session.execute(views.add(None))
        self.assertEqual(raised.exception.orig.args[0], 1048)
        self.assertFalse(raised.exception.connection_invalidated)

    def test_reflects_the_view(self):
        column = inspect(self.session.connection()).get_columns("articles_views_totals")[-1]
        self.assertEqual((column["name"], type(column["type"])), ("total", BIGINT))


def truncate():
    """The tables of the models, and those of the slots: otherwise a new article has the counts of the old one."""
    with engine.begin() as connection:
        for table in [*Base.metadata.sorted_tables, views.slots]:
            connection.execute(text(f"TRUNCATE TABLE {table.name}"))


class Truncated(unittest.IsolatedAsyncioTestCase):
    """Each test commits, and truncates all tables after it."""

    def setUp(self):
        self.addCleanup(truncate)
        self.sessions = sessionmaker(engine, expire_on_commit=False)

    def article(self):
        with self.sessions.begin() as session:
            return insert(session, title="One")

    def total(self, article):
        with self.sessions() as session:
            return session.scalar(total(article))

    def test_starts_at_zero(self):
        article = self.article()
        self.assertEqual((article.id, self.total(article)), (1, 0))
        repeated(self.sessions, lambda session: session.execute(views.add(article.id, 5)))
        self.assertEqual(self.total(article), 5)

    # The same number again: without TRUNCATE of the slots, it would have the counts of the other test.
    test_starts_at_zero_again = test_starts_at_zero

    def test_repeats_after_a_lock_wait_timeout(self):
        article = self.article()
        holder = engine.connect()
        holder.execute(select(Article).with_for_update())
        numbers = []

        def work(session):
            session.execute(text("SET SESSION innodb_lock_wait_timeout = 1"))
            session.execute(views.add(article.id))
            try:
                session.execute(select(Article).with_for_update())
            except DBAPIError as error:
                numbers.append(error.orig.args[0])
                holder.close()
                raise

        repeated(self.sessions, work)
        self.assertEqual((numbers, self.total(article)), ([1205], 1))

    def test_counts_once_after_a_lost_connection_and_a_lost_savepoint(self):
        failures = [
            lambda session: session.execute(text("ROLLBACK TO SAVEPOINT of_a_deadlock")),
            lambda session: session.execute(text("KILL CONNECTION_ID()")),
        ]

        def work(session):
            # The ID is the request.
            insert(session, id=1, title="One")
            session.execute(views.add(1))
            if failures:
                failures.pop()(session)

        for _ in range(2):
            repeated(self.sessions, work, once=True)
            self.assertEqual((failures, self.total(Article(id=1))), ([], 1))

    async def test_counts_with_an_async_session(self):
        article = self.article()
        async_engine = create_async_engine(url.set(drivername="mysql+aiomysql"))
        sessions = async_sessionmaker(async_engine)

        async def work(session):
            await session.execute(views.add(article.id, 2))
            return await session.scalar(total(article))

        async def remove(session):
            await session.delete(await session.get(Article, article.id))
            return (await session.scalars(select(views.slots))).all()

        self.assertEqual(await repeated_async(sessions, work), 2)
        self.assertEqual(await repeated_async(sessions, remove), [])
        with self.assertRaises(DBAPIError) as raised:
            await repeated_async(sessions, lambda session: session.execute(views.add(None)))
        self.assertEqual(raised.exception.orig.args[0], 1048)
        await async_engine.dispose()
