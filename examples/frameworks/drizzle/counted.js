// A column that is counted by the routines of `slotted install --column`. Copy this file.
//
//   const views = counted('articles', 'views')
//   await views.increment(tx, id)                         counts, in the transaction; without one, tx is the database
//   await tx.select().from(articleTotals).where(inArray(articleTotals.id, ids))    the exact totals of a page
'use strict';
const { setTimeout: sleep } = require('node:timers/promises');
const { sql } = require('drizzle-orm');

function counted(table, column) {
  const routine = (name) => sql.identifier(`${table}_${column}_${name}`);
  return {
    increment: (tx, id) => tx.execute(sql`CALL ${routine('increment')}(${id})`),
    add: (tx, id, amount) => tx.execute(sql`CALL ${routine('add')}(${id}, ${amount})`),
    reset: (tx, id, total) => tx.execute(sql`CALL ${routine('reset')}(${id}, ${total})`),
    // In the transaction that deletes the row.
    delete: (tx, id) => tx.execute(sql`CALL ${routine('delete')}(${id})`),
    // Moves the counts into the column, outside a transaction, every few seconds.
    rollup: (db) => db.execute(sql`CALL ${routine('rollup')}(NULL)`),
  };
}

// The cause is the error of the driver. Its errno is the number: those of the package begin at 30000. A lost connection has none.
const isLost = (error) => (error.cause ?? error).fatal === true;

// Repeats a transaction that the server has rolled back. 1305: a nested transaction that does not exist any more after error 1213.
async function repeated(db, work, attempts = 10) {
  for (;;) {
    try {
      return await db.transaction(work);
    } catch (error) {
      if (![1213, 1205, 1020, 1305, 3101, 30021].includes(error.cause?.errno) || --attempts === 0) throw error;
      await sleep(Math.random() * 100);
    }
  }
}

module.exports = { counted, isLost, repeated };
