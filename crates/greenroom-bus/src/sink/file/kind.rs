//! A file as an output of a configuration.

use greenroom_config::Listing;

use super::{FileOutput, FileSink};
use crate::{
    BoxFuture,
    kind::WrittenFile,
    sink::{OpenOutput, OutputKind, output},
};

/// Its line in the registry.
pub const OUTPUT: Listing<dyn OutputKind> = output::<FileOutput>(
    "file",
    "Appends to a file, one CloudEvent (JSON) per line, in the order of handling.",
);

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
