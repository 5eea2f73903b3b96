//! What drivers of other languages see.

use std::io::Write;
use std::process::{Command, Stdio};

use slotted::package::{PackageError, Slots};

use crate::rollup::of_column;
use crate::support::{Module, Server, bounded, keyed, package, provided};

pub fn promises(mut module: Module<'_>) {
    module.private().needs("examples").on_servers(pymysql_reports_the_documented_error_numbers);
}

/// Executes a statement a line. Prints the number of the error, or 0.
const PYMYSQL: &str = r#"
import sys, pymysql
user, password, host, port, socket, schema = sys.argv[1:]
place = {"unix_socket": socket} if socket else {"host": host, "port": int(port)}
cursor = pymysql.connect(user=user, password=password, database=schema, autocommit=True, **place).cursor()
for statement in sys.stdin:
    try:
        cursor.execute(statement)
        print(0)
    except pymysql.MySQLError as error:
        print(error.args[0])
"#;

fn pymysql_reports_the_documented_error_numbers(server: &Server) {
    use PackageError as E;
    let server = &server.another(&["--auto-increment-increment=3"]);
    let schema = server.schema();
    schema.install(&package(|_| {}));
    schema.install(&package(|options| {
        options.slots = Slots::Fixed(20);
        options.table = "fixed_counters".parse().expect("a name");
        options.prefix = "fixed_".parse().expect("a prefix");
    }));
    schema.run("CREATE TABLE pages (id BIGINT PRIMARY KEY, views TINYINT); INSERT INTO pages VALUES (7, 100)");
    schema.install(&of_column("pages.views", "id BIGINT", |_| {}));
    schema.install(&keyed(|_| {}));
    schema.install(&bounded(|_| {}));
    schema.run("CALL pages_views_add(7, 50000); CALL counter_setup('x', NULL, 3, 9223372036854775807)");
    schema.run("UPDATE counters SET counter = 9223372036854775807; CALL bounded_counter_setup('empty', NULL, 3, 0)");
    let calls = [
        (E::NameEmpty, "CALL counter_increment(NULL)"),
        (E::NameTooLong, "CALL counter_increment(REPEAT('a', 101))"),
        (E::UnknownCounter, "CALL counter_increment('unknown')"),
        (E::CounterExists, "CALL counter_setup('x', NULL, NULL, 0)"),
        (E::SlotsOutOfRange, "CALL counter_setup('y', NULL, 0, 0)"),
        (E::SlotsFixed, "CALL fixed_setup('y', NULL, 7, 0)"),
        (E::AmountNull, "CALL counter_add('x', NULL)"),
        (E::TotalOutOfRange, "SELECT counter_get('x')"),
        (E::KeyNull, "CALL slotted_counter_increment(NULL, 1)"),
        (E::KeyMisfit, "CALL slotted_counter_increment(3000000000, 1)"),
        (E::SecondsOutOfRange, "CALL slotted_counter_compact_idle(NULL, 1)"),
        (E::RecordsOutOfRange, "CALL pages_views_rollup(0)"),
        (E::TotalRejected, "CALL pages_views_rollup(NULL)"),
        (E::NotArray, "CALL counter_add_many('{}')"),
        (E::EntryMisfit, "CALL slotted_counter_add_many('[[1, 7, 2], [1, 7]]')"),
        (E::NotEnough, "CALL bounded_counter_take('empty', 1)"),
        (E::AmountNotPositive, "CALL bounded_counter_take('empty', 0)"),
        (E::SlotsOfNodes, "CALL counter_setup('y', NULL, 2, 0)"),
        (E::ValueNegative, "CALL bounded_counter_setup('y', NULL, 3, -1)"),
        (E::EntryNegative, "CALL bounded_counter_add_many('[[\"x\", -1]]')"),
    ];
    assert_eq!(calls.map(|(error, _)| error), PackageError::ALL);

    let options = mysql::Opts::from(schema.options());
    let mut python = Command::new(provided("examples").join("venv/bin/python"))
        .args(["-c", PYMYSQL, options.get_user().unwrap_or_default(), options.get_pass().unwrap_or_default()])
        .args([&options.get_ip_or_hostname() as &str, &options.get_tcp_port().to_string()])
        .args([options.get_socket().unwrap_or_default(), &schema.name])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a python");
    let mut statements = python.stdin.take().expect("an input");
    for (_, call) in calls {
        writeln!(statements, "{call}").expect("a statement");
    }
    drop(statements);
    let said = python.wait_with_output().expect("an output");
    let numbers: Vec<u16> = String::from_utf8_lossy(&said.stdout)
        .lines()
        .map(|line| line.parse().unwrap_or_else(|_| panic!("{line} is not a number of an error")))
        .collect();
    assert_eq!(numbers, calls.map(|(error, _)| error.number()), "{}", server.version);
}
