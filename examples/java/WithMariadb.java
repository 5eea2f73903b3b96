import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.Collections;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;

/**
 * Counts with MariaDB Connector/J. A sale needs inTransaction, placeOrder and seatsLeft: each order takes its seats once, even while
 * sessions are killed. viewArticle and views count in a column, Counts counts in memory. To run it: examples/README.md.
 */
public class WithMariadb {
    static final int UNKNOWN_COUNTER = 30003;
    static final int NOT_ENOUGH = 30016;
    static final int DUPLICATE = 1062;
    // 1305: a savepoint that does not exist any more, because error 1213 has rolled back the whole transaction.
    // 1105, 1317, 1329: KILL QUERY. 1969: max_statement_time of MariaDB. 1927, 3169: KILL. The driver passes on an error of the server.
    static final Set<Integer> REPEAT = Set.of(1020, 1105, 1180, 1205, 1213, 1305, 1317, 1329, 1927, 1969, 3101, 3169, 30021);
    static final int ATTEMPTS = 10;

    interface Work {
        void execute(Connection connection) throws SQLException;
    }

    /** An error of the network, or of a server that shuts down. The class of SQLSTATE is 08, connection exception. */
    static boolean isLost(SQLException error) {
        return error.getSQLState() != null && error.getSQLState().startsWith("08");
    }

    /** With a pool, such as HikariCP, take the connection from it. */
    static Connection connect() throws SQLException {
        Properties settings = new Properties();
        settings.setProperty("user", System.getenv("SLOTTED_USER"));
        settings.setProperty("password", System.getenv("SLOTTED_PASSWORD"));
        settings.setProperty("connectTimeout", "10000");
        // caching_sha2_password without TLS: the driver fetches the public key of the server only with this property.
        // With TLS: useSsl=true and serverSslCert=ca.pem
        settings.setProperty("allowPublicKeyRetrieval", "true");
        String place = System.getenv("SLOTTED_HOST") + ":" + System.getenv("SLOTTED_PORT");
        return DriverManager.getConnection("jdbc:mariadb://" + place + "/" + System.getenv("SLOTTED_DATABASE"), settings);
    }

    static PreparedStatement prepare(Connection connection, String sql, Object... arguments) throws SQLException {
        PreparedStatement statement = connection.prepareStatement(sql);
        for (int i = 0; i < arguments.length; i++) {
            statement.setObject(i + 1, arguments[i]);
        }
        return statement;
    }

    static void execute(Connection connection, String sql, Object... arguments) throws SQLException {
        try (PreparedStatement statement = prepare(connection, sql, arguments)) {
            statement.execute();
        }
    }

    /** The numbers in the first row of a SELECT. */
    static long[] numbers(Connection connection, String sql, Object... arguments) throws SQLException {
        try (PreparedStatement statement = prepare(connection, sql, arguments)) {
            ResultSet result = statement.executeQuery();
            result.next();
            long[] row = new long[result.getMetaData().getColumnCount()];
            for (int i = 0; i < row.length; i++) {
                row[i] = result.getLong(i + 1);
            }
            return row;
        }
    }

    /** 32 hexadecimal digits. */
    static String newRequest() {
        return UUID.randomUUID().toString().replace("-", "");
    }

    /**
     * Repeats a transaction after the errors of REPEAT, and after a lost connection, whose COMMIT may have succeeded. So work begins
     * with the INSERT of a unique request, and DUPLICATE means that an earlier attempt has counted.
     */
    static void inTransaction(Work work) throws SQLException, InterruptedException {
        for (int attempt = 1; ; attempt++) {
            // After an error, close() ends the transaction, which is still open after error 1205.
            try (Connection connection = connect()) {
                connection.setAutoCommit(false);
                work.execute(connection);
                connection.commit();
                return;
            } catch (SQLException error) {
                if (error.getErrorCode() == DUPLICATE) {
                    return;
                }
                if (!(REPEAT.contains(error.getErrorCode()) || isLost(error)) || attempt == ATTEMPTS) {
                    throw error;
                }
                System.err.println("repeat after error " + error.getErrorCode());
                Thread.sleep(ThreadLocalRandom.current().nextLong(10L << attempt));
            }
        }
    }

    /**
     * Named counter and stock: an order, its count and its seats are committed together, or none of them. An order that is sent again
     * with the same request is the same order.
     */
    static void placeOrder(String request, int seats, String counter) throws SQLException, InterruptedException {
        inTransaction(connection -> {
            execute(connection, "INSERT INTO orders (request, seats) VALUES (?, ?)", request, seats);
            // Last and in this order in all transactions, because each call locks a slot until COMMIT.
            execute(connection, "CALL counter_increment(?)", counter);
            // If fewer are left, the call takes none and fails with NOT_ENOUGH.
            execute(connection, "CALL bounded_counter_take(?, ?)", "seats", seats);
        });
    }

    static long seatsLeft(Connection connection) throws SQLException {
        return numbers(connection, "SELECT bounded_counter_get(?)", "seats")[0];
    }

    /** Named counter: one total. */
    static long total(Connection connection, String counter) throws SQLException {
        return numbers(connection, "SELECT counter_get(?)", counter)[0];
    }

    /** Named counters: the totals of several in one query. */
    static Map<String, Long> totals(Connection connection, String... counters) throws SQLException {
        String places = String.join(", ", Collections.nCopies(counters.length, "?"));
        String sql = "SELECT counter_name, total FROM counter_totals WHERE counter_name IN (" + places + ")";
        Map<String, Long> totals = new TreeMap<>();
        try (PreparedStatement statement = prepare(connection, sql, (Object[]) counters)) {
            ResultSet result = statement.executeQuery();
            while (result.next()) {
                totals.put(result.getString(1), result.getLong(2));
            }
        }
        return totals;
    }

    /** Column: in place of UPDATE articles SET views = views + 1. Outside a transaction, the call commits by itself. */
    static void viewArticle(Connection connection, long id) throws SQLException {
        execute(connection, "CALL articles_views_increment(?)", id);
    }

    /** Column: the value up to the last roll-up, and the exact total. */
    static long[] views(Connection connection, long id) throws SQLException {
        return numbers(connection, "SELECT views, articles_views_get(id) FROM articles WHERE id = ?", id);
    }

    /** In memory: sums counts, and adds the sums to the counters once a second. A crash loses the sums of this second. */
    static class Counts {
        private Map<String, Long> sums = new TreeMap<>();
        // The operation and the sums of a flush that has not succeeded yet.
        private String operation;
        private Map<String, Long> batch = Map.of();
        private final ScheduledExecutorService timer = Executors.newSingleThreadScheduledExecutor();

        Counts() {
            timer.scheduleAtFixedRate(() -> {
                try {
                    flush();
                } catch (SQLException | InterruptedException error) {
                    System.err.println("flush failed: " + error.getMessage());
                }
            }, 1, 1, TimeUnit.SECONDS);
        }

        synchronized void count(String counter, long amount) {
            sums.merge(counter, amount, Long::sum);
        }

        /** The sums in the order of the names, so that two processes do not deadlock. */
        private synchronized Map<String, Long> take() {
            Map<String, Long> taken = sums;
            sums = new TreeMap<>();
            return taken;
        }

        /** After an error, the next flush repeats the operation, which counts once. */
        void flush() throws SQLException, InterruptedException {
            if (batch.isEmpty()) {
                operation = newRequest();
                batch = take();
            }
            if (batch.isEmpty()) {
                return;
            }
            try {
                inTransaction(connection -> {
                    execute(connection, "INSERT INTO counter_operations (operation) VALUES (UNHEX(?))", operation);
                    for (Map.Entry<String, Long> sum : batch.entrySet()) {
                        execute(connection, "CALL counter_add(?, ?)", sum.getKey(), sum.getValue());
                    }
                });
                batch = Map.of();
            } catch (SQLException error) {
                if (error.getErrorCode() == UNKNOWN_COUNTER) {
                    batch = Map.of();
                }
                throw error;
            }
        }

        void close() throws SQLException, InterruptedException {
            timer.shutdown();
            timer.awaitTermination(1, TimeUnit.MINUTES);
            // What an earlier flush has left, and the last counts.
            flush();
            flush();
        }
    }

    static void show(String counter) throws SQLException, InterruptedException {
        try (Connection connection = connect()) {
            System.out.println("orders: " + total(connection, counter));
            System.out.println("seats left: " + seatsLeft(connection));

            viewArticle(connection, 1);
            long[] views = views(connection, 1);
            System.out.println("views: " + views[1] + " (" + views[0] + " in the column)");

            Counts counts = new Counts();
            for (int impression = 0; impression < 1000; impression++) {
                counts.count("impressions", 1);
                if (impression % 10 == 0) {
                    counts.count("clicks", 1);
                }
            }
            counts.close();
            totals(connection, "clicks", "impressions").forEach((name, count) -> System.out.println(name + ": " + count));
        }
    }

    static int run(String counter, int orders) throws SQLException, InterruptedException {
        try {
            for (int order = 0; order < orders; order++) {
                placeOrder(newRequest(), 2, counter);
            }
            show(counter);
            return 0;
        } catch (SQLException error) {
            switch (error.getErrorCode()) {
                case UNKNOWN_COUNTER:
                    return failed("unknown counter", 3, error);
                case NOT_ENOUGH:
                    return failed("sold out", 5, error);
                default:
                    if (!isLost(error)) {
                        throw error;
                    }
                    return failed("connection lost", 4, error);
            }
        }
    }

    static int failed(String meaning, int code, Exception error) {
        System.err.println(meaning + ": " + error.getMessage());
        return code;
    }

    public static void main(String[] arguments) throws SQLException, InterruptedException {
        String counter = arguments.length > 0 ? arguments[0] : "orders";
        System.exit(run(counter, arguments.length > 1 ? Integer.parseInt(arguments[1]) : 1));
    }
}
