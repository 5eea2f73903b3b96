//! What the sessions of a server wait for, and one sentence about it. Only reads, and executes nothing that it reads.

mod statement;
mod watch;

use std::collections::BTreeMap;
use std::mem;

use mysql::prelude::Queryable;
use mysql::{Conn, Row};

use crate::package::{Ident, MAX_SLOTS, Package, Routine, Slots, SqlStr, TableColumn, literal, shell_word};
use crate::server::{account, grant};
pub use watch::{Advice, Packages, Watched, watch};
use watch::{Place, WAITING, package_of};

const LOOK: &str = "look at it: docs/columns.md of the repository describes which statements slots can replace; \
    a statement with a condition such as qty >= 2 needs a bounded counter";

/// The unique keys of a table. One row without a key if the table has none, and no row if the account cannot see the table.
const KEYS: &str = "
SELECT COALESCE(indexes.INDEX_NAME, ''),
       COALESCE(LOWER(indexes.COLUMN_NAME), '')
  FROM information_schema.TABLES AS tables
  LEFT JOIN information_schema.STATISTICS AS indexes
    ON indexes.TABLE_SCHEMA = tables.TABLE_SCHEMA
   AND indexes.TABLE_NAME = tables.TABLE_NAME
   AND indexes.NON_UNIQUE = 0
 WHERE tables.TABLE_SCHEMA = ?
   AND tables.TABLE_NAME = ?
 ORDER BY 1";

impl Watched {
    /// Recommends what to do about the waits in one database or, without one, in all databases.
    pub fn advise(&mut self, connection: &mut Conn, only: Option<&str>, packages: &Packages) -> mysql::Result<()> {
        let samples = f64::from(self.samples);
        let average = |statements: &[String]| statements.len() as f64 / samples;
        let mut waits: BTreeMap<Place, Vec<String>> = BTreeMap::new();
        for (mut place, statements) in mem::take(&mut self.waits) {
            if average(&statements) < WAITING {
                place.2 = None;
            }
            waits.entry(place).or_default().extend(statements);
        }
        let mut all = Vec::new();
        for ((database, table, key), mut statements) in waits {
            let waiting = average(&statements);
            if waiting < WAITING || only.is_some_and(|only| only != database) {
                continue;
            }
            statements.sort();
            let most = statements.chunk_by(String::eq).max_by_key(|same| same.len());
            let statement = most.map(|same| same[0].clone()).unwrap_or_default();
            let (shown, sentence) = (key.clone().unwrap_or_else(|| "several rows".into()), LOOK.into());
            let mut advice = Advice { database, table, key: shown, waiting, statement, sentence, run: None };
            match package_of(packages, &advice.database, &advice.table) {
                Some(package) => self.advise_slots(connection, package, key.as_deref(), &mut advice),
                None => self.advise_column(connection, packages, &mut advice)?,
            }
            all.push(advice);
        }
        all.sort_by(|one, other| other.waiting.total_cmp(&one.waiting));
        self.advice = all;
        Ok(())
    }

    /// Recommends a number of slots for a counter of a package.
    fn advise_slots(&self, connection: &mut Conn, package: &Package, key: Option<&str>, advice: &mut Advice) {
        let mut options = package.options.clone();
        let database = Ident::stored(&advice.database);
        let name = key.map(|key| {
            let quoted = key.strip_prefix('\'').and_then(|key| key.strip_suffix('\''));
            quoted.unwrap_or(key).replace("''", "'")
        });
        let slots = match options.subject.slots() {
            Slots::Fixed(slots) => slots,
            // 0 if the account may not read the table, or if it is no table any more.
            Slots::PerCounter => {
                let table = format!("{database}.{}", options.table);
                name.as_ref().and_then(|name| last_slot(connection, &table, name)).unwrap_or(0)
            }
        };
        // One session holds each slot, and the others wait.
        let held = slots.saturating_add(advice.waiting.ceil() as u32);
        let (needed, at_once) = needed(held, self.connected, self.running);
        let rule = format!("4 for each of {at_once} connections at once, rounded up to a prime");
        if slots >= needed {
            advice.sentence = format!("its {slots} slots are enough ({rule}): look for long transactions");
        } else if slots > 0 {
            advice.sentence = format!("{needed} slots instead of {slots} ({rule})");
            advice.run = Some(match package.routine(Routine::Resize) {
                Some(resize) if options.per_counter() => {
                    // The owner of the database could have replaced the routine.
                    advice.sentence += ": if slotted status finds no difference, call, as the owner of the database,";
                    format!("CALL {database}.{resize}({}, {needed});", literal(&name.unwrap_or_default()))
                }
                _ => {
                    options.subject.set_slots(needed);
                    // An installation keeps the definer of the routines. The view can name another one.
                    options.definer = None;
                    advice.sentence += ": install them as the owner of the database with";
                    format!("slotted install {} --database {}", options.arguments(), shell_word(&advice.database))
                }
            });
        }
    }

    /// Recommends slots for the column that a statement counts in.
    fn advise_column(&mut self, connection: &mut Conn, packages: &Packages, advice: &mut Advice) -> mysql::Result<()> {
        let (database, table) = (&advice.database, &advice.table);
        let keys: Vec<(String, String)> = connection.exec(KEYS, (database, table))?;
        if keys.is_empty() || packages.contains(&(database.clone(), None)) {
            let account = account(connection)?;
            let remedy = grant(connection, "SELECT, SHOW VIEW", database, &account)? + ";";
            self.unseen.insert(format!("the table {database}.{table}, or its package"), remedy);
            return Ok(());
        }
        let is_key = |key: &[String]| {
            let mut keys = keys.chunk_by(|one, next| one.0 == next.0);
            keys.any(|index| index.len() == key.len() && index.iter().all(|(_, name)| key.contains(name)))
        };
        let found = statement::counted(&advice.statement);
        if let Some(found) = found.filter(|found| found.table.eq_ignore_ascii_case(table) && is_key(&found.key)) {
            let (table, column) = (Ident::stored(table), Ident::stored(found.column));
            let column = TableColumn { table, column }.to_string();
            let [database, column] = [database, &column].map(|word| shell_word(word));
            advice.run = Some(format!("slotted install --database {database} --column {column}"));
            // A sample cannot show what the program does next.
            advice.sentence =
                "look at it: if no program uses the new value, as for the number of an invoice, slots can count it, \
                               and the column stays the total: install them as the owner of the database"
                    .into();
        }
        Ok(())
    }
}

/// The number of the last slot of a counter. HANDLER opens no view, which could call functions with the privileges of this account if
/// the owner has put it in the place of the table. Source: MySQL manual, "HANDLER Statement".
fn last_slot(connection: &mut Conn, table: &str, name: &str) -> Option<u32> {
    connection.query_drop(format!("HANDLER {table} OPEN AS slots")).ok()?;
    let read = format!("HANDLER slots READ `PRIMARY` <= ({}, {MAX_SLOTS})", SqlStr(name));
    let last: mysql::Result<Option<Row>> = connection.query_first(read);
    connection.query_drop("HANDLER slots CLOSE").ok()?;
    let last = last.ok()??;
    // Without slots of this name, it is the last slot of the counter before it.
    last.get_opt::<String, _>("counter_name")?.ok().filter(|found| found == name)?;
    last.get_opt("counter_id")?.ok()
}

/// The rule for the number of slots: 4 for each connection that increments the counter at once, rounded up to a prime. Most of the
/// connections can be idle: then it is 8 for each session at work. Source: docs/dev/design-notes.md, "The number of slots".
fn needed(held: u32, connected: u32, running: u32) -> (u32, u32) {
    let at_once = held.min(connected).min(running.max(2) * 2);
    let is_prime = |n: &u32| (2..*n).take_while(|d| d * d <= *n).all(|d| !n.is_multiple_of(d));
    let slots = (at_once * 4..MAX_SLOTS).find(is_prime);
    (slots.unwrap_or(MAX_SLOTS), at_once)
}

#[cfg(test)]
mod tests {
    use super::{MAX_SLOTS, needed};

    #[test]
    fn the_number_of_slots_follows_the_rule() {
        assert_eq!(needed(24, 200, 30), (97, 24));
        assert_eq!(needed(105, 24, 24), (97, 24));
        assert_eq!(needed(102, 500, 3), (29, 6));
        assert_eq!(needed(9_000, 9_000, 9_000), (MAX_SLOTS, 9_000));
    }
}
