//! What led to a decision, and what became of it.

use std::collections::BTreeSet;

use super::round::Ballot;
use super::rows::asked_because;
use super::rules::in_a_row;
use super::words::{
    cut, decided_because, failed, failure, line, messages_in_words, moved, repeated, secs, settled, stage_changed,
};
use super::{Scene, Who};
use crate::actors::messages::channel::Look;
use crate::actors::service::reading::record;
use crate::domain::conversation::DELETED;
use crate::domain::decision::{Decision, Reason};
use crate::domain::event::{Decided, Evaluated, Event, Recorded, order_of_handling};
use crate::domain::id::{Seq, Ticket};
use crate::domain::moment::Moment;
use crate::journal::reader::{Range, ReadError};
use crate::journal::redaction::is_redacted;
use crate::ports::backend::decisions::{PromptPart, StoryLine, Why};

/// Events that are read before a decision to find what led to it, and after it to find what became of it.
const BEFORE: usize = 2_048;
const AFTER: usize = 512;
/// Messages that a story quotes; of more, the newest. Attempts that it tells.
const QUOTED: usize = 12;
/// Starts of the server that a story tells; of more, the first.
const STARTS: usize = 4;

impl Scene<'_> {
    pub(super) async fn story(&self, who: &Who, recorded: &Recorded) -> Result<Why, ReadError> {
        let Event::Decided(decided) = &recorded.event else { return Ok(Why::default()) };
        let before = self.before(recorded.seq).await?;
        let question = question(&before, decided);
        let messages = question.map_or(&decided.messages, |(_, evaluated)| &evaluated.messages);
        let is_heard = |earlier: &&Recorded| matches!(earlier.event, Event::Said { .. }) && messages.contains(&earlier.seq);
        let heard: Vec<&Recorded> = before.iter().filter(is_heard).collect();

        let mut story: Vec<StoryLine> = heard.iter().rev().take(QUOTED).rev().filter_map(|said| self.quoted(said)).collect();
        if heard.len() > QUOTED {
            let text = format!("{} messages before these are left out here.", heard.len() - QUOTED);
            story.insert(0, StoryLine { at: heard[0].at.into(), seq: None, event: "message".into(), text });
        }
        story.splice(..0, heard.first().and_then(|first| self.episode(first, &before)));
        let from = heard.first().map_or(recorded.seq, |message| message.seq);
        let told = |earlier: &Recorded| {
            failure(earlier, who)
                .or_else(|| stage_changed(earlier, who))
                .or_else(|| moved(earlier, who))
                .or_else(|| repeated(earlier))
        };
        story.extend(before.iter().filter(|earlier| earlier.seq >= from).filter_map(told));
        if matches!(decided.reason, Reason::Closed | Reason::Paused) && decided.ticket.is_none() {
            // What silenced it may lie further back.
            let earlier = before.iter().rev().filter(|earlier| earlier.seq < from);
            let silenced = earlier.filter_map(|earlier| {
                if decided.reason == Reason::Closed {
                    return stage_changed(earlier, who);
                }
                let Event::Paused { paused: true, .. } = earlier.event else { return None };
                moved(earlier, who)
            });
            story.extend(silenced.take(1));
        }
        story.sort_by_key(|line| line.seq);
        let ballot = decided.vote.as_ref().map(|vote| Ballot::new(vote, &before, |id| self.name(id)));
        story.extend(ballot.as_ref().and_then(Ballot::opened));
        if let Some((asked, evaluated)) = question {
            story.push(line(asked, "evaluate", asked_because(who, asked, evaluated, &before)));
        }
        if decided.reason == Reason::LoopGuard {
            story.push(line(recorded, "loop_guard", in_a_row(&before)));
        }
        story.push(line(recorded, "decision", decided_because(&who.name, decided)));
        if decided.decision == Decision::No {
            story.push(line(recorded, "silence", settled(&who.name, decided.messages.len())));
        }
        story.extend(self.rule(who, recorded, decided, &before).map(|text| line(recorded, "rule", text)));
        let is_yes = decided.decision == Decision::Yes;
        let mut goes_on = false;
        if ballot.is_some() || is_yes {
            let course = Course::about(messages, is_yes, recorded, &before);
            let (became, is_open) = self.became(recorded, &before, who, ballot, course).await?;
            story.extend(became);
            goes_on = is_open;
        }
        in_order(&mut story);
        let last = story.iter().map(|line| line.at.0).max();
        let end = if goes_on { last.max(Some(self.backend.context.clock.now())) } else { last };
        if let Some(end) = end {
            self.add_starts(&mut story, end).await?;
        }
        let texts = heard.iter().filter_map(|said| {
            let Event::Said { message, .. } = &said.event else { return None };
            (!is_redacted(message)).then(|| message.text.clone())
        });
        let decision = Some(record(recorded, decided, &who.id, &self.room, texts.collect()));
        let prompt = decided
            .call
            .as_ref()
            .map(|call| call.prompt.iter().map(|(part, tokens)| PromptPart { part: part.clone(), tokens: *tokens }).collect());
        Ok(Why { story, decision, prompt, ..Why::default() })
    }

    /// What was tried since a decision and came to nothing, the question that is open or was dropped, what the newest question was about, and
    /// who was silenced, let go on, came or went; oldest first.
    pub(super) async fn since(&self, since: Seq, who: &Who) -> Result<Vec<StoryLine>, ReadError> {
        let range = Range { after: since, before: None, limit: BEFORE, newest_first: true };
        let mut events = self.entries(range).await?.events;
        events.reverse();
        let mut newest: Option<(&Recorded, &Evaluated)> = None;
        let mut dropped = None;
        let mut is_open = false;
        let mut tried = Vec::new();
        for recorded in &events {
            tried.extend(failure(recorded, who));
            // Where there is no decision, everything begins with that it came.
            let is_a_beginning = since == Seq::NONE && matches!(recorded.event, Event::Joined { .. });
            tried.extend(moved(recorded, who).filter(|_| !is_a_beginning));
            match &recorded.event {
                Event::Evaluated(evaluated) if evaluated.companion == who.id => {
                    newest = Some((recorded, evaluated));
                    is_open = true;
                }
                Event::Unanswered { companion, .. } if *companion == who.id => is_open = false,
                event if is_dropped_by(event, who) => {
                    dropped = newest.take().filter(|_| is_open).or(dropped);
                    is_open = false;
                }
                Event::Decided(decided) if decided.companions.contains(&who.id) && decided.ticket.is_some() => newest = None,
                Event::Said { .. }
                | Event::Edited { .. }
                | Event::Deleted { .. }
                | Event::Joined { .. }
                | Event::Left { .. }
                | Event::Paused { .. }
                | Event::Cleared
                | Event::CaughtUp { .. }
                | Event::JitterDrawn { .. }
                | Event::LullFired { .. }
                | Event::BackOffEnded { .. }
                | Event::DeadlinesExtended { .. }
                | Event::AddressRefused { .. }
                | Event::RoundOpened(_)
                | Event::Evaluated(_)
                | Event::Decided(_)
                | Event::Unanswered { .. }
                | Event::StageChanged { .. }
                | Event::RoundClosed(_)
                | Event::RepetitionAsked { .. }
                | Event::RepetitionJudged { .. }
                | Event::ReplyOwed { .. }
                | Event::ReplyFailed { .. }
                | Event::Summarised { .. } => {}
            }
        }
        tried.drain(..tried.len().saturating_sub(QUOTED));
        for (asked, evaluated, was_open) in
            dropped.map(|(asked, of)| (asked, of, true)).into_iter().chain(newest.map(|(asked, of)| (asked, of, is_open)))
        {
            let messages = events.iter().filter(|said| evaluated.messages.contains(&said.seq));
            tried.extend(messages.rev().take(QUOTED).collect::<Vec<_>>().into_iter().rev().filter_map(|said| self.quoted(said)));
            if was_open {
                tried.push(line(asked, "evaluate", asked_because(who, asked, evaluated, &events)));
            }
        }
        tried.sort_by_key(|line| line.seq);
        let now = self.backend.context.clock.now();
        self.add_starts(&mut tried, now).await?;
        Ok(tried)
    }

    /// The events before a decision, oldest first, as far as they are read.
    pub(super) async fn before(&self, seq: Seq) -> Result<Vec<Recorded>, ReadError> {
        let range = Range { after: Seq::NONE, before: Some(seq), limit: BEFORE, newest_first: true };
        let mut events = self.entries(range).await?.events;
        events.reverse();
        Ok(events)
    }

    /// That a conversation began with a message, if one did.
    fn episode(&self, first: &Recorded, before: &[Recorded]) -> Option<StoryLine> {
        let earlier = before.iter().rev().filter(|earlier| earlier.seq < first.seq);
        let last = earlier.into_iter().find(|earlier| matches!(earlier.event, Event::Said { .. }))?;
        let quiet = first.at.since(last.at);
        let text = format!("A new conversation began: nothing had been said for {} (closing.episode_idle_secs).", secs(quiet));
        let is_new = quiet >= self.backend.context.settings.closing.episode_idle();
        is_new.then(|| StoryLine { seq: Some(first.seq), ..line(first, "episode", text) })
    }

    /// That the conversation of a decision is over, if it is.
    pub(super) fn over_since(&self, decided: &Recorded, look: &Look) -> Option<StoryLine> {
        let idle = self.backend.context.settings.closing.episode_idle();
        let now = self.backend.context.clock.now();
        let (began_at, last_at) = look.conversation.episode().map(|episode| (episode.began_at, episode.last_at))?;
        let (at, text) = if began_at > decided.at {
            (began_at, "A new conversation began, and nothing was decided in it yet.".to_owned())
        } else if now.since(last_at) >= idle {
            let quiet = secs(idle);
            (last_at + idle, format!("The conversation was over: nothing had been said for {quiet} (closing.episode_idle_secs)."))
        } else {
            return None;
        };
        Some(StoryLine { at: at.into(), seq: None, event: "episode".into(), text })
    }

    /// What became of a wish, or of a vote in a round: in the order in which the channel handled it. And whether that still goes on.
    async fn became(
        &self,
        recorded: &Recorded,
        before: &[Recorded],
        who: &Who,
        mut ballot: Option<Ballot<'_>>,
        mut course: Course,
    ) -> Result<(Vec<StoryLine>, bool), ReadError> {
        let range = Range { after: recorded.seq, before: None, limit: AFTER, newest_first: false };
        let mut later: Vec<_> = before.iter().filter(|earlier| has_crossed(earlier, recorded)).cloned().collect();
        let page = self.entries(range).await?;
        let is_all = page.looked_at() < AFTER && page.illegible.is_empty();
        later.extend(page.events);
        order_of_handling(&mut later);
        let mut story = Vec::new();
        let mut newest = recorded.seq;
        for recorded in later {
            newest = newest.max(recorded.seq);
            story.extend(stage_changed(&recorded, who));
            if let Some(ballot) = ballot.as_mut() {
                ballot.follow(&recorded);
            }
            if let Event::RoundClosed(closed) = &recorded.event
                && !course.is_over
            {
                story.extend(ballot.as_ref().map(|ballot| line(&recorded, "round", ballot.closed(closed))));
            }
            // It stands behind what was handled before it, whatever their numbers.
            story.extend(course.follow(&recorded, who).into_iter().map(|told| StoryLine { seq: Some(newest), ..told }));
            if course.is_told {
                break;
            }
        }
        Ok((story, is_all && course.goes_on()))
    }

    /// What became of a wish, in a line.
    pub(super) async fn came_to(
        &self,
        recorded: &Recorded,
        decided: &Decided,
        who: &Who,
    ) -> Result<Option<StoryLine>, ReadError> {
        let before = self.before(recorded.seq).await?;
        let messages = question(&before, decided).map_or(&decided.messages, |(_, evaluated)| &evaluated.messages);
        // What it came to is told last.
        let course = Course::about(messages, true, recorded, &before);
        Ok(self.became(recorded, &before, who, None, course).await?.0.pop())
    }

    /// Tells of starts of the server between the first message or question of a story and its end.
    async fn add_starts(&self, story: &mut Vec<StoryLine>, last: Moment) -> Result<(), ReadError> {
        let begins = |line: &&StoryLine| matches!(&*line.event, "message" | "round_opened" | "evaluate" | "error");
        let Some(first) = story.iter().find(begins).map(|line| line.at.0) else { return Ok(()) };
        for start in self.reader().starts(first, last, STARTS).await? {
            let place = story.iter().rposition(|line| line.at.0 <= start).map_or(0, |at| at + 1);
            let went_on = match place.checked_sub(1).map(|at| &*story[at].event) {
                Some("evaluate" | "round_opened") => ": the open question was asked anew",
                Some("decision" | "rule") => ": what was going on went on from there",
                Some("round" | "turn") => ": its turn was kept",
                Some("respond") => ": the statement was begun anew",
                Some("message") => ": what was not settled was still there",
                _ => "",
            };
            let text = format!("The server was started again{went_on}.");
            story.insert(place, StoryLine { at: start.into(), seq: None, event: "restart".into(), text });
        }
        Ok(())
    }
}

/// Puts a story in order: what is on record as it stands there, since clocks are set, and what is not by its time.
pub(super) fn in_order(story: &mut Vec<StoryLine>) {
    let (mut ordered, others): (Vec<_>, Vec<_>) = std::mem::take(story).into_iter().partition(|line| line.seq.is_some());
    // A conversation begins with a message, and is told of before it.
    ordered.sort_by_key(|line| (line.seq, &*line.event != "episode"));
    for other in others {
        let place = ordered.iter().rposition(|line| line.at.0 <= other.at.0).map_or(0, |at| at + 1);
        ordered.insert(place, other);
    }
    *story = ordered;
}

/// Whether what came from outside is on record before what the channel made, and was handled after it.
fn has_crossed(earlier: &Recorded, made: &Recorded) -> bool {
    earlier.event.is_heard() && earlier.seq > made.handled && earlier.seq < made.seq
}

/// Whether what a companion was asked before is not waited for any more.
fn is_dropped_by(event: &Event, who: &Who) -> bool {
    match event {
        Event::Left { companion } => *companion == who.id,
        Event::Paused { companion, paused: true } => companion.as_ref().is_none_or(|whom| *whom == who.id),
        Event::Cleared => true,
        Event::Said { .. }
        | Event::Edited { .. }
        | Event::Deleted { .. }
        | Event::Joined { .. }
        | Event::Paused { .. }
        | Event::CaughtUp { .. }
        | Event::JitterDrawn { .. }
        | Event::LullFired { .. }
        | Event::BackOffEnded { .. }
        | Event::DeadlinesExtended { .. }
        | Event::AddressRefused { .. }
        | Event::RoundOpened(_)
        | Event::Evaluated(_)
        | Event::Decided(_)
        | Event::Unanswered { .. }
        | Event::StageChanged { .. }
        | Event::RoundClosed(_)
        | Event::RepetitionAsked { .. }
        | Event::RepetitionJudged { .. }
        | Event::ReplyOwed { .. }
        | Event::ReplyFailed { .. }
        | Event::Summarised { .. } => false,
    }
}

/// How far a story has come after its decision.
#[derive(Default)]
struct Course {
    is_yes: bool,
    /// The round is closed, or none was held.
    is_over: bool,
    /// It wanted the floor, and somebody else got it.
    has_lost: bool,
    owed: Option<Ticket>,
    /// What it is about; what was taken back of that since is not in it any more.
    about: BTreeSet<Seq>,
    /// All of it was taken back.
    is_dropped: bool,
    /// There is no more to tell.
    is_told: bool,
}

impl Course {
    /// A NO is over with itself. What was taken back before a YES was read all the same, and is nothing to be answered.
    fn about(messages: &[Seq], is_yes: bool, decided: &Recorded, before: &[Recorded]) -> Self {
        let known = || before.iter().filter(|earlier| !has_crossed(earlier, decided));
        let is_gone =
            |seq: &Seq| known().any(|earlier| matches!(&earlier.event, Event::Deleted { messages } if messages.contains(seq)));
        let about = messages.iter().filter(|seq| is_yes && !is_gone(seq)).copied().collect();
        Self { about, is_yes, ..Self::default() }
    }

    /// The round is open, or the floor or the words are still waited for.
    fn goes_on(&self) -> bool {
        !self.is_told && !self.is_dropped && !self.has_lost
    }

    fn follow(&mut self, recorded: &Recorded, who: &Who) -> Vec<StoryLine> {
        let name = &who.name;
        let mut told = Vec::new();
        match &recorded.event {
            Event::Said { message, reply: Some(ticket), .. } if self.owed == Some(*ticket) => {
                let text = if is_redacted(message) {
                    format!("{name} said something that was taken back or forgotten since.")
                } else {
                    format!("{name} said: “{}”", cut(&message.text))
                };
                told.push(line(recorded, "statement", text));
                self.is_told = true;
            }
            // What was on its way then may still have been said; the round goes on without it.
            Event::RoundClosed(_) | Event::RoundOpened(_) | Event::Evaluated(_) | Event::ReplyOwed { .. } if self.is_dropped => {
                self.is_over = true;
                self.is_told = true;
            }
            _ if self.is_dropped => {}
            // The floor is free again: what became of its words was lost.
            Event::RoundOpened(_) | Event::Evaluated(_) | Event::ReplyOwed { .. } if self.owed.is_some() => self.is_told = true,
            Event::Deleted { messages } if self.about.iter().any(|seq| messages.contains(seq)) => {
                self.about.retain(|seq| !messages.contains(seq));
                if self.about.is_empty() && !self.has_lost {
                    self.is_dropped = true;
                    // Whoever waited for its turn had said nothing.
                    self.is_told = self.is_over && self.owed.is_none();
                    let text =
                        format!("All that it was about was taken back or forgotten, and with it what {name} had not said yet.");
                    told.push(line(recorded, "dropped", text));
                }
            }
            Event::RoundClosed(closed) if !self.is_over => {
                self.is_over = true;
                self.is_told = !self.is_yes;
                if closed.selected.as_ref() == Some(&who.id) {
                    let delay = closed.speak_at.map(|at| at.since(recorded.at)).filter(|delay| !delay.is_zero());
                    told.extend(delay.map(|delay| {
                        let text = format!(
                            "{name} waits {} before it speaks (turn_taking.turn_delay_secs); what is said meanwhile is answered, too.",
                            secs(delay)
                        );
                        line(recorded, "turn", text)
                    }));
                } else if let Some(other) = closed.others.iter().find(|other| other.companion == who.id) {
                    self.has_lost = true;
                    let due = other
                        .next_interjection_at
                        .map(|next| format!("; by its count of messages alone it would be asked again at {next}"));
                    let text = format!(
                        "{name} did not get the floor. Nothing settles for it, and its wish is kept for the next round{}.",
                        due.unwrap_or_default()
                    );
                    told.push(line(recorded, "floor_lost", text));
                }
            }
            Event::Decided(decided) if self.has_lost && decided.companions.contains(&who.id) => {
                let text = format!(
                    "{name} was considered anew, and that came to {} ({}): decision {}.",
                    decided.decision, decided.reason, recorded.seq
                );
                told.push(line(recorded, "next", text));
                self.is_told = true;
            }
            // The next round without it: its own wish is gone, or told of there.
            Event::RoundOpened(_) if self.owed.is_none() && self.is_over && !self.has_lost => self.is_told = true,
            Event::ReplyOwed { companion: by, ticket, messages, .. } if *by == who.id && self.owed.is_none() => {
                self.owed = Some(*ticket);
                self.about = messages.iter().copied().collect();
                let text = if self.has_lost {
                    format!(
                        "The one before it made no statement, so {name} took over, and answers {}.",
                        messages_in_words(messages.len())
                    )
                } else if messages.is_empty() {
                    format!("{name} got the floor, with nothing left to answer.")
                } else {
                    format!("{name} got the floor, and answers {}.", messages_in_words(messages.len()))
                };
                self.has_lost = false;
                told.push(line(recorded, "respond", text));
            }
            Event::ReplyFailed { ticket, error, .. } if self.owed == Some(*ticket) => {
                let text = if **error == *DELETED {
                    "All that it would have answered was taken back or forgotten, so nothing was said.".to_owned()
                } else {
                    format!("No statement was made ({}). What was heard is in the history all the same.", failed(error))
                };
                told.push(line(recorded, "failed", text));
                self.is_told = true;
            }
            Event::Cleared => {
                told.push(line(recorded, "cleared", "What was going on was dropped before anything was said.".into()));
                self.is_told = true;
            }
            Event::Left { companion } if *companion == who.id => {
                told.push(line(recorded, "moved", format!("{name} left the room before anything was said.")));
                self.is_told = true;
            }
            Event::Paused { companion, paused: true }
                if self.owed.is_none() && companion.as_ref().is_none_or(|whom| *whom == who.id) =>
            {
                told.push(line(recorded, "moved", format!("An operator paused {name} before it spoke.")));
                self.is_told = true;
            }
            Event::Said { .. }
            | Event::Edited { .. }
            | Event::Deleted { .. }
            | Event::Joined { .. }
            | Event::Left { .. }
            | Event::Paused { .. }
            | Event::CaughtUp { .. }
            | Event::JitterDrawn { .. }
            | Event::LullFired { .. }
            | Event::BackOffEnded { .. }
            | Event::DeadlinesExtended { .. }
            | Event::AddressRefused { .. }
            | Event::RoundOpened(_)
            | Event::Evaluated(_)
            | Event::Decided(_)
            | Event::Unanswered { .. }
            | Event::StageChanged { .. }
            | Event::RoundClosed(_)
            | Event::RepetitionAsked { .. }
            | Event::RepetitionJudged { .. }
            | Event::ReplyOwed { .. }
            | Event::ReplyFailed { .. }
            | Event::Summarised { .. } => {}
        }
        told
    }
}

fn question<'a>(before: &'a [Recorded], decided: &Decided) -> Option<(&'a Recorded, &'a Evaluated)> {
    before.iter().rev().find_map(|recorded| {
        let Event::Evaluated(evaluated) = &recorded.event else { return None };
        (Some(evaluated.ticket) == decided.ticket).then_some((recorded, evaluated))
    })
}
