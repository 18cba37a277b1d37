//! What inputs, outputs and handlers say of themselves to a program that reads a configuration.
//!
//! The options of each kind are next to its code, and implement
//! [`InputKind`](crate::source::InputKind), [`OutputKind`](crate::sink::OutputKind) or
//! [`HandlerKind`](crate::handler::HandlerKind): a program asks its kinds, and names none.

use std::{
    fs::File,
    path::{Path, PathBuf},
};

use greenroom_config::{AnyOptions, At};

/// A file or directory that an input reads from, or keeps something in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileUse<'a> {
    /// The option that names it.
    pub option: &'static str,
    /// The path. `-` is standard input.
    pub path: &'a Path,
    /// What is done with it.
    pub role: FileRole<'a>,
}

/// What an input does with a file.
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
    /// A directory with a log that the input has to itself. It has one at most.
    Log,
}

/// The file that an output writes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrittenFile<'a> {
    /// The option that names it.
    pub option: &'static str,
    /// Lines are appended to it; `-` is standard output.
    pub path: &'a Path,
    /// It is put aside when it is large or old.
    pub rotates: bool,
}

/// What goes by other options while it runs: the factory of a handler, a sink, the server of an
/// input.
pub trait Live: Send + Sync {
    /// Goes by the live options of `wanted` from now on; false where they are the same, or those of
    /// another kind.
    ///
    /// # Errors
    /// Why they cannot be used; those from before hold.
    fn reconfigure(&self, wanted: &dyn AnyOptions) -> Result<bool, String>;
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

/// What only a connector with its cargo feature `client` does; without it, an error that names
/// what the client is of. The error of the expression becomes a text.
#[macro_export]
macro_rules! by_client {
    ($server:literal, $($unused:ident)* => $does:expr) => {{
        #[cfg(feature = "client")]
        {
            $does.map_err(|error| error.to_string())
        }
        #[cfg(not(feature = "client"))]
        {
            $(let _ = $unused;)*
            Err(concat!("this build has no client of ", $server).to_owned())
        }
    }};
}
