//! Load from many connections, and what was measured.

mod load;
mod report;

pub use load::{Load, Measured, run};
pub use report::{bars, table};
