//! The bot is sent out of a call.

use super::Scene;

#[tokio::test]
async fn a_bot_that_was_sent_out_stays_out_until_everybody_has_left() {
    let scene = Scene::new().await;
    let Scene { home, harbour, .. } = &scene;
    let ben = home.discord.member(home.guild, "Ben");
    let ana = scene.call(home.ana, *harbour).await;
    let asked = scene.asked();

    home.discord.disconnect(home.guild, home.bot);
    home.discord.voice().members(*harbour, 1).await;
    let ben = home.discord.call(ben, *harbour).await;
    // What comes after this was handled after it.
    home.discord.say(home.ana, *harbour, "hey aria, where are you?");
    home.discord.post_in(*harbour).await;
    assert_eq!(scene.asked(), asked, "it does not come back");

    home.discord.hang_up(home.guild, ana).await;
    home.discord.hang_up(home.guild, ben).await;
    scene.call(home.ana, *harbour).await;
}
