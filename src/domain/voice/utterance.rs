//! Collects the speech of people in a voice call, and hands it over as messages (docs/design/voice.md ).
//!
//! There is one state machine for each call: [`Utterances::handle`] processes an input, [`Utterances::deadline`] returns the next deadline, and
//! [`Utterances::wake`] handles deadlines that have passed. Hand-overs result only from deadlines that have passed, and from `hand_over_now`.

mod due;
mod hand_over;
mod input;
mod person;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::super::id::{CompanionId, PersonId, Seq};
use super::super::moment::Moment;
use super::pump::FINALIZE_TIMEOUT;
use super::segment::Segment;
pub use due::{Deadline, Why};
pub use hand_over::{Cause, HandOver, Spoken};
pub use input::{Effect, Input};
use person::{Ear, Finals, Person, Presence, Talk};

/// A person without a word for this long, since the onset or the newest word, counts as noise.
pub const NOISE_AFTER: Duration = Duration::from_secs(30);
/// The minimum time that an early hand-over waits for the speaker's outstanding final.
pub const EARLY_FINAL_TIMEOUT: Duration = Duration::from_secs(2);
/// A person without a socket for this long has left.
pub const SOCKET_TIMEOUT: Duration = Duration::from_secs(10);

/// The settings in force, and the companions in the call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The companions in the call, each with its `voice_lull_timeout`.
    pub companions: BTreeMap<CompanionId, Duration>,
    /// The voice lull timeout if no companion is present.
    pub default_timeout: Duration,
    /// The silence of a speaker after which an early hand-over happens (`voice.address_timeout_secs`).
    pub address_timeout: Duration,
    /// For how long after a companion's answer the words of the answered person are handed over early. Zero: never.
    pub follow_up: Duration,
}

impl Policy {
    /// The timeout after which the voice lull ends: the smallest one of the companions present.
    pub fn lull_timeout(&self) -> Duration {
        self.companions.values().min().copied().unwrap_or(self.default_timeout)
    }

    /// Whether words can be handed over before the voice lull ends (docs/design/voice.md A-8).
    pub fn hands_over_early(&self) -> bool {
        !self.companions.is_empty() && self.address_timeout < self.lull_timeout()
    }
}

/// The speech in a call that is not handed over yet, and the state of the people in it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Utterances {
    /// The time of the newest input or deadline.
    now: Moment,
    /// The segments that will become messages, in the order of the journal.
    buffer: Vec<Segment>,
    people: BTreeMap<PersonId, Person>,
    lull: Lull,
    ended: Moment,
    replied: Option<Reply>,
    /// Whether the last person has left, and no person has joined since.
    is_deserted: bool,
    ignored: BTreeSet<PersonId>,
    /// The newest segment from before a restart. Those segments wait for the end of the voice lull.
    restored: Seq,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Lull {
    /// Nothing was said, or the lull has ended for all companions.
    #[default]
    Over,
    Stopped,
    Running {
        since: Moment,
        /// The companions for which the lull has ended already. Companions with longer timeouts keep waiting.
        over_for: BTreeSet<CompanionId>,
        /// Whether the timeout has passed, and only outstanding finals are missing.
        awaits_finals: bool,
    },
}

impl Lull {
    fn running(since: Moment) -> Self {
        Self::Running { since, over_for: BTreeSet::new(), awaits_finals: false }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Reply {
    companion: CompanionId,
    people: BTreeSet<PersonId>,
    last_frame: Moment,
}

impl Utterances {
    /// Continues after a restart with the segments that were not handed over (in the order of the journal), the people in the call, and the people
    /// who opted out. It is not known who talks, and the voice lull timer starts now (docs/design/voice.md A-18).
    pub fn restored(
        segments: Vec<Segment>,
        people: impl IntoIterator<Item = PersonId>,
        ignored: BTreeSet<PersonId>,
        now: Moment,
    ) -> Self {
        let buffer: Vec<_> = segments.into_iter().filter(|segment| segment.kind.is_message()).collect();
        let people = people.into_iter().map(|user| (user, Person::here())).collect();
        let restored = buffer.iter().map(|segment| segment.seq).max().unwrap_or_default();
        Self { now, buffer, people, ignored, restored, lull: Lull::running(now), ..Self::default() }
    }

    /// Processes an input that happened at `at`. Deadlines before `at` are handled first; deadlines at `at` itself are left to [`Self::wake`].
    pub fn handle(&mut self, at: Moment, input: Input, policy: &Policy) -> Vec<Effect> {
        let mut out = self.run(|due| due < at, policy);
        self.now = self.now.max(at);
        match input {
            Input::Joined { user } => {
                self.people.entry(user).or_insert_with(Person::here).presence = Presence::Here;
                self.is_deserted = false;
            }
            Input::Left { user } => self.leave(&user, &mut out),
            Input::SocketLost { user } => self.lose_socket(&user, &mut out),
            Input::Muted { user } => self.end_talk_by_force(&user, &mut out),
            Input::OptedOut { user } => self.ignore(user, &mut out),
            Input::OptedIn { user } => {
                self.ignored.remove(&user);
            }
            Input::Started { user, started } => self.begin_talk(&user, started, Ear::Detector),
            Input::RecogniserStarted { user } => self.begin_talk(&user, self.now, Ear::Recogniser),
            Input::Ended { user, ended } => self.offset(&user, ended, policy, &mut out),
            Input::Partial { user } => self.hear_word(&user),
            Input::Final { user, is_last, segment } => self.hear_final(&user, is_last, segment, &mut out),
            Input::Finalized { user } => self.sent_finalize(&user),
            Input::Replied { companion, people, last_frame } => self.replied = Some(Reply { companion, people, last_frame }),
            Input::LeftUnsettled => self.await_next_lull(),
            Input::CallEnded => {
                for user in self.people.keys().cloned().collect::<Vec<_>>() {
                    self.leave(&user, &mut out);
                }
                self.is_deserted = true;
                // A companion's timeout that is shorter than the timeout without people ends no lull.
                self.lull = Lull::running(self.now);
            }
        }
        self.forget_gone();
        out
    }

    /// Hands over all buffered segments at once, without an endpoint: the words extend a reply in preparation (docs/design/voice.md A-23). `None` if
    /// nothing is buffered.
    pub fn hand_over_now(&mut self) -> Option<HandOver> {
        (!self.buffer.is_empty()).then(|| self.hand_over(Cause::Extension))
    }

    /// Handles the deadlines before `at`. Deadlines at `at` itself follow the inputs of that moment, and are left to [`Self::wake`].
    pub fn advance_to(&mut self, at: Moment, policy: &Policy) -> Vec<Effect> {
        let out = self.run(|due| due < at, policy);
        self.now = self.now.max(at);
        out
    }

    /// Drops segments that were not handed over, because their words were deleted.
    pub fn delete(&mut self, segments: &[Seq]) {
        self.buffer.retain(|segment| !segments.contains(&segment.seq));
    }

    /// Drops all segments that were not handed over. It does not change who talks.
    pub fn clear(&mut self) {
        self.buffer.clear();
    }

    /// Whether the voice lull is over for all companions, and no new one has begun.
    pub fn is_lull_over(&self) -> bool {
        self.lull == Lull::Over
    }

    /// Whether the voice lull has not ended yet for a companion.
    pub fn awaits_lull(&self, companion: &CompanionId) -> bool {
        match &self.lull {
            Lull::Over => false,
            Lull::Stopped => true,
            Lull::Running { over_for, .. } => !over_for.contains(companion),
        }
    }

    /// Whether more words of a person may arrive, or wait to be handed over: the person talks, a final is outstanding, or segments are buffered.
    pub fn awaits_words_of(&self, user: &PersonId) -> bool {
        let is_awaited = |person: &Person| person.is_talking() || person.finals != Finals::In;
        self.people.get(user).is_some_and(is_awaited) || self.buffer.iter().any(|segment| segment.from == *user)
    }

    /// Whether a person talks who does not count as noise. Companions do not interject meanwhile (docs/design/voice.md A-12).
    pub fn somebody_talks(&self) -> bool {
        self.people.values().any(Person::is_talking)
    }

    /// The people who talk and do not count as noise, by id.
    pub fn talkers(&self) -> impl Iterator<Item = &PersonId> {
        self.people.iter().filter(|(_, person)| person.is_talking()).map(|(user, _)| user)
    }

    pub fn ignores(&self, user: &PersonId) -> bool {
        self.ignored.contains(user)
    }

    /// The people in the call, by id, including those whose socket was lost less than [`SOCKET_TIMEOUT`] ago.
    pub fn present(&self) -> impl Iterator<Item = &PersonId> {
        self.people.iter().filter(|(_, person)| person.is_present()).map(|(user, _)| user)
    }

    /// The segments that were not handed over, in the order of the journal.
    pub fn buffered(&self) -> &[Segment] {
        &self.buffer
    }

    /// Whether a text lull must wait for the voice lull: a person says words, or segments are buffered (docs/design/voice.md A-19).
    pub fn holds_text_lull(&self) -> bool {
        self.somebody_says_words() || !self.buffer.is_empty()
    }

    fn somebody_says_words(&self) -> bool {
        self.people.values().any(Person::says_words)
    }

    /// Removes people who have left and have neither outstanding finals nor buffered segments.
    fn forget_gone(&mut self) {
        let buffer = &self.buffer;
        let is_heard_of =
            |user: &PersonId, person: &Person| person.finals != Finals::In || buffer.iter().any(|segment| segment.from == *user);
        self.people.retain(|user, person| person.is_present() || is_heard_of(user, person));
    }

    fn begin_talk(&mut self, user: &PersonId, started: Moment, ear: Ear) {
        let Some(person) = self.people.get_mut(user).filter(|person| person.is_present()) else { return };
        if self.ignored.contains(user) || person.is_talking() {
            return;
        }
        person.talk = Talk::Talking { word_at: started, has_words: false, ear, final_until: Moment::ZERO };
        person.finals = Finals::Awaited;
        self.stop_lull();
    }

    fn stop_lull(&mut self) {
        self.lull = Lull::Stopped;
    }

    fn offset(&mut self, user: &PersonId, ended: Moment, policy: &Policy, out: &mut Vec<Effect>) {
        let Some(person) = self.people.get_mut(user) else { return };
        match person.talk {
            Talk::Talking { .. } => self.end_talk(user, ended, policy.hands_over_early(), out),
            // The talk ended when it became noise.
            Talk::Noise { ended, .. } => person.talk = Talk::Silent { ended: Some(ended) },
            Talk::Silent { .. } => {}
        }
    }

    /// Ends a person's talk, and starts the voice lull timer if that was the last talker.
    fn end_talk(&mut self, user: &PersonId, ended: Moment, finalizes: bool, out: &mut Vec<Effect>) {
        let ended = ended.min(self.now);
        let Some(person) = self.people.get_mut(user) else { return };
        person.end_talk(ended);
        if finalizes {
            self.finalize(user, self.now, out);
        }
        self.start_lull(ended);
    }

    fn start_lull(&mut self, newest: Moment) {
        self.ended = self.ended.max(newest);
        if self.lull == Lull::Stopped && !self.somebody_talks() {
            self.lull = Lull::running(self.ended);
        }
    }

    /// Requests the person's outstanding final result from the recogniser, unless it was already requested.
    fn finalize(&mut self, user: &PersonId, at: Moment, out: &mut Vec<Effect>) {
        if let Some(person) = self.people.get_mut(user).filter(|person| person.finals == Finals::Awaited) {
            person.finals = Finals::Finalized { until: at + FINALIZE_TIMEOUT };
            out.push(Effect::Finalize { user: user.clone() });
        }
    }

    fn sent_finalize(&mut self, user: &PersonId) {
        let until = self.now + FINALIZE_TIMEOUT;
        if let Some(person) = self.people.get_mut(user).filter(|person| person.finals == Finals::Awaited && !person.is_talking())
        {
            person.finals = Finals::Finalized { until };
        }
    }

    /// Ends a person's talk as an offset does, even if no detector found one (docs/design/voice.md A-15).
    fn end_talk_by_force(&mut self, user: &PersonId, out: &mut Vec<Effect>) {
        let Some(person) = self.people.get_mut(user) else { return };
        match person.talk {
            Talk::Talking { .. } => self.end_talk(user, self.now, true, out),
            Talk::Noise { ended, .. } => {
                person.talk = Talk::Silent { ended: Some(ended) };
                self.finalize(user, self.now, out);
            }
            Talk::Silent { .. } => self.finalize(user, self.now, out),
        }
    }

    fn leave(&mut self, user: &PersonId, out: &mut Vec<Effect>) {
        self.end_talk_by_force(user, out);
        if let Some(person) = self.people.get_mut(user) {
            person.presence = Presence::Gone;
            self.is_deserted = !self.people.values().any(Person::is_present);
        }
    }

    fn lose_socket(&mut self, user: &PersonId, out: &mut Vec<Effect>) {
        self.end_talk_by_force(user, out);
        let until = self.now + SOCKET_TIMEOUT;
        if let Some(person) = self.people.get_mut(user).filter(|person| person.presence == Presence::Here) {
            person.presence = Presence::Lost { until };
        }
    }

    /// Ignores the person's speech from now on, and redacts segments that were not handed over (docs/design/voice.md A-17).
    fn ignore(&mut self, user: PersonId, out: &mut Vec<Effect>) {
        self.buffer.retain(|segment| segment.from != user);
        if let Some(person) = self.people.get_mut(&user) {
            let was_talking = person.is_talking();
            (person.talk, person.finals) = (Talk::Silent { ended: None }, Finals::In);
            if was_talking {
                self.start_lull(self.now);
            }
        }
        out.push(Effect::Redact { user: user.clone() });
        self.ignored.insert(user);
    }

    /// Records a word. A word ends noise (docs/design/voice.md A-5).
    fn hear_word(&mut self, user: &PersonId) {
        let Some(person) = self.people.get_mut(user).filter(|_| !self.ignored.contains(user)) else { return };
        match &mut person.talk {
            Talk::Talking { word_at, has_words, .. } => (*word_at, *has_words) = (self.now, true),
            Talk::Noise { ear, .. } => {
                person.talk = Talk::Talking { word_at: self.now, has_words: true, ear: *ear, final_until: Moment::ZERO };
                person.finals = Finals::Awaited;
                self.stop_lull();
            }
            Talk::Silent { .. } => {}
        }
    }

    fn hear_final(&mut self, user: &PersonId, is_last: bool, segment: Option<Segment>, out: &mut Vec<Effect>) {
        if self.ignored.contains(user) {
            // The segment was being journaled when the person opted out.
            out.extend(segment.map(|_| Effect::Redact { user: user.clone() }));
            return;
        }
        let was_quiet = !self.somebody_talks();
        let is_noise = self.people.get(user).is_some_and(|person| matches!(person.talk, Talk::Noise { .. }));
        let until = segment.as_ref().map(|segment| segment.ended);
        let message = segment.filter(|segment| segment.kind.is_message() && !segment.text.trim().is_empty());
        if message.as_ref().is_some_and(|message| !message.is_typed) {
            self.hear_word(user);
        }
        if let Some(person) = self.people.get_mut(user) {
            if is_last && person.ear() == Some(Ear::Recogniser) {
                let ended = until.map_or(self.now, |ended| ended.min(self.now));
                person.talk = Talk::Silent { ended: Some(ended) };
                person.finals = Finals::In;
                self.start_lull(ended);
            } else if let Talk::Talking { final_until, .. } = &mut person.talk {
                *final_until = until.filter(|_| is_last).unwrap_or_default().max(*final_until);
            } else if is_last {
                person.finals = Finals::In;
            }
        }
        let restarts = was_quiet && !self.somebody_talks() && (message.is_some() || !is_noise);
        self.buffer.extend(message);
        if restarts {
            self.restart_lull();
        }
    }

    /// Restarts the timer after a final that arrives while all are silent, unless the lull waits only for outstanding finals (docs/design/voice.md
    ///
    fn restart_lull(&mut self) {
        if !matches!(self.lull, Lull::Running { awaits_finals: true, .. }) {
            self.lull = Lull::running(self.now);
        }
    }

    fn await_next_lull(&mut self) {
        let is_over = match &self.lull {
            Lull::Over => true,
            Lull::Stopped => false,
            Lull::Running { over_for, .. } => !over_for.is_empty(),
        };
        if is_over {
            self.lull = Lull::running(self.now);
        }
    }
}
