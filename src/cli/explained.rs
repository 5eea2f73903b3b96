//! What to do about an error of an installation.

use mysql::Conn;

use super::output::{hinted, in_line};
use crate::install::{InstallError, hint};
use crate::package::Ident;
use crate::server::account;

/// What an account needs to install, upgrade and remove a package.
const INSTALLS: &str =
    "CREATE, ALTER, DROP, CREATE VIEW, CREATE ROUTINE, ALTER ROUTINE, EXECUTE, SELECT, INSERT, UPDATE, DELETE";

/// What to do about an error of the server.
fn help(code: u16, connection: &mut Conn) -> mysql::Result<Option<String>> {
    Ok(Some(match code {
        1044 | 1142 | 1143 | 1370 => {
            let account = account(connection)?;
            format!("run as an administrator: {}", hint::grant(connection, INSTALLS, &account)?)
        }
        1227 => {
            "connect as an account with one of the privileges in the message, or as the one that installed the package"
                .to_owned()
        }
        1418 | 1419 => {
            "run as an administrator: SET GLOBAL log_bin_trust_function_creators = ON; or add --no-function".to_owned()
        }
        _ => return Ok(None),
    }))
}

/// The error of an installation with what to do.
pub(super) fn explained(error: InstallError, connection: &mut Conn) -> anyhow::Error {
    let rest = "what has been done stays; run the command again: it does what is left";
    let hint = match &error {
        InstallError::Rejected { lost, .. } if !lost.is_empty() => {
            format!("the routine has lost its privileges; run as an administrator: {}", lost.join("; "))
        }
        InstallError::Rejected { error: cause, .. } | InstallError::Trial { error: cause, .. } => {
            match help(cause.code, connection) {
                Ok(Some(help)) => format!("{help}; {rest}"),
                _ => rest.to_owned(),
            }
        }
        InstallError::Check(_) => "no routine has been changed; correct it, and run the command again".to_owned(),
        InstallError::LostTable(table, _) => {
            format!("nothing has been changed; {}", hint::lost(connection, table).unwrap_or_default())
        }
        InstallError::Counts(table, ..) => format!("move or delete them, then run: DROP TABLE {}", Ident::stored(table)),
        InstallError::Pending(..) => "wait for its event, or CALL it as the owner of the database; then run the command again".to_owned(),
        InstallError::Differs(..) => {
            "nothing has been changed; correct it, run slotted install with the options of the package, which replaces routines, or let the \
             owner of the database source uninstall.sql of slotted generate, which leaves in the table what it cannot move"
                .to_owned()
        }
        InstallError::HiddenGrants(..) => format!(
            "run as an administrator: GRANT SELECT ON mysql.procs_priv TO {}; or let an administrator install",
            account(connection).unwrap_or_else(|_| "this account".to_owned())
        ),
        InstallError::Locked => "run the command again when the other one has ended".to_owned(),
        InstallError::MySql(_) => rest.to_owned(),
    };
    hinted(in_line(&error.to_string()), hint)
}
