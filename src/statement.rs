//! Reads what a statement of another session does with the columns of a row: the amounts that it adds, and the limits that it
//! compares them with. Pure. What it does not understand for certain has a [`Doubt`] and no meaning.
//!
//! The servers return the beginning of a statement, with variables of routines and placeholders.

use std::collections::{BTreeMap, BTreeSet};

use sqlparser::ast::{
    Assignment, AssignmentTarget, BinaryOperator, CastKind, DataType, Expr, Function, FunctionArg,
    FunctionArgExpr, FunctionArguments, Ident, InTarget, Insert, ObjectName, OnInsert, SetExpr, Statement,
    TableFactor, TableObject, UnaryOperator, Update, Value,
};
use sqlparser::dialect::MySqlDialect;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use crate::package::{SourceColumn, quoted};
use crate::script::{is_space, pieces};

/// The server truncates a statement to this length, in bytes.
/// Source: MySQL manual, "The INFORMATION_SCHEMA INNODB_TRX Table".
const STATEMENT_MAX: usize = 1_024;

/// The table of the row, as the server describes it.
#[derive(Debug, Clone, Default)]
pub struct Table {
    /// The name of its schema.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// Its columns.
    pub columns: Vec<SourceColumn>,
    /// The columns of each unique index.
    pub unique: Vec<Vec<String>>,
    /// Whether it has one row.
    pub one_row: bool,
    /// The conditions of its CHECK constraints.
    pub checks: Vec<String>,
    /// The unique indexes on expressions, each with its expression.
    pub expressions: Vec<(String, String)>,
    /// Its triggers for UPDATE.
    pub triggers: Vec<String>,
    /// Its triggers that run before each INSERT, also before one that updates a row.
    pub insert_triggers: Vec<String>,
    /// The views of its schema, each with its definition.
    pub views: Vec<(String, String)>,
}

/// What a statement does with a column, so that a counter can replace it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase", tag = "use", content = "limit")]
pub enum Use {
    /// Adds an amount, positive or negative, on no condition.
    Adds,
    /// Subtracts an amount if the column has it: its value does not fall below 0.
    Takes,
    /// Adds an amount if the sum does not exceed a limit: an integer, or another column of the row, quoted.
    Fills(String),
}

/// An amount that is added to a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Amount {
    /// This number.
    Number(i64),
    /// A parameter of the statement.
    Parameter,
    /// A parameter of the statement, which is subtracted.
    Minus,
}

/// How a statement changes a column.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct Change {
    /// The column, as the table has it.
    pub column: String,
    /// The condition of the change.
    #[serde(flatten)]
    pub of: Use,
    /// What is added.
    pub amount: Amount,
}

/// A statement that is understood: it changes one row, which a unique key finds, by these amounts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Meaning {
    /// The columns that it increments or decrements.
    pub changes: Vec<Change>,
    /// The other columns that it sets.
    pub sets: Vec<String>,
    /// What the text does not tell, and what must be true of it for `changes` to be right.
    pub only_if: Option<String>,
}

/// The reason why a counter cannot replace a statement.
pub type Doubt = String;

/// What a statement does with the row of a table that a unique key finds.
///
/// # Errors
/// The reason why the text is not understood for certain.
pub fn meaning(text: &str, table: &Table) -> Result<Meaning, Doubt> {
    readable(text)?;
    let unknown = || Doubt::from("it is not known to count");
    match parsed(text) {
        Some((Statement::Update(update), ignore)) => of_update(&update, ignore, table),
        Some((Statement::Insert(insert), _)) => of_insert(&insert, table),
        _ => Err(unknown()),
    }
}

/// Whether the words of a text are certain, so that none is missing.
fn readable(text: &str) -> Result<(), Doubt> {
    // The server truncates the statement before it replaces a character of 4 bytes by a question mark.
    if text.len() + 3 * text.matches('?').count() >= STATEMENT_MAX || text.trim_end().ends_with("...") {
        return Err("the server shows only its beginning".into());
    }
    // Executable comments depend on the version, and the end of a string with a backslash depends on the SQL mode.
    if text.contains("/*!") || text.contains("/*M!") || text.contains('\\') {
        return Err("its text has an executable comment or a backslash".into());
    }
    Ok(())
}

/// A text that is one statement, and whether it is UPDATE IGNORE. The parser takes the options of UPDATE for tables.
fn parsed(text: &str) -> Option<(Statement, bool)> {
    let mut tokens = Tokenizer::new(&MySqlDialect {}, text)
        .tokenize_with_location()
        .ok()?;
    tokens.retain(|token| !matches!(token.token, Token::Whitespace(_)));
    let is = |token: Option<&TokenWithSpan>, text: &str| matches!(token.map(|token| &token.token), Some(Token::Word(word)) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(text));
    let mut ignore = false;
    if is(tokens.first(), "UPDATE") {
        for option in ["LOW_PRIORITY", "IGNORE"] {
            if is(tokens.get(1), option) {
                tokens.remove(1);
                ignore = option == "IGNORE";
            }
        }
    }
    let mut parser = Parser::new(&MySqlDialect {}).with_tokens_with_locations(tokens);
    let [statement] = <[Statement; 1]>::try_from(parser.parse_statements().ok()?).ok()?;
    Some((statement, ignore))
}

/// The schema, if it is given, and the table of `UPDATE t`, `INSERT INTO t` or `REPLACE INTO t`.
pub fn place(text: &str) -> Option<(Option<String>, String)> {
    let of_update = |update: &Update| match &update.table.relation {
        TableFactor::Table { name, .. } => Some(name.clone()),
        _ => None,
    };
    let of_insert = |insert: &Insert| match &insert.table {
        TableObject::TableName(name) => Some(name.clone()),
        _ => None,
    };
    let name = match &parsed(text)?.0 {
        Statement::Update(update) => of_update(update),
        Statement::Insert(insert) => of_insert(insert),
        _ => None,
    };
    let names: Vec<String> = idents(&name?)?.into_iter().map(|name| name.value).collect();
    match names.as_slice() {
        [table] => Some((None, table.clone())),
        [schema, table] => Some((Some(schema.clone()), table.clone())),
        _ => None,
    }
}

/// Whether a statement can read or write a column: it contains its name or all columns, or its words are not certain.
pub fn mentions(text: &str, column: &str) -> bool {
    readable(text).is_err() || contains(text, column) || names(text).any(|name| name == "*")
}

/// Whether an expression contains the name of a column.
fn contains(text: &str, column: &str) -> bool {
    names(text).any(|name| same(&name, column))
}

/// How a text uses the value of a column. The text can have placeholders in place of all values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Compared {
    /// It is not compared, or only with `<>` and a value.
    Not,
    /// It must be at least a number.
    Least,
    /// It must be at most a sum of these columns and a number.
    Most(Vec<String>),
    /// It is compared in another way, another column is set to it, or it is not known how.
    Other,
}

/// The names of a table, a view or a row, and those of its columns that depend on a count. In lower case.
type Relation = (String, BTreeSet<String>);

/// Words and signs that compare what is in the same expression, or decide by it.
const COMPARING: [&str; 27] = [
    "<", ">", "=", "!", "&", "|", "^", "~", "%", "and", "or", "xor", "not", "is", "in", "between", "like",
    "rlike", "regexp", "div", "mod", "case", "when", "if", "elseif", "while", "until",
];

/// The same of functions.
const COMPARING_FUNCTIONS: [&str; 7] = ["greatest", "least", "nullif", "sign", "elt", "field", "interval"];

/// Words that end an expression and begin a condition.
const CONDITIONS: [&str; 4] = ["where", "having", "on", "using"];

/// Words that end an expression and begin something else.
const CLAUSES: [&str; 12] = [
    "select",
    "fetch",
    "set",
    "update",
    "duplicate",
    "from",
    "into",
    "order",
    "group",
    "limit",
    "return",
    "returning",
];

/// Words and signs after which there is a name, also if it is a word of SQL.
const NAMED_AFTER: [&str; 7] = ["=", "+", "-", "/", ",", ".", "set"];

/// Words with which a statement begins that executes none of its other words: a routine and a view have their text elsewhere.
const DEFINITIONS: [&str; 5] = ["create", "alter", "explain", "describe", "desc"];

/// The words and signs of a statement in lower case. A name keeps its quotes, so that it is no word of SQL.
fn words(text: &str) -> Vec<String> {
    let words = pieces(text).filter(|piece| !is_space(piece) && !piece.starts_with('\''));
    words.map(str::to_lowercase).collect()
}

fn unquoted(word: &str) -> &str {
    word.trim_matches(['`', '"'])
}

/// The statements of a text: the body of a routine has several.
fn statements(text: &str) -> Vec<String> {
    let mut statements = Vec::new();
    let mut statement = String::new();
    for piece in pieces(text) {
        if piece == ";" {
            statements.push(std::mem::take(&mut statement));
        } else {
            statement += piece;
        }
    }
    statements.push(statement);
    statements
}

/// The statements of a text that depend on the value of a count, and the names that they give it: aliases, variables and cursors.
fn depending(text: &str, relations: &[Relation]) -> (Vec<String>, BTreeSet<String>) {
    let statements = statements(text);
    let mut names = BTreeSet::new();
    loop {
        let known = names.len();
        let mut depending = Vec::new();
        for statement in &statements {
            let words = words(statement);
            let mut watched = names.clone();
            for (_, columns) in relations
                .iter()
                .filter(|(name, _)| words.iter().any(|word| unquoted(word) == name))
            {
                watched.extend(columns.iter().cloned());
            }
            let scan = Scan::of(&words, &watched);
            if scan.depends {
                depending.push(statement.clone());
            }
            names.extend(scan.found);
        }
        // A name can stand before the statement or the expression that gives it.
        if names.len() == known {
            return (depending, names);
        }
    }
}

/// What an assignment sets.
enum Target {
    /// A variable of a routine or of the session, or a column of an upsert.
    Variable(String),
    /// A column of an UPDATE, or of the row of a trigger.
    Column(String),
}

/// What is between two parentheses, or outside of all. The current expression ends at a comma and at a word of [`CONDITIONS`] and
/// [`CLAUSES`].
#[derive(Default)]
struct Frame {
    /// Whether the current expression has the count.
    has: bool,
    /// Whether it compares.
    compares: bool,
    /// Whether the expressions are assignments.
    assigns: bool,
    /// What the current one sets.
    target: Option<Target>,
    /// Whether the expressions are the values of a SELECT.
    selects: bool,
    /// Which of these values have the count.
    values: Vec<bool>,
    /// Whether there was a SELECT.
    query: bool,
    /// The place of the next variable behind INTO.
    into: Option<usize>,
    /// Whether the value of all depends on the count.
    value: bool,
}

/// Finds what depends on a count word by word: a text can be truncated, or a part of a routine that no parser knows.
struct Scan<'a> {
    words: &'a [String],
    /// The names of the count.
    watched: &'a BTreeSet<String>,
    frames: Vec<Frame>,
    /// Whether the statement is an UPDATE.
    updates: bool,
    /// Whether it sets the count to a value that depends on the count.
    counts: bool,
    /// Whether it compares the count, or sets another column to a value that depends on it.
    depends: bool,
    /// The names that it gives the count.
    found: BTreeSet<String>,
}

impl<'a> Scan<'a> {
    fn of(words: &'a [String], watched: &'a BTreeSet<String>) -> Self {
        let mut scan = Self {
            words,
            watched,
            frames: vec![Frame::default()],
            updates: false,
            counts: false,
            depends: false,
            found: BTreeSet::new(),
        };
        for at in 0..words.len() {
            scan.word(at);
            let frame = scan.frame();
            let depends = frame.has && frame.compares;
            scan.depends |= depends;
        }
        while scan.frames.len() > 1 {
            scan.close();
        }
        scan.end();
        let cursor = words.iter().position(|word| word == "cursor");
        if let Some(at) = cursor.filter(|at| *at > 0 && scan.frames[0].value) {
            scan.found.insert(unquoted(&words[at - 1]).to_owned());
        }
        scan
    }

    fn frame(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("the first frame stays")
    }

    /// The word so many places before another one. Empty if there is none.
    fn before(&self, at: usize, places: usize) -> &'a str {
        at.checked_sub(places).map_or("", |at| &self.words[at])
    }

    fn word(&mut self, at: usize) {
        let (word, following) = (self.words[at].as_str(), &self.words[at + 1..]);
        let name = unquoted(word);
        let follows = |one: &str| following.first().is_some_and(|next| next == one);
        let last = self.before(at, 1);
        if self.watched.contains(name) && !follows("(") && !follows(".") {
            // A move of counts itself looks for other values than 0.
            let not_0 = matches!(following, [one, other, value, ..]
                if ["<>", "!="].contains(&format!("{one}{other}").as_str()) && ["?", "0"].contains(&value.as_str()));
            let counts = self.counts || self.frames.iter().any(|frame| frame.assigns);
            self.frame().has |= !not_0 || counts;
        } else if word == "(" {
            self.frames.push(Frame::default());
        } else if word == ")" {
            self.close();
        } else if word == "," {
            self.end();
            let frame = self.frame();
            frame.into = frame.into.map(|at| at + 1);
        } else if word == "=" && (last == ":" || self.frame().assigns && self.frame().target.is_none()) {
            let target = |places| unquoted(self.before(at, places)).to_owned();
            let of_row = self.before(at, 2) == "." && self.before(at, 3) == "new";
            let target = if last == ":" {
                Target::Variable(target(2))
            } else if self.updates || of_row {
                Target::Column(target(1))
            } else {
                Target::Variable(target(1))
            };
            self.end();
            self.frame().target = Some(target);
        } else if word == "from" && ["fetch", "next"].contains(&last) {
            // FETCH NEXT FROM a cursor.
        } else if (CONDITIONS.contains(&word) || CLAUSES.contains(&word))
            && (word == "select" || !NAMED_AFTER.contains(&last))
        {
            self.updates |= word == "update" && !["for", "key"].contains(&last);
            self.end();
            let frame = self.frame();
            frame.compares = CONDITIONS.contains(&word);
            frame.assigns = word == "set" || word == "update" && last == "key";
            frame.selects = ["select", "fetch"].contains(&word);
            if frame.selects {
                frame.query = true;
                frame.values.clear();
            }
            frame.into = (word == "into").then_some(0);
        } else if let Some(at) = self.frame().into {
            // A cursor has one name, and several values.
            let values = &self.frame().values;
            if values.get(at).or(values.last()) == Some(&true) {
                self.found.insert(name.to_owned());
            }
        } else if COMPARING.contains(&word) || COMPARING_FUNCTIONS.contains(&word) && follows("(") {
            self.frame().compares = true;
        } else if last == "as" && self.frame().has {
            self.found.insert(name.to_owned());
        }
    }

    /// The end of what is between two parentheses: a part of the expression that they are in.
    fn close(&mut self) {
        self.end();
        if self.frames.len() > 1 {
            let value = self.frames.pop().is_some_and(|frame| frame.value);
            self.frame().has |= value;
        }
    }

    /// The end of an expression.
    fn end(&mut self) {
        let frame = self.frame();
        let has = std::mem::take(&mut frame.has);
        frame.compares = false;
        if frame.selects {
            frame.values.push(has);
        }
        frame.value |= has && (frame.selects || !frame.query);
        match frame.target.take().filter(|_| has) {
            Some(Target::Variable(name)) => _ = self.found.insert(name),
            Some(Target::Column(name)) if self.watched.contains(&name) => self.counts = true,
            Some(Target::Column(_)) => self.depends = true,
            None => {}
        }
    }
}

/// The names and signs of a statement, without quotes, strings and comments.
fn names(text: &str) -> impl Iterator<Item = String> {
    let words = pieces(text).filter(|piece| !is_space(piece) && !piece.starts_with('\''));
    words.map(|piece| piece.trim_matches(['`', '"']).to_owned())
}

fn same(one: &str, other: &str) -> bool {
    one.to_lowercase() == other.to_lowercase()
}

/// A sum of columns, parameters and a number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Sum {
    /// The factor of each column, by its place in the table.
    columns: BTreeMap<usize, i128>,
    /// The factor of each parameter. Each placeholder is another one.
    parameters: BTreeMap<String, i128>,
    number: i128,
}

impl Sum {
    fn number(number: i128) -> Self {
        Self {
            number,
            ..Self::default()
        }
    }

    fn plus(mut self, other: Self, factor: i128) -> Option<Self> {
        let times = |value: i128| value.checked_mul(factor);
        for (column, by) in other.columns {
            let sum = self.columns.entry(column).or_default();
            *sum = sum.checked_add(times(by)?)?;
        }
        for (parameter, by) in other.parameters {
            let sum = self.parameters.entry(parameter).or_default();
            *sum = sum.checked_add(times(by)?)?;
        }
        self.number = self.number.checked_add(times(other.number)?)?;
        self.columns.retain(|_, by| *by != 0);
        self.parameters.retain(|_, by| *by != 0);
        Some(self)
    }

    fn is_number(&self) -> bool {
        self.columns.is_empty() && self.parameters.is_empty()
    }

    /// The sum without a column, and the factor of the column.
    fn without(&self, column: usize) -> (i128, Self) {
        let mut rest = self.clone();
        let factor = rest.columns.remove(&column).unwrap_or_default();
        (factor, rest)
    }

    fn amount(&self) -> Option<Amount> {
        let mut parameters = self.parameters.values();
        match (self.columns.is_empty(), parameters.next(), parameters.next()) {
            (true, None, None) => i64::try_from(self.number)
                .ok()
                .filter(|number| ![0, i64::MIN].contains(number))
                .map(Amount::Number),
            (true, Some(1), None) if self.number == 0 => Some(Amount::Parameter),
            (true, Some(-1), None) if self.number == 0 => Some(Amount::Minus),
            _ => None,
        }
    }
}

/// A part of a condition that is joined by AND.
enum Part {
    /// A column is equal to a constant.
    Equal(usize),
    /// The sum is not negative.
    NotNegative(Sum),
    /// A column is not 0.
    NotZero(usize),
}

/// The names in a statement.
struct Scope<'a> {
    table: &'a Table,
    /// The alias of the table.
    alias: Option<String>,
    /// The name of the row that an upsert inserts.
    inserted_as: Option<String>,
    /// The values that an upsert inserts, by column.
    inserted: BTreeMap<usize, &'a Expr>,
    /// Whether double quotes are around names: the SQL mode ANSI_QUOTES.
    ansi: bool,
}

/// A name.
enum Name<'a> {
    Column(usize),
    Inserted(&'a Expr),
    /// A variable, or a parameter of a routine.
    Constant(String),
}

impl<'a> Scope<'a> {
    fn of(table: &'a Table) -> Self {
        Self {
            table,
            alias: None,
            inserted_as: None,
            inserted: BTreeMap::new(),
            ansi: false,
        }
    }

    /// How a condition compares a column.
    fn compared(&self, condition: &Expr, column: usize) -> Compared {
        let mut parts = Vec::new();
        if self.parts(condition, &mut parts).is_err() {
            return Compared::Other;
        }
        let mut of_column = parts.iter().filter(|part| part.has(column));
        match (of_column.next(), of_column.next()) {
            (None, _) => Compared::Not,
            (Some(Part::NotZero(_)), None) => Compared::Least,
            (Some(Part::NotNegative(sum)), None) => {
                let (factor, rest) = sum.without(column);
                let with: Vec<String> = rest
                    .columns
                    .keys()
                    .map(|at| self.table.columns[*at].name.name().to_owned())
                    .collect();
                match factor {
                    1 if with.is_empty() => Compared::Least,
                    -1 if rest.columns.values().all(|by| *by == 1) => Compared::Most(with),
                    _ => Compared::Other,
                }
            }
            _ => Compared::Other,
        }
    }

    fn column(&self, name: &str) -> Option<usize> {
        let columns = &self.table.columns;
        columns.iter().position(|column| same(column.name.name(), name))
    }

    fn name(&self, names: &[Ident]) -> Option<Name<'a>> {
        let (last, qualifiers) = names.split_last()?;
        let column = self.column(&last.value);
        let Some(qualifier) = qualifiers.last() else {
            return Some(column.map_or_else(|| Name::Constant(last.value.to_lowercase()), Name::Column));
        };
        let is = |name: &Option<String>| name.as_ref().is_some_and(|name| same(name, &qualifier.value));
        if is(&self.inserted_as) {
            return self.inserted.get(&column?).map(|value| Name::Inserted(value));
        }
        let of_table = match &self.alias {
            Some(alias) => same(alias, &qualifier.value) && qualifiers.len() == 1,
            None => {
                let schema = qualifiers.len().checked_sub(2).map(|at| &qualifiers[at].value);
                same(&self.table.name, &qualifier.value)
                    && schema.is_none_or(|schema| same(schema, &self.table.schema))
            }
        };
        if of_table {
            return column.map(Name::Column);
        }
        // The row of a trigger on another table.
        let of_trigger =
            qualifiers.len() == 1 && ["new", "old"].contains(&qualifier.value.to_lowercase().as_str());
        of_trigger.then(|| Name::Constant(format!("{}.{}", qualifier.value, last.value).to_lowercase()))
    }

    /// A sum of columns and constants. None if it is anything else.
    fn sum(&self, expression: &Expr) -> Option<Sum> {
        let named = |names: &[Ident]| match self.name(names)? {
            Name::Column(column) => Some(Sum {
                columns: [(column, 1)].into(),
                ..Sum::default()
            }),
            Name::Constant(name) => Some(Sum {
                parameters: [(name, 1)].into(),
                ..Sum::default()
            }),
            Name::Inserted(value) => self.sum(value),
        };
        match expression {
            Expr::Nested(inside) => self.sum(inside),
            Expr::Identifier(name) => named(std::slice::from_ref(name)),
            Expr::CompoundIdentifier(names) => named(names),
            Expr::Value(value) => match &value.value {
                Value::Number(text, _) => text.parse().ok().map(Sum::number),
                Value::DoubleQuotedString(text) if self.ansi => named(&[Ident::new(text)]),
                Value::Placeholder(text) => {
                    let at = value.span.start;
                    let name = if text == "?" {
                        format!("?{}:{}", at.line, at.column)
                    } else {
                        text.clone()
                    };
                    Some(Sum {
                        parameters: [(name, 1)].into(),
                        ..Sum::default()
                    })
                }
                _ => None,
            },
            Expr::UnaryOp { op, expr } => {
                let factor = match op {
                    UnaryOperator::Minus => -1,
                    UnaryOperator::Plus => 1,
                    _ => return None,
                };
                Sum::default().plus(self.sum(expr)?, factor)
            }
            Expr::BinaryOp { left, op, right } => {
                let (one, other) = (self.sum(left)?, self.sum(right)?);
                match op {
                    BinaryOperator::Plus => one.plus(other, 1),
                    BinaryOperator::Minus => one.plus(other, -1),
                    BinaryOperator::Multiply if one.is_number() => Sum::default().plus(other, one.number),
                    BinaryOperator::Multiply if other.is_number() => Sum::default().plus(one, other.number),
                    _ => None,
                }
            }
            Expr::Cast {
                kind: CastKind::Cast,
                expr,
                data_type: DataType::Signed | DataType::SignedInteger,
                ..
            } => self.sum(expr),
            Expr::Function(function) => {
                let (name, arguments) = call(function)?;
                match (name.as_str(), &arguments[..]) {
                    // A counter has no NULL.
                    ("COALESCE" | "IFNULL" | "NVL", [column, zero])
                        if self.sum(zero).as_ref() == Some(&Sum::default()) =>
                    {
                        self.sum(column)
                    }
                    ("NAME_CONST", [_, value]) => self.sum(value),
                    ("VALUES" | "VALUE", [column]) => {
                        self.inserted_value(column).and_then(|value| self.sum(value))
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn inserted_value(&self, column: &Expr) -> Option<&'a Expr> {
        let names = match column {
            Expr::Identifier(name) => std::slice::from_ref(name),
            Expr::CompoundIdentifier(names) => names,
            _ => return None,
        };
        match self.name(names)? {
            Name::Column(column) => self.inserted.get(&column).copied(),
            _ => None,
        }
    }

    /// Whether an expression is a constant to which a column can be equal in one row of a unique key.
    fn is_key_value(&self, expression: &Expr, column: usize) -> bool {
        match expression {
            Expr::Nested(inside) => self.is_key_value(inside, column),
            Expr::Value(value) => match &value.value {
                // A string is compared with a number as a number: several strings are 0.
                Value::Number(..) => !self.table.columns[column].is_string(),
                Value::SingleQuotedString(_) | Value::HexStringLiteral(_) | Value::Placeholder(_) => true,
                Value::DoubleQuotedString(text) => !self.ansi && self.column(text).is_none(),
                _ => false,
            },
            Expr::UnaryOp {
                op: UnaryOperator::Minus | UnaryOperator::Plus,
                expr,
            } => self.is_key_value(expr, column),
            Expr::TypedString(_) => true,
            Expr::Prefixed { value, .. } => matches!(&**value, Expr::Value(_)),
            Expr::Identifier(name) => {
                matches!(self.name(std::slice::from_ref(name)), Some(Name::Constant(_)))
            }
            Expr::CompoundIdentifier(names) => matches!(self.name(names), Some(Name::Constant(_))),
            Expr::Function(function) => match call(function) {
                Some((name, arguments)) => match (name.as_str(), &arguments[..]) {
                    // Its second argument is the value of a variable, with its collation.
                    ("NAME_CONST", [_, _]) => true,
                    ("UUID_TO_BIN" | "UNHEX" | "INET_ATON" | "INET6_ATON", [value, ..]) => {
                        self.is_key_value(value, column)
                    }
                    _ => false,
                },
                None => false,
            },
            _ => false,
        }
    }

    /// The column of an expression.
    fn own(&self, expression: &Expr) -> Option<usize> {
        let (column, by) = match self.sum(expression)? {
            Sum {
                columns,
                parameters,
                number: 0,
            } if parameters.is_empty() && columns.len() == 1 => columns.into_iter().next()?,
            _ => return None,
        };
        let bare = |expression: &Expr| {
            matches!(
                expression,
                Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_)
            )
        };
        let mut inside = expression;
        while let Expr::Nested(nested) = inside {
            inside = nested;
        }
        (by == 1 && bare(inside)).then_some(column)
    }

    /// The parts of a condition that are joined by AND. Err has a part that is something else.
    fn parts(&self, condition: &Expr, parts: &mut Vec<Part>) -> Result<(), Doubt> {
        let other = || Err(format!("its WHERE has the condition {condition}"));
        match condition {
            Expr::Nested(inside) => self.parts(inside, parts),
            Expr::BinaryOp {
                left,
                op: BinaryOperator::And,
                right,
            } => {
                self.parts(left, parts)?;
                self.parts(right, parts)
            }
            // Libraries write 1=1.
            Expr::Value(value) if matches!(&value.value, Value::Boolean(true)) => Ok(()),
            Expr::Value(value) if matches!(&value.value, Value::Number(text, _) if text == "1") => Ok(()),
            Expr::BinaryOp {
                left,
                op: BinaryOperator::Eq,
                right,
            } if matches!(&**left, Expr::Value(value) if matches!(value.value, Value::Number(..)))
                && left == right =>
            {
                Ok(())
            }
            Expr::BinaryOp { left, op, right } => {
                if matches!(op, BinaryOperator::Eq | BinaryOperator::Spaceship) {
                    return self.equal(left, right, parts).map_or_else(other, Ok);
                }
                let difference = |one: &Expr, other: &Expr| self.sum(one)?.plus(self.sum(other)?, -1);
                let part = match op {
                    BinaryOperator::GtEq => difference(left, right).map(Part::NotNegative),
                    BinaryOperator::LtEq => difference(right, left).map(Part::NotNegative),
                    BinaryOperator::Gt => difference(left, right)
                        .and_then(|sum| sum.plus(Sum::number(1), -1))
                        .map(Part::NotNegative),
                    BinaryOperator::Lt => difference(right, left)
                        .and_then(|sum| sum.plus(Sum::number(1), -1))
                        .map(Part::NotNegative),
                    BinaryOperator::NotEq => match (self.own(left), self.sum(right)) {
                        (Some(column), Some(zero)) if zero == Sum::default() => Some(Part::NotZero(column)),
                        _ => None,
                    },
                    _ => None,
                };
                match part {
                    Some(part) => {
                        parts.push(part);
                        Ok(())
                    }
                    None => other(),
                }
            }
            Expr::In {
                expr,
                target: InTarget::List(list),
                negated: false,
                ..
            } => match &list[..] {
                [one] => self.equal(expr, one, parts).map_or_else(other, Ok),
                _ => Err(format!("it can change several rows: {condition}")),
            },
            _ => other(),
        }
    }

    /// A column and a constant, or lists of them.
    fn equal(&self, left: &Expr, right: &Expr, parts: &mut Vec<Part>) -> Option<()> {
        if let (Expr::Tuple(lefts), Expr::Tuple(rights)) = (left, right) {
            let each = lefts.iter().zip(rights);
            return (lefts.len() == rights.len()).then(|| {
                each.into_iter()
                    .try_for_each(|(left, right)| self.equal(left, right, parts))
            })?;
        }
        let column =
            |one: &Expr, other: &Expr| self.own(one).filter(|column| self.is_key_value(other, *column));
        let column = column(left, right).or_else(|| column(right, left))?;
        parts.push(Part::Equal(column));
        Some(())
    }
}

/// The name of a function in upper case, and its arguments.
fn call(function: &Function) -> Option<(String, Vec<&Expr>)> {
    let name = function.name.to_string().to_uppercase();
    let FunctionArguments::List(list) = &function.args else {
        return None;
    };
    let argument = |argument| match argument {
        &FunctionArg::Unnamed(FunctionArgExpr::Expr(ref expression)) => Some(expression),
        _ => None,
    };
    let plain = list.clauses.is_empty() && list.duplicate_treatment.is_none() && function.over.is_none();
    let arguments = list.args.iter().map(argument).collect::<Option<Vec<_>>>()?;
    plain.then_some((name, arguments))
}

fn idents(name: &ObjectName) -> Option<Vec<Ident>> {
    name.0.iter().map(|part| part.as_ident().cloned()).collect()
}

fn is_table(name: &ObjectName, table: &Table) -> Result<Vec<Ident>, Doubt> {
    let names = idents(name).unwrap_or_default();
    let of_table = match &names[..] {
        [name] => same(&name.value, &table.name),
        [schema, name] => same(&schema.value, &table.schema) && same(&name.value, &table.name),
        _ => false,
    };
    if of_table {
        Ok(names)
    } else {
        Err("it changes another table".into())
    }
}

const RETURNS: &str = "it returns the new value, which a counter does not know";

fn of_update(update: &Update, ignore: bool, table: &Table) -> Result<Meaning, Doubt> {
    let (name, alias) = match &update.table.relation {
        TableFactor::Table { name, alias, .. } if update.table.joins.is_empty() && update.from.is_none() => {
            (name, alias)
        }
        _ => return Err("it reads other tables".into()),
    };
    let names = is_table(name, table)?;
    if update.returning.is_some() {
        return Err(RETURNS.into());
    }
    let all = match &update.limit {
        None => true,
        Some(Expr::Value(value)) => {
            matches!(&value.value, Value::Number(text, _) if text.parse::<u64>().is_ok_and(|rows| rows > 0))
        }
        Some(_) => false,
    };
    let plain = all
        && update.or.is_none()
        && update.output.is_none()
        && update.settings.is_none()
        && update.on_cluster.is_none();
    if !plain {
        return Err("it is not known to count".into());
    }
    let scope = Scope {
        table,
        alias: alias.as_ref().map(|alias| alias.name.value.clone()),
        inserted_as: None,
        inserted: BTreeMap::new(),
        ansi: is_ansi(&names, &update.assignments),
    };
    let mut parts = Vec::new();
    match &update.selection {
        Some(condition) => scope.parts(condition, &mut parts)?,
        None if table.one_row => {}
        None => return Err("it has no WHERE and can change several rows".into()),
    }
    let conditions = if update.selection.is_some() {
        conditions(table, parts)?
    } else {
        Vec::new()
    };
    meaning_of(&scope, &update.assignments, conditions, ignore)
}

fn of_insert(insert: &Insert, table: &Table) -> Result<Meaning, Doubt> {
    let Some(OnInsert::DuplicateKeyUpdate(assignments)) = &insert.on else {
        return Err("it is not known to count".into());
    };
    let TableObject::TableName(name) = &insert.table else {
        return Err("it changes another table".into());
    };
    let names = is_table(name, table)?;
    if insert.returning.is_some() {
        return Err(RETURNS.into());
    }
    if let Some(trigger) = table.insert_triggers.first() {
        return Err(format!(
            "the trigger {trigger} runs for each INSERT, and not for a call"
        ));
    }
    let mut scope = Scope {
        table,
        alias: None,
        inserted_as: None,
        inserted: BTreeMap::new(),
        ansi: is_ansi(&names, assignments),
    };
    let source = insert.source.as_deref().map(|query| &*query.body);
    match source {
        None => {
            for assignment in &insert.assignments {
                let column = target(&scope, assignment)?;
                scope.inserted.insert(column, &assignment.value);
            }
        }
        Some(SetExpr::Values(values)) => {
            let [row] = &values.rows[..] else {
                return Err("it can change several rows".into());
            };
            let name = |name: &ObjectName| idents(name)?.last().and_then(|name| scope.column(&name.value));
            let columns = if insert.columns.is_empty() {
                Some((0..table.columns.len()).collect())
            } else {
                insert.columns.iter().map(name).collect::<Option<Vec<_>>>()
            };
            let columns = columns.filter(|columns| columns.len() == row.content.len());
            let columns = columns.ok_or_else(|| Doubt::from("it is not known to count"))?;
            scope.inserted = columns.into_iter().zip(&row.content).collect();
        }
        Some(_) => return Err("it reads other tables".into()),
    }
    if let Some(alias) = &insert.insert_alias {
        if alias.col_aliases.as_ref().is_some_and(|names| !names.is_empty()) {
            return Err("it is not known to count".into());
        }
        scope.inserted_as = idents(&alias.row_alias).and_then(|names| Some(names.last()?.value.clone()));
    }
    meaning_of(&scope, assignments, Vec::new(), insert.ignore)
}

/// With the SQL mode ANSI_QUOTES, double quotes are around names. Without it, these are strings, which cannot be assigned to.
fn is_ansi(table: &[Ident], assignments: &[Assignment]) -> bool {
    let quoted = |name: &Ident| name.quote_style == Some('"');
    let target = |assignment: &Assignment| match &assignment.target {
        AssignmentTarget::ColumnName(name) => idents(name).is_some_and(|names| names.iter().any(quoted)),
        AssignmentTarget::Tuple(_) => false,
    };
    table.iter().any(quoted) || assignments.iter().any(target)
}

fn target(scope: &Scope<'_>, assignment: &Assignment) -> Result<usize, Doubt> {
    let AssignmentTarget::ColumnName(name) = &assignment.target else {
        return Err("it is not known to count".into());
    };
    let column = idents(name).and_then(|names| scope.name(&names));
    match column {
        Some(Name::Column(column)) => Ok(column),
        _ => Err(format!("it sets {name}, which is not a column of the table")),
    }
}

/// What a condition has besides the equal columns of a unique index.
///
/// # Errors
/// No unique index has all its columns in the condition, or another column is compared with a constant.
fn conditions(table: &Table, parts: Vec<Part>) -> Result<Vec<Part>, Doubt> {
    let (equal, rest): (Vec<_>, Vec<_>) = parts.into_iter().partition(|part| matches!(part, Part::Equal(_)));
    let equal: Vec<&str> = equal
        .iter()
        .filter_map(|part| match part {
            Part::Equal(column) => Some(table.columns[*column].name.name()),
            _ => None,
        })
        .collect();
    let has_all = |index: &&Vec<String>| {
        !index.is_empty()
            && index
                .iter()
                .all(|column| equal.iter().any(|one| same(one, column)))
    };
    let Some(key) = table.unique.iter().find(has_all) else {
        return Err(if table.unique.is_empty() {
            "the table has no unique key that finds the row: add a primary key".into()
        } else {
            "its WHERE does not compare a unique key with values".into()
        });
    };
    match equal
        .iter()
        .find(|one| !key.iter().any(|column| same(column, one)))
    {
        Some(column) => Err(format!("its WHERE also compares {column}")),
        None => Ok(rest),
    }
}

fn meaning_of(
    scope: &Scope<'_>,
    assignments: &[Assignment],
    mut conditions: Vec<Part>,
    ignore: bool,
) -> Result<Meaning, Doubt> {
    let table = scope.table;
    let column = |at: usize| &table.columns[at];
    let mut targets = Vec::new();
    let mut changed: Vec<(usize, Sum)> = Vec::new();
    for assignment in assignments {
        let at = target(scope, assignment)?;
        if targets.contains(&at) {
            return Err(format!("it sets {} twice", column(at).name.plain()));
        }
        targets.push(at);
        let Some((1, amount)) = scope.sum(&assignment.value).map(|sum| sum.without(at)) else {
            continue;
        };
        if let Some((other, _)) = amount.columns.first_key_value() {
            let (name, other) = (column(at).name.plain(), column(*other).name.plain());
            return Err(format!(
                "the amount that it adds to {name} depends on the column {other}"
            ));
        }
        changed.push((at, amount));
    }
    let mut meaning = Meaning::default();
    for (assignment, at) in assignments.iter().zip(&targets) {
        if changed.iter().any(|(changed, _)| changed == at) {
            continue;
        }
        let (name, value) = (column(*at).name.name(), assignment.value.to_string());
        let all = contains(&value, "SELECT") && contains(&value, "*");
        let reads = |at: &usize| all || contains(&value, column(*at).name.name());
        if reads(at) {
            return Err(own_value(name, &value));
        }
        if let Some((other, _)) = changed.iter().find(|(other, _)| reads(other)) {
            return Err(format!(
                "the value of {name} depends on the column {}",
                column(*other).name.plain()
            ));
        }
        meaning.sets.push(name.to_owned());
    }
    let of_key = |at: &usize| {
        table
            .unique
            .iter()
            .flatten()
            .any(|one| same(one, column(*at).name.name()))
    };
    if let Some(at) = targets.iter().find(|at| of_key(at)) {
        return Err(format!("it changes the key column {}", column(*at).name.plain()));
    }
    let mut doubts: Vec<String> = Vec::new();
    for (at, amount) in &changed {
        let name = column(*at).name.plain();
        let Some(signed) = amount.amount() else {
            return Err(format!("the amount that it adds to {name} is not an integer"));
        };
        let mut of = Use::Adds;
        if let Some(place) = conditions.iter().position(|part| part.has(*at)) {
            let (found, doubt) = conditions
                .swap_remove(place)
                .limit(*at, amount, table)
                .ok_or_else(|| format!("its WHERE compares {name} with another limit than the amount"))?;
            if matches!(&found, Use::Fills(limit) if targets.iter().any(|at| quoted(column(*at).name.name()) == *limit))
            {
                return Err(format!("it changes the limit of {name}"));
            }
            of = found;
            doubts.extend(doubt);
        } else if table.has_floor(*at) {
            match signed {
                Amount::Number(number) if number > 0 => {}
                // UPDATE IGNORE sets it to 0.
                _ if ignore => {
                    return Err(format!(
                        "{name} does not fall below 0, and IGNORE suppresses the error"
                    ));
                }
                Amount::Number(_) => of = Use::Takes,
                Amount::Minus => {
                    of = Use::Takes;
                    doubts.push(format!(
                        "the amount that it subtracts from {name} is never negative"
                    ));
                }
                Amount::Parameter => {
                    doubts.push(format!("the amount that it adds to {name} is never negative"))
                }
            }
        }
        meaning.changes.push(Change {
            column: column(*at).name.name().to_owned(),
            of,
            amount: signed,
        });
    }
    if let Some(part) = conditions.first() {
        let columns = part
            .columns()
            .map(|at| column(at).name.plain())
            .collect::<Vec<_>>();
        return Err(format!("its WHERE also compares {}", columns.join(" and ")));
    }
    if !doubts.is_empty() {
        meaning.only_if = Some(doubts.join(", and "));
    }
    Ok(meaning)
}

/// The reason for a value that is not the column plus an amount.
fn own_value(name: &str, value: &str) -> Doubt {
    let upper = value.to_uppercase();
    if upper.starts_with("LAST_INSERT_ID(") || upper.contains(":=") {
        "it returns each number once, which a counter of several rows cannot do: use AUTO_INCREMENT, or CREATE SEQUENCE on MariaDB"
            .to_owned()
    } else {
        format!("the new value of {name} is not the column plus an amount: {value}")
    }
}

impl Part {
    fn columns(&self) -> impl Iterator<Item = usize> {
        let columns: Vec<usize> = match self {
            Self::Equal(column) | Self::NotZero(column) => vec![*column],
            Self::NotNegative(sum) => sum.columns.keys().copied().collect(),
        };
        columns.into_iter()
    }

    fn has(&self, column: usize) -> bool {
        self.columns().any(|one| one == column)
    }

    /// What a change of a column by an amount is on this condition, and what is not known. None if the condition is not
    /// exactly that the new value is not negative, or does not exceed a limit.
    fn limit(&self, column: usize, amount: &Sum, table: &Table) -> Option<(Use, Option<String>)> {
        let sum = match self {
            Self::Equal(_) => return None,
            // The value is not negative before, because nothing has taken more.
            Self::NotZero(_) => return (*amount == Sum::number(-1)).then_some((Use::Takes, None)),
            Self::NotNegative(sum) => sum,
        };
        let name = table.columns[column].name.plain();
        // The new value, or what is left to the limit after the change.
        let (factor, rest) = sum.without(column);
        let rest = match factor {
            1 => rest.plus(amount.clone(), -1)?,
            -1 => rest.plus(amount.clone(), 1)?,
            _ => return None,
        };
        let minus =
            |sum: &Sum| matches!(sum.amount(), Some(Amount::Minus)) || sum.is_number() && sum.number < 0;
        let plus =
            |sum: &Sum| matches!(sum.amount(), Some(Amount::Parameter)) || sum.is_number() && sum.number > 0;
        if factor == 1 && rest == Sum::default() && minus(amount) {
            return Some((Use::Takes, None));
        }
        // Two placeholders: the amount, and that of the comparison.
        let opposite = rest.columns.is_empty() && rest.number == 0 && is_pair(&rest);
        if factor == 1 && opposite && minus(amount) {
            return Some((
                Use::Takes,
                Some(format!(
                    "the amount that it subtracts from {name} is the one that it compares {name} with"
                )),
            ));
        }
        if factor == -1 && plus(amount) {
            let doubt = format!("the amount that it adds to {name} is the one that it adds in its WHERE");
            let doubt = (!rest.parameters.is_empty()).then_some(doubt);
            if !(rest.parameters.is_empty() || is_pair(&rest)) {
                return None;
            }
            let mut columns = rest.columns.iter();
            return match (columns.next(), columns.next()) {
                (None, None) if rest.parameters.is_empty() => {
                    Some((Use::Fills(rest.number.to_string()), None))
                }
                (Some((limit, 1)), None) if rest.number == 0 => {
                    let limit = &table.columns[*limit];
                    let integer = limit.uncountable().is_none();
                    integer.then(|| (Use::Fills(quoted(limit.name.name())), doubt))
                }
                _ => None,
            };
        }
        None
    }
}

/// Whether the parameters of a sum are one parameter minus another one.
fn is_pair(sum: &Sum) -> bool {
    let mut factors: Vec<_> = sum.parameters.values().copied().collect();
    factors.sort_unstable();
    factors == [-1, 1]
}

impl Table {
    /// Whether the server rejects a negative value of a column.
    fn has_floor(&self, column: usize) -> bool {
        let at_least_0 = |check: &String| matches!(self.check(check)[..], [Some(at)] if at == column);
        self.columns[column].unsigned || self.checks.iter().any(at_least_0)
    }

    /// For each part of a CHECK constraint, the column that is at least 0, or None if it is another condition.
    fn check(&self, condition: &str) -> Vec<Option<usize>> {
        let scope = Scope::of(self);
        let parsed = Parser::new(&MySqlDialect {})
            .try_with_sql(condition)
            .and_then(|mut parser| parser.parse_expr());
        let mut parts = Vec::new();
        match parsed.map(|condition| scope.parts(&condition, &mut parts)) {
            Ok(Ok(())) => parts
                .iter()
                .map(|part| match part {
                    Part::NotNegative(sum) if sum.number == 0 && sum.parameters.is_empty() => {
                        let mut columns = sum.columns.iter();
                        match (columns.next(), columns.next()) {
                            (Some((column, 1)), None) => Some(*column),
                            _ => None,
                        }
                    }
                    _ => None,
                })
                .collect(),
            _ => vec![None],
        }
    }

    /// How a CHECK constraint compares a column.
    pub fn checked(&self, check: &str, column: &str) -> Compared {
        let (scope, at) = (
            Scope::of(self),
            self.columns.iter().position(|one| same(one.name.name(), column)),
        );
        let condition = Parser::new(&MySqlDialect {})
            .try_with_sql(check)
            .and_then(|mut parser| parser.parse_expr());
        match (contains(check, column), condition.ok(), at) {
            (false, ..) => Compared::Not,
            (true, Some(condition), Some(at)) => scope.compared(&condition, at),
            _ => Compared::Other,
        }
    }

    /// The table and the views of the schema that contain a column, and the names that the column has in each.
    pub fn relations(&self, column: &str) -> Vec<Relation> {
        let mut relations = vec![(self.name.to_lowercase(), BTreeSet::from([column.to_lowercase()]))];
        loop {
            let known = relations.len();
            for (view, definition) in &self.views {
                let view = view.to_lowercase();
                if relations.iter().any(|(name, _)| *name == view) {
                    continue;
                }
                let (_, columns) = depending(definition, &relations);
                if !columns.is_empty() {
                    relations.push((view, columns));
                }
            }
            // A view can select from a view that comes later.
            if relations.len() == known {
                return relations;
            }
        }
    }

    /// The statements of a text that compare a column or set another column to its value, each with how. `rows` are names that the
    /// text has for the row of the table: NEW and OLD in the body of a trigger of the table.
    pub fn compared(&self, text: &str, column: &str, rows: &[&str]) -> Vec<(String, Compared)> {
        if words(text)
            .first()
            .is_some_and(|first| DEFINITIONS.contains(&first.as_str()))
        {
            return Vec::new();
        }
        let mut relations = self.relations(column);
        let names = BTreeSet::from([column.to_lowercase()]);
        relations.extend(rows.iter().map(|row| (row.to_lowercase(), names.clone())));
        let (statements, _) = depending(text, &relations);
        let compared = |statement: String| {
            let how = self.limits(&statement, column).unwrap_or(Compared::Other);
            (statement, how)
        };
        statements.into_iter().map(compared).collect()
    }

    /// The limit with which an UPDATE of the table compares a column. None if it uses the column in another way.
    fn limits(&self, text: &str, column: &str) -> Option<Compared> {
        let at = self
            .columns
            .iter()
            .position(|one| same(one.name.name(), column))?;
        // Of a digest, the value is not known: what takes one of the last compares with 0.
        let text = text.replace("!= ?", "<> 0").replace("<> ?", "<> 0");
        let (Statement::Update(update), _) = parsed(&text)? else {
            return None;
        };
        let TableFactor::Table { name, alias, .. } = &update.table.relation else {
            return None;
        };
        let mut scope = Scope::of(self);
        let mut counts = false;
        for assignment in &update.assignments {
            let own = matches!(target(&scope, assignment), Ok(target) if target == at);
            counts |= own;
            if !own && contains(&assignment.value.to_string(), column) {
                return None;
            }
        }
        scope.alias = alias.as_ref().map(|alias| alias.name.value.clone());
        // Not CASE or IF in a value.
        let sums = update
            .assignments
            .iter()
            .all(|assignment| scope.sum(&assignment.value).is_some());
        let plain = counts && sums && is_table(name, self).is_ok() && update.table.joins.is_empty();
        let how = scope.compared(update.selection.as_ref().filter(|_| plain)?, at);
        Some(how).filter(|how| *how != Compared::Not)
    }

    /// What else the server computes from a column: it would compute it from a wrong value.
    pub fn dependents(&self, column: &str) -> Vec<String> {
        let generated = self.columns.iter().filter_map(|one| {
            let expression = one.generated.as_ref().filter(|text| contains(text, column))?;
            Some(format!(
                "the generated column {} = {expression}",
                one.name.plain()
            ))
        });
        let indexes = self.expressions.iter().filter(|(_, text)| contains(text, column));
        let indexes = indexes.map(|(name, text)| format!("the unique index {name} on {text}"));
        let relations = self.relations(column);
        let views = self
            .views
            .iter()
            .filter(|(_, text)| !depending(text, &relations).0.is_empty());
        let views = views.map(|(name, _)| format!("the view {name}"));
        generated.chain(indexes).chain(views).collect()
    }

    /// The reason why a counter cannot have the counts of a column, whatever the statement.
    pub fn obstacle(&self, name: &str) -> Option<Doubt> {
        let column = self
            .columns
            .iter()
            .find(|column| same(column.name.name(), name))?;
        if let Some(why) = column.uncountable() {
            return Some(format!("the column {name} {why}"));
        }
        if let Some(trigger) = self.triggers.first() {
            return Some(format!(
                "the trigger {trigger} runs for each UPDATE, and not for a call"
            ));
        }
        let other = |check: &&String| contains(check, name) && !matches!(self.check(check)[..], [Some(_)]);
        if let Some(check) = self.checks.iter().find(other) {
            return Some(format!("a CHECK constraint limits the column {name}: {check}"));
        }
        let dependent = self.dependents(name).into_iter().next()?;
        Some(format!("other data depends on the column {name}: {dependent}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::package::Ident;

    /// The columns of the table, each with its type.
    const COLUMNS: [(&str, &str); 17] = [
        ("id", "int"),
        ("slug", "varchar"),
        ("a", "int"),
        ("b", "int"),
        ("hits", "bigint"),
        ("likes", "bigint"),
        ("page hits", "int"),
        ("stock", "int"),
        ("reserved", "int"),
        ("left", "int unsigned"),
        ("used", "int"),
        ("max_uses", "int"),
        ("price", "decimal"),
        ("state", "varchar"),
        ("version", "int"),
        ("title", "varchar"),
        ("updated_at", "datetime"),
    ];

    fn table() -> Table {
        let column = |(name, kind): &(&str, &str)| SourceColumn {
            name: Ident::new(*name).expect("a name"),
            kind: kind.split(' ').next().unwrap_or_default().into(),
            definition: (*kind).into(),
            scale: 2,
            collation: None,
            null: false,
            generated: None,
            on_update: false,
            unsigned: kind.ends_with("unsigned"),
        };
        let index = |columns: &[&str]| columns.iter().map(|name| (*name).to_owned()).collect();
        Table {
            schema: "shop".into(),
            name: "t".into(),
            columns: COLUMNS.iter().map(column).collect(),
            unique: vec![index(&["id"]), index(&["slug"]), index(&["a", "b"])],
            ..Table::default()
        }
    }

    /// A meaning in few characters, or the doubt.
    fn read(text: &str, table: &Table) -> String {
        match meaning(text, table) {
            Err(doubt) => format!("! {doubt}"),
            Ok(meaning) => {
                let change = |change: &Change| {
                    let amount = match change.amount {
                        Amount::Number(number) => format!("{number:+}"),
                        Amount::Parameter => "+?".into(),
                        Amount::Minus => "-?".into(),
                    };
                    let of = match &change.of {
                        Use::Adds => String::new(),
                        Use::Takes => " takes".into(),
                        Use::Fills(limit) => format!(" to {limit}"),
                    };
                    format!("{} {amount}{of}", change.column)
                };
                let mut words: Vec<_> = meaning.changes.iter().map(change).collect();
                words.extend(meaning.sets.iter().map(|name| format!("{name} =")));
                words.extend(meaning.only_if.map(|only_if| format!("if {only_if}")));
                words.join(", ")
            }
        }
    }

    /// Statements that counters can replace: of libraries, with limits, and by hand.
    const REPLACED: &[(&str, &str)] = &[
        ("UPDATE t SET hits = hits + 1 WHERE id = 7", "hits +1"),
        (
            "update `shop`.`t` set `hits`=`hits`+1,updated_at=NOW() where id=?",
            "hits +1, updated_at =",
        ),
        ("UPDATE t SET hits = 1 + hits WHERE 7 = id", "hits +1"),
        ("UPDATE t SET hits = hits - -3 WHERE id = 7 LIMIT 1", "hits +3"),
        (
            "UPDATE t SET hits = hits + 2 * 3 - 1 WHERE id = 7 ORDER BY id",
            "hits +5",
        ),
        // Django
        (
            "UPDATE `t` SET `hits` = (`t`.`hits` + 1) WHERE `t`.`id` = 7",
            "hits +1",
        ),
        (
            "UPDATE `t` SET `hits` = (COALESCE(`t`.`hits`, 0) + 1) WHERE `t`.`id` = 7",
            "hits +1",
        ),
        (
            "UPDATE `t` SET `stock` = (`t`.`stock` - 2) WHERE (`t`.`id` = 7 AND `t`.`stock` >= 2)",
            "stock -2 takes",
        ),
        // ActiveRecord
        (
            "UPDATE `t` SET `t`.`hits` = COALESCE(`t`.`hits`, 0) + 1 WHERE `t`.`id` = 7",
            "hits +1",
        ),
        (
            "UPDATE `t` SET `t`.`hits` = COALESCE(`t`.`hits`, 0) - 1, `t`.`updated_at` = '2026-11-23 10:20:30' WHERE `t`.`id` = 7 /*application:Shop*/",
            "hits -1, updated_at =",
        ),
        ("UPDATE `t` SET hits = hits + 1 WHERE `t`.`id` IN (7)", "hits +1"),
        (
            "INSERT INTO `t` (`id`,`hits`) VALUES (7, 1) ON DUPLICATE KEY UPDATE `hits`=`t`.`hits`+VALUES(`hits`)",
            "hits +1",
        ),
        // Eloquent
        (
            "update `t` set `hits` = `hits` + 1, `t`.`updated_at` = '2026-11-23 10:20:30' where `id` = 7",
            "hits +1, updated_at =",
        ),
        (
            "insert into `t` (`id`, `hits`) values (7, 3) on duplicate key update `hits` = `hits` + values(`hits`)",
            "hits +3",
        ),
        // Hibernate
        ("update t p1_0 set hits=(p1_0.hits+1) where p1_0.id=7", "hits +1"),
        (
            "/* update T t set t.hits = t.hits + 1 */ update t set hits=(hits+?) where id=?",
            "hits +?",
        ),
        // Prisma, TypeORM, Sequelize, SQLAlchemy, Doctrine, Ecto
        (
            "UPDATE `shop`.`t` SET `hits` = (`shop`.`t`.`hits` + ?) WHERE (`shop`.`t`.`id` = ? AND 1=1)",
            "hits +?",
        ),
        (
            "UPDATE `t` SET `hits` = `hits` + 1, `updated_at` = CURRENT_TIMESTAMP WHERE `id` = 7",
            "hits +1, updated_at =",
        ),
        (
            "UPDATE `t` SET `hits`=`hits`+ 1,`updated_at`='2026-11-23 10:20:30' WHERE `id` = 7",
            "hits +1, updated_at =",
        ),
        ("UPDATE t SET hits=(t.hits + 1) WHERE t.id = 7", "hits +1"),
        ("UPDATE t t0_ SET hits = t0_.hits + 1 WHERE t0_.id = 7", "hits +1"),
        (
            "UPDATE `t` AS t0 SET t0.`hits` = t0.`hits` + ? WHERE (t0.`id` = ?)",
            "hits +?",
        ),
        // By hand
        (
            "-- page view\nUPDATE t SET hits = IFNULL(hits, 0) + 1 WHERE id = 7",
            "hits +1",
        ),
        (
            "# page view\nUPDATE LOW_PRIORITY IGNORE t p SET hits = hits + 1 WHERE id = 7",
            "hits +1",
        ),
        (
            "UPDATE t SET `page hits` = `page hits` + 1 WHERE id = 7",
            "page hits +1",
        ),
        (
            "UPDATE \"t\" SET \"hits\" = \"hits\" + 1 WHERE \"id\" = 7",
            "hits +1",
        ),
        (
            "UPDATE t SET title = 'hits = hits + 1, where', hits = hits + 1 WHERE id = 7",
            "hits +1, title =",
        ),
        (
            "UPDATE t SET likes = likes + 1, hits = hits + 2 WHERE id = 7",
            "likes +1, hits +2",
        ),
        ("UPDATE t SET hits = hits + 1 WHERE slug = 'a'", "hits +1"),
        ("UPDATE t SET hits = hits + 1 WHERE slug = \"x\"", "hits +1"),
        ("UPDATE t SET hits = hits + 1 WHERE b = 2 AND a = 1", "hits +1"),
        ("UPDATE t SET hits = hits + 1 WHERE (a, b) = (1, 2)", "hits +1"),
        ("UPDATE t SET hits = hits + 1 WHERE (a, b) IN ((1, 2))", "hits +1"),
        ("UPDATE t SET hits = hits + 1 WHERE id <=> 7", "hits +1"),
        (
            "UPDATE t SET hits = hits + 1 WHERE id = x'07' AND TRUE",
            "hits +1",
        ),
        ("update t set hits=hits+1 where id= NAME_CONST('a',7)", "hits +1"),
        ("UPDATE t SET hits = hits + p_amount WHERE id = p_id", "hits +?"),
        (
            "UPDATE t SET hits = hits - NAME_CONST('n',2) WHERE slug = NAME_CONST('s',_utf8mb4'x' COLLATE 'utf8mb4_general_ci')",
            "hits -2",
        ),
        ("UPDATE t SET hits = hits + 1 WHERE id = NEW.page", "hits +1"),
        (
            "UPDATE t FORCE INDEX (PRIMARY) SET hits = hits + @n WHERE id = 7",
            "hits +?",
        ),
        (
            "INSERT INTO t (id, hits) VALUES (7, 1) AS new ON DUPLICATE KEY UPDATE hits = t.hits + new.hits",
            "hits +1",
        ),
        (
            "INSERT INTO t SET id = 7, hits = 1 ON DUPLICATE KEY UPDATE hits = hits + VALUE(hits), updated_at = NOW()",
            "hits +1, updated_at =",
        ),
        (
            "INSERT IGNORE INTO t (id, hits) VALUES (?, ?) ON DUPLICATE KEY UPDATE hits = hits + 1",
            "hits +1",
        ),
        // Takes
        (
            "UPDATE t SET stock = stock - 1 WHERE id = 42 AND stock >= 1",
            "stock -1 takes",
        ),
        (
            "UPDATE t SET stock = stock - 1 WHERE id = 42 AND stock > 0",
            "stock -1 takes",
        ),
        (
            "UPDATE t SET stock = stock + -1 WHERE id = 42 AND stock <> 0",
            "stock -1 takes",
        ),
        (
            "UPDATE t SET stock = stock - 3 WHERE 3 <= t.stock AND id = 42",
            "stock -3 takes",
        ),
        (
            "UPDATE t SET stock = stock - 3 WHERE id = 42 AND stock - 3 >= 0",
            "stock -3 takes",
        ),
        (
            "UPDATE t SET stock = stock - 3 WHERE id = 42 AND 0 <= CAST(stock AS SIGNED) - 3",
            "stock -3 takes",
        ),
        (
            "UPDATE t SET stock = stock - p_n WHERE id = 42 AND stock >= p_n",
            "stock -? takes",
        ),
        (
            "UPDATE t SET stock = stock - ? WHERE id = ? AND stock >= ?",
            "stock -? takes, if the amount that it subtracts from stock is the one that it compares stock with",
        ),
        ("UPDATE t SET `left` = `left` - 1 WHERE id = 7", "left -1 takes"),
        ("UPDATE t SET `left` = `left` + 1 WHERE id = 7", "left +1"),
        (
            "UPDATE t SET `left` = `left` + ? WHERE id = 7",
            "left +?, if the amount that it adds to left is never negative",
        ),
        (
            "UPDATE t SET stock = stock - 1, reserved = reserved + 1 WHERE id = 7 AND stock >= 1",
            "stock -1 takes, reserved +1",
        ),
        // Limits
        (
            "UPDATE t SET used = used + 1 WHERE id = 7 AND used < max_uses",
            "used +1 to `max_uses`",
        ),
        (
            "UPDATE t SET used = used + 1 WHERE id = 7 AND max_uses > used",
            "used +1 to `max_uses`",
        ),
        (
            "UPDATE t SET used = used + 1 WHERE id = 7 && used < max_uses",
            "used +1 to `max_uses`",
        ),
        (
            "UPDATE t SET used = used + 2 WHERE id = 7 AND used + 2 <= max_uses",
            "used +2 to `max_uses`",
        ),
        (
            "UPDATE t SET used = used + 2 WHERE id = 7 AND max_uses - used >= 2",
            "used +2 to `max_uses`",
        ),
        (
            "UPDATE t SET used = used + 2 WHERE id = 7 AND used <= max_uses - 2",
            "used +2 to `max_uses`",
        ),
        (
            "UPDATE t SET used = used + 1 WHERE id = 7 AND used < 100",
            "used +1 to 100",
        ),
        (
            "UPDATE t SET used = used + 3 WHERE id = 7 AND used + 3 <= 100",
            "used +3 to 100",
        ),
        (
            "UPDATE t SET used = used + p_n WHERE id = 7 AND used + p_n <= max_uses",
            "used +? to `max_uses`",
        ),
        (
            "UPDATE t SET used = used + ? WHERE id = ? AND used + ? <= max_uses",
            "used +? to `max_uses`, if the amount that it adds to used is the one that it adds in its WHERE",
        ),
        // No count
        ("UPDATE t SET title = 'x' WHERE id = 7", "title ="),
    ];

    /// Statements that counters cannot replace, or that are not known for certain, and a part of the reason.
    const NOT_REPLACED: &[(&str, &str)] = &[
        (
            "UPDATE t SET used = used + 1 WHERE id = 7 AND state = 'open'",
            "its WHERE also compares state",
        ),
        (
            "UPDATE t SET hits = hits + 1 WHERE id = 7 AND title IS NULL",
            "the condition title IS NULL",
        ),
        (
            "UPDATE t SET hits = hits + 1, version = version + 1 WHERE id = 7 AND version = 3",
            "also compares version",
        ),
        (
            "UPDATE t SET used = used + 1 WHERE id = 7 AND (used < max_uses OR max_uses IS NULL)",
            "has the condition used < max_uses OR",
        ),
        (
            "UPDATE t SET used = used + 1 WHERE id = 7 AND NOT used >= max_uses",
            "has the condition NOT used >= max_uses",
        ),
        (
            "UPDATE t SET used = used + 1 WHERE id = 7 XOR used < max_uses",
            "has the condition",
        ),
        (
            "UPDATE t SET used = used + 1 WHERE id = 7 AND used BETWEEN 0 AND 9",
            "has the condition used BETWEEN",
        ),
        (
            "UPDATE t SET used = used + 1 WHERE id = 7 AND used <> max_uses",
            "has the condition used <> max_uses",
        ),
        (
            "UPDATE t SET used = used + 2 WHERE id = 7 AND used < max_uses",
            "another limit than the amount",
        ),
        (
            "UPDATE t SET used = used + 1 WHERE id = 7 AND used < ?",
            "another limit than the amount",
        ),
        (
            "UPDATE t SET used = used + 1 WHERE id = 7 AND used < max_uses * 2",
            "another limit than the amount",
        ),
        (
            "UPDATE t SET used = used + 1 WHERE id = 7 AND used < max_uses - reserved",
            "another limit than the amount",
        ),
        (
            "UPDATE t SET used = used + 1, max_uses = 5 WHERE id = 7 AND used < max_uses",
            "it changes the limit of used",
        ),
        (
            "UPDATE t SET used = used + 1 WHERE id = 7 AND used < price",
            "another limit than the amount",
        ),
        (
            "UPDATE t SET used = used + 1 WHERE id = 7 AND used < 100 AND used >= 0",
            "also compares used",
        ),
        (
            "UPDATE t SET used = used + 1 WHERE id = 7 AND used < (SELECT 5)",
            "has the condition used < (SELECT 5)",
        ),
        (
            "UPDATE t SET stock = stock - 2 WHERE id = 7 AND stock >= 1",
            "another limit than the amount",
        ),
        (
            "UPDATE t SET stock = stock - 1 WHERE id = 7 AND stock > 5",
            "another limit than the amount",
        ),
        (
            "UPDATE t SET stock = stock + 1 WHERE id = 7 AND stock >= 1",
            "another limit than the amount",
        ),
        (
            "UPDATE t SET stock = stock - 1 WHERE id = 7 AND reserved < stock + 1",
            "another limit than the amount",
        ),
        (
            "UPDATE t SET hits = hits + 1 WHERE id = 7 AND stock >= 1",
            "also compares stock",
        ),
        (
            "UPDATE t SET stock = GREATEST(stock - 1, 0) WHERE id = 7",
            "is not the column plus an amount: GREATEST",
        ),
        (
            "UPDATE t SET stock = LEAST(stock + 1, 9) WHERE id = 7",
            "is not the column plus an amount",
        ),
        (
            "UPDATE t SET used = IF(used < max_uses, used + 1, used) WHERE id = 7",
            "is not the column plus an amount",
        ),
        (
            "UPDATE t SET used = CASE WHEN used < 5 THEN used + 1 ELSE used END WHERE id = 7",
            "is not the column plus an amount",
        ),
        (
            "INSERT INTO t (id, used) VALUES (7, 1) ON DUPLICATE KEY UPDATE used = IF(used < 5, used + 1, used)",
            "is not the column plus",
        ),
        (
            "UPDATE IGNORE t SET `left` = `left` - 1 WHERE id = 7",
            "IGNORE suppresses the error",
        ),
        (
            "UPDATE t SET hits = hits + stock WHERE id = 7",
            "hits depends on the column stock",
        ),
        (
            "UPDATE t SET hits = hits + likes + 1, likes = likes + 1 WHERE id = 7",
            "depends on the column likes",
        ),
        (
            "UPDATE t SET hits = hits + 1, state = IF(hits > 100, 'hot', 'new') WHERE id = 7",
            "state depends on the column hits",
        ),
        (
            "UPDATE t SET hits = hits + 1, title = (SELECT MAX(hits) FROM t) WHERE id = 7",
            "title depends on the column hits",
        ),
        (
            "UPDATE t SET hits = hits + (SELECT n FROM steps) WHERE id = 7",
            "is not the column plus an amount",
        ),
        (
            "UPDATE t SET hits = hits + 1.5 WHERE id = 7",
            "is not the column plus an amount",
        ),
        (
            "UPDATE t SET hits = hits * 2 WHERE id = 7",
            "is not the column plus an amount",
        ),
        ("UPDATE t SET hits = hits + hits WHERE id = 7", "hits"),
        ("UPDATE t SET hits = 1 - hits WHERE id = 7", "hits"),
        (
            "UPDATE t SET hits = hits + 9223372036854775808 WHERE id = 7",
            "is not an integer",
        ),
        (
            "UPDATE t SET hits = hits + 1, hits = hits + 1 WHERE id = 7",
            "it sets hits twice",
        ),
        (
            "UPDATE t SET hits = LAST_INSERT_ID(hits + 1) WHERE id = 7",
            "use AUTO_INCREMENT",
        ),
        (
            "UPDATE t SET hits = (@n := hits + 1) WHERE id = 7",
            "use AUTO_INCREMENT",
        ),
        (
            "UPDATE t SET hits = hits + 1 WHERE id = 7 RETURNING hits",
            "it returns the new value",
        ),
        (
            "INSERT INTO t (id, hits) VALUES (7, 1) ON DUPLICATE KEY UPDATE hits = hits + 1 RETURNING hits",
            "it returns the new value",
        ),
        ("UPDATE t SET hits = hits + 1", "no WHERE"),
        ("UPDATE t SET hits = hits + 1 WHERE id IN (7, 8)", "several rows"),
        (
            "UPDATE t SET hits = hits + 1 WHERE id BETWEEN 7 AND 7",
            "has the condition id BETWEEN",
        ),
        (
            "UPDATE t SET hits = hits + 1 WHERE id > 6",
            "does not compare a unique key",
        ),
        (
            "UPDATE t SET hits = hits + 1 WHERE a = 1",
            "does not compare a unique key",
        ),
        (
            "UPDATE t SET hits = hits + 1 WHERE id = 7 OR id = 8",
            "has the condition",
        ),
        (
            "UPDATE t SET hits = hits + 1 WHERE id = id",
            "has the condition id = id",
        ),
        (
            "UPDATE t SET hits = hits + 1 WHERE id = likes",
            "has the condition id = likes",
        ),
        (
            "UPDATE t SET hits = hits + 1 WHERE id = RAND()",
            "has the condition id = RAND()",
        ),
        (
            "UPDATE t SET hits = hits + 1 WHERE slug = 0",
            "has the condition slug = 0",
        ),
        (
            "UPDATE t SET hits = hits + 1 WHERE slug = 'a' COLLATE utf8mb4_general_ci",
            "has the condition slug = 'a' COLLATE",
        ),
        (
            "UPDATE t SET hits = hits + 1 WHERE slug = \"title\"",
            "has the condition",
        ),
        (
            "UPDATE t SET hits = hits + 1 WHERE id = 7 LIMIT 0",
            "not known to count",
        ),
        (
            "UPDATE t SET id = 8, hits = hits + 1 WHERE id = 7",
            "the key column id",
        ),
        (
            "UPDATE t JOIN sites ON sites.id = t.a SET t.hits = t.hits + 1 WHERE t.id = 7",
            "it reads other tables",
        ),
        (
            "UPDATE t, sites SET t.hits = t.hits + 1 WHERE t.id = 7",
            "not known to count",
        ),
        (
            "WITH x AS (SELECT 1) UPDATE t SET hits = hits + 1 WHERE id = 7",
            "not known to count",
        ),
        ("UPDATE other SET hits = hits + 1 WHERE id = 7", "another table"),
        (
            "INSERT INTO t (id, hits) VALUES (7, 1), (8, 1) ON DUPLICATE KEY UPDATE hits = hits + 1",
            "several rows",
        ),
        (
            "INSERT INTO t (id, hits) SELECT 7, 1 ON DUPLICATE KEY UPDATE hits = hits + 1",
            "not known to count",
        ),
        ("INSERT INTO t (id, hits) VALUES (7, 1)", "not known to count"),
        ("REPLACE INTO t (id, hits) VALUES (7, 1)", "not known to count"),
        ("SELECT hits FROM t WHERE id = 7 FOR UPDATE", "not known to count"),
        ("DELETE FROM t WHERE id = 7", "not known to count"),
        (
            "UPDATE t SET hits = hits + 1 WHERE id = 7; DELETE FROM t",
            "not known to count",
        ),
        (
            "UPDATE /*! t SET hits = 5 */ t SET hits = hits + 1 WHERE id = 7",
            "executable comment",
        ),
        (
            "UPDATE t SET title = 'it\\'s', hits = hits + 1 WHERE id = 7",
            "backslash",
        ),
        (
            "UPDATE t SET hits = hits + 1 WHERE slug = 'truncat",
            "not known to count",
        ),
        (
            "UPDATE `t` SET `hits` = `hits` + ? WHERE `id` = ? AND `state` = ...",
            "only its beginning",
        ),
        ("", "not known to count"),
    ];

    #[test]
    fn statements_that_counters_can_replace_are_read() {
        let table = table();
        let read = |one: &(&'static str, &'static str)| (read(one.0, &table), one.1, one.0);
        let other: Vec<_> = REPLACED
            .iter()
            .map(read)
            .filter(|(found, expected, _)| found != expected)
            .collect();
        assert!(other.is_empty(), "{other:#?}");
    }

    #[test]
    fn what_is_not_certain_has_a_reason() {
        let table = table();
        let read = |one: &(&'static str, &'static str)| (read(one.0, &table), one.1, one.0);
        let of_reason =
            |(found, expected, _): &(String, &str, &str)| found.starts_with("! ") && found.contains(expected);
        let other: Vec<_> = NOT_REPLACED
            .iter()
            .map(read)
            .filter(|found| !of_reason(found))
            .collect();
        assert!(other.is_empty(), "{other:#?}");
    }

    /// Whatever a WHERE has besides the key, the statement is not an increment without a limit.
    #[test]
    fn a_condition_that_is_added_is_never_lost() {
        let table = table();
        for (statement, _) in REPLACED
            .iter()
            .filter(|(statement, _)| statement.contains("WHERE") && !statement.contains("ORDER BY"))
        {
            for condition in [
                "state = 'open'",
                "version < 5",
                "spy() = 0",
                "@x",
                "EXISTS (SELECT 1)",
                "slug IS NULL",
            ] {
                let (statement, limit) = statement.split_once(" LIMIT").unwrap_or((statement, ""));
                let limit = if limit.is_empty() { "" } else { " LIMIT 1" };
                let with = format!("{statement} AND {condition}{limit}");
                assert!(read(&with, &table).starts_with("! "), "{with}");
            }
        }
    }

    #[test]
    fn a_truncated_statement_has_no_meaning() {
        let table = table();
        let statement = |spaces: usize| {
            format!(
                "UPDATE t SET hits = hits +{}1 WHERE id = 1234",
                " ".repeat(spaces)
            )
        };
        let short = statement(1).len();
        assert_eq!(read(&statement(1_024 - short), &table), "hits +1");
        assert!(read(&statement(1_025 - short), &table).contains("only its beginning"));
    }

    #[test]
    fn a_table_can_have_limits_of_its_own() {
        let with = |check: &str| Table {
            checks: vec![check.into()],
            ..table()
        };
        let subtract = "UPDATE t SET stock = stock - 1 WHERE id = 7";
        assert_eq!(read(subtract, &table()), "stock -1");
        assert_eq!(read(subtract, &with("(`stock` >= 0)")), "stock -1 takes");
        assert_eq!(with("`stock` >= 0").obstacle("stock"), None);
        let limit = with("(`used` <= `max_uses`)").obstacle("used").expect("a reason");
        assert!(limit.contains("CHECK constraint"), "{limit}");
        assert!(with("stock >= 0 and stock < 9").obstacle("stock").is_some());
        assert!(with("json_valid(`title`)").obstacle("used").is_none());
        assert!(
            table()
                .obstacle("price")
                .expect("a reason")
                .contains("a counter counts integers")
        );
        let triggers = vec!["audit".into()];
        assert!(
            Table { triggers, ..table() }
                .obstacle("hits")
                .expect("a reason")
                .contains("the trigger audit")
        );
        let upsert = "INSERT INTO t (id, hits) VALUES (7, 1) ON DUPLICATE KEY UPDATE hits = hits + 1";
        assert_eq!(read(upsert, &table()), "hits +1");
        let insert_triggers = vec!["log_it".into()];
        let logs = Table {
            insert_triggers,
            ..table()
        };
        assert!(read(upsert, &logs).contains("the trigger log_it runs for each INSERT"));
        assert_eq!(
            read("UPDATE t SET hits = hits + 1 WHERE id = 7", &logs),
            "hits +1"
        );
        let one_row = true;
        assert_eq!(
            read("UPDATE t SET hits = hits + 1", &Table { one_row, ..table() }),
            "hits +1"
        );
    }

    #[test]
    fn comparisons_of_a_column_are_found() {
        for (statement, compared) in [
            (
                "UPDATE `t` SET `used` = `used` + ? WHERE `id` = ? AND `used` < `max_uses`",
                true,
            ),
            (
                "UPDATE t SET used = IF(used < 5, used + 1, used) WHERE id = ...",
                true,
            ),
            (
                "SELECT * FROM t WHERE id = 7 AND max_uses > t.used FOR UPDATE",
                true,
            ),
            ("SELECT id FROM t JOIN x ON x.n < t.used", true),
            ("UPDATE t SET used = used + 1 WHERE id = 7", false),
            ("SELECT used FROM t WHERE id = 7 ORDER BY used", false),
            (
                "UPDATE `t` SET `title` = IF (...) , `used` = ? + `used` WHERE `id` = ?",
                false,
            ),
            (
                "UPDATE t SET used = CASE WHEN used < 5 THEN used + 1 ELSE used END WHERE id = 7",
                true,
            ),
            (
                "UPDATE t SET title = CASE WHEN id < 5 THEN 1 END, used = used + 1 WHERE id = 7",
                false,
            ),
            ("SELECT * FROM t WHERE (SELECT 5) > used", true),
            ("SELECT id FROM t GROUP BY id HAVING used ( * ) > ?", false),
            (
                "UPDATE t SET used = 0 WHERE id BETWEEN 1 AND 7 AND used <> 0",
                false,
            ),
            (
                "INSERT INTO t (id, used) VALUES (7, 1) ON DUPLICATE KEY UPDATE used = used + 1",
                false,
            ),
            ("SELECT id FROM other WHERE used < 5", false),
            ("UPDATE t SET title = 'x' WHERE title = 'used'", false),
            // A comparison is a value.
            ("UPDATE t SET used = used + (used < max_uses) WHERE id = 7", true),
            (
                "UPDATE `t` SET `used` = `used` + ? , `state` = `used` >= `max_uses` WHERE `id` = ?",
                true,
            ),
            ("SELECT used < max_uses FROM t WHERE id = 7 FOR UPDATE", true),
            ("SELECT id, COALESCE(used, 0) BETWEEN 1 AND 5 FROM t", true),
            ("SELECT (SELECT used FROM t WHERE id = 7) < 5", true),
            (
                "SELECT id FROM other WHERE n > (SELECT used FROM t WHERE id = 7)",
                true,
            ),
            ("SET @full = (SELECT used >= max_uses FROM t WHERE id = 7)", true),
            ("DO (SELECT COUNT(*) FROM t WHERE used < 5)", true),
            (
                "INSERT INTO t (id, used) VALUES (7, 1) ON DUPLICATE KEY UPDATE used = used + (used < 5)",
                true,
            ),
            ("UPDATE t SET used = used + (used <> 0) WHERE id = 7", true),
            (
                "UPDATE t SET stock = 1, used = used - 1 WHERE id = 7 AND used <> 0",
                true,
            ),
            ("SELECT used AS n FROM t HAVING n < 5", true),
            ("SELECT n FROM (SELECT used AS n FROM t) AS x WHERE n < 5", true),
            ("SELECT id, @n := used FROM t; SELECT @n < 5", true),
            ("UPDATE t SET used = used + 1, version = used WHERE id = 7", true),
            ("UPDATE x JOIN t ON t.id = x.id SET x.n = t.used", true),
            ("SELECT used + 1, id < 5, SUM(used) FROM t WHERE id = 7", false),
            (
                "SELECT max_uses - used AS n FROM t ORDER BY used DESC LIMIT 5",
                false,
            ),
            (
                "SELECT SUM(used <> ?), CAST(SUM(used) AS CHAR) FROM t AS source GROUP BY id",
                false,
            ),
            ("UPDATE t SET used = used + 1, state = 'full' WHERE id = 7", false),
            (
                "INSERT INTO hits (id, `count`) SELECT id, used FROM t AS source WHERE id >= ? AND used <> ? FOR UPDATE \
                 ON DUPLICATE KEY UPDATE `count` = hits.`count` + source.used",
                false,
            ),
            (
                "UPDATE t SET `left` = id < 5, used = used + 1 WHERE id IN (7)",
                false,
            ),
            (
                "SELECT id FROM t WHERE id IN (SELECT id FROM t ORDER BY used)",
                false,
            ),
            ("CREATE VIEW v AS SELECT * FROM t WHERE used < 5", false),
            ("ALTER TABLE t ADD CHECK (used < 5)", false),
            // In a routine
            (
                "main: BEGIN UPDATE t SET used = used + 1 WHERE id = p AND used < max_uses; END",
                true,
            ),
            (
                "BEGIN IF p < 0 THEN SET @x = 1; ELSE UPDATE t SET used = used + 1 WHERE used < 5; END IF; END",
                true,
            ),
            (
                "BEGIN again: LOOP UPDATE t SET used = used + 1 WHERE used < 5; LEAVE again; END LOOP; END",
                true,
            ),
            (
                "REPEAT UPDATE t SET used = used + 1 WHERE used < 5; UNTIL TRUE END REPEAT",
                true,
            ),
            (
                "CASE p WHEN 1 THEN DELETE FROM t WHERE used > 5; ELSE SET @x = 1; END CASE",
                true,
            ),
            (
                "RETURN (SELECT COUNT(*) FROM t WHERE id = p AND used < max_uses)",
                true,
            ),
            ("FOR r IN (SELECT used FROM t) DO SET @x = r.used; END FOR", true),
            (
                "BEGIN DECLARE v INT; SELECT max_uses, used INTO m, v FROM t WHERE id = p; IF v < m THEN SELECT 1; END IF; END",
                true,
            ),
            (
                "BEGIN DECLARE v INT; SET v = (SELECT used FROM t WHERE id = p); WHILE v < 5 DO SET v = v + 1; END WHILE; END",
                true,
            ),
            (
                "BEGIN DECLARE c CURSOR FOR SELECT used FROM t; OPEN c; FETCH c INTO a; IF a > 5 THEN SELECT 1; END IF; END",
                true,
            ),
            (
                "BEGIN DECLARE c CURSOR FOR SELECT id FROM t; OPEN c; FETCH c INTO a; IF a > 5 THEN SELECT 1; END IF; END",
                false,
            ),
            (
                "main: BEGIN IF p < 5 THEN UPDATE t SET used = used + 1 WHERE id = p; ELSE INSERT INTO t (id, used) VALUES (p, 1); \
                 END IF; SELECT used INTO v FROM t WHERE id = p; RETURN v; END",
                false,
            ),
            (
                "BEGIN SELECT used, id INTO v, i FROM t; IF i < 5 THEN SELECT v; END IF; END",
                false,
            ),
            (
                "BEGIN SELECT used FROM t WHERE id = p; SELECT n FROM other WHERE used < 5; END",
                false,
            ),
        ] {
            assert_eq!(
                !table().compared(statement, "used", &[]).is_empty(),
                compared,
                "{statement}"
            );
        }
    }

    #[test]
    fn triggers_of_the_table_have_other_names_for_its_row() {
        let compared = |body: &str, rows: &[&str]| !table().compared(body, "used", rows).is_empty();
        for body in [
            "BEGIN IF NEW.used > NEW.max_uses THEN SIGNAL SQLSTATE '45000'; END IF; END",
            "SET NEW.state = NEW.used >= 5",
            "SET NEW.version = NEW.used",
        ] {
            assert!(compared(body, &["NEW", "OLD"]), "{body}");
            assert!(!compared(body, &[]), "{body}");
        }
        for body in [
            "SET NEW.used = NEW.used + 1",
            "INSERT INTO log VALUES (OLD.used, NEW.used)",
        ] {
            assert!(!compared(body, &["NEW", "OLD"]), "{body}");
        }
    }

    #[test]
    fn what_depends_on_a_column_is_found() {
        let view = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let mut table = Table {
            expressions: vec![view("one", "(`stock` + 1)")],
            views: vec![
                view("outer", "select `n` AS `m` from `inner`"),
                view("inner", "select `t`.`used` AS `n`,`t`.`id` AS `id` from `t`"),
                view(
                    "open",
                    "select `outer`.`m` AS `m` from `outer` where (`outer`.`m` < 5)",
                ),
                view(
                    "sums",
                    "select sum(`t`.`hits`) AS `sum` from `t` order by `t`.`hits`",
                ),
            ],
            ..table()
        };
        let find = |table: &Table, name: &str| table.columns.iter().position(|one| one.name.name() == name);
        let at = find(&table, "left").expect("a column");
        table.columns[at].generated = Some("`reserved` - 1".into());
        assert_eq!(table.dependents("used"), ["the view open"]);
        assert_eq!(
            table.dependents("stock"),
            ["the unique index one on (`stock` + 1)"]
        );
        assert_eq!(
            table.dependents("reserved"),
            ["the generated column left = `reserved` - 1"]
        );
        assert!(table.dependents("hits").is_empty() && table.obstacle("hits").is_none());
        assert_eq!(
            table.obstacle("used").as_deref(),
            Some("other data depends on the column used: the view open")
        );
        // The statement names only the view and its column.
        let compared = |text: &str| !table.compared(text, "used", &[]).is_empty();
        assert!(compared("UPDATE `inner` SET n = n + 1 WHERE n < 5"));
        assert!(compared("SELECT * FROM `outer` WHERE m BETWEEN 1 AND 5"));
        assert!(!compared("UPDATE `inner` SET n = n + 1 WHERE id < 5"));
        assert!(!compared("SELECT n FROM t WHERE n < 5"));
    }

    #[test]
    fn the_table_of_a_statement_is_found() {
        for (statement, expected) in [
            ("UPDATE pages SET hits = hits + 1", Some("pages")),
            (
                "/* a */ update ignore `my shop`.`pages` p set p.hits = 1",
                Some("my shop/pages"),
            ),
            ("INSERT IGNORE INTO shop.pages VALUES (1)", Some("shop/pages")),
            ("REPLACE INTO pages VALUES (1)", Some("pages")),
            ("SELECT 1", None),
            ("UPDATE", None),
        ] {
            let found = place(statement)
                .map(|(schema, table)| schema.map_or(table.clone(), |schema| format!("{schema}/{table}")));
            assert_eq!(found.as_deref(), expected, "{statement}");
        }
    }
}
