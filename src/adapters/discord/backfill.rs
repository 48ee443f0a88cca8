//! Plans the backfill after downtime: the order of channels and pages, and the gaps for messages that are not read.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::snowflake::Snowflake;
use crate::domain::moment::Moment;

/// The limit of messages per page (documentation, "Get Channel Messages").
const PAGE: u32 = 100;
/// The number of attempts to request a page before its channel is given up.
const MOST_TRIES: u32 = 8;
/// The limit of partly read channels. It limits the memory for their messages, however many channels are behind.
const MOST_OPEN: usize = 32;

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The newest messages to read per channel. 0 reads nothing and records the missed messages as a gap.
    pub messages: u32,
    /// The maximum age of a message to read.
    pub age: Duration,
    /// The limit of REST calls per second. Discord allows 50 for all requests of the bot.
    pub calls_per_second: usize,
    /// The limit of calls in flight, each for a different guild.
    pub at_once: usize,
}

/// A channel with messages that the bot has not received.
#[derive(Clone, Copy, Debug)]
pub struct Behind {
    /// The channel or thread.
    pub channel: Snowflake,
    /// `None` for a direct message, which is a guild of its own.
    pub guild: Option<Snowflake>,
    /// The newest message, as Discord reports it for the channel (`last_message_id`).
    pub newest: Snowflake,
    /// The newest accepted message. Before the first one, the id for the time when the bot began to listen.
    pub accepted: Snowflake,
}

/// A page to request: `GET /channels/{channel}/messages?before=…&limit=…`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub channel: Snowflake,
    /// The page has the newest messages with smaller ids.
    pub before: Snowflake,
    /// 1 to 100.
    pub limit: u32,
}

/// The next step for the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next<M> {
    /// Request this page.
    Ask(Request),
    Filled(Filled<M>),
    /// Request nothing before this moment, unless an answer arrives earlier.
    WaitUntil(Moment),
    /// Request nothing until an answer arrives.
    AwaitAnswer,
    Over,
}

/// A channel whose backfill is finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filled<M> {
    /// Live messages that arrived in this channel meanwhile come after these.
    pub channel: Snowflake,
    /// Oldest first.
    pub messages: Vec<M>,
    /// The range of messages that were not read, to be recorded.
    pub gap: Option<Gap>,
}

/// A range of messages that were not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The last accepted message before the gap.
    pub after: Snowflake,
    /// The first id after the gap.
    pub before: Snowflake,
    pub why: Left,
}

/// Why messages were not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Left {
    /// More messages were missed than [`Limits::messages`].
    TooMany,
    /// The messages are older than [`Limits::age`].
    TooOld,
    /// Discord refused the request, or the channel is gone.
    Refused,
    /// Discord returned an empty page, though it had reported a newest message. Either the newest messages were deleted, or the bot may not read
    /// the history.
    NothingShown,
    /// Repeated requests had no answer.
    Unreachable,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// 403 or 404: a retry would fail, too.
    Refused,
    /// 429, 5xx or no answer: retry at this moment.
    Later(Moment),
}

/// The plan. It returns the next step and receives the results. It never waits itself.
#[derive(Debug)]
pub struct Backfill<M> {
    limits: Limits,
    /// The unfinished channels of each guild, the most recently used first.
    guilds: BTreeMap<Snowflake, Vec<Reading<M>>>,
    /// Guilds in the order in which they are served.
    guild_order: VecDeque<Snowflake>,
    filled: VecDeque<Filled<M>>,
    /// The calls of the last second, oldest first.
    recent_calls: VecDeque<Moment>,
}

#[derive(Debug)]
struct Reading<M> {
    behind: Behind,
    /// Messages up to this id are not read.
    floor: Snowflake,
    /// Messages from this id on have been read.
    before: Snowflake,
    /// Newest first.
    messages: Vec<(Snowflake, M)>,
    tries: u32,
    stage: Stage,
}

impl<M> Reading<M> {
    /// Whether the channel's messages are in memory, or will be once the answer arrives.
    const fn is_open(&self) -> bool {
        !self.messages.is_empty() || matches!(self.stage, Stage::Requested(_))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Ready(Moment),
    Requested(u32),
}

impl<M> Backfill<M> {
    pub const fn new(limits: Limits) -> Self {
        Self {
            limits,
            guilds: BTreeMap::new(),
            guild_order: VecDeque::new(),
            filled: VecDeque::new(),
            recent_calls: VecDeque::new(),
        }
    }

    /// Adds a channel with missed messages, unless it is being read already. If no messages are to be read, or all of them exceed the maximum age
    /// by Discord's clock, the channel is finished at once with a gap.
    pub fn add(&mut self, behind: Behind, now: Moment, on_discord: Moment) {
        if behind.newest <= behind.accepted || self.is_filling(behind.channel) {
            return;
        }
        let floor = Snowflake::at(on_discord - self.limits.age);
        let before = behind.newest.next();
        let reason =
            if self.limits.messages == 0 { Some(Left::TooMany) } else { (behind.newest < floor).then_some(Left::TooOld) };
        if let Some(why) = reason {
            let gap = Some(Gap { after: behind.accepted, before, why });
            self.filled.push_back(Filled { channel: behind.channel, messages: Vec::new(), gap });
            return;
        }
        let reading = Reading { behind, floor, before, messages: Vec::new(), tries: 0, stage: Stage::Ready(now) };
        let guild = behind.guild.unwrap_or(behind.channel);
        let channels = self.guilds.entry(guild).or_default();
        let position = channels.partition_point(|other| other.behind.newest > behind.newest);
        channels.insert(position, reading);
        if !self.guild_order.contains(&guild) {
            self.guild_order.push_back(guild);
        }
    }

    /// Whether a channel's backfill is unfinished. Live messages of such a channel must wait.
    pub fn is_filling(&self, channel: Snowflake) -> bool {
        let is_this = |filled: &Filled<M>| filled.channel == channel;
        self.guilds.values().flatten().any(|reading| reading.behind.channel == channel) || self.filled.iter().any(is_this)
    }

    /// Returns the next step. Guilds take turns, one page each.
    pub fn next(&mut self, now: Moment) -> Next<M> {
        if let Some(filled) = self.filled() {
            return Next::Filled(filled);
        }
        if self.guilds.is_empty() {
            return Next::Over;
        }
        let in_flight = self.guilds.values().flatten().filter(|reading| matches!(reading.stage, Stage::Requested(_))).count();
        if in_flight >= self.limits.at_once.max(1) {
            return Next::AwaitAnswer;
        }
        let may_open = self.guilds.values().flatten().filter(|reading| reading.is_open()).count() < MOST_OPEN;
        if let Some(at) = self.next_call_at(now) {
            return Next::WaitUntil(at);
        }
        for index in 0..self.guild_order.len() {
            let Some(request) = self.next_request(self.guild_order[index], may_open, now) else { continue };
            // The skipped guilds had nothing to request, and keep their turn.
            let guild = self.guild_order.remove(index);
            self.guild_order.extend(guild);
            self.recent_calls.push_back(now);
            return Next::Ask(request);
        }
        let ready = |reading: &Reading<M>| match reading.stage {
            Stage::Ready(at) if at > now => Some(at),
            _ => None,
        };
        let next = self.guilds.values().flatten().filter_map(ready).min();
        next.map_or(Next::AwaitAnswer, Next::WaitUntil)
    }

    /// Removes and returns a finished channel, for callers that may not send further requests.
    pub fn filled(&mut self) -> Option<Filled<M>> {
        self.filled.pop_front()
    }

    /// Counts a call that is not part of the plan.
    ///
    /// # Errors
    /// Returns an error if the rate limit does not permit the call. The error is the earliest moment for it.
    pub fn call(&mut self, now: Moment) -> Result<(), Moment> {
        if let Some(at) = self.next_call_at(now) {
            return Err(at);
        }
        self.recent_calls.push_back(now);
        Ok(())
    }

    /// Handles a page: the messages with their ids, in any order.
    pub fn answered(&mut self, channel: Snowflake, page: Vec<(Snowflake, M)>, now: Moment) {
        let limit = self.limits.messages as usize;
        let Some((guild, position)) = self.position_of(channel) else { return };
        let Some(reading) = self.guilds.get_mut(&guild).map(|channels| &mut channels[position]) else { return };
        let Stage::Requested(requested) = reading.stage else { return };
        let is_last = page.len() < requested as usize;
        let mut page: Vec<_> = page.into_iter().filter(|(id, _)| *id < reading.before).collect();
        page.sort_by_key(|(id, _)| std::cmp::Reverse(*id));
        page.dedup_by_key(|(id, _)| *id);
        let is_empty = page.is_empty();
        for (id, message) in page {
            let reason = if id <= reading.behind.accepted {
                return self.finish(guild, position, None);
            } else if id < reading.floor {
                Some(Left::TooOld)
            } else {
                (reading.messages.len() >= limit).then_some(Left::TooMany)
            };
            if reason.is_some() {
                return self.finish(guild, position, reason);
            }
            reading.before = id;
            reading.messages.push((id, message));
        }
        if is_empty && (!is_last || reading.messages.is_empty()) {
            return self.finish(guild, position, Some(Left::NothingShown));
        }
        if is_last {
            return self.finish(guild, position, None);
        }
        reading.tries = 0;
        reading.stage = Stage::Ready(now);
    }

    /// Handles a failed request.
    pub fn failed(&mut self, channel: Snowflake, failure: Failure) {
        let Some((guild, position)) = self.position_of(channel) else { return };
        let Some(reading) = self.guilds.get_mut(&guild).map(|channels| &mut channels[position]) else { return };
        match failure {
            Failure::Refused => self.finish(guild, position, Some(Left::Refused)),
            Failure::Later(at) => {
                reading.tries += 1;
                reading.stage = Stage::Ready(at);
                if reading.tries >= MOST_TRIES {
                    self.finish(guild, position, Some(Left::Unreachable));
                }
            }
        }
    }

    /// Removes channels without recording gaps.
    pub fn forget(&mut self, gone: impl Fn(&Behind) -> bool) {
        for channels in self.guilds.values_mut() {
            channels.retain(|reading| !gone(&reading.behind));
        }
        self.clear_empty();
    }

    /// When the next call may be made. `None`: now.
    fn next_call_at(&mut self, now: Moment) -> Option<Moment> {
        while self.recent_calls.front().is_some_and(|at| now.since(*at) >= Duration::from_secs(1)) {
            self.recent_calls.pop_front();
        }
        let first = self.recent_calls.front().filter(|_| self.recent_calls.len() >= self.limits.calls_per_second.max(1))?;
        Some(*first + Duration::from_secs(1))
    }

    /// The next page of a guild, unless one is in flight. If `may_open` is false, only partly read channels are considered.
    fn next_request(&mut self, guild: Snowflake, may_open: bool, now: Moment) -> Option<Request> {
        let most = self.limits.messages;
        let channels = self.guilds.get_mut(&guild)?;
        if channels.iter().any(|reading| matches!(reading.stage, Stage::Requested(_))) {
            return None;
        }
        let is_ready = |reading: &Reading<M>| matches!(reading.stage, Stage::Ready(at) if at <= now);
        let reading = channels.iter_mut().find(|reading| is_ready(reading) && (may_open || reading.is_open()))?;
        let read = u32::try_from(reading.messages.len()).unwrap_or(u32::MAX);
        // One message more than the limit shows whether there are further missed messages.
        let limit = most.saturating_sub(read).saturating_add(1).min(PAGE);
        reading.stage = Stage::Requested(limit);
        Some(Request { channel: reading.behind.channel, before: reading.before, limit })
    }

    fn position_of(&self, channel: Snowflake) -> Option<(Snowflake, usize)> {
        let position = |channels: &Vec<Reading<M>>| channels.iter().position(|reading| reading.behind.channel == channel);
        self.guilds.iter().find_map(|(guild, channels)| Some((*guild, position(channels)?)))
    }

    fn finish(&mut self, guild: Snowflake, position: usize, reason: Option<Left>) {
        let Some(channels) = self.guilds.get_mut(&guild) else { return };
        let reading = channels.remove(position);
        let gap = reason.map(|why| Gap { after: reading.behind.accepted, before: reading.before, why });
        let messages = reading.messages.into_iter().rev().map(|(_, message)| message).collect();
        self.filled.push_back(Filled { channel: reading.behind.channel, messages, gap });
        self.clear_empty();
    }

    fn clear_empty(&mut self) {
        self.guilds.retain(|_, channels| !channels.is_empty());
        let guilds = &self.guilds;
        self.guild_order.retain(|guild| guilds.contains_key(guild));
    }
}
