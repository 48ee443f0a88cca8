//! Finds the message that the content filter of an endpoint refuses, so that only this message is omitted from later prompts to the model
//! (docs/design/models.md M-25).
//!
//! A refused message would be part of every later prompt, and no question would be answered any more. So the question is repeated, each time with
//! fewer of the new messages. Messages that may be the cause (*suspects*) are omitted from later prompts. Each later prompt includes half of them
//! again, until one message is found.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::id::{CompanionId, Seq};
use super::named::named;
use super::prompt::{PromptInput, Said};

/// The error code of a question that an endpoint's filter refused.
pub const FILTERED: &str = "filtered";

/// The error code of a model in a room where it refuses every question of a companion.
pub const ALL_FILTERED: &str = "all_filtered";

/// The maximum number of further calls for a question that was refused. The last one is the newest message alone, if no other prompt was answered.
const MOST_CALLS: u32 = 3;
/// The number of found messages that are kept for one model.
const MOST_FOUND: usize = 1_000;
/// After this many questions in a row that were refused in every way, the messages are not the cause.
const MOST_IN_A_ROW: usize = 3;

named! {
    /// The kind of a prompt. Findings hold for one kind only.
    pub enum Asked {
        Decision = "decision",
        Statement = "statement",
        Summary = "summary",
    }
}

/// The messages that are omitted from the prompts of one room.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filtered {
    #[serde(default, rename = "filtered", skip_serializing_if = "Vec::is_empty")]
    models: Vec<OfModel>,
    /// Counts edits and deletions. A search that began before one of them is not conclusive.
    #[serde(default, rename = "filtered_changes", skip_serializing_if = "is_zero")]
    changes: u64,
}

/// The messages that are omitted from the prompts of one kind to one model. The summary has the number [`Seq::NONE`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct OfModel {
    asked: Asked,
    model: Arc<str>,
    /// The messages that are refused.
    #[serde(default)]
    found: BTreeSet<Seq>,
    /// The messages that may be refused: the suspects.
    #[serde(default)]
    doubtful: BTreeSet<Seq>,
    /// The number of suspects, the oldest ones, that the next prompt includes again.
    #[serde(default)]
    tested: usize,
    /// The newest messages of the questions that were refused in every form since the last answer, by companion.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    in_a_row: BTreeMap<CompanionId, BTreeSet<Seq>>,
}

impl OfModel {
    fn is_needed(&self) -> bool {
        !self.found.is_empty() || !self.doubtful.is_empty() || !self.in_a_row.is_empty()
    }

    fn refuses_all(&self, companion: &CompanionId) -> bool {
        self.in_a_row.get(companion).is_some_and(|newest| newest.len() >= MOST_IN_A_ROW)
    }
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    pub asked: Asked,
    /// The model and its endpoint.
    pub model: Arc<str>,
    /// The refused message. None if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<Seq>,
    /// A message that was refused before and is accepted now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<Seq>,
    /// The newest messages of the last questions, if all of them were refused in every form. Then none of them is the cause.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub cleared: BTreeSet<Seq>,
    /// The suspects. They replace the earlier ones.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub doubtful: BTreeSet<Seq>,
    /// The number of suspects, the oldest ones, that the next prompt includes again.
    #[serde(default)]
    pub tested: usize,
    /// The companion that was asked. None for a summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub companion: Option<CompanionId>,
    /// Whether a prompt of the search was answered.
    #[serde(default)]
    pub is_answered: bool,
    /// [`Filtered::changes`] at the start of the search.
    #[serde(skip)]
    changes: u64,
}

impl Filtered {
    /// The messages that the filter of any model refuses, as the kind of prompt, the model, and the message.
    pub fn found(&self) -> impl Iterator<Item = (Asked, &Arc<str>, Seq)> + '_ {
        let all = self.models.iter().flat_map(|of| of.found.iter().map(|seq| (of.asked, &of.model, *seq)));
        all.filter(|(_, _, seq)| *seq != Seq::NONE)
    }

    /// Whether the model of this search refuses every question of its companion.
    pub fn refuses_all(&self, search: &Search) -> bool {
        let of = self.of(search.asked, &search.model).zip(search.companion.as_ref());
        of.is_some_and(|(of, companion)| of.refuses_all(companion))
    }

    /// The finding after a check against the current state. `None`: a message was changed during the search, or the messages are not the cause.
    pub fn checked(&self, mut finding: Finding) -> Option<Finding> {
        if finding.changes != self.changes {
            return None;
        }
        let of = self.of(finding.asked, &finding.model).filter(|_| !finding.is_answered);
        if let (Some(of), Some(companion)) = (of, &finding.companion) {
            if of.refuses_all(companion) {
                return None;
            }
            let mut newest = of.in_a_row.get(companion).cloned().unwrap_or_default();
            newest.extend(finding.found);
            if newest.len() >= MOST_IN_A_ROW {
                (finding.found, finding.cleared) = (None, newest);
            }
        }
        Some(finding)
    }

    pub(super) fn apply(&mut self, finding: &Finding) {
        let Finding { asked, model, found, accepted, cleared, doubtful, tested, companion, is_answered, changes: _ } = finding;
        let is_same = |of: &OfModel| of.asked == *asked && of.model == *model;
        let at = self.models.iter().position(is_same).unwrap_or_else(|| {
            self.models.push(OfModel {
                asked: *asked,
                model: model.clone(),
                found: BTreeSet::new(),
                doubtful: BTreeSet::new(),
                tested: 0,
                in_a_row: BTreeMap::new(),
            });
            self.models.len() - 1
        });
        let of = &mut self.models[at];
        of.found.extend(found);
        of.found.retain(|seq| Some(*seq) != *accepted && !cleared.contains(seq));
        of.doubtful.clone_from(doubtful);
        of.tested = *tested;
        while of.found.len() > MOST_FOUND {
            of.found.pop_first();
        }
        match companion {
            Some(companion) if *is_answered => drop(of.in_a_row.remove(companion)),
            Some(companion) if found.is_some() || !cleared.is_empty() => {
                of.in_a_row.entry(companion.clone()).or_default().extend(found.iter().chain(cleared));
            }
            _ => {}
        }
        self.models.retain(OfModel::is_needed);
    }

    /// Removes messages that were edited or deleted, or the summary after it was replaced.
    pub(super) fn forget(&mut self, messages: &[Seq]) {
        self.changes += 1;
        self.retain(|seq| !messages.contains(&seq));
    }

    /// Removes everything after a clear, because no earlier message is part of a prompt any more.
    pub(super) fn clear(&mut self) {
        *self = Self { changes: self.changes + 1, ..Self::default() };
    }

    /// Removes the messages below this number, which are not part of prompts any more.
    pub(super) fn drop_below(&mut self, below: Seq) {
        self.retain(|seq| seq >= below || seq == Seq::NONE);
    }

    fn retain(&mut self, is_kept: impl Fn(Seq) -> bool) {
        for of in &mut self.models {
            of.found.retain(|seq| is_kept(*seq));
            of.doubtful.retain(|seq| is_kept(*seq));
        }
        self.models.retain(OfModel::is_needed);
    }

    fn of(&self, asked: Asked, model: &str) -> Option<&OfModel> {
        self.models.iter().find(|of| of.asked == asked && *of.model == *model)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The search for the refused message during one question.
#[derive(Debug)]
pub struct Search {
    asked: Asked,
    model: Arc<str>,
    companion: Option<CompanionId>,
    step: Step,
    /// The number of prompts after the first one.
    calls: u32,
    /// [`Filtered::changes`] at the first prompt.
    changes: Option<u64>,
    /// Whether the last questions of the companion were refused in every form.
    is_in_a_row: bool,
    /// The number of suspects that the first prompt included again.
    tested: usize,
    was_tested: bool,
    /// The messages of the last prompt and those that the search omitted, without those that are known to be refused.
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
    /// The prompt includes some of the suspects.
    Test,
    /// The prompt includes none of the suspects.
    Usual,
    /// The prompt includes the newest `shown` of the new messages. The previous prompt had `before` of them.
    Half { shown: usize, before: usize },
    /// The prompt has only the newest message.
    Alone,
    /// The prompt has all messages except the newest one and the suspects.
    Others,
}

impl Search {
    pub fn new(asked: Asked, model: Arc<str>) -> Self {
        Self {
            asked,
            model,
            companion: None,
            step: Step::Test,
            calls: 0,
            changes: None,
            is_in_a_row: false,
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

    /// Removes the refused messages and the suspects from a prompt. `new_from` is the first message that the model has not read before. Returns
    /// whether the prompt is part of a search. Then it should contain neither recalled messages nor a reason.
    pub fn leave_out(&mut self, input: &mut PromptInput, companion: &CompanionId, new_from: Seq) -> bool {
        let summary = input.summary.is_some().then_some(Seq::NONE);
        let numbers: Vec<Seq> = input.recent.iter().chain(&input.buffer).map(|said| said.seq).collect();
        let said = input.recent.iter().chain(&input.buffer);
        self.companion = Some(companion.clone());
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

    /// Removes the refused messages and the suspects from the prompt of a summary.
    pub fn leave_out_of_summary(&mut self, messages: &mut Vec<Said>, previous: &mut Option<Arc<str>>, filtered: &Filtered) {
        let numbers: Vec<Seq> = messages.iter().map(|said| said.seq).collect();
        let excluded = self.excluded(filtered, previous.is_some().then_some(Seq::NONE), &numbers, Seq::NONE.next());
        // The previous summary may be the cause.
        if excluded.contains(&Seq::NONE) || matches!(self.step, Step::Half { .. }) {
            *previous = None;
        }
        messages.retain(|said| !excluded.contains(&said.seq));
    }

    fn excluded(&mut self, filtered: &Filtered, summary: Option<Seq>, numbers: &[Seq], new_from: Seq) -> BTreeSet<Seq> {
        let of = filtered.of(self.asked, &self.model);
        self.changes.get_or_insert(filtered.changes);
        self.is_in_a_row = of.zip(self.companion.as_ref()).is_some_and(|(of, companion)| of.in_a_row.contains_key(companion));
        let mut found = of.map(|of| of.found.clone()).unwrap_or_default();
        if self.asked == Asked::Summary {
            // The same model refuses them in decisions.
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
            // A question needs its newest message.
            excluded.remove(&self.newest);
        }
        excluded
    }

    /// Handles the refusal of the prompt. Returns whether there is another one to try.
    pub fn refused(&mut self) -> bool {
        let is_summary = self.asked == Asked::Summary;
        let Some(left) = MOST_CALLS.checked_sub(self.calls + 1) else { return false };
        let others = self.shown.iter().filter(|seq| **seq != self.newest && !self.doubtful.contains(seq));
        let alone = (others.count() > 0 && !is_summary).then_some(Step::Alone);
        // The other new messages are still answered if the newest one is refused.
        let others = (!is_summary && self.new.iter().any(|seq| *seq != self.newest)).then_some(Step::Others);
        // After half of the messages, a call must be left for the newest one alone.
        let half =
            |before: usize| (before > 1 && (left > 0 || is_summary)).then_some(Step::Half { shown: before.div_ceil(2), before });
        let next = match self.step {
            Step::Test => {
                self.was_tested = true;
                Some(Step::Usual)
            }
            _ if self.is_known && self.step != Step::Others => others,
            Step::Usual => half(self.new.len()).or(alone).or(others),
            Step::Half { shown, .. } => half(shown).or(alone).or(others),
            Step::Alone => others,
            Step::Others => None,
        };
        if let Some(next) = next {
            (self.step, self.calls) = (next, self.calls + 1);
        }
        next.is_some()
    }

    /// The result of the search, once the question is answered or finally refused.
    pub fn finding(&self, is_answered: bool) -> Option<Finding> {
        let mut doubtful = self.doubtful.clone();
        let mut tested = doubtful.len() / 2;
        let (mut found, mut accepted) = (None, None);
        match self.step {
            Step::Others => found = Some(self.newest),
            // The filter accepts the message now.
            _ if is_answered && self.is_known && self.newest != Seq::NONE => accepted = Some(self.newest),
            Step::Test if is_answered => {
                doubtful = doubtful.into_iter().skip(self.tested).collect();
                tested = doubtful.len() / 2;
            }
            Step::Usual if is_answered && self.was_tested && self.tested > 1 => tested = self.tested / 2,
            Step::Usual if is_answered && self.was_tested => found = doubtful.pop_first(),
            Step::Test => return None,
            Step::Usual if is_answered && !self.is_in_a_row => return None,
            Step::Usual if is_answered => {}
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
        Some(Finding {
            asked: self.asked,
            model: self.model.clone(),
            found,
            accepted,
            cleared: BTreeSet::new(),
            doubtful,
            tested,
            companion: self.companion.clone(),
            is_answered,
            changes: self.changes.unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests;
