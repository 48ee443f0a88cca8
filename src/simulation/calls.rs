//! People in voice calls: they talk over each other, stop, say "mhm", leave in mid-word, and opt out. Their final results come late, twice, empty, or
//! never. Calls are in guilds of their own and have random numbers of their own, so that the other seeds' stories stay the same.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::mpsc;

use super::acts::{Act, PEOPLE};
use super::dice::Dice;
use super::life::{Life, Props};
use super::plan::{CAST, FloorEvent, Guild, Room, Strike, Target, When};
use super::stage::lock;
use crate::actors::inbound::Inbound;
use crate::domain::conversation::Notice;
use crate::domain::id::{ChannelId, PersonId, Seq};
use crate::domain::message::{Author, Role};
use crate::domain::voice::interruption::{Input as Told, Said, Stop, Words};
use crate::domain::voice::utterance::Input;
use crate::journeys::mouth::{self, Voice};
use crate::ports::inbound_events::Acceptance;
use crate::ports::voice_call::fake::FakeCalls;
use crate::ports::voice_call::{CallEvents, InboundSegment};

/// The word of a guild with a call.
const WORD: &str = "ombrelune";
/// The share of seeds with a call.
const SHARE: f64 = 0.2;
/// The time between two reports of voice.
const HOP: Duration = Duration::from_millis(100);
/// The pause before the same report is made again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// What somebody does in a call.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum CallAct {
    Join(&'static str),
    Leave(&'static str),
    Mute(&'static str),
    LoseSocket(&'static str),
    /// Somebody opts out of this call alone.
    OptOut(&'static str),
    /// Somebody presses Stop.
    Stop,
    Talk(Talk),
}

/// What somebody says.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Talk {
    pub(super) number: usize,
    pub(super) person: &'static str,
    pub(super) text: String,
    /// The companion that it names.
    names: Option<&'static str>,
    stop: bool,
    hops: u32,
    has_partial: bool,
    result: FinalResult,
    /// From the end of speech to the final result.
    late_by: Duration,
}

/// What becomes of a final result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FinalResult {
    Comes,
    ComesTwice,
    Empty,
    Never,
}

/// What is known of the calls.
#[derive(Default)]
pub(super) struct Calls {
    /// Whether each person is in the call of a room, for those who were once.
    present: Mutex<BTreeMap<(usize, &'static str), bool>>,
    opted_out: Mutex<BTreeSet<(usize, &'static str)>>,
    /// The numbers of accepted segments.
    accepted: Mutex<BTreeMap<(usize, usize), Seq>>,
    /// When something happened in a call, in order of time.
    pub(super) activity: Mutex<Vec<(usize, Duration)>>,
    /// What was played.
    pub(super) ledger: mouth::Shared,
}

/// Adds a room with a call to the plan of some seeds.
pub(super) fn add(
    guilds: &mut Vec<Guild>,
    rooms: &mut Vec<Room>,
    acts: &mut Vec<(Duration, Act)>,
    calm_at: Duration,
    dice: &mut Dice,
) -> Option<usize> {
    if !dice.chance(SHARE) {
        return None;
    }
    let (room, guild) = (rooms.len(), guilds.len());
    guilds.push(Guild { id: format!("g{guild}"), word: WORD });
    let mut companions: Vec<_> = CAST.iter().map(|(id, _)| *id).collect();
    let several = *dice.pick(&[1, 1, 2, 3]);
    while companions.len() > several {
        companions.remove(dice.below(companions.len() as u64) as usize);
    }
    rooms.push(Room {
        id: format!("room{room}"),
        guild,
        companions: companions.clone(),
        has_external: false,
        is_on_platform: false,
        within: None,
        is_direct: false,
        has_call: true,
    });
    let mut plan = |at: Duration, what: CallAct| acts.push((at, Act::Call { room, what }));
    let people = &PEOPLE[..dice.between(1, 3) as usize];
    let mut at = Duration::from_millis(500);
    for person in people {
        plan(at, CallAct::Join(person));
        at += dice.millis(0, 2_000);
    }
    let until = calm_at.min(Duration::from_secs(240));
    let mut number = 0;
    while at < until {
        number += 1;
        let person = *dice.pick(people);
        let talk = talk(number, person, &companions, dice);
        let lasts = HOP * talk.hops;
        plan(at, CallAct::Talk(talk));
        let during = at + lasts.mul_f64(dice.fraction());
        match dice.below(40) {
            0 => {
                plan(during, CallAct::Leave(person));
                plan(during + dice.millis(500, 20_000), CallAct::Join(person));
            }
            1 => plan(during, CallAct::Mute(person)),
            2 => {
                plan(during, CallAct::LoseSocket(person));
                plan(during + dice.millis(500, 20_000), CallAct::Join(person));
            }
            3 if number > 6 => plan(during, CallAct::OptOut(person)),
            4 => plan(during, CallAct::Stop),
            _ => {}
        }
        at += match dice.below(10) {
            // They talk over each other, and into the answers.
            0..3 => lasts.mul_f64(dice.fraction()),
            3..6 => lasts + dice.millis(0, 3_000),
            _ => lasts + dice.millis(4_000, 14_000),
        };
    }
    if dice.chance(0.2) {
        acts.push((dice.millis(5_000, until.as_millis() as u64), Act::Clear(room)));
    }
    if dice.chance(0.2) {
        let pauses_at = dice.millis(5_000, until.as_millis() as u64);
        let pause = |paused| Act::Pause { room, companion: None, paused };
        acts.push((pauses_at, pause(true)));
        acts.push((pauses_at + dice.millis(2_000, 20_000), pause(false)));
    }
    acts.sort_by_key(|(at, _)| *at);
    Some(room)
}

fn talk(number: usize, person: &'static str, companions: &[&'static str], dice: &mut Dice) -> Talk {
    let id = *dice.pick(companions);
    let alias = CAST.iter().find(|(companion, _)| *companion == id).map_or("ari", |(_, alias)| *alias);
    let (text, names, stop) = match dice.below(20) {
        0..8 => (format!("{alias}, {WORD} v{number}v, what of it?"), Some(id), false),
        8..11 => ("mhm".to_owned(), None, false),
        11 | 12 => ("stop".to_owned(), None, true),
        13 => (format!("{alias}, wait, {WORD} v{number}v"), Some(id), true),
        _ => (format!("{WORD} v{number}v and so it goes"), None, false),
    };
    let result = match dice.below(20) {
        0 => FinalResult::Never,
        1 => FinalResult::Empty,
        2 | 3 => FinalResult::ComesTwice,
        _ => FinalResult::Comes,
    };
    let late_by = if dice.chance(0.2) { dice.millis(500, 7_000) } else { dice.millis(50, 500) };
    let hops = if dice.chance(0.3) { dice.between(25, 60) } else { dice.between(2, 20) } as u32;
    Talk { number, person, text, names, stop, hops, has_partial: dice.chance(0.6), result, late_by }
}

/// Kills around hand-overs, and around what spoken replies put on record.
pub(super) fn strikes(room: usize, dice: &mut Dice) -> Vec<Strike> {
    let several = dice.below(5);
    let strike = |_| {
        let target = match dice.below(10) {
            0..5 => Target::Channel(room),
            5 => Target::Writer,
            6 => Target::ReplyOrDelivery(room),
            _ => Target::Process,
        };
        let when = When::Floor(*dice.pick(&FloorEvent::OF_CALLS), dice.between(1, 5));
        Strike { when, steps: *dice.pick(&[0, 0, 1, 2, 4, 8, 16, 24]), target }
    };
    (0..several).map(strike).collect()
}

/// The platform of the calls in one life of the process.
pub(super) fn begin(
    props: &Arc<Props>,
) -> (Arc<FakeCalls>, mpsc::UnboundedReceiver<(ChannelId, crate::ports::voice_call::CallEffect)>) {
    let calls = Arc::new(FakeCalls::default());
    let (player, effects) = mpsc::unbounded_channel();
    calls.play_by(player);
    // Whatever was played, the process has taken it along.
    lock(&props.calls.ledger).active.clear();
    (calls, effects)
}

impl Life {
    /// Plays what companions say. The platform reports again who is in the calls.
    pub(super) fn connect_calls(&self, effects: mpsc::UnboundedReceiver<(ChannelId, crate::ports::voice_call::CallEffect)>) {
        let (stage, inbound) = (self.props.stage.clone(), Inbound::new(self.context.clone()));
        let mut dice = Dice::new(stage.plan.seed ^ stage.life(), "mouth");
        let voice = move |_: &ChannelId| match dice.below(14) {
            _ if stage.is_calm() => Voice::Fine,
            0 => Voice::Silent,
            1 => Voice::Stalls(dice.below(2) as usize),
            2 => Voice::Lost(dice.millis(0, 4_000)),
            _ => Voice::Fine,
        };
        let tell = move |channel: &ChannelId, notice| {
            inbound.noticed(channel, notice);
        };
        tokio::spawn(mouth::play(effects, self.props.calls.ledger.clone(), voice, tell));
    }

    /// Reports again who is in the calls, after a restart.
    pub(super) fn rejoin_calls(&self) {
        let present = lock(&self.props.calls.present).clone();
        for ((room, person), is_present) in present {
            let life = self.clone();
            tokio::spawn(async move { life.report_presence(room, person, is_present).await });
        }
    }

    /// Everybody leaves the calls.
    pub(super) async fn end_calls(&self) {
        let present = lock(&self.props.calls.present).clone();
        for ((room, person), _) in present.into_iter().filter(|(_, is_present)| *is_present) {
            lock(&self.props.calls.present).insert((room, person), false);
            self.report_presence(room, person, false).await;
        }
    }

    async fn report_presence(&self, room: usize, person: &'static str, is_present: bool) {
        let inbound = Inbound::new(self.context.clone());
        let (channel_ref, from) = (self.channel_ref(room), author(person));
        // Whoever has gone meanwhile, or is back, is reported as that.
        while lock(&self.props.calls.present).get(&(room, person)) == Some(&is_present) {
            self.note_activity(room);
            let outcome = match is_present {
                true => inbound.joined(&channel_ref, from.clone()).await,
                false => inbound.left(&channel_ref, from.clone()).await,
            };
            if outcome.is_ok() {
                break;
            }
            self.props.stage.pass(AGAIN_AFTER).await;
        }
        self.note_activity(room);
        if is_present && lock(&self.props.calls.opted_out).contains(&(room, person)) {
            self.notice(room, Notice::Call(Input::OptedOut { user: person.into() }));
        }
    }

    pub(super) async fn act_in_call(&self, room: usize, what: CallAct) {
        let (stage, calls) = (&self.props.stage, &self.props.calls);
        match what {
            CallAct::Join(person) => {
                lock(&calls.present).insert((room, person), true);
                self.report_presence(room, person, true).await;
            }
            CallAct::Leave(person) => {
                stage.reach("left a call");
                lock(&calls.present).insert((room, person), false);
                self.report_presence(room, person, false).await;
            }
            CallAct::Mute(person) => self.notice(room, Notice::Call(Input::Muted { user: person.into() })),
            CallAct::LoseSocket(person) => {
                stage.reach("socket lost in a call");
                self.notice(room, Notice::Call(Input::SocketLost { user: person.into() }));
            }
            CallAct::OptOut(person) => {
                stage.reach("opted out of a call");
                lock(&calls.opted_out).insert((room, person));
                self.notice(room, Notice::Call(Input::OptedOut { user: person.into() }));
            }
            CallAct::Stop => {
                let ticket = lock(&calls.ledger).active.get(&self.room(room).channel()).copied();
                if let Some(ticket) = ticket {
                    stage.reach("stop pressed");
                    self.notice(room, Notice::Reply { ticket, told: Told::StopPressed });
                }
            }
            CallAct::Talk(talk) => self.talk(room, talk).await,
        }
    }

    fn notice(&self, room: usize, notice: Notice) {
        self.note_activity(room);
        Inbound::new(self.context.clone()).noticed(&self.room(room).channel(), notice);
    }

    fn note_activity(&self, room: usize) {
        let now = self.props.stage.now();
        lock(&self.props.calls.activity).push((room, now));
    }

    /// Whether somebody is in the call, and wants to be heard there.
    fn is_heard(&self, room: usize, person: &'static str) -> bool {
        let is_present = lock(&self.props.calls.present).get(&(room, person)) == Some(&true);
        is_present && !lock(&self.props.calls.opted_out).contains(&(room, person))
    }

    /// Somebody talks, as long as they are in the call. Then the recogniser answers.
    async fn talk(&self, room: usize, talk: Talk) {
        let (stage, clock) = (&self.props.stage, &self.context.clock);
        let (person, user) = (talk.person, PersonId::from(talk.person));
        if !self.is_heard(room, person) {
            return;
        }
        let (started, channel) = (clock.now(), self.room(room).channel());
        let is_during_reply = lock(&self.props.calls.ledger).active.contains_key(&channel);
        self.notice(room, Notice::Call(Input::Started { user: user.clone(), started }));
        let mut ended = started;
        for hop in 0..talk.hops {
            stage.pass(HOP).await;
            if !self.is_heard(room, person) {
                stage.reach("left in mid-word");
                break;
            }
            let from = ended;
            ended = clock.now().max(started);
            self.notice(room, Notice::Voiced { user: user.clone(), from, to: ended });
            if talk.has_partial && hop == talk.hops / 2 {
                let stop = if talk.stop { Stop::First } else { Stop::None };
                let addressed = talk.names.into_iter().map(Into::into).collect();
                let said = if talk.text == "mhm" { Said::Backchannel } else { Said::Words };
                let words = Words { said, stop, addressed };
                self.notice(room, Notice::Partial { user: user.clone(), started, words });
            }
        }
        self.notice(room, Notice::Call(Input::Ended { user: user.clone(), ended }));
        stage.pass(talk.late_by).await;
        self.note_activity(room);
        if lock(&self.props.calls.opted_out).contains(&(room, person)) {
            return;
        }
        match talk.result {
            FinalResult::Never => stage.reach("final result never comes"),
            FinalResult::Empty => {
                stage.reach("empty final result");
                self.notice(room, Notice::Call(Input::Final { user, is_last: true, segment: None }));
            }
            FinalResult::Comes | FinalResult::ComesTwice => {
                let segment = InboundSegment {
                    id: format!("call-{}", talk.number).into(),
                    from: author(person),
                    text: talk.text.as_str().into(),
                    started,
                    ended,
                    voiced: Some(HOP * talk.hops),
                    no_speech: None,
                    confidence: Some(900),
                    provider: "rehearsal".into(),
                    is_last: true,
                    is_during_reply,
                    played: Default::default(),
                };
                self.report_final(room, &talk, segment.clone()).await;
                if talk.result == FinalResult::ComesTwice {
                    stage.reach("final result comes twice");
                    self.report_final(room, &talk, segment).await;
                }
            }
        }
    }

    /// A final result with the same id is the same one.
    async fn report_final(&self, room: usize, talk: &Talk, segment: InboundSegment) {
        let stage = &self.props.stage;
        loop {
            self.note_activity(room);
            let outcome = Inbound::new(self.context.clone()).heard(&self.channel_ref(room), segment.clone()).await;
            self.note_activity(room);
            let seq = match outcome {
                Ok(Acceptance::New(seq) | Acceptance::Duplicate(seq)) => seq,
                Ok(_) => return,
                Err(_) => {
                    stage.pass(AGAIN_AFTER).await;
                    continue;
                }
            };
            if let Some(first) = lock(&self.props.calls.accepted).insert((room, talk.number), seq).filter(|first| *first != seq) {
                stage.violate(format!("what was said in a call as {} is {first} and {seq}", talk.number));
            }
            return;
        }
    }
}

fn author(person: &'static str) -> Author {
    Author { id: person.into(), name: person.into(), role: Role::Person }
}
