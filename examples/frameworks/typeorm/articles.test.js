// The tests of an application with articles, whose views are counted.
'use strict';
const assert = require('node:assert/strict');
const { after, afterEach, before, beforeEach, describe, test } = require('node:test');
const { DataSource, EntitySchema, In } = require('typeorm');
const { COUNTER, counted, isLost, repeated, statements } = require('./counted.js');

const Article = new EntitySchema({
  name: 'Article',
  tableName: 'articles',
  columns: {
    id: { type: 'bigint', primary: true, generated: true },
    title: { type: 'varchar', length: 100 },
    views: COUNTER,
  },
  indices: [{ name: 'views', columns: ['views'] }],
});
const views = counted(Article, 'articles', 'views');

class Articles1700000000000 {
  up = (runner) => runner.query(`CREATE TABLE articles (
    id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY, title varchar(100) NOT NULL, views bigint NOT NULL DEFAULT 0, KEY views (views)
  ) ENGINE = InnoDB`);
  down = (runner) => runner.query('DROP TABLE articles');
}

class ArticlesViews1800000000000 extends statements('sql/slotted_counters') {}

const { env } = process;
const source = new DataSource({
  type: 'mysql',
  host: env.SLOTTED_HOST, port: Number(env.SLOTTED_PORT), username: env.SLOTTED_USER, password: env.SLOTTED_PASSWORD,
  database: env.SLOTTED_DATABASE,
  // A BIGINT is a number, and above 2^53 a string. Without this line, it is always a string.
  bigNumberStrings: false,
  // Not synchronize, which creates no counters.
  migrationsRun: true,
  entities: [Article, views.Total],
  subscribers: [views.Subscriber],
  migrations: [Articles1700000000000, ArticlesViews1800000000000],
});

const articles = source.getRepository.bind(source, Article);
const total = async (id, manager = source.manager) => (await manager.findOneBy(views.Total, { id })).total;

before(() => source.setOptions({ dropSchema: true }).initialize());
after(() => source.destroy());

describe('tests that roll back', () => {
  let runner, manager;
  beforeEach(async () => {
    runner = source.createQueryRunner();
    await runner.startTransaction();
    ({ manager } = runner);
  });
  afterEach(async () => {
    await runner.rollbackTransaction();
    await runner.release();
  });

  test('views are counted', async () => {
    const { id } = await manager.save(Article, { title: 'One' });
    await views.increment(manager, id);
    await views.add(manager, id, 4);
    assert.equal(await total(id, manager), 5);
    await views.reset(manager, id, 2);
    assert.equal(await total(id, manager), 2);
  });

  test('nothing is left of the other test', async () => {
    assert.deepEqual(await manager.find(Article), []);
    assert.deepEqual(await manager.query('SELECT * FROM articles_views'), []);
  });
});

describe('tests that truncate', () => {
  beforeEach(async () => {
    await articles().clear();
    // Otherwise the new rows have the counts of the old ones.
    await source.query('TRUNCATE TABLE articles_views');
    await articles().save([{ title: 'One' }, { title: 'Two' }, { title: 'Three' }]);
  });

  test('a transaction counts, and a rollback does not', async () => {
    await repeated(source, async (manager) => {
      await manager.update(Article, { id: 1 }, { title: 'Read' });
      await views.increment(manager, 1);
    });
    const work = async (manager) => {
      await views.increment(manager, 1);
      throw new Error('no');
    };
    await assert.rejects(repeated(source, work), /no/);
    assert.equal(await total(1), 1);
  });

  test('a list is sorted by the column and has exact totals', async () => {
    await Promise.all([1, 2, 2, 3, 3, 3].map((id) => views.increment(source, id)));
    await views.rollup(source);
    await views.add(source, 3, 10);
    const page = await articles().find({ order: { views: 'DESC' }, take: 2 });
    const totals = await source.manager.findBy(views.Total, { id: In(page.map(({ id }) => id)) });
    assert.deepEqual(page.map(({ id, views }) => [id, views]), [[3, 3], [2, 2]]);
    assert.deepEqual(totals.map(({ id, total }) => [id, total]).sort(), [[2, 2], [3, 13]]);
  });

  test('the column is not written', async () => {
    const article = await articles().findOneBy({ id: 1 });
    await views.add(source, 1, 2);
    await views.rollup(source);
    await articles().save({ ...article, title: 'New', views: 0 });
    await articles().update({ id: 1 }, { title: 'Newer', views: 0 });
    assert.deepEqual(await articles().findOneBy({ id: 1 }), { id: 1, title: 'Newer', views: 2 });
  });

  test('a deleted row has no counts', async () => {
    await views.increment(source, 1);
    await articles().remove(await articles().findOneBy({ id: 1 }));
    assert.deepEqual(await source.query('SELECT * FROM articles_views'), []);
  });

  test('an error of the package has a number', async () => {
    await assert.rejects(views.increment(source, null), { errno: 30009 });
  });

  test('a deadlock is repeated', async () => {
    // In the first attempts, each transaction has changed a row before it waits for the other one.
    const errors = [];
    let attempts = 0, meet;
    const met = new Promise((resolve) => { meet = resolve; });
    const change = (manager, id) => manager.update(Article, { id }, { title: 'Changed' });
    await Promise.all([[1, 2], [2, 1]].map(([first, second]) => repeated(source, async (manager) => {
      await change(manager, first);
      await views.increment(manager, first);
      if (++attempts === 2) meet();
      await met;
      await change(manager, second).catch((error) => { errors.push(error.errno); throw error; });
    })));
    assert.deepEqual(errors, [1213]);
    assert.deepEqual([await total(1), await total(2)], [1, 1]);
  });

  test('a lost connection has not counted', async () => {
    await assert.rejects(repeated(source, async (manager) => {
      await views.increment(manager, 1);
      const [{ id }] = await manager.query('SELECT CONNECTION_ID() AS id');
      await source.query(`KILL ${id}`);
      await views.increment(manager, 1);
    }), isLost);
    assert.equal(await total(1), 0);
  });
});

describe('the schema', () => {
  test('dropSchema and synchronize leave the counters', async () => {
    await source.destroy();
    await source.initialize();
    const { id } = await articles().save({ title: 'Kept' });
    await views.add(source, id, 3);
    assert.deepEqual((await source.driver.createSchemaBuilder().log()).upQueries, []);
    await source.synchronize();
    assert.equal(await total(id), 3);
  });
});
