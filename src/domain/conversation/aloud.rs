//! Spoken replies and speech of people during their preparation and playback (docs/design/voice.md ).
//!
//! We journal that a sentence is about to play, and how much of it was heard. All other state is not journaled ([`LiveReply`]). After a restart, a
//! reply that was partly heard ends there. Any other reply is generated again.

use super::super::id::PersonId;
use super::super::message::{Modality, Role};
use super::super::settlement::are_all_deleted;
use super::super::voice::interruption::{self, Outcome, Said, SpokenReply, Words, tolerance};
use super::super::voice::pronounced::Pronounced;
use super::super::voice::spoken_sentences::SpokenSentences;
use super::super::voice::utterance;
use super::step::Due;
use super::voice::LiveCall;
use super::*;
use crate::event::Segment;
use crate::message::Cut;

/// The error code of a spoken reply that was stopped before anything was heard.
pub const INTERRUPTED: &str = "interrupted";
/// The error code of a spoken reply for which no audio was produced.
pub const UNVOICED: &str = "unvoiced";
/// The time for the first audio, in addition to the time limit of the main model (docs/design/voice.md A-24).
const AUDIO_AFTER_ANSWER: Duration = Duration::from_secs(5);

/// How a spoken statement ended: its unspoken rest, and its cut.
#[derive(Clone, Debug, PartialEq)]
pub struct SpokenStatement {
    /// The rest that is posted as text after the spoken words, because the statement is longer than `voice.max_spoken_chars` or its end could not be
    /// spoken.
    pub rest: Option<Arc<str>>,
    /// The cut. None if the statement was not cut.
    pub cut: Option<Box<Cut>>,
}

#[derive(Clone, Debug)]
pub(super) struct LiveReply {
    pub(super) ticket: Ticket,
    companion: CompanionId,
    pub(super) machine: SpokenReply,
    /// The whole text. None while the model is writing.
    text: Option<Arc<str>>,
    /// The sentences so far that are to be spoken. Speech synthesis was requested for each.
    pub(super) sentences: Vec<Arc<str>>,
    /// Text that is posted and not spoken, because the reply is too long or could no longer be spoken when the text arrived.
    rest: String,
    /// All sentences have arrived.
    is_all: bool,
    /// The model's answer was lost: the text will never be complete.
    is_lost: bool,
    /// For each sentence whose start is journaled: the number of characters that are journaled as heard.
    started: Vec<u32>,
    /// The end of the turn delay.
    speaks_from: Moment,
    has_audio: bool,
    /// Audio arrived before the end of the turn delay.
    awaits_delay: bool,
    /// Playback reports that arrived before the first frame. They are handled once playback starts.
    early: Vec<interruption::Input>,
    /// The reply that this one extends.
    replaced: Option<Ticket>,
    /// Buffered segments are being handed over, and then the reply starts again. Until then, playback reports belong to the stopped attempt and are
    /// ignored.
    is_extending: bool,
}

impl LiveReply {
    /// The next deadline, including the end of the turn delay if audio waits for it.
    fn deadline(&self) -> Option<Moment> {
        let early = (self.has_audio && self.awaits_delay).then_some(self.speaks_from);
        let machine = self.machine.deadline().map(|deadline| deadline.at);
        early.into_iter().chain(machine).min()
    }

    /// The text so far.
    fn full(&self) -> String {
        self.sentences.iter().map(|sentence| &**sentence).chain([&*self.rest]).collect()
    }

    /// The part of the text that was not heard.
    fn unheard(&self) -> String {
        let script = self.machine.script();
        let untold = self.sentences.iter().skip(script.progress().count()).map(|sentence| &**sentence);
        [script.unheard_end()].iter().map(String::as_str).chain(untold).chain([&*self.rest]).collect()
    }

    /// Whether playback has ended and the rest of the text is to be posted once the model has written it.
    pub(super) fn awaits_rest(&self) -> bool {
        self.machine.outcome() == Some(&Outcome::RestInWriting)
    }
}

impl LiveCall {
    pub(super) fn reply_deadline(&self) -> Option<Moment> {
        self.reply.as_ref().and_then(|reply| reply.deadline())
    }
}

impl Conversation {
    /// Cancels the playback of a reply that is not owed any more.
    pub(super) fn drop_orphaned_reply(&mut self, out: &mut Vec<Output>) {
        let Some(ticket) = self.voice.spoken_reply() else { return };
        if self.turns.floor.as_ref().is_none_or(|floor| floor.ticket != ticket)
            && let Some(call) = self.voice.live.call_mut()
        {
            call.reply = None;
            out.push(in_call(ticket, Aloud::Play(interruption::Effect::Ended(Outcome::Cancelled))));
        }
    }
}

impl Step<'_, '_> {
    /// Extends the waits of a spoken reply by the duration of a call of a tool.
    pub(super) fn extend_words(&mut self, ticket: Ticket, span: Duration) {
        let reply = self.state.voice.live.call_mut().and_then(|call| call.reply.as_mut());
        if let Some(reply) = reply.filter(|reply| reply.ticket == ticket) {
            reply.machine.extend_waits(span);
        }
    }

    /// The modality of a reply to this message. The reply is spoken if the message was spoken or `read_text_aloud` is set, and if people in the call
    /// can hear it.
    pub(super) fn modality_of_reply(&self, message: Option<Seq>) -> Modality {
        let is_spoken = message.is_some_and(|message| self.state.window.is_spoken(message));
        let is_heard = self.state.voice.call.is_connected() && !self.state.voice.live.call().is_some_and(|call| call.is_silenced);
        match is_heard && (is_spoken || self.world.rules.voice.read_text_aloud) {
            true => Modality::Voice,
            false => Modality::Text,
        }
    }

    /// Starts the preparation of a spoken reply, after its companion got the floor. From now on, people who talk delay its playback.
    pub(super) fn begin_aloud(&mut self, delay: Duration) {
        let Some(floor) = self.state.turns.floor.as_deref().filter(|floor| floor.modality == Modality::Voice) else { return };
        let Some(policy) = self.world.policies.get(&floor.companion) else { return };
        let mood = self.state.gates.get(&floor.companion).map_or(0.0, |gate| gate.mood);
        let tolerance = tolerance::probability(policy.level, mood, floor.trigger.is_unsolicited());
        let (companion, ticket, now) = (floor.companion.clone(), floor.ticket, self.state.position.clock);
        let prepare = Aloud::Prepare { companion: companion.clone() };
        let is_extended = floor.replans > 0;
        let Some(call) = self.state.voice.live.call_mut() else { return };
        let talkers: Vec<_> = call.utterances.talkers().cloned().collect();
        let answer_timeout = self.world.rules.answer_timeout + AUDIO_AFTER_ANSWER;
        let machine = SpokenReply::new(companion.clone(), tolerance, answer_timeout, call.played.clone(), talkers, now);
        let machine = if is_extended { machine.extended_before() } else { machine };
        call.reply = Some(Box::new(LiveReply {
            ticket,
            companion,
            machine,
            text: None,
            sentences: Vec::new(),
            rest: String::new(),
            is_all: false,
            is_lost: false,
            started: Vec::new(),
            speaks_from: now + delay,
            has_audio: false,
            awaits_delay: false,
            early: Vec::new(),
            replaced: None,
            is_extending: false,
        }));
        self.out.push(in_call(ticket, prepare));
    }

    /// Whether a reply is being prepared or played aloud, or will be once the call is restored after a restart.
    pub(super) fn is_aloud(&self, reply: &OwedReply) -> bool {
        let will_be = self.catches_up && !reply.modality.is_text() && self.state.voice.call.is_connected();
        will_be || self.state.voice.is_aloud(reply.ticket)
    }

    /// After a restart: closes a reply that was partly heard as cut. Prepares any other one again. It becomes text if the call has ended.
    pub(super) fn resume_aloud(&mut self) {
        self.close_heard_reply();
        if self.reply_to_be_spoken().is_some() && self.state.voice.call.is_connected() {
            self.begin_aloud(Duration::ZERO);
        }
    }

    /// After a restart: posts the heard part of a spoken reply as its statement.
    pub(super) fn close_heard_reply(&mut self) {
        let Some(floor) = self.reply_to_be_spoken().filter(|floor| !floor.heard().trim().is_empty()) else { return };
        let (ticket, heard) = (floor.ticket, floor.heard());
        let full: String = floor.sentences.iter().map(|one| &*one.text).collect();
        let cut = (heard != full).then_some((full, None));
        self.conclude_spoken(ticket, heard, cut, None);
    }

    fn reply_to_be_spoken(&self) -> Option<&OwedReply> {
        self.state.turns.floor.as_deref().filter(|floor| floor.modality == Modality::Voice && !floor.is_posting)
    }

    /// Handles a written sentence of a spoken reply: requests its audio, unless the reply is too long. A reply that has ended, or that starts again,
    /// ignores the sentence.
    pub(super) fn speak_sentence(&mut self, ticket: Ticket, text: Arc<str>) {
        let Some(reply) = self.state.voice.live.reply_mut().filter(|reply| reply.ticket == ticket) else { return };
        if reply.is_extending || reply.is_all {
            return;
        }
        let spoken_chars = |text: &Arc<str>| Pronounced::plain(text).text.chars().count();
        let length = reply.sentences.iter().chain([&text]).map(spoken_chars).sum::<usize>();
        let is_too_long = !reply.sentences.is_empty() && length > self.world.rules.voice.max_spoken_chars;
        if !reply.rest.is_empty() || is_too_long || reply.awaits_rest() {
            return reply.rest.push_str(&text);
        }
        self.out.push(in_call(ticket, Aloud::Say { sentence: reply.sentences.len(), text: text.clone() }));
        reply.sentences.push(text);
    }

    /// Handles the complete text of a spoken reply. Requests the audio of its sentences, unless they arrived one by one. Returns the text if the
    /// reply is not spoken, so that it is posted.
    pub(super) fn speak(&mut self, ticket: Ticket, text: Arc<str>) -> Option<Arc<str>> {
        let Some(reply) = self.state.voice.live.reply_mut().filter(|reply| reply.ticket == ticket) else { return Some(text) };
        if reply.is_extending || reply.is_all {
            return None;
        }
        if reply.sentences.is_empty() {
            for sentence in SpokenSentences::of(&text) {
                self.speak_sentence(ticket, sentence);
            }
        }
        let reply = self.state.voice.live.reply_mut()?;
        (reply.text, reply.is_all) = (Some(text), true);
        self.out.push(in_call(ticket, Aloud::SaidAll));
        self.post_rest();
        None
    }

    /// Handles the loss of the model's answer. A reply that starts again anyway ignores the loss. A reply with sentences ends after them. Returns
    /// whether the loss was handled, so that the reply does not fail.
    pub(super) fn end_lost_answer(&mut self, ticket: Ticket) -> bool {
        let Some(reply) = self.state.voice.live.reply_mut().filter(|reply| reply.ticket == ticket) else { return false };
        reply.is_lost = true;
        if reply.is_extending || reply.machine.will_extend() {
            return true;
        }
        let was_said = !reply.sentences.is_empty();
        if was_said && !reply.is_all {
            reply.is_all = true;
            self.out.push(in_call(ticket, Aloud::SaidAll));
            self.post_rest();
        }
        was_said
    }

    /// Handles a change in the call that is not journaled.
    pub(super) fn handle_notice(&mut self, notice: Notice) {
        match notice {
            Notice::Call(heard) => self.handle_call_input(heard),
            Notice::Voiced { user, .. } | Notice::Partial { user, .. } if !self.state.voice.hears(&user) => {}
            Notice::Voiced { user, from, to } => self.tell_reply(interruption::Input::Voiced { user, from, to }),
            Notice::Partial { user, started, words } => {
                let words = self.state.gates.to_those_present(words);
                self.tell_reply(interruption::Input::Words { user: user.clone(), started, is_final: false, words });
                self.handle_call_input(utterance::Input::Partial { user });
            }
            Notice::Reply { ticket, told } => self.handle_playback(ticket, told),
            Notice::Silenced(is_silenced) => self.silence_call(is_silenced),
            Notice::PlayerRestarted => self.begin_playback_anew(),
        }
    }

    /// Handles that the companions can no longer be heard in the call, or can be heard again.
    fn silence_call(&mut self, is_silenced: bool) {
        if is_silenced || self.state.voice.live.call().is_some() {
            self.state.voice.live.call_or_default().is_silenced = is_silenced;
        }
        // A reply that is being extended becomes text after the extension.
        let reply = self.state.voice.live.reply_mut().filter(|reply| is_silenced && !reply.is_extending);
        if reply.is_some() {
            self.tell_reply(interruption::Input::Silenced);
        }
    }

    /// Handles a restart of the player, which loses all audio. A reply that is being prepared starts again with its first sentence.
    fn begin_playback_anew(&mut self) {
        let Some(reply) = self.state.voice.live.reply_mut() else { return };
        reply.early.clear();
        (reply.has_audio, reply.awaits_delay) = (false, false);
        self.tell_reply(interruption::Input::PlayerRestarted);
        let Some(reply) = self.state.voice.live.reply_mut().filter(|reply| reply.machine.is_preparing()) else { return };
        let ticket = reply.ticket;
        let mut tell = |aloud| self.out.push(in_call(ticket, aloud));
        tell(Aloud::Prepare { companion: reply.companion.clone() });
        if !reply.is_extending {
            let sentences = reply.sentences.iter().cloned().enumerate();
            sentences.for_each(|(sentence, text)| tell(Aloud::Say { sentence, text }));
            if reply.is_all {
                tell(Aloud::SaidAll);
            }
        }
    }

    /// Handles a playback report about a reply. Ignores reports about an earlier reply, or about one that was prepared before a restart.
    fn handle_playback(&mut self, ticket: Ticket, told: interruption::Input) {
        let now = self.state.position.clock;
        let Some(reply) = self.state.voice.live.reply_mut() else { return };
        let is_stop = told == interruption::Input::StopPressed;
        let is_of_it = reply.ticket == ticket && (is_stop || !reply.is_extending && !reply.sentences.is_empty());
        if !(is_of_it || is_stop && reply.replaced == Some(ticket)) {
            return;
        }
        if told == interruption::Input::FirstAudio && !reply.has_audio {
            (reply.has_audio, reply.awaits_delay) = (true, now < reply.speaks_from);
            if reply.awaits_delay {
                return;
            }
        }
        let has_audio = |whole: usize| {
            reply.early.iter().any(|told| matches!(told, interruption::Input::Audio { sentence, .. } if *sentence == whole))
        };
        // A sentence without audio can end before playback starts.
        let is_early = matches!(told, interruption::Input::Audio { .. })
            || matches!(told, interruption::Input::Whole { sentence } if has_audio(sentence))
            || matches!(told, interruption::Input::Finished) && reply.has_audio;
        if reply.machine.is_preparing() && is_early {
            return reply.early.push(told);
        }
        if let interruption::Input::Audio { sentence, .. } = &told
            && !reply.machine.is_preparing()
            && *sentence >= reply.started.len()
        {
            let sentence = *sentence;
            self.start_sentences(sentence);
        }
        self.tell_reply(told);
    }

    pub(super) fn tell_reply(&mut self, told: interruption::Input) {
        let now = self.state.position.clock;
        let Some(reply) = self.state.voice.live.reply_mut() else { return };
        if reply.awaits_rest() {
            if matches!(told, interruption::Input::ShutDown) {
                self.conclude_rest();
            } else if matches!(told, interruption::Input::StopPressed | interruption::Input::Cancelled) {
                self.end_reply(Outcome::Cut { by: None });
            }
            return;
        }
        let is_last = told == interruption::Input::ShutDown;
        let is_position = matches!(told, interruption::Input::Played { .. });
        let effects = reply.machine.handle(now, told, self.world.roll);
        if is_position {
            self.journal_heard(false);
        }
        self.carry_out_reply(effects);
        if is_last && self.state.voice.live.reply_mut().is_some_and(|reply| reply.awaits_rest()) {
            // The server is stopping: the text so far is posted.
            self.conclude_rest();
        }
    }

    /// Forwards an event of the call to the reply in progress.
    pub(super) fn tell_reply_of_call(&mut self, heard: &utterance::Input) {
        let is_deaf_to = matches!(heard, utterance::Input::Started { user, .. } if !self.state.voice.hears(user))
            || matches!(heard, utterance::Input::Final { user, .. } if self.state.voice.ignores(user));
        if is_deaf_to {
            return;
        }
        let told = match heard {
            utterance::Input::Started { user, started } => interruption::Input::Started { user: user.clone(), started: *started },
            utterance::Input::Ended { user, ended } => interruption::Input::Ended { user: user.clone(), ended: *ended },
            utterance::Input::Left { user }
            | utterance::Input::SocketLost { user }
            | utterance::Input::Muted { user }
            | utterance::Input::OptedOut { user } => interruption::Input::PersonGone { user: user.clone() },
            utterance::Input::Final { user, segment: None, .. } => interruption::Input::Words {
                user: user.clone(),
                started: self.state.position.clock,
                is_final: true,
                words: Words::default(),
            },
            utterance::Input::CallEnded => interruption::Input::CallEnded,
            utterance::Input::Final { segment: Some(_), .. }
            | utterance::Input::Joined { .. }
            | utterance::Input::OptedIn { .. }
            | utterance::Input::RecogniserStarted { .. }
            | utterance::Input::Partial { .. }
            | utterance::Input::Finalized { .. }
            | utterance::Input::Replied { .. }
            | utterance::Input::LeftUnsettled => return,
        };
        self.tell_reply(told);
    }

    pub(super) fn tell_reply_of_segment(&mut self, segment: &Segment) {
        let words = self.state.gates.to_those_present(Words::of_segment(segment));
        self.tell_reply(interruption::Input::Words { user: segment.person(), started: segment.started, is_final: true, words });
    }

    /// Ends the reply in progress if this inbound event requires it. Must be called before the event is applied. The heard part becomes the
    /// statement.
    pub(super) fn end_unwanted_reply(&mut self, event: &Event) {
        // After a restart, such a reply would be generated again. Nothing of it was heard.
        let to_be_made = self.reply_to_be_spoken().filter(|floor| self.catches_up && event.pauses(&floor.companion));
        if let Some(ticket) = to_be_made.map(|floor| floor.ticket) {
            self.fail_reply(ticket, INTERRUPTED.into());
            return self.out.push(Output::Cancel { ticket });
        }
        let Some(ticket) = self.state.voice.spoken_reply() else { return };
        let Some(floor) = self.state.turns.floor.as_deref().filter(|floor| floor.ticket == ticket) else { return };
        let call = &self.state.voice.call;
        let is_unwanted = event.cancels(&floor.companion)
            || event.pauses(&floor.companion)
            || matches!(event, Event::Deleted { messages, .. } if are_all_deleted(&floor.messages, messages));
        let is_over = matches!(event, Event::Deleted { messages, .. } if call.is_emptied_by(messages))
            || matches!(event, Event::VoiceLeft { from } if call.is_only(&PersonId::from(&*from.id)));
        if is_unwanted {
            self.tell_reply(interruption::Input::Cancelled);
        } else if is_over {
            self.tell_reply(interruption::Input::CallEnded);
        }
    }

    /// Handles the deadlines of the reply in progress.
    pub(super) fn advance_reply(&mut self, due: Due) {
        let now = self.state.position.clock;
        let Some(reply) = self.state.voice.live.reply_mut() else { return };
        let effects = match due {
            Due::Before => reply.machine.advance_to(now),
            Due::Now => reply.machine.wake(now),
        };
        let is_due = now > reply.speaks_from || now == reply.speaks_from && due == Due::Now;
        self.carry_out_reply(effects);
        // An extension or an end may have dropped the audio.
        let waiting = self.state.voice.live.reply_mut().filter(|reply| reply.awaits_delay && is_due);
        if let Some(reply) = waiting {
            reply.awaits_delay = false;
            self.tell_reply(interruption::Input::FirstAudio);
        }
    }

    fn carry_out_reply(&mut self, effects: Vec<interruption::Effect>) {
        for effect in effects {
            let Some(reply) = self.state.voice.live.reply_mut() else { return };
            let (companion, ticket) = (reply.companion.clone(), reply.ticket);
            match effect {
                interruption::Effect::Finalize { user } => {
                    self.out.push(Output::Call(Box::new(CallEffect::Finalize { user: user.clone() })));
                    self.tell_utterances(utterance::Input::Finalized { user });
                }
                interruption::Effect::Extend => self.extend_reply(),
                interruption::Effect::Interrupted(mut interrupted) => {
                    interrupted.who = interrupted.who.filter(|who| !self.state.voice.live.has_forgotten(who));
                    self.record(Event::Interrupted { companion, ticket, interrupted });
                }
                interruption::Effect::SentenceDropped { sentence } => {
                    self.journal_dropped(sentence);
                    self.out.push(in_call(ticket, Aloud::Play(interruption::Effect::SentenceDropped { sentence })));
                }
                interruption::Effect::Ended(outcome) => {
                    self.out.push(in_call(ticket, Aloud::Play(interruption::Effect::Ended(outcome.clone()))));
                    self.end_reply(outcome);
                }
                interruption::Effect::Speak => {
                    let early = std::mem::take(&mut reply.early);
                    self.start_sentences(0);
                    self.out.push(in_call(ticket, Aloud::Play(interruption::Effect::Speak)));
                    for told in early {
                        self.handle_playback(ticket, told);
                    }
                }
                interruption::Effect::Pause => {
                    self.journal_heard(true);
                    self.out.push(in_call(ticket, Aloud::Play(interruption::Effect::Pause)));
                }
                interruption::Effect::Duck | interruption::Effect::Unduck | interruption::Effect::Resume { .. } => {
                    self.out.push(in_call(ticket, Aloud::Play(effect)));
                }
            }
        }
    }

    /// Journals that the sentences up to this one are about to play.
    fn start_sentences(&mut self, upto: usize) {
        loop {
            let Some(reply) = self.state.voice.live.reply_mut() else { return };
            let sentence = reply.started.len();
            let Some(text) = reply.machine.script().sentence_text(sentence).filter(|_| sentence <= upto) else { return };
            let (companion, ticket, text) = (reply.companion.clone(), reply.ticket, text.clone());
            reply.started.push(0);
            let number = sentence as u32;
            self.record(Event::SentenceStarting { companion, ticket, sentence: number, text });
            self.out.push(in_call(ticket, Aloud::Start { sentence }));
        }
    }

    /// Journals how much was heard of the sentences that were played to their end, or of all sentences.
    fn journal_heard(&mut self, all: bool) {
        let Some(reply) = self.state.voice.live.reply_mut() else { return };
        let (companion, ticket) = (reply.companion.clone(), reply.ticket);
        let mut events = Vec::new();
        for (number, progress) in reply.machine.script().progress().enumerate() {
            let Some(noted) = reply.started.get_mut(number) else { break };
            let heard = progress.heard.chars().count() as u32;
            if heard > *noted && (all || progress.is_over) {
                *noted = heard;
                let (sentence, ms) = (number as u32, u64::try_from(progress.played.as_millis()).unwrap_or(u64::MAX));
                let (companion, dropped) = (companion.clone(), progress.is_dropped);
                events.push(Event::SentencePlayed { companion, ticket, sentence, ms, heard, dropped });
            }
        }
        for event in events {
            self.record(event);
        }
    }

    fn journal_dropped(&mut self, number: usize) {
        if self.state.voice.live.reply_mut().is_some_and(|reply| reply.machine.is_preparing()) {
            return;
        }
        self.start_sentences(number);
        let Some(reply) = self.state.voice.live.reply_mut() else { return };
        let Some(progress) = reply.machine.script().progress().nth(number) else { return };
        let (companion, ticket, sentence) = (reply.companion.clone(), reply.ticket, number as u32);
        let (heard, ms) = (progress.heard.chars().count() as u32, u64::try_from(progress.played.as_millis()).unwrap_or(u64::MAX));
        self.record(Event::SentencePlayed { companion, ticket, sentence, ms, heard, dropped: true });
    }

    /// Hands over all buffered segments. Then the reply starts again.
    fn extend_reply(&mut self) {
        let Some(call) = self.state.voice.live.call_mut() else { return };
        if let Some(reply) = &mut call.reply {
            reply.is_extending = true;
            reply.early.clear();
            (reply.has_audio, reply.awaits_delay) = (false, false);
        }
        match call.utterances.hand_over_now() {
            Some(hand_over) => self.state.voice.hand_over(&hand_over, &mut self.out),
            // An early hand-over already took the segments.
            None if !call.is_handing_over() => self.extended(),
            None => {}
        }
    }

    /// Journals the extension and starts the new attempt, once the segments that extend the reply are messages.
    pub(super) fn extended(&mut self) {
        let Some(call) = self.state.voice.live.call_mut() else { return };
        let is_handing_over = call.is_handing_over();
        let Some(reply) = call.reply.as_mut().filter(|reply| reply.is_extending && !is_handing_over) else { return };
        let (ticket, next) = (reply.ticket, Ticket(self.state.position.tickets.0 + 1));
        (reply.is_extending, reply.ticket, reply.replaced) = (false, next, Some(ticket));
        (reply.text, reply.is_all, reply.is_lost) = (None, false, false);
        reply.sentences.clear();
        reply.rest.clear();
        reply.started.clear();
        let is_silenced = call.is_silenced;
        let Some(floor) = self.state.turns.floor.as_deref().filter(|floor| floor.ticket == ticket) else { return };
        let (companion, trigger, mut messages) = (floor.companion.clone(), floor.trigger, floor.messages.clone());
        if let Some(gate) = self.state.gates.get(&companion) {
            messages.extend(self.state.window.unsettled(&companion, gate, self.state.position.handled));
        }
        self.record(Event::ReplyExtended { companion, ticket, next, trigger, messages, upto: self.state.position.handled });
        if is_silenced {
            self.tell_reply(interruption::Input::Silenced);
        }
    }

    /// Ends the reply. Depending on the outcome, its heard part becomes the statement, its text is posted, or it fails.
    fn end_reply(&mut self, outcome: Outcome) {
        self.journal_heard(true);
        if outcome == Outcome::RestInWriting {
            return self.post_rest();
        }
        let now = self.state.position.clock;
        let Some(call) = self.state.voice.live.call_mut() else { return };
        let Some(reply) = call.reply.take() else { return };
        call.played = reply.machine.played_words().clone();
        call.replied_at = Some(now);
        let (ticket, heard) = (reply.ticket, reply.machine.heard());
        match outcome {
            Outcome::Done => {
                self.report_spoken_reply(&reply.companion, ticket, None);
                let rest = reply.machine.script().unspoken_end() + &reply.rest;
                let rest = (!rest.trim().is_empty()).then(|| rest.into());
                self.conclude_spoken(ticket, heard, None, rest);
            }
            Outcome::Cut { by } => {
                self.report_spoken_reply(&reply.companion, ticket, by.clone());
                self.conclude_spoken(ticket, heard, Some((reply.full(), by)), None);
            }
            Outcome::Cancelled => {
                self.fail_reply(ticket, INTERRUPTED.into());
                self.out.push(Output::Cancel { ticket });
            }
            Outcome::AsText | Outcome::Failed => match reply.text {
                Some(text) => self.state.post(text, &mut self.out),
                // The model is still writing. The text is posted when it is complete.
                None if outcome == Outcome::AsText && !reply.is_lost => {}
                None => {
                    self.fail_reply(ticket, UNVOICED.into());
                    self.out.push(Output::Cancel { ticket });
                }
            },
            Outcome::StaysOwed | Outcome::RestInWriting => {}
        }
    }

    /// Posts the unheard rest of a reply whose playback has ended, if its text is complete.
    fn post_rest(&mut self) {
        if self.state.voice.live.reply_mut().is_some_and(|reply| reply.awaits_rest() && reply.is_all) {
            self.conclude_rest();
        }
    }

    /// Posts the unheard part of the text so far.
    fn conclude_rest(&mut self) {
        let Some(reply) = self.state.voice.live.call_mut().and_then(|call| call.reply.take()) else { return };
        let (ticket, heard, rest) = (reply.ticket, reply.machine.heard(), reply.unheard());
        if let Some(call) = self.state.voice.live.call_mut() {
            (call.played, call.replied_at) = (reply.machine.played_words().clone(), Some(self.state.position.clock));
        }
        self.report_spoken_reply(&reply.companion, ticket, None);
        // The model may still be writing.
        self.out.push(Output::Cancel { ticket });
        self.conclude_spoken(ticket, heard, None, (!rest.trim().is_empty()).then(|| rest.into()));
    }

    /// Reports the end of a spoken reply. For a while, the words of the answered message's author, and of the person who cut the reply, are handed
    /// over sooner.
    fn report_spoken_reply(&mut self, companion: &CompanionId, ticket: Ticket, by: Option<PersonId>) {
        let message = self
            .state
            .turns
            .owed_reply(ticket)
            .and_then(|floor| floor.message)
            .and_then(|message| self.state.window.get(message));
        let author = message.filter(|entry| entry.message.from.role == Role::Person);
        let mut people: BTreeSet<_> = by.iter().cloned().collect();
        people.extend(author.map(|entry| PersonId::from(&*entry.message.from.id)));
        if let Some(call) = self.state.voice.live.call_mut() {
            call.interrupter = by;
        }
        let (companion, last_frame) = (companion.clone(), self.state.position.clock);
        self.tell_utterances(utterance::Input::Replied { companion, people, last_frame });
    }

    /// Posts the heard part as the statement, followed by `rest`. If nothing was heard, there is no statement, and no other companion gets the floor.
    fn conclude_spoken(
        &mut self,
        ticket: Ticket,
        heard: String,
        cut: Option<(String, Option<PersonId>)>,
        rest: Option<Arc<str>>,
    ) {
        if heard.trim().is_empty() {
            self.fail_reply(ticket, INTERRUPTED.into());
            return self.out.push(Output::Cancel { ticket });
        }
        let Some(floor) = self.state.turns.floor.as_mut().filter(|floor| floor.ticket == ticket) else { return };
        floor.is_posting = true;
        let cut = cut.map(|(full, by)| {
            let by = by.and_then(|by| self.state.voice.call.author(&by));
            Box::new(Cut { full: full.trim().into(), by })
        });
        let text = match &rest {
            Some(rest) => format!("{heard}{rest}"),
            None => heard,
        };
        let posting = Posting {
            companion: floor.companion.clone(),
            ticket,
            text: text.trim().into(),
            spoken: Some(SpokenStatement { rest, cut }),
        };
        // The model may still be writing.
        if posting.spoken.as_ref().is_some_and(|spoken| spoken.cut.is_some()) {
            self.out.push(Output::Cancel { ticket });
        }
        self.out.push(Output::Post(Box::new(posting)));
    }
}

/// A call effect for a spoken reply.
fn in_call(ticket: Ticket, aloud: Aloud) -> Output {
    Output::Call(Box::new(CallEffect::Reply { ticket, turn: None, aloud }))
}

/// The kind of final words is taken from their journaled segment.
impl Words {
    fn of_segment(segment: &Segment) -> Self {
        use super::super::voice::interruption::Stop;
        use super::super::voice::segment::Kind;
        let said = match segment.kind {
            Kind::Echo | Kind::Noise if segment.stop == Stop::None => return Self::default(),
            Kind::Backchannel if segment.stop == Stop::None => Said::Backchannel,
            Kind::Backchannel | Kind::Echo | Kind::Noise | Kind::Words => Said::Words,
        };
        Self { said, stop: segment.stop, addressed: segment.address.companions.clone() }
    }
}
