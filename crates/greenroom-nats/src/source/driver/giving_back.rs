//! Giving back unstarted messages.

use futures_util::StreamExt;
use tokio::time::{Instant, timeout};

use super::{
    super::{hold::Hold, shared::Answer},
    ANSWER_WITHIN, Driver,
};

impl Driver {
    /// Unstarted messages go back if nothing more is given: after the source is gone, and while the
    /// partition is paused and nothing of it is in hand.
    pub(super) async fn give_back_where_idle(&mut self) {
        let waits = self.holding.hold.as_ref().map_or(0, Hold::len);
        let is_idle = self
            .shared
            .look(|state| state.is_paused && state.tracker.open() == state.ready.len() + waits);
        let is_closing = self.shared.is_closing();
        if self.bound.lost.is_some() || !self.connection.is_up() || !(is_closing || is_idle) {
            return;
        }
        if self.asking.requests.outstanding() > 0 {
            self.stop_asking().await;
            match is_closing {
                true => self.inbox.is_drained = true,
                false => self.subscribe_anew().await,
            }
        }
        let hold = self.holding.hold.take();
        let was_holding = hold.is_some();
        let held = hold.into_iter().flat_map(Hold::release);
        let back = self.shared.look(|state| {
            let waiting = state.ready.drain(..).chain(held);
            let mut back: Vec<_> = waiting.map(|taken| taken.position).collect();
            if is_closing {
                back.extend(state.tracker.refused());
            }
            back.sort_unstable();
            back
        });
        // Messages that are given back come first, at the next request, and those missing before
        // are still to come; if not, they are waited for.
        let holds = was_holding || !back.is_empty();
        self.give_back(back).await;
        if holds && !is_closing {
            self.holding.hold = Some(Hold::new(self.input.ack_wait, Instant::now()));
        }
    }

    async fn give_back(&mut self, back: Vec<u64>) {
        let Some(lowest) = back.first() else { return };
        let below = lowest.saturating_sub(1);
        self.holding.floor = Some(self.holding.floor.map_or(below, |floor| floor.min(below)));
        let give_back = |position| self.shared.look(|state| state.tracker.give_back(position));
        for reply in back.into_iter().filter_map(give_back) {
            self.tell(&reply, Answer::Nak).await;
        }
        // Its answer comes after the server has read all this.
        let _ = self.bound.consumer.get_info().await;
    }

    /// Ends the request, and takes messages that are on their way: they would reach no reader, and
    /// be waited for.
    async fn stop_asking(&mut self) {
        self.asking.requests.clear();
        if self.inbox.messages.drain().await.is_err() {
            return;
        }
        // It ends with the server's answer, which comes behind all that it had sent.
        while let Ok(Some(message)) = timeout(ANSWER_WITHIN, self.inbox.messages.next()).await {
            self.receive(message);
        }
    }
}
