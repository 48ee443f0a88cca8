//! Checks whether work grows faster than the input, as in a scan within a scan.
//!
//! Work is the processor time of the thread: the minimum of several runs, which other load on the machine hardly affects. An input of a few thousand
//! bytes is enough for a suspicion. A suspect is measured again at that length and at a quarter of it, and is reported if the long input takes more
//! than eight times as long as the short one. Linear work takes four times as long, and quadratic work sixteen times. This is a ratio, so it is the
//! same on any machine.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use super::Target;
use super::words::WORDS;

/// Less work than this for the longest input of a target is not suspect, in a release build.
const SUSPECT: Duration = Duration::from_millis(6);
/// The ratio of the lengths of the long and the short input of a suspect.
const SHORTER: usize = 4;
/// The factor by which work may grow faster than the input.
const LEEWAY: u32 = 2;
/// The minimum of this many runs counts.
const RUNS: usize = 5;

/// Describes the first input of a target for which work grows too fast, or that breaks a rule. `None` if there is none.
pub(super) fn first_superlinear(target: &Target) -> Option<String> {
    let is_long = super::variable("TERTULIA_FUZZ_RUNS").is_some();
    // Expensive targets are only checked in the long run.
    if target.costs > 1 && !is_long {
        return None;
    }
    let words = WORDS.iter().step_by(if is_long { 1 } else { 4 }).map(|word| (*word).to_owned());
    let valid = (target.valid)();
    let surroundings = [&[][..], &valid[0]];
    let mut pieces = pairs().chain(words).flat_map(|piece| surroundings.map(|around| (piece.clone(), around)));
    pieces.find_map(|(piece, around)| grows_too_fast(target, &piece, around))
}

/// Whether the work for a repeated piece inside a valid input grows too fast.
fn grows_too_fast(target: &Target, piece: &str, around: &[u8]) -> Option<String> {
    let work = |length: usize| measure(target, &repeated_inside(around, piece.as_bytes(), length));
    match work(target.longest) {
        Ok(work) if work < SUSPECT => return None,
        Ok(_) => {}
        Err(broken) => return Some(broken),
    }
    let least = |length: usize| (0..RUNS).filter_map(|_| work(length).ok()).min();
    let (short, long) = (least(target.longest / SHORTER)?, least(target.longest)?);
    (long >= SUSPECT && long > short * SHORTER as u32 * LEEWAY).then(|| {
        format!(
            "{}: repeating {piece:?} takes {long:?} for {} bytes, and {short:?} for a quarter of them",
            target.name, target.longest
        )
    })
}

/// Words that cause work only in combination.
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
        ["> ", "- "],
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

/// A valid input with a piece repeated in its middle, up to this length.
fn repeated_inside(around: &[u8], piece: &[u8], length: usize) -> Vec<u8> {
    let middle = around.len() / 2;
    let times = length.saturating_sub(around.len()) / piece.len().max(1);
    [&around[..middle], &piece.repeat(times), &around[middle..]].concat()
}

/// Measures one run.
///
/// # Errors
/// The input breaks a rule.
fn measure(target: &Target, input: &[u8]) -> Result<Duration, String> {
    let before = processor_time();
    super::hunt::one(target, input, "an input that grew")?;
    Ok(processor_time().saturating_sub(before))
}

/// The processor time that this thread has used.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or_default(), u32::try_from(time.tv_nsec).unwrap_or_default())
}
