//! Identifiers and strings for SQL. Their `Display` adds the quotes, so a template cannot omit them.

use std::fmt;
use std::str::FromStr;

/// The maximum length of the name of a table, view, routine or column, in characters. Source: MySQL manual, "Identifier Length Limits".
pub const IDENT_MAX: usize = 64;

/// An option that cannot be used. The message says why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OptionsError(pub String);

/// An identifier. Its `Display` is the name in backticks, for use in a statement.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ident(String);

impl Ident {
    /// Accepts every name that both server families accept between backticks, and that does not end a comment.
    ///
    /// # Errors
    /// The name is empty, longer than [`IDENT_MAX`], begins or ends with a space, contains `*/`, or a character that servers reject.
    /// Source: MySQL manual, "Schema Object Names".
    pub fn new(name: impl Into<String>) -> Result<Self, OptionsError> {
        let name = name.into();
        let length = name.chars().count();
        // Servers accept most control characters, but a reviewer of the SQL cannot see them.
        let why = if let Some(c) = name.chars().find(|c| c.is_control()) {
            format!("a name must not contain the control character U+{:04X}", u32::from(c))
        } else if let Some(c) = name.chars().find(|c| u32::from(*c) > 0xFFFF) {
            format!("a name must not contain '{c}': MySQL and MariaDB accept only characters up to U+FFFF in names")
        } else if name.contains("*/") {
            // Some statements are in an executable comment.
            format!("a name must not contain */: '{name}'")
        } else if name.is_empty() {
            "a name must not be empty".to_owned()
        } else if name.starts_with(' ') || name.ends_with(' ') {
            // Servers reject the one at the end, and a view of MariaDB replaces the one at the beginning.
            format!("a name must not begin or end with a space: '{name}'")
        } else if length > IDENT_MAX {
            format!("a name has at most {IDENT_MAX} characters, but '{name}' has {length}")
        } else {
            return Ok(Self(name));
        };
        Err(OptionsError(why))
    }

    /// The name of a table of a package.
    ///
    /// # Errors
    /// As [`Ident::new`], and the name has other characters than letters, digits, `_` and `$`.
    pub fn own(name: &str) -> Result<Self, OptionsError> {
        Self::new(name.parse::<Prefix>()?.0)
    }

    /// A name that a server has returned: servers accept more than [`Ident::new`], such as control characters.
    pub(crate) fn stored(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// The name without quotes.
    pub fn name(&self) -> &str {
        &self.0
    }

    /// The name as the value of an option: in backticks if it has a character other than letters, digits and underscores.
    pub fn plain(&self) -> String {
        if self.0.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') { self.0.clone() } else { self.to_string() }
    }

    /// The name as a reader types it: in backticks only if it may need them. A word without an underscore may be
    /// a reserved word of some server (add, drop).
    pub fn typed(&self) -> String {
        let word = |c: char| c.is_ascii_lowercase() || c == '_';
        if self.0.contains('_') && self.0.chars().all(word) { self.0.clone() } else { self.to_string() }
    }
}

impl fmt::Display for Ident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.0.replace('`', "``"))
    }
}

impl FromStr for Ident {
    type Err = OptionsError;

    /// Reads a name, in backticks or not.
    fn from_str(text: &str) -> Result<Self, OptionsError> {
        let text = text.trim();
        match text.strip_prefix('`').and_then(|rest| rest.strip_suffix('`')) {
            Some(quoted) => Self::new(quoted.replace("``", "`")),
            None => Self::new(text),
        }
    }
}

/// An account, written as `USER@HOST`. Its `Display` is the account as DEFINER and GRANT accept it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definer {
    user: Ident,
    host: Ident,
}

/// The maximum length of the name of a user or role on MySQL, in characters. MariaDB has 128. Source: MySQL manual, "Grant Tables".
pub const USER_MAX: usize = 32;

/// The quotes around the user and the host of an account.
const QUOTES: [char; 3] = ['`', '\'', '"'];

impl FromStr for Definer {
    type Err = OptionsError;

    /// Reads the account with or without quotes around the user and the host.
    fn from_str(text: &str) -> Result<Self, OptionsError> {
        let Some((user, host)) = text.rsplit_once('@') else {
            let why = format!("'{text}' is not an account: expected USER@HOST, such as slotted@localhost");
            return Err(OptionsError(why));
        };
        let part = |part: &str| {
            let part = part.trim();
            let quoted = QUOTES.into_iter().find_map(|quote| part.strip_prefix(quote)?.strip_suffix(quote));
            Ident::new(quoted.unwrap_or(part))
        };
        let (user, host) = (part(user)?, part(host)?);
        if user.name().chars().count() > USER_MAX {
            return Err(OptionsError(format!("a user has at most {USER_MAX} characters: '{}'", user.name())));
        }
        Ok(Self { user, host })
    }
}

impl Definer {
    /// An account as a server returns it, in which quotes are a part of the name. None if no option can name it.
    pub fn stored(text: &str) -> Option<Self> {
        let (user, host) = text.rsplit_once('@')?;
        let (user, host) = (Ident::new(user).ok()?, Ident::new(host).ok()?);
        (user.name().chars().count() <= USER_MAX).then_some(Self { user, host })
    }

    /// The account as the value of an option: a part that would be read as another one is in backticks.
    pub fn plain(&self) -> String {
        let part = |ident: &Ident| {
            let name = ident.name();
            let in_quotes = |quote| name.starts_with(quote) && name.ends_with(quote);
            if name.trim() != name || QUOTES.into_iter().any(in_quotes) { format!("`{name}`") } else { name.to_owned() }
        };
        format!("{}@{}", part(&self.user), part(&self.host))
    }
}

impl fmt::Display for Definer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.user, self.host)
    }
}

/// The beginning of routine and view names, of letters, digits, `_` and `$`. May be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix(String);

impl Prefix {
    /// The prefix without quotes.
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl FromStr for Prefix {
    type Err = OptionsError;
    fn from_str(prefix: &str) -> Result<Self, OptionsError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
        if !prefix.chars().all(plain) {
            return Err(OptionsError(format!("'{prefix}' is not a plain name: expected letters, digits, _ and $")));
        }
        Ok(Self(prefix.to_owned()))
    }
}

/// A character string. Its `Display` is an SQL literal for an sql_mode without NO_BACKSLASH_ESCAPES, which is the
/// one that the rendered scripts set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlStr<T>(pub T);

impl<T: AsRef<str>> fmt::Display for SqlStr<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}'", self.0.as_ref().replace('\\', "\\\\").replace('\'', "''"))
    }
}

/// Characters that change how a terminal shows the text after them, or that it shows as nothing: what Rust escapes (control and format
/// characters, separators, and what Unicode has not assigned), fillers, and selectors of variants.
pub(crate) fn is_executed(c: char) -> bool {
    matches!(c, '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{2800}' | '\u{3164}')
        || matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}' | '\u{e0100}'..='\u{e01ef}')
        // After a letter, because Rust also escapes an accent that begins a string.
        || !"\"'\\".contains(c) && format!("a{c}").escape_debug().nth(2).is_some()
}

/// A text that a server has returned, as a literal in a line of a statement that a reader copies: in hexadecimal digits if it has
/// characters that a terminal executes, which are printed as escape sequences.
pub(crate) fn literal(text: &str) -> String {
    if text.contains(is_executed) {
        let digits: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
        return format!("_utf8mb4 X'{digits}'");
    }
    SqlStr(text).to_string()
}
