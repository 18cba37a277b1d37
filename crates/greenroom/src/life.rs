//! Lives, and the parties that are notified of their end.
//!
//! ```text
//!        link (both ways)                 exit(reason)
//!   A ◀──────────────────▶ B      anyone ──────────────▶ A
//!   │ ends: B gets `exited`          A gets `exited`, and stops unless it traps
//!   └ monitored by C: C gets `down`, once
//! ```
//!
//! An actor, a pool and a worker of a pool each have a life. It outlives restarts, which concern
//! only the supervisor, and ends once, for a reason. A tie to a life that has already ended is
//! notified at once. A tie is noted on both sides and removed with either, so that a long life does
//! not remember the many short ones that it was tied to.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use greenroom_queue::lock::Mutex;
use tokio::sync::Notify;

use crate::ExitReason;

/// The reaction of an actor to the exit of a linked one, or to an exit signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnExit {
    /// It ends too, for the same reason.
    Stop,
    /// It has taken note, and continues: it has trapped the exit.
    GoOn,
}

/// How another party is tied to a life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Tie {
    /// Each stops with the other.
    Link,
    /// It is notified of the end.
    Monitor,
    /// The other side of `Monitor`: it notifies of its end. Noted so that the first to end
    /// leaves nothing behind.
    Watched,
}

impl Tie {
    /// How the other party notes it.
    fn back(self) -> Self {
        match self {
            Self::Link => Self::Link,
            Self::Monitor => Self::Watched,
            Self::Watched => Self::Monitor,
        }
    }

    /// Notifies a party with this kind of tie of an end.
    fn notify<W: Alive>(self, who: &W, ended: &W, reason: ExitReason) {
        let ended = ended.clone();
        match self {
            Self::Link => who.signal(Signal::Exit { from: Some(ended), reason }),
            Self::Monitor => who.signal(Signal::Down { who: ended, reason }),
            Self::Watched => {}
        }
    }
}

/// A party with a life, as others hold it.
pub(crate) trait Alive: Clone + PartialEq {
    fn life(&self) -> &Arc<Life<Self>>;
    /// Sends it a signal, if it is still alive.
    fn signal(&self, signal: Signal<Self>);
}

/// A notice that reaches an actor before any message.
#[derive(Debug, Clone)]
pub(crate) enum Signal<W> {
    /// A linked party has ended; or, without `from`, an exit signal was sent.
    Exit { from: Option<W>, reason: ExitReason },
    /// A monitored party has ended.
    Down { who: W, reason: ExitReason },
}

/// One life, and the parties that are notified of its end.
#[derive(Debug)]
pub(crate) struct Life<W> {
    /// Unique in the process.
    id: u64,
    state: Mutex<State<W>>,
    /// Notified at the end, after the state was changed.
    over: Notify,
}

#[derive(Debug)]
struct State<W> {
    /// Set only once.
    ended: Option<ExitReason>,
    /// By the tied life and the kind of tie.
    ties: HashMap<(u64, Tie), W>,
}

impl<W> Default for State<W> {
    fn default() -> Self {
        Self { ended: None, ties: HashMap::new() }
    }
}

impl<W> Default for Life<W> {
    fn default() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            state: Mutex::default(),
            over: Notify::new(),
        }
    }
}

impl<W> Life<W> {
    /// The life of a party that has gone entirely.
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
        loop {
            let over = self.over.notified();
            if let Some(reason) = self.ended() {
                return reason;
            }
            over.await;
        }
    }
}

impl<W: Alive> Life<W> {
    /// Ties a party to this life, or returns how the life has ended.
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

    /// Ends it, on the first call; notifies all tied parties.
    pub(crate) fn end(&self, me: &W, reason: &ExitReason) {
        let ties = {
            let mut state = self.state.lock();
            if state.ended.is_some() {
                return;
            }
            state.ended = Some(reason.clone());
            std::mem::take(&mut state.ties)
        };
        self.over.notify_waiters();
        for ((_, tie), who) in ties {
            who.life().untie(self.id, tie.back());
            tie.notify(&who, me, reason.clone());
        }
    }
}

/// Ties `who` to the end of `whom`; for a link, also the other way round. If one has already ended,
/// the other is notified now.
pub(crate) fn tie<W: Alive>(who: &W, whom: &W, tie: Tie) {
    if who == whom {
        return;
    }
    if let Err(reason) = whom.life().tie(who.clone(), tie) {
        return tie.notify(who, whom, reason);
    }
    if let Err(reason) = who.life().tie(whom.clone(), tie.back()) {
        whom.life().untie(who.life().id, tie);
        tie.back().notify(whom, who, reason);
    } else if whom.life().ended().is_some() {
        // It has ended in between and has notified `who`. It could not remove this side of the tie,
        // so that is removed here.
        who.life().untie(whom.life().id, tie.back());
    }
}

pub(crate) fn untie<W: Alive>(who: &W, whom: &W, tie: Tie) {
    who.life().untie(whom.life().id, tie.back());
    whom.life().untie(who.life().id, tie);
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::{Actor, AnyAddress, Context, Pool, Stop};

    /// Traps exits, and counts the signals.
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
