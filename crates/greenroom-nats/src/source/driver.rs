//! The task that reads one partition. It waits only for the server, and for orders: never for the
//! engine (D11).
//!
//! | part | what it does |
//! |---|---|
//! | `asking` | requests as many messages as there is room for |
//! | `receiving` | takes them, and notices those that are missing |
//! | `holding` | holds back what is newer than something missing |
//! | `giving_back` | returns what was never started |
//! | `losing` | finds or makes a consumer anew that is gone |
//! | `owning` | reads only while no other process does |
//! | `unreadable` | finds what ends the connection each time that it comes |
//! | `suspicion` | asks one by one where that is not found |

mod asking;
mod giving_back;
mod holding;
mod in_vain;
mod losing;
mod lost;
mod owning;
mod receiving;
mod suspicion;
mod unreadable;

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use async_nats::{Subscriber, jetstream::consumer::PullConsumer};
use bytes::Bytes;
use futures_util::StreamExt;
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep_until},
};

use self::{in_vain::InVain, lost::Lost, suspicion::Suspicion};
use super::{
    committer::Command,
    consumer::{NoConsumer, Wanted},
    form::Form,
    hold::{Hold, Missing},
    lease::{Lease, open_lease},
    requests::Requests,
    shared::{Answer, Shared},
};
use crate::{
    connection::{Connection, because},
    options::NatsInput,
};

/// After this long a silence, a request counts as lost.
const SILENCE: Duration = Duration::from_secs(11);

/// The timeout for an answer of the server.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// After a request was refused, or the consumer was not available, it is tried again after this
/// time.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

pub(super) struct Driver {
    pub(super) connection: Arc<Connection>,
    pub(super) shared: Arc<Shared>,
    pub(super) commands: mpsc::UnboundedReceiver<Command>,
    input: Arc<NatsInput>,
    form: Form,
    bound: Bound,
    inbox: Inbox,
    connected: watch::Receiver<u64>,
    asking: Asking,
    holding: HoldingBack,
    tick: Instant,
    /// The subject of the last acknowledgement.
    last_settled: Option<Box<str>>,
}

/// The consumer that is read.
struct Bound {
    wanted: Wanted,
    consumer: PullConsumer,
    stream_made: async_nats::datetime::DateTime,
    /// Up to here it had delivered when it was opened.
    delivered_before: u64,
    /// Why it cannot be read now.
    lost: Option<Lost>,
    /// That it is lost was told.
    has_told: bool,
    /// `None` if the account can have none.
    lease: Option<Lease>,
}

/// Where messages come in.
struct Inbox {
    subject: String,
    messages: Subscriber,
    /// Nothing comes any more, as was asked for.
    is_drained: bool,
}

/// The current request, and when to repeat it.
struct Asking {
    requests: Requests,
    /// When the server last gave a sign of life.
    heard: Instant,
    /// No request before then.
    ask_after: Instant,
    /// The next one is for one message of whatever size.
    ask_for_large: bool,
    suspicion: Suspicion,
}

/// Messages that are held back until older ones have come.
struct HoldingBack {
    hold: Option<Hold>,
    /// Up to here nothing is missing: known from the start until the first message, and while
    /// older ones may still come.
    floor: Option<u64>,
    /// The connection was lost, perhaps because of a message that is missing now.
    was_cut: bool,
    /// The number of the last delivery.
    last_number: u64,
    /// When the last turn of the driver began.
    turned: Instant,
    in_vain: Option<InVain>,
}

impl Driver {
    /// Finds or makes the consumer. The second value is how many messages were delivered and not
    /// acknowledged, where any was delivered.
    pub(super) async fn open(
        connection: Arc<Connection>,
        shared: Arc<Shared>,
        commands: mpsc::UnboundedReceiver<Command>,
        (input, form, partition): (Arc<NatsInput>, Form, Option<u32>),
    ) -> Result<(Self, Option<u64>), NoConsumer> {
        let wanted = Wanted::new(&input, partition);
        let connected = connection.connected();
        let (mut lease, is_waiting) =
            open_lease(&connection, &shared, &wanted, input.ack_wait).await;
        let found = match wanted.find(&connection.jetstream, None, is_waiting).await {
            Ok(found) => found,
            Err(error) => {
                if let Some(lease) = &mut lease {
                    lease.release().await;
                }
                return Err(error);
            }
        };
        let (inbox, messages) = subscribe(&connection).await.map_err(NoConsumer::ForNow)?;
        let info = found.consumer.cached_info();
        let (was_delivered, left) = (info.delivered.consumer_sequence, info.num_ack_pending as u64);
        let up_to = info.delivered.stream_sequence;
        let floor = Some(info.ack_floor.stream_sequence);
        let now = Instant::now();
        let hold = (left > 0 && !is_waiting).then(|| {
            let mut hold = Hold::new(input.ack_wait, now);
            hold.asked(Missing::asked(left, up_to, 0), now);
            hold
        });
        shared.look(|state| state.lag = Some(info.num_pending));
        let driver = Self {
            tick: now + tick_of(&input),
            connection,
            shared,
            commands,
            input,
            form,
            bound: Bound {
                wanted,
                consumer: found.consumer,
                stream_made: found.stream_made,
                delivered_before: up_to,
                lost: is_waiting.then_some(Lost::Waiting),
                has_told: false,
                lease,
            },
            inbox: Inbox { subject: inbox, messages, is_drained: false },
            connected,
            asking: Asking {
                requests: Requests::default(),
                heard: now,
                ask_after: now,
                ask_for_large: false,
                suspicion: Suspicion::default(),
            },
            holding: HoldingBack {
                hold,
                floor,
                was_cut: false,
                last_number: was_delivered,
                turned: now,
                in_vain: None,
            },
            last_settled: None,
        };
        Ok((driver, (was_delivered > 0 && !is_waiting).then_some(left)))
    }

    /// Until it gets the order to end, or all handles are gone.
    pub(super) async fn run(mut self) {
        let shared = self.shared.clone();
        let _fails = shared.fails_on_panic();
        self.connected.mark_unchanged();
        loop {
            self.begin_turn();
            self.look_after_lease().await;
            self.answer().await;
            self.look_after_hold().await;
            self.look_after_lost().await;
            self.ask().await;
            let next = self.next_moment();
            tokio::select! {
                biased;
                command = self.commands.recv() => match command {
                    Some(Command::Commit(done)) => {
                        self.commit().await;
                        // A caller that is gone need not know.
                        let _ = done.send(());
                    }
                    Some(Command::End) | None => return self.end().await,
                },
                _ = self.connected.changed() => self.reconnected().await,
                message = self.inbox.messages.next(), if !self.inbox.is_drained => match message {
                    Some(message) => self.receive(message),
                    None => if !self.opened_again().await {
                        return;
                    },
                },
                () = shared.to_driver.notified() => {}
                () = sleep_until(next) => self.on_time().await,
            }
        }
    }

    fn next_moment(&self) -> Instant {
        let mut next = self.tick;
        if let Some(hold) = &self.holding.hold {
            next = next.min(hold.ask_at).min(hold.until);
        }
        if let Some(Lost::LookAt(at)) = &self.bound.lost {
            next = next.min(*at);
        }
        if let Some(lease) = &self.bound.lease {
            next = next.min(lease.look_at);
        }
        next.min(self.asking.heard + SILENCE)
    }

    /// Sends settlements to the server. Not while its consumer is lost: in a recreated stream, the
    /// same positions are other messages.
    async fn answer(&mut self) {
        if !self.connection.is_up() || self.bound.lost.is_some() {
            return;
        }
        let answers = self.shared.look(|state| std::mem::take(&mut state.answers));
        for (reply, answer) in answers {
            self.tell(&reply, answer).await;
            self.last_settled = Some(reply);
        }
    }

    /// If it gets lost, the message is delivered again, and answered again then.
    async fn tell(&self, reply: &str, answer: Answer) {
        let text = Bytes::from_static(answer.text().as_bytes());
        if let Err(error) = self.connection.client.publish(reply.to_owned(), text).await {
            tracing::debug!(%error, "an acknowledgement was not published");
        }
    }

    /// Waits until everything sent has reached the server: by repeating the last acknowledgement,
    /// with an answer.
    async fn barrier(&mut self) -> bool {
        let Some(reply) = &self.last_settled else { return true };
        let request = async_nats::Request::new()
            .payload(Bytes::from_static(Answer::Ack.text().as_bytes()))
            .timeout(Some(ANSWER_WITHIN));
        self.connection.client.send_request(reply.to_string(), request).await.is_ok()
    }

    async fn commit(&mut self) {
        self.shared.statuses.show(&self.connection, self.shared.partition, self.who_reads());
        self.give_back_where_idle().await;
        let settled = self.shared.look(|state| state.tracker.settled());
        self.answer().await;
        if self.connection.is_up() && self.bound.lost.is_none() && self.barrier().await {
            self.shared.look(|state| state.tracker.confirm(settled));
        }
    }

    async fn end(&mut self) {
        self.shared.is_closing.store(true, Ordering::Release);
        self.commit().await;
        if let Some(lease) = &mut self.bound.lease {
            lease.release().await;
        }
    }

    /// Failed: until it gets the order to end.
    async fn failed(&mut self, why: String) {
        self.shared.fail(why);
        while let Some(Command::Commit(done)) = self.commands.recv().await {
            // A caller that is gone need not know.
            let _ = done.send(());
        }
    }

    async fn on_time(&mut self) {
        let now = Instant::now();
        if self.stood_still(now) {
            // Messages that came in between are read first.
            return self.asking.heard = now;
        }
        if now >= self.asking.heard + SILENCE {
            self.asking.heard = now;
            if self.asking.requests.outstanding() > 0 && self.connection.is_up() {
                tracing::warn!(
                    consumer = self.bound.wanted.name,
                    "NATS is silent: the consumer is looked for"
                );
                self.lose(Duration::ZERO);
            }
        }
        if now < self.tick {
            return;
        }
        self.tick = now + tick_of(&self.input);
        if !self.connection.is_up() || self.bound.lost.is_some() {
            return;
        }
        let after = self.input.ack_wait / 4;
        for reply in self.shared.look(|state| state.tracker.touch(after, now)) {
            self.tell(&reply, Answer::Progress).await;
        }
        self.look_after_missed().await;
    }
}

/// Messages in hand are touched once they are a quarter of the time old, and so before half of it.
fn tick_of(input: &NatsInput) -> Duration {
    input.ack_wait / 8
}

/// A subject of our own to which the server delivers, and its subscriber.
async fn subscribe(connection: &Connection) -> Result<(String, Subscriber), String> {
    let inbox = connection.client.new_inbox();
    let messages = connection.client.subscribe(format!("{inbox}.*")).await;
    Ok((inbox, messages.map_err(|error| because(&error))?))
}
