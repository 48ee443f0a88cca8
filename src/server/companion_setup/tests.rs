use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use ractor::Actor;
use tempfile::TempDir;

use super::*;
use crate::actors::models::Models;
use crate::actors::runtime::context::Environment;
use crate::actors::writer::{Arguments, Bounds, Writer};
use crate::adapters::llm::rehearsal::Rehearsal;
use crate::adapters::store::memory::MemoryStore;
use crate::adapters::system::{SystemClock, SystemRng};
use crate::backend::loading::load_rooms;
use crate::ports::backend::room::RoomId;
use crate::ports::companion_setup::{Base64, CompanionFields};
use crate::server::speech;
use crate::settings::companion::{MAX_PERSONA_BYTES, Override};
use crate::settings::{Sources, load};
use crate::telemetry::recorder::Recorder;

/// A server's companions, without a console.
struct World {
    dir: TempDir,
    setup: Setup,
}

impl World {
    /// Begins with these files in the folder of the settings.
    async fn new(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = dir.path().join("config").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let sources =
            Sources { folder: dir.path().join("config"), folder_was_named: false, profile: None, environment: Vec::new() };
        let loaded = load(&sources).unwrap();
        let rooms = loaded.settings.console.rooms.clone();
        let model = || Arc::new(Rehearsal::new(&loaded.settings.models.rehearsal));
        let context = ActorContext::new(Environment {
            store: Arc::new(MemoryStore::default()),
            clock: Arc::new(SystemClock),
            rng: Arc::new(SystemRng),
            models: Models::new(model(), model()),
            speech: speech::built_in(),
            recorder: Recorder::silent(),
            settings: Arc::new(loaded.settings),
            companions: loaded.companions,
        });
        let arguments = Arguments { context: context.clone(), deliver: Arc::new(|_, _, _| {}), bounds: Bounds::default() };
        Actor::spawn(None, Writer, arguments).await.unwrap();
        load_rooms(&context, &rooms, loaded.has_rooms).await.unwrap();
        let reloading = Arc::new(Reloading::new(context.clone(), sources.clone()));
        let files = CompanionFiles::new(sources.companions());
        Self { dir, setup: Setup::new(context, reloading, files, Dialects::default()) }
    }

    /// The files cannot be written any more.
    fn failing_with(mut self, replace: fn(&Path, &str) -> std::io::Result<()>) -> Self {
        self.setup.files = self.setup.files.writing_with(replace);
        self
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join("config/companions").join(name)
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// The names of all files, also hidden ones.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path("")).into_iter().flatten().flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn ids(&self) -> Vec<String> {
        self.setup.context.memberships.companions().keys().map(ToString::to_string).collect()
    }

    async fn create(&self, name: &str) -> Result<CompanionProfile, Refused> {
        self.setup.create(new(CompanionFields { name: name.into(), ..CompanionFields::default() })).await
    }

    async fn profile(&self, id: &str) -> CompanionProfile {
        self.setup.companion(id.into()).await.unwrap()
    }

    async fn change(&self, id: &str, change: impl FnOnce(&mut CompanionFields)) -> Result<CompanionProfile, Refused> {
        let CompanionProfile { revision, mut companion, .. } = self.profile(id).await;
        change(&mut companion);
        self.setup.change(id.into(), CompanionChange { revision, companion, picture: Override::Keep }).await
    }

    async fn delete(&self, id: &str) -> Result<(), Refused> {
        let revision = self.profile(id).await.revision;
        self.setup.delete(id.into(), revision).await
    }

    /// What SIGHUP does must change nothing and find nothing wrong.
    async fn assert_that_a_reload_changes_nothing(&self) {
        let before = self.setup.context.memberships.companions();
        let turn = self.setup.reloading.turn().await;
        assert_eq!(self.setup.reloading.reload(&turn).await, [""; 0]);
        assert_eq!(self.setup.context.memberships.companions(), before);
    }
}

fn new(companion: CompanionFields) -> NewCompanion {
    NewCompanion { companion, copy_of: None, picture: None, card: None, room: None, guild: None }
}

fn field(refused: Result<CompanionProfile, Refused>) -> String {
    match refused {
        Err(Refused::Invalid { field, .. }) => field,
        other => panic!("{other:?}"),
    }
}

fn is_conflict<T>(result: &Result<T, Refused>) -> bool {
    matches!(result, Err(Refused::Conflict(_)))
}

fn png() -> Vec<u8> {
    crate::cards::fuzz::pictures().into_iter().find(|bytes| crate::cards::picture::check(bytes).is_ok()).unwrap()
}

#[tokio::test]
async fn the_first_own_companion_is_written_beside_the_built_in_ones() {
    let world = World::new(&[]).await;
    assert!(matches!(world.setup.options().await.unwrap().kept, Kept::BuiltIn { .. }));

    let hilde = world.create(" Großmutter Hilde ").await.unwrap();

    assert_eq!((hilde.id.as_str(), &*hilde.companion.name), ("grossmutter-hilde", "Großmutter Hilde"));
    assert_eq!(world.names(), ["aria.toml", "bruno.toml", "cleo.toml", "grossmutter-hilde.toml"]);
    assert_eq!(world.text("grossmutter-hilde.toml"), "name = \"Großmutter Hilde\"\n");
    assert_eq!(world.text("aria.toml"), include_str!("../../../config/companions/aria.toml"));
    assert_eq!(world.ids(), ["aria", "bruno", "cleo", "grossmutter-hilde"]);
    assert!(matches!(hilde.kept, Kept::File { writable: true, .. }) && hilde.rooms.is_empty() && hilde.warnings.is_empty());
    assert_eq!(world.profile("aria").await.rooms[0].id.as_str(), "lobby");
    world.assert_that_a_reload_changes_nothing().await;
}

#[tokio::test]
async fn the_second_of_two_editors_is_told_and_loses_nothing() {
    let file = "# Ana wrote this.\nname = 'Mira' # her name\nbrief = \"\"\"\nA poet.\"\"\" # for experts\n";
    let world = World::new(&[("companions/mira.toml", file)]).await;
    let before = world.profile("mira").await;

    let first = world.change("mira", |mira| mira.tone = Some("dry".into())).await.unwrap();
    let change = CompanionChange { revision: before.revision, companion: before.companion, picture: Override::Keep };
    let second = world.setup.change("mira".into(), change).await;

    assert!(is_conflict(&second), "{second:?}");
    assert!(is_conflict(&world.setup.delete("mira".into(), Revision("old".to_owned())).await));
    assert_eq!(world.text("mira.toml"), format!("{file}tone = \"dry\"\n"));
    assert_eq!(world.profile("mira").await, first);
    // An editor of the file itself is somebody else, too.
    fs::write(world.path("mira.toml"), file).unwrap();
    let stale = CompanionChange { revision: first.revision, companion: first.companion, picture: Override::Keep };
    assert!(is_conflict(&world.setup.change("mira".into(), stale).await));
}

#[tokio::test]
async fn what_cannot_be_written_to_a_file_is_kept_in_the_store() {
    let world = World::new(&[("companions/mira/companion.toml", "name = \"Mira\"\n"), ("companions/mira/a.md", "A poet.")]).await;
    let world = world.failing_with(|_, _| Err(ErrorKind::ReadOnlyFilesystem.into()));

    let mira = world.change("mira", |mira| mira.tone = Some("dry".into())).await.unwrap();
    let nova = world.create("Nova").await.unwrap();

    let Kept::Store { why, instead_of } = &mira.kept else { panic!("{:?}", mira.kept) };
    assert!(why.contains("companion.toml cannot be written") && instead_of.as_ref().unwrap().ends_with("companion.toml"));
    assert!(matches!(&nova.kept, Kept::Store { instead_of: None, .. }));
    assert_eq!((mira.companion.tone.as_deref(), mira.companion.persona.as_deref()), (Some("dry"), Some("A poet.")));
    assert_eq!((world.names(), world.text("mira/companion.toml")), (vec!["mira".to_owned()], "name = \"Mira\"\n".to_owned()));
    world.assert_that_a_reload_changes_nothing().await;
    // The record goes before the file, and can be changed again.
    let mira = world.change("mira", |mira| mira.persona = Some("A liar.".into())).await.unwrap();
    assert_eq!(mira.companion.persona.as_deref(), Some("A liar."));
    world.delete("mira").await.unwrap();
    assert_eq!(world.profile("mira").await.companion.persona.as_deref(), Some("A poet."));
    world.delete("nova").await.unwrap();
    assert_eq!(world.ids(), ["mira"]);
    world.assert_that_a_reload_changes_nothing().await;
}

#[tokio::test]
async fn a_broken_record_is_named_and_left_out() {
    let world = World::new(&[]).await.failing_with(|_, _| Err(ErrorKind::PermissionDenied.into()));
    world.create("Nova").await.unwrap();
    let broken = crate::ports::store::Write::Put(key::companion(&"nova".into()), b"\x02{".to_vec());
    crate::actors::writer::requests::write_meta(&world.setup.context, crate::domain::id::Ward(0), vec![broken]).await.unwrap();

    let turn = world.setup.reloading.turn().await;
    let problems = world.setup.reloading.reload(&turn).await;

    assert!(problems.len() == 1 && problems[0].contains("the companion nova in the store"), "{problems:?}");
}

#[tokio::test]
async fn a_full_disk_changes_nothing() {
    let world = World::new(&[]).await.failing_with(|path, text| match path.ends_with("cleo.toml") {
        true => Err(ErrorKind::StorageFull.into()),
        false => fs::write(path, text),
    });
    let picture = Some(Base64(png()));
    let companion = CompanionFields { name: "Nova".into(), ..CompanionFields::default() };

    let refused = world.setup.create(NewCompanion { picture, ..new(companion) }).await;

    assert!(
        matches!(&refused, Err(Refused::Unavailable { detail, .. }) if detail.contains("nothing was changed")),
        "{refused:?}"
    );
    assert_eq!((world.ids().len(), world.dir.path().join("config").exists()), (3, false));
    let reader = Reader::new(&*world.setup.context.store);
    assert_eq!(reader.bytes(key::picture(&"nova".into())).await.unwrap(), None);
}

#[tokio::test]
async fn names_that_clash_in_a_guild_are_refused_before_anything_is_written() {
    let world = World::new(&[]).await;

    assert_eq!(field(world.change("bruno", |bruno| bruno.aliases = vec!["ARIA".into()]).await), "companion.aliases");
    assert_eq!(field(world.change("bruno", |bruno| bruno.name = "Cleo".into()).await), "companion.name");
    assert_eq!(world.names(), [""; 0]);
    // In no room it may have the name; that is told.
    let other = world.create("Aria").await.unwrap();
    assert_eq!(other.id.as_str(), "aria-2");
    assert!(other.warnings.iter().any(|warning| warning.contains("shares the name")), "{:?}", other.warnings);
    let codes = json!([{ "code": "warn_shared_name", "name": "Aria", "other": "aria" }]);
    assert_eq!(json!(other.warning_codes), codes, "the same for programs that word it themselves");
    let alike = world.create("\u{410}ria").await.unwrap();
    assert!(alike.warnings.iter().any(|warning| warning.contains("looks like")), "{:?}", alike.warnings);
}

#[tokio::test]
async fn a_new_companion_joins_its_room_or_is_not_made() {
    let world = World::new(&[]).await;
    let joining = |name: &str, room: &str| {
        let companion = CompanionFields { name: name.into(), ..CompanionFields::default() };
        NewCompanion { room: RoomId::parse(room), ..new(companion) }
    };

    assert_eq!(field(world.setup.create(joining("Aria", "lobby")).await), "companion.name");
    let nowhere = world.setup.create(joining("Nova", "den")).await;
    assert!(matches!(&nowhere, Err(Refused::NotFound(detail)) if &**detail == "there is no room den"), "{nowhere:?}");
    assert_eq!((world.names(), world.ids().len()), (vec![], 3));
    let nova = world.setup.create(joining("Nova", "lobby")).await.unwrap();
    assert_eq!((nova.id.as_str(), nova.rooms.len()), ("nova", 1));
    world.assert_that_a_reload_changes_nothing().await;
}

#[tokio::test]
async fn values_that_cannot_be_used_are_refused_by_their_fields() {
    let world = World::new(&[]).await;

    for (expected, change) in [
        ("companion.name", (|fields| fields.name = " ".into()) as fn(&mut CompanionFields)),
        ("companion.model", |fields| fields.model = Some("unknown".into())),
        ("companion.voice.provider", |fields| fields.voice.provider = Some("unknown".into())),
        ("companion.persona", |fields| fields.persona = Some("a".repeat(MAX_PERSONA_BYTES + 1).into())),
        ("companion.picture_url", |fields| fields.picture_url = Some("http://example.org/m.png".into())),
        ("companion.starts_after", |fields| fields.starts_after = Some(1.0)),
        ("companion.greetings[0]", |fields| fields.greetings = vec!["".into()]),
    ] {
        assert_eq!(field(world.change("aria", change).await), expected);
    }
    assert_eq!(world.names(), [""; 0]);
}

#[tokio::test]
async fn one_persona_file_is_written_and_several_are_not() {
    let world = World::new(&[
        ("companions/one/companion.toml", "# empty\n"),
        ("companions/one/me.md", "A poet.\n"),
        ("companions/two/companion.toml", ""),
        ("companions/two/a.md", "A poet.\n"),
        ("companions/two/b.md", "A liar.\n"),
    ])
    .await;

    let one = world.change("one", |one| (one.persona, one.tone) = (Some("A liar.".into()), Some("dry".into()))).await.unwrap();
    let two = world.profile("two").await;

    assert_eq!((one.companion.persona.as_deref(), world.text("one/me.md").as_str()), (Some("A liar."), "A liar.\n"));
    assert_eq!(world.text("one/companion.toml"), "tone = \"dry\"\n# empty\n");
    assert_eq!((one.persona_elsewhere, two.companion.persona.as_deref()), (None, Some("A poet.\n\nA liar.")));
    assert!(two.persona_elsewhere.unwrap().contains("a.md"));
    assert_eq!(field(world.change("two", |two| two.persona = Some("Nobody.".into())).await), "companion.persona");
    assert_eq!(field(world.change("one", |one| one.persona = None).await), "companion.persona");
    world.change("two", |two| two.tone = Some("dry".into())).await.unwrap();
    assert_eq!((world.text("two/a.md").as_str(), world.text("two/b.md").as_str()), ("A poet.\n", "A liar.\n"));
    world.assert_that_a_reload_changes_nothing().await;
}

#[tokio::test]
async fn a_picture_and_a_card_are_kept_and_go_with_their_companion() {
    let world = World::new(&[]).await;
    let card = br#"{"spec": "chara_card_v2", "data": {"name": "Nova", "description": "A poet."}}"#.to_vec();
    let companion = CompanionFields { name: "Nova".into(), ..CompanionFields::default() };
    let made = NewCompanion { picture: Some(Base64(png())), card: Some(Base64(card.clone())), ..new(companion) };

    let nova = world.setup.create(made).await.unwrap();

    let hash = nova.picture.as_deref().unwrap().strip_prefix("/pictures/nova/").unwrap().to_owned();
    assert_eq!(world.setup.picture("nova".into(), hash.clone(), Some(28)).await.unwrap(), png());
    assert!(matches!(world.setup.picture("nova".into(), "other".to_owned(), None).await, Err(Refused::NotFound(_))));
    let exported = world.setup.exported("nova".into()).await.unwrap();
    assert_eq!((exported.card, exported.picture, nova.has_card), (Some(card), Some(png()), true));
    assert_eq!(nova.discord_picture, DiscordPicture::NoPublicUrl);
    let copy =
        NewCompanion { copy_of: Some("nova".into()), ..new(CompanionFields { name: "Copy".into(), ..nova.companion.clone() }) };
    assert!(world.setup.create(copy).await.unwrap().has_card);
    let change = CompanionChange { revision: nova.revision.clone(), companion: nova.companion, picture: Override::Reset };
    let bare = world.setup.change("nova".into(), change).await.unwrap();
    assert_eq!((bare.picture.as_deref(), bare.discord_picture), (None, DiscordPicture::None));
    assert_ne!(bare.revision, nova.revision);
    world.delete("copy").await.unwrap();
    assert!(matches!(world.setup.picture("copy".into(), hash, None).await, Err(Refused::NotFound(_))));
    let again = world.create("Copy").await.unwrap();
    assert_eq!((again.id.as_str(), again.picture, again.has_card), ("copy", None, false));
}

#[tokio::test]
async fn what_is_no_picture_or_no_card_is_refused() {
    let world = World::new(&[]).await;
    let companion = || CompanionFields { name: "Nova".into(), ..CompanionFields::default() };

    let not_a_picture = NewCompanion { picture: Some(Base64(b"text".to_vec())), ..new(companion()) };
    let not_a_card = NewCompanion { card: Some(Base64(b"text".to_vec())), ..new(companion()) };

    assert_eq!(field(world.setup.create(not_a_picture).await), "picture");
    assert_eq!(field(world.setup.create(not_a_card).await), "card");
    assert_eq!(world.names(), [""; 0]);
}

#[tokio::test]
async fn companions_are_removed_down_to_the_last_one() {
    let world = World::new(&[]).await;

    world.delete("cleo").await.unwrap();

    assert_eq!(world.names(), ["aria.toml", "bruno.toml"]);
    let lobby = world.setup.context.memberships.get(&"console:lobby".into()).unwrap();
    assert!(!lobby.companions.contains(&"cleo".into()), "{lobby:?}");
    world.assert_that_a_reload_changes_nothing().await;
    world.delete("aria").await.unwrap();
    world.delete("bruno").await.unwrap();
    assert_eq!((world.ids(), world.names(), world.path("").exists()), (vec![], vec![], true));
    world.assert_that_a_reload_changes_nothing().await;
    let aria = world.create("Aria").await.unwrap();
    assert_eq!((aria.id.as_str(), aria.rooms.len()), ("aria", 0));
}

#[tokio::test]
async fn a_companion_that_the_settings_name_is_not_removed() {
    let rooms = "[[console.rooms]]\nid = \"den\"\nguild = \"home\"\ncompanions = [\"mira\"]\n";
    let world = World::new(&[("default.toml", rooms), ("companions/mira.toml", "")]).await;

    let refused = world.delete("mira").await;

    assert!(
        matches!(&refused, Err(Refused::Conflict(detail)) if detail.contains("default.toml:4: console.rooms[0]")),
        "{refused:?}"
    );
    assert_eq!((world.ids(), world.names()), (vec!["mira".to_owned()], vec!["mira.toml".to_owned()]));
}

#[tokio::test]
async fn other_files_in_a_removed_folder_stay() {
    let world = World::new(&[
        ("companions/mira/companion.toml", ""),
        ("companions/mira/me.md", "A poet."),
        ("companions/mira/notes.txt", "mine"),
        ("companions/nova/companion.toml", ""),
    ])
    .await;

    world.delete("mira").await.unwrap();
    world.delete("nova").await.unwrap();

    assert_eq!(world.names(), [".mira.removed"]);
    assert_eq!(world.text(".mira.removed/notes.txt"), "mine");
    assert!(!world.path(".mira.removed/me.md").exists());
}

#[tokio::test]
async fn an_id_is_free_in_any_case_and_no_word_of_the_api() {
    let world = World::new(&[("companions/Mira.toml", ""), ("companions/OTHER/picture.png", "")]).await;

    let mut ids = Vec::new();
    for name in ["mira", "Other", "Options", "try", "夜", "!"] {
        ids.push(world.create(name).await.map_or_else(|error| panic!("{name}: {error}"), |made| made.id.to_string()));
    }

    assert_eq!(ids, ["mira-2", "other-2", "options-2", "try-2", "ye", "companion"]);
}

#[tokio::test]
async fn a_copy_has_the_keys_that_no_field_has() {
    let file = "id = \"mira\"\n# for experts\nmax_turns = 3\n[voice]\nsounds_like = [\"mirror\"]\n";
    let world = World::new(&[("companions/mira.toml", file)]).await;
    let companion = CompanionFields { name: "Nova".into(), ..CompanionFields::default() };

    let nova = world.setup.create(NewCompanion { copy_of: Some("mira".into()), ..new(companion) }).await.unwrap();

    assert_eq!(world.text("nova.toml"), "# for experts\nmax_turns = 3\nname = \"Nova\"\n[voice]\nsounds_like = [\"mirror\"]\n");
    assert_eq!((nova.id.as_str(), &*nova.companion.name), ("nova", "Nova"));
}

#[tokio::test]
async fn a_companion_with_errors_in_its_file_says_so() {
    let world = World::new(&[("companions/mira.toml", "")]).await;
    fs::write(world.path("mira.toml"), "name = 3\n").unwrap();

    let broken = world.setup.companion("mira".into()).await;

    assert!(is_conflict(&broken), "{broken:?}");
    assert!(matches!(world.setup.companion("nobody".into()).await, Err(Refused::NotFound(_))));
    // It keeps nobody else from being made.
    world.create("Nova").await.unwrap();
    assert_eq!(world.ids(), ["mira", "nova"]);
}

#[tokio::test]
async fn a_draft_is_tried_and_nothing_is_kept() {
    let world = World::new(&[]).await;
    let companion = CompanionFields { name: "Nova".into(), persona: Some("A poet.".into()), ..CompanionFields::default() };
    let trial = CompanionTrial { companion, of: None, message: Some("Nova, what do you see?".into()) };

    let tried = world.setup.try_out(trial.clone()).await.unwrap();

    assert!(tried.decision.works && tried.statement.works, "{tried:?}");
    assert_eq!((world.names(), world.ids().len()), (vec![], 3));
    let long = CompanionTrial { message: Some("a".repeat(4_001).into()), ..trial };
    assert!(matches!(world.setup.try_out(long).await, Err(Refused::Invalid { field, .. }) if field == "message"));
}

#[tokio::test]
async fn changes_at_the_same_time_wait_for_each_other() {
    let world = World::new(&[]).await;

    let made = futures_util::future::join_all((0..8).map(|_| world.create("Nova"))).await;

    let mut ids: Vec<_> = made.into_iter().map(|made| made.unwrap().id.to_string()).collect();
    ids.sort();
    assert_eq!(ids, ["nova", "nova-2", "nova-3", "nova-4", "nova-5", "nova-6", "nova-7", "nova-8"]);
    assert_eq!(world.ids().len(), 11);
    world.assert_that_a_reload_changes_nothing().await;
}
