use super::super::Ended;
use super::super::closing::{AfterClose, after_close};
use super::world::World;

#[test]
fn every_close_code_ends_resumes_or_begins_again_as_documented() {
    for (code, ended) in [
        (4004, Ended::AuthenticationFailed),
        (4006, Ended::SessionInvalid),
        (4009, Ended::SessionInvalid),
        (4011, Ended::ServerNotFound),
        (4014, Ended::Disconnected),
        (4016, Ended::NoMode),
        (4017, Ended::DaveRequired),
        (4021, Ended::RateLimited),
        (4022, Ended::CallTerminated),
    ] {
        let mut world = World::connected(0);
        world.close(Some(code));
        assert_eq!((world.ended(), world.opened.len()), (Some(ended), 1), "{code}");
    }
    for code in [Some(1000), Some(1001), Some(1006), Some(4000), Some(4015), Some(4023), None] {
        let mut world = World::connected(0);
        world.close(code);
        world.open_socket();
        assert_eq!((world.told(7).len(), world.told(0).len(), world.ended()), (1, 0, None), "{code:?}");
    }
    for code in [4001, 4002, 4003, 4005, 4012, 4020] {
        let mut world = World::connected(0);
        world.close(Some(code));
        world.open_socket();
        assert_eq!((world.told(7).len(), world.told(0).len(), world.ended()), (0, 1, None), "{code}");
    }
}

#[test]
fn no_code_is_undecided() {
    for code in 0..=u16::MAX {
        let after = after_close(Some(code));
        assert_eq!(
            after == AfterClose::Resume,
            !matches!(code, 4001..=4006 | 4009 | 4011 | 4012 | 4014 | 4016 | 4017 | 4020..=4022)
        );
    }
}

#[test]
fn a_server_that_refuses_what_we_send_again_and_again_ends_the_connection() {
    let mut world = World::begun();
    for _ in 0..3 {
        world.open_socket();
        world.close(Some(4002));
        assert_eq!(world.ended(), None);
        world.pass(std::time::Duration::from_secs(6));
    }
    world.open_socket();
    world.close(Some(4002));
    assert_eq!(world.ended(), Some(Ended::Refused(4002)));
}

#[test]
fn nothing_happens_after_the_end() {
    let mut world = World::connected(0);
    world.connection.leave();
    world.carry_out();
    assert_eq!((world.ended(), &world.closed[..]), (Some(Ended::Left), &[1000][..]));
    world.forget();

    world.connection.leave();
    world.close(None);
    world.tell_numbered(13, serde_json::json!({"user_id": "1"}));
    world.tell_binary(25, &[1, 2, 3]);
    world.hear(1, 1, &[1]);
    world.connection.datagrams_failed(world.now);
    world.connection.move_to(super::world::server(), world.now);
    world.play(1, super::world::frames(3));
    world.pass(std::time::Duration::from_secs(60));

    assert!(world.events.is_empty() && world.texts.is_empty() && world.datagrams.is_empty());
    assert_eq!(world.opened.len(), 1);
}
