//! Where handled events go.

use std::path::{Path, PathBuf};

use greenroom_config::{flag, group, options, path, texts};

options! {
    /// Where handled events go: exactly one kind.
    pub struct OutputConfig named name = "an output" {
        /// The event types: a type, a pattern or a list, as for handlers.
        on: Vec<String> = texts().default("\"**\"");
        .. /// What it writes to.
        kind: OutputKind;
        refused {
            "kafka": "`kafka` outputs are not part of this version";
            "nats": "`nats` outputs are not part of this version";
            "http": "`http` outputs are not part of this version; an `http` handler posts events";
            "all": "`all` holds for all outputs: write `all_outputs: true`, at the top";
        }
    }
}

options! {
    /// What it writes to.
    pub enum OutputKind = "an output" {
        /// Appends to a file, one CloudEvent (JSON) per line, in the order of handling.
        File(FileOutput) as "file" = group();
    }
}

options! {
    /// Written and synced before the events are acknowledged.
    pub struct FileOutput = "a file output" {
        /// The file. It is created when it is missing; its directory is not.
        path: PathBuf = path();
        /// With `true`, every run starts the file anew.
        truncate: bool = flag().default("false");
    }
}

impl OutputConfig {
    /// The file that it writes to.
    pub fn path(&self) -> &Path {
        let OutputKind::File(file) = &self.kind;
        &file.path
    }
}
