//! A connection that knows when it last moved bytes.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, sleep_until},
};

/// When bytes were moved last.
#[derive(Debug, Clone)]
pub struct LastMove(Arc<Mutex<Instant>>);

/// A stream that notes each move of bytes.
#[derive(Debug)]
pub struct Moving<S> {
    stream: S,
    last: LastMove,
}

impl LastMove {
    fn note(&self) {
        *self.0.lock() = Instant::now();
    }

    /// Waits until nothing has moved for this long, not counting the time in which `excused` holds.
    ///
    /// # Cancel safety
    /// A dropped future has done nothing.
    pub async fn stands_still(&self, patience: Duration, excused: impl Fn() -> bool) {
        self.stands_still_within(|| patience, excused).await;
    }

    /// The same with a patience that may change during the wait.
    ///
    /// # Cancel safety
    /// A dropped future has done nothing.
    pub async fn stands_still_within(
        &self,
        patience: impl Fn() -> Duration,
        excused: impl Fn() -> bool,
    ) {
        loop {
            let end = *self.0.lock() + patience();
            if Instant::now() < end {
                sleep_until(end).await;
            } else if excused() {
                self.note();
            } else {
                return;
            }
        }
    }
}

impl<S> Moving<S> {
    /// Nothing has moved since now.
    pub fn new(stream: S) -> (Self, LastMove) {
        let last = LastMove(Arc::new(Mutex::new(Instant::now())));
        (Self { stream, last: last.clone() }, last)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Moving<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = ready!(Pin::new(&mut self.stream).poll_read(cx, into));
        self.last.note();
        Poll::Ready(read)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Moving<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, from));
        self.last.note();
        Poll::Ready(written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
