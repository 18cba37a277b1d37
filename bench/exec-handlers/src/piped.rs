//! The loop: a thread for each process, which writes a line, and reads an answer once
//! enough lines are in flight.

use std::{
    io::{BufRead, BufReader, Write},
    process::{ChildStdout, Command, Stdio},
    thread,
};

use crate::{Failure, PROCESSES};

/// Pipes all of them. Returns how many were answered.
pub fn run(command: &[String], lines: &[Vec<u8>], in_flight: usize) -> Result<u64, Failure> {
    thread::scope(|scope| {
        let threads: Vec<_> = (0..PROCESSES)
            .map(|worker| scope.spawn(move || through_one(command, lines, worker, in_flight)))
            .collect();
        let mut answered = 0;
        for thread in threads {
            answered += thread.join().map_err(|_| "a thread panicked")??;
        }
        Ok(answered)
    })
}

fn through_one(
    command: &[String],
    lines: &[Vec<u8>],
    worker: usize,
    in_flight: usize,
) -> Result<u64, Failure> {
    let (program, args) = command.split_first().ok_or("no command")?;
    let mut child =
        Command::new(program).args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut stdin = child.stdin.take().ok_or("no input")?;
    let mut answers = Answers {
        stdout: BufReader::new(child.stdout.take().ok_or("no output")?),
        line: Vec::new(),
    };
    let (mut written, mut answered) = (0, 0);
    for line in lines.iter().skip(worker).step_by(PROCESSES) {
        stdin.write_all(line)?;
        written += 1;
        if written - answered == in_flight as u64 {
            answered += answers.next()?;
        }
    }
    drop(stdin);
    while answered < written {
        answered += answers.next()?;
    }
    child.wait()?;
    Ok(answered)
}

struct Answers {
    stdout: BufReader<ChildStdout>,
    line: Vec<u8>,
}

impl Answers {
    /// Reads one, and counts it.
    fn next(&mut self) -> Result<u64, Failure> {
        self.line.clear();
        self.stdout.read_until(b'\n', &mut self.line)?;
        match self.line.ends_with(b"}\n") {
            true => Ok(1),
            false => Err("a process has ended too early".into()),
        }
    }
}
