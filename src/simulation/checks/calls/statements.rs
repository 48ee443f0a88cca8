//! Checks what companions say in a call: one at a time, at most what was played, and each reply ends.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::super::super::acts::Act;
use super::super::super::faults::{Fault, FaultKind};
use super::super::super::stage::lock;
use super::Call;
use crate::domain::conversation::{INTERRUPTED, UNVOICED};
use crate::domain::decision::{Decision, Reason};
use crate::domain::event::{Event, Recorded};
use crate::domain::id::{CompanionId, Seq, Ticket};
use crate::domain::message::{Message, Modality, Role};
use crate::domain::moment::Moment;
use crate::domain::voice::interruption::Verdict;
use crate::journeys::mouth::{Ledger, Voice};

/// The longest delay from the floor to the first frame, without the model: a reply may be held back twice, and its playback may be lost.
const HELD_AND_LOST: Duration = Duration::from_secs(60);
/// While people talk, a reply is held back for this long before it is written.
const LONGEST_HOLD: Duration = Duration::from_secs(20);
/// A word takes this long, and each interruption pauses the reply and repeats some of it.
const WORD: Duration = Duration::from_millis(400);
const INTERRUPTION: Duration = Duration::from_secs(8);
/// The time that audio may take after the time limit of the main model.
const AUDIO: Duration = Duration::from_secs(5);

/// A reply that is owed.
struct Owed {
    ticket: Ticket,
    companion: CompanionId,
    messages: BTreeSet<Seq>,
    modality: Modality,
    /// When it began by the channel's clock, and since when that is on record.
    at: Moment,
    since: Duration,
    /// What was handled before it.
    upto: Seq,
    /// The number of words in its begun sentences, and how often it was interrupted.
    words: u32,
    interruptions: u32,
    is_extended: bool,
}

impl Owed {
    fn new(
        ticket: Ticket,
        companion: &CompanionId,
        messages: &[Seq],
        modality: Modality,
        (at, since, upto): (Moment, Duration, Seq),
    ) -> Self {
        let (companion, messages) = (companion.clone(), messages.iter().copied().collect());
        Self { ticket, companion, messages, modality, at, since, upto, words: 0, interruptions: 0, is_extended: false }
    }
}

/// What is known of the replies in a call.
struct Statements<'a> {
    call: &'a Call<'a>,
    ledger: &'a Ledger,
    handled: &'a [Recorded],
    owed: Option<Owed>,
    ended: BTreeSet<Ticket>,
    /// A reply was stopped, so that nobody may take its place.
    is_stopped: bool,
    sentences: BTreeMap<Ticket, u32>,
    /// The replies of which something was heard, as far as it is on record.
    heard: BTreeSet<Ticket>,
    interrupted: BTreeSet<Ticket>,
    /// The persons in the call, and whether each message was spoken.
    present: BTreeSet<String>,
    spoken: BTreeMap<Seq, bool>,
}

/// Each reply is said once, and at most what was played of it. Nobody takes the place of a reply that somebody stopped.
pub(super) fn check(call: &Call<'_>, handled: &[Recorded]) {
    let ledger = lock(&call.props.calls.ledger);
    let mut statements = Statements {
        call,
        ledger: &ledger,
        handled,
        owed: None,
        ended: BTreeSet::new(),
        is_stopped: false,
        sentences: BTreeMap::new(),
        heard: BTreeSet::new(),
        interrupted: BTreeSet::new(),
        present: BTreeSet::new(),
        spoken: BTreeMap::new(),
    };
    handled.iter().for_each(|recorded| statements.read(recorded));
    if let Some(owed) = statements.owed.filter(|_| !call.has_dead_letters) {
        call.violate(format_args!("{} owes {} for ever", owed.companion, owed.ticket));
    }
}

impl Statements<'_> {
    fn violate(&self, what: impl std::fmt::Display) {
        self.call.violate(what);
    }

    fn reach(&self, what: &'static str) {
        self.call.props.stage.reach(what);
    }

    fn when(&self, seq: Seq) -> Duration {
        self.call.when.get(&seq).copied().unwrap_or_default()
    }

    /// When a reply began, and what had been handled before.
    fn begun(&self, recorded: &Recorded) -> (Moment, Duration, Seq) {
        (recorded.at, self.when(recorded.seq), recorded.handled)
    }

    fn read(&mut self, recorded: &Recorded) {
        match &recorded.event {
            Event::VoiceJoined { from } => drop(self.present.insert(from.id.to_string())),
            Event::VoiceLeft { from } => drop(self.present.remove(&*from.id)),
            Event::ReplyOwed { .. } => self.begin(recorded),
            Event::ReplyExtended { ticket, next, messages, .. } => {
                self.reach("extended");
                let is_again = self.heard.contains(ticket);
                match self.owed.as_mut().filter(|owed| owed.ticket == *ticket && !messages.is_empty()) {
                    Some(owed) if !owed.is_extended && !is_again => {
                        (owed.ticket, owed.is_extended) = (*next, true);
                        owed.messages = messages.iter().copied().collect();
                    }
                    Some(_) => {
                        self.violate(format_args!("a reply is extended that was heard, or was extended before: {recorded:?}"))
                    }
                    None => self.violate(format_args!("nobody owes {ticket}: {recorded:?}")),
                }
            }
            Event::Replanned { next, ticket, .. } => {
                if let Some(owed) = self.owed.as_mut().filter(|owed| owed.ticket == *ticket) {
                    owed.ticket = *next;
                }
            }
            Event::FloorTaken { ticket, companion, .. } => {
                self.owed = Some(Owed::new(*ticket, companion, &[], Modality::Text, self.begun(recorded)));
            }
            Event::Cancelled { ticket: Some(_), .. } | Event::FloorExpired { .. } | Event::Cleared { .. } => self.owed = None,
            Event::Left { companion } => drop(self.owed.take_if(|owed| owed.companion == *companion)),
            Event::Deleted { messages, .. } => {
                let is_answered =
                    |owed: &mut Owed| !owed.messages.is_empty() && owed.messages.iter().all(|seq| messages.contains(seq));
                drop(self.owed.take_if(is_answered));
                self.owed.iter_mut().for_each(|owed| owed.messages.retain(|seq| !messages.contains(seq)));
            }
            Event::SentenceStarting { ticket, sentence, text, .. } => {
                let next = self.sentences.entry(*ticket).or_default();
                let begins_again = *sentence == 0 && *next > 0 && !self.heard.contains(ticket);
                let follows = *sentence == *next || begins_again;
                *next = sentence + 1;
                match self.owed.as_mut().filter(|owed| follows && owed.ticket == *ticket && !owed.modality.is_text()) {
                    Some(owed) => owed.words += text.split_whitespace().count() as u32,
                    None => self.violate(format_args!("the sentence does not follow, or nobody owes it: {recorded:?}")),
                }
                if begins_again {
                    self.reach("said again, because nothing was known to be heard");
                }
            }
            Event::SentencePlayed { ticket, sentence, dropped, heard, .. } => {
                if *heard > 0 {
                    self.heard.insert(*ticket);
                }
                self.reach(if *dropped { "sentence dropped" } else { "sentence played" });
                if self.sentences.get(ticket).is_none_or(|started| sentence >= started) {
                    self.violate(format_args!("a sentence was heard that has not started: {recorded:?}"));
                }
            }
            Event::Interrupted { ticket, interrupted, .. } => {
                self.interrupted.insert(*ticket);
                self.owed.iter_mut().for_each(|owed| owed.interruptions += 1);
                self.reach(path(interrupted.verdict));
                // Stop and the end of the call cut in every state. A stop word before the first frame cancels, and interrupts nothing.
                let is_in_any_state = matches!(interrupted.verdict, Verdict::StopPressed | Verdict::CallEnded);
                if !is_in_any_state && !self.sentences.contains_key(ticket) {
                    self.violate(format_args!("a reply is interrupted that was not heard: {recorded:?}"));
                }
            }
            Event::RoundClosed(_) | Event::HeldSelected { .. } => self.is_stopped = false,
            Event::Decided(decided) => {
                self.is_stopped &= decided.decision == Decision::No;
                if decided.reason == Reason::Backchannel {
                    self.reach("backchannel");
                }
            }
            Event::VoiceQuiet { .. } => self.reach("quiet"),
            Event::ReplyFailed { ticket, error, .. } => self.fail(recorded, *ticket, error),
            Event::Said { message, reply, .. } => {
                let is_spoken = !message.modality.is_text()
                    && (message.speech.is_some() || message.kind.is_some() || message.from.role == Role::Companion);
                self.spoken.insert(recorded.seq, is_spoken);
                let Some(ticket) = reply else { return };
                let owed = self.end(recorded, *ticket);
                if message.modality.is_text() && owed.is_some_and(|owed| !owed.modality.is_text()) {
                    self.check_written(recorded, *ticket);
                }
                self.check_heard(recorded, message, *ticket);
            }
            _ => {}
        }
    }

    /// A reply to what was said in a call is spoken, and one to what was typed only if everything is read aloud.
    fn begin(&mut self, recorded: &Recorded) {
        let Event::ReplyOwed { ticket, companion, messages, message, modality, .. } = &recorded.event else { return };
        if let Some(before) = &self.owed {
            self.violate(format_args!("{} is owed when another reply begins: {recorded:?}", before.ticket));
        }
        if self.is_stopped {
            self.violate(format_args!("somebody takes the place of a reply that was stopped: {recorded:?}"));
        }
        let is_spoken = message.and_then(|message| self.spoken.get(&message)).copied();
        let reads_aloud = self.call.props.stage.plan.settings["voice"]["read_text_aloud"] == true;
        if let Some(is_spoken) = is_spoken {
            let is_due = !self.present.is_empty() && (is_spoken || reads_aloud);
            if is_due == modality.is_text() {
                self.violate(format_args!("it is not answered as it was said: {recorded:?}"));
            }
            self.reach(match (is_spoken, modality) {
                (true, Modality::Voice) => "spoken words answered aloud",
                (true, Modality::Text) => "spoken words answered in writing",
                (false, Modality::Voice) => "typed words answered aloud",
                (false, Modality::Text) => "typed words answered in writing",
            });
        }
        self.owed = Some(Owed::new(*ticket, companion, messages, *modality, self.begun(recorded)));
    }

    /// A reply ends once, and in time.
    fn end(&mut self, recorded: &Recorded, ticket: Ticket) -> Option<Owed> {
        if !self.ended.insert(ticket) {
            self.violate(format_args!("{ticket} ends twice"));
        }
        let owed = self.owed.take_if(|owed| owed.ticket == ticket)?;
        let model = Duration::from_secs_f64(self.call.props.stage.plan.rules.main_timeouts.most) + AUDIO;
        let most = HELD_AND_LOST + 2 * model + WORD * owed.words + INTERRUPTION * owed.interruptions;
        let at = self.when(recorded.seq);
        if !owed.modality.is_text() && self.call.is_late(owed.since, at, most) {
            let waited = (at - owed.since).as_secs_f64();
            self.violate(format_args!("{ticket} was spoken for {waited:.1} s, with {} words: {recorded:?}", owed.words));
        }
        Some(owed)
    }

    fn fail(&mut self, recorded: &Recorded, ticket: Ticket, error: &str) {
        let owed = self.end(recorded, ticket);
        let (since, begun) = (owed.as_ref().map(|owed| owed.since), owed.as_ref().map(|owed| owed.at));
        let channel = &self.call.channel_key.channel;
        if *error == *INTERRUPTED {
            self.is_stopped |= since.is_some();
            let has_begun = self.sentences.contains_key(&ticket);
            self.reach(if has_begun { "stopped before a word was heard" } else { "stopped before the first frame" });
            let since = since.unwrap_or_default();
            let was_asked = |(room, at): &(usize, Duration)| *room == self.call.room && *at >= since;
            let is_caused =
                has_begun || self.interrupted.contains(&ticket) || lock(&self.call.props.calls.stops).iter().any(was_asked);
            if !is_caused && !self.is_paused_at_times() && !owed.is_some_and(|owed| self.is_unwanted(recorded, &owed)) {
                self.violate(format_args!("nobody stopped it: {recorded:?}"));
            }
        }
        if *error == *UNVOICED {
            self.reach("no audio was made");
            if self.heard.contains(&ticket) {
                self.violate(format_args!("a reply was heard and counts as silent: {recorded:?}"));
            }
            let mut voices = self.ledger.voices.iter().filter(|(of, which, _)| of == channel && *which == ticket);
            let least = Duration::from_secs_f64(self.call.props.stage.plan.rules.main_timeouts.least);
            let has_waited = since.is_some_and(|since| self.when(recorded.seq) - since >= least);
            // A clock that is set forward ends the wait, too.
            let is_set = |(at, act): &(Duration, Act)| {
                let while_owed = since.is_some_and(|since| (since..=self.when(recorded.seq)).contains(at));
                while_owed && matches!(act, Act::SetClock(secs) if *secs > 0)
            };
            // While people talked it was not heard, and then its answer was lost.
            let is_lost = |fault: &Fault| {
                let while_owed = since.is_some_and(|since| (since..=self.when(recorded.seq)).contains(&fault.at));
                while_owed && matches!(fault.what, FaultKind::Failed { .. })
            };
            let is_held = begun.is_some_and(|begun| recorded.at.since(begun) >= LONGEST_HOLD);
            let is_lost = is_held && self.call.props.stage.notes().faults.iter().any(is_lost);
            let has_waited = has_waited || is_lost || self.call.props.stage.plan.acts.iter().any(is_set);
            if voices.all(|(.., voice)| *voice == Voice::Fine) && !has_waited {
                self.violate(format_args!("nothing kept it from being heard: {recorded:?}"));
            }
        }
    }

    /// Whether an event between what was handled before the reply and its failure explains the failure: the companion left, all messages that the
    /// reply answers were deleted, or somebody asked to stop.
    fn is_unwanted(&self, failed: &Recorded, owed: &Owed) -> bool {
        let is_handled_later = |seq: Seq| failed.handled < seq;
        let ends = |recorded: &Recorded| match &recorded.event {
            Event::Left { companion } => is_handled_later(recorded.seq) && *companion == owed.companion,
            Event::Deleted { messages, .. } => {
                is_handled_later(recorded.seq) && owed.messages.iter().all(|seq| messages.contains(seq))
            }
            Event::Segment(segment) => segment.asks_to_stop,
            // After a restart, a phrase that was typed ends a reply of which nothing was heard.
            Event::Said { message, .. } => is_handled_later(recorded.seq) && message.asks_to_stop,
            _ => false,
        };
        let is_new = |recorded: &&Recorded| owed.upto < recorded.seq && recorded.seq < failed.seq;
        self.handled.iter().filter(is_new).any(ends)
    }

    /// Whether the plan pauses companions of this room, or clears it.
    fn is_paused_at_times(&self) -> bool {
        let acts = &self.call.props.stage.plan.acts;
        acts.iter().any(|(_, act)| matches!(act, Act::Pause { room, .. } | Act::Clear(room) if *room == self.call.room))
    }

    /// A reply that was to be spoken is written only if none of it was heard.
    fn check_written(&self, recorded: &Recorded, ticket: Ticket) {
        self.reach("made to be spoken, and written");
        if self.heard.contains(&ticket) {
            self.violate(format_args!("it was heard, and is written: {recorded:?}"));
        }
    }

    fn check_heard(&self, recorded: &Recorded, message: &Message, ticket: Ticket) {
        if message.modality.is_text() || message.from.role != Role::Companion || message.text.is_empty() {
            return;
        }
        self.reach("spoken reply");
        let performance = self.ledger.performance(&self.call.channel_key.channel, ticket);
        if let Some(cut) = &message.cut {
            self.reach("cut");
            let is_beginning = cut.full.trim().starts_with(message.text.trim());
            let has_dropped = performance.is_some_and(|one| one.sent.iter().any(Duration::is_zero));
            if !cut.full.is_empty() && !is_beginning && !has_dropped {
                self.violate(format_args!("what was heard is no beginning of what was said: {recorded:?}"));
            }
        }
        match performance {
            Some(one) if one.can_be_heard(&message.text) => {}
            // All of it was heard, and the rest is written.
            Some(one)
                if message.cut.is_none() && message.text.starts_with(one.text().trim()) && one.can_be_heard(&one.text()) =>
            {
                self.reach("rest written");
            }
            Some(one) => self.violate(format_args!("{:?} was heard, and {one:?} was played", message.text)),
            None => self.violate(format_args!("nothing of it was played: {recorded:?}")),
        }
    }
}

const fn path(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::PlayedOut => "interruption: played to the end",
        Verdict::Unducked => "interruption: unducked",
        Verdict::NothingSaid => "interruption: nothing said",
        Verdict::Backchannel => "interruption: backchannel",
        Verdict::FewWords => "interruption: few words",
        Verdict::Noise => "interruption: noise",
        Verdict::PlaybackLost => "interruption: playback lost",
        Verdict::ServerStopping => "interruption: server stopping",
        Verdict::Silenced => "interruption: silenced",
        Verdict::StopPressed => "interruption: stop pressed",
        Verdict::CallEnded => "interruption: call ended",
        Verdict::Cancelled => "interruption: cancelled",
        Verdict::StopWord => "interruption: stop word",
        Verdict::Addressed => "interruption: address",
        Verdict::ManyWords => "interruption: many words",
        Verdict::TookTooLong => "interruption: took too long",
    }
}
