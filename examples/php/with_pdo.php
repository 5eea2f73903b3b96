<?php
// Counts with PDO. examples/README.md has the settings, the output and the rules for errors.
declare(strict_types=1);

const UNKNOWN_COUNTER = 30003;
// The server has counted nothing. In Group Replication, add 1180. On Galera, a COMMIT with error 1180 may have counted.
const REPEAT = [1213, 1205, 1020, 3101];
// The numbers of the driver without a connection.
const LOST = [2002, 2003, 2006, 2013, 1927];
const ATTEMPTS = 10;

class ConnectionLost extends RuntimeException
{
}

// The number of the error. getCode() returns the SQLSTATE, which is 45000 for all errors of the package.
function number(PDOException $error): int
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

// Executes work in a transaction, and repeats the transaction if the server has rolled it back.
function in_transaction(PDO $connection, callable $work): void
{
    for ($attempt = 1; ; $attempt++) {
        $committing = false;
        try {
            $connection->beginTransaction();
            $work();
            $committing = true;
            $connection->commit();
            return;
        } catch (PDOException $error) {
            $number = number($error);
            if (in_array($number, LOST)) {
                $counted = $committing ? 'may have counted' : 'has not counted';
                throw new ConnectionLost("the transaction $counted: {$error->getMessage()}");
            }
            // After error 1205, the transaction is still open. After 1213 it is not, and rollBack() would throw.
            $connection->exec('ROLLBACK');
            if (!in_array($number, REPEAT) || $attempt === ATTEMPTS) {
                throw $error;
            }
            fwrite(STDERR, "repeat after error $number\n");
            usleep(random_int(0, 10_000 * 2 ** $attempt));
        }
    }
}

function place_order(PDO $connection, string $item, string $counter): void
{
    in_transaction($connection, function () use ($connection, $item, $counter): void {
        $connection->prepare('INSERT INTO orders (item) VALUES (?)')->execute([$item]);
        // Last, because the slot stays locked until COMMIT.
        $connection->prepare('CALL counter_increment(?)')->execute([$counter]);
    });
}

function total(PDO $connection, string $counter): int
{
    $statement = $connection->prepare('SELECT counter_get(?)');
    $statement->execute([$counter]);
    // Before PHP 8.1, and with PDO::ATTR_STRINGIFY_FETCHES, the total is a string.
    return (int) $statement->fetchColumn();
}

function totals(PDO $connection, array $counters): array
{
    $places = implode(', ', array_fill(0, count($counters), '?'));
    $statement = $connection->prepare("SELECT counter_name, total FROM counter_totals WHERE counter_name IN ($places)");
    $statement->execute($counters);
    return $statement->fetchAll(PDO::FETCH_KEY_PAIR);
}

// Sums counts in memory, and adds the sums to the counters once a second. A crash loses the sums of this second. Only a
// process that serves for long gains from it, such as a worker of a queue: a request has a memory of its own.
class Counts
{
    private array $sums = [];
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
            } catch (PDOException $error) {
                fwrite(STDERR, "flush failed: {$error->getMessage()}\n");
            }
        }
    }

    public function flush(): void
    {
        $this->flushed = microtime(true);
        [$sums, $this->sums] = [$this->sums, []];
        if (!$sums) {
            return;
        }
        ksort($sums, SORT_STRING);
        $committing = false;
        try {
            // A new connection: the server closes one that is idle for long.
            $connection = connect();
            // One transaction: all sums count, or none. In the order of the names, so that two processes do not deadlock.
            $connection->beginTransaction();
            foreach ($sums as $counter => $amount) {
                $connection->prepare('CALL counter_add(?, ?)')->execute([$counter, $amount]);
            }
            $committing = true;
            $connection->commit();
        } catch (PDOException $error) {
            // If the connection is lost in COMMIT, the sums may have counted.
            if (in_array(number($error), REPEAT) || !$committing && number($error) !== UNKNOWN_COUNTER) {
                $this->sums = $sums;
            }
            throw $error;
        }
    }
}

function main(string $counter = 'orders'): int
{
    try {
        $connection = connect();
        place_order($connection, 'a book', $counter);
        echo 'total of the counter: ', total($connection, $counter), "\n";

        $counts = new Counts();
        for ($view = 0; $view < 1000; $view++) {
            $counts->count('views');
            if ($view % 10 === 0) {
                $counts->count('clicks');
            }
        }
        $counts->flush();
        $read = totals($connection, ['views', 'clicks']);
        ksort($read);
        foreach ($read as $name => $count) {
            echo "$name $count\n";
        }
        return 0;
    } catch (ConnectionLost $error) {
        fwrite(STDERR, "connection lost: {$error->getMessage()}\n");
        return 4;
    } catch (PDOException $error) {
        if (number($error) === UNKNOWN_COUNTER) {
            fwrite(STDERR, "unknown counter: {$error->getMessage()}\n");
            return 3;
        }
        if (in_array(number($error), LOST)) {
            fwrite(STDERR, "connection lost: {$error->getMessage()}\n");
            return 4;
        }
        throw $error;
    }
}

exit(main(...array_slice($argv, 1)));
