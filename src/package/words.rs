//! The options of a package as words: of a command line, and of the view of the package.

use std::borrow::Cow;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, FromArgMatches, Parser};

use super::column::TableColumn;
use super::ident::Definer;
use super::key::Key;
use super::options::{Options, OptionsError};
use super::values::Kind;

/// The options on a command line, and the flags that it contains. None if it names neither a package nor a column.
#[derive(Debug, Clone)]
pub struct Given {
    /// The options.
    pub options: Option<Options>,
    /// The flags on the command line, without dashes, of those that an installation otherwise keeps.
    pub flags: Vec<&'static str>,
}

/// The flags that an installation keeps as it finds them, unless the command line contains them.
const KEPT: [&str; 4] = ["slots", "collation", "security", "definer"];

impl Args for Given {
    fn augment_args(command: Command) -> Command {
        // What the command line does not say is the default of its package.
        Options::augment_args_for_update(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Given {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let name = matches.get_raw("kind").and_then(|mut words| words.next()?.to_str());
        let column = matches.get_one::<TableColumn>("column");
        let Some(name) = name.or(column.map(|_| Kind::SlottedCounters.name())) else {
            return Ok(Self { options: None, flags: Vec::new() });
        };
        let mut options = Options::named(name).expect("a possible value");
        if let Some(column) = column {
            options = Options::of_column(column).unwrap_or(options);
            // The key of its table is not known here.
            options.key = Key(Vec::new());
        }
        options.update_from_arg_matches(matches)?;
        if name == "counters-fixed" && options.per_counter() {
            let error = "counters-fixed has one number of slots for all counters: use the package counters\n";
            return Err(clap::Error::raw(ErrorKind::ArgumentConflict, error));
        }
        let flags =
            KEPT.into_iter().filter(|flag| matches.value_source(flag) == Some(ValueSource::CommandLine)).collect();
        Ok(Self { options: Some(options), flags })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Options {
    /// The words after `slotted generate` that render these options, quoted for a POSIX shell.
    pub fn arguments(&self) -> String {
        let default = self.defaults();
        let name = if self.bounded { "bounded_counters" } else { self.kind.name() };
        let mut arguments = name.to_owned();
        let mut say = |flag: &str, differs: bool, value: &str| {
            if differs {
                // After a space, a value that begins with a dash would be parsed as a flag.
                let between = if value.starts_with('-') { '=' } else { ' ' };
                arguments += &format!(" --{flag}{between}{}", shell_word(value));
            }
        };
        let (definer, column) = (self.definer.as_ref(), self.column.as_ref());
        say("key", column.is_some() || self.key != default.key, &self.key.to_string());
        say("slots", self.slots != default.slots, &self.slots.to_string());
        say("pick", self.pick != default.pick, &self.pick.to_string());
        say("table", self.table != default.table, self.table.name());
        say("prefix", self.prefix != default.prefix, self.prefix.name());
        say("collation", self.collation() != self.default_collation(), &self.collation().to_string());
        say("security", self.security != default.security, &self.security.to_string());
        say("definer", definer.is_some(), &definer.map(Definer::plain).unwrap_or_default());
        say("server", self.family != default.family, self.family.slug());
        say("column", column.is_some(), &column.map(TableColumn::to_string).unwrap_or_default());
        say("keep", !self.keep.0.is_empty(), &self.keep.to_string());
        if self.cluster {
            arguments += " --cluster";
        }
        if !self.function {
            arguments += " --no-function";
        }
        arguments
    }

    /// The options that [`Options::arguments`] has written.
    ///
    /// # Errors
    /// The text is not the words of a package and its options.
    pub fn parse(arguments: &str) -> Result<Self, OptionsError> {
        #[derive(Parser)]
        #[command(no_binary_name = true)]
        struct Words {
            #[command(flatten)]
            given: Given,
        }
        let options = shlex::split(arguments).and_then(|words| Words::try_parse_from(words).ok()?.given.options);
        options.ok_or_else(|| OptionsError::Words(arguments.to_owned()))
    }
}

/// A word of a command line, quoted for a shell if necessary.
pub(crate) fn shell_word(word: &str) -> Cow<'_, str> {
    let quoter = shlex::Quoter::new().allow_nul(true);
    quoter.quote(word).expect("NUL is the only character that can be rejected, and it is allowed")
}
