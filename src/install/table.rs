//! What makes a routine fail although the table has the columns of the package.

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::package::{Kind, Package, Routine, quoted};
use crate::render;

/// The differences of a table that has the columns and the primary key of the package, each with the routines that fail and with
/// what to do.
///
/// # Errors
/// The connection fails.
pub(super) fn differences(connection: &mut Conn, package: &Package) -> mysql::Result<Vec<String>> {
    let mut differences = without_default(connection, package)?;
    differences.extend(without_partition(connection, package)?);
    differences.extend(foreign_keys(connection, package)?);
    Ok(differences)
}

/// The names of those of these routines that the package has.
fn names(package: &Package, routines: &[Routine]) -> String {
    let names = routines.iter().filter_map(|routine| package.routine(*routine));
    names.map(|name| name.plain()).collect::<Vec<_>>().join(", ")
}

/// The routines that insert slots.
fn inserting(package: &Package) -> String {
    match package.options.kind {
        Kind::Counters => names(package, &[Routine::Setup, Routine::Resize]),
        Kind::SlottedCounters => names(
            package,
            &[
                Routine::Increment,
                Routine::Add,
                Routine::AddMany,
                Routine::Take,
                Routine::Setup,
                Routine::Reset,
            ],
        ),
    }
}

/// Other columns that need a value which no routine gives. On MySQL, a trigger can give it.
/// Source: MySQL manual, "Data Type Default Values", by which an ENUM has its first value.
fn without_default(connection: &mut Conn, package: &Package) -> mysql::Result<Vec<String>> {
    let columns: Vec<String> = connection.exec(
        "SELECT COLUMN_NAME
           FROM information_schema.COLUMNS AS columns
          WHERE TABLE_SCHEMA = DATABASE()
            AND TABLE_NAME = ?
            AND IS_NULLABLE = 'NO'
            AND COLUMN_DEFAULT IS NULL
            AND COLUMN_KEY <> 'PRI'
            AND DATA_TYPE <> 'enum'
            AND EXTRA NOT LIKE '%auto_increment%'
            AND COALESCE(GENERATION_EXPRESSION, '') = ''
            /*!80000 AND NOT EXISTS (
              SELECT *
                FROM information_schema.TRIGGERS
               WHERE EVENT_OBJECT_SCHEMA = DATABASE()
                 AND EVENT_OBJECT_TABLE = columns.TABLE_NAME
                 AND EVENT_MANIPULATION = 'INSERT'
                 AND ACTION_TIMING = 'BEFORE'
            ) */
          ORDER BY ORDINAL_POSITION",
        (package.options.table.name(),),
    )?;
    // The routines give the columns of the package their values.
    let own = render::columns(package);
    let is_own = |column: &String| {
        own.iter()
            .any(|own| own.name().to_lowercase() == column.to_lowercase())
    };
    let difference = |column: String| {
        let (table, column) = (&package.options.table, quoted(&column));
        format!(
            "the column {column} is NOT NULL without a default, so that {} fail with error 1364. Run: ALTER TABLE {table} ALTER COLUMN {column} \
             SET DEFAULT and a value",
            inserting(package)
        )
    };
    let others = columns.into_iter().filter(|column| !is_own(column));
    Ok(others.map(difference).collect())
}

/// Slot numbers without a partition.
fn without_partition(connection: &mut Conn, package: &Package) -> mysql::Result<Option<String>> {
    // A value of a column of bytes is no text.
    type Partition = (Option<String>, Option<String>, Option<Vec<u8>>);
    let table = &package.options.table;
    let partitions: Vec<Partition> = connection.exec(
        "SELECT PARTITION_METHOD, PARTITION_EXPRESSION, PARTITION_DESCRIPTION
           FROM information_schema.PARTITIONS
          WHERE TABLE_SCHEMA = DATABASE()
            AND TABLE_NAME = ?",
        (table.name(),),
    )?;
    let named = package.options.kind == Kind::Counters;
    let slot = if named { "counter_id" } else { "slot" };
    let Some((Some(method), Some(expression), _)) = partitions.first() else {
        return Ok(None);
    };
    if expression.replace('`', "").to_lowercase() != slot {
        return Ok(None);
    }
    let described: Vec<_> = partitions
        .iter()
        .map(|(_, _, values)| String::from_utf8_lossy(values.as_deref().unwrap_or_default()))
        .collect();
    let (complete, remedy) = if method.starts_with("RANGE") {
        let remedy = "ADD PARTITION (PARTITION more_slots VALUES LESS THAN MAXVALUE)";
        (described.iter().any(|values| values == "MAXVALUE"), remedy)
    } else if method.starts_with("LIST") {
        let numbers: Vec<i64> = described
            .iter()
            .flat_map(|values| values.split(','))
            .filter_map(|number| number.trim().parse().ok())
            .collect();
        let slots = i64::from(package.options.setup_slots());
        // A resize gives a slot its negative number before it deletes it.
        let mut needed = if named { -slots..=slots } else { 0..=slots };
        let zero = !named || package.options.bounded;
        let complete = described.iter().any(|values| values == "DEFAULT")
            || needed.all(|number| number == 0 && !zero || numbers.contains(&number));
        (complete, "PARTITION BY KEY () PARTITIONS 4")
    } else {
        return Ok(None);
    };
    let routines = match named {
        true => names(package, &[Routine::Setup, Routine::Resize]),
        false => inserting(package),
    };
    Ok((!complete).then(|| {
        format!(
            "some numbers of slots have no partition, so that {routines} fail with error 1526. Run: ALTER TABLE {table} {remedy}"
        )
    }))
}

/// Foreign keys of the table, and those of other tables that refer to it.
fn foreign_keys(connection: &mut Conn, package: &Package) -> mysql::Result<Vec<String>> {
    let table = &package.options.table;
    let keys: Vec<(String, String, String, bool)> = connection.exec(
        "SELECT DISTINCT CONSTRAINT_NAME, TABLE_NAME, REFERENCED_TABLE_NAME, TABLE_NAME = ?
           FROM information_schema.KEY_COLUMN_USAGE
          WHERE TABLE_SCHEMA = DATABASE()
            AND REFERENCED_TABLE_SCHEMA = DATABASE()
            AND (TABLE_NAME = ? OR REFERENCED_TABLE_NAME = ?)
          ORDER BY 1",
        (table.name(), table.name(), table.name()),
    )?;
    let difference = |(key, child, parent, own): (String, String, String, bool)| {
        let why = if own {
            format!(
                "refers to {}: {} fail with error 1452 if the parent has no such row, and wait for sessions that change it (1205)",
                quoted(&parent),
                inserting(package)
            )
        } else {
            let routines = [Routine::Resize, Routine::Delete, Routine::Compact, Routine::Reset];
            format!(
                "of {} refers to this table: {} fail with error 1451",
                quoted(&child),
                names(package, &routines)
            )
        };
        let key = quoted(&key);
        format!(
            "the foreign key {key} {why}. Run: ALTER TABLE {} DROP FOREIGN KEY {key}",
            quoted(&child)
        )
    };
    Ok(keys.into_iter().map(difference).collect())
}
