//! From a package to its files. Pure: no I/O, no clock, so the same options give the same bytes.
//!
//! `files` renders the scripts, `routine` and `rollup` the objects that they create, `table`, `slots` and `key` the parts of
//! statements. The SQL is in the templates: a line of SQL is in one of them.

mod files;
mod key;
mod migrations;
mod rollup;
mod routine;
mod slots;
mod table;

pub use files::{DDL_TIMEOUT, File, Object, ObjectKind, SQL_MODE, file, files, objects, setup};
pub use migrations::{Format, files_of};

use askama::Template;

/// Renders a part of a file.
fn fragment(template: &impl Template) -> String {
    template
        .render()
        .expect("a template that has only fields and pure methods renders")
}

mod filters {
    use std::fmt::Display;

    use crate::package::SqlStr;

    /// The text as lines of their own before the text that follows, which is indented by `indent`. Nothing for an empty text.
    #[askama::filter_fn]
    pub(super) fn before(
        text: impl Display,
        _: &dyn askama::Values,
        indent: usize,
    ) -> askama::Result<String> {
        let text = text.to_string();
        let indent = " ".repeat(indent);
        Ok(text.lines().map(|line| format!("{line}\n{indent}")).collect())
    }

    /// The text as an SQL string literal.
    #[askama::filter_fn]
    pub(super) fn sql_string(text: impl Display, _: &dyn askama::Values) -> askama::Result<SqlStr<String>> {
        Ok(SqlStr(text.to_string()))
    }
}
