//! Advice: the finding, its figures, and the lines to change.

use std::fmt;

use super::{Figures, Finding};

/// Advice for a pool, with the figures that it rests on.
///
/// Written out, it ends in the lines to change:
///
/// ```
/// use std::time::Duration;
/// use greenroom::advisor::{Advisor, Figures, Inbox, Judge};
///
/// let figures = Figures {
///     queued: 230_400.0,
///     utilisation: 0.9,
///     busy: 1.0,
///     p99: Some(Duration::from_millis(850)),
///     ..Figures::of(Inbox::PerWorker(1000), 256)
/// };
/// let advice = Judge::new(Advisor::default())?.advise(&figures);
/// assert_eq!(
///     advice.to_string(),
///     "full 0.0 times a minute, 0.90 used (900 of 1000 per worker on average), p99 850.0 ms, \
///      256 workers 1.00 busy, over 300 s: messages wait in a long queue: shrink the inbox and add workers; \
///      inbox_size: 1000 -> 500; pool_size: 256 -> 384",
/// );
/// # Ok::<(), greenroom::SpawnError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Advice {
    /// The finding.
    pub finding: Finding,
    /// The figures that it is based on.
    pub figures: Figures,
    /// The change. `None` if no setting would help, or the setting is at its limit.
    pub change: Option<Proposal>,
}

impl Advice {
    /// True if it is worth reporting after the advice `before`, because it differs. The first
    /// advice is no news if the pool is fine.
    pub(crate) fn is_news_after(&self, before: Option<&Self>) -> bool {
        before.map_or(self.finding != Finding::Fine, |before| {
            (before.finding, before.change) != (self.finding, self.change)
        })
    }
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.figures, self.finding)?;
        match self.change {
            Some(change) => write!(f, "; {change}"),
            None if self.finding.grows() || self.finding == Finding::LongQueue => {
                write!(f, "; it is at its limit")
            }
            None => Ok(()),
        }
    }
}

/// The lines of a configuration to change; at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Proposal {
    /// The bound on messages that are accepted and not started.
    pub inbox: Option<Edit>,
    /// The number of workers.
    pub workers: Option<Edit>,
}

impl Proposal {
    /// The lines.
    pub fn lines(&self) -> impl Iterator<Item = Edit> {
        self.inbox.into_iter().chain(self.workers)
    }

    pub(super) fn if_any(self) -> Option<Self> {
        (self.inbox.is_some() || self.workers.is_some()).then_some(self)
    }
}

impl fmt::Display for Proposal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, line) in self.lines().enumerate() {
            f.write_str(if number > 0 { "; " } else { "" })?;
            line.fmt(f)?;
        }
        Ok(())
    }
}

/// A line of a configuration to change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Edit {
    /// Its key.
    pub key: &'static str,
    /// The present value.
    pub from: usize,
    /// The advised value, which differs.
    pub to: usize,
}

impl Edit {
    pub(super) fn up(key: &'static str, from: usize, to: usize) -> Option<Self> {
        (to > from).then_some(Self { key, from, to })
    }

    pub(super) fn down(key: &'static str, from: usize, to: usize) -> Option<Self> {
        (to < from).then_some(Self { key, from, to })
    }
}

impl fmt::Display for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} -> {}", self.key, self.from, self.to)
    }
}
