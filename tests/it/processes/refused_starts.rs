//! A server that cannot start explains why, exits with the code for this kind of error, and changes nothing. (`damage/` has the damaged stores.)

use tokio::net::TcpListener;

use crate::harness::Premises;

#[tokio::test]
async fn a_server_that_cannot_start_says_why_and_creates_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let taken = listener.local_addr().expect("bound").to_string();
    for (settings, code, words) in [
        (&[("server.listen", &*taken)][..], 1, &[&*taken, "is in use by another program"][..]),
        (&[("gate.max_buffer", "plenty")], 2, &["TERTULIA__GATE__MAX_BUFFER"]),
        (&[("server.listen", "0.0.0.0:0")], 2, &["TERTULIA__SERVER__ADMIN_TOKEN"]),
        (&[("server.listen", "0.0.0.0:0"), ("server.admin_token", "letmein")], 2, &["server.admin_token", "openssl rand"]),
    ] {
        let premises = settings.iter().fold(Premises::new(), |premises, (key, value)| premises.with(key, value));

        let refused = premises.run(&[]).await.exits_with(code);

        assert!(words.iter().all(|words| refused.stderr.contains(words)), "{words:?}: {refused:?}");
        assert!(!refused.stderr.contains("letmein") && !refused.stdout.contains("ready"), "{refused:?}");
        assert!(code == 1 || !premises.data().exists());
    }
}

#[tokio::test]
async fn what_needs_the_store_alone_is_refused_while_a_server_runs() {
    let premises = Premises::new();
    let server = premises.start().await;

    let second = premises.run(&[]).await.exits_with(3);
    let compacted = premises.run(&["history", "compact"]).await.exits_with(3);
    let restored = premises.run(&["history", "restore", "copy"]).await.exits_with(3);

    assert!(second.stderr.contains("data is in use by another server") && !second.stdout.contains("ready"), "{second:?}");
    for refused in [compacted, restored] {
        assert!(refused.stderr.contains(&server.url) && refused.stderr.contains("stop it first"), "{refused:?}");
    }
    server.say("lobby", "Ana", "the first one is not disturbed").await;
    server.stop().await;
    premises.run(&["history", "compact", "--json"]).await.exits_with(0);
    premises.run(&["history", "verify"]).await.exits_with(0);
}
