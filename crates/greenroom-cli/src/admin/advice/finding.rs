//! A finding: what is so, and what to do about it.

use super::lines::OptionLines;

/// How much it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum Severity {
    /// Events are not handled until an operator does something.
    Critical,
    /// Something is wrong, and may become worse.
    Warning,
    /// All works, and could work better.
    Hint,
}

impl Severity {
    pub(in super::super) const ALL: [Self; 3] = [Self::Critical, Self::Warning, Self::Hint];

    pub(in super::super) fn word(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::Warning => "warning",
            Self::Hint => "hint",
        }
    }
}

/// What was found, and what to do about it.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct Finding {
    pub(in super::super) severity: Severity,
    /// What it is about, as a path of the configuration: `pools.erp`.
    pub(in super::super) about: String,
    /// What is so, as a sentence without its full stop.
    pub(in super::super) what: String,
    pub(in super::super) figures: String,
    /// Why it matters.
    pub(in super::super) why: String,
    /// What to change.
    pub(in super::super) change: String,
    /// The lines of the configuration that do it.
    pub(in super::super) lines: Option<OptionLines>,
    /// What to ask the admin listener for: `POST /api/pools/erp/resume`.
    pub(in super::super) ask: Option<String>,
    /// The daemon has done it (`autotune: act`).
    pub(in super::super) done: bool,
}
