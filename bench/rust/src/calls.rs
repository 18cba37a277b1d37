//! Workload D: a message and its reply.

use crate::{
    Failure,
    message::{Counters, Message},
    stage::{Stage, share, time},
    system::{Caller, Calls, Handle},
    task::Counting,
    work::Work,
};

const WORKERS: usize = 4;

/// Nanoseconds per call; each caller makes one after the other.
pub fn run<S: Calls>(callers: u64, calls: u64) -> Result<f64, Failure> {
    let (stage, counters) = (S::Stage::new()?, Counters::new(WORKERS));
    let made = Counting::make(&counters, Work::NONE);
    let to = stage.block_on(S::start_answering(&stage, WORKERS, made))?;
    let caller = |index: u64| {
        let mut to = to.clone();
        to.begin(index as usize);
        async move {
            for seq in share(index, callers, calls) {
                check(seq, to.call(Message::new(seq, seq)).await?)?;
            }
            Ok(())
        }
    };
    let took = time(&stage, (0..callers).map(caller).collect(), &counters, calls)?;
    stage.block_on(to.stop());
    Ok(took.as_nanos() as f64 / calls as f64)
}

fn check(seq: u64, reply: u64) -> Result<(), Failure> {
    if reply == seq + 1 {
        return Ok(());
    }
    Err(format!("call {seq} got the reply {reply}").into())
}
