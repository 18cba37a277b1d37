//! The loop: a thread for each process, which writes a line and reads the answer.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
    thread,
};

use crate::{Failure, WORKERS};

/// Pipes all of them. Returns how many were answered.
pub fn run(command: &[String], lines: &[Vec<u8>]) -> Result<u64, Failure> {
    thread::scope(|scope| {
        let threads: Vec<_> = (0..WORKERS)
            .map(|worker| scope.spawn(move || through_one(command, lines, worker)))
            .collect();
        let mut answered = 0;
        for thread in threads {
            answered += thread.join().map_err(|_| "a thread panicked")??;
        }
        Ok(answered)
    })
}

fn through_one(command: &[String], lines: &[Vec<u8>], worker: usize) -> Result<u64, Failure> {
    let (program, args) = command.split_first().ok_or("no command")?;
    let mut child =
        Command::new(program).args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut stdin = child.stdin.take().ok_or("no input")?;
    let mut stdout = BufReader::new(child.stdout.take().ok_or("no output")?);
    let (mut answer, mut answered) = (Vec::new(), 0);
    for line in lines.iter().skip(worker).step_by(WORKERS) {
        stdin.write_all(line)?;
        answer.clear();
        stdout.read_until(b'\n', &mut answer)?;
        answered += u64::from(answer.ends_with(b"}\n"));
    }
    drop(stdin);
    child.wait()?;
    Ok(answered)
}
