// The tests of an application with articles, whose views are counted.
'use strict';
const assert = require('node:assert/strict');
const { execFileSync } = require('node:child_process');
const { after, beforeEach, describe, test } = require('node:test');
const { TransactionRollbackError, desc, eq, inArray, sql } = require('drizzle-orm');
const { drizzle } = require('drizzle-orm/mysql2');
const mysql = require('mysql2/promise');
const { counted, isLost, repeated } = require('./counted.js');
const { articles, articleTotals } = require('./schema.js');

const { env } = process;
const pool = mysql.createPool({
  host: env.SLOTTED_HOST, port: Number(env.SLOTTED_PORT), user: env.SLOTTED_USER, password: env.SLOTTED_PASSWORD,
  database: env.SLOTTED_DATABASE,
  supportBigNumbers: true,
});
const db = drizzle(pool);

const views = counted('articles', 'views');

const deleteArticle = (id) => repeated(db, async (tx) => {
  await tx.delete(articles).where(eq(articles.id, id));
  await views.delete(tx, id);
});

after(() => pool.end());

const total = async (id, tx = db) => (await tx.select().from(articleTotals).where(eq(articleTotals.id, id)))[0].total;
const slots = async (tx = db) => (await tx.execute(sql`SELECT * FROM articles_views`))[0];

const truncate = async () => {
  await db.execute(sql`TRUNCATE TABLE ${articles}`);
  // Otherwise the new rows have the counts of the old ones.
  await db.execute(sql`TRUNCATE TABLE articles_views`);
};

describe('tests that roll back', () => {
  const rolledBack = (name, work) => test(name, () => assert.rejects(db.transaction(async (tx) => {
    await work(tx);
    tx.rollback();
  }), TransactionRollbackError));

  rolledBack('views are counted', async (tx) => {
    const [{ id }] = await tx.insert(articles).values({ title: 'One' }).$returningId();
    await views.increment(tx, id);
    await views.add(tx, id, 4);
    assert.equal(await total(id, tx), 5);
    await views.reset(tx, id, 2);
    assert.equal(await total(id, tx), 2);
  });

  rolledBack('nothing is left of the other test', async (tx) => {
    assert.equal(await tx.$count(articles), 0);
    assert.deepEqual(await slots(tx), []);
  });
});

describe('tests that truncate', () => {
  beforeEach(async () => {
    await truncate();
    await db.insert(articles).values([{ title: 'One' }, { title: 'Two' }, { title: 'Three' }]);
  });

  test('a transaction counts, and a rollback does not', async () => {
    await repeated(db, async (tx) => {
      await tx.update(articles).set({ title: 'Read' }).where(eq(articles.id, 1));
      await views.increment(tx, 1);
    });
    const work = async (tx) => {
      await views.increment(tx, 1);
      throw new Error('no');
    };
    await assert.rejects(repeated(db, work), /no/);
    assert.equal(await total(1), 1);
  });

  test('a list is sorted by the column and has exact totals', async () => {
    await Promise.all([1, 2, 2, 3, 3, 3].map((id) => views.increment(db, id)));
    await views.rollup(db);
    await views.add(db, 3, 10);
    const page = await db.select().from(articles).orderBy(desc(articles.views)).limit(2);
    const totals = await db.select().from(articleTotals).where(inArray(articleTotals.id, page.map(({ id }) => id)));
    assert.deepEqual(page.map(({ id, views }) => [id, views]), [[3, 3], [2, 2]]);
    assert.deepEqual(totals.map(({ id, total }) => [id, total]).sort(), [[2, 2], [3, 13]]);
  });

  test('an update writes only the columns that it names', async () => {
    await views.add(db, 1, 2);
    await views.rollup(db);
    await db.update(articles).set({ title: 'New' }).where(eq(articles.id, 1));
    await db.insert(articles).values({ id: 1, title: 'Newer' }).onDuplicateKeyUpdate({ set: { title: 'Newer' } });
    assert.deepEqual(await db.select().from(articles).where(eq(articles.id, 1)), [{ id: 1, title: 'Newer', views: 2 }]);
  });

  test('a deleted row has no counts', async () => {
    await views.increment(db, 1);
    await deleteArticle(1);
    assert.deepEqual(await slots(), []);
  });

  test('an error of a routine has a number', async () => {
    await assert.rejects(views.increment(db, null), (error) => error.cause.errno === 1048);
  });

  test('a deadlock is repeated', async () => {
    // In the first attempts, each transaction has changed a row before it waits for the other one.
    const errors = [];
    let attempts = 0, meet;
    const met = new Promise((resolve) => { meet = resolve; });
    const change = (tx, id) => tx.update(articles).set({ title: 'Changed' }).where(eq(articles.id, id));
    await Promise.all([[1, 2], [2, 1]].map(([first, second]) => repeated(db, async (tx) => {
      await change(tx, first);
      await views.increment(tx, first);
      if (++attempts === 2) meet();
      await met;
      await change(tx, second).catch((error) => { errors.push(error.cause.errno); throw error; });
    })));
    assert.deepEqual(errors, [1213]);
    assert.deepEqual([await total(1), await total(2)], [1, 1]);
  });

  test('a lost connection has not counted', async () => {
    await assert.rejects(repeated(db, async (tx) => {
      await views.increment(tx, 1);
      const [[{ id }]] = await tx.execute(sql`SELECT CONNECTION_ID() AS id`);
      await db.execute(sql`KILL ${id}`);
      await views.increment(tx, 1);
    }), isLost);
    assert.equal(await total(1), 0);
  });
});

describe('the schema', () => {
  test('push leaves the counts', async () => {
    await truncate();
    await db.insert(articles).values({ title: 'Kept' });
    await views.add(db, 1, 3);
    const objects = async () => (await db.execute(sql`SHOW TABLES`))[0];
    const [before, [[{ version }]]] = [await objects(), await db.execute(sql`SELECT VERSION() AS version`)];
    // On MariaDB, push truncates the tables of the application.
    if (!version.includes('MariaDB')) execFileSync('drizzle-kit', ['push', '--force']);
    assert.deepEqual(await objects(), before);
    assert.equal(await total(1), 3);
  });
});
