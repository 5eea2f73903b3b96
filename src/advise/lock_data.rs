//! The keys of locked rows as the servers return them.

use crate::package::{KeyType, SqlStr};

/// The values of a locked key in the format of the servers: `'downloads', 3`. None if the text is not a list of values,
/// such as the supremum record or a truncated list.
pub(super) fn key_values(lock_data: &str) -> Option<Vec<String>> {
    let mut values = Vec::new();
    let mut rest = lock_data.trim();
    while !rest.is_empty() {
        let end = if let Some(text) = rest.strip_prefix('\'') {
            let mut end = None;
            let mut characters = text.char_indices().peekable();
            while let Some((at, c)) = characters.next() {
                if c == '\'' && characters.next_if(|(_, next)| *next == '\'').is_none() {
                    end = Some(at + 2);
                    break;
                }
            }
            end?
        } else {
            rest.find(',').unwrap_or(rest.len())
        };
        values.push(rest[..end].trim().to_owned());
        rest = rest[end..].trim_start().trim_start_matches(',').trim_start();
    }
    (!values.is_empty() && !values.iter().any(|value| value.contains("supremum"))).then_some(values)
}

/// The text of a quoted value.
pub(super) fn unquoted(value: &str) -> Option<String> {
    let inner = value.strip_prefix('\'')?.strip_suffix('\'')?;
    Some(inner.replace("''", "'"))
}

/// A value of a locked key as a literal for a condition. `data_type` and `column_type` are `DATA_TYPE` and `COLUMN_TYPE` of
/// `information_schema.COLUMNS`. The servers return some types as InnoDB stores them, which is the same format on MySQL 9.7,
/// MariaDB 10.11 and 11.8.
pub(super) fn literal(value: &str, data_type: &str, column_type: &str) -> String {
    stored(value, data_type, column_type).unwrap_or_else(|| value.to_owned())
}

/// None if the type or the value has another format.
fn stored(value: &str, data_type: &str, column_type: &str) -> Option<String> {
    let number = || value.parse::<u32>().ok();
    match data_type.to_ascii_lowercase().as_str() {
        "date" => Some(format!("'{}'", date(number()?))),
        "year" => number().map(|year| if year == 0 { 0 } else { year + 1900 }.to_string()),
        "enum" => {
            let KeyType::Enum(values) = KeyType::parse(column_type)? else {
                return None;
            };
            // The first value has the number 1.
            let value = values.get((number()? as usize).checked_sub(1)?)?;
            Some(SqlStr(value).to_string())
        }
        "datetime" => datetime(&bytes(value)?),
        "timestamp" => {
            let seconds = u32::from_be_bytes(bytes(value)?.try_into().ok()?);
            Some(format!("FROM_UNIXTIME({seconds})"))
        }
        "uuid" => uuid(&bytes(value)?),
        _ => None,
    }
}

/// The bytes of a hexadecimal literal.
fn bytes(value: &str) -> Option<Vec<u8>> {
    let digits = value.strip_prefix("0x")?;
    let pairs = (0..digits.len()).step_by(2).map(|at| digits.get(at..at + 2));
    pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect()
}

/// Five bits for the day and four for the month.
fn date(number: u32) -> String {
    format!("{:04}-{:02}-{:02}", number >> 9, number >> 5 & 15, number & 31)
}

/// A sign, 17 bits for year * 13 + month, 5 for the day, 5 for the hour, 6 for the minute and 6 for the second.
/// Source: MySQL internals manual, "Date and Time Data Type Representation".
fn datetime(bytes: &[u8]) -> Option<String> {
    let [sign, rest @ ..] = bytes else {
        return None;
    };
    let rest: [u8; 4] = rest.try_into().ok()?;
    let (high, low) = (u32::from(sign & 0x7f), u32::from_be_bytes(rest));
    let month = high << 10 | low >> 22;
    Some(format!(
        "'{:04}-{:02}-{:02} {:02}:{:02}:{:02}'",
        month / 13,
        month % 13,
        low >> 17 & 31,
        low >> 12 & 31,
        low >> 6 & 63,
        low & 63
    ))
}

/// MariaDB stores the versions 1 to 5 with the groups in reverse order, so that the time is in front.
/// Source: MariaDB's documentation, "UUID Data Type".
fn uuid(bytes: &[u8]) -> Option<String> {
    let mut bytes: [u8; 16] = bytes.try_into().ok()?;
    if bytes[6] >> 6 == 0b10 && (1..=5).contains(&(bytes[8] >> 4)) {
        let [n0, n1, n2, n3, n4, n5, v0, v1, h0, h1, m0, m1, l @ ..] = bytes;
        bytes = [
            l[0], l[1], l[2], l[3], m0, m1, h0, h1, v0, v1, n0, n1, n2, n3, n4, n5,
        ];
    }
    let group = |from: usize, to: usize| -> String {
        bytes[from..to].iter().map(|byte| format!("{byte:02x}")).collect()
    };
    let groups = [group(0, 4), group(4, 6), group(6, 8), group(8, 10), group(10, 16)];
    Some(format!("'{}'", groups.join("-")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locked_keys_are_parsed() {
        let values = |text| key_values(text).unwrap_or_default();
        assert_eq!(values("'downloads', 3"), ["'downloads'", "3"]);
        assert_eq!(values("123, 456, 7"), ["123", "456", "7"]);
        assert_eq!(values("'it''s, well', 1"), ["'it''s, well'", "1"]);
        assert_eq!(unquoted("'it''s'").as_deref(), Some("it's"));
        assert_eq!(key_values("supremum pseudo-record"), None);
        assert_eq!(key_values("'truncated"), None);
        assert_eq!(key_values(""), None);
    }

    #[test]
    fn locked_values_become_literals() {
        for (value, data_type, column_type, expected) in [
            ("1037687", "date", "date", "'2026-11-23'"),
            ("0x99BB6EA51E", "datetime", "datetime", "'2026-11-23 10:20:30'"),
            ("0x99BB6EA51E0A", "datetime", "datetime(2)", "0x99BB6EA51E0A"),
            (
                "0x6A000000",
                "timestamp",
                "timestamp",
                "FROM_UNIXTIME(1778384896)",
            ),
            ("126", "year", "year(4)", "2026"),
            ("0", "year", "year", "0"),
            ("2", "enum", "enum('view','it''s')", "'it''s'"),
            ("3", "enum", "enum('view','it''s')", "3"),
            (
                "0x00C04FD430C880B411D19DAD6BA7B810",
                "uuid",
                "uuid",
                "'6ba7b810-9dad-11d1-80b4-00c04fd430c8'",
            ),
            (
                "0x017F22E279B07CC398C4DC0C0C07398F",
                "uuid",
                "uuid",
                "'017f22e2-79b0-7cc3-98c4-dc0c0c07398f'",
            ),
            ("-5", "tinyint", "tinyint", "-5"),
            ("'ab'", "char", "char(2)", "'ab'"),
        ] {
            assert_eq!(literal(value, data_type, column_type), expected, "{data_type}");
        }
    }
}
