//! The whole system from a seed: the real actors in paused time, and everything around them faulty (docs/design/layout.md L-5).
//!
//! A seed gives guilds, rooms, threads and direct messages, settings, what people do, and what goes wrong. Afterwards a reference holds the
//! record to the rules. A seed that fails tells the command that runs it again.
//!
//! What goes wrong: actors killed at any step, the root of all among them; the process crashed at any write, with any prefix of the last group kept; commits that fail,
//! are torn, slow or unanswered; a full disk; models that fail, hang, panic, answer late or nonsense; a platform that loses, delays and
//! reorders requests, refuses, says later, and cannot be read; connections to it that are refused, get lost, panic, and tell a stretch again,
//! and whoever keeps them alive killed until it is left alone; what is heard twice or long after it was said; a wall clock that is set;
//! settings and companions changed within and between lives; rooms deleted, and guilds lost; somebody who is not to be heard; a process that
//! crashes while words are taken back, or somebody is forgotten, with what was answered to them or without; floods, huge messages,
//! messages that kill whoever handles them (`domain::conversation::poison`), and a channel killed until its guild is kept away.
//!
//! What is not there: Discord's own gateway, with its sessions, heartbeats and limits, and a platform that refuses for good or changes the
//! number of its connections. Those are tried in `tests/it/discord` and `journeys/connecting.rs`. What is changed or taken back on the
//! platform comes in as `ports::inbound_events` has it, beside the connections; what is said there comes over them (`gateway.rs`).
//!
//! What is checked (`checks/`): what was accepted is kept, once, in order; everything settles once; who is asked, selected and speaks, about
//! what, and in which order; whoever is selected speaks, in its time; a reply is posted at most once, and made, or a fault explains why not, and
//! once faults are over it is made; questions wait for quiet and for pauses, addresses for nothing; streaks, deadlines, buffers; budgets of questions,
//! statements, tokens and addresses; who is awake handles what is on record within 45 s; nothing of a guild is in another's prompts, record,
//! answers, live view or posts, and no words in what is measured; what kills is set aside, and nothing else; nothing of what was taken back or
//! forgotten is left anywhere, nor of what was answered to it where that was to go, too; nobody is heard who is not
//! to be, and the index of persons tells of everybody else; what a connection tells is on record in its order, by one life at a time,
//! which an actor keeps alive; at rest nothing is pending, open, owed or asked, nobody is left, every connection is there, and what
//! is measured agrees with the record.
//!
//! Bugs that are planted to see it fail, each with the first of the seeds from 1 on that caught it when it was last tried. `.ci/planted` repeats it
//! with the patches in `tests/planted/`, one for each, and tells where another seed is the first by now:
//!
//! | planted | seed |
//! | --- | --- |
//! | a prompt carries words of another guild | 1 |
//! | a summary of one guild is read in another | 1 |
//! | whoever declines settles what came after it was asked: stragglers are lost | 1 |
//! | a NO after a lull leaves what it settles where it is: it is settled twice | 1 |
//! | the timer of whoever was selected is forgotten | 1 |
//! | a message's id need not be new: a duplicate is taken in | 1 |
//! | an event is counted twice where a group is large | 1 |
//! | whoever was selected speaks without a delay | 1 |
//! | a buffer that is full settles more than it has to | 1 |
//! | a connection that ended for a while is never lived again | 1 |
//! | what a connection tells has no id: told again it is another message | 1 |
//! | a number of a journal is left out | 1 |
//! | what is owed leaves the outbox before it is sent: a reply is lost | 1 |
//! | a lull timer fires twice | 1 |
//! | a part that may have left is sent again without a look: a reply is doubled | 2 |
//! | messages are stale after half their time | 2 |
//! | a connection that was killed does not come back | 2 |
//! | a connection's life goes on when its actor is gone | 2 |
//! | a connection whose life panicked is not made again | 2 |
//! | a round that ends in a restored channel is not counted | 2 |
//! | a part that was looked for and found is not counted as posted | 2 |
//! | a reply that is owed is given up as failed when its channel begins anew | 2 |
//! | a direct address passes no row: a lull asks about it later | 3 |
//! | quiet is waited for half as long | 3 |
//! | a wish to speak of before a restart is not counted | 3 |
//! | a question without an answer is not counted in a restored channel | 3 |
//! | a commit of unknown outcome is taken for one that succeeded | 3 |
//! | a back-off ends twice | 3 |
//! | what is addressed to others is judged by its newest message alone | 4 |
//! | an unreadable answer settles nothing: it is settled twice, or asked about for ever | 4 |
//! | who has ended the conversation is selected | 4 |
//! | of a batch no more than six events are counted | 5 |
//! | a turn-taking manager stays when its round is over | 5 |
//! | a decision of several companions is counted once | 5 |
//! | who supervises the connections does not come back | 7 |
//! | the deadline of a round is forgotten | 7 |
//! | what is heard while a channel reads its record is lost | 7 |
//! | an address is refused one too early | 8 |
//! | a question in flight is not asked again after a restart | 11 |
//! | the pause after a question without an answer is never longer | 11 |
//! | whoever was selected is forgotten when somebody says something | 11 |
//! | a part of which nobody knows whether it was posted is counted as posted, too | 18 |
//! | connections that were left alone are never made again | 25 |
//! | votes that did not come before a restart are not missing after it | 29 |
//! | a tie goes to the greater id | 63 |
//!
//! * `TERTULIA_SIM_SEED=7 cargo test --lib simulation::one_seed -- --nocapture` runs one seed and tells what happened.
//! * `TERTULIA_SIM_RUNS=10000 cargo test --release --lib simulation -- --nocapture` runs more, and tells what they reached.

mod acts;
mod book;
mod checks;
mod course;
mod dice;
mod doing;
mod ends;
mod faults;
mod gateway;
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

use std::sync::Mutex;

use course::run;
use tally::Tally;

/// Seeds that found something once: a buffer beyond its bound after a restart; what a writer that died had stored and handed to nobody; what
/// in the simulation itself was wrong; two rooms that spoke at once beyond the budget of their guild (2410); a dropped statement on its way
/// that nobody looked for after a restart (2721, 3063); one that left opened again (5423); a part that was looked for under another name than
/// it was sent with (6430); a statement that was set aside and made again (7724); a round whose deadline rang
/// without end, because one of it was about to leave (4564); the same words taken for those of a dropped reply (8838); a channel that was killed
/// (10895), or panicked (17505), so often that it was back later than the check allowed for; somebody begun anew who was killed before anybody
/// saw it (8849); a turn about nothing but what was set aside (4811); a guild kept away until the process began anew (5573); two messages that kill only
/// together, of which the later is set aside (582). What other builds and other checks stumbled over:
/// 1798, 2870, 5455, 5705, 9380, 9736, 9842, 11901, 12009, 16024, 16487.
const FOUND: &[u64] = &[
    2, 33, 134, 172, 241, 247, 582, 1_107, 1_661, 1_779, 1_798, 2_410, 2_721, 2_751, 2_870, 3_038, 3_063, 3_615, 3_888, 4_465,
    4_564, 4_811, 5_423, 5_455, 5_573, 5_614, 5_705, 5_813, 6_430, 6_890, 7_724, 7_953, 8_672, 8_838, 8_849, 9_343, 9_380, 9_736,
    9_793, 9_842, 9_992, 10_895, 10_976, 11_901, 12_009, 12_071, 12_811, 16_024, 16_487, 17_505, 19_187, 19_200,
];

/// Seeds of one `cargo test`, unless `TERTULIA_SIM_RUNS` says otherwise; shared by the functions below, which run side by side.
const RUNS: u64 = 200;
const SHARES: u64 = 4;

#[test]
fn nothing_is_lost_and_nobody_let_in_first_share() {
    share(0);
}

#[test]
fn nothing_is_lost_and_nobody_let_in_second_share() {
    share(1);
}

#[test]
fn nothing_is_lost_and_nobody_let_in_third_share() {
    share(2);
}

#[test]
fn nothing_is_lost_and_nobody_let_in_fourth_share() {
    share(3);
}

#[test]
fn what_seeds_found_once_stays_mended() {
    Tally::of(FOUND.iter().copied()).assert_no_violation();
}

#[test]
fn a_seed_gives_the_same_to_the_byte() {
    for seed in 1..=6 {
        let (first, second) = (run(seed), run(seed));

        let told = |outcome: &course::Outcome| outcome.notes.told.clone();
        let differs = told(&first).into_iter().zip(told(&second)).find(|(one, other)| one != other);
        assert_eq!(differs, None, "seed {seed}");
        assert!(first.stored == second.stored, "seed {seed} does not store the same");
        assert_eq!(first.measured, second.measured, "seed {seed}");
    }
}

/// Runs the seed of `TERTULIA_SIM_SEED`, if it is set, and tells what happened.
#[test]
fn one_seed() {
    let Some(seed) = variable("TERTULIA_SIM_SEED") else { return };
    let outcome = run(seed);
    println!("{}", tally::story(&outcome, usize::MAX));
    Tally::of([seed]).assert_no_violation();
}

fn share(which: u64) {
    let runs = variable("TERTULIA_SIM_RUNS").unwrap_or(RUNS);
    let from = variable("TERTULIA_SIM_FROM").unwrap_or(1);
    let tally = Tally::of((from..from + runs).filter(|seed| seed % SHARES == which));
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

/// What all shares came to, once the last of them is through.
fn sum_up(tally: Tally) -> Option<Tally> {
    static THROUGH: Mutex<(u64, Option<Tally>)> = Mutex::new((0, None));
    let mut through = stage::lock(&THROUGH);
    through.0 += 1;
    through.1.get_or_insert_default().add(tally);
    if through.0 == SHARES { through.1.take() } else { None }
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}
