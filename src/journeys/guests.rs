//! Guests: who is let in under which name, and how much they may use (docs/design/platforms.md P-35).

use serde_json::json;

use super::world::{World, room};
use crate::ports::backend::Refused;
use crate::ports::backend::guest_service::{Amount, Ends, NewInvitation, Visit};
use crate::ports::backend::usage::UsageQuery;
use secrecy::ExposeSecret as _;

const LOBBY: &str = "lobby";

impl World {
    async fn invite(&self, id: &str) -> (String, String) {
        let new = NewInvitation { ends: Ends::Day, most_guests: 5, knows_before: true };
        let (view, secret) = self.backend.guests.invite(&room(id), new).await.unwrap();
        (secret.expose_secret().to_owned(), view.id.to_string())
    }

    async fn join(&self, secret: &str, name: &str, cookies: &[String]) -> Result<(Visit, String), Refused> {
        let joined = self.backend.guests.join(secret, name.into(), cookies).await?;
        Ok((joined.0, joined.1.expose_secret().to_owned()))
    }

    async fn take(&self, visit: &Visit, amount: Amount) -> bool {
        match self.backend.guests.consume_quota(visit, amount).await {
            Ok(()) => true,
            Err(Refused::TooMany { .. }) => false,
            Err(refused) => panic!("{refused}"),
        }
    }
}

fn is_about_name(refused: &Refused) -> bool {
    matches!(refused, Refused::Invalid { field, .. } if field == "name")
}

#[tokio::test(start_paused = true)]
async fn a_name_that_somebody_has_is_refused() {
    let world = World::with_lobby().await;
    world.say_with(LOBBY, json!({ "from": "Ana", "text": "hello" })).await;
    let (secret, _) = world.invite(LOBBY).await;
    let (_, ben) = world.join(&secret, "Ben", &[]).await.unwrap();

    for name in ["Ana", "ana", "\u{410}na", "Aria", "ari\u{430}", "Ben", "BEN"] {
        assert!(is_about_name(&world.join(&secret, name, &[]).await.unwrap_err()), "{name}");
    }
    // The browser that had it, also after everything was said and the server was started again.
    world.say_with(LOBBY, json!({ "from": "Ben", "text": "hi" })).await;
    let world = world.crash().await;
    assert!(world.backend.guests.visit(&ben).is_some());
    assert!(is_about_name(&world.join(&secret, "Ben", &[]).await.unwrap_err()));
    let (other, _) = world.invite(LOBBY).await;
    assert!(world.join(&other, "Ben", &[ben]).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn visits_end_with_the_invitation_and_with_the_room() {
    let world = World::with_lobby().await;
    let (secret, id) = world.invite(LOBBY).await;
    let (_, ben) = world.join(&secret, "Ben", &[]).await.unwrap();
    let is_in = |world: &World, cookie: &str| world.backend.guests.visit(cookie).is_some();
    assert!(is_in(&world, &ben));

    world.backend.guests.revoke(&room(LOBBY), &id).await.unwrap();

    assert!(!is_in(&world, &ben));
    assert!(matches!(world.backend.guests.look(&secret, &[]).await, Err(Refused::NotFound(_))));
    let (secret, _) = world.invite(LOBBY).await;
    let (_, cleo) = world.join(&secret, "Cleo", &[]).await.unwrap();
    world.delete_room(LOBBY).await;
    world.pass(60.0).await;
    world.open(LOBBY, &["aria"]).await;
    assert!(!is_in(&world, &cleo), "another room with the same id");
    assert!(!is_in(&world.crash().await, &cleo));
}

#[tokio::test(start_paused = true)]
async fn what_guests_wrote_of_themselves_ends_with_their_invitation() {
    for is_revoked in [true, false] {
        let world = World::with_lobby().await;
        world.side.answers([Ok("They mean me.\nYES")]);
        let (secret, id) = world.invite(LOBBY).await;
        world.join(&secret, "Ben", &[]).await.unwrap();
        let zebras = async || {
            world.say_with(LOBBY, json!({ "from": "Ben", "text": "Aria, who am I?" })).await;
            world.pass(60.0).await;
            format!("{:?}", world.main.asked.lock().last().unwrap().messages).contains("zebras")
        };
        let rooms = &world.backend.rooms;
        rooms.describe(&room(LOBBY), &"Ben".into(), Some("I paint zebras.".into())).await.unwrap();
        assert!(zebras().await);

        if is_revoked {
            world.backend.guests.revoke(&room(LOBBY), &id).await.unwrap();
        } else {
            world.pass(24.0 * 60.0 * 60.0).await;
        }

        assert!(!zebras().await);
        world.invite(LOBBY).await;
        assert_eq!(rooms.description(&room(LOBBY), &"Ben".into()).await.unwrap(), None);
    }
}

#[tokio::test(start_paused = true)]
async fn tokens_count_for_the_guest_who_wrote_last() {
    let guests = json!({
        "each": { "messages_per_day": 100, "voice_minutes_per_day": 1, "tokens_per_day": 1000 },
        "together": { "messages_per_day": 100, "voice_minutes_per_day": 2, "tokens_per_day": 1500 },
    });
    let world = World::with_lobby_settings(json!({ "guests": guests })).await;
    world.side.answers([Ok("They mean me.\nYES")]);
    let (secret, _) = world.invite(LOBBY).await;
    let ((ben, _), (cleo, _)) = (world.join(&secret, "Ben", &[]).await.unwrap(), world.join(&secret, "Cleo", &[]).await.unwrap());
    let said = async |visit: &Visit| {
        let may = world.take(visit, Amount::Message).await;
        if may {
            world.say_with(LOBBY, json!({ "from": *visit.name, "text": "Aria, how are you?" })).await;
            world.pass(600.0).await;
        }
        may
    };

    let mut of_ben = 0;
    while said(&ben).await {
        of_ben += 1;
    }
    let used = world.backend.guests.invitations(&room(LOBBY)).await.unwrap()[0].tokens;
    let mut of_cleo = 0;
    while said(&cleo).await {
        of_cleo += 1;
    }

    assert!(of_ben > 0 && used >= 1000, "{of_ben} {used}");
    assert!(of_cleo < of_ben, "what is left of the invitation: {of_cleo} of {of_ben}");
    // Leaving and coming back, or another name, resets nothing.
    world.backend.guests.leave(&ben).await.unwrap();
    let (dora, _) = world.join(&secret, "Dora", &[]).await.unwrap();
    assert!(!world.take(&dora, Amount::Message).await && !world.take(&dora, Amount::Voice(std::time::Duration::ZERO)).await);
}

#[tokio::test(start_paused = true)]
async fn what_was_used_survives_a_restart() {
    let world = World::with_lobby().await;
    world.side.answers([Ok("They mean me.\nYES")]);
    let (secret, _) = world.invite(LOBBY).await;
    let (ben, _) = world.join(&secret, "Ben", &[]).await.unwrap();
    assert!(world.take(&ben, Amount::Message).await);
    world.say_with(LOBBY, json!({ "from": "Ben", "text": "Aria, how are you?" })).await;
    world.pass(600.0).await;

    let world = world.crash().await;
    assert!(world.take(&ben, Amount::Message).await);

    let invitation = &world.backend.guests.invitations(&room(LOBBY)).await.unwrap()[0];
    assert!(invitation.messages == 2 && invitation.tokens > 0, "{} {}", invitation.messages, invitation.tokens);
}

#[tokio::test(start_paused = true)]
async fn usage_lists_what_each_guest_used_today_also_since_the_last_message() {
    let world = World::with_lobby().await;
    world.side.answers([Ok("They mean me.\nYES")]);
    let (secret, _) = world.invite(LOBBY).await;
    let ((ben, _), (cleo, _)) = (world.join(&secret, "Ben", &[]).await.unwrap(), world.join(&secret, "Cleo", &[]).await.unwrap());
    for guest in [&cleo, &ben] {
        assert!(world.take(guest, Amount::Message).await);
        world.say_with(LOBBY, json!({ "from": *guest.name, "text": "Aria, how are you?" })).await;
        world.pass(600.0).await;
    }
    let used = async || {
        let all = world.backend.records.usage(UsageQuery::default()).await.unwrap().guilds.remove(0);
        let guests: Vec<_> = all.guests.iter().map(|one| (one.name.to_string(), one.messages, one.tokens)).collect();
        (guests, all.used.calls.usage.total())
    };

    let (guests, tokens) = used().await;

    let [(ben, 1, of_ben), (cleo, 1, of_cleo)] = &*guests else { panic!("{guests:?}") };
    assert_eq!((&**ben, &**cleo, of_ben + of_cleo), ("Ben", "Cleo", tokens));
    assert!(*of_ben > 0 && *of_cleo > 0, "{guests:?}");
    assert_eq!(used().await.0, guests, "asking charges nothing");
    world.pass(24.0 * 60.0 * 60.0).await;
    assert!(world.backend.records.usage(UsageQuery::default()).await.unwrap().guilds.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_models_use_after_somebody_else_wrote_is_not_the_guests() {
    let world = World::with_lobby().await;
    world.side.answers([Ok("They mean me.\nYES")]);
    let (secret, _) = world.invite(LOBBY).await;
    let (ben, _) = world.join(&secret, "Ben", &[]).await.unwrap();
    assert!(world.take(&ben, Amount::Message).await);

    world.say_with(LOBBY, json!({ "from": "Ana", "text": "Aria, how are you?" })).await;
    world.pass(600.0).await;

    assert!(world.take(&ben, Amount::Message).await);
    let invitation = &world.backend.guests.invitations(&room(LOBBY)).await.unwrap()[0];
    assert_eq!((invitation.messages, invitation.tokens), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn who_is_forgotten_is_no_guest_any_more() {
    let world = World::with_lobby().await;
    let (secret, _) = world.invite(LOBBY).await;
    let (_, ben) = world.join(&secret, "Ben", &[]).await.unwrap();
    world.say_with(LOBBY, json!({ "from": "Ben", "text": "hi" })).await;

    world.forget("Ben", false).await.unwrap();

    assert!(world.backend.guests.visit(&ben).is_none());
    assert!(world.backend.guests.invitations(&room(LOBBY)).await.unwrap()[0].guests.is_empty());
    let stored = world.everything().await;
    assert!(!stored.iter().any(|(_, value)| String::from_utf8_lossy(value).contains("Ben")));
}

#[tokio::test(start_paused = true)]
async fn while_a_guest_is_there_who_may_not_know_it_nothing_from_before_is_in_a_prompt() {
    let world = World::with_lobby().await;
    world.side.answers([Ok("They mean me.\nYES")]);
    world.main.answers([Ok("Hm.")]);
    world.say_with(LOBBY, json!({ "from": "Ana", "text": "Ari, the code word is walrus." })).await;
    world.pass(60.0).await;
    let new = NewInvitation { ends: Ends::Day, most_guests: 5, knows_before: false };
    let (_, secret) = world.backend.guests.invite(&room(LOBBY), new).await.unwrap();
    let ask = async |who: &str| {
        let models = [&world.side, &world.main];
        models.iter().for_each(|model| model.asked.lock().clear());
        world.say_with(LOBBY, json!({ "from": who, "text": "Ari, what is the code word?" })).await;
        world.pass(60.0).await;
        models.map(|model| model.asked.lock().iter().any(|request| request.user().contains("walrus")))
    };
    assert_eq!(ask("Ana").await, [true; 2], "nobody has joined");

    let (visit, _) = world.join(secret.expose_secret(), "Gus", &[]).await.unwrap();

    assert_eq!(ask("Gus").await, [false; 2]);
    assert_eq!(ask("Ana").await, [false; 2], "the guest reads it, too");
    world.backend.guests.leave(&visit).await.unwrap();
    // A decision shows only the newest messages.
    assert_eq!(ask("Ana").await, [false, true]);
}
