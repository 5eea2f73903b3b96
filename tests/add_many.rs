//! slotted_counter_add_many: many counts in one call.

use mysql::Value;
use rand::seq::SliceRandom;

use crate::support::*;

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(each_record_gets_the_sum_of_its_amounts)
        .on_servers(an_array_with_one_invalid_entry_changes_nothing)
        .on_servers(a_key_in_json_is_the_record_of_the_same_text)
        .on_servers(calls_with_the_same_records_in_any_order_do_not_deadlock)
        .on(|name| name.starts_with("mysql"), a_call_locks_one_slot_of_each_record);
}

const CALL: &str = "CALL slotted_counter_add_many(?)";

fn array(amounts: impl IntoIterator<Item = (u64, i64)>) -> String {
    let entry = |(record, amount)| format!("[1, {record}, {amount}]");
    format!("[{}]", amounts.into_iter().map(entry).collect::<Vec<_>>().join(", "))
}

fn total(schema: &Schema<'_>, record: u64) -> i64 {
    schema.first(&format!("SELECT slotted_counter_get(1, {record})"))
}

fn each_record_gets_the_sum_of_its_amounts(server: &Server) {
    let schema = server.installed([&keyed(|_| {})]);
    let mut connection = schema.connect();
    let amounts = array([(1, 3), (0, -7), (1, 4), (2, 5), (2, -5), (3, 0)]);
    for amounts in [&amounts, &amounts.replace(',', " ,\n\t"), "[]"] {
        connection.exec_drop(CALL, (amounts,)).expect(amounts);
    }
    assert_eq!([0, 1, 2, 3].map(|record| total(&schema, record)), [-14, 14, 0, 0]);
    // As many entries as a call can have.
    connection.exec_drop(CALL, (array((0..10_000).map(|entry| (5 + entry * 7919 % 1000, 1))),)).expect("a call");
    let read = "SELECT CAST(SUM(count) AS SIGNED), MAX(count) FROM slotted_counters WHERE record_id > 3";
    assert_eq!(schema.first::<(i64, i64)>(read), (10_000, 10));
}

fn an_array_with_one_invalid_entry_changes_nothing(server: &Server) {
    let package = keyed(|_| {});
    let schema = server.installed([&package]);
    let mut connection = schema.connect();
    connection.exec_drop(CALL, ("[[1, 0, 1]]",)).expect("a call");
    let before = schema.rows(&package.options.table);
    let mut rejected = |amounts: Value, number: u16, text: &str| {
        let (error, message) = error_of(connection.exec_drop(CALL, (&amounts,)));
        let start: String = format!("{amounts:?}").chars().take(90).collect();
        assert!(error == number && message.contains(text), "{start}: {error} {message}");
        assert!(schema.rows(&package.options.table) == before, "{start} has changed a row");
    };
    const NO_ARRAY: &str = "slotted_counter_add_many: p_amounts must be a JSON array of at most 10000 entries";
    rejected(Value::NULL, 30014, NO_ARRAY);
    let long = format!("[{}[1, 0, 1]]", "[1, 0, 1],".repeat(10_000));
    for amounts in ["", " ", "[[", "x", "5", "null", "\"[]\"", "{\"a\": [1, 0, 1]}", "[[1, 2, 3],]", &long] {
        rejected(amounts.into(), 30014, NO_ARRAY);
    }
    let few = ["5", "\"a\"", "{\"a\": 1}", "[]", "[1, 0]", "[1, 0, 1, 2]", "[1, 0, 1, null]", "[[1, 0, 1]]"];
    let amounts = ["\"1\"", "1.5", "4e-1", "true", "[1]", "{\"a\": 1}", "9223372036854775808", "-9223372036854775809"];
    let keys = ["[1, \"1\", 1]", "[1, 1.5, 1]", "[true, 0, 1]", "[3000000000, 1, 1]", "[1, [1], 1]"];
    let entries = few.iter().chain(&keys).map(|entry| entry.to_string());
    for entry in entries.chain(amounts.iter().map(|amount| format!("[1, 0, {amount}]"))) {
        let text = "slotted_counter_add_many: entry 2 must be an array of the key and an integer";
        rejected(format!("[[1, 0, 1], {entry}, 7]").into(), 30015, text);
    }
    for entry in ["[1, 0, null]", "[1, null, 1]", "[null, 0, 1]"] {
        rejected(format!("[[1, 0, 1], {entry}]").into(), 1048, "cannot be null");
    }
    rejected(array([(1, 1), (0, i64::MAX)]).into(), 1690, "BIGINT value is out of range");
}

/// Clients write a character of a text as itself or as an escape sequence, and the server removes spaces, rounds and cuts.
fn a_key_in_json_is_the_record_of_the_same_text(server: &Server) {
    let long = "é".repeat(255);
    let hex = "00ff0a".repeat(2) + "0102";
    let (bytes, upper) = (format!("x'{hex}'"), hex.to_uppercase());
    /// A key, texts in JSON with the same values in SQL, and texts that do not fit. ` stands for the quotes of JSON.
    type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a [&'a str]);
    let keys: &[Case<'_>] = &[
        (
            "a VARCHAR(255)",
            &[
                ("``", "''"),
                ("` x `", "' x '"),
                (r#"`it's \"\\/\n`"#, r#"'it''s "\\/\n'"#),
                (r"`\u0041\u00e4\ud83d\udc4d\/`", "'Aä\u{1F44D}/'"),
                ("`Aä\u{1F680}/`", "'Aä\u{1F680}/'"),
                (&format!("`{long}`"), &format!("'{long}'")),
            ],
            &["5", "true", "[`a`]", "{`a`: 1}", &format!("`{long}e`"), &format!("`{long}     e`")],
        ),
        ("a CHAR(3)", &[("`abc`", "'abc'"), ("`a `", "'a'"), ("`éèê`", "'éèê'")], &["`abcd`", "5"]),
        (
            "a BINARY(8)",
            &[(&format!("`{hex}`"), &bytes), (&format!("`{upper}`"), &bytes)],
            &["`ab`", "``", "5", &format!("`{hex}00`"), "`zzzzzzzzzzzzzzzz`"],
        ),
        (
            "a VARBINARY(3)",
            &[("``", "x''"), ("`00`", "x'00'"), ("`000001`", "x'000001'")],
            &["`00000000`", "5", "`zz`", "`6`", "`0g`"],
        ),
        (
            "a DATE",
            &[("`2026-11-23`", "'2026-11-23'"), ("`9999-12-31`", "'9999-12-31'")],
            &["`2026-11-23abc`", "`2026-11-23 10:00:00`", "`2026-11-31`", "`20261123`", "20261123", "`26-11-23`", "``"],
        ),
        (
            "a DATETIME",
            &[("`2026-11-23 10:00:01`", "'2026-11-23 10:00:01'")],
            &[
                "`2026-11-23T10:00:00.000Z`",
                "`2026-11-23 10:00:00.7`",
                "`2026-11-23 10:00:00 `",
                "`2026-11-23`",
                "`2026-11-23 25:00:00`",
            ],
        ),
        (
            "a BIGINT UNSIGNED",
            &[("0", "0"), ("18446744073709551615", "18446744073709551615")],
            &["-1", "18446744073709551616", "`5`", "1.5"],
        ),
        ("a TINYINT", &[("-128", "-128"), ("127", "127")], &["128", "-129"]),
    ];
    for (key, accepted, rejected) in keys {
        let package = keyed(|options| options.subject = records(key.parse().expect(key)));
        let schema = server.installed([&package]);
        let mut connection = schema.connect();
        for (json, sql) in *accepted {
            let entries = format!("[[{json}, 2], [{json}, 3]]").replace('`', "\"");
            connection.exec_drop(CALL, (entries,)).expect(json);
            connection.query_drop(format!("CALL slotted_counter_increment({sql})")).expect(sql);
            assert_eq!(schema.first::<i64>(&format!("SELECT slotted_counter_get({sql})")) % 6, 0, "{key}: {json}");
        }
        let before = schema.rows(&package.options.table);
        for json in *rejected {
            let (number, text) = error_of(connection.exec_drop(CALL, (format!("[[{json}, 1]]").replace('`', "\""),)));
            // MariaDB says 1406 to a text that is too long.
            assert!([30015, 1406].contains(&number), "{key}: {json}: {number} {text}");
            assert_eq!(schema.rows(&package.options.table), before, "{key}: {json}");
        }
    }
}

fn calls_with_the_same_records_in_any_order_do_not_deadlock(server: &Server) {
    const RECORDS: u64 = 40;
    // Fewer slots than connections, so that calls wait for each other.
    let schema = server.installed([&keyed(|options| options.subject.set_slots(3))]);
    let sum = AtomicI64::new(0);
    at_once(16, || {
        let (mut random, mut connection) = (rand::rng(), schema.connect());
        for _ in calls(25) {
            let mut amounts: Vec<_> = (0..RECORDS).map(|record| (record, random.random_range(1..9))).collect();
            amounts.shuffle(&mut random);
            amounts.truncate(30);
            connection.exec_drop(CALL, (array(amounts.iter().copied()),)).expect("no deadlock");
            sum.fetch_add(amounts.iter().map(|(_, amount)| amount).sum(), SeqCst);
        }
    });
    assert_eq!((0..RECORDS).map(|record| total(&schema, record)).sum::<i64>(), sum.into_inner());
}

fn a_call_locks_one_slot_of_each_record(server: &Server) {
    let schema = server.installed([&keyed(|_| {})]);
    let mut connection = schema.isolated("REPEATABLE READ");
    // The slots of a record exist after the first call.
    for amounts in [array((0..5).map(|record| (record, 1))), array([(4, 1), (0, 1), (2, 1)])] {
        connection.query_drop("START TRANSACTION").expect("a transaction");
        connection.exec_drop(CALL, (amounts,)).expect("a call");
    }
    let locks = schema.data_locks();
    let records: Vec<_> = locks.iter().filter(|(kind, _)| kind == "RECORD").map(|(_, mode)| mode.as_str()).collect();
    assert_eq!(records, ["X,REC_NOT_GAP"; 3]);
}
