//! The telemetry contract: a scripted evening through the whole system. Everything that operators see of it is compared with one file.

mod agreement;
mod drawing;
mod script;

use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::talking_aloud::short_call;
use drawing::Traces;
use script::Step::{
    Clears, Crashes, Dies, DiesAgainAndAgain, Enters, Judges, Pass, Pauses, Quits, RefusesToWrite, Says, Speaks, Takes, Tells,
    Thinks, Votes, Writes,
};
use script::{Chapter, Evening, NO, OUTAGE, REFUSAL, RIDDLE, Who, YES, live_through, words};

/// The events of the evening. Aria is alone in the lobby; Aria, Bruno and Cleo are in the salon; Aria and Zed, an external companion, are in the
/// studio. Models take a second.
const EVENING: &[Chapter] = &[
    Chapter(
        "Ana calls Aria by her name, and Aria answers",
        &[Thinks("aria", YES), Says("lobby", "Ana", "Ari, are you there?"), Pass(5.0)],
    ),
    Chapter(
        "When it has been quiet for a while after a remark, Aria lets it be",
        &[Thinks("aria", NO), Says("lobby", "Ana", "A mild night, this."), Pass(15.0)],
    ),
    Chapter(
        "With two more there have been three remarks, and Aria joins in unasked",
        &[
            Thinks("aria", YES),
            Says("lobby", "Ben", "Milder than yesterday."),
            Says("lobby", "Ana", "And no wind at all."),
            Pass(5.0),
        ],
    ),
    Chapter(
        "What is said to Ben alone is nothing that Aria is asked about",
        &[Says("lobby", "Ana", "@Ben, shall we walk home together?"), Pass(15.0)],
    ),
    Chapter(
        "An answer that is neither yes nor no is asked for once more, and who is called by name answers",
        &[Thinks("aria", RIDDLE), Says("lobby", "Ana", "Ari, do you like figs?"), Pass(5.0)],
    ),
    Chapter(
        "The model cannot be reached; a while later Aria is asked again",
        &[Thinks("aria", OUTAGE), Says("lobby", "Ana", "Ari, can you hear me?"), Pass(15.0), Thinks("aria", NO), Pass(15.0)],
    ),
    Chapter(
        "The model refuses for so long that what was said is too old by then",
        &[Thinks("aria", REFUSAL), Says("lobby", "Ben", "Somebody left the gate open."), Pass(59.0), Thinks("aria", NO)],
    ),
    Chapter(
        "Aria has the floor, but the model that is to write her words refuses",
        &[
            Thinks("aria", YES),
            RefusesToWrite,
            Says("lobby", "Ana", "Ari, tell us a tale."),
            Pass(5.0),
            Writes("There was a fisherman who could not swim."),
        ],
    ),
    Chapter(
        "Zoe calls once more than anybody may in a minute",
        &[
            Thinks("aria", NO),
            Says("lobby", "Zoe", "Ari, a song!"),
            Pass(2.0),
            Says("lobby", "Zoe", "Ari, a dance!"),
            Pass(2.0),
            Says("lobby", "Zoe", "Ari, a joke!"),
            Pass(2.0),
            Says("lobby", "Zoe", "Ari, anything!"),
            Pass(2.0),
        ],
    ),
    Chapter(
        "More is said at once than Aria may have before her",
        &[
            Says("lobby", "Ana", "First came the goat,"),
            Says("lobby", "Ben", "then the baker,"),
            Says("lobby", "Ana", "then the two sisters,"),
            Says("lobby", "Ben", "then all the dogs,"),
            Says("lobby", "Ana", "then the mayor,"),
            Says("lobby", "Ben", "and nobody had a key."),
            Pass(30.0),
        ],
    ),
    Chapter(
        "While the room is paused nobody is asked",
        &[Pauses("lobby", true), Says("lobby", "Ana", "Ari, quick, a secret!"), Pass(5.0), Pauses("lobby", false), Pass(5.0)],
    ),
    Chapter(
        "The room is cleared while Aria is asked",
        &[Says("lobby", "Ana", "Ari, never mind the mess."), Pass(0.5), Clears("lobby"), Pass(5.0)],
    ),
    Chapter(
        "The room's actor is killed while Aria is asked, and another one asks her again",
        &[
            Thinks("aria", YES),
            Says("lobby", "Ben", "Ari, who is at the door?"),
            Pass(0.5),
            Dies(Who::Channel("lobby")),
            Pass(10.0),
        ],
    ),
    Chapter(
        "Aria and Bruno both want to answer, as much as each other; then they talk until it is enough",
        &[
            Thinks("bruno", YES),
            Thinks("cleo", NO),
            Writes("I would take the early boat."),
            Says("salon", "Ana", "Aria, Bruno, how do we get to the island?"),
            Pass(5.0),
            Writes("Rather the ferry at noon, with the bicycles."),
            Pass(3.0),
            Writes("Then somebody must wake the ferryman first."),
            Pass(3.0),
            Writes("He sleeps in the chapel on Sundays."),
            Pass(30.0),
        ],
    ),
    Chapter(
        "Two are called, and nobody wants to speak",
        &[Thinks("aria", NO), Thinks("bruno", NO), Says("salon", "Ana", "Aria, Bruno, who does the dishes?"), Pass(15.0)],
    ),
    Chapter(
        "A vote is refused and another one does not come in time: the round goes on without them",
        &[
            Thinks("aria", YES.of(7)),
            Thinks("bruno", REFUSAL),
            Takes("cleo", 30.0),
            Says("salon", "Ben", "Aria, Bruno, Cleo, what is for supper?"),
            Pass(16.0),
            Thinks("aria", NO),
            Thinks("bruno", NO),
            Takes("cleo", 1.0),
            Pass(60.0),
        ],
    ),
    Chapter(
        "The turn-taking manager is killed in the middle of a round",
        &[Says("salon", "Ana", "Aria, Cleo, is there bread left?"), Pass(0.5), Dies(Who::Manager("salon")), Pass(15.0)],
    ),
    Chapter(
        "Cleo takes her leave; she is not asked any more until somebody calls her",
        &[
            Thinks("cleo", NO.ending("terminal")),
            Says("salon", "Ben", "Cleo, it is late."),
            Pass(5.0),
            Says("salon", "Ben", "There she goes."),
            Pass(15.0),
            Thinks("cleo", NO),
            Says("salon", "Ben", "Cleo, your hat!"),
            Pass(5.0),
        ],
    ),
    Chapter(
        "The same is said again and again, until the talk is led towards its end",
        &[
            Thinks("aria", YES.of(6)),
            Thinks("bruno", YES.of(4)),
            Writes("Cheers, cheers, cheers!"),
            Judges("They only toast.\n0.9"),
            Says("salon", "Ana", "Cheers, cheers, cheers!"),
            Says("salon", "Ben", "Cheers, cheers, cheers!"),
            Says("salon", "Zoe", "Cheers, cheers, cheers!"),
            Pass(45.0),
            Thinks("aria", NO),
            Thinks("bruno", NO),
        ],
    ),
    Chapter(
        "A program plays Zed: it votes, and it speaks",
        &[
            Says("studio", "Ana", "Zed, do you paint?"),
            Votes("studio", "zed", YES),
            Pass(2.5),
            Speaks("studio", "zed", "Only doors."),
            Pass(15.0),
        ],
    ),
    Chapter(
        "Bruno's actor dies again and again, until the guild is started anew",
        &[DiesAgainAndAgain(Who::Companion("bruno"), 9), Pass(30.0)],
    ),
    Chapter(
        "The server is killed: in the lobby a reply is being made, in the salon a round is open, in the studio somebody is asked",
        &[
            Thinks("aria", YES),
            Thinks("bruno", YES),
            Takes("bruno", 4.0),
            Writes("Half past nine, and all is well."),
            Says("lobby", "Ana", "Ari, what time is it?"),
            Says("salon", "Ana", "Aria, Bruno, has anybody seen the cat?"),
            Pass(1.2),
            Says("studio", "Ana", "Aria, hold the ladder."),
            Pass(0.3),
            Crashes,
            Thinks("bruno", NO),
            Pass(30.0),
        ],
    ),
    Chapter(
        "Half an hour later a new conversation begins",
        &[Thinks("aria", NO), Pass(1_830.0), Says("salon", "Ana", "Good morning, Bruno."), Pass(15.0)],
    ),
    Chapter(
        "Ana and Ben talk aloud in the lobby: a while after it has become quiet Aria is asked, and when she is called, soon; they leave in the middle of her second answer",
        &[
            Enters("lobby", "Ana"),
            Enters("lobby", "Ben"),
            Tells("lobby", "Ana", "The gulls are loud tonight."),
            Pass(1.0),
            Tells("lobby", "Ben", "They always are."),
            Pass(15.0),
            Thinks("aria", YES),
            Tells("lobby", "Ana", "Ari, do you hear the gulls?"),
            Pass(15.0),
            Tells("lobby", "Ana", "Ari, what do they cry for?"),
            Pass(4.0),
            Quits("lobby", "Ana"),
            Quits("lobby", "Ben"),
            Pass(15.0),
        ],
    ),
];

const PREFACE: &str = "\
The telemetry contract: what operators see of a scripted evening (src/journeys/contract.rs) in traces and metrics. Dashboards, alerts and
whoever reads traces depend on every name in here. A test compares it; TERTULIA_RECORD_CONTRACT=1 cargo test --lib journeys::contract writes
it anew, for changes that are meant.

Each chapter shows the traces that began in it. A line is a span: its name, its kind unless that is internal, the seconds at which it began
and ended since the chapter did, ERROR with the text of its status if it failed, and the trace that it links to (`follows`). What is under it
is indented, its attributes twice. A span whose parent is marked as missing belongs to a turn that was cut short by a death; another trace
follows it.

In the lobby lives Aria; in the salon Aria, Bruno and Cleo; in the studio Aria, and Zed, whom a program outside plays. Models take a second.
";

fn settings() -> Value {
    let endpoint = |input: f64, output: f64| json!({ "base_url": "http://127.0.0.1:1/v1", "model": "m", "input_price": input, "output_price": output });
    json!({
        "companion_defaults": { "interjection": "very_eager" },
        "gate": { "addresses_per_minute": 3, "max_buffer": 5, "stale_after_secs": 30.0 },
        "repetition": { "judge": "both" },
        "prompt": { "summary_after": 7 },
        "models": { "currency": "EUR", "side": endpoint(1.0, 2.0), "main": endpoint(10.0, 20.0) },
    })
}

#[tokio::test(start_paused = true)]
async fn operators_see_of_an_evening_what_the_contract_says() {
    let evening = live_through(EVENING, settings()).await;

    let traces = Traces::of(evening.systems.iter().flat_map(|system| system.spans()).collect());
    let mut text = describe(&evening, &traces);
    let (call, began) = short_call().await;
    let call_traces = Traces::of(call.spans());
    write!(
        text,
        "\n\n== In a call of its own, Ana calls Aria, who answers aloud; then Ana says something into a microphone\n{}",
        call_traces.drawn(began, None)
    )
    .unwrap();

    compare(&text);
    let readable: Vec<_> = words(EVENING).into_iter().filter(|words| text.contains(words)).collect();
    assert!(readable.is_empty(), "operators can read messages: {readable:?}");
    assert_eq!(traces.lost(), Vec::<String>::new(), "spans with a missing parent");
    assert_eq!(call_traces.lost(), Vec::<String>::new(), "spans with a missing parent");
    for system in evening.systems.iter().chain([&call]) {
        agreement::hold(system);
        agreement::complete(&system.spans());
    }
}

/// Everything that operators see, as one text.
fn describe(evening: &Evening, traces: &Traces) -> String {
    let mut text = PREFACE.to_owned();
    for (at, Chapter(heading, _)) in EVENING.iter().enumerate() {
        let drawn = traces.drawn(evening.began[at], evening.began.get(at + 1).copied());
        write!(text, "\n\n== {}. {heading}\n{drawn}", at + 1).unwrap();
    }
    let [before, after] = &evening.systems[..] else { panic!("the server is killed once") };
    for (system, when) in [(before, "until the server was killed"), (after, "of the server that was started then")] {
        write!(text, "\n\n== Metrics {when}\n{}", drawing::metrics(&system.metrics().exposition().unwrap())).unwrap();
    }
    write!(text, "\n\n== All instruments\n{}", drawing::instruments()).unwrap();
    text
}

fn compare(text: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/contracts/telemetry.txt");
    if std::env::var_os("TERTULIA_RECORD_CONTRACT").is_some_and(|value| value == "1") {
        std::fs::write(&path, text).expect("the contract can be written");
    }
    let contract = std::fs::read_to_string(&path).expect("the contract can be read");
    assert!(
        contract == text,
        "the telemetry differs from tests/contracts/telemetry.txt:\n\n{}\n\
         If the change is intended, TERTULIA_RECORD_CONTRACT=1 cargo test --lib journeys::contract writes the file again. Read the \
         difference, and tell operators who have dashboards and alerts of their own.",
        difference(&contract, text)
    );
}

/// The first lines that differ, after the last equal ones: `-` for the contract, `+` for the present text.
fn difference(contract: &str, text: &str) -> String {
    const SHOWN: usize = 24;
    let (contract, text): (Vec<_>, Vec<_>) = (contract.lines().collect(), text.lines().collect());
    let same = contract.iter().zip(&text).take_while(|(one, other)| one == other).count();
    let (left, right) = (&contract[same..], &text[same..]);
    let same_at_end = left.iter().rev().zip(right.iter().rev()).take_while(|(one, other)| one == other).count();
    let (left, right) = (&left[..left.len() - same_at_end], &right[..right.len() - same_at_end]);
    let marked = |mark: &str, line: &str| format!("{mark} {line}");
    let lines: Vec<String> = if left.len() == right.len() {
        // No line was added or removed: show each line beside its new form.
        let changed = left.iter().zip(right).filter(|(one, other)| one != other);
        changed.flat_map(|(one, other)| [marked("-", one), marked("+", other)]).collect()
    } else {
        let (removed, added) = (left.iter().map(|line| marked("-", line)), right.iter().map(|line| marked("+", line)));
        removed.take(SHOWN / 2).chain(added).collect()
    };
    let before = contract[same.saturating_sub(4)..same].iter().map(|line| marked(" ", line));
    let shown: Vec<_> = before.chain(lines.iter().take(SHOWN).cloned()).collect();
    let more = if lines.len() > SHOWN { "\n  … and more" } else { "" };
    format!("line {}\n{}{more}\n", same + 1, shown.join("\n"))
}

#[test]
fn a_difference_is_shown_with_its_line() {
    let contract = "one\ntwo\nthree\nfour\nfive\nsix\n";

    let changed = difference(contract, "one\nzwei\nthree\nvier\nfive\nsix\n");
    let more = difference(contract, "one\ntwo\nthree\nfour\nand\nfive\nsix\n");

    assert_eq!(changed, "line 2\n  one\n- two\n+ zwei\n- four\n+ vier\n");
    assert_eq!(more, "line 5\n  one\n  two\n  three\n  four\n+ and\n");
}
