//! Colours only on a terminal, and NO_COLOR (C17). The terminal is a pseudo-terminal of the test.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
    process::{Command, Stdio},
};

use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};

/// What the program writes to a terminal, with these variables on top of `TERM=xterm`.
fn on_a_terminal(directory: &Path, args: &[&str], variables: &[(&str, &str)]) -> String {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
    let here = openpt(flags).unwrap();
    grantpt(&here).unwrap();
    unlockpt(&here).unwrap();
    let there = ioctl_tiocgptpeer(&here, flags).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_greenroom"));
    command
        .args(args)
        .current_dir(directory)
        .env_remove("RUST_LOG")
        .env_remove("NO_COLOR")
        .env("TERM", "xterm")
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .stdout(there.try_clone().unwrap())
        .stderr(there);
    let mut child = command.spawn().unwrap();
    // The last descriptors of the other end, except those of the program.
    drop(command);
    let text = read_to_the_end(File::from(here));
    child.wait().unwrap();
    text
}

/// Linux says that a terminal has ended with an error.
fn read_to_the_end(mut terminal: File) -> String {
    let (mut all, mut part) = (Vec::new(), [0; 4096]);
    loop {
        match terminal.read(&mut part) {
            Ok(0) | Err(_) => return String::from_utf8(all).unwrap(),
            Ok(read) => all.extend_from_slice(&part[..read]),
        }
    }
}

/// Whether a text sets a colour or a weight: `ESC [ numbers m`.
fn is_coloured(text: &str) -> bool {
    text.split("\x1b[").skip(1).any(|code| {
        code.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').starts_with('m')
    })
}

/// With a mistake, or without one and with log lines.
fn configurations() -> io::Result<tempfile::TempDir> {
    let good = "inputs: { i: { generator: { count: 3 } } }\nhandlers: { h: { on: '**', log: } }\n";
    let directory = tempfile::tempdir()?;
    std::fs::write(directory.path().join("good.yaml"), good)?;
    std::fs::write(directory.path().join("bad.yaml"), format!("{good}shutdwon: {{}}\n"))?;
    Ok(directory)
}

const COMMANDS: [[&str; 2]; 2] = [["check", "bad.yaml"], ["run", "good.yaml"]];

#[test]
fn c17_a_terminal_gets_colours() {
    let directory = configurations().unwrap();
    for args in COMMANDS {
        for variables in [&[][..], &[("NO_COLOR", "")]] {
            let text = on_a_terminal(directory.path(), &args, variables);
            assert!(is_coloured(&text), "{args:?} {variables:?}: {text:?}");
        }
    }
}

#[test]
fn c17_no_color_and_a_dumb_terminal_get_none() {
    let directory = configurations().unwrap();
    for args in COMMANDS.iter().chain(&[["run", "--help"], ["run", "--frobnicate"]]) {
        for variables in [("NO_COLOR", "1"), ("TERM", "dumb")] {
            let text = on_a_terminal(directory.path(), args, &[variables]);
            assert!(!text.is_empty() && !is_coloured(&text), "{args:?} {variables:?}: {text:?}");
        }
    }
}

#[test]
fn c17_a_pipe_gets_no_colours_whatever_the_terminal_is() {
    let directory = configurations().unwrap();
    for args in COMMANDS {
        let mut command = Command::new(env!("CARGO_BIN_EXE_greenroom"));
        command
            .args(args)
            .current_dir(directory.path())
            .env_remove("NO_COLOR")
            .env("TERM", "xterm");
        let output = command.output().unwrap();
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(!text.is_empty() && !text.contains('\x1b'), "{args:?}: {text:?}");
    }
}

/// A bar cannot be drawn there, and a run that says nothing would look dead.
#[test]
fn c17_a_dumb_terminal_gets_lines_of_progress() {
    let directory = tempfile::tempdir().unwrap();
    let text = "inputs: { i: { generator: { count: 600, rate: 100/s } } }\nhandlers: { h: { on: '**', pass: } }\n";
    std::fs::write(directory.path().join("c.yaml"), text).unwrap();
    let text = on_a_terminal(directory.path(), &["run", "c.yaml"], &[("TERM", "dumb")]);
    assert!(text.contains(" in flight"), "{text:?}");
}
