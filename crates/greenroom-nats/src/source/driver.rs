//! The task that reads one partition. It waits for nothing but the server, and for what it is told:
//! never for the engine (D11).

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use async_nats::{Message, StatusCode, Subscriber, jetstream::consumer::PullConsumer};
use bytes::Bytes;
use futures_util::{FutureExt, StreamExt};
use greenroom_bus::source::Taken;
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep_until, timeout},
};

use super::{
    committer::Command,
    consumer::{NoConsumer, Wanted},
    delivery::Delivery,
    form::Form,
    hold::{Hold, Holding},
    options::NatsSourceOptions,
    requests::Requests,
    shared::{Answer, Revocation, Shared},
    tracker::Received,
};
use crate::connection::{Connection, because};

/// A request is open for so long; another takes its place.
const EXPIRES: Duration = Duration::from_secs(30);

/// So often the server says that a request is alive, where it brings nothing.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// After so long a silence, a request is taken for lost.
const SILENCE: Duration = Duration::from_secs(11);

/// An answer of the server is waited for so long.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// Messages that are handled in a row before anything else gets a turn.
const TURN: usize = 256;

/// After a request was refused, or the consumer could not be had, it is tried again so much later.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Why a consumer that was there cannot be read.
enum Lost {
    /// It is to be looked for at this time.
    LookAt(Instant),
    /// Its stream is another one: until the engine has answered.
    Revoking,
}

pub(super) struct Driver {
    pub(super) connection: Arc<Connection>,
    pub(super) shared: Arc<Shared>,
    pub(super) commands: mpsc::UnboundedReceiver<Command>,
    wanted: Wanted,
    options: Arc<NatsSourceOptions>,
    form: Form,
    consumer: PullConsumer,
    stream_made: async_nats::datetime::DateTime,
    /// Where messages come in: its subject, and what reads it.
    inbox: String,
    messages: Subscriber,
    connected: watch::Receiver<u64>,
    requests: Requests,
    hold: Option<Hold>,
    lost: Option<Lost>,
    /// That it is lost was told.
    has_told: bool,
    /// The number of the last delivery.
    last_number: u64,
    /// When the server last gave a sign of life.
    heard: Instant,
    /// No request before then.
    ask_after: Instant,
    /// The next one is for one message of whatever size.
    ask_for_large: bool,
    tick: Instant,
    /// What the last acknowledgement was published to.
    last_settled: Option<Box<str>>,
    /// Another process reads the consumer, it seems: until then, gaps are not waited for.
    shared_until: Option<Instant>,
}

impl Driver {
    /// Finds or makes the consumer. The second value is how many messages were delivered and not
    /// acknowledged, where any was delivered.
    pub(super) async fn open(
        connection: Arc<Connection>,
        shared: Arc<Shared>,
        commands: mpsc::UnboundedReceiver<Command>,
        options: Arc<NatsSourceOptions>,
        partition: Option<u32>,
    ) -> Result<(Self, Option<u64>), NoConsumer> {
        let wanted = Wanted::of(&options, partition);
        let connected = connection.connected();
        let found = wanted.find(&connection.jetstream, None).await?;
        let (inbox, messages) = subscribe(&connection).await.map_err(NoConsumer::ForNow)?;
        let form = Form {
            stream: options.stream.clone(),
            records: options.records.clone(),
            key: options.key.clone(),
        };
        let info = found.consumer.cached_info();
        let (was_delivered, left) = (info.delivered.consumer_sequence, info.num_ack_pending as u64);
        let now = Instant::now();
        let hold = (left > 0).then(|| {
            let mut hold = Hold::new(options.ack_wait, now);
            hold.asked(left, info.delivered.stream_sequence, 0, now);
            hold
        });
        shared.look(|state| state.lag = Some(info.num_pending));
        let driver = Self {
            tick: now + tick_of(&options),
            connection,
            shared,
            commands,
            wanted,
            options,
            form,
            last_number: was_delivered,
            consumer: found.consumer,
            stream_made: found.stream_made,
            inbox,
            messages,
            connected,
            requests: Requests::default(),
            hold,
            lost: None,
            has_told: false,
            heard: now,
            ask_after: now,
            ask_for_large: false,
            last_settled: None,
            shared_until: None,
        };
        Ok((driver, (was_delivered > 0).then_some(left)))
    }

    /// Until it is told to end, or nobody is left who could tell it.
    pub(super) async fn run(mut self) {
        let shared = self.shared.clone();
        self.connected.mark_unchanged();
        loop {
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
                        // Whoever does not wait any more needs not know.
                        let _ = done.send(());
                    }
                    Some(Command::End) | None => return self.end().await,
                },
                _ = self.connected.changed() => self.reconnected().await,
                message = self.messages.next() => match message {
                    Some(message) => self.receive(message),
                    None => return self.closed().await,
                },
                () = shared.to_driver.notified() => {}
                () = sleep_until(next) => self.on_time().await,
            }
        }
    }

    fn next_moment(&self) -> Instant {
        let mut next = self.tick;
        if let Some(hold) = &self.hold {
            next = next.min(hold.ask_at).min(hold.until);
        }
        if let Some(Lost::LookAt(at)) = &self.lost {
            next = next.min(*at);
        }
        next.min(self.heard + SILENCE)
    }

    /// Tells the server what is settled.
    /// Not while its consumer is lost: in a stream that was made anew, the same positions are other
    /// messages.
    async fn answer(&mut self) {
        if !self.connection.is_up() || self.lost.is_some() {
            return;
        }
        let answers = self.shared.look(|state| std::mem::take(&mut state.answers));
        for (reply, answer) in answers {
            self.tell(&reply, answer).await;
            self.last_settled = Some(reply);
        }
    }

    /// What is not heard is delivered again, and told again then.
    async fn tell(&self, reply: &str, answer: Answer) {
        let text = Bytes::from_static(answer.text().as_bytes());
        if let Err(error) = self.connection.client.publish(reply.to_owned(), text).await {
            tracing::debug!(%error, "an acknowledgement was not published");
        }
    }

    /// Asks for as many messages as there is room for.
    async fn ask(&mut self) {
        let now = Instant::now();
        if self.lost.is_some() || now < self.ask_after || self.shared.is_closing() {
            return;
        }
        let outstanding = self.requests.outstanding();
        let (open, ready, is_paused) =
            self.shared.look(|state| (state.tracker.open(), state.ready.len(), state.is_paused));
        let batch = self.options.batch;
        let messages = match &self.hold {
            _ if is_paused => return,
            // The server gives nothing new beyond the bound; what is old has to come.
            Some(_) if outstanding == 0 => batch,
            Some(_) => return,
            None => {
                let room = self.options.capacity.saturating_sub(open + outstanding);
                room.min((2 * batch).saturating_sub(ready + outstanding)).min(batch)
            }
        };
        // Not for a few at a time, unless nothing else is on its way.
        if messages == 0 || (outstanding > 0 && messages < batch.div_ceil(2)) {
            return;
        }
        let messages = if std::mem::take(&mut self.ask_for_large) { 1 } else { messages };
        if let Err(error) = self.request(messages).await {
            tracing::warn!(consumer = self.wanted.name, error, "messages could not be asked for");
            self.ask_after = now + AGAIN_AFTER;
        }
    }

    async fn request(&mut self, messages: usize) -> Result<(), String> {
        let number = self.requests.begin(messages);
        let bytes = match messages {
            1 => String::new(),
            _ => format!("\"max_bytes\":{},", self.options.batch_bytes),
        };
        let (expires, heartbeat) = (EXPIRES.as_nanos(), HEARTBEAT.as_nanos());
        let body = format!(
            "{{\"batch\":{messages},{bytes}\"expires\":{expires},\"idle_heartbeat\":{heartbeat}}}"
        );
        let prefix = match &self.connection.domain {
            Some(domain) => format!("$JS.{domain}.API"),
            None => "$JS.API".to_owned(),
        };
        let (stream, consumer) = (&self.wanted.stream, &self.wanted.name);
        let subject = format!("{prefix}.CONSUMER.MSG.NEXT.{stream}.{consumer}");
        let reply = format!("{}.{number}", self.inbox);
        let sent = self.connection.client.publish_with_reply(subject, reply, body.into()).await;
        if self.requests.outstanding() == messages {
            self.heard = Instant::now();
        }
        sent.map_err(|error| because(&error))
    }

    /// Takes a message, and what has come with it.
    fn receive(&mut self, first: Message) {
        let mut ready = Vec::new();
        self.take(first, &mut ready);
        for _ in 1..TURN {
            let Some(Some(message)) = self.messages.next().now_or_never() else { break };
            self.take(message, &mut ready);
        }
        if !ready.is_empty() {
            self.shared.give(ready);
        }
    }

    fn take(&mut self, message: Message, ready: &mut Vec<Taken>) {
        self.heard = Instant::now();
        if let Some(status) = message.status {
            return self.status(status, &message);
        }
        let reply = message.reply.as_ref().map(|reply| reply.as_str());
        let Some((reply, delivery)) = reply.and_then(|reply| Some((reply, Delivery::read(reply)?)))
        else {
            return;
        };
        self.requests.delivered();
        self.notice_gap(delivery.number);
        let (received, now) = (&self.shared, self.heard);
        let received = received.look(|state| {
            state.lag = Some(delivery.pending);
            if state.revocation != Revocation::None {
                return Received::InHand;
            }
            let received = state.tracker.receive(delivery.position, reply, now);
            match received {
                Received::New => {}
                Received::InHand => state.stats.doubled += 1,
                Received::Done => {
                    state.stats.skipped += 1;
                    state.answers.push((reply.into(), Answer::Ack));
                }
            }
            received
        });
        if received != Received::New {
            return;
        }
        let taken = self.form.read(&message, &delivery);
        match &mut self.hold {
            Some(hold) => hold.keep(taken),
            None => ready.push(taken),
        }
    }

    /// Deliveries are numbered without gaps: one is missing that never came, and comes again.
    fn notice_gap(&mut self, number: u64) {
        let is_gap = number > self.last_number + 1;
        self.last_number = number;
        let now = self.heard;
        if is_gap && self.hold.is_none() && self.shared_until.is_none_or(|until| now >= until) {
            self.hold = Some(Hold::new(self.options.ack_wait, now));
        }
    }

    fn status(&mut self, status: StatusCode, message: &Message) {
        if status == StatusCode::IDLE_HEARTBEAT {
            return;
        }
        let number = message.subject.as_str().rsplit('.').next().and_then(|text| text.parse().ok());
        if let Some(number) = number {
            self.requests.ended(number);
        }
        let why = message.description.as_deref().unwrap_or_default();
        match status.as_u16() {
            // Nothing there, or its time is over.
            404 | 408 => {}
            409 if why.eq_ignore_ascii_case("message size exceeds maxbytes") => {
                self.ask_for_large = true;
            }
            409 if why.eq_ignore_ascii_case("batch completed") => {}
            _ => {
                let (consumer, status) = (self.wanted.name.as_str(), status.as_u16());
                tracing::info!(
                    consumer,
                    status,
                    why,
                    "NATS ended a request for messages: the consumer is looked for"
                );
                self.lose(Duration::ZERO);
            }
        }
    }

    fn lose(&mut self, wait: Duration) {
        if self.lost.is_none() {
            self.requests.clear();
            self.lost = Some(Lost::LookAt(Instant::now() + wait));
        }
    }

    /// Looks for a consumer that was lost, and makes it again.
    async fn look_after_lost(&mut self) {
        let revocation = self.shared.look(|state| state.revocation);
        match self.lost {
            Some(Lost::Revoking) if revocation == Revocation::None => {}
            Some(Lost::LookAt(at)) if Instant::now() >= at => {}
            _ => return,
        }
        let is_new = matches!(self.lost, Some(Lost::Revoking));
        // One that is made anew goes on with what is not done.
        let from = self.shared.look(|state| state.tracker.oldest_open()).max(1);
        let from = (!is_new && from > 1).then_some(from);
        let found = match self.wanted.find(&self.connection.jetstream, from).await {
            Ok(found) => found,
            Err(error) => {
                if !std::mem::replace(&mut self.has_told, true) {
                    let (consumer, error) = (self.wanted.name.as_str(), error.into_text());
                    tracing::warn!(
                        consumer,
                        error,
                        "nothing can be read now: it is tried again until that is mended"
                    );
                }
                self.lost = Some(Lost::LookAt(Instant::now() + AGAIN_AFTER));
                return;
            }
        };
        if found.stream_made != self.stream_made {
            self.stream_made = found.stream_made;
            (self.hold, self.last_settled) = (None, None);
            tracing::warn!(
                stream = self.wanted.stream,
                "the stream was removed and made anew: what is in hand of the old one is given up"
            );
            self.shared.revoke();
            self.lost = Some(Lost::Revoking);
            return;
        }
        self.lost = None;
        if std::mem::take(&mut self.has_told) {
            tracing::info!(consumer = self.wanted.name, "the consumer is read again");
        }
        let info = found.consumer.cached_info();
        self.last_number = info.delivered.consumer_sequence;
        if self.hold.is_none() {
            self.hold = Some(Hold::new(self.options.ack_wait, Instant::now()));
        }
        self.consumer = found.consumer;
    }

    /// Asks the server what it waits for, while anything is held back, and ends that where it is
    /// time.
    async fn look_after_hold(&mut self) {
        let now = Instant::now();
        let Some(hold) = &mut self.hold else { return };
        if self.lost.is_some() || !self.connection.is_up() || self.shared.look(|s| s.is_paused) {
            // Nothing can come meanwhile.
            return hold.wait_on(self.options.ack_wait, now);
        }
        if now >= hold.ask_at {
            self.ask_what_is_missing().await;
        }
        let Some(hold) = &self.hold else { return };
        let held = hold.len() as u64;
        self.shared.look(|state| state.stats.held_back = held);
        let missing = match hold.is_over(self.options.hold_bytes, Instant::now()) {
            Holding::Wait => return,
            Holding::Complete => None,
            Holding::Enough(missing) => Some(missing),
        };
        if let Some(missing) = missing {
            let now = Instant::now();
            self.shared_until = Some(now + 10 * self.options.ack_wait);
            tracing::warn!(
                consumer = self.wanted.name,
                missing,
                held,
                "older messages were waited for in vain: what was held back goes on, and they may come out of order; is another process reading this consumer?"
            );
        }
        if let Some(hold) = self.hold.take() {
            self.shared.look(|state| state.stats.held_back = 0);
            self.shared.give(hold.release());
        }
    }

    async fn ask_what_is_missing(&mut self) {
        self.answer().await;
        let info = match self.barrier().await {
            true => self.consumer.get_info().await.map_err(|error| because(&error)),
            false => Err("no answer".to_owned()),
        };
        let open = self.shared.look(|state| state.tracker.open()) as u64;
        let now = Instant::now();
        let Some(hold) = &mut self.hold else { return };
        match info {
            Ok(info) => {
                let (waits_for, up_to) =
                    (info.num_ack_pending as u64, info.delivered.stream_sequence);
                hold.asked(waits_for, up_to, open, now);
            }
            Err(error) => {
                tracing::debug!(error, "the state of the consumer is not known yet");
                hold.ask_at = now + super::hold::ASK_EVERY;
            }
        }
    }

    /// Waits until the server has heard of all that it was told: by acknowledging once more, and
    /// with an answer, what was acknowledged last.
    async fn barrier(&mut self) -> bool {
        let Some(reply) = &self.last_settled else { return true };
        let request = async_nats::Request::new()
            .payload(Bytes::from_static(Answer::Ack.text().as_bytes()))
            .timeout(Some(ANSWER_WITHIN));
        self.connection.client.send_request(reply.to_string(), request).await.is_ok()
    }

    async fn commit(&mut self) {
        self.give_back_where_idle().await;
        let settled = self.shared.look(|state| state.tracker.settled());
        self.answer().await;
        if self.connection.is_up() && self.lost.is_none() && self.barrier().await {
            self.shared.look(|state| state.tracker.confirm(settled));
        }
    }

    /// What was never started goes back where nothing more is given: after the source is gone, and
    /// while the partition is paused and nothing of it is in hand.
    async fn give_back_where_idle(&mut self) {
        let waits = self.hold.as_ref().map_or(0, Hold::len);
        let is_idle = self
            .shared
            .look(|state| state.is_paused && state.tracker.open() == state.ready.len() + waits);
        let is_closing = self.shared.is_closing();
        if self.lost.is_some() || !self.connection.is_up() || !(is_closing || is_idle) {
            return;
        }
        if self.requests.outstanding() > 0 {
            self.stop_asking().await;
            if !is_closing {
                self.subscribe_anew().await;
            }
        }
        let held = self.hold.take().into_iter().flat_map(Hold::release);
        let back = self.shared.look(|state| {
            let waiting = state.ready.drain(..).chain(held);
            let mut back: Vec<u64> = waiting.map(|taken| taken.position).collect();
            if is_closing {
                back.extend(state.tracker.refused());
            }
            back.sort_unstable();
            back.into_iter().filter_map(|position| state.tracker.give_back(position)).collect()
        });
        self.give_back(back).await;
    }

    async fn give_back(&mut self, back: Vec<Box<str>>) {
        if back.is_empty() {
            return;
        }
        for reply in back {
            self.tell(&reply, Answer::Nak).await;
        }
        // Its answer comes after the server has read all this.
        let _ = self.consumer.get_info().await;
        // They come back first, once anything is asked for; if not, they are waited for.
        self.hold = Some(Hold::new(self.options.ack_wait, Instant::now()));
    }

    /// Ends what was asked for, and takes what was on its way: it would come to nobody, and be
    /// waited for.
    async fn stop_asking(&mut self) {
        self.requests.clear();
        if self.messages.drain().await.is_err() {
            return;
        }
        // It ends with the server's answer, which comes behind all that it had sent.
        while let Ok(Some(message)) = timeout(ANSWER_WITHIN, self.messages.next()).await {
            self.receive(message);
        }
    }

    async fn subscribe_anew(&mut self) {
        match subscribe(&self.connection).await {
            Ok((inbox, messages)) => (self.inbox, self.messages) = (inbox, messages),
            Err(error) => {
                tracing::warn!(error, "messages cannot be received");
                self.lose(AGAIN_AFTER);
            }
        }
    }

    async fn end(&mut self) {
        self.shared.is_closing.store(true, Ordering::Release);
        self.commit().await;
    }

    /// The client has given up for good, which it does only where it is told to.
    async fn closed(&mut self) {
        let server = &self.connection.shown;
        self.shared.fail(format!("the connection to {server} was closed for good; start again"));
        while let Some(Command::Commit(done)) = self.commands.recv().await {
            // Whoever does not wait any more needs not know.
            let _ = done.send(());
        }
    }

    /// Another connection: what was asked for over the last one does not come.
    async fn reconnected(&mut self) {
        while let Some(Some(message)) = self.messages.next().now_or_never() {
            self.receive(message);
        }
        self.requests.clear();
        self.heard = Instant::now();
        self.subscribe_anew().await;
        // The consumer may be gone with what the server has lost.
        self.lose(Duration::ZERO);
    }

    async fn on_time(&mut self) {
        let now = Instant::now();
        if now >= self.heard + SILENCE {
            self.heard = now;
            if self.requests.outstanding() > 0 && self.connection.is_up() {
                tracing::warn!(
                    consumer = self.wanted.name,
                    "NATS is silent: the consumer is looked for"
                );
                self.lose(Duration::ZERO);
            }
        }
        if now < self.tick {
            return;
        }
        self.tick = now + tick_of(&self.options);
        if !self.connection.is_up() || self.lost.is_some() {
            return;
        }
        let after = self.options.ack_wait / 4;
        for reply in self.shared.look(|state| state.tracker.touch(after, now)) {
            self.tell(&reply, Answer::Progress).await;
        }
    }
}

/// What is in hand is touched once it is a quarter of the time old, and so before half of it.
fn tick_of(options: &NatsSourceOptions) -> Duration {
    options.ack_wait / 8
}

/// A subject of our own to which the server delivers, and what reads it.
async fn subscribe(connection: &Connection) -> Result<(String, Subscriber), String> {
    let inbox = connection.client.new_inbox();
    let messages = connection.client.subscribe(format!("{inbox}.*")).await;
    Ok((inbox, messages.map_err(|error| because(&error))?))
}
