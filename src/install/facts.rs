//! What the objects of a package have in common, read with few questions: each one takes the time of the network.

use std::collections::HashMap;

use mysql::prelude::Queryable;
use mysql::{Conn, Row};

use crate::package::{Ident, SqlStr};
use crate::render::ObjectKind;

/// The CREATE statements of the routines and events of a database, and its definers.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// Rows of SHOW CREATE, by the kind and the name in lower case. What does not exist is None.
    created: HashMap<(ObjectKind, String), Option<Row>>,
    /// Whether an account exists. None if this account cannot see it.
    accounts: HashMap<String, Option<bool>>,
}

fn key(kind: ObjectKind, name: &Ident) -> (ObjectKind, String) {
    (kind, name.name().to_lowercase())
}

impl Facts {
    /// Reads all of these objects with two questions.
    ///
    /// # Errors
    /// The connection fails.
    pub(super) fn read(connection: &mut Conn, objects: &[(ObjectKind, &Ident)]) -> mysql::Result<Self> {
        let mut facts = Self::default();
        let names: Vec<_> = objects
            .iter()
            .map(|(_, name)| SqlStr(name.name()).to_string())
            .collect();
        if names.is_empty() {
            return Ok(facts);
        }
        let names = names.join(", ");
        let found: Vec<(String, String)> = connection.query(format!(
            "SELECT CAST(ROUTINE_TYPE AS CHAR), CAST(ROUTINE_NAME AS CHAR)
               FROM information_schema.ROUTINES
              WHERE ROUTINE_SCHEMA = DATABASE()
                AND ROUTINE_NAME IN ({names})
              UNION ALL
             SELECT 'EVENT', CAST(EVENT_NAME AS CHAR)
               FROM information_schema.EVENTS
              WHERE EVENT_SCHEMA = DATABASE()
                AND EVENT_NAME IN ({names})"
        ))?;
        let exists = |(kind, name): &(ObjectKind, &Ident)| {
            let same = |found: &(String, String)| {
                found.0 == kind.sql() && found.1.to_lowercase() == name.name().to_lowercase()
            };
            found.iter().any(same)
        };
        let (existing, missing): (Vec<_>, Vec<_>) = objects.iter().copied().partition(exists);
        facts
            .created
            .extend(missing.into_iter().map(|(kind, name)| (key(kind, name), None)));
        let statements: Vec<_> = existing
            .iter()
            .map(|(kind, name)| show_create(*kind, name))
            .collect();
        if statements.is_empty() {
            return Ok(facts);
        }
        let mut results = connection.query_iter(statements.join("; "))?;
        let mut existing = existing.into_iter();
        while let (Some(result), Some((kind, name))) = (results.iter(), existing.next()) {
            for row in result {
                match row {
                    Ok(row) => drop(facts.created.insert(key(kind, name), Some(row))),
                    // It was dropped meanwhile, and this ends the packet. The rest is read one by one.
                    Err(mysql::Error::MySqlError(_)) => return Ok(facts),
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(facts)
    }

    /// SHOW CREATE of a routine or an event. None if it does not exist.
    ///
    /// # Errors
    /// The connection fails.
    pub(super) fn created(
        &mut self,
        connection: &mut Conn,
        kind: ObjectKind,
        name: &Ident,
    ) -> mysql::Result<Option<&Row>> {
        let key = key(kind, name);
        if !self.created.contains_key(&key) {
            let row = match connection.query_first(show_create(kind, name)) {
                // 1305: no routine, 1539: no event.
                Err(mysql::Error::MySqlError(error)) if [1305, 1539].contains(&error.code) => None,
                row => row?,
            };
            self.created.insert(key.clone(), row);
        }
        Ok(self.created[&key].as_ref())
    }

    /// Whether an account exists. None if the account of the connection does not have SELECT on mysql.user.
    pub(super) fn account_exists(&mut self, connection: &mut Conn, plain: &str) -> Option<bool> {
        *self
            .accounts
            .entry(plain.to_owned())
            .or_insert_with(|| super::compare::account_exists(connection, plain))
    }
}

fn show_create(kind: ObjectKind, name: &Ident) -> String {
    format!("SHOW CREATE {} {name}", kind.sql())
}
