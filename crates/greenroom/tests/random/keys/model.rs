//! The history of each message, and what may happen to it next.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use greenroom::{Class, DeadLetter, DeadLetterReason};

use super::program::{Message, Program};

/// A message, from before it is sent.
#[derive(Debug)]
struct Track {
    key: Option<u8>,
    class: Class,
    /// The task that sends it, after all that it has sent before.
    sender: Option<u8>,
    alive: Weak<()>,
    /// Its place among all accepted messages, if known.
    accepted: Option<u64>,
    attempts: u32,
    /// Failed attempts that count, since its last replay.
    failures: u32,
    /// The number of workers that died of it.
    kills: u32,
    outcome: Option<&'static str>,
}

#[derive(Debug, Default)]
pub(crate) struct Seen {
    tracks: BTreeMap<u32, Track>,
    in_hand: HashSet<u8>,
    /// For each key, in order: messages that were attempted, and wait for a retry or for an
    /// operator.
    failed: HashMap<u8, Vec<u32>>,
    last_of_sender: HashMap<(u8, u8, Class), u32>,
    last_accepted: HashMap<(u8, Class), u64>,
    accepted: u64,
    /// Dead letters without a message.
    pub(crate) anonymous: u64,
    pub(crate) violations: Vec<String>,
    /// The most attempts of a message.
    attempts: u32,
    poison_limit: u32,
    hashes: u8,
}

#[derive(Debug, Clone)]
pub(crate) struct Log(Arc<Mutex<Seen>>);

impl Log {
    pub(crate) fn new(program: &Program) -> Self {
        let (attempts, hashes) = (program.attempts, program.hashes);
        let seen = Seen { attempts, hashes, poison_limit: program.poison_limit, ..Seen::default() };
        Self(Arc::new(Mutex::new(seen)))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks these as in hand together, until the guard is dropped.
    pub(crate) fn begin(&self, messages: &[(u32, Option<u8>)]) -> InHand {
        let mut seen = self.lock();
        let key = messages[0].1;
        if messages.iter().any(|(_, other)| *other != key) {
            seen.violations.push(format!("a batch of several keys: {messages:?}"));
        }
        let numbers: Vec<u32> = messages.iter().map(|(number, _)| *number).collect();
        seen.begin(key, &numbers);
        InHand { log: self.clone(), key, numbers, ended: false, done: Vec::new() }
    }

    pub(crate) fn buried(&self, letter: DeadLetter<Message, u32>) {
        let mut seen = self.lock();
        let Some(message) = letter.message else {
            seen.anonymous += 1;
            return;
        };
        let by_failing = matches!(
            letter.reason,
            DeadLetterReason::Failed | DeadLetterReason::Panicked | DeadLetterReason::TimedOut
        );
        let track = &seen.tracks[&message.number];
        let wrong = by_failing && track.failures < seen.attempts;
        if wrong || letter.attempts != track.attempts {
            let (attempts, of) = (letter.attempts, track.attempts);
            let (number, reason, failures) = (message.number, letter.reason, track.failures);
            seen.violations.push(format!(
                "{number} is a dead letter ({reason:?}) after {attempts} attempts (of {of}; {failures} count)"
            ));
        }
        seen.ends(message.number, "dead");
    }
}

impl Seen {
    fn begin(&mut self, key: Option<u8>, numbers: &[u32]) {
        if let Some(key) = key {
            if !self.in_hand.insert(key) {
                self.violations.push(format!("key {key} is in hand twice, with {numbers:?}"));
            }
            self.check_line(key, numbers);
        } else if numbers.len() > 1 {
            self.violations.push(format!("a batch without a key: {numbers:?}"));
        }
        for number in numbers {
            let (attempts, kills) = (self.attempts, self.poison_limit);
            let Some(track) = self.tracks.get_mut(number) else { continue };
            track.attempts += 1;
            if track.attempts == 1 {
                self.check_order(*number);
            } else if track.failures >= attempts || track.kills >= kills {
                self.violations.push(format!("{number} is attempted too often: {track:?}"));
            }
        }
    }

    /// Failed messages come first, in order, and no new one comes before all of them.
    fn check_line(&mut self, key: u8, numbers: &[u32]) {
        let mut failed = self.failed_of(key);
        let common = numbers.len().min(failed.len());
        let new = numbers.iter().skip(common);
        let known = new.clone().any(|number| self.tracks[number].attempts > 0);
        if numbers[..common] != failed[..common] || known {
            self.violations.push(format!("key {key}: {numbers:?} in hand, first are {failed:?}"));
        }
        failed.retain(|number| !numbers.contains(number));
        self.failed.insert(key, failed);
    }

    /// A first attempt comes after those of earlier messages of its sender, and of messages
    /// accepted before.
    fn check_order(&mut self, number: u32) {
        let track = &self.tracks[&number];
        let Some(key) = track.key else { return };
        let class = track.class;
        let before = track
            .sender
            .and_then(|sender| self.last_of_sender.insert((sender, key, class), number));
        if before.is_some_and(|before| before > number) {
            self.violations.push(format!("key {key}, {class:?}: {number} after {before:?}"));
        }
        let Some(accepted) = self.tracks[&number].accepted else { return };
        let before = self.last_accepted.insert((key, class), accepted);
        if before.is_some_and(|before| before > accepted) {
            let what = "was accepted before the last one";
            self.violations.push(format!("key {key}, {class:?}: {number} {what}"));
        }
    }

    /// The messages that wait for a retry or for an operator.
    pub(crate) fn failed_of(&self, key: u8) -> Vec<u32> {
        let failed = self.failed.get(&key).into_iter().flatten().copied();
        failed.filter(|number| self.tracks[number].is_alive()).collect()
    }

    pub(crate) fn is_in_hand(&self, key: u8) -> bool {
        self.in_hand.contains(&key)
    }

    /// This message is about to be sent.
    pub(crate) fn sends(&mut self, message: &Message, class: Class, sender: Option<u8>) {
        let track = Track {
            key: message.key,
            class,
            sender,
            alive: Arc::downgrade(&message.token),
            accepted: None,
            attempts: 0,
            failures: 0,
            kills: 0,
            outcome: None,
        };
        self.tracks.insert(message.number, track);
    }

    /// This message has just been accepted.
    pub(crate) fn accepts(&mut self, number: u32) {
        self.accepted += 1;
        let accepted = self.accepted;
        if let Some(track) = self.tracks.get_mut(&number) {
            track.accepted = Some(accepted);
        }
    }

    /// For the keys with the same hash as this one, without this message: the least and the most
    /// messages that are accepted and not started.
    pub(crate) fn waiting(&self, key: u8, but: u32) -> (usize, usize) {
        let all = self.tracks.iter().filter(|(number, track)| {
            let alike = track.key.is_some_and(|other| other % self.hashes == key % self.hashes);
            alike && **number != but && track.attempts == 0 && track.is_alive()
        });
        let accepted = all.clone().filter(|(_, track)| track.accepted.is_some());
        (accepted.count(), all.count())
    }

    pub(crate) fn ends(&mut self, number: u32, outcome: &'static str) {
        let Some(track) = self.tracks.get_mut(&number) else { return };
        if let Some(before) = track.outcome.replace(outcome) {
            self.violations.push(format!("{number} is {outcome}, and was {before}"));
        }
    }

    /// All messages of this key that failed for good are attempted as if they had not.
    pub(crate) fn replays(&mut self, key: u8) {
        let (attempts, kills) = (self.attempts, self.poison_limit);
        for number in self.failed_of(key) {
            let Some(track) = self.tracks.get_mut(&number) else { continue };
            if track.failures >= attempts || track.kills >= kills {
                (track.failures, track.kills) = (0, 0);
            }
        }
    }

    /// The line of a key, as an operator got it.
    pub(crate) fn removes(&mut self, key: u8, line: &[Message]) {
        let failed = self.failed_of(key);
        let numbers: Vec<u32> = line.iter().map(|message| message.number).collect();
        if !numbers.starts_with(&failed) || line.iter().any(|message| message.key != Some(key)) {
            self.violations.push(format!("key {key}: {line:?} removed, first are {failed:?}"));
        }
        for class in [Class::Urgent, Class::Normal] {
            let of_class = numbers[failed.len().min(numbers.len())..].iter();
            let of_class = of_class.filter(|number| self.tracks[number].class == class);
            if !of_class.filter_map(|number| self.tracks[number].accepted).is_sorted() {
                self.violations.push(format!("key {key}: {line:?} removed, out of order"));
            }
        }
        numbers.iter().for_each(|number| self.ends(*number, "removed"));
    }

    pub(crate) fn count(&self, outcome: &str) -> u64 {
        self.tracks.values().filter(|track| track.outcome == Some(outcome)).count() as u64
    }

    /// The number of accepted messages with an unknown outcome.
    pub(crate) fn unknown(&self) -> u64 {
        let unknown = |track: &&Track| track.accepted.is_some() && track.outcome.is_none();
        self.tracks.values().filter(unknown).count() as u64
    }

    /// Messages that still exist somewhere.
    pub(crate) fn alive(&self) -> Vec<u32> {
        let alive = self.tracks.iter().filter(|(_, track)| track.is_alive());
        alive.map(|(number, _)| *number).collect()
    }
}

impl Track {
    fn is_alive(&self) -> bool {
        self.alive.strong_count() > 0
    }
}

/// Messages in hand. Those not done when this is dropped have failed.
pub(crate) struct InHand {
    log: Log,
    key: Option<u8>,
    numbers: Vec<u32>,
    /// The handler has returned.
    pub(crate) ended: bool,
    pub(crate) done: Vec<u32>,
}

impl InHand {
    /// The number of this attempt.
    pub(crate) fn attempt(&self, number: u32) -> u32 {
        self.log.lock().tracks[&number].attempts
    }
}

impl Drop for InHand {
    fn drop(&mut self) {
        let mut seen = self.log.lock();
        let alone = self.numbers.len() == 1;
        let (counts, kills) = (self.ended || alone, alone && std::thread::panicking());
        let mut failed = Vec::new();
        for number in &self.numbers {
            if self.done.contains(number) {
                seen.ends(*number, "handled");
                continue;
            }
            if let Some(track) = seen.tracks.get_mut(number) {
                track.failures += u32::from(counts);
                track.kills += u32::from(kills);
            }
            failed.push(*number);
        }
        if let Some(key) = self.key {
            seen.in_hand.remove(&key);
            let behind = seen.failed_of(key);
            failed.extend(behind);
            seen.failed.insert(key, failed);
        }
    }
}
