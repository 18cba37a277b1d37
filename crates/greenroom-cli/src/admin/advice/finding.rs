//! A finding: a problem and its correction.

use std::time::Duration;

use super::{lines::OptionLines, words::time};

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum Severity {
    /// Events are not handled until an operator acts.
    Critical,
    /// Something is wrong, and may become worse.
    Warning,
    /// Everything works, but could work better.
    Hint,
}

impl Severity {
    pub(in super::super) fn word(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::Warning => "warning",
            Self::Hint => "hint",
        }
    }
}

/// A problem and its correction.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct Finding {
    /// The kind of the finding, for alerts: `output_paused`. Stable.
    pub(in super::super) kind: &'static str,
    pub(in super::super) severity: Severity,
    /// Its subject, as a path of the configuration, `pools.erp`; or `keys`, or `run`.
    pub(in super::super) about: String,
    /// The problem, as a sentence without its full stop.
    pub(in super::super) what: String,
    pub(in super::super) figures: String,
    /// Why it matters.
    pub(in super::super) why: String,
    /// The change to make.
    pub(in super::super) change: String,
    /// The lines of the configuration that make the change.
    pub(in super::super) lines: Option<OptionLines>,
    /// The request for the admin listener: `POST /api/pools/erp/resume`.
    pub(in super::super) ask: Option<String>,
    /// How long it has lasted.
    pub(in super::super) lasted: Option<Duration>,
    /// Its cause: `about` of another finding.
    pub(in super::super) follows: Option<String>,
}

impl Finding {
    pub(super) fn critical(
        kind: &'static str,
        about: impl Into<String>,
        what: impl Into<String>,
    ) -> Self {
        Self::new(kind, Severity::Critical, about, what)
    }

    pub(super) fn warning(
        kind: &'static str,
        about: impl Into<String>,
        what: impl Into<String>,
    ) -> Self {
        Self::new(kind, Severity::Warning, about, what)
    }

    pub(super) fn new(
        kind: &'static str,
        severity: Severity,
        about: impl Into<String>,
        what: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            severity,
            about: about.into(),
            what: what.into(),
            figures: String::new(),
            why: String::new(),
            change: String::new(),
            lines: None,
            ask: None,
            lasted: None,
            follows: None,
        }
    }

    pub(super) fn figures(self, figures: impl Into<String>) -> Self {
        Self { figures: figures.into(), ..self }
    }

    pub(super) fn why(self, why: impl Into<String>) -> Self {
        Self { why: why.into(), ..self }
    }

    pub(super) fn change(self, change: impl Into<String>) -> Self {
        Self { change: change.into(), ..self }
    }

    pub(super) fn lines(self, lines: Option<OptionLines>) -> Self {
        Self { lines, ..self }
    }

    pub(super) fn ask(self, ask: impl Into<String>) -> Self {
        Self { ask: Some(ask.into()), ..self }
    }

    pub(super) fn lasted(self, lasted: Duration) -> Self {
        Self { lasted: Some(lasted), ..self }
    }

    /// The finding in one line.
    pub(in super::super) fn sentence(&self) -> String {
        match (&*self.figures, self.lasted) {
            ("", None) => self.what.clone(),
            ("", Some(lasted)) => format!("{}, for {}", self.what, time(lasted)),
            (figures, _) => format!("{}: {figures}", self.what),
        }
    }
}
