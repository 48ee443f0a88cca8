//! Plays a script through the machine that gathers what people say.
//!
//! What a conversation adds stands here: who can be heard, what a segment counts as, text lulls that wait, and which messages are unsettled.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tertulia::domain::id::{CompanionId, PersonId, Seq};
use tertulia::domain::moment::Moment;
use tertulia::domain::voice::echo::PlayedWords;
use tertulia::domain::voice::pump::Pump;
use tertulia::domain::voice::segment::{Heard, Kind, Segment, kind_of};
use tertulia::domain::voice::utterance::{self, Cause, HandOver, Policy, Utterances};

use super::{Event, Log, Names, lists};

/// The default of `voice.idle_finalize_secs`, which the scripts leave as it is.
const IDLE_FINALIZE: Duration = Duration::from_millis(500);

#[derive(Default)]
struct Listener {
    is_muted: bool,
    is_lost: bool,
    is_ignored: bool,
    hops: Vec<(u64, u64)>,
    finals: BTreeSet<(u64, u64)>,
    pump: Pump,
}

struct Call {
    utterances: Utterances,
    policy: Policy,
    has_detector: bool,
    names: Names,
    listeners: BTreeMap<String, Listener>,
    is_over: bool,
    segments: u64,
    messages: u64,
    unsettled: Vec<u64>,
    holds_text_lull: bool,
    reply_since: Option<u64>,
    replies: Vec<(u64, u64)>,
    log: Log,
}

/// The effects of a script, with their moments.
pub fn run(config: &Event, events: &[Event]) -> Log {
    let span = |key: &str, default| Duration::from_micros(config.number(key).unwrap_or(default));
    let policy = Policy {
        companions: BTreeMap::new(),
        default_timeout: span("voice_lull_us", 5_000_000),
        address_timeout: span("voice_address_us", 1_000_000),
        follow_up: span("follow_up_us", 10_000_000),
    };
    let mut call = Call {
        utterances: Utterances::default(),
        policy,
        has_detector: config.is("detector").unwrap_or(true),
        names: Names::default(),
        listeners: BTreeMap::new(),
        is_over: false,
        segments: 0,
        messages: 0,
        unsettled: Vec::new(),
        holds_text_lull: false,
        reply_since: None,
        replies: Vec::new(),
        log: Vec::new(),
    };
    for event in events {
        call.wait_until(event.at());
        call.take(event);
    }
    call.wait_until(u64::MAX);
    call.log
}

impl Call {
    /// Does what is due before a moment.
    fn wait_until(&mut self, end: u64) {
        loop {
            let pump =
                self.listeners.iter().filter_map(|(user, of)| Some((of.pump.deadline(IDLE_FINALIZE)?, user.clone()))).min();
            let due = self.utterances.deadline(&self.policy).map(|deadline| deadline.at);
            match (pump, due) {
                (Some((at, user)), due) if at.as_micros() < end && due.is_none_or(|due| at <= due) => {
                    if let Some(listener) = self.listeners.get_mut(&user) {
                        listener.pump.wake(at, IDLE_FINALIZE);
                    }
                    self.tell(at.as_micros(), utterance::Input::Finalized { user: user.as_str().into() });
                }
                (_, Some(at)) if at.as_micros() < end => {
                    let effects = self.utterances.wake(at, &self.policy);
                    self.follow(at.as_micros(), effects);
                }
                _ => break,
            }
        }
        let effects = self.utterances.advance_to(Moment::from_micros(end), &self.policy);
        assert!(effects.is_empty() || end == u64::MAX, "all that was due was handled");
    }

    fn tell(&mut self, at: u64, input: utterance::Input) {
        let effects = self.utterances.handle(Moment::from_micros(at), input, &self.policy);
        self.follow(at, effects);
    }

    fn is_present(&self, user: &str) -> bool {
        self.utterances.present().any(|one| one.as_str() == user)
    }

    fn is_heard(&self, user: &str) -> bool {
        let is_open = |of: &Listener| !of.is_muted && !of.is_lost && !of.is_ignored;
        self.is_present(user) && self.listeners.get(user).is_some_and(is_open)
    }

    fn take(&mut self, event: &Event) {
        let (at, name) = (event.at(), event.text("user"));
        let user = PersonId::from(name);
        match event.text("input") {
            "joined" => {
                self.is_over = false;
                if !self.is_present(name) {
                    let listener = self.listeners.entry(name.to_owned()).or_default();
                    (listener.is_muted, listener.is_lost) = (false, false);
                    self.tell(at, utterance::Input::Joined { user });
                }
            }
            "socket_back" => {
                self.listener(name).is_lost = false;
                if self.is_present(name) {
                    self.tell(at, utterance::Input::Joined { user });
                }
            }
            "left" => self.tell(at, utterance::Input::Left { user }),
            "muted" if self.is_present(name) => {
                self.tell(at, utterance::Input::Muted { user });
                self.listener(name).is_muted = true;
            }
            "unmuted" => self.listener(name).is_muted = false,
            "socket_lost" if self.is_present(name) => {
                self.tell(at, utterance::Input::SocketLost { user });
                self.listener(name).is_lost = true;
            }
            "opt_out" => {
                let listener = self.listener(name);
                listener.is_ignored = true;
                listener.hops.clear();
                let segments: Vec<_> =
                    self.utterances.buffered().iter().filter(|one| one.from == user).map(|one| one.seq.0).collect();
                self.tell(at, utterance::Input::OptedOut { user });
                if !segments.is_empty() {
                    self.note(at, format!("redact {name} {segments:?}"));
                }
            }
            "opt_in" => {
                self.listener(name).is_ignored = false;
                self.tell(at, utterance::Input::OptedIn { user });
            }
            "companion_joined" => {
                let timeout = event.number("lull_us").map_or(self.policy.default_timeout, Duration::from_micros);
                self.policy.companions.insert(event.text("companion").into(), timeout);
                self.names.join(event.text("companion"), &event.texts("names"));
            }
            "companion_left" => {
                self.policy.companions.remove(&CompanionId::from(event.text("companion")));
                self.names.leave(event.text("companion"));
            }
            "voiced" if self.is_heard(name) => {
                let hop = (event.number("from").unwrap_or_default(), event.number("to").unwrap_or_default());
                self.listener(name).hops.push(hop);
            }
            "started" if self.has_detector && self.is_heard(name) => {
                self.listener(name).pump.finalized();
                let started = event.moment("started").unwrap_or(Moment::from_micros(at));
                self.tell(at, utterance::Input::Started { user, started });
            }
            "speech_started" if !self.has_detector && self.is_heard(name) => {
                self.listener(name).pump.finalized();
                self.tell(at, utterance::Input::RecogniserStarted { user });
            }
            "ended" if self.has_detector => {
                self.listener(name).pump.forwarded(Moment::from_micros(at));
                self.tell(at, utterance::Input::Ended { user, ended: event.moment("ended").unwrap_or(Moment::from_micros(at)) });
            }
            "partial" if !event.text("text").trim().is_empty() => self.tell(at, utterance::Input::Partial { user }),
            "final" => self.take_final(event),
            "text_lull" => {
                if self.utterances.holds_text_lull() {
                    self.holds_text_lull = true;
                } else {
                    self.note(at, "text_lull".to_owned());
                }
            }
            "reply_started" => self.reply_since = Some(at),
            "reply_ended" => {
                let last_frame = event.number("last_frame").unwrap_or(at);
                self.replies.extend(self.reply_since.take().map(|since| (since, last_frame)));
                let people = [event.text("author"), event.text("interrupter")];
                let people = people.into_iter().filter(|user| !user.is_empty()).map(PersonId::from).collect();
                let companion = event.text("companion").into();
                self.tell(at, utterance::Input::Replied { companion, people, last_frame: Moment::from_micros(last_frame) });
            }
            "extend" => {
                if let Some(hand_over) = self.utterances.hand_over_now() {
                    let first = self.messages;
                    self.hand_over(at, &hand_over);
                    self.unsettled.retain(|message| *message <= first);
                }
            }
            "settled" => {
                let settled = event.numbers("messages");
                self.unsettled.retain(|message| !settled.contains(message));
            }
            "round_ended" if !self.unsettled.is_empty() && !self.is_over => self.tell(at, utterance::Input::LeftUnsettled),
            "call_ended" => {
                self.tell(at, utterance::Input::CallEnded);
                self.is_over = true;
            }
            "restart" => {
                let people = event.texts("connected");
                let ignored =
                    self.listeners.iter().filter(|(_, of)| of.is_ignored).map(|(user, _)| user.as_str().into()).collect();
                for listener in self.listeners.values_mut() {
                    (listener.is_muted, listener.is_lost, listener.pump) = (false, false, Pump::default());
                    listener.hops.clear();
                }
                let buffer = self.utterances.buffered().to_vec();
                let people = people.iter().map(|user| PersonId::from(user.as_str()));
                self.utterances = Utterances::restored(buffer, people, ignored, Moment::from_micros(at));
                self.holds_text_lull = false;
                self.reply_since = None;
            }
            _ => {}
        }
    }

    fn listener(&mut self, user: &str) -> &mut Listener {
        self.listeners.entry(user.to_owned()).or_default()
    }

    fn take_final(&mut self, event: &Event) {
        let (at, name, text) = (event.at(), event.text("user"), event.text("text").trim());
        let (started, ended) = (event.number("started").unwrap_or(at), event.number("ended").unwrap_or(at));
        let has_detector = self.has_detector;
        let listener = self.listener(name);
        if listener.is_ignored {
            return;
        }
        let is_last = event.is("speech_final").unwrap_or(true) || event.is("from_finalize").unwrap_or(false);
        let user = PersonId::from(name);
        if text.is_empty() {
            return self.tell(at, utterance::Input::Final { user, is_last, segment: None });
        }
        if !listener.finals.insert((started, ended)) {
            return self.note(at, format!("duplicate {name} {text}"));
        }
        let voiced: u64 = listener.hops.iter().map(|(from, to)| (*to).min(ended).saturating_sub((*from).max(started))).sum();
        let voiced = if has_detector { voiced } else { ended - started };
        let is_during_reply = self.reply_since.is_some_and(|since| since <= started)
            || self.replies.iter().any(|(from, to)| (*from..=*to).contains(&started));
        let (started, ended) = (Moment::from_micros(started), Moment::from_micros(ended));
        let heard = Heard {
            text,
            started,
            ended,
            voiced: Some(Duration::from_micros(voiced)),
            no_speech: event.get("no_speech_prob").as_f64(),
            is_invented: !text.contains(char::is_alphanumeric),
            is_during_reply,
            begins_with_stop: false,
        };
        let kind = kind_of(&heard, &lists(), &PlayedWords::default());
        self.segments += 1;
        self.note(at, format!("segment {} {name} {text} {}", self.segments, kind == Kind::Noise));
        let addressed = self.names.in_text(text).iter().map(|companion| CompanionId::from(companion.as_str())).collect();
        let seq = Seq(self.segments);
        let segment = Segment { seq, from: user.clone(), text: text.into(), started, ended, addressed, kind };
        self.tell(at, utterance::Input::Final { user, is_last, segment: Some(segment) });
    }

    fn follow(&mut self, at: u64, effects: Vec<utterance::Effect>) {
        for effect in effects {
            match effect {
                utterance::Effect::Finalize { user } => {
                    self.listener(user.as_str()).pump.finalized();
                    self.note(at, format!("finalize {user}"));
                }
                utterance::Effect::HandOver(hand_over) => self.hand_over(at, &hand_over),
                utterance::Effect::Quiet { companions } if !self.is_over => {
                    if std::mem::take(&mut self.holds_text_lull) {
                        self.note(at, "text_lull".to_owned());
                    } else if !self.unsettled.is_empty() {
                        for companion in companions {
                            self.note(at, format!("quiet {companion} {:?}", self.unsettled));
                        }
                    }
                }
                utterance::Effect::CountsAsNoise { user } => {
                    self.listener(user.as_str()).pump.forwarded(Moment::from_micros(at));
                    self.note(at, format!("noise {user}"));
                }
                utterance::Effect::Quiet { .. } | utterance::Effect::Left { .. } | utterance::Effect::Redact { .. } => {}
            }
        }
    }

    fn hand_over(&mut self, at: u64, hand_over: &HandOver) {
        let (cause, companions) = match &hand_over.cause {
            Cause::LullEnded { companions } => {
                ("lull", format!("{:?}", companions.iter().map(CompanionId::as_str).collect::<Vec<_>>()))
            }
            Cause::Deserted { .. } => ("gone", "-".to_owned()),
            Cause::Addressed { .. } => ("address", "-".to_owned()),
            Cause::OneToOne { companion, .. } => ("alone", companion.to_string()),
            Cause::FollowUp { companion, .. } => ("follow_up", companion.to_string()),
            Cause::Extension => ("extension", "-".to_owned()),
        };
        let first = self.messages + 1;
        let endpoint =
            hand_over.endpoint().and_then(|(point, _)| hand_over.messages.iter().position(|one| std::ptr::eq(one, point)));
        let endpoint = endpoint.map(|index| first + index as u64);
        let text_lull = matches!(cause, "lull" | "gone") && std::mem::take(&mut self.holds_text_lull);
        let mut settled = Vec::new();
        let mut shown = Vec::new();
        for message in &hand_over.messages {
            self.messages += 1;
            if message.is_backchannel {
                settled.push(self.messages);
            } else {
                self.unsettled.push(self.messages);
            }
            let (from, to) = (message.started.as_micros(), message.ended.as_micros());
            let segments: Vec<_> = message.segments.iter().map(|seq| seq.0).collect();
            shown.push(format!("{} {}: {} {from}-{to} {segments:?}", self.messages, message.from, message.text));
        }
        let for_whom = if endpoint.is_some() { companions } else { "-".to_owned() };
        self.note(
            at,
            format!("hand_over {cause} endpoint {endpoint:?} for {for_whom} text lull {text_lull}: {}", shown.join(" | ")),
        );
        if !settled.is_empty() {
            self.note(at, format!("settled {settled:?}"));
        }
    }

    fn note(&mut self, at: u64, effect: String) {
        self.log.push((at, effect));
    }
}

/// The effects of the second implementation, as this one shows them.
pub fn shown(effects: &[Event]) -> Log {
    let mut log = Log::new();
    for effect in effects {
        let user = effect.text("user");
        let lines = match effect.text("effect") {
            "finalize" if effect.text("why") != "idle" => vec![format!("finalize {user}")],
            "noise" => vec![format!("noise {user}")],
            "segment" => {
                let number = effect.number("segment").unwrap_or_default();
                vec![format!("segment {number} {user} {} {}", effect.text("text"), effect.is("greyed").unwrap_or(false))]
            }
            "duplicate" => vec![format!("duplicate {user} {}", effect.text("text"))],
            "redact" => vec![format!("redact {user} {:?}", effect.numbers("segments"))],
            "text_lull" => vec!["text_lull".to_owned()],
            "settled" => vec![format!("settled {:?}", effect.numbers("messages"))],
            "voice_quiet" => {
                effect.texts("gates").iter().map(|gate| format!("quiet {gate} {:?}", effect.numbers("messages"))).collect()
            }
            "gate" => vec![format!("quiet {} {:?}", effect.text("companion"), effect.numbers("messages"))],
            "hand_over" => vec![hand_over_shown(effect)],
            _ => Vec::new(),
        };
        log.extend(lines.into_iter().map(|line| (effect.at(), line)));
    }
    log
}

fn hand_over_shown(effect: &Event) -> String {
    let messages = effect.list("messages").iter().filter_map(|message| serde_json::from_value::<Event>(message.clone()).ok());
    let messages: Vec<_> = messages
        .map(|message| {
            let number = |key: &str| message.number(key).unwrap_or_default();
            let (from, to) = (number("started"), number("ended"));
            format!(
                "{} {}: {} {from}-{to} {:?}",
                number("message"),
                message.text("user"),
                message.text("text"),
                message.numbers("segments")
            )
        })
        .collect();
    let cause = effect.text("cause");
    let endpoint = effect.get("endpoint");
    let for_whom = match endpoint["for"].as_str() {
        Some("all") if cause == "lull" => format!("{:?}", effect.texts("gates")),
        None | Some("all") => "-".to_owned(),
        Some(companion) => companion.to_owned(),
    };
    let text_lull = effect.is("text_lull").unwrap_or(false);
    format!(
        "hand_over {cause} endpoint {:?} for {for_whom} text lull {text_lull}: {}",
        endpoint["message"].as_u64(),
        messages.join(" | ")
    )
}
