//! A chat platform behind a bad connection: requests arrive late, twice or never, answers get lost, and reads are refused.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;

use super::dice::Dice;
use super::faults::FaultKind;
use super::gateway::PLATFORM;
use super::plan::Beat;
use super::stage::{Stage, lock};
use crate::domain::id::{ChannelId, GuildId};
use crate::ports::chat_platform::{Capabilities, ChatPlatform, NotRead, NotSent, Part};

/// After this time a request never arrives.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// For this long after a refusal it is known that nothing can be posted.
pub(super) const UNPOSTABLE_FOR: Duration = Duration::from_secs(20);

pub(super) struct SimPlatform {
    stage: Arc<Stage>,
    dice: Mutex<Dice>,
    board: Mutex<Board>,
}

/// The contents of the platform. They survive the process.
#[derive(Default)]
struct Board {
    /// By id.
    posted: BTreeMap<u64, Posted>,
    last_id: u64,
    /// Requests that were sent. They arrive even if the sender dies.
    on_their_way: Vec<(Duration, u64, Part)>,
    requests: u64,
    /// The post that each request became.
    arrived: BTreeMap<u64, u64>,
    /// Where nothing can be posted, and until when.
    unpostable_until: BTreeMap<ChannelId, Duration>,
}

#[derive(Clone, Debug)]
pub(super) struct Posted {
    pub(super) channel: ChannelId,
    /// `None`: by a person.
    pub(super) part: Option<Part>,
    /// The process that saw it arrive.
    life: u64,
}

impl SimPlatform {
    pub(super) fn new(stage: Arc<Stage>) -> Arc<Self> {
        let dice = Mutex::new(Dice::new(stage.plan.seed, "platform"));
        Arc::new(Self { stage, dice, board: Mutex::default() })
    }

    /// A person posts a message. Returns its id.
    pub(super) fn post_by_person(&self, channel: &ChannelId) -> String {
        let mut board = self.settled();
        board.last_id += 1;
        let id = board.last_id;
        board.posted.insert(id, Posted { channel: channel.clone(), part: None, life: self.stage.life() });
        id.to_string()
    }

    /// The newest of our posts in a channel.
    pub(super) fn newest_of_ours(&self, channel: &ChannelId) -> Option<u64> {
        let board = self.settled();
        let mut ours = board.posted.iter().filter(|(_, posted)| posted.channel == *channel && posted.part.is_some());
        ours.next_back().map(|(id, _)| *id)
    }

    /// Every part that was posted, in the order of arrival.
    pub(super) fn parts(&self) -> Vec<Part> {
        self.settled().posted.values().filter_map(|posted| posted.part.clone()).collect()
    }

    /// The board, with every request that has arrived by now.
    fn settled(&self) -> parking_lot::MutexGuard<'_, Board> {
        let now = self.stage.now();
        let mut board = lock(&self.board);
        board.on_their_way.sort_by_key(|(at, request, _)| (*at, *request));
        while board.on_their_way.first().is_some_and(|(at, ..)| *at <= now) {
            let (_, request, part) = board.on_their_way.remove(0);
            board.last_id += 1;
            let id = board.last_id;
            board.arrived.insert(request, id);
            board.posted.insert(id, Posted { channel: part.channel.clone(), part: Some(part), life: self.stage.life() });
        }
        board
    }

    fn draw<T>(&self, roll: impl FnOnce(&mut Dice) -> T) -> T {
        roll(&mut lock(&self.dice))
    }
}

#[async_trait]
impl ChatPlatform for SimPlatform {
    fn name(&self) -> &'static str {
        PLATFORM
    }

    fn serves(&self, channel: &ChannelId) -> bool {
        channel.as_str().split_once(':').is_some_and(|(platform, _)| platform == PLATFORM)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            longest_part: 120,
            request_timeout: REQUEST_TIMEOUT,
            typing_shows: Some(Duration::from_secs(10)),
            is_written_here: false,
        }
    }

    /// A new process has seen nothing yet.
    fn newest(&self, channel: &ChannelId, on_record: &[Arc<str>]) -> Option<Arc<str>> {
        let (board, life) = (self.settled(), self.stage.life());
        let seen = board.posted.iter().filter(|(_, posted)| posted.channel == *channel && posted.life == life);
        let on_record = on_record.iter().filter_map(|id| id.parse().ok());
        seen.map(|(id, _)| *id).chain(on_record).max().map(|id| id.to_string().into())
    }

    fn is_unpostable(&self, channel: &ChannelId) -> bool {
        let now = self.stage.now();
        lock(&self.board).unpostable_until.get(channel).is_some_and(|until| now < *until)
    }

    async fn send(&self, part: &Part) -> Result<Arc<str>, NotSent> {
        self.stage.alive().await;
        if self.stage.plan.foreign_word(part.guild.as_str(), &part.text).is_some() {
            self.stage.violate(format!("words of another guild are sent to {}", part.guild));
        }
        self.stage.beat(Beat::Left);
        let weather = &self.stage.plan.weather;
        let is_calm = self.stage.is_calm();
        let (arrives, answers) = self.draw(|dice| (dice.millis(5, 700), dice.millis(5, 700)));
        if !is_calm && self.draw(|dice| dice.chance(weather.platform_later)) {
            self.stage.reach("platform asks to retry later");
            self.stage.note_fault(FaultKind::Platform(part.guild.clone()));
            self.stage.pass(arrives).await;
            let after = self.draw(|dice| dice.chance(0.6).then(|| dice.millis(100, 40_000)));
            return Err(NotSent::Later { after, detail: "as the simulation planned".into() });
        }
        if !is_calm && self.draw(|dice| dice.chance(weather.platform_refuses)) {
            self.stage.reach("platform refuses");
            self.stage.note_fault(FaultKind::Platform(part.guild.clone()));
            let until = self.stage.now() + UNPOSTABLE_FOR;
            self.stage.pass(arrives).await;
            lock(&self.board).unpostable_until.insert(part.channel.clone(), until);
            return Err(NotSent::Unpostable("as the simulation planned".into()));
        }
        let is_unknown = !is_calm && self.draw(|dice| dice.chance(weather.platform_unknown));
        let never_arrives = is_unknown && self.draw(|dice| dice.chance(0.4));
        if never_arrives {
            self.stage.reach("platform loses a request");
        }
        let arrives = match is_unknown && self.draw(|dice| dice.chance(0.3)) {
            true => {
                self.stage.reach("request arrives late, after others");
                self.draw(|dice| dice.millis(1_000, REQUEST_TIMEOUT.as_millis() as u64 - 1))
            }
            false => arrives,
        };
        let request = {
            let due = self.stage.now() + arrives;
            let mut board = self.settled();
            board.requests += 1;
            let request = board.requests;
            if !never_arrives {
                board.on_their_way.push((due, request, part.clone()));
            }
            request
        };
        if is_unknown {
            self.stage.reach("platform's answer lost");
            self.stage.note_fault(FaultKind::Platform(part.guild.clone()));
            self.stage.pass(self.draw(|dice| dice.millis(1, 9_999))).await;
            return Err(NotSent::Unknown { detail: "as the simulation planned".into(), within: REQUEST_TIMEOUT });
        }
        self.stage.pass(arrives).await;
        self.stage.beat(Beat::Arrived);
        self.stage.pass(answers).await;
        let id = self.settled().arrived.get(&request).copied();
        let unknown = || NotSent::Unknown { detail: "it did not arrive".into(), within: REQUEST_TIMEOUT };
        id.map(|id| id.to_string().into()).ok_or_else(unknown)
    }

    async fn change(&self, _: &GuildId, _: &ChannelId, _: &str, _: Option<&str>, _: Option<&str>) -> Result<(), NotSent> {
        Ok(())
    }

    async fn find(&self, part: &Part, after: Option<&str>, taken: &BTreeSet<Arc<str>>) -> Result<Option<Arc<str>>, NotRead> {
        self.stage.alive().await;
        self.stage.reach("part looked up");
        self.stage.pass(self.draw(|dice| dice.millis(5, 700))).await;
        if !self.stage.is_calm() && self.draw(|dice| dice.chance(self.stage.plan.weather.unreadable)) {
            if self.draw(|dice| dice.chance(0.3)) {
                self.stage.reach("platform cannot be read");
                return Err(NotRead::Never("as the simulation planned".into()));
            }
            return Err(NotRead::Later { after: None, detail: "as the simulation planned".into() });
        }
        let after = after.map_or(0, |after| after.parse::<u64>().unwrap_or_default());
        let board = self.settled();
        let is_it = |(id, posted): &(&u64, &Posted)| {
            posted.channel == part.channel
                && !taken.contains(id.to_string().as_str())
                && posted.part.as_ref().is_some_and(|found| found.text == part.text && found.name == part.name)
        };
        Ok(board.posted.range(after + 1..).find(is_it).map(|(id, _)| id.to_string().into()))
    }

    async fn typing(&self, _: &GuildId, _: &ChannelId) {}
}
