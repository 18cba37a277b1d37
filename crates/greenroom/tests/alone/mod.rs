//! Tests that need a process to themselves: for the panic hook, or for the memory that it takes.

mod many_actors;
mod panic_location;

use std::{env, process::Command};

/// Runs a test in a process of its own, on so many threads: this program once more, which runs that
/// test alone. `name` has its modules.
fn alone(name: &str, threads: usize, test: impl Future<Output = ()>) {
    const IS_ALONE: &str = "GREENROOM_TEST_IS_ALONE";
    if env::var_os(IS_ALONE).is_some() {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        return runtime.worker_threads(threads).enable_all().build().unwrap().block_on(test);
    }
    let mut process = Command::new(env::current_exe().unwrap());
    let output = process.args(["--exact", name]).env(IS_ALONE, "").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains(" 1 passed;"), "{said}");
}
