//! Finds the message that the content filter of an endpoint refuses, so that only this message stays out of later prompts to the model
//! (docs/design/models.md M-25).
//!
//! A refused message would be part of every later prompt, and nothing would be answered any more. Whoever is asked is asked again, each time with fewer
//! of the new messages. What then remains in doubt stays out, and half of it comes back with each later prompt, until one message is found.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::id::{CompanionId, Seq};
use super::named::named;
use super::prompt::{PromptInput, Said};

/// The error code of a question that an endpoint's filter refused.
pub const FILTERED: &str = "filtered";

/// So often a prompt is tried with half of the new messages before the question alone is.
const MOST_HALVES: u32 = 3;
/// So many messages are remembered for one model.
const MOST_FOUND: usize = 1_000;

named! {
    /// What a prompt is for. Each kind is filtered for itself.
    pub enum Asked {
        Decision = "decision",
        Statement = "statement",
        Summary = "summary",
    }
}

/// What stays out of the prompts of one room.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Filtered(Vec<OfModel>);

/// What stays out of the prompts of one kind to one model. The summary counts as a message without a number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct OfModel {
    asked: Asked,
    model: Arc<str>,
    /// The messages that are refused.
    #[serde(default)]
    found: BTreeSet<Seq>,
    /// These may be.
    #[serde(default)]
    doubtful: BTreeSet<Seq>,
    /// So many of them, the oldest, come back with the next prompt.
    #[serde(default)]
    tested: usize,
}

/// What was found out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    pub asked: Asked,
    /// The model, and its endpoint.
    pub model: Arc<str>,
    /// The message that is refused, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<Seq>,
    /// A message that was refused, and is not any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<Seq>,
    /// The messages that may be refused. They take the place of those of before.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub doubtful: BTreeSet<Seq>,
    /// So many of them, the oldest, come back with the next prompt.
    #[serde(default)]
    pub tested: usize,
}

impl Filtered {
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The messages that the filter of any model refuses.
    pub fn found(&self) -> impl Iterator<Item = Seq> + '_ {
        self.0.iter().flat_map(|of| of.found.iter().copied()).filter(|seq| *seq != Seq::NONE)
    }

    pub(super) fn apply(&mut self, finding: &Finding) {
        let Finding { asked, model, found, accepted, doubtful, tested } = finding;
        let is_same = |of: &OfModel| of.asked == *asked && of.model == *model;
        let at = self.0.iter().position(is_same).unwrap_or_else(|| {
            self.0.push(OfModel {
                asked: *asked,
                model: model.clone(),
                found: BTreeSet::new(),
                doubtful: BTreeSet::new(),
                tested: 0,
            });
            self.0.len() - 1
        });
        let of = &mut self.0[at];
        of.found.extend(found);
        of.found.retain(|seq| Some(*seq) != *accepted);
        of.doubtful.clone_from(doubtful);
        of.tested = *tested;
        while of.found.len() > MOST_FOUND {
            of.found.pop_first();
        }
        self.0.retain(|of| !of.found.is_empty() || !of.doubtful.is_empty());
    }

    /// These messages are others now, or gone.
    pub(super) fn forget(&mut self, messages: &[Seq]) {
        for of in &mut self.0 {
            of.found.retain(|seq| !messages.contains(seq));
            of.doubtful.retain(|seq| !messages.contains(seq));
        }
        self.0.retain(|of| !of.found.is_empty() || !of.doubtful.is_empty());
    }

    /// Nothing below this number is shown any more.
    pub(super) fn drop_below(&mut self, below: Seq) {
        for of in &mut self.0 {
            of.found.retain(|seq| *seq >= below || *seq == Seq::NONE);
            of.doubtful.retain(|seq| *seq >= below || *seq == Seq::NONE);
        }
        self.0.retain(|of| !of.found.is_empty() || !of.doubtful.is_empty());
    }

    fn of(&self, asked: Asked, model: &str) -> Option<&OfModel> {
        self.0.iter().find(|of| of.asked == asked && *of.model == *model)
    }
}

/// The search for what is refused, while one question is asked.
#[derive(Debug)]
pub struct Search {
    asked: Asked,
    model: Arc<str>,
    step: Step,
    /// So many of what was in doubt came back, if they did.
    tested: usize,
    was_tested: bool,
    /// What the last prompt could show, without what is known to be refused, and how it was shown.
    shown: BTreeSet<Seq>,
    own: BTreeSet<Seq>,
    refused: BTreeSet<Seq>,
    new: Vec<Seq>,
    doubtful: BTreeSet<Seq>,
    newest: Seq,
    is_known: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Some of what is in doubt comes back.
    Test,
    /// All that is in doubt stays out.
    Usual,
    /// Of the new messages so many are shown, the newest.
    Half { shown: usize, before: usize, tries: u32 },
    /// Nothing but the newest message is shown.
    Alone,
    /// The others that are new are shown without the newest.
    Others,
}

impl Search {
    pub fn new(asked: Asked, model: Arc<str>) -> Self {
        Self {
            asked,
            model,
            step: Step::Test,
            tested: 0,
            was_tested: false,
            shown: BTreeSet::new(),
            own: BTreeSet::new(),
            refused: BTreeSet::new(),
            new: Vec::new(),
            doubtful: BTreeSet::new(),
            newest: Seq::NONE,
            is_known: false,
        }
    }

    /// Leaves out what the filter refuses or may refuse. `new_from`: the first of the messages that may be the cause, because the model has not read it
    /// before. Returns whether the prompt is a shorter one, which should have nothing but the talk.
    pub fn leave_out(&mut self, input: &mut PromptInput, companion: &CompanionId, new_from: Seq) -> bool {
        let summary = input.summary.is_some().then_some(Seq::NONE);
        let numbers: Vec<Seq> = input.recent.iter().chain(&input.buffer).map(|said| said.seq).collect();
        let said = input.recent.iter().chain(&input.buffer);
        self.own = said.filter(|said| said.message.is_by(companion)).map(|said| said.seq).collect();
        let excluded = self.excluded(&input.filtered, summary, &numbers, new_from);
        let is_shown = |said: &Said| !excluded.contains(&said.seq);
        input.recent.retain(is_shown);
        input.buffer.retain(is_shown);
        if excluded.contains(&Seq::NONE) {
            input.summary = None;
        }
        !matches!(self.step, Step::Test | Step::Usual)
    }

    /// Whether a message may be part of the last prompt.
    pub fn shows(&self, message: Seq) -> bool {
        !self.refused.contains(&message) && !self.doubtful.contains(&message)
    }

    /// Leaves out of a summary what the filter refuses or may refuse.
    pub fn leave_out_of_summary(&mut self, messages: &mut Vec<Said>, previous: &mut Option<Arc<str>>, filtered: &Filtered) {
        let numbers: Vec<Seq> = messages.iter().map(|said| said.seq).collect();
        let excluded = self.excluded(filtered, previous.is_some().then_some(Seq::NONE), &numbers, Seq::NONE.next());
        // The cause may be the summary of before.
        if excluded.contains(&Seq::NONE) || matches!(self.step, Step::Half { .. }) {
            *previous = None;
        }
        messages.retain(|said| !excluded.contains(&said.seq));
    }

    fn excluded(&mut self, filtered: &Filtered, summary: Option<Seq>, numbers: &[Seq], new_from: Seq) -> BTreeSet<Seq> {
        let of = filtered.of(self.asked, &self.model);
        let mut found = of.map(|of| of.found.clone()).unwrap_or_default();
        if self.asked == Asked::Summary {
            // What the same model refused in decisions.
            found.extend(filtered.of(Asked::Decision, &self.model).iter().flat_map(|of| &of.found));
        }
        self.newest = numbers.last().copied().unwrap_or(Seq::NONE);
        self.is_known = found.contains(&self.newest);
        self.shown = summary.iter().chain(numbers).copied().filter(|seq| !found.contains(seq)).collect();
        let is_doubtful = |seq: &&Seq| **seq != self.newest && of.is_some_and(|of| of.doubtful.contains(seq));
        self.doubtful = self.shown.iter().filter(is_doubtful).copied().collect();
        self.tested = of.map_or(0, |of| of.tested).clamp(1, self.doubtful.len().max(1));
        let is_new =
            |seq: &&Seq| **seq >= new_from && !self.own.contains(seq) && self.shown.contains(seq) && !self.doubtful.contains(seq);
        self.new = numbers.iter().filter(is_new).copied().collect();
        if self.step == Step::Test && self.doubtful.is_empty() {
            self.step = Step::Usual;
        }
        self.refused.clone_from(&found);
        let mut excluded = found;
        match self.step {
            Step::Test => excluded.extend(self.doubtful.iter().skip(self.tested)),
            Step::Usual => excluded.extend(&self.doubtful),
            Step::Half { shown, .. } => {
                excluded.extend(&self.doubtful);
                excluded.extend(&self.new[..self.new.len().saturating_sub(shown)]);
            }
            Step::Alone => excluded.extend(&self.shown),
            Step::Others => {
                excluded.extend(&self.doubtful);
                excluded.insert(self.newest);
                return excluded;
            }
        }
        if self.asked != Asked::Summary {
            // There is no question without it.
            excluded.remove(&self.newest);
        }
        excluded
    }

    /// The prompt was refused. Whether there is another one to try.
    pub fn refused(&mut self) -> bool {
        let is_summary = self.asked == Asked::Summary;
        let alone = |search: &Self| {
            let others = search.shown.iter().filter(|seq| **seq != search.newest && !search.doubtful.contains(seq));
            (others.count() > 0 && !is_summary).then_some(Step::Alone)
        };
        // What others asked is not left unanswered because of the newest message.
        let others = |search: &Self| {
            let is_other = |seq: &Seq| *seq != search.newest;
            (!is_summary && search.new.iter().any(is_other)).then_some(Step::Others)
        };
        let next = match self.step {
            Step::Test => {
                self.was_tested = true;
                Some(Step::Usual)
            }
            _ if self.is_known && self.step != Step::Others => others(self),
            Step::Usual => match self.new.len() {
                0 | 1 => alone(self).or_else(|| others(self)),
                all => Some(Step::Half { shown: all.div_ceil(2), before: all, tries: 1 }),
            },
            Step::Half { shown, tries, .. } if shown > 1 && tries < MOST_HALVES => {
                Some(Step::Half { shown: shown.div_ceil(2), before: shown, tries: tries + 1 })
            }
            Step::Half { .. } => alone(self).or_else(|| others(self)),
            Step::Alone => others(self),
            Step::Others => None,
        };
        if let Some(next) = next {
            self.step = next;
        }
        next.is_some()
    }

    /// What is to be noted, once the question is answered, or refused for the last time.
    pub fn finding(&self, is_answered: bool) -> Option<Finding> {
        let mut doubtful = self.doubtful.clone();
        let mut tested = doubtful.len() / 2;
        let (mut found, mut accepted) = (None, None);
        match self.step {
            Step::Others => found = Some(self.newest),
            // The filter takes it now.
            _ if is_answered && self.is_known && self.newest != Seq::NONE => accepted = Some(self.newest),
            Step::Test if is_answered => {
                doubtful = doubtful.into_iter().skip(self.tested).collect();
                tested = doubtful.len() / 2;
            }
            Step::Usual if is_answered && self.was_tested && self.tested > 1 => tested = self.tested / 2,
            Step::Usual if is_answered && self.was_tested => found = doubtful.pop_first(),
            Step::Test => return None,
            Step::Usual if is_answered => return None,
            Step::Half { shown, before, .. } if is_answered => {
                let of = |most: usize| self.new.len().saturating_sub(most);
                match &self.new[of(before)..of(shown)] {
                    [only] => found = Some(*only),
                    several => doubtful.extend(several),
                }
            }
            Step::Alone if is_answered => {
                doubtful = self.shown.iter().copied().filter(|seq| *seq != self.newest).collect();
                if doubtful.len() == 1 {
                    found = doubtful.pop_first();
                }
                tested = doubtful.len() / 2;
            }
            Step::Half { shown, .. } if self.asked == Asked::Summary => {
                doubtful.extend(&self.new[self.new.len().saturating_sub(shown)..]);
            }
            _ if self.is_known || self.newest == Seq::NONE => return None,
            Step::Usual | Step::Half { .. } | Step::Alone => found = Some(self.newest),
        }
        Some(Finding { asked: self.asked, model: self.model.clone(), found, accepted, doubtful, tested })
    }
}

#[cfg(test)]
mod tests;
