//! `greenroom man` (C17).

use std::{
    fs,
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

use super::{COMMANDS, code, greenroom, stderr, stdout};

fn page(args: &[&str]) -> String {
    let output = greenroom(Path::new("."), args);
    assert_eq!((code(&output), stderr(&output)), (0, String::new()), "{args:?}");
    stdout(&output)
}

/// Without the escapes that keep hyphens from becoming dashes.
fn plain(page: &str) -> String {
    page.replace("\\-", "-")
}

#[test]
fn c17_the_manual_page_has_every_command_and_each_has_its_own() {
    let whole = plain(&page(&["man"]));
    assert!(whole.contains(".TH greenroom 1 "), "{whole}");
    for command in COMMANDS {
        assert!(whole.contains(&format!("greenroom-{command}(1)")), "{command}");
        let own = plain(&page(&["man", command]));
        assert!(own.contains(&format!(".TH greenroom-{command} 1 ")), "{own}");
    }
    for heading in ["EXIT STATUS", "ENVIRONMENT"] {
        assert!(
            whole.contains(&format!(".SH \"{heading}\""))
                || whole.contains(&format!(".SH {heading}"))
        );
    }
}

#[test]
fn c17_the_page_of_a_command_has_its_options_and_not_its_hidden_ones() {
    let bench = plain(&page(&["man", "bench"]));
    assert!(bench.contains("--presets") && bench.contains("--log-level"), "{bench}");
    assert!(!bench.contains("pool-alone"), "{bench}");
}

#[test]
fn c17_all_pages_are_written_into_a_directory() {
    let directory = tempfile::tempdir().unwrap();
    let output = greenroom(directory.path(), &["man", "--dir", "man/man1"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_eq!(stdout(&output).lines().count(), 1 + COMMANDS.len());
    let read =
        |name: &str| fs::read_to_string(directory.path().join("man/man1").join(name)).unwrap();
    assert_eq!(read("greenroom.1"), page(&["man"]));
    assert_eq!(read("greenroom-explain-status.1"), page(&["man", "explain-status"]));
}

#[test]
fn c17_a_page_of_no_command_is_refused_with_those_that_there_are() {
    let output = greenroom(Path::new("."), &["man", "frobnicate"]);
    assert_eq!(code(&output), 2);
    let text = stderr(&output);
    assert!(text.contains("`frobnicate`") && text.contains("run, check, why"), "{text}");
}

/// groff finds nothing to complain about. Skipped where there is no groff.
#[test]
fn c17_groff_reads_the_pages_without_a_warning() {
    for args in [&["man"][..], &["man", "run"], &["man", "bench"]] {
        let groff = Command::new("groff")
            .args(["-man", "-Tutf8", "-ww", "-z"])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let Ok(mut groff) = groff else { return };
        groff.stdin.take().unwrap().write_all(page(args).as_bytes()).unwrap();
        let output = groff.wait_with_output().unwrap();
        assert_eq!((code(&output), stderr(&output)), (0, String::new()), "{args:?}");
    }
}
