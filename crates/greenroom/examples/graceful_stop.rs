//! What happens to queued work when a pool stops, and what if handlers do not end?
//!
//! A graceful stop refuses new work and handles queued messages. At its deadline it drops handlers
//! at their next await, gives back unhandled messages, and names the workers that are stuck.
//! Nothing is lost silently.
//!
//! `cargo run -p greenroom --example graceful_stop`

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::{convert::Infallible, error::Error, time::Duration};

use greenroom::{NotAccepted, StopReport, prelude::*};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    /// Takes a few milliseconds.
    Short(u32),
    /// Never ends, but it awaits, so it can be dropped.
    Endless,
    /// Blocks its thread: it cannot be ended from outside.
    Blocking,
}

struct Clerk;

impl Actor for Clerk {
    type Message = Work;
    type Reply = ();
    type Error = Infallible;

    /// Leaves the message in place, so that it can be given back.
    async fn receive(
        &mut self,
        delivery: &mut Delivery<Work, (), Infallible>,
        _cx: &mut Context<Self>,
    ) -> Result<Answer<()>, Infallible> {
        match delivery.message() {
            Some(Work::Endless) => std::future::pending().await,
            Some(Work::Blocking) => std::thread::sleep(Duration::from_millis(1200)),
            _ => tokio::time::sleep(Duration::from_millis(5)).await,
        }
        Ok(Answer::Reply(()))
    }

    async fn handle(&mut self, _: Work, _cx: &mut Context<Self>) -> Result<(), Infallible> {
        Ok(())
    }
}

/// One worker gets this work and is stopped, with this much time.
async fn stopped(name: &str, work: &[Work], ms: u64) -> Result<StopReport<Work>, Box<dyn Error>> {
    let pool = Pool::new(|_slot| Clerk).name(name).workers(1).spawn().await?;
    for work in work {
        pool.send(*work).await?;
    }
    while work[0] == Work::Blocking && pool.stats().in_hand == 0 {
        tokio::task::yield_now().await;
    }
    let report = pool.stop(Stop::within(Duration::from_millis(ms))).await;
    println!(
        "{name}: handled {}, left over {:?}, wedged {:?}",
        report.stats.handled, report.left_over, report.wedged
    );
    let refused = pool.send(Work::Short(9)).await.map_err(|error| error.without_message());
    assert_eq!(refused, Err(NotAccepted::Stopped));
    assert!(report.stats.ledger_holds());
    Ok(report)
}

#[tokio::main(flavor = "multi_thread", worker_threads = 4)]
async fn main() -> Result<(), Box<dyn Error>> {
    use Work::{Blocking, Endless, Short};

    let in_time = stopped("in time", &[Short(1), Short(2), Short(3)], 5000).await?;
    assert_eq!((in_time.stats.handled, in_time.left_over.len()), (3, 0));

    let late = stopped("at the deadline", &[Short(1), Endless, Short(2)], 300).await?;
    assert_eq!(late.left_over, [Endless, Short(2)]);
    assert!(late.wedged.is_empty());

    let stuck = stopped("stuck", &[Blocking, Short(1)], 50).await?;
    assert_eq!((stuck.left_over, stuck.wedged), (vec![Short(1)], vec!["stuck-0".to_owned()]));
    Ok(())
}
