//! The benchmark: contenders, their load by many connections, the proof of each total, and the report.

mod chart;
mod contender;
mod figures;
mod load;
mod report;
mod rounds;

pub use chart::svg;
pub use contender::{BUILT_IN, Contender, ContenderError, Setting, Statement, description};
pub use figures::{Report, Summary};
pub use load::{BenchError, Measured, SCHEMA, run};
pub use report::{html, table};
pub use rounds::compare;
