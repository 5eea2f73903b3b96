//! From a package to its files. Pure: no I/O, no clock, so the same options give the same bytes.
//!
//! The SQL is in the templates, a routine or a file in each. `routine` and `files` list them, `sql` contains what they call, and `plan`
//! puts the statements into order, each in a `step`.

mod files;
mod plan;
mod routine;
mod sql;
mod step;

pub use files::{File, Format, event, files, files_of, table_check};
pub use plan::{plan, script};
pub use sql::{DDL_TIMEOUT, SQL_MODE};
pub use step::{Object, Purpose, Step, Task};
