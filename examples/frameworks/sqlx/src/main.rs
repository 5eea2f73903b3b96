use articles_sqlx::{connect, delete, migrate, page, transaction};

/// Deletes all articles and counts the views of a new one.
#[tokio::main(flavor = "current_thread")]
async fn main() -> sqlx::Result<()> {
    let pool = connect().await?;
    migrate(&pool).await?;
    let views = transaction(&pool, async |connection| {
        for article in page(connection, 100).await? {
            delete(connection, article.id).await?;
        }
        let insert = "INSERT INTO articles (title, views) VALUES ('Kept', 1)";
        let id = sqlx::query(insert)
            .execute(&mut *connection)
            .await?
            .last_insert_id() as i64;
        articles_sqlx::add(connection, id, 2).await?;
        articles_sqlx::total(connection, id).await
    });
    println!("{} views", views.await?);
    Ok(())
}
