// Counts with mysql2. examples/README.md has the settings, the output and the rules for errors.
'use strict';
const mysql = require('mysql2/promise');
const { setTimeout: sleep } = require('timers/promises');

const UNKNOWN_COUNTER = 30003;
const NOT_ENOUGH = 30016;
// The server has counted nothing. In Group Replication, add 1180. On Galera, a COMMIT with error 1180 may have counted.
const REPEAT = [1213, 1205, 1020, 3101, 30021];
const ATTEMPTS = 10;

// It is unknown whether COMMIT has succeeded. Close the connection.
class MayHaveCounted extends Error {}

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

// Repeats a transaction after the errors of REPEAT. After any error but MayHaveCounted, nothing has counted.
// All its statements need one connection: with a pool, take it with getConnection().
async function inTransaction(connection, work) {
  for (let attempt = 1; ; attempt++) {
    let committing = false;
    try {
      await connection.beginTransaction();
      await work();
      committing = true;
      return await connection.commit();
    } catch (error) {
      const repeat = REPEAT.includes(error.errno);
      if (committing && !repeat) throw new MayHaveCounted(error.message, { cause: error });
      // After error 1205, the transaction is still open.
      if (!isLost(error)) await connection.rollback();
      if (!repeat || attempt === ATTEMPTS) throw error;
      console.error(`repeat after error ${error.errno}`);
      await sleep(Math.random() * 10 * 2 ** attempt);
    }
  }
}

// Named counter and stock: an order, its count and its seats are committed together, or none of them.
const placeOrder = (connection, seats, counter) =>
  inTransaction(connection, async () => {
    await connection.execute('INSERT INTO orders (seats) VALUES (?)', [seats]);
    // Last and in this order in all transactions, because each call locks a slot until COMMIT.
    await connection.execute('CALL counter_increment(?)', [counter]);
    // If fewer are left, the call takes none and fails with NOT_ENOUGH.
    await connection.execute('CALL bounded_counter_take(?, ?)', ['seats', seats]);
  });

async function seatsLeft(connection) {
  const [[{ total }]] = await connection.execute('SELECT bounded_counter_get(?) AS total', ['seats']);
  return total;
}

// Named counter: one total.
async function total(connection, counter) {
  const [[{ total }]] = await connection.execute('SELECT counter_get(?) AS total', [counter]);
  return total;
}

// Named counters: the totals of several in one query.
async function totals(connection, ...counters) {
  // query() expands the array. With execute(), the query returns no row.
  const sql = 'SELECT counter_name AS name, total FROM counter_totals WHERE counter_name IN (?) ORDER BY counter_name';
  const [rows] = await connection.query(sql, [counters]);
  return rows;
}

// Column: in place of UPDATE articles SET views = views + 1. Outside a transaction, the call commits by itself.
const viewArticle = (connection, id) => connection.execute('CALL articles_views_increment(?)', [id]);

// Column: the value up to the last roll-up, and the exact total.
async function views(connection, id) {
  const [[row]] = await connection.execute('SELECT views, articles_views_get(id) AS total FROM articles WHERE id = ?', [id]);
  return row;
}

// In memory: sums counts, and adds the sums to the counters once a second. A crash loses the sums of this second.
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
    try {
      // A new connection: the server closes one that is idle for long.
      connection = await mysql.createConnection(settings);
      await inTransaction(connection, async () => {
        // In the order of the names, so that two processes do not deadlock.
        for (const sum of [...sums].sort()) await connection.execute('CALL counter_add(?, ?)', sum);
      });
    } catch (error) {
      // Nothing has counted: the next flush adds the sums, unless one of the counters does not exist.
      if (!(error instanceof MayHaveCounted) && error.errno !== UNKNOWN_COUNTER) {
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
    await placeOrder(connection, 2, counter);
    console.log(`orders: ${await total(connection, counter)}`);
    console.log(`seats left: ${await seatsLeft(connection)}`);

    await viewArticle(connection, 1);
    const read = await views(connection, 1);
    console.log(`views: ${read.total} (${read.views} in the column)`);

    const counts = new Counts();
    for (let impression = 0; impression < 1000; impression++) {
      counts.count('impressions');
      if (impression % 10 === 0) counts.count('clicks');
    }
    await counts.close();
    for (const { name, total } of await totals(connection, 'clicks', 'impressions')) console.log(`${name}: ${total}`);
  } catch (error) {
    const [meaning, code] =
      error instanceof MayHaveCounted ? ['may have counted', 4]
      : error.errno === UNKNOWN_COUNTER ? ['unknown counter', 3]
      : error.errno === NOT_ENOUGH ? ['sold out', 5]
      : isLost(error) ? ['connection lost', 4]
      : [];
    if (!meaning) throw error;
    console.error(`${meaning}: ${error.message}`);
    process.exitCode = code;
  } finally {
    connection?.destroy();
  }
}

main(...process.argv.slice(2));
