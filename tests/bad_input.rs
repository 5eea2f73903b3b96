//! Invalid arguments: the documented error number and message, and no change.

use mysql::consts::CapabilityFlags;
use mysql::prelude::Queryable;
use mysql::{Conn, Row, Value};
use slotted::package::{MESSAGE_MAX, Package, Pick, Slots};

use crate::support::{Module, Schema, Server, error_of, keyed, package};

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(dates_without_a_month_or_a_day_are_rejected_in_each_sql_mode)
        .on_servers(invalid_arguments_are_rejected_and_change_nothing)
        .on_servers(names_are_compared_by_the_collation)
        .on_servers(names_may_have_special_characters)
        .on_servers(totals_may_have_the_minimum_and_maximum_of_bigint)
        .on_servers(adding_zero_changes_nothing_and_succeeds);
}

/// The settings of a session that affect arguments and ROW_COUNT().
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// The default of the server: strict mode.
    Strict,
    /// sql_mode '': the server truncates arguments.
    NotStrict,
    /// CLIENT_FOUND_ROWS: ROW_COUNT() returns matched rows. Connector/J and mysql2 set it.
    FoundRows,
}

const MODES: [Mode; 3] = [Mode::Strict, Mode::NotStrict, Mode::FoundRows];

/// The total of 'x' is 12. All slots of 'full' and 'vast' have the maximum of BIGINT.
const DATA: &str = "CALL counter_setup('x', NULL, NULL, 5); CALL counter_setup('full', NULL, NULL, 9223372036854775807); \
     CALL counter_setup('vast', NULL, NULL, 9223372036854775807); \
     UPDATE counters SET counter = 7 WHERE counter_name = 'x' AND counter_id = 2; \
     UPDATE counters SET counter = 9223372036854775807 WHERE counter_name = 'full'; \
     UPDATE counters SET counter = 9223372036854775807 WHERE counter_name = 'vast';";

/// Calls with `{}` for the name. All other arguments are valid.
const NAMED: [(&str, &str); 9] = [
    ("counter_setup", "CALL counter_setup({}, NULL, NULL, NULL)"),
    ("counter_increment", "CALL counter_increment({})"),
    ("counter_add", "CALL counter_add({}, 1)"),
    ("counter_add", "CALL counter_add({}, 0)"),
    ("counter_reset", "CALL counter_reset({}, 1, TRUE)"),
    ("counter_resize", "CALL counter_resize({}, 2)"),
    ("counter_delete", "CALL counter_delete({})"),
    ("counter_drop", "CALL counter_drop({})"),
    ("counter_get", "SELECT counter_get({})"),
];

const EMPTY: (u16, &str) = (30001, "p_counter_name is NULL or empty");
const TOO_LONG: (u16, &str) = (30002, "p_counter_name is longer than 100 characters");

/// Names that every routine rejects.
const BAD_NAMES: [(&str, (u16, &str)); 8] = [
    ("NULL", EMPTY),
    ("''", EMPTY),
    ("'   '", EMPTY),
    ("REPEAT('a', 101)", TOO_LONG),
    ("REPEAT('a', 255)", TOO_LONG),
    // Without strict mode the server truncates it to 255 characters, which are equal to 'x' and trailing spaces.
    ("CONCAT('x', REPEAT(' ', 254), 'y')", TOO_LONG),
    ("REPEAT('a', 10000)", TOO_LONG),
    ("REPEAT('\u{1F600}', 10000)", TOO_LONG),
];

/// Names of counters that do not exist: as a literal, and in the message.
const UNKNOWN_NAMES: [(&str, &str); 10] = [
    ("'unknown'", "unknown"),
    ("'it''s'", "it's"),
    ("'\"'", "\""),
    ("'back\\\\slash'", "back\\slash"),
    ("'%'", "%"),
    ("'_'", "_"),
    ("CONCAT('a', CHAR(10), 'b')", "a\nb"),
    ("'`x`; DROP TABLE counters'", "`x`; DROP TABLE counters"),
    // Messages of both server families contain no characters above U+FFFF.
    ("'\u{1F600}'", "?"),
    (
        "REPEAT('n', 100)",
        "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn",
    ),
];

/// Calls with a valid name and another invalid argument: call, number, message.
/// One of two errors of the server.
const TRUNCATED: u16 = 0;

const COMMON: [(&str, u16, &str); 13] = [
    // MySQL returns 1265, MariaDB 1406.
    ("CALL counter_setup('new', REPEAT('d', 256), NULL, NULL)", TRUNCATED, "for column 'description'"),
    ("CALL counter_setup('x', NULL, NULL, NULL)", 30004, "counter_setup: counter 'x' already exists"),
    ("CALL counter_setup('X', NULL, NULL, NULL)", 30004, "counter_setup: counter 'X' already exists"),
    ("CALL counter_setup('x ', NULL, NULL, NULL)", 30004, "counter_setup: counter 'x ' already exists"),
    ("CALL counter_add('x', NULL)", 30007, "counter_add: p_amount is NULL"),
    ("CALL counter_add(NULL, NULL)", 30001, "counter_add: p_counter_name is NULL or empty"),
    ("CALL counter_add('unknown', 0)", 30003, "counter_add: unknown counter 'unknown'"),
    ("CALL counter_reset('unknown', NULL, NULL)", 30003, "counter_reset: unknown counter 'unknown'"),
    ("SELECT counter_get('vast')", 30008, "counter_get: total of counter 'vast' exceeds the range of BIGINT"),
    // Errors of the server.
    ("CALL counter_increment('full')", 1690, "BIGINT value is out of range"),
    ("CALL counter_add('full', 1)", 1690, "BIGINT value is out of range"),
    ("CALL counter_add('full', 9223372036854775807)", 1690, "BIGINT value is out of range"),
    ("CALL counter_add('FULL ', 1)", 1690, "BIGINT value is out of range"),
];

const PER_COUNTER: [(&str, u16, &str); 12] = [
    ("CALL counter_setup('new', NULL, 0, NULL)", 30005, "counter_setup: p_slots must be between 1 and 10000, not 0"),
    ("CALL counter_setup('new', NULL, -1, NULL)", 30005, "counter_setup: p_slots must be between 1 and 10000, not -1"),
    ("CALL counter_setup('new', NULL, 10001, 1)", 30005, "counter_setup: p_slots must be between 1 and 10000, not 10001"),
    (
        "CALL counter_setup('new', NULL, -9223372036854775808, 1)",
        30005,
        "counter_setup: p_slots must be between 1 and 10000, not -9223372036854775808",
    ),
    ("CALL counter_setup('x', NULL, 0, NULL)", 30005, "counter_setup: p_slots must be between 1 and 10000, not 0"),
    ("CALL counter_resize('x', 0)", 30005, "counter_resize: p_slots must be between 1 and 10000, not 0"),
    ("CALL counter_resize('x', -1)", 30005, "counter_resize: p_slots must be between 1 and 10000, not -1"),
    ("CALL counter_resize('x', NULL)", 30005, "counter_resize: p_slots must be between 1 and 10000, not NULL"),
    ("CALL counter_resize('x', 10001)", 30005, "counter_resize: p_slots must be between 1 and 10000, not 10001"),
    (
        "CALL counter_resize('x', 9223372036854775807)",
        30005,
        "counter_resize: p_slots must be between 1 and 10000, not 9223372036854775807",
    ),
    ("CALL counter_resize('vast', 1)", 30008, "counter_resize: total of counter 'vast' exceeds the range of BIGINT"),
    ("CALL counter_resize('unknown', 3)", 30003, "counter_resize: unknown counter 'unknown'"),
];

const FIXED: [(&str, u16, &str); 6] = [
    ("CALL counter_setup('new', NULL, 19, NULL)", 30006, "counter_setup: p_slots must be NULL or 20, not 19"),
    ("CALL counter_setup('new', NULL, 0, NULL)", 30006, "counter_setup: p_slots must be NULL or 20, not 0"),
    ("CALL counter_setup('new', NULL, -1, NULL)", 30006, "counter_setup: p_slots must be NULL or 20, not -1"),
    ("CALL counter_resize('x', 3)", 30006, "counter_resize: p_slots must be NULL or 20, not 3"),
    ("CALL counter_resize('x', 0)", 30006, "counter_resize: p_slots must be NULL or 20, not 0"),
    ("CALL counter_resize('unknown', NULL)", 30003, "counter_resize: unknown counter 'unknown'"),
];

fn packages() -> [Package; 2] {
    let per_counter = package(|_| {});
    let fixed = package(|options| (options.slots, options.pick) = (Slots::Fixed(20), Pick::Random));
    [per_counter, fixed]
}

fn connect(schema: &Schema<'_>, mode: Mode) -> Conn {
    let flags = if mode == Mode::FoundRows { CapabilityFlags::CLIENT_FOUND_ROWS } else { CapabilityFlags::empty() };
    let mut connection = Conn::new(schema.options().additional_capabilities(flags)).expect("a connection");
    if mode == Mode::NotStrict {
        connection.query_drop("SET SESSION sql_mode = ''").expect("a mode");
    }
    connection
}

fn invalid_arguments_are_rejected_and_change_nothing(server: &Server) {
    for package in packages() {
        let schema = server.schema();
        schema.install(&package);
        schema.run(DATA);
        let table = &package.options.table;
        let before = schema.rows(table);
        let fixed = package.options.slots != Slots::PerCounter;
        for mode in MODES {
            let mut connection = connect(&schema, mode);
            let mut rejected = |call: &str, number: u16, message: &str| {
                // Reads all rows, because a SELECT can return its error in place of the first row.
                let result = connection.query::<Row, _>(call);
                assert!(result.is_err(), "{mode:?}: not rejected: {call}");
                let got = error_of(result);
                if number >= 30000 {
                    assert_eq!(got, (number, message.to_owned()), "{mode:?}: {call}");
                    assert!(got.1.chars().count() <= MESSAGE_MAX, "{}", got.1);
                } else if number == TRUNCATED {
                    assert!([1265, 1406].contains(&got.0) && got.1.contains(message), "{mode:?}: {call}: {got:?}");
                } else {
                    assert!(got.0 == number && got.1.contains(message), "{mode:?}: {call}: {got:?}");
                }
                assert_eq!(schema.rows(table), before, "{mode:?}: {call}");
            };
            for (routine, call) in NAMED {
                let call = if fixed { call.replace("resize({}, 2)", "resize({}, 20)") } else { call.to_owned() };
                // counter_drop calls counter_delete.
                let routine = if routine == "counter_drop" { "counter_delete" } else { routine };
                for (name, (number, message)) in BAD_NAMES {
                    let call = call.replace("{}", name);
                    // In strict mode the server rejects an argument that is longer than the parameter.
                    let longer = name.contains("10000") || name.contains("254");
                    if longer && mode != Mode::NotStrict {
                        rejected(&call, 1406, "Data too long for column 'p_counter_name'");
                    } else {
                        rejected(&call, number, &format!("{routine}: {message}"));
                    }
                }
                for (name, text) in UNKNOWN_NAMES {
                    if routine == "counter_setup" {
                        continue;
                    }
                    let mut message = format!("{routine}: unknown counter '{text}'");
                    // A private routine that signals for others has room for the longest of their names.
                    let passed_on = ["counter_add", "counter_delete", "counter_increment", "counter_resize"].contains(&routine);
                    let room = MESSAGE_MAX - if passed_on { "counter_increment".len() - routine.len() } else { 0 };
                    if message.chars().count() > room {
                        message = message.chars().take(room - 1).collect::<String>() + "'";
                    }
                    rejected(&call.replace("{}", name), 30003, &message);
                }
            }
            let own: &[_] = if fixed { &FIXED } else { &PER_COUNTER };
            for (call, number, message) in COMMON.iter().chain(own) {
                rejected(call, *number, message);
            }
        }
        // The view returns the greatest BIGINT for the total of 'vast', and a reset corrects it.
        assert_eq!(schema.first::<i64>("SELECT total FROM counter_totals WHERE counter_name = 'vast'"), i64::MAX);
        schema.run("CALL counter_reset('vast', 1, FALSE)");
        assert_eq!(schema.first::<i64>("SELECT counter_get('vast')"), 1);
    }
}

fn names_are_compared_by_the_collation(server: &Server) {
    let schema = server.schema();
    schema.install(&package(|_| {}));
    schema.run("CALL counter_setup('Caf\u{e9}', NULL, 2, 0)");
    for name in ["Caf\u{e9}", "caf\u{e9}", "CAF\u{c9}", "Caf\u{e9}  ", "cafe"] {
        schema.connect().exec_drop("CALL counter_increment(?)", (name,)).expect(name);
    }
    assert_eq!(schema.first::<i64>("SELECT counter_get('CAFE')"), 5);

    // utf8mb4_bin distinguishes all characters.
    let schema = server.schema();
    schema.install(&package(|options| options.collation = "utf8mb4_bin".parse().expect("a collation")));
    let mut connection = schema.connect();
    for name in ["a", "A", "\u{e4}", "\u{1F600}", "\u{1F389}"] {
        connection.exec_drop("CALL counter_setup(?, NULL, 2, 0)", (name,)).expect(name);
        connection.exec_drop("CALL counter_increment(?)", (name,)).expect(name);
    }
    assert_eq!(schema.first::<(i64, i64)>("SELECT COUNT(*), MAX(total) FROM counter_totals"), (5, 1));
    let unknown = error_of(connection.query_drop("CALL counter_increment('\u{c4}')"));
    assert_eq!(unknown, (30003, "counter_increment: unknown counter '\u{c4}'".into()));
}

fn names_may_have_special_characters(server: &Server) {
    let schema = server.schema();
    // With this collation no two of the names are equal.
    schema.install(&package(|options| options.collation = "utf8mb4_bin".parse().expect("a collation")));
    let mut connection = schema.connect();
    let names = [
        "it's",
        "\"",
        "back\\slash",
        "\\",
        "\\'",
        "%",
        "_",
        "a%",
        "`x`",
        "; DROP TABLE counters; --",
        "\u{1F600}",
        "a\nb",
        "\u{1}\u{2}",
        "NULL",
        "0",
        " leading",
        &"n".repeat(100),
        &"\u{1F600}".repeat(100),
    ];
    for (number, name) in names.iter().enumerate() {
        connection.exec_drop("CALL counter_setup(?, ?, 3, ?)", (name, name, number)).expect(name);
    }
    for name in names {
        connection.exec_drop("CALL counter_increment(?)", (name,)).expect(name);
        connection.exec_drop("CALL counter_resize(?, 2)", (name,)).expect(name);
    }
    for (number, name) in names.iter().enumerate() {
        let total: Option<usize> = connection.exec_first("SELECT counter_get(?)", (name,)).expect(name);
        assert_eq!(total, Some(number + 1), "{name}");
        let stored: Option<(String, String)> = connection
            .exec_first("SELECT counter_name, description FROM counter_totals WHERE counter_name = ?", (name,))
            .expect(name);
        assert_eq!(stored, Some((name.to_string(), name.to_string())));
    }
    for name in names {
        connection.exec_drop("CALL counter_delete(?)", (name,)).expect(name);
    }
    assert_eq!(schema.first::<u64>("SELECT COUNT(*) FROM counters"), 0);
}

fn totals_may_have_the_minimum_and_maximum_of_bigint(server: &Server) {
    for package in packages() {
        let schema = server.schema();
        schema.install(&package);
        let mut connection = schema.connect();
        for end in [i64::MIN, i64::MAX] {
            connection.exec_drop("CALL counter_setup('end', NULL, NULL, ?)", (end,)).expect("setup");
            let total: Option<i64> = connection.query_first("SELECT counter_get('end')").expect("get");
            assert_eq!(total, Some(end));
            connection.query_drop("CALL counter_reset('end', 0, FALSE)").expect("reset");
            connection.exec_drop("CALL counter_add('end', ?)", (end,)).expect("add");
            let total: Option<i64> = connection.query_first("SELECT counter_get('end')").expect("get");
            assert_eq!(total, Some(end));
            connection.exec_drop("CALL counter_reset('end', ?, FALSE)", (end,)).expect("reset");
            let total: Option<i64> = connection.query_first("SELECT counter_get('end')").expect("get");
            assert_eq!(total, Some(end));
            connection.query_drop("CALL counter_delete('end')").expect("delete");
        }
        // NULL selects the defaults.
        connection.query_drop("CALL counter_setup('null', NULL, NULL, NULL)").expect("setup");
        let slots = u64::from(package.options.setup_slots());
        let row: (u64, i64, Option<String>) = schema.first("SELECT slots, total, description FROM counter_totals");
        assert_eq!(row, (slots, 0, None));
        connection.query_drop("CALL counter_add('null', 5)").expect("add");
        connection.query_drop("CALL counter_reset('null', NULL, NULL)").expect("reset");
        assert_eq!(schema.first::<i64>("SELECT counter_get('null')"), 0);
    }
}

fn adding_zero_changes_nothing_and_succeeds(server: &Server) {
    for package in packages() {
        let schema = server.schema();
        schema.install(&package);
        schema.run(DATA);
        let before = schema.rows(&package.options.table);
        for mode in MODES {
            let mut connection = connect(&schema, mode);
            connection.query_drop("CALL counter_add('x', 0)").expect("add 0");
            // A reset to the current total changes no slot.
            schema.run("CALL counter_setup('same', NULL, NULL, 4)");
            connection.query_drop("CALL counter_reset('same', 4, FALSE)").expect("reset to the same");
            connection.query_drop("CALL counter_delete('same')").expect("delete");
            if package.options.slots == Slots::PerCounter {
                connection.query_drop("CALL counter_resize('x', 5)").expect("resize to the same");
            }
        }
        let after: Vec<Vec<Value>> = schema.rows(&package.options.table);
        assert_eq!(before, after);
    }
}

/// A session without NO_ZERO_IN_DATE can have such dates.
fn dates_without_a_month_or_a_day_are_rejected_in_each_sql_mode(server: &Server) {
    let schema = server.schema();
    let package = |table: &str, key: &str| {
        keyed(|options| {
            options.key = key.parse().expect("a key");
            options.table = table.parse().expect("a table");
            options.prefix = format!("{table}_").parse().expect("a prefix");
        })
    };
    schema.install(&package("days", "day DATE"));
    schema.install(&package("seconds", "at DATETIME"));
    let mut connection = schema.connect();
    for mode in ["", "STRICT_TRANS_TABLES", "STRICT_TRANS_TABLES,ALLOW_INVALID_DATES"] {
        connection.query_drop(format!("SET SESSION sql_mode = '{mode}'")).expect(mode);
        for date in ["2024-00-00", "2024-05-00", "2024-00-05", "0000-00-00", "2024-05-00 10:00:00"] {
            for table in ["days", "seconds"] {
                for call in [
                    format!("CALL {table}_increment('{date}')"),
                    format!("CALL {table}_add('{date}', 5)"),
                    format!("CALL {table}_reset('{date}', 5)"),
                    format!("SELECT {table}_get('{date}')"),
                ] {
                    let (number, text) = error_of(connection.query_first::<Row, _>(&call));
                    assert_eq!(number, 30010, "{mode}: {call}: {text}");
                }
                let call = format!("CALL {table}_add_many('[[\"{date}\", 5]]')");
                assert_eq!(error_of(connection.query_drop(&call)).0, 30015, "{mode}: {call}");
            }
        }
        for table in ["days", "seconds"] {
            assert_eq!(schema.first::<u64>(&format!("SELECT COUNT(*) FROM {table}")), 0, "{mode}");
        }
    }
}
