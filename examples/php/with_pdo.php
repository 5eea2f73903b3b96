<?php
// Counts with PDO. A sale needs in_transaction, place_order and seats_left: each order takes its seats once, even while sessions
// are killed. view_article and views count in a column, Counts counts in memory. To run it: examples/README.md.
declare(strict_types=1);

const UNKNOWN_COUNTER = 30003;
const NOT_ENOUGH = 30016;
const DUPLICATE = 1062;
// 1305: a savepoint that does not exist any more, because error 1213 has rolled back the whole transaction.
// 1105, 1317, 1329: KILL QUERY. 1969: max_statement_time of MariaDB.
const REPEAT = [1020, 1105, 1180, 1205, 1213, 1305, 1317, 1329, 1969, 3101, 30021];
// The numbers of the driver without a connection, and those of the server after KILL.
const LOST = [2002, 2003, 2006, 2013, 1927, 3169];
const ATTEMPTS = 10;

// The number of the error. getCode() returns the SQLSTATE, which is 45000 for all errors of the package.
function number(Throwable $error): int
{
    return (int) ($error->errorInfo[1] ?? $error->getCode());
}

function connect(): PDO
{
    $place = sprintf('host=%s;port=%s;dbname=%s', getenv('SLOTTED_HOST'), getenv('SLOTTED_PORT'), getenv('SLOTTED_DATABASE'));
    return new PDO("mysql:$place;charset=utf8mb4", getenv('SLOTTED_USER'), getenv('SLOTTED_PASSWORD'), [
        PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION,
        PDO::ATTR_TIMEOUT => 10,
        // caching_sha2_password without TLS: the driver fetches the public key of the server. With TLS:
        // PDO::MYSQL_ATTR_SSL_CA => 'ca.pem'
    ]);
}

function query(PDO $connection, string $sql, mixed ...$arguments): PDOStatement
{
    $statement = $connection->prepare($sql);
    $statement->execute($arguments);
    return $statement;
}

// 32 hexadecimal digits.
function new_request(): string
{
    return bin2hex(random_bytes(16));
}

// Repeats a transaction after the errors of REPEAT, and on another connection after a lost one, whose COMMIT may have succeeded.
// So $work begins with the INSERT of a unique request, and DUPLICATE means that an earlier attempt has counted.
function in_transaction(?PDO &$connection, callable $work): void
{
    for ($attempt = 1; ; $attempt++) {
        try {
            $connection ??= connect();
            $connection->beginTransaction();
            $work($connection);
            $connection->commit();
            return;
        } catch (Throwable $error) {
            $number = number($error);
            $lost = in_array($number, LOST);
            try {
                // After error 1205, the transaction is still open. After 1213 it is not, and rollBack() would throw.
                $connection?->exec('ROLLBACK');
            } catch (PDOException) {
                $connection = null;
            }
            if ($number === DUPLICATE) {
                return;
            }
            if (!($lost || in_array($number, REPEAT)) || $attempt === ATTEMPTS) {
                throw $error;
            }
            error_log("repeat after error $number");
            usleep(random_int(0, 10_000 * 2 ** $attempt));
        }
    }
}

// Named counter and stock: an order, its count and its seats are committed together, or none of them. An order that is sent again
// with the same request is the same order.
function place_order(?PDO &$connection, string $request, int $seats, string $counter): void
{
    in_transaction($connection, function (PDO $connection) use ($request, $seats, $counter): void {
        query($connection, 'INSERT INTO orders (request, seats) VALUES (?, ?)', $request, $seats);
        // Last and in this order in all transactions, because each call locks a slot until COMMIT.
        query($connection, 'CALL counter_increment(?)', $counter);
        // If fewer are left, the call takes none and fails with NOT_ENOUGH.
        query($connection, 'CALL bounded_counter_take(?, ?)', 'seats', $seats);
    });
}

function seats_left(PDO $connection): int
{
    return (int) query($connection, 'SELECT bounded_counter_get(?)', 'seats')->fetchColumn();
}

// Named counter: one total.
function total(PDO $connection, string $counter): int
{
    // Before PHP 8.1, and with PDO::ATTR_STRINGIFY_FETCHES, the total is a string.
    return (int) query($connection, 'SELECT counter_get(?)', $counter)->fetchColumn();
}

// Named counters: the totals of several in one query.
function totals(PDO $connection, string ...$counters): array
{
    $places = implode(', ', array_fill(0, count($counters), '?'));
    $sql = "SELECT counter_name, total FROM counter_totals WHERE counter_name IN ($places) ORDER BY counter_name";
    return query($connection, $sql, ...$counters)->fetchAll(PDO::FETCH_KEY_PAIR);
}

// Column: in place of UPDATE articles SET views = views + 1. Outside a transaction, the call commits by itself.
function view_article(PDO $connection, int $id): void
{
    query($connection, 'CALL articles_views_increment(?)', $id);
}

// Column: the value up to the last roll-up, and the exact total.
function views(PDO $connection, int $id): array
{
    $sql = 'SELECT views, articles_views_get(id) FROM articles WHERE id = ?';
    return query($connection, $sql, $id)->fetch(PDO::FETCH_NUM);
}

// In memory: sums counts, and adds the sums to the counters once a second. A crash loses the sums of this second. Only a
// process that serves for long gains from it, such as a worker of a queue: a request has a memory of its own.
class Counts
{
    private array $sums = [];
    // The operation and the sums of a flush that has not succeeded yet.
    private ?array $batch = null;
    private float $flushed;

    public function __construct()
    {
        $this->flushed = microtime(true);
    }

    public function count(string $counter, int $amount = 1): void
    {
        $this->sums[$counter] = ($this->sums[$counter] ?? 0) + $amount;
        // PHP has no timer: the next count flushes.
        if (microtime(true) - $this->flushed >= 1) {
            try {
                $this->flush();
            } catch (RuntimeException $error) {
                error_log("flush failed: {$error->getMessage()}");
            }
        }
    }

    // After an error, the next flush repeats the operation, which counts once.
    public function flush(): void
    {
        $this->flushed = microtime(true);
        if (!$this->batch && $this->sums) {
            // In the order of the names, so that two processes do not deadlock.
            ksort($this->sums, SORT_STRING);
            [$this->batch, $this->sums] = [[new_request(), $this->sums], []];
        }
        if (!$this->batch) {
            return;
        }
        [$operation, $sums] = $this->batch;
        try {
            // A new connection: the server closes one that is idle for long.
            $connection = null;
            in_transaction($connection, function (PDO $connection) use ($operation, $sums): void {
                query($connection, 'INSERT INTO counter_operations (operation) VALUES (UNHEX(?))', $operation);
                foreach ($sums as $counter => $amount) {
                    query($connection, 'CALL counter_add(?, ?)', $counter, $amount);
                }
            });
            $this->batch = null;
        } catch (PDOException $error) {
            if (number($error) === UNKNOWN_COUNTER) {
                $this->batch = null;
            }
            throw $error;
        }
    }

    public function close(): void
    {
        while ($this->batch || $this->sums) {
            $this->flush();
        }
    }
}

function main(string $counter = 'orders', string $orders = '1'): int
{
    try {
        $connection = connect();
        for ($order = 0; $order < (int) $orders; $order++) {
            place_order($connection, new_request(), 2, $counter);
        }
        echo 'orders: ', total($connection, $counter), "\n";
        echo 'seats left: ', seats_left($connection), "\n";

        view_article($connection, 1);
        [$column, $total] = views($connection, 1);
        echo "views: $total ($column in the column)\n";

        $counts = new Counts();
        for ($impression = 0; $impression < 1000; $impression++) {
            $counts->count('impressions');
            if ($impression % 10 === 0) {
                $counts->count('clicks');
            }
        }
        $counts->close();
        foreach (totals($connection, 'clicks', 'impressions') as $name => $count) {
            echo "$name: $count\n";
        }
        return 0;
    } catch (Throwable $error) {
        [$meaning, $code] = match (true) {
            number($error) === UNKNOWN_COUNTER => ['unknown counter', 3],
            number($error) === NOT_ENOUGH => ['sold out', 5],
            in_array(number($error), LOST) => ['connection lost', 4],
            default => throw $error,
        };
        fwrite(STDERR, "$meaning: {$error->getMessage()}\n");
        return $code;
    }
}

exit(main(...array_slice($argv, 1)));
