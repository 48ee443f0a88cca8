//! Decides when a shard may identify, when it may reconnect, and whether it resumes.

#[cfg(test)]
mod tests;

use std::num::NonZeroU32;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use twilight_model::gateway::CloseCode;

use crate::domain::moment::Moment;
use crate::ports::backend::Detail;

/// The limit of identifies per day, for all shards and across restarts. At one more, Discord ends every session and resets the token (Discord's
/// documentation, "Gateway", "Identifying").
pub const MOST_A_DAY: u32 = 1_000;
/// Identifies that are not used automatically. They are reserved for the operator who investigates why so many were needed.
pub const RESERVE: u32 = 20;
const DAY: Duration = Duration::from_secs(24 * 3_600);
/// The interval between two identifies that share a rate limit key, which is the shard's number modulo `max_concurrency`. It is Discord's 5 s with
/// a margin for clocks.
pub const APART: Duration = Duration::from_millis(5_250);
/// The longest pause after failed identifies. A shard that had a session pauses for at most [`LONGEST_WHILE_PLENTY`] as long as half of the day's
/// identifies are left, so its session starts soon after an outage of Discord.
const LONGEST_IDENTIFY_PAUSE: Duration = Duration::from_secs(900);
const LONGEST_WHILE_PLENTY: Duration = Duration::from_secs(60);
const PLENTY: u32 = MOST_A_DAY / 2;
/// The longest pause between two connection attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A connection whose session lasted this long counts as established, even without events.
const ESTABLISHED_AFTER: Duration = Duration::from_secs(5);

/// The identifies of the last day. They are stored, so that they count across restarts.
///
/// An identify is stored before it is sent. It counts even if it is not sent after that.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct IdentifyHistory(Vec<Start>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Start {
    at: Moment,
    shard: u32,
}

/// The limits from `GET /gateway/bot` ("Session Start Limit Object").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdentifyLimit {
    pub remaining: u32,
    /// When Discord resets the number of identifies.
    pub resets_at: Moment,
    /// The number of shards that may identify within five seconds.
    pub max_concurrency: NonZeroU32,
    /// The interval between two identifies that share a rate limit key. [`APART`] on Discord itself.
    pub apart: Duration,
    /// When the answer arrived.
    pub received_at: Moment,
}

/// Whether a shard may identify.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// Now. The identify is counted: store [`IdentifyHistory`] before sending it.
    Now,
    /// Not before this moment.
    At(Moment),
    /// None are left until this moment. So many were made that the operator must investigate.
    Exhausted(Moment),
}

impl IdentifyHistory {
    /// Asks whether an identify is permitted, and counts it if so.
    ///
    /// Both Discord's count and our own must permit it. Discord's count includes other programs with this token. Our count includes identifies
    /// after Discord's answer.
    pub fn request(&mut self, shard: u32, limit: &IdentifyLimit, now: Moment) -> Permission {
        self.0.retain(|start| start.at + DAY > now);
        if let Some(more_at) = self.exhausted(limit, now) {
            return Permission::Exhausted(more_at);
        }
        let key = shard % limit.max_concurrency;
        let same = self.0.iter().filter(|start| start.shard % limit.max_concurrency == key);
        // If the clock was set back, some starts are in the future. They are treated as made now.
        let last = same.map(|start| start.at.min(now)).max();
        if let Some(free) = last.map(|last| last + limit.apart).filter(|free| now < *free) {
            return Permission::At(free);
        }
        self.0.push(Start { at: now, shard });
        Permission::Now
    }

    /// The remaining identifies, without the reserve.
    pub fn left(&self, limit: &IdentifyLimit, now: Moment) -> u32 {
        let (discords, ours) = self.counts(limit, now);
        discords.min(ours).saturating_sub(RESERVE)
    }

    /// When identifies are available again. `None` if there are some now.
    fn exhausted(&self, limit: &IdentifyLimit, now: Moment) -> Option<Moment> {
        let (discords, ours) = self.counts(limit, now);
        let discords_reset = (discords <= RESERVE).then_some(limit.resets_at);
        let needed = (RESERVE + 1).saturating_sub(ours) as usize;
        let mut starts: Vec<Moment> = self.0.iter().map(|start| start.at).collect();
        starts.sort();
        let ours_end = needed.checked_sub(1).and_then(|index| starts.get(index)).map(|start| *start + DAY);
        discords_reset.max(ours_end)
    }

    /// The remaining identifies by Discord's count, and by ours.
    fn counts(&self, limit: &IdentifyLimit, now: Moment) -> (u32, u32) {
        let count = |since: Moment| {
            let starts = self.0.iter().filter(|start| start.at >= since && start.at + DAY > now);
            u32::try_from(starts.count()).unwrap_or(u32::MAX)
        };
        // Discord's count starts again after its reset. Identifies after Discord's answer are subtracted from it.
        let (total, since) =
            if now < limit.resets_at { (limit.remaining, limit.received_at) } else { (MOST_A_DAY, limit.resets_at) };
        (total.saturating_sub(count(since)), MOST_A_DAY.saturating_sub(count(Moment::ZERO)))
    }
}

/// What a shard does after its connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// Connect to the session's own address and resume. If the resume is refused, identify.
    Resume,
    /// The session is lost. Connect to the default address and identify; missed messages are backfilled.
    Identify,
    /// Stop, because further attempts are useless until the operator acts.
    Stop(CloseCode),
}

/// The problem and its fix after a close code that stops a shard, for the operator.
pub fn advice(code: CloseCode) -> Detail {
    Detail::key(match code {
        CloseCode::AuthenticationFailed => "refusals.discord_token",
        CloseCode::InvalidShard => "refusals.discord_shard_number",
        CloseCode::ShardingRequired => "refusals.discord_more_shards",
        CloseCode::InvalidIntents => "refusals.discord_intents",
        CloseCode::DisallowedIntents => "refusals.discord_content_off",
        _ => "refusals.discord_version",
    })
}

/// Decides the next step after a connection ended with this close code, or without one (Discord's documentation, "Opcodes and Status Codes",
/// "Gateway Close Event Codes").
///
/// After an unknown code, the session is resumed, because an attempt is free and Discord reports a lost session. 1000 and 1001 end the session only
/// if we send them ("Gateway", "Disconnecting"). Discord and the proxies in front of it send 1001 to request a new connection.
pub fn after_close(code: Option<u16>) -> NextStep {
    use CloseCode::{AlreadyAuthenticated, InvalidSequence, NotAuthenticated, SessionTimedOut, UnknownOpcode};
    match code.map(CloseCode::try_from) {
        Some(Ok(code)) if !code.can_reconnect() => NextStep::Stop(code),
        Some(Ok(UnknownOpcode | NotAuthenticated | AlreadyAuthenticated | InvalidSequence | SessionTimedOut)) => {
            NextStep::Identify
        }
        // This code is no longer documented. It meant a lost session.
        _ if code == Some(4006) => NextStep::Identify,
        _ => NextStep::Resume,
    }
}

/// Decides the next step after an Invalid Session (opcode 9).
pub const fn after_invalid_session(resumable: bool) -> NextStep {
    if resumable { NextStep::Resume } else { NextStep::Identify }
}

/// The close code for a connection that will be resumed. 1000 and 1001 would end the session.
pub const CLOSE_TO_RESUME: u16 = 4_900;

/// The pause before the next identify, after `failed` identifies in a row whose sessions did not last. It ranges from seconds to a quarter of an
/// hour, and half of it is random. This prevents a fault that ends sessions at once from using up the day's identifies. The pause is at most a
/// minute for a shard that `has_worked`, while plenty of today's identifies are `left`. `jitter` is from 0 to 1.
pub fn identify_pause(failed: u32, has_worked: bool, left: u32, jitter: f64) -> Duration {
    let jitter = if jitter.is_finite() { jitter.clamp(0.0, 1.0) } else { 0.5 };
    let Some(doublings) = failed.checked_sub(1) else { return Duration::ZERO };
    let longest = if has_worked && left >= PLENTY { LONGEST_WHILE_PLENTY } else { LONGEST_IDENTIFY_PAUSE };
    let whole = Duration::from_secs(5).saturating_mul(1 << doublings.min(8)).min(longest);
    whole.mul_f64(0.5 + jitter / 2.0)
}

/// Whether an ended connection counts as a failure to connect: it had no session, or lost the session soon without an event. `session_lasted` is
/// how long it had a session. `has_received_event` says whether an event other than READY and RESUMED arrived.
///
/// A link that breaks repeatedly does not increase the pause if each connection delivers missed events.
pub fn failed_to_connect(session_lasted: Option<Duration>, has_received_event: bool) -> bool {
    session_lasted.is_none_or(|lasted| !has_received_event && lasted < ESTABLISHED_AFTER)
}

/// The pause before the next connection attempt. Without failures, it is up to a second. With failures, it doubles from two seconds to a minute,
/// and half of it is random. `failures` counts failures to connect in a row. `jitter` is from 0 to 1.
pub fn pause(failures: u32, jitter: f64) -> Duration {
    let jitter = if jitter.is_finite() { jitter.clamp(0.0, 1.0) } else { 0.5 };
    let Some(doublings) = failures.checked_sub(1) else { return Duration::from_secs(1).mul_f64(jitter) };
    let whole = Duration::from_secs(2).saturating_mul(1 << doublings.min(5)).min(LONGEST_PAUSE);
    whole.mul_f64(0.5 + jitter / 2.0)
}
