//! What senders hold.

use std::{
    collections::VecDeque,
    fmt,
    future::{Future, poll_fn},
    hash::Hash,
    pin::{Pin, pin},
    sync::{
        Arc, Weak,
        atomic::{AtomicU32, Ordering},
    },
    task::Waker,
    time::Duration,
};

use super::{
    call_future::NotSent,
    core::{
        Core, Hashed, Urgency, WayIn,
        crowded::Granted,
        dispatch::Crowd,
        serve::{Served, ServedBy},
    },
    occupied::{Inside, Occupied, slot_at_work},
    overflow::Overflow,
    own_call::OwnCall,
    parcel::{Load, Parcel, ParcelOf, PlainCall, Unload},
    permits::{Closed, Refused},
    places::{Beginning, NOWHERE},
    sending::Sending,
    shard::Wanted,
    stop::{self, Stop},
};
use crate::{
    Actor, AnyAddress, Class, NotAccepted, ReplyPort, SendError, TrySendError, any_address::Erased,
};

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The object-safe side of a pool that addresses see; it hides the types of the actor and of the key.
pub(crate) trait Door<M, R, E>: Erased {
    /// As `try_push`, for a message with nothing else.
    fn try_send(
        &self,
        message: &mut Option<M>,
        sender: u32,
        urgency: Urgency,
    ) -> Result<(), Refused> {
        message.lent(|parcel| self.try_push(parcel, sender, urgency))
    }
    /// Takes a permit and queues the message, or leaves it where it is and says why not. Runs the key function first.
    fn try_push(
        &self,
        parcel: &mut Parcel<M, R, E>,
        sender: u32,
        urgency: Urgency,
    ) -> Result<(), Refused>;
    /// Has it handled by whoever calls, where that can be; otherwise leaves it where it is, to be queued.
    fn serve(
        &self,
        _message: &mut Option<M>,
        _sender: u32,
        _caller: &Waker,
    ) -> Option<Served<'_, M, R, E>> {
        None
    }
    /// Queues a message for which a permit has been taken, or gives the permit back and leaves the message where it is.
    fn push_permitted(&self, parcel: &mut Parcel<M, R, E>, sender: u32) -> Result<(), NotAccepted>;
    /// Queues messages from the front, as many as there is room for, and says how many.
    fn try_push_many(
        &self,
        messages: &mut VecDeque<M>,
        sender: u32,
        urgency: Urgency,
    ) -> Result<usize, Refused>;
    /// Queues a message as soon as there is room for it.
    fn push_waiting<'a>(
        &'a self,
        parcel: &'a mut Parcel<M, R, E>,
        sender: u32,
    ) -> BoxFuture<'a, Result<(), NotAccepted>>;
    /// Waits for a permit.
    fn permit(&self) -> BoxFuture<'_, Result<(), Closed>>;
    fn try_permit(&self) -> Result<(), Refused>;
    fn give_permit(&self);
    /// Why a pool that accepts nothing any more does not.
    fn why_closed(&self) -> NotAccepted;
    fn count_rejected(&self);
    /// Of a sender that is about to begin.
    fn next_place(&self, beginning: Beginning) -> u32;
    fn handle_made(&self);
    /// The same, without keeping anything alive.
    fn downgrade(self: Arc<Self>) -> WeakDoor<M, R, E>;
    /// The last handle drains and stops the pool.
    fn handle_dropped(self: Arc<Self>);
    /// Somebody is about to wait for a reply. Refused where that would be waiting for itself.
    fn enter_call(&self, parcel: &Parcel<M, R, E>) -> Result<Option<Inside>, Occupied>;
    /// The same, and notes it in the message.
    #[inline(always)]
    fn enter(&self, parcel: &mut Parcel<M, R, E>) -> Result<Option<Inside>, Occupied> {
        let inside = self.enter_call(parcel)?;
        if inside.is_some() {
            parcel.mark_own_call();
        }
        Ok(inside)
    }
    /// Enters and queues a call. Says who is inside then, and whether a worker may have been polled for it here and now. What is
    /// refused stays where it is.
    fn push_call(
        &self,
        parcel: &mut Parcel<M, R, E>,
        sender: u32,
    ) -> Result<(Option<Inside>, bool), NotSent> {
        let inside = self.enter(parcel)?;
        match self.try_push(parcel, sender, Urgency::InPlace) {
            Ok(()) => Ok((inside, self.may_answer_in_place())),
            Err(refused) => Err(NotSent::Refused(refused, inside)),
        }
    }
    /// Queues a plain call where nothing else is to be done for that. Says whether a worker may be polled by whoever calls it; None, with
    /// message and port where they were, where there is more to it.
    fn try_call(
        &self,
        _message: &mut Option<M>,
        _port: &mut Option<ReplyPort<R, E>>,
        _sender: u32,
    ) -> Option<bool> {
        None
    }
    /// True where a worker may be polled by whoever calls it.
    fn may_answer_in_place(&self) -> bool {
        false
    }
    /// As `enter_call`, where it is not known yet who will wait: for a worker of the pool, where one is polled here.
    fn own_call(self: Arc<Self>, parcel: &Parcel<M, R, E>) -> Option<OwnCall>;
}

/// A door that does not keep its pool alive.
pub(crate) enum WeakDoor<M, R, E> {
    Pool(Weak<dyn Door<M, R, E>>),
    /// A worker's door exists as long as it is held, so it is made again.
    Worker(Arc<dyn WeakSeat<M, R, E>>),
}

/// The way to one worker, as long as there is its pool.
pub(crate) trait WeakSeat<M, R, E>: Send + Sync {
    fn upgrade(&self) -> Option<Arc<dyn Door<M, R, E>>>;
    /// It without its types, also where nothing is left of its pool.
    fn any(&self) -> AnyAddress;
}

impl<M, R, E> Clone for WeakDoor<M, R, E> {
    fn clone(&self) -> Self {
        match self {
            Self::Pool(door) => Self::Pool(door.clone()),
            Self::Worker(seat) => Self::Worker(seat.clone()),
        }
    }
}

impl<M, R, E> WeakDoor<M, R, E> {
    pub(crate) fn upgrade(&self) -> Option<Arc<dyn Door<M, R, E>>> {
        match self {
            Self::Pool(door) => door.upgrade(),
            Self::Worker(seat) => seat.upgrade(),
        }
    }
}

/// Queues messages from the front, each by itself, until one is refused.
pub(super) fn push_one_by_one<M, R, E>(
    messages: &mut VecDeque<M>,
    push: impl Fn(&mut Parcel<M, R, E>) -> Result<(), Refused>,
) -> Result<usize, Refused> {
    let mut sent = 0;
    while let Some(mut lent) = Lent::first_of(messages) {
        match push(&mut lent.parcel) {
            Ok(()) => sent += 1,
            Err(refused) if sent == 0 => return Err(refused),
            Err(_) => break,
        }
    }
    Ok(sent)
}

/// Several messages on their way into the queues: whatever happens, permits that were not used go back, and shards that
/// were filled are announced, all at once.
struct Many<'a, A: Actor, K: Hash + Eq + Send + Sync + 'static> {
    core: &'a Core<A, K>,
    permits: u64,
    filled: u64,
}

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Drop for Many<'_, A, K> {
    fn drop(&mut self) {
        if self.permits > 0 {
            self.core.permits.give(self.permits, self.core);
        }
        if self.filled != 0 {
            self.core.wake.mark_all(self.filled);
            self.core.wake.one(&self.core.clock.bell);
        }
    }
}

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Many<'_, A, K> {
    /// Queues some messages from the front. The key function sees a message where it lies, so that its panic loses none.
    fn push(&mut self, messages: &mut VecDeque<A::Message>, sender: u32) -> Result<(), Refused> {
        if !self.core.keyed() {
            let run = self.core.push_run(messages, self.permits as usize, sender);
            let (run, wanted) = run.map_err(|Closed| Refused::Closed)?;
            self.permits -= run as u64;
            let index = self.core.shard_of(&(None, 0), sender);
            match wanted {
                Wanted::Nothing => {}
                Wanted::Announcement => self.filled |= 1 << index,
                Wanted::Invitation => self.core.wake.invite(index, &self.core.clock.bell),
            }
            return Ok(());
        }
        let key = self.core.key_of(messages.front());
        let Some(message) = messages.pop_front() else { return Err(Refused::Closed) };
        let mut parcel = Parcel::new(message, None);
        let index = self.core.shard_of(&key, sender);
        let pushed = self.core.push_quietly(index, &mut parcel, key, false);
        if let Some(message) = parcel.message {
            messages.push_front(message);
        }
        self.permits -= u64::from(pushed.is_ok());
        self.filled |= u64::from(pushed?) << index;
        Ok(())
    }
}

/// What became of several messages.
struct Placed {
    /// How many are queued.
    sent: usize,
    /// There was no room in the pool for more.
    full: bool,
}

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Core<A, K> {
    fn why(&self, refused: Refused) -> NotAccepted {
        refused.told(|| self.why_closed())
    }

    /// What most sends come to, where there are no keys: the lock, and the queue. By itself, so that it keeps nothing for all that
    /// may have to be done otherwise. False where there is more to it; the message is where it was then.
    #[inline(always)]
    fn push_easily(
        &self,
        load: &mut impl Unload<A::Message, A::Reply, A::Error>,
        sender: u32,
    ) -> bool {
        let Some(shard) = self.shards.get(sender as usize & (self.shards.len() - 1)) else {
            return false;
        };
        // Who has it taken is asked again where there is time to wait.
        let Some(mut inbox) = shard.inbox.try_lock() else { return false };
        let easy = inbox.is_easy() && self.is_timely() && load.message().is_some();
        if easy {
            inbox.push_easily(load, (None, 0), self.coarse.coarse_stamp());
        }
        easy
    }

    #[inline(never)]
    fn try_send_plain(
        &self,
        message: &mut Option<A::Message>,
        sender: u32,
        urgency: Urgency,
    ) -> Result<(), Refused> {
        match self.push_easily(message, sender) {
            true => Ok(()),
            false => self.try_send_with_a_look(message, sender, urgency),
        }
    }

    /// As `try_send_plain`, where there are keys.
    #[inline(never)]
    fn try_send_by_key(
        &self,
        message: &mut Option<A::Message>,
        sender: u32,
        urgency: Urgency,
    ) -> Result<(), Refused> {
        match self.push_by_key(message) {
            Ok(()) => Ok(()),
            Err(key) => self.try_send_keyed(message, key, sender, urgency),
        }
    }

    /// As `push_easily`, where there are keys. The key is given back where there is more to it.
    #[inline(always)]
    fn push_by_key(&self, message: &mut Option<A::Message>) -> Result<(), Hashed<K>> {
        let key = self.key(message);
        let Some(shard) = self.shards.get(key.1 as usize & (self.shards.len() - 1)) else {
            return Err(key);
        };
        let Some(mut inbox) = shard.inbox.try_lock() else { return Err(key) };
        if key.0.is_some() && inbox.is_easy() && self.is_timely() && message.is_some() {
            inbox.push_easily(message, key, self.coarse.coarse_stamp());
            return Ok(());
        }
        Err(key)
    }

    #[inline(never)]
    fn try_send_with_a_look(
        &self,
        message: &mut Option<A::Message>,
        sender: u32,
        urgency: Urgency,
    ) -> Result<(), Refused> {
        let placed = self.try_place(message, sender, urgency);
        self.sent_or_over(message, placed, sender)
    }

    #[inline(never)]
    fn try_send_keyed(
        &self,
        message: &mut Option<A::Message>,
        key: Hashed<K>,
        sender: u32,
        urgency: Urgency,
    ) -> Result<(), Refused> {
        let placed = self.take_and_push(message, key, sender, urgency);
        self.sent_or_over(message, placed, sender)
    }

    /// What is done with a message for which there was no room.
    #[inline(always)]
    fn sent_or_over(
        &self,
        message: &mut Option<A::Message>,
        placed: Result<(), Refused>,
        sender: u32,
    ) -> Result<(), Refused> {
        match placed {
            Err(Refused::Full) => message.lent(|parcel| self.overflow(parcel, sender)),
            Err(Refused::KeyFull) => message.lent(|parcel| self.overflow_of_key(parcel)),
            pushed => pushed,
        }
    }

    /// Queues a message where there is room.
    #[inline(always)]
    fn try_place(
        &self,
        load: &mut impl Load<A::Message, A::Reply, A::Error>,
        sender: u32,
        urgency: Urgency,
    ) -> Result<(), Refused> {
        if self.settings.is_weighed {
            return load.lent(|parcel| self.try_place_weighed(parcel, sender, urgency));
        }
        let key = self.key(load);
        self.take_and_push(load, key, sender, urgency)
    }

    /// Queues messages from the front, as many as there is room for.
    fn try_place_many(
        &self,
        messages: &mut VecDeque<A::Message>,
        sender: u32,
    ) -> Result<Placed, Refused> {
        if self.settings.is_weighed {
            let place = |one: &mut ParcelOf<A>| self.try_place_weighed(one, sender, Urgency::Now);
            let sent = push_one_by_one(messages, place)?;
            return Ok(Placed { sent, full: !messages.is_empty() });
        }
        let permits = self.permits.try_take_most(messages.len() as u64, self)?;
        let mut many = Many { core: self, permits, filled: 0 };
        let before = messages.len();
        let mut pushed = Ok(());
        while many.permits > 0 && pushed.is_ok() {
            pushed = many.push(messages, sender);
        }
        // Otherwise there was no room behind a key.
        let full = pushed.is_ok() && !messages.is_empty();
        match before - messages.len() {
            0 => pushed.map(|()| Placed { sent: 0, full }),
            sent => Ok(Placed { sent, full }),
        }
    }

    /// True once for a sender whose messages pile up, where all of them lie together.
    fn should_step_aside(&self, sender: u32) -> bool {
        let index = self.shard_of(&(None, 0), sender);
        !self.keyed() && std::mem::take(&mut self.shards[index].inbox.lock().step_aside)
    }
}

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Door<A::Message, A::Reply, A::Error>
    for Core<A, K>
{
    fn try_send(
        &self,
        message: &mut Option<A::Message>,
        sender: u32,
        urgency: Urgency,
    ) -> Result<(), Refused> {
        match self.way_in {
            WayIn::Plain => self.try_send_plain(message, sender, urgency),
            WayIn::ByKey => self.try_send_by_key(message, sender, urgency),
            WayIn::Weighed => self.try_send_with_a_look(message, sender, urgency),
        }
    }

    fn try_push(
        &self,
        parcel: &mut ParcelOf<A>,
        sender: u32,
        urgency: Urgency,
    ) -> Result<(), Refused> {
        if let Some(to) = self.diverted(parcel) {
            return self.divert(to, parcel);
        }
        match self.try_place(parcel, sender, urgency) {
            Err(Refused::Full) => self.overflow(parcel, sender),
            Err(Refused::KeyFull) => self.overflow_of_key(parcel),
            pushed => pushed,
        }
    }

    fn try_call(
        &self,
        message: &mut Option<A::Message>,
        port: &mut Option<ReplyPort<A::Reply, A::Error>>,
        sender: u32,
    ) -> Option<bool> {
        let is_plain = self.way_in == WayIn::Plain && slot_at_work(self.identity()).is_none();
        let is_queued = is_plain && self.push_easily(&mut PlainCall { message, port }, sender);
        is_queued.then_some(self.settings.calls_in_place)
    }

    #[inline]
    fn serve(
        &self,
        message: &mut Option<A::Message>,
        sender: u32,
        caller: &Waker,
    ) -> Option<ServedBy<'_, A>> {
        Self::serve(self, message, sender, caller)
    }

    fn push_permitted(&self, parcel: &mut ParcelOf<A>, sender: u32) -> Result<(), NotAccepted> {
        let mut granted = Granted(Some(self));
        if let Some(to) = self.diverted(parcel) {
            return self.divert(to, parcel).map_err(|refused| self.why(refused));
        }
        self.try_claim(parcel).map_err(|refused| self.why(refused))?;
        if self.settings.dispatch.is_some() {
            let pushed = self.dispatch_permitted(parcel, sender, Crowd::WherePermitted);
            pushed.map_err(|refused| self.why(refused))?;
            granted.0 = None;
            return Ok(());
        }
        self.push_keyed(parcel, sender, false).map_err(|refused| self.why(refused))?;
        granted.0 = None;
        Ok(())
    }

    fn try_push_many(
        &self,
        messages: &mut VecDeque<A::Message>,
        sender: u32,
        urgency: Urgency,
    ) -> Result<usize, Refused> {
        if urgency == Urgency::CanStepAside && self.should_step_aside(sender) {
            return Err(Refused::NotNow);
        }
        if let Overflow::DropOldest = self.settings.overflow {
            return push_one_by_one(messages, |one| self.try_push(one, sender, Urgency::Now));
        }
        // Nothing is dropped here: what does not fit in is left with its sender.
        let placed = self.try_place_many(messages, sender);
        if matches!(placed, Err(Refused::Full) | Ok(Placed { full: true, .. })) {
            self.found_full();
        }
        let sent = placed.map(|placed| placed.sent);
        match (sent, &self.settings.overflow) {
            (Ok(sent), Overflow::Fallback(other)) => {
                Ok(sent + other.take_over_many(messages).unwrap_or(0))
            }
            (Err(Refused::Full), Overflow::Fallback(other)) => other.take_over_many(messages),
            (Err(Refused::KeyFull), Overflow::Fallback(other)) => other.take_over_many(messages),
            (Err(Refused::Full), overflow) if !overflow.waits() => Err(Refused::Rejected),
            (Err(Refused::KeyFull), overflow) if !overflow.waits() => Err(Refused::KeyRejected),
            (sent, _) => sent,
        }
    }

    fn push_waiting<'a>(
        &'a self,
        parcel: &'a mut Parcel<A::Message, A::Reply, A::Error>,
        sender: u32,
    ) -> BoxFuture<'a, Result<(), NotAccepted>> {
        Box::pin(async move {
            if let Some(to) = self.diverted(parcel) {
                return to.door.push_waiting(parcel, to.place()).await;
            }
            self.count_wait();
            self.claim(parcel).await.map_err(|Closed| self.why_closed())?;
            if let Some(policy) = &self.settings.dispatch {
                let pushed = match policy.is_strict() {
                    true => self.dispatch_waiting(parcel, sender).await,
                    false => self.dispatch_anywhere(parcel, sender).await,
                };
                return pushed.map_err(|refused| self.why(refused));
            }
            self.push_in_its_turn(parcel, sender).await.map_err(|refused| self.why(refused))
        })
    }

    fn permit(&self) -> BoxFuture<'_, Result<(), Closed>> {
        Box::pin(async move {
            let (mut taken, mut waits) = (pin!(self.await_permit()), false);
            poll_fn(|task| {
                let polled = taken.as_mut().poll(task);
                if polled.is_pending() && self.permits.is_starved() {
                    self.found_full();
                }
                if polled.is_pending() && !std::mem::replace(&mut waits, true) {
                    self.count_wait();
                }
                polled
            })
            .await
        })
    }

    fn try_permit(&self) -> Result<(), Refused> {
        match self.permits.try_take(1, self) {
            Err(Refused::Full) => {
                self.found_full();
                Err(Refused::Full)
            }
            taken => taken.map(|_| ()),
        }
    }

    fn give_permit(&self) {
        self.permits.give(1, self);
    }

    fn why_closed(&self) -> NotAccepted {
        match self.closing.load(Ordering::SeqCst) {
            true => NotAccepted::Stopped,
            false => NotAccepted::NoWorkers,
        }
    }

    fn count_rejected(&self) {
        self.tally.rejected.fetch_add(1, Ordering::Relaxed);
    }

    fn next_place(&self, beginning: Beginning) -> u32 {
        self.places.next(beginning)
    }

    fn handle_made(&self) {
        self.handles.fetch_add(1, Ordering::Relaxed);
    }

    fn downgrade(self: Arc<Self>) -> WeakDoor<A::Message, A::Reply, A::Error> {
        let door: Arc<dyn Door<A::Message, A::Reply, A::Error>> = self;
        WeakDoor::Pool(Arc::downgrade(&door))
    }

    #[inline]
    fn enter_call(
        &self,
        parcel: &Parcel<A::Message, A::Reply, A::Error>,
    ) -> Result<Option<Inside>, Occupied> {
        match self.diverted(parcel) {
            Some(to) => to.door.enter_call(parcel),
            None => self.enter_own_call(parcel),
        }
    }

    fn may_answer_in_place(&self) -> bool {
        self.settings.calls_in_place
    }

    fn own_call(self: Arc<Self>, parcel: &ParcelOf<A>) -> Option<OwnCall> {
        if let Some(to) = self.diverted(parcel) {
            return to.door.clone().own_call(parcel);
        }
        OwnCall::of(self.clone(), self.identity(), |slot| self.has_key_in_hand(parcel, slot))
    }

    fn handle_dropped(self: Arc<Self>) {
        if self.handles.fetch_sub(1, Ordering::AcqRel) > 1 || self.ended.load(Ordering::SeqCst) {
            return;
        }
        self.close();
        let runtime = self.runtime.clone();
        runtime.spawn(stop::run::stop(self, Stop::within(Duration::MAX)));
    }
}

/// The address of a pool: cheap to clone, to be held by senders. The pool drains and stops when the last one is
/// dropped.
///
/// Without keys, messages of one address are queued together, in order; a clone is another sender.
pub struct Address<M, R, E> {
    pub(crate) door: Arc<dyn Door<M, R, E>>,
    /// Where its messages are queued, once it has sent one; [`NOWHERE`] before.
    place: AtomicU32,
}

impl<M, R, E> Clone for Address<M, R, E> {
    fn clone(&self) -> Self {
        Self::new(self.door.clone())
    }
}

impl<M, R, E> Drop for Address<M, R, E> {
    fn drop(&mut self) {
        self.door.clone().handle_dropped();
    }
}

impl<M, R, E> fmt::Debug for Address<M, R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.place.load(Ordering::Relaxed);
        let place = (place != NOWHERE).then_some(place);
        f.debug_struct("Address").field("place", &place).finish_non_exhaustive()
    }
}

impl<M, R, E> Address<M, R, E> {
    pub(crate) fn new(door: Arc<dyn Door<M, R, E>>) -> Self {
        door.handle_made();
        Self::at(door, NOWHERE)
    }

    /// For a handle that is counted: of the sender with this place.
    pub(super) fn at(door: Arc<dyn Door<M, R, E>>, place: u32) -> Self {
        Self { door, place: AtomicU32::new(place) }
    }

    /// Where messages of this sender are queued, of which the next is no call.
    #[inline(always)]
    pub(crate) fn place(&self) -> u32 {
        match self.place.load(Ordering::Relaxed) {
            NOWHERE => self.take_place(Beginning::Sends),
            place => place,
        }
    }

    /// Where messages of this sender are queued, of which the next is a call.
    #[inline(always)]
    pub(crate) fn place_of_call(&self) -> u32 {
        match self.place.load(Ordering::Relaxed) {
            NOWHERE => self.take_place(Beginning::Calls),
            place => place,
        }
    }

    /// The first of several threads that send decides for all: whoever knows of one message through this address finds the place
    /// where it went.
    #[cold]
    #[inline(never)]
    fn take_place(&self, beginning: Beginning) -> u32 {
        let place = self.door.next_place(beginning);
        let taken =
            self.place.compare_exchange(NOWHERE, place, Ordering::Relaxed, Ordering::Relaxed);
        taken.map_or_else(|other| other, |_| place)
    }

    /// Queues a message without waiting.
    ///
    /// # Errors
    /// The message, with the reason, when it was not accepted.
    ///
    /// # Panics
    /// When the key function of the pool panics; nothing has been accepted then.
    pub fn try_send(&self, message: M) -> Result<(), TrySendError<M>> {
        let mut message = Some(message);
        match self.door.try_send(&mut message, self.place(), Urgency::Now) {
            Ok(()) => Ok(()),
            Err(refused) => {
                let parcel = Parcel { message, extra: None, class: Class::Normal };
                Err(self.refuse(parcel, self.why(refused)).into())
            }
        }
    }

    /// Queues messages from the front without waiting, as many as there is room for, and leaves the rest. Returns how many
    /// were queued. Cheaper than one by one: permits are taken and workers are woken once for all of them. Without keys, a deque
    /// of 16 to 256 messages and little room besides is taken as it is, and an emptied one of that kind is left for it, whose
    /// capacity may be another.
    ///
    /// # Errors
    /// Why not even one was accepted. Nothing was taken out then.
    ///
    /// # Panics
    /// When the key function of the pool panics; the messages before the one that it was asked about are queued, the others
    /// are left.
    pub fn try_send_many(&self, messages: &mut VecDeque<M>) -> Result<usize, NotAccepted> {
        if messages.is_empty() {
            return Ok(0);
        }
        self.door.try_push_many(messages, self.place(), Urgency::Now).map_err(|refused| {
            self.door.count_rejected();
            self.why(refused)
        })
    }

    /// Queues all of these messages, waiting for room as often as it is needed. Cheaper than one by one.
    ///
    /// # Errors
    /// When the pool has stopped or has no workers left, or takes the first that is left never
    /// ([`NotAccepted::KeyRequired`]) or not now ([`NotAccepted::Parked`]). What was queued has been taken out; the rest is left.
    ///
    /// # Panics
    /// As [`try_send_many`](Self::try_send_many).
    ///
    /// # Cancel safety
    /// Each message is either queued, and taken out, or still there.
    pub async fn send_many(&self, messages: &mut VecDeque<M>) -> Result<(), NotAccepted> {
        let mut urgency = Urgency::CanStepAside;
        while !messages.is_empty() {
            let pushed = self.door.try_push_many(messages, self.place(), urgency);
            urgency = Urgency::CanStepAside;
            match pushed {
                Ok(_) => {}
                Err(Refused::NotNow) => {
                    urgency = Urgency::Now;
                    crate::step_aside().await;
                }
                Err(Refused::Full | Refused::KeyFull) => self.wait_and_push_first(messages).await?,
                Err(refused) => {
                    self.door.count_rejected();
                    return Err(self.why(refused));
                }
            }
        }
        Ok(())
    }

    async fn wait_and_push_first(&self, messages: &mut VecDeque<M>) -> Result<(), NotAccepted> {
        let Some(mut lent) = Lent::first_of(messages) else { return Ok(()) };
        let pushed = self.door.push_waiting(&mut lent.parcel, self.place()).await;
        pushed.inspect_err(|_| self.door.count_rejected())
    }

    #[cold]
    pub(super) fn refuse(&self, parcel: Parcel<M, R, E>, why: NotAccepted) -> SendError<M> {
        self.door.count_rejected();
        match parcel.message {
            Some(message) => SendError::new(message, why),
            None => SendError::Dropped,
        }
    }

    pub(crate) fn why(&self, refused: Refused) -> NotAccepted {
        refused.told(|| self.door.why_closed())
    }

    /// Lets others run, or waits for room, whichever was asked for, and queues the message.
    pub(crate) async fn wait_and_push(
        &self,
        parcel: &mut Parcel<M, R, E>,
        mut refused: Refused,
    ) -> Result<(), NotAccepted> {
        if refused == Refused::NotNow {
            crate::step_aside().await;
            match self.door.try_push(parcel, self.place(), Urgency::Now) {
                Ok(()) => return Ok(()),
                Err(again) => refused = again,
            }
        }
        match refused {
            Refused::Full | Refused::KeyFull => self.door.push_waiting(parcel, self.place()).await,
            refused => Err(self.why(refused)),
        }
    }

    /// Waits for room for one message and keeps it until the permit is used or dropped.
    ///
    /// # Errors
    /// When the pool has stopped or has no workers left.
    ///
    /// # Cancel safety
    /// A dropped future has reserved nothing.
    pub async fn reserve(&self) -> Result<Permit<'_, M, R, E>, NotAccepted> {
        match self.door.permit().await {
            Ok(()) => Ok(Permit { address: self, used: false }),
            Err(Closed) => Err(self.door.why_closed()),
        }
    }

    /// Room for one message, when there is some now.
    ///
    /// # Errors
    /// Why there is none.
    pub fn try_reserve(&self) -> Result<Permit<'_, M, R, E>, NotAccepted> {
        match self.door.try_permit() {
            Ok(()) => Ok(Permit { address: self, used: false }),
            Err(refused) => Err(self.why(refused)),
        }
    }
}

impl<M, R, E> Address<M, R, E> {
    /// Where the pool was spawned.
    pub(crate) fn runtime(&self) -> &tokio::runtime::Handle {
        self.door.runtime()
    }

    /// The pool without its types, whatever becomes of the address.
    pub(crate) fn door(&self) -> Arc<dyn Erased>
    where
        M: 'static,
        R: 'static,
        E: 'static,
    {
        self.door.clone()
    }
}

impl<M: 'static, R: 'static, E: 'static> Address<M, R, E> {
    /// The address without its types. It does not keep the pool alive.
    pub fn erase(&self) -> AnyAddress {
        self.door().any()
    }
}

impl<M: Send, R: Send, E: Send> Address<M, R, E> {
    /// Queues a message, waiting for room. Waiting senders are served first come, first served.
    ///
    /// # Errors
    /// The message, when the pool has stopped or has no workers left, when its key is parked and has no room for more, and
    /// when it has no key in a pool that requires one.
    ///
    /// # Cancel safety
    /// A dropped future has either queued the message or done nothing; the message is dropped with it in that case. To
    /// keep it, use [`reserve`](Self::reserve).
    #[inline]
    pub fn send(&self, message: M) -> Sending<'_, M, R, E> {
        Sending::new(self, message)
    }
}

/// The first message of several, on its way into a queue. It goes back to the others unless it was accepted, also when the
/// key function panics.
struct Lent<'a, M, R, E> {
    messages: &'a mut VecDeque<M>,
    parcel: Parcel<M, R, E>,
}

impl<'a, M, R, E> Lent<'a, M, R, E> {
    fn first_of(messages: &'a mut VecDeque<M>) -> Option<Self> {
        let parcel = Parcel::new(messages.pop_front()?, None);
        Some(Self { messages, parcel })
    }
}

impl<M, R, E> Drop for Lent<'_, M, R, E> {
    fn drop(&mut self) {
        if let Some(message) = self.parcel.message.take() {
            self.messages.push_front(message);
        }
    }
}

/// Room for one message. Dropped unused, it goes to the next who waits.
#[derive(Debug)]
#[must_use = "a permit that is dropped gives its room to the next sender"]
pub struct Permit<'a, M, R, E> {
    address: &'a Address<M, R, E>,
    used: bool,
}

impl<M, R, E> Permit<'_, M, R, E> {
    /// Queues a message in the reserved room.
    ///
    /// # Errors
    /// The message, when the pool was stopped after the permit was taken; and when its key may have no more
    /// ([`max_per_key`](crate::PoolBuilder::max_per_key)), because the room was taken before the key was known.
    pub fn send(mut self, message: M) -> Result<(), SendError<M>> {
        self.used = true;
        let mut parcel = Parcel::new(message, None);
        let pushed = self.address.door.push_permitted(&mut parcel, self.address.place());
        pushed.map_err(|why| self.address.refuse(parcel, why))
    }
}

impl<M, R, E> Drop for Permit<'_, M, R, E> {
    fn drop(&mut self) {
        if !self.used {
            self.address.door.give_permit();
        }
    }
}
