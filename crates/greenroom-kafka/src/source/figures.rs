//! The statistics of a second (`statistics.interval.ms`).

use std::{collections::HashMap, time::Duration};

use rdkafka::{
    Statistics,
    statistics::{Broker, Partition},
};

use crate::place::Place;

/// How librdkafka calls its connection to the coordinator of the group.
const COORDINATOR: &str = "GroupCoordinator";
/// The state of a broker that answers.
const UP: &str = "UP";

/// Of one moment.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Figures {
    /// Which, by the clock of librdkafka.
    pub(super) at: Duration,
    /// How far the records of partitions go.
    pub(super) ends: HashMap<Place, u64>,
    /// Partitions whose available records were all fetched and taken, with the offset reached: that
    /// may be beyond their last record, behind markers of transactions, or records of aborted ones.
    pub(super) fetched: HashMap<Place, u64>,
    /// How long ago something was sent to the coordinator that it has answered.
    pub(super) coordinator: Option<Duration>,
    /// A broker answers.
    pub(super) is_connected: bool,
}

impl Figures {
    pub(super) fn from_statistics(statistics: &Statistics) -> Self {
        let mut figures = Self::default();
        for (topic, known) in &statistics.topics {
            for (number, partition) in &known.partitions {
                let Some(end) = end(partition) else { continue };
                let place = Place::new(topic, *number);
                if is_fetched(statistics, partition, end) {
                    figures.fetched.insert(place.clone(), end);
                }
                figures.ends.insert(place, end);
            }
        }
        figures.at = Duration::from_micros(u64::try_from(statistics.ts).unwrap_or_default());
        figures.is_connected = statistics.brokers.values().any(|broker| broker.state == UP);
        figures.coordinator = coordinator(statistics);
        figures
    }
}

/// Behind the last record of a transaction that is open, nothing can be read.
fn end(partition: &Partition) -> Option<u64> {
    let end = match partition.ls_offset {
        stable if stable >= 0 => stable,
        _ => partition.hi_offset,
    };
    u64::try_from(end).ok()
}

/// They are current only if the thread of the broker runs, which records them.
fn is_fetched(statistics: &Statistics, partition: &Partition, end: u64) -> bool {
    let is_up = |broker: &Broker| broker.nodeid == partition.broker && broker.state == UP;
    u64::try_from(partition.next_offset) == Ok(end)
        && partition.fetchq_cnt == 0
        && partition.fetch_state == "active"
        && statistics.brokers.values().any(is_up)
}

/// An answer says that the group knew this member when the request was sent. While a member waits
/// to be let into the next generation, the coordinator answers when all have come.
fn coordinator(statistics: &Statistics) -> Option<Duration> {
    let is_it = |broker: &&Broker| broker.name.starts_with(COORDINATOR) && broker.state == UP;
    let broker = statistics.brokers.values().find(is_it)?;
    let joins = |state: &str| matches!(state, "wait-join" | "wait-sync");
    if statistics.cgrp.as_ref().is_some_and(|group| joins(&group.join_state)) {
        return Some(Duration::ZERO);
    }
    let is_answered = broker.waitresp_cnt == 0 && broker.outbuf_cnt == 0;
    let sent = u64::try_from(broker.txidle).ok().filter(|_| is_answered)?;
    Some(Duration::from_micros(sent))
}

#[cfg(test)]
mod tests {
    use rdkafka::statistics::{ConsumerGroup, Topic};

    use super::*;

    fn broker(name: &str, nodeid: i32, txidle: i64) -> (String, Broker) {
        let (name, state) = (name.to_owned(), UP.to_owned());
        (name.clone(), Broker { name, nodeid, state, txidle, ..Broker::default() })
    }

    fn statistics(partition: Partition) -> Statistics {
        let mut statistics = Statistics { ts: 5_000_000, ..Statistics::default() };
        statistics.brokers =
            [broker("b:9092/1", 1, 7), broker(COORDINATOR, 1, 2_000_000)].into_iter().collect();
        let mut topic = Topic::default();
        topic.partitions.insert(3, partition);
        statistics.topics.insert("orders".to_owned(), topic);
        statistics
    }

    /// Read to its end, of which the last records are markers.
    fn at_its_end() -> Partition {
        let fetch_state = "active".to_owned();
        Partition {
            broker: 1,
            fetch_state,
            next_offset: 102,
            ls_offset: 102,
            hi_offset: 110,
            ..Partition::default()
        }
    }

    #[test]
    fn f10_a_partition_is_fetched_to_its_end_where_nothing_waits_and_its_broker_answers() {
        let fetched =
            |partition: Partition| Figures::from_statistics(&statistics(partition)).fetched.len();
        assert_eq!(fetched(at_its_end()), 1);
        assert_eq!(fetched(Partition { fetchq_cnt: 1, ..at_its_end() }), 0, "some wait");
        assert_eq!(fetched(Partition { next_offset: 101, ..at_its_end() }), 0);
        assert_eq!(fetched(Partition { broker: 2, ..at_its_end() }), 0, "it may be of long ago");
        assert_eq!(fetched(Partition { fetch_state: "none".to_owned(), ..at_its_end() }), 0);
        let figures = Figures::from_statistics(&statistics(at_its_end()));
        assert_eq!(figures.ends[&Place::new("orders", 3)], 102);
    }

    #[test]
    fn d12_the_coordinator_has_heard_of_what_it_has_answered() {
        let mut statistics = statistics(at_its_end());
        let heard =
            |of: &Statistics| Figures::from_statistics(of).coordinator.map(|age| age.as_secs());
        assert_eq!(
            (heard(&statistics), Figures::from_statistics(&statistics).at.as_secs()),
            (Some(2), 5)
        );
        let coordinator = |of: &mut Statistics, waits| {
            of.brokers.get_mut(COORDINATOR).unwrap().waitresp_cnt = waits;
        };
        coordinator(&mut statistics, 1);
        assert_eq!(heard(&statistics), None, "the last one may never be answered");
        let join_state = "wait-join".to_owned();
        statistics.cgrp = Some(ConsumerGroup { join_state, ..ConsumerGroup::default() });
        assert_eq!(heard(&statistics), Some(0), "it answers when all have come");
        statistics.brokers.get_mut(COORDINATOR).unwrap().state = "CONNECT".to_owned();
        assert_eq!(heard(&statistics), None);
    }
}
