//! From a package to its files. Pure: no I/O, no clock, so the same options give the same bytes.
//!
//! The SQL is in the templates, a routine or a file in each. `files` lists them, `sql` contains what they call, and `plan` puts
//! the statements into order.

mod files;
mod migrations;
mod plan;
mod sql;

pub use files::{DDL_TIMEOUT, File, SQL_MODE, file, files, table_check, temporary};
pub use migrations::{Format, files_of};
pub use plan::{Object, Purpose, Step, Task, plan, script};

/// Renders a template, or a block of one, for an object of a package.
macro_rules! text {
    ($sql:expr, $($template:tt)*) => {{
        #[derive(askama::Template)]
        #[template($($template)*)]
        #[allow(dead_code, reason = "few templates use all")]
        struct Text<'a> {
            sql: Sql<'a>,
            package: &'a Package,
            o: &'a Options,
        }
        let sql: Sql<'_> = $sql;
        let text = Text { sql, package: sql.package, o: &sql.package.options };
        askama::Template::render(&text).expect("a template that has only fields and pure methods renders")
    }};
}
use text;

mod filters {
    use std::fmt::Display;

    use crate::package::SqlStr;

    /// The text as an SQL string literal.
    #[askama::filter_fn]
    pub(super) fn sql_string(text: impl Display, _: &dyn askama::Values) -> askama::Result<SqlStr<String>> {
        Ok(SqlStr(text.to_string()))
    }
}
