//! Runs the whole system from a seed: the real actors in paused time, with faults everywhere around them (docs/design/layout.md L-5).
//!
//! A seed determines guilds, rooms, threads and direct messages, settings, what people do, and which faults occur. After the run, a reference
//! checks the record against the rules. A failing seed prints the command that runs it again.
//!
//! # Faults
//!
//! The process and its actors:
//!
//! * Actors are killed at any step, including the root of all.
//! * The process crashes at any write, and any prefix of the last group of commits is kept.
//! * Channels, guilds, the writer and the process are killed between every event about the floor and its effects: an attempt that is stopped or
//!   begins again, a cancelled reply, an expired floor, a held vote and its selection, a late text that takes the floor.
//! * The same happens between an event or the end of a silence and their effects.
//! * The process crashes during a redaction, or while a person is forgotten, with or without the answers to them.
//! * The wall clock is set.
//! * Settings and companions change during a life of the process, and between two lives.
//!
//! The store and the models:
//!
//! * Commits fail, are torn, are slow, or stay unanswered. The disk is full.
//! * Models fail, hang, panic, answer late, or answer nonsense. Statements take up to 90 s.
//!
//! The platform and its connections:
//!
//! * The platform loses, delays and reorders requests, refuses them, asks to retry later, and cannot be read.
//! * Connections are refused, get lost, panic, and deliver a range of messages again.
//! * The supervisor of the connections is killed until it is paused.
//! * Messages arrive twice, or long after they were sent.
//!
//! People and guilds:
//!
//! * Rooms are deleted, guilds are lost, and people opt out.
//! * While a companion writes, people say more, address it or another one, ask it to stop, and change or delete what it answers.
//! * Bursts of events arrive, for named companions and for any, over their budget. While they arrive, people speak, and events are edited, deleted
//!   and posted again.
//! * There are floods, huge messages, and messages that kill their handler (`domain::conversation::poison`).
//! * A channel is killed until its guild is quarantined.
//!
//! Voice calls, in a guild of their own, with some seeds:
//!
//! * People talk over each other and into the answers, say "mhm" and stop words, press Stop, and type. They mute themselves, leave in mid-word, lose
//!   their sockets, and opt out. Somebody does not stop talking, or is a fan.
//! * Final results come late, twice, empty, or never; they are noise or an echo. One that was being reported when the process crashed is reported again.
//! * Replies have no audio, stall in a sentence, or their playback is lost.
//! * The channel, the writer, a reply and the process are killed after a hand-over, an extension, an interruption, and the start and the end of a
//!   sentence, before their effects.
//!
//! # Not simulated
//!
//! The sessions, heartbeats and limits of Discord's own gateway are missing, and so is a platform that refuses for good or changes the number of its
//! connections. `tests/it/discord` and `journeys/connecting.rs` test those. Edits and deletions on the platform enter finished
//! `ports::inbound_events` without a connection. Messages there arrive over the connections (`gateway.rs`).
//!
//! # Checks (`checks/`)
//!
//! Messages and decisions:
//!
//! * Every accepted message is stored once, in order, and is settled once.
//! * The right companions are asked, selected and speak, about the right messages and in the right order.
//! * Questions wait for the lull timeout and for back-offs. Addresses wait for nothing.
//! * One companion has the floor, not for too long, and nothing is posted without it. Open rounds have different numbers. A companion that writes,
//!   was selected or has an undecided YES is not asked. Others that a person addresses meanwhile are asked at once.
//! * Votes that meet a taken floor are held, and selected by the usual order when it is free. Late texts take the free floor, and nobody takes the
//!   place of a late companion.
//! * The right companion acknowledges an event as soon as the floor is free, and not too often in a minute. Then the next statement acknowledges all
//!   events. An event that must be acknowledged settles for no other reason than those in the rules.
//! * Silences end in time, awake or asleep, once between two human messages. Once a companion has started a conversation, no other one does before
//!   the next human message.
//! * Streaks, deadlines, buffers and the budgets of questions, statements, tokens and addresses are respected.
//! * A running channel handles a journaled event within 45 s.
//! * A message that kills its handler becomes a dead letter, and no other message does.
//!
//! Replies:
//!
//! * A selected companion speaks, in its time.
//! * A reply is posted at most once. It is made, or a fault explains why not. Once faults are over, it is made.
//! * A statement begins again when it must, in time, and not too often. It answers what it took in. A cancelled reply is never posted, nobody takes
//!   its place, and a stop phrase settles what it cancelled.
//!
//! Voice calls (`checks/calls.rs`; the checks of rooms that people only write in do not apply to their rooms):
//!
//! * Every final result that was accepted is on record once, and nothing else is. Each with words is in one message, soon after the last thing that
//!   happened in the call, unless it was redacted or cleared. A hand-over takes everything, in the order in which it was said, with one message for
//!   each speaker's run, and its newest message ends the lull where it must.
//! * Every message is settled once by every companion.
//! * One companion speaks at a time. Nothing is said twice, and no sentence is heard before its start is on record. What counts as heard was played
//!   (`journeys/mouth.rs` keeps the ledger).
//! * A reply is spoken or written like what it answers. Each ends once and in time, and nobody takes the place of one that was stopped. One that was
//!   not heard was stopped by somebody, or had no audio.
//!
//! Privacy:
//!
//! * Nothing of a guild is in another guild's prompts, records, answers, live views or posts. No message text is in the metrics.
//! * Nothing is left of deleted messages and of forgotten people, nor of the answers to them if those were to be deleted, too.
//! * Nothing by a person who opted out is accepted. The index of persons lists everybody else.
//!
//! Connections and rest:
//!
//! * The messages of a connection are on record in order. One run of the connection at a time delivers them, and an actor owns it.
//! * At rest nothing is pending, open, owed or asked. No actor is left over, and every connection is up.
//! * The metrics agree with the record.
//!
//! # Planted bugs
//!
//! These bugs are planted to see that the simulation fails. Each is listed with the first seed, counted from 1, that caught it in the last trial.
//! `.ci/planted` repeats the trial and reports when another seed is the first. Each bug is a patch in `tests/planted/`.
//!
//! | planted | what it does | seed |
//! | --- | --- | --- |
//! | `counted-twice` | an event is counted twice in a large group | 1 |
//! | `final-lost-after-hand-over` | a final result that comes after a hand-over is lost | 1 |
//! | `forgotten-timer` | the timer of the selected companion is forgotten | 1 |
//! | `full-buffer-settles-more` | a full buffer settles more messages than it must | 1 |
//! | `id-is-not-checked` | the id of a message is not checked: a duplicate is accepted | 1 |
//! | `lost-straggler` | a companion that declines also settles messages from after its question: they are lost | 1 |
//! | `lull-fires-twice` | a lull timer fires twice | 1 |
//! | `message-without-id` | messages from a connection have no id: a redelivered one is another message | 1 |
//! | `no-delay` | the selected companion speaks without a delay | 1 |
//! | `number-left-out` | a number of a journal is skipped | 1 |
//! | `owed-leaves-too-early` | a reply leaves the outbox before it is sent: it is lost | 1 |
//! | `prompt-of-another-guild` | a prompt carries words of another guild | 1 |
//! | `restored-round-not-counted` | a round that ends in a restored channel is not counted | 1 |
//! | `settled-twice` | a NO after a lull leaves the messages that it settles in the buffer: they are settled twice | 1 |
//! | `several-counted-once` | a decision for several companions is counted once | 1 |
//! | `summary-of-another-guild` | a summary of one guild is used in another | 1 |
//! | `connection-without-actor` | a connection continues when its actor is gone | 2 |
//! | `ended-is-not-run-again` | a connection that ended for a while is never run again | 2 |
//! | `doubled-reply` | a part with unknown outcome is sent again without a lookup: a reply is posted twice | 2 |
//! | `found-is-not-counted` | a part that a lookup found is not counted as posted | 2 |
//! | `killed-does-not-come-back` | a killed connection is not restarted | 2 |
//! | `manager-stays` | a turn-taking manager stays after its round | 2 |
//! | `owed-is-given-up` | an owed reply counts as failed when its channel restarts | 2 |
//! | `panicked-is-not-opened-again` | a connection that panicked is not opened again | 2 |
//! | `restored-unanswered-not-counted` | a question without an answer is not counted in a restored channel | 2 |
//! | `stale-too-early` | messages become stale after half the time | 2 |
//! | `address-passes-no-row` | a direct address matches no row: a lull asks about it later | 4 |
//! | `back-off-ends-twice` | a back-off ends twice | 4 |
//! | `half-the-quiet` | the lull timeout is half as long | 1 |
//! | `six-of-a-batch` | at most six events of a batch are counted | 3 |
//! | `closed-is-selected` | a companion that has ended the conversation is selected | 5 |
//! | `newest-alone-decides` | whether others are addressed is decided by the newest message alone | 8 |
//! | `unknown-taken-for-stored` | a commit of unknown outcome counts as successful | 4 |
//! | `unreadable-settles-nothing` | a malformed answer settles nothing: its messages are settled twice, or asked about for ever | 33 |
//! | `connections-stay-away` | the supervisor of the connections is not restarted | 6 |
//! | `missing-before-restart` | votes that did not arrive before a restart are not counted as missing after it | 6 |
//! | `forgotten-deadline` | the deadline of a round is forgotten | 58 |
//! | `lost-while-reading` | inbound events that arrive while a channel reads its record are lost | 18 |
//! | `refused-too-early` | an address is refused one message too early | 8 |
//! | `question-is-not-asked-again` | a question in flight is not asked again after a restart | 9 |
//! | `pause-is-never-longer` | the back-off after a question without an answer never grows | 4 |
//! | `selected-is-forgotten` | the selected companion is forgotten when a message arrives | 8 |
//! | `wish-before-restart` | a wish to speak from before a restart is not counted | 20 |
//! | `paused-for-good` | paused connections are never opened again | 25 |
//! | `unconfirmed-counted-as-posted` | a part with unknown outcome is counted as posted, too | 46 |
//! | `tie-to-the-greater-id` | a tie goes to the greater id | 16 |
//!
//! * `TERTULIA_SIM_SEED=7 cargo test --lib simulation::one_seed -- --nocapture` runs one seed and prints what happened.
//! * `TERTULIA_SIM_RUNS=10000 cargo test --release --lib simulation -- --nocapture` runs more seeds, and prints what they reached.

mod acts;
mod book;
mod calls;
mod checks;
mod course;
mod dice;
mod doing;
mod ends;
mod events;
mod faults;
mod gateway;
mod interruptions;
mod life;
mod manners;
mod models;
mod nemesis;
mod outsiders;
mod people;
mod plan;
mod platform;
mod reached;
mod rules;
mod stage;
mod store;
mod tally;
mod time;

use course::run;
use parking_lot::Mutex;
use tally::Tally;

/// The number of seeds of one `cargo test`, unless `TERTULIA_SIM_RUNS` sets another.
const FEW: u64 = 12;
/// The number of seeds before a change is merged (`.ci/run`): with the rare ones, enough to catch each planted bug. The functions below share the seeds
/// and run in parallel.
const RUNS: u64 = 50;
const SHARES: u64 = 4;
/// Later seeds that reach or catch what none of these does.
const RARE: [u64; 38] = [
    56, 57, 58, 61, 62, 63, 65, 79, 81, 84, 91, 96, 125, 156, 157, 162, 180, 194, 200, 206, 208, 216, 345, 466, 495, 525, 593,
    640, 784, 792, 841, 30_099, 30_823, 32_121, 33_438, 33_995, 38_762, 39_518,
];

#[test]
fn nothing_is_lost_or_leaked_in_the_first_share() {
    share(0);
}

#[test]
fn nothing_is_lost_or_leaked_in_the_second_share() {
    share(1);
}

#[test]
fn nothing_is_lost_or_leaked_in_the_third_share() {
    share(2);
}

#[test]
fn nothing_is_lost_or_leaked_in_the_fourth_share() {
    share(3);
}

#[test]
fn a_seed_gives_the_same_bytes_every_time() {
    for seed in 1..=rounds(1, 2) {
        let (first, second) = (run(seed), run(seed));

        let log = |outcome: &course::Outcome| outcome.notes.log.clone();
        let differs = log(&first).into_iter().zip(log(&second)).find(|(one, other)| one != other);
        assert_eq!(differs, None, "seed {seed}");
        assert!(first.stored == second.stored, "seed {seed} does not store the same");
        assert_eq!(first.measured, second.measured, "seed {seed}");
    }
}

/// Runs the seed of `TERTULIA_SIM_SEED`, if it is set, and prints what happened.
#[test]
fn one_seed() {
    let Some(seed) = variable("TERTULIA_SIM_SEED") else { return };
    let outcome = run(seed);
    println!("{}", tally::story(&outcome, usize::MAX));
    Tally::of([seed]).assert_no_violation();
}

fn share(which: u64) {
    let runs = variable("TERTULIA_SIM_RUNS").unwrap_or(FEW);
    let from = variable("TERTULIA_SIM_FROM").unwrap_or(1);
    let rare = RARE.into_iter().filter(|_| runs == RUNS);
    let tally = Tally::of((from..from + runs).chain(rare).filter(|seed| seed % SHARES == which));
    let failed = tally.failure();
    let all = sum_up(tally);
    if let Some(all) = &all {
        println!("{all}");
    }
    if let Some(failed) = failed {
        panic!("{failed}");
    }
    if let Some(all) = all.filter(|_| runs >= RUNS) {
        all.assert_everything_reached();
    }
}

/// The sum of all shares, once the last of them has finished.
fn sum_up(tally: Tally) -> Option<Tally> {
    static FINISHED: Mutex<(u64, Option<Tally>)> = Mutex::new((0, None));
    let mut finished = stage::lock(&FINISHED);
    finished.0 += 1;
    finished.1.get_or_insert_default().add(tally);
    if finished.0 == SHARES { finished.1.take() } else { None }
}

/// How often a test with random input is repeated: `all` where more runs are asked for, as before a change is merged.
pub(crate) fn rounds(few: u64, all: u64) -> u64 {
    if variable("TERTULIA_SIM_RUNS").is_some() { all } else { few }
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}
