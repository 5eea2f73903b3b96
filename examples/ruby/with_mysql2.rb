# Counts with mysql2. examples/README.md has the settings, the output and the rules for errors.
require "mysql2"

UNKNOWN_COUNTER = 30003
NOT_ENOUGH = 30016
# The server has counted nothing. In Group Replication, add 1180. On Galera, a COMMIT with error 1180 may have counted.
REPEAT = [1213, 1205, 1020, 3101, 30021]
# The numbers of the driver without a connection.
LOST = [2002, 2003, 2006, 2013]
ATTEMPTS = 10

# It is unknown whether COMMIT has succeeded. Close the connection.
class MayHaveCounted < StandardError; end

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

# The number of an error of the server or of the driver, or nil.
def number(error)
  error.error_number if error.is_a?(Mysql2::Error)
end

def query(connection, sql, *arguments)
  connection.prepare(sql).execute(*arguments)
end

# Repeats a transaction after the errors of REPEAT. After any error but MayHaveCounted, nothing has counted.
def in_transaction(connection)
  attempt = 1
  begin
    committing = false
    connection.query("BEGIN")
    yield
    committing = true
    connection.query("COMMIT")
  rescue => error
    repeat = REPEAT.include?(number(error))
    raise MayHaveCounted, error.message if committing && !repeat
    # After error 1205, the transaction is still open.
    connection.query("ROLLBACK") unless LOST.include?(number(error))
    raise if !repeat || attempt == ATTEMPTS
    warn "repeat after error #{number(error)}"
    sleep rand * 0.01 * 2**attempt
    attempt += 1
    retry
  end
end

# Named counter and stock: an order, its count and its seats are committed together, or none of them.
def place_order(connection, seats, counter)
  in_transaction(connection) do
    query(connection, "INSERT INTO orders (seats) VALUES (?)", seats)
    # Last and in this order in all transactions, because each call locks a slot until COMMIT.
    query(connection, "CALL counter_increment(?)", counter)
    # If fewer are left, the call takes none and fails with NOT_ENOUGH.
    query(connection, "CALL bounded_counter_take(?, ?)", "seats", seats)
  end
end

def seats_left(connection)
  query(connection, "SELECT bounded_counter_get(?) AS total", "seats").first["total"]
end

# Named counter: one total.
def total(connection, counter)
  query(connection, "SELECT counter_get(?) AS total", counter).first["total"]
end

# Named counters: the totals of several in one query.
def totals(connection, *counters)
  places = (["?"] * counters.size).join(", ")
  sql = "SELECT counter_name, total FROM counter_totals WHERE counter_name IN (#{places}) ORDER BY counter_name"
  # The total of the view is a DECIMAL.
  query(connection, sql, *counters).to_h { |row| [row["counter_name"], row["total"].to_i] }
end

# Column: in place of UPDATE articles SET views = views + 1. Outside a transaction, the call commits by itself.
def view_article(connection, id)
  query(connection, "CALL articles_views_increment(?)", id)
end

# Column: the value up to the last roll-up, and the exact total.
def views(connection, id)
  query(connection, "SELECT views, articles_views_get(id) AS total FROM articles WHERE id = ?", id).first.values
end

# In memory: sums counts, and adds the sums to the counters once a second. A crash loses the sums of this second.
class Counts
  def initialize
    @sums = Hash.new(0)
    @mutex = Mutex.new
    @closing = ConditionVariable.new
    @closed = false
    @thread = Thread.new { run }
  end

  def count(counter, amount = 1)
    @mutex.synchronize { @sums[counter] += amount }
  end

  def flush
    sums = @mutex.synchronize { @sums.tap { @sums = Hash.new(0) } }
    return if sums.empty?
    # A new connection: the server closes one that is idle for long, and threads cannot share one.
    connection = connect
    in_transaction(connection) do
      # In the order of the names, so that two processes do not deadlock.
      sums.sort.each { |sum| query(connection, "CALL counter_add(?, ?)", *sum) }
    end
  rescue Mysql2::Error => error
    # Nothing has counted: the next flush adds the sums, unless one of the counters does not exist.
    sums.each { |counter, amount| count(counter, amount) } if number(error) != UNKNOWN_COUNTER
    raise
  ensure
    connection&.close
  end

  def close
    @mutex.synchronize do
      @closed = true
      @closing.signal
    end
    @thread.join
    flush
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
      rescue Mysql2::Error, MayHaveCounted => error
        warn "flush failed: #{error.message}"
      end
    end
  end
end

def main(counter = "orders")
  connection = connect
  place_order(connection, 2, counter)
  puts "orders: #{total(connection, counter)}"
  puts "seats left: #{seats_left(connection)}"

  view_article(connection, 1)
  column, total = views(connection, 1)
  puts "views: #{total} (#{column} in the column)"

  counts = Counts.new
  1000.times do |impression|
    counts.count("impressions")
    counts.count("clicks") if impression % 10 == 0
  end
  counts.close
  totals(connection, "clicks", "impressions").each { |name, count| puts "#{name}: #{count}" }
  0
rescue MayHaveCounted, Mysql2::Error => error
  meaning, code =
    case number(error)
    when nil then ["may have counted", 4]
    when UNKNOWN_COUNTER then ["unknown counter", 3]
    when NOT_ENOUGH then ["sold out", 5]
    when *LOST then ["connection lost", 4]
    else raise
    end
  warn "#{meaning}: #{error.message}"
  code
end

exit main(*ARGV)
