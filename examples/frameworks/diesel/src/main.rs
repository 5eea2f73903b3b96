use articles_diesel::{add, articles, connect, delete, migrate, page, total, transaction};
use diesel::prelude::*;

/// Deletes all articles and counts the views of a new one.
fn main() -> QueryResult<()> {
    let mut connection = connect();
    migrate(&mut connection);
    let views = transaction(&mut connection, |connection| {
        for (article, _) in page(connection, 100)? {
            delete(connection, article.id)?;
        }
        let kept = (articles::title.eq("Kept"), articles::views.eq(1));
        diesel::insert_into(articles::table)
            .values(kept)
            .execute(connection)?;
        let id = articles::table.select(articles::id).first(connection)?;
        add(connection, id, 2)?;
        total(connection, id)
    })?;
    println!("{views} views");
    Ok(())
}
