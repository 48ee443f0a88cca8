//! Checks rooms with a voice call: what people said is in messages, once and in order, and what companions said was played.

mod statements;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::super::life::Props;
use super::super::stage::lock;
use super::Journals;
use super::times::Lateness;
use crate::domain::decision::{Decision, Reason};
use crate::domain::event::{Event, Recorded, Segment, order_of_handling};
use crate::domain::id::{PersonId, Seq};
use crate::domain::message::{HandedOver, Message};
use crate::domain::voice::segment::Kind;
use crate::journal::channel_key::ChannelKey;

/// The longest time from the last activity in a call to the hand-over of its segments: the voice lull, and the waits for missing results.
const HANDED_OVER_WITHIN: Duration = Duration::from_secs(8);

/// After an opt-out, the person is ignored within this time.
const AT_ONCE: Duration = Duration::from_secs(2);

/// Checks every room with a call.
pub(super) fn check(props: &Props, journals: &Journals, dead_letters: &BTreeMap<ChannelKey, BTreeSet<Seq>>) {
    let stage = &props.stage;
    lock(&props.calls.ledger).faults.iter().for_each(|fault| stage.violate(fault));
    let lateness = Lateness::of(stage);
    for (room, _) in stage.plan.rooms.iter().enumerate().filter(|(_, room)| room.has_call) {
        let channel_key = super::channel_key_of(props, room);
        let Some(events) = journals.get(&channel_key) else { continue };
        let mut handled = events.clone();
        order_of_handling(&mut handled);
        let call = Call {
            props,
            channel_key: &channel_key,
            room,
            when: super::when(props, &channel_key),
            has_dead_letters: dead_letters.contains_key(&channel_key),
            lateness: &lateness,
        };
        call.accepted(events);
        call.words(events);
        call.hand_overs(events);
        statements::check(&call, &handled);
        call.settled(&handled);
    }
}

struct Call<'a> {
    props: &'a Props,
    channel_key: &'a ChannelKey,
    room: usize,
    when: BTreeMap<Seq, Duration>,
    has_dead_letters: bool,
    lateness: &'a Lateness,
}

/// A message by voice, and the segments in it.
fn spoken(recorded: &Recorded) -> Option<(&Message, &[Seq])> {
    match &recorded.event {
        Event::Said { message, .. } => message.speech.as_ref().map(|speech| (message, &speech.segments[..])),
        _ => None,
    }
}

fn segment(recorded: &Recorded) -> Option<&Segment> {
    match &recorded.event {
        Event::Segment(segment) => Some(segment),
        _ => None,
    }
}

impl Call<'_> {
    fn violate(&self, what: impl std::fmt::Display) {
        self.props.stage.violate(format!("{}: {what}", self.channel_key));
    }

    /// Whether something took longer than `most` although nothing delayed it.
    fn is_late(&self, from: Duration, to: Duration, most: Duration) -> bool {
        let plan = &self.props.stage.plan;
        !plan.weather.has_jumps && plan.slow.is_none() && self.lateness.is_late(self.channel_key, from, to, most)
    }

    /// Every final result that was accepted is on record, once and with its words, and nothing else is.
    fn accepted(&self, events: &[Recorded]) {
        let segments: BTreeMap<_, _> = events.iter().filter_map(|recorded| Some((recorded.seq, segment(recorded)?))).collect();
        let mut words = BTreeMap::new();
        for ((room, number), (seq, text)) in lock(&self.props.calls.accepted).iter() {
            if *room != self.room {
                continue;
            }
            if let Some(other) = words.insert(*seq, *number) {
                self.violate(format_args!("{seq} is what was said as {number} and as {other}"));
            }
            match segments.get(seq) {
                Some(segment) if segment.is_redacted() || segment.text == *text => {}
                other => self.violate(format_args!("{text:?} was accepted as {seq}, where {other:?} is on record")),
            }
        }
        let unreported = lock(&self.props.calls.unreported).len();
        if segments.len() != words.len() || unreported > 0 {
            let (there, accepted) = (segments.len(), words.len());
            self.violate(format_args!("{there} segments on record, {accepted} accepted, {unreported} without an outcome"));
        }
    }

    /// Every segment that counts as words is in one message, and soon, unless it was deleted before.
    fn words(&self, events: &[Recorded]) {
        let stage = &self.props.stage;
        let mut messages: BTreeMap<Seq, Seq> = BTreeMap::new();
        let deleted = deleted(events);
        for (message, segments) in events.iter().filter_map(|recorded| Some((recorded.seq, spoken(recorded)?.1))) {
            for segment in segments {
                // A retried dead letter is journaled again, and its first message is deleted.
                if let Some(first) = messages.insert(*segment, message).filter(|first| !deleted.contains(first)) {
                    self.violate(format_args!("segment {segment} is in the messages {first} and {message}"));
                }
            }
        }
        let activity: Vec<_> =
            lock(&self.props.calls.activity).iter().filter(|(room, _)| *room == self.room).map(|(_, at)| *at).collect();
        for recorded in events {
            let Some(segment) = segment(recorded) else { continue };
            stage.reach(match segment.kind {
                Kind::Words => "segment of words",
                Kind::Backchannel => "segment of backchannel",
                Kind::Noise => "segment of noise",
                Kind::Echo => "segment of echo",
            });
            let is_cleared = |cleared: &Recorded| matches!(cleared.event, Event::Cleared { .. }) && cleared.seq > recorded.seq;
            match messages.get(&recorded.seq) {
                Some(message) if !segment.kind.is_message() => {
                    self.violate(format_args!("segment {} counts as {:?} and is in {message}", recorded.seq, segment.kind));
                }
                Some(message) => {
                    let (Some(said), Some(handed_over)) = (self.when.get(&recorded.seq), self.when.get(message)) else {
                        continue;
                    };
                    let opted_out_at = lock(&self.props.calls.opted_out_at);
                    let mut ignored =
                        opted_out_at.iter().filter(|((room, person), _)| *room == self.room && *person == &*segment.from.id);
                    let is_ignored = |since: Duration| self.lateness.undisturbed(self.channel_key, since, *said) > AT_ONCE;
                    if ignored.any(|(_, since)| is_ignored(*since)) {
                        self.violate(format_args!("{message} has words of somebody who wants to be ignored: {}", recorded.seq));
                    }
                    let last = activity.iter().filter(|at| *at <= handed_over).max().unwrap_or(said).max(said);
                    if self.is_late(*last, *handed_over, HANDED_OVER_WITHIN) {
                        let waited = (*handed_over - *last).as_secs_f64();
                        self.violate(format_args!("segment {} is handed over after {waited:.1} s of silence", recorded.seq));
                    }
                }
                None if segment.is_redacted() || segment.text.is_empty() || !segment.kind.is_message() => {}
                None if events.iter().any(is_cleared) || self.has_dead_letters => {}
                None => self.violate(format_args!("segment {} is in no message: {recorded:?}", recorded.seq)),
            }
        }
    }

    /// A hand-over takes everything, in the order in which it was said, and only what was said before. One speaker's run is one message.
    fn hand_overs(&self, events: &[Recorded]) {
        let started: BTreeMap<_, _> = events
            .iter()
            .filter_map(|recorded| Some((recorded.seq, segment(recorded).filter(|segment| !segment.is_redacted())?)))
            .map(|(seq, segment)| (seq, (segment.started, segment.person(), &segment.text)))
            .collect();
        let messages: Vec<_> = events.iter().filter_map(|recorded| Some((recorded, spoken(recorded)?))).collect();
        // Two hand-overs may follow one another at the same moment, for different reasons.
        let cause = |message: &Message| message.speech.as_ref().map(|speech| speech.handed_over);
        let is_one = |(one, (before, _)): &(&Recorded, (&Message, _)), (next, (after, _)): &(&Recorded, (&Message, _))| {
            one.at == next.at && one.seq.next() == next.seq && cause(before) == cause(after)
        };
        let (mut newest, deleted, mut again) = (Seq::NONE, deleted(events), BTreeSet::new());
        for batch in messages.chunk_by(is_one) {
            if batch.iter().all(|(_, (_, segments))| segments.iter().all(|segment| again.contains(segment))) {
                continue;
            }
            let gone = batch.iter().filter(|(recorded, _)| deleted.contains(&recorded.seq));
            again.extend(gone.flat_map(|(_, (_, segments))| segments.iter().copied()));
            let segments: Vec<_> = batch.iter().flat_map(|(_, (_, segments))| segments.iter().copied()).collect();
            let order: Vec<_> = segments.iter().filter_map(|seq| Some((started.get(seq)?.0, *seq))).collect();
            if !order.is_sorted() {
                self.violate(format_args!("the segments {segments:?} are handed over in another order than they were said"));
            }
            let (first, last) = (segments.iter().min().copied(), segments.iter().max().copied());
            if first.is_some_and(|first| first <= newest) {
                self.violate(format_args!("an earlier hand-over has left out one of {segments:?}"));
            }
            if last.is_some_and(|last| last >= batch[0].0.seq) {
                self.violate(format_args!("one of {segments:?} is handed over before it was said"));
            }
            newest = newest.max(last.unwrap_or_default());
            for (recorded, (message, segments)) in batch {
                let author = PersonId::from(&*message.from.id);
                let is_foreign = |seq: &Seq| started.get(seq).is_some_and(|(_, person, _)| *person != author);
                if !message.from.id.is_empty() && segments.iter().any(is_foreign) {
                    self.violate(format_args!("message {} has words of somebody else", recorded.seq));
                }
                let words: Option<Vec<_>> = segments.iter().map(|seq| Some(started.get(seq)?.2.trim())).collect();
                if !message.text.is_empty() && words.is_some_and(|words| words.join(" ") != *message.text) {
                    self.violate(format_args!("message {} has other words than {segments:?}", recorded.seq));
                }
            }
            self.check_endpoint(batch);
            let is_run = |pair: &[(&Recorded, (&Message, &[Seq]))]| {
                let [(_, (one, _)), (_, (next, _))] = pair else { return true };
                one.from.id != next.from.id || one.from.id.is_empty()
            };
            if !batch.windows(2).all(is_run) {
                self.violate(format_args!("one speaker's run of {segments:?} is several messages"));
            }
        }
        self.props.stage.reach_times("hand-over", messages.len() as u64);
    }

    /// The newest message that is not backchannel ends a lull, unless the words were handed over early for another reason.
    fn check_endpoint(&self, batch: &[(&Recorded, (&Message, &[Seq]))]) {
        let speech = |message: &Message| message.speech.as_ref().map(|speech| (speech.handed_over, speech.is_backchannel));
        let Some((cause, _)) = speech(batch[0].1.0) else { return };
        self.props.stage.reach(match cause {
            HandedOver::LullEnded => "handed over: lull ended",
            HandedOver::Deserted => "handed over: everybody has left",
            HandedOver::Addressed => "handed over: address",
            HandedOver::OneToOne => "handed over: one to one",
            HandedOver::FollowUp => "handed over: follow-up",
            HandedOver::Extension => "handed over: extension",
        });
        let is_endpoint_due = !matches!(cause, HandedOver::Addressed | HandedOver::Extension);
        let newest =
            batch.iter().rposition(|(_, (message, _))| speech(message).is_some_and(|(_, is_backchannel)| !is_backchannel));
        for (number, (recorded, (message, _))) in batch.iter().enumerate() {
            if message.lull_endpoint != (is_endpoint_due && Some(number) == newest) {
                self.violate(format_args!("message {} ends a lull wrongly, or does not: {cause:?}", recorded.seq));
            }
        }
    }

    /// In the end every companion that stayed has settled every message, each once.
    fn settled(&self, handled: &[Recorded]) {
        let mut unsettled: BTreeMap<_, BTreeSet<Seq>> = BTreeMap::new();
        // A stop phrase that cancels a question settles before it is handled.
        let mut phrases = BTreeSet::new();
        for recorded in handled {
            match &recorded.event {
                Event::Joined { companion, .. } => drop(unsettled.entry(companion.clone()).or_default()),
                Event::Left { companion } => drop(unsettled.remove(companion)),
                Event::Cleared { .. } => unsettled.values_mut().for_each(BTreeSet::clear),
                Event::Deleted { messages, .. } => {
                    unsettled.values_mut().for_each(|left| left.retain(|seq| !messages.contains(seq)));
                }
                Event::Said { message, .. } => {
                    for (companion, left) in unsettled.iter_mut().filter(|(companion, _)| !message.is_by(companion)) {
                        if !phrases.remove(&(companion.clone(), recorded.seq)) {
                            left.insert(recorded.seq);
                        }
                    }
                }
                Event::Decided(decided) if decided.decision == Decision::No => {
                    let is_ahead = |seq: &Seq| decided.reason == Reason::Cancelled && *seq > recorded.handled;
                    let (ahead, settled): (Vec<_>, Vec<_>) = decided.messages.iter().copied().partition(is_ahead);
                    for companion in &decided.companions {
                        phrases.extend(ahead.iter().map(|phrase| (companion.clone(), *phrase)));
                        self.settle(recorded, unsettled.get_mut(companion), &settled);
                    }
                }
                Event::ReplyOwed { companion, messages, .. } => self.settle(recorded, unsettled.get_mut(companion), messages),
                Event::ReplyExtended { companion, messages, .. } | Event::Replanned { companion, messages, .. } => {
                    // Those include the messages that it answered before, which have settled.
                    let Some(left) = unsettled.get_mut(companion) else { continue };
                    left.retain(|seq| !messages.contains(seq));
                }
                _ => {}
            }
        }
        if self.has_dead_letters {
            return;
        }
        for (companion, left) in unsettled.iter().filter(|(_, left)| !left.is_empty()) {
            self.violate(format_args!("{left:?} never settled for {companion}"));
        }
    }

    fn settle(&self, recorded: &Recorded, left: Option<&mut BTreeSet<Seq>>, messages: &[Seq]) {
        let Some(left) = left else { return };
        for seq in messages {
            if !left.remove(seq) && !self.has_dead_letters {
                self.violate(format_args!("{seq} settles twice: {recorded:?}"));
            }
        }
    }
}

/// The messages that were deleted.
fn deleted(events: &[Recorded]) -> BTreeSet<Seq> {
    let deleted = events.iter().filter_map(|recorded| match &recorded.event {
        Event::Deleted { messages, .. } => Some(messages),
        _ => None,
    });
    deleted.flatten().copied().collect()
}
