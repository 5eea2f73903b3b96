//! A step of a plan: what it is for, and its statements.

use std::fmt;

use crate::package::Ident;

/// What the steps are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Creates everything, and replaces nothing.
    Create,
    /// Creates or replaces the views and the routines of a table.
    Replace,
    /// Drops the views and the routines, after a last roll-up, and keeps the table.
    Remove,
    /// Also drops the table, unless it has counts.
    RemoveAll,
}

/// What a step does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Sets the session.
    Set,
    /// Restores the session.
    Restore,
    /// Rejects the server or a table.
    Check,
    /// Moves pending counts, or looks for counts before the table is dropped.
    Move,
    /// Creates a routine that exists only during the script, because a server can reject it after the one of the package was dropped.
    Try,
    /// Creates or replaces the object.
    Create,
    /// Drops the object.
    Drop,
}

/// An object of a database. Its `Display` is as in `procedure counter_add`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// The keyword after CREATE: TABLE, VIEW, PROCEDURE or FUNCTION.
    pub kind: &'static str,
    /// Its name.
    pub name: Ident,
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.to_lowercase(), self.name.name())
    }
}

/// A step: statements that the server gets in one packet, so that it completes them if the client is killed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// What it does.
    pub purpose: Purpose,
    /// What it creates, replaces or drops. None if that exists only during the script.
    pub object: Option<Object>,
    /// The statements, without delimiters.
    pub statements: Vec<String>,
    /// What is before it in a script, for a reader or for the client, which ends with a line end, or nothing.
    pub(super) before: String,
}

impl Step {
    pub(super) fn new(purpose: Purpose, statements: impl IntoIterator<Item = String>) -> Self {
        Self { purpose, object: None, statements: statements.into_iter().collect(), before: String::new() }
    }

    pub(super) fn of(mut self, kind: &'static str, name: &Ident) -> Self {
        self.object = Some(Object { kind, name: name.clone() });
        self
    }

    pub(super) fn preceded_by(mut self, text: String) -> Self {
        self.before = text + "\n";
        self
    }

    /// What it does, such as `create procedure counter_add`, or `replace` if the object exists.
    pub fn action(&self, exists: bool) -> String {
        let of =
            |verb: &str| self.object.as_ref().map_or("drop a routine".to_owned(), |object| format!("{verb} {object}"));
        match self.purpose {
            Purpose::Set => "set the session".to_owned(),
            Purpose::Restore => "restore the session".to_owned(),
            Purpose::Check => "check the server and the table".to_owned(),
            Purpose::Move => "move the pending counts".to_owned(),
            Purpose::Try => format!("create a {}", self.object.as_ref().map_or("procedure", |_| "function")),
            Purpose::Create => of(if exists { "replace" } else { "create" }),
            Purpose::Drop => of("drop"),
        }
    }

    /// The routine that it creates or replaces.
    pub fn created_routine(&self) -> Option<&Object> {
        self.object.as_ref().filter(|_| self.purpose == Purpose::Create && self.is_of_routine())
    }

    /// Whether it is for a procedure or a function of the package.
    pub fn is_of_routine(&self) -> bool {
        self.object.as_ref().is_some_and(|object| ["PROCEDURE", "FUNCTION"].contains(&object.kind))
    }
}
