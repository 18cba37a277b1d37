//! Which messages that are sent together stay in their sender's deque.

use std::collections::VecDeque;

use crate::pool::core::is_run;

fn deque<M: Clone>(message: M, messages: usize, room: usize) -> VecDeque<M> {
    let mut deque = VecDeque::with_capacity(room);
    deque.resize(messages, message);
    deque
}

#[test]
fn neither_few_nor_very_many_nor_much_room_is_left_with_a_pool() {
    for (messages, room, left) in [
        (15, 15, false),
        (16, 16, true),
        (64, 80, true),
        (64, 81, false),
        (256, 256, true),
        (257, 257, false),
    ] {
        assert_eq!(is_run(&deque(0_u64, messages, room)), left, "{messages} in a room of {room}");
    }
}

#[test]
fn large_messages_are_not_so_that_their_memory_comes_back() {
    assert!(is_run(&deque([0_u8; 1_024], 64, 64)));
    assert!(!is_run(&deque([0_u8; 1_024], 65, 65)));
    assert!(is_run(&deque([0_u8; 4_096], 16, 16)));
    assert!(!is_run(&deque([0_u8; 8_192], 16, 16)), "sixteen are the fewest");
    assert!(!is_run(&deque((), 16, 0)), "the room for what has no size is without end");
}
