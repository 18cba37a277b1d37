//! A desk whose pages state their outcome.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use greenroom::{Actor, Answer, Context, Delivery};

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// A key and an instruction: `slow` takes a second, `panics` and `fails` do so until the desk is
/// mended, `consumed` is taken and never finished.
pub(crate) type Page = (u32, &'static str);

#[derive(Clone, Default)]
pub(crate) struct Desk {
    /// The handled pages, in order.
    handled: Arc<Mutex<Vec<Page>>>,
    /// Nothing fails any more.
    mended: Arc<AtomicBool>,
}

impl Actor for Desk {
    type Message = Page;
    type Reply = ();
    type Error = &'static str;

    const KEEPS_MESSAGE: bool = true;

    async fn handle(&mut self, _: Page, _: &mut Context<Self>) -> Result<(), &'static str> {
        unreachable!("it only looks")
    }

    async fn receive(
        &mut self,
        delivery: &mut Delivery<Page, (), &'static str>,
        _: &mut Context<Self>,
    ) -> Result<Answer<()>, &'static str> {
        let page = *delivery.message().unwrap();
        if page.1.contains("slow") {
            tokio::time::sleep(SECOND).await;
        }
        match page.1 {
            "consumed" => {
                delivery.take();
                std::future::pending::<()>().await;
            }
            "panics" if !self.is_mended() => panic!("on purpose"),
            text if text.contains("fails") && !self.is_mended() => return Err("no paper"),
            _ => {}
        }
        self.handled.lock().unwrap().push(page);
        Ok(Answer::Reply(()))
    }
}

impl Desk {
    fn is_mended(&self) -> bool {
        self.mended.load(Ordering::SeqCst)
    }

    pub(crate) fn mend(&self) {
        self.mended.store(true, Ordering::SeqCst);
    }

    /// The pages handled since the last query.
    pub(crate) fn handled(&self) -> Vec<Page> {
        std::mem::take(&mut self.handled.lock().unwrap())
    }
}

/// Waits until everything is done, and has failed again.
pub(crate) async fn settle() {
    tokio::time::sleep(10 * SECOND).await;
}
