//! Answers are in the language of the person who uses a command, and in the guild's where all people see them.

use serde_json::json;

use super::{Scene, companion, me, sub};

#[tokio::test]
async fn each_person_reads_answers_in_their_own_language() {
    let scene = Scene::new().await;
    let join = || sub("join", json!([companion("aria")]));
    for (language, refused, question, label) in [
        ("de", "Berechtigung **Kanäle verwalten**", "Das lässt sich nicht rückgängig machen.", "Vergessen, was ich gesagt habe"),
        ("es-419", "permiso **Gestionar canales**", "Esto no se puede deshacer.", "Olvidar lo que dije"),
        ("fr", "permission **Gérer les salons**", "C’est irréversible.", "Oublier ce que j’ai dit"),
        ("pt-BR", "permissão **Gerenciar canais**", "Isso não pode ser desfeito.", "Esquecer o que eu disse"),
        ("ja", "**チャンネルの管理**", "この操作は取り消せません。", "私の発言を忘れる"),
        ("da", "permission **Manage Channels**", "This cannot be undone.", "Forget what I said"),
    ] {
        scene.discord.set_language(scene.ana, language);

        let answer = scene.final_answer(scene.ana, scene.general, join()).await;
        assert!(answer.contains(refused), "{language}: {answer}");
        let asked = scene.ask(scene.ana, scene.general, me("forget", json!([]))).await;
        assert!(asked.data["content"].as_str().is_some_and(|text| text.contains(question)), "{language}: {asked:?}");
        assert_eq!(asked.data["components"][0]["components"][0]["label"], label);
    }

    let welcome = scene.final_answer(scene.kim, scene.general, join()).await;
    assert!(welcome.starts_with("**Aria** is here now."), "Kim reads English: {welcome}");
}

#[tokio::test]
async fn what_all_people_see_is_in_the_language_of_the_guild() {
    let scene = Scene::new().await;
    scene.final_answer(scene.kim, scene.general, sub("join", json!([companion("aria")]))).await;
    scene.discord.set_language(scene.ana, "de");
    scene.discord.set_language(scene.guild, "fr");
    let say = |to: &str| sub("say", json!([companion(to), { "type": 3, "name": "text", "value": "{person}?" }]));

    let interaction = scene.discord.command(scene.ana, scene.general, say("aria"));
    let (shown, refused) =
        (scene.discord.final_answer(interaction).await.content, scene.final_answer(scene.ana, scene.general, say("zed")).await);

    assert_eq!(shown, "**Ana** à **Aria** :\n> {person}?");
    assert_eq!(refused, "„zed“ ist nicht in diesem Kanal. In diesem Kanal: Aria.");
}
