// Counts with mysql2. A sale needs inTransaction, placeOrder and seatsLeft: each order takes its seats once, even while sessions
// are killed. viewArticle and views count in a column, Counts counts in memory. To run it: examples/README.md.
'use strict';
const { randomUUID } = require('crypto');
const mysql = require('mysql2/promise');
const { setTimeout: sleep } = require('timers/promises');

const UNKNOWN_COUNTER = 30003;
const NOT_ENOUGH = 30016;
const DUPLICATE = 1062;
// 1305: a savepoint that does not exist any more, because error 1213 has rolled back the whole transaction.
// 1105, 1317, 1329: KILL QUERY. 1969: max_statement_time of MariaDB.
const REPEAT = [1020, 1105, 1180, 1205, 1213, 1305, 1317, 1329, 1969, 3101, 30021];
const ATTEMPTS = 10;

// The connection cannot be used any more, also after KILL (1927, 3169). After another error of the server, it can.
const isLost = (error) => error.fatal === true || [1927, 3169].includes(error.errno);

const pool = mysql.createPool({
  host: process.env.SLOTTED_HOST,
  port: Number(process.env.SLOTTED_PORT),
  user: process.env.SLOTTED_USER,
  password: process.env.SLOTTED_PASSWORD,
  database: process.env.SLOTTED_DATABASE,
  // A BIGINT above 2^53 arrives as a string instead of a rounded number.
  supportBigNumbers: true,
  // caching_sha2_password without TLS: the driver fetches the public key of the server. With TLS:
  // ssl: { ca: fs.readFileSync('ca.pem'), verifyIdentity: true }
});

// 32 hexadecimal digits.
const newRequest = () => randomUUID().replaceAll('-', '');

// Repeats a transaction after the errors of REPEAT, and on another connection after a lost one, whose COMMIT may have succeeded.
// So work begins with the INSERT of a unique request, and DUPLICATE means that an earlier attempt has counted.
async function inTransaction(work) {
  for (let attempt = 1; ; attempt++) {
    let connection;
    try {
      // All statements of a transaction need one connection of the pool.
      connection = await pool.getConnection();
      await connection.beginTransaction();
      await work(connection);
      return await connection.commit();
    } catch (error) {
      // After error 1205, the transaction is still open. A rollback fails if the connection is lost meanwhile.
      if (isLost(error)) connection?.destroy();
      else await connection?.rollback().catch(() => connection.destroy());
      if (error.errno === DUPLICATE) return;
      if (!(REPEAT.includes(error.errno) || isLost(error)) || attempt === ATTEMPTS) throw error;
      console.error(`repeat after error ${error.errno ?? error.code}`);
      await sleep(Math.random() * 10 * 2 ** attempt);
    } finally {
      connection?.release();
    }
  }
}

// Named counter and stock: an order, its count and its seats are committed together, or none of them. An order that is sent again
// with the same request is the same order.
const placeOrder = (request, seats, counter) =>
  inTransaction(async (connection) => {
    await connection.execute('INSERT INTO orders (request, seats) VALUES (?, ?)', [request, seats]);
    // Last and in this order in all transactions, because each call locks a slot until COMMIT.
    await connection.execute('CALL counter_increment(?)', [counter]);
    // If fewer are left, the call takes none and fails with NOT_ENOUGH.
    await connection.execute('CALL bounded_counter_take(?, ?)', ['seats', seats]);
  });

async function seatsLeft() {
  const [[{ total }]] = await pool.execute('SELECT bounded_counter_get(?) AS total', ['seats']);
  return total;
}

// Named counter: one total.
async function total(counter) {
  const [[{ total }]] = await pool.execute('SELECT counter_get(?) AS total', [counter]);
  return total;
}

// Named counters: the totals of several in one query.
async function totals(...counters) {
  // query() expands the array. With execute(), the query returns no row.
  const sql = 'SELECT counter_name AS name, total FROM counter_totals WHERE counter_name IN (?) ORDER BY counter_name';
  const [rows] = await pool.query(sql, [counters]);
  return rows;
}

// Column: in place of UPDATE articles SET views = views + 1. Outside a transaction, the call commits by itself.
const viewArticle = (id) => pool.execute('CALL articles_views_increment(?)', [id]);

// Column: the value up to the last roll-up, and the exact total.
async function views(id) {
  const [[row]] = await pool.execute('SELECT views, articles_views_get(id) AS total FROM articles WHERE id = ?', [id]);
  return row;
}

// In memory: sums counts, and adds the sums to the counters once a second. A crash loses the sums of this second.
class Counts {
  constructor() {
    this.sums = new Map();
    // The operation and the sums of a flush that has not succeeded yet.
    this.batch = undefined;
    this.flushing = Promise.resolve();
    this.timer = setInterval(() => {
      const flushed = this.flushing.then(() => this.flush());
      this.flushing = flushed.catch((error) => console.error(`flush failed: ${error.message}`));
    }, 1000);
  }

  count(counter, amount = 1) {
    this.sums.set(counter, (this.sums.get(counter) ?? 0) + amount);
  }

  // After an error, the next flush repeats the operation, which counts once.
  async flush() {
    if (!this.batch && this.sums.size > 0) {
      this.batch = { operation: newRequest(), sums: [...this.sums].sort() };
      this.sums = new Map();
    }
    if (!this.batch) return;
    const { operation, sums } = this.batch;
    try {
      await inTransaction(async (connection) => {
        await connection.execute('INSERT INTO counter_operations (operation) VALUES (UNHEX(?))', [operation]);
        // In the order of the names, so that two processes do not deadlock.
        for (const sum of sums) await connection.execute('CALL counter_add(?, ?)', sum);
      });
      this.batch = undefined;
    } catch (error) {
      if (error.errno === UNKNOWN_COUNTER) this.batch = undefined;
      throw error;
    }
  }

  async close() {
    clearInterval(this.timer);
    await this.flushing;
    while (this.batch || this.sums.size > 0) await this.flush();
  }
}

async function main(counter = 'orders', orders = 1) {
  try {
    for (let order = 0; order < orders; order++) await placeOrder(newRequest(), 2, counter);
    console.log(`orders: ${await total(counter)}`);
    console.log(`seats left: ${await seatsLeft()}`);

    await viewArticle(1);
    const read = await views(1);
    console.log(`views: ${read.total} (${read.views} in the column)`);

    const counts = new Counts();
    for (let impression = 0; impression < 1000; impression++) {
      counts.count('impressions');
      if (impression % 10 === 0) counts.count('clicks');
    }
    await counts.close();
    for (const { name, total } of await totals('clicks', 'impressions')) console.log(`${name}: ${total}`);
  } catch (error) {
    const [meaning, code] =
      error.errno === UNKNOWN_COUNTER ? ['unknown counter', 3]
      : error.errno === NOT_ENOUGH ? ['sold out', 5]
      : isLost(error) ? ['connection lost', 4]
      : [];
    if (!meaning) throw error;
    console.error(`${meaning}: ${error.message}`);
    process.exitCode = code;
  } finally {
    await pool.end();
  }
}

main(...process.argv.slice(2));
