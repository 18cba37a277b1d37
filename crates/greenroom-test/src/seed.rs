//! Where chance begins, and lines that tests print.

use std::{
    io::Write,
    str::FromStr,
    time::{SystemTime, UNIX_EPOCH},
};

/// The seed that `GREENROOM_SEED` names; otherwise one from the clock. So a test tries something
/// else each time, and a failure can be repeated: its message names the seed.
pub fn seed() -> u64 {
    from_environment("GREENROOM_SEED").unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        now.map_or(1, |now| now.as_nanos() as u64)
    })
}

pub(crate) fn from_environment<T: FromStr>(name: &str) -> Option<T> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

/// Past the capture of test output: otherwise it would be shown when all is over.
pub(crate) fn tell(line: &str) {
    // A closed standard error is no reason to fail.
    let _ = writeln!(std::io::stderr(), "{line}");
}
