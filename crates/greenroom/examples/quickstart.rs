//! How do I put several workers behind one address?
//!
//! `cargo run -p greenroom --example quickstart`

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::{convert::Infallible, error::Error, time::Duration};

use greenroom::prelude::*;

/// A worker: state that handles one message at a time.
#[derive(Default)]
struct Renderer {
    pages: usize,
}

impl Actor for Renderer {
    type Message = &'static str;
    type Reply = usize;
    type Error = Infallible;

    async fn handle(
        &mut self,
        page: &'static str,
        cx: &mut Context<Self>,
    ) -> Result<usize, Infallible> {
        self.pages += 1; // no lock: nobody else has this worker's state
        tokio::time::sleep(Duration::from_millis(20)).await;
        println!("{} has drawn page {page}, its number {}", cx.name(), self.pages);
        Ok(page.len())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // The factory is called once for each worker, and again when one is restarted.
    let pool = Pool::new(|_slot| Renderer::default()).name("renderers").workers(3).mailbox(100);
    let pool = pool.spawn().await?;

    // A send completes when the message is queued.
    for page in ["one", "two", "three"] {
        pool.send(page).await?;
    }

    // A call completes with the reply or a typed error: it never hangs.
    let letters = pool.call("seventeen").await?;
    println!("the call was answered: {letters} letters");
    assert_eq!(letters, 9);

    // Senders hold an address: it is cheap to clone, and can send from any task.
    let address = pool.address();
    let elsewhere = tokio::spawn(async move { address.call("four").await });
    assert_eq!(elsewhere.await??, 4);

    // A stop handles queued messages for at most this long, and reports the unhandled ones.
    let report = pool.stop(Stop::within(Duration::from_secs(1))).await;
    println!("handled {}, left over {}", report.stats.handled, report.left_over.len());
    assert_eq!(report.stats.handled, 5);
    assert!(report.left_over.is_empty() && report.stats.ledger_holds());
    Ok(())
}
