//! How much inputs have given and have under way, by input and by partition.

use std::collections::BTreeMap;

use tokio::time::Instant;

use super::{
    Families, Metric,
    standings::{Ages, Standings},
};
use crate::{
    engine::{Control, InputView, PartitionView},
    source::InputState,
};

const OF_INPUT: &[&str] = &["input"];
const OF_PARTITION: &[&str] = &["input", "partition"];
const OF_STATE: &[&str] = &["input", "state"];

/// Of an input with more partitions than this, there are sums and no series for each.
pub const MOST_PARTITIONS: usize = 256;

metrics! {
    TAKEN: counter("greenroom_input_events_taken_total", OF_INPUT) =
        "Items taken from the input; kept when the input is removed.";
    STATE: gauge("greenroom_input_state", OF_STATE) =
        "1 for the current state of the input: connecting, joining, assigned, waiting, refused or \
         lost; 0 for the others.";
    LAG: gauge("greenroom_input_lag", OF_INPUT) =
        "Positions that the source has not delivered yet, of all partitions that know it.";
    IN_FLIGHT: gauge("greenroom_input_in_flight_bytes", OF_INPUT, Bytes) =
        "Bytes of events that are taken and not settled.";
    IN_FLIGHT_LIMIT: gauge("greenroom_input_in_flight_limit_bytes", OF_INPUT, Bytes) =
        "The limit at which the input pauses.";
    RUN_AHEAD: gauge("greenroom_input_run_ahead", OF_INPUT) =
        "Events that wait outside full pools.";
    RUN_AHEAD_LIMIT: gauge("greenroom_input_run_ahead_limit", OF_INPUT) =
        "The limit at which the input pauses.";
    PAUSED: gauge("greenroom_input_paused", OF_INPUT) =
        "1 while the input takes nothing more until something is settled, otherwise 0.";
    PARKED: gauge("greenroom_input_parked_events", OF_INPUT) =
        "Events of the input that wait behind parked keys.";
    OLDEST_OPEN: gauge("greenroom_input_oldest_open_seconds", OF_INPUT, Seconds) =
        "The longest of its partitions' `greenroom_partition_oldest_open_seconds`.";
    COMMIT_AGE: gauge("greenroom_input_commit_age_seconds", OF_INPUT, Seconds) =
        "The longest time that a settled event has waited to be stored as done; 0 if none waits.";
    COMMIT_SET: gauge("greenroom_input_commit_set_bytes", OF_INPUT, Bytes) =
        "The largest set of positions done beyond the lowest open one that a partition has stored \
         last. Kafka only.";
    AVOIDED: counter("greenroom_head_of_line_avoided_seconds_total", OF_INPUT, Seconds) =
        "Total time that events would have waited behind the lowest open position of their \
         partition, but did not; added up once a second.";
    PARTITION_LAG: gauge("greenroom_partition_lag", OF_PARTITION) =
        "Positions that the source has not delivered yet.";
    PARTITION_IN_FLIGHT: gauge("greenroom_partition_in_flight_bytes", OF_PARTITION, Bytes) =
        "Bytes of events that are taken and not settled.";
    PARTITION_PAUSED: gauge("greenroom_partition_paused", OF_PARTITION) =
        "1 while the partition is paused, for lack of room or by an operator, otherwise 0.";
    PARTITION_OLDEST: gauge("greenroom_partition_oldest_open_seconds", OF_PARTITION, Seconds) =
        "How long its lowest unsettled position has been open, to a second; 0 if none is open. \
         Only for inputs that keep positions.";
    PARTITION_SETTLED: gauge("greenroom_partition_last_settled_seconds", OF_PARTITION, Seconds) =
        "Time since an event of the partition was settled; missing before the first.";
    PARTITION_AHEAD: gauge("greenroom_partition_done_ahead", OF_PARTITION) =
        "Positions that are done beyond the lowest open one.";
}

/// Adds how much the inputs have given, including removed ones, and how much they have under way.
pub(super) fn add(
    families: &mut Families,
    control: &Control,
    views: &[InputView],
    standings: &Standings,
    now: Instant,
) {
    let mut taken = BTreeMap::<String, u64>::new();
    // A replaced input appears twice.
    for input in control.inputs() {
        *taken.entry(input.name).or_default() += input.taken;
    }
    for (name, events) in &taken {
        families.add(&TAKEN, &[name], *events);
    }
    for (input, avoided) in standings.avoided() {
        families.add(&AVOIDED, &[input], avoided);
    }
    for view in views {
        add_input(families, view, standings, now);
        if view.partitions.len() <= MOST_PARTITIONS {
            for partition in &view.partitions {
                let ages = standings.ages(&view.name, partition.partition, now);
                add_partition(families, &view.name, partition, ages);
            }
        }
    }
}

fn add_input(families: &mut Families, view: &InputView, standings: &Standings, now: Instant) {
    let name = view.name.as_str();
    for state in InputState::ALL {
        families.add(&STATE, &[name, state.word()], state == view.state());
    }
    families.add(&IN_FLIGHT, &[name], view.in_flight_bytes);
    families.add(&IN_FLIGHT_LIMIT, &[name], view.in_flight_limit);
    families.add(&RUN_AHEAD, &[name], view.held_back);
    families.add(&RUN_AHEAD_LIMIT, &[name], view.run_ahead);
    families.add(&PAUSED, &[name], view.is_paused());
    families.add(&PARKED, &[name], view.parked);
    let kept = || view.partitions.iter().filter_map(|partition| partition.standing);
    if let Some(lag) = kept().filter_map(|standing| standing.lag).reduce(u64::saturating_add) {
        families.add(&LAG, &[name], lag);
    }
    if let Some(bytes) = kept().filter_map(|standing| standing.ahead.set_bytes).max() {
        families.add(&COMMIT_SET, &[name], bytes);
    }
    let ages = view.partitions.iter().filter_map(|one| standings.ages(name, one.partition, now));
    let older = |one: Ages, other: Ages| Ages {
        oldest_open: one.oldest_open.max(other.oldest_open),
        commit: one.commit.max(other.commit),
    };
    if let Some(ages) = ages.reduce(older) {
        families.add(&OLDEST_OPEN, &[name], ages.oldest_open);
        families.add(&COMMIT_AGE, &[name], ages.commit);
    }
}

fn add_partition(families: &mut Families, input: &str, view: &PartitionView, ages: Option<Ages>) {
    let labels: &[&str] = &[input, &view.partition.to_string()];
    families.add(&PARTITION_IN_FLIGHT, labels, view.in_flight_bytes);
    families.add(&PARTITION_PAUSED, labels, view.is_paused);
    if let Some(settled) = view.last_settled {
        families.add(&PARTITION_SETTLED, labels, settled);
    }
    if let Some(standing) = view.standing {
        families.add(&PARTITION_AHEAD, labels, standing.ahead.positions);
        if let Some(lag) = standing.lag {
            families.add(&PARTITION_LAG, labels, lag);
        }
    }
    if let Some(ages) = ages {
        families.add(&PARTITION_OLDEST, labels, ages.oldest_open);
    }
}
