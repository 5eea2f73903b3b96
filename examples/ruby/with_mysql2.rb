# Counts with mysql2. examples/README.md has the settings, the output and the rules for errors.
require "mysql2"

UNKNOWN_COUNTER = 30003
# The server has counted nothing. In Group Replication, add 1180. On Galera, a COMMIT with error 1180 may have counted.
REPEAT = [1213, 1205, 1020, 3101]
# The numbers of the driver without a connection.
LOST = [2002, 2003, 2006, 2013]
ATTEMPTS = 10

class ConnectionLost < StandardError; end

def lost?(error)
  LOST.include?(error.error_number)
end

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

# Executes the block in a transaction, and repeats the transaction if the server has rolled it back.
def in_transaction(connection)
  attempt = 1
  begin
    committing = false
    connection.query("BEGIN")
    result = yield
    committing = true
    connection.query("COMMIT")
    result
  rescue Mysql2::Error => error
    if lost?(error)
      raise ConnectionLost, "the transaction #{committing ? "may have counted" : "has not counted"}: #{error.message}"
    end
    # After error 1205, the transaction is still open.
    connection.query("ROLLBACK")
    raise if !REPEAT.include?(error.error_number) || attempt == ATTEMPTS
    warn "repeat after error #{error.error_number}"
    sleep rand * 0.01 * 2**attempt
    attempt += 1
    retry
  end
end

def place_order(connection, item, counter)
  in_transaction(connection) do
    connection.prepare("INSERT INTO orders (item) VALUES (?)").execute(item)
    # Last, because the slot stays locked until COMMIT.
    connection.prepare("CALL counter_increment(?)").execute(counter)
  end
end

def total(connection, counter)
  connection.prepare("SELECT counter_get(?) AS total").execute(counter).first["total"]
end

def totals(connection, counters)
  places = (["?"] * counters.size).join(", ")
  rows = connection.prepare("SELECT counter_name, total FROM counter_totals WHERE counter_name IN (#{places})").execute(*counters)
  # The total of the view is a DECIMAL.
  rows.to_h { |row| [row["counter_name"], row["total"].to_i] }
end

# Sums counts in memory, and adds the sums to the counters once a second. A crash loses the sums of this second.
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
    committing = false
    begin
      # A new connection: the server closes one that is idle for long, and threads cannot share one.
      connection = connect
      # One transaction: all sums count, or none. In the order of the names, so that two processes do not deadlock.
      connection.query("START TRANSACTION")
      sums.sort.each { |sum| connection.prepare("CALL counter_add(?, ?)").execute(*sum) }
      committing = true
      connection.query("COMMIT")
    rescue Mysql2::Error => error
      # If the connection is lost in COMMIT, the sums may have counted.
      number = error.error_number
      kept = REPEAT.include?(number) || (!committing && number != UNKNOWN_COUNTER)
      sums.each { |counter, amount| count(counter, amount) } if kept
      raise
    ensure
      connection&.close
    end
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
      rescue Mysql2::Error => error
        warn "flush failed: #{error.message}"
      end
    end
  end
end

def main(counter = "orders")
  connection = connect
  place_order(connection, "a book", counter)
  puts "total of the counter: #{total(connection, counter)}"

  counts = Counts.new
  1000.times do |view|
    counts.count("views")
    counts.count("clicks") if view % 10 == 0
  end
  counts.close
  totals(connection, ["views", "clicks"]).sort.each { |name, count| puts "#{name} #{count}" }
  0
rescue ConnectionLost => error
  warn "connection lost: #{error.message}"
  4
rescue Mysql2::Error => error
  if error.error_number == UNKNOWN_COUNTER
    warn "unknown counter: #{error.message}"
    3
  elsif lost?(error)
    warn "connection lost: #{error.message}"
    4
  else
    raise
  end
end

exit main(*ARGV)
