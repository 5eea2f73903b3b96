//! Calls the routines of a package in a transaction that is rolled back.
//!
//! The server says with its own words what is missing: a privilege, a value of a column, a partition. Only routines that are equal to the
//! rendered ones are called, and only as their definer.

use mysql::Conn;
use mysql::prelude::Queryable;

use super::definers;
use super::error::InstallError;
use crate::package::{Ident, KeyType, Package, Routine as R, SqlStr};

/// Calls the routines with a counter or a record that does not exist. Returns why it has not called them, if it has not.
///
/// # Errors
/// The connection fails, or a routine fails.
pub(super) fn run(connection: &mut Conn, package: &Package) -> Result<Option<String>, InstallError> {
    if let Some(why) = obstacle(connection, package)? {
        return Ok(Some(why));
    }
    connection.query_drop("START TRANSACTION")?;
    let counter = arguments(package, connection.connection_id());
    let failed = calls(package, &counter)
        .into_iter()
        .find_map(|statement| connection.query_drop(&statement).err().map(|error| (statement, error)));
    connection.query_drop("ROLLBACK")?;
    match failed {
        None => Ok(None),
        Some((statement, mysql::Error::MySqlError(error))) => Err(InstallError::Trial { statement, error }),
        Some((_, error)) => Err(error.into()),
    }
}

/// A trigger would execute what its owner has written, and a foreign key rejects a record that does not exist.
fn obstacle(connection: &mut Conn, package: &Package) -> mysql::Result<Option<String>> {
    if !definers::calls(connection, package)? {
        return Ok(Some("this account is not their definer; call one as the application does".to_owned()));
    }
    let parent = package.options.column().map_or(&package.options.table, |column| &column.table);
    added(connection, package, parent)
}

/// A trigger or a foreign key of the table of a package, or a trigger of another table. None if this account cannot see it.
pub(crate) fn added(connection: &mut Conn, package: &Package, other: &Ident) -> mysql::Result<Option<String>> {
    connection.exec_first(
        "SELECT CONCAT('the table ', EVENT_OBJECT_TABLE, ' has the trigger ', TRIGGER_NAME)
           FROM information_schema.TRIGGERS
          WHERE EVENT_OBJECT_SCHEMA = DATABASE()
            AND EVENT_OBJECT_TABLE IN (?, ?)
          UNION ALL
         SELECT CONCAT('the table ', TABLE_NAME, ' has the foreign key ', CONSTRAINT_NAME)
           FROM information_schema.KEY_COLUMN_USAGE
          WHERE TABLE_SCHEMA = DATABASE()
            AND TABLE_NAME = ?
            AND REFERENCED_TABLE_NAME IS NOT NULL
          LIMIT 1",
        (package.options.table.name(), other.name(), package.options.table.name()),
    )
}

/// The arguments that name a counter or a record, in SQL. No AUTO_INCREMENT gives the number 0.
fn arguments(package: &Package, connection: u32) -> String {
    let value = |kind: &KeyType| match kind {
        KeyType::Name => SqlStr(format!("slotted trial {connection}")).to_string(),
        KeyType::Integer(_) => "0".to_owned(),
        KeyType::Date("DATE") => "CURRENT_DATE".to_owned(),
        KeyType::Date(_) => "NOW()".to_owned(),
        KeyType::Text(_, length) => {
            SqlStr("slotted trial".chars().take(*length as usize).collect::<String>()).to_string()
        }
        KeyType::Binary(_, length) => format!("REPEAT(0xFF, {length})"),
    };
    let values: Vec<_> = package.options.key().iter().map(|column| value(&column.kind)).collect();
    values.join(", ")
}

fn calls(package: &Package, counter: &str) -> Vec<String> {
    let call = |routine, more: &str| package.routine(routine).map(|name| format!("CALL {name}({counter}{more})"));
    let calls = [
        call(R::Setup, ", NULL, NULL, NULL"),
        call(R::Increment, ""),
        call(R::Add, ", 2"),
        call(R::Take, ", 1"),
        package.routine(R::Get).map(|get| format!("SELECT {get}({counter})")),
        // The roll-up would move all counts. This one moves those of the record.
        call(R::Compact, ""),
        call(R::Delete, ""),
    ];
    calls.into_iter().flatten().collect()
}
