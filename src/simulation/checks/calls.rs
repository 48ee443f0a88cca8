//! Checks rooms with a voice call: what people said is in messages, once and in order, and what companions said was played.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::super::life::Props;
use super::super::stage::lock;
use super::Journals;
use super::times::Lateness;
use crate::domain::conversation::{INTERRUPTED, UNVOICED};
use crate::domain::decision::{Decision, Reason};
use crate::domain::event::{Event, Recorded, order_of_handling};
use crate::domain::id::{PersonId, Seq, Ticket};
use crate::domain::message::{Message, Modality, Role};
use crate::domain::voice::interruption::Verdict;
use crate::journal::channel_key::ChannelKey;

/// The longest time from the last thing that happened in a call to the hand-over of what was said: the voice lull, and what is waited for.
const HANDED_OVER_WITHIN: Duration = Duration::from_secs(8);

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
        };
        call.words(events, &lateness);
        call.hand_overs(events);
        call.statements(&handled);
        call.settled(&handled);
    }
}

struct Call<'a> {
    props: &'a Props,
    channel_key: &'a ChannelKey,
    room: usize,
    when: BTreeMap<Seq, Duration>,
    has_dead_letters: bool,
}

/// A message by voice, and the segments in it.
fn spoken(recorded: &Recorded) -> Option<(&Message, &[Seq])> {
    match &recorded.event {
        Event::Said { message, .. } => message.speech.as_ref().map(|speech| (message, &speech.segments[..])),
        _ => None,
    }
}

impl Call<'_> {
    fn violate(&self, what: impl std::fmt::Display) {
        self.props.stage.violate(format!("{}: {what}", self.channel_key));
    }

    /// Every segment that counts as words is in one message, and soon, unless it was deleted before.
    fn words(&self, events: &[Recorded], lateness: &Lateness) {
        let stage = &self.props.stage;
        let mut messages: BTreeMap<Seq, Seq> = BTreeMap::new();
        for (message, segments) in events.iter().filter_map(|recorded| Some((recorded.seq, spoken(recorded)?.1))) {
            for segment in segments {
                if let Some(first) = messages.insert(*segment, message) {
                    self.violate(format_args!("segment {segment} is in the messages {first} and {message}"));
                }
            }
        }
        let activity: Vec<_> =
            lock(&self.props.calls.activity).iter().filter(|(room, _)| *room == self.room).map(|(_, at)| *at).collect();
        for recorded in events {
            let Event::Segment(segment) = &recorded.event else { continue };
            let is_cleared = |cleared: &Recorded| matches!(cleared.event, Event::Cleared) && cleared.seq > recorded.seq;
            match messages.get(&recorded.seq) {
                Some(message) if !segment.kind.is_message() => {
                    self.violate(format_args!("segment {} counts as {:?} and is in {message}", recorded.seq, segment.kind));
                }
                Some(message) => {
                    let (Some(said), Some(handed_over)) = (self.when.get(&recorded.seq), self.when.get(message)) else {
                        continue;
                    };
                    let last = activity.iter().filter(|at| *at <= handed_over).max().unwrap_or(said).max(said);
                    let is_late = lateness.is_late(self.channel_key, *last, *handed_over, HANDED_OVER_WITHIN);
                    if is_late && !stage.plan.weather.has_jumps && stage.plan.slow.is_none() {
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
            .filter_map(|recorded| match &recorded.event {
                Event::Segment(segment) if !segment.is_redacted() => Some((recorded.seq, (segment.started, segment.person()))),
                _ => None,
            })
            .collect();
        let messages: Vec<_> = events.iter().filter_map(|recorded| Some((recorded, spoken(recorded)?))).collect();
        let is_one = |(one, _): &(&Recorded, _), (next, _): &(&Recorded, _)| one.at == next.at && one.seq.next() == next.seq;
        let mut newest = Seq::NONE;
        for batch in messages.chunk_by(is_one) {
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
                let is_foreign = |seq: &Seq| started.get(seq).is_some_and(|(_, person)| *person != author);
                if !message.from.id.is_empty() && segments.iter().any(is_foreign) {
                    self.violate(format_args!("message {} has words of somebody else", recorded.seq));
                }
            }
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

    /// Each reply is said once, and at most what was played of it. Nobody takes the place of a reply that somebody stopped.
    fn statements(&self, handled: &[Recorded]) {
        let stage = &self.props.stage;
        let ledger = lock(&self.props.calls.ledger);
        let (mut owed, mut ended) = (None::<Ticket>, BTreeSet::new());
        let mut is_stopped = false;
        let mut sentences: BTreeMap<Ticket, u32> = BTreeMap::new();
        for recorded in handled {
            match &recorded.event {
                Event::ReplyOwed { ticket, .. } => {
                    if let Some(before) = owed.replace(*ticket) {
                        self.violate(format_args!("{before} is owed when another reply begins: {recorded:?}"));
                    }
                    if is_stopped {
                        self.violate(format_args!("somebody takes the place of a reply that was stopped: {recorded:?}"));
                    }
                }
                Event::ReplyExtended { ticket, next, messages, .. } => {
                    stage.reach("extended");
                    if owed.replace(*next).is_some_and(|owed| owed != *ticket) || messages.is_empty() {
                        self.violate(format_args!("nobody owes {ticket}: {recorded:?}"));
                    }
                    if sentences.contains_key(ticket) {
                        self.violate(format_args!("a reply that was heard is made again: {recorded:?}"));
                    }
                }
                Event::Replanned { next, .. } => owed = Some(*next),
                Event::Cancelled { ticket: Some(_), .. } | Event::FloorExpired { .. } | Event::Cleared => owed = None,
                Event::FloorTaken { ticket, .. } => owed = Some(*ticket),
                Event::Left { .. } | Event::Deleted { .. } => owed = None,
                Event::SentenceStarting { ticket, sentence, .. } => {
                    let next = sentences.entry(*ticket).or_default();
                    if *sentence != *next || owed.is_some_and(|owed| owed != *ticket) {
                        self.violate(format_args!("the sentence does not follow: {recorded:?}"));
                    }
                    *next = sentence + 1;
                }
                Event::SentencePlayed { ticket, sentence, dropped, .. } => {
                    stage.reach(if *dropped { "sentence dropped" } else { "sentence played" });
                    if sentences.get(ticket).is_none_or(|started| sentence >= started) {
                        self.violate(format_args!("a sentence was heard that has not started: {recorded:?}"));
                    }
                }
                Event::Interrupted { ticket, interrupted, .. } => {
                    stage.reach(match interrupted.verdict {
                        Verdict::PlayedOut => "interruption: played to the end",
                        Verdict::Unducked => "interruption: unducked",
                        Verdict::NothingSaid | Verdict::Backchannel | Verdict::FewWords | Verdict::Noise => {
                            "interruption: resumed"
                        }
                        Verdict::PlaybackLost => "interruption: playback lost",
                        Verdict::StopPressed | Verdict::CallEnded | Verdict::Cancelled => "interruption: ended",
                        Verdict::StopWord | Verdict::Addressed | Verdict::ManyWords | Verdict::TookTooLong => "interruption: cut",
                    });
                    // Stop and the end of the call end it in every state.
                    let is_in_any_state = matches!(
                        interrupted.verdict,
                        Verdict::StopPressed | Verdict::CallEnded | Verdict::Cancelled | Verdict::StopWord
                    );
                    if !is_in_any_state && !sentences.contains_key(ticket) {
                        self.violate(format_args!("a reply is interrupted that was not heard: {recorded:?}"));
                    }
                }
                Event::RoundClosed(_) | Event::HeldSelected { .. } => is_stopped = false,
                Event::Decided(decided) => {
                    is_stopped &= decided.decision == Decision::No;
                    if decided.reason == Reason::Backchannel {
                        stage.reach("backchannel");
                    }
                }
                Event::VoiceQuiet { .. } => stage.reach("quiet"),
                Event::ReplyFailed { ticket, error, .. } => {
                    if owed.take_if(|owed| owed == ticket).is_some() && **error == *INTERRUPTED {
                        stage.reach("stopped before a word was heard");
                        is_stopped = true;
                    }
                    self.end_once(*ticket, &mut ended);
                    let performance = ledger.performance(&self.channel_key.channel, *ticket);
                    if **error == *UNVOICED && performance.is_some_and(|one| !one.played.is_zero()) {
                        self.violate(format_args!("a reply was heard and counts as silent: {recorded:?}"));
                    }
                }
                Event::Said { message, reply: Some(ticket), .. } => {
                    owed.take_if(|owed| owed == ticket);
                    self.end_once(*ticket, &mut ended);
                    self.check_heard(recorded, message, *ticket, &ledger);
                }
                _ => {}
            }
        }
    }

    fn end_once(&self, ticket: Ticket, ended: &mut BTreeSet<Ticket>) {
        if !ended.insert(ticket) {
            self.violate(format_args!("{ticket} ends twice"));
        }
    }

    fn check_heard(&self, recorded: &Recorded, message: &Message, ticket: Ticket, ledger: &crate::journeys::mouth::Ledger) {
        if message.modality != Modality::Voice || message.from.role != Role::Companion || message.text.is_empty() {
            return;
        }
        self.props.stage.reach("spoken reply");
        if let Some(cut) = &message.cut {
            self.props.stage.reach("cut");
            if !cut.full.is_empty() && !cut.full.trim().starts_with(message.text.trim()) {
                self.violate(format_args!("what was heard is no beginning of what was said: {recorded:?}"));
            }
        }
        match ledger.performance(&self.channel_key.channel, ticket) {
            Some(one) if one.has_stalled || one.can_be_heard(&message.text) => {}
            Some(one) => self.violate(format_args!("{:?} was heard, and {one:?} was played", message.text)),
            None => self.violate(format_args!("nothing of it was played: {recorded:?}")),
        }
    }

    /// In the end every companion that stayed has settled every message, each once.
    fn settled(&self, handled: &[Recorded]) {
        let mut unsettled: BTreeMap<_, BTreeSet<Seq>> = BTreeMap::new();
        for recorded in handled {
            match &recorded.event {
                Event::Joined { companion, .. } => drop(unsettled.entry(companion.clone()).or_default()),
                Event::Left { companion } => drop(unsettled.remove(companion)),
                Event::Cleared => unsettled.values_mut().for_each(BTreeSet::clear),
                Event::Deleted { messages, .. } => {
                    unsettled.values_mut().for_each(|left| left.retain(|seq| !messages.contains(seq)));
                }
                Event::Said { message, .. } => {
                    for (_, left) in unsettled.iter_mut().filter(|(companion, _)| !message.is_by(companion)) {
                        left.insert(recorded.seq);
                    }
                }
                Event::Decided(decided) if decided.decision == Decision::No => {
                    for companion in &decided.companions {
                        self.settle(recorded, unsettled.get_mut(companion), &decided.messages);
                    }
                }
                Event::ReplyOwed { companion, messages, .. } => self.settle(recorded, unsettled.get_mut(companion), messages),
                Event::ReplyExtended { companion, messages, .. } | Event::Replanned { companion, messages, .. } => {
                    // It answers what it answered before, too.
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
