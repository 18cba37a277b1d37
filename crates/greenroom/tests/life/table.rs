//! P18: the outcomes of the message in hand, in one table.

use std::time::Duration;

use greenroom::{
    AnyAddress, Backoff, CallError, DeadLetterReason, FailureTable, FinalAction, Pool, PoolBuilder,
    PoolStats, Restarts, Rule, Stop,
};

use crate::life::probe::{Do, HOUR, Journal, Probe, SECOND, until};

const LIMIT: Duration = Duration::from_millis(100);

/// How an attempt fails.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    Error,
    Panic,
    Timeout,
    Crash,
    Kill,
}

const FAULTS: [Fault; 5] = [Fault::Error, Fault::Panic, Fault::Timeout, Fault::Crash, Fault::Kill];

impl Fault {
    fn message(self) -> Do {
        match self {
            Self::Error => Do::Fail,
            Self::Panic => Do::Panic,
            Self::Timeout => Do::Sleep(HOUR),
            Self::Crash => Do::Crash,
            Self::Kill => Do::Kill,
        }
    }

    /// A table in which only this row differs from the others.
    fn table(self, row: Rule) -> FailureTable {
        let mut table = FailureTable::all(Rule::Once(FinalAction::DeadLetter));
        match self {
            Self::Error => table.error = row,
            Self::Panic => table.panic = row,
            Self::Timeout => table.timeout = row,
            Self::Crash => table.crash = row,
            Self::Kill => table.kill = row,
        }
        table
    }
}

fn builder(journal: &Journal, consumes: bool) -> PoolBuilder<Probe> {
    let probe = Probe { consumes, ..Probe::new("it", journal) };
    let letters = journal.clone();
    Pool::new(move |_| probe.clone())
        .workers(1)
        .time_limit(LIMIT)
        .restarts(Restarts { max: 100, ..Restarts::default() })
        .poison_limit(100)
        .on_dead_letter(move |letter| {
            let (reason, attempts) = (letter.reason, letter.attempts);
            letters.note(format_args!("{reason:?} {} {attempts}", letter.message.is_some()));
        })
}

type Answered = Result<AnyAddress, CallError<&'static str, Do>>;

/// A send and a call with the same fault. Returns the result of the call, and the final figures.
async fn both(pool: PoolBuilder<Probe>, fault: Fault) -> (Answered, PoolStats) {
    let pool = pool.spawn().await.unwrap();
    pool.send(fault.message()).await.unwrap();
    let answer = tokio::time::timeout(HOUR, pool.call(fault.message())).await.unwrap();
    assert!(pool.call(Do::Nothing).await.is_ok(), "the pool goes on");
    let report = pool.stop(Stop::within(HOUR)).await;
    assert!(report.stats.ledger_holds() && report.left_over.is_empty());
    (answer, report.stats)
}

#[tokio::test(start_paused = true)]
async fn p18_a_plain_pool_returns_errors_and_makes_dead_letters_of_the_rest() {
    for fault in FAULTS {
        let journal = Journal::default();
        let (answer, stats) = both(builder(&journal, false), fault).await;
        let (failed, dead, reason) = match (fault, answer) {
            (Fault::Error, Err(CallError::Failed("failed on purpose"))) => (1, 1, "Failed"),
            (Fault::Panic, Err(CallError::Panicked(_))) => (0, 2, "Panicked"),
            (Fault::Timeout, Err(CallError::TimedOut)) => (0, 2, "TimedOut"),
            (Fault::Crash, Err(CallError::Failed(_))) => (0, 2, "Failed"),
            (Fault::Kill, Err(CallError::Killed)) => (0, 2, "Killed"),
            (fault, answer) => panic!("{fault:?} {answer:?}"),
        };
        assert_eq!((stats.failed, stats.dead_lettered), (failed, dead), "{fault:?}");
        assert_eq!(journal.count(&format!("{reason} true 1")) as u64, dead, "{:?}", journal.all());
    }
}

#[tokio::test(start_paused = true)]
async fn p18_each_fault_has_each_verdict() {
    for fault in FAULTS {
        for finally in [FinalAction::DeadLetter, FinalAction::Drop, FinalAction::Return] {
            let journal = Journal::default();
            let pool = builder(&journal, false).failure_policy(fault.table(Rule::Once(finally)));
            let (answer, stats) = both(pool, fault).await;
            let returns = matches!(fault, Fault::Error | Fault::Crash);
            let expected = match finally {
                FinalAction::Drop => (2, 0, 0),
                FinalAction::Return if returns => (0, 1, 1),
                _ => (0, 0, 2),
            };
            let found = (stats.dropped, stats.failed, stats.dead_lettered);
            assert_eq!(found, expected, "{fault:?} {finally:?}");
            assert_eq!(matches!(answer, Err(CallError::Dropped)), finally == FinalAction::Drop);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn p18_each_fault_is_retried_and_port_and_attempts_survive() {
    let backoff = Backoff::new(Duration::from_millis(10), SECOND);
    let row = Rule::Retry { attempts: 3, backoff, finally: FinalAction::DeadLetter };
    for fault in FAULTS {
        for consumes in [false, true] {
            let journal = Journal::default();
            let pool = builder(&journal, consumes).retry_with(Do::clone, fault.table(row));
            let (answer, stats) = both(pool, fault).await;
            assert!(answer.is_err() && !matches!(answer, Err(CallError::Dropped)), "{fault:?}");
            assert_eq!((stats.retries, stats.dead_lettered), (4, 2), "{fault:?} {consumes}");
            let letters = journal.all().into_iter().filter(|note| note.ends_with("true 3"));
            assert_eq!(letters.count(), 2, "{fault:?} {:?}", journal.all());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn p18_a_message_that_is_gone_is_a_letter_without_it_for_its_own_reason() {
    let backoff = Backoff::new(Duration::from_millis(10), SECOND);
    let row = Rule::Retry { attempts: 3, backoff, finally: FinalAction::DeadLetter };
    for fault in FAULTS {
        let journal = Journal::default();
        let pool = builder(&journal, true).failure_policy(fault.table(row));
        let (answer, stats) = both(pool, fault).await;
        let reason = match fault {
            Fault::Error | Fault::Crash => "Failed",
            Fault::Panic => "Panicked",
            Fault::Timeout => "TimedOut",
            Fault::Kill => "Killed",
        };
        assert_eq!(journal.count(&format!("{reason} false 1")), 2, "{:?}", journal.all());
        assert_eq!((stats.retries, stats.dead_lettered), (0, 2));
        assert!(!matches!(answer, Err(CallError::Dropped)), "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn p18_what_kills_workers_is_poison_and_what_is_slow_or_fails_is_not() {
    let row = Rule::Retry {
        attempts: 5,
        backoff: Backoff::new(Duration::from_millis(10), SECOND),
        finally: FinalAction::DeadLetter,
    };
    for fault in FAULTS {
        let journal = Journal::default();
        let pool = builder(&journal, false).poison_limit(2);
        let (answer, stats) = both(pool.retry_with(Do::clone, FailureTable::all(row)), fault).await;
        let poison = matches!(fault, Fault::Panic | Fault::Crash);
        assert_eq!(matches!(answer, Err(CallError::Poisoned { kills: 2 })), poison, "{fault:?}");
        assert_eq!(stats.retries, if poison { 2 } else { 8 });
        assert_eq!(
            journal.count(&format!("{:?} true 2", DeadLetterReason::Poisoned)),
            if poison { 2 } else { 0 }
        );
    }
}

#[tokio::test(start_paused = true)]
async fn p18_that_somebody_has_died_is_not_said_of_the_next_message() {
    let journal = Journal::default();
    let probe = Probe::new("it", &journal);
    struct Forgetful(Probe);
    impl greenroom::Actor for Forgetful {
        type Message = bool;
        type Reply = ();
        type Error = ();
        async fn handle(&mut self, _: bool, _: &mut greenroom::Context<Self>) -> Result<(), ()> {
            unreachable!("it receives")
        }
        async fn receive(
            &mut self,
            delivery: &mut greenroom::Delivery<bool, (), ()>,
            _: &mut greenroom::Context<Self>,
        ) -> Result<greenroom::Answer<()>, ()> {
            if delivery.take() {
                delivery.crashed();
                return Ok(greenroom::Answer::Reply(()));
            }
            Err(())
        }
        async fn stopped(&mut self, _: &greenroom::ExitReason) {
            self.0.journal.note("gone");
        }
    }
    let table = FailureTable { crash: Rule::Once(FinalAction::Drop), ..FailureTable::default() };
    let pool = Pool::new(move |_| Forgetful(probe.clone())).workers(1).failure_policy(table);
    let pool = pool.spawn().await.unwrap();
    assert!(pool.call(true).await.is_ok());
    assert_eq!(pool.call(false).await, Err(CallError::Failed(())));
}

#[tokio::test(start_paused = true)]
async fn p18_queued_work_survives_every_death_of_its_worker() {
    for fault in FAULTS {
        let journal = Journal::default();
        let pool = builder(&journal, false).spawn().await.unwrap();
        for _ in 0..5 {
            pool.send(fault.message()).await.unwrap();
            pool.send(Do::Nothing).await.unwrap();
        }
        until(&pool, |stats| stats.handled == 5 && stats.dead_lettered == 5).await;
        let dies = matches!(fault, Fault::Panic | Fault::Kill);
        assert_eq!(pool.stats().restarts, if dies { 5 } else { 0 });
    }
}

/// Its handler panics when it is dropped at its limit.
struct Spiteful;

struct Spite;

impl Drop for Spite {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "dropped");
    }
}

impl greenroom::Actor for Spiteful {
    type Message = bool;
    type Reply = ();
    type Error = ();

    async fn handle(&mut self, slow: bool, _: &mut greenroom::Context<Self>) -> Result<(), ()> {
        if slow {
            let _spite = Spite;
            tokio::time::sleep(HOUR).await;
        }
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn p18_a_handler_that_panics_when_it_is_dropped_at_its_limit_has_panicked() {
    let pool = Pool::new(|_| Spiteful).workers(1).time_limit(LIMIT).spawn().await.unwrap();
    for _ in 0..3 {
        assert!(matches!(pool.call(true).await, Err(CallError::Panicked(_))));
    }
    assert_eq!(pool.call(false).await, Ok(()));
    assert_eq!(pool.stats().restarts, 3);
    assert!(pool.stop(Stop::within(SECOND)).await.stats.ledger_holds());
}
