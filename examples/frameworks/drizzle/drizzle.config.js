'use strict';
const { env } = process;

module.exports = {
  dialect: 'mysql',
  schema: './schema.js',
  dbCredentials: {
    host: env.SLOTTED_HOST, port: Number(env.SLOTTED_PORT), user: env.SLOTTED_USER, password: env.SLOTTED_PASSWORD,
    database: env.SLOTTED_DATABASE,
  },
  // push leaves the table of the slots alone. Views belong into schema.js: if the filter excludes one, push fails.
  tablesFilter: ['!articles_views'],
};
