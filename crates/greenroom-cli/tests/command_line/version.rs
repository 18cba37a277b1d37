//! `greenroom --version` names the commit and the features of a build (C17), in a checkout and
//! outside of one.

use std::{fs, path::Path, process::Command};

use super::{greenroom, stdout};

#[path = "../../build/commit.rs"]
mod commit;

const PACKAGE: &str = env!("CARGO_MANIFEST_DIR");
const SHA: &str = "0123456789abcdef0123456789abcdef01234567";

#[test]
fn c17_the_version_names_the_commit_and_the_features() {
    let here = Path::new(PACKAGE);
    let long = stdout(&greenroom(here, &["--version"]));
    let short = stdout(&greenroom(here, &["-V"]));
    let version = env!("CARGO_PKG_VERSION");
    // The tests are built with the program, so both were told the same commit.
    let commit = env!("GREENROOM_COMMIT");
    assert_eq!(short, format!("greenroom {version} ({commit})\n"));
    assert_eq!(long, format!("{short}features: {}\n", env!("GREENROOM_FEATURES")));
}

#[test]
fn c17_a_package_without_history_takes_the_commit_that_was_published_with_it() {
    let package = tempfile::tempdir().unwrap();
    let file = package.path().join(".cargo_vcs_info.json");
    let text =
        format!("{{\n  \"git\": {{\n    \"sha1\": \"{SHA}\"\n  }},\n  \"path_in_vcs\": \"x\"\n}}");
    fs::write(&file, text).unwrap();
    let found = commit::of(package.path(), None);
    assert_eq!(
        found,
        commit::Commit { name: "0123456789ab".to_owned(), watched: vec![file.clone()] }
    );

    fs::write(&file, "{}").unwrap();
    assert_eq!(commit::of(package.path(), None).name, "commit unknown");
}

#[test]
fn c17_a_package_that_nothing_is_known_of_is_built_and_says_so() {
    let package = tempfile::tempdir().unwrap();
    let unknown = commit::Commit { name: "commit unknown".to_owned(), watched: Vec::new() };
    assert_eq!(commit::of(package.path(), None), unknown);
    assert_eq!(commit::of(package.path(), Some(String::new())), unknown);
}

#[test]
fn c17_a_commit_that_is_given_goes_before_what_is_found() {
    assert_eq!(commit::of(Path::new(PACKAGE), Some(SHA.to_owned())).name, "0123456789ab");
}

/// Skipped where there is no git, as the build script itself would go on.
#[test]
fn c17_a_checkout_is_asked_for_its_commit_and_another_repository_is_not() {
    if Command::new("git").arg("--version").output().is_err() {
        return;
    }
    let repository = tempfile::tempdir().unwrap();
    let package = repository.path().join("crates/greenroom-cli");
    let vendored = repository.path().join("vendor/greenroom-cli");
    fs::create_dir_all(&package).unwrap();
    fs::create_dir_all(&vendored).unwrap();
    git(repository.path(), &["init", "-q"]);
    assert_eq!(commit::of(&package, None).name, "commit unknown", "nothing is committed yet");

    git(repository.path(), &["commit", "-q", "--allow-empty", "-m", "first"]);
    let first = commit::of(&package, None);
    assert_eq!(first.name, git(repository.path(), &["rev-parse", "--short=12", "HEAD"]));
    assert_eq!(commit::of(&vendored, None).name, "commit unknown");

    // What is missing would be looked for, and the package built, at every build.
    assert!(!first.watched.is_empty() && first.watched.iter().all(|path| path.exists()));
    let before = contents(&first);
    git(repository.path(), &["commit", "-q", "--allow-empty", "-m", "second"]);
    assert_ne!(commit::of(&package, None).name, first.name);
    assert_ne!(contents(&first), before, "a commit changes a file that is watched");
}

fn contents(commit: &commit::Commit) -> Vec<Vec<u8>> {
    commit.watched.iter().map(|path| fs::read(path).unwrap()).collect()
}

fn git(directory: &Path, args: &[&str]) -> String {
    let mut command = Command::new("git");
    command.current_dir(directory).args(args);
    for (name, value) in [("NAME", "a tester"), ("EMAIL", "tester@example.com")] {
        command
            .env(format!("GIT_AUTHOR_{name}"), value)
            .env(format!("GIT_COMMITTER_{name}"), value);
    }
    let output = command.env_remove("GIT_DIR").env_remove("GIT_WORK_TREE").output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
