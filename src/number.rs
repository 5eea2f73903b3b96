//! Numbers for readers. Pure.

/// A number without decimals, with a comma between thousands.
pub(crate) fn thousands(number: f64) -> String {
    separated(&format!("{number:.0}"))
}

/// A text whose numbers get a comma between thousands.
pub(crate) fn separated(text: &str) -> String {
    let mut separated = String::new();
    let mut decimals = false;
    for (at, c) in text.char_indices() {
        let digits = text[at..].bytes().take_while(u8::is_ascii_digit).count();
        let inside = separated.ends_with(|last: char| last.is_ascii_digit());
        if digits > 0 && inside && !decimals && digits.is_multiple_of(3) {
            separated.push(',');
        }
        decimals = c == '.' || decimals && digits > 0;
        separated.push(c);
    }
    separated
}

/// A number of things: `1 slot`, `1,000 slots`.
pub(crate) fn count(number: u64, thing: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{} {thing}{s}", thousands(number as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_have_commas() {
        assert_eq!(
            [0.0, 999.4, 1000.0, 1_234_567.0].map(thousands),
            ["0", "999", "1,000", "1,234,567"]
        );
    }

    #[test]
    fn numbers_in_a_text_have_commas() {
        assert_eq!(
            separated("1623 to 12012.12345 or 80 %, 1000000"),
            "1,623 to 12,012.12345 or 80 %, 1,000,000"
        );
    }
}
