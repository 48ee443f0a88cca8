//! The requests for trying out a model: a decision and a statement of a companion, in a short invented conversation.

use std::sync::Arc;

use super::question;
use super::reply::statement_request;
use crate::domain::closing::Stage;
use crate::domain::filter::Filtered;
use crate::domain::id::{GuildId, Seq};
use crate::domain::message::{Address, Author, Message, Modality, Role};
use crate::domain::moment::Moment;
use crate::domain::prompt::{PromptInput, Said, Scene, StatementInput};
use crate::domain::trigger::Trigger;
use crate::ports::language_model::Request;
use crate::settings::companion::Companion as Settings;
use crate::settings::prompt::Prompt;

/// The guild whose share of concurrent calls trials use.
const GUILD: &str = "trial";
/// The name of the person in the conversation.
const PERSON: &str = "Ana";

/// The question whether the companion wants to answer, and the request for its answer.
///
/// `said` is the person's message. None: a default message.
pub fn requests(companion: &Settings, prompt: &Prompt, said: Option<Arc<str>>, now: Moment) -> [Request; 2] {
    let from = Author { id: PERSON.into(), name: PERSON.into(), role: Role::Person };
    let usual = || format!("Good morning, {}! How does one begin a rainy day well?", companion.name).into();
    let text: Arc<str> = said.unwrap_or_else(usual);
    let address = Address { companions: [companion.id.clone()].into(), ..Address::default() };
    let said = Said::new(Seq(1), now, Arc::new(Message { address, ..Message::new(from, text) }));
    let guild = GuildId::from(GUILD);
    let scene = Scene {
        now,
        zone: prompt.zone_of(&guild).clone(),
        others: Vec::new(),
        is_call: false,
        place: None,
        has_minors: false,
        words: Default::default(),
        described: Default::default(),
    };
    let input = PromptInput {
        trigger: Trigger::DirectAddress,
        stage: Stage::None,
        modality: Modality::Text,
        message_count: 1,
        minutes: 0,
        speaker: Some(PERSON.into()),
        is_repetitive: false,
        summary: None,
        recent: Vec::new(),
        buffer: vec![said],
        filtered: Filtered::default(),
        about_risk: false,
    };
    let statement = StatementInput::new(input.clone());
    [
        question::request(input, companion, &scene, guild.clone(), None, prompt),
        statement_request(statement, companion, &scene, guild, prompt),
    ]
}
