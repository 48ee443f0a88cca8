//! The voice call of a channel: turns transcribed speech into messages (docs/design/voice.md ).
//!
//! The participants and the segments that were not handed over are journaled ([`Call`]). Current speech, the voice lull timer and outstanding final
//! results are not ([`Live`]). They decide when an event happens, and that event is journaled. After a restart they start empty.

use super::super::gate::Check;
use super::super::id::PersonId;
use super::super::message::{Author, HandedOver, Message, Modality, Speech};
use super::super::voice::echo::PlayedWords;
use super::super::voice::said::TYPED;
use super::super::voice::utterance::{self, HandOver, Policy, Utterances};
use super::super::voice::{interruption, segment};
use super::advance::AnswerRecord;
use super::aloud::LiveReply;
use super::step::Due;
use super::*;
use crate::event::Segment;
use crate::message::Address;

/// The voice call: its journaled state and its live state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VoiceState {
    #[serde(default, skip_serializing_if = "Call::is_default")]
    pub(super) call: Call,
    /// Backchannel messages whose settlement is not journaled yet, with the companions that settle them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) overheard: BTreeMap<Seq, Box<[CompanionId]>>,
    #[serde(skip)]
    pub(super) live: Live,
}

impl VoiceState {
    /// The people in the voice call, by id.
    pub fn people_in_call(&self) -> impl Iterator<Item = &PersonId> {
        self.call.people.keys()
    }

    /// The numbers of a person's segments that were not handed over. They are deleted when the person opts out (docs/design/voice.md A-17).
    pub fn buffered_segments_of(&self, person: &PersonId) -> Vec<Seq> {
        self.call.segments.iter().filter(|(_, segment)| segment.person() == *person).map(|(seq, _)| *seq).collect()
    }

    /// The number of the event with which a person joined the call. None if the person is not in it.
    pub fn joined_call_at(&self, person: &PersonId) -> Option<Seq> {
        self.call.people.get(person).map(|(joined, _)| *joined)
    }

    /// The people in the call, and those who have left it with segments that were not handed over.
    pub fn speakers(&self) -> BTreeSet<PersonId> {
        let speakers = self.call.segments.iter().map(|(_, segment)| segment.person());
        self.call.people.keys().cloned().chain(speakers).collect()
    }

    /// The people with current speech that does not count as noise, by id.
    pub fn talkers(&self) -> impl Iterator<Item = &PersonId> {
        self.live.0.iter().flat_map(|live| live.utterances.talkers())
    }

    pub(super) fn hand_over(&mut self, hand_over: &HandOver, out: &mut Vec<Output>) {
        let messages = self.call.messages(hand_over);
        let Some(live) = &mut self.live.0 else { return };
        if matches!(hand_over.cause, utterance::Cause::LullEnded { .. } | utterance::Cause::Deserted { .. }) {
            (live.holds_interjections, live.holds_text_lulls) = (false, false);
        }
        if !messages.is_empty() {
            live.in_flight += 1;
            out.push(Output::HandOver(messages));
        }
    }

    /// Whether text lulls wait for the end of the voice lull (docs/design/voice.md A-19).
    pub(super) fn holds_text_lulls(&self) -> bool {
        self.live.0.as_ref().is_some_and(|live| live.holds_text_lulls())
    }

    /// Whether an interjection must wait: people are talking, or talked when its trigger fired (docs/design/voice.md ).
    pub(super) fn holds_interjections(&mut self) -> bool {
        let Some(live) = &mut self.live.0 else { return false };
        live.holds_interjections |= live.utterances.somebody_talks();
        live.is_handing_over() || live.holds_interjections && !live.utterances.is_lull_over()
    }

    /// Like [`holds_text_lulls`](Self::holds_text_lulls), for a text lull that is due. The result is remembered until the voice lull ends.
    pub(super) fn hold_text_lulls(&mut self) -> bool {
        let Some(live) = &mut self.live.0 else { return false };
        live.holds_text_lulls = live.holds_text_lulls();
        live.holds_text_lulls
    }

    /// The number of the spoken reply that is being prepared or played.
    pub fn spoken_reply(&self) -> Option<Ticket> {
        self.live.call()?.reply.as_ref().map(|reply| reply.ticket)
    }

    /// Whether speech that started at this moment overlaps with a spoken reply or its preparation.
    pub fn is_during_spoken_reply(&self, started: Moment) -> bool {
        self.live.call().is_some_and(|call| call.reply.is_some() || call.replied_at.is_some_and(|ended| started < ended))
    }

    /// The words that were played recently, for echo detection.
    pub fn played_words(&self) -> PlayedWords {
        let of_call = |call: &LiveCall| match &call.reply {
            Some(reply) => reply.machine.played_words().clone(),
            None => call.played.clone(),
        };
        self.live.call().map(of_call).unwrap_or_default()
    }

    /// Whether this reply is playing and not paused.
    pub fn plays_aloud(&self, ticket: Ticket) -> bool {
        let reply = self.live.call().and_then(|call| call.reply.as_ref());
        reply.is_some_and(|reply| reply.ticket == ticket && reply.machine.is_playing())
    }

    /// Whether any sentence of this reply was sent to speech synthesis. Then its model is not asked again.
    pub fn has_said(&self, ticket: Ticket) -> bool {
        let reply = self.live.call().and_then(|call| call.reply.as_ref());
        reply.is_some_and(|reply| reply.ticket == ticket && !reply.sentences.is_empty())
    }

    /// Whether this reply is being prepared or played aloud.
    pub(super) fn is_aloud(&self, ticket: Ticket) -> bool {
        self.spoken_reply() == Some(ticket)
    }

    /// Whether a person in the call has opted out.
    pub(super) fn ignores(&self, user: &PersonId) -> bool {
        self.live.call().is_some_and(|call| call.utterances.ignores(user))
    }

    /// Whether a person is in the call and has not opted out.
    pub(super) fn hears(&self, user: &PersonId) -> bool {
        self.call.author(user).is_some() && !self.ignores(user)
    }

    /// Whether `turn` triggers wait for the transcript of the person who cut a statement (docs/design/voice.md A-47).
    pub(super) fn holds_turns(&self) -> bool {
        let Some(call) = self.live.call() else { return false };
        let is_awaited = |person: &PersonId| !call.utterances.is_lull_over() && call.utterances.awaits_words_of(person);
        call.interrupter.as_ref().is_some_and(|person| call.is_handing_over() || is_awaited(person))
    }
}

/// The journaled state of the voice call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Call {
    /// The people in the call, each with the number of the event with which they joined.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    people: BTreeMap<PersonId, (Seq, Author)>,
    /// The segments that were not handed over, in the order of the journal, without noise and echo.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    segments: Vec<(Seq, Segment)>,
}

impl Call {
    pub(super) fn is_default(&self) -> bool {
        self.people.is_empty() && self.segments.is_empty()
    }

    pub(super) fn is_connected(&self) -> bool {
        !self.people.is_empty()
    }

    /// Whether these deletions forget every person in the call.
    pub(super) fn is_emptied_by(&self, deleted: &[Seq]) -> bool {
        !self.people.is_empty() && self.people.values().all(|(joined, _)| deleted.contains(joined))
    }

    /// Whether this person is the only one in the call.
    pub(super) fn is_only(&self, person: &PersonId) -> bool {
        self.people.len() == 1 && self.people.contains_key(person)
    }

    pub(super) fn author(&self, person: &PersonId) -> Option<Author> {
        self.people.get(person).map(|(_, author)| author.clone())
    }

    pub(super) fn oldest_segment(&self) -> Option<Seq> {
        self.segments.first().map(|(seq, _)| *seq)
    }

    pub(super) fn join(&mut self, seq: Seq, from: &Author) {
        if !from.id.is_empty() {
            self.people.insert(PersonId::from(&*from.id), (seq, from.clone()));
        }
    }

    pub(super) fn leave(&mut self, from: &Author) {
        self.people.remove(&PersonId::from(&*from.id));
    }

    pub(super) fn keep(&mut self, seq: Seq, segment: &Segment) {
        if segment.kind.is_message() && !segment.text.trim().is_empty() {
            self.segments.push((seq, segment.clone()));
        }
    }

    pub(super) fn hand_over(&mut self, segments: &[Seq]) {
        self.segments.retain(|(seq, _)| !segments.contains(seq));
    }

    /// Removes deleted segments. A person whose join event was deleted counts as having left.
    pub(super) fn delete(&mut self, deleted: &[Seq]) {
        self.segments.retain(|(seq, _)| !deleted.contains(seq));
        self.people.retain(|_, (joined, _)| !deleted.contains(joined));
    }

    pub(super) fn redact(&mut self, redacted: Seq, segment: &Segment) {
        if segment.is_redacted() {
            self.hand_over(&[redacted]);
        }
    }

    /// Drops all earlier speech. The participants remain.
    pub(super) fn clear(&mut self) {
        self.segments.clear();
    }

    /// The live state after a restart: no person is known to talk, and the voice lull timer starts (docs/design/voice.md A-18).
    pub(super) fn restored(&self, now: Moment) -> Live {
        if self.is_default() {
            return Live::default();
        }
        let segments = self.segments.iter().map(|(seq, segment)| buffered(*seq, segment)).collect();
        // A person who opted out has no segments, and further speech is ignored.
        let utterances = Utterances::restored(segments, self.people.keys().cloned(), BTreeSet::new(), now);
        Live(Some(Box::new(LiveCall { utterances, ..LiveCall::default() })))
    }

    fn messages(&self, hand_over: &HandOver) -> Vec<Event> {
        let endpoint = hand_over.endpoint();
        let mut messages = Vec::with_capacity(hand_over.messages.len());
        for spoken in &hand_over.messages {
            let segment = |seq: &Seq| self.segments.iter().find(|(of, _)| of == seq).map(|(_, segment)| segment);
            let parts: Vec<_> = spoken.segments.iter().filter_map(segment).collect();
            let Some(first) = parts.first() else { continue };
            let mut companions: Vec<_> = parts.iter().flat_map(|part| part.address.companions.iter().cloned()).collect();
            companions.sort();
            companions.dedup();
            let ends_lull_for =
                endpoint.filter(|(message, _)| std::ptr::eq(*message, spoken)).map(|(_, companions)| companions.to_vec());
            let message = Message {
                modality: Modality::Voice,
                lull_endpoint: ends_lull_for.is_some(),
                asks_to_stop: parts.iter().all(|part| part.asks_to_stop),
                address: Address { companions, others: parts.iter().any(|part| part.address.others), ..Address::default() }
                    .by(first.address.standing),
                speech: Some(Box::new(Speech {
                    started: spoken.started,
                    ended: spoken.ended,
                    provider: first.provider.clone(),
                    confidence: parts.iter().filter_map(|part| part.confidence).min(),
                    segments: spoken.segments.clone(),
                    handed_over: reason(&hand_over.cause),
                    ends_lull_for: ends_lull_for.unwrap_or_default(),
                    is_backchannel: spoken.is_backchannel,
                })),
                ..Message::new(first.from.clone(), spoken.text.clone())
            };
            messages.push(Event::Said { message, reply_to: None, reply: None, said_at: None });
        }
        messages
    }
}

/// The live state of the call. It is not journaled, so two conversations that differ only here are equal.
#[derive(Clone, Debug, Default)]
pub(super) struct Live(Option<Box<LiveCall>>);

impl PartialEq for Live {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct LiveCall {
    pub(super) utterances: Utterances,
    /// The number of hand-overs whose messages are being journaled.
    in_flight: u32,
    /// An interjection was triggered while people talked, and waits for the end of the voice lull.
    holds_interjections: bool,
    /// A text lull was due while a person talked or segments were buffered. It waits for the end of the voice lull.
    holds_text_lulls: bool,
    deadline: Option<Moment>,
    /// The reply that is being prepared or spoken.
    pub(super) reply: Option<Box<LiveReply>>,
    /// The words that the previous reply has played.
    pub(super) played: PlayedWords,
    pub(super) replied_at: Option<Moment>,
    /// The person who cut the previous reply. None if no person did.
    pub(super) interrupter: Option<PersonId>,
    /// The companions cannot be heard in the call, or cannot hear its people.
    pub(super) is_silenced: bool,
    /// The people whose join event was deleted while they were in the call.
    forgotten: BTreeSet<PersonId>,
}

impl LiveCall {
    pub(super) fn is_handing_over(&self) -> bool {
        self.in_flight > 0
    }

    fn holds_text_lulls(&self) -> bool {
        self.is_handing_over() || self.utterances.holds_text_lull() || self.holds_text_lulls && !self.utterances.is_lull_over()
    }
}

impl Live {
    pub(super) fn call(&self) -> Option<&LiveCall> {
        self.0.as_deref()
    }

    pub(super) fn call_mut(&mut self) -> Option<&mut LiveCall> {
        self.0.as_deref_mut()
    }

    pub(super) fn call_or_default(&mut self) -> &mut LiveCall {
        self.0.get_or_insert_default()
    }

    pub(super) fn has_forgotten(&self, person: &PersonId) -> bool {
        self.call().is_some_and(|call| call.forgotten.contains(person))
    }

    pub(super) fn reply_mut(&mut self) -> Option<&mut LiveReply> {
        self.0.as_mut()?.reply.as_deref_mut()
    }

    pub(super) fn deadline(&self) -> Option<Moment> {
        self.0.as_ref().and_then(|live| live.deadline)
    }

    pub(super) fn update_deadline(&mut self, gates: &Gates, world: &World<'_>) {
        if let Some(live) = &mut self.0 {
            let of_words = live.utterances.deadline(&policy(gates, world)).map(|deadline| deadline.at);
            live.deadline = of_words.into_iter().chain(live.reply_deadline()).min();
        }
    }
}

/// The effect of a journaled event on the call. It is computed before the event is applied.
pub(super) enum CallEvent {
    Input(utterance::Input),
    Segment(utterance::Input, Box<Segment>),
    Deleted(Vec<Seq>),
    Cleared,
}

/// The effect of an inbound event on the call. None if the event does not concern the call.
#[expect(clippy::wildcard_enum_match_arm, reason = "the other events do not concern the call")]
pub(super) fn call_event(recorded: &Recorded) -> Option<CallEvent> {
    let user = |from: &Author| PersonId::from(&*from.id);
    Some(match &recorded.event {
        Event::VoiceJoined { from } => CallEvent::Input(utterance::Input::Joined { user: user(from) }),
        Event::VoiceLeft { from } => CallEvent::Input(utterance::Input::Left { user: user(from) }),
        Event::Segment(segment) => {
            let (user, is_last) = (segment.person(), segment.is_last);
            let heard = utterance::Input::Final { user, is_last, segment: Some(buffered(recorded.seq, segment)) };
            CallEvent::Segment(heard, segment.clone())
        }
        Event::Deleted { messages, .. } => CallEvent::Deleted(messages.clone()),
        Event::Cleared { .. } => CallEvent::Cleared,
        _ => return None,
    })
}

impl Step<'_, '_> {
    /// Handles a change in the call that is not journaled. A call without people ignores all but opt-outs.
    pub(super) fn handle_call_input(&mut self, heard: utterance::Input) {
        self.tell_reply_of_call(&heard);
        if self.state.voice.live.0.is_some() || matches!(heard, utterance::Input::OptedOut { .. }) {
            self.tell_utterances(heard);
        }
    }

    /// Handles the effect of an inbound event on the call.
    pub(super) fn handle_call_event(&mut self, heard: CallEvent) {
        match heard {
            CallEvent::Input(input) => {
                self.tell_reply_of_call(&input);
                self.tell_utterances(input);
            }
            CallEvent::Segment(_, segment) if self.state.voice.ignores(&segment.person()) => {
                // The segment was in flight when the person opted out.
                self.out.push(Output::RedactSpeech { user: segment.person() });
            }
            CallEvent::Segment(input, segment) => {
                self.tell_reply_of_segment(&segment);
                self.tell_utterances(input);
            }
            CallEvent::Deleted(segments) => {
                let people = &self.state.voice.call.people;
                let Some(live) = &mut self.state.voice.live.0 else { return };
                live.utterances.delete(&segments);
                let gone: Vec<_> = live.utterances.present().filter(|user| !people.contains_key(*user)).cloned().collect();
                live.forgotten.extend(gone.iter().cloned());
                for user in gone {
                    self.tell_reply(interruption::Input::PersonGone { user: user.clone() });
                    self.tell_utterances(utterance::Input::Left { user });
                }
            }
            CallEvent::Cleared => self.state.voice.live.0.iter_mut().for_each(|live| live.utterances.clear()),
        }
    }

    /// Handles the journaled messages of a hand-over: all of them are applied before any decision.
    pub(super) fn handle_hand_over(&mut self, batch: Vec<Recorded>) {
        if let Some(live) = &mut self.state.voice.live.0 {
            live.in_flight = live.in_flight.saturating_sub(1);
        }
        for recorded in batch {
            self.handle_inbound(recorded);
        }
        self.extended();
    }

    pub(super) fn advance_voice(&mut self, due: Due) {
        // Words that extend a reply must be applied before words that are handed over early at the same moment.
        self.advance_reply(due);
        let Some(live) = &mut self.state.voice.live.0 else { return };
        let policy = policy(&self.state.gates, self.world);
        let effects = match due {
            Due::Before => live.utterances.advance_to(self.state.position.clock, &policy),
            Due::Now => live.utterances.wake(self.state.position.clock, &policy),
        };
        self.carry_out_utterances(effects);
    }

    pub(super) fn tell_utterances(&mut self, input: utterance::Input) {
        let policy = policy(&self.state.gates, self.world);
        let effects = self.state.voice.live.call_or_default().utterances.handle(self.state.position.clock, input, &policy);
        self.carry_out_utterances(effects);
    }

    fn carry_out_utterances(&mut self, effects: Vec<utterance::Effect>) {
        for effect in effects {
            match effect {
                utterance::Effect::HandOver(hand_over) => self.state.voice.hand_over(&hand_over, &mut self.out),
                utterance::Effect::Quiet { companions } => self.fall_quiet(companions),
                utterance::Effect::Finalize { user } => self.out.push(Output::Call(Box::new(CallEffect::Finalize { user }))),
                utterance::Effect::Redact { user } => self.out.push(Output::RedactSpeech { user }),
                utterance::Effect::CountsAsNoise { user } => {
                    self.out.push(Output::Call(Box::new(CallEffect::CountsAsNoise { user: user.clone() })));
                    self.tell_reply(interruption::Input::Noise { user });
                }
                utterance::Effect::Left { user } => {
                    self.out.push(Output::HasLeft { user: user.clone() });
                    self.tell_reply(interruption::Input::PersonGone { user });
                }
            }
        }
    }

    /// Handles the end of a voice lull without new words. Fires the text lulls that waited for it, and the lulls for earlier voice messages.
    fn fall_quiet(&mut self, companions: Vec<CompanionId>) {
        if let Some(live) = &mut self.state.voice.live.0 {
            (live.holds_interjections, live.holds_text_lulls) = (false, false);
        }
        self.fire_lulls(Due::Now);
        let is_left_over = |companion: &CompanionId| {
            let Some(gate) = self.state.gates.get(companion) else { return false };
            let newest = self.state.window.newest(companion, gate.cursor);
            let is_lull_fired =
                gate.waiting.is_some_and(|waiting| waiting.trigger == Trigger::Lull && waiting.check == Check::Quiet);
            !gate.is_silent() && !is_lull_fired && newest.is_some_and(|newest| newest.message.modality == Modality::Voice)
        };
        let companions: Vec<_> = companions.into_iter().filter(is_left_over).collect();
        // After the call, gates have timers of their own.
        if !companions.is_empty() && self.state.voice.call.is_connected() {
            self.record(Event::VoiceQuiet { companions });
        }
    }

    /// Makes unsettled voice messages wait for the next end of the voice lull (docs/design/voice.md A-12).
    pub(super) fn await_voice_lull(&mut self) {
        let Some(live) = self.state.voice.live.0.as_ref().filter(|live| !live.is_handing_over()) else { return };
        if !self.state.voice.call.is_connected() || self.state.is_busy() {
            return;
        }
        let is_left_over = |(companion, gate): (&CompanionId, &Gate)| {
            let waits = gate.is_silent() || gate.waiting.is_some() || gate.is_backing_off() || gate.lull_at.is_some();
            let newest = self
                .state
                .window
                .newest(companion, gate.cursor)
                .filter(|_| !waits && self.world.policies.contains_key(companion));
            newest.is_some_and(|newest| newest.message.modality == Modality::Voice) && !live.utterances.awaits_lull(companion)
        };
        if self.state.gates.iter().any(is_left_over) {
            self.tell_utterances(utterance::Input::LeftUnsettled);
        }
    }

    /// Journals that all companions have settled their backchannel messages. This includes the messages of a hand-over after which the process died.
    pub(super) fn settle_backchannel(&mut self) {
        for (seq, companions) in self.state.voice.overheard.clone() {
            let answered = AnswerRecord::default();
            let mut record = self.decided(&companions[0], Trigger::Lull, Decision::No, Reason::Backchannel, Seq::NONE, answered);
            record.messages = vec![seq];
            record.companions = companions.into();
            self.record(Event::Decided(record));
        }
    }
}

/// The settings in force for the call, with the voice lull timeouts of the companions present.
pub(super) fn policy(gates: &Gates, world: &World<'_>) -> Policy {
    let present = gates.keys().filter_map(|companion| Some((companion, world.policies.get(companion)?)));
    Policy {
        companions: present.map(|(companion, policy)| (companion.clone(), policy.voice_lull_timeout)).collect(),
        default_timeout: world.rules.voice_lull_timeout,
        address_timeout: world.rules.voice.address_timeout(),
        follow_up: world.rules.voice.follow_up(),
    }
}

/// Converts a segment to the type that the voice rules use.
fn buffered(seq: Seq, segment: &Segment) -> segment::Segment {
    segment::Segment {
        seq,
        from: segment.person(),
        text: segment.text.clone(),
        started: segment.started,
        ended: segment.ended,
        addressed: segment.address.companions.clone(),
        kind: segment.kind,
        is_typed: &*segment.provider == TYPED,
    }
}

const fn reason(cause: &utterance::Cause) -> HandedOver {
    match cause {
        utterance::Cause::LullEnded { .. } => HandedOver::LullEnded,
        utterance::Cause::Deserted { .. } => HandedOver::Deserted,
        utterance::Cause::Addressed { .. } => HandedOver::Addressed,
        utterance::Cause::OneToOne { .. } => HandedOver::OneToOne,
        utterance::Cause::FollowUp { .. } => HandedOver::FollowUp,
        utterance::Cause::Extension => HandedOver::Extension,
    }
}
