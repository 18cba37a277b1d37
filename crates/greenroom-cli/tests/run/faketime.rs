//! A wall clock that a test moves, for a process of its own.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// What lets a process see another time. Debian's package has it, under a directory of the
/// machine's kind. Where there is none, it is said that the test did not run.
pub(crate) fn library() -> Option<PathBuf> {
    let library = |directory: fs::DirEntry| {
        let path = directory.path().join("faketime/libfaketimeMT.so.1");
        path.exists().then_some(path)
    };
    let found = fs::read_dir("/usr/lib").ok()?.flatten().find_map(library);
    let is_required = std::env::var_os("GREENROOM_REQUIRES_FAKETIME").is_some();
    assert!(found.is_some() || !is_required, "libfaketime is not installed");
    if found.is_none() {
        eprintln!(
            "NOT RUN: the wall clock cannot be moved without libfaketime; install Debian's package of this name"
        );
    }
    found
}

/// The process reads the time as the file `clock` says: `+3600` is an hour later.
pub(crate) fn set(command: &mut Command, library: &Path, clock: &Path) {
    command
        .env("LD_PRELOAD", library)
        .env("FAKETIME_TIMESTAMP_FILE", clock)
        .env("FAKETIME_NO_CACHE", "1")
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        .env("DONT_FAKE_MONOTONIC", "1");
}
