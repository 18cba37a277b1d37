//! A loop over the client, with an ack for each entry.

use std::{hint::black_box, time::Instant};

use greenroom_bus::event::Event;
use redis::Value;

use crate::{BATCH, Failed, stream::Filled};

/// Reads all, on a task as the engine does: when the server had all acknowledgements.
pub async fn read(filled: &Filled, group: &str, is_parsed: bool) -> Result<Instant, Failed> {
    let mut connection = filled.client.get_multiplexed_async_connection().await?;
    let (stream, group, count) = (filled.name.clone(), group.to_owned(), filled.count);
    let create = redis::cmd("XGROUP").arg("CREATE").arg(&stream).arg(&group).arg(0).take();
    create.exec_async(&mut connection).await?;
    let reading = tokio::spawn(async move {
        let mut read = redis::cmd("XREADGROUP");
        read.arg("GROUP").arg(&group).arg("bare").arg("COUNT").arg(BATCH);
        read.arg("STREAMS").arg(&stream).arg(">");
        let mut left = count;
        while left > 0 {
            let mut acks = redis::pipe();
            for (id, event) in entries(read.query_async(&mut connection).await?)? {
                if is_parsed {
                    black_box(Event::parse(&event)?);
                }
                acks.cmd("XACK").arg(&stream).arg(&group).arg(id);
                left -= 1;
            }
            acks.exec_async(&mut connection).await?;
        }
        Ok::<(), Failed>(())
    });
    reading.await??;
    Ok(Instant::now())
}

/// Id and event.
type Entry = (Vec<u8>, Vec<u8>);

/// The entries of the only stream.
fn entries(answer: Value) -> Result<Vec<Entry>, Failed> {
    let Value::Array(mut streams) = answer else { return Err("no entries".into()) };
    let Some(Value::Array(mut stream)) = streams.pop() else { return Err("no stream".into()) };
    let Some(Value::Array(entries)) = stream.pop() else { return Err("no entries".into()) };
    let entry = |entry| {
        let Value::Array(mut parts) = entry else { return Err("no entry") };
        let Some(Value::Array(mut fields)) = parts.pop() else { return Err("no fields") };
        match (parts.pop(), fields.pop()) {
            (Some(Value::BulkString(id)), Some(Value::BulkString(event))) => Ok((id, event)),
            _ => Err("no id"),
        }
    };
    Ok(entries.into_iter().map(entry).collect::<Result<_, _>>()?)
}
