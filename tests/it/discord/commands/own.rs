//! Companions of a server's own, with the real binary: made, changed and removed there, and seen nowhere else.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::super::counterpart::{Author, Counterpart, INVITED, Id, Message, Permissions};
use super::setup::Newcomers;
use super::{companion, final_answer, sub};

/// A subcommand of `own`.
fn own(name: &str, options: Value) -> Value {
    json!([{ "type": 2, "name": "own", "options": sub(name, options) }])
}

const LUNA: [(&str, &str); 3] =
    [("name", "Luna"), ("persona", "You are Luna. You watch the moon."), ("picture", "https://example.org/luna.png")];

#[tokio::test]
async fn a_servers_own_companion_is_made_and_removed_there_and_seen_nowhere_else() {
    let new = Newcomers::new().await;
    let discord = &new.discord;
    let away = discord.guild("Other");
    let elsewhere = discord.channel(away, "general");
    let zoe = discord.member_with(away, "Zoe", Permissions::MANAGE_CHANNELS | Permissions::MANAGE_GUILD);
    let premises = new.premises().with("discord.own_companions", "1");
    let server = new.start(&premises).await;
    discord.invite_bot(new.guild, INVITED);
    discord.post_in(new.lounge).await;
    let ask = async |user, channel, options: Value| final_answer(discord, user, channel, options).await;
    assert!(ask(new.ana, new.general, own("make", json!([]))).await.contains("*Manage Server*"));
    let form = new.form(own("make", json!([]))).await;
    let refused = submitted(discord, form, &[LUNA[0], LUNA[1], ("picture", "http://example.org/luna.png")]).await.content;
    assert!(refused.contains("https") && refused.contains("You watch the moon."), "{refused}");
    let taken = submitted(discord, new.form(own("make", json!([]))).await, &[("name", "Aria"), LUNA[1]]).await.content;
    assert!(taken.contains("Aria") && !taken.contains("own companion, and"), "{taken}");
    let made = submitted(discord, new.form(own("make", json!([]))).await, &LUNA).await;
    assert!(made.is_ephemeral() && made.content.starts_with("**Luna** is this server's own companion"), "{made:?}");
    assert!(
        ask(new.kim, new.general, own("make", json!([])))
            .await
            .contains("as many companions of its own as the operator allows (1)")
    );
    assert!(ask(new.kim, new.general, sub("join", json!([companion("luna")]))).await.starts_with("**Luna** is here now."));
    discord.say(new.ana, new.general, "hey luna, how are you?");
    let said = discord.post_in(new.general).await;
    let is_lunas = |author: &Author| matches!(author, Author::Webhook { username, avatar_url, .. } if username == "Luna" && avatar_url.as_deref() == Some(LUNA[2].1));
    assert!(is_lunas(&said.author), "{said:?}");

    // The operator sees whose it is, and can bring it nowhere else.
    let all = server.get("/api/companions").await;
    let luna = all["companions"].as_array().unwrap().iter().find(|one| one["name"] == "Luna").expect("Luna").clone();
    assert_eq!(luna["guild"], json!(format!("discord:{}", new.guild)));
    let id = luna["id"].as_str().unwrap();
    let plan = json!({ "guild": "home", "companions": ["aria", id] });
    assert_eq!(server.ask(Method::PUT, "/api/rooms/lobby", Some(plan)).await.0, StatusCode::UNPROCESSABLE_ENTITY);

    // The manager of another server sees nothing of it.
    assert!(!ask(zoe, elsewhere, sub("status", json!([]))).await.contains("Luna"));
    for name in ["luna", id] {
        let refused = ask(zoe, elsewhere, sub("join", json!([companion(name)]))).await;
        assert!(refused.starts_with("There is no companion called") && !refused.contains("Luna"), "{refused}");
        for action in ["change", "remove"] {
            let refused = ask(zoe, elsewhere, own(action, json!([companion(name)]))).await;
            assert_eq!(refused, "This server has no companion of its own.");
        }
    }
    let profiles = discord.command(zoe, elsewhere, sub("companion", json!([])));
    discord.answer_to(profiles).await;
    let profiles: Message = discord.final_answer(profiles).await;
    assert_eq!(profiles.embeds.len(), 3, "{profiles:?}");
    for command in [sub("join", typing("lu")), sub("companion", typing("lu")), own("change", typing("lu"))] {
        let offered = discord.complete(zoe, elsewhere, "tertulia", command).expect("the command is offered");
        assert_eq!(discord.answer_to(offered).await.data["choices"], json!([]));
    }
    let (direct, _) = discord.direct(new.kim, "luna?");
    assert!(ask(new.kim, direct, sub("join", json!([companion(id)]))).await.starts_with("There is no companion called"));
    assert!(ask(new.kim, direct, own("make", json!([]))).await.starts_with("Only servers"));

    let question = discord.command(new.kim, new.general, own("remove", json!([companion("luna")])));
    discord.answer_to(question).await;
    let message = discord.final_answer(question).await;
    let pressed = discord.use_component(new.kim, new.general, message.id, "own-remove:", &[]).expect("the button is there");
    assert_eq!(discord.final_answer(pressed).await.content, "**Luna** is gone.");
    assert!(ask(new.ana, new.general, sub("status", json!([]))).await.starts_with("**No companion is here yet.**"));
    server.stop().await;
}

#[tokio::test]
async fn of_two_changes_of_a_servers_own_companion_the_second_is_refused_also_after_a_restart() {
    let new = Newcomers::new().await;
    let discord = &new.discord;
    let premises = new.premises().with("discord.own_companions", "2");
    let server = new.start(&premises).await;
    discord.invite_bot(new.guild, INVITED);
    discord.post_in(new.lounge).await;
    submitted(discord, new.form(own("make", json!([]))).await, &LUNA).await;
    let change = || own("change", json!([companion("luna")]));
    let (first, second) = (new.form(change()).await, new.form(change()).await);
    server.stop().await;

    let server = new.start(&premises).await;
    let changed = submitted(discord, first, &[("name", "Lunette")]).await.content;
    let refused = submitted(discord, second, &[("persona", "Lost?")]).await.content;

    assert!(changed.starts_with("**Lunette** is this server's own companion"), "{changed}");
    assert!(refused.contains("Somebody changed it") && refused.contains("Lost?"), "{refused}");
    server.stop().await;
}

impl Newcomers {
    /// Kim opens a form.
    async fn form(&self, options: Value) -> Id {
        let interaction = self.discord.command(self.kim, self.general, options);
        assert_eq!(self.discord.answer_to(interaction).await.kind, 9, "a form");
        interaction
    }
}

/// Submits a form. Returns the answer.
async fn submitted(discord: &Counterpart, form: Id, texts: &[(&str, &str)]) -> Message {
    let submitted = discord.submit(form, texts).expect("it can be submitted");
    discord.answer_to(submitted).await;
    discord.final_answer(submitted).await
}

#[tokio::test]
async fn without_the_operators_permission_no_server_makes_companions() {
    let new = Newcomers::new().await;
    let server = new.start(&new.premises()).await;
    new.discord.invite_bot(new.guild, INVITED);
    new.discord.post_in(new.lounge).await;

    let refused = final_answer(&new.discord, new.kim, new.general, own("make", json!([]))).await;

    assert_eq!(refused, "The operator of this bot allows no companions of a server's own.");
    server.stop().await;
}

fn typing(text: &str) -> Value {
    json!([{ "type": 3, "name": "companion", "value": text, "focused": true }])
}
