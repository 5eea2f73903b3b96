//! A file that an option asks for.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::output::note;

/// A file that is written where it is: a device, a FIFO, the target of a link, with its owner and mode.
pub(super) struct NewFile {
    option: &'static str,
    path: PathBuf,
    /// None if it does not exist, or if opening it can wait: a FIFO waits for its reader.
    open: Option<File>,
}

impl NewFile {
    /// Checks before the work that the file can be written, because an error afterwards would lose the report. Changes nothing. None
    /// if the option is not given.
    ///
    /// # Errors
    /// The file or its folder cannot be written.
    pub(super) fn create(option: &'static str, path: Option<&Path>) -> anyhow::Result<Option<Self>> {
        let create = |path: &Path| {
            let open = match fs::metadata(path) {
                Ok(found) if found.is_file() || found.is_dir() => {
                    let file = OpenOptions::new().write(true).open(path);
                    Some(file.with_context(|| format!("{option}: cannot write {}", path.display()))?)
                }
                Ok(_) => None,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
                    let folder = folder.unwrap_or(Path::new("."));
                    tempfile::tempfile_in(folder)
                        .with_context(|| format!("{option}: cannot write to {}", folder.display()))?;
                    None
                }
                Err(error) => return Err(error).with_context(|| format!("{option}: {}", path.display())),
            };
            Ok(Self {
                option,
                path: path.to_owned(),
                open,
            })
        };
        path.map(create).transpose()
    }

    /// Writes the file.
    ///
    /// # Errors
    /// Errors of the system, such as a full disk. What the command has measured or recommended is printed before.
    pub(super) fn write(self, text: &str) -> anyhow::Result<()> {
        let path = self.path.display();
        let write = || {
            let mut file = match self.open {
                Some(file) => file,
                None => OpenOptions::new()
                    .write(true)
                    .create(true)
                    .truncate(false)
                    .open(&self.path)?,
            };
            file.write_all(text.as_bytes())?;
            if file.metadata()?.is_file() {
                file.set_len(text.len() as u64)?;
            }
            file.flush()
        };
        write().with_context(|| format!("{}: cannot write {path}", self.option))?;
        note!("wrote {path}");
        Ok(())
    }
}

/// Whether a path is a file with this text. Does not read a FIFO or a device, which can wait or have no end.
pub(super) fn has_text(path: &Path, text: &str) -> bool {
    path.is_file() && fs::read(path).is_ok_and(|old| old == text.as_bytes())
}
