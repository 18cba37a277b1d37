//! Later replies, and replies of other types (A08).

use std::time::Duration;

use greenroom::{
    Actor, Answer, CallError, Context, Delivery, Pool, ReplyPort, SendError, WeakAddress,
    policy::{About, Choice, Crew, Policy, RoundRobin},
};
use tokio::time::Instant;

use crate::calls::desk::*;

enum Account {
    Balance(ReplyPort<u64>),
    Owner(ReplyPort<String, u8>),
    /// From another task.
    Later(ReplyPort<u64>),
    Forget(ReplyPort<u64>),
    Panic(#[expect(dead_code, reason = "held to be dropped")] ReplyPort<u64>),
    Refuse(ReplyPort<u64, &'static str>),
    /// `ask`s its own pool.
    Own(Option<WeakAddress<Account, (), ()>>, ReplyPort<u64>),
}

struct Clerk;

impl Actor for Clerk {
    type Message = Account;
    type Reply = ();
    type Error = ();

    async fn handle(&mut self, message: Account, _: &mut Context<Self>) -> Result<(), ()> {
        match message {
            Account::Balance(port) => drop(port.reply(7)),
            Account::Owner(port) => drop(port.reply("Ada".to_owned())),
            Account::Later(port) => drop(tokio::spawn(async move {
                tokio::time::sleep(SECOND).await;
                port.reply(8)
            })),
            Account::Forget(port) => drop(port),
            Account::Panic(_) => panic!("with the port in hand"),
            Account::Refuse(port) => port.fail("no"),
            Account::Own(to, port) => {
                tokio::time::sleep(Duration::from_millis(1)).await;
                let to = to.and_then(|to| to.upgrade()).unwrap();
                let answer = to.ask(Account::Balance).await;
                let told = match answer {
                    Ok(balance) => balance,
                    Err(CallError::WouldDeadlock(_)) => 1_000,
                    Err(_) => 2_000,
                };
                port.reply(told).map_err(|_| ())?;
            }
        }
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a08_one_actor_gives_replies_of_different_types_each_to_its_port() {
    let pool = Pool::new(|_| Clerk).workers(1).spawn().await.unwrap();
    assert_eq!(pool.ask(Account::Balance).await, Ok(7));
    assert_eq!(pool.ask(Account::Owner).await, Ok("Ada".to_owned()));
    assert_eq!(pool.ask(Account::Later).await, Ok(8));
    assert_eq!(pool.ask(Account::Forget).await, Err(CallError::Dropped));
    assert_eq!(pool.ask(Account::Panic).await, Err(CallError::Dropped));
    assert_eq!(pool.ask(Account::Refuse).await, Err(CallError::Failed("no")));
    holds(pool.stop(SOON).await.stats);
    assert_eq!(pool.ask(Account::Balance).await, Err(SendError::Stopped(()).into()));
}

#[tokio::test(start_paused = true)]
async fn a06_a08_who_asks_its_own_pool_waits_like_one_that_calls() {
    for workers in [1, 3] {
        let pool = Pool::new(|_| Clerk).workers(workers).spawn().await.unwrap();
        let address = pool.address();
        let own = || Some(address.downgrade());
        let asks = (0..workers).map(|_| pool.ask(|port| Account::Own(own(), port)));
        let answers = soon(futures_util::future::join_all(asks)).await;
        let refused = answers.iter().filter(|answer| **answer == Ok(1_000)).count();
        assert_eq!(refused, 1, "{answers:?}");
        assert_eq!(answers.iter().filter(|answer| **answer == Ok(7)).count(), workers - 1);
    }
}

/// Always chooses the same worker, strictly.
struct First;

impl Policy<Account> for First {
    fn choose(&self, _: &Account, _: &About<'_>, _: &Crew<'_>) -> Choice {
        Choice::At(0)
    }
}

#[tokio::test(start_paused = true)]
async fn a06_a08_who_asks_its_own_pool_is_refused_where_a_policy_chooses_it() {
    let pool = Pool::new(|_| Clerk).workers(3).dispatch(First).spawn().await.unwrap();
    let own = || Some(pool.address().downgrade());
    assert_eq!(soon(pool.ask(|port| Account::Own(own(), port))).await, Ok(1_000));
    let second = pool.admin().workers()[1].clone();
    assert_eq!(soon(second.ask(|port| Account::Own(own(), port))).await, Ok(7));
    let pool = Pool::new(|_| Clerk).workers(3).dispatch(RoundRobin::new()).spawn().await.unwrap();
    let own = || Some(pool.address().downgrade());
    for _ in 0..9 {
        assert_eq!(soon(pool.ask(|port| Account::Own(own(), port))).await, Ok(7));
    }
    assert_eq!(pool.stats().rejected, 0);
}

/// Claims that it has answered elsewhere, but has not.
struct Liar;

impl Actor for Liar {
    type Message = u8;
    type Reply = ();
    type Error = ();

    async fn handle(&mut self, _: u8, _: &mut Context<Self>) -> Result<(), ()> {
        Ok(())
    }

    async fn receive(
        &mut self,
        _: &mut Delivery<u8, (), ()>,
        _: &mut Context<Self>,
    ) -> Result<Answer<()>, ()> {
        Ok(Answer::Deferred)
    }
}

#[tokio::test(start_paused = true)]
async fn a08_a_port_left_in_its_delivery_is_dropped() {
    let pool = Pool::new(|_| Liar).workers(1).spawn().await.unwrap();
    assert_eq!(soon(pool.call(1)).await, Err(CallError::Dropped));
    assert_eq!(pool.stop(SOON).await.stats.handled, 1);
}

#[tokio::test(start_paused = true)]
async fn a08_a_handler_answers_later_and_goes_on_meanwhile() {
    let (pool, _) = Hall::own(1).await;
    let begun = Instant::now();
    let (later, next) = tokio::join!(pool.call(Ask::Later(100)), async {
        let answer = pool.call(Ask::Echo(1)).await;
        (answer, begun.elapsed())
    });
    assert_eq!((later, next), (Ok(7), (Ok(1), Duration::ZERO)));
    assert_eq!(begun.elapsed(), Duration::from_millis(100));
}
