use proptest::prelude::*;
use serde_json::json;
use twilight_model::id::Id;

use super::super::snowflake::id;
use super::*;

const GUILD: Snowflake = id(1);
const OWNER: Snowflake = id(2);
const BOT: Snowflake = id(3);
const ROLE: Snowflake = id(10);
const OTHER_ROLE: Snowflake = id(11);
const NOW: Moment = Moment::from_micros(1_000);

const VIEW: Permissions = Permissions::VIEW_CHANNEL;
const SEND: Permissions = Permissions::SEND_MESSAGES;
const HISTORY: Permissions = Permissions::READ_MESSAGE_HISTORY;
const WEBHOOKS: Permissions = Permissions::MANAGE_WEBHOOKS;
const NONE: Permissions = Permissions::empty();

#[test]
fn an_invitation_requests_the_needed_permissions() {
    assert_eq!(invitation().bits(), 275_414_846_464);
    assert_eq!(missing(invitation(), Place::Text), []);
    assert_eq!(missing(invitation(), Place::Thread { is_locked: false }), []);
}

#[test]
fn roles_add_up_in_a_guild() {
    let with = |everybody, role, other, roles: &[Snowflake]| {
        in_guild(&guild([(GUILD, everybody), (ROLE, role), (OTHER_ROLE, other)]), BOT, &member(roles, None))
    };

    assert_eq!(with(VIEW, SEND, HISTORY, &[ROLE]), VIEW | SEND);
    assert_eq!(with(VIEW, SEND, HISTORY, &[ROLE, OTHER_ROLE]), VIEW | SEND | HISTORY);
    assert_eq!(with(VIEW, SEND, HISTORY, &[id(99)]), VIEW);
    assert_eq!(with(VIEW, Permissions::ADMINISTRATOR, NONE, &[ROLE]), Permissions::all());
}

#[test]
fn overwrites_apply_in_order() {
    let own = |allow, deny| on_member(BOT, allow, deny);
    for (name, overwrites, sends) in [
        ("none", vec![], true),
        ("everybody may not", vec![on_role(GUILD, NONE, SEND)], false),
        ("a role may", vec![on_role(GUILD, NONE, SEND), on_role(ROLE, SEND, NONE)], true),
        ("in any order", vec![on_role(ROLE, SEND, NONE), on_role(GUILD, NONE, SEND)], true),
        ("one role may, one may not", vec![on_role(OTHER_ROLE, NONE, SEND), on_role(ROLE, SEND, NONE)], true),
        ("one role may not, one may", vec![on_role(ROLE, SEND, NONE), on_role(OTHER_ROLE, NONE, SEND)], true),
        ("the member may not", vec![on_role(ROLE, SEND, NONE), own(NONE, SEND)], false),
        ("the member may", vec![on_role(ROLE, NONE, SEND), own(SEND, NONE)], true),
        ("both at once", vec![own(SEND, SEND)], true),
        ("a role that it does not have", vec![on_role(id(99), NONE, SEND)], true),
        ("another member", vec![on_member(OWNER, NONE, SEND)], true),
        ("a member with the guild's id", vec![on_member(GUILD, NONE, SEND)], true),
    ] {
        let may = may(VIEW | SEND, &text(overwrites));

        assert_eq!(may.contains(SEND), sends, "{name}");
    }
}

#[test]
fn owners_and_administrators_have_all_permissions_even_during_a_timeout() {
    let guild = guild([(GUILD, NONE), (ROLE, Permissions::ADMINISTRATOR)]);
    let channel = text(vec![on_role(GUILD, NONE, Permissions::all())]);
    let silenced = |roles| member(roles, Some("1970-01-01T00:00:00.002Z"));

    assert_eq!(in_channel(&guild, BOT, &silenced(&[ROLE]), &channel, NOW), Permissions::all());
    assert_eq!(in_channel(&guild, OWNER, &silenced(&[]), &channel, NOW), Permissions::all());
}

#[test]
fn a_member_in_a_timeout_may_only_view() {
    let guild = guild([(GUILD, VIEW | SEND | HISTORY | WEBHOOKS)]);
    let until = |until| in_channel(&guild, BOT, &member(&[], Some(until)), &text(vec![]), NOW);

    assert_eq!(until("1970-01-01T00:00:00.001001Z"), VIEW | HISTORY);
    assert_eq!(until("1970-01-01T00:00:00.001000Z"), VIEW | SEND | HISTORY | WEBHOOKS);
}

#[test]
fn some_permissions_depend_on_others() {
    let files = Permissions::ATTACH_FILES | Permissions::MENTION_EVERYONE;

    let voice = ServerChannel { kind: ChannelType::GuildVoice, ..text(vec![]) };

    assert_eq!(may(SEND | WEBHOOKS, &text(vec![])), NONE);
    assert_eq!(may(VIEW | files, &text(vec![])), VIEW);
    assert_eq!(may(VIEW | SEND | files, &text(vec![])), VIEW | SEND | files);
    assert_eq!(may(VIEW | SEND | WEBHOOKS, &voice), VIEW);
    assert_eq!(may(VIEW | Permissions::CONNECT, &voice), VIEW | Permissions::CONNECT);
}

#[test]
fn missing_needs_are_listed_by_importance() {
    let [open, locked] = [false, true].map(|is_locked| Place::Thread { is_locked });
    for (permissions, place, expected) in [
        (NONE, Place::Text, &[Need::Listen][..]),
        (VIEW, Place::Voice, &[Need::Enter]),
        (VIEW, Place::Text, &[Need::Webhooks, Need::ReadBack, Need::Send]),
        (VIEW | SEND | WEBHOOKS, Place::Text, &[Need::ReadBack]),
        (VIEW | HISTORY | WEBHOOKS, open, &[Need::SendInThreads]),
        (VIEW | HISTORY | WEBHOOKS, locked, &[Need::Unlocked]),
        (VIEW | HISTORY | WEBHOOKS | Permissions::MANAGE_THREADS, locked, &[Need::SendInThreads]),
        (Permissions::all(), locked, &[]),
        (Permissions::ADMINISTRATOR, locked, &[]),
    ] {
        assert_eq!(missing(permissions, place), expected, "{permissions:?} {place:?}");
    }
}

#[test]
fn a_call_needs_its_channel_to_be_seen_entered_and_spoken_in() {
    let (connect, speak) = (Permissions::CONNECT, Permissions::SPEAK);
    for (permissions, is_stage, expected) in [
        (NONE, false, Some(Need::Listen)),
        (connect | speak, false, Some(Need::Listen)),
        (VIEW | speak, false, Some(Need::Enter)),
        (VIEW | connect, false, Some(Need::Speak)),
        (VIEW | connect, true, None),
        (VIEW | connect | speak, false, None),
        (Permissions::ADMINISTRATOR, false, None),
    ] {
        assert_eq!(missing_in_call(permissions, is_stage), expected, "{permissions:?} {is_stage}");
    }
}

#[test]
fn every_need_says_what_to_click() {
    use Need::{Commands, Enter, Listen, ReadBack, Send, SendInThreads, Speak, Unlocked, Webhooks};
    for need in [Listen, Enter, Speak, ReadBack, Webhooks, Send, SendInThreads, Unlocked, Commands] {
        let (without, click) = need.explanation();

        assert!(without.ends_with('.') && click.ends_with('.'));
        assert!(click.contains('>') || need == Commands);
    }
}

proptest! {
    /// Follows the order of steps in Discord's documentation, one bit at a time.
    #[test]
    fn each_permission_follows_the_last_overwrite_that_sets_it(
        base in any::<bool>(),
        // Deny and allow for everyone, a role, another role, the member.
        tells in prop::array::uniform4((any::<bool>(), any::<bool>())),
        order in Just([0_usize, 1, 2, 3]).prop_shuffle(),
    ) {
        let targets: [fn(Permissions, Permissions) -> PermissionOverwrite; 4] = [
            |allow, deny| on_role(GUILD, allow, deny),
            |allow, deny| on_role(ROLE, allow, deny),
            |allow, deny| on_role(OTHER_ROLE, allow, deny),
            |allow, deny| on_member(BOT, allow, deny),
        ];
        let given = |is_given| if is_given { WEBHOOKS } else { NONE };
        let overwrites: Vec<_> = order
            .into_iter()
            .map(|index| targets[index](given(tells[index].1), given(tells[index].0)))
            .collect();

        let mut expected = base;
        let roles = (tells[1].0 || tells[2].0, tells[1].1 || tells[2].1);
        for (denied, allowed) in [tells[0], roles, tells[3]] {
            expected = allowed || (expected && !denied);
        }

        let may = may(VIEW | given(base), &text(overwrites));
        prop_assert_eq!(may.contains(WEBHOOKS), expected);
    }
}

/// The bot's permissions in the channel, if its role has these in the guild.
fn may(permissions: Permissions, channel: &ServerChannel) -> Permissions {
    let guild = guild([(GUILD, NONE), (ROLE, permissions), (OTHER_ROLE, NONE)]);
    in_channel(&guild, BOT, &member(&[ROLE, OTHER_ROLE], None), channel, NOW)
}

fn guild<const N: usize>(roles: [(Snowflake, Permissions); N]) -> Server {
    let roles = roles.map(|(id, permissions)| ServerRole { id, permissions }).into();
    Server { id: GUILD, name: String::new(), owner_id: OWNER, roles }
}

fn member(roles: &[Snowflake], timed_out_until: Option<&str>) -> ServerMember {
    serde_json::from_value(json!({ "roles": roles, "communication_disabled_until": timed_out_until })).unwrap()
}

const fn text(overwrites: Vec<PermissionOverwrite>) -> ServerChannel {
    ServerChannel { id: id(20), kind: ChannelType::GuildText, name: None, permission_overwrites: Some(overwrites) }
}

const fn on_role(role: Snowflake, allow: Permissions, deny: Permissions) -> PermissionOverwrite {
    PermissionOverwrite { allow, deny, id: Id::new(role.get()), kind: PermissionOverwriteType::Role }
}

const fn on_member(member: Snowflake, allow: Permissions, deny: Permissions) -> PermissionOverwrite {
    PermissionOverwrite { kind: PermissionOverwriteType::Member, ..on_role(member, allow, deny) }
}
