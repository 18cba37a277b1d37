//! A subscriber that is an actor or a pool.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use greenroom_queue::discard::discard;
use greenroom_queue::lock::Mutex;

use super::{
    event::Event,
    subscriber::{Missed, Offered, Subscriber},
};
use crate::{Address, NotAccepted, WeakAddress};

/// How many events may wait while another thread is still handing out the replayed ones,
/// beyond those. That takes microseconds unless the thread is held up; events beyond that
/// are missed and counted.
const WAITING: usize = 1_024;

/// Sends events to a mailbox, in order, from whichever thread has the turn.
///
/// Both the producer and a new subscription (with events to be replayed) may have something
/// to hand out. Each puts it into the line. If the turn is taken it is left there, and the
/// holder of the turn goes on until the line is empty. So messages are made and sent under no
/// lock, and still in order.
pub(super) struct Feed<E, M, R, F, C> {
    to: WeakAddress<M, R, F>,
    convert: C,
    line: Mutex<FeedLine<E>>,
    missed: Missed,
}

struct FeedLine<E> {
    waiting: VecDeque<Event<Arc<E>>>,
    limit: usize,
    turn: FeedTurn,
    /// Away while the turn is taken.
    arrears: Arrears<E>,
}

/// The events that the subscriber should have had by now: first the held one, then the news of what
/// it missed after that.
///
/// An event is held when the news before it took the last room. Otherwise a mailbox of one, once it
/// has missed something, would be told of misses for ever and never get an event again.
struct Arrears<E> {
    held: Option<Arc<E>>,
    untold: u64,
}

impl<E> Default for Arrears<E> {
    fn default() -> Self {
        Self { held: None, untold: 0 }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FeedTurn {
    /// Any thread may take it.
    Free,
    /// A thread is handing out.
    Taken,
    /// The subscriber is gone. Nothing leaves this.
    Over,
}

/// What became of a message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Taking {
    Taken,
    Full,
    /// It could not be made, or the pool does not take it: no further try will help.
    Never,
    /// The pool takes nothing any more.
    Gone,
}

impl<E> FeedLine<E> {
    /// Adds an event, or counts it at the end of the line. Returns false when it was only counted.
    fn add(&mut self, item: &Arc<E>) -> bool {
        if self.waiting.len() < self.limit {
            self.waiting.push_back(Event::Item(item.clone()));
            return true;
        }
        match self.waiting.back_mut() {
            Some(Event::Lagged(missed)) => *missed += 1,
            _ => self.waiting.push_back(Event::Lagged(1)),
        }
        false
    }

    /// The arrears, for the thread that gets the turn.
    fn take_turn(&mut self) -> Option<Arrears<E>> {
        (self.turn == FeedTurn::Free).then(|| {
            self.turn = FeedTurn::Taken;
            std::mem::take(&mut self.arrears)
        })
    }

    /// The next event, or the turn and the arrears are given back.
    fn next(&mut self, arrears: &mut Arrears<E>) -> Option<Event<Arc<E>>> {
        let next = self.waiting.pop_front();
        if next.is_none() {
            self.turn = FeedTurn::Free;
            self.arrears = std::mem::take(arrears);
        }
        next
    }
}

impl<E, M, R, F, C> Feed<E, M, R, F, C>
where
    E: Clone,
    C: Fn(Event<E>) -> Option<M>,
{
    pub(super) fn new(to: WeakAddress<M, R, F>, convert: C, missed: Missed) -> Self {
        // Taken until the replayed events have been handed out.
        let turn = FeedTurn::Taken;
        let line = FeedLine {
            waiting: VecDeque::new(),
            limit: WAITING,
            turn,
            arrears: Arrears::default(),
        };
        Self { to, convert, line: Mutex::new(line), missed }
    }

    /// Hands out until the line is empty. Returns the result for the last event. Only for
    /// the holder of the turn.
    fn hand_out(&self, mut arrears: Arrears<E>) -> Offered {
        let mut last = Offered::Taken;
        loop {
            let Some(next) = self.line.lock().next(&mut arrears) else { return last };
            last = match next {
                Event::Item(item) => self.pass_on(item, &mut arrears),
                Event::Lagged(missed) => {
                    // Counted when it was missed.
                    arrears.untold += missed;
                    Offered::Missed
                }
            };
            if last == Offered::Gone {
                self.end(arrears);
                return last;
            }
        }
    }

    fn end(&self, arrears: Arrears<E>) {
        let waiting = {
            let mut line = self.line.lock();
            line.turn = FeedTurn::Over;
            std::mem::take(&mut line.waiting)
        };
        discard((waiting, arrears));
    }

    /// Sends the arrears, then the event, as far as there is room.
    fn pass_on(&self, item: Arc<E>, arrears: &mut Arrears<E>) -> Offered {
        let Some(address) = self.to.upgrade() else { return Offered::Gone };
        let news = arrears.held.is_some() || arrears.untold > 0;
        let sent = match self.settle(&address, arrears) {
            Taking::Taken => self.send_item(&address, &item),
            Taking::Gone => return Offered::Gone,
            not_settled => return self.miss(item, not_settled, arrears),
        };
        match sent {
            Taking::Full if news => arrears.held = Some(item),
            Taking::Taken => discard(item),
            not_taken => return self.miss(item, not_taken, arrears),
        }
        Offered::Taken
    }

    /// Sends the arrears. `Taken` if none are left.
    fn settle(&self, address: &Address<M, R, F>, arrears: &mut Arrears<E>) -> Taking {
        if let Some(held) = arrears.held.take() {
            match self.send_item(address, &held) {
                Taking::Full => {
                    arrears.held = Some(held);
                    return Taking::Full;
                }
                Taking::Gone => return Taking::Gone,
                Taking::Taken => discard(held),
                Taking::Never => {
                    self.miss(held, Taking::Never, arrears);
                }
            }
        }
        if arrears.untold > 0 {
            match self.send(address, || Event::Lagged(arrears.untold)) {
                // A conversion that panics will panic again: the news are lost, the count is not.
                Taking::Taken | Taking::Never => arrears.untold = 0,
                not_sent => return not_sent,
            }
        }
        Taking::Taken
    }

    fn miss(&self, item: Arc<E>, why: Taking, arrears: &mut Arrears<E>) -> Offered {
        // A panic of its `Drop` here would leave the turn taken for ever.
        discard(item);
        if why == Taking::Gone {
            return Offered::Gone;
        }
        self.missed.add(1);
        arrears.untold += 1;
        Offered::Missed
    }

    fn send_item(&self, address: &Address<M, R, F>, item: &Arc<E>) -> Taking {
        self.send(address, || Event::Item(E::clone(item)))
    }

    /// Makes a message and sends it. An unwanted message counts as taken.
    fn send(&self, address: &Address<M, R, F>, event: impl FnOnce() -> Event<E>) -> Taking {
        let send = AssertUnwindSafe(|| match (self.convert)(event()) {
            Some(message) => address.try_send(message).map_err(|error| error.without_message()),
            None => Ok(()),
        });
        match catch_unwind(send) {
            Ok(Ok(())) => Taking::Taken,
            Ok(Err(NotAccepted::Stopped | NotAccepted::NoWorkers)) => Taking::Gone,
            Ok(Err(NotAccepted::Parked | NotAccepted::KeyRequired)) => Taking::Never,
            Ok(Err(_)) => Taking::Full,
            Err(panic) => {
                discard(panic);
                tracing::error!("an event could not be made a message: a panic; it is missed");
                Taking::Never
            }
        }
    }
}

impl<E, M, R, F, C> Subscriber<E> for Feed<E, M, R, F, C>
where
    E: Clone + Send + Sync,
    C: Fn(Event<E>) -> Option<M> + Send + Sync,
{
    fn prepare(&self, replay: &VecDeque<Arc<E>>) {
        let mut line = self.line.lock();
        line.waiting.extend(replay.iter().cloned().map(Event::Item));
        line.limit += replay.len();
    }

    fn begin(&self) -> Offered {
        self.hand_out(Arrears::default())
    }

    fn offer(&self, item: &Arc<E>) -> Offered {
        let (added, turn) = {
            let mut line = self.line.lock();
            if line.turn == FeedTurn::Over {
                return Offered::Gone;
            }
            (line.add(item), line.take_turn())
        };
        match turn {
            Some(arrears) => self.hand_out(arrears),
            None if added => Offered::Taken,
            None => {
                self.missed.add(1);
                Offered::Missed
            }
        }
    }

    fn topic_ended(&self) {}

    fn missed(&self) -> u64 {
        self.missed.so_far()
    }
}
