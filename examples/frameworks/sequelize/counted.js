// A column that is counted by the routines of `slotted install --column`. Copy this file.
//
//   views: COUNTER                              the column, in define()
//   const views = counted(Article, 'views')     after it
//   await views.increment(id, { transaction })  counts, in the transaction or without one
//   await views.totals(ids)                     the exact totals of a page, by ID
'use strict';
const { readFileSync } = require('node:fs');
const { setTimeout: sleep } = require('node:timers/promises');
const { DataTypes, QueryTypes } = require('sequelize');

// The total up to the last roll-up. The application does not write it.
const COUNTER = {
  type: DataTypes.BIGINT, allowNull: false, defaultValue: 0,
  set() { throw new Error('this column is counted'); },
};

// Options are those of sequelize.query().
function counted(model, column) {
  const name = `${model.tableName}_${column}`;
  const query = (sql, replacements, options) => model.sequelize.query(sql, { ...options, replacements });
  const calls = {
    increment: (id, options) => query(`CALL ${name}_increment(?)`, [id], options),
    add: (id, amount, options) => query(`CALL ${name}_add(?, ?)`, [id, amount], options),
    reset: (id, total, options) => query(`CALL ${name}_reset(?, ?)`, [id, total], options),
    delete: (id, options) => query(`CALL ${name}_delete(?)`, [id], options),
    // Moves the counts into the column, outside a transaction, every few seconds.
    rollup: () => query(`CALL ${name}_rollup(NULL)`),
    // With the IDs of a page: on MySQL, a join would compute the totals of all rows.
    totals: async (ids, options) => {
      const sql = `SELECT id, total FROM ${name}_totals WHERE id IN (?)`;
      const rows = ids.length === 0 ? [] : await query(sql, [ids], { ...options, type: QueryTypes.SELECT });
      return new Map(rows.map(({ id, total }) => [id, total]));
    },
  };
  // The counts of a deleted row are deleted with it, also of rows that Model.destroy() deletes.
  model.afterDestroy(({ id }, { transaction }) => calls.delete(id, { transaction }));
  model.beforeBulkDestroy((options) => { options.individualHooks = true; });
  return calls;
}

// A step of a migration. A transaction sends all statements on one connection.
const execute = (file) => ({ context }) => context.sequelize.transaction(async (transaction) => {
  for (const statement of JSON.parse(readFileSync(file))) await context.sequelize.query(statement, { transaction });
});

// The parent is the error of the driver. Its errno is the number: those of the package begin at 30000. A lost connection has none.
const isLost = (error) => error.parent?.fatal === true;

// Repeats a transaction that the server has rolled back.
async function repeated(sequelize, work, attempts = 10) {
  for (;;) {
    try {
      return await sequelize.transaction(work);
    } catch (error) {
      if (![1213, 1205, 1020, 3101].includes(error.parent?.errno) || --attempts === 0) throw error;
      await sleep(Math.random() * 100);
    }
  }
}

module.exports = { COUNTER, counted, execute, isLost, repeated };
