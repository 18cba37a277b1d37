//! Figures, and the advice that follows from them.

use super::*;

const MILLI: Duration = Duration::from_millis(1);
const PERIOD: Duration = Duration::from_secs(300);

/// An inbox of 1,000 per worker, 256 workers, and nothing to complain of.
fn calm() -> Figures {
    Figures {
        queued: 128_000.0,
        utilisation: 0.5,
        busy: 1.0,
        p99: Some(40 * MILLI),
        started: 1_000_000,
        ..Figures::of(Inbox::PerWorker(1000), 256)
    }
}

/// Like `calm`, but this full on average.
fn used(utilisation: f64, each: usize) -> Figures {
    let inbox = Inbox::PerWorker(each);
    Figures { inbox, utilisation, queued: utilisation * inbox.capacity(256) as f64, ..calm() }
}

fn judge(settings: Advisor) -> Judge {
    Judge::new(settings).unwrap_or_else(|error| panic!("{error}"))
}

/// The rule and the lines.
fn says(settings: Advisor, figures: Figures) -> (Finding, String) {
    let advice = judge(settings).advise(&figures);
    (advice.finding, advice.change.map(|change| change.to_string()).unwrap_or_default())
}

fn advised(figures: Figures) -> (Finding, String) {
    says(Advisor::default(), figures)
}

/// This many times full in five minutes.
fn full(times: u64, figures: Figures) -> Figures {
    Figures { inbox_full: times, ..figures }
}

fn late(figures: Figures) -> Figures {
    Figures { p99: Some(101 * MILLI), ..figures }
}

#[test]
fn h10_every_row_of_the_rules() {
    let rows = [
        (full(51, used(0.81, 1000)), Finding::Crowded, "inbox_size: 1000 -> 2000"),
        (full(51, used(0.81, 100)), Finding::Crowded, "inbox_size: 100 -> 200"),
        (full(51, used(0.8, 499)), Finding::Shallow, "inbox_size: 499 -> 998"),
        (full(51, used(0.1, 100)), Finding::Shallow, "inbox_size: 100 -> 200"),
        (full(51, used(0.8, 500)), Finding::SlowToDrain, ""),
        (full(51, used(0.1, 1000)), Finding::SlowToDrain, ""),
        (
            late(used(0.81, 1000)),
            Finding::LongQueue,
            "inbox_size: 1000 -> 500; pool_size: 256 -> 384",
        ),
        (
            late(used(0.51, 10_000)),
            Finding::LongQueue,
            "inbox_size: 10000 -> 5000; pool_size: 256 -> 384",
        ),
        (late(used(0.5, 10_000)), Finding::SlowHandler, ""),
        (late(used(0.8, 1000)), Finding::SlowHandler, ""),
        (late(used(0.0, 1000)), Finding::SlowHandler, ""),
        (used(0.19, 1000), Finding::Roomy, "inbox_size: 1000 -> 500"),
        (used(0.2, 1000), Finding::Fine, ""),
        (used(0.99, 1000), Finding::Fine, ""),
    ];
    for (figures, rule, lines) in rows {
        assert_eq!(advised(figures), (rule, lines.to_owned()), "{figures}");
    }
}

#[test]
fn h10_the_first_rule_that_applies_counts() {
    assert_eq!(advised(late(full(51, used(0.1, 1000)))).0, Finding::SlowToDrain);
    assert_eq!(advised(late(full(50, used(0.1, 1000)))).0, Finding::SlowHandler);
    assert_eq!(advised(full(50, used(0.1, 1000))).0.number(), 3, "ten a minute are not above ten");
    let just_in_time = Figures { p99: Some(100 * MILLI), ..used(0.1, 1000) };
    assert_eq!(advised(just_in_time).0, Finding::Roomy);
    let rules = [
        Finding::Crowded,
        Finding::SlowToDrain,
        Finding::LongQueue,
        Finding::SlowHandler,
        Finding::Fine,
    ];
    assert_eq!(rules.map(Finding::number), [1, 1, 2, 2, 3]);
}

#[test]
fn h10_every_threshold_can_be_set() {
    let default = Advisor::default();
    let rows = [
        (Advisor { full_per_minute: 0.0, ..default }, full(1, used(0.9, 1000)), Finding::Crowded),
        (Advisor { full_per_minute: 11.0, ..default }, full(51, used(0.9, 1000)), Finding::Fine),
        (Advisor { high_use: 0.9, ..default }, full(51, used(0.85, 1000)), Finding::SlowToDrain),
        (Advisor { shallow: 2000, ..default }, full(51, used(0.1, 1000)), Finding::Shallow),
        (Advisor { p99: MILLI, ..default }, used(0.5, 1000), Finding::SlowHandler),
        (Advisor { p99: 101 * MILLI, ..default }, late(used(0.5, 1000)), Finding::Fine),
        (Advisor { deep: 400, ..default }, late(used(0.5, 1000)), Finding::LongQueue),
        (Advisor { deep_share: 0.4, ..default }, late(used(0.5, 1000)), Finding::LongQueue),
        (Advisor { low_use: 0.6, ..default }, used(0.5, 1000), Finding::Roomy),
        (Advisor { low_use: 0.0, ..default }, used(0.0, 1000), Finding::Fine),
    ];
    for (settings, figures, rule) in rows {
        assert_eq!(says(settings, figures).0, rule, "{settings:?}");
    }
}

#[test]
fn h10_back_pressure_is_per_minute_whatever_the_period() {
    let minute = Figures { over: PERIOD / 5, ..used(0.9, 1000) };
    assert_eq!(advised(full(11, minute)).0, Finding::Crowded);
    assert_eq!(advised(full(10, minute)).0, Finding::Fine);
}

#[test]
fn h10_a_bound_that_was_said_in_all_is_changed_in_all() {
    let in_all = |utilisation, messages: usize| Figures {
        inbox: Inbox::InAll(messages),
        queued: utilisation * messages as f64,
        ..used(utilisation, 1)
    };
    assert_eq!(advised(full(51, in_all(0.9, 256_000))).1, "queue: 256000 -> 512000");
    assert_eq!(advised(full(51, in_all(0.1, 127_999))).0, Finding::Shallow, "below 500 per worker");
    assert_eq!(advised(full(51, in_all(0.1, 128_000))).0, Finding::SlowToDrain);
    assert_eq!(advised(in_all(0.1, 256_000)).1, "queue: 256000 -> 128000");
    assert_eq!(advised(late(in_all(0.9, 4_000))).1, "queue: 4000 -> 2000; pool_size: 256 -> 384");
}

#[test]
fn h10_no_bound_is_advised_beyond_its_limits() {
    let default = Advisor::default();
    let crowded = |each, workers| Figures { workers, ..full(51, used(0.9, each)) };
    assert_eq!(advised(crowded(100_000_000, 1)), (Finding::Crowded, String::new()));
    assert_eq!(advised(crowded(90_000_000, 1)).1, "inbox_size: 90000000 -> 100000000");
    assert_eq!(advised(crowded(300, 256_000)).1, "inbox_size: 300 -> 390", "100,000,000");
    assert_eq!(advised(used(0.1, 1)), (Finding::Fine, String::new()));
    let in_all = |messages, utilisation| Figures {
        inbox: Inbox::InAll(messages),
        queued: utilisation * messages as f64,
        ..used(utilisation, 1)
    };
    let bounded = Advisor { least_queue: 1_000, most_queue: 3_000, ..default };
    assert_eq!(says(bounded, full(51, in_all(2_000, 0.9))).1, "queue: 2000 -> 3000");
    assert_eq!(says(bounded, full(51, in_all(3_000, 0.9))), (Finding::Crowded, String::new()));
    assert_eq!(says(bounded, in_all(1_500, 0.1)).1, "queue: 1500 -> 1000");
    assert_eq!(says(bounded, in_all(1_000, 0.1)), (Finding::Fine, String::new()));
    assert_eq!(
        says(Advisor { least_queue: 1, most_queue: 76_800, ..default }, crowded(200, 256)).1,
        "inbox_size: 200 -> 300"
    );
    assert_eq!(
        says(Advisor { least_queue: 700, most_queue: 76_800, ..default }, used(0.1, 9)).1,
        "inbox_size: 9 -> 5"
    );
    assert_eq!(
        says(Advisor { least_queue: 1_600, most_queue: 76_800, ..default }, used(0.1, 9)).1,
        "inbox_size: 9 -> 7"
    );
    assert_eq!(advised(used(0.1, 3)).1, "inbox_size: 3 -> 2");
    let nobody = Figures { workers: 0, ..full(51, used(0.9, 1000)) };
    assert_eq!(advised(nobody).1, "inbox_size: 1000 -> 2000");
}

#[test]
fn h10_workers_are_added_within_the_bounds_and_where_they_are_busy() {
    let long = late(used(0.9, 1));
    assert_eq!(advised(Figures { workers: 1, ..long }).1, "pool_size: 1 -> 2");
    assert_eq!(advised(Figures { most_workers: 300, ..long }).1, "pool_size: 256 -> 300");
    assert_eq!(advised(Figures { most_workers: 256, ..long }), (Finding::LongQueue, String::new()));
    assert_eq!(advised(Figures { workers: 60_000, ..long }).1, "pool_size: 60000 -> 65536");
    let idle = Figures { busy: 0.4, ..late(used(0.9, 1000)) };
    assert_eq!(advised(idle).1, "inbox_size: 1000 -> 500", "they wait for something else");
}

#[test]
fn h10_room_that_was_needed_within_a_day_is_not_taken_away() {
    let mut judge = judge(Advisor::default());
    let period = |number: u32, figures| Figures { at: number * PERIOD, ..figures };
    let busy = Figures { peak: 256 * 700, ..used(0.1, 1000) };
    let change = |advice: Advice| advice.change.map(|change| change.to_string());
    let first = judge.advise(&period(1, busy));
    assert_eq!(change(first).as_deref(), Some("inbox_size: 1000 -> 700"));
    let full_once = judge.advise(&period(2, full(1, used(0.1, 1000))));
    assert_eq!((full_once.finding, full_once.change), (Finding::Fine, None), "all of it was used");
    let later = |number| period(number, used(0.1, 1000));
    assert_eq!(judge.advise(&later(290)).finding, Finding::Fine);
    assert_eq!(change(judge.advise(&later(291))).as_deref(), Some("inbox_size: 1000 -> 500"));
}

#[test]
fn h10_room_that_was_added_is_not_taken_away_as_soon_as_it_helps() {
    let mut judge = judge(Advisor::default());
    assert_eq!(judge.advise(&full(51, used(0.1, 100))).finding, Finding::Shallow);
    assert_eq!(judge.advise(&used(0.1, 200)).finding, Finding::Fine);
    assert_eq!(judge.advise(&used(0.1, 400)).finding, Finding::Roomy);
}

#[test]
fn h10_a_period_in_which_nothing_was_sent_says_nothing() {
    let quiet = Figures::of(Inbox::PerWorker(1000), 256);
    assert_eq!(advised(quiet), (Finding::Fine, String::new()));
    assert_eq!(advised(Figures { started: 1, ..quiet }).0, Finding::Roomy);
    assert_eq!(advised(Figures { peak: 1, ..quiet }).0, Finding::Roomy);
}

#[test]
fn h10_advice_states_its_figures_and_the_lines() {
    let advice = judge(Advisor::default()).advise(&full(70, used(0.91, 1000)));
    assert_eq!(
        advice.to_string(),
        "full 14.0 times a minute, 0.91 used (910 of 1000 per worker on average), p99 40.0 ms, \
         256 workers 1.00 busy, over 300 s: the inbox is too small: grow it; \
         inbox_size: 1000 -> 2000"
    );
    let at_its_limit = judge(Advisor::default()).advise(&full(70, used(0.91, 10_000_000)));
    assert!(at_its_limit.to_string().ends_with("grow it; it is at its limit"));
    let fine = judge(Advisor::default()).advise(&Figures { p99: None, ..calm() });
    assert!(
        fine.to_string().ends_with("p99 unknown, 256 workers 1.00 busy, over 300 s: fine as it is")
    );
}

#[test]
fn h10_advice_is_news_when_it_says_something_else() {
    let of = |figures| judge(Advisor::default()).advise(&figures);
    let (fine, crowded) = (of(calm()), of(full(51, used(0.9, 1000))));
    assert!(crowded.is_news_after(None) && !fine.is_news_after(None), "it was always fine");
    assert!(fine.is_news_after(Some(&crowded)) && crowded.is_news_after(Some(&fine)));
    let fuller = of(full(90, used(0.95, 1000)));
    assert!(!fuller.is_news_after(Some(&crowded)), "other figures, the same advice");
    let further = of(full(51, used(0.9, 2000)));
    assert!(further.is_news_after(Some(&crowded)), "other lines");
}

#[test]
fn h10_settings_out_of_range_are_refused() {
    let default = Advisor::default();
    let wrong = [
        (Advisor { period: 999 * MILLI, ..default }, "advisor.period (in ms)"),
        (Advisor { least_queue: 0, most_queue: 10, ..default }, "advisor.least_queue"),
        (Advisor { least_queue: 10, most_queue: 9, ..default }, "advisor.most_queue"),
        (Advisor { least_queue: 1, most_queue: 100_000_001, ..default }, "advisor.most_queue"),
        (Advisor { full_per_minute: f64::NAN, ..default }, "advisor.full_per_minute"),
        (Advisor { high_use: 1.1, ..default }, "advisor.high_use"),
        (Advisor { deep_share: f64::NAN, ..default }, "advisor.deep_share"),
        (Advisor { low_use: -0.1, ..default }, "advisor.low_use"),
    ];
    for (settings, name) in wrong {
        match Judge::new(settings) {
            Err(SpawnError::OutOfRange { setting, .. }) => assert_eq!(setting, name),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(default.period, PERIOD);
}
