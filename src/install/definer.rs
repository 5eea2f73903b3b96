//! What the account of the routines can do outside the database of the package.

use mysql::Conn;
use mysql::prelude::Queryable;

use super::preflight::Problem;
use super::privileges::Privileges;
use crate::package::{Options, Package, Routine, Security, SqlStr};

/// The account that `accounts.sql` creates in the advice.
const OWN: &str = "slotted@localhost";

/// The privileges that the statements of routines can use on another table.
const USED: [&str; 4] = ["SELECT", "INSERT", "UPDATE", "DELETE"];

/// Says that the routines run with privileges on all databases, which a view in the place of the table of the package can use. None if
/// they do not, or if this account cannot read the privileges of their definer.
///
/// # Errors
/// The connection fails.
pub fn note(connection: &mut Conn, package: &Package) -> mysql::Result<Option<Problem>> {
    let options = &package.options;
    let Some(increment) = package
        .routine(Routine::Increment)
        .filter(|_| options.security == Security::Definer)
    else {
        return Ok(None);
    };
    let definer: Option<Vec<u8>> = connection.query_first(format!(
        "SELECT DEFINER
           FROM information_schema.ROUTINES
          WHERE ROUTINE_SCHEMA = DATABASE()
            AND ROUTINE_NAME = {}
            AND SECURITY_TYPE = 'DEFINER'",
        SqlStr(increment.name())
    ))?;
    let Some(definer) = definer.and_then(|definer| String::from_utf8(definer).ok()) else {
        return Ok(None);
    };
    let privileges = match Privileges::of_account(connection, definer) {
        // It does not exist, or this account has no SELECT on the database mysql.
        Err(mysql::Error::MySqlError(_)) => return Ok(None),
        privileges => privileges?,
    };
    Ok(privileges.has_global(&USED).then(|| {
        let own = Options {
            definer: OWN.parse().ok(),
            ..options.clone()
        };
        let arguments = own.arguments();
        Problem {
            what: format!(
                "the routines run as {}, which has privileges on all databases: an account that can put a view in the place of the table {} \
                 can use them for other tables",
                privileges.account,
                options.table.plain()
            ),
            remedy: format!(
                "to prevent it, source accounts.sql of: slotted generate {arguments}\n  and then run: slotted install {arguments}"
            ),
        }
    }))
}
