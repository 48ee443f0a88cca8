//! What people in calls do, and the platform that connects them.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::super::dice::Dice;
use super::super::life::{Life, Props};
use super::super::stage::lock;
use super::{CallAct, FinalResult, HOP, Talk};
use crate::actors::inbound::Inbound;
use crate::domain::conversation::Notice;
use crate::domain::id::{ChannelId, PersonId};
use crate::domain::message::Standing;
use crate::domain::voice::echo::PlayedWords;
use crate::domain::voice::interruption::{self, Said, Stop, Words};
use crate::domain::voice::utterance;
use crate::journeys::mouth::{self, Voice};
use crate::ports::inbound_events::Acceptance;
use crate::ports::speech_recognition::Segment;
use crate::ports::voice_call::fake::FakeCalls;
use crate::ports::voice_call::{CallEffect, CallEvents, InboundSegment};
use crate::samples;

/// The pause before the same report is made again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
/// How long somebody who wants to talk into a reply waits for one.
const LONGEST_WAIT: Duration = Duration::from_secs(12);

/// The platform of the calls in one life of the process.
pub(in super::super) fn begin(props: &Arc<Props>) -> (Arc<FakeCalls>, mpsc::UnboundedReceiver<(ChannelId, CallEffect)>) {
    let calls = Arc::new(FakeCalls::default());
    let (player, effects) = mpsc::unbounded_channel();
    calls.play_by(player);
    // A reply that was playing ended with the process.
    lock(&props.calls.ledger).active.clear();
    (calls, effects)
}

impl Life {
    /// Plays what companions say, and reports opt-outs again to restarted channels.
    pub(in super::super) fn connect_calls(&self, mut effects: mpsc::UnboundedReceiver<(ChannelId, CallEffect)>) {
        // A channel that has restarted does not know who has opted out.
        let (player, played) = mpsc::unbounded_channel();
        let life = self.clone();
        tokio::spawn(async move {
            while let Some((channel, effect)) = effects.recv().await {
                match &effect {
                    CallEffect::Restarted { .. } => life.name_opted_out(&channel),
                    CallEffect::CountsAsNoise { .. } => life.props.stage.reach("voice counts as noise"),
                    CallEffect::Finalize { .. } | CallEffect::Reply { .. } => {}
                }
                drop(player.send((channel, effect)));
            }
        });
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
        tokio::spawn(mouth::play(played, self.props.calls.ledger.clone(), voice, tell));
    }

    fn name_opted_out(&self, channel: &ChannelId) {
        let opted_out = lock(&self.props.calls.opted_out).clone();
        for (room, person) in opted_out.into_iter().filter(|(room, _)| self.room(*room).channel() == *channel) {
            self.notice(room, Notice::Call(utterance::Input::OptedOut { user: person.into() }));
        }
    }

    /// Reports again who is in the calls, and the final results that were being reported, after a restart.
    pub(in super::super) fn rejoin_calls(&self) {
        let unreported = lock(&self.props.calls.unreported).clone();
        for ((room, number), segment) in unreported {
            self.props.stage.reach("final result reported after a restart");
            let life = self.clone();
            tokio::spawn(async move { life.report_final(room, number, segment).await });
        }
        let present = lock(&self.props.calls.present).clone();
        for (room, person) in present.into_keys() {
            let life = self.clone();
            tokio::spawn(async move { life.report_presence(room, person).await });
        }
    }

    /// Everybody leaves the calls.
    pub(in super::super) async fn end_calls(&self) {
        let present = lock(&self.props.calls.present).clone();
        for ((room, person), _) in present.into_iter().filter(|(_, is_present)| *is_present) {
            lock(&self.props.calls.present).insert((room, person), false);
            self.report_presence(room, person).await;
        }
    }

    /// Reports whether somebody is in the call, one report at a time.
    async fn report_presence(&self, room: usize, person: &'static str) {
        let (inbound, calls) = (Inbound::new(self.context.clone()), &self.props.calls);
        let (channel_ref, from, report) =
            (self.channel_ref(room), samples::person(person), (self.props.stage.life(), room, person));
        if !lock(&calls.reporting).insert(report) {
            return;
        }
        let present = || lock(&calls.present).get(&(room, person)).copied().unwrap_or_default();
        let is_present = loop {
            self.note_activity(room);
            let is_present = present();
            let outcome = match is_present {
                true => inbound.joined(&channel_ref, from.clone()).await,
                false => inbound.left(&channel_ref, from.clone()).await,
            };
            // A person who has left meanwhile, or is back, is reported again.
            match outcome {
                Ok(_) if is_present == present() => break is_present,
                Ok(_) => {}
                Err(_) => self.props.stage.pass(AGAIN_AFTER).await,
            }
        };
        lock(&calls.reporting).remove(&report);
        self.note_activity(room);
        if is_present && lock(&self.props.calls.opted_out).contains(&(room, person)) {
            self.notice(room, Notice::Call(utterance::Input::OptedOut { user: person.into() }));
        }
    }

    pub(in super::super) async fn act_in_call(&self, room: usize, what: CallAct) {
        let (stage, calls) = (&self.props.stage, &self.props.calls);
        match what {
            // Nobody joins once faults are over, because everybody leaves then.
            CallAct::Join(_) if stage.now() >= stage.plan.calm_at => {}
            CallAct::Join(person) => {
                lock(&calls.present).insert((room, person), true);
                self.report_presence(room, person).await;
            }
            CallAct::Leave(person) => {
                stage.reach("left a call");
                lock(&calls.present).insert((room, person), false);
                self.report_presence(room, person).await;
            }
            CallAct::Mute(person) => {
                stage.reach("muted in a call");
                self.notice(room, Notice::Call(utterance::Input::Muted { user: person.into() }));
            }
            CallAct::LoseSocket(person) => {
                stage.reach("socket lost in a call");
                self.notice(room, Notice::Call(utterance::Input::SocketLost { user: person.into() }));
            }
            CallAct::OptOut(person) => {
                stage.reach("opted out of a call");
                lock(&calls.opted_out).insert((room, person));
                lock(&calls.opted_out_at).entry((room, person)).or_insert(stage.now());
                self.notice(room, Notice::Call(utterance::Input::OptedOut { user: person.into() }));
            }
            CallAct::Stop => {
                let ticket = lock(&calls.ledger).active.get(&self.room(room).channel()).copied();
                if let Some(ticket) = ticket {
                    stage.reach("stop pressed");
                    self.notice(room, Notice::Reply { ticket, told: interruption::Input::StopPressed });
                }
            }
            CallAct::Talk(talk) => self.talk(room, talk).await,
        }
    }

    fn notice(&self, room: usize, notice: Notice) {
        self.note_activity(room);
        Inbound::new(self.context.clone()).noticed(&self.room(room).channel(), notice);
    }

    /// Notes that a talk with a stop word may stop a reply from now on.
    fn note_stop(&self, room: usize, talk: &Talk) {
        if talk.stop {
            let now = self.props.stage.now();
            lock(&self.props.calls.stops).push((room, now));
        }
    }

    fn note_activity(&self, room: usize) {
        let now = self.props.stage.now();
        lock(&self.props.calls.activity).push((room, now));
    }

    /// Whether a person is in the call and has not opted out.
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
        let channel = self.room(room).channel();
        if talk.is_into_reply {
            self.await_reply(&channel).await;
        }
        if !self.is_heard(room, person) {
            return;
        }
        let started = clock.now();
        let is_during_reply = lock(&self.props.calls.ledger).active.contains_key(&channel);
        self.notice(room, Notice::Call(utterance::Input::Started { user: user.clone(), started }));
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
                self.note_stop(room, &talk);
                self.notice(room, Notice::Partial { user: user.clone(), started, words });
            }
        }
        self.notice(room, Notice::Call(utterance::Input::Ended { user: user.clone(), ended }));
        stage.pass(talk.late_by).await;
        self.note_activity(room);
        if lock(&self.props.calls.opted_out).contains(&(room, person)) && !talk.outlives_opt_out {
            return;
        }
        let (text, played) = match talk.is_echo.then(|| self.played_lately(&channel)).flatten() {
            Some((text, played)) => (text, played),
            None => (talk.text.as_str().into(), PlayedWords::default()),
        };
        self.note_stop(room, &talk);
        match talk.result {
            FinalResult::Never => stage.reach("final result never comes"),
            FinalResult::Empty => {
                stage.reach("empty final result");
                self.notice(room, Notice::Call(utterance::Input::Final { user, is_last: true, segment: None }));
            }
            FinalResult::Comes | FinalResult::ComesTwice => {
                let segment = Segment {
                    id: format!("call-{}", talk.number).into(),
                    text,
                    is_verbatim: true,
                    started,
                    ended,
                    voiced: Some(HOP * talk.hops),
                    no_speech: talk.is_no_speech.then_some(0.9),
                    confidence: Some(900),
                    is_last: true,
                    is_answer: true,
                };
                let (from, provider) = (samples::person(person), "rehearsal".into());
                let segment = InboundSegment { segment, from, standing: Standing::Free, provider, is_during_reply, played };
                self.report_final(room, talk.number, segment.clone()).await;
                if talk.result == FinalResult::ComesTwice {
                    stage.reach("final result comes twice");
                    self.report_final(room, talk.number, segment).await;
                }
            }
        }
    }

    /// Waits until a reply plays, but not for ever.
    async fn await_reply(&self, channel: &ChannelId) {
        let plays = || {
            let ledger = lock(&self.props.calls.ledger);
            let active = ledger.active.get(channel).and_then(|ticket| ledger.performance(channel, *ticket));
            active.is_some_and(|performance| !performance.played.is_zero())
        };
        let waits_until = self.props.stage.now() + LONGEST_WAIT;
        while !plays() && self.props.stage.now() < waits_until {
            self.props.stage.pass(HOP).await;
        }
    }

    /// The first sentence of the reply that plays, if any of it was played.
    fn played_lately(&self, channel: &ChannelId) -> Option<(Arc<str>, PlayedWords)> {
        let ledger = lock(&self.props.calls.ledger);
        let performance = ledger.performance(channel, *ledger.active.get(channel)?)?;
        let first = performance.sentences.first().filter(|_| !performance.played.is_zero())?;
        let mut played = PlayedWords::default();
        played.add(self.context.clock.now(), first);
        Some((first.trim().into(), played))
    }

    /// Reports a final result until its outcome is known. A second report with the same id must give the same number.
    async fn report_final(&self, room: usize, number: usize, segment: InboundSegment) {
        let (stage, calls) = (&self.props.stage, &self.props.calls);
        let text = segment.segment.text.clone();
        lock(&calls.unreported).insert((room, number), segment.clone());
        let seq = loop {
            self.note_activity(room);
            let outcome = Inbound::new(self.context.clone()).heard(&self.channel_ref(room), segment.clone()).await;
            self.note_activity(room);
            match outcome {
                Ok(Acceptance::New(seq) | Acceptance::Duplicate(seq)) => break Some(seq),
                Ok(_) => break None,
                Err(_) => stage.pass(AGAIN_AFTER).await,
            }
        };
        lock(&calls.unreported).remove(&(room, number));
        let Some(seq) = seq else { return };
        let first = lock(&calls.accepted).insert((room, number), (seq, text)).filter(|(first, _)| *first != seq);
        if let Some((first, _)) = first {
            stage.violate(format!("what was said in a call as {number} is {first} and {seq}"));
        }
    }
}
