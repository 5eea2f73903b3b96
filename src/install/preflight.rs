//! What a server must have, although an installation would succeed without it, or has succeeded.

use clap::ValueEnum;
use mysql::Conn;
use mysql::prelude::Queryable;

use super::error::Problem;
use crate::package::{Definer, Family, Options, Package, Security, shell_word};
use crate::server::{self, Version, account};

/// A version whose server accepts the scripts, and on which the routines would fail or count wrong.
pub fn version(connection: &mut Conn) -> mysql::Result<Option<Problem>> {
    let version = Version::of(connection)?;
    let number = (version.major, version.minor, version.patch);
    let upgrade =
        |to: &str| Some(Problem::new(format!("{version} is too old"), format!("upgrade the server to {to} or later")));
    Ok(match version.family {
        Family::Mysql if number < (8, 0, 16) => upgrade("MySQL 8.0.16"),
        Family::Mariadb if number < (10, 11, 8) || ((11, 0, 0)..(11, 4, 2)).contains(&number) => {
            upgrade("MariaDB 10.11.8 or 11.4.2")
        }
        _ => None,
    })
}

/// The current database.
fn database(connection: &mut Conn) -> mysql::Result<String> {
    Ok(connection.query_first::<Option<String>, _>("SELECT DATABASE()")?.flatten().unwrap_or_default())
}

/// The command that installs a package with these options in the current database.
pub fn command(connection: &mut Conn, options: &Options) -> mysql::Result<String> {
    Ok(format!("slotted install {} --database {}", options.arguments(), shell_word(&database(connection)?)))
}

/// The statement that grants an account privileges on the current database.
pub fn grant(connection: &mut Conn, privileges: &str, account: &str) -> mysql::Result<String> {
    let database = database(connection)?;
    server::grant(connection, privileges, &database, account)
}

/// Whether this account sees each view of the current database: the servers list those on which an account has a privilege.
pub fn sees(connection: &mut Conn) -> mysql::Result<bool> {
    let query = "SELECT COUNT(*) > 0
                   FROM (SELECT GRANTEE, PRIVILEGE_TYPE FROM information_schema.USER_PRIVILEGES
                          UNION ALL
                         SELECT GRANTEE, PRIVILEGE_TYPE FROM information_schema.SCHEMA_PRIVILEGES WHERE DATABASE() LIKE TABLE_SCHEMA) AS privileges
                  WHERE GRANTEE = ? AND PRIVILEGE_TYPE = 'SELECT'";
    let account = account(connection)?;
    Ok(connection.exec_first(query, (account,))? == Some(true))
}

/// How this account gets what it needs to see the objects of the packages in the current database, also what the definer of an event may do.
pub fn sight(connection: &mut Conn, event: bool) -> mysql::Result<String> {
    let account = account(connection)?;
    let is_mysql = Version::of(connection)?.family == Family::Mysql;
    let mut grants = vec![if is_mysql { "SHOW_ROUTINE ON *.*" } else { "SELECT ON mysql.proc" }];
    if event {
        // Not the passwords.
        grants.extend([
            "SELECT (User, Host, Event_priv, Execute_priv) ON mysql.user",
            "SELECT (User, Host, Db, Event_priv, Execute_priv) ON mysql.db",
            "SELECT (User, Host, Db, Routine_name, Proc_priv) ON mysql.procs_priv",
        ]);
        grants.extend(is_mysql.then_some("SELECT ON mysql.default_roles"));
    }
    let grants: String = grants.iter().map(|what| format!("; GRANT {what} TO {account}")).collect();
    Ok(format!("run as an administrator: {}{grants}", grant(connection, "SELECT, SHOW VIEW", &account)?))
}

/// A definer that does not exist: each call would fail (1449). An account that cannot see others does not learn it.
pub fn definer(connection: &mut Conn, package: &Package) -> mysql::Result<Option<Problem>> {
    let Some(definer) = &package.options.definer else { return Ok(None) };
    // MariaDB answers with columns before the error.
    let grants = connection.query::<String, _>(format!("SHOW GRANTS FOR {definer}"));
    // "There is no such grant". Source: MySQL manual, "Server Error Message Reference".
    if !matches!(&grants, Err(mysql::Error::MySqlError(error)) if error.code == 1141) {
        return Ok(None);
    }
    let event = package.options.column().map_or("", |_| ", EVENT");
    let privileges = format!("SELECT, INSERT, UPDATE, DELETE, EXECUTE{event}");
    let grant = grant(connection, &privileges, &definer.to_string())?;
    let remedy = format!("run as an administrator: CREATE USER {definer} ACCOUNT LOCK; {grant}");
    Ok(Some(Problem { what: format!("the definer {} does not exist", definer.plain()), remedy }))
}

/// What the routines of a package have, each value once, that of most first.
fn of_routines(connection: &mut Conn, package: &Package, column: &str) -> mysql::Result<Vec<String>> {
    // To the collation of information_schema, Root and root are one account.
    connection.query(format!(
        "SELECT CAST({column} AS CHAR) COLLATE utf8mb4_bin AS value
           FROM information_schema.ROUTINES
          WHERE ROUTINE_SCHEMA = DATABASE() AND ROUTINE_NAME IN ({})
          GROUP BY value
          ORDER BY COUNT(*) DESC, value",
        package.names()
    ))
}

/// The definers of the routines of a package. None: one that no option can name, or that this account cannot see.
pub fn definers(connection: &mut Conn, package: &Package) -> mysql::Result<Vec<Option<Definer>>> {
    let found = of_routines(connection, package, "DEFINER")?;
    Ok(found.iter().map(|definer| Definer::stored(definer)).collect())
}

/// SQL SECURITY, if it is that of all routines.
pub fn security(connection: &mut Conn, package: &Package) -> mysql::Result<Option<Security>> {
    let found = of_routines(connection, package, "SECURITY_TYPE")?;
    Ok(if let [one] = &found[..] { Security::from_str(one, true).ok() } else { None })
}

/// Whether this account is the definer of all routines. It calls no others: the owner of the database can replace one just before its call.
pub fn calls(connection: &mut Conn, package: &Package) -> mysql::Result<bool> {
    let own: Option<String> = connection.query_first("SELECT CURRENT_USER()")?;
    let own = own.and_then(|own| Definer::stored(&own));
    Ok(own.is_some() && definers(connection, package)? == [own])
}

/// Routines of several accounts, although the options name none: one of them could be dropped, or lack a privilege.
pub fn mixed(connection: &mut Conn, package: &Package) -> mysql::Result<Option<Problem>> {
    let definers: Vec<_> = definers(connection, package)?.into_iter().flatten().collect();
    if package.options.definer.is_some() || definers.len() < 2 {
        return Ok(None);
    }
    let names: Vec<_> = definers.iter().map(Definer::plain).collect();
    let what = format!("the routines of {} have several definers: {}", package.own_name(), names.join(", "));
    let options = Options { definer: definers.into_iter().next(), ..package.options.clone() };
    Ok(Some(Problem { what, remedy: format!("run {}", command(connection, &options)?) }))
}

/// A package without slots of nodes on a node of a cluster. Its scripts reject such a server, which can have become one later.
pub fn cluster(connection: &mut Conn, package: &Package) -> mysql::Result<Option<Problem>> {
    let query = if package.options.mariadb() {
        "SELECT VARIABLE_VALUE > 1 FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'wsrep_cluster_size'"
    } else {
        "SELECT VARIABLE_VALUE = 'OFF' FROM performance_schema.global_variables WHERE VARIABLE_NAME = 'group_replication_single_primary_mode'"
    };
    let writers: Option<bool> = connection.query_first(query)?;
    if writers != Some(true) || package.options.cluster {
        return Ok(None);
    }
    Ok(Some(Problem {
        what: "all nodes of this cluster accept writes: calls on different nodes conflict (1213), because they use the same slots".to_owned(),
        remedy: format!("run {}", command(connection, &Options { cluster: true, ..package.options.clone() })?),
    }))
}
