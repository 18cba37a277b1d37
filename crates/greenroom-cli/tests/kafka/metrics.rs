//! `/metrics` of an input that commits to a real broker.

use rustix::process::Signal;

use crate::kafka::{
    daemon::Daemon,
    scrape::scraped,
    stage::{Stage, event},
    topics::{broker, by_key, publish, reading, unique},
};

const PARKS: &str = "
pools: { default: { workers: 8, on_final_failure: park } }
handlers:
  bad: { on: bad, order_by: subject, http: { url: 'http://127.0.0.1:1/' }, retry: { attempts: 1 } }
  all: { on: order.*, order_by: subject, pass: }
outage: { failures: 1000000, window: 1h }
";

#[test]
fn o03_what_a_commit_holds_beyond_an_open_position_is_told_and_gone_with_it() {
    let Some(broker) = broker() else { return };
    let topic = unique("parked");
    let stage = Stage::with(&reading(&broker, (&topic, &unique("g")), PARKS));
    // Every partition has keys that are handled behind the one that is not.
    let poison = event("poison", "bad", "poison", 0.into());
    publish(&stage, &broker, &topic, &[&[poison], &by_key(400, 100)[..]].concat());
    let daemon = Daemon::start(&stage);
    daemon.wait_for("/api/run", |run| run["settled"] == 400 && run["parked_keys"] == 1);
    let of = |name: &str| format!("greenroom_input_{name}{{input=\"in\"}}");
    let open = scraped(&daemon, |scrape| {
        // Of what is not known yet, there is no series.
        scrape.get(&of("commit_set_bytes")) > Some(0.0)
            && scrape.get(&of("commit_age_seconds")) == Some(0.0)
            && scrape.get(&of("oldest_open_seconds")) >= Some(1.0)
            && scrape.get(&of("lag")) == Some(0.0)
    });
    let ahead = |(series, done): (&String, &f64)| {
        series.starts_with("greenroom_partition_done_ahead") && *done > 0.0
    };
    assert_eq!(open.values.iter().filter(|series| ahead(*series)).count(), 1, "{}", open.text);

    assert_eq!(daemon.decide("skip", "poison").0, 200);
    scraped(&daemon, |scrape| {
        scrape.value(&of("commit_set_bytes")) == 0.0
            && scrape.value(&of("oldest_open_seconds")) == 0.0
            && !scrape.values.iter().any(ahead)
    });
    daemon.signal(Signal::INT);
    daemon.ended().counted(0, [401, 400, 1, 0]);
}
