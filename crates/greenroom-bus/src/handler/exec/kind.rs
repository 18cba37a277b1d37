//! What to run, and how: a program as a handler of a configuration.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use greenroom_config::{
    At, Listing, Secret, command, count, duration, group, options, path, units::DAY_MS, variables,
};

use super::{ExecFactory, RestartLimit};
use crate::handler::{HandlerKind, Makes, OpenHandler, handler};

/// How long one attempt may take when nothing is said.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// Its line in the registry.
pub const HANDLER: Listing<dyn HandlerKind> = handler::<ExecConfig>(
    "exec",
    "Passes the event to long-lived worker processes, one for each worker of the pool.",
);

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

impl HandlerKind for ExecConfig {
    fn makes(&self) -> Makes {
        Makes::Answers
    }

    fn timeout(&self) -> Option<Duration> {
        Some(self.timeout)
    }

    fn in_flight(&self) -> Option<usize> {
        Some(self.in_flight)
    }

    fn reach(&self, at: &mut At<'_>) {
        if let Some(cwd) = self.cwd.as_ref().filter(|cwd| !cwd.is_dir()) {
            let shown = at.written("cwd").show(&cwd.display().to_string());
            return at.error("cwd", format!("`{shown}` is not a directory"), "create it");
        }
        let Some(program) = self.command.first() else { return };
        if !is_runnable(program, self) {
            let text =
                format!("cannot find the program `{}`", at.written("command.0").show(program));
            let help = if program.contains('/') {
                "it has to be an executable file; its path starts at the directory in which it runs"
            } else {
                "install it, or write its path"
            };
            at.error("command.0", text, help);
        }
    }

    fn open(&self) -> Result<OpenHandler, String> {
        ExecFactory::new(self.clone()).map(OpenHandler::fixed)
    }
}

fn is_runnable(program: &str, exec: &ExecConfig) -> bool {
    if program.contains('/') {
        let base = exec.cwd.clone().unwrap_or_default();
        return is_executable(&base.join(program));
    }
    let own =
        exec.env.iter().find(|(name, _)| name == "PATH").map(|(_, path)| OsString::from(path));
    let Some(search) = own.or_else(|| env::var_os("PATH")) else { return false };
    env::split_paths(&search).any(|directory| is_executable(&directory.join(program)))
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}
