"""Counts with mysql-connector-python. A sale needs in_transaction, place_order and seats_left: each order takes its seats once,
even while sessions are killed. view_article and views count in a column, Counts counts in memory. To run it:
examples/README.md."""

import contextlib
import os
import random
import sys
import threading
import time
import uuid

import mysql.connector

UNKNOWN_COUNTER = 30003
NOT_ENOUGH = 30016
DUPLICATE = 1062
# 1305: a savepoint that does not exist any more, because error 1213 has rolled back the whole transaction.
# 1105, 1317, 1329: KILL QUERY. 1969: max_statement_time of MariaDB.
REPEAT = {1020, 1105, 1180, 1205, 1213, 1305, 1317, 1329, 1969, 3101, 30021}
# The numbers of the driver without a connection, -1 after one that was lost, and those of the server after KILL.
LOST = {-1, 2002, 2003, 2006, 2013, 2055, 1927, 3169}
ATTEMPTS = 10


def connect():
    return mysql.connector.connect(
        host=os.environ["SLOTTED_HOST"],
        port=int(os.environ["SLOTTED_PORT"]),
        user=os.environ["SLOTTED_USER"],
        password=os.environ["SLOTTED_PASSWORD"],
        database=os.environ["SLOTTED_DATABASE"],
        # By default, this driver begins a transaction with the first statement, and a read returns its snapshot.
        autocommit=True,
        connection_timeout=10,
        # This driver uses TLS if the server supports it, without a check of the certificate, also with ssl_ca alone. With a
        # check: ssl_ca="ca.pem", ssl_verify_identity=True. Without TLS, caching_sha2_password fails with error 1045.
    )


def number(error):
    return error.errno if isinstance(error, mysql.connector.Error) else None


def query(connection, sql, *arguments):
    """The rows of a SELECT."""
    with connection.cursor() as cursor:
        cursor.execute(sql, arguments)
        return cursor.fetchall()


def in_transaction(connection, work):
    """Repeats a transaction after the errors of REPEAT, and on a new connection after a lost one, whose COMMIT may have
    succeeded. So work begins with the INSERT of a unique request, and DUPLICATE means that an earlier attempt has counted."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            if attempt > 1 and not connection.is_connected():
                connection.reconnect()
            connection.start_transaction()
            with connection.cursor() as cursor:
                work(cursor)
            return connection.commit()
        except mysql.connector.Error as error:
            # After error 1205, the transaction is still open. On a lost connection, the rollback fails.
            with contextlib.suppress(mysql.connector.Error):
                connection.rollback()
            if number(error) == DUPLICATE:
                return
            if number(error) not in REPEAT | LOST or attempt == ATTEMPTS:
                raise
            print(f"repeat after error {number(error)}", file=sys.stderr)
            time.sleep(random.uniform(0, 0.01 * 2**attempt))


def place_order(connection, request, seats, counter):
    """Named counter and stock: an order, its count and its seats are committed together, or none of them. An order that is
    sent again with the same request is the same order."""

    def work(cursor):
        cursor.execute("INSERT INTO orders (request, seats) VALUES (%s, %s)", (request, seats))
        # Last and in this order in all transactions, because each call locks a slot until COMMIT.
        cursor.execute("CALL counter_increment(%s)", (counter,))
        # If fewer are left, the call takes none and fails with NOT_ENOUGH.
        cursor.execute("CALL bounded_counter_take('seats', %s)", (seats,))

    in_transaction(connection, work)


def seats_left(connection):
    return query(connection, "SELECT bounded_counter_get('seats')")[0][0]


def total(connection, counter):
    """Named counter: one total."""
    return query(connection, "SELECT counter_get(%s)", counter)[0][0]


def totals(connection, *counters):
    """Named counters: the totals of several in one query."""
    # A placeholder for each name: the driver does not expand a list.
    places = ", ".join(["%s"] * len(counters))
    sql = f"SELECT counter_name, total FROM counter_totals WHERE counter_name IN ({places}) ORDER BY counter_name"
    return query(connection, sql, *counters)


def view_article(connection, id):
    """Column: in place of UPDATE articles SET views = views + 1. Outside a transaction, the call commits by itself."""
    connection.cursor().execute("CALL articles_views_increment(%s)", (id,))


def views(connection, id):
    """Column: the value up to the last roll-up, and the exact total."""
    return query(connection, "SELECT views, articles_views_get(id) FROM articles WHERE id = %s", id)[0]


class Counts:
    """In memory: sums counts, and adds the sums to the counters once a second. A crash loses the sums of this second."""

    def __init__(self):
        self.sums = {}
        # The operation and the sums of a flush that has not succeeded yet.
        self.batch = None
        self.lock = threading.Lock()
        self.closed = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def count(self, counter, amount=1):
        with self.lock:
            self.sums[counter] = self.sums.get(counter, 0) + amount

    def flush(self):
        """After an error, the next flush repeats the operation, which counts once."""
        with self.lock:
            if self.batch is None and self.sums:
                self.batch, self.sums = (uuid.uuid4().hex, self.sums), {}
        if self.batch is None:
            return
        operation, sums = self.batch

        def work(cursor):
            cursor.execute("INSERT INTO counter_operations (operation) VALUES (UNHEX(%s))", (operation,))
            # In the order of the names, so that two processes do not deadlock.
            for sum in sorted(sums.items()):
                cursor.execute("CALL counter_add(%s, %s)", sum)

        try:
            # A new connection: the server closes one that is idle for long, and threads cannot share one.
            with connect() as connection:
                in_transaction(connection, work)
            self.batch = None
        except mysql.connector.Error as error:
            if number(error) == UNKNOWN_COUNTER:
                self.batch = None
            raise

    def close(self):
        self.closed.set()
        self.thread.join()
        while self.batch or self.sums:
            self.flush()

    def _run(self):
        while not self.closed.wait(1):
            try:
                self.flush()
            except mysql.connector.Error as error:
                print(f"flush failed: {error}", file=sys.stderr)


def main(counter="orders", orders="1"):
    try:
        connection = connect()
        for _ in range(int(orders)):
            place_order(connection, uuid.uuid4().hex, 2, counter)
        print("orders:", total(connection, counter))
        print("seats left:", seats_left(connection))

        view_article(connection, 1)
        column, exact = views(connection, 1)
        print(f"views: {exact} ({column} in the column)")

        counts = Counts()
        for impression in range(1000):
            counts.count("impressions")
            if impression % 10 == 0:
                counts.count("clicks")
        counts.close()
        for name, count in totals(connection, "clicks", "impressions"):
            print(f"{name}: {count}")
    except mysql.connector.Error as error:
        message = error.msg
        if number(error) == UNKNOWN_COUNTER:
            meaning, code = "unknown counter", 3
        elif number(error) == NOT_ENOUGH:
            meaning, code = "sold out", 5
        elif number(error) in LOST:
            meaning, code = "connection lost", 4
        else:
            raise
    else:
        return 0
    print(f"{meaning}: {message}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
