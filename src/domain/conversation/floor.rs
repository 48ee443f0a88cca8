//! Assigns the floor: votes that wait for it, companions that lose it because they write for too long, and their late statements
//! (docs/design/turn-taking.md T-20 to T-22).

use super::super::event::Outvoted;
use super::super::round::ranked;
use super::super::window::Entry;
use super::advance::AnswerRecord;
use super::*;

/// The error code of a late reply whose companion was closed, was paused or left.
pub const CLOSED: &str = "closed";

impl Conversation {
    /// The number of statements since the conversation was opened. Late ones count from their selection.
    pub(super) fn turns_count(&self) -> u32 {
        let late = self.turns.late.iter().filter(|late| late.selection.selected_at >= self.closing.tally.opened);
        self.closing.tally.turns.saturating_add(late.count() as u32)
    }

    /// Marks a reply whose posting was interrupted by a restart, so that it is not generated again.
    pub fn note_interrupted_posting(&mut self, ticket: Ticket) {
        if let Some(floor) = self.turns.floor.as_mut().filter(|floor| floor.ticket == ticket) {
            floor.is_posting = true;
        }
    }

    /// Accepts the complete text of a reply. The companion with the floor posts it; a late one waits for the floor.
    pub(super) fn accept_text(&mut self, ticket: Ticket, text: Arc<str>, out: &mut Vec<Output>) {
        match self.turns.floor.as_ref().filter(|floor| floor.ticket == ticket) {
            // The text of a stopped attempt is discarded.
            Some(floor) if floor.is_being_made() => self.post(text, out),
            Some(_) => {}
            None => {
                if let Some(late) = self.turns.late.iter_mut().find(|late| late.ticket == ticket && late.is_being_made()) {
                    late.text = Some(text);
                }
            }
        }
    }

    pub(super) fn post(&mut self, text: Arc<str>, out: &mut Vec<Output>) {
        if let Some(floor) = &mut self.turns.floor {
            floor.is_posting = true;
            out.push(Output::Post(Box::new(Posting {
                companion: floor.companion.clone(),
                ticket: floor.ticket,
                text,
                spoken: None,
            })));
        }
    }

    /// Drops held votes whose messages have settled, votes for a silence, which is over, and votes of companions that do not want to speak any more.
    pub(super) fn drop_settled_held(&mut self) {
        let Self { turns, gates, .. } = self;
        turns.held.retain(|companion, _| {
            let Some(gate) = gates.get_mut(companion) else { return false };
            let cursor = gate.cursor;
            gate.wish.take_if(|wish| wish.message <= cursor || !wish.trigger.needs_a_message());
            gate.wish.is_some()
        });
    }

    pub(super) fn apply_held_selected(&mut self, selected: &CompanionId, others: &[Outvoted]) {
        let opened = self.turns.held.get(selected).map_or(self.position.handled, |held| held.opened);
        let turn = self.gates.get(selected).and_then(|gate| gate.wish.as_ref()).and_then(|wish| wish.turn);
        self.turns.held.clear();
        // Held votes waited longer than the turn delay, so they have none.
        self.begin_turn(Some(selected), others, opened, turn, None);
    }

    /// The number of statements that were selected after the newest human message. Late ones count from their selection.
    pub(super) fn streak(&self) -> u32 {
        let late = self.turns.late.iter().filter(|late| late.selection.selected_at >= self.closing.tally.newest_human);
        self.closing.tally.streak.saturating_add(late.count() as u32)
    }

    /// The companions whose votes are held, in their order of speaking. Those that were called upon come first, ordered by their rounds: the round of
    /// which a companion was addressed earliest comes first. Within a round, and among all others, the order is as at the end of a round.
    fn held_ranking(&self) -> Vec<CompanionId> {
        let mut ranking =
            ranked(self.turns.held.values().map(|held| &held.state), |companion| self.spoke.get(companion).copied());
        let mut addressed_at = BTreeMap::<Seq, Seq>::new();
        for (companion, held) in self.turns.held.iter().filter(|(_, held)| held.state.selected) {
            let is_call = |entry: &&Entry| entry.message.address.includes(companion);
            let first = self.buffer(companion).find(is_call).map_or(held.opened, |entry| entry.seq);
            addressed_at.entry(held.opened).and_modify(|at| *at = first.min(*at)).or_insert(first);
        }
        let order = |companion: &CompanionId| {
            let called = self.turns.held.get(companion).filter(|held| held.state.selected);
            called.map_or((true, None), |held| (false, addressed_at.get(&held.opened)))
        };
        ranking.sort_by_cached_key(order);
        ranking
    }
}

impl Step<'_, '_> {
    /// The outvoted candidates of a selection, with the interjection counter of each after losing.
    pub(super) fn outvoted(&self, others: impl IntoIterator<Item = CompanionId>) -> Vec<Outvoted> {
        let others = others.into_iter().map(|companion| {
            let gate = &self.state.gates[&companion];
            let next =
                self.world.policies.get(&companion).and_then(|policy| gate.after_losing(policy.interval(gate.check_count, 0)));
            Outvoted { companion, next_interjection_at: next }
        });
        others.collect()
    }

    /// Takes the floor from a companion that has written for too long.
    pub(super) fn expire_floor(&mut self) {
        let has_expired =
            |floor: &&OwedReply| floor.is_being_made() && floor.expires_at.is_some_and(|expires_at| self.is_due(expires_at));
        if let Some(floor) = self.state.turns.floor.as_deref().filter(has_expired) {
            self.record(Event::FloorExpired { companion: floor.companion.clone(), ticket: floor.ticket });
        }
    }

    /// Drops the late replies of companions that were closed, were paused or left.
    fn drop_closed_late(&mut self) {
        let is_silenced = |late: &&OwedReply| self.state.gates.get(&late.companion).is_none_or(Gate::is_silent);
        for ticket in self.state.turns.late.iter().filter(is_silenced).map(|late| late.ticket).collect::<Vec<_>>() {
            self.fail_reply(ticket, CLOSED.into());
            self.out.push(Output::Cancel { ticket });
        }
    }

    /// Gives a free floor to a complete late text, otherwise to one of the companions whose votes are held.
    pub(super) fn use_free_floor(&mut self) {
        // A statement may have closed companions, and a paused one may have lost the floor.
        self.drop_closed_late();
        while !self.state.turns.is_floor_taken() && !self.state.turns.is_being_judged() {
            if let Some(late) = self.state.turns.late.iter_mut().find(|late| late.text.is_some()) {
                let (companion, ticket, text) = (late.companion.clone(), late.ticket, late.text.take());
                self.record(Event::FloorTaken { companion, ticket });
                if let Some(text) = text {
                    self.state.post(text, &mut self.out);
                }
            } else if self.state.turns.held.is_empty() || self.awaits_last_statement() || !self.select_held() {
                return;
            }
        }
    }

    /// Selects among the companions whose votes are held. Checks the loop guard and the budget again, because they may have changed since the votes.
    /// Returns whether a companion was selected.
    fn select_held(&mut self) -> bool {
        // One statement of the held votes is already promised.
        self.world.ledger.promise_statements(self.world.channel, self.state.turns.expected_statements() - 1);
        let used_up = self.world.exhausted_statement_budget(self.state.position.clock);
        let refusal = if self.is_guarded() { Some(Reason::LoopGuard) } else { used_up.map(|_| Reason::Budget) };
        let ranking = self.state.held_ranking();
        if let Some(reason) = refusal {
            for companion in ranking {
                let Some(wish) = self.state.gates.get(&companion).and_then(|gate| gate.wish.as_ref()) else { continue };
                let (trigger, upto) = (wish.trigger, wish.upto);
                let answered = AnswerRecord { used_up: used_up.filter(|_| reason == Reason::Budget), ..AnswerRecord::default() };
                // Messages after its question wait for the next one.
                self.decline(&companion, trigger, reason, upto, answered);
            }
            return false;
        }
        let mut ranking = ranking.into_iter();
        let Some(selected) = ranking.next() else { return false };
        let others = self.outvoted(ranking);
        self.record(Event::HeldSelected { selected, others });
        self.begin_turn_at_once();
        true
    }
}
