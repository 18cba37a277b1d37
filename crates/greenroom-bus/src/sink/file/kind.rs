//! A file as an output of a configuration.

use std::path::{Path, PathBuf};

use greenroom_config::{At, Listing, defaults_beside, flag, group, options, path};

use super::FileSink;
use crate::{
    BoxFuture,
    kind::WrittenFile,
    sink::{OpenOutput, OutputKind, Rotate, output},
};

/// Its line in the registry.
pub const OUTPUT: Listing<dyn OutputKind> = output::<FileOutput>(
    "file",
    "Appends to a file, one CloudEvent (JSON) per line, in the order of handling.",
);

options! {
    /// Written and synced before the events are acknowledged.
    pub struct FileOutput = "a file output", then FileOutput::checked {
        /// The file. It is created if it is missing; its directory is not. `-` is standard output,
        /// which only one output can use: the report then goes to standard error.
        path: PathBuf = path();
        /// With `true`, every run begins with an empty file. Rotated files stay.
        truncate: bool = flag().default("false");
        /// Rotates the file when it is large or old.
        rotate: Option<Rotate> = group().optional();
    }
}

impl FileOutput {
    /// Appends to this file.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), ..defaults_beside(&[("path", "file")]) }
    }

    /// What was written to standard output cannot be taken back, and has no name.
    fn checked(self, at: &mut At<'_>) -> Option<Self> {
        if self.path != Path::new("-") {
            return Some(self);
        }
        if self.truncate {
            let text = "standard output cannot be started anew";
            at.error("truncate", text, "leave `truncate` out, or name a file");
        }
        if self.rotate.is_some() {
            let text = "standard output cannot be put aside";
            at.error("rotate", text, "leave `rotate` out, or name a file");
        }
        Some(self)
    }
}

impl OutputKind for FileOutput {
    fn writes(&self) -> Option<WrittenFile<'_>> {
        Some(WrittenFile { option: "path", path: &self.path, rotates: self.rotate.is_some() })
    }

    fn open(&self) -> BoxFuture<'_, Result<OpenOutput, String>> {
        Box::pin(async {
            FileSink::open(self).map(OpenOutput::fixed).map_err(|error| error.to_string())
        })
    }
}
