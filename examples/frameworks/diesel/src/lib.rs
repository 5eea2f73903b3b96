//! Counts views of articles with Diesel. A migration has installed the package of the column, see the file `run`.

mod schema;

use std::collections::HashMap;
use std::env::var;
use std::thread::sleep;
use std::time::Duration;

use diesel::prelude::*;
use diesel::result::{DatabaseErrorKind, Error};
use diesel::sql_query;
use diesel::sql_types::BigInt;
use diesel_migrations::{FileBasedMigrations, MigrationHarness};

pub use schema::articles;

// The view, which has the exact totals. `diesel print-schema` prints no views. Not the function: on MySQL with a binary log, a function requires SUPER.
diesel::table! {
    articles_views_totals (id) {
        id -> BigInt,
        total -> BigInt,
    }
}

pub fn connect() -> MysqlConnection {
    let setting = |name: &str| var(format!("SLOTTED_{name}")).expect(name);
    let [user, password, host, port, database] =
        ["USER", "PASSWORD", "HOST", "PORT", "DATABASE"].map(setting);
    MysqlConnection::establish(&format!("mysql://{user}:{password}@{host}:{port}/{database}"))
        .expect("a connection")
}

/// In place of `diesel migration run`.
pub fn migrate(connection: &mut MysqlConnection) {
    let migrations = FileBasedMigrations::from_path("migrations").expect("migrations");
    connection
        .run_pending_migrations(migrations)
        .expect("a migration");
}

/// A row as it is changed. Without `views`: an old value would overwrite the counts of a roll-up.
#[derive(AsChangeset, Debug, HasQuery, Identifiable, PartialEq)]
pub struct Article {
    pub id: i64,
    pub title: String,
}

/// Counts in the transaction of the connection, which belongs to the caller.
pub fn increment(connection: &mut MysqlConnection, id: i64) -> QueryResult<()> {
    sql_query("CALL articles_views_increment(?)")
        .bind::<BigInt, _>(id)
        .execute(connection)?;
    Ok(())
}

pub fn add(connection: &mut MysqlConnection, id: i64, amount: i64) -> QueryResult<()> {
    sql_query("CALL articles_views_add(?, ?)")
        .bind::<BigInt, _>(id)
        .bind::<BigInt, _>(amount)
        .execute(connection)?;
    Ok(())
}

/// The exact total.
pub fn total(connection: &mut MysqlConnection, id: i64) -> QueryResult<i64> {
    articles_views_totals::table
        .find(id)
        .select(articles_views_totals::total)
        .first(connection)
}

/// Articles with their exact totals, in the order of the last roll-up. The view has the keys as constants: a join would compute
/// the totals of all articles on MySQL.
pub fn page(connection: &mut MysqlConnection, number: i64) -> QueryResult<Vec<(Article, i64)>> {
    let page = Article::query()
        .order(articles::views.desc())
        .limit(number)
        .load(connection)?;
    let ids = page.iter().map(|article| article.id);
    let totals = articles_views_totals::table.filter(articles_views_totals::id.eq_any(ids));
    let totals: HashMap<i64, i64> = totals.load(connection)?.into_iter().collect();
    let with_total = |article: Article| totals.get(&article.id).map(|total| (article, *total));
    Ok(page.into_iter().filter_map(with_total).collect())
}

pub fn save(connection: &mut MysqlConnection, article: &Article) -> QueryResult<()> {
    diesel::update(article).set(article).execute(connection)?;
    Ok(())
}

/// Deletes the counts, too. Execute it in a transaction. A trigger in its place requires SUPER on MySQL with a binary log.
pub fn delete(connection: &mut MysqlConnection, id: i64) -> QueryResult<()> {
    diesel::delete(articles::table.find(id)).execute(connection)?;
    sql_query("CALL articles_views_delete(?)")
        .bind::<BigInt, _>(id)
        .execute(connection)?;
    Ok(())
}

/// Moves the counts into the column. Call it every few seconds, on a connection without a transaction.
pub fn roll_up(connection: &mut MysqlConnection) -> QueryResult<()> {
    sql_query("CALL articles_views_rollup(NULL)").execute(connection)?;
    Ok(())
}

/// Whether the server has rolled the transaction back, so that it can be repeated. Diesel has no number of an error: 1213 is a
/// kind, of the others there is the beginning of the text.
pub fn is_repeatable(error: &Error) -> bool {
    match error {
        Error::DatabaseError(DatabaseErrorKind::SerializationFailure, _) => true,
        Error::DatabaseError(_, text) => {
            // 1213 in COMMIT, 1205, 1020, 3101.
            let texts = [
                "Deadlock found",
                "Lock wait timeout",
                "Record has changed since last read",
                "Plugin instructed the server to rollback",
            ];
            texts.iter().any(|begin| text.message().starts_with(begin))
        }
        _ => false,
    }
}

/// Whether a routine of the package has rejected the call: the beginning of its messages does not change.
pub fn is_rejected(error: &Error) -> bool {
    matches!(error, Error::DatabaseError(_, text) if text.message().starts_with("articles_views_"))
}

/// Executes a transaction. Repeats it after the errors with which the server has rolled it back. After a lost connection in
/// `COMMIT` it may have counted, so it is not repeated.
pub fn transaction<T>(
    connection: &mut MysqlConnection,
    mut work: impl FnMut(&mut MysqlConnection) -> QueryResult<T>,
) -> QueryResult<T> {
    for attempt in 0.. {
        match connection.transaction(&mut work) {
            Err(error) if attempt < 10 && is_repeatable(&error) => sleep(Duration::from_millis(10 * attempt)),
            result => return result,
        }
    }
    unreachable!("the tenth attempt returns")
}

#[cfg(test)]
mod tests;
