//! Counts views of articles with sqlx. A migration has installed the package of the column, see the file `run`.

use std::env::var;
use std::path::Path;
use std::time::Duration;

use sqlx::migrate::Migrator;
use sqlx::mysql::{MySqlConnectOptions, MySqlDatabaseError, MySqlPool, MySqlPoolOptions};
use sqlx::{FromRow, MySqlConnection, Result};

pub async fn connect() -> Result<MySqlPool> {
    let setting = |name: &str| var(format!("SLOTTED_{name}")).expect(name);
    let options = MySqlConnectOptions::new()
        .host(&setting("HOST"))
        .port(setting("PORT").parse().expect("a port"))
        .username(&setting("USER"))
        .password(&setting("PASSWORD"))
        .database(&setting("DATABASE"));
    MySqlPoolOptions::new()
        .max_connections(4)
        .connect_with(options)
        .await
}

/// In place of `sqlx::migrate!()`, which reads the files when the program is compiled, and needs the feature macros.
pub async fn migrate(pool: &MySqlPool) -> Result<()> {
    Ok(Migrator::new(Path::new("migrations")).await?.run(pool).await?)
}

/// An article and its exact total.
#[derive(Debug, FromRow, PartialEq)]
pub struct Article {
    pub id: i64,
    pub title: String,
    pub views: i64,
}

/// Counts in the transaction of the connection, which belongs to the caller.
pub async fn increment(connection: &mut MySqlConnection, id: i64) -> Result<()> {
    sqlx::query("CALL articles_views_increment(?)")
        .bind(id)
        .execute(connection)
        .await?;
    Ok(())
}

pub async fn add(connection: &mut MySqlConnection, id: i64, amount: i64) -> Result<()> {
    sqlx::query("CALL articles_views_add(?, ?)")
        .bind(id)
        .bind(amount)
        .execute(connection)
        .await?;
    Ok(())
}

/// The exact total, of the view because a function requires SUPER on MySQL with a binary log.
pub async fn total(connection: &mut MySqlConnection, id: i64) -> Result<i64> {
    sqlx::query_scalar("SELECT total FROM articles_views_totals WHERE id = ?")
        .bind(id)
        .fetch_one(connection)
        .await
}

/// Articles with their exact totals, in the order of the last roll-up: `page_of_articles_views` of queries.sql.
pub async fn page(connection: &mut MySqlConnection, articles: u32) -> Result<Vec<Article>> {
    let page = "SELECT id, title, CAST(views + COALESCE((
                  SELECT SUM(count) FROM articles_views AS slots WHERE slots.id = articles.id
                ), 0) AS SIGNED) AS views FROM articles ORDER BY articles.views DESC LIMIT ?";
    sqlx::query_as(page).bind(articles).fetch_all(connection).await
}

/// Names the columns that it changes: an old value of `views` would overwrite the counts of a roll-up.
pub async fn save(connection: &mut MySqlConnection, article: &Article) -> Result<()> {
    let save = "UPDATE articles SET title = ? WHERE id = ?";
    sqlx::query(save)
        .bind(&article.title)
        .bind(article.id)
        .execute(connection)
        .await?;
    Ok(())
}

/// Deletes the counts, too. Execute it in a transaction. A trigger in its place requires SUPER on MySQL with a binary log.
pub async fn delete(connection: &mut MySqlConnection, id: i64) -> Result<()> {
    sqlx::query("DELETE FROM articles WHERE id = ?")
        .bind(id)
        .execute(&mut *connection)
        .await?;
    sqlx::query("CALL articles_views_delete(?)")
        .bind(id)
        .execute(connection)
        .await?;
    Ok(())
}

/// Moves the counts into the column. Call it every few seconds, on a connection without a transaction.
pub async fn roll_up(connection: &mut MySqlConnection) -> Result<()> {
    sqlx::query("CALL articles_views_rollup(NULL)")
        .execute(connection)
        .await?;
    Ok(())
}

/// The number of the server's error. A lost connection has none.
pub fn number(error: &sqlx::Error) -> Option<u16> {
    let error = error
        .as_database_error()?
        .try_downcast_ref::<MySqlDatabaseError>()?;
    Some(error.number())
}

/// Executes a transaction. Repeats it after the errors with which the server has rolled it back. After a lost connection in
/// `COMMIT` it may have counted, so it is not repeated.
pub async fn transaction<T>(
    pool: &MySqlPool,
    work: impl AsyncFn(&mut MySqlConnection) -> Result<T>,
) -> Result<T> {
    for attempt in 0.. {
        let mut transaction = pool.begin().await?;
        let result = match work(&mut transaction).await {
            Ok(value) => transaction.commit().await.map(|()| value),
            Err(error) => transaction.rollback().await.and(Err(error)),
        };
        match result {
            Err(error) if attempt < 10 && matches!(number(&error), Some(1205 | 1213 | 1020 | 3101)) => {
                tokio::time::sleep(Duration::from_millis(10 * attempt)).await;
            }
            result => return result,
        }
    }
    unreachable!("the tenth attempt returns")
}

#[cfg(test)]
mod tests;
