//! Where a broker's input begins that has got nowhere yet.

use std::time::SystemTime;

use greenroom_bus::store::letters::Filter;
use greenroom_config::{At, Take, Typed};

/// Where to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartAt {
    /// With the oldest that is there.
    Earliest,
    /// Behind the newest one.
    Latest,
    /// With the first of this time or later.
    Time(SystemTime),
}

impl Take for StartAt {
    fn take(found: Option<Typed>, at: &mut At<'_>) -> Option<Self> {
        let written = String::take(found, at)?;
        match written.as_str() {
            "earliest" => return Some(Self::Earliest),
            "latest" => return Some(Self::Latest),
            _ => {}
        }
        let time = Filter::moment(&written);
        if time.is_none() {
            let text = format!("`{}` is no place to start at", at.written("").show(&written));
            at.error("", text, "`earliest`, `latest` or a time such as `2026-01-31T12:00:00Z`");
        }
        time.map(Self::Time)
    }
}
