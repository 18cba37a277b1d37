//! `greenroom init`: a first configuration, with data and a worker, that runs as it is.

use std::{
    borrow::Cow,
    fs::{self, OpenOptions},
    io::{self, Write},
    path::Path,
    process::ExitCode,
};

use crate::{
    cli::InitArgs,
    config::{INPUTS, lacking},
    exit::{self, Exit},
};

/// The worker of every template.
const WORKER: (&str, &str) = ("worker.py", include_str!("init/worker.py"));

/// A template: its name, its files, and the next steps.
struct Template {
    name: &'static str,
    /// Name and content; the first is the configuration.
    files: &'static [(&'static str, &'static str)],
    next: fn(config: &str, directory: &Path) -> String,
}

const TEMPLATES: [Template; 5] = [
    Template {
        name: "orders",
        files: &[
            ("greenroom.yaml", include_str!("init/greenroom.yaml")),
            ("orders.ndjson", include_str!("init/orders.ndjson")),
            WORKER,
        ],
        next: |config, _| format!("next: greenroom run {config}\n"),
    },
    Template {
        name: "http",
        files: &[
            ("greenroom.yaml", include_str!("init/http/greenroom.yaml")),
            ("order.json", include_str!("init/http/order.json")),
            ("orders.ndjson", include_str!("init/http/orders.ndjson")),
            WORKER,
        ],
        next: |config, directory| {
            let file = |name| directory.join(name).display().to_string();
            format!(
                "next: greenroom run {config}\n\
                 and in another terminal: curl -i http://127.0.0.1:8080/events -H 'content-type: \
                 application/cloudevents+json' -d @{}\n\
                 or: greenroom send 127.0.0.1:8080 {}\n",
                file("order.json"),
                file("orders.ndjson")
            )
        },
    },
    Template {
        name: "kafka",
        files: &[
            ("greenroom.yaml", include_str!("init/kafka/greenroom.yaml")),
            ("publish.yaml", include_str!("init/kafka/publish.yaml")),
            ("orders.ndjson", include_str!("init/kafka/orders.ndjson")),
            ("service.py", include_str!("init/kafka/service.py")),
            ("compose.yaml", include_str!("init/kafka/compose.yaml")),
            ("README.md", include_str!("init/kafka/README.md")),
        ],
        next: |config, directory| {
            let file = |name| directory.join(name).display().to_string();
            let publish = format!("greenroom run {}", file("publish.yaml"));
            with_a_broker(directory, ("kafka", "localhost:9092"), &publish, config)
        },
    },
    Template {
        name: "nats",
        files: &[
            ("greenroom.yaml", include_str!("init/nats/greenroom.yaml")),
            ("publish.py", include_str!("init/nats/publish.py")),
            ("orders.ndjson", include_str!("init/nats/orders.ndjson")),
            ("service.py", include_str!("init/nats/service.py")),
            ("compose.yaml", include_str!("init/nats/compose.yaml")),
            ("README.md", include_str!("init/nats/README.md")),
        ],
        next: |config, directory| {
            let publish = format!("python3 {}", directory.join("publish.py").display());
            with_a_broker(directory, ("nats", "localhost:4222"), &publish, config)
        },
    },
    Template {
        name: "redis",
        files: &[
            ("greenroom.yaml", include_str!("init/redis/greenroom.yaml")),
            ("publish.py", include_str!("init/redis/publish.py")),
            ("orders.ndjson", include_str!("init/nats/orders.ndjson")),
            ("service.py", include_str!("init/nats/service.py")),
            ("compose.yaml", include_str!("init/redis/compose.yaml")),
            ("README.md", include_str!("init/redis/README.md")),
        ],
        next: |config, directory| {
            let publish = format!("python3 {}", directory.join("publish.py").display());
            with_a_broker(directory, ("redis", "localhost:6379"), &publish, config)
        },
    },
];

/// The next steps with a broker, and a greenroom that has this feature.
fn with_a_broker(
    directory: &Path,
    (feature, at): (&str, &str),
    publish: &str,
    config: &str,
) -> String {
    let file = |name| directory.join(name).display().to_string();
    let install = lacking(feature).map_or_else(String::new, |install| install + "\n");
    format!(
        "{install}next, with a broker at {at} ({} explains how to get one):\n  python3 {}\n\
         and in another terminal:\n  {publish}\n  greenroom run {config}\n",
        file("README.md"),
        file("service.py"),
    )
}

/// The configuration for a kind of input that has initial options but no template of its own.
const OF_AN_INPUT: &str = include_str!("init/input.yaml");

/// Name and content; the first is the configuration.
type Files = Vec<(&'static str, Cow<'static, str>)>;

/// The next steps, with this configuration in this folder.
type Next = fn(&str, &Path) -> String;

/// The files of this template, and the next steps.
fn files(name: &str) -> Option<(Files, Next)> {
    if let Some(template) = TEMPLATES.iter().find(|template| template.name == name) {
        let files = template.files.iter().map(|(name, content)| (*name, Cow::Borrowed(*content)));
        return Some((files.collect(), template.next));
    }
    let (name, options) = INPUTS.starts().find(|(input, _)| *input == name)?;
    let config = OF_AN_INPUT.replace("NAME", name).replace("OPTIONS", options);
    let (worker, program) = WORKER;
    let files = vec![("greenroom.yaml", config.into()), (worker, program.into())];
    Some((files, |config, _| format!("next: greenroom run {config}\n")))
}

/// Writes the files of a template. Writes nothing if one of them exists, unless `--force` is given.
pub fn init(args: &InitArgs) -> ExitCode {
    let name = args.template.as_str();
    let Some((files, next)) = files(name) else {
        let inputs = INPUTS.starts().map(|(name, _)| name);
        let names = TEMPLATES.iter().map(|template| template.name).chain(inputs);
        let names: Vec<_> = names.map(|name| format!("`greenroom init {name}`")).collect();
        let text = format!("there is no template `{name}`; use one of {}", names.join(", "));
        return Exit::BadConfiguration.because(text);
    };
    match write_all(&files, &args.dir, args.force) {
        Ok(()) => exit::answer(&next_steps(&files, next, &args.dir)),
        Err(why) => Exit::CouldNotRun.because(why),
    }
}

fn write_all(files: &Files, directory: &Path, force: bool) -> Result<(), String> {
    fs::create_dir_all(directory).map_err(|error| {
        format!("cannot create the directory `{}`: {error}", directory.display())
    })?;
    let mut paths = files.iter().map(|(name, _)| directory.join(name));
    let existing = paths.find(|path| path.exists());
    if let Some(path) = existing.filter(|_| !force) {
        return Err(format!(
            "`{}` exists, so nothing was written; choose another directory with `--dir`, or overwrite with `--force`",
            path.display()
        ));
    }
    for (name, content) in files {
        let path = directory.join(name);
        write(&path, content, force)
            .map_err(|error| format!("cannot write `{}`: {error}", path.display()))?;
    }
    Ok(())
}

/// Without `force`, a file that appeared in between is not overwritten either.
fn write(path: &Path, content: &str, force: bool) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true);
    if force {
        options.create(true).truncate(true)
    } else {
        options.create_new(true)
    };
    options.open(path)?.write_all(content.as_bytes())
}

fn next_steps(files: &Files, next: fn(&str, &Path) -> String, directory: &Path) -> String {
    let directory = directory.strip_prefix(".").unwrap_or(directory);
    let wrote = files.iter().map(|(name, _)| format!("wrote {}\n", directory.join(name).display()));
    let config = directory.join(files[0].0).display().to_string();
    wrote.collect::<String>() + &next(&config, directory)
}
