//! Confluent's parallel-consumer, in a program of its own.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::Failure;

pub struct Peer {
    jar: PathBuf,
    /// Of the virtual machine, in a line.
    pub version: String,
}

impl Peer {
    /// Builds it. `None` without a JDK or Maven: what is missing is told.
    ///
    /// # Errors
    /// The build failed.
    pub fn built() -> Result<Option<Self>, Failure> {
        for tool in ["javac", "mvn"] {
            let mut asked = Command::new(tool);
            asked.arg("-version").stdout(Stdio::null()).stderr(Stdio::null());
            if !asked.status().is_ok_and(|status| status.success()) {
                eprintln!(
                    "without the parallel-consumer, for want of {tool} (a JDK from 17 on, and Maven)"
                );
                return Ok(None);
            }
        }
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("parallel-consumer");
        let mut maven = Command::new("mvn");
        let built = maven.args(["-q", "-B", "package"]).current_dir(&folder).output()?;
        if !built.status.success() {
            let why = String::from_utf8_lossy(&built.stdout);
            return Err(format!("mvn package in {}: {why}", folder.display()).into());
        }
        let java = Command::new("java").arg("-version").output()?;
        let version = String::from_utf8_lossy(&java.stderr);
        let version = version.lines().next().unwrap_or("a JDK").to_owned();
        Ok(Some(Self { jar: folder.join("target/beside.jar"), version }))
    }

    pub fn command(&self) -> Command {
        let mut command = Command::new("java");
        command.arg("-jar").arg(&self.jar);
        command
    }
}
