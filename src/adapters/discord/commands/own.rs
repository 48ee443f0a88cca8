//! `/tertulia own`: the companions that the managers of a server make themselves, where the operator allows it.

use std::sync::Arc;

use serde_json::{Value, json};
use twilight_model::channel::message::component::{ButtonStyle, ComponentType, TextInputStyle};

use super::choosing::{as_member, find};
use super::interaction::ChannelContext;
use super::menus::{Form, NAME, OwnRequest, PERSONA, PICTURE, form_id, removal_id};
use super::quoting::{name, verbatim};
use super::setup::buttons;
use super::text::{Text, say};
use super::words::{self, listed};
use super::{Answer, CommandHandler};
use crate::domain::id::GuildId;
use crate::ports::backend::Refused;
use crate::ports::backend::room::RoomCompanion;
use crate::ports::companion_setup::{CompanionChange, CompanionFields, CompanionProfile, CompanionSetup, NewCompanion};
use crate::settings::companion::Override;
use crate::snowflake::Snowflake;

/// The limits of characters in a form. Discord allows no more for a persona (Discord's documentation, "Component Reference", "Text Input").
const LONGEST_NAME: usize = 64;
const LONGEST_PERSONA: usize = 4_000;
const LONGEST_PICTURE: usize = 2_048;
/// The limit of characters of a persona that is given back when it was refused.
const LONGEST_RETURNED: usize = 1_500;

impl CommandHandler {
    pub(super) async fn own(
        &self,
        request: OwnRequest,
        here: &ChannelContext,
        person: Snowflake,
        language: &str,
    ) -> Result<Answer, Answer> {
        if here.is_direct() {
            return Err(Answer::Refused(say!("Only servers have companions of their own.")));
        }
        if !here.user_may_manage_server() {
            return Err(Answer::Refused(say!(
                "Only people with the permission *Manage Server* can decide about this server's own companions."
            )));
        }
        let companions = self.companions.get().ok_or_else(|| Answer::Failed(words::busy()))?;
        let guild = here.guild_id();
        match request {
            OwnRequest::Make => {
                let count = self.own_of(here).await?.len();
                self.allows_own(count)?;
                Ok(form(&form_id(None), &say!("A companion of your own"), &CompanionFields::default(), language))
            }
            OwnRequest::Change { companion } => {
                self.allows_own(0)?;
                let profile = self.own_profile(companions, &companion, here).await?;
                let fields = &profile.companion;
                if fields.persona.as_ref().is_some_and(|persona| persona.chars().count() > LONGEST_PERSONA) {
                    return Err(Answer::Refused(say!(
                        "Its persona is too long for this form. The operator of the bot can change it."
                    )));
                }
                let id = form_id(Some((profile.id.as_str(), &profile.revision.0)));
                Ok(form(&id, &say!("Change a companion"), fields, language))
            }
            OwnRequest::Remove { companion, sure } => {
                let profile = self.own_profile(companions, &companion, here).await?;
                let shown = name(&profile.companion.name);
                if !sure {
                    let text = say!(
                        "This removes {name} from this server, with its persona. What it said stays.\n**This cannot be undone.**",
                        name = shown
                    );
                    let id = removal_id(profile.id.as_str(), self.discord.now());
                    let components = vec![buttons(&[(ButtonStyle::Danger, say!("Remove"), id)], language)];
                    return Ok(Answer::Rich { text, embeds: Vec::new(), components });
                }
                companions.delete(profile.id.clone(), profile.revision).await?;
                tracing::info!(%guild, companion = %profile.id, by = %person, "a server's own companion was removed");
                Ok(Answer::Done(say!("{name} is gone.", name = shown)))
            }
            OwnRequest::Written { of, form } => {
                self.allows_own(0)?;
                let written = match of {
                    None => companions.create(new_companion(&form, guild.clone())).await,
                    Some((id, revision)) => self.change_own(companions, &id, &revision, &form, here).await?,
                };
                let profile = written.map_err(|refused| with_persona(&Answer::from(refused), &form))?;
                tracing::info!(%guild, companion = %profile.id, by = %person, "a server's own companion was written");
                Ok(Answer::Done(say!(
                    "{name} is this server's own companion, and nobody elsewhere sees it. `/tertulia setup` or `/tertulia join companion:{id}` brings \
                     it into a channel, `/tertulia own change companion:{id}` changes it.",
                    name = name(&profile.companion.name),
                    id = profile.id.to_string()
                )))
            }
        }
    }

    async fn change_own(
        &self,
        companions: &Arc<dyn CompanionSetup>,
        id: &str,
        revision: &str,
        form: &Form,
        here: &ChannelContext,
    ) -> Result<Result<CompanionProfile, Refused>, Answer> {
        let profile = self.own_profile(companions, id, here).await?;
        if !profile.revision.0.starts_with(revision) {
            let text = say!("Somebody changed it in the meantime, so nothing was changed. Begin again.");
            return Err(with_persona(&Answer::Refused(text), form));
        }
        let new = fields_of(form);
        let CompanionFields { name, persona, picture_url, .. } = new;
        let companion = CompanionFields { name, persona, picture_url, ..profile.companion };
        let change = CompanionChange { revision: profile.revision, companion, picture: Override::Keep };
        Ok(companions.change(profile.id, change).await)
    }

    /// The guild's own companions.
    async fn own_of(&self, here: &ChannelContext) -> Result<Vec<RoomCompanion>, Answer> {
        let own = self.visible(here).await?.into_iter().filter(|companion| companion.guild.is_some());
        Ok(own.map(as_member).collect())
    }

    /// The profile of the guild's own companion with this name.
    async fn own_profile(
        &self,
        companions: &Arc<dyn CompanionSetup>,
        typed: &str,
        here: &ChannelContext,
    ) -> Result<CompanionProfile, Answer> {
        let own = self.own_of(here).await?;
        let Some(found) = find(&own, typed) else {
            let text = match own.as_slice() {
                [] => say!("This server has no companion of its own."),
                own => say!(
                    "“{typed}” is not one of this server's own companions. They are: {names}.",
                    typed = verbatim(typed),
                    names = listed(own.iter().map(|companion| &companion.name))
                ),
            };
            return Err(Answer::Refused(text));
        };
        Ok(companions.companion(found.id.clone()).await?)
    }

    /// Refuses if the operator allows no companions of a server's own, or no more than these.
    fn allows_own(&self, count: usize) -> Result<(), Answer> {
        let text = match self.own_companions {
            0 => say!("The operator of this bot allows no companions of a server's own."),
            most if count >= most as usize => say!(
                "This server has as many companions of its own as the operator allows ({most}). `/tertulia own remove` removes one.",
                most = u64::from(most)
            ),
            _ => return Ok(()),
        };
        Err(Answer::Refused(text))
    }
}

fn fields_of(form: &Form) -> CompanionFields {
    let text = |text: &str| Some(text.trim()).filter(|text| !text.is_empty()).map(Arc::from);
    CompanionFields {
        name: form.name.trim().into(),
        persona: text(&form.persona),
        picture_url: text(&form.picture),
        ..CompanionFields::default()
    }
}

fn new_companion(form: &Form, guild: GuildId) -> NewCompanion {
    NewCompanion { companion: fields_of(form), copy_of: None, picture: None, card: None, room: None, guild: Some(guild) }
}

/// A refusal with the beginning of the persona, because Discord does not keep what was typed.
fn with_persona(answer: &Answer, form: &Form) -> Answer {
    let persona: String = form.persona.chars().take(LONGEST_RETURNED).collect();
    let quoted = Text::Plain(format!("```\n{}\n```", persona.replace("```", "'''")));
    Answer::Refused(Text::lines([answer.text().clone(), say!("Your persona, to copy:"), quoted]))
}

/// The form for a companion.
fn form(id: &str, title: &Text, fields: &CompanionFields, language: &str) -> Answer {
    let input = |id: &str, style: TextInputStyle, label: Text, hint: Text, most: usize, value: Option<&Arc<str>>| {
        let (label, hint) = (label.in_language(language), hint.in_language(language));
        let mut input = json!({ "type": ComponentType::TextInput, "custom_id": id, "style": style, "label": label, "placeholder": hint, "max_length": most });
        input["required"] = json!(id != PICTURE);
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            input["value"] = json!(value);
        }
        json!({ "type": ComponentType::ActionRow, "components": [input] })
    };
    let example = |text: &str| Text::Plain(text.to_owned());
    let persona_hint = say!("You are …: who it is, how it talks, what it likes. Nothing secret.");
    let rows: [Value; 3] = [
        input(NAME, TextInputStyle::Short, say!("Name"), example("Luna"), LONGEST_NAME, Some(&fields.name)),
        input(PERSONA, TextInputStyle::Paragraph, say!("Persona"), persona_hint, LONGEST_PERSONA, fields.persona.as_ref()),
        input(
            PICTURE,
            TextInputStyle::Short,
            say!("Picture: its https address"),
            example("https://…"),
            LONGEST_PICTURE,
            fields.picture_url.as_ref(),
        ),
    ];
    let form = json!({ "custom_id": id, "title": title.in_language(language), "components": rows });
    Answer::Form { form, too_late: words::too_late_for_a_form() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Discord's limits: 45 characters for titles and labels, 100 for placeholders (Discord's documentation, "Component Reference", "Text Input").
    #[test]
    fn the_form_fits_in_every_language() {
        for language in ["en-US", "de", "es-419", "fr", "ja", "pt-BR"] {
            for title in [say!("A companion of your own"), say!("Change a companion")] {
                let Answer::Form { form, .. } = form("own:", &title, &CompanionFields::default(), language) else {
                    panic!("a form")
                };
                let length = |text: &Value| text.as_str().map_or(0, |text| text.chars().count());
                let inputs = form["components"].as_array().unwrap().iter().map(|row| &row["components"][0]);
                assert!((1..=45).contains(&length(&form["title"])), "{language}: {}", form["title"]);
                for input in inputs {
                    assert!(
                        (1..=45).contains(&length(&input["label"])) && length(&input["placeholder"]) <= 100,
                        "{language}: {input}"
                    );
                }
            }
        }
    }
}
