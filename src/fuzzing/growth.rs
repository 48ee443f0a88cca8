//! Looks whether work grows faster than what is read: a scan within a scan.
//!
//! Work is the processor's time that the thread itself used: the least of several runs, which what else the machine does hardly changes. An
//! input of a few thousand bytes is enough for a suspicion; what is suspected is measured again at that length and at a quarter of it, and is
//! found only when the one takes more than eight times what the other takes: where work grows with the length it is four times, and where it
//! grows with its square sixteen times. A ratio, so it is the same on any machine.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use super::Target;
use super::words::WORDS;

/// Less work than this is not suspected: at the longest input of a target that costs 1.
const SUSPECT: Duration = Duration::from_millis(if cfg!(debug_assertions) { 60 } else { 6 });
/// The shorter input of a suspect is so many times shorter.
const SHORTER: usize = 4;
/// Work may grow so many times faster than the input.
const LEEWAY: u32 = 2;
/// The least of so many runs counts.
const RUNS: usize = 5;

/// The first thing of a target that grows too fast, with its input.
pub(super) fn faster(target: &Target) -> Option<String> {
    let is_long = super::variable("TERTULIA_FUZZ_RUNS").is_some();
    // What costs more is looked at by whoever has the time.
    if target.costs > 1 && !is_long {
        return None;
    }
    let words = WORDS.iter().step_by(if is_long { 1 } else { 4 }).map(|word| (*word).to_owned());
    let valid = (target.valid)();
    let surroundings = [&[][..], &valid[0]];
    let mut pieces = pairs().chain(words).flat_map(|piece| surroundings.map(|around| (piece.clone(), around)));
    pieces.find_map(|(piece, around)| grows(target, &piece, around))
}

/// Whether a piece over and over grows too fast within something.
fn grows(target: &Target, piece: &str, around: &[u8]) -> Option<String> {
    let work = |length: usize| worked(target, &grown(around, piece.as_bytes(), length));
    match work(target.longest) {
        Ok(work) if work < SUSPECT => return None,
        Ok(_) => {}
        Err(broken) => return Some(broken),
    }
    let least = |length: usize| (0..RUNS).filter_map(|_| work(length).ok()).min();
    let (short, long) = (least(target.longest / SHORTER)?, least(target.longest)?);
    (long >= SUSPECT && long > short * SHORTER as u32 * LEEWAY).then(|| {
        format!(
            "{}: {piece:?} over and over takes {long:?} for {} bytes, and {short:?} for a quarter of them",
            target.name, target.longest
        )
    })
}

/// Words that only together make work.
fn pairs() -> impl Iterator<Item = String> {
    [
        ["[a", "]("],
        ["<@", "x"],
        ["{\"", "a"],
        ["{\"a\":", "["],
        ["`", "` `` "],
        ["```\n", "~~~\n"],
        ["<think>", "x"],
        ["</think>", "<think>"],
        ["data: x\n", "data: y\n"],
        ["@", "a"],
        ["a b", " "],
        ["\n", "> "],
        ["(", "[(])"],
        ["a\u{301}", "\u{200d}"],
        ["\"", "\\"],
        ["a=", "[["],
        ["__", "A"],
        ["x ", "YES: "],
    ]
    .into_iter()
    .map(|pair| pair.concat())
}

/// Something within what is valid, so often that all of it has this length.
fn grown(around: &[u8], piece: &[u8], length: usize) -> Vec<u8> {
    let middle = around.len() / 2;
    let times = length.saturating_sub(around.len()) / piece.len().max(1);
    [&around[..middle], &piece.repeat(times), &around[middle..]].concat()
}

/// What a run costs.
///
/// # Errors
/// The input breaks a rule.
fn worked(target: &Target, input: &[u8]) -> Result<Duration, String> {
    let before = used();
    super::hunt::one(target, input, "an input that grew")?;
    Ok(used().saturating_sub(before))
}

/// The processor's time that this thread used.
fn used() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or_default(), u32::try_from(time.tv_nsec).unwrap_or_default())
}
