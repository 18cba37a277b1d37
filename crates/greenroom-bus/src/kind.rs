//! What inputs, outputs and handlers say of themselves to a program that reads a configuration.
//!
//! The options of each kind are next to its code, and implement
//! [`InputKind`](crate::source::InputKind), [`OutputKind`](crate::sink::OutputKind) or
//! [`HandlerKind`](crate::handler::HandlerKind): a program asks its kinds, and names none.

use std::{
    fs::File,
    path::{Path, PathBuf},
};

use greenroom_config::At;

/// A file or directory that an option names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileUse<'a> {
    /// The option.
    pub option: &'static str,
    /// The path. `-` is standard input or output.
    pub path: &'a Path,
    /// What is done with it.
    pub role: FileRole<'a>,
}

/// What is done with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileRole<'a> {
    /// It is read: a file, the files of a directory, or those that match a pattern.
    Read {
        /// What is missing is waited for.
        waits: bool,
    },
    /// Positions in the file `of` are kept in it.
    Checkpoint {
        /// What is read.
        of: &'a Path,
    },
    /// A directory with a log that one input has to itself.
    Log,
    /// Lines are appended to it; `-` is standard output.
    Write {
        /// It is put aside when it is large or old.
        rotates: bool,
    },
}

/// Reports each of these files that cannot be read, at the option that names it. True where all can
/// be.
pub fn are_readable<'p>(
    at: &mut At<'_>,
    files: impl IntoIterator<Item = (&'static str, &'p PathBuf)>,
) -> bool {
    let mut all = true;
    for (option, file) in files {
        if let Err(error) = File::open(file) {
            let shown = at.written(option).show(&file.display().to_string());
            let help = "paths start at the directory of the configuration file";
            at.error(option, format!("cannot read `{shown}`: {error}"), help);
            all = false;
        }
    }
    all
}
