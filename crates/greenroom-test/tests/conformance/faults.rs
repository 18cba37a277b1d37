//! Each fault is found by the check that is there for it, and what it says names the fault.

use greenroom_test::conformance::{Check, Verdict, check};

use crate::faulty::{Fault, Faulty};

/// The check fails, with these words.
fn fails(fault: Fault, by: Check, words: &str) {
    let row = check(&Faulty(fault), by);
    let Verdict::Failed(what) = &row.verdict else { panic!("not found: {row}") };
    assert!(what.contains(words), "{row}");
    assert!(row.to_string().contains("GREENROOM_SEED="), "{row}");
}

#[test]
fn v01_the_same_source_without_a_fault_passes() {
    for one in Check::ALL {
        let row = check(&Faulty(Fault::None), one);
        assert_eq!(row.verdict, Verdict::Passed, "{row}");
    }
}

#[test]
fn v01_a_source_that_loses_events_fails_no_loss() {
    fails(Fault::LosesEvents, Check::NoLoss, "were never given");
}

#[test]
fn v01_a_source_that_reorders_a_key_fails_order_per_key() {
    fails(Fault::SwapsEvents, Check::OrderPerKey, "was given after number");
}

#[test]
fn v01_a_source_that_forgets_what_was_committed_fails_bounded_repeats() {
    fails(Fault::ForgetsCommits, Check::BoundedRepeats, "were given again, where");
    fails(Fault::ForgetsCommits, Check::Restart, "were given again");
}

#[test]
fn v01_a_source_that_pretends_to_commit_fails_bounded_repeats() {
    fails(Fault::PretendsToCommit, Check::BoundedRepeats, "were given again, where");
}

#[test]
fn v01_a_source_that_ignores_a_pause_fails_pause_and_resume() {
    fails(Fault::IgnoresPause, Check::PauseAndResume, "was given while that was paused");
}

#[test]
fn v01_a_source_that_takes_pauses_for_edges_fails_pause_and_resume() {
    fails(Fault::NeverResumes, Check::PauseAndResume, "are not acknowledged");
}

#[test]
fn v01_a_source_that_commits_too_early_fails_no_loss() {
    fails(Fault::SettlesEarly, Check::NoLoss, "a commit covers position");
}

#[test]
fn v01_a_source_that_takes_what_was_refused_for_done_fails_shutdown_under_load() {
    fails(Fault::SettlesWhenDropped, Check::ShutdownUnderLoad, "a commit covers position");
}

#[test]
fn v01_a_source_that_gives_what_was_revoked_fails_revoke_during_load() {
    fails(
        Fault::GivesWhatWasRevoked,
        Check::RevokeDuringLoad,
        "was given after that was taken away",
    );
}

#[test]
fn v01_a_source_that_does_not_notice_a_revocation_fails_revoke_during_load() {
    fails(Fault::IgnoresRevocations, Check::RevokeDuringLoad, "not an answer");
}

#[test]
fn v01_a_source_that_swallows_what_is_no_event_fails_malformed_events() {
    fails(Fault::SwallowsMalformed, Check::MalformedEvents, "were never given");
}

#[test]
fn v01_a_source_that_waits_for_gaps_fails_gaps() {
    fails(Fault::WaitsForGaps, Check::Gaps, "is open still");
}

#[test]
fn v01_a_source_that_loses_events_with_a_dropped_pull_fails_no_loss() {
    fails(Fault::LosesWithDroppedPulls, Check::NoLoss, "were never given");
}
