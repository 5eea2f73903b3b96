//! What the view of a package says of its options, written and read as values.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;

use clap::ValueEnum;

use super::column::Columns;
use super::ident::{Definer, Ident};
use super::key::Key;
use super::options::Options;
use super::subject::Subject;
use super::values::{Family, Security, Slots};

/// The format of the description, which this version of the program can read.
const FORMAT: &str = "1";

impl Options {
    /// What the view of the package says of it: names and values, as a JSON array of arrays. Some migration tools would replace a brace or
    /// a colon.
    pub fn description(&self) -> String {
        let text = |value: &dyn Display| Some(value.to_string());
        let of_records = |value: &dyn Display| text(value).filter(|_| !self.is_named());
        let flag = |set: bool| set.then(|| "yes".to_owned());
        let values = [
            ("format", text(&FORMAT)),
            ("package", text(&self.subject.package())),
            ("slots", text(&self.subject.slots())),
            ("key", of_records(&Key(self.key().to_vec()))),
            ("column", self.column().map(ToString::to_string)),
            ("keep", text(&Columns(self.keep().to_vec())).filter(|_| !self.keep().is_empty())),
            ("table", text(&self.table.name())),
            ("prefix", text(&self.prefix.name())),
            ("collation", self.collation.as_ref().map(ToString::to_string)),
            ("security", text(&self.security)),
            ("definer", self.definer.as_ref().map(Definer::plain)),
            ("server", text(&self.family.slug())),
            ("cluster", flag(self.cluster)),
            ("without function", flag(!self.function)),
        ];
        let values: Vec<_> = values.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        serde_json::to_string(&values).expect("text")
    }

    /// The options that [`Options::description`] has written. None if the text is not of this [`FORMAT`].
    pub fn described(text: &str) -> Option<Self> {
        let values: Vec<(String, String)> = serde_json::from_str(text).ok()?;
        let mut values: BTreeMap<_, _> = values.into_iter().collect();
        let mut of = |name: &str| values.remove(name);
        if of("format")? != FORMAT {
            return None;
        }
        let slots: Slots = parsed(of("slots"))?;
        let subject = match (&*of("package")?, of("column"), slots) {
            ("counters" | "counters-fixed", None, slots) => Subject::Named { slots },
            ("bounded_counters", None, _) => Subject::Bounded,
            ("slotted_counters", None, Slots::Fixed(slots)) => Subject::Records { key: parsed(of("key"))?, slots },
            ("slotted_counters", column, Slots::Fixed(slots)) => {
                let keep = of("keep").unwrap_or_default();
                let keep = if keep.is_empty() { Columns::default() } else { keep.parse().ok()? };
                Subject::Column { column: parsed(column)?, key: parsed(of("key"))?, keep, slots }
            }
            _ => return None,
        };
        let options = Self {
            subject,
            table: Ident::own(&of("table")?).ok()?,
            prefix: parsed(of("prefix"))?,
            collation: optional(of("collation"))?,
            security: Security::from_str(&of("security")?, false).ok()?,
            definer: optional(of("definer"))?,
            family: Family::from_str(&of("server")?, false).ok()?,
            cluster: of("cluster").is_some(),
            function: of("without function").is_none(),
        };
        // What is left is of another version.
        values.is_empty().then_some(options)
    }
}

fn parsed<T: FromStr>(text: Option<String>) -> Option<T> {
    text?.parse().ok()
}

/// None if a text is no value.
fn optional<T: FromStr>(text: Option<String>) -> Option<Option<T>> {
    text.map_or(Some(None), |text| text.parse().ok().map(Some))
}
