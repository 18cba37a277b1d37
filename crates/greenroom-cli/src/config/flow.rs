//! The flow of events: handlers and outputs that nothing reaches, events that no part takes, ways
//! back that lead nowhere or loop forever.
//!
//! All findings are warnings, and only certain ones are reported: the events that `exec` and `http`
//! make are not known, and the types of events only if generators or rules for records make all of
//! them.

use greenroom_bus::{event::Event, handler::Makes, pattern::Pattern, router::Matcher};
use greenroom_config::{Places, Problem, Problems};

use super::{
    options::{Config, FieldCondition, HandlerConfig, LoopbackConfig, OutputConfig, RecordsConfig},
    pattern::{covers, overlap},
};

/// Reports unreachable parts and endless loops.
pub(super) fn check(config: &Config, places: &Places, problems: &mut Problems) {
    let mut flow = Flow { config, places, problems };
    flow.unreached_handlers();
    flow.types_that_no_condition_takes();
    flow.unhandled_types();
    if let Some(loopback) = &config.loopback {
        flow.nothing_comes_back();
        flow.nobody_takes_what_comes_back(loopback);
        for (place, handler) in config.handlers.iter().enumerate() {
            flow.loops(place, handler);
        }
    }
    for (place, output) in config.outputs.iter().enumerate() {
        flow.unreached_output(place, output);
    }
    for handler in &config.handlers {
        flow.no_output(handler);
    }
}

struct Flow<'a> {
    config: &'a Config,
    places: &'a Places,
    problems: &'a mut Problems,
}

impl<'a> Flow<'a> {
    fn warning(&mut self, path: &str, message: impl Into<String>, help: impl Into<String>) {
        self.problems.push(Problem::warning(message, self.places.at(path).place).help(help));
    }

    /// The types of all events, if they are known: all inputs are generators, or have records of
    /// one type, and nothing comes back.
    fn types(&self) -> Option<Vec<&'a str>> {
        let mut types = Vec::new();
        for input in &self.config.inputs {
            let of_records = input.records.as_ref().and_then(RecordsConfig::known_type);
            types.extend(input.kind.types(of_records)?);
        }
        self.config.loopback.is_none().then_some(types)
    }

    fn unreached_handlers(&mut self) {
        let types = self.types();
        for (place, handler) in self.config.handlers.iter().enumerate() {
            let path = format!("handlers.{}.on", handler.name);
            let text = format!("nothing reaches the handler `{}`", handler.name);
            let reached = |t: &&str| handler.on.iter().any(|on| covers(on, t));
            if let Some(types) = types.as_ref().filter(|types| !types.iter().any(reached)) {
                let help = format!("the inputs give {} only", types.join(", "));
                self.warning(&path, text, help);
            } else if let Some(first) = self.takes_it_all(place, handler) {
                let help = format!(
                    "`{first}` takes all of its events first; write a `match` or `where` for \
                     `{first}`, or remove one of the two"
                );
                self.warning(&path, text, help);
            }
        }
    }

    /// The handler that is asked before this one and takes all of its events.
    fn takes_it_all(&self, place: usize, handler: &HandlerConfig) -> Option<&'a str> {
        if handler.fan_out {
            return None;
        }
        let others = self
            .config
            .handlers
            .iter()
            .enumerate()
            .filter(|(other, greedy)| *other != place && !greedy.fan_out && greedy.takes_all());
        let goes_first = |(other, greedy): &(usize, &HandlerConfig), on: &str| {
            greedy.on.iter().any(|first| covers(first, on) && is_before(first, *other, on, place))
        };
        others
            .filter(|other| handler.on.iter().all(|on| goes_first(other, on)))
            .map(|(_, greedy)| greedy.name.as_str())
            .next()
    }

    /// Conditions of `where` on the type that no type of `on` meets.
    fn types_that_no_condition_takes(&mut self) {
        let handlers = self.config.handlers.iter();
        let handlers =
            handlers.map(|handler| ("handlers", &handler.name, &handler.on, &handler.conditions));
        let outputs = self.config.outputs.iter();
        let outputs =
            outputs.map(|output| ("outputs", &output.name, &output.on, &output.conditions));
        for (section, name, on, conditions) in handlers.chain(outputs) {
            let Some(of_type) = conditions.iter().find(|condition| condition.field == "type")
            else {
                continue;
            };
            let Some(meets) = type_condition(of_type) else { continue };
            if !on.iter().any(|on| may_be(on, of_type, &meets)) {
                let path = format!("{section}.{name}.where.type");
                let text = format!("`{name}` never takes an event: no type of its `on` meets this");
                let help = "name types only under `on`; a `where` is for the content of events";
                self.warning(&path, text, help);
            }
        }
    }

    /// Events without a handler, unless the configuration says how to treat them.
    fn unhandled_types(&mut self) {
        let Some(types) = self.types().filter(|_| !self.places.has("no_handler")) else { return };
        let handlers = &self.config.handlers;
        let handled = |t: &str| handlers.iter().any(|h| h.on.iter().any(|on| covers(on, t)));
        let Some(lost) = types.into_iter().find(|t| !handled(t)) else { return };
        let text = format!("no handler takes the events of the type `{lost}`");
        let help =
            "each becomes a dead letter; name a handler for it, or write `no_handler: ignore`";
        self.warning("inputs", text, help);
    }

    fn nothing_comes_back(&mut self) {
        let declared = self.config.handlers.iter().any(|handler| handler.loopback > 0);
        // If events certainly come back without room, their handler is reported.
        let mut handlers = self.config.handlers.iter().enumerate();
        let told = handlers.any(|(place, handler)| self.sends_back(place, handler));
        if !declared && !told {
            let text = "no handler has room for events that come back in: each of them fails";
            let help = "set in their handler how many it makes from one event: `loopback: 1`";
            self.warning("loopback", text, help);
        }
    }

    fn nobody_takes_what_comes_back(&mut self, loopback: &LoopbackConfig) {
        for (index, back) in loopback.on.iter().enumerate() {
            let mut on = self.config.handlers.iter().flat_map(|handler| &handler.on);
            if !on.any(|on| overlap(on, back)) {
                let text = format!("no handler takes the events that come back in as `{back}`");
                let help = "name a handler for it, or leave it out here";
                self.warning(&format!("loopback.on.{index}"), text, help);
            }
        }
    }

    /// A handler whose events come back unchanged: there is no room for them, or they never end.
    fn loops(&mut self, place: usize, handler: &HandlerConfig) {
        if !self.sends_back(place, handler) {
            return;
        }
        let name = &handler.name;
        if handler.loopback == 0 {
            let text = format!(
                "the events that `{name}` passes come back in, but it has no room for them: they fail"
            );
            let help = "leave its types out of `loopback.on`, so that they go to an output";
            return self.warning(&format!("handlers.{name}.on"), text, help);
        }
        let text = format!("the events that `{name}` passes come back in to `{name}`, forever");
        let help = "leave its types out of `loopback.on`, or let another handler take them";
        self.warning(&format!("handlers.{name}.loopback"), text, help);
    }

    /// True if it takes its own unchanged events that come back. If another handler may take these
    /// first, it is not reported.
    fn sends_back(&self, place: usize, handler: &HandlerConfig) -> bool {
        let backs = self.config.loopback.iter().flat_map(|loopback| &loopback.on);
        let others = self.config.handlers.iter().enumerate().filter(|(other, _)| *other != place);
        let taken_first = |on: &str, back: &str| {
            let mut others =
                others.clone().flat_map(|(at, one)| one.on.iter().map(move |on| (at, on)));
            others.any(|(at, first)| overlap(first, back) && is_before(first, at, on, place))
        };
        let mut pairs = backs.flat_map(|back| handler.on.iter().map(move |on| (on, back)));
        // Events that its `where` rejects do not come back to it.
        passes(handler)
            && handler.conditions.is_empty()
            && pairs
                .any(|(on, back)| overlap(on, back) && (handler.fan_out || !taken_first(on, back)))
    }

    fn unreached_output(&mut self, place: usize, output: &OutputConfig) {
        let text = format!("nothing reaches the output `{}`", output.name);
        let path = format!("outputs.{}.on", output.name);
        if let Some(first) = self.goes_elsewhere(place, output) {
            let help = format!(
                "events go to the first output that matches, and `{first}` takes all of these: put \
                 `{}` before it, or write `all_outputs: true`, at the top",
                output.name
            );
            self.warning(&path, text, help);
        } else if let Some(loopback) = &self.config.loopback
            && covers_all(&loopback.on, &output.on)
        {
            let help = "all of these come back in (`loopback.on`)";
            self.warning(&path, text, help);
        } else if !self.config.handlers.iter().any(|handler| may_emit(handler, output)) {
            let help = "no handler makes such events; `log` and `drop` make none, and those of \
                        `pass` and `simulate` keep their type";
            self.warning(&path, text, help);
        }
    }

    /// The output before this one that takes all of its events.
    fn goes_elsewhere(&self, place: usize, output: &OutputConfig) -> Option<&'a str> {
        if self.config.all_outputs {
            return None;
        }
        let mut before = self.config.outputs[..place].iter();
        let takes_all = |first: &&OutputConfig| {
            first.conditions.is_empty() && covers_all(&first.on, &output.on)
        };
        before.find(takes_all).map(|first| first.name.as_str())
    }

    /// If there are outputs, a handler whose events none of them takes is a slip.
    fn no_output(&mut self, handler: &HandlerConfig) {
        let back = self.config.loopback.iter().flat_map(|loopback| &loopback.on);
        let outputs = self.config.outputs.iter().flat_map(|output| &output.on);
        let takes = |on: &String| outputs.clone().chain(back.clone()).any(|to| overlap(to, on));
        if self.config.outputs.is_empty() || !passes(handler) || handler.on.iter().any(takes) {
            return;
        }
        let text = format!("no output takes the events that the handler `{}` passes", handler.name);
        let help = "name an output for them, or write `drop` to discard them";
        self.warning(&format!("handlers.{}.on", handler.name), text, help);
    }
}

/// The condition on the type of an event.
fn type_condition(condition: &FieldCondition) -> Option<Matcher> {
    let field = condition.asked().ok()?;
    let asked = condition.conditions().into_iter();
    Some(asked.fold(Matcher::any(), |matcher, condition| matcher.field(field, condition)))
}

/// True if some type that `on` matches may meet the condition. For a pattern, that is known only if
/// the condition lists the types.
fn may_be(on: &str, condition: &FieldCondition, meets: &Matcher) -> bool {
    let event = |ty: &str| Event::builder("1", "/", ty.to_owned()).build().ok();
    if !on.contains('*') {
        return event(on).is_none_or(|event| meets.matches(&event));
    }
    condition.texts().is_none_or(|types| types.iter().any(|ty| covers(on, ty)))
}

/// True if the router asks the first before the second.
fn is_before(first: &str, first_place: usize, second: &str, second_place: usize) -> bool {
    let rank = |on: &str| on.parse::<Pattern>().ok().map(|on| on.specificity());
    let (first, second) = (rank(first), rank(second));
    first > second || (first == second && first_place < second_place)
}

fn covers_all(outer: &[String], inner: &[String]) -> bool {
    inner.iter().all(|inner| outer.iter().any(|outer| covers(outer, inner)))
}

/// True if the events continue unchanged.
fn passes(handler: &HandlerConfig) -> bool {
    handler.kind.makes() == Makes::Same
}

fn may_emit(handler: &HandlerConfig, output: &OutputConfig) -> bool {
    match handler.kind.makes() {
        Makes::Nothing => false,
        Makes::Same => handler.on.iter().any(|on| output.on.iter().any(|to| overlap(on, to))),
        Makes::Answers => true,
    }
}
