"""Counts with PyMySQL. examples/README.md has the settings, the output and the rules for errors."""

import os
import random
import sys
import threading
import time

import pymysql

UNKNOWN_COUNTER = 30003
# The server has counted nothing. In Group Replication, add 1180. On Galera, a COMMIT with error 1180 may have counted.
REPEAT = {1213, 1205, 1020, 3101}
# The codes of the driver without a connection: 0 after a connection that was lost.
LOST = {0, 2003, 2006, 2013}
ATTEMPTS = 10


class ConnectionLost(Exception):
    pass


def connect():
    return pymysql.connect(
        host=os.environ["SLOTTED_HOST"],
        port=int(os.environ["SLOTTED_PORT"]),
        user=os.environ["SLOTTED_USER"],
        password=os.environ["SLOTTED_PASSWORD"],
        database=os.environ["SLOTTED_DATABASE"],
        # By default, this driver begins a transaction with the first statement, and a read returns its snapshot.
        autocommit=True,
        connect_timeout=10,
        # This driver uses TLS if the server supports it, without a check of the certificate, also with ssl_ca alone. With a
        # check: ssl_ca="ca.pem", ssl_verify_identity=True. Without TLS, caching_sha2_password needs PyMySQL[rsa].
    )


def in_transaction(connection, work):
    """Executes work in a transaction, and repeats the transaction if the server has rolled it back."""
    for attempt in range(1, ATTEMPTS + 1):
        committing = False
        try:
            connection.begin()
            result = work(connection.cursor())
            committing = True
            connection.commit()
            return result
        except pymysql.MySQLError as error:
            number = error.args[0]
            if number in LOST:
                counted = "may have counted" if committing else "has not counted"
                raise ConnectionLost(f"the transaction {counted}: {error}") from error
            # After error 1205, the transaction is still open.
            connection.rollback()
            if number not in REPEAT or attempt == ATTEMPTS:
                raise
            print(f"repeat after error {number}", file=sys.stderr)
            time.sleep(random.uniform(0, 0.01 * 2**attempt))


def place_order(connection, item, counter):
    def work(cursor):
        cursor.execute("INSERT INTO orders (item) VALUES (%s)", (item,))
        # Last, because the slot stays locked until COMMIT.
        cursor.execute("CALL counter_increment(%s)", (counter,))

    in_transaction(connection, work)


def total(connection, counter):
    with connection.cursor() as cursor:
        cursor.execute("SELECT counter_get(%s)", (counter,))
        return cursor.fetchone()[0]


def totals(connection, counters):
    with connection.cursor() as cursor:
        cursor.execute("SELECT counter_name, total FROM counter_totals WHERE counter_name IN %s", (tuple(counters),))
        return dict(cursor.fetchall())


class Counts:
    """Sums counts in memory, and adds the sums to the counters once a second. A crash loses the sums of this second."""

    def __init__(self):
        self.sums = {}
        self.lock = threading.Lock()
        self.closed = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def count(self, counter, amount=1):
        with self.lock:
            self.sums[counter] = self.sums.get(counter, 0) + amount

    def flush(self):
        with self.lock:
            sums, self.sums = self.sums, {}
        if not sums:
            return
        committing = False
        try:
            # A new connection: the server closes one that is idle for long, and threads cannot share one.
            with connect() as connection:
                # One transaction: all sums count, or none. In the order of the names, so that two processes do not deadlock.
                connection.begin()
                for sum in sorted(sums.items()):
                    connection.cursor().execute("CALL counter_add(%s, %s)", sum)
                committing = True
                connection.commit()
        except pymysql.MySQLError as error:
            # If the connection is lost in COMMIT, the sums may have counted.
            if error.args[0] in REPEAT or not committing and error.args[0] != UNKNOWN_COUNTER:
                for counter, amount in sums.items():
                    self.count(counter, amount)
            raise

    def close(self):
        self.closed.set()
        self.thread.join()
        self.flush()

    def _run(self):
        while not self.closed.wait(1):
            try:
                self.flush()
            except pymysql.MySQLError as error:
                print(f"flush failed: {error}", file=sys.stderr)


def main(counter="orders"):
    try:
        connection = connect()
        place_order(connection, "a book", counter)
        print("total of the counter:", total(connection, counter))

        counts = Counts()
        for view in range(1000):
            counts.count("views")
            if view % 10 == 0:
                counts.count("clicks")
        counts.close()
        for name, count in sorted(totals(connection, ["views", "clicks"]).items()):
            print(name, count)
    except ConnectionLost as error:
        print(f"connection lost: {error}", file=sys.stderr)
        return 4
    except pymysql.MySQLError as error:
        number, message = error.args[0], error.args[-1]
        if number == UNKNOWN_COUNTER:
            print(f"unknown counter: {message}", file=sys.stderr)
            return 3
        if number in LOST:
            print(f"connection lost: {message}", file=sys.stderr)
            return 4
        raise


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
