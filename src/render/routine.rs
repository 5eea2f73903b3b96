//! The template of each routine.

use super::sql::{Sql, filters, text};
use crate::package::{
    BATCH, DESCRIPTION_MAX, ENTRIES_MAX, KeyType, MAX_SLOTS, NAME_MAX, Options, Package, Routine as R,
};

const NAMED: bool = true;
const RECORDS: bool = false;

/// The CREATE statement of a routine of the package.
pub(super) fn statement(sql: Sql<'_>, of: R) -> String {
    let of_column = sql.package.options.column().is_some();
    match (sql.package.options.is_named(), of) {
        (_, R::Fail) => text!(sql, path = "counters/fail.sql"),
        (NAMED, R::MustExist) => text!(sql, path = "counters/must_exist.sql"),
        (NAMED, R::AddElsewhere) => text!(sql, path = "counters/add_elsewhere.sql"),
        (NAMED, R::Steps) => text!(sql, path = "cluster/counter_steps.sql"),
        (NAMED, R::Setup) => text!(sql, path = "counters/setup.sql"),
        (NAMED, R::Increment) => text!(sql, path = "counters/increment.sql"),
        (NAMED, R::Add) => text!(sql, path = "counters/add.sql"),
        (_, R::Take) => text!(sql, path = "bounded/take.sql"),
        (_, R::Collect) => text!(sql, path = "bounded/collect.sql"),
        (_, R::TakeElsewhere) => text!(sql, path = "bounded/take_elsewhere.sql"),
        (NAMED, R::Reset) => text!(sql, path = "counters/reset.sql"),
        (NAMED, R::Resize) => text!(sql, path = "counters/resize.sql"),
        (NAMED, R::Delete) => text!(sql, path = "counters/delete.sql"),
        (_, R::Drop) => text!(sql, path = "counters/drop.sql"),
        (NAMED, R::Get) => text!(sql, path = "counters/get.sql"),
        (RECORDS, R::Steps) => text!(sql, path = "cluster/record_steps.sql"),
        (RECORDS, R::Increment) => text!(sql, path = "records/increment.sql"),
        (RECORDS, R::Add) => text!(sql, path = "records/add.sql"),
        (_, R::AddMany) => text!(sql, path = "records/add_many.sql"),
        (RECORDS, R::Reset) if of_column => text!(sql, path = "column/reset.sql"),
        (RECORDS, R::Reset) => text!(sql, path = "records/reset.sql"),
        (_, R::Compact) if of_column => text!(sql, path = "column/compact.sql"),
        (_, R::Compact) => text!(sql, path = "records/compact.sql"),
        (_, R::Begin) => text!(sql, path = "records/begin.sql"),
        (_, R::Maintain) if of_column => text!(sql, path = "column/maintain.sql"),
        (_, R::Maintain) => text!(sql, path = "records/maintain.sql"),
        (_, R::Move) => text!(sql, path = "column/move.sql"),
        (_, R::Rollup) => text!(sql, path = "column/rollup.sql"),
        (RECORDS, R::Delete) => text!(sql, path = "records/delete.sql"),
        (RECORDS, R::Get) if of_column => text!(sql, path = "column/get.sql"),
        (RECORDS, R::Get) => text!(sql, path = "records/get.sql"),
        (_, of) => unreachable!("{of:?} is not in such a package"),
    }
}
