use std::cell::Cell;

use sqlx::Connection;
use tokio::sync::{Mutex, MutexGuard};

use super::*;

/// The tests share one database. `#[sqlx::test]` has one for each test, and requires an account that can create them.
static MIGRATED: Mutex<bool> = Mutex::const_new(false);

/// A database with two articles, for one test at a time.
async fn database() -> (MySqlPool, MutexGuard<'static, bool>) {
    let pool = connect().await.expect("a connection");
    let mut migrated = MIGRATED.lock().await;
    if !*migrated {
        migrate(&pool).await.expect("migrations");
        *migrated = true;
    }
    // A truncated table starts its IDs again: without the second statement, the new articles would have the old counts.
    for statement in [
        "TRUNCATE TABLE articles",
        "TRUNCATE TABLE articles_views",
        "INSERT INTO articles (title, views) VALUES ('One', 40), ('Two', 7)",
    ] {
        sqlx::query(statement).execute(&pool).await.expect(statement);
    }
    (pool, migrated)
}

fn article(id: i64, title: &str, views: i64) -> Article {
    Article {
        id,
        title: title.into(),
        views,
    }
}

#[tokio::test]
async fn counts_in_a_transaction_and_rolls_back() -> Result<()> {
    let (pool, _guard) = database().await;
    let mut test = pool.begin().await?;
    increment(&mut test, 1).await?;
    add(&mut test, 1, 5).await?;
    assert_eq!(total(&mut test, 1).await?, 46);
    let mut savepoint = test.begin().await?;
    add(&mut savepoint, 1, -6).await?;
    savepoint.rollback().await?;
    assert_eq!(total(&mut test, 1).await?, 46);
    // A test that ends so leaves nothing.
    test.rollback().await?;
    assert_eq!(total(&mut *pool.acquire().await?, 1).await?, 40);
    Ok(())
}

#[tokio::test]
async fn a_page_has_the_order_of_the_column_and_exact_totals() -> Result<()> {
    let (pool, _guard) = database().await;
    let mut connection = pool.acquire().await?;
    add(&mut connection, 2, 90).await?;
    assert_eq!(
        page(&mut connection, 9).await?,
        [article(1, "One", 40), article(2, "Two", 97)]
    );
    roll_up(&mut connection).await?;
    assert_eq!(page(&mut connection, 1).await?, [article(2, "Two", 97)]);
    Ok(())
}

#[tokio::test]
async fn save_does_not_write_the_column() -> Result<()> {
    let (pool, _guard) = database().await;
    let mut connection = pool.acquire().await?;
    let mut one = page(&mut connection, 1).await?.remove(0);
    increment(&mut connection, 1).await?;
    roll_up(&mut connection).await?;
    one.title = "Uno".into();
    save(&mut connection, &one).await?;
    assert_eq!(page(&mut connection, 1).await?, [article(1, "Uno", 41)]);
    Ok(())
}

#[tokio::test]
async fn the_counts_are_deleted_with_the_row() -> Result<()> {
    let (pool, _guard) = database().await;
    increment(&mut *pool.acquire().await?, 1).await?;
    transaction(&pool, async |connection| delete(connection, 1).await).await?;
    let slots: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM articles_views")
        .fetch_one(&pool)
        .await?;
    assert_eq!(slots, 0);
    Ok(())
}

#[tokio::test]
async fn a_transaction_is_repeated_after_a_deadlock_only() -> Result<()> {
    let (pool, _guard) = database().await;
    let attempts = Cell::new(0);
    transaction(&pool, async |connection| {
        increment(connection, 1).await?;
        attempts.set(attempts.get() + 1);
        if attempts.get() == 1 {
            sqlx::raw_sql("SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213")
                .execute(connection)
                .await?;
        }
        Ok(())
    })
    .await?;
    assert_eq!(
        (attempts.get(), total(&mut *pool.acquire().await?, 1).await?),
        (2, 41)
    );

    let rejected = transaction(&pool, async |connection| {
        increment(connection, 1).await?;
        sqlx::query("CALL articles_views_increment(NULL)")
            .execute(connection)
            .await
    });
    let rejected = rejected.await.expect_err("no key");
    assert_eq!(number(&rejected), Some(30009));
    assert!(
        rejected
            .as_database_error()
            .expect("an error")
            .message()
            .starts_with("articles_views_increment: ")
    );

    let lost = transaction(&pool, async |connection| {
        increment(connection, 1).await?;
        let session: u64 = sqlx::query_scalar("SELECT CONNECTION_ID()")
            .fetch_one(&mut *connection)
            .await?;
        sqlx::query(sqlx::AssertSqlSafe(format!("KILL {session}")))
            .execute(&pool)
            .await?;
        increment(connection, 1).await
    });
    let lost = lost.await.expect_err("the connection was killed");
    assert!(
        matches!(lost, sqlx::Error::Io(_)) || number(&lost) == Some(1927),
        "{lost:?}"
    );
    assert_eq!(total(&mut *pool.acquire().await?, 1).await?, 41);
    Ok(())
}
