//! Decides whether an actor that has ended is started again.

/// Whether a worker of a pool, or a child of a supervisor, is started again when it has ended.
///
/// | | after a normal end | after a panic, an error, a kill |
/// |---|---|---|
/// | `Permanent` | started again | started again |
/// | `Transient` (default) | at rest | started again |
/// | `Temporary` | at rest | at rest |
///
/// [`Restarts`](crate::Restarts) decides how often, and how soon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RestartPolicy {
    /// Always.
    Permanent,
    /// After an abnormal end only.
    #[default]
    Transient,
    /// Never.
    Temporary,
}

impl RestartPolicy {
    /// Whether it is started again. `normal`: it ended because its work was done or it was stopped.
    pub(crate) const fn starts_again(self, normal: bool) -> bool {
        match self {
            Self::Permanent => true,
            Self::Transient => !normal,
            Self::Temporary => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::RestartPolicy::{Permanent, Temporary, Transient};

    #[test]
    fn p17_the_policy_decides_by_how_it_ended() {
        for (policy, normal, abnormal) in
            [(Permanent, true, true), (Transient, false, true), (Temporary, false, false)]
        {
            assert_eq!(policy.starts_again(true), normal, "{policy:?} after a normal end");
            assert_eq!(policy.starts_again(false), abnormal, "{policy:?} after a panic");
        }
    }
}
