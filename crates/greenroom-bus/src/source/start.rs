//! Where a broker's input begins without earlier progress.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use greenroom_config::{At, Take, Typed};

use crate::event::rfc3339;

/// Where to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StartAt {
    /// With the oldest that is there.
    #[default]
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
        let time = moment(&written);
        if time.is_none() {
            let text = format!("`{}` is no place to start at", at.written("").show(&written));
            at.error("", text, "`earliest`, `latest` or a time such as `2026-01-31T12:00:00Z`");
        }
        time.map(Self::Time)
    }
}

fn moment(text: &str) -> Option<SystemTime> {
    let (seconds, nanos) = rfc3339::moment(text)?;
    UNIX_EPOCH.checked_add(Duration::new(u64::try_from(seconds).unwrap_or_default(), nanos))
}
