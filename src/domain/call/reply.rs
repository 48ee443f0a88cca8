//! The companions' replies in a call: prepares and plays a reply, and reports how far it was heard.

use std::collections::BTreeMap;
use std::time::Duration;

use super::playback::{FRAME, Piece, Playback};
use super::{Aloud, Notice};
use super::{CallEffect, CallState, Effect, Input, Trouble, View, World, show};
use crate::id::{CompanionId, Ticket};
use crate::moment::Moment;
use crate::voice::interruption::{self, Outcome};
use crate::voice::pronounced::Pronounced;

/// How often to check for late audio while nothing plays.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The reply in progress, and the time span of the newest reply.
#[derive(Debug, Default)]
pub(super) struct Replying {
    reply: Option<Reply>,
    /// The number of replies so far.
    count: u64,
    since: Moment,
    until: Moment,
    /// Whether the channel knows that this call has started. Commands from before that are ignored.
    is_known: bool,
}

#[derive(Debug)]
struct Reply {
    /// Distinguishes the audio of this reply from that of another.
    number: u64,
    playback: Playback,
    /// Whether the guild has used up today's allowance of speech synthesis. It is decided before a reply, so that no reply ends in the middle.
    is_used_up: bool,
    is_ducked: bool,
    positions: BTreeMap<u64, Duration>,
}

/// The number by which the pages know a reply.
pub(super) const fn number(ticket: Ticket) -> u32 {
    ticket.0 as u32
}

impl Replying {
    /// Drops the reply of a predecessor: its playback is lost.
    pub(super) fn restart(&mut self, at: Moment) {
        if self.reply.take().is_some() {
            self.until = at;
        }
        self.is_known = false;
    }

    pub(super) fn ticket(&self) -> Option<Ticket> {
        self.reply.as_ref().map(|reply| reply.playback.ticket)
    }

    /// The views that show the reply in progress to a new connection.
    pub(super) fn going_on(&self) -> Vec<View> {
        let Some(Reply { playback, is_ducked, .. }) = &self.reply else { return Vec::new() };
        let (companion, reply) = (playback.companion.clone(), number(playback.ticket));
        if !playback.has_begun() {
            return vec![View::Thinking(companion, true)];
        }
        let mut views = vec![View::Speaking { companion, reply, from: playback.position() }];
        views.extend(is_ducked.then_some(View::Duck(reply, true)));
        views.extend((!playback.is_playing()).then_some(View::Flush(reply)));
        views
    }

    fn of(&mut self, number: u64) -> Option<&mut Reply> {
        self.reply.as_mut().filter(|reply| reply.number == number)
    }
}

impl CallState {
    /// The reply in preparation or playback.
    pub fn reply(&self) -> Option<Ticket> {
        self.replying.ticket()
    }

    /// Whether speech that began at `at` was said during a reply.
    pub fn was_replying(&self, at: Moment) -> bool {
        at >= self.replying.since && (self.replying.reply.is_some() || at <= self.replying.until)
    }

    /// How much of a sentence of this reply was played, in samples.
    pub fn played_of(&self, reply: u64, sentence: usize) -> usize {
        let playing = self.replying.reply.as_ref().filter(|playing| playing.number == reply);
        playing.map_or(0, |playing| playing.playback.played_of(sentence))
    }

    pub(super) fn carry_out(&mut self, effect: CallEffect, world: &World<'_>, out: &mut Vec<Effect>) {
        match effect {
            CallEffect::Finalize { user } => out.push(Effect::Finalize(user)),
            CallEffect::CountsAsNoise { user } => out.push(show(View::Noise(user))),
            CallEffect::Restarted { .. } => {
                self.replying.is_known = true;
                self.end_reply(&Outcome::Cancelled, world, out);
                self.people.keys().for_each(|user| self.report_opt_out(user, world, out));
                let is_silenced = self.player.is_some_and(|(_, is_silenced)| is_silenced);
                out.push(Effect::Notice(Notice::Silenced(is_silenced)));
            }
            CallEffect::Reply { .. } if !self.replying.is_known => {}
            CallEffect::Reply { ticket, aloud, .. } => self.carry_out_for_reply(ticket, aloud, world, out),
        }
    }

    fn carry_out_for_reply(&mut self, ticket: Ticket, aloud: Aloud, world: &World<'_>, out: &mut Vec<Effect>) {
        let before = self.replying.reply.as_ref().map(|before| &before.playback);
        match (&aloud, before) {
            (Aloud::Prepare { companion }, _) => return self.prepare(companion.clone(), ticket, world, out),
            // The reply is generated again with the words that people have said since.
            (Aloud::Say { .. }, Some(before)) if before.ticket != ticket => {
                self.prepare(before.companion.clone(), ticket, world, out);
            }
            _ => {}
        }
        let Some(reply) = self.replying.reply.as_mut().filter(|reply| reply.playback.ticket == ticket) else {
            if let Aloud::Play(interruption::Effect::Ended(_)) = aloud {
                // A predecessor played the reply, and the pages still show it.
                out.push(show(View::Cut { reply: number(ticket), heard: "".into() }));
            }
            return;
        };
        let (playback, reply_number) = (&mut reply.playback, number(ticket));
        match aloud {
            Aloud::Prepare { .. } => {}
            Aloud::Say { text, .. } => playback.add_sentence(text),
            Aloud::SaidAll => playback.end_text(),
            Aloud::Start { sentence } => playback.allow(sentence),
            Aloud::Play(effect) => match effect {
                // The reply was resumed, and so began, before its beginning was journaled.
                interruption::Effect::Speak if playback.has_begun() => {}
                interruption::Effect::Speak => {
                    playback.play(world.now);
                    let companion = playback.companion.clone();
                    out.push(show(View::Speaking { companion, reply: reply_number, from: Duration::ZERO }));
                    // The reply was ducked while its beginning was being journaled.
                    out.extend(reply.is_ducked.then(|| show(View::Duck(reply_number, true))));
                    out.push(Effect::After(Duration::ZERO, Input::Tick));
                }
                interruption::Effect::Duck | interruption::Effect::Unduck => {
                    reply.is_ducked = effect == interruption::Effect::Duck;
                    let onset = self.onset.filter(|_| reply.is_ducked);
                    out.extend(onset.map(|onset| Effect::Ducked(world.now.saturating_sub(onset))));
                    out.push(show(View::Duck(reply_number, reply.is_ducked)));
                }
                // The reply was paused while its beginning was being journaled. It begins when it is resumed.
                interruption::Effect::Pause if !playback.has_begun() => {}
                interruption::Effect::Pause => {
                    playback.pause();
                    out.push(show(View::Flush(reply_number)));
                }
                interruption::Effect::Resume { from } => {
                    let has_begun = playback.has_begun();
                    let from = playback.resume(from, world.now);
                    reply.is_ducked = false;
                    out.push(show(match has_begun {
                        true => View::Resume(reply_number, from),
                        false => View::Speaking { companion: playback.companion.clone(), reply: reply_number, from },
                    }));
                    out.push(Effect::After(Duration::ZERO, Input::Tick));
                }
                interruption::Effect::SentenceDropped { sentence } => {
                    let has_failed = playback.fail_sentence(sentence);
                    playback.drop_rest(sentence);
                    self.voices_fail |= has_failed;
                    out.extend(has_failed.then(|| show(View::Trouble(Trouble::SynthesisFailed))));
                    out.push(Effect::GiveUpAudio { reply: reply.number, sentence });
                }
                interruption::Effect::Ended(outcome) => return self.end_reply(&outcome, world, out),
                // The conversation carries these out itself.
                interruption::Effect::Finalize { .. } | interruption::Effect::Extend | interruption::Effect::Interrupted(_) => {}
            },
        }
        self.play(world, out);
    }

    fn prepare(&mut self, companion: CompanionId, ticket: Ticket, world: &World<'_>, out: &mut Vec<Effect>) {
        self.end_reply(&Outcome::Cancelled, world, out);
        let is_used_up = (world.is_used_up)(&companion);
        out.extend(is_used_up.then(|| show(View::Trouble(Trouble::SynthesisUsedUp))));
        let playback = Playback::new(companion.clone(), ticket, world.patience);
        self.replying.count += 1;
        let number = self.replying.count;
        self.replying.reply = Some(Reply { number, playback, is_used_up, is_ducked: false, positions: BTreeMap::new() });
        self.replying.since = world.at;
        out.extend([show(View::Thinking(companion, true)), Effect::After(LOOK_EVERY, Input::Tick)]);
    }

    fn end_reply(&mut self, outcome: &Outcome, world: &World<'_>, out: &mut Vec<Effect>) {
        let Some(Reply { playback, .. }) = self.replying.reply.take() else { return };
        self.replying.until = world.at;
        let reply = number(playback.ticket);
        out.push(Effect::DropAudio);
        out.push(show(match (outcome, playback.has_begun()) {
            (Outcome::Done, true) => View::Done(reply),
            (_, true) => View::Cut { reply, heard: playback.heard().into() },
            (_, false) => View::Thinking(playback.companion, false),
        }));
    }

    pub(super) fn add_audio(
        &mut self,
        number: u64,
        sentence: usize,
        piece: Option<Piece>,
        world: &World<'_>,
        out: &mut Vec<Effect>,
    ) {
        let Some(reply) = self.replying.of(number) else { return };
        self.voices_fail &= !matches!(piece, Some(Piece::Audio(_)));
        reply.playback.add_piece(sentence, piece, world.now);
        self.play(world, out);
    }

    pub(super) fn fail_audio(&mut self, number: u64, sentence: usize, world: &World<'_>, out: &mut Vec<Effect>) {
        let Some(reply) = self.replying.of(number) else { return };
        if reply.playback.fail_sentence(sentence) {
            self.voices_fail = true;
            out.push(show(View::Trouble(Trouble::SynthesisFailed)));
        }
        self.play(world, out);
    }

    pub(super) fn tick(&mut self, world: &World<'_>, out: &mut Vec<Effect>) {
        self.play(world, out);
        let Some(reply) = &self.replying.reply else { return };
        // Packets are sent by the clock, so that the delays of timers do not add up.
        let after = match reply.playback.due().map(|due| due.saturating_sub(world.now)) {
            Some(Duration::ZERO) => FRAME,
            Some(wait) => wait,
            None => LOOK_EVERY,
        };
        out.push(Effect::After(after, Input::Tick));
    }

    /// Records the playback position of a connection. Of all positions the smallest one counts; if people talk, only the positions of their
    /// connections count.
    pub(super) fn played_at(
        &mut self,
        line: u64,
        reply_number: u32,
        position: Duration,
        world: &World<'_>,
        out: &mut Vec<Effect>,
    ) {
        let plays = |line: &u64| self.lines.contains_key(line) || self.player.is_some_and(|(speaker, _)| speaker == *line);
        let person = |line: &u64| self.lines.get(line).and_then(|connected| self.people.get(&connected.user));
        let talks = |line: &u64| person(line).is_some_and(|person| person.talks && !person.has_left());
        let reply = self.replying.reply.as_mut().filter(|reply| number(reply.playback.ticket) == reply_number);
        let Some(Reply { playback, positions, .. }) = reply else { return };
        positions.insert(line, position);
        positions.retain(|line, _| plays(line));
        let of_talker = positions.iter().filter(|(line, _)| talks(line)).map(|(_, position)| *position).min();
        let Some(position) = of_talker.or_else(|| positions.values().min().copied()) else { return };
        let (position, words) = playback.heard_up_to(position);
        self.played.add(world.at, &words);
        let told = interruption::Input::Played { position };
        out.push(Effect::Notice(Notice::Reply { ticket: playback.ticket, told }));
    }

    /// Requests audio that is needed soon, reports the progress to the channel, and plays the packets that are due.
    fn play(&mut self, world: &World<'_>, out: &mut Vec<Effect>) {
        let Some(reply) = &mut self.replying.reply else { return };
        let (playback, now) = (&mut reply.playback, world.now);
        let (ticket, companion) = (playback.ticket, playback.companion.clone());
        let mut new = playback.next_sentences(now);
        while !new.is_empty() {
            for (sentence, text) in new {
                // Nothing to speak, such as a stage direction at the end.
                if !Pronounced::plain(&text).text.chars().any(char::is_alphanumeric) {
                    playback.add_piece(sentence, None, now);
                } else if reply.is_used_up {
                    // The reply is posted as text instead.
                    playback.fail_sentence(sentence);
                } else {
                    out.push(Effect::Synthesise { reply: reply.number, ticket, companion: companion.clone(), sentence, text });
                }
            }
            new = playback.next_sentences(now);
        }
        out.extend(playback.progress(now).into_iter().map(|told| Effect::Notice(Notice::Reply { ticket, told })));
        for next in playback.packets(now) {
            if next.number == 0 {
                out.extend(self.offset.take().map(|offset| Effect::Answered(now.saturating_sub(offset))));
            }
            if let Some((from, text)) = &next.begins {
                out.push(show(View::Sentence { reply: number(ticket), from: *from, text: text.clone() }));
            }
            out.push(Effect::Play(number(ticket), next));
        }
    }
}
