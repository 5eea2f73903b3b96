import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;

/** Counts with MariaDB Connector/J. examples/README.md has the settings, the output and the rules for errors. */
public class WithMariadb {
    static final int UNKNOWN_COUNTER = 30003;
    // The server has counted nothing. In Group Replication, add 1180. On Galera, a COMMIT with error 1180 may have counted.
    static final Set<Integer> REPEAT = Set.of(1213, 1205, 1020, 3101);
    static final int ATTEMPTS = 10;

    static class ConnectionLost extends Exception {
        ConnectionLost(boolean committing, SQLException cause) {
            super("the transaction " + (committing ? "may have counted" : "has not counted") + ": " + cause.getMessage(), cause);
        }
    }

    interface Work {
        void execute() throws SQLException;
    }

    /** An error of the network, or of a server that shuts down. The class of SQLSTATE is 08, connection exception. */
    static boolean isLost(SQLException error) {
        return error.getSQLState() != null && error.getSQLState().startsWith("08");
    }

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

    /** Executes work in a transaction, and repeats the transaction if the server has rolled it back. */
    static void inTransaction(Connection connection, Work work) throws SQLException, ConnectionLost, InterruptedException {
        for (int attempt = 1; ; attempt++) {
            boolean committing = false;
            try {
                connection.setAutoCommit(false);
                work.execute();
                committing = true;
                connection.commit();
                connection.setAutoCommit(true);
                return;
            } catch (SQLException error) {
                if (isLost(error)) {
                    throw new ConnectionLost(committing, error);
                }
                // After error 1205, the transaction is still open.
                connection.rollback();
                connection.setAutoCommit(true);
                if (!REPEAT.contains(error.getErrorCode()) || attempt == ATTEMPTS) {
                    throw error;
                }
                System.err.println("repeat after error " + error.getErrorCode());
                Thread.sleep(ThreadLocalRandom.current().nextLong(10L << attempt));
            }
        }
    }

    static void placeOrder(Connection connection, String item, String counter)
            throws SQLException, ConnectionLost, InterruptedException {
        inTransaction(connection, () -> {
            execute(connection, "INSERT INTO orders (item) VALUES (?)", item);
            // Last, because the slot stays locked until COMMIT.
            execute(connection, "CALL counter_increment(?)", counter);
        });
    }

    static void execute(Connection connection, String sql, Object... arguments) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            for (int i = 0; i < arguments.length; i++) {
                statement.setObject(i + 1, arguments[i]);
            }
            statement.execute();
        }
    }

    static long total(Connection connection, String counter) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement("SELECT counter_get(?)")) {
            statement.setString(1, counter);
            ResultSet result = statement.executeQuery();
            result.next();
            return result.getLong(1);
        }
    }

    static Map<String, Long> totals(Connection connection, List<String> counters) throws SQLException {
        String places = String.join(", ", Collections.nCopies(counters.size(), "?"));
        String sql = "SELECT counter_name, total FROM counter_totals WHERE counter_name IN (" + places + ")";
        Map<String, Long> totals = new TreeMap<>();
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            for (int i = 0; i < counters.size(); i++) {
                statement.setString(i + 1, counters.get(i));
            }
            ResultSet result = statement.executeQuery();
            while (result.next()) {
                totals.put(result.getString(1), result.getLong(2));
            }
        }
        return totals;
    }

    /** Sums counts in memory, and adds the sums to the counters once a second. A crash loses the sums of this second. */
    static class Counts {
        private Map<String, Long> sums = new TreeMap<>();
        private final ScheduledExecutorService timer = Executors.newSingleThreadScheduledExecutor();

        Counts() {
            timer.scheduleAtFixedRate(() -> {
                try {
                    flush();
                } catch (SQLException error) {
                    System.err.println("flush failed: " + error.getMessage());
                }
            }, 1, 1, TimeUnit.SECONDS);
        }

        synchronized void count(String counter, long amount) {
            sums.merge(counter, amount, Long::sum);
        }

        private synchronized Map<String, Long> take() {
            Map<String, Long> taken = sums;
            sums = new TreeMap<>();
            return taken;
        }

        void flush() throws SQLException {
            Map<String, Long> taken = take();
            if (taken.isEmpty()) {
                return;
            }
            boolean committing = false;
            // A new connection: the server closes one that is idle for long, and threads cannot share one.
            try (Connection connection = connect()) {
                // One transaction: all sums count, or none. In the order of the names, so that two processes do not deadlock.
                connection.setAutoCommit(false);
                for (Map.Entry<String, Long> sum : taken.entrySet()) {
                    execute(connection, "CALL counter_add(?, ?)", sum.getKey(), sum.getValue());
                }
                committing = true;
                connection.commit();
            } catch (SQLException error) {
                // If the connection is lost in COMMIT, the sums may have counted.
                if (REPEAT.contains(error.getErrorCode()) || !committing && error.getErrorCode() != UNKNOWN_COUNTER) {
                    taken.forEach(this::count);
                }
                throw error;
            }
        }

        void close() throws SQLException, InterruptedException {
            timer.shutdown();
            timer.awaitTermination(1, TimeUnit.MINUTES);
            flush();
        }
    }

    static int run(String counter) throws SQLException, InterruptedException {
        try (Connection connection = connect()) {
            placeOrder(connection, "a book", counter);
            System.out.println("total of the counter: " + total(connection, counter));

            Counts counts = new Counts();
            for (int view = 0; view < 1000; view++) {
                counts.count("views", 1);
                if (view % 10 == 0) {
                    counts.count("clicks", 1);
                }
            }
            counts.close();
            totals(connection, List.of("views", "clicks")).forEach((name, count) -> System.out.println(name + " " + count));
            return 0;
        } catch (ConnectionLost error) {
            System.err.println("connection lost: " + error.getMessage());
            return 4;
        } catch (SQLException error) {
            if (error.getErrorCode() == UNKNOWN_COUNTER) {
                System.err.println("unknown counter: " + error.getMessage());
                return 3;
            }
            if (isLost(error)) {
                System.err.println("connection lost: " + error.getMessage());
                return 4;
            }
            throw error;
        }
    }

    public static void main(String[] arguments) throws SQLException, InterruptedException {
        System.exit(run(arguments.length > 0 ? arguments[0] : "orders"));
    }
}
