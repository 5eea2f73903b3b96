//! The URL of a server.

use percent_encoding::percent_decode_str;
use url::Url;

use super::{Secret, SettingError, Settings};

/// A URL that cannot be used. No message contains the URL, which can have a password.
#[derive(Debug, thiserror::Error)]
pub enum UrlError {
    /// The text is not a URL.
    #[error("the URL cannot be parsed: {0}")]
    Parse(#[from] url::ParseError),
    /// The scheme is not `mysql` or `mariadb`.
    #[error("the URL must begin with mysql:// or mariadb://")]
    Scheme,
    /// The URL has a part that a server does not have.
    #[error("the URL has an unexpected {0}")]
    Part(&'static str),
    /// A part is not UTF-8.
    #[error("the {0} in the URL is not valid UTF-8")]
    Encoding(&'static str),
    /// An unknown parameter. Its name can be a part of a password.
    #[error("the URL has an unknown parameter after the ?")]
    Unknown,
    /// A parameter with a value that is not valid.
    #[error("the URL has a parameter that is not valid: {0}")]
    Parameter(#[from] SettingError),
}

pub(super) fn parse(text: &str) -> Result<Settings, UrlError> {
    let url = Url::parse(text)?;
    if !["mysql", "mariadb"].contains(&url.scheme()) {
        return Err(UrlError::Scheme);
    }
    // A special character of a password that is not percent-encoded ends the part before it. Such a URL could name
    // another host.
    if url.fragment().is_some() {
        return Err(UrlError::Part("#"));
    }
    let path = url.path().trim_start_matches('/');
    if path.contains(['/', '@', ':']) {
        return Err(UrlError::Part("/"));
    }
    let decoded = |part: &'static str, text: &str| {
        let text = percent_decode_str(text).decode_utf8();
        let text = text.map_err(|_| UrlError::Encoding(part))?.into_owned();
        Ok::<_, UrlError>(Some(text).filter(|text| !text.is_empty()))
    };
    let host = url.host_str().unwrap_or_default();
    let mut settings = Settings {
        host: decoded("host", host.trim_start_matches('[').trim_end_matches(']'))?,
        port: url.port(),
        user: decoded("user", url.username())?,
        password: decoded("password", url.password().unwrap_or_default())?.map(Secret),
        database: decoded("database", path)?,
        ..Settings::default()
    };
    for (name, value) in url.query_pairs() {
        if !PARAMETERS.contains(&name.as_ref()) {
            return Err(UrlError::Unknown);
        }
        settings.set(&name, Some(&value))?;
    }
    Ok(settings)
}

/// The parameters of a URL. The others of an option file are parts of the URL.
const PARAMETERS: [&str; 6] = [
    "connect-timeout",
    "socket",
    "ssl-ca",
    "ssl-cert",
    "ssl-key",
    "ssl-mode",
];

#[cfg(test)]
mod tests {
    use super::{Secret, parse};

    #[test]
    fn encoded_characters_are_decoded() {
        let settings =
            parse("mysql://us%40er:p%23%2F%3F%25%3A@[::1]:3307/my_db?ssl-mode=verify-ca").expect("a URL");
        assert_eq!(settings.user.as_deref(), Some("us@er"));
        assert_eq!(settings.password, Some(Secret("p#/?%:".into())));
        assert_eq!(settings.host.as_deref(), Some("::1"));
        assert_eq!(
            (settings.port, settings.database.as_deref()),
            (Some(3307), Some("my_db"))
        );
    }

    #[test]
    fn a_special_character_never_leads_to_another_host() {
        for character in "#/?".chars() {
            for password in [
                format!("12{character}34"),
                format!("a{character}b"),
                format!("{character}"),
            ] {
                let error = parse(&format!("mysql://user:{password}@host/db")).expect_err(&password);
                assert!(!error.to_string().contains("user"), "{error}");
            }
        }
    }
}

#[cfg(test)]
mod properties {
    use proptest::prelude::*;

    use super::{Secret, parse};

    fn encoded(text: &str) -> String {
        text.bytes().map(|byte| format!("%{byte:02X}")).collect()
    }

    proptest! {
        #[test]
        fn encoded_parts_of_a_url_are_read_without_loss(text in ".{3,20}") {
            let part = encoded(&text);
            let settings = parse(&format!("mysql://{part}:{part}@[::1]:3307/{part}?socket={part}")).expect("a URL");
            prop_assert_eq!((settings.host, settings.port), (Some("::1".into()), Some(3307)));
            prop_assert_eq!((settings.user, settings.password), (Some(text.clone()), Some(Secret(text.clone()))));
            prop_assert_eq!((settings.database, settings.socket), (Some(text.clone()), Some(text.into())));
        }

        #[test]
        fn no_error_of_a_url_contains_the_password(text: String) {
            if let Err(error) = parse(&format!("mysql://user:qJ8xkV{text}@host/db")) {
                prop_assert!(!error.to_string().contains("qJ8xkV"), "{error}");
            }
        }
    }
}
