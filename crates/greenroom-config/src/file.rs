//! The text of a configuration file, or why there is none.

use std::{
    fs,
    io::{self, Read},
    path::Path,
};

use crate::{
    problem::Problem,
    tree::{Place, Span},
};

/// A configuration is written by hand; a larger file is a mistake.
const MAX_FILE: u64 = 16 << 20;

/// The name of standard input.
pub const STANDARD_INPUT: &str = "-";

/// Why there is no text, and the part of it that can be shown.
#[derive(Debug)]
pub struct Unread {
    /// The problem and its place.
    pub problem: Problem,
    /// The part of the text that can be shown.
    pub text: String,
}

/// Reads a file of at most 16 MiB as text; [`STANDARD_INPUT`] is standard input.
///
/// # Errors
/// It cannot be read, is too large, or is not UTF-8.
pub fn text_of(file: &Path) -> Result<String, Unread> {
    let unread = |why: String| Unread {
        problem: Problem::error(
            format!("cannot read the configuration: {why}"),
            Place::whole_file(),
        ),
        text: String::new(),
    };
    if file.is_dir() {
        return Err(unread("it is a directory".to_owned()));
    }
    let mut bytes = Vec::new();
    let opened = opened(file).map_err(|error| unread(error.to_string()))?;
    let read = opened.take(MAX_FILE + 1).read_to_end(&mut bytes);
    read.map_err(|error| unread(error.to_string()))?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(unread(format!("it holds more than {} MiB", MAX_FILE >> 20)));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        not_text(error.as_bytes(), valid)
    })
}

fn opened(file: &Path) -> io::Result<Box<dyn Read>> {
    match file == Path::new(STANDARD_INPUT) {
        true => Ok(Box::new(io::stdin())),
        false => Ok(Box::new(fs::File::open(file)?)),
    }
}

/// The directory that relative paths of a configuration start from: that of its file, or the
/// working directory if the file has none (standard input, a pipe or a device).
pub fn directory_of(file: &Path) -> &Path {
    let is_stream = file.metadata().is_ok_and(|found| !found.is_file());
    let is_descriptor = ["/dev", "/proc"].iter().any(|place| file.starts_with(place));
    match is_stream || is_descriptor {
        true => Path::new(""),
        false => file.parent().unwrap_or(Path::new("")),
    }
}

/// `valid`: the number of bytes that are UTF-8.
fn not_text(bytes: &[u8], valid: usize) -> Unread {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let (what, place) = match bytes {
        [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] => ("this is UTF-16, not UTF-8", Place::whole_file()),
        _ => {
            let before = String::from_utf8_lossy(&bytes[..valid]);
            let line_start = before.rfind('\n').map_or(0, |end| end + 1);
            let column = before[line_start..].chars().count() + 1;
            let line = before.matches('\n').count() + 1;
            ("this is not UTF-8 text", Place::Source(Span { line, column, width: 1 }))
        }
    };
    Unread { problem: Problem::error(what, place).help("save the file as UTF-8"), text }
}
