//! Tasks that a run waits for, by name: one that panics or does not end is named in the report.

use std::{collections::HashMap, future::Future};

use tokio::task::{Id, JoinError, JoinSet};

/// Named tasks. When dropped, it aborts the remaining ones at their next await.
pub(crate) struct Tasks<T> {
    tasks: JoinSet<T>,
    /// Of the tasks that have not been joined.
    names: HashMap<Id, String>,
}

impl<T: Send + 'static> Tasks<T> {
    pub(crate) fn new() -> Self {
        Self { tasks: JoinSet::new(), names: HashMap::new() }
    }

    pub(crate) fn spawn(
        &mut self,
        name: impl Into<String>,
        task: impl Future<Output = T> + Send + 'static,
    ) {
        self.names.insert(self.tasks.spawn(task).id(), name.into());
    }

    /// The next task that ends: its result, or its name and why it has none.
    /// `None` once all have ended.
    ///
    /// # Cancel safety
    /// A dropped future has joined nothing.
    pub(crate) async fn next(&mut self) -> Option<Result<T, (String, JoinError)>> {
        Some(match self.tasks.join_next_with_id().await? {
            Ok((id, result)) => {
                self.names.remove(&id);
                Ok(result)
            }
            Err(error) => Err((self.names.remove(&error.id()).unwrap_or_default(), error)),
        })
    }

    /// True if all have ended and were joined.
    pub(crate) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// How many there are that were not joined.
    pub(crate) fn count(&self) -> usize {
        self.tasks.len()
    }

    /// The names of those that have not ended, sorted.
    pub(crate) fn left(&self) -> Vec<String> {
        let mut names: Vec<String> = self.names.values().cloned().collect();
        names.sort();
        names
    }
}
