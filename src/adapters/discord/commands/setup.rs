//! `/tertulia setup`: leads managers through everything that they can choose, with buttons and menus.
//!
//! Each choice is carried out at once by the function of its command (`join`, `leave`, `talkativeness`, `memory`, `roles`), and the menu then shows
//! what holds now. A choice for several channels that is interrupted may hold in some of them; the menu shows it, and the choice can be repeated.

use serde_json::{Value, json};
use twilight_model::channel::ChannelType;
use twilight_model::channel::message::component::{ButtonStyle, ComponentType};

use super::choosing::offered;
use super::interaction::ChannelContext;
use super::members::{line, may_change, room_quiet};
use super::memory::MemoryOptions;
use super::menus::{MOST_CHANNELS, RoleList, SetupRequest, Step, id};
use super::registered::{CHANNEL_TYPES, LEVELS, Level, SPOKEN_TO};
use super::text::{Text, say};
use super::voice::unseen;
use super::words::{self, channel, listed};
use super::{Answer, CommandHandler};
use crate::ports::backend::room::Room;
use crate::roles::MOST_ROLES;
use crate::settings::companion::QuietHours;
use crate::snowflake::Snowflake;

/// The limit of channels that the last page lists.
const MOST_LISTED: usize = 10;
/// The offered quiet hours. `/tertulia talkativeness` takes any.
const HOURS: [&str; 4] = ["never", "22:00-07:00", "23:00-08:00", "00:00-06:00"];

/// What the menu shows and changes: the chosen channels, each with its room.
struct Chosen(Vec<(ChannelContext, Option<Room>)>);

impl CommandHandler {
    pub(super) async fn set_up(
        &self,
        request: SetupRequest,
        here: &ChannelContext,
        person: Snowflake,
        language: &str,
    ) -> Result<Answer, Answer> {
        if here.is_direct() {
            return Err(Answer::Refused(say!(
                "Setup is for servers. Here everything is ready: `/tertulia talkativeness` and `/tertulia memory` change it."
            )));
        }
        // Each change needs its permission in its channel, too.
        if !here.user_may_manage_server() {
            may_change(here, here)?;
        }
        let (step, channels, chosen) = match request {
            SetupRequest::Begin => {
                let is_usable = here.can_have_members() && !here.is_thread() && here.user_may_change();
                let channels = if is_usable { vec![here.channel] } else { Vec::new() };
                return self.channels_page(&self.chosen(&channels, here, person).await?, language).await;
            }
            SetupRequest::Outdated => return Err(outdated()),
            SetupRequest::Step { step, channels, chosen } => (step, channels, chosen),
        };
        let first = chosen.first().map(String::as_str);
        match step {
            Step::Channels => {
                let channels: Vec<_> = chosen.iter().take(MOST_CHANNELS).filter_map(|id| id.parse().ok()).collect();
                self.channels_page(&self.chosen(&channels, here, person).await?, language).await
            }
            Step::Companions | Step::Level | Step::QuietHours => {
                let before = self.chosen(&channels, here, person).await?;
                match step {
                    Step::Companions => self.change_companions(&before, &chosen, here, person).await?,
                    _ => {
                        let level = first.filter(|_| step == Step::Level).and_then(Level::named);
                        let hours = first.filter(|_| step == Step::QuietHours);
                        for (at, _) in &before.0 {
                            self.set_level(level, hours, None, at, person).await?;
                        }
                    }
                }
                self.channels_page(&self.chosen(&channels, here, person).await?, language).await
            }
            Step::Server => self.server_page(&channels, here, language).await,
            Step::NotesOn | Step::NotesOff => {
                let server = Some(step == Step::NotesOn);
                self.memory(MemoryOptions { server, ..MemoryOptions::default() }, here, person).await?;
                self.server_page(&channels, here, language).await
            }
            Step::MayAddress | Step::NeverAnswered => {
                let list = if step == Step::MayAddress { RoleList::MayAddress } else { RoleList::NeverAnswered };
                let roles: Vec<_> = chosen.iter().filter_map(|id| id.parse().ok()).collect();
                self.set_roles(list, here, person, |listed| *listed = roles).await?;
                self.server_page(&channels, here, language).await
            }
            Step::Finish => self.last_page(&channels, here, person, language).await,
        }
    }

    /// The chosen channels with the permissions in them, as they are now.
    async fn chosen(&self, channels: &[Snowflake], here: &ChannelContext, person: Snowflake) -> Result<Chosen, Answer> {
        let (Some(guild), false) = (here.guild, channels.is_empty()) else { return Ok(Chosen(Vec::new())) };
        let seen = self.look_at_all(channels, guild, person).await?;
        if seen.len() < channels.len() {
            return Err(unseen());
        }
        let mut chosen = Vec::new();
        for at in seen {
            may_change(&at, here)?;
            let room = self.room_or_future_room(&at).await?;
            chosen.push((at, room));
        }
        Ok(Chosen(chosen))
    }

    /// Adds the companions that are wanted to all channels, and removes the others that the menu offers.
    async fn change_companions(
        &self,
        before: &Chosen,
        wanted: &[String],
        here: &ChannelContext,
        person: Snowflake,
    ) -> Result<(), Answer> {
        for (id, _) in self.choosable(before, here).await? {
            let is_wanted = wanted.contains(&id);
            for (at, room) in &before.0 {
                let is_there = room.iter().flat_map(|room| &room.companions).any(|member| member.id.as_str() == id);
                if is_wanted && !is_there {
                    self.join(&id, at, here, person).await?;
                } else if !is_wanted && is_there {
                    self.leave(&id, at, here, person).await?;
                }
            }
        }
        Ok(())
    }

    /// The ids and names of the companions that the menu offers, those in the channels first.
    async fn choosable(&self, chosen: &Chosen, here: &ChannelContext) -> Result<Vec<(String, String)>, Answer> {
        let mut all = self.available(here).await?;
        all.sort_by_key(|companion| !chosen.has(companion.id.as_str()));
        Ok(offered(&all, "").into_iter().map(|choice| (choice.value, choice.name)).collect())
    }

    /// The first page: who is in which channels, and how they talk there.
    async fn channels_page(&self, chosen: &Chosen, language: &str) -> Result<Answer, Answer> {
        let now = self.discord.now();
        let channels: Vec<_> = chosen.0.iter().map(|(at, _)| at.channel).collect();
        let mut lines = vec![
            say!("**Set up companions on this server**"),
            say!(
                "Choose channels, then who is in all of them, and how much they talk. Each choice holds at once, and you can stop whenever you like."
            ),
        ];
        lines.extend(chosen.0.iter().flat_map(|(at, room)| channel_lines(at, room.as_ref())));
        let defaults: Vec<_> = channels.iter().map(|channel| json!({ "id": channel, "type": "channel" })).collect();
        let types: Vec<u8> = CHANNEL_TYPES.into_iter().filter(|kind| !kind.is_thread()).map(ChannelType::into).collect();
        let mut rows = vec![menu(
            ComponentType::ChannelSelectMenu,
            &id(Step::Channels, now, &channels),
            &say!("Channels").in_language(language),
            (1, MOST_CHANNELS),
            json!({ "channel_types": types, "default_values": defaults }),
        )];
        if let Some((at, _)) = chosen.0.first() {
            let options: Vec<_> = self.choosable(chosen, at).await?;
            let options: Vec<_> = options.iter().map(|(id, name)| option(id, name, chosen.has(id))).collect();
            if !options.is_empty() {
                let (id, most) = (id(Step::Companions, now, &channels), options.len());
                let hint = say!("Companions").in_language(language);
                rows.push(menu(ComponentType::TextSelectMenu, &id, &hint, (0, most), json!({ "options": options })));
            }
        }
        if chosen.0.iter().all(|(_, room)| room.as_ref().is_some_and(|room| !room.companions.is_empty())) && !chosen.0.is_empty()
        {
            let level = chosen.level();
            let name = |name: &'static str| Text::known(name).in_language(language);
            let options: Vec<_> =
                LEVELS.iter().map(|(id, label)| option(id, &name(label), level.as_deref() == Some(*id))).collect();
            let level_id = id(Step::Level, now, &channels);
            rows.push(menu(
                ComponentType::TextSelectMenu,
                &level_id,
                &say!("How much they talk").in_language(language),
                (1, 1),
                json!({ "options": options }),
            ));
            // Companions that speak only when spoken to are always quiet otherwise.
            if level.as_deref() != Some(SPOKEN_TO) {
                let hours = chosen.hours().map(|hours| hours.to_string());
                let options =
                    HOURS.iter().map(|id| option(id, &hours_text(id).in_language(language), hours.as_deref() == Some(*id)));
                let options: Vec<_> = options.collect();
                let hours_id = id(Step::QuietHours, now, &channels);
                let hint = say!("Quiet hours").in_language(language);
                rows.push(menu(ComponentType::TextSelectMenu, &hours_id, &hint, (1, 1), json!({ "options": options })));
            }
        }
        let last = [
            (ButtonStyle::Secondary, say!("Memory, privacy and roles"), id(Step::Server, now, &channels)),
            (ButtonStyle::Primary, say!("Finish"), id(Step::Finish, now, &channels)),
        ];
        rows.push(buttons(&last, language));
        Ok(Answer::Rich { text: Text::lines(lines), embeds: Vec::new(), components: rows })
    }

    /// The second page: what holds for the whole server.
    async fn server_page(&self, channels: &[Snowflake], here: &ChannelContext, language: &str) -> Result<Answer, Answer> {
        let now = self.discord.now();
        let rooms = self.backend.rooms.of_guild(&here.guild_id()).await?.rooms;
        let notes = match rooms.first() {
            Some(room) => Some(self.backend.memory.notes(&room.id).await?),
            None => None,
        };
        let memory = match &notes {
            None => say!("Choose a channel with companions first."),
            Some(notes) if !notes.allowed => say!("The operator of this bot has turned notes off."),
            Some(notes) if notes.on == Some(true) => say!(
                "**On**: companions take short notes of what people tell them. Everybody sees, corrects and erases theirs with `/tertulia memory`."
            ),
            Some(_) => say!("**Off**: companions take no notes. They know what is in the channel, and nothing else."),
        };
        let mut lines = vec![
            say!("**For the whole server**"),
            Text::sentences([say!("**Memory.**"), memory]),
            Text::sentences([say!("**Privacy.**"), words::what_is_kept()]),
            say!("Please tell the members, for example in the topics of these channels: `/tertulia about` says it to everybody."),
        ];
        let mut rows = Vec::new();
        if let Some(rules) = self.rules(here).await? {
            lines.push(Text::sentences([say!("**Roles.**"), super::roles::describe(&rules)]));
            for (list, step, hint) in [
                (RoleList::MayAddress, Step::MayAddress, say!("Roles that may address companions: everybody")),
                (RoleList::NeverAnswered, Step::NeverAnswered, say!("Roles that are never answered: none")),
            ] {
                let defaults: Vec<_> = list.of(&rules).iter().map(|role| json!({ "id": role, "type": "role" })).collect();
                let (id, limits) = (id(step, now, channels), (0, MOST_ROLES));
                let hint = hint.in_language(language);
                rows.push(menu(ComponentType::RoleSelectMenu, &id, &hint, limits, json!({ "default_values": defaults })));
            }
        }
        let notes_are_on = notes.as_ref().is_some_and(|notes| notes.on == Some(true));
        let mut row = Vec::new();
        if notes.is_some_and(|notes| notes.allowed) {
            row.push(match notes_are_on {
                true => (ButtonStyle::Secondary, say!("Turn memory off"), id(Step::NotesOff, now, channels)),
                false => (ButtonStyle::Secondary, say!("Turn memory on"), id(Step::NotesOn, now, channels)),
            });
        }
        row.push((ButtonStyle::Primary, say!("Finish"), id(Step::Finish, now, channels)));
        rows.push(buttons(&row, language));
        Ok(Answer::Rich { text: Text::lines(lines), embeds: Vec::new(), components: rows })
    }

    /// The last page: who is where, what is missing, and what to say first.
    async fn last_page(
        &self,
        channels: &[Snowflake],
        here: &ChannelContext,
        person: Snowflake,
        language: &str,
    ) -> Result<Answer, Answer> {
        let Some(guild) = here.guild else { return Err(outdated()) };
        let mut rooms = self.backend.rooms.of_guild(&here.guild_id()).await?.rooms;
        rooms.retain(|room| !room.companions.is_empty() && room.inherits_from.is_none());
        let place = |room: &Room| Snowflake::of_channel(&room.id.channel());
        // The chosen channels first.
        rooms.sort_by_key(|room| place(room).is_none_or(|at| !channels.contains(&at)));
        let shown: Vec<_> = rooms.iter().filter_map(place).take(MOST_LISTED).collect();
        let mut lines = vec![say!("**Done.** What you chose holds now.")];
        let mut first = None;
        let mut others = rooms.len();
        for at in self.look_at_all(&shown, guild, person).await?.iter().filter(|at| at.user_may_see()) {
            let Some(room) = rooms.iter().find(|room| place(room) == Some(at.channel)) else { continue };
            others -= 1;
            lines.extend(channel_lines(at, Some(room)));
            let works = at.missing().is_some_and(|missing| !missing.iter().any(|need| need.is_vital()));
            first = first.or_else(|| room.companions.first().filter(|_| works).map(|one| (one.name.clone(), at.channel)));
        }
        lines.extend((others > 0).then(|| say!("… and {count} more channels or threads.", count = others)));
        lines.push(words::blank());
        lines.extend(match first {
            Some((name, at)) => {
                let name = name.to_lowercase().replace('`', "'");
                let at = channel(at.get());
                match self.discord.reads_all() {
                    Some(false) => vec![
                        say!(
                            "**Now try it:** Mention the bot and say `{name}, how are you?` in {channel}.",
                            name = name,
                            channel = at
                        ),
                        words::not_reading().bullet(),
                    ],
                    _ => vec![say!("**Now try it:** Say `hey {name}, how are you?` in {channel}.", name = name, channel = at)],
                }
            }
            None if rooms.is_empty() => vec![say!("Nobody is in a channel yet: `/tertulia setup` begins again.")],
            None => {
                vec![say!("**Fix this first**, then say hello. `/tertulia status` in a channel tells whether it works.")]
            }
        });
        let back = (ButtonStyle::Secondary, say!("Back"), id(Step::Server, self.discord.now(), channels));
        let components = vec![buttons(&[back], language)];
        Ok(Answer::Rich { text: Text::lines(lines), embeds: Vec::new(), components })
    }
}

impl Chosen {
    /// Whether a companion is in one of the channels.
    fn has(&self, id: &str) -> bool {
        self.0.iter().flat_map(|(_, room)| room).flat_map(|room| &room.companions).any(|member| member.id.as_str() == id)
    }

    /// The level of all companions in the channels. `None` if they have several.
    fn level(&self) -> Option<String> {
        let members =
            self.0.iter().flat_map(|(_, room)| room).flat_map(|room| room.companions.iter().map(move |one| (room, one)));
        let mut levels = members.map(|(room, member)| {
            let is_always = member.quiet_hours == QuietHours::Always || room.quiet_hours == Some(QuietHours::Always);
            if is_always { SPOKEN_TO.to_owned() } else { member.interjection.to_string() }
        });
        let first = levels.next()?;
        levels.all(|level| level == first).then_some(first)
    }

    /// The quiet hours of all channels. `None` if they have several.
    fn hours(&self) -> Option<QuietHours> {
        let mut hours = self.0.iter().map(|(_, room)| room.as_ref().and_then(|room| room.quiet_hours).unwrap_or_default());
        let first = hours.next()?;
        hours.all(|hours| hours == first).then_some(first)
    }
}

/// Who is in a channel, and what prevents them from reading or speaking there.
fn channel_lines(at: &ChannelContext, room: Option<&Room>) -> Vec<Text> {
    let companions = room.map_or(&[][..], |room| &room.companions);
    let names = if companions.is_empty() { say!("nobody yet") } else { listed(companions.iter().map(|one| &one.name)) };
    let mut lines = vec![words::blank(), say!("**{channel}**: {names}", channel = channel(at.channel.get()), names = names)];
    lines.extend(companions.iter().map(line));
    lines.extend(room.and_then(room_quiet));
    lines.extend(words::needs(&at.missing().unwrap_or_default()));
    lines
}

fn outdated() -> Answer {
    Answer::Refused(say!(
        "This menu is too old, and nothing was changed. What you chose before holds. Begin again: `/tertulia setup`"
    ))
}

/// The name of quiet hours in a menu.
fn hours_text(hours: &str) -> Text {
    match hours.split_once('-') {
        Some((from, until)) => {
            say!("Quiet from {from} to {until}", from = from.to_owned(), until = until.to_owned())
        }
        None => say!("No quiet hours"),
    }
}

/// A row with one menu.
fn menu(kind: ComponentType, id: &str, hint: &str, (least, most): (usize, usize), more: Value) -> Value {
    let mut menu = json!({ "type": kind, "custom_id": id, "placeholder": hint, "min_values": least, "max_values": most });
    if let (Some(menu), Value::Object(more)) = (menu.as_object_mut(), more) {
        menu.extend(more);
    }
    json!({ "type": ComponentType::ActionRow, "components": [menu] })
}

fn option(value: &str, label: &str, is_chosen: bool) -> Value {
    json!({ "value": value, "label": label, "default": is_chosen })
}

/// A row of buttons, each with its label and id.
pub(super) fn buttons(all: &[(ButtonStyle, Text, String)], language: &str) -> Value {
    let button = |(style, label, id): &(ButtonStyle, Text, String)| json!({ "type": ComponentType::Button, "style": style, "label": label.in_language(language), "custom_id": id });
    json!({ "type": ComponentType::ActionRow, "components": all.iter().map(button).collect::<Vec<_>>() })
}
