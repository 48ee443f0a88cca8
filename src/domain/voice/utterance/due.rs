//! The deadlines of a call, and how each is handled.

use serde::{Deserialize, Serialize};

use super::super::super::id::{CompanionId, PersonId};
use super::super::super::moment::Moment;
use super::super::segment::{Kind, Segment};
use super::person::{Finals, Person, Presence, Talk};
use super::{Cause, EARLY_FINAL_TIMEOUT, Effect, Lull, NOISE_AFTER, Policy, Reply, Utterances};

/// When to call [`Utterances::wake`], and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadline {
    pub at: Moment,
    /// The reason for the deadline. An earlier input may move or remove the deadline.
    pub why: Why,
}

/// The reason for a deadline. Deadlines of the same moment are handled in this order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum Why {
    /// The recogniser did not answer `Finalize`: stop waiting for its final.
    FinalsOverdue { user: PersonId },
    /// The person has talked without words for too long.
    Noise { user: PersonId },
    /// The person's socket did not come back.
    SocketLost { user: PersonId },
    /// The voice lull ends.
    Lull,
    /// All people have left: the buffered segments are handed over.
    Deserted,
    /// An early hand-over for the words of this person.
    Early { user: PersonId },
}

impl Utterances {
    /// The next deadline. There is always one while segments are buffered, a person talks or finals are outstanding.
    pub fn deadline(&self, policy: &Policy) -> Option<Deadline> {
        let of_people = self.people.iter().flat_map(|(user, person)| {
            let finals = match person.finals {
                Finals::Finalized { until } => Some((until, Why::FinalsOverdue { user: user.clone() })),
                Finals::In | Finals::Awaited => None,
            };
            let noise = match person.talk {
                Talk::Talking { word_at, .. } => Some((word_at + NOISE_AFTER, Why::Noise { user: user.clone() })),
                Talk::Silent { .. } | Talk::Noise { .. } => None,
            };
            let socket = match person.presence {
                Presence::Lost { until } => Some((until, Why::SocketLost { user: user.clone() })),
                Presence::Here | Presence::Gone => None,
            };
            [finals, noise, socket].into_iter().flatten()
        });
        let lull = self.lull_ends_at(policy).map(|at| (at, Why::Lull));
        let deserted = self.is_handed_over_deserted_at().map(|at| (at, Why::Deserted));
        let early = self.early(policy).map(|(at, user, _)| (at, Why::Early { user }));
        let all = of_people.chain(lull).chain(deserted).chain(early);
        all.map(|(at, why)| Deadline { at: at.max(self.now), why })
            .min_by(|one, other| (one.at, &one.why).cmp(&(other.at, &other.why)))
    }

    /// Handles the passed deadlines, each at most once.
    pub fn wake(&mut self, now: Moment, policy: &Policy) -> Vec<Effect> {
        let out = self.run(|due| due <= now, policy);
        self.now = self.now.max(now);
        out
    }

    /// Handles all passed deadlines in their order, even if the call comes late.
    pub(super) fn run(&mut self, is_due: impl Fn(Moment) -> bool, policy: &Policy) -> Vec<Effect> {
        let mut out = Vec::new();
        while let Some(Deadline { at, why }) = self.deadline(policy).filter(|deadline| is_due(deadline.at)) {
            self.now = at;
            match why {
                Why::FinalsOverdue { user } => self.give_up_finals(&user),
                Why::Noise { user } => self.count_as_noise(user, policy, &mut out),
                Why::SocketLost { user } => {
                    self.leave(&user, &mut out);
                    self.forget_gone();
                    out.push(Effect::Left { user });
                }
                Why::Lull => self.end_lull(policy, &mut out),
                Why::Deserted => {
                    let companions = policy.companions.keys().cloned().collect();
                    out.push(Effect::HandOver(self.hand_over(Cause::Deserted { companions })));
                    self.lull = Lull::Over;
                }
                Why::Early { .. } => {
                    if let Some((_, _, cause)) = self.early(policy) {
                        out.push(Effect::HandOver(self.hand_over(cause)));
                    }
                }
            }
        }
        out
    }

    fn give_up_finals(&mut self, user: &PersonId) {
        if let Some(person) = self.people.get_mut(user) {
            person.finals = Finals::In;
        }
        self.forget_gone();
    }

    /// Ends the talk as at an offset, and counts the voice as noise until the next offset or word (docs/design/voice.md A-5).
    fn count_as_noise(&mut self, user: PersonId, policy: &Policy, out: &mut Vec<Effect>) {
        let Some(Talk::Talking { ear, .. }) = self.people.get(&user).map(|person| person.talk) else { return };
        self.end_talk(&user, self.now, policy.hands_over_early(), out);
        if let Some(person) = self.people.get_mut(&user) {
            person.talk = Talk::Noise { ended: self.now, ear };
        }
        out.push(Effect::CountsAsNoise { user });
    }

    /// Ends the voice lull for the companions whose timeout has passed (docs/design/voice.md A-7), or waits for outstanding finals.
    fn end_lull(&mut self, policy: &Policy, out: &mut Vec<Effect>) {
        let awaited: Vec<_> = self.awaited().cloned().collect();
        let is_empty = self.waits_without_people();
        let Lull::Running { since, over_for, awaits_finals } = &mut self.lull else { return };
        if !awaited.is_empty() {
            *awaits_finals = true;
            for user in awaited {
                self.finalize(&user, self.now, out);
            }
            return;
        }
        *awaits_finals = false;
        let elapsed = self.now.since(*since);
        let mut is_silent = self.buffer.is_empty();
        // Words that are still buffered are new to all companions. In a call without people after a restart, no companion waits longer.
        let is_new = |companion: &CompanionId| !is_silent || !over_for.contains(companion);
        let has_run =
            policy.companions.iter().filter(|(companion, timeout)| (**timeout <= elapsed || is_empty) && is_new(companion));
        let companions: Vec<_> = has_run.map(|(companion, _)| companion.clone()).collect();
        over_for.extend(companions.iter().cloned());
        if policy.companions.keys().all(|companion| over_for.contains(companion)) {
            self.lull = Lull::Over;
        }
        if !is_silent {
            let hand_over = self.hand_over(Cause::LullEnded { companions: companions.clone() });
            is_silent = hand_over.endpoint().is_none();
            out.push(Effect::HandOver(hand_over));
        }
        if is_silent && !companions.is_empty() {
            out.push(Effect::Quiet { companions });
        }
    }

    fn awaited(&self) -> impl Iterator<Item = &PersonId> {
        self.people.iter().filter(|(_, person)| person.finals != Finals::In).map(|(user, _)| user)
    }

    /// When the last of the requested finals is overdue.
    fn finals_in_at(&self) -> Option<Moment> {
        let until = |person: &Person| match person.finals {
            Finals::Finalized { until } => Some(until),
            Finals::In | Finals::Awaited => None,
        };
        self.people.values().filter_map(until).max()
    }

    fn lull_ends_at(&self, policy: &Policy) -> Option<Moment> {
        let Lull::Running { since, over_for, awaits_finals } = &self.lull else { return None };
        let left =
            policy.companions.iter().filter(|(companion, _)| !over_for.contains(*companion)).map(|(_, timeout)| *timeout).min();
        // If the lull has ended for every companion, words are left only if companions joined or left meanwhile.
        let is_stranded = policy.companions.is_empty() || !self.buffer.is_empty();
        let timeout = if self.waits_without_people() {
            policy.default_timeout
        } else {
            left.or_else(|| is_stranded.then(|| policy.lull_timeout()))?
        };
        let finals = if *awaits_finals { self.finals_in_at() } else { None };
        Some((*since + timeout).max(finals.unwrap_or(Moment::ZERO)))
    }

    /// Whether words from before a restart wait in a call without people (docs/design/voice.md A-18).
    fn waits_without_people(&self) -> bool {
        !self.buffer.is_empty() && !self.is_deserted && self.present().next().is_none()
    }

    /// When to hand over after all people have left: as soon as the finals have arrived or are overdue (docs/design/voice.md A-16).
    fn is_handed_over_deserted_at(&self) -> Option<Moment> {
        (self.is_deserted && !self.buffer.is_empty()).then(|| self.finals_in_at().unwrap_or(self.now))
    }

    fn early(&self, policy: &Policy) -> Option<(Moment, PersonId, Cause)> {
        if !policy.hands_over_early() {
            return None;
        }
        let mut speakers: Vec<_> = self.buffer.iter().map(|segment| &segment.from).collect();
        speakers.sort();
        speakers.dedup();
        let all = speakers.into_iter().filter_map(|user| {
            let person = self.people.get(user);
            let cause = self.early_cause(user, policy);
            let newest = self.own(user).map(|segment| segment.ended).max();
            if self.own(user).all(|segment| segment.is_typed) && !person.is_some_and(Person::says_words) {
                let (at, cause) = match cause {
                    Some(cause) => (newest? + policy.address_timeout, cause),
                    None if self.lull == Lull::Stopped && !self.somebody_says_words() => {
                        // Later words of other people count as well.
                        let newest = self.buffer.iter().map(|segment| segment.ended).max()?;
                        let companions = policy.companions.keys().cloned().collect();
                        (newest.max(self.ended) + policy.lull_timeout(), Cause::LullEnded { companions })
                    }
                    None => return None,
                };
                return Some((at, user.clone(), cause));
            }
            if person.is_some_and(Person::is_talking) {
                return None;
            }
            let cause = cause?;
            let ended = person.and_then(Person::ended).max(newest)?;
            let latest = ended + policy.address_timeout.max(EARLY_FINAL_TIMEOUT);
            let finals = match person.map(|person| person.finals) {
                None | Some(Finals::In) => Moment::ZERO,
                Some(Finals::Awaited) => latest,
                Some(Finals::Finalized { until }) => until.min(latest),
            };
            Some((finals.max(ended + policy.address_timeout), user.clone(), cause))
        });
        all.min_by(|(one, one_user, _), (other, other_user, _)| (one, one_user).cmp(&(other, other_user)))
    }

    /// The words of a person that can be handed over early. Words from before a restart wait for the lull.
    fn own<'a>(&'a self, user: &'a PersonId) -> impl Iterator<Item = &'a Segment> {
        let is_own = |segment: &&Segment| segment.from == *user && segment.kind == Kind::Words && segment.seq > self.restored;
        self.buffer.iter().filter(is_own)
    }

    /// The reason to hand over a person's words early (docs/design/voice.md A-8). An address takes precedence.
    fn early_cause(&self, user: &PersonId, policy: &Policy) -> Option<Cause> {
        self.own(user).next()?;
        let by = user.clone();
        let is_here = |companion: &CompanionId| policy.companions.contains_key(companion);
        if self.own(user).any(|segment| segment.addressed.iter().any(is_here)) {
            return Some(Cause::Addressed { by });
        }
        let mut present = self.present();
        if let (Some(person), None, Some(companion), 1) =
            (present.next(), present.next(), policy.companions.keys().next(), policy.companions.len())
            && person == user
        {
            return Some(Cause::OneToOne { by, companion: companion.clone() });
        }
        let Reply { companion, people, last_frame } = self.replied.as_ref()?;
        let follows =
            |segment: &Segment| segment.started.since(*last_frame).max(last_frame.since(segment.started)) <= policy.follow_up;
        let is_follow_up =
            !policy.follow_up.is_zero() && people.contains(user) && is_here(companion) && self.own(user).any(follows);
        is_follow_up.then(|| Cause::FollowUp { by, companion: companion.clone() })
    }
}
