//! When a shard may identify, when it may come back, and whether it resumes.

#[cfg(test)]
mod tests;

use std::num::NonZeroU32;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::domain::moment::Moment;

/// Identifies that Discord allows in a day, over all shards and restarts. At one more it ends every session and resets the token
/// (Discord's documentation, "Gateway", "Identifying").
pub const MOST_A_DAY: u32 = 1_000;
/// Identifies that are left to whoever finds out why so many were needed.
pub const RESERVE: u32 = 20;
const DAY: Duration = Duration::from_secs(24 * 3_600);
/// Between two identifies with the same remainder of the shard's number by `max_concurrency`: Discord's 5 s, and what clocks differ by.
pub const APART: Duration = Duration::from_millis(5_250);
/// The longest pause between two identifies in vain.
const LONGEST_IDENTIFY_PAUSE: Duration = Duration::from_secs(900);
/// The longest pause between two attempts to connect.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A connection with a session that lasted for so long came about, though nothing happened on it.
const QUIET_BUT_CONNECTED: Duration = Duration::from_secs(5);

/// The identifies of the last day: what has to be stored, over restarts too.
///
/// It is stored before an identify leaves. One that was stored and did not leave is counted all the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Spent(Vec<Start>);

/// One identify.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Start {
    at: Moment,
    shard: u32,
}

/// What Discord tells with `GET /gateway/bot` ("Session Start Limit Object").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announced {
    /// Identifies that are left.
    pub remaining: u32,
    /// When there are all of them again.
    pub resets_at: Moment,
    /// How many shards may identify within five seconds.
    pub max_concurrency: NonZeroU32,
    /// How far apart two identifies are that share one of these places: [`APART`] on Discord itself.
    pub apart: Duration,
    /// When this was told.
    pub told_at: Moment,
}

/// Whether a shard may identify.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// Now; it is counted, so store [`Spent`] before it leaves.
    Now,
    /// Not before this moment: ask again then.
    At(Moment),
    /// So many were made that a person has to look; at this moment there are more again.
    Exhausted(Moment),
}

impl Spent {
    /// Asks whether a shard may identify, and counts it if so.
    ///
    /// Discord's own count and ours must both allow it: Discord's knows of other programs with this token, ours of what Discord has not
    /// told since.
    pub fn ask(&mut self, shard: u32, announced: &Announced, now: Moment) -> Leave {
        self.0.retain(|start| start.at + DAY > now);
        if let Some(more_at) = self.exhausted(announced, now) {
            return Leave::Exhausted(more_at);
        }
        let key = shard % announced.max_concurrency;
        let same = self.0.iter().filter(|start| start.shard % announced.max_concurrency == key);
        // A clock that was set back leaves starts in the future: they count as now.
        let last = same.map(|start| start.at.min(now)).max();
        if let Some(free) = last.map(|last| last + announced.apart).filter(|free| now < *free) {
            return Leave::At(free);
        }
        self.0.push(Start { at: now, shard });
        Leave::Now
    }

    /// How many identifies are left to us, the reserve taken off.
    pub fn left(&self, announced: &Announced, now: Moment) -> u32 {
        let (discords, ours) = self.counts(announced, now);
        discords.min(ours).saturating_sub(RESERVE)
    }

    /// When there are more again, if there are none.
    fn exhausted(&self, announced: &Announced, now: Moment) -> Option<Moment> {
        let (discords, ours) = self.counts(announced, now);
        let discords_reset = (discords <= RESERVE).then_some(announced.resets_at);
        let needed = (RESERVE + 1).saturating_sub(ours) as usize;
        let mut starts: Vec<Moment> = self.0.iter().map(|start| start.at).collect();
        starts.sort();
        let ours_end = needed.checked_sub(1).and_then(|index| starts.get(index)).map(|start| *start + DAY);
        discords_reset.max(ours_end)
    }

    /// What is left by Discord's count, and by ours.
    fn counts(&self, announced: &Announced, now: Moment) -> (u32, u32) {
        let count = |since: Moment| {
            let starts = self.0.iter().filter(|start| start.at >= since && start.at + DAY > now);
            u32::try_from(starts.count()).unwrap_or(u32::MAX)
        };
        // After its reset Discord's count begins anew; what was spent since it was told comes off.
        let (total, since) =
            if now < announced.resets_at { (announced.remaining, announced.told_at) } else { (MOST_A_DAY, announced.resets_at) };
        (total.saturating_sub(count(since)), MOST_A_DAY.saturating_sub(count(Moment::ZERO)))
    }
}

/// How a shard comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Return {
    /// Connect to the session's own address and resume; identify if that is refused.
    Resume,
    /// The session is lost: connect to the common address and identify. What was said meanwhile is backfilled.
    Identify,
    /// Coming back changes nothing until a person did something.
    Stop(Stopped),
}

/// Why a shard does not come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stopped {
    /// 4004
    BadToken,
    /// 4010
    BadShard,
    /// 4011
    TooFewShards,
    /// 4012
    OldVersion,
    /// 4013
    BadIntents,
    /// 4014
    ForbiddenIntents,
}

impl Stopped {
    /// What is wrong and the way out, for the operator.
    pub const fn told(self) -> &'static str {
        match self {
            Self::BadToken => {
                "Discord does not know the bot's token: copy it again from the Bot page of the developer portal (Reset Token), and give \
                 it as TERTULIA__DISCORD__TOKEN"
            }
            Self::BadShard => {
                "Discord refuses the shard's number: leave discord.shards out, so that Discord's own recommendation is used"
            }
            Self::TooFewShards => {
                "the bot is in more guilds than so many shards may serve: leave discord.shards out, or raise it, and restart"
            }
            Self::OldVersion => "Discord does not serve this version of its gateway any more: install a newer tertulia",
            Self::BadIntents => "Discord does not know the intents that are asked for: install a newer tertulia",
            Self::ForbiddenIntents => {
                "the Message Content intent is not enabled: turn it on at the Bot page of the developer portal (Privileged Gateway \
                 Intents), or set discord.message_content = \"off\""
            }
        }
    }
}

/// What follows when a connection ended with this close code, or without one (Discord's documentation, "Opcodes and Status Codes",
/// "Gateway Close Event Codes").
///
/// 4006 is not in the list any more and meant a lost session. A code that is not in the list is taken for one that can be resumed:
/// trying costs nothing, and a session that is lost is told as such. 1000 and 1001 end it only if it is we who close with them
/// ("Gateway", "Disconnecting"); Discord and what stands before it close with 1001 when they want us on another connection.
pub const fn after_close(code: Option<u16>) -> Return {
    match code {
        Some(4001 | 4003 | 4005 | 4006 | 4007 | 4009) => Return::Identify,
        Some(4004) => Return::Stop(Stopped::BadToken),
        Some(4010) => Return::Stop(Stopped::BadShard),
        Some(4011) => Return::Stop(Stopped::TooFewShards),
        Some(4012) => Return::Stop(Stopped::OldVersion),
        Some(4013) => Return::Stop(Stopped::BadIntents),
        Some(4014) => Return::Stop(Stopped::ForbiddenIntents),
        _ => Return::Resume,
    }
}

/// What follows on an Invalid Session (opcode 9): the session can be resumed if it says so.
pub const fn after_invalid_session(resumable: bool) -> Return {
    if resumable { Return::Resume } else { Return::Identify }
}

/// The code with which we close a connection that we want to resume: neither 1000 nor 1001, which would end the session.
pub const CLOSE_TO_RESUME: u16 = 4_900;

/// How long to wait before the next identify when so many in a row brought no session that lasted: from seconds to a quarter of an hour,
/// half of it by chance, so that whatever ends sessions at once does not use up the day's identifies. `jitter` is from 0 to 1.
pub fn identify_pause(in_vain: u32, jitter: f64) -> Duration {
    let jitter = if jitter.is_finite() { jitter.clamp(0.0, 1.0) } else { 0.5 };
    let Some(doublings) = in_vain.checked_sub(1) else { return Duration::ZERO };
    let whole = Duration::from_secs(5).saturating_mul(1 << doublings.min(8)).min(LONGEST_IDENTIFY_PAUSE);
    whole.mul_f64(0.5 + jitter / 2.0)
}

/// Whether a connection that ended was a failure to connect: it had no session, or lost it at once without an event. `lived` is how long
/// it had a session, `has_heard` whether an event came besides READY and RESUMED.
///
/// A link that is cut again and again is no reason to stay away longer, since each connection brings what was missed.
pub fn failed_to_connect(lived: Option<Duration>, has_heard: bool) -> bool {
    lived.is_none_or(|lived| !has_heard && lived < QUIET_BUT_CONNECTED)
}

/// How long to wait before the next attempt to connect: after a connection that was lost at once or within a second, then doubling up to a
/// minute, half of it by chance. `failures` counts failures to connect in a row, `jitter` is from 0 to 1.
pub fn pause(failures: u32, jitter: f64) -> Duration {
    let jitter = if jitter.is_finite() { jitter.clamp(0.0, 1.0) } else { 0.5 };
    let Some(doublings) = failures.checked_sub(1) else { return Duration::from_secs(1).mul_f64(jitter) };
    let whole = Duration::from_secs(2).saturating_mul(1 << doublings.min(5)).min(LONGEST_PAUSE);
    whole.mul_f64(0.5 + jitter / 2.0)
}
