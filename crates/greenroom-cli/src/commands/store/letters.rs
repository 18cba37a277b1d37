//! The same for a store of dead letters.

use std::{path::Path, time::Duration};

use greenroom_bus::store::letters::{backup, check, compact};

use crate::{cli::StoreAction, config::plural};

/// The result in words.
///
/// # Errors
/// The command failed, or the store is damaged.
pub(super) fn act(action: &StoreAction) -> Result<String, String> {
    match action {
        StoreAction::Check { path } => checked(path),
        StoreAction::Backup { path, to } => {
            backup(path, to).map_err(|error| error.to_string())?;
            Ok(format!("{}: copied to {}\n", path.display(), to.display()))
        }
        StoreAction::Compact { path, keep, forget } => compacted(path, *keep, forget),
        StoreAction::Export { path } => {
            let path = path.display();
            Err(format!(
                "{path}: a store of dead letters; `greenroom dead-letters export --store {path}` prints its contents"
            ))
        }
    }
}

fn checked(path: &Path) -> Result<String, String> {
    let found = check(path).map_err(|error| error.to_string())?;
    let shown = path.display();
    if found.damage.is_empty() {
        let letters = plural(found.letters as usize, "dead letter");
        return Ok(format!("{shown}: a store of {letters}\nevery page is intact\n"));
    }
    Err(format!(
        "{shown}: damaged\n{}\nrestore a backup, or save what is readable with `greenroom dead-letters export --store {shown}` \
         and start with an empty directory",
        found.damage.join("\n")
    ))
}

fn compacted(path: &Path, keep: Duration, forget: &[String]) -> Result<String, String> {
    let shown = path.display();
    if !forget.is_empty() || !keep.is_zero() {
        return Err(format!(
            "{shown}: a store of dead letters has no consumers, and `--keep` is for logs; `greenroom dead-letters drop` removes \
             letters"
        ));
    }
    let (before, after) = compact(path).map_err(|error| error.to_string())?;
    Ok(format!("{shown}: {before} bytes before, {after} now\n"))
}
