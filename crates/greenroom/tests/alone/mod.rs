//! Tests that need their own process: because of the panic hook, or to measure memory.

mod many_actors;
mod panic_location;

use std::{env, process::Command};

/// Runs a test in its own process, on this many threads: starts this program again with only that
/// test. `name` includes its modules.
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
