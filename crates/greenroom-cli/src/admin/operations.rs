//! All operations, for `GET /api`, for the OpenAPI document, and for answers to unknown requests.

/// One query or command.
pub(super) struct Operation {
    pub(super) method: &'static str,
    /// The client chooses the parts in braces.
    pub(super) path: &'static str,
    pub(super) about: &'static str,
    /// The permitted query parameters, apart from those that select letters.
    query: &'static [Parameter],
    /// Whether letters are selected.
    selects: bool,
    /// The media type of the answer.
    pub(super) answer: &'static str,
    /// The contents of a body, if it takes one.
    pub(super) body: Option<&'static str>,
    /// Whether anyone may request it.
    pub(super) open: bool,
}

/// A parameter of a query.
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) required: bool,
}

const JSON: &str = "application/json";

const fn get(path: &'static str, about: &'static str) -> Operation {
    Operation {
        method: "GET",
        path,
        about,
        query: &[],
        selects: false,
        answer: JSON,
        body: None,
        open: false,
    }
}

const fn post(path: &'static str, about: &'static str) -> Operation {
    Operation { method: "POST", ..get(path, about) }
}

impl Operation {
    const fn query(self, query: &'static [Parameter]) -> Self {
        Self { query, ..self }
    }

    const fn selects(self) -> Self {
        Self { selects: true, ..self }
    }

    const fn answers(self, answer: &'static str) -> Self {
        Self { answer, ..self }
    }

    const fn takes(self, body: &'static str) -> Self {
        Self { body: Some(body), ..self }
    }

    const fn open(self) -> Self {
        Self { open: true, ..self }
    }

    /// The permitted query parameters.
    pub(super) fn parameters(&self) -> impl Iterator<Item = &'static Parameter> {
        let filters = if self.selects { FILTERS } else { &[] };
        self.query.iter().chain(filters)
    }

    /// As it is requested: `POST /api/keys/skip?key=KEY[&handler=HANDLER]`.
    pub(super) fn description(&self) -> String {
        let mut words = format!("{} {}", self.method, self.path);
        let (mut mark, mut optional) = ('?', Vec::new());
        for parameter in self.parameters() {
            let name = parameter.name;
            if parameter.required {
                words.push_str(&format!("{mark}{name}={}", name.to_uppercase()));
                mark = '&';
            } else {
                optional.push(name);
            }
        }
        if !optional.is_empty() {
            words.push_str(&format!("[{mark}{}]", optional.join("&")));
        }
        words
    }
}

const fn may(name: &'static str, about: &'static str) -> Parameter {
    Parameter { name, about, required: false }
}

const fn must(name: &'static str, about: &'static str) -> Parameter {
    Parameter { name, about, required: true }
}

const ALL: Parameter = may("all", "`true` instead of filters");

const FILTERS: &[Parameter] = &[
    may("id", "numbers of letters, separated by commas"),
    may("reason", "the reason why they are dead letters"),
    may("pool", "the name of a pool"),
    may("handler", "the name of a handler"),
    may("input", "the name of an input"),
    may("key", "the key that orders them"),
    may("share", "their share"),
    may("event", "the id of their event"),
    may("group", "a group of errors"),
    may("since", "a time in RFC 3339"),
    may("upto", "the highest number"),
];

const PARKED: &[Parameter] = &[
    must("key", "a value of `order_by`"),
    must("event", "the id of the event that parks it; refused (409) if it is another one by now"),
    may("handler", "the handler, if it is parked with several"),
];

/// All of them.
pub(super) const OPERATIONS: &[Operation] = &[
    get("/", "the dashboard").answers("text/html").open(),
    get("/favicon.svg", "its icon").answers("image/svg+xml").open(),
    get("/assets/app.js", "its program").answers("text/javascript").open(),
    get("/assets/app.css", "its style").answers("text/css").open(),
    get("/healthz", "that greenroom is alive, and its health: green, yellow or red").open(),
    get(
        "/readyz",
        "whether events can be taken; 503 while an input is not connected or has stalled, or the run ends",
    )
    .open(),
    get("/metrics", "its metrics, for Prometheus, or as OpenMetrics if that is accepted")
        .answers("text/plain"),
    get("/api", "this list"),
    get("/api/openapi.json", "the same as an OpenAPI document"),
    get(
        "/api/live",
        "all figures once a second as server-sent events; one sampler serves all listeners",
    )
    .answers("text/event-stream"),
    get("/api/advice", "recommended changes: the figures, the reason, and the lines of the file"),
    get(
        "/api/history",
        "the last hour: a few figures for each second, and marks for events",
    )
    .query(&[
        may("seconds", "how many seconds; by default all that are kept"),
        may("points", "the most points"),
    ]),
    get("/api/run", "the progress of the run"),
    get("/api/pools", "the pools: figures, settings, state"),
    get("/api/pools/{name}", "one of them"),
    get("/api/pools/{name}/workers", "its workers: the event that each has in hand, and since when"),
    post("/api/pools/{name}/workers", "adds or removes workers to reach a number").query(&[
        must("count", "the new number of workers"),
        may("confirm", "the same number again, if it is several times the current one"),
    ]),
    post("/api/pools/{name}/pause", "starts no further attempts in it"),
    post("/api/pools/{name}/resume", "resumes it"),
    get("/api/pools/{name}/shares", "its shares: what each may, has in hand and waits for").query(
        &[
            may("sort", "by what `waiting`, by `time` in hand, or by how long they are `held`"),
            may("limit", "how many; 100 unless said otherwise"),
        ],
    ),
    post("/api/pools/{name}/shares/{share}", "gives a share other limits until the end of the run")
        .query(&[
            may("weight", "its part of the workers' time, beside others"),
            may("in_hand", "how many of its events are in hand at most, or `none`"),
            may("rate", "how many attempts are started in a time, such as `20/s`, or `none`"),
        ]),
    post("/api/pools/{name}/shares/{share}/pause", "attempts nothing of it until it is resumed"),
    post("/api/pools/{name}/shares/{share}/resume", "ends a pause or a hold"),
    post(
        "/api/pools/{name}/shares/{share}/hold",
        "attempts nothing of it for so long, then one probes",
    )
    .query(&[must("seconds", "for how long")]),
    post(
        "/api/pools/{name}/shares/{share}/reset",
        "what was set by hand is as in the configuration",
    ),
    get("/api/handlers", "the handlers, and which are in outage"),
    get("/api/handlers/{name}", "one of them"),
    post("/api/handlers/{name}/pause", "starts no further attempts of it"),
    post("/api/handlers/{name}/resume", "resumes it"),
    get("/api/outputs", "the outputs, and which are paused or fail"),
    get("/api/outputs/{name}", "one of them"),
    post("/api/outputs/{name}/resume", "makes a paused one try its target at once"),
    get("/api/keys", "the parked keys and the hottest ones; with `key`, its state and the reason")
        .query(&[may("key", "a value of `order_by`")]),
    post("/api/keys/decide-all", "decides on all keys that are parked for the same error")
        .query(&[
            must("decision", "`resume`, `skip` or `drop`"),
            must("group", "the group of the keys: one handler, one error"),
            may("confirm", "their number; without it, the answer says it (409)"),
        ]),
    post("/api/keys/resume", "retries the event that parked the key").query(PARKED),
    post("/api/keys/skip", "makes it a dead letter; the key continues").query(PARKED),
    post("/api/keys/drop", "makes dead letters of all its events").query(PARKED),
    get(
        "/api/dead-letters",
        "the dead letters, a page at a time; long texts are cut, `bytes` is the size",
    )
    .query(&[
        may("after", "the number of the last letter of the page before"),
        may("limit", "how many per page"),
        may("order", "`oldest` first or `newest`"),
        may("by", "counts them by `group` of errors, `reason` or `handler`"),
    ])
    .selects(),
    get("/api/dead-letters/{number}", "one of them, whole"),
    get("/api/dead-letters/export", "of a store: all of them, one per line")
        .selects()
        .answers("application/x-ndjson"),
    get("/api/dead-letters/replays", "of a store: the requested replays"),
    post("/api/dead-letters/replay", "of a store: handles them again")
        .query(&[ALL, may("rate", "letters per second")])
        .selects(),
    post("/api/dead-letters/replays/{number}/stop", "stops it"),
    post("/api/dead-letters/replays/{number}/resume", "resumes it"),
    post("/api/dead-letters/replays/{number}/cancel", "releases the letters that still wait"),
    get("/api/dead-letters/{number}/edit", "of a store: its event, to edit and send back"),
    post(
        "/api/dead-letters/{number}/edit",
        "replaces its event by the one in the body, or changes places in it",
    )
    .query(&[may("set", "a place and its value, such as `/data/x=1`; several times")])
    .takes("one CloudEvent"),
    post("/api/dead-letters/drop", "of a store: drops them for good, if their number is confirmed")
        .query(&[ALL, may("confirm", "their number; without it, the answer says it (409)")])
        .selects(),
    post("/api/reload", "reads the configuration again"),
];
