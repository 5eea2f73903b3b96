//! The keys of locked rows as the servers return them.

use std::net::{Ipv4Addr, Ipv6Addr};

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

/// The text of a quoted value. The servers double quotes and backslashes, and write the character NUL as `\0`.
pub(super) fn unquoted(value: &str) -> Option<String> {
    let mut characters = value.strip_prefix('\'')?.strip_suffix('\'')?.chars();
    let mut text = String::new();
    while let Some(c) = characters.next() {
        text.push(match c {
            '\'' | '\\' => match characters.next()? {
                '0' => '\0',
                other => other,
            },
            c => c,
        });
    }
    Some(text)
}

/// A value of a locked key as a literal for a condition. `data_type` and `column_type` are `DATA_TYPE` and `COLUMN_TYPE` of
/// `information_schema.COLUMNS`. The servers return some types as InnoDB stores them, which is the same format on MySQL 9.7,
/// MariaDB 10.11 and 11.8.
pub(super) fn literal(value: &str, data_type: &str, column_type: &str) -> String {
    stored(value, data_type, column_type).unwrap_or_else(|| value.to_owned())
}

/// None if the type or the value has another format.
fn stored(value: &str, data_type: &str, column_type: &str) -> Option<String> {
    let number = || value.parse::<u64>().ok();
    match data_type.to_ascii_lowercase().as_str() {
        // Some collations compare trailing spaces, which CHAR does not have.
        "char" => Some(format!("{}'", value.strip_suffix('\'')?.trim_end_matches(' '))),
        "date" => Some(format!("'{}'", date(number()?))),
        "year" => number().map(|year| if year == 0 { 0 } else { year + 1900 }.to_string()),
        "enum" => {
            let values = members(column_type)?;
            // The first value has the number 1.
            let value = values.get((number()? as usize).checked_sub(1)?)?;
            Some(SqlStr(value).to_string())
        }
        "set" => {
            let bits = number()?;
            let values = members(column_type)?;
            let set = |at: &usize| bits & (1 << at) != 0;
            let chosen: Vec<_> = (0..values.len().min(64))
                .filter(set)
                .map(|at| values[at].as_str())
                .collect();
            Some(SqlStr(&chosen.join(",")).to_string())
        }
        "decimal" => decimal(&bytes(value)?, column_type),
        // The digits of a FLOAT are those of the DOUBLE that the server compares it as.
        "float" => bytes(value)?
            .try_into()
            .ok()
            .map(|bytes| format!("{:e}", f64::from(f32::from_le_bytes(bytes)))),
        "double" => bytes(value)?
            .try_into()
            .ok()
            .map(|bytes| format!("{:e}", f64::from_le_bytes(bytes))),
        "bit" => Some(big_endian(&bytes(value)?).to_string()),
        "time" => time(&bytes(value)?),
        "datetime" => datetime(&bytes(value)?),
        "timestamp" => {
            let bytes = bytes(value)?;
            let (seconds, fraction) = bytes.split_at_checked(4)?;
            let seconds = u32::from_be_bytes(seconds.try_into().ok()?);
            Some(format!("FROM_UNIXTIME({seconds}{})", digits(fraction)))
        }
        "uuid" => uuid(&bytes(value)?),
        "inet4" => {
            let bytes: [u8; 4] = bytes(value)?.try_into().ok()?;
            Some(format!("'{}'", Ipv4Addr::from(bytes)))
        }
        "inet6" => {
            let bytes: [u8; 16] = bytes(value)?.try_into().ok()?;
            Some(format!("'{}'", Ipv6Addr::from(bytes)))
        }
        _ => None,
    }
}

/// The values of an ENUM or a SET.
fn members(column_type: &str) -> Option<Vec<String>> {
    let (_, values) = column_type.split_once('(')?;
    match KeyType::parse(&format!("enum({values}"))? {
        KeyType::Enum(values) => Some(values),
        _ => None,
    }
}

/// The bytes of a hexadecimal literal.
fn bytes(value: &str) -> Option<Vec<u8>> {
    let digits = value.strip_prefix("0x")?;
    let pairs = (0..digits.len()).step_by(2).map(|at| digits.get(at..at + 2));
    pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect()
}

fn big_endian(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Five bits for the day and four for the month.
fn date(number: u64) -> String {
    format!("{:04}-{:02}-{:02}", number >> 9, number >> 5 & 15, number & 31)
}

/// The fraction of a second with its point. One byte has two digits. Empty if there is none.
fn digits(fraction: &[u8]) -> String {
    let width = fraction.len() * 2;
    if width == 0 {
        return String::new();
    }
    format!(".{:0width$}", big_endian(fraction))
}

/// A sign, 17 bits for year * 13 + month, 5 for the day, 5 for the hour, 6 for the minute and 6 for the second, then the
/// fraction. Source: MySQL internals manual, "Date and Time Data Type Representation".
fn datetime(bytes: &[u8]) -> Option<String> {
    let (whole, fraction) = bytes.split_at_checked(5)?;
    let packed = big_endian(whole) & 0x7f_ffff_ffff;
    let month = packed >> 22;
    Some(format!(
        "'{:04}-{:02}-{:02} {:02}:{:02}:{:02}{}'",
        month / 13,
        month % 13,
        packed >> 17 & 31,
        packed >> 12 & 31,
        packed >> 6 & 63,
        packed & 63,
        digits(fraction)
    ))
}

/// 0x800000 plus ten bits for the hour, six for the minute and six for the second, then the fraction. A negative time is
/// subtracted. Source: as [`datetime`].
fn time(bytes: &[u8]) -> Option<String> {
    let width = bytes.len().checked_sub(3).filter(|width| *width <= 3)?;
    let zero = 0x80_0000_u64 << (8 * width);
    let stored = big_endian(bytes);
    let (sign, packed) = if stored < zero {
        ("-", zero - stored)
    } else {
        ("", stored - zero)
    };
    let whole = packed >> (8 * width);
    let fraction = &packed.to_be_bytes()[8 - width..];
    Some(format!(
        "'{sign}{:02}:{:02}:{:02}{}'",
        whole >> 12 & 1023,
        whole >> 6 & 63,
        whole & 63,
        digits(fraction)
    ))
}

/// Groups of nine digits in four bytes, with the shorter groups at both ends. The first bit is inverted, and all bits of a
/// negative number. Source: MySQL source, `decimal2bin` in `strings/decimal.cc`.
fn decimal(bytes: &[u8], column_type: &str) -> Option<String> {
    const BYTES: [usize; 10] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];
    let (_, sizes) = column_type.split_once('(')?;
    let (sizes, _) = sizes.split_once(')')?;
    let (precision, scale) = sizes.split_once(',').unwrap_or((sizes, "0"));
    let (precision, scale): (usize, usize) = (precision.trim().parse().ok()?, scale.trim().parse().ok()?);
    let whole = precision.checked_sub(scale)?;
    let groups = [whole % 9]
        .into_iter()
        .chain(vec![9; whole / 9 + scale / 9])
        .chain([scale % 9]);
    let negative = bytes.first()? & 0x80 == 0;
    let invert = if negative { 0xff } else { 0 };
    let mut rest: Vec<u8> = bytes.iter().map(|byte| byte ^ invert).collect();
    *rest.first_mut()? ^= 0x80;
    let mut rest = rest.as_slice();
    let mut text = String::new();
    for width in groups {
        let (group, following) = rest.split_at_checked(BYTES[width])?;
        if width > 0 {
            text += &format!("{:0width$}", big_endian(group));
        }
        rest = following;
    }
    let (whole, fraction) = text.split_at_checked(whole)?;
    let whole = whole.trim_start_matches('0');
    let sign = if negative { "-" } else { "" };
    let point = if fraction.is_empty() { "" } else { "." };
    let zero = if whole.is_empty() { "0" } else { "" };
    Some(format!("{sign}{zero}{whole}{point}{fraction}"))
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
        assert_eq!(unquoted(r"'a\\b'").as_deref(), Some(r"a\b"));
        assert_eq!(key_values("supremum pseudo-record"), None);
        assert_eq!(key_values("'truncated"), None);
        assert_eq!(key_values(""), None);
    }

    #[test]
    fn locked_values_become_literals() {
        for (value, data_type, column_type, expected) in [
            ("1037687", "date", "date", "'2026-11-23'"),
            ("0x99BB6EA51E", "datetime", "datetime", "'2026-11-23 10:20:30'"),
            (
                "0x99BB6EA51E0C",
                "datetime",
                "datetime(2)",
                "'2026-11-23 10:20:30.12'",
            ),
            (
                "0x99BB6EA51E01E240",
                "datetime",
                "datetime(6)",
                "'2026-11-23 10:20:30.123456'",
            ),
            ("0x99BB", "datetime", "datetime", "0x99BB"),
            (
                "0x6A000000",
                "timestamp",
                "timestamp",
                "FROM_UNIXTIME(1778384896)",
            ),
            (
                "0x6B04136E1ED2",
                "timestamp",
                "timestamp(3)",
                "FROM_UNIXTIME(1795429230.7890)",
            ),
            ("0x7F3748", "time", "time", "'-12:34:56'"),
            ("0xB20001", "time", "time", "'800:00:01'"),
            ("0x80C8B81ED2", "time", "time(3)", "'12:34:56.7890'"),
            ("0x7FFFFFFFFFFF", "time", "time(6)", "'-00:00:00.000001'"),
            (
                "0x7FFFFFFFFFFCFC6E57A",
                "decimal",
                "decimal(20,4)",
                "0x7FFFFFFFFFFCFC6E57A",
            ),
            (
                "0x7FFFFFFFFFFFCFC6E57A",
                "decimal",
                "decimal(20,4)",
                "-12345.6789",
            ),
            ("0x80002A", "decimal", "decimal(5,0)", "42"),
            ("0x8001", "decimal", "decimal(3,3)", "0.001"),
            ("0x0000C03F", "float", "float", "1.5e0"),
            ("0x00000000000002C0", "double", "double", "-2.25e0"),
            ("0x0A01", "bit", "bit(12)", "2561"),
            ("5", "set", "set('a','b','c')", "'a,c'"),
            ("'ab c      '", "char", "char(10)", "'ab c'"),
            ("0x0A010203", "inet4", "inet4", "'10.1.2.3'"),
            (
                "0x20010DB8000000000000000000000001",
                "inet6",
                "inet6",
                "'2001:db8::1'",
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
