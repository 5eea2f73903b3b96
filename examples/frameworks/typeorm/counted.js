// A column that is counted by the routines of `slotted install --column`. Copy this file.
//
//   views: COUNTER                     the column, in the EntitySchema; in a class, @Column(COUNTER)
//   const views = counted(Article, 'articles', 'views')
//                                      views.Total is an entity and views.Subscriber a subscriber of the DataSource
//   await views.increment(manager, id) counts, in the transaction of the manager; without one, it is the DataSource
//   await manager.findBy(views.Total, { id: In(ids) })    the exact totals of a page
'use strict';
const { readFileSync } = require('node:fs');
const { setTimeout: sleep } = require('node:timers/promises');
const { EntitySchema, EventSubscriber } = require('typeorm');

// The total up to the last roll-up. TypeORM does not write it.
const COUNTER = {
  type: 'bigint', default: 0,
  update: false,
};

function counted(entity, table, column) {
  const name = `${table}_${column}`;

  // Find it by the IDs of a page: on MySQL, a join computes the totals of all rows.
  const Total = new EntitySchema({
    name: `${name}_totals`,
    type: 'view',
    synchronize: false,
    columns: { id: { type: 'bigint', primary: true }, total: { type: 'bigint' } },
  });
  const calls = {
    increment: (manager, id) => manager.query(`CALL ${name}_increment(?)`, [id]),
    add: (manager, id, amount) => manager.query(`CALL ${name}_add(?, ?)`, [id, amount]),
    reset: (manager, id, total) => manager.query(`CALL ${name}_reset(?, ?)`, [id, total]),
    delete: (manager, id) => manager.query(`CALL ${name}_delete(?)`, [id]),
    // Moves the counts into the column, outside a transaction, every few seconds.
    rollup: (source) => source.query(`CALL ${name}_rollup(NULL)`),
  };
  // remove() deletes the counts with the row. delete() does not: it has no entity.
  class Subscriber {
    listenTo() { return entity.options?.name ?? entity; }
    afterRemove({ entityId, manager }) { return entityId && calls.delete(manager, entityId); }
  }
  EventSubscriber()(Subscriber);
  return { ...calls, Total, Subscriber };
}

// The base of a migration with the statements of a folder.
const statements = (folder) => class {
  up = (runner) => this.execute(runner, 'up.json');
  down = (runner) => this.execute(runner, 'down.json');
  async execute(runner, file) {
    for (const statement of JSON.parse(readFileSync(`${folder}/${file}`))) await runner.query(statement);
  }
};

// The errno of an error is its number: those of the package begin at 30000. A lost connection has none.
const isLost = (error) => error.fatal === true;

// Repeats a transaction that the server has rolled back.
async function repeated(source, work, attempts = 10) {
  for (;;) {
    try {
      return await source.transaction(work);
    } catch (error) {
      if (![1213, 1205, 1020, 3101].includes(error.errno) || --attempts === 0) throw error;
      await sleep(Math.random() * 100);
    }
  }
}

module.exports = { COUNTER, counted, isLost, repeated, statements };
