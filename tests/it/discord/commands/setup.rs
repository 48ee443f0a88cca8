//! `/tertulia setup` with the real binary: from the invitation to the first answer, without a file.

use serde_json::{Value, json};
use tokio::time::timeout;

use super::super::counterpart::driver::make::INVITED;
use super::super::counterpart::{Author, Counterpart, Does, Id, Message, On, Permissions, Rules};
use super::super::home::Home;
use super::{companion, final_answer, rules, sub};
use crate::harness::{PATIENCE, Premises, Server};

/// A Discord with a server that the bot is not in yet.
pub struct Newcomers {
    pub discord: Counterpart,
    pub guild: Id,
    pub lounge: Id,
    pub general: Id,
    /// A member who may manage the server and its channels.
    pub kim: Id,
    /// A member without rights.
    pub ana: Id,
}

/// A menu that a person sees.
pub struct Menu<'a> {
    pub discord: &'a Counterpart,
    pub user: Id,
    pub channel: Id,
    pub shown: Message,
}

impl Newcomers {
    pub async fn new() -> Self {
        let home = Home::with_rules(Rules { heartbeat_tolerance: Rules::quick().heartbeat_tolerance, ..rules() }).await;
        let discord = home.discord;
        let guild = discord.guild_without_bot("New");
        let (lounge, general) = (discord.channel(guild, "lounge"), discord.channel(guild, "general"));
        discord.with(|state| state.world.guilds.get_mut(&guild).expect("the guild").system_channel = Some(lounge));
        let kim = discord.member_with(guild, "Kim", Permissions::MANAGE_CHANNELS | Permissions::MANAGE_GUILD);
        let ana = discord.member(guild, "Ana");
        Self { discord, guild, lounge, general, kim, ana }
    }

    pub fn premises(&self) -> Premises {
        Premises::shipped().for_discord(&self.discord)
    }

    pub async fn start(&self, premises: &Premises) -> Server {
        let server = premises.start().await;
        self.discord.wait_for("the commands", |state| state.world.commands.len() == 6).await;
        self.discord.sessions(1).await;
        server
    }

    /// A person presses a button of a message that everybody sees.
    async fn press(&self, user: Id, message: Id) -> Menu<'_> {
        let pressed = self.discord.use_component(user, self.lounge, message, "setup", &[]).expect("the button is there");
        let shown = self.discord.final_answer(pressed).await;
        assert!(shown.is_ephemeral());
        Menu { discord: &self.discord, user, channel: self.lounge, shown }
    }
}

impl Menu<'_> {
    /// Uses the button or menu whose id begins with this. Returns what the menu says then.
    pub async fn choose(&mut self, id: &str, chosen: &[&str]) -> String {
        let chosen: Vec<_> = chosen.iter().map(|value| (*value).to_owned()).collect();
        let used = self.discord.use_component(self.user, self.channel, self.shown.id, id, &chosen);
        let used = used.unwrap_or_else(|why| panic!("{id}: {why} in {:?}", self.shown.components));
        self.discord.answer_to(used).await;
        let answer = self.discord.final_answer(used).await;
        if answer.id == self.shown.id {
            self.shown = answer.clone();
        }
        answer.content
    }

    /// The chosen values of the menu whose id begins with this.
    fn chosen(&self, id: &str) -> Vec<&str> {
        let rows = self.shown.components.iter().flat_map(|row| row["components"].as_array().into_iter().flatten());
        let mut menus = rows.filter(|menu| menu["custom_id"].as_str().is_some_and(|custom| custom.starts_with(id)));
        let menu = menus.next().unwrap_or_else(|| panic!("no {id}"));
        let options = menu["options"].as_array().into_iter().flatten();
        let chosen = options.filter(|option| option["default"] == true).filter_map(|option| option["value"].as_str());
        chosen.chain(menu["default_values"].as_array().into_iter().flatten().filter_map(|value| value["id"].as_str())).collect()
    }
}

#[tokio::test]
async fn a_new_server_is_set_up_from_the_invitation_to_the_first_answer() {
    let new = Newcomers::new().await;
    let (discord, general) = (&new.discord, new.general.to_string());
    let premises = new.premises();
    let server = new.start(&premises).await;

    discord.invite_bot(new.guild, INVITED);
    let post = discord.post_in(new.lounge).await;
    assert!(post.content.contains("`/tertulia setup`"), "{}", post.content);
    let refused = new.press(new.ana, post.message).await;
    assert!(refused.shown.content.contains("**Manage Channels**") && refused.shown.components.is_empty());
    let mut menu = new.press(new.kim, post.message).await;
    assert_eq!(menu.chosen("setup:at:"), [new.lounge.to_string()]);
    let role = discord.bot_role(new.guild);
    discord.deny(new.general, role, Permissions::MANAGE_WEBHOOKS);
    let lounge = new.lounge.to_string();
    let both = [&*general, &*lounge];
    let page = menu.choose("setup:at:", &both).await;
    assert!(page.contains("nobody yet") && page.contains("allow Manage Webhooks"), "{page}");
    discord.allow(new.general, role, Permissions::MANAGE_WEBHOOKS);
    let change = async { while menu.choose("setup:at:", &both).await.contains("Manage Webhooks") {} };
    assert!(timeout(PATIENCE, change).await.is_ok(), "the change is not noticed");
    let page = menu.choose("setup:who:", &["aria", "cleo"]).await;
    assert!(!page.contains("nobody yet") && !page.contains("Manage Webhooks"), "{page}");
    assert_eq!(menu.chosen("setup:who:"), ["aria", "cleo"]);
    menu.choose("setup:at:", &[&general]).await;
    let page = menu.choose("setup:who:", &["aria"]).await;
    assert!(page.contains(&format!("**<#{general}>**: Aria\n")), "{page}");

    // In the middle the server is killed. What was chosen holds, and the menu goes on.
    server.kill().await;
    let server = new.start(&premises).await;
    let page = menu.choose("setup:level:", &["spoken_to"]).await;
    assert!(page.contains("speak only when they are spoken to, at all times"), "{page}");
    assert_eq!(menu.chosen("setup:level:"), ["spoken_to"]);
    menu.choose("setup:level:", &["quiet"]).await;
    let page = menu.choose("setup:hours:", &["23:00-08:00"]).await;
    assert!(page.contains("seldom speaks up") && page.contains("in the hours 23:00-08:00"), "{page}");
    menu.choose("setup:hours:", &["never"]).await;
    let page = menu.choose("setup:server:", &[]).await;
    assert!(page.contains("**Memory.** **Off**") && page.contains("**Privacy.**"), "{page}");
    assert!(menu.choose("setup:on:", &[]).await.contains("**Memory.** **On**"));
    assert!(menu.choose("setup:off:", &[]).await.contains("**Memory.** **Off**"));
    let page = menu.choose("setup:done:", &[]).await;
    let (_, proposal) = page.split_once("**Now try it:** Say `").expect("a proposal");
    let (words, place) = proposal.split_once("` in ").expect("a place");
    assert_eq!((words, place), ("hey aria, how are you?", &*format!("<#{general}>.")), "{page}");
    assert!(page.contains(&format!("**<#{}>**: Aria and Cleo", new.lounge)), "{page}");

    discord.say(new.ana, new.general, words);
    let answer = discord.post_in(new.general).await;
    assert!(matches!(&answer.author, Author::Webhook { username, .. } if username == "Aria"), "{answer:?}");
    let old = discord.press(new.kim, new.lounge, "setup:who:1:1");
    assert!(discord.final_answer(old).await.content.contains("Begin again"));
    server.stop().await;
}

#[tokio::test]
async fn a_menu_changes_only_channels_that_its_person_may_manage() {
    let new = Newcomers::new().await;
    let discord = &new.discord;
    let secret = discord.channel(new.guild, "secret");
    discord.deny(secret, new.kim, Permissions::MANAGE_CHANNELS);
    let server = new.start(&new.premises()).await;
    discord.invite_bot(new.guild, INVITED);
    let post = discord.post_in(new.lounge).await;

    let mut menu = new.press(new.kim, post.message).await;
    let refused = menu.choose("setup:at:", &[&secret.to_string()]).await;
    assert!(refused.contains(&format!("**Manage Channels** in <#{secret}>")), "{refused}");
    // Kim may manage the channel when the menu is shown, and not any more when it is used.
    menu.choose("setup:at:", &[&new.general.to_string()]).await;
    discord.deny(new.general, new.kim, Permissions::MANAGE_CHANNELS);
    let refused = menu.choose("setup:who:", &["aria"]).await;
    assert!(refused.contains(&format!("**Manage Channels** in <#{}>", new.general)), "{refused}");
    assert!(discord.use_component(new.ana, new.lounge, menu.shown.id, "setup:done:", &[]).is_err(), "only Kim sees it");
    // A refusal that takes long is shown in the menu's place, and leaves its lists and buttons.
    let hang = discord.spoil(On::route("guild_channels"), Does::Hang);
    let slow = discord.use_component(new.kim, new.lounge, menu.shown.id, "setup:who:", &["aria".to_owned()]).unwrap();
    discord.answer_to(slow).await;
    discord.lift(hang);
    discord.wait_for("the refusal", |state| state.journal.requests_of("edit_webhook_message").next().is_some()).await;
    let refused = discord.final_answer(slow).await;
    assert!(refused.content.contains("**Manage Channels**") && !refused.components.is_empty(), "{refused:?}");

    let status = final_answer(discord, new.kim, new.general, sub("status", json!([]))).await;
    assert!(status.starts_with("**No companion is here yet.**"), "{status}");
    server.stop().await;
}

#[tokio::test]
async fn only_chosen_roles_address_companions_also_after_a_restart() {
    let new = Newcomers::new().await;
    let discord = &new.discord;
    let (regulars, muted) =
        (discord.role(new.guild, "Regulars", Permissions::empty()), discord.role(new.guild, "Muted", Permissions::empty()));
    let premises = new.premises();
    let server = new.start(&premises).await;
    discord.invite_bot(new.guild, INVITED);
    let post = discord.post_in(new.lounge).await;
    let ask = async |user, options: Value| final_answer(discord, user, new.general, options).await;
    ask(new.kim, sub("join", json!([companion("aria")]))).await;
    let list = |list: &str| json!({ "type": 3, "name": "list", "value": list });
    let role = |role: Id| json!({ "type": 8, "name": "role", "value": role });

    assert!(ask(new.ana, sub("roles", json!([list("never_answered"), role(muted)]))).await.contains("*Manage Server*"));
    assert!(ask(new.ana, sub("roles", json!([]))).await.contains("Everybody may address companions."));
    let mut menu = new.press(new.kim, post.message).await;
    menu.choose("setup:server:", &[]).await;
    let page = menu.choose("setup:may:", &[&regulars.to_string()]).await;
    assert!(page.contains(&format!("Only <@&{regulars}> may address companions")), "{page}");
    discord.give_role(new.guild, new.kim, regulars);
    discord.say(new.ana, new.general, "hey aria, one");
    discord.say(new.kim, new.general, "hey aria, two");
    let answers = discord.post_in(new.general).await;
    let text = json!({ "type": 3, "name": "text", "value": "three" });
    let refused = ask(new.ana, sub("say", json!([companion("aria"), text]))).await;
    assert!(refused.contains("yours are not among them"), "{refused}");
    server.stop().await;

    let server = new.start(&premises).await;
    let shown = ask(new.kim, sub("roles", json!([list("never_answered"), role(muted)]))).await;
    assert!(
        shown.contains(&format!("Only <@&{regulars}> may")) && shown.contains(&format!("Never answered: <@&{muted}>.")),
        "{shown}"
    );
    let off = json!({ "type": 3, "name": "switch", "value": "off" });
    let shown = ask(new.kim, sub("roles", json!([list("may_address"), role(regulars), off]))).await;
    assert!(shown.starts_with("Everybody may address companions. Never answered:"), "{shown}");
    discord.give_role(new.guild, new.kim, muted);
    discord.say(new.kim, new.general, "hey aria, four");
    discord.say(new.ana, new.general, "hey aria, five");
    discord.posts_in(new.general, 2).await;
    let room = format!("discord:{}", new.general);
    let history = server.history(&room).await;
    let answered: Vec<_> = history.iter().map(|(.., text)| text.as_str()).filter(|text| text.starts_with("hey aria")).collect();
    assert_eq!(answered, ["hey aria, one", "hey aria, two", "hey aria, four", "hey aria, five"], "all are read");
    let decisions = server.get(&format!("/api/decisions?room={room}")).await;
    let asked = decisions["decisions"].as_array().expect("decisions").iter().filter(|one| one["trigger"] == "direct_address");
    assert_eq!(asked.count(), 2, "{decisions}\n{answers:?}");
    server.stop().await;
}

#[tokio::test]
async fn profiles_show_who_there_is_and_where() {
    let new = Newcomers::new().await;
    let discord = &new.discord;
    let secret = discord.channel(new.guild, "secret");
    discord.deny(secret, new.guild, Permissions::VIEW_CHANNEL);
    let server = new.start(&new.premises()).await;
    discord.invite_bot(new.guild, INVITED);
    discord.allow(secret, discord.bot_role(new.guild), INVITED);
    discord.allow(secret, new.kim, Permissions::VIEW_CHANNEL | Permissions::MANAGE_CHANNELS);
    discord.post_in(new.lounge).await;
    for channel in [new.general, secret] {
        final_answer(discord, new.kim, channel, sub("join", json!([companion("aria")]))).await;
    }
    let profiles = async |user, options: Value| {
        let interaction = discord.command(user, new.general, sub("companion", options));
        discord.answer_to(interaction).await;
        discord.final_answer(interaction).await
    };

    let all = profiles(new.ana, json!([])).await;
    let one = profiles(new.kim, json!([companion("aria")])).await;

    assert!(all.is_ephemeral());
    let titles: Vec<_> = all.embeds.iter().map(|embed| embed["title"].as_str().unwrap()).collect();
    assert_eq!(titles, ["Aria", "Bruno", "Cleo"]);
    let place = |embed: &Value| embed["fields"][0]["value"].as_str().unwrap().to_owned();
    assert_eq!(place(&all.embeds[0]), format!("<#{}>", new.general), "the private channel is hidden");
    assert!(place(&all.embeds[1]).starts_with("In no public channel"));
    assert_eq!((one.embeds.len(), place(&one.embeds[0]).contains(&secret.to_string())), (1, true));
    assert!(all.embeds.iter().all(|embed| embed["footer"]["text"].as_str().unwrap().starts_with("AI companion")));
    server.stop().await;
}
