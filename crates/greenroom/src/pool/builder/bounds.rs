//! Checking settings: in range, able to work, and with their derived values.

use super::{config::PoolConfig, functions::FunctionsOf};
use crate::{
    Actor, FailureAction, FailurePolicy, FinalAction, SpawnError, failure::FailedAttempt,
    size::check_range,
};

/// Refuses a failure policy that asks for messages or keys that the pool does not have.
pub(super) fn check_failure<A: Actor>(
    config: &PoolConfig,
    functions: &FunctionsOf<A>,
    has_keys: bool,
) -> Result<(), SpawnError> {
    let pool = || config.name.to_string();
    let parks = config.failure.finally == Some(FinalAction::ParkKey);
    if !has_keys && (parks || functions.policy.needs_keys()) {
        return Err(SpawnError::NoKeys { pool: pool() });
    }
    let has_message = A::KEEPS_MESSAGE || functions.copy.is_some();
    if !has_message && (parks || functions.policy.needs_message()) {
        return Err(SpawnError::NoCopies { pool: pool() });
    }
    Ok(())
}

/// A bound on bytes, if there is one: at least 1.
pub(super) fn check_bytes(setting: &'static str, most: Option<usize>) -> Result<(), SpawnError> {
    match most {
        Some(most) => check_range(most > 0, setting, most, "1 or more"),
        None => Ok(()),
    }
}

/// The policy, with another final action if one is given.
pub(super) fn ending<E: 'static>(
    policy: Box<dyn FailurePolicy<E>>,
    finally: Option<FinalAction>,
) -> Box<dyn FailurePolicy<E>> {
    match finally {
        Some(finally) => Box::new(Ending { policy, finally }),
        None => policy,
    }
}

/// A failure policy with another final action.
struct Ending<E> {
    policy: Box<dyn FailurePolicy<E>>,
    finally: FinalAction,
}

impl<E: 'static> FailurePolicy<E> for Ending<E> {
    fn decide(&self, attempt: FailedAttempt<'_, E>, chance: f64) -> FailureAction {
        match self.policy.decide(attempt, chance) {
            FailureAction::DeadLetter | FailureAction::Return => self.finally.into(),
            verdict => verdict,
        }
    }
}
