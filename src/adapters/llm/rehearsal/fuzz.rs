//! Fuzz target for the built-in model: its answers to hostile messages can be parsed, and are bounded.

use std::sync::LazyLock;

use tokio::runtime::{Builder, Runtime};

use super::*;
use crate::domain::answer::{Verdict, Words};
use crate::domain::closing::Stage;
use crate::domain::message::{Author, Role};
use crate::domain::question_context::Line;
use crate::domain::raw_answer::{self, Speakers};
use crate::domain::trigger::Trigger;
use crate::domain::vote;
use crate::fuzzing::{is_bounded, parts, text};
use crate::ports::language_model::{Asker, Message, ModelRole};

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Builder::new_current_thread().enable_time().build().expect("a runtime"));

pub(crate) fn prompt(bytes: &[u8]) {
    let all = text(bytes);
    let fields = parts(&all);
    let roles = [Role::Person, Role::Companion, Role::Bot];
    let lines = fields.chunks(2).take(Line::MOST).enumerate().map(|(at, pair)| Line {
        from: Author { id: pair[0].into(), name: pair[0].into(), role: roles[at % 3] },
        text: pair.last().copied().unwrap_or_default().into(),
    });
    let lines: Vec<Line> = lines.collect();
    let trigger = Trigger::ALL[bytes.len() % Trigger::ALL.len()];
    let closing = Stage::ALL[bytes.len() % Stage::ALL.len()];
    for purpose in [
        Purpose::Vote { trigger },
        Purpose::Statement { trigger, closing, tries: 1 },
        Purpose::Summary,
        Purpose::Notes,
        Purpose::Brief,
        Purpose::Caption,
        Purpose::Judgement,
    ] {
        let request = Request {
            companion: Some(Asker { id: "aria".into(), name: "Aria".into() }),
            messages: Message::prompt(fields[0].to_owned(), all.clone().into_owned()),
            ..Request::new(ModelRole::Side, "home".into(), 100)
        };
        let context = QuestionContext { purpose: purpose.clone(), newest: lines.clone() };
        let request = request.with(context);
        let model = Rehearsal::new(&models::Rehearsal { seed: 7, pace: 0.0 });

        let answer = RUNTIME.block_on(model.ask(&request, None)).expect("it always answers");
        let answer = answer.text();

        assert!(is_bounded(&answer, 4_000), "{} bytes of answer", answer.len());
        match purpose {
            Purpose::Vote { .. } => assert_ne!(vote::read(&answer, Words::ENGLISH).verdict, Verdict::Unreadable, "{answer:?}"),
            Purpose::Statement { .. } => {
                assert!(raw_answer::statement(&answer, Speakers::new("Aria", [])).words.is_ok(), "{answer:?}")
            }
            Purpose::Votes { .. }
            | Purpose::Summary
            | Purpose::Notes
            | Purpose::Brief
            | Purpose::Caption
            | Purpose::Judgement => {}
        }
    }
}
