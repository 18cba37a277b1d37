//! The command to run, and its limits.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use super::restarts::RestartLimit;

/// How long one attempt may take when the configuration does not say.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// The command to run, and its limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecConfig {
    /// The program and its arguments, as given to the system: no shell is involved.
    pub command: Vec<String>,
    /// How long one attempt may take; a fresh process starts within it. Default: 30 s.
    pub timeout: Duration,
    /// How many events one process may have in hand at a time, from as many workers of the pool,
    /// which share it. With more than one, the next event is in its pipe while it works on one; it
    /// may answer them in any order. Default: 1, a process for each worker.
    pub in_flight: usize,
    /// How many restarts are taken as normal, for each process.
    pub restart: RestartLimit,
    /// Environment variables added to greenroom's own, which the process inherits.
    pub env: BTreeMap<String, String>,
    /// Where the process runs. Default: greenroom's working directory.
    pub cwd: Option<PathBuf>,
}

impl Default for ExecConfig {
    fn default() -> Self {
        Self {
            command: Vec::new(),
            timeout: DEFAULT_TIMEOUT,
            in_flight: 1,
            restart: RestartLimit::default(),
            env: BTreeMap::new(),
            cwd: None,
        }
    }
}
