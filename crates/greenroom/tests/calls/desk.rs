//! Workers that do what the messages ask.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use greenroom::{
    Actor, Address, Answer, CallError, Class, Context, DeadLetterReason, Delivery, ForwardError,
    Pool, PoolBuilder, PoolStats, Stop, WeakAddress,
};
use tower::{Service, ServiceExt};

/// The request in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ask {
    Echo(u32),
    Sleep(u64),
    Fail,
    Panic,
    PanicLater,
    DropPort,
    /// Answers after this many milliseconds, from another task; the handler returns at once.
    Later(u64),
    /// Calls the pool that it knows, with an echo.
    CallOn(u32),
    /// Like `CallOn`, but all workers do so together after a while.
    CallOnTogether(u32),
    /// Like `CallOn`, through a permit.
    CallByPermit(u32),
    /// Like `CallByPermit`, but all workers do so together after a while.
    CallByPermitTogether(u32),
    /// Like `CallOn`, through a service.
    CallByService(u32),
    /// Makes a call by a permit, and lets a task wait for it and note the answer.
    PermitForTask(u32),
    /// Two calls at once.
    CallTwice(u32),
    /// `ask`s the pool that it knows.
    CallFromTask(u32),
    /// Forwards itself to the pool that it knows, until it arrives at a desk that knows none.
    Forward,
    ForwardAndFail,
    ForwardAndPanic,
    /// Gives up forwarding after this many milliseconds, and answers 0.
    ForwardWithin(u64),
}

pub(crate) type Answered = Result<u32, CallError<String, Ask>>;
pub(crate) type Desks = Address<Ask, u32, String>;

/// The messages that became dead letters, and the reasons.
pub(crate) type Dead = Vec<(Option<Ask>, DeadLetterReason)>;

/// The shared knowledge of a pool's workers, and the record of what happened.
#[derive(Clone, Default)]
pub(crate) struct Hall {
    pub(crate) next: Arc<Mutex<Option<WeakAddress<Ask, u32, String>>>>,
    pub(crate) carried: Arc<Mutex<Vec<Carried>>>,
    pub(crate) forwards: Arc<Mutex<Vec<Result<(), ForwardError>>>>,
    pub(crate) dead: Arc<Mutex<Dead>>,
    pub(crate) answers: Arc<Mutex<Vec<Answered>>>,
}

/// The metadata of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Carried {
    pub(crate) message: Option<Ask>,
    pub(crate) class: Class,
    pub(crate) sender: Option<String>,
    pub(crate) left: Option<Duration>,
    pub(crate) trace: Option<String>,
    pub(crate) attempt: u32,
    pub(crate) is_call: bool,
}

impl Carried {
    pub(crate) fn by(delivery: &Delivery<Ask, u32, String>) -> Self {
        Self {
            message: delivery.message().copied(),
            class: delivery.class(),
            sender: delivery.sender().map(|sender| sender.name().to_owned()),
            left: delivery.time_left(),
            trace: delivery.trace().map(str::to_owned),
            attempt: delivery.attempt(),
            is_call: delivery.is_call(),
        }
    }
}

impl Hall {
    pub(crate) fn knows(&self, address: &Desks) {
        *self.next.lock().unwrap() = Some(address.downgrade());
    }

    pub(crate) fn next(&self) -> Option<Desks> {
        self.next.lock().unwrap().as_ref()?.upgrade()
    }

    pub(crate) fn pool(&self, workers: usize) -> PoolBuilder<Desk> {
        let (hall, dead) = (self.clone(), self.dead.clone());
        Pool::new(move |_| Desk(hall.clone())).workers(workers).capacity(100).on_dead_letter(
            move |letter| dead.lock().unwrap().push((letter.message, letter.reason)),
        )
    }

    /// A pool whose workers know it.
    pub(crate) async fn own(workers: usize) -> (Pool<Desk>, Self) {
        let hall = Self::default();
        let pool = hall.pool(workers).spawn().await.unwrap();
        hall.knows(&pool.address());
        (pool, hall)
    }

    pub(crate) fn dead(&self) -> Vec<(Option<Ask>, DeadLetterReason)> {
        self.dead.lock().unwrap().clone()
    }
}

pub(crate) struct Desk(Hall);

pub(crate) fn told<M>(answer: Result<u32, CallError<String, M>>) -> Result<u32, String> {
    answer.map_err(|error| format!("{error:?}"))
}

async fn by_permit(to: &Desks, number: u32) -> Answered {
    to.reserve().await.unwrap().call(Ask::Echo(number)).await
}

impl Actor for Desk {
    type Message = Ask;
    type Reply = u32;
    type Error = String;

    async fn handle(&mut self, ask: Ask, _: &mut Context<Self>) -> Result<u32, String> {
        let next = || self.0.next().unwrap();
        match ask {
            Ask::Echo(number) => Ok(number),
            Ask::Sleep(ms) => {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                Ok(0)
            }
            Ask::Fail => Err("no".to_owned()),
            Ask::Panic => panic!("boom"),
            Ask::PanicLater => {
                tokio::time::sleep(Duration::from_millis(10)).await;
                panic!("late boom")
            }
            Ask::CallOn(number) => told(next().call(Ask::Echo(number)).await),
            Ask::CallOnTogether(number) => {
                tokio::time::sleep(Duration::from_millis(10)).await;
                told(next().call(Ask::Echo(number)).await)
            }
            Ask::CallByPermit(number) => told(by_permit(&next(), number).await),
            Ask::CallByPermitTogether(number) => {
                tokio::time::sleep(Duration::from_millis(10)).await;
                told(by_permit(&next(), number).await)
            }
            Ask::CallByService(number) => {
                let mut service = next().service();
                let ready = service.ready().await.map_err(|error| format!("{error:?}"))?;
                told(ready.call(Ask::Echo(number)).await)
            }
            Ask::PermitForTask(number) => {
                let permit = next().reserve().await.map_err(|error| error.to_string())?;
                let (call, hall) = (permit.call(Ask::Echo(number)), self.0.clone());
                tokio::spawn(async move {
                    let answer = call.await;
                    hall.answers.lock().unwrap().push(answer);
                });
                Ok(number)
            }
            Ask::CallTwice(number) => {
                let next = next();
                let (one, two) =
                    tokio::join!(next.call(Ask::Echo(number)), next.call(Ask::Sleep(5)));
                Ok(told(one)? + told(two)?)
            }
            Ask::CallFromTask(number) => {
                let next = next();
                let call = tokio::spawn(async move { next.call(Ask::Echo(number)).await });
                // Waiting for it would be the deadlock that cannot be detected.
                drop(call);
                Ok(number)
            }
            other => unreachable!("{other:?} is handled in receive"),
        }
    }

    async fn receive(
        &mut self,
        delivery: &mut Delivery<Ask, u32, String>,
        cx: &mut Context<Self>,
    ) -> Result<Answer<u32>, String> {
        self.0.carried.lock().unwrap().push(Carried::by(delivery));
        let ask = *delivery.message().unwrap();
        let forwards = matches!(
            ask,
            Ask::Forward | Ask::ForwardAndFail | Ask::ForwardAndPanic | Ask::ForwardWithin(_)
        );
        if forwards {
            return match self.0.next() {
                Some(next) => self.forward(ask, delivery, next).await,
                None => Ok(Answer::Reply(99)),
            };
        }
        match ask {
            Ask::DropPort => {
                drop(delivery.take_reply_port());
                Ok(Answer::Deferred)
            }
            Ask::Later(ms) => {
                let port = delivery.take_reply_port();
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(ms)).await;
                    port.map(|port| port.reply(7))
                });
                Ok(Answer::Deferred)
            }
            _ => self.handle(delivery.take(), cx).await.map(Answer::Reply),
        }
    }
}

impl Desk {
    pub(crate) async fn forward(
        &self,
        ask: Ask,
        delivery: &mut Delivery<Ask, u32, String>,
        next: Desks,
    ) -> Result<Answer<u32>, String> {
        let forwarded = match ask {
            Ask::ForwardWithin(ms) => {
                let forward = delivery.forward(&next);
                let Ok(forwarded) = tokio::time::timeout(Duration::from_millis(ms), forward).await
                else {
                    self.0.carried.lock().unwrap().push(Carried::by(delivery));
                    return Ok(Answer::Reply(0));
                };
                forwarded
            }
            _ => delivery.forward(&next).await,
        };
        self.0.forwards.lock().unwrap().push(forwarded);
        match (forwarded, ask) {
            (Ok(()), Ask::ForwardAndFail) => Err("after it was forwarded".to_owned()),
            (Ok(()), Ask::ForwardAndPanic) => panic!("after it was forwarded"),
            (Ok(()), _) => Ok(Answer::Deferred),
            (Err(_), _) => {
                self.0.carried.lock().unwrap().push(Carried::by(delivery));
                Ok(Answer::Reply(1))
            }
        }
    }
}

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const SOON: Stop = Stop::within(Duration::from_secs(3_600));
pub(crate) const DEADLOCK: &str = "WouldDeadlock";

pub(crate) fn deadlock() -> Answered {
    Err(CallError::Failed(DEADLOCK.to_owned()))
}

pub(crate) async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// Fails if the future hangs: on virtual time, an hour is forever.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(3_600), future).await.expect("it hangs")
}

pub(crate) fn holds(stats: PoolStats) {
    assert!(stats.ledger_holds() && stats.queued + stats.waiting + stats.in_hand == 0, "{stats:?}");
}
