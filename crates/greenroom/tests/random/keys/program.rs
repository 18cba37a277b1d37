//! The parts of a program.

use std::{
    hash::{Hash, Hasher},
    sync::Arc,
    time::Duration,
};

use greenroom::{Class, FailureTable, FinalAction, Rule};
use proptest::prelude::*;

/// What the handler of a message does, for as many attempts as the number says; later attempts
/// return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deed {
    Return,
    Sleep(u64),
    Yield,
    Fail(u32),
    /// With the message left in place.
    LookAndFail(u32),
    /// All messages of a batch fail.
    FailAll(u32),
    Panic(u32),
    LookAndPanic(u32),
    /// Until the pool drops it.
    Hang(u32),
}

pub(crate) const ALWAYS: u32 = u32::MAX;

#[derive(Debug, Clone)]
pub(crate) struct Message {
    pub(crate) number: u32,
    pub(crate) key: Option<u8>,
    pub(crate) deed: Deed,
    /// The message is in the pool, or on its way there, as long as one of these is left.
    pub(crate) token: Arc<()>,
}

/// A key with few hash values, so that different keys collide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key(pub(crate) u8, pub(crate) u8);

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.0 % self.1).hash(state);
    }
}

pub(crate) const KEYS: u8 = 5;

#[derive(Debug, Clone, Copy)]
pub(crate) enum How {
    Send,
    TrySend,
    /// Given up after this many milliseconds.
    SendTimeout(u64),
    CancelledSend(u64),
    /// With a deadline for its start.
    Expiring(u64),
    Call,
    CancelledCall(u64),
    /// By its own task.
    CallAside,
    Many(u32),
    /// With a permit taken before.
    Reserved,
}

/// What an operator decides about a parked key.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Decision {
    Release,
    Replay,
    Remove,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    /// One of a few senders does this after its earlier orders.
    Work(u8, How, Option<u8>, Class, Deed),
    Decide(u8, Decision),
    /// About every key that is parked.
    DecideAll(Decision),
    Resize(usize),
    Enable(usize),
    /// The worker at this place, wrapping around.
    Kill(usize),
    /// Every fourth message from this one on, if it waits.
    Withdraw(u32),
    Wait(u64),
    Breathe,
    /// An order about one of the shares, if there are any.
    Share(u32, ShareOrder),
}

/// An operator's action on a share.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ShareOrder {
    Hold(u64),
    Pause,
    Resume,
    Cap(usize),
    Weigh(u32),
    /// This many in 10 ms.
    Rate(u64),
    Unset,
}

/// How messages are assigned to shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sharing {
    None,
    ByKey,
    /// Messages of one key belong to several shares.
    ByNumber,
}

pub(crate) const SHARES: u32 = 3;

pub(crate) const SENDERS: u8 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    Wait,
    Reject,
    DropNewest,
    DropOldest,
    Fallback,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Everything possible is handled and decided; then the pool is checked and stopped.
    Quiet,
    Within(u64),
    Now,
}

/// How the pool is configured for failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Telling {
    /// A policy, but no copies: a message that a handler has consumed is gone.
    Policy,
    /// The same with copies.
    Retries,
    /// `on_final_failure`.
    OnFinal,
}

/// The size of a batch, and how long it waits for messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) most: usize,
    pub(crate) within: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) seed: u64,
    pub(crate) workers: usize,
    pub(crate) capacity: usize,
    pub(crate) max_per_key: Option<usize>,
    pub(crate) max_parked: usize,
    /// Parked keys take no room.
    pub(crate) apart: bool,
    pub(crate) key_required: bool,
    /// Keys have this many hash values.
    pub(crate) hashes: u8,
    pub(crate) attempts: u32,
    pub(crate) finally: u8,
    pub(crate) telling: Telling,
    pub(crate) poison_limit: u32,
    pub(crate) max_restarts: u32,
    pub(crate) holds: bool,
    pub(crate) limited: bool,
    pub(crate) quick: bool,
    pub(crate) full: Full,
    pub(crate) batches: Option<Sizes>,
    pub(crate) sharing: Sharing,
    pub(crate) steps: Vec<Step>,
    pub(crate) ending: Ending,
}

impl Program {
    pub(crate) fn finally(&self) -> FinalAction {
        match self.finally {
            0..5 => FinalAction::ParkKey,
            5..8 => FinalAction::DeadLetter,
            8 => FinalAction::Return,
            9 => FinalAction::Drop,
            _ => FinalAction::StopPool,
        }
    }

    pub(crate) fn table(&self) -> FailureTable {
        let finally = match self.telling {
            Telling::OnFinal => FinalAction::DeadLetter,
            _ => self.finally(),
        };
        let [first, longest] = if self.seed & 32 == 0 { [5, 50] } else { [0, 0] };
        let wait = Duration::from_millis;
        let backoff = greenroom::Backoff::new(wait(first), wait(longest));
        FailureTable::all(match self.attempts {
            1 => Rule::Once(finally),
            attempts => Rule::Retry { attempts, backoff, finally },
        })
    }

    pub(crate) fn max_behind_parked(&self) -> usize {
        if self.apart { self.max_parked } else { self.max_parked.min(self.max_per_key()) }
    }

    pub(crate) fn max_per_key(&self) -> usize {
        self.max_per_key.unwrap_or(self.capacity.div_ceil(4))
    }

    /// The most that one handler has in hand.
    pub(crate) fn most(&self) -> usize {
        self.batches.map_or(1, |sizes| sizes.most)
    }

    pub(crate) fn key(&self, key: u8) -> Key {
        Key(key, self.hashes)
    }
}

fn deed() -> impl Strategy<Value = Deed> {
    let often = || prop_oneof![3 => 1u32..5, 1 => Just(ALWAYS)];
    prop_oneof![
        8 => Just(Deed::Return),
        4 => (0u64..30).prop_map(Deed::Sleep),
        2 => Just(Deed::Yield),
        3 => often().prop_map(Deed::Fail),
        1 => often().prop_map(Deed::LookAndFail),
        1 => often().prop_map(Deed::FailAll),
        1 => often().prop_map(Deed::Panic),
        1 => often().prop_map(Deed::LookAndPanic),
        1 => often().prop_map(Deed::Hang),
    ]
}

fn how() -> impl Strategy<Value = How> {
    prop_oneof![
        6 => Just(How::Send),
        6 => Just(How::TrySend),
        1 => (0u64..20).prop_map(How::SendTimeout),
        1 => (0u64..20).prop_map(How::CancelledSend),
        1 => (0u64..20).prop_map(How::Expiring),
        1 => Just(How::Call),
        1 => (0u64..20).prop_map(How::CancelledCall),
        3 => Just(How::CallAside),
        1 => (1u32..7).prop_map(How::Many),
        1 => Just(How::Reserved),
    ]
}

fn decision() -> impl Strategy<Value = Decision> {
    prop_oneof![Just(Decision::Release), Just(Decision::Replay), Just(Decision::Remove)]
}

fn step() -> impl Strategy<Value = Step> {
    let key =
        prop_oneof![1 => Just(None), 6 => (0u8..2).prop_map(Some), 3 => (0..KEYS).prop_map(Some)];
    let class = prop_oneof![5 => Just(Class::Normal), 1 => Just(Class::Urgent)];
    prop_oneof![
        30 => (0..SENDERS, how(), key, class, deed())
            .prop_map(|(who, how, key, class, deed)| Step::Work(who, how, key, class, deed)),
        3 => (0..KEYS, decision()).prop_map(|(key, decision)| Step::Decide(key, decision)),
        2 => decision().prop_map(Step::DecideAll),
        1 => (0usize..6).prop_map(Step::Resize),
        1 => (0usize..8).prop_map(Step::Enable),
        1 => (0usize..6).prop_map(Step::Kill),
        2 => (0u32..4).prop_map(Step::Withdraw),
        4 => (0u64..40).prop_map(Step::Wait),
        2 => Just(Step::Breathe),
    ]
}

fn telling() -> impl Strategy<Value = Telling> {
    prop_oneof![1 => Just(Telling::Policy), 1 => Just(Telling::Retries), 2 => Just(Telling::OnFinal)]
}

fn full() -> impl Strategy<Value = Full> {
    prop_oneof![
        5 => Just(Full::Wait),
        1 => Just(Full::Reject),
        1 => Just(Full::DropNewest),
        1 => Just(Full::DropOldest),
        1 => Just(Full::Fallback),
    ]
}

fn sizes() -> impl Strategy<Value = Option<Sizes>> {
    let within = prop_oneof![Just(0u64), 1u64..30];
    let sizes = (1usize..6, within).prop_map(|(most, within)| Sizes { most, within });
    prop_oneof![1 => Just(None), 1 => sizes.prop_map(Some)]
}

fn ending() -> impl Strategy<Value = Ending> {
    prop_oneof![
        4 => Just(Ending::Quiet),
        1 => (0u64..60).prop_map(Ending::Within),
        1 => Just(Ending::Now),
    ]
}

/// Enough that the pool takes this for usual.
fn handlers_that_wait(workers: usize) -> impl Iterator<Item = Step> {
    let key = |n: usize| (!n.is_multiple_of(7)).then_some((n % usize::from(KEYS)) as u8);
    let work = move |n| Step::Work(0, How::Send, key(n), Class::Normal, Deed::Yield);
    (0..20 * workers).map(work)
}

pub(crate) fn program() -> impl Strategy<Value = Program> {
    let per_key = prop_oneof![1 => Just(None), 4 => (1usize..6).prop_map(Some)];
    let bounds = (1usize..30, per_key, 1usize..6, prop_oneof![Just(1u8), Just(2), Just(255)]);
    let failing = (1u32..4, 0u8..11, telling(), 1u32..5, 0u32..3);
    let flags = (prop::array::uniform5(any::<bool>()), full(), sizes());
    let steps = prop::collection::vec(step(), 0..70);
    (any::<u64>(), 1usize..9, bounds, failing, flags, steps, ending()).prop_map(
        |(seed, workers, bounds, failing, flags, mut steps, ending)| {
            let (capacity, max_per_key, max_parked, hashes) = bounds;
            let (attempts, finally, telling, poison_limit, max_restarts) = failing;
            let ([key_required, holds, limited, quick, apart], full, batches) = flags;
            if !quick && seed & 64 == 0 {
                steps.splice(..0, handlers_that_wait(workers));
            }
            Program {
                seed,
                workers,
                capacity,
                max_per_key,
                max_parked,
                apart,
                key_required,
                hashes,
                attempts,
                finally,
                telling,
                poison_limit,
                max_restarts,
                holds,
                limited,
                quick,
                full,
                batches,
                sharing: Sharing::None,
                steps,
                ending,
            }
        },
    )
}

fn share_order() -> impl Strategy<Value = ShareOrder> {
    prop_oneof![
        2 => (0u64..40).prop_map(ShareOrder::Hold),
        1 => Just(ShareOrder::Pause),
        2 => Just(ShareOrder::Resume),
        2 => (0usize..4).prop_map(ShareOrder::Cap),
        1 => (1u32..5).prop_map(ShareOrder::Weigh),
        1 => (1u64..4).prop_map(ShareOrder::Rate),
        1 => Just(ShareOrder::Unset),
    ]
}

/// The same with shares, and with orders about them in between.
pub(crate) fn program_with_shares() -> impl Strategy<Value = Program> {
    let sharing = prop_oneof![Just(Sharing::ByKey), Just(Sharing::ByNumber)];
    let orders =
        prop::collection::vec((any::<prop::sample::Index>(), 0..SHARES, share_order()), 0..12);
    (program(), sharing, orders).prop_map(|(mut program, sharing, orders)| {
        program.sharing = sharing;
        for (place, share, order) in orders {
            let place = place.index(program.steps.len() + 1);
            program.steps.insert(place, Step::Share(share, order));
        }
        program
    })
}
