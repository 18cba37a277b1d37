//! What each rule says of what.

use std::time::Duration;

use greenroom::advisor::{Advice, Advisor, Figures, Inbox, Judge};
use greenroom_bus::{
    dead_letter::Reason,
    engine::{AttemptTimes, HeldByShare, OnFull, OutageCause, PausedShare, ToldLetter},
    handler::CrashLoop,
    sink::Trouble,
};

use super::{
    busy_shares::BusyShare,
    lines::ConfigFormat,
    recent::{Came, Took},
    seen::{
        Handler, HotKey, Input, InputParked, LettersSeen, Outage, Output, Parked, ParkedFirst,
        Pool, PoolNow,
    },
    *,
};

const SECOND: Duration = Duration::from_secs(1);

fn pool(name: &str) -> Pool {
    Pool {
        name: name.to_owned(),
        autotune: Autotune::Say,
        advice: None,
        workers: 8,
        now: PoolNow {
            live: 8,
            busy: 1,
            queued: 3,
            paused: false,
            wedged: 0,
            longest: None,
            wedged_key: None,
            oldest: None,
            hot: None,
            paused_shares: Vec::new(),
            share: None,
            nameless: None,
        },
        on_full: OnFull::Pause,
        rate: None,
        capacity: 1_000,
        says_inbox_size: false,
        autoscales: false,
        has_timeout: false,
        max_restarts: 3,
    }
}

fn now(name: &str, now: PoolNow) -> Pool {
    Pool { now, ..pool(name) }
}

fn handler(name: &str) -> Handler {
    let (name, pool) = (name.to_owned(), "erp".to_owned());
    Handler { name, pool, paused: false, outage: None, crash_loop: None, took: None, open: None }
}

fn output(name: &str) -> Output {
    let (name, waiting) = (name.to_owned(), Vec::new());
    Output { name, trouble: None, failure: None, removed: false, waiting }
}

fn letters(dead_lettered: u64, settled: u64) -> LettersSeen {
    let came = Came { dead_lettered, settled };
    LettersSeen { came, told: None, share: 0.01, trouble: None }
}

/// All is well.
fn well() -> Seen {
    Seen {
        format: ConfigFormat::Yaml,
        pools: vec![pool("erp")],
        handlers: vec![handler("push")],
        outputs: vec![output("out")],
        inputs: vec![Input {
            name: "in".to_owned(),
            in_flight_bytes: 1 << 20,
            held_back: 0,
            last_settled: Some(SECOND),
            files_at_risk: 0,
            unconnected: None,
            remark: None,
            parked: InputParked::default(),
            stands_still: false,
            held_by: None,
            held_by_share: None,
            log_trouble: None,
        }],
        parked: Parked::default(),
        letters: letters(9, 1_000),
        failures: Vec::new(),
        standstill: None,
        wedged_after: 60 * SECOND,
    }
}

/// A pool of eight workers with a queue of 1,000, of which nothing is worth a word.
fn figures() -> Figures {
    Figures {
        utilisation: 0.5,
        queued: 500.0,
        busy: 1.0,
        p99: Some(Duration::from_millis(40)),
        started: 30_000,
        ..Figures::of(Inbox::InAll(1_000), 8)
    }
}

fn advice(settings: Advisor, figures: Figures) -> Advice {
    Judge::new(settings).unwrap_or_else(|error| panic!("{error}")).advise(&figures)
}

#[test]
fn o13_files_that_are_lost_if_they_are_removed_are_counted() {
    let mut seen = well();
    seen.inputs[0].files_at_risk = 1_200;
    let finding = one(&seen);
    assert_eq!((&*finding.about, &*finding.figures), ("inputs.in", "1,200 files"));
    assert_eq!(finding.severity, Severity::Warning);
}

#[test]
fn o17_what_a_source_remarks_of_itself_is_a_finding() {
    let mut seen = well();
    seen.inputs[0].remark = Some("it is read without a lease".to_owned());
    let finding = one(&seen);
    assert_eq!((&*finding.about, &*finding.figures), ("inputs.in", "it is read without a lease"));
    assert_eq!(finding.severity, Severity::Warning);
}

/// The single finding of a pool that was advised so.
fn of_sizes(pool: Pool, figures: Figures) -> Finding {
    one(&Seen {
        pools: vec![Pool { advice: Some(advice(Advisor::default(), figures)), ..pool }],
        ..well()
    })
}

fn one(seen: &Seen) -> Finding {
    let mut found = findings(seen);
    assert_eq!(found.len(), 1, "{found:#?}");
    let finding = found.remove(0);
    for part in [&finding.what, &finding.figures, &finding.why, &finding.change, &finding.about] {
        assert!(!part.is_empty(), "{finding:#?}");
    }
    assert!(
        finding.lines.is_some() || finding.ask.is_some(),
        "something can be done: {finding:#?}"
    );
    finding
}

fn written(finding: &Finding) -> String {
    finding.lines.as_ref().map(|lines| lines.text(ConfigFormat::Yaml)).unwrap_or_default()
}

fn crowded() -> Figures {
    Figures { inbox_full: 60, utilisation: 0.9, ..figures() }
}

fn late() -> Figures {
    Figures { p99: Some(Duration::from_millis(140)), ..figures() }
}

#[test]
fn o13_silence_where_there_is_nothing_to_say() {
    let said = view(&well());
    assert_eq!(said["findings"], json!([]));
    let nothing = said["nothing"].as_str().unwrap_or_default();
    assert!(nothing.starts_with("Nothing to say: ") && nothing.contains("period"), "{nothing}");
    let fine = Pool { advice: Some(advice(Advisor::default(), figures())), ..pool("erp") };
    let said = view(&Seen { pools: vec![fine], ..well() });
    assert!(!said.to_string().contains("period"), "{said}");
    let off = Pool { autotune: Autotune::Off, ..pool("erp") };
    let said = view(&Seen { pools: vec![off], ..well() });
    assert!(said["nothing"].to_string().contains("`off`"), "{said}");
}

#[test]
fn o13_a_queue_that_is_too_small_is_told_with_the_line_that_the_file_can_have() {
    let finding = of_sizes(pool("erp"), crowded());
    assert_eq!(written(&finding), "pools:\n  erp:\n    queue: 2000");
    assert_eq!(finding.severity, Severity::Warning);
    assert!(finding.figures.contains("full 12.0 times a minute"), "{}", finding.figures);
    assert!(finding.why.contains("input pauses"), "{}", finding.why);
    let toml = finding.lines.as_ref().map(|lines| lines.text(ConfigFormat::Toml));
    assert_eq!(toml.as_deref(), Some("[pools.erp]\nqueue = 2000"));
    // `queue` cannot stand beside `inbox_size`.
    let finding = of_sizes(Pool { says_inbox_size: true, ..pool("erp") }, crowded());
    assert_eq!(written(&finding), "pools:\n  erp:\n    inbox_size: 250");
    let refuses = of_sizes(Pool { on_full: OnFull::Reject, ..pool("erp") }, crowded());
    assert!(refuses.why.contains("refused"), "{}", refuses.why);
}

#[test]
fn o13_each_finding_about_sizes_has_lines_or_says_where_to_look() {
    let deep = Figures { inbox: Inbox::InAll(100_000), ..figures() };
    let slow = of_sizes(pool("erp"), Figures { inbox_full: 60, utilisation: 0.1, ..deep });
    assert_eq!(written(&slow), "pools:\n  erp:\n    workers: 12");
    assert_eq!(slow.ask.as_deref(), Some("GET /api/pools/erp/workers"));

    let long = of_sizes(pool("erp"), Figures { utilisation: 0.9, ..late() });
    assert_eq!(written(&long), "pools:\n  erp:\n    workers: 12\n    queue: 500");
    let idle = of_sizes(pool("erp"), Figures { utilisation: 0.9, busy: 0.1, ..late() });
    assert_eq!(written(&idle), "pools:\n  erp:\n    queue: 500");
    assert_eq!(idle.ask.as_deref(), Some("GET /api/keys"));

    let slow = of_sizes(pool("erp"), late());
    assert_eq!(slow.what, "Slow handlers of the pool `erp`");
    assert_eq!(written(&slow), "pools:\n  erp:\n    advisor:\n      p99: 280ms");
    assert_eq!(slow.severity, Severity::Hint);
    let toml = slow.lines.map(|lines| lines.text(ConfigFormat::Toml)).unwrap_or_default();
    assert_eq!(toml, "[pools.erp.advisor]\np99 = \"280ms\"");
    let p99 = Some(Duration::from_millis(1_700));
    let slower = of_sizes(pool("erp"), Figures { p99, ..figures() });
    assert!(written(&slower).ends_with("p99: 4s"), "{}", written(&slower));

    let roomy = of_sizes(pool("erp"), Figures { utilisation: 0.1, queued: 100.0, ..figures() });
    assert_eq!(
        (&*written(&roomy), roomy.severity),
        ("pools:\n  erp:\n    queue: 500", Severity::Hint)
    );
}

#[test]
fn o13_a_pool_at_its_limit_is_told_to_make_its_handlers_quicker() {
    let long = Figures { utilisation: 0.9, workers: 8, most_workers: 8, ..late() };
    let full = Figures { inbox: Inbox::InAll(2_000), ..crowded() };
    for figures in [long, full] {
        let settings = Advisor { least_queue: 1_000, most_queue: 2_000, ..Advisor::default() };
        let limited = Pool { advice: Some(advice(settings, figures)), ..pool("erp") };
        let finding = one(&Seen { pools: vec![limited], ..well() });
        assert!(finding.lines.is_none() && finding.change.contains("faster"), "{finding:#?}");
    }
}

#[test]
fn o13_a_pool_that_its_rate_holds_back_gets_no_advice_about_its_sizes() {
    // 30,000 in 300 s.
    let held = of_sizes(Pool { rate: Some(105.0), ..pool("erp") }, crowded());
    assert_eq!(written(&held), "pools:\n  erp:\n    rate: 210/s");
    assert!(held.figures.starts_with("100.0 attempts"), "{}", held.figures);
    let not = of_sizes(Pool { rate: Some(200.0), ..pool("erp") }, crowded());
    assert!(written(&not).contains("queue"), "{not:#?}");
    let rare = Figures { started: 150, ..crowded() };
    let held = of_sizes(Pool { rate: Some(0.5), ..pool("erp") }, rare);
    assert_eq!(written(&held), "pools:\n  erp:\n    rate: 1/s");
    let rare = Figures { started: 15, ..crowded() };
    let held = of_sizes(Pool { rate: Some(0.05), ..pool("erp") }, rare);
    assert_eq!(written(&held), "pools:\n  erp:\n    rate: 360/h");
}

#[test]
fn o13_workers_that_do_not_get_on_and_such_as_were_given_up() {
    let wedged = now("erp", PoolNow { wedged: 2, longest: Some(700 * SECOND), ..pool("erp").now });
    let finding = one(&Seen { pools: vec![wedged.clone()], ..well() });
    assert_eq!(written(&finding), "pools:\n  erp:\n    timeout: 60s");
    assert!(finding.figures.starts_with("2 of 8 workers") && finding.figures.contains("11 min"));
    assert!(!finding.figures.contains("key"), "{finding:?}");
    let wedged_key = Some("order-7".to_owned());
    let wedged = Pool { now: PoolNow { wedged_key, ..wedged.now }, ..wedged };
    let finding = one(&Seen { pools: vec![wedged.clone()], ..well() });
    assert!(finding.figures.contains("11 min, with the key `order-7`; "), "{finding:?}");
    let limited = Pool { has_timeout: true, ..wedged };
    let finding = one(&Seen { pools: vec![limited], ..well() });
    assert_eq!(written(&finding), "pools:\n  erp:\n    dedicated_threads: 8");
    let gone = now("erp", PoolNow { live: 0, ..pool("erp").now });
    let finding = one(&Seen { pools: vec![gone], ..well() });
    assert_eq!(
        (finding.severity, &*written(&finding)),
        (Severity::Critical, "pools:\n  erp:\n    max_restarts: 30")
    );
}

#[test]
fn o13_targets_that_fail_and_what_is_paused() {
    let outage = |cause| Outage { lasted: 90 * SECOND, error: "503".to_owned(), cause };
    let with = |handler| Seen { handlers: vec![handler], ..well() };
    let refused =
        one(&with(Handler { outage: Some(outage(OutageCause::Refused)), ..handler("push") }));
    assert_eq!(
        (refused.severity, refused.ask.as_deref()),
        (Severity::Critical, Some("POST /api/reload"))
    );
    let down =
        one(&with(Handler { outage: Some(outage(OutageCause::Failures)), ..handler("push") }));
    assert_eq!(down.figures, "for 90 s; the last error: 503");
    let paused = one(&with(Handler { paused: true, ..handler("push") }));
    assert_eq!(paused.ask.as_deref(), Some("POST /api/handlers/push/resume"));
    let open = one(&with(Handler { open: Some(2), ..handler("push") }));
    assert_eq!(open.figures, "it has opened 2 times");
    let paused = one(&Seen {
        pools: vec![now("erp", PoolNow { paused: true, ..pool("erp").now })],
        ..well()
    });
    assert_eq!(paused.ask.as_deref(), Some("POST /api/pools/erp/resume"));
    let failing = |paused| {
        let outputs = vec![Output { trouble: Some(rejects(paused)), ..output("out") }];
        one(&Seen { outputs, ..well() })
    };
    assert_eq!(failing(true).ask.as_deref(), Some("POST /api/outputs/out/resume"));
    assert_eq!(
        (failing(true).severity, failing(false).severity),
        (Severity::Critical, Severity::Warning)
    );
    let failure = Some("the disk is gone".to_owned());
    let gone = one(&Seen { outputs: vec![Output { failure, ..output("out") }], ..well() });
    assert_eq!((gone.severity, &*gone.figures), (Severity::Critical, "the disk is gone"));
}

fn rejects(paused: bool) -> Trouble {
    match paused {
        true => Trouble::paused(SECOND, "401"),
        false => Trouble::failing(SECOND, "401"),
    }
}

/// Each with what it follows from.
fn outline(seen: &Seen) -> Vec<(&'static str, String, Option<String>)> {
    let found = findings(seen).into_iter();
    found.map(|of| (of.severity.word(), of.about, of.follows)).collect()
}

fn cause(severity: &'static str, about: &str) -> (&'static str, String, Option<String>) {
    (severity, about.to_owned(), None)
}

fn effect(about: &str, of: &str) -> (&'static str, String, Option<String>) {
    ("warning", about.to_owned(), Some(of.to_owned()))
}

#[test]
fn o14_an_output_that_rejects_is_the_cause_of_the_workers_and_inputs_that_wait() {
    let mut seen = well();
    let waiting = vec![("erp".to_owned(), 8)];
    seen.outputs[0] = Output { trouble: Some(rejects(true)), waiting, ..output("out") };
    // They have handled their events for long: the output is to blame, not they.
    seen.pools[0].now = PoolNow {
        wedged: 8,
        longest: Some(90 * SECOND),
        queued: 1_000,
        oldest: Some(80 * SECOND),
        ..pool("erp").now
    };
    seen.inputs[0].stands_still = true;
    seen.inputs[0].held_by = Some("erp".to_owned());
    let chain = [
        cause("critical", "outputs.out"),
        effect("pools.erp", "outputs.out"),
        effect("inputs.in", "pools.erp"),
    ];
    assert_eq!(outline(&seen), chain);
    assert!(findings(&seen)[1].what.contains("wait for the output `out`"));
    // One that is slow is told as what it is waited for, with nothing before it.
    seen.outputs[0].trouble = None;
    assert_eq!(outline(&seen)[0], cause("warning", "pools.erp"));
}

#[test]
fn o14_a_full_queue_follows_from_the_outage_of_its_handler() {
    let mut seen = well();
    seen.handlers[0].outage =
        Some(Outage { lasted: SECOND, error: "503".to_owned(), cause: OutageCause::Failures });
    let full = PoolNow { queued: 1_000, oldest: Some(9 * SECOND), ..pool("erp").now };
    seen.pools = vec![now("erp", full.clone()), now("busy", full)];
    seen.inputs[0].stands_still = true;
    seen.inputs[0].held_by = Some("erp".to_owned());
    let chains = [
        cause("warning", "handlers.push"),
        effect("pools.erp", "handlers.push"),
        effect("inputs.in", "pools.erp"),
        cause("warning", "pools.busy"),
    ];
    assert_eq!(outline(&seen), chains);
}

fn first(key: &str, handler: &str, seconds: u32) -> ParkedFirst {
    ParkedFirst {
        key: key.to_owned(),
        handler: handler.to_owned(),
        since: seconds * SECOND,
        error: "422".to_owned(),
        event: "e1".to_owned(),
    }
}

#[test]
fn o13_parked_keys_dead_letters_and_inputs_that_stand() {
    let first = Some(first("a b'c", "push", 700));
    let parked = Parked { keys: 3, events: 17, first };
    let finding = one(&Seen { parked: parked.clone(), ..well() });
    assert_eq!(
        finding.ask.as_deref(),
        Some("POST /api/keys/resume?key=a+b%27c&handler=push&event=e1")
    );
    assert!(finding.figures.contains("17 events wait; `a b'c`"), "{}", finding.figures);
    assert_eq!(finding.severity, Severity::Warning);
    let mut stands = Seen { parked, ..well() };
    stands.inputs[0].parked.hold_all = true;
    let held = ("critical", "inputs.in".to_owned(), Some("keys".to_owned()));
    assert_eq!(outline(&stands), [cause("warning", "keys"), held]);

    let with = |came, all| Seen { letters: letters(came, all), ..well() };
    let found = one(&with(10, 400));
    assert_eq!(found.figures, "10 of 400 events finished within the last 60 s (2.5 %)");
    assert_eq!(findings(&with(9, 1_000)), [], "less than one in a hundred");
    assert_eq!(findings(&with(4, 4)), [], "too few to say so");

    let mut stalled = well();
    stalled.inputs[0].last_settled = Some(61 * SECOND);
    stalled.inputs[0].stands_still = true;
    stalled.pools.push(now("slow", PoolNow { longest: Some(SECOND), ..pool("slow").now }));
    let finding = one(&stalled);
    assert_eq!(finding.ask.as_deref(), Some("GET /api/pools/slow/workers"));
    stalled.pools[1].now.wedged = 1;
    assert_eq!(outline(&stalled)[1], effect("inputs.in", "pools.slow"));
}

#[test]
fn o14_a_program_that_crashes_is_told_since_its_first_crash_and_no_credentials_are_blamed() {
    let mut seen = well();
    let last = "it ended with exit status: 3; last on its stderr: no database".to_owned();
    seen.handlers[0].crash_loop = Some(CrashLoop::new(93, 600 * SECOND, last.clone()));
    let found = one(&seen);
    assert_eq!((found.kind, found.severity), ("crash_loop", Severity::Warning));
    assert_eq!(found.figures, format!("93 times in 10 min; the last: {last}"));
    seen.handlers[0].outage =
        Some(Outage { lasted: 5 * SECOND, error: last, cause: OutageCause::Broken });
    let found = one(&seen);
    assert_eq!((found.kind, found.severity), ("crash_loop", Severity::Critical));
    assert_eq!(found.lasted, Some(600 * SECOND), "since the first crash, not since the last");
    assert!(found.what.contains("The program of the handler `push` does not work"), "{found:?}");
    assert!(found.figures.contains("no database"), "{found:?}");
}

#[test]
fn o14_a_hot_key_is_the_limit_and_more_workers_are_not_advised() {
    let mut seen = well();
    let hot = HotKey { key: "key 1".to_owned(), handler: "push".to_owned(), waiting: 500 };
    seen.pools[0].now.hot = Some(hot);
    let times = |millis| AttemptTimes::new(millis * SECOND / 1_000, SECOND);
    seen.handlers[0].took =
        Some(Took { now: times(4), before: None, ended: 9, late: 0, deferred: 0 });
    let found = one(&seen);
    assert_eq!(found.kind, "hot_key");
    assert_eq!(
        found.figures,
        "500 events of it wait, while 7 of 8 workers are idle; that lets through about 250 a second"
    );
    assert_eq!(found.ask.as_deref(), Some("GET /api/keys?key=key+1"));
}

#[test]
fn o14_a_handler_is_slow_by_its_own_past() {
    let mut seen = well();
    let times = |millis| AttemptTimes::new(millis * SECOND / 1_000, SECOND);
    let took = |now, before| {
        let before = Some(times(before));
        Some(Took { now: times(now), before, ended: 100, late: 0, deferred: 0 })
    };
    seen.handlers[0].took = took(40, 1);
    assert_eq!(findings(&seen), [], "nobody notices that");
    seen.handlers[0].took = took(300, 100);
    assert_eq!(findings(&seen), [], "it varies");
    seen.handlers[0].took = took(900, 100);
    assert_eq!(one(&seen).severity, Severity::Hint, "its workers keep up");
    seen.pools[0].now.busy = 8;
    let found = one(&seen);
    assert_eq!((found.kind, found.severity), ("slow_handler", Severity::Warning));
}

#[test]
fn o14_a_handler_is_slow_by_its_deadline_and_a_target_that_asks_for_waits_is_told() {
    let mut seen = well();
    let now = AttemptTimes::new(SECOND, SECOND);
    let took = |late, deferred| Some(Took { now, before: None, ended: 40, late, deferred });
    seen.handlers[0].took = took(3, 3);
    assert_eq!(findings(&seen), [], "now and then that happens");
    seen.handlers[0].took = took(4, 0);
    let found = one(&seen);
    assert_eq!((found.kind, &*found.figures), ("slow_handler", "4 of 40 attempts recently"));
    seen.handlers[0].took = took(0, 12);
    let found = one(&seen);
    assert_eq!((found.kind, &*found.figures), ("limited_by_target", "12 of 40 attempts recently"));
    seen.handlers[0].took = took(0, 0);
    assert_eq!(findings(&seen), []);
}

#[test]
fn o14_dead_letters_are_told_with_what_one_of_them_has_failed_of() {
    let told = ToldLetter::new(Some("push"), Reason::Rejected, "422 of http://erp");
    let letters = LettersSeen { told: Some(told), ..letters(235, 1_000) };
    let found = one(&Seen { letters, ..well() });
    assert!(
        found.figures.ends_with("(23.5 %); one of them of `push`: rejected: 422 of http://erp"),
        "{found:?}"
    );
}

#[test]
fn o13_the_worst_comes_first() {
    let mut seen = well();
    seen.pools.push(Pool { advice: Some(advice(Advisor::default(), late())), ..pool("slow") });
    seen.pools.push(now("held", PoolNow { paused: true, ..pool("held").now }));
    let outage = Outage { lasted: SECOND, error: "503".to_owned(), cause: OutageCause::Failures };
    seen.handlers[0].outage = Some(outage);
    // By a rule that comes after that of the outage.
    let first = Some(first("k", "bill", 1));
    seen.parked = Parked { keys: 1, events: 1, first };
    seen.inputs[0].parked.hold_all = true;
    let found = findings(&seen);
    let told: Vec<_> = found.iter().map(|of| (of.severity.word(), &*of.about)).collect();
    let expected = [
        ("warning", "keys"),
        ("critical", "inputs.in"),
        ("warning", "handlers.push"),
        ("warning", "pools.held"),
        ("hint", "pools.slow"),
    ];
    assert_eq!(told, expected);
}

#[test]
fn q11_a_share_that_holds_nearly_all_workers_gets_a_cap() {
    let mut seen = well();
    let busy = |workers, others| Some(BusyShare { name: Some("acme".to_owned()), workers, others });
    seen.pools[0].now.share = busy(7.36, 0.3);
    let found = one(&seen);
    assert_eq!((found.kind, found.severity), ("busy_share", Severity::Hint));
    assert_eq!(found.what, "The share `acme` holds 92% of the workers of the pool `erp`");
    let lines = found.lines.unwrap();
    assert_eq!(
        lines.text(ConfigFormat::Yaml),
        "pools:\n  erp:\n    shares:\n      acme:\n        in_hand: 4"
    );
    seen.pools[0].now.share =
        Some(BusyShare { name: Some("a.b".to_owned()), ..busy(8.0, 0.5).unwrap() });
    let lines = one(&seen).lines.unwrap();
    assert_eq!(lines.text(ConfigFormat::Toml), "[pools.erp.shares.\"a.b\"]\nin_hand = 4");
    for (workers, others, why) in
        [(7.9, 0.0, "nobody else is there"), (6.0, 0.3, "the others have enough")]
    {
        seen.pools[0].now.share = busy(workers, others);
        assert_eq!(findings(&seen), [], "{why}");
    }
}

#[test]
fn q11_a_share_by_that_finds_nothing_is_told() {
    let mut seen = well();
    seen.pools[0].now.nameless = Some(99);
    assert_eq!(findings(&seen), [], "a few may be without one");
    seen.pools[0].now.nameless = Some(100);
    let found = one(&seen);
    assert_eq!((found.kind, found.severity), ("no_shares", Severity::Warning));
    assert_eq!(found.what, "No event of the pool `erp` has a share");
    assert_eq!(found.figures, "100 events since the start");
    assert!(found.change.contains("`share_by`"), "{found:?}");
}

#[test]
fn q08_an_input_that_stands_still_because_of_a_share_names_it() {
    let mut seen = well();
    let input = &mut seen.inputs[0];
    (input.stands_still, input.held_back) = (true, 12_000);
    let held = |share: Option<&str>| HeldByShare::new("erp", share.map(Into::into), 11_000);
    input.held_by_share = Some(held(Some("acme")));
    let found = one(&seen);
    assert_eq!((found.kind, found.severity), ("input_stands", Severity::Warning));
    assert_eq!(found.what, "The input `in` is held by the share `acme`");
    assert_eq!(
        found.figures,
        "11,000 of the 12,000 events that wait for room are of it, in the pool `erp`"
    );
    assert!(found.change.contains("`share_queue`"), "{found:?}");
    assert_eq!(found.ask.as_deref(), Some("GET /api/pools/erp/shares"));
    seen.inputs[0].held_by_share = Some(held(None));
    assert_eq!(one(&seen).what, "The input `in` is held by events without a share");
}

#[test]
fn q11_a_paused_share_is_told_with_the_command_that_resumes_it() {
    let mut seen = well();
    seen.pools[0].now.paused_shares = vec![PausedShare::new("acme", false, 1)];
    let found = one(&seen);
    assert_eq!((found.kind, found.severity), ("share_paused", Severity::Warning));
    assert_eq!(found.what, "The share `acme` of the pool `erp` is paused by hand");
    assert_eq!(found.figures, "1 event of it waits");
    assert_eq!(found.ask.as_deref(), Some("POST /api/pools/erp/shares/acme/resume"));
    let told = view(&seen);
    assert_eq!(told["findings"][0]["command"], "greenroom share resume erp acme");
    let gone = |name: &str, waiting| PausedShare::new(name, true, waiting);
    seen.pools[0].now.paused_shares = vec![gone("a b", 12), gone("c", 3), gone("d", 0)];
    let found = one(&seen);
    assert!(found.what.ends_with("is paused by its target, which wants nothing more (410)"));
    assert_eq!(found.figures, "12 events of it wait; 2 more shares of the pool are paused");
    assert_eq!(found.ask.as_deref(), Some("POST /api/pools/erp/shares/a%20b/resume"));
}

#[test]
fn q08_an_input_that_a_paused_share_stops_is_told_to_resume_it() {
    let mut seen = well();
    seen.pools[0].now.paused_shares = vec![PausedShare::new("acme", false, 50)];
    let input = &mut seen.inputs[0];
    (input.stands_still, input.held_back) = (true, 50);
    input.held_by_share = Some(HeldByShare::new("erp", Some("acme".into()), 45));
    assert_eq!(outline(&seen), [cause("warning", "pools.erp"), effect("inputs.in", "pools.erp")]);
    let found = findings(&seen).pop().unwrap();
    assert_eq!(found.change, "Resume that share.");
    assert_eq!(found.ask.as_deref(), Some("POST /api/pools/erp/shares/acme/resume"));
    // Another share stops it, which is not paused.
    seen.inputs[0].held_by_share = Some(HeldByShare::new("erp", Some("bolt".into()), 45));
    assert!(findings(&seen).pop().unwrap().change.starts_with("Raise the limits"));
}
