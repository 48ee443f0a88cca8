//! Voice notes and pictures: they are read from Discord's own hosts, by the address that the message has now.

use serde_json::json;
use tertulia::domain::attachment::{Attachment, MOST_BYTES};
use tertulia::ports::chat_platform::{ChatPlatform as _, NotRead};
use tertulia::telemetry::fake::Logged;

use super::super::counterpart::{Id, StoredFile};
use super::super::home::snowflake;
use super::Scene;

const VOICE_MESSAGE: u64 = 1 << 13;

impl Scene {
    /// Ana sends a voice note, whose recording has this address.
    fn note(&self, flags: u64, address: &str, size: usize) -> Id {
        self.home.discord.say_with(self.home.ana, self.home.general, "", |message| {
            message.flags = flags;
            message.attachments = vec![json!({
                "id": "1", "filename": "voice-message.ogg", "content_type": "audio/ogg", "duration_secs": 2.4, "size": size,
                "url": address, "proxy_url": address, "waveform": "AA==",
            })];
        })
    }

    fn file(&self, status: u16, location: Option<&str>, bytes: &[u8]) -> String {
        let location = location.map(str::to_owned);
        let file = StoredFile { status, location, bytes: bytes.to_vec(), asked: 0, had_token: false };
        self.home.discord.with(|state| state.files.insert("note.ogg".to_owned(), file));
        format!("{}/attachments/note.ogg?ex=1&hm=2", self.home.discord.api_url())
    }

    async fn read(&self, note: Id) -> Result<Vec<u8>, NotRead> {
        self.client.file(&snowflake(self.home.general).channel(), &note.to_string(), None).await
    }
}

#[tokio::test]
async fn the_recording_of_a_voice_note_is_read_without_the_token() {
    let scene = Scene::new().await;
    let note = scene.note(VOICE_MESSAGE, &scene.file(200, None, b"OggS and so on"), 14);

    let read = scene.read(note).await;

    assert_eq!(read.as_deref(), Ok(&b"OggS and so on"[..]));
    let asked = scene.home.discord.look(|state| state.files["note.ogg"].clone());
    assert_eq!((asked.asked, asked.had_token), (1, false));
}

#[tokio::test]
async fn an_expired_address_may_be_read_again_and_everything_else_is_refused() {
    let scene = Scene::new().await;
    let elsewhere = "http://127.0.0.1:1/attachments/note.ogg";
    let large = vec![0; MOST_BYTES + 1];
    let own = scene.file(200, None, b"");
    for (what, address, flags, size, (status, bytes), is_later) in [
        ("expired", &*own, VOICE_MESSAGE, 9, (403, &b""[..]), true),
        ("busy", &own, VOICE_MESSAGE, 9, (503, b""), true),
        ("a redirect", &own, VOICE_MESSAGE, 9, (302, b""), false),
        ("larger than it says", &own, VOICE_MESSAGE, 9, (200, &large), false),
        ("too large", &own, VOICE_MESSAGE, large.len(), (200, b"x"), false),
        ("another host", elsewhere, VOICE_MESSAGE, 9, (200, b"x"), false),
        ("no address", "", VOICE_MESSAGE, 9, (200, b"x"), false),
        ("a file", &own, 0, 9, (200, b"x"), false),
    ] {
        scene.file(status, (status == 302).then_some(elsewhere), bytes);
        let note = scene.note(flags, address, size);

        match scene.read(note).await {
            Err(NotRead::Later { .. }) => assert!(is_later, "{what}"),
            Err(NotRead::Never(_)) => assert!(!is_later, "{what}"),
            Ok(read) => panic!("{what}: {} bytes are read", read.len()),
        }
    }
}

#[tokio::test]
async fn a_picture_is_read_by_the_address_that_its_message_has_now() {
    let scene = Scene::new().await;
    let (channel, picture) =
        (snowflake(scene.home.general).channel(), Attachment::new("1".into(), "image/png".into(), "a.png".into(), 6));
    let own = scene.file(200, None, b"pixels");
    let message = scene.note(0, "https://cdn.discordapp.com.example.org/note.ogg", 6);
    let read = async || scene.client.file(&channel, &message.to_string(), Some(&picture)).await.ok();

    assert_eq!(read().await, None, "another host");
    scene.home.discord.with(|state| {
        let message = state.world.message_mut(scene.home.general, message).expect("the message");
        message.attachments[0]["url"] = json!(own);
    });
    assert_eq!(read().await.as_deref(), Some(&b"pixels"[..]));
    for (status, location) in [(403, None), (404, None), (302, Some("http://127.0.0.1:1/note.ogg")), (500, None)] {
        scene.file(status, location, b"pixels");
        assert_eq!(read().await, None, "{status}");
    }
}

#[tokio::test]
async fn of_100_pictures_in_a_minute_60_are_read_and_one_line_is_logged() {
    let logged = Logged::from(tracing::Level::WARN);
    let scene = Scene::new().await;
    let (channel, picture) =
        (snowflake(scene.home.general).channel(), Attachment::new("1".into(), "image/png".into(), "a.png".into(), 6));
    let message = scene.note(0, &scene.file(200, None, b"pixels"), 6).to_string();
    let requests = || scene.home.discord.look(|state| state.journal.requests_of("message").count());
    let before = requests();

    let mut read = 0;
    for _ in 0..100 {
        read += usize::from(scene.client.file(&channel, &message, Some(&picture)).await.is_ok());
    }

    assert_eq!((read, requests() - before), (60, 60), "of the rest nothing is asked");
    assert_eq!(logged.read().matches("no further files are read").count(), 1);
}
