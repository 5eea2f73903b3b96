// The tests of an application with articles, whose views are counted.
'use strict';
const assert = require('node:assert/strict');
const { after, afterEach, before, beforeEach, describe, test } = require('node:test');
const { DataTypes, QueryTypes, Sequelize } = require('sequelize');
const { SequelizeStorage, Umzug } = require('umzug');
const { COUNTER, counted, execute, isLost, repeated } = require('./counted.js');

const { env } = process;
const connect = () => new Sequelize(env.SLOTTED_DATABASE, env.SLOTTED_USER, env.SLOTTED_PASSWORD, {
  dialect: 'mysql', host: env.SLOTTED_HOST, port: env.SLOTTED_PORT, logging: false,
});
const sequelize = connect();

const Article = sequelize.define('Article', {
  id: { type: DataTypes.BIGINT, autoIncrement: true, primaryKey: true },
  title: { type: DataTypes.STRING(100), allowNull: false },
  views: COUNTER,
}, { tableName: 'articles', timestamps: false, indexes: [{ fields: ['views'] }] });
const views = counted(Article, 'views');

async function migrate() {
  // SequelizeStorage defines a model here. In the other instance, sync({ force: true }) would forget the migrations.
  const own = connect();
  await new Umzug({
    context: own.getQueryInterface(),
    storage: new SequelizeStorage({ sequelize: own }),
    migrations: [
      {
        name: '1-articles',
        up: async ({ context }) => {
          await context.createTable('articles', Article.getAttributes());
          await context.addIndex('articles', ['views']);
        },
        down: ({ context }) => context.dropTable('articles'),
      },
      {
        name: '2-articles-views',
        up: execute('sql/slotted_counters/up.json'),
        down: execute('sql/slotted_counters/down.json'),
      },
    ],
  }).up();
  await own.close();
}

before(migrate);
after(() => sequelize.close());

const total = async (id, options) => (await views.totals([id], options)).get(id);
const slots = (options) => sequelize.query('SELECT * FROM articles_views', { ...options, type: QueryTypes.SELECT });

const truncate = async () => {
  await sequelize.sync({ force: true });
  // Otherwise the new rows have the counts of the old ones.
  await sequelize.query('TRUNCATE TABLE articles_views');
};

describe('tests that roll back', () => {
  let transaction;
  beforeEach(async () => { transaction = await sequelize.transaction(); });
  afterEach(() => transaction.rollback());

  test('views are counted', async () => {
    const { id } = await Article.create({ title: 'One' }, { transaction });
    await views.increment(id, { transaction });
    await views.add(id, 4, { transaction });
    assert.equal(await total(id, { transaction }), 5);
    await views.reset(id, 2, { transaction });
    assert.equal(await total(id, { transaction }), 2);
  });

  test('nothing is left of the other test', async () => {
    assert.equal(await Article.count({ transaction }), 0);
    assert.deepEqual(await slots({ transaction }), []);
  });
});

describe('tests that truncate', () => {
  beforeEach(async () => {
    await truncate();
    await Article.bulkCreate([{ title: 'One' }, { title: 'Two' }, { title: 'Three' }]);
  });

  test('a transaction counts, and a rollback does not', async () => {
    await repeated(sequelize, async (transaction) => {
      await Article.update({ title: 'Read' }, { where: { id: 1 }, transaction });
      await views.increment(1, { transaction });
    });
    const work = async (transaction) => {
      await views.increment(1, { transaction });
      throw new Error('no');
    };
    await assert.rejects(repeated(sequelize, work), /no/);
    assert.equal(await total(1), 1);
  });

  test('a list is sorted by the column and has exact totals', async () => {
    await Promise.all([1, 2, 2, 3, 3, 3].map((id) => views.increment(id)));
    await views.rollup();
    await views.add(3, 10);
    const page = await Article.findAll({ order: [['views', 'DESC']], limit: 2 });
    const totals = await views.totals(page.map(({ id }) => id));
    assert.deepEqual(page.map(({ id, views }) => [id, views, totals.get(id)]), [[3, 3, 13], [2, 2, 2]]);
  });

  test('the column is not written', async () => {
    const article = await Article.findByPk(1);
    await views.add(1, 2);
    await views.rollup();
    await article.update({ title: 'New' });
    await Article.upsert({ id: 1, title: 'Newer' });
    assert.throws(() => { article.views = 0; }, /counted/);
    await assert.rejects(Article.update({ views: 0 }, { where: { id: 1 } }), /counted/);
    assert.deepEqual((await Article.findByPk(1)).get(), { id: 1, title: 'Newer', views: 2 });
  });

  test('a deleted row has no counts', async () => {
    for (const id of [1, 2]) await views.increment(id);
    await (await Article.findByPk(1)).destroy();
    await Article.destroy({ where: { id: 2 } });
    assert.deepEqual(await slots(), []);
  });

  test('an error of the package has a number', async () => {
    await assert.rejects(views.increment(null), (error) => error.parent.errno === 30009);
  });

  test('a deadlock is repeated', async () => {
    // In the first attempts, each transaction has changed a row before it waits for the other one.
    const errors = [];
    let attempts = 0, meet;
    const met = new Promise((resolve) => { meet = resolve; });
    const change = (transaction, id) => Article.update({ title: 'Changed' }, { where: { id }, transaction });
    await Promise.all([[1, 2], [2, 1]].map(([first, second]) => repeated(sequelize, async (transaction) => {
      await change(transaction, first);
      await views.increment(first, { transaction });
      if (++attempts === 2) meet();
      await met;
      await change(transaction, second).catch((error) => { errors.push(error.parent.errno); throw error; });
    })));
    assert.deepEqual(errors, [1213]);
    assert.deepEqual([await total(1), await total(2)], [1, 1]);
  });

  test('a lost connection has not counted', async () => {
    await assert.rejects(repeated(sequelize, async (transaction) => {
      await views.increment(1, { transaction });
      const [[{ id }]] = await sequelize.query('SELECT CONNECTION_ID() AS id', { transaction });
      await sequelize.query(`KILL ${id}`);
      await views.increment(1, { transaction });
    }), isLost);
    assert.equal(await total(1), 0);
  });
});

describe('the schema', () => {
  test('sync leaves the counts', async () => {
    await truncate();
    await Article.create({ title: 'Kept' });
    await views.add(1, 3);
    await sequelize.sync();
    await sequelize.sync({ alter: true });
    assert.equal(await total(1), 3);
  });
});
