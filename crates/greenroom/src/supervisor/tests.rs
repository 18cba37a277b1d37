//! Supervisors over scripted children, in virtual time.

use std::{sync::Arc, time::Duration};

use tokio::time::sleep;

use super::{
    ChildInfo, ChildSpec, ChildState, Strategy, Supervisor, SupervisorHandle,
    fake::{Fake, Log},
};

mod nesting;
mod restarting;
mod spawning;
mod stopping;
mod threads;

/// Resolves in virtual time once all other tasks have nothing left to do.
async fn settled() {
    sleep(Duration::from_millis(1)).await;
}

/// Starts these children, and clears the log.
async fn up(
    strategy: Strategy,
    log: &Log,
    children: impl IntoIterator<Item = ChildSpec>,
) -> SupervisorHandle {
    let supervisor = Supervisor::new(strategy).seed(7);
    let supervisor = children.into_iter().fold(supervisor, Supervisor::child);
    let handle = supervisor.spawn().await.expect("all start");
    log.take();
    handle
}

fn specs<const N: usize>(fakes: &[Arc<Fake>; N]) -> [ChildSpec; N] {
    std::array::from_fn(|at| ChildSpec::new(fakes[at].clone()))
}

fn child(handle: &SupervisorHandle, name: &str) -> ChildInfo {
    let mut children = handle.children().into_iter();
    children.find(|child| &*child.name == name).expect("a child of this name")
}

fn state(handle: &SupervisorHandle, name: &str) -> ChildState {
    child(handle, name).state
}

fn tasks() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}
