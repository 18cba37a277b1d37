//! What to run, and how.

use std::{path::PathBuf, time::Duration};

use greenroom_config::{
    At, Secret, command, count, duration, group, options, path, units::DAY_MS, variables,
};

use super::restarts::RestartLimit;

/// How long one attempt may take when nothing is said.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

options! {
    /// One event per line on standard input, one result per line on standard output, standard
    /// error to the log.
    pub struct ExecConfig = "exec", then ExecConfig::checked {
        /// The program and its arguments. It is not run by a shell.
        command: Secret<Vec<String>> = command().secret();
        /// How long an event may take. Then the process is killed and the event is tried again.
        timeout: Duration = duration(1..=DAY_MS).default("30s");
        /// How many events a process has at a time. That many workers of the pool share a process,
        /// so that the next event is in its pipe while it works on one. Events of one key are still
        /// handled one after the other.
        in_flight: usize = count(1..=1_024).default("1");
        /// How often a process that dies is restarted.
        restart: RestartLimit = group().default("{}");
        /// Environment variables for the process, added to those of greenroom.
        env: Secret<Vec<(String, String)>> = variables().secret().default("{}");
        /// The working directory of the process; by default, the directory of the configuration
        /// file.
        cwd: Option<PathBuf> = path().optional();
    }
}

impl ExecConfig {
    /// This program with its arguments, and the defaults; it runs where greenroom does.
    pub fn new(command: Vec<String>) -> Self {
        Self {
            command: Secret(command),
            timeout: DEFAULT_TIMEOUT,
            in_flight: 1,
            restart: RestartLimit::default(),
            env: Secret(Vec::new()),
            cwd: None,
        }
    }

    /// Processes run beside the configuration file, unless something else is said.
    fn checked(mut self, at: &mut At<'_>) -> Option<Self> {
        for (name, value) in self.env.iter() {
            if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
                let text = format!("`{}` cannot be an environment variable", name.escape_debug());
                at.error("env", text, "no `=` in the name, and no NUL anywhere");
            }
        }
        let beside = Some(at.directory()).filter(|directory| !directory.as_os_str().is_empty());
        self.cwd = self.cwd.or_else(|| beside.map(PathBuf::from));
        Some(self)
    }
}
