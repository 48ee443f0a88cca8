//! Explains the events that led to a decision, and its consequences.

use std::collections::BTreeSet;

use super::Scene;
use crate::actors::companion::elsewhere;
use crate::actors::messages::channel::Inspection;
use crate::backend::reading::record;
use crate::domain::decision::{Decision, Reason};
use crate::domain::event::{Decided, Evaluated, Event, Recorded, order_of_handling};
use crate::domain::id::{Seq, Ticket};
use crate::domain::message::Recalled;
use crate::domain::moment::Moment;
use crate::domain::note::Note;
use crate::domain::trigger::Trigger;
use crate::journal::channel_key::ChannelKey;
use crate::journal::reader::{Range, ReadError};
use crate::journal::redaction::is_redacted;
use crate::ports::backend::decisions::{PromptPart, StoryLine, Why};
use crate::story::Subject;
use crate::story::course::{Course, has_crossed};
use crate::story::words::{
    self, Told, consequence, disclosed, failure, lapsed_call, moved, question_line, repeated, span, stage_changed,
    statement_failed, tool_call,
};

/// The number of events that are read before a decision to find its causes, and after it to find its consequences.
const BEFORE: usize = 2_048;
const AFTER: usize = 512;
/// The number of messages that an explanation quotes, and of attempts that it shows. If there are more, the newest are shown.
const MAX_QUOTED: usize = 12;
/// The number of recalled messages that an explanation quotes. If there are more, the best are shown.
const MAX_RECALLED: usize = 4;
/// The number of server starts that an explanation shows. If there are more, the first are shown.
const MAX_STARTS: usize = 4;

impl Scene<'_> {
    pub(super) async fn story(&self, who: &Subject, recorded: &Recorded) -> Result<Why, ReadError> {
        let Event::Decided(decided) = &recorded.event else { return Ok(Why::default()) };
        let before = self.before(recorded.seq).await?;
        let question = question(&before, decided);
        let messages = question.map_or(&decided.messages, |(_, evaluated)| &evaluated.messages);
        let is_message = |earlier: &&Recorded| matches!(earlier.event, Event::Said { .. }) && messages.contains(&earlier.seq);
        let considered: Vec<&Recorded> = before.iter().filter(is_message).collect();

        let mut story: Vec<StoryLine> =
            considered.iter().rev().take(MAX_QUOTED).rev().filter_map(|message| self.quoted(message)).collect();
        if considered.len() > MAX_QUOTED {
            let told = Told::new(self.language, "why.left_out", &[("count", &(considered.len() - MAX_QUOTED))]);
            story.insert(0, StoryLine { seq: None, ..told.line(considered[0], "message") });
        }
        story.splice(..0, considered.first().and_then(|first| self.episode(first, &before)));
        let from = considered.first().map_or(recorded.seq, |message| message.seq);
        let to_line = |earlier: &Recorded| {
            failure(earlier, who)
                .or_else(|| stage_changed(earlier, who))
                .or_else(|| moved(earlier, who))
                .or_else(|| repeated(earlier, self.language))
        };
        story.extend(before.iter().filter(|earlier| earlier.seq >= from).filter_map(to_line));
        if matches!(decided.reason, Reason::Closed | Reason::Paused) && decided.ticket.is_none() {
            // The event that silenced the companion may be earlier.
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
        let course = Course::after(recorded, &before, who);
        story.extend(question.map(|(asked, evaluated)| question_line(who, asked, evaluated, &before)));
        story.push(words::decision(who, decided, &before, &|id| self.name(id)).line(recorded, "decision"));
        story.extend(self.rule(who, recorded, decided));
        let mut in_progress = false;
        if decided.vote.is_some() || decided.decision == Decision::Yes {
            let (lines, is_open, recalled) = self.consequences(recorded, &before, who, course).await?;
            story.extend(lines);
            story.extend(self.recalled(&recalled).await?);
            in_progress = is_open;
        }
        in_order(&mut story);
        let last = story.iter().map(|line| line.at.0).max();
        let end = if in_progress { last.max(Some(self.backend.context.clock.now())) } else { last };
        if let Some(end) = end {
            self.add_starts(who, &mut story, end).await?;
        }
        let texts = considered.iter().filter_map(|earlier| {
            let Event::Said { message, .. } = &earlier.event else { return None };
            (!is_redacted(message)).then(|| message.text.clone())
        });
        let decision = Some(record(recorded, decided, &who.id, &self.room, texts.collect()));
        let prompt = decided
            .call
            .as_ref()
            .map(|call| call.prompt.iter().map(|(part, tokens)| PromptPart { part: part.clone(), tokens: *tokens }).collect());
        Ok(Why { story, decision, prompt, ..Why::default() })
    }

    /// The events since a decision, oldest first: failed attempts, an open or dropped question, the messages of the newest question, and whether
    /// the companion was paused or resumed, joined or left.
    pub(super) async fn since(&self, since: Seq, who: &Subject) -> Result<Vec<StoryLine>, ReadError> {
        let range = Range { after: since, before: None, limit: BEFORE, newest_first: true };
        let mut events = self.entries(range).await?.events;
        events.reverse();
        let mut newest: Option<(&Recorded, &Evaluated)> = None;
        let mut dropped = None;
        let mut is_open = false;
        let (mut tried, mut again) = (Vec::new(), Vec::new());
        for recorded in &events {
            tried.extend(failure(recorded, who));
            // Without a decision, the explanation begins with the companion's join, which needs no line.
            let is_first_join = since == Seq::NONE && matches!(recorded.event, Event::Joined { .. });
            tried.extend(moved(recorded, who).filter(|_| !is_first_join));
            match &recorded.event {
                Event::Evaluated(evaluated) if evaluated.companion == who.id => {
                    newest = Some((recorded, evaluated));
                    is_open = true;
                }
                Event::Unanswered { companion, .. } if *companion == who.id => is_open = false,
                Event::ReplyFailed { ticket, error, category, .. } if again.contains(ticket) => {
                    tried.push(statement_failed(who, error, category.as_deref()).line(recorded, "failed"));
                }
                Event::ReplyOwed { companion, ticket, again: Some(_), continues, .. } if *companion == who.id => {
                    again.push(*ticket);
                    let key = if *continues { "why.continued" } else { "why.again" };
                    tried.push(who.sentence(key, &[]).line(recorded, "respond"));
                }
                Event::ReplyOwed { companion, ticket, trigger: Trigger::Chosen, .. } if *companion == who.id => {
                    again.push(*ticket);
                    tried.push(chosen(recorded, who, &events).line(recorded, "respond"));
                }
                event if event.cancels(&who.id) || event.pauses(&who.id) => {
                    dropped = newest.take().filter(|_| is_open).or(dropped);
                    is_open = false;
                }
                Event::Decided(decided) if decided.companions.contains(&who.id) && decided.ticket.is_some() => newest = None,
                _ => {}
            }
        }
        tried.drain(..tried.len().saturating_sub(MAX_QUOTED));
        for (asked, evaluated, was_open) in
            dropped.map(|(asked, of)| (asked, of, true)).into_iter().chain(newest.map(|(asked, of)| (asked, of, is_open)))
        {
            let messages = events.iter().filter(|earlier| evaluated.messages.contains(&earlier.seq));
            tried.extend(
                messages.rev().take(MAX_QUOTED).collect::<Vec<_>>().into_iter().rev().filter_map(|message| self.quoted(message)),
            );
            if was_open {
                tried.push(question_line(who, asked, evaluated, &events));
            }
        }
        tried.sort_by_key(|line| line.seq);
        let now = self.backend.context.clock.now();
        self.add_starts(who, &mut tried, now).await?;
        Ok(tried)
    }

    /// The events before a decision, oldest first. The number of events is bounded.
    pub(super) async fn before(&self, seq: Seq) -> Result<Vec<Recorded>, ReadError> {
        let range = Range { after: Seq::NONE, before: Some(seq), limit: BEFORE, newest_first: true };
        let mut events = self.entries(range).await?.events;
        events.reverse();
        Ok(events)
    }

    /// A line saying that a new conversation began with this message, if one did.
    fn episode(&self, first: &Recorded, before: &[Recorded]) -> Option<StoryLine> {
        let earlier = before.iter().rev().filter(|earlier| earlier.seq < first.seq);
        let last = earlier.into_iter().find(|earlier| matches!(earlier.event, Event::Said { .. }))?;
        let quiet = first.at.since(last.at);
        let is_new = quiet >= self.backend.context.settings.closing.episode_idle();
        let told = || Told::new(self.language, "why.episode.began", &[("time", &span(quiet, self.language))]);
        is_new.then(|| told().line(first, "episode"))
    }

    /// A line saying that the conversation of a decision is over, if it is.
    pub(super) fn over_since(&self, decided: &Recorded, inspection: &Inspection) -> Option<StoryLine> {
        let idle = self.backend.context.settings.closing.episode_idle();
        let now = self.backend.context.clock.now();
        let (began_at, last_at) = inspection.conversation.episode().map(|episode| (episode.began_at, episode.last_at))?;
        let (at, key) = if began_at > decided.at {
            (began_at, "why.episode.fresh")
        } else if now.since(last_at) >= idle {
            (last_at + idle, "why.episode.over")
        } else {
            return None;
        };
        let told = Told::new(self.language, key, &[("time", &span(idle, self.language))]);
        Some(StoryLine { at: at.into(), seq: None, ..told.line(decided, "episode") })
    }

    /// The consequences of a wish to speak, or of a vote in a round, in the order in which the channel handled them; and whether they are still in
    /// progress.
    async fn consequences(
        &self,
        recorded: &Recorded,
        before: &[Recorded],
        who: &Subject,
        mut course: Course,
    ) -> Result<(Vec<StoryLine>, bool, Vec<Recalled>), ReadError> {
        let range = Range { after: recorded.seq, before: None, limit: AFTER, newest_first: false };
        let mut later: Vec<_> = before.iter().filter(|earlier| has_crossed(earlier, recorded)).cloned().collect();
        let page = self.entries(range).await?;
        let is_all = page.looked_at() < AFTER && page.illegible.is_empty();
        later.extend(page.events);
        order_of_handling(&mut later);
        let read_to = if is_all { Some(self.backend.context.clock.now()) } else { later.last().map(|last| last.at) };
        let confirmed = later.iter().filter_map(|later| match &later.event {
            Event::ToolConfirmed(confirmed) => Some(confirmed.call),
            _ => None,
        });
        let confirmed: BTreeSet<Ticket> = confirmed.collect();
        let mut story = Vec::new();
        let (mut newest, mut recalled) = (recorded.seq, Vec::new());
        let is_vote = matches!(&recorded.event, Event::Decided(decided) if decided.vote.is_some());
        let (mut later, mut calls) = (later.into_iter(), BTreeSet::new());
        while let Some(recorded) = later.next() {
            newest = newest.max(recorded.seq);
            story.extend(stage_changed(&recorded, who));
            let is_in_round = is_vote && !course.is_over;
            // The line comes after everything that was handled before it, whatever the numbers of the events are.
            let then = course.follow(&recorded, who).and_then(|then| consequence(&recorded, then, &course, who));
            if let Event::RoundClosed(closed) = &recorded.event
                && is_in_round
            {
                let round = course.rounds.changed().find(|round| round.message_id == closed.message);
                let text = round.and_then(|round| words::round::closed(round, closed, &|id| self.name(id), self.language));
                story.extend(text.map(|text| Told { text, setting: None }.line(&recorded, "round")));
            }
            if let Event::Said { message, .. } = &recorded.event
                && then.is_some()
            {
                recalled.extend(message.recalled.iter().cloned());
                story.extend(words::lore(&recorded, self.language));
                story.extend(words::unseen_pictures(&recorded, before, who));
            }
            story.extend(tool_call(&recorded, &course.people, who));
            story.extend(read_to.and_then(|read_to| lapsed_call(&recorded, &confirmed, read_to, who)));
            calls.extend(recorded.event.call());
            story.extend(then.map(|line| StoryLine { seq: Some(newest), ..line }));
            if course.is_complete {
                let posted = recorded.event.reply();
                let mut has_notice = false;
                for recorded in later {
                    if recorded.event.call().is_some_and(|call| calls.contains(&call)) {
                        story.extend(tool_call(&recorded, &course.people, who));
                    } else if !has_notice {
                        let line = disclosed(&recorded, posted, who);
                        has_notice = line.is_some();
                        story.extend(line);
                    }
                }
                break;
            }
        }
        Ok((story, is_all && course.is_in_progress(), recalled))
    }

    /// Lines about the older messages and notes that were recalled for a statement.
    pub(super) async fn recalled(&self, recalled: &[Recalled]) -> Result<Vec<StoryLine>, ReadError> {
        let mut lines = Vec::new();
        for recalled in recalled.iter().take(MAX_RECALLED) {
            let (room, seq) = match recalled {
                Recalled::Here(seq) => (None, seq),
                Recalled::Elsewhere(channel, seq) => (Some(ChannelKey::new(&self.channel_key.guild, channel)), seq),
            };
            let range = Range { after: Seq(seq.0.saturating_sub(1)), before: Some(seq.next()), limit: 1, newest_first: false };
            let Some(room) = room else {
                let found = self.entries(range).await?.events;
                lines.extend(found.iter().filter_map(|recorded| words::recalled(recorded, self.language)));
                continue;
            };
            let context = &self.backend.context;
            let may_quote = |note: &Note| elsewhere::is_usable(note, &room.channel, &self.channel_key, context);
            let found = self.reader().legible(&room, range).await?.events;
            lines.extend(found.iter().filter_map(|recorded| words::noted_elsewhere(recorded, &may_quote, self.language)));
        }
        if let (Some(last), more @ 1..) = (lines.iter().max_by_key(|line| line.seq), recalled.len().saturating_sub(MAX_RECALLED))
        {
            let text = Told::new(self.language, "why.recalled.more", &[("count", &more)]).text;
            // The line does not link to a message.
            lines.push(StoryLine { text, seq: None, ..last.clone() });
        }
        Ok(lines)
    }

    /// The last line about the consequences of a wish to speak.
    pub(super) async fn outcome_line(&self, recorded: &Recorded, who: &Subject) -> Result<Option<StoryLine>, ReadError> {
        let before = self.before(recorded.seq).await?;
        // The last line has the result.
        let course = Course::after(recorded, &before, who);
        let (story, ..) = self.consequences(recorded, &before, who, course).await?;
        Ok(story.into_iter().rfind(|line| !["round", "disclosed", "lore"].contains(&&*line.event)))
    }

    /// Adds the server starts between the first message or question of an explanation and its end.
    async fn add_starts(&self, who: &Subject, story: &mut Vec<StoryLine>, last: Moment) -> Result<(), ReadError> {
        let begins = |line: &&StoryLine| matches!(&*line.event, "message" | "evaluate" | "error");
        let Some(first) = story.iter().find(begins).map(|line| line.at.0) else { return Ok(()) };
        for start in self.reader().starts(first, last, MAX_STARTS).await? {
            let index = story.iter().rposition(|line| line.at.0 <= start).map_or(0, |at| at + 1);
            let key = match index.checked_sub(1).map(|at| &*story[at].event) {
                Some("evaluate") => "why.restart.thinking",
                Some("message" | "decision" | "rule" | "round" | "turn") => "why.restart.going_on",
                Some("respond" | "held_back" | "extended") => "why.restart.writing",
                Some("speaking" | "interrupted" | "stalled") => "why.restart.speaking",
                _ => "why.restart.other",
            };
            let (text, event) = (who.say(key, &[]), "restart".into());
            story.insert(index, StoryLine { at: start.into(), seq: None, event, text, setting: None });
        }
        Ok(())
    }
}

/// Sorts an explanation: lines about recorded events by their numbers, because clocks can be set back, and other lines by their time.
pub(super) fn in_order(story: &mut Vec<StoryLine>) {
    let (mut ordered, others): (Vec<_>, Vec<_>) = std::mem::take(story).into_iter().partition(|line| line.seq.is_some());
    // The line about a new conversation comes before that of its first message.
    ordered.sort_by_key(|line| (line.seq, &*line.event != "episode"));
    for other in others {
        let index = ordered.iter().rposition(|line| line.at.0 <= other.at.0).map_or(0, |at| at + 1);
        ordered.insert(index, other);
    }
    *story = ordered;
}

pub(super) fn question<'a>(before: &'a [Recorded], decided: &Decided) -> Option<(&'a Recorded, &'a Evaluated)> {
    before.iter().rev().find_map(|recorded| {
        let Event::Evaluated(evaluated) = &recorded.event else { return None };
        (Some(evaluated.ticket) == decided.ticket).then_some((recorded, evaluated))
    })
}

/// Who let this companion speak without a vote.
fn chosen(owed: &Recorded, who: &Subject, events: &[Recorded]) -> Told {
    let choice = events.iter().rev().filter(|earlier| earlier.seq < owed.seq).find_map(|earlier| match &earlier.event {
        Event::Chosen { companions, everybody, by } if companions.contains(&who.id) => Some((*everybody, by.clone())),
        _ => None,
    });
    match choice {
        Some((true, Some(by))) => who.sentence("why.by_hand_all_of", &[("who", &by)]),
        Some((true, None)) => who.sentence("why.by_hand_all", &[]),
        Some((false, Some(by))) => who.sentence("why.by_hand_of", &[("who", &by)]),
        Some((false, None)) | None => who.sentence("why.by_hand", &[]),
    }
}
