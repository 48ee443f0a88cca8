//! The companions of the measurement, and the built-in model, whose calls are counted.

use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::time::Duration;

use anyhow::Context as _;
use futures_util::FutureExt as _;
use jiff::tz::TimeZone;
use tertulia::adapters::llm::rehearsal::Rehearsal;
use tertulia::domain::closing::Stage;
use tertulia::domain::conversation::Conversation;
use tertulia::domain::event::Evaluated;
use tertulia::domain::filter::Filtered;
use tertulia::domain::gate::Evaluation;
use tertulia::domain::id::{CompanionId, Seq, Ticket};
use tertulia::domain::message::{Message, Modality};
use tertulia::domain::model_role::ModelRole;
use tertulia::domain::prompt::{self, Asked, Character, Other, Prompt, PromptInput, Said, Scene, StatementInput};
use tertulia::domain::question_context::{Line, Purpose, QuestionContext};
use tertulia::domain::raw_answer::{self, Speakers};
use tertulia::domain::trigger::Trigger;
use tertulia::domain::vote::together::{self, Voter};
use tertulia::domain::window::Entry;
use tertulia::ports::language_model::{AnswerFormat, Asker, LanguageModel as _, Request, TokenUsage};
use tertulia::replay::{Answer, Question, Responder};
use tertulia::settings::Settings;
use tertulia::settings::companion::{Companion, CompanionFile};

/// The three built-in companions, and five that have only a name.
const CAST: [(&str, &str); 8] = [
    ("aria", include_str!("../../config/companions/aria.toml")),
    ("bruno", include_str!("../../config/companions/bruno.toml")),
    ("cleo", include_str!("../../config/companions/cleo.toml")),
    ("dora", ""),
    ("elio", ""),
    ("fina", ""),
    ("gaspar", ""),
    ("hana", ""),
];

/// How long a quick side model takes.
const DECISION: Duration = Duration::from_millis(650);
/// How long a quick main model takes.
const STATEMENT: Duration = Duration::from_millis(2_250);

/// The first `size` companions.
pub fn cast(size: usize, settings: &Settings) -> anyhow::Result<BTreeMap<CompanionId, Companion>> {
    let mut cast = BTreeMap::new();
    for (stem, text) in &CAST[..size] {
        let file: CompanionFile = toml::from_str(text).with_context(|| format!("the companion {stem} cannot be read"))?;
        let companion = Companion::from_file(file, Some(stem), &settings.companion_defaults);
        let companion = companion.map_err(|problems| anyhow::anyhow!("the companion {stem}: {} problems", problems.len()))?;
        cast.insert(companion.id.clone(), companion);
    }
    Ok(cast)
}

/// The calls of one role, and their usage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// The number of calls.
    pub count: u64,
    /// Tokens, as the built-in model estimates them: four characters each.
    pub usage: TokenUsage,
}

impl AddAssign for Calls {
    fn add_assign(&mut self, more: Self) {
        self.count += more.count;
        self.usage += more.usage;
    }
}

/// The built-in model in place of all models. It gives the same answer to the same question.
pub struct Rehearsed<'a> {
    model: Rehearsal,
    cast: &'a BTreeMap<CompanionId, Companion>,
    settings: &'a Settings,
    /// Whether one call asks all that are asked together in a round, and the parts of its answer that were not taken yet.
    asks_together: bool,
    parts: BTreeMap<Ticket, Result<String, String>>,
    /// Decisions, votes and judgements.
    pub side: Calls,
    /// Statements.
    pub main: Calls,
}

impl<'a> Rehearsed<'a> {
    /// Plays these companions.
    pub fn new(cast: &'a BTreeMap<CompanionId, Companion>, settings: &'a Settings, asks_together: bool) -> Self {
        let at_once = tertulia::settings::models::Rehearsal { pace: 0.0, ..settings.models.rehearsal.clone() };
        let model = Rehearsal::new(&at_once);
        let (parts, side, main) = (BTreeMap::new(), Calls::default(), Calls::default());
        Self { model, cast, settings, asks_together, parts, side, main }
    }

    fn ask(&mut self, request: &Request) -> Result<String, String> {
        // At pace 0 it never waits.
        let answer = self.model.ask(request, None).now_or_never().ok_or("the built-in model did not answer at once")?;
        let answer = answer.map_err(|error| error.to_string())?;
        let calls = if request.role == ModelRole::Main { &mut self.main } else { &mut self.side };
        *calls += Calls { count: 1, usage: answer.usage };
        Ok(answer.text().into_owned())
    }

    fn decision(&self, evaluated: &Evaluated, conversation: &Conversation) -> Option<Request> {
        let companion = self.cast.get(&evaluated.companion)?;
        let (trigger, count) = (evaluated.trigger, evaluated.message_count);
        let input = self.input(companion, trigger, count, &evaluated.messages, conversation)?;
        let scene = self.scene(&[companion], conversation);
        let worded = prompt::vote(character(companion), &scene, &input, &self.settings.prompt);
        Some(request(ModelRole::Side, Purpose::Vote { trigger }, Some(companion), worded, shown(&input)))
    }

    fn input(
        &self,
        companion: &Companion,
        trigger: Trigger,
        message_count: u64,
        messages: &[Seq],
        conversation: &Conversation,
    ) -> Option<PromptInput> {
        let gate = conversation.gate(&companion.id)?;
        let buffer = said(conversation, messages);
        Some(PromptInput {
            filtered: Filtered::default(),
            about_risk: false,
            trigger,
            stage: gate.stage,
            modality: Modality::Text,
            message_count,
            minutes: conversation.minutes_of_silence(),
            speaker: buffer.last().map(|said| said.message.from.name.clone()),
            is_repetitive: conversation.tally().detections > 0,
            summary: None,
            recent: said_until(conversation, gate.cursor),
            buffer,
        })
    }

    /// The answer to a question, which one call gives for all companions that are asked about the same messages in the same step.
    fn decision_together(&mut self, evaluated: &Evaluated, conversation: &Conversation) -> Option<Result<String, String>> {
        if let Some(part) = self.parts.remove(&evaluated.ticket) {
            return Some(part);
        }
        let round = |companion: &CompanionId| {
            conversation.turns().rounds().iter().find(|round| round.awaits(companion)).map(|round| round.message)
        };
        // Questions of earlier steps have smaller tickets.
        let is_with = |(companion, other): &(&CompanionId, &Evaluation)| {
            other.ticket >= evaluated.ticket && other.upto == evaluated.upto && round(companion) == round(&evaluated.companion)
        };
        let mut asked = Vec::new();
        for (id, evaluation) in conversation.open_questions().filter(is_with) {
            let companion = self.cast.get(id)?;
            let messages = conversation.buffer(id).map(|entry| entry.seq).take_while(|seq| *seq <= evaluation.upto);
            let messages: Vec<_> = messages.collect();
            let input = self.input(companion, evaluation.trigger, evaluation.message_count, &messages, conversation)?;
            asked.push((evaluation.ticket, companion, input));
        }
        if asked.len() < 2 {
            let request = self.decision(evaluated, conversation)?;
            return Some(self.ask(&request));
        }
        let companions: Vec<_> = asked.iter().map(|(_, companion, _)| *companion).collect();
        let voters = asked.iter().map(|(_, companion, input)| Asked { character: character(companion), input });
        let scene = self.scene(&companions, conversation);
        let worded = prompt::votes(&voters.collect::<Vec<_>>(), &scene, &self.settings.prompt);
        let of = asked.iter().map(|(_, companion, input)| {
            let purpose = Purpose::Vote { trigger: input.trigger };
            let context = QuestionContext { purpose, newest: Line::newest_of(shown(input)) };
            (Voter { id: companion.id.clone(), name: companion.name.clone() }, context)
        });
        let of: Vec<_> = of.collect();
        let voters: Vec<_> = of.iter().map(|(voter, _)| voter.clone()).collect();
        let request = request(ModelRole::Side, Purpose::Votes { of }, None, worded, std::iter::empty());
        let answer = self.ask(&request);
        let mut parts = answer.map(|answer| together::parts(&answer, &voters, self.settings.prompt.verdict_words()));
        for (ticket, companion, _) in &asked {
            let part = match &mut parts {
                Ok(parts) => parts.remove(&companion.id).ok_or_else(|| "its part is missing".to_owned()),
                Err(error) => Err(error.clone()),
            };
            self.parts.insert(*ticket, part);
        }
        self.parts.remove(&evaluated.ticket)
    }

    fn statement(
        &self,
        companion: &CompanionId,
        trigger: Trigger,
        answered: &[Seq],
        conversation: &Conversation,
    ) -> Option<Request> {
        let companion = self.cast.get(companion)?;
        let snapshot = said(conversation, answered);
        let before = answered.first().map_or(Seq::NONE, |first| Seq(first.0.saturating_sub(1)));
        let recent = said_until(conversation, before);
        let closing = conversation.gate(&companion.id).map_or(Stage::None, |gate| gate.stage);
        let scene = self.scene(&[companion], conversation);
        let input = PromptInput {
            filtered: Filtered::default(),
            about_risk: false,
            trigger,
            stage: closing,
            modality: Modality::Text,
            message_count: snapshot.len() as u64,
            minutes: conversation.minutes_of_silence(),
            speaker: snapshot.last().map(|said| said.message.from.name.clone()),
            is_repetitive: conversation.tally().detections > 0,
            summary: None,
            recent,
            buffer: snapshot,
        };
        let reason = conversation.turns().floor().and_then(|floor| floor.why.clone());
        let statement = StatementInput { input, reason, ..StatementInput::default() };
        let worded = prompt::statement(character(companion), &scene, &statement, &self.settings.prompt);
        let purpose = Purpose::Statement { trigger, closing, tries: 0 };
        Some(request(ModelRole::Main, purpose, Some(companion), worded, shown(&statement.input)))
    }

    fn scene(&self, asked: &[&Companion], conversation: &Conversation) -> Scene {
        let others = self.cast.values().filter(|companion| asked.iter().all(|one| one.id != companion.id));
        let others = others.map(|other| Other { name: other.name.clone(), chattiness: Some(other.chattiness.clone()) });
        Scene {
            now: conversation.clock(),
            zone: TimeZone::UTC,
            others: others.collect(),
            is_call: false,
            place: None,
            has_minors: false,
            words: Default::default(),
            described: Default::default(),
        }
    }

    fn judgement(&self, conversation: &Conversation) -> Request {
        let newest: Vec<_> = conversation.judged_statements().map(|(_, message)| message.clone()).collect();
        let worded = prompt::judgement(&newest, &self.settings.prompt);
        request(ModelRole::Side, Purpose::Judgement, None, worded, newest.iter().map(|message| &**message))
    }
}

impl Responder for Rehearsed<'_> {
    fn answer(&mut self, question: Question<'_>, conversation: &Conversation) -> Answer {
        if let Question::Decision { evaluated } = question
            && self.asks_together
        {
            let outcome = self.decision_together(evaluated, conversation);
            let outcome = outcome.unwrap_or_else(|| Err("nobody of the cast is asked".to_owned()));
            return Answer { outcome, delay: DECISION };
        }
        let asked = match question {
            Question::Decision { evaluated } => self.decision(evaluated, conversation),
            Question::Statement { companion, trigger, messages } => self.statement(companion, trigger, messages, conversation),
            Question::Judgement => Some(self.judgement(conversation)),
        };
        let text = asked.ok_or_else(|| "nobody of the cast is asked".to_owned()).and_then(|request| self.ask(&request));
        match (question, text) {
            (Question::Statement { companion, .. }, text) => {
                let name = self.cast.get(companion).map_or("", |companion| &*companion.name);
                let words = text.map(|text| raw_answer::statement(&text, Speakers::new(name, [])).words.unwrap_or_default());
                Answer { outcome: words, delay: STATEMENT }
            }
            (_, outcome) => Answer { outcome, delay: DECISION },
        }
    }
}

fn said(conversation: &Conversation, messages: &[Seq]) -> Vec<Said> {
    messages.iter().filter_map(|seq| conversation.window().get(*seq)).map(Entry::said).collect()
}

fn said_until(conversation: &Conversation, cursor: Seq) -> Vec<Said> {
    conversation.window().recent(cursor).map(Entry::said).collect()
}

fn shown(input: &PromptInput) -> impl DoubleEndedIterator<Item = &Message> {
    input.recent.iter().chain(&input.buffer).map(|said| &*said.message)
}

fn character(companion: &Companion) -> Character<'_> {
    Character {
        id: &companion.id,
        name: &companion.name,
        persona: &companion.persona,
        chattiness: &companion.chattiness,
        tier: companion.interjection.as_str(),
        brief: companion.brief.as_deref(),
        tone: companion.tone.as_deref().unwrap_or_default(),
    }
}

fn request<'a>(
    role: ModelRole,
    purpose: Purpose,
    companion: Option<&Companion>,
    worded: Prompt,
    newest: impl DoubleEndedIterator<Item = &'a Message>,
) -> Request {
    let request = Request {
        companion: companion.map(|companion| Asker { id: companion.id.clone(), name: companion.name.clone() }),
        format: if matches!(purpose, Purpose::Vote { .. } | Purpose::Votes { .. }) {
            AnswerFormat::JsonObject
        } else {
            AnswerFormat::Text
        },
        ..Request::new(role, "home".into(), u32::MAX)
    };
    request.asking(worded).with(QuestionContext { purpose, newest: Line::newest_of(newest) })
}
