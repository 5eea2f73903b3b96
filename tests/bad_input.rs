//! Invalid arguments: the documented error number and message, and no change.

use mysql::Row;
use mysql::consts::CapabilityFlags;

use crate::support::*;

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(invalid_arguments_are_rejected_and_change_nothing)
        .on_servers(a_counter_without_slot_1_is_unknown_and_keeps_its_counts)
        .on_servers(names_are_compared_by_the_collation)
        .on_servers(names_may_have_special_characters)
        .on_servers(totals_may_have_the_minimum_and_maximum_of_bigint)
        .on_servers(a_call_that_has_nothing_to_change_succeeds_and_changes_nothing);
}

/// The total of 'x' is 12. All slots of 'full' have the maximum of BIGINT.
const DATA: &str = "CALL counter_setup('x', NULL, NULL, 5); CALL counter_setup('full', NULL, NULL, 9223372036854775807); \
     UPDATE counters SET counter = 7 WHERE counter_name = 'x' AND counter_id = 2; \
     UPDATE counters SET counter = 9223372036854775807 WHERE counter_name = 'full';";

/// Calls with `{}` for the name. All other arguments are valid.
const NAMED: [(&str, &str); 8] = [
    ("counter_increment", "CALL counter_increment({})"),
    ("counter_add", "CALL counter_add({}, 1)"),
    ("counter_add", "CALL counter_add({}, 0)"),
    ("counter_reset", "CALL counter_reset({}, 1, TRUE)"),
    ("counter_resize", "CALL counter_resize({}, 20)"),
    ("counter_delete", "CALL counter_delete({})"),
    ("counter_delete", "CALL counter_drop({})"),
    ("counter_get", "SELECT counter_get({})"),
];

/// Names of counters that do not exist: in SQL, and in the message.
const UNKNOWN: [(&str, &str); 6] = [
    ("NULL", "NULL"),
    ("''", "''"),
    (r"'it''s ''%\\'", r"'it\'s \'%\\'"),
    ("'`x`; DROP TABLE counters'", "'`x`; DROP TABLE counters'"),
    // Messages of both families contain no characters above U+FFFF.
    ("'\u{1F600}'", "'?'"),
    ("REPEAT('n', 100)", "'nnnnnnnnnn"),
];

const COMMON: [(&str, u16, &str); 14] = [
    ("CALL counter_setup(NULL, NULL, NULL, NULL)", 1048, "'counter_name' cannot be null"),
    ("CALL counter_setup(REPEAT('a', 101), NULL, NULL, NULL)", 1406, "'p_counter_name'"),
    ("CALL counter_setup('new', REPEAT('d', 256), NULL, NULL)", 1406, "'p_description'"),
    ("CALL counter_setup('x', NULL, NULL, NULL)", 30004, "counter_setup: there is already a counter 'x'"),
    ("CALL counter_setup('X', NULL, NULL, NULL)", 30004, "counter_setup: there is already a counter 'X'"),
    ("CALL counter_increment(CONCAT('x', REPEAT(' ', 254), 'y'))", 1406, "'p_counter_name'"),
    ("CALL counter_add('x', NULL)", 1048, "'counter' cannot be null"),
    ("CALL counter_add('x', 9223372036854775808)", 1264, "'p_amount'"),
    ("CALL counter_reset('x', 9223372036854775808, FALSE)", 1264, "'p_value'"),
    ("CALL counter_resize('x', -9223372036854775808)", 1264, "'p_slots'"),
    ("SELECT counter_get('full')", 1264, "Out of range"),
    ("CALL counter_increment('full')", 1690, "BIGINT value is out of range"),
    ("CALL counter_add('FULL', 1)", 1690, "BIGINT value is out of range"),
    ("CALL counter_add('full', 9223372036854775807)", 1690, "BIGINT value is out of range"),
];

const PER_COUNTER: [(&str, u16, &str); 7] = [
    ("CALL counter_setup('new', NULL, 0, NULL)", 30005, "counter_setup: p_slots must be between 1 and 10000, not 0"),
    ("CALL counter_setup('new', NULL, 10001, 1)", 30005, "p_slots must be between 1 and 10000, not 10001"),
    ("CALL counter_setup('x', NULL, 0, NULL)", 30005, "p_slots must be between 1 and 10000, not 0"),
    ("CALL counter_resize('x', -1)", 30005, "counter_resize: p_slots must be between 1 and 10000, not -1"),
    ("CALL counter_resize('x', NULL)", 30005, "counter_resize: p_slots must be between 1 and 10000, not NULL"),
    ("CALL counter_resize('x', 10001)", 30005, "counter_resize: p_slots must be between 1 and 10000, not 10001"),
    ("CALL counter_resize('full', 1)", 1264, "Out of range"),
];

const FIXED: [(&str, u16, &str); 4] = [
    ("CALL counter_setup('new', NULL, 19, NULL)", 30006, "counter_setup: p_slots must be NULL or 20, not 19"),
    ("CALL counter_setup('new', NULL, -1, NULL)", 30006, "counter_setup: p_slots must be NULL or 20, not -1"),
    ("CALL counter_resize('x', 3)", 30006, "counter_resize: p_slots must be NULL or 20, not 3"),
    ("CALL counter_resize('unknown', NULL)", 30003, "counter_resize: unknown counter 'unknown'"),
];

/// A connection, also with CLIENT_FOUND_ROWS, which Connector/J and mysql2 set: ROW_COUNT() returns matched rows.
fn connections(schema: &Schema<'_>) -> [Conn; 2] {
    [CapabilityFlags::empty(), CapabilityFlags::CLIENT_FOUND_ROWS]
        .map(|flags| Conn::new(schema.options().additional_capabilities(flags)).expect("a connection"))
}

fn invalid_arguments_are_rejected_and_change_nothing(server: &Server) {
    for package in variants() {
        let schema = server.installed([&package]);
        schema.run(DATA);
        let table = &package.options.table;
        let before = schema.rows(table);
        for mut connection in connections(&schema) {
            let mut rejected = |call: &str, number: u16, message: &str| {
                // Reads all rows, because a SELECT can return its error in place of the first row.
                let result = connection.query::<Row, _>(call);
                assert!(result.is_err(), "not rejected: {call}");
                let got = error_of(result);
                assert!(got.0 == number && got.1.contains(message), "{call}: {got:?}");
                assert_eq!(schema.rows(table), before, "{call}");
            };
            for (routine, call) in NAMED {
                for (name, text) in UNKNOWN {
                    rejected(&call.replace("{}", name), 30003, &format!("{routine}: unknown counter {text}"));
                }
            }
            let own: &[_] = if package.options.per_counter() { &PER_COUNTER } else { &FIXED };
            for (call, number, message) in COMMON.iter().chain(own) {
                rejected(call, *number, message);
            }
        }
        // The view returns the greatest BIGINT for the total of 'full', and a reset corrects it.
        assert_eq!(schema.first::<i64>("SELECT total FROM counter_totals WHERE counter_name = 'full'"), i64::MAX);
        schema.run("CALL counter_reset('full', 1, FALSE)");
        assert_eq!(schema.first::<i64>("SELECT counter_get('full')"), 1);
    }
}

/// Somebody has deleted its row, or KILL has interrupted a resize during a delete, which leaves slots with negative numbers and the count 0.
fn a_counter_without_slot_1_is_unknown_and_keeps_its_counts(server: &Server) {
    for (damage, total) in [
        ("DELETE FROM counters WHERE counter_id = 1", Some(7)),
        ("UPDATE counters SET counter_id = -counter_id, counter = 0", None),
    ] {
        let schema = server.installed([&package(|_| {})]);
        schema.run("CALL counter_setup('x', NULL, NULL, 5); UPDATE counters SET counter = 7 WHERE counter_id = 2");
        schema.run(damage);
        let table = "counters".parse().expect("a name");
        let before = schema.rows(&table);
        for call in ["reset('x', 3, TRUE)", "increment('x')", "resize('x', 9)"] {
            let called = schema.connect_with_id(0, 5).query_drop(format!("CALL counter_{call}"));
            assert_eq!(error_of(called).0, 30003, "{damage}: {call}");
            assert!(schema.rows(&table) == before, "{damage}: {call}");
        }
        let shown: Vec<i64> = schema.query("SELECT total FROM counter_totals");
        assert_eq!(shown, Vec::from_iter(total), "{damage}");
        if total.is_none() {
            assert_eq!(error_of(schema.connect().query_first::<i64, _>("SELECT counter_get('x')")).0, 30003);
            schema.run("CALL counter_setup('x', NULL, NULL, 5); CALL counter_resize('x', 2)");
            assert_eq!(schema.rows(&table).len(), 2);
        }
    }
}

fn names_are_compared_by_the_collation(server: &Server) {
    let schema = server.installed([&package(|_| {})]);
    schema.run("CALL counter_setup('Caf\u{e9}', NULL, 2, 0); CALL counter_setup('\u{1F600}', NULL, 2, 0)");
    let mut connection = schema.connect();
    for name in ["Caf\u{e9}", "caf\u{e9}", "CAF\u{c9}", "cafe"] {
        connection.exec_drop("CALL counter_increment(?)", (name,)).expect(name);
    }
    assert_eq!(schema.first::<i64>("SELECT counter_get('CAFE')"), 4);
    assert_eq!(connection.query_drop("CALL counter_increment('Caf\u{e9}  ')").is_ok(), !server.is_mysql());
    assert_eq!(error_of(connection.query_drop("CALL counter_increment('\u{1F389}')")).0, 30003);
}

/// With utf8mb4_bin, no two of the names are equal.
fn names_may_have_special_characters(server: &Server) {
    let schema = server.installed([&package(|options| options.collation = "utf8mb4_bin".parse().ok())]);
    let mut connection = schema.connect();
    let quotes = "it's|\"|back\\slash|\\|\\'|%|_|a%|`x`|; DROP TABLE counters; --|a\nb|\u{1}\u{2}";
    let more = "NULL|0| leading|a|A|\u{e4}|\u{1F600}|\u{1F389}";
    let long = ["n".repeat(100), "\u{1F600}".repeat(100)];
    let names: Vec<_> = quotes.split('|').chain(more.split('|')).chain(long.iter().map(String::as_str)).collect();
    for (number, name) in names.iter().enumerate() {
        connection.exec_drop("CALL counter_setup(?, ?, 3, ?)", (name, name, number)).expect(name);
    }
    for name in &names {
        connection.exec_drop("CALL counter_increment(?)", (name,)).expect(name);
        connection.exec_drop("CALL counter_resize(?, 2)", (name,)).expect(name);
    }
    for (number, name) in names.iter().enumerate() {
        let query = "SELECT counter_get(?), counter_name, description FROM counter_totals WHERE counter_name = ?";
        let stored: Option<(usize, String, String)> = connection.exec_first(query, (name, name)).expect(name);
        assert_eq!(stored, Some((number + 1, name.to_string(), name.to_string())));
    }
    let unknown = error_of(connection.query_drop("CALL counter_increment('\u{c4}')"));
    assert_eq!(unknown, (30003, "counter_increment: unknown counter '\u{c4}'".into()));
    for name in names {
        connection.exec_drop("CALL counter_delete(?)", (name,)).expect(name);
    }
    assert_eq!(schema.first::<u64>("SELECT COUNT(*) FROM counters"), 0);
}

fn totals_may_have_the_minimum_and_maximum_of_bigint(server: &Server) {
    for package in variants() {
        let schema = server.installed([&package]);
        for end in [i64::MIN, i64::MAX] {
            for statement in ["setup('end', NULL, NULL, ?)", "add('end', ?)", "reset('end', ?, FALSE)"] {
                schema.connect().exec_drop(format!("CALL counter_{statement}"), (end,)).expect(statement);
                assert_eq!(schema.first::<i64>("SELECT counter_get('end')"), end, "{statement}");
                schema.run("CALL counter_reset('end', 0, FALSE)");
            }
            schema.run("CALL counter_delete('end')");
        }
        schema.run("CALL counter_setup('null', NULL, NULL, NULL)");
        let slots = u64::from(package.options.setup_slots());
        let row: (u64, i64, Option<String>) = schema.first("SELECT slots, total, description FROM counter_totals");
        assert_eq!(row, (slots, 0, None));
        schema.run("CALL counter_add('null', 5); CALL counter_reset('null', NULL, NULL)");
        assert_eq!(schema.first::<i64>("SELECT counter_get('null')"), 0);
    }
}

/// An addition of 0, a reset to the current total and a resize to the current number of slots.
fn a_call_that_has_nothing_to_change_succeeds_and_changes_nothing(server: &Server) {
    for package in variants() {
        let schema = server.installed([&package]);
        schema.run(&format!("{DATA} CALL counter_setup('same', NULL, NULL, 4)"));
        let before = schema.rows(&package.options.table);
        for mut connection in connections(&schema) {
            let slots = package.options.setup_slots();
            for call in ["add('x', 0)", "reset('same', 4, FALSE)", &format!("resize('x', {slots})")] {
                connection.query_drop(format!("CALL counter_{call}")).expect(call);
                assert_eq!(before, schema.rows(&package.options.table), "{call}");
            }
        }
    }
}
