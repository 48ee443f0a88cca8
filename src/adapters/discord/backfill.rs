//! Plans what is read after a downtime: which channels, in which order and pages, and what is left out.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::snowflake::Snowflake;
use crate::domain::moment::Moment;

/// Messages that Discord gives at once (documentation, "Get Channel Messages").
const PAGE: u32 = 100;
/// Times that a page is asked for before its channel is given up.
const MOST_TRIES: u32 = 8;
/// Channels of which something is read, and not all: as many are held in memory, however many are behind.
const MOST_OPEN: usize = 32;

/// How much is read.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Messages per channel, the newest; 0 reads nothing and records what is missing.
    pub messages: u32,
    /// How old they may be.
    pub age: Duration,
    /// Questions a second; Discord allows 50 for all that the bot does.
    pub calls_per_second: usize,
    /// Questions under way at once, each of another guild.
    pub at_once: usize,
}

/// A channel in which something was said that we have not heard.
#[derive(Clone, Copy, Debug)]
pub struct Behind {
    /// The channel or thread.
    pub channel: Snowflake,
    /// Its guild; none for a direct message, which is a guild of its own.
    pub guild: Option<Snowflake>,
    /// The newest message, as Discord told with the channel (`last_message_id`).
    pub newest: Snowflake,
    /// The newest message that was accepted; at first, where the bot began to listen.
    pub accepted: Snowflake,
}

/// A page to ask for: `GET /channels/{channel}/messages?before=…&limit=…`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Of this channel.
    pub channel: Snowflake,
    /// Messages with smaller ids, the newest of them first.
    pub before: Snowflake,
    /// How many: 1 to 100.
    pub limit: u32,
}

/// What is to be done next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next<M> {
    /// Ask for this page.
    Ask(Request),
    /// A channel is read.
    Filled(Filled<M>),
    /// Nothing before this moment, unless an answer comes.
    WaitUntil(Moment),
    /// Nothing until an answer comes.
    AwaitAnswer,
    /// All channels are read.
    Over,
}

/// What was read of a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filled<M> {
    /// The channel; messages that it heard meanwhile come after these.
    pub channel: Snowflake,
    /// The messages, the oldest first.
    pub messages: Vec<M>,
    /// What was left out, to be recorded.
    pub gap: Option<Gap>,
}

/// Messages that were not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// After this one, which was accepted.
    pub after: Snowflake,
    /// Before this one.
    pub before: Snowflake,
    /// Why.
    pub why: Left,
}

/// Why messages were left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Left {
    /// There were more than may be read.
    TooMany,
    /// They are older than may be read.
    TooOld,
    /// Discord refused, or the channel is gone.
    Refused,
    /// Discord gave nothing, though it had told of something: the newest were deleted, or the bot may not read the history.
    NothingShown,
    /// No answer came, again and again.
    Unreachable,
}

/// Why a question failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// 403 or 404: asking again changes nothing.
    Refused,
    /// 429, 5xx or no answer: ask again at this moment.
    Later(Moment),
}

/// The plan. Asked for what to do next, told what came of it; never waits.
#[derive(Debug)]
pub struct Backfill<M> {
    limits: Limits,
    /// The channels of each guild that are not read yet, the most recently used first.
    guilds: BTreeMap<Snowflake, Vec<Reading<M>>>,
    /// Guilds in the order in which they are served.
    turns: VecDeque<Snowflake>,
    filled: VecDeque<Filled<M>>,
    /// The questions of the last second.
    asked: VecDeque<Moment>,
}

#[derive(Debug)]
struct Reading<M> {
    behind: Behind,
    /// Nothing older is read.
    floor: Snowflake,
    /// Everything from here on is read.
    before: Snowflake,
    /// The newest first.
    messages: Vec<(Snowflake, M)>,
    tries: u32,
    state: Stage,
}

impl<M> Reading<M> {
    /// Whether something of it is held, or will be when the answer comes.
    const fn is_open(&self) -> bool {
        !self.messages.is_empty() || matches!(self.state, Stage::Asked(_))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Ready(Moment),
    Asked(u32),
}

impl<M> Backfill<M> {
    /// A plan without channels.
    pub const fn new(limits: Limits) -> Self {
        Self { limits, guilds: BTreeMap::new(), turns: VecDeque::new(), filled: VecDeque::new(), asked: VecDeque::new() }
    }

    /// Takes a channel on, if something was said there since as long ago as may be, by Discord's time of day; one that is being read already is not taken twice.
    pub fn add(&mut self, behind: Behind, now: Moment, on_discord: Moment) {
        if behind.newest <= behind.accepted || self.is_filling(behind.channel) {
            return;
        }
        let floor = Snowflake::at(on_discord - self.limits.age);
        let before = behind.newest.next();
        let left = if self.limits.messages == 0 { Some(Left::TooMany) } else { (behind.newest < floor).then_some(Left::TooOld) };
        if let Some(why) = left {
            let gap = Some(Gap { after: behind.accepted, before, why });
            self.filled.push_back(Filled { channel: behind.channel, messages: Vec::new(), gap });
            return;
        }
        let reading = Reading { behind, floor, before, messages: Vec::new(), tries: 0, state: Stage::Ready(now) };
        let guild = behind.guild.unwrap_or(behind.channel);
        let channels = self.guilds.entry(guild).or_default();
        let place = channels.partition_point(|other| other.behind.newest > behind.newest);
        channels.insert(place, reading);
        if !self.turns.contains(&guild) {
            self.turns.push_back(guild);
        }
    }

    /// Whether a channel is not read yet: what is heard there live has to wait.
    pub fn is_filling(&self, channel: Snowflake) -> bool {
        let is_read = |filled: &Filled<M>| filled.channel == channel;
        self.guilds.values().flatten().any(|reading| reading.behind.channel == channel) || self.filled.iter().any(is_read)
    }

    /// What is to be done now. Guilds take turns, a page each.
    pub fn next(&mut self, now: Moment) -> Next<M> {
        if let Some(filled) = self.filled() {
            return Next::Filled(filled);
        }
        if self.guilds.is_empty() {
            return Next::Over;
        }
        let under_way = self.guilds.values().flatten().filter(|reading| matches!(reading.state, Stage::Asked(_))).count();
        if under_way >= self.limits.at_once.max(1) {
            return Next::AwaitAnswer;
        }
        let may_open = self.guilds.values().flatten().filter(|reading| reading.is_open()).count() < MOST_OPEN;
        if let Some(at) = self.full_until(now) {
            return Next::WaitUntil(at);
        }
        for turn in 0..self.turns.len() {
            let Some(request) = self.ask(self.turns[turn], may_open, now) else { continue };
            // Those before had nothing to ask, and keep their turn.
            let guild = self.turns.remove(turn);
            self.turns.extend(guild);
            self.asked.push_back(now);
            return Next::Ask(request);
        }
        let ready = |reading: &Reading<M>| match reading.state {
            Stage::Ready(at) if at > now => Some(at),
            _ => None,
        };
        let next = self.guilds.values().flatten().filter_map(ready).min();
        next.map_or(Next::AwaitAnswer, Next::WaitUntil)
    }

    /// A channel that is read, for whoever may ask nothing more.
    pub fn filled(&mut self) -> Option<Filled<M>> {
        self.filled.pop_front()
    }

    /// Counts a question that is none of the plan's.
    ///
    /// # Errors
    /// There is no room for it before this moment.
    pub fn call(&mut self, now: Moment) -> Result<(), Moment> {
        if let Some(at) = self.full_until(now) {
            return Err(at);
        }
        self.asked.push_back(now);
        Ok(())
    }

    /// A page came: the messages with their ids, in any order.
    pub fn answered(&mut self, channel: Snowflake, page: Vec<(Snowflake, M)>, now: Moment) {
        let most = self.limits.messages as usize;
        let Some((guild, place)) = self.place(channel) else { return };
        let Some(reading) = self.guilds.get_mut(&guild).map(|channels| &mut channels[place]) else { return };
        let Stage::Asked(limit) = reading.state else { return };
        let is_last = page.len() < limit as usize;
        let mut page: Vec<_> = page.into_iter().filter(|(id, _)| *id < reading.before).collect();
        page.sort_by_key(|(id, _)| std::cmp::Reverse(*id));
        page.dedup_by_key(|(id, _)| *id);
        let is_empty = page.is_empty();
        for (id, message) in page {
            let left = if id <= reading.behind.accepted {
                return self.finish(guild, place, None);
            } else if id < reading.floor {
                Some(Left::TooOld)
            } else {
                (reading.messages.len() >= most).then_some(Left::TooMany)
            };
            if left.is_some() {
                return self.finish(guild, place, left);
            }
            reading.before = id;
            reading.messages.push((id, message));
        }
        if is_empty && (!is_last || reading.messages.is_empty()) {
            return self.finish(guild, place, Some(Left::NothingShown));
        }
        if is_last {
            return self.finish(guild, place, None);
        }
        reading.tries = 0;
        reading.state = Stage::Ready(now);
    }

    /// A question failed.
    pub fn failed(&mut self, channel: Snowflake, failure: Failure) {
        let Some((guild, place)) = self.place(channel) else { return };
        let Some(reading) = self.guilds.get_mut(&guild).map(|channels| &mut channels[place]) else { return };
        match failure {
            Failure::Refused => self.finish(guild, place, Some(Left::Refused)),
            Failure::Later(at) => {
                reading.tries += 1;
                reading.state = Stage::Ready(at);
                if reading.tries >= MOST_TRIES {
                    self.finish(guild, place, Some(Left::Unreachable));
                }
            }
        }
    }

    /// A channel, or all of a guild, is gone: nothing of it is read any more, and nothing recorded.
    pub fn forget(&mut self, gone: impl Fn(&Behind) -> bool) {
        for channels in self.guilds.values_mut() {
            channels.retain(|reading| !gone(&reading.behind));
        }
        self.clear_empty();
    }

    /// When the next question may be asked, if not now.
    fn full_until(&mut self, now: Moment) -> Option<Moment> {
        while self.asked.front().is_some_and(|at| now.since(*at) >= Duration::from_secs(1)) {
            self.asked.pop_front();
        }
        let first = self.asked.front().filter(|_| self.asked.len() >= self.limits.calls_per_second.max(1))?;
        Some(*first + Duration::from_secs(1))
    }

    /// The next page of a guild, unless one is under way; only of a channel that is open already, if no other may be opened.
    fn ask(&mut self, guild: Snowflake, may_open: bool, now: Moment) -> Option<Request> {
        let most = self.limits.messages;
        let channels = self.guilds.get_mut(&guild)?;
        if channels.iter().any(|reading| matches!(reading.state, Stage::Asked(_))) {
            return None;
        }
        let is_ready = |reading: &Reading<M>| matches!(reading.state, Stage::Ready(at) if at <= now);
        let reading = channels.iter_mut().find(|reading| is_ready(reading) && (may_open || reading.is_open()))?;
        let read = u32::try_from(reading.messages.len()).unwrap_or(u32::MAX);
        // One more than is kept tells whether there is more.
        let limit = most.saturating_sub(read).saturating_add(1).min(PAGE);
        reading.state = Stage::Asked(limit);
        Some(Request { channel: reading.behind.channel, before: reading.before, limit })
    }

    fn place(&self, channel: Snowflake) -> Option<(Snowflake, usize)> {
        let place = |channels: &Vec<Reading<M>>| channels.iter().position(|reading| reading.behind.channel == channel);
        self.guilds.iter().find_map(|(guild, channels)| Some((*guild, place(channels)?)))
    }

    fn finish(&mut self, guild: Snowflake, place: usize, left: Option<Left>) {
        let Some(channels) = self.guilds.get_mut(&guild) else { return };
        let reading = channels.remove(place);
        let gap = left.map(|why| Gap { after: reading.behind.accepted, before: reading.before, why });
        let messages = reading.messages.into_iter().rev().map(|(_, message)| message).collect();
        self.filled.push_back(Filled { channel: reading.behind.channel, messages, gap });
        self.clear_empty();
    }

    fn clear_empty(&mut self) {
        self.guilds.retain(|_, channels| !channels.is_empty());
        let guilds = &self.guilds;
        self.turns.retain(|guild| guilds.contains_key(guild));
    }
}
