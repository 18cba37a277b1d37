//! A program as a handler of a configuration.

use std::{env, ffi::OsString, fs, path::Path, time::Duration};

use greenroom_config::{At, Listing};

use super::{ExecConfig, ExecFactory};
use crate::handler::{HandlerKind, Makes, OpenHandler, handler};

/// Its line in the registry.
pub const HANDLER: Listing<dyn HandlerKind> = handler::<ExecConfig>(
    "exec",
    "Passes the event to long-lived worker processes, one for each worker of the pool.",
);

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
