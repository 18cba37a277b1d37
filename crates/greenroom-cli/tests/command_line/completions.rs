//! `greenroom completions SHELL` (C17).

use std::{path::Path, process::Command};

use super::{COMMANDS, code, greenroom, stderr, stdout};

const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];
fn script(shell: &str) -> String {
    let output = greenroom(Path::new("."), &["completions", shell]);
    assert_eq!(code(&output), 0, "{shell}: {}", stderr(&output));
    assert_eq!(stderr(&output), "");
    stdout(&output)
}

#[test]
fn c17_completions_know_every_command_and_no_hidden_option() {
    for shell in SHELLS {
        let script = script(shell);
        for command in COMMANDS {
            assert!(script.contains(command), "{shell}: {command}");
        }
        assert!(script.contains("dry-run") && script.contains("log-level"), "{shell}");
        assert!(!script.contains("pool-alone"), "{shell}");
    }
}

#[test]
fn c17_completions_of_another_shell_are_refused_with_those_that_there_are() {
    let output = greenroom(Path::new("."), &["completions", "tcsh"]);
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("bash, zsh, fish"), "{}", stderr(&output));
}

/// Each shell reads its own script; those that are not installed are left out.
#[test]
fn c17_each_shell_parses_its_completions() {
    let directory = tempfile::tempdir().unwrap();
    for shell in SHELLS {
        let file = directory.path().join(shell);
        std::fs::write(&file, script(shell)).unwrap();
        let Ok(output) = Command::new(shell).arg("-n").arg(&file).output() else { continue };
        assert_eq!((code(&output), stderr(&output)), (0, String::new()), "{shell}");
    }
}

/// What bash offers for some words, as its completion does when Tab is pressed. Skipped where there
/// is no bash.
#[test]
fn c17_bash_completes_commands_options_and_values() {
    if Command::new("bash").arg("--version").output().is_err() {
        return;
    }
    let offered = |words: &[&str]| {
        let last = words.len() - 1;
        let ask = format!(
            "{}\nCOMP_WORDS=(\"$@\") COMP_CWORD={last}\n_greenroom greenroom {:?} {:?}\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"",
            script("bash"),
            words[last],
            words[last - 1],
        );
        let output =
            Command::new("bash").args(["--norc", "-c", &ask, "bash"]).args(words).output().unwrap();
        assert_eq!(stderr(&output), "");
        stdout(&output).lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(offered(&["greenroom", "ch"]), ["check"]);
    assert_eq!(offered(&["greenroom", "run", "--dr"]), ["--dry-run"]);
    assert_eq!(offered(&["greenroom", "--ver"]), ["--version"]);
    assert_eq!(offered(&["greenroom", "run", "--ver"]), [""], "it is no option of `run`");
    assert_eq!(offered(&["greenroom", "run", "--report", ""]), ["text", "json"]);
    assert_eq!(offered(&["greenroom", "completions", "z"]), ["zsh"]);
}
