//! From which commit a package is built. Used by the build script, and by the tests, which include
//! this file.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Where the package lies in its own repository. In another one (a vendored copy) a commit would
/// say nothing.
const PLACE: &str = "crates/greenroom-cli/";
/// Characters of a commit that are shown: enough to be unique for a long time.
const SHOWN: usize = 12;
/// What is said when nothing tells the commit.
const UNKNOWN: &str = "commit unknown";

/// A commit, and the files that change when it does.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Commit {
    pub(crate) name: String,
    /// Each exists: cargo runs a build script that watches a missing file at every build.
    pub(crate) watched: Vec<PathBuf>,
}

/// The commit of the package in `directory`: the one that is `given` (a build from a copy without
/// history), else the one that `cargo publish` wrote into the package, else the one that is checked
/// out.
pub(crate) fn of(directory: &Path, given: Option<String>) -> Commit {
    given
        .filter(|name| !name.is_empty())
        .map(|name| Commit { name: shortened(&name), watched: Vec::new() })
        .or_else(|| published(&directory.join(".cargo_vcs_info.json")))
        .or_else(|| checked_out(directory))
        .unwrap_or_else(|| Commit { name: UNKNOWN.to_owned(), watched: Vec::new() })
}

/// `{ "git": { "sha1": "..." } }`, read without a JSON parser: a build script that needs no crates
/// is built at once.
fn published(file: &Path) -> Option<Commit> {
    let text = fs::read_to_string(file).ok()?;
    let (_, rest) = text.split_once("\"sha1\"")?;
    let commit = rest.split('"').nth(1).filter(|commit| is_commit(commit))?;
    Some(Commit { name: shortened(commit), watched: vec![file.to_owned()] })
}

/// Asks git. Nothing, when there is no git, no repository, no commit, or the repository is not
/// greenroom's.
fn checked_out(directory: &Path) -> Option<Commit> {
    let asked = Command::new("git")
        .current_dir(directory)
        .args(["rev-parse", "--show-prefix", "--git-path", "HEAD", "--git-path", "logs/HEAD"])
        .args(["--git-path", "refs/heads", "--git-path", "packed-refs", "HEAD"])
        // A git hook sets these; they would take the place of the directory.
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .output()
        .ok()
        .filter(|answer| answer.status.success())?;
    let text = String::from_utf8(asked.stdout).ok()?;
    let [prefix, head, log, heads, packed, commit] = text.lines().collect::<Vec<_>>()[..] else {
        return None;
    };
    (prefix == PLACE && is_commit(commit)).then(|| Commit {
        name: shortened(commit),
        watched: watched(&[head, log, heads, packed].map(|path| directory.join(path))),
    })
}

/// A commit or a checkout writes to the log of HEAD. Where git keeps none, HEAD itself and the
/// branches say the same.
fn watched([head, log, heads, packed]: &[PathBuf; 4]) -> Vec<PathBuf> {
    let files = if log.exists() { vec![head, log] } else { vec![head, heads, packed] };
    files.into_iter().filter(|path| path.exists()).cloned().collect()
}

fn is_commit(text: &str) -> bool {
    text.len() >= 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn shortened(commit: &str) -> String {
    commit.chars().take(SHOWN).collect()
}
