//! Bodies while they come in: each within its limit and time, all together within a budget.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use hyper::body::Body;
use tokio::time::{Instant, timeout_at};

/// The first room that a body gets which comes in several pieces.
const FIRST: usize = 4 << 10;

/// At least this much of an unwanted body is read before its sender is answered.
const UNWANTED: usize = 64 << 20;

/// The sender of one that pauses for this long is answered.
const UNWANTED_PAUSE: Duration = Duration::from_secs(1);

/// How many bytes of bodies are in memory.
#[derive(Debug, Default)]
pub(super) struct BodyBudget {
    used: AtomicUsize,
}

/// A part of the budget, given back when this is dropped.
#[derive(Debug)]
pub(super) struct ReservedBytes {
    budget: Arc<BodyBudget>,
    bytes: usize,
}

/// Why a body was not read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BadBody {
    /// It is larger than its limit.
    TooLarge,
    /// The budget is used up.
    NoRoom,
    /// It did not come in time.
    Slow,
    /// It broke off.
    Broken,
}

impl ReservedBytes {
    pub(super) fn none(budget: &Arc<BodyBudget>) -> Self {
        Self { budget: budget.clone(), bytes: 0 }
    }

    /// Holds this many bytes from now on, of `most` in all, if there is room.
    fn hold(&mut self, bytes: usize, most: usize) -> Result<(), BadBody> {
        let more = bytes.saturating_sub(self.bytes);
        let used = self.budget.used.fetch_add(more, Ordering::Relaxed);
        if used.saturating_add(more) > most {
            self.budget.used.fetch_sub(more, Ordering::Relaxed);
            return Err(BadBody::NoRoom);
        }
        self.bytes += more;
        Ok(())
    }
}

impl Drop for ReservedBytes {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The limits of a body.
#[derive(Debug, Clone, Copy)]
pub(super) struct BodyBounds {
    /// Its own bytes.
    pub(super) limit: usize,
    /// Those of all.
    pub(super) all: usize,
    pub(super) within: Duration,
}

/// Reads a body to its end. If it announces a length over the limit, it is not read at all; others
/// are never held beyond their limit.
pub(super) async fn read<B>(
    body: &mut B,
    reserved: &mut ReservedBytes,
    bounds: BodyBounds,
) -> Result<Bytes, BadBody>
where
    B: Body<Data = Bytes> + Unpin,
{
    let BodyBounds { limit, all, within } = bounds;
    if body.size_hint().lower() > limit as u64 {
        return Err(BadBody::TooLarge);
    }
    let until = Instant::now() + within;
    let mut first = Bytes::new();
    let mut rest = Vec::new();
    loop {
        let Some(piece) = timeout_at(until, next(body)).await.map_err(|_| BadBody::Slow)? else {
            return Ok(if rest.is_empty() { first } else { rest.into() });
        };
        let piece = piece.map_err(|()| BadBody::Broken)?;
        let length = first.len().max(rest.len());
        if piece.len() > limit - length {
            return Err(BadBody::TooLarge);
        }
        if length == 0 {
            reserved.hold(piece.len(), all)?;
            first = piece;
            continue;
        }
        if rest.is_empty() {
            make_room(&mut rest, first.len() + piece.len(), limit, reserved, all)?;
            rest.extend_from_slice(&first);
            first = Bytes::new();
        }
        make_room(&mut rest, length + piece.len(), limit, reserved, all)?;
        rest.extend_from_slice(&piece);
    }
}

/// Doubles, so that a body in many pieces is not copied at each of them.
fn make_room(
    buffer: &mut Vec<u8>,
    needed: usize,
    limit: usize,
    reserved: &mut ReservedBytes,
    all: usize,
) -> Result<(), BadBody> {
    if needed <= buffer.capacity() {
        return Ok(());
    }
    let wanted = needed.max(buffer.capacity() * 2).max(FIRST).min(limit.max(needed));
    reserved.hold(wanted, all)?;
    buffer.reserve_exact(wanted - buffer.len());
    Ok(())
}

/// The next piece of data; trailers are passed over.
async fn next<B: Body<Data = Bytes> + Unpin>(body: &mut B) -> Option<Result<Bytes, ()>> {
    loop {
        match poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await? {
            Err(_) => return Some(Err(())),
            Ok(frame) => match frame.into_data() {
                Ok(data) if !data.is_empty() => return Some(Ok(data)),
                _ => {}
            },
        }
    }
}

/// Reads an unwanted body, and keeps nothing of it. A sender writes before it reads: if it is
/// answered while writing, it sees a broken connection, and posts the same again. True if the body
/// ended, so the connection can be reused. Data beyond 64 MiB and `limit`, or later than `within`,
/// is not read.
pub(super) async fn discard<B>(body: &mut B, limit: usize, within: Duration) -> bool
where
    B: Body<Data = Bytes> + Unpin,
{
    let most = limit.max(UNWANTED);
    let late = Instant::now() + within;
    if body.size_hint().lower() > most as u64 {
        return false;
    }
    let mut read = 0;
    while read <= most {
        let until = late.min(Instant::now() + UNWANTED_PAUSE);
        match timeout_at(until, next(body)).await {
            Ok(None) => return true,
            Ok(Some(Ok(piece))) => read += piece.len(),
            Ok(Some(Err(()))) | Err(_) => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use std::{
        collections::VecDeque,
        convert::Infallible,
        task::{Context, Poll},
    };

    use hyper::body::Frame;

    use super::*;

    /// A body of pieces, which then ends or waits for ever.
    struct Pieces(VecDeque<Bytes>, bool);

    impl Body for Pieces {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            match self.0.pop_front() {
                Some(piece) => Poll::Ready(Some(Ok(Frame::data(piece)))),
                None if self.1 => Poll::Pending,
                None => Poll::Ready(None),
            }
        }
    }

    fn pieces(sizes: &[usize]) -> Pieces {
        Pieces(sizes.iter().map(|size| Bytes::from(vec![b'x'; *size])).collect(), false)
    }

    fn bounds(limit: usize, all: usize) -> BodyBounds {
        BodyBounds { limit, all, within: Duration::from_secs(5) }
    }

    #[tokio::test]
    async fn b02_a_body_without_a_length_is_cut_off_at_its_limit() {
        let budget = Arc::<BodyBudget>::default();
        for sizes in [&[1_000, 1_000][..], &[2_000], &[1, 1, 1_998], &[]] {
            let mut reserved = ReservedBytes::none(&budget);
            let read = read(&mut pieces(sizes), &mut reserved, bounds(2_000, 1 << 20)).await;
            assert_eq!(read.unwrap().len(), sizes.iter().sum::<usize>());
        }
        for sizes in [&[1_000, 1_001][..], &[2_001], &[2_000, 1]] {
            let mut reserved = ReservedBytes::none(&budget);
            let read = read(&mut pieces(sizes), &mut reserved, bounds(2_000, 1 << 20)).await;
            assert_eq!(read, Err(BadBody::TooLarge));
            assert!(reserved.bytes <= 4_096, "{reserved:?}");
        }
        assert_eq!(budget.used.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn b02_bodies_share_a_budget_which_they_give_back() {
        let budget = Arc::<BodyBudget>::default();
        let mut held = ReservedBytes::none(&budget);
        read(&mut pieces(&[600]), &mut held, bounds(1_000, 1_000)).await.unwrap();
        let mut other = ReservedBytes::none(&budget);
        let refused = read(&mut pieces(&[401]), &mut other, bounds(1_000, 1_000)).await;
        assert_eq!(refused, Err(BadBody::NoRoom));
        drop(held);
        read(&mut pieces(&[1_000]), &mut other, bounds(1_000, 1_000)).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn b02_a_body_that_does_not_come_is_given_up() {
        let budget = Arc::<BodyBudget>::default();
        let mut reserved = ReservedBytes::none(&budget);
        let mut body = Pieces(pieces(&[1; 10]).0, true);
        let started = Instant::now();
        assert_eq!(read(&mut body, &mut reserved, bounds(100, 100)).await, Err(BadBody::Slow));
        assert_eq!(started.elapsed().as_secs(), 5);
    }
}
