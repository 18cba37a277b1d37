//! Random engines: what is in them, and what their handlers do.

use greenroom::{limits::Rate, shares::ShareLimits};
use greenroom_bus::engine::{Decision, NoHandler, OnFull, OutagePer};
use proptest::prelude::*;

use crate::engine::support::{ms, sink::Behaviour};

/// Of these, the last has no handler.
pub(super) const TYPES: [&str; 5] =
    ["order.placed", "order.paid", "price", "stock", "nobody.asked"];
pub(super) const HANDLERS: [(&str, &str); 3] =
    [("orders", "order.*"), ("prices", "price"), ("stock", "stock")];

/// What handling one event comes to.
#[derive(Debug, Clone, Copy)]
pub(super) enum Deed {
    Pass,
    Nothing,
    Several(u8),
    /// Sends one event back in, which is passed on then.
    Back,
    /// Fails so often, then passes.
    Fail(u32),
    Panic(u32),
    Pause(u32),
    Release(u32),
    TimeOut(u32),
    /// Holds its share so often, then passes.
    Hold(u32),
    /// Pauses its share once, then passes.
    Gone,
    Reject,
    Crash,
    /// Suspends for ever.
    Never,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Item {
    Malformed,
    Event { ty: usize, key: Option<u8>, share: Option<u8>, ms: u64, deed: Deed },
}

#[derive(Debug, Clone)]
pub(super) struct Input {
    pub(super) batches: Vec<(u64, Vec<Item>)>,
    pub(super) fails: bool,
    /// It comes by a change, or never.
    pub(super) late: bool,
}

/// The shares of a pool.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sharing {
    pub(super) limits: ShareLimits,
    /// Those of the share [`NAMED`].
    pub(super) named: ShareLimits,
    pub(super) queue: Option<usize>,
    pub(super) on_full: Option<OnFull>,
}

/// The share that has limits of its own.
pub(super) const NAMED: &str = "0";

/// The share of the events of a handler.
#[derive(Debug, Clone, Copy)]
pub(super) enum By {
    /// As its pool says: their tenant, if that has shares.
    Pool,
    Key,
    Nothing,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub(super) workers: usize,
    pub(super) queue: usize,
    pub(super) on_full: OnFull,
    pub(super) ordered: bool,
    pub(super) key_required: bool,
    /// What fails for good parks its key.
    pub(super) parks: bool,
    pub(super) batches: bool,
    /// Those of the pool.
    pub(super) sharing: Option<Sharing>,
    /// That of the handler.
    pub(super) share_by: By,
    /// The place of its pool.
    pub(super) pool: usize,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Halt {
    Drain,
    Now,
    DrainThenNow(u64),
}

/// What is changed while the engine runs. Pools, handlers, inputs and outputs are meant by their
/// places among those that there are.
#[derive(Debug, Clone, Copy)]
pub(super) enum Change {
    Workers(usize, usize),
    Queue(usize, usize),
    Rate(usize, Option<u64>),
    Limit(usize, Option<usize>),
    Attempts(usize, u32),
    PausePool(usize),
    ResumePool(usize),
    PauseHandler(usize),
    ResumeHandler(usize),
    ShareQueue(usize, Option<usize>),
    /// Of all shares that are not named, and none is.
    Defaults(usize, ShareLimits),
    /// Of one share; `None`: as configured.
    Share(usize, u8, Option<ShareLimits>),
    HoldShare(usize, u8, u64),
    PauseShare(usize, u8),
    ResumeShare(usize, u8),
    /// About every key that is parked.
    Decide(Decision),
    /// The next one that is late.
    AddInput,
    RemoveInput(usize),
    /// As the first, or as the last.
    AddOutput(bool),
    /// Unless it is the only one.
    RemoveOutput(usize),
}

#[derive(Debug, Clone)]
pub(super) struct Program {
    pub(super) inputs: Vec<Input>,
    pub(super) rows: [Row; 3],
    pub(super) sink: Behaviour,
    pub(super) letters: Behaviour,
    pub(super) no_handler: NoHandler,
    /// Whether handlers may be taken to be in outage for failures in a row.
    pub(super) outages: bool,
    pub(super) per: OutagePer,
    /// The target of this handler is down, from this moment until that.
    pub(super) down: Option<(usize, u64, u64)>,
    /// For this share alone.
    pub(super) down_for: Option<u8>,
    /// A small budget of restarts.
    pub(super) fragile: bool,
    pub(super) halt: Option<(u64, Halt)>,
    pub(super) deadline: u64,
    /// Room on the way back, where there is one.
    pub(super) loopback: Option<usize>,
    /// Each so long after the one before it.
    pub(super) changes: Vec<(u64, Change)>,
    /// So long after the last change, caps of 0 are raised and all that is paused is resumed.
    pub(super) caps_end: u64,
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        12 => Just(Deed::Pass),
        2 => Just(Deed::Nothing),
        3 => (0u8..4).prop_map(Deed::Several),
        2 => Just(Deed::Back),
        3 => (1u32..5).prop_map(Deed::Fail),
        1 => (1u32..3).prop_map(Deed::Panic),
        1 => (1u32..4).prop_map(Deed::Pause),
        1 => (1u32..4).prop_map(Deed::Release),
        1 => (1u32..4).prop_map(Deed::TimeOut),
        1 => (1u32..4).prop_map(Deed::Hold),
        1 => Just(Deed::Gone),
        1 => Just(Deed::Reject),
        1 => Just(Deed::Crash),
    ]
}

fn item() -> impl Strategy<Value = Item> {
    let key =
        prop_oneof![1 => Just(None), 6 => (0u8..4).prop_map(Some), 2 => any::<u8>().prop_map(Some)];
    let ms = prop_oneof![3 => Just(0u64), 3 => 1u64..5, 1 => 5u64..200];
    prop_oneof![
        1 => Just(Item::Malformed),
        20 => (0..TYPES.len(), key, prop::option::weighted(0.9, 0u8..4), ms, deed())
            .prop_map(|(ty, key, share, ms, deed)| Item::Event { ty, key, share, ms, deed }),
    ]
}

fn limits() -> impl Strategy<Value = ShareLimits> {
    let rate = prop::option::weighted(0.3, 5u64..200);
    (1u32..5, prop::option::weighted(0.5, 0usize..6), rate).prop_map(|(weight, in_hand, rate)| {
        ShareLimits::default().weight(weight).in_hand(in_hand).rate(rate.map(Rate::per_second))
    })
}

fn sharing() -> impl Strategy<Value = Sharing> {
    let on_full = prop_oneof![8 => Just(None), 1 => Just(Some(OnFull::Reject)), 1 => Just(Some(OnFull::DeadLetter))];
    (limits(), limits(), prop::option::of(1usize..5), on_full)
        .prop_map(|(limits, named, queue, on_full)| Sharing { limits, named, queue, on_full })
}

fn input() -> impl Strategy<Value = Input> {
    let wait = prop_oneof![3 => Just(0u64), 1 => 1u64..100];
    let batches = prop::collection::vec((wait, prop::collection::vec(item(), 0..12)), 0..8);
    (batches, prop::bool::weighted(0.1)).prop_map(|(batches, fails)| Input {
        batches,
        fails,
        late: false,
    })
}

fn row() -> impl Strategy<Value = Row> {
    let on_full = prop_oneof![4 => Just(OnFull::Pause), 1 => Just(OnFull::Reject), 1 => Just(OnFull::DeadLetter)];
    let ordered = (prop::bool::weighted(0.8), prop::bool::weighted(0.2), prop::bool::weighted(0.3));
    let share_by = prop_oneof![8 => Just(By::Pool), 1 => Just(By::Key), 1 => Just(By::Nothing)];
    let shared = (prop::option::of(sharing()), share_by, prop::bool::weighted(0.2));
    (
        1usize..5,
        prop_oneof![Just(1usize), 2usize..9, Just(100)],
        on_full,
        ordered,
        shared,
        0usize..3,
    )
        .prop_map(|(workers, queue, on_full, ordered, (sharing, share_by, batches), pool)| {
            let (ordered, key_required, parks) = ordered;
            Row {
                workers,
                queue,
                on_full,
                ordered,
                key_required,
                parks,
                batches,
                sharing,
                share_by,
                pool,
            }
        })
}

fn store() -> impl Strategy<Value = Behaviour> {
    let latency = prop_oneof![2 => Just(0u64), 1 => 1u64..20];
    let fails = prop::option::weighted(0.08, 0usize..20);
    (1usize..20, latency, fails).prop_map(|(room, latency, fails_after)| Behaviour {
        room,
        latency: ms(latency),
        fails_after,
        ..Behaviour::default()
    })
}

/// Rejects events for good, or fails at them for now, or does neither.
fn sink() -> impl Strategy<Value = Behaviour> {
    let one_of = || prop::option::weighted(0.3, 2u32..10);
    (store(), one_of(), one_of()).prop_map(|(store, rejects, stumbles)| Behaviour {
        rejects,
        stumbles,
        ..store
    })
}

fn change() -> impl Strategy<Value = Change> {
    let three = 0usize..3;
    prop_oneof![
        2 => (three.clone(), 1usize..6).prop_map(|(pool, workers)| Change::Workers(pool, workers)),
        1 => (three.clone(), 1usize..20).prop_map(|(pool, events)| Change::Queue(pool, events)),
        2 => (three.clone(), prop::option::of(5u64..200)).prop_map(|(pool, rate)| Change::Rate(pool, rate)),
        2 => (three.clone(), prop::option::of(1usize..5)).prop_map(|(pool, limit)| Change::Limit(pool, limit)),
        1 => (three.clone(), 1u32..5).prop_map(|(handler, attempts)| Change::Attempts(handler, attempts)),
        1 => three.clone().prop_map(Change::PausePool),
        1 => three.clone().prop_map(Change::ResumePool),
        1 => three.clone().prop_map(Change::PauseHandler),
        1 => three.prop_map(Change::ResumeHandler),
        1 => decision().prop_map(Change::Decide),
        8 => change_of_shares(),
        2 => Just(Change::AddInput),
        2 => (0usize..4).prop_map(Change::RemoveInput),
        4 => any::<bool>().prop_map(Change::AddOutput),
        4 => (0usize..4).prop_map(Change::RemoveOutput),
    ]
}

fn change_of_shares() -> impl Strategy<Value = Change> {
    let share = || (0usize..3, 0u8..4);
    prop_oneof![
        (0usize..3, prop::option::of(1usize..9))
            .prop_map(|(pool, events)| Change::ShareQueue(pool, events)),
        (0usize..3, limits()).prop_map(|(pool, limits)| Change::Defaults(pool, limits)),
        (share(), prop::option::weighted(0.7, limits()))
            .prop_map(|((pool, share), limits)| Change::Share(pool, share, limits)),
        (share(), 0u64..200).prop_map(|((pool, share), ms)| Change::HoldShare(pool, share, ms)),
        share().prop_map(|(pool, share)| Change::PauseShare(pool, share)),
        share().prop_map(|(pool, share)| Change::ResumeShare(pool, share)),
    ]
}

fn decision() -> impl Strategy<Value = Decision> {
    prop_oneof![Just(Decision::Resume), Just(Decision::Skip), Just(Decision::Drop)]
}

/// Half of the programs are left as they are.
fn changes() -> impl Strategy<Value = Vec<(u64, Change)>> {
    let wait = prop_oneof![2 => Just(0u64), 3 => 1u64..20, 1 => 20u64..200];
    prop_oneof![
        1 => Just(Vec::new()),
        1 => prop::collection::vec((wait, change()), 1..25),
    ]
}

/// Those that are there at the start, and those that come.
fn inputs() -> impl Strategy<Value = Vec<Input>> {
    let late = prop::collection::vec(input(), 0..4);
    (prop::collection::vec(input(), 1..4), late).prop_map(|(mut inputs, late)| {
        inputs.extend(late.into_iter().map(|input| Input { late: true, ..input }));
        inputs
    })
}

fn halt() -> impl Strategy<Value = Option<(u64, Halt)>> {
    let how = prop_oneof![
        3 => Just(Halt::Drain),
        1 => Just(Halt::Now),
        1 => (0u64..300).prop_map(Halt::DrainThenNow)
    ];
    prop::option::weighted(0.4, (0u64..500, how))
}

pub(super) fn program() -> impl Strategy<Value = Program> {
    let no_handler =
        prop_oneof![Just(NoHandler::DeadLetter), Just(NoHandler::Ignore), Just(NoHandler::Refuse)];
    (
        inputs(),
        [row(), row(), row()],
        (sink(), store()),
        no_handler,
        (
            prop::bool::weighted(0.2),
            prop::bool::weighted(0.2),
            prop::option::weighted(0.2, (0usize..3, 0u64..300, 1u64..20_000)),
            (
                prop_oneof![Just(OutagePer::Handler), Just(OutagePer::Share)],
                prop::option::of(0u8..4),
            ),
        ),
        // One event that is never done, in programs that are stopped.
        (halt(), any::<prop::sample::Index>(), prop::bool::weighted(0.3)),
        prop_oneof![Just(0u64), 1u64..2_000],
        (prop::option::weighted(0.5, 1usize..10), changes(), prop_oneof![Just(0u64), 1u64..500]),
    )
        .prop_map(|(mut inputs, rows, stores, no_handler, modes, halts, deadline, live)| {
            let ((sink, letters), (loopback, changes, caps_end)) = (stores, live);
            let (halt, place, stuck) = halts;
            if halt.is_some() && stuck {
                get_stuck(&mut inputs, place);
            }
            let (outages, fragile, down, (per, down_for)) = modes;
            let down = down.map(|(handler, from, time)| (handler, from, from + time));
            Program {
                inputs,
                rows,
                sink,
                letters,
                no_handler,
                outages,
                per,
                down,
                down_for,
                fragile,
                halt,
                deadline,
                loopback,
                changes,
                caps_end,
            }
        })
}

fn get_stuck(inputs: &mut [Input], place: prop::sample::Index) {
    let items = inputs.iter_mut().flat_map(|input| &mut input.batches).flat_map(|(_, items)| items);
    let mut deeds: Vec<&mut Deed> = items
        .filter_map(|item| match item {
            Item::Event { deed, .. } => Some(deed),
            Item::Malformed => None,
        })
        .collect();
    if !deeds.is_empty() {
        let place = place.index(deeds.len());
        *deeds[place] = Deed::Never;
    }
}
