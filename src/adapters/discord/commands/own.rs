//! `/tertulia own`: the companions that the managers of a server make themselves, where the operator allows it.

use std::sync::Arc;

use serde_json::{Value, json};
use twilight_model::channel::message::component::{ButtonStyle, ComponentType, TextInputStyle};

use super::choosing::{as_member, find};
use super::interaction::ChannelContext;
use super::menus::{Form, NAME, OwnRequest, PERSONA, PICTURE, form_id, removal_id};
use super::setup::buttons;
use super::words::{self, listed, name, verbatim};
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
    pub(super) async fn own(&self, request: OwnRequest, here: &ChannelContext, person: Snowflake) -> Result<Answer, Answer> {
        if here.is_direct() {
            return Err(Answer::Refused("Only servers have companions of their own.".to_owned()));
        }
        if !here.user_may_manage_server() {
            let text = "Only people with the permission *Manage Server* can decide about this server's own companions.";
            return Err(Answer::Refused(text.to_owned()));
        }
        let companions = self.companions.get().ok_or_else(|| Answer::Failed(words::BUSY.to_owned()))?;
        let guild = here.guild_id();
        match request {
            OwnRequest::Make => {
                let count = self.own_of(here).await?.len();
                self.allows_own(count)?;
                Ok(form(&form_id(None), "A companion of your own", &CompanionFields::default()))
            }
            OwnRequest::Change { companion } => {
                self.allows_own(0)?;
                let profile = self.own_profile(companions, &companion, here).await?;
                let fields = &profile.companion;
                if fields.persona.as_ref().is_some_and(|persona| persona.chars().count() > LONGEST_PERSONA) {
                    return Err(Answer::Refused(
                        "Its persona is too long for this form. The operator of the bot can change it.".to_owned(),
                    ));
                }
                Ok(form(&form_id(Some((profile.id.as_str(), &profile.revision.0))), "Change a companion", fields))
            }
            OwnRequest::Remove { companion, sure } => {
                let profile = self.own_profile(companions, &companion, here).await?;
                let shown = name(&profile.companion.name);
                if !sure {
                    let text = format!(
                        "This removes {shown} from this server, with its persona. What it said stays.\n**This cannot be undone.**"
                    );
                    let id = removal_id(profile.id.as_str(), self.discord.now());
                    let components = vec![buttons(&[(ButtonStyle::Danger, "Remove", id)])];
                    return Ok(Answer::Rich { text, embeds: Vec::new(), components });
                }
                companions.delete(profile.id.clone(), profile.revision).await?;
                tracing::info!(%guild, companion = %profile.id, by = %person, "a server's own companion was removed");
                Ok(Answer::Done(format!("{shown} is gone.")))
            }
            OwnRequest::Written { of, form } => {
                self.allows_own(0)?;
                let written = match of {
                    None => companions.create(new_companion(&form, guild.clone())).await,
                    Some((id, revision)) => self.change_own(companions, &id, &revision, &form, here).await?,
                };
                let profile = written.map_err(|refused| with_persona(&Answer::from(refused), &form))?;
                tracing::info!(%guild, companion = %profile.id, by = %person, "a server's own companion was written");
                let shown = name(&profile.companion.name);
                Ok(Answer::Done(format!(
                    "{shown} is this server's own companion, and nobody elsewhere sees it. `/tertulia setup` or `/tertulia join companion:{id}` brings \
                     it into a channel, `/tertulia own change companion:{id}` changes it.",
                    id = profile.id
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
            let text = "Somebody changed it in the meantime, so nothing was changed. Begin again.".to_owned();
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
                [] => "This server has no companion of its own.".to_owned(),
                own => format!(
                    "“{}” is none of this server's own companions. There are: {}.",
                    verbatim(typed),
                    listed(own.iter().map(|companion| &companion.name))
                ),
            };
            return Err(Answer::Refused(text));
        };
        Ok(companions.companion(found.id.clone()).await?)
    }

    /// Refuses if the operator allows no companions of a server's own, or no more than these.
    fn allows_own(&self, count: usize) -> Result<(), Answer> {
        let text = match self.own_companions {
            0 => "The operator of this bot allows no companions of a server's own.".to_owned(),
            most if count >= most as usize => {
                format!(
                    "This server has as many companions of its own as the operator allows ({most}). `/tertulia own remove` removes one."
                )
            }
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
    Answer::Refused(format!("{}\nYour persona, to copy:\n```\n{}\n```", answer.text(), persona.replace("```", "'''")))
}

/// The form for a companion.
fn form(id: &str, title: &str, fields: &CompanionFields) -> Answer {
    let input = |id: &str, style: TextInputStyle, label: &str, hint: &str, most: usize, value: Option<&Arc<str>>| {
        let mut input = json!({ "type": ComponentType::TextInput, "custom_id": id, "style": style, "label": label, "placeholder": hint, "max_length": most });
        input["required"] = json!(id != PICTURE);
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            input["value"] = json!(value);
        }
        json!({ "type": ComponentType::ActionRow, "components": [input] })
    };
    let persona_hint = "You are …: who it is, how it talks, what it likes. Nothing secret.";
    let rows: [Value; 3] = [
        input(NAME, TextInputStyle::Short, "Name", "Luna", LONGEST_NAME, Some(&fields.name)),
        input(PERSONA, TextInputStyle::Paragraph, "Persona", persona_hint, LONGEST_PERSONA, fields.persona.as_ref()),
        input(
            PICTURE,
            TextInputStyle::Short,
            "Picture: its https address",
            "https://…",
            LONGEST_PICTURE,
            fields.picture_url.as_ref(),
        ),
    ];
    Answer::Form(json!({ "custom_id": id, "title": title, "components": rows }))
}
