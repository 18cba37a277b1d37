//! A call with a cancellation token: only this file knows how the token is passed on.

use std::{
    future::Future,
    pin::{Pin, pin},
};

use crate::{Address, CallError, CancellationToken, Envelope, on_drop::OnDrop};

/// One call among several for the same answer.
pub(super) type Attempt<R, E> = Pin<Box<dyn Future<Output = Result<R, CallError<E>>> + Send>>;

/// The call, which cancels the token when it is dropped unanswered, even if it was never polled.
fn or_cancel<T>(
    token: CancellationToken,
    call: impl Future<Output = T>,
) -> impl Future<Output = T> {
    let loser = OnDrop::new(move || token.cancel());
    async move {
        let answer = call.await;
        loser.defuse();
        answer
    }
}

/// The call. If `from` is cancelled in between, so is `to`.
async fn passing_on<T>(
    from: Option<CancellationToken>,
    to: CancellationToken,
    call: impl Future<Output = T>,
) -> T {
    let mut call = pin!(call);
    if let Some(from) = from {
        tokio::select! {
            biased;
            answer = &mut call => return answer,
            () = from.cancelled() => to.cancel(),
        }
    }
    call.await
}

/// A self-contained call: dropped unanswered, it is abandoned and its token cancelled. A token in
/// the sender's envelope cancels this call's own.
pub(super) fn attempt<M, R, E>(
    address: Address<M, R, E>,
    message: M,
    mut envelope: Envelope,
) -> Attempt<R, E>
where
    M: Send + 'static,
    R: Send + 'static,
    E: Send + 'static,
{
    let token = CancellationToken::new();
    let senders = envelope.about.token.replace(token.clone());
    let call = async move {
        address.call_with(message, envelope).await.map_err(CallError::without_message)
    };
    Box::pin(or_cancel(token.clone(), passing_on(senders, token, call)))
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use futures_util::FutureExt;

    use super::*;

    /// Whether the token of a call is cancelled after this has been done to the call.
    fn cancelled(
        call: impl Future<Output = ()> + 'static,
        treat: impl FnOnce(Pin<Box<dyn Future<Output = ()>>>),
    ) -> bool {
        let token = CancellationToken::new();
        treat(Box::pin(or_cancel(token.clone(), call)));
        token.is_cancelled()
    }

    #[test]
    fn p12_a_call_that_is_dropped_unanswered_cancels_its_token() {
        assert!(cancelled(pending(), drop), "never polled");
        assert!(cancelled(pending(), |call| assert_eq!(call.now_or_never(), None)));
        assert!(!cancelled(ready(()), |call| assert_eq!(call.now_or_never(), Some(()))));
        assert!(cancelled(ready(()), drop), "never polled, so never sent");
    }

    #[test]
    fn p12_a_call_that_panics_cancels_its_token() {
        let call = async { panic!("the key function") };
        assert!(cancelled(call, |call| {
            let poll = std::panic::AssertUnwindSafe(|| call.now_or_never());
            assert!(std::panic::catch_unwind(poll).is_err());
        }));
    }
}
