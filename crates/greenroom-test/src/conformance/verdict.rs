//! The results of checks.

use std::fmt;

use super::check::Check;
use crate::seed::tell;

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The connector behaves correctly.
    Passed,
    /// It lacks an ability that the check needs, for this reason.
    NotApplicable(String),
    /// Its server [is missing](super::Connector::missing).
    NotRun(String),
    /// It misbehaves, in this way.
    Failed(String),
}

/// One check of one connector.
#[derive(Debug, Clone)]
pub struct Row {
    /// The connector.
    pub connector: String,
    /// The check.
    pub check: Check,
    /// The seed.
    pub seed: u64,
    /// Its result.
    pub verdict: Verdict,
}

impl Row {
    /// Reports on standard error if it is not applicable, or was not run.
    ///
    /// # Panics
    /// If it failed.
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
