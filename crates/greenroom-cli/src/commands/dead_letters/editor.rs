//! Opens an event in an editor.

use std::{env, fs, io, path::PathBuf, process::Command};

use greenroom_bus::store::letters::pretty_json;

/// The initial text of the editor if a letter has no event that can be shown.
const TEMPLATE: &str = r#"{
  "specversion": "1.0",
  "id": "",
  "source": "",
  "type": "",
  "data": null
}
"#;

/// A file that only its owner can read, and that is removed on drop.
struct Draft(PathBuf);

impl Drop for Draft {
    fn drop(&mut self) {
        // Its directory is private as well.
        let _ = self.0.parent().map(fs::remove_dir_all);
    }
}

/// The edited event; `None` if it was not changed.
///
/// # Errors
/// There is no editor, or it failed.
pub(super) fn edited(content: &[u8]) -> Result<Option<Vec<u8>>, String> {
    let editor = ["VISUAL", "EDITOR"].iter().find_map(|name| env::var(name).ok());
    let editor = editor
        .filter(|editor| !editor.trim().is_empty())
        .ok_or("no editor is set: set EDITOR, or give the new event with `--set` or `--file`")?;
    let draft = draft(&pretty(content)).map_err(|error| format!("no file to edit: {error}"))?;
    let before = fs::read(&draft.0).map_err(|error| error.to_string())?;
    let mut words = editor.split_whitespace();
    let program = words.next().unwrap_or_default();
    let ended = Command::new(program).args(words).arg(&draft.0).status();
    let ended =
        ended.map_err(|error| format!("the editor `{editor}` cannot be started: {error}"))?;
    if !ended.success() {
        return Err(format!("the editor `{editor}` ended with {ended}: nothing was changed"));
    }
    let after = fs::read(&draft.0).map_err(|error| error.to_string())?;
    if after == before {
        return Ok(None);
    }
    Ok(Some(after))
}

/// JSON over several lines; other bytes as they are.
fn pretty(content: &[u8]) -> Vec<u8> {
    if content.is_empty() {
        return TEMPLATE.as_bytes().to_vec();
    }
    match str::from_utf8(content).map(pretty_json) {
        Ok(Ok(event)) => format!("{event}\n").into_bytes(),
        _ => content.to_vec(),
    }
}

fn draft(content: &[u8]) -> io::Result<Draft> {
    let directory = private_directory()?;
    let draft = Draft(directory.join("event.json"));
    fs::write(&draft.0, content)?;
    Ok(draft)
}

/// A new directory: one that another user has put there is not used.
fn private_directory() -> io::Result<PathBuf> {
    let mut builder = fs::DirBuilder::new();
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    for number in 0..1_000 {
        let name = format!("greenroom-edit-{}-{number}", std::process::id());
        let directory = env::temp_dir().join(name);
        match builder.create(&directory) {
            Ok(()) => return Ok(directory),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}
