//! Simulates the voice call of a channel: plays companions' replies, and reports people's speech meanwhile.

use super::mouth::{Player, Progress};
use super::replay_event::ReplayEventKind;
use super::run::{Arrival, Run};
use crate::domain::address::Incoming;
use crate::domain::conversation::{Aloud, Input, Notice};
use crate::domain::id::{PersonId, Ticket};
use crate::domain::message::Author;
use crate::domain::moment::Moment;
use crate::domain::voice::interruption::{self, Words};
use crate::domain::voice::segment::Kind;

impl Run<'_> {
    /// Classifies a person's words during a reply.
    pub(super) fn words(&self, from: &Author, text: &str, kind: Kind) -> Words {
        let addressed =
            self.address(&Incoming { sounds: Some(&self.sounds), is_spoken: true, ..Incoming::new(from, text) }).companions;
        let is_name = |name: &str| self.names.owner(name).or(self.sounds.owner(name)).is_some();
        Words::of(text, kind, addressed, self.script.settings.speech.word_lists(None), is_name)
    }

    /// Carries out an effect for a spoken reply.
    pub(super) fn speak(&mut self, channel: &str, ticket: Ticket, aloud: Aloud) {
        let now = self.now;
        let reply = self.channels.get(channel).and_then(|state| state.conversation.turns().owed_reply(ticket));
        let companion = reply.map(|floor| floor.companion.clone());
        let Some(state) = self.channels.get_mut(channel) else { return };
        match aloud {
            Aloud::Prepare { .. } | Aloud::Start { .. } => {}
            Aloud::Say { text, .. } => {
                if state.player.as_ref().is_none_or(|(of, _)| *of != ticket) {
                    let mouth = self.mouths.next_or_last(&self.script.mouths).cloned().unwrap_or_default();
                    state.player = Some((ticket, Player::new(mouth, self.script.settings.voice.stall_timeout())));
                }
                let Some((_, player)) = &mut state.player else { return };
                if player.say(text) {
                    let after = player.mouth().first_audio();
                    self.schedule_at(channel, now + after, Arrival::FirstAudio(ticket));
                }
            }
            Aloud::SaidAll => {
                if let Some((_, player)) = state.player.as_mut().filter(|(of, _)| *of == ticket) {
                    player.said_all();
                }
            }
            Aloud::Play(effect) => {
                let kind = match &effect {
                    interruption::Effect::Speak => companion.map(|companion| ReplayEventKind::Speak { companion }),
                    interruption::Effect::Duck => companion.map(|companion| ReplayEventKind::Duck { companion }),
                    interruption::Effect::Unduck => companion.map(|companion| ReplayEventKind::Unduck { companion }),
                    interruption::Effect::Pause => companion.map(|companion| ReplayEventKind::Yield { companion }),
                    interruption::Effect::Resume { from } => {
                        companion.map(|companion| ReplayEventKind::Resume { companion, from: *from })
                    }
                    _ => None,
                };
                let Some((_, player)) = state.player.as_mut().filter(|(of, _)| *of == ticket) else { return };
                let arrival = match effect {
                    interruption::Effect::Speak => {
                        player.play(None, now);
                        Some(Arrival::Playing(ticket))
                    }
                    interruption::Effect::Resume { from } => {
                        player.play(Some(from), now);
                        Some(Arrival::Playing(ticket))
                    }
                    interruption::Effect::Pause => Some(Arrival::Paused(ticket, player.pause(now))),
                    interruption::Effect::SentenceDropped { .. } => {
                        player.skip(now);
                        None
                    }
                    interruption::Effect::Ended(_) => {
                        state.player = None;
                        None
                    }
                    _ => None,
                };
                if let Some(arrival) = arrival {
                    self.schedule_at(channel, now, arrival);
                }
                if let Some(kind) = kind {
                    self.print(channel, kind);
                }
            }
        }
    }

    /// The first audio of a reply is available. A silent mouth finishes instead.
    pub(super) fn first_audio(&mut self, channel: &str, ticket: Ticket) {
        let Some((_, player)) =
            self.channels.get(channel).and_then(|state| state.player.as_ref()).filter(|(of, _)| *of == ticket)
        else {
            return;
        };
        let (sentences, is_silent) = (player.sentences().to_vec(), player.mouth().silent);
        for text in sentences {
            self.report_playback(channel, ticket, interruption::Input::Sentence { text, words: Vec::new() });
        }
        self.report_playback(
            channel,
            ticket,
            if is_silent { interruption::Input::Finished } else { interruption::Input::FirstAudio },
        );
    }

    /// Advances the playback of a reply.
    pub(super) fn play_on(&mut self, channel: &str, ticket: Ticket) {
        let now = self.now;
        let player = self.channels.get_mut(channel).and_then(|state| state.player.as_mut()).filter(|(of, _)| *of == ticket);
        let Some((_, player)) = player else { return };
        let (progress, next) = player.advance(now);
        for progress in progress {
            match progress {
                Progress::Plays(position) => self.report_playback(channel, ticket, interruption::Input::Played { position }),
                Progress::Sends(sentence, length) => {
                    self.report_playback(channel, ticket, interruption::Input::Audio { sentence, length });
                    self.report_playback(channel, ticket, interruption::Input::Whole { sentence });
                }
                Progress::Stalls => self.report_playback(channel, ticket, interruption::Input::Stall),
                Progress::Finishes => self.report_playback(channel, ticket, interruption::Input::Finished),
            }
        }
        // A pause or an end schedules its own arrival.
        let state = self.channels.get(channel).and_then(|state| state.player.as_ref());
        let plays = state.is_some_and(|(of, player)| *of == ticket && player.is_playing());
        if let Some(next) = next.filter(|_| plays && !self.is_scheduled(channel, ticket)) {
            self.schedule_at(channel, next, Arrival::Playing(ticket));
        }
    }

    fn report_playback(&mut self, channel: &str, ticket: Ticket, told: interruption::Input) {
        self.step(channel, Input::Voice(Notice::Reply { ticket, told }));
    }

    fn is_scheduled(&self, channel: &str, ticket: Ticket) -> bool {
        self.arrivals.iter().any(|(key, arrival)| key.2 == channel && matches!(arrival, Arrival::Playing(of) if *of == ticket))
    }

    /// During a spoken reply, people's voices are reported hop by hop.
    pub(super) fn follow_voices(&mut self, channel: &str) {
        let now = self.now;
        let Some(state) = self.channels.get_mut(channel) else { return };
        if state.conversation.voice().spoken_reply().is_none() {
            return state.voiced.clear();
        }
        let talking = state.speakers.iter().filter(|(_, (_, ended))| ended.is_none()).map(|(from, _)| from.clone());
        let new: Vec<_> = talking.filter(|from| !state.voiced.contains_key(from)).collect();
        state.voiced.extend(new.iter().map(|from| (from.clone(), now)));
        for from in new {
            self.schedule(channel, None, Arrival::Hop(from, now));
        }
    }

    /// A person has talked for one more hop.
    pub(super) fn hop(&mut self, channel: &str, from: String, since: Moment) {
        let now = self.now;
        let Some(state) = self.channels.get_mut(channel) else { return };
        if state.voiced.get(&from) != Some(&since) {
            return;
        }
        state.voiced.insert(from.clone(), now);
        self.schedule(channel, None, Arrival::Hop(from.clone(), now));
        self.step(channel, Input::Voice(Notice::Voiced { user: PersonId::from(from.as_str()), from: since, to: now }));
    }

    /// A person stops talking, which ends the last hop.
    pub(super) fn end_speech(&mut self, channel: &str, from: &str) {
        let now = self.now;
        let Some(state) = self.channels.get_mut(channel) else { return };
        if let Some((_, ended)) = state.speakers.get_mut(from) {
            ended.get_or_insert(now);
        }
        if let Some(since) = state.voiced.remove(from).filter(|since| *since < now) {
            self.step(channel, Input::Voice(Notice::Voiced { user: PersonId::from(from), from: since, to: now }));
        }
    }

    fn schedule_at(&mut self, channel: &str, at: Moment, arrival: Arrival) {
        self.schedule_after(channel, at.since(self.now), None, arrival);
    }
}
