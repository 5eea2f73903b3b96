// The tables and views for drizzle-kit and for queries.
'use strict';
const { bigint, index, mysqlTable, mysqlView, varchar } = require('drizzle-orm/mysql-core');

exports.articles = mysqlTable('articles', {
  id: bigint({ mode: 'number' }).autoincrement().primaryKey(),
  title: varchar({ length: 100 }).notNull(),
  views: bigint({ mode: 'number' }).notNull().default(0),
}, (table) => [index('views').on(table.views)]);

// The exact totals. Select them by the IDs of a page: on MySQL, a join computes the totals of all articles.
exports.articleTotals = mysqlView('articles_views_totals', {
  id: bigint({ mode: 'number' }).notNull(),
  total: bigint({ mode: 'number' }).notNull(),
}).existing();
// push drops a view that is not here.
exports.articlePackage = mysqlView('articles_views_package', {}).existing();
