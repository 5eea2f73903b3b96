use std::sync::{Mutex, MutexGuard, PoisonError};

use diesel::connection::SimpleConnection;
use diesel::dsl::count_star;

use super::*;

/// The tests share one database.
static MIGRATED: Mutex<bool> = Mutex::new(false);

/// A database with two articles, for one test at a time.
fn database() -> (MysqlConnection, MutexGuard<'static, bool>) {
    let mut migrated = MIGRATED.lock().unwrap_or_else(PoisonError::into_inner);
    let mut connection = connect();
    if !*migrated {
        migrate(&mut connection);
        *migrated = true;
    }
    // A truncated table starts its IDs again: without the second statement, the new articles would have the old counts.
    for statement in [
        "TRUNCATE TABLE articles",
        "TRUNCATE TABLE articles_views",
        "INSERT INTO articles (title, views) VALUES ('One', 40), ('Two', 7)",
    ] {
        sql_query(statement).execute(&mut connection).expect(statement);
    }
    (connection, migrated)
}

fn article(id: i64, title: &str) -> Article {
    Article {
        id,
        title: title.into(),
    }
}

#[test]
fn counts_in_a_transaction_and_rolls_back() -> QueryResult<()> {
    let (mut connection, _guard) = database();
    // Rolls back at its end.
    connection.test_transaction::<_, Error, _>(|connection| {
        increment(connection, 1)?;
        add(connection, 1, 5)?;
        assert_eq!(total(connection, 1)?, 46);
        let savepoint = connection.transaction(|connection| {
            add(connection, 1, -6)?;
            Err::<(), _>(Error::RollbackTransaction)
        });
        assert_eq!(savepoint, Err(Error::RollbackTransaction));
        assert_eq!(total(connection, 1)?, 46);
        Ok(())
    });
    assert_eq!(total(&mut connection, 1)?, 40);
    Ok(())
}

#[test]
fn a_page_has_the_order_of_the_column_and_exact_totals() -> QueryResult<()> {
    let (mut connection, _guard) = database();
    add(&mut connection, 2, 90)?;
    assert_eq!(
        page(&mut connection, 9)?,
        [(article(1, "One"), 40), (article(2, "Two"), 97)]
    );
    roll_up(&mut connection)?;
    assert_eq!(page(&mut connection, 1)?, [(article(2, "Two"), 97)]);
    Ok(())
}

#[test]
fn save_does_not_write_the_column() -> QueryResult<()> {
    let (mut connection, _guard) = database();
    let (mut one, _) = page(&mut connection, 1)?.remove(0);
    increment(&mut connection, 1)?;
    roll_up(&mut connection)?;
    one.title = "Uno".into();
    save(&mut connection, &one)?;
    assert_eq!(page(&mut connection, 1)?, [(article(1, "Uno"), 41)]);
    Ok(())
}

#[test]
fn the_counts_are_deleted_with_the_row() -> QueryResult<()> {
    let (mut connection, _guard) = database();
    increment(&mut connection, 1)?;
    transaction(&mut connection, |connection| delete(connection, 1))?;
    diesel::table! { articles_views (id, slot) { id -> BigInt, slot -> Integer } }
    assert_eq!(
        articles_views::table
            .select(count_star())
            .first::<i64>(&mut connection)?,
        0
    );
    Ok(())
}

#[test]
fn a_transaction_is_repeated_after_a_deadlock_only() -> QueryResult<()> {
    let (mut connection, _guard) = database();
    let deadlock = "SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213, MESSAGE_TEXT = 'Deadlock found'";
    connection.batch_execute(&format!("CREATE PROCEDURE deadlock() {deadlock}"))?;
    let mut attempts = 0;
    transaction(&mut connection, |connection| {
        increment(connection, 1)?;
        attempts += 1;
        match attempts {
            1 => sql_query("CALL deadlock()").execute(connection).map(drop),
            // Without a prepared statement, as COMMIT: Diesel has only the text.
            2 => connection.batch_execute(deadlock),
            _ => Ok(()),
        }
    })?;
    connection.batch_execute("DROP PROCEDURE deadlock")?;
    assert_eq!((attempts, total(&mut connection, 1)?), (3, 41));

    let rejected = transaction(&mut connection, |connection| {
        increment(connection, 1)?;
        sql_query("CALL articles_views_increment(NULL)").execute(connection)
    });
    assert!(is_rejected(&rejected.expect_err("no key")));

    let lost = transaction(&mut connection, |connection| {
        increment(connection, 1)?;
        sql_query("KILL CONNECTION_ID()").execute(connection).ok();
        increment(connection, 1)
    });
    let lost = lost.expect_err("the connection was killed");
    assert!(!is_rejected(&lost) && !is_repeatable(&lost), "{lost:?}");
    println!("{lost:?}");
    assert_eq!(total(&mut connect(), 1)?, 41);
    Ok(())
}
