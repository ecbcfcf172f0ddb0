//! Files a command writes: each whole or not at all.
#![forbid(unsafe_code)]

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use crate::Failure;

/// A file that can be written, found out before the work starts.
#[derive(Debug)]
pub(crate) struct Output {
    path: PathBuf,
}

impl Output {
    /// Checks that `path` is no directory and that its directory exists.
    pub(crate) fn new(path: &Path) -> Result<Self, Failure> {
        let shown = path.display();
        if path.is_dir() || path.file_name().is_none() {
            return Err(Failure::Input(format!(
                "cannot write {shown}: expected the name of a file"
            )));
        }
        let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
        if parent.is_some_and(|p| !p.is_dir()) {
            return Err(Failure::Input(format!(
                "cannot write {shown}: its directory does not exist"
            )));
        }
        Ok(Self { path: path.to_owned() })
    }

    /// Writes `text` beside the file and moves it there, so that a reader never sees a part. A link is
    /// followed; a device or a pipe is written to, never replaced.
    pub(crate) fn write(&self, text: &str) -> Result<(), Failure> {
        let written = match fs::metadata(&self.path) {
            Ok(found) if !found.is_file() => fs::write(&self.path, text),
            Ok(_) => fs::canonicalize(&self.path).and_then(|path| replace(&path, text)),
            Err(_) => replace(&self.path, text),
        };
        written.map_err(|e| Failure::Input(format!("cannot write {}: {e}", self.path.display())))
    }
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mut beside = OsString::from(path);
    beside.push(format!(".{}.tmp", std::process::id()));
    let written = fs::write(&beside, text).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        // If even this fails there is nothing more to clean up with.
        let _ = fs::remove_file(&beside);
    }
    written
}
