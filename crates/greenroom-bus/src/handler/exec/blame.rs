//! Whether the program or its event in hand is to blame for a process that ends without an answer.

use super::{process::How, standing::ProgramStanding};

/// An event that crashed this many processes in a row is given up as the cause, and a program is
/// considered broken after this many failed starts in a row.
const IN_A_ROW: u32 = 2;

/// The evidence from the processes that ended during one attempt.
#[derive(Debug, Default)]
pub(super) struct AttemptBlame {
    /// Processes that died with the event in hand, of a program that works.
    crashes: u32,
    /// Processes that died of themselves, as far as one can know, before they had answered
    /// anything.
    failed_starts: u32,
}

/// The consequence of the end of a process.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Follows {
    /// The event goes to a fresh process.
    Again {
        /// Whether the process died while it worked.
        crashed: bool,
    },
    /// The event is given up.
    Event,
    /// The program is broken: no event is blamed.
    Program,
}

impl Follows {
    /// Whether the restart is taken from the budget.
    pub(super) fn is_a_crash(&self) -> bool {
        matches!(self, Self::Again { crashed: true } | Self::Event)
    }
}

impl AttemptBlame {
    /// Judges the end of a process: whether it may have read anything of the event, and whether it
    /// had answered before.
    pub(super) fn judge(
        &mut self,
        how: &How,
        had_event: bool,
        had_answered: bool,
        standing: &ProgramStanding,
    ) -> Follows {
        let again = |crashed| Follows::Again { crashed };
        match how {
            How::Recycled => again(false),
            // It died between two events, just before it would have been noticed.
            How::Crashed(_) if had_answered && !had_event => again(true),
            How::Crashed(_) if had_answered || had_event && standing.is_good() => {
                self.crashes += 1;
                self.verdict(true, standing)
            }
            How::Crashed(_) => {
                self.failed_starts += 1;
                self.verdict(false, standing)
            }
        }
    }

    fn verdict(&self, crashed: bool, standing: &ProgramStanding) -> Follows {
        match self.crashes + self.failed_starts {
            ..IN_A_ROW => Follows::Again { crashed },
            _ if self.failed_starts == 0 && standing.blame() => Follows::Event,
            _ => Follows::Program,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crash(
        blame: &mut AttemptBlame,
        had_event: bool,
        had_answered: bool,
        standing: &ProgramStanding,
    ) -> Follows {
        blame.judge(&How::Crashed("3".into()), had_event, had_answered, standing)
    }

    fn good() -> ProgramStanding {
        let standing = ProgramStanding::default();
        standing.answered();
        standing
    }

    #[test]
    fn p18_two_crashes_of_a_program_that_works_are_the_event_s() {
        let (mut blame, standing) = (AttemptBlame::default(), good());
        assert_eq!(crash(&mut blame, true, true, &standing), Follows::Again { crashed: true });
        assert_eq!(crash(&mut blame, true, false, &standing), Follows::Event);
    }

    #[test]
    fn p18_processes_that_never_answered_are_the_program_s() {
        let (mut blame, standing) = (AttemptBlame::default(), ProgramStanding::default());
        assert_eq!(crash(&mut blame, true, false, &standing), Follows::Again { crashed: false });
        assert_eq!(crash(&mut blame, true, false, &standing), Follows::Program);
    }

    #[test]
    fn p18_processes_that_did_not_read_the_event_are_the_program_s_whatever_it_answered_before() {
        let (mut blame, standing) = (AttemptBlame::default(), good());
        assert_eq!(crash(&mut blame, false, true, &standing), Follows::Again { crashed: true });
        assert_eq!(crash(&mut blame, false, false, &standing), Follows::Again { crashed: false });
        assert_eq!(crash(&mut blame, false, false, &standing), Follows::Program);
    }

    #[test]
    fn p18_one_crash_and_one_failed_start_blame_no_event() {
        let (mut blame, standing) = (AttemptBlame::default(), good());
        crash(&mut blame, true, true, &standing);
        assert_eq!(crash(&mut blame, false, false, &standing), Follows::Program);
    }
}
