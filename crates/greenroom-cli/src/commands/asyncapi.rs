//! `greenroom asyncapi FILE`: a configuration as an AsyncAPI 3.0 document (C19), for people who
//! look for what goes in and out, and for tools that generate pages and code from it.
//!
//! | of the configuration | in the document |
//! |---|---|
//! | an input | a channel, and an operation that receives from it |
//! | a handler | a channel, and an operation that sends to it; a reply, if it answers with events |
//! | an output, the dead letters | a channel, and an operation that sends to it |
//! | a type or pattern that is named | a message |
//! | the target of an `http` handler | a server |

mod channels;
mod messages;

use std::process::ExitCode;

use serde_json::{Map, Value, json};

use self::{channels::Channel, messages::Messages};
use super::check;
use crate::{cli::AsyncApiArgs, config::Config, exit};

/// Of the specification: <https://www.asyncapi.com/docs/reference/specification/v3.0.0>.
const ASYNCAPI: &str = "3.0.0";

/// Prints the document of a configuration that has no mistakes.
pub fn print(arguments: &AsyncApiArgs) -> ExitCode {
    let file = &arguments.source.file;
    let title = arguments.title.clone().unwrap_or_else(|| match file.file_stem() {
        Some(name) => name.to_string_lossy().into_owned(),
        None => file.display().to_string(),
    });
    match check::load(&arguments.source) {
        Ok((config, _)) => {
            exit::answer(&format!("{:#}\n", document(&config, &title, &arguments.api_version)))
        }
        Err(exit) => exit.into(),
    }
}

fn document(config: &Config, title: &str, version: &str) -> Value {
    let messages = Messages::of(config);
    let (mut channels, mut operations, mut servers) = (Map::new(), Map::new(), Map::new());
    for channel in Channel::all(config) {
        channels.extend(channel.channels(&messages));
        operations.insert(channel.key.clone(), channel.operation(&messages));
        servers.extend(channel.server());
    }
    json!({
        "asyncapi": ASYNCAPI,
        "info": {
            "title": title,
            "version": version,
            "description": concat!("Written by `greenroom asyncapi`, version ", env!("CARGO_PKG_VERSION"), "."),
        },
        "defaultContentType": messages::CONTENT_TYPE,
        "servers": servers,
        "channels": channels,
        "operations": operations,
        "components": { "messages": messages.components(), "schemas": messages::schemas() },
    })
}
