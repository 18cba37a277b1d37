//! Very many actors, one after the other: none of their memory is left (A12, A13).

use std::{convert::Infallible, time::Duration};

use greenroom::{Actor, Context, ExitReason, Pool, Stop};

use super::alone;

struct Member;

impl Actor for Member {
    type Message = u32;
    type Reply = u32;
    type Error = Infallible;

    async fn handle(&mut self, number: u32, _cx: &mut Context<Self>) -> Result<u32, Infallible> {
        Ok(number)
    }
}

const BATCH: usize = 10_000;
/// In each batch this many are linked in a chain, the others in pairs.
const CHAIN: usize = 1_000;

/// The bytes of this process that are in memory, without those of its code.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: Vec<usize> = statm.split_whitespace().map(|pages| pages.parse().unwrap()).collect();
    (pages[1] - pages[2]) * 4096
}

fn tasks() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

/// Returns the bytes per live actor.
async fn batch() -> usize {
    let before = resident();
    let mut members = Vec::with_capacity(BATCH);
    for _ in 0..BATCH {
        members.push(Pool::one(Member).spawn().await.unwrap());
    }
    let (chain, pairs) = members.split_at(CHAIN);
    chain.windows(2).for_each(|two| two[0].erase().link(&two[1].erase()));
    pairs.chunks(2).for_each(|two| two[0].erase().link(&two[1].erase()));
    for (number, member) in members.iter().enumerate() {
        assert_eq!(member.call(number as u32).await, Ok(number as u32));
    }
    let each = resident().saturating_sub(before) / BATCH;
    // One of the chain fails. Of each pair, one is stopped or fails; if it was only stopped, the
    // other is dropped.
    chain[CHAIN / 2].erase().exit(ExitReason::failed("on purpose"));
    for (number, two) in pairs.chunks(2).enumerate() {
        match number % 2 {
            0 => two[0].erase().exit(ExitReason::failed("on purpose")),
            _ => drop(two[0].stop(Stop::Now).await),
        }
    }
    for member in chain {
        assert!(member.erase().ended().await.is_abnormal());
    }
    for (number, two) in pairs.chunks(2).enumerate() {
        let normal = !number.is_multiple_of(2);
        assert_eq!(two[0].erase().ended().await.is_normal(), normal);
        if !normal {
            assert!(two[1].erase().ended().await.is_abnormal());
        }
    }
    let rest: Vec<_> = members.iter().map(|member| member.erase()).collect();
    drop(members);
    for member in rest {
        member.ended().await;
    }
    each
}

async fn until_no_task_is_left(before: usize) {
    let gone = async {
        while tasks() > before {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(10), gone).await.is_ok(), "{} tasks", tasks());
}

#[test]
fn a13_actors_that_are_linked_used_and_stopped_leave_no_memory_and_no_task() {
    alone(
        "alone::many_actors::a13_actors_that_are_linked_used_and_stopped_leave_no_memory_and_no_task",
        2,
        all(),
    );
}

/// As many as `GREENROOM_ACTORS` says.
async fn all() {
    let actors = std::env::var("GREENROOM_ACTORS");
    let actors = actors.map_or(4 * BATCH, |count| count.parse().unwrap());
    let (tasks_before, mut after_two) = (tasks(), 0);
    for number in 1..=actors / BATCH {
        let each = batch().await;
        until_no_task_is_left(tasks_before).await;
        if number == 1 {
            assert!(each < 8 * 1024, "{each} bytes each");
        }
        if number == 2 {
            after_two = resident();
        }
    }
    let grown = resident().saturating_sub(after_two);
    assert!(grown < 8 << 20, "{grown} bytes are left");
}
