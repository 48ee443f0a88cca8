//! `/tertulia setup`: leads managers through everything that they can choose, with buttons and menus.
//!
//! Each choice is carried out at once by the function of its command (`join`, `leave`, `talkativeness`, `memory`, `roles`), and the menu then shows
//! what holds now. So a setup that is interrupted leaves no step half done.

use serde_json::{Value, json};
use twilight_model::channel::ChannelType;
use twilight_model::channel::message::component::{ButtonStyle, ComponentType};

use super::choosing::offered;
use super::interaction::ChannelContext;
use super::members::{line, may_change, room_quiet};
use super::memory::MemoryOptions;
use super::menus::{MOST_CHANNELS, RoleList, SetupRequest, Step, id};
use super::registered::{CHANNEL_TYPES, LEVELS, Level, SPOKEN_TO};
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
const HOURS: [(&str, &str); 4] = [
    ("never", "No quiet hours"),
    ("22:00-07:00", "Quiet from 22:00 to 07:00"),
    ("23:00-08:00", "Quiet from 23:00 to 08:00"),
    ("00:00-06:00", "Quiet from 00:00 to 06:00"),
];
const OUTDATED: &str =
    "This menu is too old, and nothing was changed. What you chose before holds. Begin again: `/tertulia setup`";

/// What the menu shows and changes: the chosen channels, each with its room.
struct Chosen(Vec<(ChannelContext, Option<Room>)>);

impl CommandHandler {
    pub(super) async fn set_up(&self, request: SetupRequest, here: &ChannelContext, person: Snowflake) -> Result<Answer, Answer> {
        if here.is_direct() {
            let text =
                "Setup is for servers. Here everything is ready: `/tertulia talkativeness` and `/tertulia memory` change it.";
            return Err(Answer::Refused(text.to_owned()));
        }
        // Each change needs its permission in its channel, too.
        if !here.user_may_manage_server() {
            may_change(here, here)?;
        }
        let (step, channels, chosen) = match request {
            SetupRequest::Begin => {
                let is_usable = here.can_have_members() && !here.is_thread() && here.user_may_change();
                let channels = if is_usable { vec![here.channel] } else { Vec::new() };
                return self.channels_page(&self.chosen(&channels, here, person).await?).await;
            }
            SetupRequest::Outdated => return Err(Answer::Refused(OUTDATED.to_owned())),
            SetupRequest::Step { step, channels, chosen } => (step, channels, chosen),
        };
        let first = chosen.first().map(String::as_str);
        match step {
            Step::Channels => {
                let channels: Vec<_> = chosen.iter().take(MOST_CHANNELS).filter_map(|id| id.parse().ok()).collect();
                self.channels_page(&self.chosen(&channels, here, person).await?).await
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
                self.channels_page(&self.chosen(&channels, here, person).await?).await
            }
            Step::Server => self.server_page(&channels, here).await,
            Step::NotesOn | Step::NotesOff => {
                let server = Some(step == Step::NotesOn);
                self.memory(MemoryOptions { server, ..MemoryOptions::default() }, here, person).await?;
                self.server_page(&channels, here).await
            }
            Step::MayAddress | Step::NeverAnswered => {
                let list = if step == Step::MayAddress { RoleList::MayAddress } else { RoleList::NeverAnswered };
                let roles: Vec<_> = chosen.iter().filter_map(|id| id.parse().ok()).collect();
                self.set_roles(list, here, person, |listed| *listed = roles).await?;
                self.server_page(&channels, here).await
            }
            Step::Finish => self.last_page(&channels, here, person).await,
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
    async fn channels_page(&self, chosen: &Chosen) -> Result<Answer, Answer> {
        let now = self.discord.now();
        let channels: Vec<_> = chosen.0.iter().map(|(at, _)| at.channel).collect();
        let mut lines = vec![
            "**Set up companions on this server**".to_owned(),
            "Choose channels, then who is there and how much they talk. Each choice holds at once, and you can stop whenever you like."
                .to_owned(),
        ];
        lines.extend(chosen.0.iter().flat_map(|(at, room)| channel_lines(at, room.as_ref())));
        let defaults: Vec<_> = channels.iter().map(|channel| json!({ "id": channel, "type": "channel" })).collect();
        let types: Vec<u8> = CHANNEL_TYPES.into_iter().filter(|kind| !kind.is_thread()).map(ChannelType::into).collect();
        let mut rows = vec![menu(
            ComponentType::ChannelSelectMenu,
            &id(Step::Channels, now, &channels),
            "Channels",
            (1, MOST_CHANNELS),
            json!({ "channel_types": types, "default_values": defaults }),
        )];
        if let Some((at, _)) = chosen.0.first() {
            let options: Vec<_> = self.choosable(chosen, at).await?;
            let options: Vec<_> = options.iter().map(|(id, name)| option(id, name, chosen.has(id))).collect();
            if !options.is_empty() {
                let (id, most) = (id(Step::Companions, now, &channels), options.len());
                rows.push(menu(ComponentType::TextSelectMenu, &id, "Companions", (0, most), json!({ "options": options })));
            }
        }
        if chosen.0.iter().all(|(_, room)| room.as_ref().is_some_and(|room| !room.companions.is_empty())) && !chosen.0.is_empty()
        {
            let level = chosen.level();
            let options: Vec<_> = LEVELS.iter().map(|(id, name, _)| option(id, name, level.as_deref() == Some(*id))).collect();
            let level_id = id(Step::Level, now, &channels);
            rows.push(menu(
                ComponentType::TextSelectMenu,
                &level_id,
                "How much they talk",
                (1, 1),
                json!({ "options": options }),
            ));
            let hours = chosen.hours().map(|hours| hours.to_string());
            let options: Vec<_> = HOURS.iter().map(|(id, name)| option(id, name, hours.as_deref() == Some(*id))).collect();
            let hours_id = id(Step::QuietHours, now, &channels);
            rows.push(menu(ComponentType::TextSelectMenu, &hours_id, "Quiet hours", (1, 1), json!({ "options": options })));
        }
        rows.push(buttons(&[
            (ButtonStyle::Secondary, "Memory, privacy and roles", id(Step::Server, now, &channels)),
            (ButtonStyle::Primary, "Finish", id(Step::Finish, now, &channels)),
        ]));
        Ok(Answer::Rich { text: lines.join("\n"), embeds: Vec::new(), components: rows })
    }

    /// The second page: what holds for the whole server.
    async fn server_page(&self, channels: &[Snowflake], here: &ChannelContext) -> Result<Answer, Answer> {
        let now = self.discord.now();
        let rooms = self.backend.rooms.of_guild(&here.guild_id()).await?.rooms;
        let notes = match rooms.first() {
            Some(room) => Some(self.backend.memory.notes(&room.id).await?),
            None => None,
        };
        let memory = match &notes {
            None => "Choose a channel with companions first.",
            Some(notes) if !notes.allowed => "The operator of this bot has turned notes off.",
            Some(notes) if notes.on == Some(true) => {
                "**On**: companions take short notes of what people tell them. Everybody sees, corrects and erases theirs with `/tertulia memory`."
            }
            Some(_) => "**Off**: companions take no notes. They know what is in the channel, and nothing else.",
        };
        let mut lines = vec![
            "**For the whole server**".to_owned(),
            format!("**Memory.** {memory}"),
            format!("**Privacy.** {}", words::ABOUT.lines().next().unwrap_or_default()),
            "Please tell the members, for example in the topics of these channels: `/tertulia about` says it to everybody."
                .to_owned(),
        ];
        let mut rows = Vec::new();
        if let Some(rules) = self.rules(here).await? {
            lines.push(format!("**Roles.** {}", super::roles::describe(&rules)));
            for (list, step, hint) in [
                (RoleList::MayAddress, Step::MayAddress, "Roles that may address companions: everybody"),
                (RoleList::NeverAnswered, Step::NeverAnswered, "Roles that are never answered: none"),
            ] {
                let defaults: Vec<_> = list.of(&rules).iter().map(|role| json!({ "id": role, "type": "role" })).collect();
                let (id, limits) = (id(step, now, channels), (0, MOST_ROLES));
                rows.push(menu(ComponentType::RoleSelectMenu, &id, hint, limits, json!({ "default_values": defaults })));
            }
        }
        let notes_are_on = notes.as_ref().is_some_and(|notes| notes.on == Some(true));
        let (label, step) = if notes_are_on { ("Turn memory off", Step::NotesOff) } else { ("Turn memory on", Step::NotesOn) };
        let mut row = Vec::new();
        if notes.is_some_and(|notes| notes.allowed) {
            row.push((ButtonStyle::Secondary, label, id(step, now, channels)));
        }
        row.push((ButtonStyle::Primary, "Finish", id(Step::Finish, now, channels)));
        rows.push(buttons(&row));
        Ok(Answer::Rich { text: lines.join("\n"), embeds: Vec::new(), components: rows })
    }

    /// The last page: who is where, what is missing, and what to say first.
    async fn last_page(&self, channels: &[Snowflake], here: &ChannelContext, person: Snowflake) -> Result<Answer, Answer> {
        let Some(guild) = here.guild else { return Err(Answer::Refused(OUTDATED.to_owned())) };
        let mut rooms = self.backend.rooms.of_guild(&here.guild_id()).await?.rooms;
        rooms.retain(|room| !room.companions.is_empty() && room.inherits_from.is_none());
        let place = |room: &Room| Snowflake::of_channel(&room.id.channel());
        // The chosen channels first.
        rooms.sort_by_key(|room| place(room).is_none_or(|at| !channels.contains(&at)));
        let shown: Vec<_> = rooms.iter().filter_map(place).take(MOST_LISTED).collect();
        let mut lines = vec!["**Done.** What you chose holds now.".to_owned()];
        let mut first = None;
        let mut others = rooms.len();
        for at in self.look_at_all(&shown, guild, person).await?.iter().filter(|at| at.user_may_see()) {
            let Some(room) = rooms.iter().find(|room| place(room) == Some(at.channel)) else { continue };
            others -= 1;
            lines.extend(channel_lines(at, Some(room)));
            let works = at.missing().is_some_and(|missing| !missing.iter().any(|need| need.is_vital()));
            first = first.or_else(|| room.companions.first().filter(|_| works).map(|one| (one.name.clone(), at.channel)));
        }
        lines.extend((others > 0).then(|| format!("… and {others} more channels or threads.")));
        lines.push(match first {
            Some((name, at)) => {
                let name = name.to_lowercase().replace('`', "'");
                let at = channel(at.get());
                let how = if self.discord.reads_all() == Some(false) {
                    format!("Mention the bot and say `{name}, how are you?` in {at}.\n• {}", words::NOT_READING)
                } else {
                    format!("Say `hey {name}, how are you?` in {at}.")
                };
                format!("\n**Now try it:** {how}")
            }
            None if rooms.is_empty() => "\nNobody is in a channel yet: `/tertulia setup` begins again.".to_owned(),
            None => "\n**Fix this first**, then say hello. `/tertulia status` in a channel tells whether it works.".to_owned(),
        });
        let back = (ButtonStyle::Secondary, "Back", id(Step::Server, self.discord.now(), channels));
        Ok(Answer::Rich { text: lines.join("\n"), embeds: Vec::new(), components: vec![buttons(&[back])] })
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
fn channel_lines(at: &ChannelContext, room: Option<&Room>) -> Vec<String> {
    let companions = room.map_or(&[][..], |room| &room.companions);
    let names = if companions.is_empty() { "nobody yet".to_owned() } else { listed(companions.iter().map(|one| &one.name)) };
    let mut lines = vec![format!("\n**{}**: {names}", channel(at.channel.get()))];
    lines.extend(companions.iter().map(line));
    lines.extend(room.and_then(room_quiet));
    lines.extend(words::needs(&at.missing().unwrap_or_default()));
    lines
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
pub(super) fn buttons(all: &[(ButtonStyle, &str, String)]) -> Value {
    let button = |(style, label, id): &(ButtonStyle, &str, String)| json!({ "type": ComponentType::Button, "style": style, "label": label, "custom_id": id });
    json!({ "type": ComponentType::ActionRow, "components": all.iter().map(button).collect::<Vec<_>>() })
}
