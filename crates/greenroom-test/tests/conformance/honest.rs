//! What does as it should passes, and what a connector says that it lacks is told and not skipped.

use greenroom_bus::source::generator::{GeneratorOptions, GeneratorSource};
use greenroom_test::{
    conformance::{Ability, BrokerConnector, Check, Clock, Connector, Place, Verdict, check, run},
    partitioned::BrokerOptions,
};

#[test]
fn v01_a_broker_passes_every_check() {
    let report = run(&BrokerConnector::default());
    assert!(report.0.iter().all(|row| row.verdict == Verdict::Passed), "{report}");
    assert_eq!(report.0.len(), Check::ALL.len());
}

#[test]
fn v01_a_broker_with_repeats_and_gaps_passes_every_check() {
    let options = BrokerOptions { seed: 7, batch: 30, gaps: 0.3, repeats: 0.3 };
    let report = run(&BrokerConnector(options));
    assert!(report.0.iter().all(|row| row.verdict == Verdict::Passed), "{report}");
}

/// Says less than it can do.
struct Modest;

impl Connector for Modest {
    fn name(&self) -> String {
        "modest".to_owned()
    }

    fn lacks(&self, ability: Ability) -> Option<&'static str> {
        (ability == Ability::Replays).then_some("nobody has tried")
    }

    fn clock(&self) -> Clock {
        Clock::Virtual
    }

    fn place(&self) -> Result<Box<dyn Place>, String> {
        BrokerConnector::default().place()
    }
}

#[test]
fn v01_what_a_connector_lacks_is_told_with_its_reason() {
    let row = check(&Modest, Check::BoundedRepeats);
    let Verdict::NotApplicable(why) = &row.verdict else { panic!("{row}") };
    assert!(why.contains("give again") && why.ends_with("nobody has tried"), "{why}");
    assert!(row.to_string().contains("modest: bounded repeats: not applicable: "), "{row}");
}

#[test]
fn v01_a_connector_that_says_less_than_its_source_can_do_fails() {
    let row = check(&Modest, Check::OrderPerKey);
    let Verdict::Failed(what) = &row.verdict else { panic!("{row}") };
    assert!(what.contains("nobody has tried"), "{what}");
}

/// Its server is not there.
struct Absent;

impl Connector for Absent {
    fn name(&self) -> String {
        "absent".to_owned()
    }

    fn missing(&self) -> Option<String> {
        Some("no server; start one".to_owned())
    }

    fn place(&self) -> Result<Box<dyn Place>, String> {
        Err("there is none".to_owned())
    }
}

#[test]
fn v01_a_connector_whose_server_is_not_there_is_told_as_not_run() {
    let row = check(&Absent, Check::OrderPerKey);
    assert_eq!(row.verdict, Verdict::NotRun("no server; start one".to_owned()), "{row}");
    assert!(row.to_string().ends_with("order per key: not run: no server; start one"), "{row}");
    row.told();
}

/// Says more than it can do: a generator has no positions, and gives nothing again.
struct Boaster;

impl Connector for Boaster {
    fn name(&self) -> String {
        "boaster".to_owned()
    }

    fn place(&self) -> Result<Box<dyn Place>, String> {
        Ok(Box::new(Endless))
    }
}

struct Endless;

impl Place for Endless {
    fn publish<'a>(
        &'a mut self,
        _items: &'a [greenroom_test::conformance::Item],
    ) -> greenroom_bus::BoxFuture<'a, Result<(), String>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn open<'a>(
        &'a mut self,
    ) -> greenroom_bus::BoxFuture<'a, Result<Box<dyn greenroom_bus::source::Source>, String>> {
        let source = GeneratorSource::new(GeneratorOptions::default()).unwrap();
        Box::pin(std::future::ready(Ok(Box::new(source) as _)))
    }
}

#[test]
fn v01_a_connector_that_says_more_than_its_source_can_do_fails() {
    let row = check(&Boaster, Check::Gaps);
    let Verdict::Failed(what) = &row.verdict else { panic!("{row}") };
    assert!(what.contains("not able to give again what was not acknowledged"), "{what}");
}
