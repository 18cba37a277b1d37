use std::{collections::VecDeque, mem::offset_of};

use super::{outbox::Streak, *};
use crate::{
    lanes::{LaneId, LaneState, Lanes},
    stamp::Stamp,
};

type Numbers = Shard<u64, ()>;

/// Enough permits that they never run out.
const PLENTY: u64 = 1 << 30;

fn shard(turns: Turns, credit: u64) -> Numbers {
    let shard = Numbers::new(turns, KeyBounds::NONE);
    shard.inbox.lock().credit = credit;
    shard
}

/// A shard in which the next message takes the fast path: of eight permits, two are used.
fn fast() -> Numbers {
    let shard = shard(Turns::OF_A_SENDER, 8);
    assert!([0, 1].map(|number| send(&shard, number)).iter().all(|fast| !fast));
    assert!(shard.inbox.lock().is_fast());
    shard
}

/// The steps of the core's `take_and_push`, if there is a permit and nothing is measured. Returns
/// true if the message took the fast path.
fn send(shard: &Numbers, number: u64) -> bool {
    let mut inbox = shard.inbox.lock();
    if inbox.is_fast() {
        inbox.push_fast(&mut Some(number), (None, 0), Stamp::default());
        return true;
    }
    inbox.credit -= 1;
    let first = inbox.push(&mut Some(number), (None, 0), |_| Stamp::default());
    if !first {
        inbox.open_fast_path(u64::MAX);
    }
    false
}

#[test]
fn as_many_messages_take_the_fast_path_as_permits_the_turn_and_measurements_allow() {
    let cases = [
        // accepted, waiting, credit, unmeasured; fast
        (1, 1, 64, u64::MAX, 64),
        (1, 1, 200, u64::MAX, 126),
        (1, 1, 3, u64::MAX, 3),
        (1, 1, 64, 5, 5),
        (1, 1, 0, u64::MAX, 0),
        (1, 1, 64, 0, 0),
        (127, 127, 64, u64::MAX, 0),
        (128, 128, 200, u64::MAX, 127),
        (130, 250, 64, u64::MAX, 13),
        (138, 255, 64, u64::MAX, 5),
        (143, 255, 64, u64::MAX, 0),
        (144, 255, 64, u64::MAX, 15),
        (144, 256, 64, u64::MAX, 15),
        (1_600, 1_023, 64, u64::MAX, 15),
        (1_600, 1_024, 64, u64::MAX, 3),
        (1_602, 1_024, 64, u64::MAX, 1),
        (1_603, 1_024, 64, u64::MAX, 0),
    ];
    for (accepted, waiting, credit, unmeasured, fast) in cases {
        let shard = shard(Turns::OF_A_SENDER, PLENTY);
        (0..waiting).for_each(|number| _ = send(&shard, number));
        let mut inbox = shard.inbox.lock();
        (inbox.accepted, inbox.credit, inbox.fast) = (accepted, credit, 0);
        inbox.turn.is_over = false;
        inbox.open_fast_path(unmeasured);
        let case = (accepted, waiting, credit, unmeasured);
        assert_eq!((inbox.fast, inbox.credit), (fast, credit - u64::from(fast)), "{case:?}");
        assert_eq!(inbox.take_credit(), credit, "who takes the credit gets both");
        assert!(!inbox.is_fast());
    }
}

#[test]
fn nothing_takes_the_fast_path_where_something_else_is_to_be_seen_to() {
    type Hinders = fn(&mut ShardInbox<u64, ()>);
    let hindrances: [Hinders; 3] = [
        |inbox| inbox.closed = true,
        |inbox| inbox.scheduled = false,
        |inbox| inbox.turn.is_over = true,
    ];
    for (which, hinder) in hindrances.iter().enumerate() {
        let shard = fast();
        let mut inbox = shard.inbox.lock();
        inbox.end_fast_path();
        hinder(&mut inbox);
        inbox.open_fast_path(u64::MAX);
        assert!(!inbox.is_fast(), "hindrance {which}");
        assert_eq!(inbox.take_credit(), 6);
    }
}

#[test]
fn a_sender_has_its_turns_as_if_there_were_no_fast_path() {
    let of_large = [65_536, 1 << 30].map(|bytes| Turns::OF_A_SENDER.of_messages_of(bytes));
    assert_eq!(of_large.map(|turns| turns.well), [16, 8]);
    for turns in [Turns::OF_A_SENDER, Turns::OF_KEYS, of_large[0], of_large[1]] {
        let shard = shard(turns, PLENTY);
        let (mut over, mut fast) = (0, 0);
        for number in 0..4_000 {
            fast += u64::from(send(&shard, number));
            let is_over = std::mem::take(&mut shard.inbox.lock().turn.is_over);
            assert_eq!(is_over, turns.is_over(number + 1, number as usize + 1), "{number}");
            over += u64::from(is_over);
        }
        assert!(over > 0 && fast > 2_000, "{over} turns, {fast} easy messages");
    }
}

#[test]
fn only_large_messages_shorten_a_turn() {
    let wells = [0, 1, 64, 8_192].map(|bytes| Turns::OF_A_SENDER.of_messages_of(bytes).well);
    assert_eq!(wells, [128; 4]);
    assert_eq!(Turns::OF_KEYS.of_messages_of(16_384).well, 64);
}

#[test]
fn a_shard_that_is_found_empty_has_no_fast_path_any_more() {
    type Finds = fn(&Numbers, &mut ShardOutbox<u64, ()>) -> bool;
    let ways: [Finds; 3] = [
        |shard, outbox| shard.refill(outbox),
        |shard, outbox| shard.has_more_or(outbox, &|| {}),
        |shard, outbox| shard.refill_and_take(outbox, &|| {}).is_some(),
    ];
    for (which, finds) in ways.iter().enumerate() {
        let shard = fast();
        let mut outbox = shard.outbox.lock();
        assert!(shard.refill(&mut outbox));
        assert!(shard.inbox.lock().is_fast(), "the worker has not seen it empty");
        while outbox.pop_queue().is_some() {}
        assert!(!finds(&shard, &mut outbox), "way {which}");
        let mut inbox = shard.inbox.lock();
        assert!(!inbox.scheduled && !inbox.is_fast(), "way {which}");
        assert_eq!(inbox.take_credit(), 6);
    }
}

#[test]
fn who_takes_the_last_message_of_a_shard_leaves_no_fast_path_there() {
    let shard = fast();
    let mut outbox = shard.outbox.lock();
    assert!(shard.refill(&mut outbox));
    while outbox.pop_queue().is_some() {}
    assert!(send(&shard, 2));
    let refilled = shard.refill_and_take(&mut outbox, &|| {});
    assert!(matches!(refilled, Some(Refilled::Last(_))) && outbox.queue.is_empty());
    let mut inbox = shard.inbox.lock();
    assert!(!inbox.scheduled && !inbox.is_fast());
    assert_eq!(inbox.take_credit(), 5);
}

type Keyed = Shard<u64, u64>;

fn send_of(shard: &Keyed, key: u64) {
    let mut inbox = shard.inbox.lock();
    inbox.push(&mut Some(0), (Some(key), key as u32), |_| Stamp::default());
}

fn keyed(keys: &[u64]) -> Keyed {
    let bounds = KeyBounds { waiting: 1_000, parked: 1_000, apart: false };
    let shard = Keyed::new(Turns::OF_KEYS, bounds);
    // After a key, the first message of another may make the queue look mixed.
    send_of(&shard, keys[0]);
    let mut outbox = shard.outbox.lock();
    assert!(shard.refill(&mut outbox) && outbox.pop_queue().is_some());
    drop(outbox);
    keys.iter().for_each(|key| send_of(&shard, *key));
    shard
}

#[test]
fn a_key_is_alone_where_only_its_messages_wait() {
    let cases: [(&[u64], &[u64], bool); 6] = [
        (&[7, 7, 7], &[], true),
        (&[7, 7, 7], &[7, 7], true),
        (&[7, 8, 7], &[], false),
        (&[7, 7, 7], &[8, 8], false),
        (&[7, 7, 7], &[7, 8], false),
        (&[8, 8], &[8], false),
    ];
    for (outside, inside, alone) in cases {
        let shard = keyed(outside);
        let mut outbox = shard.outbox.lock();
        assert!(shard.refill(&mut outbox));
        inside.iter().for_each(|key| send_of(&shard, *key));
        outbox.streak = Streak { hash: 7, count: 17 };
        assert_eq!(shard.is_all_of(&mut outbox, 7), alone, "{outside:?} {inside:?}");
        assert_eq!(outbox.streak.count, if alone { 1 } else { 17 }, "another quota, or none");
        shard.refill_behind(&mut outbox);
        assert_eq!(shard.is_all_of(&mut outbox, 7), alone, "{outside:?} {inside:?}, moved");
    }
}

#[test]
fn a_key_beside_a_lane_that_is_ready_or_an_urgent_message_is_not_alone() {
    let shard = keyed(&[0, 0]);
    let mut outbox = shard.outbox.lock();
    assert!(shard.refill(&mut outbox) && shard.is_all_of(&mut outbox, 0));
    let id = outbox.lanes.open(8, 8, LaneState::Ready);
    outbox.make_ready(id);
    assert!(!shard.is_all_of(&mut outbox, 0));
    assert_eq!(outbox.next_ready(), Some(id));
    assert!(shard.is_all_of(&mut outbox, 0));
    let stamp = Stamp::default();
    let urgent = Entry { message: 0, extra: None, key: Some(8), hash: 8, urgent: true, stamp };
    shard.inbox.lock().push_urgent(urgent);
    assert!(!shard.is_all_of(&mut outbox, 0));
}

fn put_into(outbox: &mut ShardOutbox<u64, u64>, lane: LaneId, urgent: bool) {
    let (key, stamp) = (u64::from(lane.hash), Stamp::default());
    let entry = Entry { message: 0, extra: None, key: Some(key), hash: lane.hash, urgent, stamp };
    assert!(outbox.lanes.push_back(lane, entry).is_ok());
}

#[test]
fn a03_a_normal_message_that_is_due_comes_from_no_lane_that_is_in_both_lists() {
    let shard = keyed(&[0]);
    let mut outbox = shard.outbox.lock();
    let lanes = [1_u32, 2].map(|hash| outbox.lanes.open(hash, hash.into(), LaneState::Ready));
    for lane in lanes {
        put_into(&mut outbox, lane, false);
        assert!(!outbox.make_ready(lane));
    }
    put_into(&mut outbox, lanes[0], true);
    outbox.set_urgent(lanes[0]);
    assert_eq!(outbox.next_normal_ready(), Some(lanes[1]));
    assert_eq!(outbox.next_normal_ready(), None);
    assert_eq!(outbox.next_urgent_ready(), Some(lanes[0]), "it is still in the other list");
}

#[test]
fn what_the_inbox_held_before_says_nothing_of_what_comes() {
    let shard = keyed(&[7, 8]);
    let mut outbox = shard.outbox.lock();
    assert!(shard.refill(&mut outbox) && !shard.is_all_of(&mut outbox, 8));
    while outbox.pop_queue().is_some() {}
    send_of(&shard, 8);
    shard.refill_behind(&mut outbox);
    assert!(shard.is_all_of(&mut outbox, 8));
}

#[test]
fn what_is_queued_otherwise_is_seen_to_by_who_sends_next() {
    let shard = fast();
    let mut inbox = shard.inbox.lock();
    assert!(!inbox.push(&mut Some(2), (None, 0), |_| Stamp::default()));
    assert!(!inbox.is_fast(), "the turn and the next measurement were for fewer messages");
    assert_eq!(inbox.take_credit(), 6);
    drop(inbox);
    let shard = fast();
    let mut inbox = shard.inbox.lock();
    let mut messages = VecDeque::from([2, 3, 4]);
    let pushed = inbox.push_each(&mut messages, 2, |_| Stamp::default());
    assert_eq!((pushed, messages.len()), ((2, false), 1), "it is scheduled");
    assert!(!inbox.is_fast());
    assert_eq!(inbox.take_credit(), 6);
}

#[test]
fn permits_for_the_fast_path_leave_no_more_headroom_than_credit() {
    let bounds = KeyBounds { waiting: 20, parked: 20, apart: false };
    let shard = Numbers::new(Turns::OF_A_SENDER, bounds);
    shard.inbox.lock().credit = 8;
    for number in 0..8 {
        send(&shard, number);
        let inbox = shard.inbox.lock();
        assert_eq!(inbox.headroom(), 12, "eight are queued, or may be");
    }
}

#[test]
fn what_is_written_for_a_message_lies_in_two_cache_lines() {
    type Inbox = ShardInbox<u64, u64>;
    type Outbox = ShardOutbox<u64, u64>;
    let shard = Shard::<u64, u64>::new(Turns::OF_KEYS, KeyBounds::NONE);
    let locks =
        [std::ptr::from_ref(&*shard.inbox).addr(), std::ptr::from_ref(&*shard.outbox).addr()];
    let inbox = std::ptr::from_ref(&*shard.inbox.lock()).addr() - locks[0];
    let outbox = std::ptr::from_ref(&*shard.outbox.lock()).addr() - locks[1];
    assert!(locks.iter().all(|lock| lock % 128 == 0));
    assert_eq!(outbox + size_of::<Lanes<u64, u64>>(), 64, "the lock and the lanes");
    // The queue's fields from its length to the end of its first block, and to that of its last
    // one.
    let (first, last) = (40, 72);
    assert_eq!(outbox + offset_of!(Outbox, queue) + first, 128);
    assert!(inbox + offset_of!(Inbox, queue) + last <= 128);
}
