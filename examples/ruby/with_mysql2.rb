# Counts with mysql2. A sale needs in_transaction, place_order and seats_left: each order takes its seats once, even while sessions
# are killed. view_article and views count in a column, Counts counts in memory. To run it: examples/README.md.
require "mysql2"
require "securerandom"

UNKNOWN_COUNTER = 30003
NOT_ENOUGH = 30016
DUPLICATE = 1062
# 1305: a savepoint that does not exist any more, because error 1213 has rolled back the whole transaction.
# 1105, 1317, 1329: KILL QUERY. 1969: max_statement_time of MariaDB.
REPEAT = [1020, 1105, 1180, 1205, 1213, 1305, 1317, 1329, 1969, 3101, 30021]
# The numbers of the driver without a connection, and those of the server after KILL.
LOST = [2002, 2003, 2006, 2013, 1927, 3169]
ATTEMPTS = 10

def connect
  Mysql2::Client.new(
    host: ENV.fetch("SLOTTED_HOST"),
    port: ENV.fetch("SLOTTED_PORT").to_i,
    username: ENV.fetch("SLOTTED_USER"),
    password: ENV.fetch("SLOTTED_PASSWORD"),
    database: ENV.fetch("SLOTTED_DATABASE"),
    encoding: "utf8mb4",
    connect_timeout: 10
    # caching_sha2_password without TLS: the client library fetches the public key of the server. With TLS: sslca: "ca.pem"
  )
end

# A connection, and another one after it was lost. Not by the option `reconnect`, after which the rest of a transaction would commit
# by itself.
class Database
  def connection
    @connection ||= connect
  end

  def query(sql, *arguments)
    connection.prepare(sql).execute(*arguments)
  end

  def close
    @connection&.close
    @connection = nil
  end
end

# The number of an error of the server or of the driver, or nil. The driver gives none to "MySQL client is not connected".
def number(error)
  error.error_number || 2006 if error.is_a?(Mysql2::Error)
end

# Repeats a transaction after the errors of REPEAT, and on another connection after a lost one, whose COMMIT may have succeeded.
# So the block begins with the INSERT of a unique request, and DUPLICATE means that an earlier attempt has counted.
def in_transaction(database)
  attempt = 1
  begin
    database.connection.query("BEGIN")
    yield
    database.connection.query("COMMIT")
  rescue => error
    lost = LOST.include?(number(error))
    begin
      # After error 1205, the transaction is still open. A rollback fails if the connection is lost meanwhile.
      lost ? database.close : database.connection.query("ROLLBACK")
    rescue Mysql2::Error
      database.close
    end
    return if number(error) == DUPLICATE
    raise if !(lost || REPEAT.include?(number(error))) || attempt == ATTEMPTS
    warn "repeat after error #{number(error)}"
    sleep rand * 0.01 * 2**attempt
    attempt += 1
    retry
  end
end

# Named counter and stock: an order, its count and its seats are committed together, or none of them. An order that is sent again
# with the same request is the same order.
def place_order(database, request, seats, counter)
  in_transaction(database) do
    database.query("INSERT INTO orders (request, seats) VALUES (?, ?)", request, seats)
    # Last and in this order in all transactions, because each call locks a slot until COMMIT.
    database.query("CALL counter_increment(?)", counter)
    # If fewer are left, the call takes none and fails with NOT_ENOUGH.
    database.query("CALL bounded_counter_take(?, ?)", "seats", seats)
  end
end

def seats_left(database)
  database.query("SELECT bounded_counter_get(?) AS total", "seats").first["total"]
end

# Named counter: one total.
def total(database, counter)
  database.query("SELECT counter_get(?) AS total", counter).first["total"]
end

# Named counters: the totals of several in one query.
def totals(database, *counters)
  places = (["?"] * counters.size).join(", ")
  sql = "SELECT counter_name, total FROM counter_totals WHERE counter_name IN (#{places}) ORDER BY counter_name"
  # The total of the view is a DECIMAL.
  database.query(sql, *counters).to_h { |row| [row["counter_name"], row["total"].to_i] }
end

# Column: in place of UPDATE articles SET views = views + 1. Outside a transaction, the call commits by itself.
def view_article(database, id)
  database.query("CALL articles_views_increment(?)", id)
end

# Column: the value up to the last roll-up, and the exact total.
def views(database, id)
  database.query("SELECT views, articles_views_get(id) AS total FROM articles WHERE id = ?", id).first.values
end

# In memory: sums counts, and adds the sums to the counters once a second. A crash loses the sums of this second.
class Counts
  def initialize
    @sums = Hash.new(0)
    # The operation and the sums of a flush that has not succeeded yet.
    @batch = nil
    @mutex = Mutex.new
    @closing = ConditionVariable.new
    @closed = false
    @thread = Thread.new { run }
  end

  def count(counter, amount = 1)
    @mutex.synchronize { @sums[counter] += amount }
  end

  # After an error, the next flush repeats the operation, which counts once.
  def flush
    @mutex.synchronize do
      @batch, @sums = [SecureRandom.hex, @sums], Hash.new(0) if !@batch && @sums.any?
    end
    return unless @batch
    operation, sums = @batch
    # Another connection: the server closes one that is idle for long, and threads cannot share one.
    database = Database.new
    in_transaction(database) do
      database.query("INSERT INTO counter_operations (operation) VALUES (UNHEX(?))", operation)
      # In the order of the names, so that two processes do not deadlock.
      sums.sort.each { |sum| database.query("CALL counter_add(?, ?)", *sum) }
    end
    @batch = nil
  rescue Mysql2::Error => error
    @batch = nil if number(error) == UNKNOWN_COUNTER
    raise
  ensure
    database&.close
  end

  def close
    @mutex.synchronize do
      @closed = true
      @closing.signal
    end
    @thread.join
    flush while @batch || @sums.any?
  end

  private

  def closed?
    @mutex.synchronize do
      @closing.wait(@mutex, 1) unless @closed
      @closed
    end
  end

  def run
    until closed?
      begin
        flush
      rescue Mysql2::Error => error
        warn "flush failed: #{error.message}"
      end
    end
  end
end

def main(counter = "orders", orders = 1)
  database = Database.new
  orders.to_i.times { place_order(database, SecureRandom.hex, 2, counter) }
  puts "orders: #{total(database, counter)}"
  puts "seats left: #{seats_left(database)}"

  view_article(database, 1)
  column, total = views(database, 1)
  puts "views: #{total} (#{column} in the column)"

  counts = Counts.new
  1000.times do |impression|
    counts.count("impressions")
    counts.count("clicks") if impression % 10 == 0
  end
  counts.close
  totals(database, "clicks", "impressions").each { |name, count| puts "#{name}: #{count}" }
  0
rescue Mysql2::Error => error
  meaning, code =
    case number(error)
    when UNKNOWN_COUNTER then ["unknown counter", 3]
    when NOT_ENOUGH then ["sold out", 5]
    when *LOST then ["connection lost", 4]
    else raise
    end
  warn "#{meaning}: #{error.message}"
  code
end

exit main(*ARGV)
