//! What the server says about the table of a column whose counts a package has.

use mysql::prelude::Queryable;
use mysql::{Conn, Row};

use super::compare::{State, hold};
use super::error::Problem;
use super::installed::text;
use super::{definers, hint};
use crate::package::{Collation, Definer, Ident, Key, Package, SqlStr, TableColumn};
use crate::render;
use crate::script::tokens;

/// The key of the table and the properties of its columns that a package depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parent {
    /// The primary key, or another unique index without NULL, with the types of its columns.
    pub key: Key,
    /// The collation of the text columns of the key.
    pub collation: Option<Collation>,
    /// The columns with ON UPDATE CURRENT_TIMESTAMP.
    pub on_update: Vec<Ident>,
}

/// A table as information_schema describes it.
struct ParentTable {
    name: String,
    columns: Vec<ParentColumn>,
    /// The columns of each unique index without NULL, the primary key first.
    unique: Vec<Vec<String>>,
}

struct ParentColumn {
    name: String,
    /// As an option of the tool has it: `BIGINT UNSIGNED`. MariaDB writes a display width.
    kind: String,
    collation: Option<String>,
    null: bool,
    on_update: bool,
}

impl ParentTable {
    /// None if the database has no such table, or this account cannot see it.
    fn read(connection: &mut Conn, table: &Ident) -> mysql::Result<Option<Self>> {
        let name = table.name().to_owned();
        match hold(connection, [table])? {
            State::Same => {}
            State::Changed(_) => return Ok(Some(Self { name, columns: vec![], unique: vec![] })),
            _ => return Ok(None),
        }
        type Fields = (String, String, Option<String>, bool, bool);
        let columns = connection.exec_map(
            "SELECT COLUMN_NAME, UPPER(IF(DATA_TYPE LIKE '%int', CONCAT(DATA_TYPE, IF(COLUMN_TYPE LIKE '%unsigned%', ' unsigned', '')), COLUMN_TYPE)),
                    COLLATION_NAME, IS_NULLABLE = 'YES', LOWER(EXTRA) LIKE '%on update%'
               FROM information_schema.COLUMNS
              WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ?
              ORDER BY ORDINAL_POSITION",
            (table.name(),),
            |(name, kind, collation, null, on_update): Fields| ParentColumn { name, kind, collation, null, on_update },
        )?;
        // MariaDB adds the end of a row's version to each unique index of a system-versioned table: only current rows are read. A part of
        // an index on an expression has no column.
        let parts: Vec<(String, Option<String>)> = connection.exec(
            "SELECT INDEX_NAME, COLUMN_NAME
               FROM information_schema.STATISTICS
              WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ? AND NON_UNIQUE = 0
                AND COALESCE(COLUMN_NAME, '') NOT IN (
                  SELECT COLUMN_NAME FROM information_schema.COLUMNS
                   WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ? AND GENERATION_EXPRESSION = 'ROW END'
                )
              ORDER BY INDEX_NAME <> 'PRIMARY', INDEX_NAME, SEQ_IN_INDEX",
            (table.name(), table.name()),
        )?;
        connection.query_drop("COMMIT")?;
        let is_part = |name: &String| columns.iter().any(|column| column.name == *name && !column.null);
        let indexes = parts.chunk_by(|one, next| one.0 == next.0);
        let names =
            |index: &[(_, Option<String>)]| index.iter().map(|(_, name)| name.clone().filter(is_part)).collect();
        let unique = indexes.filter_map(names).collect();
        Ok(Some(Self { name, columns, unique }))
    }

    /// The columns with ON UPDATE CURRENT_TIMESTAMP.
    fn on_update(&self) -> Result<Vec<Ident>, Problem> {
        let names = self.columns.iter().filter(|column| column.on_update).map(|column| Ident::new(&column.name));
        names.collect::<Result<_, _>>().map_err(|error| {
            Problem::new(
                format!("{} has a column with ON UPDATE CURRENT_TIMESTAMP that --keep cannot name: {error}", self.name),
                "rename the column with ALTER TABLE",
            )
        })
    }

    /// The collation of the text columns of a key.
    fn collation(&self, key: &[&ParentColumn]) -> Result<Option<Collation>, Problem> {
        let mut collations: Vec<_> = key.iter().filter_map(|column| column.collation.clone()).collect();
        collations.dedup();
        match &collations[..] {
            [] => Ok(None),
            [one] => one.parse().map(Some).map_err(|error| {
                Problem::new(
                    format!("the key of {} has the collation {one}: {error}", self.name),
                    "change the collation with ALTER TABLE",
                )
            }),
            _ => Err(Problem::new(
                format!("the columns of the key of {} have the collations {}", self.name, collations.join(" and ")),
                "give them one collation with ALTER TABLE",
            )),
        }
    }

    fn parent(&self) -> Result<Parent, Problem> {
        let Some(names) = self.unique.first() else {
            return Err(Problem::new(
                format!("{} has no primary key, and no unique index whose columns are NOT NULL", self.name),
                "add a primary key",
            ));
        };
        let columns = names.iter().filter_map(|name| self.columns.iter().find(|column| column.name == *name));
        let columns: Vec<_> = columns.collect();
        let definition = |column: &&ParentColumn| format!("{} {}", Ident::stored(&column.name).plain(), column.kind);
        let definitions = columns.iter().map(definition).collect::<Vec<_>>().join(", ");
        Ok(Parent {
            key: definitions.parse().map_err(|error| {
                Problem::new(
                    format!("the key of {} ({definitions}) cannot be the key of a package: {error}", self.name),
                    "give the table another unique index, whose columns are NOT NULL",
                )
            })?,
            collation: self.collation(&columns)?,
            on_update: self.on_update()?,
        })
    }
}

/// Reads the table of a column in the current database. What does not fit a package is the inner error.
pub fn parent(connection: &mut Conn, column: &TableColumn) -> mysql::Result<Result<Parent, Problem>> {
    let table = ParentTable::read(connection, &column.table)?;
    let missing = || {
        let what = format!("the database has no table {}, or this account cannot see it", column.table.plain());
        Problem::new(what, "give TABLE.COLUMN of a table in --database, as an account that can read it")
    };
    Ok(table.ok_or_else(missing).and_then(|table| table.parent()))
}

/// An event that calls a roll-up.
pub struct Event {
    status: String,
    definer: String,
    schedule: String,
    /// Why it does not run now: it has ended, or does not start within a day.
    late: Option<String>,
    body: Vec<u8>,
}

/// The event that calls the roll-up, with its name. None if the database has no such event, or the account cannot see it.
pub fn event<'a>(connection: &mut Conn, package: &'a Package) -> mysql::Result<Option<(&'a Ident, Event)>> {
    let Some(name) = package.event() else {
        return Ok(None);
    };
    let mut events = connection.exec_map(
        "SELECT STATUS, DEFINER, COALESCE(CONCAT('EVERY ', INTERVAL_VALUE, ' ', INTERVAL_FIELD), 'EVERY 10 SECOND'),
                CASE WHEN CONVERT_TZ(ENDS, TIME_ZONE, @@time_zone) < NOW() THEN CONCAT('has ended at ', ENDS)
                     WHEN CONVERT_TZ(STARTS, TIME_ZONE, @@time_zone) > NOW() + INTERVAL 1 DAY
                     THEN CONCAT('does not begin before ', STARTS) END,
                EVENT_DEFINITION
           FROM information_schema.EVENTS
          WHERE BINARY EVENT_SCHEMA = DATABASE()
            AND EVENT_NAME = ?",
        (name.name(),),
        |(status, definer, schedule, late, body)| Event { status, definer, schedule, late, body },
    )?;
    Ok(events.pop().map(|event| (name, event)))
}

/// What keeps the event that calls the roll-up from running. Nothing if the database has no such event: other programs can call it.
///
/// # Errors
/// The connection fails, or the account cannot see the privileges of the definer (1142).
pub fn event_problem(connection: &mut Conn, package: &Package) -> mysql::Result<Option<Problem>> {
    let Some((name, event)) = event(connection, package)? else { return Ok(None) };
    let definer = &event.definer;
    // SLAVESIDE_DISABLED on MariaDB and before MySQL 8.2, REPLICA_SIDE_DISABLED since then: a replica does not run the events of its source.
    if event.status.ends_with("SIDE_DISABLED") && is_replica(connection)? {
        return Ok(None);
    }
    // The account that the remedy names. The owner of the database can write any other one into the view of the package or into an event.
    let definers = definers::all(connection, package)?;
    let [Some(caller)] = &definers[..] else { return Ok(None) };
    let (wanted, create) = render::event(name, &event.schedule, Some(caller));
    let again = format!("DROP EVENT {name};\n{create}");
    let problem = |why: String, remedy| Ok(Some(Problem::new(format!("the event {} {why}", name.name()), remedy)));
    let words = |body: &str| tokens(body).iter().map(|word| word.trim_matches('`').to_lowercase()).collect::<Vec<_>>();
    if words(&text(event.body)) != words(&wanted) {
        return problem(format!("calls something else than {wanted}"), again);
    }
    // Whoever may replace the roll-up would execute as the definer of the event.
    let account = Definer::stored(definer);
    let other = package.options.definer.as_ref().filter(|wanted| account.as_ref() != Some(*wanted));
    let why = event.late.clone().or((event.status != "ENABLED").then(|| format!("is {}", event.status)));
    let why = why.map(|why| format!("{why}: it does not call the roll-up"));
    if let Some(why) = why.or(other.map(|wanted| format!("runs as {definer} instead of {}", wanted.plain()))) {
        // Without the clause, it would run as the account that changes it.
        let enable = format!("ALTER DEFINER = {caller} EVENT {name} ENABLE");
        return problem(why, if event.late.is_none() { enable } else { again });
    }
    if let Some(problem) = definer_problem(connection, name, definer, &again)? {
        return Ok(Some(problem));
    }
    let scheduler: Option<String> = connection.query_first("SELECT @@GLOBAL.event_scheduler")?;
    Ok((scheduler.as_deref() != Some("ON")).then(|| {
        Problem::new(
            format!("the event scheduler is not ON: the event {} does not call the roll-up", name.name()),
            "SET GLOBAL event_scheduler = ON; also write event_scheduler = ON into my.cnf",
        )
    }))
}

/// A definer that does not exist, or lacks a privilege: the server says so only in its error log. This account itself is not checked.
fn definer_problem(connection: &mut Conn, name: &Ident, definer: &str, again: &str) -> mysql::Result<Option<Problem>> {
    let own: Option<String> = connection.query_first("SELECT CURRENT_USER()")?;
    let Some(account) = Definer::stored(definer).filter(|_| own.as_deref() != Some(definer)) else {
        return Ok(None);
    };
    let (text, routine) = (SqlStr(definer), SqlStr(name.name()));
    // On MySQL, an event has the privileges of the default roles, too.
    let row: Option<(bool, String)> = connection.query_first(format!(
        "SELECT COUNT(*) > 0, CONCAT_WS(', ', IF(MAX(Event_priv) = 'Y', NULL, 'EVENT'), IF(MAX(Execute_priv) = 'Y', NULL, 'EXECUTE'))
           FROM (SELECT CONCAT(User, '@', Host) AS account, Event_priv, Execute_priv FROM mysql.user
                  UNION ALL
                 SELECT CONCAT(User, '@', Host), Event_priv, Execute_priv FROM mysql.db WHERE DATABASE() LIKE Db
                  UNION ALL
                 SELECT CONCAT(User, '@', Host), 'N', IF(FIND_IN_SET('Execute', Proc_priv), 'Y', 'N') FROM mysql.procs_priv
                  WHERE Db = DATABASE() AND Routine_name = {routine}) AS privileges
          WHERE account = {text}
             /*!80000 OR account IN (SELECT CONCAT(DEFAULT_ROLE_USER, '@', DEFAULT_ROLE_HOST) FROM mysql.default_roles
                                      WHERE CONCAT(USER, '@', HOST) = {text}) */"
    ))?;
    let (exists, lacks) = row.unwrap_or_default();
    let (what, remedy) = if exists {
        (format!("lacks {lacks}"), hint::grant(connection, &lacks, &account.to_string())?)
    } else {
        ("does not exist".to_owned(), again.to_owned())
    };
    let what = format!("the event {} runs as {definer}, which {what}", name.name());
    Ok((!lacks.is_empty()).then(|| Problem::new(what, remedy)))
}

/// Whether the server is a replica: it has a source, or, if the account cannot see that, it is read-only.
fn is_replica(connection: &mut Conn) -> mysql::Result<bool> {
    for query in ["SHOW REPLICA STATUS", "SHOW SLAVE STATUS"] {
        if let Ok(sources) = connection.query::<Row, _>(query) {
            return Ok(!sources.is_empty());
        }
    }
    Ok(connection.query_first("SELECT @@GLOBAL.read_only")? == Some(true))
}
