//! Random layers around handlers that fail, hang and panic: nothing is lost, and order holds.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use greenroom::{Restarts, batch::Batches};
use greenroom_bus::{
    engine::PoolConfig,
    event::Event,
    handler::{Failure, FailureKind, HandlerFactory, Outputs},
    layer::{
        CircuitBreaker, Correlation, Deduplication, Layers, Metrics, RateLimitLayer, TimeoutLayer,
        Traced,
    },
};
use proptest::prelude::*;
use tower::limit::ConcurrencyLimitLayer;

use crate::messages::support::{Bench, event, handlers::handle, ms, on, pool, source::Script};

#[derive(Debug, Clone, Copy)]
enum Kind {
    Traced,
    Correlation,
    Timeout,
    Rate,
    AtOnce(usize),
    Breaker,
    Metrics,
    Deduplication,
}

#[derive(Debug, Clone, Copy)]
enum Wish {
    Well,
    Slow(u64),
    /// Fails so many attempts.
    Fails(u32),
    Rejects,
    /// Hangs at the first attempt; there is a limit on time somewhere.
    Hangs,
    Panics,
    /// Is given back unstarted twice.
    Released,
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        Just(Kind::Traced),
        Just(Kind::Correlation),
        Just(Kind::Rate),
        (1..4_usize).prop_map(Kind::AtOnce),
        Just(Kind::Breaker),
        Just(Kind::Metrics),
        Just(Kind::Deduplication),
    ]
}

fn wish() -> impl Strategy<Value = Wish> {
    prop_oneof![
        8 => Just(Wish::Well),
        3 => (1..40_u64).prop_map(Wish::Slow),
        2 => (1..3_u32).prop_map(Wish::Fails),
        1 => Just(Wish::Rejects),
        1 => Just(Wish::Hangs),
        1 => Just(Wish::Panics),
        1 => Just(Wish::Released),
    ]
}

/// One limit on time, somewhere among the others, so that nothing hangs for ever.
fn layers(kinds: &[Kind], limit_at: usize, metrics: &Metrics) -> Layers {
    let mut kinds = kinds.to_vec();
    kinds.insert(limit_at.min(kinds.len()), Kind::Timeout);
    let add = |layers: Layers, kind: &Kind| match kind {
        Kind::Traced => layers.layer(Traced),
        Kind::Correlation => layers.layer(Correlation),
        Kind::Timeout => layers.layer(TimeoutLayer::new(ms(200))),
        Kind::Rate => layers.layer(RateLimitLayer::new(20, ms(100))),
        Kind::AtOnce(most) => layers.layer(ConcurrencyLimitLayer::new(*most)),
        Kind::Breaker => layers.layer(CircuitBreaker::new(4, ms(100))),
        Kind::Metrics => layers.layer(Metrics::default()),
        Kind::Deduplication => layers.layer(Deduplication::within(Duration::from_secs(3_600))),
    };
    kinds.iter().fold(Layers::new().layer(metrics.clone()), add)
}

fn factory(wishes: &[Wish]) -> Arc<dyn HandlerFactory> {
    let wishes: Vec<_> = wishes.iter().map(|wish| (*wish, AtomicU32::new(0))).collect();
    handle(move |event, attempt| {
        let (wish, times) = &wishes[event.id().parse::<usize>().unwrap()];
        let (wish, times) = (*wish, times.fetch_add(1, Ordering::Relaxed));
        async move {
            match wish {
                Wish::Slow(wait) => tokio::time::sleep(ms(wait)).await,
                Wish::Hangs if attempt == 1 => std::future::pending().await,
                Wish::Panics if attempt == 1 => panic!("as it was drawn"),
                Wish::Rejects => return Err(Failure::reject("as it was drawn")),
                Wish::Fails(often) if attempt <= often => {
                    return Err(Failure::retry("as it was drawn"));
                }
                Wish::Released if times < 2 => {
                    return Err(Failure::new(FailureKind::Released, "as it was drawn"));
                }
                _ => {}
            }
            Ok(Outputs::Same)
        }
    })
}

/// The order in which events of a key left is that in which they came.
fn assert_order(ids: &[String], events: &[Event]) {
    let mut last: HashMap<&str, usize> = HashMap::new();
    for id in ids {
        let place: usize = id.parse().unwrap();
        let Some(key) = events[place].subject() else { continue };
        let before = last.insert(key, place);
        assert!(before.is_none_or(|before| before < place), "{id} left out of order: {ids:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn r07_whatever_layers_do_the_ledger_adds_up_and_order_holds(
        kinds in prop::collection::vec(kind(), 0..5),
        limit_at in 0..5_usize,
        wishes in prop::collection::vec((wish(), 0..4_u8), 1..30),
        workers in 1..4_usize,
        batch in prop::option::of(2..6_usize),
    ) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let metrics = Metrics::default();
        let layers = layers(&kinds, limit_at, &metrics);
        let events: Vec<Event> = wishes
            .iter()
            .enumerate()
            .map(|(n, (_, key))| event(n, "t", Some(&key.to_string())))
            .collect();
        let only: Vec<Wish> = wishes.iter().map(|(wish, _)| *wish).collect();
        let given = events.clone();
        let (report, ids) = runtime.unwrap().block_on(async move {
            let restarts = Restarts { max: 1_000, ..Restarts::default() };
            let batches = batch.map(Batches::of);
            let config = PoolConfig { restarts, batches, ..pool(workers, 100) };
            let bench = Bench::new().set(|engine| {
                engine
                    .input(Box::new(Script::of(given)))
                    .pool("default", config)
                    .handler("h", on(&["t"], factory(&only)))
                    .layers(&layers)
            });
            let sink = bench.sink.clone();
            (bench.run().await, sink.ids())
        });
        prop_assert_eq!(report.taken, events.len() as u64);
        prop_assert_eq!((report.refused, report.ignored), (0, 0));
        prop_assert_eq!(ids.len() as u64, report.handled);
        assert_order(&ids, &events);
        let seen = metrics.snapshot();
        prop_assert_eq!(seen.in_hand, 0);
        let sum = seen.handled + seen.failed + seen.timed_out + seen.rejected + seen.crashed
            + seen.released + seen.cancelled;
        prop_assert_eq!(seen.begun, sum);
        // An attempt that succeeded inside of a batch that panicked is attempted again.
        prop_assert!(seen.handled >= report.handled);
    }
}
