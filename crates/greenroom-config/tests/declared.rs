//! What follows from a declaration: decoding, defaults, problems with their places, schema and
//! reference page.

use std::{path::PathBuf, time::Duration};

use greenroom_config::{
    At, CountOr, Format, Kinds, Literal, Options, Place, Problems, Secret, Toml, Word, Yaml, bare,
    command, count, count_or, decode, default_of, defaults, defaults_beside, duration, durations,
    each, flag, group, list, literal, literals, named, number, options, path, rate, read,
    reference,
    schema::Group,
    size, text, texts,
    tree::Value,
    units::{DurationRange, Rate},
    url, variables, word, words,
};

words! {
    /// What happens when it is full.
    pub enum OnFull {
        /// Who sends waits.
        Wait = "wait",
        /// It is refused.
        Refuse = "refuse",
    }
}

const NOTHING: &Group = &Group::without_settings("this step");

options! {
    /// All kinds of values.
    pub struct Shop = "a shop" {
        /// Doors.
        doors: Vec<Door> = named();
        /// Steps, one after the other.
        steps: Vec<Step> = list().or_empty();
        /// How it is lit.
        light: Option<CountOr<Lamp>> = count_or(1..=9).optional();
        /// What is posted to.
        post: Option<Secret<String>> = url().secret().optional();
    }
}

options! {
    /// A way in.
    pub struct Door named name = "a door", then Door::hung {
        /// Whether it is open.
        open: bool = flag().default("true");
        /// How many fit through.
        width: usize = count(1..=100).alias(&["size_of_door"]).live().default("2");
        /// How many at once where nothing is said.
        queue: usize = count(1..=100).inherits("5");
        /// How heavy it is.
        weight: f64 = number(0.0..=1.5).default("1");
        /// How much it lets through.
        mass: u64 = size(1..=1 << 30).default("1KiB");
        /// How long it takes.
        within: Duration = duration(1..=60_000).default("1s");
        /// How long it creaks.
        creaks: DurationRange = durations().default("1ms..2ms");
        /// How often.
        pace: Option<Rate> = rate().optional();
        /// When it is full.
        on_full: OnFull = word().default("wait");
        /// What it opens for.
        matches as "match": Vec<String> = texts().default("[all]");
        /// What opens it.
        by: Option<Vec<String>> = command().optional();
        /// Its signs.
        signs: Vec<(String, String)> = variables().default("{}");
        /// Its plan.
        plan: Option<PathBuf> = path().optional();
        refused { "lock": "`lock` is not part of this version"; }
    }
}

impl Door {
    fn hung(self, at: &mut At<'_>) -> Option<Self> {
        at.ordered("queue", ("width", self.width), ("queue", self.queue))?;
        Some(self)
    }
}

options! {
    /// What is done.
    pub enum Step = "a step", then Step::not_nobody {
        /// Waits.
        Wait(Duration) as "wait" = duration(1..=1_000);
        /// Calls.
        Call(Call) as "call" = group();
        /// Ends.
        End as "end" = bare(NOTHING);
    }
}

impl Step {
    fn not_nobody(self, at: &mut At<'_>) -> Option<Self> {
        match &self {
            Self::Call(call) if call.whom == "nobody" => {
                at.error("call", "nobody is called", "name somebody");
                None
            }
            _ => Some(self),
        }
    }
}

options! {
    /// A call.
    pub struct Call = "a call" {
        /// Whom.
        whom: String = text();
    }
}

options! {
    /// In place of a number.
    pub struct Lamp = "a lamp" {
        /// How bright.
        bright: usize = count(1..=10);
    }
}

fn lines(problems: &Problems) -> Vec<String> {
    let line = |problem: &&greenroom_config::Problem| match &problem.place {
        Place::Source(span) => format!("{}:{} {}", span.line, span.column, problem.message),
        Place::Set(path) => format!("--set {path} {}", problem.message),
    };
    problems.sorted().iter().map(line).collect()
}

fn errors(text: &str) -> Vec<String> {
    lines(&read::<Shop>(Yaml, text).expect_err(text))
}

#[test]
fn c18_what_is_declared_is_what_is_read() {
    let yaml = "\
doors:
  front:
    open: false
    sizeOfDoor: 3
    weight: 0.5
    mass: 2MiB
    within: 200ms
    creaks: 1s..2s
    pace: 20/s
    onFull: refuse
    match: [a, b]
    by: [sh, '']
    signs: { exit: left }
    plan: plan.txt
steps: [end, { wait: 5ms }, { call: { whom: Ada } }]
light: { bright: 3 }
post: 'http://host/'
";
    let toml = "\
light = { bright = 3 }
post = 'http://host/'
steps = ['end', { wait = '5ms' }, { call = { whom = 'Ada' } }]
[doors.front]
open = false
sizeOfDoor = 3
weight = 0.5
mass = '2MiB'
within = '200ms'
creaks = '1s..2s'
pace = '20/s'
onFull = 'refuse'
match = ['a', 'b']
by = ['sh', '']
signs = { exit = 'left' }
plan = 'plan.txt'
";
    let shop = read::<Shop>(Yaml, yaml).unwrap();
    assert_eq!(read::<Shop>(Toml, toml).unwrap(), shop);
    let seconds = Duration::from_secs;
    let expected = Door {
        name: "front".to_owned(),
        open: false,
        width: 3,
        queue: 5,
        weight: 0.5,
        mass: 2 << 20,
        within: Duration::from_millis(200),
        creaks: DurationRange { from: seconds(1), to: seconds(2) },
        pace: Some(Rate { per_second: 20.0 }),
        on_full: OnFull::Refuse,
        matches: vec!["a".to_owned(), "b".to_owned()],
        by: Some(vec!["sh".to_owned(), String::new()]),
        signs: vec![("exit".to_owned(), "left".to_owned())],
        plan: Some(PathBuf::from("plan.txt")),
    };
    assert_eq!(shop.doors, [expected]);
    let call = Step::Call(Call { whom: "Ada".to_owned() });
    assert_eq!(shop.steps, [Step::End, Step::Wait(Duration::from_millis(5)), call]);
    assert_eq!(shop.light, Some(CountOr::Or(Lamp { bright: 3 })));
    assert_eq!(shop.steps[2].key(), "call");
}

#[test]
fn c18_what_is_left_out_is_as_declared() {
    let door = defaults::<Door>("doors.back").unwrap();
    assert_eq!((door.name.as_str(), door.open, door.width, door.queue), ("back", true, 2, 5));
    assert_eq!((door.within, door.mass), (Duration::from_secs(1), 1024));
    assert_eq!((door.on_full, door.matches.as_slice()), (OnFull::Wait, &["all".to_owned()][..]));
    assert_eq!(read::<Shop>(Yaml, "doors: { back: }").unwrap().doors, [door]);
    assert_eq!(defaults::<Call>("call"), None, "it has to be said whom");
    assert_eq!(defaults_beside::<Call>(&[("whom", "me")]), read(Yaml, "whom: me").unwrap());
    assert_eq!(defaults_beside::<Lamp>(&[("bright", "3")]), Lamp { bright: 3 });
    assert_eq!(Shop::GROUP.mistakes(), Vec::<String>::new());
}

#[test]
fn c18_every_problem_comes_in_one_run_with_its_place() {
    let text = "\
doors:
  a: { wdth: 3, open: yes, lock: 1 }
  b: { width: 0, mass: 5s, creaks: 2s..1s }
  c: { width: 9, queue: 8, on_full: wiat }
  c: { width: 9 }
steps: [{ call: { who: Ada } }, stop]
light: 12
light: 1
";
    let expected = [
        "2:8 unknown key `wdth` in a door",
        "2:23 `open` has to be `true` or `false`, but this is the text `yes`",
        "2:28 `lock` is not part of this version",
        "3:15 `width` has to be a whole number from 1 to 100, but the number 0 is out of that range",
        "3:24 `mass` has to be a size from 1 bytes to 1GiB, but this is the text `5s`",
        "3:36 `creaks` has to be a range of durations, the shorter first, but this is the text `2s..1s`",
        "4:25 `width` is 9 and `queue` is 8, which is less",
        "4:37 `on_full` has to be `wait` or `refuse`, but this is the text `wiat`",
        "5:3 `c` is given twice",
        "6:19 unknown key `who` in a call",
        "6:33 a step is a mapping, but this is the text `stop`",
        "7:8 `light` has to be a whole number from 1 to 9, or a mapping, but the number 12 is out of that range",
        "8:1 `light` is given twice",
    ];
    assert_eq!(errors(text), expected);
    let shown = read::<Shop>(Yaml, text).unwrap_err().to_string();
    for help in ["did you mean `width`?", "did you mean `wait`?", "did you mean `whom`?"] {
        assert!(shown.contains(help), "{help} in\n{shown}");
    }
}

#[test]
fn c18_a_part_with_a_problem_is_left_out_and_the_rest_is_built() {
    let text = "doors: { a: { width: 9, queue: 8 }, b: { width: x } }\nsteps: [end, { wait: 5 }]";
    let mut problems = Problems::new("", text);
    let root = Yaml.parse(text, &mut problems).unwrap();
    let (shop, places) = decode::<Shop>(&root, "".as_ref(), &mut problems);
    let shop = shop.unwrap();
    assert_eq!(problems.errors(), 3, "{problems}");
    let names: Vec<_> = shop.doors.iter().map(|door| (door.name.as_str(), door.width)).collect();
    assert_eq!(names, [("b", 2)], "the default stands in for what was wrong");
    assert_eq!(shop.steps, [Step::End]);
    assert!(places.has("doors.a.width") && !places.has("doors.a.open"));
}

#[test]
fn c18_what_is_no_mapping_is_told_and_its_default_stands_in() {
    options! {
        /// The whole.
        pub struct Whole = "the whole" {
            /// How it calls.
            call: Calls = group().default("{}");
            /// One more.
            more: Option<Calls> = group().optional();
        }
    }
    options! {
        /// How it calls.
        pub struct Calls = "calls" {
            /// How often.
            often: usize = count(1..=9).default("3");
        }
    }
    let mut problems = Problems::default();
    let root = Yaml.parse("{ call: 5, more: [] }", &mut problems).unwrap();
    let whole = decode::<Whole>(&root, "".as_ref(), &mut problems).0.unwrap();
    let told = [
        "1:9 calls is a mapping, but this is the number 5",
        "1:18 calls is a mapping, but this is a list",
    ];
    assert_eq!(lines(&problems), told);
    assert_eq!((whole.call.often, whole.more), (3, None));
}

#[test]
fn c18_items_of_a_list_keep_their_places_behind_a_mistake() {
    let text = "doors: {}\nsteps: [5, stop, { call: { whom: '' } }, { wait: 9s }]";
    let expected = [
        "2:9 a step is a mapping, but this is the number 5",
        "2:12 a step is a mapping, but this is the text `stop`",
        "2:34 `whom` has to be text, but it is empty",
        "2:50 `wait` has to be a duration from 1ms to 1s, but the text `9s` is out of that range",
    ];
    assert_eq!(errors(text), expected);
    let text = "doors: {}\nsteps: [5, { call: { whom: nobody } }]";
    assert_eq!(errors(text), [expected[0], "2:14 nobody is called"]);
}

#[test]
fn what_is_secret_is_not_printed() {
    let shop = read::<Shop>(Yaml, "{ doors: {}, post: 'http://user:hunter2@host/' }").unwrap();
    assert_eq!(shop.post.as_deref().map(String::as_str), Some("http://user:hunter2@host/"));
    assert!(!format!("{shop:?}").contains("hunter2"), "{shop:?}");
}

#[test]
fn c09_what_differs_is_told_by_key() {
    let read = |text: &str| read::<Shop>(Yaml, text).unwrap();
    let one = read("doors: { a: { match: b } }\nlight: 1");
    let other = read("doors: { a: { open: false, match: c } }\nlight: 1");
    assert_eq!(one.differs(&other), ["doors"]);
    assert_eq!(one.doors[0].differs(&other.doors[0]), ["open", "match"]);
    assert_eq!(one.differs(&one.clone()), Vec::<&str>::new());
}

#[test]
fn words_stand_for_themselves() {
    assert_eq!(OnFull::WORDS, ["wait", "refuse"]);
    assert_eq!((OnFull::of("refuse"), OnFull::of("no")), (Some(OnFull::Refuse), None));
    assert_eq!(OnFull::Wait.word(), "wait");
}

#[test]
fn a_text_without_a_value_is_blank() {
    for (format, text) in [(Yaml, ""), (Yaml, "# nothing\n"), (Toml, ""), (Toml, "# nothing\n")] {
        let mut problems = Problems::default();
        let root = Format::parse(format, text, &mut problems).unwrap();
        assert!(root.is_blank() && problems.errors() == 0, "{text:?}");
    }
    let null = Yaml.parse("~", &mut Problems::default()).unwrap();
    assert!(!null.is_blank());
}

#[test]
fn c18_the_reference_page_has_every_option() {
    let page = reference::<Shop>("# Shop\n\n");
    for row in [
        "| `doors` | names, each with a mapping, see below | required | Doors. |",
        "## `doors.NAME`\n\nA way in.\n",
        "| `width`, `size_of_door` | a whole number from 1 to 100 | `2` | How many fit through. **Live.** |",
        "| `queue` | a whole number from 1 to 100 |  | How many at once where nothing is said. |",
        "Known, and refused by this version: `lock`.",
        "| `wait` | a duration from 1ms to 1s | one of the kinds | Waits. |",
        "| `end` | `{}` | one of the kinds | Ends. |",
    ] {
        assert!(page.contains(row), "{row} in\n{page}");
    }
}

#[test]
fn c18_a_default_is_there_for_a_schema_where_it_is_the_options_own() {
    let default = |name: &str| default_of(Door::GROUP.find(name).unwrap()).map(|node| node.value);
    assert_eq!(default("width"), Some(Value::Int(2)));
    assert_eq!(default("open"), Some(Value::Bool(true)));
    assert_eq!(default("signs"), Some(Value::Map(Vec::new())));
    assert!(matches!(default("match"), Some(Value::List(items)) if items.len() == 1));
    assert_eq!(default("queue"), None, "it is inherited");
    assert_eq!(default("plan"), None);
}

#[test]
fn what_a_declaration_cannot_be_held_to_by_the_compiler_is_found() {
    const BAD: &Group = &Group {
        title: "a mistake",
        doc: "",
        options: &[
            count::<usize>(1..=5).default("7").opt("one", "Too much."),
            flag().alias(&["one"]).opt("two", "not a sentence"),
        ],
        kinds: greenroom_config::schema::no_kinds,
        needs_kind: false,
        short: Some("one"),
    };
    let mistakes = BAD.mistakes();
    assert_eq!(mistakes.len(), 3, "{mistakes:?}");
    assert!(mistakes[0].contains("the default of `one`"), "{mistakes:?}");
    assert!(mistakes[1].contains("has `one` twice"), "{mistakes:?}");
    assert!(mistakes[2].contains("`two` is not a sentence"), "{mistakes:?}");
}

#[test]
fn c18_what_code_puts_there_can_be_held_to_what_is_declared() {
    let allows = |key, number| Door::GROUP.find(key).is_some_and(|opt| opt.kind.allows(number));
    for (key, within, beyond) in [("width", 1, 0), ("width", 100, 101), ("mass", 1 << 20, 0)] {
        assert!(allows(key, within) && !allows(key, beyond), "{key}");
    }
}

options! {
    /// What is let through.
    pub struct Sieve = "a sieve" {
        /// What is asked of each place.
        wants as "where": Vec<Want> = each().or_empty();
        /// What a single value stands for.
        tag: Option<Want> = group().optional();
    }
}

options! {
    /// What is asked of a place.
    pub struct Want named place = "a want", short "equal" {
        /// It is this.
        equal: Option<Literal> = literal().optional();
        /// It is one of these.
        one_of as "in": Option<Vec<Literal>> = literals().optional();
    }
}

#[test]
fn keys_of_any_form_have_mappings_or_a_value_that_stands_for_one_of_their_keys() {
    let text = "\
where:
  /a.b/c: 5
  /d: '5'
  n.m: { in: [eu, 1.5, true] }
  x: { equal: no }
tag: false
";
    let sieve = greenroom_config::read::<Sieve>(Yaml, text).unwrap();
    let want = |place: &str, equal| Want { place: place.to_owned(), equal, one_of: None };
    let several = vec![Literal::Text("eu".into()), Literal::Number(1.5), Literal::Bool(true)];
    let expected = [
        want("/a.b/c", Some(Literal::Whole(5))),
        want("/d", Some(Literal::Text("5".into()))),
        Want { one_of: Some(several), ..want("n.m", None) },
        want("x", Some(Literal::Text("no".into()))),
    ];
    assert_eq!(sieve.wants, expected);
    assert_eq!(sieve.tag, Some(want("tag", Some(Literal::Bool(false)))));
}

#[test]
fn what_stands_for_a_key_is_told_at_its_place_where_it_does_not_do() {
    let text =
        "where: { /a: [5], /b: { in: [] }, /c: { in: [[1]] }, '': 5, /d: { eqal: 5 }, /e: }\n";
    let problems = greenroom_config::read::<Sieve>(Yaml, text).unwrap_err();
    let lines: Vec<_> = problems.sorted().iter().map(|problem| problem.message.clone()).collect();
    assert_eq!(
        lines,
        [
            "a want is a mapping, but this is a list",
            "`in` has to be a list of texts, numbers, `true` or `false`, but the list is empty",
            "`in` has to be a list of texts, numbers, `true` or `false`, but this is a list",
            "`` cannot be a key",
            "unknown key `eqal` in a want",
        ]
    );
}
