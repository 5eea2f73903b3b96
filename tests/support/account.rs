//! Accounts of promises.

use mysql::Conn;
use mysql::prelude::Queryable;
use slotted::package::Package;

use super::Schema;

/// A private account, which is dropped at the end of the promise.
pub struct Account<'a> {
    schema: &'a Schema<'a>,
    pub name: String,
}

impl<'a> Account<'a> {
    /// An account with privileges on its schema, such as `ALL`.
    pub fn new(schema: &'a Schema<'a>, suffix: &str, privileges: &str) -> Self {
        let account = Self { schema, name: format!("{}_{suffix}", schema.name) };
        schema.run(&format!("CREATE USER '{}'@'%'", account.name));
        account.grant(privileges);
        account
    }

    pub fn grant(&self, privileges: &str) {
        self.schema.run(&format!("GRANT {privileges} ON {}.* TO '{}'@'%'", self.schema.ident(), self.name));
    }

    pub fn connect(&self) -> Conn {
        Conn::new(self.schema.options().user(Some(&self.name)).pass(None::<&str>)).expect("the account may connect")
    }
}

impl Drop for Account<'_> {
    fn drop(&mut self) {
        // Ignores errors: a second panic would abort the run and hide the first one.
        let _ = self.schema.connect().query_drop(format!("DROP USER '{}'@'%'", self.name));
    }
}

/// grants.sql for the accounts of a schema with the suffixes `app` and `dba`.
pub fn grants(schema: &Schema<'_>, package: &Package) -> String {
    let named = |text: String, name| text.replace(&format!("'{name}'@"), &format!("'{}_{name}'@", schema.name));
    ["app", "dba"].into_iter().fold(schema.file(package, "grants.sql"), named)
}
