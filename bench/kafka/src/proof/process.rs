//! A member in a process of its own, and what it says.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread::{self, JoinHandle},
};

use crate::Failure;

/// An event that was handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// The process that has handled it, by the order in which they were started.
    pub process: u32,
    pub number: u64,
    /// The assignment of its partition, within the process.
    pub ownership: u32,
    /// When it was taken in hand and when it was done, in nanoseconds of the machine's clock.
    pub from: u64,
    pub until: u64,
}

impl Line {
    /// `None` for what is no whole line: a kill may have cut it.
    fn read(process: u32, line: &str) -> Option<Self> {
        let mut words = line.strip_prefix("done ")?.strip_suffix(" .")?.split(' ');
        let mut next = || words.next()?.parse().ok();
        let (number, ownership, from, until) = (next()?, next()?, next()?, next()?);
        Some(Self { process, number, ownership: ownership as u32, from, until })
    }
}

pub struct Process {
    child: Child,
    reads: Option<JoinHandle<()>>,
}

impl Process {
    pub fn start(number: u32, task: [&str; 3], lines: mpsc::Sender<Line>) -> Result<Self, Failure> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("member")
            .args(task)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child.stdout.take().ok_or("no output of a member")?;
        let reads = thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                // Whoever listened is gone.
                let _ = Line::read(number, &line).map(|line| lines.send(line));
            }
        });
        Ok(Self { child, reads: Some(reads) })
    }

    /// `kill -9`. What it has said by then is read.
    pub fn kill(&mut self) -> Result<(), Failure> {
        self.child.kill()?;
        self.child.wait()?;
        self.read_to_the_end()
    }

    /// Has it drain, and waits for that.
    pub fn ended(mut self) -> Result<(), Failure> {
        drop(self.child.stdin.take());
        let status = self.child.wait()?;
        self.read_to_the_end()?;
        match status.success() {
            true => Ok(()),
            false => Err(format!("a member ended with {status}").into()),
        }
    }

    fn read_to_the_end(&mut self) -> Result<(), Failure> {
        let Some(reads) = self.reads.take() else { return Ok(()) };
        reads.join().map_err(|_| "a reader has panicked".into())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has ended, or is to end now.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_was_cut_says_nothing() {
        let line = Line { process: 3, number: 17, ownership: 2, from: 100, until: 250 };
        assert_eq!(Line::read(3, "done 17 2 100 250 ."), Some(line));
        assert_eq!(Line::read(3, "done 17 2 100 25"), None);
        assert_eq!(Line::read(3, "started"), None);
    }
}
