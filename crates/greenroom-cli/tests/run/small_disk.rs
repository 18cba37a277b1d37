//! A disk that a test can fill, in a mount namespace of its own.

use std::{
    fs::File,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use crate::run::{daemon::Daemon, stage::Stage};

/// A file system of some MiB. It is gone with this.
pub(crate) struct SmallDisk {
    holder: Child,
    path: PathBuf,
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

impl SmallDisk {
    /// One that is mounted at this directory, for those who go by [`path`](Self::path). Where user
    /// namespaces are not allowed there is none, and it is said that the test did not run.
    pub(crate) fn mount(directory: &Path, mib: u32) -> Option<Self> {
        let mount = format!("mount -t tmpfs -o size={mib}m tmpfs \"$0\" && echo mounted && cat");
        let mut holder = Command::new("unshare")
            .args(["--map-root-user", "--mount", "sh", "-c", &mount])
            .arg(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .ok()?;
        let mut said = String::new();
        BufReader::new(holder.stdout.take()?).read_line(&mut said).ok()?;
        let path = format!("/proc/{}/root{}", holder.id(), directory.display()).into();
        let disk = Self { holder, path };
        if said != "mounted\n" {
            eprintln!("NOT RUN: a disk cannot be filled without user namespaces (`unshare -rm`)");
            return None;
        }
        Some(disk)
    }

    /// The directory as this process sees it.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The binary with these arguments, in the directory of the stage, where it sees the disk.
    pub(crate) fn command(&self, stage: &Stage, arguments: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.holder.id().to_string()]);
        command.args(["--user", "--mount", "--preserve-credentials"]);
        command.args(["sh", "-c", "cd \"$0\" && exec \"$@\""]).arg(stage.path(""));
        command.arg(env!("CARGO_BIN_EXE_greenroom")).args(arguments.split_whitespace());
        command.env_remove("RUST_LOG").env_remove("RUST_BACKTRACE");
        command
    }

    /// A greenroom that runs there.
    pub(crate) fn daemon<'s>(&self, stage: &'s Stage) -> Daemon<'s> {
        Daemon::start_with(stage, |command| {
            *command = self.command(stage, "run greenroom.yaml --report json");
            command.stdin(Stdio::null()).stdout(Stdio::piped());
            command.stderr(File::create(stage.path("log")).unwrap());
        })
    }
}
