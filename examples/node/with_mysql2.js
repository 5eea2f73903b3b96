// Counts with mysql2. examples/README.md has the settings, the output and the rules for errors.
'use strict';
const mysql = require('mysql2/promise');
const { setTimeout: sleep } = require('timers/promises');

const UNKNOWN_COUNTER = 30003;
// The server has counted nothing. In Group Replication, add 1180. On Galera, a COMMIT with error 1180 may have counted.
const REPEAT = [1213, 1205, 1020, 3101];
const ATTEMPTS = 10;

class ConnectionLost extends Error {}

// The connection cannot be used any more. After an error of the server, it can.
const isLost = (error) => error.fatal === true;

const settings = {
  host: process.env.SLOTTED_HOST,
  port: Number(process.env.SLOTTED_PORT),
  user: process.env.SLOTTED_USER,
  password: process.env.SLOTTED_PASSWORD,
  database: process.env.SLOTTED_DATABASE,
  // A BIGINT above 2^53 arrives as a string instead of a rounded number.
  supportBigNumbers: true,
  // caching_sha2_password without TLS: the driver fetches the public key of the server. With TLS:
  // ssl: { ca: fs.readFileSync('ca.pem'), verifyIdentity: true }
};

// Executes work in a transaction, and repeats the transaction if the server has rolled it back.
async function inTransaction(connection, work) {
  for (let attempt = 1; ; attempt++) {
    let committing = false;
    try {
      await connection.beginTransaction();
      const result = await work();
      committing = true;
      await connection.commit();
      return result;
    } catch (error) {
      if (isLost(error)) {
        const counted = committing ? 'may have counted' : 'has not counted';
        throw new ConnectionLost(`the transaction ${counted}: ${error.message}`);
      }
      // After error 1205, the transaction is still open.
      await connection.rollback();
      if (!REPEAT.includes(error.errno) || attempt === ATTEMPTS) throw error;
      console.error(`repeat after error ${error.errno}`);
      await sleep(Math.random() * 10 * 2 ** attempt);
    }
  }
}

// All statements of a transaction need one connection: with a pool, take it with getConnection().
const placeOrder = (connection, item, counter) =>
  inTransaction(connection, async () => {
    await connection.execute('INSERT INTO orders (item) VALUES (?)', [item]);
    // Last, because the slot stays locked until COMMIT.
    await connection.execute('CALL counter_increment(?)', [counter]);
  });

async function total(connection, counter) {
  const [rows] = await connection.execute('SELECT counter_get(?) AS total', [counter]);
  return rows[0].total;
}

async function totals(connection, counters) {
  // query() expands the array. With execute(), the query returns no row.
  const [rows] = await connection.query(
    'SELECT counter_name, total FROM counter_totals WHERE counter_name IN (?)', [counters]);
  return new Map(rows.map((row) => [row.counter_name, row.total]));
}

// Sums counts in memory, and adds the sums to the counters once a second. A crash loses the sums of this second.
class Counts {
  constructor() {
    this.sums = new Map();
    this.timer = setInterval(() => {
      this.flushing = this.flush().catch((error) => console.error(`flush failed: ${error.message}`));
    }, 1000);
  }

  count(counter, amount = 1) {
    this.sums.set(counter, (this.sums.get(counter) ?? 0) + amount);
  }

  async flush() {
    const sums = this.sums;
    this.sums = new Map();
    if (sums.size === 0) return;
    let connection;
    let committing = false;
    try {
      // A new connection: the server closes one that is idle for long.
      connection = await mysql.createConnection(settings);
      // One transaction: all sums count, or none. In the order of the names, so that two processes do not deadlock.
      await connection.beginTransaction();
      for (const sum of [...sums].sort()) await connection.execute('CALL counter_add(?, ?)', sum);
      committing = true;
      await connection.commit();
    } catch (error) {
      // If the connection is lost in COMMIT, the sums may have counted.
      if (REPEAT.includes(error.errno) || (!committing && error.errno !== UNKNOWN_COUNTER)) {
        sums.forEach((amount, counter) => this.count(counter, amount));
      }
      throw error;
    } finally {
      connection?.destroy();
    }
  }

  async close() {
    clearInterval(this.timer);
    await this.flushing;
    await this.flush();
  }
}

async function main(counter = 'orders') {
  let connection;
  try {
    connection = await mysql.createConnection(settings);
    await placeOrder(connection, 'a book', counter);
    console.log(`total of the counter: ${await total(connection, counter)}`);

    const counts = new Counts();
    for (let view = 0; view < 1000; view++) {
      counts.count('views');
      if (view % 10 === 0) counts.count('clicks');
    }
    await counts.close();
    const read = await totals(connection, ['views', 'clicks']);
    for (const name of [...read.keys()].sort()) console.log(name, read.get(name));
  } catch (error) {
    if (error.errno === UNKNOWN_COUNTER) {
      console.error(`unknown counter: ${error.message}`);
      process.exitCode = 3;
    } else if (error instanceof ConnectionLost || isLost(error)) {
      console.error(`connection lost: ${error.message}`);
      process.exitCode = 4;
    } else {
      throw error;
    }
  } finally {
    connection?.destroy();
  }
}

main(...process.argv.slice(2));
