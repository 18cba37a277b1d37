//! The rows of the table: what is run, in which unit, and what is asked of it.

use std::time::Duration;

use crate::{
    Failure,
    calls::Calls,
    keyed::Keyed,
    keys::{self, Keys},
    memory::{self, Memory},
    rounds::{Figures, Side},
    sleepers::Sleepers,
    stage::Threads,
    unkeyed::{Sending, Unkeyed},
    waits::{self, Room, Shape, Wait},
    work::{Calibration, Work},
};

/// Workers of rows with calls.
const CALLED_WORKERS: usize = 4;

/// Runs one side once.
pub type Run = Box<dyn FnMut(Side) -> Result<Figures, Failure>>;

#[derive(Clone, Copy)]
pub enum Kind {
    Unkeyed {
        workers: usize,
        work_nanos: u32,
        sending: Sending,
    },
    Keyed {
        draw: fn() -> Keys,
    },
    /// As `Keyed` of uniform keys, beside itself without shares.
    Shared {
        shares: u64,
    },
    Calls {
        callers: u64,
    },
    Memory(Memory),
    Sleepers(fn() -> Sleepers),
    /// Each handler gives way once.
    Waits {
        keys: Option<u64>,
    },
}

/// What a figure is compared with.
#[derive(Clone, Copy)]
pub enum Limits {
    /// How many times better than the baseline, at least.
    Ratio { floor: f64, target: f64 },
    /// Greenroom's own figure, at most.
    AtMost { floor: f64, target: f64 },
    /// Shown beside the others, and not judged.
    None,
}

#[derive(Clone, Copy)]
pub struct Row {
    pub name: &'static str,
    pub kind: Kind,
    pub limits: Limits,
}

const fn ratio(floor: f64, target: f64) -> Limits {
    Limits::Ratio { floor, target }
}

const fn at_most(floor: f64, target: f64) -> Limits {
    Limits::AtMost { floor, target }
}

const fn sends(name: &'static str, workers: usize, work_nanos: u32, limits: Limits) -> Row {
    let kind = Kind::Unkeyed { workers, work_nanos, sending: Sending::One };
    Row { name, kind, limits }
}

const fn sends_many(name: &'static str, workers: usize, limits: Limits) -> Row {
    Row { name, kind: Kind::Unkeyed { workers, work_nanos: 0, sending: Sending::Many }, limits }
}

const fn keyed(name: &'static str, draw: fn() -> Keys) -> Row {
    Row { name, kind: Kind::Keyed { draw }, limits: ratio(1.5, 2.5) }
}

const fn shared(name: &'static str, shares: u64) -> Row {
    Row { name, kind: Kind::Shared { shares }, limits: ratio(0.8, 0.95) }
}

const fn calls(name: &'static str, callers: u64, limits: Limits) -> Row {
    Row { name, kind: Kind::Calls { callers }, limits }
}

const fn memory(name: &'static str, kind: Memory, limits: Limits) -> Row {
    Row { name, kind: Kind::Memory(kind), limits }
}

const fn sleepers(name: &'static str, kind: fn() -> Sleepers, limits: Limits) -> Row {
    Row { name, kind: Kind::Sleepers(kind), limits }
}

/// `pools waits` has many more, and judges them beside other baselines.
const fn waits(name: &'static str, keys: Option<u64>) -> Row {
    Row { name, kind: Kind::Waits { keys }, limits: Limits::None }
}

pub const ROWS: [Row; 24] = [
    sends("A4", 4, 0, ratio(2.5, 5.0)),
    sends("A256", 256, 0, ratio(2.5, 5.0)),
    sends_many("A4-many", 4, ratio(5.0, 6.0)),
    sends_many("A256-many", 256, ratio(5.0, 6.0)),
    sends("A4-75ns", 4, 75, Limits::None),
    sends("A256-75ns", 256, 75, Limits::None),
    sends("A4-460ns", 4, 460, Limits::None),
    sends("A256-460ns", 256, 460, Limits::None),
    sends("A4-2400ns", 4, 2_400, Limits::None),
    sends("A256-2400ns", 256, 2_400, Limits::None),
    keyed("B-uniform", keys::uniform),
    keyed("B-zipf", keys::zipf),
    shared("B-shares-1", 1),
    shared("B-shares-10k", 10_000),
    sleepers("C", Sleepers::keyed, ratio(20.0, 45.0)),
    sleepers("C-unkeyed", Sleepers::unkeyed, ratio(20.0, 150.0)),
    calls("D1", 1, ratio(1.0, 1.1)),
    calls("D64", 64, ratio(1.2, 1.5)),
    memory("E-full", Memory::Full, at_most(1.20, 1.15)),
    memory("E-keys", Memory::Keys, at_most(8.0, 2.0)),
    memory("E-keys-again", Memory::KeysAgain, at_most(8.0, 2.0)),
    memory("E-idle", Memory::Idle, at_most(4_096.0, 2_048.0)),
    waits("W64", None),
    waits("W64-keyed", Some(1_000_000)),
];

impl Row {
    pub fn unit(&self) -> &'static str {
        match self.kind {
            Kind::Unkeyed { .. }
            | Kind::Keyed { .. }
            | Kind::Shared { .. }
            | Kind::Waits { .. } => "M/s",
            Kind::Calls { .. } => "ns/call",
            Kind::Memory(memory) => memory.unit(),
            Kind::Sleepers(_) => "us p99",
        }
    }

    /// True where a repetition finds caches and allocator as others have left them.
    pub fn needs_warm_up(&self) -> bool {
        !matches!(self.kind, Kind::Memory(_))
    }

    /// How many times better the second figure is than the first.
    pub fn ratio(&self, baseline: f64, greenroom: f64) -> f64 {
        match self.kind {
            Kind::Unkeyed { .. }
            | Kind::Keyed { .. }
            | Kind::Shared { .. }
            | Kind::Waits { .. } => greenroom / baseline,
            Kind::Calls { .. } | Kind::Memory(_) | Kind::Sleepers(_) => baseline / greenroom,
        }
    }

    /// Instructions per message, at most: floor and target.
    pub fn instructions(&self) -> Option<(u64, u64)> {
        match self.kind {
            Kind::Unkeyed { work_nanos: 0, sending: Sending::One, .. } => Some((330, 260)),
            Kind::Keyed { .. } => Some((430, 340)),
            Kind::Calls { .. } => Some((1_600, 1_400)),
            Kind::Unkeyed { .. }
            | Kind::Shared { .. }
            | Kind::Memory(_)
            | Kind::Sleepers(_)
            | Kind::Waits { .. } => None,
        }
    }

    /// Messages or calls of one repetition, of `messages` that were asked for: fewer
    /// where each takes longer.
    pub fn scaled(&self, messages: u64) -> u64 {
        match self.kind {
            Kind::Unkeyed { work_nanos: 0..=99, .. } | Kind::Keyed { .. } | Kind::Shared { .. } => {
                messages
            }
            Kind::Unkeyed { work_nanos: 100..=999, .. } => messages / 2,
            Kind::Unkeyed { .. } => messages / 8,
            Kind::Calls { callers: 1 } => messages / 10,
            Kind::Calls { .. } => messages / 5,
            Kind::Memory(_) => 0,
            // Ten seconds of arrivals, of five million.
            Kind::Sleepers(_) => messages / 25,
            Kind::Waits { .. } => messages / 5,
        }
    }

    /// Draws keys and sizes the work; what is returned runs one side and gives its figure.
    ///
    /// # Errors
    /// When the row has work, but nothing is known of how long a turn takes.
    pub fn prepare(
        &self,
        messages: u64,
        threads: Threads,
        calibration: Option<Calibration>,
    ) -> Result<Run, Failure> {
        let per_micro =
            move |took: Duration| Figures::from(messages as f64 / took.as_nanos() as f64 * 1e3);
        Ok(match self.kind {
            Kind::Unkeyed { workers, work_nanos, sending } => {
                let work = match (work_nanos, calibration) {
                    (0, _) => Work::NONE,
                    (nanos, Some(calibration)) => calibration.work(nanos),
                    (_, None) => return Err(format!("{} has work", self.name).into()),
                };
                let unkeyed = Unkeyed::new(workers, messages, work, threads);
                Box::new(move |side| match side {
                    Side::Baseline => unkeyed.baseline().map(per_micro),
                    Side::Greenroom => unkeyed.greenroom(sending).map(per_micro),
                })
            }
            Kind::Keyed { draw } => {
                let keyed = Keyed { keys: draw(), messages, threads };
                Box::new(move |side| match side {
                    Side::Baseline => keyed.baseline().map(per_micro),
                    Side::Greenroom => keyed.greenroom().map(per_micro),
                })
            }
            Kind::Shared { shares } => {
                let keyed = Keyed { keys: keys::uniform(), messages, threads };
                Box::new(move |side| match side {
                    Side::Baseline => keyed.greenroom().map(per_micro),
                    Side::Greenroom => keyed.shared(shares).map(per_micro),
                })
            }
            Kind::Calls { callers } => {
                let calls = Calls { workers: CALLED_WORKERS, callers, calls: messages, threads };
                let each = move |took: Duration| {
                    Figures::from(took.as_nanos() as f64 / calls.total() as f64)
                };
                Box::new(move |side| match side {
                    Side::Baseline => calls.baseline().map(each),
                    Side::Greenroom => calls.greenroom().map(each),
                })
            }
            Kind::Memory(kind) => {
                Box::new(move |side| memory::in_child(kind, side).map(Figures::from))
            }
            Kind::Sleepers(sleepers) => Box::new(sleepers().prepare(messages, threads)),
            Kind::Waits { keys } => {
                let (wait, workers, room) = (Wait::Yields, 64, Room::Scarce);
                let shape = Shape { wait, workers, keys, room, threads };
                Box::new(move |side| {
                    let side = match side {
                        Side::Baseline => waits::Side::Channels,
                        Side::Greenroom => waits::Side::Pool,
                    };
                    shape.measure(side, messages).map(|cost| per_micro(cost.time))
                })
            }
        })
    }
}
