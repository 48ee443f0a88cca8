//! The plan of a run, from its seed: guilds, rooms and companions, the rules, the weather, and what will happen.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::acts::{self, Act};
use super::calls;
use super::dice::Dice;
use super::events;
use super::interruptions;
use super::manners;
use super::rules::{Rules, settings};
use crate::domain::decision::Reason;
use crate::domain::event::Event;
use crate::domain::trigger::Trigger;

/// The companions that a guild may have, and the alias of each.
pub(super) const CAST: [(&str, &str); 5] =
    [("aria", "ari"), ("bruno", "bru"), ("cleo", "clee"), ("dora", "dodo"), ("eli", "elias")];
/// The companion that a program outside plays.
pub(super) const EXTERNAL: &str = "zed";
/// How long the channel must be quiet before a companion considers speaking. Unknown for the external companion.
pub(super) fn lull_timeout(companion: &str) -> Option<Duration> {
    (companion != EXTERNAL).then(|| Duration::from_secs(4 + companion.len() as u64))
}

/// The silence after which a companion may start a conversation: soon, while its channel sleeps, or never.
pub(super) fn starts_after(companion: &str) -> Option<Duration> {
    let secs = [75, 400].get(CAST.iter().position(|(id, _)| *id == companion)?)?;
    Some(Duration::from_secs(*secs))
}

/// How long a storm on the connections lasts, until they are back.
const STORM_ON_CONNECTIONS: Duration = Duration::from_secs(600);

/// A word for each guild that must never be seen outside it.
const WORDS: [&str; 4] = ["qalamarine", "vexolith", "zumbrota", "drelliput"];

#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) settings: Value,
    /// Other settings, for every process after the first.
    pub(super) later: Option<Value>,
    /// The companions configured for the second process, if they change.
    pub(super) cast_later: Option<Vec<&'static str>>,
    pub(super) rules: Rules,
    pub(super) guilds: Vec<Guild>,
    pub(super) rooms: Vec<Room>,
    pub(super) weather: Weather,
    /// What people and operators do, in order of time.
    pub(super) acts: Vec<(Duration, Act)>,
    pub(super) strikes: Vec<Strike>,
    /// Faults by commit, counted over all lives.
    pub(super) store_faults: BTreeMap<u64, StoreFault>,
    /// When the disk is full.
    pub(super) full: Option<(Duration, Duration)>,
    /// When commits are slow.
    pub(super) slow: Option<(Duration, Duration)>,
    /// When faults end.
    pub(super) calm_at: Duration,
}

#[derive(Clone, Debug)]
pub(super) struct Guild {
    pub(super) id: String,
    pub(super) word: &'static str,
}

#[derive(Clone, Debug)]
pub(super) struct Room {
    pub(super) id: String,
    pub(super) guild: usize,
    pub(super) companions: Vec<&'static str>,
    pub(super) has_external: bool,
    pub(super) is_on_platform: bool,
    /// For a thread: the room that it is in.
    pub(super) within: Option<usize>,
    /// A direct message, which is a guild of its own.
    pub(super) is_direct: bool,
    /// It has a voice call, and a guild of its own.
    pub(super) has_call: bool,
}

impl Room {
    /// Whether a message in it makes it a room.
    pub(super) const fn opens_with_first_message(&self) -> bool {
        self.within.is_some() || self.is_direct
    }
}

/// The probabilities of faults.
#[derive(Clone, Debug, Default)]
pub(super) struct Weather {
    pub(super) wants_to_speak: f64,
    pub(super) model_errors: f64,
    pub(super) model_hangs: f64,
    pub(super) model_panics: f64,
    pub(super) malformed: f64,
    pub(super) model_millis: u64,
    /// The probability of a statement that takes 5 to 90 seconds.
    pub(super) long_statements: f64,
    pub(super) repeats: f64,
    pub(super) names_others: f64,
    pub(super) closes: f64,
    pub(super) platform_later: f64,
    pub(super) platform_unknown: f64,
    pub(super) platform_refuses: f64,
    pub(super) unreadable: f64,
    pub(super) slow_reads: f64,
    pub(super) commit_millis: u64,
    /// The probability of a message that kills its handler.
    pub(super) poison: f64,
    /// Whether actors and the process are killed.
    pub(super) is_deadly: bool,
    pub(super) has_jumps: bool,
}

/// An event that a strike may wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Beat {
    Committed,
    Asked,
    Answered,
    Left,
    Arrived,
    Sent,
    /// A connection hands over a message.
    Delivered,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum When {
    At(Duration),
    Beat(Beat, u64),
    /// This event is committed for the nth time. A target that is a channel, a guild or a reply stands for that of the event's room.
    Floor(FloorEvent, u64),
}

/// What may happen to the floor, and what events and silences lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FloorEvent {
    Replanning,
    Replanned,
    Cancelled,
    Expired,
    Held,
    HeldSelected,
    Taken,
    /// An event that a companion must acknowledge is on record; a companion was selected for it.
    Said,
    Selected,
    Deferred,
    Released,
    /// A silence is over; a companion is asked because of it; it starts a conversation.
    Silence,
    Asked,
    Started,
    /// Words of a call are handed over; a sentence is about to be heard; it was heard; somebody interrupted it; a reply begins again with more words.
    HandedOver,
    SentenceStarting,
    SentencePlayed,
    Interrupted,
    Extended,
}

impl FloorEvent {
    pub(super) const ALL: [Self; 7] =
        [Self::Replanning, Self::Replanned, Self::Cancelled, Self::Expired, Self::Held, Self::HeldSelected, Self::Taken];

    pub(super) const OF_EVENTS: [Self; 7] =
        [Self::Said, Self::Selected, Self::Deferred, Self::Released, Self::Silence, Self::Asked, Self::Started];

    pub(super) const OF_CALLS: [Self; 5] =
        [Self::HandedOver, Self::SentenceStarting, Self::SentencePlayed, Self::Interrupted, Self::Extended];

    pub(super) fn of(event: &Event) -> Option<Self> {
        match event {
            Event::Said { message, .. } if message.speech.is_some() => Some(Self::HandedOver),
            Event::SentenceStarting { .. } => Some(Self::SentenceStarting),
            Event::SentencePlayed { .. } => Some(Self::SentencePlayed),
            Event::Interrupted { .. } => Some(Self::Interrupted),
            Event::ReplyExtended { .. } => Some(Self::Extended),
            Event::Replanning { .. } => Some(Self::Replanning),
            Event::Replanned { .. } => Some(Self::Replanned),
            Event::Cancelled { .. } => Some(Self::Cancelled),
            Event::FloorExpired { .. } => Some(Self::Expired),
            Event::RoundClosed(closed) if !closed.held.is_empty() => Some(Self::Held),
            Event::HeldSelected { .. } => Some(Self::HeldSelected),
            Event::FloorTaken { .. } => Some(Self::Taken),
            Event::Said { message, .. } if message.is_event() => Some(Self::Said),
            Event::Decided(decided) if decided.reason == Reason::Event => Some(Self::Selected),
            Event::EventsDeferred { .. } => Some(Self::Deferred),
            Event::EventsReleased => Some(Self::Released),
            Event::SilenceFired { .. } => Some(Self::Silence),
            Event::Evaluated(evaluated) if evaluated.trigger == Trigger::Silence => Some(Self::Asked),
            Event::ReplyOwed { trigger: Trigger::Silence, .. } => Some(Self::Started),
            _ => None,
        }
    }

    /// The name of the path that a kill after this event reaches.
    pub(super) const fn path(self) -> &'static str {
        match self {
            Self::Replanning => "killed after an attempt was stopped",
            Self::Replanned => "killed after a statement began again",
            Self::Cancelled => "killed after a reply was cancelled",
            Self::Expired => "killed after a floor expired",
            Self::Held => "killed after a vote was held",
            Self::HeldSelected => "killed after a held vote was selected",
            Self::Taken => "killed after a late text took the floor",
            Self::Said => "killed after an event",
            Self::Selected => "killed after an event was acknowledged",
            Self::Deferred => "killed after events were deferred",
            Self::Released => "killed after events were released",
            Self::Silence => "killed after a silence",
            Self::Asked => "killed after a question about a silence",
            Self::Started => "killed after a conversation was started",
            Self::HandedOver => "killed after a hand-over",
            Self::SentenceStarting => "killed after a sentence began",
            Self::SentencePlayed => "killed after a sentence was heard",
            Self::Interrupted => "killed after an interruption",
            Self::Extended => "killed after a reply was extended",
        }
    }
}

/// A target is killed this number of scheduler steps after a time or an event.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Strike {
    pub(super) when: When,
    pub(super) steps: u32,
    pub(super) target: Target,
}

impl Strike {
    pub(super) const fn at(&self) -> Option<Duration> {
        match self.when {
            When::At(at) => Some(at),
            When::Beat(..) | When::Floor(..) => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Target {
    Channel(usize),
    Companion(usize, usize),
    Guild(usize),
    Guilds,
    Writer,
    Pool,
    Switchboard,
    Manager(usize),
    /// The reply and delivery actors of a room.
    ReplyOrDelivery(usize),
    Process,
    /// The supervisor of the connections to the platform.
    Connections,
    /// One of the connections.
    Connection(u32),
    /// The root actor, and with it the process.
    Root,
    /// A channel again and again, until its guild is quarantined.
    Storm(usize),
    /// The same with a companion.
    StormOnCompanion(usize, usize),
    /// The supervisor of the connections, until it is paused.
    StormOnConnections,
}

/// The fault of a commit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum StoreFault {
    /// Nothing is stored, and the store accepts no more.
    Failed,
    /// This share of the group is stored, and the answer is lost.
    Unknown(f64),
    /// This share of the group is stored when the process dies.
    Crash(f64),
}

impl Plan {
    pub(super) fn of(seed: u64) -> Self {
        let mut dice = Dice::new(seed, "plan");
        let mut weather = weather(&mut dice);
        let patience = &mut Dice::new(seed, "long statements");
        weather.long_statements = if patience.chance(0.5) { 0.1 + patience.fraction() * 0.6 } else { 0.0 };
        let (mut first, mut rules) = settings(&mut dice);
        let mut later = None;
        if weather.is_deadly && dice.chance(0.2) {
            let (other, others) = settings(&mut dice);
            (later, rules) = (Some(other), rules.or(&others));
        }
        let cast_later = (weather.is_deadly && dice.chance(0.15))
            .then(|| CAST.iter().map(|(id, _)| *id).filter(|_| dice.chance(0.8)).collect());
        let mut guilds: Vec<_> =
            (0..dice.between(1, 3) as usize).map(|at| Guild { id: format!("g{at}"), word: WORDS[at] }).collect();
        let mut rooms = Vec::new();
        for guild in 0..guilds.len() {
            for _ in 0..dice.between(1, 2) {
                rooms.push(room(guild, rooms.len(), &mut dice));
                let parent = rooms.len() - 1;
                if rooms[parent].is_on_platform && dice.chance(0.3) {
                    rooms.push(Room { id: format!("sim:{}", rooms.len()), within: Some(parent), ..rooms[parent].clone() });
                }
            }
        }
        if dice.chance(0.25) {
            let (number, guild) = (rooms.len(), guilds.len());
            guilds.push(Guild { id: format!("dm:sim:{number}"), word: WORDS[guild] });
            let companions = vec![CAST[0].0];
            let id = format!("sim:{number}");
            rooms.push(Room {
                id,
                guild,
                companions,
                has_external: false,
                is_on_platform: true,
                within: None,
                is_direct: true,
                has_call: false,
            });
        }
        // With some seeds there are pauses so long that channels fall asleep.
        let calm_at = Duration::from_secs(if dice.chance(0.25) { dice.between(1_000, 4_000) } else { dice.between(60, 300) });
        let mut acts = acts::planned(&guilds, &rooms, &weather, calm_at, &mut Dice::new(seed, "acts"));
        acts::add_deletions(&mut acts, &mut Dice::new(seed, "regrets"));
        manners::add(&mut acts, &rooms, calm_at, &mut Dice::new(seed, "manners"));
        let phrases = interruptions::add(&mut acts, &guilds, &rooms, &mut Dice::new(seed, "interruptions of statements"));
        events::add(&mut acts, &guilds, &rooms, calm_at, &mut Dice::new(seed, "events"));
        let with_call = calls::add(&mut guilds, &mut rooms, &mut acts, calm_at, &mut Dice::new(seed, "calls"));
        let phrases: Vec<_> = phrases.into_iter().chain(with_call.iter().flat_map(|call| call.phrases.clone())).collect();
        for settings in [&mut first].into_iter().chain(&mut later) {
            interruptions::add_phrases(settings, &phrases);
            with_call.iter().for_each(|call| call.add_settings(settings));
        }
        let mut strikes = if weather.is_deadly { strikes(&rooms, calm_at, &mut dice) } else { Vec::new() };
        if weather.is_deadly {
            strikes.extend(storm_on_companion(&rooms, calm_at, &mut Dice::new(seed, "storm on a companion")));
            strikes.extend(strikes_at(&FloorEvent::ALL, 3, Target::Writer, &mut Dice::new(seed, "strikes at the floor")));
            strikes.extend(strikes_at(&FloorEvent::OF_EVENTS, 2, Target::Switchboard, &mut Dice::new(seed, "strikes at events")));
            let of_calls = with_call.map(|call| calls::strikes(call.room, &mut Dice::new(seed, "strikes at calls")));
            strikes.extend(of_calls.into_iter().flatten());
            strikes.extend(strikes_on_connections(calm_at, &mut Dice::new(seed, "strikes on connections")));
        }
        let (mut store_faults, mut full) = (BTreeMap::new(), None);
        if weather.is_deadly {
            for _ in 0..dice.below(4) {
                let share = *dice.pick(&[0.0, 1.0, dice.clone().fraction()]);
                let fault = match dice.below(5) {
                    0 => StoreFault::Failed,
                    1 | 2 => StoreFault::Unknown(share),
                    _ => StoreFault::Crash(share),
                };
                store_faults.insert(dice.between(3, 250), fault);
            }
            if dice.chance(0.1) {
                let from = dice.millis(1_000, calm_at.as_millis() as u64 - 20_000);
                full = Some((from, from + dice.millis(1_000, 20_000)));
            }
        }
        let slow = dice.chance(0.2).then(|| {
            let from = dice.millis(0, calm_at.as_millis() as u64 - 20_000);
            (from, from + dice.millis(1_000, 20_000))
        });
        Self {
            seed,
            settings: first,
            later,
            cast_later,
            rules,
            guilds,
            rooms,
            weather,
            acts,
            strikes,
            store_faults,
            full,
            slow,
            calm_at,
        }
    }

    /// The word of a guild, by its id.
    pub(super) fn word_of(&self, guild: &str) -> &'static str {
        self.guilds.iter().find(|known| known.id == guild).map_or("nobody", |known| known.word)
    }

    /// Whether a guild has a voice call.
    pub(super) fn has_call(&self, guild: &str) -> bool {
        self.rooms.iter().any(|room| room.has_call && self.guilds[room.guild].id == guild)
    }

    /// Whether the configured companions change at some time.
    pub(super) fn changes_companions(&self) -> bool {
        self.cast_later.is_some() || self.acts.iter().any(|(_, act)| matches!(act, Act::SetCompanions(_)))
    }

    /// How far the clock is set back, at most.
    pub(super) fn set_back(&self) -> Duration {
        let set_back = self.acts.iter().map(|(_, act)| if let Act::SetClock(secs) = act { (-secs).max(0) } else { 0 });
        Duration::from_secs(set_back.sum::<i64>().unsigned_abs())
    }

    /// Whether a message that kills its handler is sent in a guild.
    pub(super) fn is_poisoned(&self, guild: &str) -> bool {
        let is_deadly = |say: &acts::Say| say.is_deadly && self.guilds[self.rooms[say.room].guild].id == guild;
        self.acts.iter().any(|(_, act)| matches!(act, Act::Say(say) if is_deadly(say)))
    }

    /// The word of another guild that a text contains.
    pub(super) fn foreign_word(&self, guild: &str, text: &str) -> Option<&'static str> {
        self.guilds.iter().filter(|other| other.id != guild).map(|other| other.word).find(|word| text.contains(word))
    }
}

fn weather(dice: &mut Dice) -> Weather {
    let mut sometimes = |share: f64, most: f64| if dice.chance(share) { dice.fraction() * most } else { 0.0 };
    let mut weather = Weather {
        wants_to_speak: 0.2 + sometimes(0.9, 0.75),
        model_errors: sometimes(0.5, 0.4),
        model_hangs: sometimes(0.3, 0.15),
        model_panics: sometimes(0.15, 0.1),
        malformed: sometimes(0.4, 0.4),
        repeats: sometimes(0.3, 1.0),
        names_others: sometimes(0.6, 0.8),
        closes: sometimes(0.5, 0.4),
        platform_later: sometimes(0.4, 0.4),
        platform_unknown: sometimes(0.5, 0.5),
        platform_refuses: sometimes(0.2, 0.2),
        unreadable: sometimes(0.2, 0.4),
        slow_reads: sometimes(0.4, 0.4),
        ..Weather::default()
    };
    weather.model_millis = *dice.pick(&[1, 300, 2_000, 6_000]);
    weather.commit_millis = *dice.pick(&[0, 2, 10, 40]);
    weather.is_deadly = dice.chance(0.75);
    weather.has_jumps = dice.chance(0.2);
    weather.poison = if weather.is_deadly && dice.chance(0.25) { 0.05 } else { 0.0 };
    weather
}

fn room(guild: usize, number: usize, dice: &mut Dice) -> Room {
    let is_on_platform = dice.chance(0.4);
    let mut companions: Vec<_> = CAST.iter().map(|(id, _)| *id).collect();
    let several = dice.between(1, 5) as usize;
    while companions.len() > several {
        companions.remove(dice.below(companions.len() as u64) as usize);
    }
    Room {
        id: if is_on_platform { format!("sim:{number}") } else { format!("room{number}") },
        guild,
        companions,
        has_external: dice.chance(0.2),
        is_on_platform,
        within: None,
        is_direct: false,
        has_call: false,
    }
}

/// A companion that dies whenever it returns, with a few of the seeds.
fn storm_on_companion(rooms: &[Room], calm_at: Duration, dice: &mut Dice) -> Option<Strike> {
    let (room, which) = (dice.below(rooms.len() as u64) as usize, dice.below(5) as usize);
    let when = When::At(dice.millis(0, calm_at.as_millis() as u64));
    dice.chance(0.04).then_some(Strike { when, steps: 0, target: Target::StormOnCompanion(room, which) })
}

/// Kills connections and their supervisor, and now and then the root actor.
fn strikes_on_connections(calm_at: Duration, dice: &mut Dice) -> Vec<Strike> {
    let several = dice.below(5);
    let strike = |_| {
        let target = if dice.chance(0.6) { Target::Connection(dice.below(3) as u32) } else { Target::Connections };
        let when = match dice.below(4) {
            0 => When::At(dice.millis(0, calm_at.as_millis() as u64)),
            1 => When::Beat(Beat::Committed, dice.between(1, 200)),
            _ => When::Beat(Beat::Delivered, dice.between(1, 25)),
        };
        Strike { when, steps: dice.below(24) as u32, target }
    };
    let mut strikes: Vec<_> = (0..several).map(strike).collect();
    if dice.chance(0.12) {
        let when = When::Beat(Beat::Committed, dice.between(1, 200));
        strikes.push(Strike { when, steps: dice.below(24) as u32, target: Target::Root });
    }
    // It takes minutes to exceed the restart limit, because the actor returns later each time.
    if dice.chance(0.25) && calm_at > STORM_ON_CONNECTIONS {
        let when = When::At(dice.millis(0, (calm_at - STORM_ON_CONNECTIONS).as_millis() as u64));
        strikes.push(Strike { when, steps: 0, target: Target::StormOnConnections });
    }
    strikes
}

/// Plans kills between these events and their effects: of the channel, its reply, its guild, the process, or sometimes `other`.
fn strikes_at(events: &[FloorEvent], times: usize, other: Target, dice: &mut Dice) -> Vec<Strike> {
    let strike = |_| {
        let target = match dice.below(10) {
            0..4 => Target::Channel(0),
            4..7 => Target::Process,
            7 => Target::ReplyOrDelivery(0),
            8 => other.clone(),
            _ => Target::Guild(0),
        };
        let when = When::Floor(*dice.pick(events), dice.between(1, 3));
        Strike { when, steps: *dice.pick(&[0, 0, 1, 2, 4, 8, 16, 24]), target }
    };
    (0..times).map(strike).collect()
}

/// The alias of a companion.
pub(super) fn alias(companion: &str) -> &'static str {
    CAST.iter().find(|(id, _)| *id == companion).map_or("ari", |(_, alias)| *alias)
}

fn strikes(rooms: &[Room], calm_at: Duration, dice: &mut Dice) -> Vec<Strike> {
    const BEATS: [Beat; 6] = [Beat::Committed, Beat::Asked, Beat::Answered, Beat::Left, Beat::Arrived, Beat::Sent];
    let several = dice.below(10);
    let strike = |_| {
        let room = dice.below(rooms.len() as u64) as usize;
        let target = match dice.below(40) {
            0..8 => Target::Channel(room),
            8..12 => Target::Companion(room, dice.below(5) as usize),
            12..16 => Target::Guild(rooms[room].guild),
            16..18 => Target::Guilds,
            18..22 => Target::Writer,
            22..26 => Target::Pool,
            26..28 => Target::Switchboard,
            28..31 => Target::Manager(room),
            31..35 => Target::ReplyOrDelivery(room),
            35..39 => Target::Process,
            _ => Target::Storm(room),
        };
        let when = if dice.chance(0.25) {
            When::At(dice.millis(0, calm_at.as_millis() as u64))
        } else {
            let beat = *dice.pick(&BEATS);
            let most = match beat {
                Beat::Committed => 200,
                Beat::Asked | Beat::Answered | Beat::Sent => 40,
                Beat::Left | Beat::Arrived | Beat::Delivered => 12,
            };
            When::Beat(beat, dice.between(1, most))
        };
        Strike { when, steps: dice.below(24) as u32, target }
    };
    (0..several).map(strike).collect()
}
