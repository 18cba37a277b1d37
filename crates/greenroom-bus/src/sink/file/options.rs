//! The options of a file as an output.

use std::path::{Path, PathBuf};

use greenroom_config::{At, defaults_beside, flag, group, options, path};

use crate::sink::Rotate;

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
