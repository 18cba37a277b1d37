//! Lives, and who is told of their end.
//!
//! ```text
//!        link (both ways)                 exit(reason)
//!   A ◀──────────────────▶ B      anyone ──────────────▶ A
//!   │ ends: B gets `exited`          A gets `exited`, and stops unless it traps
//!   └ monitored by C: C gets `down`, once
//! ```
//!
//! An actor, a pool and a worker of a pool each have a life. It outlives restarts, which are
//! nobody's concern but the supervisor's, and ends once, for a reason. Whoever ties himself to a
//! life that has ended hears of it at once. A tie is noted on both sides and goes with either, so
//! that one who outlives many others does not remember them.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::ExitReason;

/// What an actor does about the exit of one that it is linked to, or about an exit signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnExit {
    /// It ends too, for the same reason.
    Stop,
    /// It has taken note, and goes on: it has trapped the exit.
    GoOn,
}

/// How somebody is tied to a life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Tie {
    /// Each stops with the other.
    Link,
    /// It is told of the end.
    Monitor,
    /// The other side of `Monitor`: it tells of its end. Noted so that who ends first
    /// leaves nothing behind.
    Watched,
}

/// One that has a life, as others hold it.
pub(crate) trait Alive: Clone + PartialEq {
    fn life(&self) -> &Arc<Life<Self>>;
    /// Has it told of something, if it lives still.
    fn signal(&self, signal: Signal<Self>);
}

/// What reaches an actor before any message.
#[derive(Debug, Clone)]
pub(crate) enum Signal<W> {
    /// One that it was linked to has ended, or, without `from`, somebody wants it to end.
    Exit { from: Option<W>, reason: ExitReason },
    /// One that it monitors has ended.
    Down { who: W, reason: ExitReason },
}

/// One life, and who is told of its end.
#[derive(Debug)]
pub(crate) struct Life<W> {
    /// Unique in the process.
    id: u64,
    state: Mutex<State<W>>,
}

#[derive(Debug)]
struct State<W> {
    /// Set once.
    ended: Option<ExitReason>,
    /// By the life that is tied and how.
    ties: HashMap<(u64, Tie), W>,
    /// Who waits for the end.
    waiting: Vec<oneshot::Sender<ExitReason>>,
}

impl<W> Default for State<W> {
    fn default() -> Self {
        Self { ended: None, ties: HashMap::new(), waiting: Vec::new() }
    }
}

impl<W> Default for Life<W> {
    fn default() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self { id: NEXT.fetch_add(1, Ordering::Relaxed), state: Mutex::default() }
    }
}

impl<W> Life<W> {
    /// The life of one of whom nothing is left.
    pub(crate) fn over() -> Self {
        let life = Self::default();
        life.state.lock().ended = Some(ExitReason::Normal);
        life
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn ended(&self) -> Option<ExitReason> {
        self.state.lock().ended.clone()
    }

    /// Waits for the end.
    pub(crate) async fn end_of(&self) -> ExitReason {
        let told = {
            let mut state = self.state.lock();
            if let Some(reason) = &state.ended {
                return reason.clone();
            }
            let (tell, told) = oneshot::channel();
            state.waiting.retain(|waiting| !waiting.is_closed());
            state.waiting.push(tell);
            told
        };
        told.await.unwrap_or(ExitReason::Killed)
    }
}

impl<W: Alive> Life<W> {
    /// Ties somebody to this life, or says how it has ended.
    fn tie(&self, who: W, tie: Tie) -> Result<(), ExitReason> {
        let mut state = self.state.lock();
        if let Some(reason) = &state.ended {
            return Err(reason.clone());
        }
        let before = state.ties.insert((who.life().id, tie), who);
        drop(state);
        drop(before);
        Ok(())
    }

    fn untie(&self, who: u64, tie: Tie) {
        let mut state = self.state.lock();
        let tied = state.ties.remove(&(who, tie));
        if state.ties.is_empty() {
            state.ties = HashMap::new();
        }
        drop(state);
        drop(tied);
    }

    /// Ends, the first time; tells everybody who is tied.
    pub(crate) fn end(&self, me: &W, reason: &ExitReason) {
        let (ties, waiting) = {
            let mut state = self.state.lock();
            if state.ended.is_some() {
                return;
            }
            state.ended = Some(reason.clone());
            (std::mem::take(&mut state.ties), std::mem::take(&mut state.waiting))
        };
        for waiting in waiting {
            let _ = waiting.send(reason.clone());
        }
        for ((_, tie), who) in ties {
            let reason = reason.clone();
            match tie {
                Tie::Link => {
                    who.life().untie(self.id, Tie::Link);
                    who.signal(Signal::Exit { from: Some(me.clone()), reason });
                }
                Tie::Monitor => {
                    who.life().untie(self.id, Tie::Watched);
                    who.signal(Signal::Down { who: me.clone(), reason });
                }
                Tie::Watched => who.life().untie(self.id, Tie::Monitor),
            }
        }
    }
}

/// Ties two lives, so that each hears of the other's end. Where one has ended already, the
/// other hears of it now.
pub(crate) fn link<W: Alive>(one: &W, other: &W) {
    if one == other {
        return;
    }
    if let Err(reason) = other.life().tie(one.clone(), Tie::Link) {
        return one.signal(Signal::Exit { from: Some(other.clone()), reason });
    }
    if let Err(reason) = one.life().tie(other.clone(), Tie::Link) {
        other.life().untie(one.life().id, Tie::Link);
        other.signal(Signal::Exit { from: Some(one.clone()), reason });
    } else if other.life().ended().is_some() {
        // It has ended between the two; it has told `one`, and what it could not
        // remove is removed here.
        one.life().untie(other.life().id, Tie::Link);
    }
}

pub(crate) fn unlink<W: Alive>(one: &W, other: &W) {
    one.life().untie(other.life().id, Tie::Link);
    other.life().untie(one.life().id, Tie::Link);
}

/// Has `who` told of the end of `whom`, once; at once where that has come.
pub(crate) fn monitor<W: Alive>(who: &W, whom: &W) {
    if let Err(reason) = whom.life().tie(who.clone(), Tie::Monitor) {
        return who.signal(Signal::Down { who: whom.clone(), reason });
    }
    if who.life().tie(whom.clone(), Tie::Watched).is_err() {
        whom.life().untie(who.life().id, Tie::Monitor);
    } else if whom.life().ended().is_some() {
        who.life().untie(whom.life().id, Tie::Watched);
    }
}

pub(crate) fn demonitor<W: Alive>(who: &W, whom: &W) {
    whom.life().untie(who.life().id, Tie::Monitor);
    who.life().untie(whom.life().id, Tie::Watched);
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::{Actor, AnyAddress, Context, Pool, Stop};

    /// Traps, and counts what it hears.
    #[derive(Default)]
    struct Ear(u32);

    impl Actor for Ear {
        type Message = Option<AnyAddress>;
        type Reply = u32;
        type Error = Infallible;

        async fn handle(
            &mut self,
            whom: Option<AnyAddress>,
            cx: &mut Context<Self>,
        ) -> Result<u32, Infallible> {
            whom.iter().for_each(|whom| cx.monitor(whom));
            Ok(self.0)
        }

        async fn exited(
            &mut self,
            _: Option<&AnyAddress>,
            _: &ExitReason,
            _: &mut Context<Self>,
        ) -> OnExit {
            self.0 += 1;
            OnExit::GoOn
        }

        async fn down(&mut self, _: &AnyAddress, _: &ExitReason, _: &mut Context<Self>) {
            self.0 += 1;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a12_one_who_lives_long_remembers_none_of_ten_thousand_who_do_not() {
        let long = Pool::one(Ear::default()).spawn().await.unwrap();
        let ties = || long.erase().life().state.lock().ties.len();
        for number in 0..10_000 {
            let brief = Pool::one(Ear::default()).spawn().await.unwrap();
            match number % 3 {
                0 => brief.erase().link(&long.erase()),
                1 => drop(long.call(Some(brief.erase())).await),
                _ => drop(brief.call(Some(long.erase())).await),
            }
            assert_eq!(ties(), 1);
            brief.stop(Stop::Now).await;
            assert_eq!(ties(), 0, "{number}");
        }
        assert_eq!(long.call(None).await, Ok(3_334 + 3_333));
    }
}
