//! Moves the counts of all rows of a column, in batches.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use mysql::prelude::{FromRow, Queryable};
use mysql::{Conn, Params, Value};

use super::{AdoptError, Counter, Doing, Result, complete, prepare};
use crate::connect::Session;
use crate::package::{Conversion, Ident, Kind, Origin, Origins, Package, Source};
use crate::render::{Adopt, Target};

/// A move of a whole column.
#[derive(Debug)]
pub struct Move<'a> {
    package: &'a Package,
    source: &'a Source,
    target: Target,
    /// Whether different keys of the source can be one key of the package.
    inexact: bool,
    /// Whether no record existed when the move began, and no duplicate has been found since.
    inserts: AtomicBool,
    /// The number of rows of a batch.
    pub batch: u64,
    /// The number of slots of a new named counter.
    pub slots: Option<u32>,
    /// Whether a counter of another row gets the count, too.
    pub into_existing: bool,
}

/// The sums of the column and of all counters of the package, in one snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sums {
    /// The rows of the source.
    pub rows: u64,
    /// The rows whose count is not 0.
    pub counts: u64,
    /// The sum of the column.
    pub source: i128,
    /// The sum of the totals of the package.
    pub package: i128,
}

/// A value of the key of the source.
type Key = Vec<Value>;

impl<'a> Move<'a> {
    /// A move into a package of records, whose key has the values `origins`.
    ///
    /// # Errors
    /// A key column has no value, or one that the server would change.
    pub fn to_records(package: &'a Package, source: &'a Source, origins: Option<&Origins>) -> Result<Self> {
        let key = &package.options.key.0;
        let hint = format!(
            "add --key with a column or a value for each of: {}",
            package.options.key
        );
        let mut origins =
            Origins::of(origins, key, source).map_err(|error| AdoptError::rejected(error, &hint))?;
        let collation = package.options.collation.to_string();
        let mut inexact = false;
        for (column, origin) in key.iter().zip(&mut origins) {
            let Origin::Column(name) = origin else { continue };
            let Some(from) = source.column(name) else {
                return Err(AdoptError::rejected(
                    format!("{} has no column {}", source.place(), name.plain()),
                    hint,
                ));
            };
            // As the server writes it.
            name.clone_from(&from.name);
            match from.conversion(column, &collation) {
                Conversion::Exact => {}
                Conversion::Collation => inexact = true,
                Conversion::None => {
                    return Err(AdoptError::rejected(
                        format!(
                            "the column {} of type {} cannot be the key column {}",
                            name.plain(),
                            from.kind,
                            column.name.plain()
                        ),
                        "render the package with a --key of the same type",
                    ));
                }
            }
        }
        let unused = |one: &&str| {
            !origins
                .iter()
                .any(|origin| matches!(origin, Origin::Column(name) if name.name() == *one))
        };
        let known = [
            "record_type",
            "record_id",
            "associated_record_id",
            "associated_record_type",
            "counter_name",
        ];
        let slots = source.column.name() == "count" && source.column(&super::ident("slot")).is_some();
        let missing = known
            .iter()
            .find(|one| slots && source.column(&super::ident(one)).is_some() && unused(one));
        if let Some(missing) = missing {
            return Err(AdoptError::rejected(
                format!(
                    "the records of {} also have the column {missing}, which the key of the package does not have",
                    source.place()
                ),
                "render the package with this column in --key",
            ));
        }
        Ok(Self::new(package, source, Target::Records(origins), inexact))
    }

    /// A move into named counters. `name` is an expression, or None for the name of the article's table or one that is made
    /// from the key of the row.
    ///
    /// # Errors
    /// The rows have no key.
    pub fn to_named(package: &'a Package, source: &'a Source, name: Option<String>) -> Result<Self> {
        let ident = super::ident;
        let of_article =
            ["counter_name", "counter_id", "description"].map(|name| source.column(&ident(name)).is_some());
        let design = (source.column.name() == "counter" && of_article == [true; 3] && name.is_none())
            .then(|| (ident("counter_name"), ident("description")));
        if source.key.is_empty() {
            return Err(AdoptError::rejected(
                format!(
                    "{} has no primary key, so that its rows cannot be told apart",
                    source.place()
                ),
                "add a primary key, or move the column into slotted_counters",
            ));
        }
        let name = name.or_else(|| design.as_ref().map(|(name, _)| name.to_string()));
        Ok(Self::new(package, source, Target::Named { name, design }, true))
    }

    fn new(package: &'a Package, source: &'a Source, target: Target, inexact: bool) -> Self {
        Self {
            package,
            source,
            target,
            inexact,
            inserts: AtomicBool::new(false),
            batch: 10_000,
            slots: None,
            into_existing: false,
        }
    }

    fn statements(&self) -> Adopt<'_> {
        Adopt::new(self.package, self.source, &self.target)
    }

    fn named(&self) -> bool {
        self.package.options.kind == Kind::Counters
    }

    /// Checks what would stop the move in the middle, or would add up the counts of different keys.
    ///
    /// # Errors
    /// A key has NULL or is too long, or two keys are one key of the package.
    pub fn check(&self, connection: &mut Conn) -> Result<()> {
        let source = self.source;
        let statements = self.statements();
        let nullable: Vec<&Ident> = statements
            .origin_columns()
            .into_iter()
            .filter(|name| source.column(name).is_some_and(|column| column.null))
            .collect();
        if !nullable.is_empty() {
            let rows: Option<u64> = connection
                .query_first(statements.no_key(&nullable))
                .doing("read the keys")?;
            if let Some(rows @ 1..) = rows {
                return Err(AdoptError::rejected(
                    format!(
                        "{rows} rows of {} have a count and NULL in their key",
                        source.place()
                    ),
                    "give these rows a key, or set their count to 0",
                ));
            }
        }
        if self.named() {
            let long: Option<Vec<u8>> = connection
                .query_first(statements.long_name())
                .doing("read the names")?;
            if let Some(name) = long {
                let name = String::from_utf8_lossy(&name);
                return Err(AdoptError::rejected(
                    format!(
                        "the name of a counter has at most {} characters: {name}",
                        crate::package::NAME_MAX
                    ),
                    "give an expression for shorter names: --name \"CONCAT('page ', id)\"",
                ));
            }
        }
        self.check_collisions(connection)
    }

    fn check_collisions(&self, connection: &mut Conn) -> Result<()> {
        if !self.inexact || self.into_existing {
            return Ok(());
        }
        let two: Option<(Vec<u8>, Vec<u8>)> = connection
            .query_first(self.statements().collision())
            .doing("compare the keys")?;
        let Some((one, other)) = two else { return Ok(()) };
        let [one, other] = [one, other].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let table = self.package.options.table.plain();
        let hint = if self.named() {
            "give an expression for different names with --name, render the package with the collation of the column, or add \
             --into-existing to add the counts up"
        } else {
            "render the package with --collation and the collation of the column, or add --into-existing to add the counts up"
        };
        Err(AdoptError::rejected(
            format!(
                "two keys of {} are one key of {table}: {one} and {other}",
                self.source.place()
            ),
            hint,
        ))
    }

    /// The sums of the column and of the package.
    ///
    /// # Errors
    /// The server rejects the query.
    pub fn sums(&self, connection: &mut Conn) -> Result<Sums> {
        let row: Option<(u64, u64, String, String)> = connection
            .query_first(self.statements().sums())
            .doing("read the sums")?;
        let (rows, counts, source, package) = row.unwrap_or_default();
        let number = |text: &str| {
            text.parse().map_err(|_| {
                AdoptError::rejected(
                    format!(
                        "the sum of {} is not an integer of this program: {text}",
                        self.source.plain()
                    ),
                    "correct the rows with a great count",
                )
            })
        };
        Ok(Sums {
            rows,
            counts,
            source: number(&source)?,
            package: number(&package)?,
        })
    }

    /// Whether rows of different batches never have the same counter, so that several connections can move batches.
    fn parallel(&self) -> bool {
        self.source.is_unique(&self.statements().origin_columns()) && !(self.inexact && self.into_existing)
    }

    /// Moves all counts, with `connections` at the same time if different rows have different records. Each calls `moved`
    /// with the number of rows of a batch after its COMMIT, until `interrupted` is set. Returns the number of rows.
    ///
    /// # Errors
    /// The server rejects a statement. The batches before it are moved.
    pub fn run(
        &self,
        connect: &(dyn Fn() -> mysql::Result<Session> + Sync),
        connections: u32,
        rows: u64,
        interrupted: &AtomicBool,
        moved: &(dyn Fn(u64) + Sync),
    ) -> Result<u64> {
        let mut connection = self.connect(connect)?;
        if !self.named() {
            let query = format!("SELECT 1 FROM {} LIMIT 1", self.package.options.table);
            let record: Option<u8> = connection.query_first(query).doing("read the records")?;
            self.inserts.store(record.is_none(), Ordering::Relaxed);
        }
        if self.source.key.is_empty() {
            let rows = self.batch(&mut connection, "TRUE", &[])?;
            moved(rows);
            return Ok(rows);
        }
        let Some(greatest) = self.next(&mut connection, "TRUE", " DESC", 0, Vec::new())? else {
            return Ok(0);
        };
        // Each connection has a part of the key of its own: a range that is locked waits for the next one.
        let parts = if self.parallel() {
            u64::from(connections).min(rows / self.batch).max(1)
        } else {
            1
        };
        let mut ends = Vec::new();
        for part in 1..parts {
            ends.extend(self.next(&mut connection, "TRUE", "", rows * part / parts, Vec::new())?);
        }
        ends.push(greatest);
        let failed = AtomicBool::new(false);
        let stop = || interrupted.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed);
        let part = |at: usize| {
            let start = at.checked_sub(1).map(|before| ends[before].clone());
            let result = self
                .connect(connect)
                .and_then(|mut connection| self.part(&mut connection, start, &ends[at], &stop, moved));
            failed.fetch_or(result.is_err(), Ordering::Relaxed);
            result
        };
        let results: Vec<_> = thread::scope(|scope| {
            let running: Vec<_> = (0..ends.len()).map(|at| scope.spawn(move || part(at))).collect();
            running
                .into_iter()
                .map(|part| {
                    part.join()
                        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                })
                .collect()
        });
        results.into_iter().sum()
    }

    fn connect(&self, connect: &dyn Fn() -> mysql::Result<Session>) -> Result<Session> {
        let mut connection = connect().doing("connect")?;
        prepare(&mut connection, self.package).doing("set the session")?;
        Ok(connection)
    }

    /// Moves the batches of a part: the rows after `after` until `end`.
    fn part(
        &self,
        connection: &mut Conn,
        mut after: Option<Key>,
        end: &Key,
        stop: &dyn Fn() -> bool,
        moved: &dyn Fn(u64),
    ) -> Result<u64> {
        let source = self.source;
        let statements = self.statements();
        let until = statements.compared("<=");
        let range = format!("{} AND {until}", statements.compared(">="));
        // A zero in a row without a counter creates the counter, because an increment does not.
        let wanted = if self.named() {
            String::new()
        } else {
            format!(" AND {} <> 0", source.column)
        };
        let mut total = 0;
        while !stop() {
            let (condition, mut bounds) = match &after {
                Some(after) => (
                    format!("{} AND {until}{wanted}", statements.compared(">")),
                    source.bound(after),
                ),
                None => (format!("{until}{wanted}"), Vec::new()),
            };
            bounds.extend(source.bound(end));
            let Some(first) = self.next(connection, &condition, "", 0, bounds)? else {
                break;
            };
            let to_end = [source.bound(&first), source.bound(end)].concat();
            let last = self
                .next(connection, &range, "", self.batch - 1, to_end)?
                .unwrap_or_else(|| end.clone());
            let rows = self.batch(
                connection,
                &range,
                &[source.bound(&first), source.bound(&last)].concat(),
            )?;
            total += rows;
            moved(rows);
            after = Some(last);
        }
        Ok(total)
    }

    /// The key of a row.
    fn next(
        &self,
        connection: &mut Conn,
        condition: &str,
        direction: &str,
        offset: u64,
        bounds: Key,
    ) -> Result<Option<Key>> {
        let statement = self.statements().next(condition, direction, &offset.to_string());
        Ok(first_row::<mysql::Row>(connection, &statement, bounds)?.map(mysql::Row::unwrap))
    }

    /// Moves the rows of a range in one transaction.
    fn batch(&self, connection: &mut Conn, range: &str, bounds: &[Value]) -> Result<u64> {
        complete(connection, |transaction| {
            if self.named() {
                self.batch_of_names(transaction, range, bounds)
            } else {
                self.batch_of_records(transaction, range, bounds)
            }
        })
    }

    fn batch_of_records(
        &self,
        transaction: &mut mysql::Transaction<'_>,
        range: &str,
        bounds: &[Value],
    ) -> Result<u64> {
        let inserts = self.inserts.load(Ordering::Relaxed);
        let added = transaction
            .exec_drop(self.statements().upsert(range, inserts), params(bounds))
            .doing("add to the records");
        match added {
            // A session has counted since. The lock of a duplicate row would be a deadlock, so all is rolled back.
            Err(error) if inserts && error.number() == Some(1062) => {
                self.inserts.store(false, Ordering::Relaxed);
                return Err(AdoptError::Changed);
            }
            added => added?,
        }
        // The number of affected rows is 1 for a new record and 2 for an existing one.
        let info = transaction.info_str().into_owned();
        let rows = info
            .strip_prefix("Records: ")
            .and_then(|rest| rest.split(' ').next()?.parse().ok());
        let rows = rows.ok_or_else(|| {
            AdoptError::rejected(format!("the server has no number of records: {info}"), "")
        })?;
        self.zero(transaction, range, bounds, rows)?;
        Ok(rows)
    }

    fn batch_of_names(
        &self,
        transaction: &mut mysql::Transaction<'_>,
        range: &str,
        bounds: &[Value],
    ) -> Result<u64> {
        type Row = (Option<Vec<u8>>, Option<Vec<u8>>, String);
        let rows: Vec<Row> = transaction
            .exec(self.statements().rows(range), params(bounds))
            .doing("lock the rows")?;
        let mut counts = 0;
        for (name, identity, count) in &rows {
            let name = text(name.as_ref(), self.source)?.unwrap_or_default();
            let identity = text(identity.as_ref(), self.source)?;
            let count: i64 = count.parse().map_err(|_| {
                AdoptError::rejected(
                    format!("the count of {name} exceeds the range of BIGINT: {count}"),
                    "correct the row",
                )
            })?;
            let counter = Counter {
                name,
                identity,
                slots: self.slots,
                into_existing: self.into_existing,
            };
            counter.add(transaction, self.package, count)?;
            counts += u64::from(count != 0);
        }
        self.zero(transaction, range, bounds, counts)?;
        Ok(rows.len() as u64)
    }

    /// Sets the counts of a range to 0, which must be those that are moved.
    fn zero(
        &self,
        transaction: &mut mysql::Transaction<'_>,
        range: &str,
        bounds: &[Value],
        counts: u64,
    ) -> Result<()> {
        let condition = format!("{range} AND {} <> 0", self.source.column);
        transaction
            .exec_drop(self.statements().zero(&condition), params(bounds))
            .doing("set the rows to 0")?;
        if transaction.affected_rows() == counts {
            Ok(())
        } else {
            Err(AdoptError::Changed)
        }
    }
}

/// A name or a description. The servers return bytes that are no characters for a column of bytes.
pub(super) fn text<'a>(bytes: Option<&'a Vec<u8>>, source: &Source) -> Result<Option<&'a str>> {
    let text = bytes.map(|bytes| std::str::from_utf8(bytes)).transpose();
    text.map_err(|_| {
        AdoptError::rejected(
            format!("a key of {} has bytes that are no characters", source.place()),
            "give an expression for the names: --name \"CONCAT('page ', HEX(id))\"",
        )
    })
}

fn params(bounds: &[Value]) -> Params {
    if bounds.is_empty() {
        Params::Empty
    } else {
        Params::Positional(bounds.to_vec())
    }
}

fn first_row<T: FromRow>(connection: &mut impl Queryable, statement: &str, bounds: Key) -> Result<Option<T>> {
    connection
        .exec_first(statement, params(&bounds))
        .doing("read the rows")
}
