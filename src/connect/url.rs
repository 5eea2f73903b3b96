//! The URL of a server.

use mysql::Opts;

use super::error::Hinted;
use super::settings::{Secret, Settings};

/// What to do about a URL that cannot be used.
const ENCODE: &str = "percent-encode the special characters of user and password: # is %23, / is %2F, ? is %3F, @ is %40, : is %3A, % is %25; \
    or use --host, --user and --password";

impl Settings {
    /// The settings of `mysql://user:password@host:port/database?socket=PATH`. A URL without a socket is TCP, as in other programs.
    ///
    /// # Errors
    /// The URL cannot be used. The message contains no part of it, which can be a part of a password.
    pub fn of_url(text: &str) -> Result<Self, Hinted> {
        let error = |message: &str| Hinted::new(message, ENCODE);
        let rest = text.strip_prefix("mysql://").or(text.strip_prefix("mariadb://"));
        let rest = rest.ok_or_else(|| error("the URL must begin with mysql:// or mariadb://"))?;
        // One of these in a password ends the part before it: the rest of the password and the host would be a path.
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        if rest[end..].contains(['#', '@']) {
            return Err(error("the URL has a special character that is not percent-encoded"));
        }
        let parameters = rest.split_once('?').map_or("", |(_, parameters)| parameters);
        if !parameters.is_empty() && parameters.split('&').any(|one| !one.starts_with("socket=")) {
            return Err(Hinted::new(
                "the URL has a parameter other than socket",
                "the only parameter is socket; a ? in a password is %3F, and --ssl-mode can be added to a URL",
            ));
        }
        let options = Opts::from_url(&format!("mysql://{rest}")).map_err(|_| error("the URL cannot be parsed"))?;
        let host = options.get_ip_or_hostname();
        Ok(Settings {
            host: Some(host.trim_matches(['[', ']']).to_owned()),
            port: Some(options.get_tcp_port()),
            socket: options.get_socket().map(Into::into),
            tcp: Some(options.get_socket().is_none()),
            user: options.get_user().map(str::to_owned),
            password: options.get_pass().map(|password| Secret(password.to_owned())),
            database: options.get_db_name().filter(|name| !name.is_empty()).map(str::to_owned),
            ..Settings::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Secret, Settings};

    fn encoded(text: &str) -> String {
        text.bytes().map(|byte| format!("%{byte:02X}")).collect()
    }

    proptest! {
        // A part that is a dot or two is no part of a URL, even if it is encoded.
        #[test]
        fn parts_are_read_without_loss(user in "\\PC+", password in "\\PC+", database in "[^.]\\PC*") {
            let (of_user, of_password, path) = (encoded(&user), encoded(&password), encoded(&database));
            let url = format!("mysql://{of_user}:{of_password}@[::1]:3307/{path}?socket={path}");
            let settings = Settings::of_url(&url).expect("a URL");
            prop_assert_eq!(settings.socket, Some(database.clone().into()));
            prop_assert_eq!((settings.user, settings.database), (Some(user), Some(database)));
            prop_assert_eq!(settings.password, Some(Secret(password)));
            prop_assert_eq!((settings.host.as_deref(), settings.port), (Some("::1"), Some(3307)));
        }

        #[test]
        fn neither_an_error_nor_debug_output_contains_the_password(text: String) {
            let printed = format!("{:?}", Settings::of_url(&format!("mysql://user:qJ8xkV{text}@host/db")));
            prop_assert!(!printed.contains("qJ8xkV"), "{}", printed);
        }
    }
}
