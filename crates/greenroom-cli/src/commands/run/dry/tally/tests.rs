use greenroom_bus::event::Event;

use super::*;
use crate::config;

fn tally(text: &str) -> DryTally {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("greenroom.yaml");
    std::fs::write(&file, text).unwrap();
    let (config, problems) = config::load(&file, &[]);
    DryTally::new(&config.unwrap_or_else(|| panic!("{}", problems.render(false)))).unwrap()
}

const TWO_INPUTS: &str = "
inputs:
  orders: { generator: { count: 1, types: [made] } }
  other: { generator: { count: 1, types: [made] } }
handlers: { all: { on: made, order_by: subject, drop: } }
";

fn events(count: u64) -> impl Iterator<Item = Taken> {
    (1..=count).map(|position| {
        let event = Event::builder(position.to_string(), "test", "made").build().unwrap();
        Taken { position, event: Ok(event) }
    })
}

#[test]
fn d15_c15_events_are_counted_for_each_partition_where_an_input_has_several() {
    let mut tally = tally(TWO_INPUTS);
    tally.add((0, Partition(0)), events(30));
    tally.add((0, Partition(7)), events(5));
    tally.add((0, Partition(7)), events(5));
    tally.add((1, Partition::ONLY), events(3));
    let text = tally.render(Duration::from_secs(1));
    let rows: Vec<Vec<&str>> = text
        .lines()
        .skip_while(|line| !line.starts_with("input "))
        .take_while(|line| !line.is_empty())
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(rows[0], ["input", "partition", "events", "share"], "{text}");
    assert_eq!(rows[1], ["orders", "0", "30", "75.0%"], "{text}");
    assert_eq!(rows[2], ["orders", "7", "10", "25.0%"], "{text}");
    assert!(!text.contains("\nother "), "it has one:\n{text}");
}

#[test]
fn c15_what_is_hidden_in_a_key_or_an_id_is_marked() {
    let mut tally = tally(TWO_INPUTS);
    let event = Event::builder("a\u{202e}b", "test", "made").subject("c\u{200b}d").build().unwrap();
    tally.add((0, Partition::ONLY), std::iter::once(Taken { position: 1, event: Ok(event) }));
    let text = tally.render(Duration::from_secs(1));
    for shown in [r"id a\u{202e}b of test", r"c\u{200b}d "] {
        assert!(text.contains(shown), "{text}");
    }
}

#[test]
fn d15_c15_of_inputs_of_one_partition_none_is_named() {
    let mut tally = tally(TWO_INPUTS);
    tally.add((0, Partition::ONLY), events(30));
    assert!(!tally.render(Duration::from_secs(1)).contains("partition"));
}
