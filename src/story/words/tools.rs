//! Sentences about calls of tools.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{cut, span};
use crate::domain::event::{Event, Recorded};
use crate::domain::id::Ticket;
use crate::domain::moment::Moment;
use crate::domain::tools::{Found, Who};
use crate::ports::backend::decisions::StoryLine;
use crate::story::Subject;
use crate::story::aloud::People;

/// The line that nobody decided about a proposed call of this companion. `decided` are the calls that somebody decided about until `read_to`.
pub(crate) fn lapsed_call(recorded: &Recorded, decided: &BTreeSet<Ticket>, read_to: Moment, who: &Subject) -> Option<StoryLine> {
    let Event::ToolCalled(called) = &recorded.event else { return None };
    let until = called.until.filter(|until| *until <= read_to)?;
    if called.companion != who.id || called.refused.is_some() || decided.contains(&called.call) {
        return None;
    }
    let told = who.sentence("why.tools.lapsed", &[("tool", &called.tool)]).line(recorded, "tool_confirmed");
    Some(StoryLine { at: until.into(), seq: None, ..told })
}

/// The line for an event about a call of this companion. `None` for other events.
#[expect(clippy::wildcard_enum_match_arm, reason = "the other events are not about calls")]
pub(crate) fn tool_call(recorded: &Recorded, people: &People, who: &Subject) -> Option<StoryLine> {
    let name = |person| people.name(person).unwrap_or_else(|| person.as_shared().clone());
    let (told, kind) = match &recorded.event {
        Event::ToolCalled(called) if called.companion == who.id => {
            let arguments = if called.arguments.is_empty() { who.say("why.tools.gone", &[]) } else { cut(&called.arguments) };
            let cause = match &called.cause {
                Some(Who { person, .. }) => {
                    let found = called.found.unwrap_or(Found::Unknown);
                    who.sentence(&format!("why.tools.found.{found}"), &[("who", &name(person))])
                }
                None => who.sentence("why.tools.no_cause", &[]),
            };
            let then = called.refused.map(|refused| who.sentence(&format!("why.tools.refused.{refused}"), &[]));
            let then = then.or_else(|| called.until.map(|_| who.sentence("why.tools.proposed", &[])));
            let told = who.sentence("why.tools.called", &[("tool", &called.tool), ("arguments", &arguments)]);
            (told.and(Some(cause)).and(then), "tool_called")
        }
        Event::ToolConfirmed(confirmed) if confirmed.companion == who.id => {
            let tool = people.tool(confirmed.call).unwrap_or_default();
            let by = confirmed.by.as_ref().map(name);
            let key = match (&by, confirmed.is_confirmed) {
                (Some(_), true) => "why.tools.confirmed",
                (Some(_), false) => "why.tools.declined",
                (None, true) => "why.tools.confirmed_by_operator",
                (None, false) => "why.tools.declined_by_operator",
            };
            (who.sentence(key, &[("who", &by.unwrap_or_default()), ("tool", &tool)]), "tool_confirmed")
        }
        Event::ToolAnswered(answered) if answered.companion == who.id => {
            let answer = &answered.answer;
            let text = if answer.text.is_empty() { who.say("why.tools.gone", &[]) } else { cut(&answer.text) };
            let time = span(Duration::from_millis(answer.ms), who.language);
            let key = format!("why.tools.{}", answer.outcome);
            (who.sentence(&key, &[("tool", &answered.tool), ("time", &time), ("text", &text)]), "tool_answered")
        }
        _ => return None,
    };
    Some(told.line(recorded, kind))
}
