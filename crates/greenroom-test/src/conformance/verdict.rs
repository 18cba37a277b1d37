//! How checks ended.

use std::fmt;

use super::check::Check;
use crate::seed::tell;

/// How one check ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The connector does what it should.
    Passed,
    /// It cannot do what the check is about, for this reason.
    NotApplicable(String),
    /// What it connects to [is not here](super::Connector::missing).
    NotRun(String),
    /// It does not do what it should: what happened.
    Failed(String),
}

/// One check of one connector.
#[derive(Debug, Clone)]
pub struct Row {
    /// The connector.
    pub connector: String,
    /// The check.
    pub check: Check,
    /// Where chance began.
    pub seed: u64,
    /// How it ended.
    pub verdict: Verdict,
}

impl Row {
    /// Tells on standard error that it is not applicable, or was not run, where that is so.
    ///
    /// # Panics
    /// It failed.
    pub fn told(&self) {
        match &self.verdict {
            Verdict::Passed => {}
            Verdict::NotApplicable(_) | Verdict::NotRun(_) => tell(&self.to_string()),
            Verdict::Failed(_) => panic!("{self}"),
        }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { connector, check, seed, verdict } = self;
        match verdict {
            Verdict::Passed => write!(f, "{connector}: {check}: passed"),
            Verdict::NotApplicable(why) => write!(f, "{connector}: {check}: not applicable: {why}"),
            Verdict::NotRun(why) => write!(f, "{connector}: {check}: not run: {why}"),
            Verdict::Failed(what) => {
                write!(f, "{connector}: {check}: failed (GREENROOM_SEED={seed}): {what}")
            }
        }
    }
}

/// Every check of one connector.
#[derive(Debug, Clone)]
pub struct Report(pub Vec<Row>);

impl Report {
    /// The checks that failed.
    pub fn failed(&self) -> Vec<Check> {
        let failed = self.0.iter().filter(|row| matches!(row.verdict, Verdict::Failed(_)));
        failed.map(|row| row.check).collect()
    }

    /// The checks that are not applicable.
    pub fn not_applicable(&self) -> Vec<Check> {
        let not = self.0.iter().filter(|row| matches!(row.verdict, Verdict::NotApplicable(_)));
        not.map(|row| row.check).collect()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|row| writeln!(f, "{row}"))
    }
}
